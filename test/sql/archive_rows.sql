-- Rows that are due are moved to the table of archive_to: each is in one of the two.
SET client_min_messages = warning;
CREATE SCHEMA ar;
SET search_path = ar;
SELECT ttl_index.stats_reset();
CREATE VIEW failed AS SELECT i.indexrelid, s.deleted_documents AS deleted, s.archived_documents AS archived, s.skipped_failed,
	s.last_error, s.last_error_sqlstate AS sqlstate, i.state
	FROM ttl_index.indexes AS i JOIN ttl_index.index_stats AS s USING (indexrelid) ORDER BY indexrelid::text COLLATE "C";

-- by the names of columns, with what the other table has besides, and nothing of what was dropped
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN short AS text CHECK (length(VALUE) < 10);
CREATE TYPE pair AS (a int, b text);
CREATE TABLE t (gone int, id int GENERATED ALWAYS AS IDENTITY, ts timestamptz, "Big" text, tags text[], doc jsonb, m mood, s short,
	pair pair, amount numeric(6,2), twice numeric GENERATED ALWAYS AS (amount * 2) STORED, plus_one int GENERATED ALWAYS AS (7) STORED,
	also_gone text);
ALTER TABLE t DROP COLUMN gone, DROP COLUMN also_gone;
INSERT INTO t (ts, "Big", tags, doc, m, s, pair, amount) VALUES
	('2001-01-01', (SELECT string_agg(md5(g::text), '') FROM generate_series(1, 2000) AS g), '{a,NULL}', '{"a": [1, 2]}', 'ok', 'x', (1, 'y'), 1.5),
	('2001-01-02', NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('2999-01-01', 'stays', NULL, NULL, NULL, NULL, NULL, NULL);
-- a column of a time before it has a value in old rows, too
ALTER TABLE t ADD COLUMN later int DEFAULT 5;
CREATE TABLE cold (x int, later int, archived_by name DEFAULT current_user, amount numeric, twice numeric, plus_one int GENERATED ALWAYS AS (later + 1) STORED,
	pair pair, s short, m mood, doc jsonb, tags text[], "Big" text, ts timestamptz, id int GENERATED ALWAYS AS IDENTITY, n bigserial, y int);
ALTER TABLE cold DROP COLUMN x, DROP COLUMN y;
SELECT ttl_index.create_index('t', 'ts', 60, archive_to => 'cold');
CALL ttl_index.run_pass();
SELECT id, "Big" FROM t;
SELECT id, ts = '2001-01-01' AS first, md5("Big"), tags, doc, m, s, pair, amount, twice, plus_one, later, archived_by = current_user AS by_me, n FROM cold ORDER BY id;
SELECT deleted, archived, skipped_failed, sqlstate FROM failed;
SELECT deleted_documents, archived_documents FROM ttl_index.stats;
DROP TABLE t, cold;
SELECT ttl_index.stats_reset();

-- many rows in both orders, and nothing twice
CREATE TABLE t (id int PRIMARY KEY, ts timestamptz);
CREATE TABLE cold (LIKE t INCLUDING ALL);
INSERT INTO t SELECT g, '2001-01-01'::timestamptz + (g * 7919 % 20000) * interval '1 s' FROM generate_series(1, 20000) AS g;
INSERT INTO t SELECT g, '2999-01-01' FROM generate_series(20001, 20100) AS g;
VACUUM ANALYZE t;
SELECT ttl_index.create_index('t', 'ts', 60, archive_to => 'cold');
CALL ttl_index.run_pass();
SELECT count(*), min(id) FROM t;
SELECT count(*), count(DISTINCT id), min(id), max(id) FROM cold;
SELECT deleted, archived, skipped_failed FROM failed;

-- what the other table refuses stays, is counted and shown, and tried again: a unique key, a constraint, a trigger
INSERT INTO t SELECT g, '2001-01-01' FROM generate_series(1, 2000, 500) AS g;
INSERT INTO t SELECT g, '2001-01-01' FROM generate_series(30001, 30100) AS g;
SELECT ttl_index.stats_reset('t_ts_ttl');
CALL ttl_index.run_pass();
SELECT * FROM failed;
SELECT id FROM t WHERE ts < '2999-01-01' ORDER BY 1;
SELECT count(*), count(DISTINCT id) FROM cold;
DELETE FROM cold WHERE id = 501;
CALL ttl_index.run_pass();
SELECT id FROM t WHERE ts < '2999-01-01' ORDER BY 1;
SELECT deleted, archived, state FROM failed;
DELETE FROM cold;
CALL ttl_index.run_pass();
SELECT state FROM failed;
ALTER TABLE cold ADD CHECK (id <> -40005) NOT VALID;
CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id = 40007 THEN RETURN NULL; END IF; NEW.id := -NEW.id; RETURN NEW; END $$;
CREATE TRIGGER lose BEFORE INSERT ON cold FOR EACH ROW EXECUTE FUNCTION lose();
SELECT ttl_index.stats_reset('t_ts_ttl');
INSERT INTO t SELECT g, '2001-01-01' FROM generate_series(40001, 40010) AS g;
CALL ttl_index.run_pass();
SELECT id FROM t WHERE ts < '2999-01-01' ORDER BY 1;
SELECT id FROM cold WHERE id < -40000 ORDER BY 1;
SELECT deleted, archived, skipped_failed, sqlstate, state FROM failed;
DROP TRIGGER lose ON cold;
DELETE FROM t WHERE id < 50000;
ALTER TABLE cold DROP CONSTRAINT cold_id_check;
TRUNCATE cold;
SELECT ttl_index.stats_reset('t_ts_ttl');

-- by SQL, where something is attached: what a trigger keeps is not moved, foreign keys go along and are not moved
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN CASE WHEN OLD.id % 2 = 0 THEN OLD END; END $$;
CREATE TRIGGER keep BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION keep();
CREATE TABLE child (id int REFERENCES t ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE log (id int, was text);
CREATE RULE log AS ON DELETE TO t DO ALSO INSERT INTO log VALUES (OLD.id, 'deleted');
ALTER TABLE t ADD COLUMN gone int, ADD COLUMN more text DEFAULT 'm';
ALTER TABLE t DROP COLUMN gone;
ALTER TABLE cold ADD COLUMN more text;
INSERT INTO t SELECT g, '2001-01-01' FROM generate_series(1, 6) AS g;
INSERT INTO child VALUES (1), (2);
CALL ttl_index.run_pass();
SELECT id FROM t WHERE ts < '2999-01-01' ORDER BY 1;
SELECT * FROM cold ORDER BY 1;
SELECT * FROM child;
SELECT deleted, archived, skipped_failed FROM failed;
DROP TABLE child, log, t, cold CASCADE;

-- rows that a foreign key or an error of a trigger keeps are not moved, all others are, once
CREATE TABLE t (id int PRIMARY KEY, ts timestamptz);
CREATE TABLE child (id int REFERENCES t);
CREATE INDEX ON child (id);
CREATE TABLE cold (LIKE t);
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused' USING ERRCODE = 'data_exception'; END $$;
CREATE TRIGGER refuse AFTER DELETE ON t FOR EACH ROW WHEN (OLD.id % 100 = 1) EXECUTE FUNCTION refuse();
INSERT INTO t SELECT g, '2001-01-01' FROM generate_series(1, 1000) AS g;
INSERT INTO child SELECT g FROM generate_series(1, 1000, 7) AS g;
SELECT ttl_index.create_index('t', 'ts', 60, archive_to => 'cold');
CALL ttl_index.run_pass();
SELECT count(*), count(*) FILTER (WHERE id % 7 = 1 OR id % 100 = 1) AS kept FROM t;
SELECT count(*), count(DISTINCT id), sum(id) + (SELECT sum(id) FROM t) AS sum FROM cold;
SELECT deleted, archived, skipped_failed FROM failed;
DROP TABLE t, cold, child;

-- triggers and foreign keys of the other table, also deferred ones, see and do what belongs to an INSERT
CREATE TABLE t (id int, ts timestamptz);
CREATE TABLE known (id int PRIMARY KEY);
INSERT INTO known VALUES (1), (2);
CREATE TABLE cold (id int REFERENCES known DEFERRABLE INITIALLY DEFERRED, ts timestamptz);
CREATE TABLE seen (id int, in_source bigint, by text, user_name name);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql SET search_path = ar, pg_temp AS
	$$ BEGIN INSERT INTO seen SELECT NEW.id, (SELECT count(*) FROM t WHERE id = NEW.id), current_setting('ttl_index.expiring'), current_user; RETURN NEW; END $$;
CREATE TRIGGER see AFTER INSERT ON cold FOR EACH ROW EXECUTE FUNCTION see();
INSERT INTO t VALUES (1, '2001-01-01'), (2, '2001-01-01'), (3, '2001-01-01');
SELECT ttl_index.create_index('t', 'ts', 60, archive_to => 'cold');
CALL ttl_index.run_pass();
SELECT id FROM t;
SELECT id FROM cold ORDER BY 1;
SELECT id, in_source, by, user_name = current_user AS by_owner FROM seen ORDER BY 1;
SELECT archived, skipped_failed, sqlstate FROM failed;
DROP TABLE t, cold, known, seen;

-- another owner: with rights of his own, and under the policies of the other table
CREATE ROLE ar_owner;
GRANT USAGE, CREATE ON SCHEMA ar TO ar_owner;
CREATE TABLE t (id int, ts timestamptz);
ALTER TABLE t OWNER TO ar_owner;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
ALTER TABLE t FORCE ROW LEVEL SECURITY;
CREATE TABLE cold (id int, ts timestamptz, moved_by name DEFAULT current_user);
SELECT ttl_index.create_index('t', 'ts', 60, archive_to => 'cold');
GRANT INSERT ON cold TO ar_owner;
SELECT ttl_index.create_index('t', 'ts', 60, archive_to => 'cold');
ALTER TABLE cold ENABLE ROW LEVEL SECURITY;
CREATE POLICY even ON cold FOR INSERT TO ar_owner WITH CHECK (id % 2 = 0);
INSERT INTO t SELECT g, '2001-01-01' FROM generate_series(1, 4) AS g;
CALL ttl_index.run_pass();
SELECT id FROM t ORDER BY 1;
SELECT id, moved_by FROM cold ORDER BY 1;
SELECT archived, skipped_failed, sqlstate FROM failed;
REVOKE INSERT ON cold FROM ar_owner;
SELECT state FROM failed;
CALL ttl_index.run_pass();
SELECT count(*) FROM t;
DROP TABLE t, cold;
-- or under policies of his own, if those are forced: not for what goes, but for what comes
SET ROLE ar_owner;
CREATE TABLE t (id int, ts timestamptz);
ALTER TABLE t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE TABLE cold (id int, ts timestamptz);
ALTER TABLE cold ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY even ON cold USING (true) WITH CHECK (id % 2 = 0);
SELECT ttl_index.create_index('t', 'ts', 60, archive_to => 'cold');
RESET ROLE;
INSERT INTO t SELECT g, '2001-01-01' FROM generate_series(1, 4) AS g;
CALL ttl_index.run_pass();
SELECT id FROM t ORDER BY 1;
SELECT id FROM cold ORDER BY 1;
SELECT archived, skipped_failed, sqlstate FROM failed;
DROP TABLE t, cold;

-- partitioned, both, with columns in another order; no partition for a row: it stays
CREATE TABLE t (id int, ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE t1 (ts timestamptz, x int, id int);
ALTER TABLE t1 DROP COLUMN x;
ALTER TABLE t ATTACH PARTITION t1 FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
CREATE TABLE t2 PARTITION OF t DEFAULT;
CREATE TABLE cold (ts timestamptz, id int) PARTITION BY LIST (id);
CREATE TABLE cold1 PARTITION OF cold FOR VALUES IN (1, 2);
CREATE TABLE cold2 (id int, ts timestamptz);
ALTER TABLE cold ATTACH PARTITION cold2 FOR VALUES IN (3);
INSERT INTO t SELECT g, timestamptz '2001-01-01' + g * interval '100 days' FROM generate_series(1, 5) AS g;
SELECT ttl_index.create_index('t', 'ts', 60, archive_to => 'cold');
CALL ttl_index.run_pass();
SELECT id FROM t ORDER BY 1;
SELECT tableoid::regclass, id FROM cold ORDER BY 2;
SELECT archived, skipped_failed, sqlstate FROM failed WHERE archived > 0;

-- two stages: what is in the archive goes by the TTL of the archive
CREATE TABLE colder (LIKE cold);
CREATE INDEX cold_i ON cold (ts) WHERE ttl_index.expire_after_seconds(600) AND ttl_index.archive_to('colder');
CALL ttl_index.run_pass();
SELECT count(*) FROM cold;
SELECT count(*) FROM colder;
DROP TABLE t, cold, colder;

-- a pair: documents with a TTL of their own, too; and a row that is due by two TTL indexes is moved once
CREATE TABLE t (id int, ts timestamptz, doc jsonb, other timestamptz);
CREATE TABLE cold (LIKE t);
INSERT INTO t VALUES (1, '2001-01-01', '{}', '2001-01-01'), (2, '2001-01-01', '{"ttl": 1}', NULL), (3, '2001-01-01', '{"ttl": -1}', NULL);
SELECT ttl_index.create_index('t', 'ts', 60, document_ttl_field => 'doc.ttl', archive_to => 'cold');
SELECT ttl_index.create_index('t', 'other', 60, archive_to => 'cold');
CALL ttl_index.run_pass();
SELECT id FROM t;
SELECT id FROM cold ORDER BY 1;
DROP TABLE t, cold;

-- an ordinary table with nothing attached gets many rows at a time, each of which has all of its index entries
CREATE TABLE t (id int, ts timestamptz, doc jsonb, wide text);
ALTER TABLE t ALTER wide SET STORAGE EXTERNAL;
CREATE TABLE cold (wide text, doc jsonb, ts timestamptz, id int);
INSERT INTO t SELECT g, timestamptz '2001-01-01' + g * interval '1 s', jsonb_build_object('n', g % 10), repeat(g::text, CASE WHEN g % 100 = 0 THEN 20000 ELSE 50 END)
	FROM generate_series(1, 3000) AS g;
CREATE INDEX cold_id ON cold (id);
CREATE INDEX cold_doc ON cold USING gin (doc);
CREATE INDEX cold_hash ON cold USING hash (id);
CREATE INDEX cold_ts ON cold USING brin (ts);
CREATE TABLE was AS SELECT id, md5(wide) FROM t;
SELECT ttl_index.create_index('t', 'ts', 60, archive_to => 'cold');
CALL ttl_index.run_pass();
SELECT count(*) FROM t;
SELECT count(*), count(DISTINCT id) FROM cold JOIN was USING (id) WHERE md5(wide) = md5;
SET enable_seqscan = off;
SELECT count(*), sum(id) FROM cold WHERE id BETWEEN 1000 AND 1999;
SELECT count(*), sum(id) FROM cold WHERE doc @> '{"n": 3}';
SELECT id, length(wide) FROM cold WHERE id = 2500;
SELECT count(*), sum(id) FROM cold WHERE ts BETWEEN '2001-01-01 00:00:01' AND '2001-01-01 00:00:09';
RESET enable_seqscan;
DROP TABLE t, cold, was;

-- what it refuses stays, also where rows of one batch conflict with each other
CREATE TABLE t (id int, ts timestamptz, n int);
CREATE TABLE cold (id int UNIQUE, ts timestamptz, n int NOT NULL, more bigint, EXCLUDE (n WITH =));
INSERT INTO cold VALUES (1, now(), 100);
INSERT INTO t SELECT g, '2001-01-01', g FROM generate_series(1, 20) AS g;
INSERT INTO t VALUES (5, '2001-01-02', 50), (51, '2001-01-02', 6), (52, '2001-01-02', 0), (53, '2001-01-02', 100), (54, '2001-01-02', NULL);
SELECT ttl_index.create_index('t', 'ts', 60, archive_to => 'cold');
CALL ttl_index.run_pass();
SELECT id, n FROM t ORDER BY id, n;
SELECT count(*), sum(id), count(more) FROM cold;
SELECT deleted, archived, skipped_failed, state FROM failed;
DROP TABLE t, cold;

-- by the command: what is computed for each row, a deferrable constraint, a domain that takes no NULL, a partition, another access method
CREATE TABLE t (id int, ts timestamptz);
CREATE FUNCTION is_gone(int, timestamptz) RETURNS boolean LANGUAGE plpgsql STABLE SET search_path = ar, pg_temp AS
	$$ BEGIN RETURN NOT EXISTS (SELECT FROM t WHERE (id, ts) = ($1, $2)); END $$;
CREATE TABLE cold (id int, ts timestamptz, twice int GENERATED ALWAYS AS (2 * id) STORED, CHECK (id < 4), CHECK (is_gone(id, ts)));
CREATE INDEX cold_odd ON cold ((-id)) WHERE id % 2 = 1;
INSERT INTO t VALUES (1, '2001-01-01'), (2, '2001-01-01'), (3, '2001-01-01'), (4, '2001-01-01');
SELECT ttl_index.create_index('t', 'ts', 60, archive_to => 'cold');
CALL ttl_index.run_pass();
SELECT id FROM t;
SELECT id, twice FROM cold ORDER BY 1;
SET enable_seqscan = off;
SELECT count(*), sum(id) FROM cold WHERE id % 2 = 1 AND -id > -10;
RESET enable_seqscan;
SELECT ttl_index.drop_index('t', 'ts');
DROP TABLE cold;
TRUNCATE t;
CREATE TABLE cold (id int UNIQUE DEFERRABLE INITIALLY DEFERRED, ts timestamptz);
INSERT INTO cold VALUES (2, now());
INSERT INTO t VALUES (1, '2001-01-01'), (2, '2001-01-01'), (3, '2001-01-01'), (3, '2001-01-02');
SELECT ttl_index.create_index('t', 'ts', 60, archive_to => 'cold');
CALL ttl_index.run_pass();
SELECT id, ts = '2001-01-01' AS first FROM t ORDER BY 1;
SELECT id FROM cold ORDER BY 1;
CREATE DOMAIN never AS int NOT NULL;
CREATE DOMAIN seven AS int DEFAULT 7 NOT NULL;
CREATE TABLE colder (id int, ts timestamptz, no never, extra seven);
SELECT ttl_index.coll_mod_index('t_ts_ttl', 60, archive_to => 'colder');
CALL ttl_index.run_pass();
SELECT count(*) FROM t;
ALTER TABLE colder DROP no;
CALL ttl_index.run_pass();
SELECT count(*) FROM t;
SELECT id, extra FROM colder ORDER BY 1;
DROP TABLE cold;
CREATE TABLE cold (id int, ts timestamptz) PARTITION BY LIST (id);
CREATE TABLE cold1 PARTITION OF cold FOR VALUES IN (1);
SELECT ttl_index.coll_mod_index('t_ts_ttl', 60, archive_to => 'cold1');
INSERT INTO t VALUES (1, '2001-01-01'), (2, '2001-01-01');
CALL ttl_index.run_pass();
SELECT id FROM t;
SELECT id FROM cold;
CREATE ACCESS METHOD another TYPE TABLE HANDLER heap_tableam_handler;
CREATE TABLE another (id int, ts timestamptz) USING another;
SELECT ttl_index.coll_mod_index('t_ts_ttl', 60, archive_to => 'another');
CALL ttl_index.run_pass();
SELECT count(*) FROM t;
SELECT id FROM another;
DROP TABLE t, cold, colder, another;
DROP ACCESS METHOD another;

-- unlogged tables, and a pass with another isolation level
CREATE UNLOGGED TABLE t (id int, ts timestamptz);
CREATE UNLOGGED TABLE cold (LIKE t, at timestamptz DEFAULT now(), n int GENERATED ALWAYS AS IDENTITY);
CREATE INDEX ON cold (id);
INSERT INTO t SELECT g, '2001-01-01' FROM generate_series(1, 10) AS g;
SELECT ttl_index.create_index('t', 'ts', 60, archive_to => 'cold');
SET default_transaction_isolation = 'serializable';
CALL ttl_index.run_pass();
RESET default_transaction_isolation;
SELECT count(*) FROM t;
SELECT count(*), count(at), sum(n) FROM cold;
DROP TABLE t, cold;

-- no trigger alters the archive in the middle of a batch, which inserts what it was checked for
CREATE TABLE t (id int8, ts timestamptz);
CREATE TABLE cold (id int8, ts timestamptz);
INSERT INTO t VALUES (4096, '2001-01-01');
CREATE FUNCTION alter_cold() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN ALTER TABLE ar.cold ALTER id TYPE text; RETURN OLD; END $$;
CREATE TRIGGER alters BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION alter_cold();
SELECT ttl_index.create_index('t', 'ts', 60, archive_to => 'cold');
CALL ttl_index.run_pass();
ALTER TABLE t ADD note text DEFAULT 'a note';
ALTER TABLE cold ADD note text;
-- a value stays in its column, whatever that is called afterwards
CREATE OR REPLACE FUNCTION alter_cold() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN ALTER TABLE ar.cold RENAME id TO other; ALTER TABLE ar.cold RENAME note TO id; ALTER TABLE ar.cold RENAME other TO note;
	RETURN OLD; END $$;
CALL ttl_index.run_pass();
DROP TRIGGER alters ON t;
CALL ttl_index.run_pass();
SELECT count(*) FROM t;
SELECT id, note FROM cold;
DROP TABLE t, cold;

-- what a trigger sets does not keep the batch from setting it, and ends with it
CREATE TABLE t (id int8, ts timestamptz);
CREATE TABLE cold (LIKE t);
INSERT INTO t VALUES (1, '2001-01-01');
CREATE FUNCTION sets() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	PERFORM set_config('lock_timeout', '1s', false);
	RETURN OLD;
END $$;
CREATE TRIGGER sets BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION sets();
SELECT ttl_index.create_index('t', 'ts', 60, archive_to => 'cold');
CALL ttl_index.run_pass();
SELECT count(*), current_setting('lock_timeout') FROM cold;
DROP TABLE t, cold;

DROP SCHEMA ar CASCADE;
DROP ROLE ar_owner;
SELECT ttl_index.stats_reset();
