-- A paused index deletes nothing, and all else goes on: rule of the option 11.
SET client_min_messages = warning;
CREATE SCHEMA pause;
SET search_path = pause;
CREATE VIEW marks AS SELECT indexrelid, expire_after_seconds AS n, state, reason FROM ttl_index.indexes ORDER BY indexrelid::text COLLATE "C";
CREATE TABLE t (id int, ts timestamptz);
INSERT INTO t VALUES (1, '2001-01-01'), (2, '2999-01-01');
CREATE INDEX t_i ON t (ts) WHERE ttl_index.expire_after_seconds(60);
SELECT ttl_index.pause_index('t_i');
\d t
SELECT * FROM marks;
CALL ttl_index.run_pass();
SELECT count(*) FROM t;
SELECT ttl_index.due_count('t_i'), ttl_index.lag('t_i') > '20 years' AS lag;
-- nothing is rebuilt, coll_mod leaves it paused, and so does REINDEX, which would lose it
SELECT relfilenode AS file FROM pg_class WHERE relname = 't_i' \gset
SELECT * FROM ttl_index.coll_mod('t', 'ts', 120);
SELECT * FROM marks;
SELECT relfilenode = :file AS same_file FROM pg_class WHERE relname = 't_i';
REINDEX INDEX CONCURRENTLY t_i;
CALL ttl_index.run_pass();
SELECT pg_get_indexdef('t_i'::regclass);
SELECT count(*) FROM t;
-- said twice
SET client_min_messages = notice;
SELECT ttl_index.pause_index('t_i');
SELECT ttl_index.unpause_index('t_i');
SELECT ttl_index.unpause_index('t_i');
SET client_min_messages = warning;
\d t
-- and REINDEX does not bring it back
REINDEX INDEX CONCURRENTLY t_i;
CALL ttl_index.run_pass();
SELECT * FROM marks;
SELECT count(*) FROM t;
SELECT ttl_index.pause_index('t_i');
SELECT ttl_index.remove_ttl('t_i');
SELECT pg_get_indexdef('t_i'::regclass);
SELECT ttl_index.pause_index('t_i');
DROP TABLE t;

-- by DDL; LIKE takes it along
CREATE TABLE d (ts timestamptz, doc jsonb);
CREATE INDEX ON d (ts) WHERE ttl_index.paused();
CREATE INDEX ON d (ts) WHERE ttl_index.paused() AND ttl_index.expire_after_seconds(60) AND ttl_index.paused(true);
CREATE INDEX ON d (ts) WHERE ttl_index.paused(NULL) AND ttl_index.expire_after_seconds(60);
CREATE INDEX d_i ON d (ts) WHERE ttl_index.paused() AND ttl_index.expire_after_seconds(60);
CREATE INDEX d_on ON d (ts) WHERE ttl_index.expire_after_seconds(2000000000) AND ttl_index.paused(false);
CREATE INDEX d_on ON d (ts) WHERE ttl_index.expire_after_seconds(2000000000) AND ttl_index.paused(true);
CREATE TABLE e (LIKE d INCLUDING INDEXES);
SELECT * FROM marks;
DROP TABLE d, e;

-- documents with a TTL of their own: both indexes
CREATE TABLE p (ts timestamptz, doc jsonb);
INSERT INTO p VALUES ('2001-01-01', '{}'), ('2001-01-01', '{"ttl": 1}'), ('2001-01-01', '{"ttl": -1}');
SELECT ttl_index.create_index('p', 'ts', 60, document_ttl_field => 'doc.ttl');
SELECT ttl_index.pause_index('p_ts_own_ttl');
SELECT indexrelid, state FROM marks;
CALL ttl_index.run_pass();
SELECT count(*) FROM p;
REINDEX TABLE CONCURRENTLY p;
SELECT indexrelid, state FROM marks;
SELECT ttl_index.unpause_index('p_ts_ttl');
CALL ttl_index.run_pass();
SELECT * FROM p;
DROP TABLE p;

-- declared first, looked at, and let go; what is there already stays as it is
CREATE TABLE c (ts timestamptz, doc jsonb);
INSERT INTO c VALUES ('2001-01-01', '{}'), ('2001-01-01', '{"ttl": 1}');
SELECT ttl_index.create_index_command('c', 'ts', 60, document_ttl_field => 'doc.ttl', paused => true);
SET client_min_messages = notice;
SELECT ttl_index.create_index('c', 'ts', 60, document_ttl_field => 'doc.ttl', paused => true);
SET client_min_messages = warning;
CALL ttl_index.run_pass();
SELECT count(*), ttl_index.due_count('c_ts_ttl') FROM c;
SELECT ttl_index.create_index('c', 'ts', 120, document_ttl_field => 'doc.ttl', or_change => true);
SELECT indexrelid, n, state FROM marks;
SELECT ttl_index.unpause_index('c_ts_ttl');
SELECT ttl_index.create_index('c', 'ts', 120, document_ttl_field => 'doc.ttl', paused => true);
SELECT indexrelid, n, state FROM marks;
CALL ttl_index.run_pass();
SELECT count(*) FROM c;
DROP TABLE c;

