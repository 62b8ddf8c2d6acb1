-- coll_mod, coll_mod_index, remove_ttl: rules 18 to 20,
-- and option rules 2, 3 and 4.
\set SHOW_CONTEXT never
CREATE SCHEMA cm;
SET search_path = cm;
CALL ttl_index.run_pass();
CREATE TABLE t (id int PRIMARY KEY, ts timestamptz, created date, kind text, u timestamptz, fk timestamptz UNIQUE);
INSERT INTO t (id, ts, created) SELECT g, '2001-01-01'::timestamptz + g * interval '1 s', '2001-01-01' FROM generate_series(1, 1000) AS g;
CREATE INDEX t_ts ON t (ts);
SELECT pg_relation_filenode('t_ts') AS filenode \gset

-- rule 18: a plain index becomes a TTL index, without a rebuild
SELECT * FROM ttl_index.coll_mod('t', 'ts', 3600);
SELECT * FROM ttl_index.coll_mod('t', 'ts', 7200);
SELECT * FROM ttl_index.coll_mod('t', 'ts', 7200);
-- the notice of rule 16 comes back when the seconds shrink
SELECT * FROM ttl_index.coll_mod_index('t_ts', 0);
SELECT * FROM ttl_index.coll_mod_index(index => 't_ts', expire_after_seconds => 2147483647);
SELECT pg_relation_filenode('t_ts') = :filenode AS not_rebuilt;
\d t_ts
-- and back
SELECT ttl_index.remove_ttl('t_ts');
SELECT pg_relation_filenode('t_ts') = :filenode AS not_rebuilt;
\d t_ts
SELECT count(*) FROM ttl_index.indexes;
SELECT count(*) FROM pg_depend WHERE objid = 't_ts'::regclass AND refclassid = 'pg_proc'::regclass;
SELECT ttl_index.remove_ttl('t_ts');
-- what the index holds has not changed
SET enable_seqscan = off;
SELECT count(*) FROM t WHERE ts < '2002-01-01';
RESET enable_seqscan;

-- a filter stays what it is
CREATE INDEX t_part ON t (u) WHERE kind = 'x' AND id > 5;
SELECT * FROM ttl_index.coll_mod('t', 'u', 5);
SELECT * FROM ttl_index.coll_mod('t', 'u', 6);
\d t_part
SELECT ttl_index.remove_ttl('t_part');
\d t_part

-- an index on timestamp or date needs a zone, which stays when the seconds change
CREATE INDEX t_created ON t (created DESC);
SELECT * FROM ttl_index.coll_mod('t', 'created', 5);
SELECT * FROM ttl_index.coll_mod('t', 'created', 5, 'Mars/Olympus');
SELECT * FROM ttl_index.coll_mod('t', 'created', 2000000000, time_zone => 'Europe/Berlin');
SELECT * FROM ttl_index.coll_mod('t', 'created', 2000000001);
\d t_created
SELECT * FROM ttl_index.coll_mod('t', 'created', 2000000001, 'Asia/Tokyo');
\d t_created
SELECT * FROM ttl_index.coll_mod('t', 'ts', 5, 'Asia/Tokyo');

-- rule 19
SELECT * FROM ttl_index.coll_mod('t', 'kind', 5);
SELECT * FROM ttl_index.coll_mod('t', 'nothing', 5);
CREATE INDEX t_ts2 ON t (ts) WHERE id > 5;
SELECT * FROM ttl_index.coll_mod('t', 'ts', 5);
SELECT * FROM ttl_index.coll_mod_index('t_ts2', 2147483647);
SELECT indexrelid, expire_after_seconds FROM ttl_index.indexes ORDER BY 1;
DROP INDEX t_ts2;
SELECT * FROM ttl_index.coll_mod_index('t', 5);
SELECT * FROM ttl_index.coll_mod_index(0, 5);

