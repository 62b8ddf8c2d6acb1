-- Passes, sub-passes, visits and batches: rules 21 to 24 and 26, 27.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA pass;
SET search_path = pass;
CREATE VIEW since AS SELECT passes, sub_passes, deleted_documents, skipped_locked, skipped_failed, errors FROM ttl_index.stats;

-- rule 24: a pass over all indexes counts, also an idle one; one over none does not
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT * FROM since;
SELECT last_pass_start, last_pass_end, last_cutoff, stats_reset IS NOT NULL AS stats_reset FROM ttl_index.stats;
CREATE TABLE x (ts timestamptz);
SELECT ttl_index.create_index('x', 'ts', 3600);
CALL ttl_index.run_pass();
CALL ttl_index.run_pass();
SELECT * FROM since;
SELECT last_pass_start <= last_cutoff AND last_cutoff <= last_pass_end AS in_order FROM ttl_index.stats;

-- rule 21: with a visit limit of 20 documents and no time limit
SET ttl_index.index_delete_target_docs = 20;
SET ttl_index.index_delete_target_time = 0;
INSERT INTO x SELECT '2001-01-01' FROM generate_series(1, 59);
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT * FROM since;
INSERT INTO x SELECT '2001-01-01'::timestamptz + g * interval '1 s' FROM generate_series(1, 60) AS g;
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT passes, sub_passes IN (3, 4) AS sub_passes_3_or_4, deleted_documents FROM ttl_index.stats;
-- 40 on x and 1 on y: y is drained in the first sub-pass, so before x's second visit
CREATE TABLE y (ts timestamptz);
SELECT ttl_index.create_index('y', 'ts', 3600);
CREATE TABLE trace (n serial, what text, left_in_x bigint);
CREATE FUNCTION trace() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO pass.trace (what, left_in_x) SELECT TG_TABLE_NAME, count(*) FROM pass.x;
	RETURN NULL;
END $$;
CREATE TRIGGER trace AFTER DELETE ON x EXECUTE FUNCTION trace();
CREATE TRIGGER trace AFTER DELETE ON y EXECUTE FUNCTION trace();
INSERT INTO x SELECT '2001-01-01' FROM generate_series(1, 40);
INSERT INTO y VALUES ('2001-01-01');
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT passes, deleted_documents FROM since;
SELECT what, left_in_x FROM trace ORDER BY n;
SELECT indexrelname, visits, batches, deleted_documents FROM ttl_index.index_stats ORDER BY 1;

-- rule 26: 25,000 rows on one never delay one row on another by more than a round of visits
TRUNCATE trace;
SET ttl_index.index_delete_target_docs = 5000;
INSERT INTO x SELECT '2001-01-01' FROM generate_series(1, 25000);
INSERT INTO y VALUES ('2001-01-01');
CALL ttl_index.run_pass();
SELECT max(left_in_x) FILTER (WHERE what = 'y') >= 20000 AS y_in_the_first_round, min(left_in_x) AS left FROM trace;

-- nor do the rows of one partition those of another one, of the same index
SET ttl_index.index_delete_target_docs = 20;
SET ttl_index.batch_target_time = '1h';
TRUNCATE trace;
CREATE TABLE parts (ts timestamptz, part int) PARTITION BY LIST (part);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
CREATE TABLE parts_3 PARTITION OF parts FOR VALUES IN (3);
CREATE TRIGGER trace AFTER DELETE ON parts_1 EXECUTE FUNCTION trace();
CREATE TRIGGER trace AFTER DELETE ON parts_2 EXECUTE FUNCTION trace();
CREATE TRIGGER trace AFTER DELETE ON parts_3 EXECUTE FUNCTION trace();
SELECT ttl_index.create_index('parts', 'ts', 3600);
INSERT INTO parts SELECT '2001-01-01', part FROM generate_series(1, 50) AS g, generate_series(1, 3) AS part;
CALL ttl_index.run_pass();
SELECT string_agg(what, ' ' ORDER BY n) FROM trace;
DROP TABLE parts;

