-- DROP EXTENSION: option rule 8; the way out in the manual.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA un;
SET search_path = un;
CREATE VIEW left_over AS
SELECT i.indrelid::regclass AS relid, i.indexrelid::regclass AS index, pg_get_expr(i.indpred, i.indrelid) AS predicate
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid WHERE c.relnamespace = 'un'::regnamespace
ORDER BY c.relname COLLATE "C";
CREATE TABLE t (id int, ts timestamptz, local timestamp, logins timestamptz[]);
CREATE INDEX t_ts ON t (ts) WHERE ttl_index.expire_after_seconds(3600);
CREATE INDEX t_local ON t (local) WHERE id > 5 AND ttl_index.expire_after_seconds(5) AND ttl_index.time_zone('UTC');
CREATE INDEX t_id ON t (id);
CREATE INDEX t_logins ON t (ttl_index.earliest(logins)) WHERE ttl_index.expire_after_seconds(5);
CREATE TABLE p (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE p_1 PARTITION OF p DEFAULT;
CREATE INDEX p_ts ON p (ts) WHERE ttl_index.expire_after_seconds(3600);
CREATE TABLE coll (doc jsonb);
SELECT ttl_index.track_last_modified('coll');
SELECT ttl_index.create_index('coll', '_ts', 5, document_ttl_field => 'doc.ttl');
INSERT INTO t VALUES (1, '2001-01-01', '2001-01-01', '{2001-01-01}');
INSERT INTO coll VALUES ('{"ttl": -1}');

-- refused while a TTL index is there; CASCADE drops them and the trigger, no row
DROP EXTENSION ttl_index;
BEGIN;
SET LOCAL client_min_messages = error;
DROP EXTENSION ttl_index CASCADE;
SELECT * FROM left_over;
SELECT (SELECT count(*) FROM t) AS t, (SELECT count(*) FROM coll WHERE _ts IS NOT NULL) AS coll,
	(SELECT count(*) FROM pg_trigger WHERE tgrelid = 'coll'::regclass) AS triggers,
	(SELECT count(*) FROM pg_event_trigger WHERE evtname LIKE 'ttl_index%') AS event_triggers;
UPDATE coll SET doc = '{}';
ROLLBACK;

-- options where they do not belong: DDL refuses them in an index, the engine shows
-- them, remove_all_ttl() names them, and DROP EXTENSION knows of every one
ALTER EVENT TRIGGER ttl_index_ddl DISABLE;
CREATE TABLE odd (id int, ts timestamptz, local timestamp);
CREATE INDEX odd_key ON odd (ttl_index.expire_after_seconds(5));
CREATE UNIQUE INDEX odd_unique ON odd ((CASE WHEN ttl_index.expire_after_seconds(id) THEN id END));
CREATE INDEX odd_both ON odd ((CASE WHEN ttl_index.expire_after_seconds(5) THEN ts END)) WHERE ttl_index.expire_after_seconds(5);
CREATE INDEX odd_zone ON odd ((CASE WHEN ttl_index.time_zone('UTC') THEN ts END));
CREATE INDEX odd_filter ON odd (ts) WHERE ttl_index.expire_after_seconds(5) = (id > 1);
CREATE INDEX odd_or ON odd (ts) WHERE ttl_index.expire_after_seconds(5) AND (ttl_index.bucket_max_span_seconds(id) OR id > 1);
CREATE INDEX odd_alone ON odd (ts) WHERE ttl_index.drop_expired_partitions();
CREATE VIEW odd_view AS SELECT ttl_index.expire_after_seconds(id) FROM odd;
ALTER TABLE odd ADD CONSTRAINT odd_check CHECK (ttl_index.expire_after_seconds(id)),
	ADD yes boolean DEFAULT ttl_index.time_zone('UTC'),
	ADD always boolean GENERATED ALWAYS AS (ttl_index.expire_after_seconds(id)) STORED;
ALTER EVENT TRIGGER ttl_index_ddl ENABLE;
CREATE STATISTICS odd_statistics ON (ttl_index.bucket_max_span_seconds(id)), id FROM odd;
CREATE POLICY odd_policy ON odd USING (ttl_index.expire_after_seconds(id));
CREATE RULE odd_rule AS ON UPDATE TO odd WHERE NOT ttl_index.expire_after_seconds(old.id) DO INSTEAD NOTHING;
CREATE TABLE odd_parts (id int) PARTITION BY LIST (ttl_index.expire_after_seconds(id));
CREATE FUNCTION odd_function() RETURNS boolean LANGUAGE sql RETURN ttl_index.drop_expired_partitions();
CREATE DOMAIN odd_domain AS text CHECK (ttl_index.time_zone(value));
CREATE VIEW users AS
SELECT pg_describe_object(classid, objid, objsubid) COLLATE "C" AS "user", refobjid::regproc::text COLLATE "C" AS option, count(*)
FROM pg_depend WHERE refclassid = 'pg_proc'::regclass AND refobjid IN ('ttl_index.expire_after_seconds'::regproc,
	'ttl_index.time_zone'::regproc, 'ttl_index.drop_expired_partitions'::regproc, 'ttl_index.bucket_max_span_seconds'::regproc)
	AND deptype <> 'e' GROUP BY 1, 2 ORDER BY 1, 2;
TABLE users;
SELECT indexrelid, state, reason FROM ttl_index.indexes WHERE relid = 'odd'::regclass ORDER BY indexrelid::text COLLATE "C";
SELECT ttl_index.coll_mod_index('odd_both', 6);
SELECT ttl_index.coll_mod_index('odd_filter', 6);
SELECT ttl_index.remove_ttl('odd_key');
BEGIN;
SELECT ttl_index.remove_all_ttl();
TABLE users;
\set VERBOSITY terse
DROP EXTENSION ttl_index;
ROLLBACK;
\set VERBOSITY default
-- what stands below a TTL index is no way around that
ALTER EVENT TRIGGER ttl_index_ddl DISABLE;
CREATE TABLE q (ts timestamptz, id int) PARTITION BY RANGE (ts);
CREATE TABLE q_1 PARTITION OF q DEFAULT;
CREATE INDEX q_1_ttl ON q_1 (ts) WHERE ttl_index.expire_after_seconds(5) = (id > 1);
CREATE INDEX q_ttl ON q (ts) WHERE id > 1 AND ttl_index.expire_after_seconds(5);
ALTER EVENT TRIGGER ttl_index_ddl ENABLE;
SELECT ttl_index.remove_ttl('q_ttl');
SELECT * FROM left_over WHERE relid IN ('q'::regclass, 'q_1'::regclass);
DROP VIEW users;
DROP TABLE odd, odd_parts, q CASCADE;
DROP FUNCTION odd_function;
DROP DOMAIN odd_domain;

-- the way that keeps the indexes, but for those that need functions
SELECT ttl_index.remove_all_ttl();
SELECT * FROM left_over;
DROP EXTENSION ttl_index;
SELECT ttl_index.untrack_last_modified('coll');
DROP INDEX t_logins, coll__ts_ttl, coll__ts_own_ttl;
DROP EXTENSION ttl_index;
SELECT * FROM left_over;
SELECT (SELECT count(*) FROM t) AS t, (SELECT count(*) FROM coll WHERE _ts IS NOT NULL) AS coll;
INSERT INTO t VALUES (7, '2002-01-01');
SET enable_seqscan = off;
SELECT id FROM t WHERE ts > '2001-06-01';
-- nothing refers to what is gone
SELECT * FROM pg_depend WHERE pg_describe_object(classid, objid, objsubid) IS NULL
	OR pg_describe_object(refclassid, refobjid, refobjsubid) IS NULL;

-- and back
CREATE EXTENSION ttl_index;
CALL ttl_index.run_pass();
SELECT ttl_index.coll_mod('t', 'ts', 3600);
CALL ttl_index.run_pass();
SELECT count(*) FROM t;
SET client_min_messages = error;
DROP SCHEMA un CASCADE;