-- rule 20
SELECT * FROM ttl_index.coll_mod('t', 'ts', -1);
SELECT * FROM ttl_index.coll_mod('t', 'ts', NULL);
SELECT * FROM ttl_index.coll_mod('t', NULL, 1);
SELECT * FROM ttl_index.coll_mod(NULL, 'ts', 1);
SELECT * FROM ttl_index.coll_mod_index('t_ts', -2147483648);
SELECT * FROM ttl_index.coll_mod_index('t_ts', NULL);
SELECT * FROM ttl_index.coll_mod_index(NULL, 1);
-- rule of the option 3
SELECT * FROM ttl_index.coll_mod_index('t_pkey', 1);
SELECT * FROM ttl_index.coll_mod_index('t_fk_key', 1);
CREATE UNIQUE INDEX t_unique ON t (ts);
SELECT * FROM ttl_index.coll_mod_index('t_unique', 1);
CREATE UNIQUE INDEX t_fk_target ON t (u);
CREATE TABLE child (u timestamptz REFERENCES t (u));
SELECT * FROM ttl_index.coll_mod_index('t_fk_target', 1);
DROP TABLE child;
ALTER TABLE t ALTER u SET NOT NULL;
DELETE FROM t;
ALTER TABLE t ALTER u SET NOT NULL;
ALTER TABLE t REPLICA IDENTITY USING INDEX t_fk_target;
SELECT * FROM ttl_index.coll_mod_index('t_fk_target', 1);
CREATE INDEX t_compound ON t (ts, id);
SELECT * FROM ttl_index.coll_mod_index('t_compound', 1);
CREATE INDEX t_hash ON t USING hash (ts);
SELECT * FROM ttl_index.coll_mod_index('t_hash', 1);
CREATE INDEX t_kind ON t (kind);
SELECT * FROM ttl_index.coll_mod('t', 'kind', 1);
CREATE MATERIALIZED VIEW m AS SELECT ts FROM t;
CREATE INDEX m_ts ON m (ts);
SELECT * FROM ttl_index.coll_mod_index('m_ts', 1);
SELECT * FROM ttl_index.coll_mod_index('pg_catalog.pg_class_oid_index', 1);
CREATE TEMP TABLE temporary (ts timestamptz);
CREATE INDEX temporary_ts ON temporary (ts);
SELECT * FROM ttl_index.coll_mod_index('temporary_ts', 1);
DROP INDEX t_unique;
INSERT INTO t (id, ts, u) VALUES (1, '2001-01-01', '2001-01-01'), (2, '2001-01-01', '2001-01-02');
CREATE UNIQUE INDEX CONCURRENTLY t_invalid ON t (ts);
UPDATE pg_index SET indisunique = false WHERE indexrelid = 't_invalid'::regclass;
SELECT * FROM ttl_index.coll_mod_index('t_invalid', 1);
DROP INDEX t_invalid;
-- CLUSTER: the mark goes, with a notice
ALTER TABLE t CLUSTER ON t_ts;
SELECT * FROM ttl_index.coll_mod_index('t_ts', 2147483647);
CLUSTER t;
SELECT ttl_index.remove_ttl('t_ts');
-- nobody but the owner
CREATE ROLE regress_ttl_other;
GRANT ALL ON SCHEMA cm TO regress_ttl_other;
GRANT ALL ON t TO regress_ttl_other;
SET ROLE regress_ttl_other;
SELECT * FROM ttl_index.coll_mod('t', 'ts', 5);
SELECT * FROM ttl_index.coll_mod_index('t_ts', 5);
SELECT ttl_index.remove_ttl('t_created');
SELECT ttl_index.remove_all_ttl();
SELECT ttl_index.drop_index('t', 'created');
SELECT ttl_index.create_index('t', 'ts', 5);
SELECT ttl_index.create_index_command('t', 'ts', 5);
RESET ROLE;

-- rule of the option 2: the folded predicate stays what it is
CREATE INDEX t_false ON t (ts) WHERE false;
SELECT * FROM ttl_index.coll_mod_index('t_false', 5);
SELECT ttl_index.due_count('t_false');
DROP INDEX t_false;

