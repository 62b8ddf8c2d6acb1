-- REINDEX in all its forms keeps the option: design.md, "REINDEX CONCURRENTLY".
\set SHOW_CONTEXT never
SET client_min_messages = warning;
LOAD 'ttl_index';
CREATE SCHEMA re;
SET search_path = re;
CREATE VIEW marks AS SELECT indexrelid, expire_after_seconds AS n, time_zone, partial_filter_expression AS filter, state
	FROM ttl_index.indexes ORDER BY indexrelid::text COLLATE "C";
CREATE TABLE t (ts timestamptz, local timestamp, kind text);
SELECT ttl_index.create_index('t', 'ts', 2147483647), ttl_index.create_index('t', 'local', 0, time_zone => 'Europe/Berlin'),
	ttl_index.create_index('t', 'ts', 5, 'kind = ''x''', name => 'filtered');
CREATE TABLE p (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
SELECT ttl_index.create_index('p', 'ts', 77);
SELECT * FROM marks;

REINDEX TABLE t;
REINDEX INDEX t_ts_ttl;
VACUUM FULL t;
SELECT * FROM marks;
REINDEX INDEX CONCURRENTLY t_ts_ttl;
SELECT * FROM marks;
REINDEX TABLE CONCURRENTLY t;
REINDEX TABLE CONCURRENTLY p;
REINDEX INDEX CONCURRENTLY p_ts_ttl;
REINDEX SCHEMA CONCURRENTLY re;
SELECT * FROM marks;
\d t
\d p1

-- after coll_mod the new seconds are remembered, not the old ones
SELECT ttl_index.coll_mod_index('t_ts_ttl', 1234567890);
REINDEX TABLE CONCURRENTLY t;
SELECT ttl_index.coll_mod_index('t_local_ttl', 99, 'america/new_york');
REINDEX TABLE CONCURRENTLY t;
SELECT * FROM marks WHERE indexrelid::text LIKE 't%';
-- a plain index stays one
SELECT ttl_index.remove_ttl('t_ts_ttl');
REINDEX TABLE CONCURRENTLY t;
SELECT * FROM marks WHERE indexrelid::text LIKE 't%';

-- where no hook and no trigger was at hand, the next pass repairs it
CREATE FUNCTION lose(index regclass) RETURNS void LANGUAGE sql
	AS 'UPDATE pg_index SET indpred = NULL WHERE indexrelid = index';
INSERT INTO p VALUES ('2001-01-01');
SELECT lose('t_local_ttl'), lose('p_ts_ttl'), lose('p1_ts_idx');
SELECT * FROM marks;
SELECT ttl_index.due_count('t_local_ttl');
CALL ttl_index.run_pass();
SELECT * FROM marks;
SELECT count(*) FROM p;

-- nothing is remembered: a state, never a guess
SELECT lose('t_local_ttl');
DELETE FROM pg_depend WHERE objid = 't_local_ttl'::regclass AND refobjsubid < 0;
INSERT INTO t (local) VALUES ('2001-01-01');
CALL ttl_index.run_pass();
SELECT * FROM marks WHERE indexrelid = 't_local_ttl'::regclass;
SELECT count(*) FROM t;
SELECT ttl_index.coll_mod_index('t_local_ttl', 5, 'UTC');
SELECT * FROM marks WHERE indexrelid = 't_local_ttl'::regclass;
-- and one whose time zone is unknown
SELECT lose('t_local_ttl');
UPDATE pg_depend SET refobjsubid = -7 WHERE objid = 't_local_ttl'::regclass AND refobjsubid < 0
	AND refobjid = 'ttl_index.time_zone(text,text)'::regprocedure;
CALL ttl_index.run_pass();
SELECT * FROM marks WHERE indexrelid = 't_local_ttl'::regclass;
SELECT count(*) FROM t;
SELECT ttl_index.remove_ttl('t_local_ttl');
SELECT * FROM marks;
-- the memory goes with the index
DROP TABLE t, p;
SELECT count(*) FROM pg_depend WHERE refobjid = 'ttl_index.expire_after_seconds(integer,integer)'::regprocedure
	AND classid = 'pg_class'::regclass;
SET client_min_messages = error;
DROP SCHEMA re CASCADE;
