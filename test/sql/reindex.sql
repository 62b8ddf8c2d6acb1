-- REINDEX in all its forms keeps the option: option rule 9.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CALL ttl_index.run_pass();
CREATE SCHEMA re;
SET search_path = re;
CREATE VIEW marks AS SELECT indexrelid, expire_after_seconds AS n, time_zone, partial_filter_expression AS filter, archive_to, state
	FROM ttl_index.indexes ORDER BY indexrelid::text COLLATE "C";
CREATE VIEW saved AS SELECT relid::regclass, indexname, expire_after_seconds AS n, time_zone, paused, archive_to::regclass
	FROM ttl_index.saved_options ORDER BY indexname;
CREATE TABLE cold (ts timestamptz);
CREATE TABLE t (ts timestamptz, local timestamp, kind text);
SELECT ttl_index.create_index('t', 'ts', 2147483647), ttl_index.create_index('t', 'local', 0, time_zone => 'Europe/Berlin'),
	ttl_index.create_index('t', 'ts', 5, 'kind = ''x''', name => 'filtered');
CREATE TABLE p (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
CREATE INDEX p_ts_ttl ON p (ts) WHERE ttl_index.expire_after_seconds(77) AND ttl_index.archive_to('cold') AND ttl_index.paused();
SELECT * FROM marks;
TABLE saved;

REINDEX TABLE t;
REINDEX INDEX t_ts_ttl;
VACUUM FULL t;
SELECT * FROM marks;
-- lost until the next pass, which any command of that kind may come before
REINDEX INDEX CONCURRENTLY t_ts_ttl;
SELECT * FROM marks;
SELECT ttl_index.due_count('t_ts_ttl');
SELECT ttl_index.cutoff('t_ts_ttl') = statement_timestamp() - interval '2147483647 s' AS cutoff;
REINDEX TABLE CONCURRENTLY t;
REINDEX TABLE CONCURRENTLY p;
REINDEX INDEX CONCURRENTLY p_ts_ttl;
REINDEX SCHEMA CONCURRENTLY re;
SELECT * FROM marks;
INSERT INTO p VALUES ('2001-01-01');
CALL ttl_index.run_pass();
SELECT * FROM marks;
SELECT count(*) FROM p;
TABLE saved;
\d t
\d p1

-- after coll_mod the new seconds are saved, not the old ones
SELECT ttl_index.coll_mod_index('t_ts_ttl', 1234567890), ttl_index.coll_mod_index('t_local_ttl', 99, 'america/new_york');
REINDEX TABLE CONCURRENTLY t;
-- coll_mod takes what is saved for what there is
SELECT ttl_index.coll_mod_index('t_local_ttl', 98);
CALL ttl_index.run_pass();
SELECT * FROM marks WHERE indexrelid::text LIKE 't%';
-- a plain index stays one, also one that was created under the name of one that was lost
SELECT ttl_index.remove_ttl('t_ts_ttl');
REINDEX TABLE CONCURRENTLY t;
DROP INDEX t_local_ttl;
CREATE INDEX t_local_ttl ON t (local);
REINDEX TABLE CONCURRENTLY t;
CALL ttl_index.run_pass();
SELECT * FROM marks WHERE indexrelid::text LIKE 't%';
\d t

-- a rename takes the saved option along, and counts more than what a dropped index has left
DROP INDEX t_ts_ttl, t_local_ttl, filtered;
CREATE INDEX a ON t (ts) WHERE ttl_index.expire_after_seconds(2000000001);
CREATE INDEX b ON t (ts) WHERE ttl_index.expire_after_seconds(2000000002) AND ttl_index.paused();
CREATE INDEX c ON t (local) WHERE ttl_index.expire_after_seconds(2000000003) AND ttl_index.time_zone('UTC');
REINDEX TABLE CONCURRENTLY t;
DROP INDEX a;
ALTER INDEX b RENAME TO a;
ALTER TABLE c RENAME TO "Odd b";
ALTER TABLE t RENAME TO "Odd t";
ALTER TABLE "Odd t" RENAME COLUMN ts TO stamp;
ALTER TABLE "Odd t" SET SCHEMA public;
CALL ttl_index.run_pass();
SELECT * FROM marks WHERE indexrelid::text !~ '^p[1_]';
ALTER TABLE public."Odd t" SET SCHEMA re;
ALTER TABLE "Odd t" RENAME TO t;

-- nothing is saved, or it is not what the index depends on: a state, never a guess
CREATE PROCEDURE lose_and(change text) LANGUAGE plpgsql AS $$ BEGIN
	PERFORM ttl_index.coll_mod_index('p1_ts', 5, archive_to => 'cold');
	PERFORM ttl_index.unpause_index('p1_ts');
	UPDATE pg_index SET indpred = NULL WHERE indexrelid = 'p1_ts'::regclass;
	EXECUTE format(change, 'ttl_index.saved_options');
END $$;
CREATE TABLE part (ts timestamptz);
CREATE INDEX p1_ts ON part (ts) WHERE ttl_index.expire_after_seconds(5);
CREATE TABLE lost (change text, state text);
SELECT format('CALL lose_and(%L)', change || ' WHERE indexname = ''p1_ts'''), 'INSERT INTO part VALUES (''2001-01-01'')', 'CALL ttl_index.run_pass()',
	format('INSERT INTO lost SELECT %L, state FROM marks WHERE indexrelid = ''p1_ts''::regclass', change)
FROM (VALUES ('DELETE FROM %s'), ('UPDATE %s SET archive_to = 0'), ('UPDATE %s SET archive_to = ''p''::regclass'),
	('UPDATE %s SET paused = true'), ('UPDATE %s SET time_zone = ''UTC''')) AS v (change) \gexec
TABLE lost;
SELECT count(*) FROM part;
-- what is not known cannot be paused
SELECT ttl_index.pause_index('p1_ts');
SELECT ttl_index.coll_mod_index('p1_ts', 5);
SELECT * FROM marks WHERE indexrelid = 'p1_ts'::regclass;

-- what is saved goes with the index, in the next pass
DROP TABLE t, p, part;
CALL ttl_index.run_pass();
TABLE saved;
SET client_min_messages = error;
DROP SCHEMA re CASCADE;