-- each of the two by itself, as while a dump is restored, or when the other is dropped
CREATE TABLE half (ts timestamptz, doc jsonb);
INSERT INTO half VALUES ('2000-01-01', '{"ttl": 5}');
SELECT ttl_index.create_index('half', 'ts', 60, document_ttl_field => 'doc.ttl');
SELECT ttl_index.pause_index('half_ts_ttl');
SELECT pg_get_indexdef('half_ts_own_ttl'::regclass);
DROP INDEX half_ts_ttl;
CALL ttl_index.run_pass();
SELECT count(*) FROM half;
SELECT ttl_index.unpause_index('half_ts_own_ttl');
CALL ttl_index.run_pass();
SELECT count(*) FROM half;
DROP TABLE half;

-- partitions: they follow, and stay paused once they are detached
CREATE TABLE m (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE m_1 PARTITION OF m FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
CREATE INDEX m_i ON m (ts) WHERE ttl_index.expire_after_seconds(60);
SELECT ttl_index.pause_index('m_i');
CREATE TABLE m_2 PARTITION OF m FOR VALUES FROM ('2002-01-01') TO ('2003-01-01');
INSERT INTO m VALUES ('2001-01-02'), ('2002-01-02');
SELECT ttl_index.pause_index('m_1_ts_idx');
SELECT indexrelid, state FROM marks;
ALTER TABLE m DETACH PARTITION m_1;
CALL ttl_index.run_pass();
SELECT indexrelid, state FROM marks;
SELECT (SELECT count(*) FROM m_1) AS detached, (SELECT count(*) FROM m) AS rest;
SELECT ttl_index.unpause_index('m_i');
SELECT ttl_index.unpause_index('m_1_ts_idx');
CALL ttl_index.run_pass();
SELECT (SELECT count(*) FROM m_1) AS detached, (SELECT count(*) FROM m) AS rest;
DROP TABLE m, m_1;

-- a time series: nothing is dropped, and partitions are still made
CREATE TABLE s (ts timestamptz NOT NULL) PARTITION BY RANGE (ts);
SELECT ttl_index.create_time_series('s', 'ts', granularity => 'hours', expire_after_seconds => 60) IS NOT NULL AS made;
SELECT indexrelid AS index FROM marks WHERE indexrelid::text LIKE 's\_ts%' \gset
CREATE TABLE s_old PARTITION OF s FOR VALUES FROM ('2001-01-01') TO ('2001-02-01');
INSERT INTO s VALUES ('2001-01-02');
SELECT ttl_index.pause_index(:'index');
SELECT state FROM marks WHERE indexrelid = :'index'::regclass;
SELECT min(oid) AS ahead FROM pg_class WHERE oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 's'::regclass)
	AND pg_get_expr(relpartbound, oid) <> 'DEFAULT' AND relname <> 's_old' \gset
SELECT :ahead::regclass AS ahead \gset
DROP TABLE :ahead;
CALL ttl_index.run_pass();
SELECT to_regclass(:'ahead') IS NOT NULL AS made_again, (SELECT count(*) FROM s) AS kept;
SELECT ttl_index.unpause_index(:'index');
CALL ttl_index.run_pass();
SELECT to_regclass('s_old') IS NULL AS dropped;
-- what an interrupted REINDEX CONCURRENTLY has left of a pair is no part of it: the valid
-- index says what counts
CREATE TABLE left_behind (ts timestamptz, ttl int);
CREATE INDEX left_ccold ON left_behind (ts) WHERE ttl_index.column_ttl(ttl) IS NULL AND ttl_index.expire_after_seconds(3600);
CREATE INDEX left_main ON left_behind (ts) WHERE ttl_index.column_ttl(ttl) IS NULL AND ttl_index.expire_after_seconds(3600);
CREATE INDEX left_own ON left_behind (ttl_index.expire_at(ts, ttl_index.column_ttl(ttl)))
	WHERE ttl_index.column_ttl(ttl) IS NOT NULL AND ttl_index.expire_after_seconds(0);
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'left_ccold'::regclass;
INSERT INTO left_behind VALUES ('2001-01-01', 5), ('2001-01-01', NULL);
SELECT ttl_index.pause_index('left_main');
SELECT indexrelid, parent_indexrelid, state FROM ttl_index.indexes WHERE relid = 'left_behind'::regclass ORDER BY indexrelid::text COLLATE "C";
CALL ttl_index.run_pass();
SELECT count(*) FROM left_behind;
-- of a pair that is not whole nothing is changed by halves
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'left_own'::regclass;
SELECT ttl_index.unpause_index('left_main');
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'left_own'::regclass;
SET client_min_messages = warning;
SELECT ttl_index.unpause_index('left_main');
CALL ttl_index.run_pass();
SELECT count(*) FROM left_behind;
-- also where VACUUM FULL has made it valid
VACUUM FULL left_behind;
SELECT ttl_index.pause_index('left_main');
SELECT indexrelid, parent_indexrelid, state FROM ttl_index.indexes WHERE relid = 'left_behind'::regclass ORDER BY indexrelid::text COLLATE "C";
INSERT INTO left_behind VALUES ('2001-01-01', 5), ('2001-01-01', NULL);
CALL ttl_index.run_pass();
SELECT count(*) FROM left_behind;
DROP TABLE left_behind;