-- the same for rows that are due when they are written, while another index drains:
-- those of "arrives" come when its first visit is over
SET ttl_index.index_delete_target_docs = 20;
CREATE TABLE arrives (ts timestamptz);
CREATE TABLE drains (ts timestamptz);
CREATE TABLE sub_passes (n serial, what text);
CREATE FUNCTION sub_passes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO pass.sub_passes (what) VALUES (TG_TABLE_NAME);
	IF TG_TABLE_NAME = 'drains' AND (SELECT count(*) FROM pass.sub_passes WHERE what = 'drains') = 1 THEN
		INSERT INTO pass.arrives SELECT '2001-01-01'::timestamptz + g * interval '1 s' FROM generate_series(1, 59) AS g;
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER sub_passes AFTER DELETE ON arrives EXECUTE FUNCTION sub_passes();
CREATE TRIGGER sub_passes AFTER DELETE ON drains EXECUTE FUNCTION sub_passes();
SELECT ttl_index.create_index('arrives', 'ts', 3600), ttl_index.create_index('drains', 'ts', 3600);
INSERT INTO arrives SELECT '2002-01-01' FROM generate_series(1, 10);
INSERT INTO drains SELECT '2001-01-01' FROM generate_series(1, 100);
CALL ttl_index.run_pass();
SELECT count(*) FROM arrives;
SELECT string_agg(what, ' ' ORDER BY n) FROM sub_passes;
DROP TABLE arrives, drains, sub_passes;

-- They are found behind dead entries too, whatever the index, and without reading all
-- of these again in each visit.
SET ttl_index.index_delete_target_docs = 2000;
CREATE TABLE rising (id int, ts timestamptz) WITH (autovacuum_enabled = off);
CREATE TABLE falling (LIKE rising) WITH (autovacuum_enabled = off);
CREATE UNLOGGED TABLE unlogged (LIKE rising) WITH (autovacuum_enabled = off);
CREATE TABLE reindexed (LIKE rising) WITH (autovacuum_enabled = off);
CREATE TABLE drains (LIKE rising) WITH (autovacuum_enabled = off);
INSERT INTO rising SELECT g, '2001-01-01'::timestamptz + g * interval '1 s' FROM generate_series(1, 3000) AS g;
INSERT INTO falling SELECT id, CASE WHEN id > 10 THEN ts END FROM rising;
INSERT INTO unlogged TABLE rising;
INSERT INTO reindexed TABLE rising;
INSERT INTO drains SELECT g, '2001-01-01' FROM generate_series(1, 12000) AS g;
ANALYZE drains;
CREATE INDEX rising_ttl ON rising (ts) INCLUDE (id) WHERE ttl_index.expire_after_seconds(3600);
CREATE INDEX falling_ttl ON falling (ts DESC NULLS FIRST) WHERE ttl_index.expire_after_seconds(3600);
CREATE INDEX unlogged_ttl ON unlogged (ts) WHERE ttl_index.expire_after_seconds(3600);
CREATE INDEX reindexed_ttl ON reindexed (ts) WHERE ttl_index.expire_after_seconds(3600);
CREATE INDEX drains_ttl ON drains (ts) WHERE ttl_index.expire_after_seconds(3600);
-- what the declaration has read does not count
SELECT pg_stat_force_next_flush();
SELECT count(pg_stat_reset_single_table_counters(i)) FROM unnest('{rising_ttl, falling_ttl}'::regclass[]) AS i;
CREATE TABLE arrived AS SELECT 0 AS id, '2001-01-01'::timestamptz + 1500 * interval '1 s' AS ts LIMIT 0;
CREATE FUNCTION arrive() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT FROM pass.arrived) OR EXISTS (SELECT FROM pass.reindexed) OR EXISTS (SELECT FROM pass.falling WHERE id > 10) THEN
		RETURN NULL;
	END IF;
	INSERT INTO pass.arrived SELECT g, '2001-01-01'::timestamptz + 1500 * interval '1 s' FROM generate_series(1, 50) AS g;
	INSERT INTO pass.rising TABLE pass.arrived;
	INSERT INTO pass.falling TABLE pass.arrived;
	INSERT INTO pass.unlogged TABLE pass.arrived;
	INSERT INTO pass.reindexed TABLE pass.arrived;
	REINDEX TABLE pass.reindexed;
	RETURN NULL;
END $$;
CREATE TRIGGER arrive AFTER DELETE ON drains EXECUTE FUNCTION arrive();
CALL ttl_index.run_pass();
SELECT (SELECT count(*) FROM rising) AS rising, (SELECT count(*) FROM falling) AS falling, (SELECT count(*) FROM unlogged) AS unlogged,
	(SELECT count(*) FROM reindexed) AS reindexed, (SELECT count(*) FROM arrived) AS arrived;
