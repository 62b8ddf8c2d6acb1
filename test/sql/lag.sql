-- How far behind an index is, and what to leave out of queries.
SET client_min_messages = warning;
CREATE SCHEMA lag;
SET search_path = lag;
-- is the lag that of a row that has been due since then?  Clocks go on meanwhile.
CREATE FUNCTION since(index regclass, due timestamptz) RETURNS boolean LANGUAGE sql AS
	$$SELECT ttl_index.lag(index) BETWEEN now() - due AND clock_timestamp() - due$$;

CREATE TABLE plain (id int, ts timestamptz);
CREATE INDEX plain_i ON plain (ts) WHERE ttl_index.expire_after_seconds(3600);
SELECT ttl_index.lag('plain_i');
INSERT INTO plain VALUES (1, NULL), (2, 'infinity'), (3, '2999-01-01'), (4, now() - interval '59 minutes');
SELECT ttl_index.lag('plain_i');
INSERT INTO plain VALUES (5, '2001-01-01 10:00+00'), (6, '2001-01-02');
SELECT since('plain_i', '2001-01-01 11:00+00');
-- the key -infinity says nothing about when
INSERT INTO plain VALUES (7, '-infinity');
SELECT since('plain_i', '2001-01-01 11:00+00');
DELETE FROM plain WHERE id IN (5, 6);
SELECT ttl_index.lag('plain_i') IS NULL AS unknown, ttl_index.due_count('plain_i');
-- an index in the other direction, and rows that stay
INSERT INTO plain VALUES (5, '2001-01-01 10:00+00');
CREATE INDEX plain_down ON plain (ts DESC) WHERE id < 10 AND ttl_index.expire_after_seconds(0);
SELECT since('plain_down', '2001-01-01 10:00+00');
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'kept'; END$$;
CREATE TRIGGER keep BEFORE DELETE ON plain FOR EACH ROW EXECUTE FUNCTION keep();
CALL ttl_index.run_pass();
SELECT since('plain_down', '2001-01-01 10:00+00');
SELECT count(*) FROM ttl_index.coll_mod_index('plain_i', 7200);
SELECT since('plain_i', '2001-01-01 12:00+00');
DROP TABLE plain;

-- dates in a zone
CREATE TABLE days (d date, ts timestamp);
INSERT INTO days VALUES ('2001-07-01', '2001-07-01 12:00');
CREATE INDEX days_d ON days (d) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.time_zone('America/New_York');
CREATE INDEX days_ts ON days (ts) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.time_zone('America/New_York');
SELECT since('days_d', '2001-07-01 04:01+00'), since('days_ts', '2001-07-01 16:01+00');
-- the first days are, in a zone, before the first instant
TRUNCATE days;
INSERT INTO days VALUES ('4714-11-24 BC', '4714-11-24 BC');
CREATE INDEX days_east ON days (d) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.time_zone('Asia/Tokyo');
CREATE INDEX days_ts_east ON days (ts) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.time_zone('Asia/Tokyo');
SELECT ttl_index.oldest_due('days_east') = ttl_index.oldest_due('days_ts_east') AS same,
	ttl_index.oldest_due('days_east') = '4714-11-24 00:00+00 BC' AS first, ttl_index.lag('days_east') > '6700 years' AS lag;
DROP TABLE days;

-- documents with a TTL of their own
CREATE TABLE pair (ts timestamptz, doc jsonb);
SELECT ttl_index.create_index('pair', 'ts', 3600, document_ttl_field => 'doc.ttl');
INSERT INTO pair VALUES ('2001-01-02', '{}'), ('2001-01-01', '{"ttl": 60}'), ('2000-01-01', '{"ttl": -1}');
SELECT since('pair_ts_ttl', '2001-01-02 01:00'), since('pair_ts_own_ttl', '2001-01-01 00:01');
INSERT INTO pair VALUES ('2000-01-02', '{}');
SELECT since('pair_ts_ttl', '2000-01-02 01:00');
DROP TABLE pair;