-- ttl_index.max_due_fraction holds the first visit that would delete more; unpause_index() approves it, once
SET ttl_index.max_due_fraction = 0.5;
CREATE TABLE guarded (id int, ts timestamptz);
INSERT INTO guarded SELECT g, CASE WHEN g <= 11760 THEN '2001-01-01'::timestamptz ELSE '2999-01-01' END FROM generate_series(1, 12000) AS g;
CREATE INDEX guarded_ttl ON guarded (ts) WHERE ttl_index.expire_after_seconds(60);
CREATE VIEW guard AS SELECT state, reason, errors, deleted_documents, (SELECT count(*) FROM guarded) AS rows
FROM ttl_index.indexes JOIN ttl_index.index_stats USING (indexrelid) WHERE indexrelname = 'guarded_ttl';
CALL ttl_index.run_pass();
CALL ttl_index.run_pass();
TABLE guard;
SELECT ttl_index.unpause_index('guarded_ttl');
TABLE guard;
CALL ttl_index.run_pass();
TABLE guard;
INSERT INTO guarded SELECT g, now() - interval '1 hour' FROM generate_series(1, 12000) AS g;
CALL ttl_index.run_pass();
TABLE guard;
-- not by longer seconds, but by shorter ones
INSERT INTO guarded SELECT g, now() - interval '1 hour' FROM generate_series(1, 12000) AS g;
VACUUM FULL guarded;
SELECT ttl_index.coll_mod_index('guarded_ttl', 86400);
CALL ttl_index.run_pass();
SELECT ttl_index.coll_mod_index('guarded_ttl', 600);
SET client_min_messages = error;
CALL ttl_index.run_pass();
SET client_min_messages = warning;
TABLE guard;
-- paused, it is approved likewise
SELECT ttl_index.pause_index('guarded_ttl');
SELECT state FROM guard;
SELECT ttl_index.unpause_index('guarded_ttl');
CALL ttl_index.run_pass();
TABLE guard;
-- a share that may be deleted needs no approval, nor does a small table, nor any without the setting
TRUNCATE guarded;
DROP INDEX guarded_ttl;
INSERT INTO guarded SELECT g, CASE WHEN g <= 5000 THEN '2001-01-01'::timestamptz ELSE '2999-01-01' END FROM generate_series(1, 12000) AS g;
CREATE INDEX guarded_ttl ON guarded (ts) WHERE ttl_index.expire_after_seconds(60);
CALL ttl_index.run_pass();
TABLE guard;
DROP INDEX guarded_ttl;
TRUNCATE guarded;
INSERT INTO guarded SELECT g, '2001-01-01' FROM generate_series(1, 9000) AS g;
CREATE INDEX guarded_ttl ON guarded (ts) WHERE ttl_index.expire_after_seconds(60);
CALL ttl_index.run_pass();
TABLE guard;
DROP INDEX guarded_ttl;
TRUNCATE guarded;
INSERT INTO guarded SELECT g, '2001-01-01' FROM generate_series(1, 12000) AS g;
CREATE INDEX guarded_ttl ON guarded (ts) WHERE ttl_index.expire_after_seconds(60);
SET client_min_messages = error;
CALL ttl_index.run_pass();
SET client_min_messages = warning;
SELECT state, rows FROM guard;
SET ttl_index.max_due_fraction = 1;
CALL ttl_index.run_pass();
TABLE guard;
RESET ttl_index.max_due_fraction;

DROP SCHEMA pause CASCADE;