SELECT pg_stat_force_next_flush();
SELECT relname, idx_tup_read BETWEEN 3000 AND 6000 AS little_read FROM pg_stat_user_indexes WHERE relname IN ('rising', 'falling') ORDER BY 1;
DROP TABLE rising, falling, unlogged, reindexed, drains, arrived;

-- batches are transactions of their own, of batch_target_docs at most
SET ttl_index.index_delete_target_docs = 0;
SET ttl_index.batch_target_docs = 10;
CREATE TABLE batches (ts timestamptz);
CREATE TABLE xids (xid xid8, rows bigint);
CREATE FUNCTION xids() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO pass.xids SELECT pg_current_xact_id(), count(*) FROM gone;
	RETURN NULL;
END $$;
CREATE TRIGGER xids AFTER DELETE ON batches REFERENCING OLD TABLE AS gone EXECUTE FUNCTION xids();
SELECT ttl_index.create_index('batches', 'ts', 3600);
INSERT INTO batches SELECT '2001-01-01' FROM generate_series(1, 95);
CALL ttl_index.run_pass();
SELECT count(DISTINCT xid) AS transactions, count(*) AS statements, min(rows), max(rows), sum(rows) FROM xids;
-- many equal keys and a small batch: nothing twice, nothing left (rule 27)
SELECT count(*) FROM batches;
SELECT deleted_documents, batches FROM ttl_index.index_stats WHERE indexrelname = 'batches_ts_ttl';
RESET ttl_index.batch_target_docs;

-- rule 27: what goes along with a row is not counted, in the same table neither
CREATE TABLE tree (id int PRIMARY KEY, parent int REFERENCES tree ON DELETE CASCADE, ts timestamptz);
SELECT ttl_index.create_index('tree', 'ts', 0);
INSERT INTO tree VALUES (1, NULL, '2001-01-01'), (2, 1, '2001-01-02'), (3, 1, '2999-01-01'), (4, NULL, '2001-01-03');
SET ttl_index.batch_target_docs = 1;
CALL ttl_index.run_pass();
RESET ttl_index.batch_target_docs;
SELECT deleted_documents, (SELECT count(*) FROM tree) AS "left" FROM ttl_index.index_stats WHERE relname = 'tree';
DROP TABLE tree;

-- what takes its time whatever the number of rows does not make batches smaller and smaller
SET ttl_index.batch_target_time = 50;
SET ttl_index.index_delete_target_time = 0;
CREATE TABLE heavy (ts timestamptz);
CREATE FUNCTION heavy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.2); RETURN NULL; END $$;
CREATE TRIGGER heavy AFTER DELETE ON heavy EXECUTE FUNCTION heavy();
SELECT ttl_index.create_index('heavy', 'ts', 3600);
INSERT INTO heavy SELECT '2001-01-01' FROM generate_series(1, 1000);
CALL ttl_index.run_pass();
SELECT deleted_documents, batches < 50 AS few_batches FROM ttl_index.index_stats WHERE indexrelname = 'heavy_ts_ttl';
RESET ttl_index.batch_target_time;
RESET ttl_index.index_delete_target_time;

-- the time limit of a visit, and of a sub-pass: visits go round
SET ttl_index.batch_target_docs = 1;
SET ttl_index.index_delete_target_time = 1;
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.005); RETURN OLD; END $$;
CREATE TABLE s1 (ts timestamptz);
CREATE TABLE s2 (ts timestamptz);
CREATE TRIGGER slow BEFORE DELETE ON s1 FOR EACH ROW EXECUTE FUNCTION slow();
CREATE TRIGGER slow BEFORE DELETE ON s2 FOR EACH ROW EXECUTE FUNCTION slow();
SELECT ttl_index.create_index('s1', 'ts', 1), ttl_index.create_index('s2', 'ts', 1);
INSERT INTO s1 SELECT '2001-01-01' FROM generate_series(1, 5);
INSERT INTO s2 SELECT '2001-01-01' FROM generate_series(1, 5);
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT indexrelname, visits, batches, deleted_documents FROM ttl_index.index_stats WHERE relname IN ('s1', 's2') ORDER BY 1;
SELECT passes, sub_passes >= 5 AS a_visit_each FROM ttl_index.stats;
RESET ttl_index.batch_target_docs;
RESET ttl_index.index_delete_target_time;
RESET ttl_index.index_delete_target_docs;