-- rule of the option 4: the whole tree, and indcheckxmin
CREATE TABLE parted (id int, ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM ('2001-01-01') TO ('2002-01-01') PARTITION BY LIST (id);
CREATE TABLE parted_1a PARTITION OF parted_1 FOR VALUES IN (1);
CREATE TABLE parted_2 PARTITION OF parted DEFAULT;
CREATE INDEX parted_ts ON parted (ts);
SELECT pg_relation_filenode('parted_1a_ts_idx') AS filenode \gset
SELECT * FROM ttl_index.coll_mod('parted', 'ts', 3600);
SELECT indexrelid, parent_indexrelid, expire_after_seconds, state FROM ttl_index.indexes
WHERE indexrelid::text LIKE 'parted%' ORDER BY indexrelid::text COLLATE "C";
SELECT pg_relation_filenode('parted_1a_ts_idx') = :filenode AS not_rebuilt;
SELECT * FROM ttl_index.coll_mod_index('parted_1a_ts_idx', 5);
SELECT ttl_index.remove_ttl('parted_1a_ts_idx');
SELECT ttl_index.remove_ttl('parted_ts');
SELECT count(*) FROM ttl_index.indexes WHERE indexrelid::text LIKE 'parted%';
UPDATE pg_index SET indcheckxmin = true WHERE indexrelid = 't_ts'::regclass;
VACUUM pg_index;
SELECT * FROM ttl_index.coll_mod_index('t_ts', 2147483647);
SELECT indcheckxmin FROM pg_index WHERE indexrelid = 't_ts'::regclass;
-- a change of this very transaction is not older than every snapshot
BEGIN;
UPDATE pg_index SET indcheckxmin = true WHERE indexrelid = 't_ts'::regclass;
SELECT * FROM ttl_index.coll_mod_index('t_ts', 2147483647);
SELECT indcheckxmin FROM pg_index WHERE indexrelid = 't_ts'::regclass;
ROLLBACK;

-- an index whose build failed: clear errors, and no obstacle to remove_all_ttl
CREATE INDEX CONCURRENTLY t_failed ON t (ts) WHERE ttl_index.expire_after_seconds(-5);
SELECT ttl_index.remove_ttl('t_failed');
DROP INDEX t_ts;
SELECT ttl_index.create_index('t', 'ts', 60);
SELECT ttl_index.coll_mod('t', 'ts', 60);
SELECT ttl_index.remove_all_ttl();
DROP INDEX t_failed;
CREATE INDEX t_ts ON t (ts) WHERE ttl_index.expire_after_seconds(60);
ALTER EVENT TRIGGER ttl_index_ddl DISABLE;
CREATE INDEX t_zone ON t (u) WHERE ttl_index.expire_after_seconds(7) AND ttl_index.time_zone('UTC');
ALTER EVENT TRIGGER ttl_index_ddl ENABLE;
SELECT ttl_index.coll_mod_index('t_zone', 8);
\d t_zone

-- remove_all_ttl, and what DROP EXTENSION does without it (rule of the option 8)
SELECT ttl_index.coll_mod('parted', 'ts', 3600);
SELECT ttl_index.coll_mod_index('t_created', 2000000000, 'Asia/Tokyo');
DROP EXTENSION ttl_index;
SELECT ttl_index.remove_all_ttl();
DROP EXTENSION ttl_index;
SELECT count(*) FROM pg_class WHERE relname IN ('t_ts', 't_created', 'parted_ts', 'parted_1a_ts_idx');
CREATE EXTENSION ttl_index;
CALL ttl_index.run_pass();
-- an expression is found by what it means, however it is written
CREATE TABLE expr (id int, "At" timestamptz, epoch_ms bigint, doc jsonb);
CREATE INDEX expr_ms ON expr (to_timestamp(epoch_ms / 1000.0));
CREATE INDEX expr_greatest ON expr (greatest("At", '2001-01-01 00:00+00'::timestamptz));
CREATE INDEX expr_at ON expr ("At");
SELECT * FROM ttl_index.coll_mod('expr', 'to_timestamp(epoch_ms / 1000.0)', 60);
SELECT * FROM ttl_index.coll_mod('expr', '(pg_catalog.to_timestamp((epoch_ms::numeric/1000.0)::float8))', 61);
SELECT key FROM ttl_index.indexes WHERE indexrelid = 'expr_ms'::regclass;
SELECT * FROM ttl_index.coll_mod('expr', (SELECT key FROM ttl_index.indexes WHERE indexrelid = 'expr_ms'::regclass), 63);
SELECT * FROM ttl_index.coll_mod('expr', $$greatest("At", timestamptz '2001-01-01 00:00+00')$$, 64);
SELECT * FROM ttl_index.coll_mod('expr', '"At"', 65);
SELECT ttl_index.drop_index('expr', 'to_timestamp( epoch_ms/1000.0 )');
-- a constant is not any other one
CREATE INDEX expr_constant ON expr (('2001-01-01 00:00+00'::timestamptz));
SELECT * FROM ttl_index.coll_mod('expr', '2 + 3', 66);
DROP INDEX expr_constant;
-- another expression, and what is none
SELECT * FROM ttl_index.coll_mod('expr', 'to_timestamp(epoch_ms / 1000)', 66);
SELECT * FROM ttl_index.coll_mod('expr', 'to_timestamp(epoch / 1000)', 66);
SELECT * FROM ttl_index.coll_mod('expr', 'At', 66);
SELECT * FROM ttl_index.coll_mod('expr', 'at', 66);
SELECT * FROM ttl_index.coll_mod('expr', 'nothing.at', 66);
SELECT * FROM ttl_index.coll_mod('expr', '"At") WHERE (true', 66);
DROP TABLE expr;

SET client_min_messages = error;
DROP SCHEMA cm CASCADE;
DROP ROLE regress_ttl_other;
