-- The view indexes has a state for everything that the monitor skips, and what
-- has one is not deleted from.  The states that DDL refuses are made with the
-- event trigger disabled.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE ROLE regress_ttl_poor;
CREATE SCHEMA states;
SET search_path = states;
CALL ttl_index.run_pass();
ALTER EVENT TRIGGER ttl_index_ddl DISABLE;
CREATE TABLE t (id int, ts timestamptz, kind text, local timestamp);
INSERT INTO t VALUES (1, '2001-01-01', 'x', '2001-01-01');
CREATE INDEX s_malformed ON t (ts) WHERE ttl_index.expire_after_seconds(5) OR id > 1;
CREATE INDEX s_key ON t ((CASE WHEN ttl_index.time_zone('UTC') THEN ts END)) WHERE ttl_index.expire_after_seconds(5);
CREATE INDEX s_hash ON t USING hash (ts) WHERE ttl_index.expire_after_seconds(5);
CREATE UNIQUE INDEX s_unique ON t (ts) WHERE ttl_index.expire_after_seconds(5);
CREATE INDEX s_compound ON t (ts, id) WHERE ttl_index.expire_after_seconds(5);
CREATE INDEX s_type ON t (kind) WHERE ttl_index.expire_after_seconds(5);
CREATE OPERATOR CLASS mine FOR TYPE timestamptz USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 timestamptz_cmp(timestamptz, timestamptz);
CREATE INDEX s_opclass ON t (ts mine) WHERE ttl_index.expire_after_seconds(5);
CREATE INDEX s_zone_missing ON t (local) WHERE ttl_index.expire_after_seconds(5);
CREATE INDEX s_zone_invalid ON t (local) WHERE ttl_index.expire_after_seconds(5) AND ttl_index.time_zone('Nowhere');
CREATE INDEX s_zone_unused ON t (ts) WHERE ttl_index.expire_after_seconds(5) AND ttl_index.time_zone('UTC');
CREATE TABLE c (ts timestamptz);
CREATE UNIQUE INDEX s_constraint ON c (ts) WHERE ttl_index.expire_after_seconds(5);
ALTER TABLE c ALTER ts SET NOT NULL;
UPDATE pg_index SET indisreplident = true WHERE indexrelid = 's_constraint'::regclass;
CREATE MATERIALIZED VIEW mat AS SELECT ts FROM t;
CREATE INDEX s_mat ON mat (ts) WHERE ttl_index.expire_after_seconds(5);
CREATE ACCESS METHOD heap2 TYPE TABLE HANDLER heap_tableam_handler;
CREATE TABLE am (ts timestamptz) USING heap2;
INSERT INTO am VALUES ('2001-01-01');
CREATE INDEX s_am ON am (ts) WHERE ttl_index.expire_after_seconds(5);
CREATE TABLE invalid (ts timestamptz);
INSERT INTO invalid VALUES ('2001-01-01');
CREATE INDEX s_not_valid ON invalid (ts) WHERE ttl_index.expire_after_seconds(5);
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 's_not_valid'::regclass;
ALTER EVENT TRIGGER ttl_index_ddl ENABLE;
CREATE TEMP TABLE temporary (ts timestamptz);
CREATE TABLE published (ts timestamptz);
INSERT INTO published VALUES ('2001-01-01');
CREATE INDEX s_published ON published (ts) WHERE ttl_index.expire_after_seconds(5);
CREATE TABLE pub_pk (id int PRIMARY KEY, ts timestamptz);
CREATE INDEX a_published_with_key ON pub_pk (ts) WHERE ttl_index.expire_after_seconds(5);
CREATE TABLE pub_full (ts timestamptz);
ALTER TABLE pub_full REPLICA IDENTITY FULL;
CREATE INDEX a_published_full ON pub_full (ts) WHERE ttl_index.expire_after_seconds(5);
CREATE TABLE pub_insert (ts timestamptz);
CREATE INDEX a_published_insert ON pub_insert (ts) WHERE ttl_index.expire_after_seconds(5);
SET client_min_messages = error;
CREATE PUBLICATION states_pub FOR TABLE published, pub_pk, pub_full;
CREATE PUBLICATION states_pub_insert FOR TABLE pub_insert WITH (publish = 'insert');
SET client_min_messages = warning;
CREATE TABLE poor (ts timestamptz);
INSERT INTO poor VALUES ('2001-01-01');
CREATE INDEX s_poor ON poor (ts) WHERE ttl_index.expire_after_seconds(5);
ALTER TABLE poor OWNER TO regress_ttl_poor;
CREATE TABLE xmin (ts timestamptz);
INSERT INTO xmin VALUES ('2001-01-01');
CREATE INDEX s_xmin ON xmin (ts) WHERE ttl_index.expire_after_seconds(5);
SELECT indexrelid, expire_after_seconds AS n, state, reason FROM ttl_index.indexes
WHERE indexrelid::text NOT LIKE 's\_xmin' ORDER BY indexrelid::text COLLATE "C";
SET client_min_messages = error;
SELECT ttl_index.stats_reset();
DROP INDEX s_xmin;
CALL ttl_index.run_pass();
SELECT deleted_documents, errors FROM ttl_index.stats;
SET client_min_messages = warning;