-- rule 22: an index created during a pass takes part from the next sub-pass on;
-- one that is dropped, and a table that is truncated, do no harm
SET ttl_index.index_delete_target_docs = 10;
SET ttl_index.batch_target_docs = 10;
CREATE TABLE a (ts timestamptz);
CREATE TABLE late (ts timestamptz);
CREATE TABLE dropped (ts timestamptz);
CREATE TABLE emptied (ts timestamptz);
SELECT ttl_index.create_index('a', 'ts', 1), ttl_index.create_index('dropped', 'ts', 1), ttl_index.create_index('emptied', 'ts', 1);
CREATE FUNCTION in_the_middle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF to_regclass('pass.late_ts_ttl') IS NULL THEN
		PERFORM ttl_index.create_index('pass.late', 'ts', 1);
		DROP INDEX pass.dropped_ts_ttl;
		TRUNCATE pass.emptied;
		ALTER TABLE pass.emptied RENAME TO renamed;
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER in_the_middle AFTER DELETE ON a EXECUTE FUNCTION in_the_middle();
INSERT INTO a SELECT '2001-01-01' FROM generate_series(1, 15);
INSERT INTO late SELECT '2001-01-01' FROM generate_series(1, 5);
INSERT INTO dropped SELECT '2001-01-01' FROM generate_series(1, 5);
INSERT INTO emptied SELECT '2001-01-01' FROM generate_series(1, 5);
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT passes, deleted_documents, errors FROM since;
SELECT (SELECT count(*) FROM a) AS a, (SELECT count(*) FROM late) AS late, (SELECT count(*) FROM dropped) AS dropped,
	(SELECT count(*) FROM renamed) AS renamed;
RESET ttl_index.batch_target_docs;
RESET ttl_index.index_delete_target_docs;

-- rule 23: an error at one index is counted there, the others are not affected
CREATE TABLE broken (ts timestamptz);
CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF OLD.ts = '2001-01-03' THEN
		RAISE EXCEPTION 'the third of January stays' USING ERRCODE = 'P0042';
	END IF;
	RETURN OLD;
END $$;
CREATE TRIGGER broken BEFORE DELETE ON broken FOR EACH ROW EXECUTE FUNCTION broken();
SELECT ttl_index.create_index('broken', 'ts', 1);
INSERT INTO broken SELECT '2000-12-31'::timestamptz + g * interval '1 day' FROM generate_series(1, 30) AS g;
INSERT INTO y SELECT '2001-01-01' FROM generate_series(1, 10);
SELECT ttl_index.stats_reset();
SET client_min_messages = error;
CALL ttl_index.run_pass();
SELECT passes, deleted_documents, skipped_failed, errors FROM since;
SELECT ts::date FROM broken;
SELECT indexrelname, deleted_documents, skipped_failed, errors, last_error, last_error_sqlstate, last_error_time IS NOT NULL AS time
FROM ttl_index.index_stats WHERE errors > 0 OR deleted_documents > 0 ORDER BY 1;
SELECT state, reason FROM ttl_index.indexes WHERE indexrelid = 'broken_ts_ttl'::regclass;
-- and tried again in the next pass
DROP TRIGGER broken ON broken;
SET client_min_messages = warning;
CALL ttl_index.run_pass();
SELECT passes, deleted_documents, skipped_failed, errors FROM since;
-- the state ends with the first good visit; what happened stays, until it is reset
CREATE VIEW broken_now AS SELECT state, s.deleted_documents, s.errors, last_error, last_error_sqlstate, last_error_time IS NOT NULL AS time,
	s.stats_reset > d.stats_reset AS reset, d.deleted_documents AS all_documents, d.errors AS all_errors
FROM ttl_index.indexes i JOIN ttl_index.index_stats s ON s.indexrelid = i.indexrelid::oid, ttl_index.stats d WHERE i.indexrelid = 'broken_ts_ttl'::regclass;
SELECT * FROM broken_now;
SELECT ttl_index.stats_reset('broken_ts_ttl');
SELECT * FROM broken_now;
-- an index that fails and is reset does so until the next error
CREATE TRIGGER broken BEFORE DELETE ON broken FOR EACH ROW EXECUTE FUNCTION broken();
INSERT INTO broken VALUES ('2001-01-03');
SET client_min_messages = error;
CALL ttl_index.run_pass();
SELECT * FROM broken_now;
SELECT ttl_index.stats_reset('broken_ts_ttl');
SELECT * FROM broken_now;
CALL ttl_index.run_pass();
SELECT * FROM broken_now;
DROP TRIGGER broken ON broken;
SET client_min_messages = warning;
CALL ttl_index.run_pass();
SELECT * FROM broken_now;
SELECT ttl_index.stats_reset('pg_class');
DROP VIEW broken_now;