-- partitions: row by row, and since they are due as a whole
CREATE TABLE parts (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE parts_a PARTITION OF parts FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
CREATE TABLE parts_b PARTITION OF parts FOR VALUES FROM ('2002-01-01') TO ('2999-01-01');
CREATE INDEX parts_i ON parts (ts) WHERE ttl_index.expire_after_seconds(60);
SELECT ttl_index.lag('parts_i');
INSERT INTO parts VALUES ('2001-02-03'), ('2003-02-03');
SELECT since('parts_i', '2001-02-03 00:01'), since('parts_b_ts_idx', '2003-02-03 00:01');
-- it is unknown as long as a partition has only rows at -infinity that are due
CREATE TABLE parts_0 PARTITION OF parts FOR VALUES FROM (MINVALUE) TO ('2001-01-01');
INSERT INTO parts VALUES ('-infinity');
SELECT ttl_index.lag('parts_i') IS NULL AS unknown, ttl_index.lag('parts_0_ts_idx') IS NULL AS unknown;
DROP TABLE parts_0;
SELECT count(*) FROM ttl_index.remove_ttl('parts_i');
DROP INDEX parts_i;
CREATE INDEX parts_i ON parts (ts) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.drop_expired_partitions();
SELECT since('parts_i', '2002-01-01 00:01'), ttl_index.lag('parts_b_ts_idx');
DROP TABLE parts;
-- one that holds no dates but those before all others
CREATE TABLE early (d date) PARTITION BY RANGE (d);
CREATE TABLE early_none PARTITION OF early FOR VALUES FROM (MINVALUE) TO ('-infinity');
CREATE TABLE early_all PARTITION OF early FOR VALUES FROM ('-infinity') TO ('2001-01-01');
CREATE INDEX early_i ON early (d) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.time_zone('UTC') AND ttl_index.drop_expired_partitions();
INSERT INTO early VALUES ('-infinity'), ('2000-01-01');
SELECT ttl_index.due_count('early_i'), ttl_index.lag('early_none_d_idx') AS none;
SELECT count(*) FROM ttl_index.preview('early_i');
DROP TABLE early;

-- what is shown of a row is what a query shows of it, also columns that are computed when they
-- are read (virtual ones, since 18)
SELECT CASE WHEN current_setting('server_version_num')::int < 180000
	THEN 'STORED' ELSE 'VIRTUAL' END AS kind \gset
CREATE TABLE computed (gone int, n int, twice int GENERATED ALWAYS AS (n * 2) :kind, ts timestamptz,
	plain text, label text GENERATED ALWAYS AS ('n' || n::text) :kind);
ALTER TABLE computed DROP COLUMN gone;
INSERT INTO computed (n, ts, plain) VALUES (1, '2001-01-01', 'a'), (NULL, '2001-01-02', NULL);
ALTER TABLE computed ADD COLUMN later int DEFAULT 7;
SELECT count(*) FROM ttl_index.create_index('computed', 'ts', 60);
SELECT p = to_jsonb(c) AS same, p ->> 'twice' AS twice, p ->> 'label' AS label, p ->> 'later' AS later
	FROM ttl_index.preview('computed_ts_ttl') WITH ORDINALITY AS preview (p, i)
	JOIN computed c ON c.ts = (p ->> 'ts')::timestamptz ORDER BY i;
DROP TABLE computed;
-- nor does a row go by what an index says of it that leaves such a column NULL
CREATE TABLE whole (n int, twice int GENERATED ALWAYS AS (n * 2) :kind, ts timestamptz);
CREATE FUNCTION is_small(whole) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS
	$$BEGIN RETURN coalesce($1.twice, 0) < 5; END$$;
CREATE INDEX whole_ttl ON whole (ts) WHERE is_small(whole) AND ttl_index.expire_after_seconds(60);
INSERT INTO whole VALUES (3, DEFAULT, '2001-01-01');
SET client_min_messages = error;
CALL ttl_index.run_pass();
SET client_min_messages = warning;
SELECT n, is_small(whole) FROM whole;
DROP TABLE whole CASCADE;

-- never an error but for what is no index: NULL where it cannot be told
CREATE ROLE regress_ttl_looker;
GRANT USAGE ON SCHEMA lag TO regress_ttl_looker;
CREATE TABLE t (ts timestamptz);
INSERT INTO t VALUES ('2001-01-01');
CREATE INDEX t_plain ON t (ts);
CREATE INDEX t_never ON t (ts) WHERE ttl_index.expire_after_seconds(60);
SELECT count(*) FROM ttl_index.remove_ttl('t_never');
CREATE FUNCTION fails(ts timestamptz) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS
	$$BEGIN IF current_setting('lag.fails', true) = 'on' THEN RAISE query_canceled; END IF; RETURN true; END$$;
CREATE INDEX t_fails ON t (ts) WHERE lag.fails(ts) AND ttl_index.expire_after_seconds(60);
SELECT ttl_index.lag('t_plain') AS no_ttl, ttl_index.lag('t') AS no_index, ttl_index.lag(0) AS gone;
SELECT since('t_fails', '2001-01-01 00:01');
CREATE INDEX t_folded ON t (ts) WHERE lag.fails('2001-01-01') AND ttl_index.expire_after_seconds(60);
SELECT since('t_folded', '2001-01-01 00:01');
-- no code of the owner runs, which could fail, or take for ever
SET lag.fails = on;
SELECT since('t_folded', '2001-01-01 00:01');
RESET lag.fails;
SET ROLE regress_ttl_looker;
SELECT ttl_index.lag('lag.t_fails') AS not_mine;
RESET ROLE;
GRANT pg_monitor TO regress_ttl_looker;
SET ROLE regress_ttl_looker;
SELECT ttl_index.lag('lag.t_fails') > '20 years' AS monitors;
RESET ROLE;
-- locks that lag() took are not kept
BEGIN;
SELECT ttl_index.lag('t_fails') > '20 years' AS told;
SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass AND pid = pg_backend_pid() AND mode <> 'AccessShareLock';
SELECT count(*) FROM pg_locks WHERE relation = 't_fails'::regclass AND pid = pg_backend_pid();
ROLLBACK;
DROP TABLE t;

-- behind the entries of rows that are gone it is where the pass is
CREATE TABLE drain (id int, ts timestamptz) WITH (autovacuum_enabled = off);
CREATE INDEX drain_i ON drain (ts) WITH (deduplicate_items = off) WHERE ttl_index.expire_after_seconds(60);
INSERT INTO drain SELECT g, timestamptz '2001-01-01' + g * interval '1 s' FROM generate_series(1, 30000) AS g;
CREATE TABLE said (id int, known boolean);
CREATE FUNCTION say() RETURNS trigger LANGUAGE plpgsql AS
	$$BEGIN INSERT INTO lag.said VALUES (OLD.id, ttl_index.lag('lag.drain_i') > '20 years'); RETURN OLD; END$$;
CREATE TRIGGER say BEFORE DELETE ON drain FOR EACH ROW WHEN (OLD.id % 1000 = 0) EXECUTE FUNCTION say();
SET ttl_index.batch_target_docs = 1000;
CALL ttl_index.run_pass();
RESET ttl_index.batch_target_docs;
SELECT min(id), max(id), count(*) = count(known) AS always_known FROM said;
INSERT INTO drain VALUES (1, '2001-02-01');
SET client_min_messages = notice;
SELECT ttl_index.lag('drain_i') AS not_in_a_pass;
SET client_min_messages = warning;
VACUUM drain;
SELECT since('drain_i', '2001-02-01 00:01');
DROP TABLE drain;

-- cutoff: what is due when the statement begins
CREATE TABLE session (id int, seen timestamptz NOT NULL);
CREATE INDEX session_i ON session (seen) WHERE ttl_index.expire_after_seconds(3600);
INSERT INTO session SELECT g, now() - g * interval '1 minute' FROM generate_series(1, 1000) AS g;
ANALYZE session;
CREATE VIEW live AS SELECT * FROM session WHERE seen > ttl_index.cutoff('session_i');
SELECT ttl_index.cutoff('session_i') = statement_timestamp() - interval '1 hour' AS exact, count(*) FROM live;
EXPLAIN (COSTS OFF) SELECT * FROM live WHERE seen < now() - interval '58 minutes';
SELECT count(*) FROM ttl_index.coll_mod_index('session_i', 600);
SELECT count(*) FROM live;
SELECT count(*) FROM ttl_index.remove_ttl('session_i');
SELECT ttl_index.cutoff('session_i'), count(*) FROM live;
SELECT ttl_index.cutoff('session');
DROP VIEW live;
-- as a policy, for those who own nothing
CREATE INDEX session_ttl ON session (seen) WHERE ttl_index.expire_after_seconds(60 * 30);
ALTER TABLE session ENABLE ROW LEVEL SECURITY;
CREATE POLICY live ON session USING (seen > ttl_index.cutoff('lag.session_ttl'::text::regclass));
GRANT SELECT ON session TO regress_ttl_looker;
SET ROLE regress_ttl_looker;
SELECT count(*) FROM lag.session;
RESET ROLE;
-- a definition that has the name as text finds the index that REINDEX CONCURRENTLY has made, another one says why not
CREATE VIEW live AS SELECT * FROM session WHERE seen > ttl_index.cutoff('lag.session_ttl'::text::regclass);
CREATE VIEW stale AS SELECT * FROM session WHERE seen > ttl_index.cutoff('lag.session_ttl');
GRANT SELECT ON stale TO regress_ttl_looker;
REINDEX INDEX CONCURRENTLY session_ttl;
SELECT count(*) FROM live;
EXPLAIN (COSTS OFF) SELECT * FROM live;
CREATE FUNCTION error_of(query text, OUT message text, OUT hint text) LANGUAGE plpgsql AS $$ BEGIN
	EXECUTE query;
EXCEPTION WHEN undefined_object THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
	message := regexp_replace(message, '\d+', 'N');
END $$;
\x
SELECT * FROM error_of('SELECT count(*) FROM stale');
\x
SET ROLE regress_ttl_looker;
SELECT count(*) FROM lag.session;
RESET ROLE;
ALTER POLICY live ON session USING (seen > ttl_index.cutoff('lag.session_ttl'));
GRANT USAGE ON SCHEMA lag TO regress_ttl_looker;
REINDEX INDEX CONCURRENTLY session_ttl;
SET ROLE regress_ttl_looker;
SELECT message FROM error_of('SELECT count(*) FROM lag.session');
RESET ROLE;
DROP SCHEMA lag CASCADE;
DROP ROLE regress_ttl_looker;
