-- REINDEX in all its forms keeps the option: option rule 9.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CALL ttl_index.run_pass();
CREATE SCHEMA re;
SET search_path = re;
CREATE VIEW marks AS SELECT indexrelid, expire_after_seconds AS n, time_zone, partial_filter_expression AS filter, archive_to, state
	FROM ttl_index.indexes ORDER BY indexrelid::text COLLATE "C";
CREATE VIEW saved AS SELECT relid::regclass, indexrelid::regclass, expire_after_seconds AS n, time_zone, paused, archive_to::regclass
	FROM ttl_index.saved_options ORDER BY indexrelid::regclass::text COLLATE "C";
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

-- names do not count, nor what a dropped index has left
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

-- nothing is saved: a state, never a guess
CREATE TABLE part (ts timestamptz);
INSERT INTO part VALUES ('2001-01-01');
CREATE INDEX p1_ts ON part (ts) WHERE ttl_index.expire_after_seconds(5);
DELETE FROM ttl_index.saved_options WHERE indexrelid = 'p1_ts'::regclass;
REINDEX INDEX CONCURRENTLY p1_ts;
-- of the same key, and the same slot
CREATE INDEX p2_ts ON part (ts) WHERE ttl_index.expire_after_seconds(2000000006);
CALL ttl_index.run_pass();
SELECT * FROM marks WHERE indexrelid::text LIKE 'p__ts';
SELECT count(*) FROM part;
-- what is not known cannot be paused
SELECT ttl_index.pause_index('p1_ts');
SELECT ttl_index.coll_mod_index('p1_ts', 5);
SELECT * FROM marks WHERE indexrelid = 'p1_ts'::regclass;

-- names that are exchanged while no event trigger fires: of other keys and of the same key, both
-- or one rebuilt, the other dropped
CREATE TABLE other (ts timestamptz, local timestamp, n int);
CREATE PROCEDURE exchange(a text, b text) LANGUAGE plpgsql SET session_replication_role = replica AS $$ BEGIN
	EXECUTE format('ALTER INDEX %I RENAME TO between; ALTER INDEX %I RENAME TO %1$I; ALTER INDEX between RENAME TO %2$I', a, b);
END $$;
CREATE INDEX o1 ON other (ts) WHERE ttl_index.expire_after_seconds(2000000001);
CREATE INDEX o2 ON other (ts) INCLUDE (local) WHERE ttl_index.expire_after_seconds(2000000002);
CREATE INDEX o3 ON other ((date_bin('1 s', ts, '2001-01-01'))) WHERE ttl_index.expire_after_seconds(2000000003);
CREATE INDEX o4 ON other ((date_bin('2 s', ts, '2001-01-01'))) WHERE ttl_index.expire_after_seconds(2000000004);
CREATE INDEX o5 ON other (local) WHERE ttl_index.expire_after_seconds(2000000005) AND ttl_index.time_zone('UTC');
CREATE INDEX o6 ON other (local) WHERE ttl_index.expire_after_seconds(2000000006) AND ttl_index.time_zone('UTC');
CREATE INDEX o7 ON other (ts) WHERE ttl_index.expire_after_seconds(2000000007) AND n IS NULL;
CREATE INDEX o8 ON other (ts) WHERE ttl_index.expire_after_seconds(2000000008);
CREATE INDEX o9 ON other ((date_bin('9 s', ts, '2001-01-01'))) WHERE ttl_index.expire_after_seconds(2000000009);
CREATE INDEX o10 ON other ((date_bin('9 s', ts, '2001-01-01'))) WHERE ttl_index.expire_after_seconds(2000000010);
SELECT slot, indexrelid::regclass FROM ttl_index.saved_options WHERE relid = 'other'::regclass ORDER BY indexrelid;
CALL exchange('o1', 'o2');
CALL exchange('o3', 'o4');
CALL exchange('o5', 'o6');
CALL exchange('o7', 'o8');
CALL exchange('o9', 'o10');
SELECT format('REINDEX INDEX CONCURRENTLY o%s', i) FROM unnest('{1,2,3,4,5,7,9}'::int[]) AS i \gexec
DROP INDEX o10;
SELECT * FROM marks WHERE indexrelid::text LIKE 'o%';
CALL ttl_index.run_pass();
SELECT * FROM marks WHERE indexrelid::text LIKE 'o%';
-- or that is created anew then
BEGIN;
SET LOCAL session_replication_role = replica;
DROP INDEX o9;
CREATE INDEX o9 ON other ((date_bin('9 s', ts, '2001-01-01'))) WHERE ttl_index.expire_after_seconds(2000000011);
COMMIT;
REINDEX INDEX CONCURRENTLY o9;
CALL ttl_index.run_pass();
SELECT * FROM marks WHERE indexrelid::text LIKE 'o%';
DROP INDEX o9;
-- a slot is taken again where its index is gone; without one nothing is saved
CREATE PROCEDURE create_more(first int, last int) LANGUAGE plpgsql AS $$ BEGIN
	FOR i IN first .. last LOOP
		EXECUTE format('CREATE INDEX n%s ON other ((date_bin(''7 s'', ts, ''2001-01-01''))) WHERE ttl_index.expire_after_seconds(%s)', i, 2000000000 + i);
	END LOOP;
END $$;
CALL create_more(1, 9);
DROP INDEX n3;
CALL ttl_index.run_pass();
CALL create_more(10, 11);
SELECT slot, indexrelid::regclass FROM ttl_index.saved_options WHERE relid = 'other'::regclass AND indexrelid::regclass::text LIKE 'n%' ORDER BY slot;
REINDEX TABLE CONCURRENTLY other;
CALL ttl_index.run_pass();
SELECT * FROM marks WHERE indexrelid::text LIKE 'n%' AND (state = 'option_lost' OR n <> substr(indexrelid::text, 2)::int + 2000000000);

-- what is saved goes with the index, in the next pass
DROP TABLE t, p, part, other;
CALL ttl_index.run_pass();
TABLE saved;
SET client_min_messages = error;
DROP SCHEMA re CASCADE;