-- a slow trigger shrinks the batches, so that none runs into batch_timeout
CREATE TABLE slow (ts timestamptz);
CREATE FUNCTION three_ms() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.003); RETURN OLD; END $$;
CREATE TRIGGER slow BEFORE DELETE ON slow FOR EACH ROW EXECUTE FUNCTION three_ms();
SELECT ttl_index.create_index('slow', 'ts', 1);
INSERT INTO slow SELECT '2001-01-01' FROM generate_series(1, 400);
SET ttl_index.batch_timeout = '1s';
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT deleted_documents, errors FROM since;
RESET ttl_index.batch_timeout;
DROP TABLE slow;

-- entries of rows that are gone say nothing about how long a row takes: behind
-- many of them a batch is as small as before
CREATE TABLE behind_dead (ts timestamptz) WITH (autovacuum_enabled = off);
CREATE TABLE sizes (rows bigint);
CREATE FUNCTION one_ms() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.001); RETURN OLD; END $$;
CREATE FUNCTION sizes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO pass.sizes SELECT count(*) FROM gone; RETURN NULL; END $$;
SELECT ttl_index.create_index('behind_dead', 'ts', 1);
INSERT INTO behind_dead SELECT '2001-01-01' FROM generate_series(1, 5000);
DELETE FROM behind_dead;
INSERT INTO behind_dead SELECT '2001-01-02' FROM generate_series(1, 600);
CREATE TRIGGER slow BEFORE DELETE ON behind_dead FOR EACH ROW EXECUTE FUNCTION one_ms();
CREATE TRIGGER sizes AFTER DELETE ON behind_dead REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION sizes();
CALL ttl_index.run_pass();
SELECT max(rows) <= 200 AS small, sum(rows) FROM sizes;
DROP TABLE behind_dead, sizes;

-- nor do rows between them go in another order than that of the index, or not at all
CREATE TABLE sparse (ts timestamptz) WITH (autovacuum_enabled = off);
CREATE TABLE ranges (n serial, first timestamptz, last timestamptz);
CREATE FUNCTION ranges() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO pass.ranges (first, last) SELECT min(ts), max(ts) FROM gone; RETURN NULL; END $$;
CREATE INDEX sparse_ttl ON sparse (ts DESC) WHERE ttl_index.expire_after_seconds(1);
INSERT INTO sparse SELECT timestamptz '2001-01-01' + abs(hashint4(g) % 50) * interval '1 s' FROM generate_series(1, 6000) AS g;
DELETE FROM sparse WHERE hashtid(ctid) % 20 <> 0;
CREATE TRIGGER ranges AFTER DELETE ON sparse REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION ranges();
SET ttl_index.batch_target_docs = 10;
CALL ttl_index.run_pass();
RESET ttl_index.batch_target_docs;
SELECT count(*) FROM sparse;
SELECT count(*) > 20 AS many, bool_and(in_order) AS in_order FROM (SELECT first >= lag(last, 1, '-infinity') OVER (ORDER BY n) AS in_order FROM ranges) AS r;
DROP TABLE sparse, ranges;

-- a batch that runs into it is an error of its index, for this pass
CREATE TABLE stuck (ts timestamptz);
CREATE FUNCTION forever() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN LOOP END LOOP; END $$;
CREATE TRIGGER stuck BEFORE DELETE ON stuck FOR EACH ROW EXECUTE FUNCTION forever();
SELECT ttl_index.create_index('stuck', 'ts', 1);
INSERT INTO stuck VALUES ('2001-01-01');
INSERT INTO y VALUES ('2001-01-01');
SET ttl_index.batch_timeout = '100ms';
SELECT ttl_index.stats_reset();
\set VERBOSITY terse
CALL ttl_index.run_pass();
\set VERBOSITY default
SELECT * FROM since;
SELECT last_error, last_error_sqlstate FROM ttl_index.index_stats WHERE relname = 'stuck';
RESET ttl_index.batch_timeout;
DROP TABLE stuck;
-- what a user cancels ends the pass, and leaves nothing behind
CREATE TABLE cancel (ts timestamptz);
CREATE TRIGGER stuck BEFORE DELETE ON cancel FOR EACH ROW EXECUTE FUNCTION forever();
SELECT ttl_index.create_index('cancel', 'ts', 1);
INSERT INTO cancel VALUES ('2001-01-01');
SET statement_timeout = '100ms';
CALL ttl_index.run_pass();
RESET statement_timeout;
DO $$ BEGIN WHILE EXISTS (SELECT FROM ttl_index.current_op) LOOP PERFORM pg_stat_clear_snapshot(); END LOOP; END $$;
SELECT current_user = session_user AS same_user, current_setting('search_path') AS search_path;
DROP TABLE cancel;

