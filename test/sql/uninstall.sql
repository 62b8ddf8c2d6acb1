-- DROP EXTENSION: design.md, rule of the option 8; the way out in the manual.
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

-- the way that keeps the indexes, but for those that need functions
SELECT ttl_index.remove_all_ttl();
SELECT * FROM left_over;
DROP EXTENSION ttl_index;
SELECT ttl_index.untrack_last_modified('coll');
DROP INDEX t_logins, coll__ts_ttl, coll__ts_own_ttl;
DROP EXTENSION ttl_index;
DROP SCHEMA ttl_index;
SELECT * FROM left_over;
SELECT (SELECT count(*) FROM t) AS t, (SELECT count(*) FROM coll WHERE _ts IS NOT NULL) AS coll;
INSERT INTO t VALUES (7, '2002-01-01');
SET enable_seqscan = off;
SELECT id FROM t WHERE ts > '2001-06-01';
SELECT * FROM pg_depend WHERE refclassid = 'pg_proc'::regclass AND refobjsubid <> 0;

-- and back
CREATE EXTENSION ttl_index;
SELECT ttl_index.coll_mod('t', 'ts', 3600);
CALL ttl_index.run_pass();
SELECT count(*) FROM t;
SET client_min_messages = error;
DROP SCHEMA un CASCADE;