-- and what repairs them
GRANT USAGE ON SCHEMA states TO regress_ttl_poor;
ALTER TABLE published REPLICA IDENTITY FULL;
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 's_not_valid'::regclass;
SELECT indexrelid, state FROM ttl_index.indexes WHERE indexrelid IN ('s_poor'::regclass, 's_published', 's_not_valid') ORDER BY 1;
REVOKE DELETE ON poor FROM regress_ttl_poor;
SELECT indexrelid, state FROM ttl_index.indexes WHERE indexrelid = 's_poor'::regclass;
GRANT DELETE ON poor TO regress_ttl_poor;
REVOKE SELECT ON poor FROM regress_ttl_poor;
SELECT indexrelid, state FROM ttl_index.indexes WHERE indexrelid = 's_poor'::regclass;
GRANT SELECT ON poor TO regress_ttl_poor;
CALL ttl_index.run_pass();
SELECT (SELECT count(*) FROM poor) AS poor, (SELECT count(*) FROM published) AS published, (SELECT count(*) FROM invalid) AS invalid,
	(SELECT count(*) FROM t) AS t, (SELECT count(*) FROM am) AS am;

-- a broken HOT chain: the index cannot be used by those who may still see the old row
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM xmin;
UPDATE pg_index SET indcheckxmin = true WHERE indexrelid = 's_poor'::regclass;
SELECT indexrelid, state, reason FROM ttl_index.indexes WHERE indexrelid = 's_poor'::regclass;
ROLLBACK;

-- an active one tells what ANALYZE has found, to those who may read the rows
CREATE TABLE dates (at timestamptz, deleted_at timestamptz, doc jsonb, day date);
CREATE INDEX a_at ON dates (at) WHERE ttl_index.expire_after_seconds(5);
CREATE INDEX a_deleted ON dates (deleted_at) WHERE ttl_index.expire_after_seconds(5);
CREATE INDEX a_doc ON dates ((ttl_index.document_date(doc, 'at'))) WHERE ttl_index.expire_after_seconds(5);
CREATE INDEX a_day ON dates (day) WHERE ttl_index.expire_after_seconds(5) AND ttl_index.time_zone('UTC');
INSERT INTO dates SELECT CASE WHEN g % 10 = 0 THEN '1970-01-01'::timestamptz ELSE 'infinity' END, NULL, '{"at": "2024-02-29 12:34:56"}',
	'29000-01-01'::date + g FROM generate_series(1, 100) AS g;
SELECT indexrelid, state, reason FROM ttl_index.indexes WHERE relid = 'dates'::regclass ORDER BY 1;
ANALYZE dates;
SELECT indexrelid, state, reason FROM ttl_index.indexes WHERE relid = 'dates'::regclass ORDER BY 1;
SET ROLE regress_ttl_poor;
SELECT count(reason) FROM ttl_index.indexes WHERE relid = 'states.dates'::regclass;
RESET ROLE;
UPDATE dates SET at = '2999-01-01', doc = '{"at": "2999-01-01T00:00:00Z"}', day = '2999-01-01';
ANALYZE dates;
SELECT indexrelid, state, reason FROM ttl_index.indexes WHERE relid = 'dates'::regclass ORDER BY 1;

-- due_count and oldest_due say why
\set VERBOSITY sqlstate
SELECT ttl_index.due_count('s_unique');
\set VERBOSITY default
SELECT ttl_index.oldest_due('s_malformed');
SELECT ttl_index.due_count('pub_pk_pkey');
SELECT ttl_index.due_count('t');
SELECT ttl_index.due_count(0);
SET client_min_messages = error;
DROP PUBLICATION states_pub, states_pub_insert;
DROP SCHEMA states CASCADE;
DROP ACCESS METHOD heap2;
DROP ROLE regress_ttl_poor;