-- the report of an error names the index
CREATE TRIGGER broken BEFORE DELETE ON broken FOR EACH ROW EXECUTE FUNCTION broken();
INSERT INTO broken VALUES ('2001-01-03');
\set VERBOSITY terse
CALL ttl_index.run_pass();
\set VERBOSITY default
DROP TABLE broken;

-- a BEFORE trigger that keeps a row: not deleted, so not counted (rule 27), and no endless loop
CREATE TABLE kept (ts timestamptz);
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER keep BEFORE DELETE ON kept FOR EACH ROW EXECUTE FUNCTION keep();
SELECT ttl_index.create_index('kept', 'ts', 1);
INSERT INTO kept SELECT '2001-01-01' FROM generate_series(1, 2500);
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT * FROM since;
SELECT count(*) FROM kept;
DROP TABLE kept;

-- what run_pass() refuses
BEGIN;
CALL ttl_index.run_pass();
ROLLBACK;
DO $$ BEGIN CALL ttl_index.run_pass(); END $$;
\set SHOW_CONTEXT never
DO $$ DECLARE row record; BEGIN FOR row IN SELECT 1 LOOP CALL ttl_index.run_pass(); END LOOP; END $$;
DO $$ BEGIN FOR i IN 1 .. 2 LOOP CALL ttl_index.run_pass(); END LOOP; END $$;
\set SHOW_CONTEXT errors
SET default_transaction_read_only = on;
CALL ttl_index.run_pass();
RESET default_transaction_read_only;
-- whatever the session's isolation level
SET default_transaction_isolation = 'serializable';
INSERT INTO y VALUES ('2001-01-01');
CALL ttl_index.run_pass();
SELECT count(*) FROM y;
RESET default_transaction_isolation;
SELECT current_setting('search_path'), current_user = session_user AS same_user;

-- the counters outlive their index: what it did stays in the totals
SELECT sum(deleted_documents) = (SELECT deleted_documents FROM ttl_index.stats) AS same FROM ttl_index.index_stats;
SELECT deleted_documents AS before FROM ttl_index.stats \gset
DROP TABLE x, y;
CALL ttl_index.run_pass();
SELECT deleted_documents = :before AS same FROM ttl_index.stats;
SELECT count(*) FROM ttl_index.index_stats WHERE relname IN ('x', 'y');
-- rule 23: a definition that cannot be read any more is an error of its index, too,
-- and the others have their turn; in a new session, which has not read it yet
CREATE TABLE switch (broken boolean);
CREATE FUNCTION folded(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT FROM pass.switch WHERE broken) THEN
		RAISE 'cannot be folded';
	END IF;
	RETURN $1;
END $$;
CREATE TABLE folds (id int, ts timestamptz) PARTITION BY RANGE ((id + pass.folded(1)));
CREATE TABLE folds_1 PARTITION OF folds FOR VALUES FROM (0) TO (10);
SELECT ttl_index.create_index('folds', 'ts', 1);
CREATE TABLE beside (ts timestamptz);
SELECT ttl_index.create_index('beside', 'ts', 1);
INSERT INTO folds VALUES (1, '2001-01-01');
INSERT INTO beside VALUES ('2001-01-01');
INSERT INTO switch VALUES (true);
\c -
\set SHOW_CONTEXT never
SET search_path = pass;
SET client_min_messages = error;
CALL ttl_index.run_pass();
SELECT count(*) FROM beside;
TRUNCATE switch;
CALL ttl_index.run_pass();
SELECT count(*) FROM folds;
DROP SCHEMA pass CASCADE;
