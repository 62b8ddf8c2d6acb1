-- Deletes are ordinary deletes (rule 30): triggers, foreign keys, rules, logged
-- and unlogged tables, wide rows.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA trg;
SET search_path = trg;
CREATE TABLE log (n serial, what text);

-- triggers of all kinds fire, with transition tables and with OLD as it was
CREATE TABLE t (id int, ts timestamptz, body text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO trg.log (what) VALUES (concat_ws(' ', TG_NAME, CASE WHEN TG_LEVEL = 'ROW' THEN OLD.id END));
	RETURN OLD;
END $$;
CREATE FUNCTION note_table() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO trg.log (what) SELECT concat_ws(' ', TG_NAME, count(*), sum(length(body))) FROM gone;
	RETURN NULL;
END $$;
CREATE TRIGGER a_before_statement BEFORE DELETE ON t EXECUTE FUNCTION note();
CREATE TRIGGER b_before_row BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER c_after_row AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION note();
CREATE CONSTRAINT TRIGGER d_deferred AFTER DELETE ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER e_after_statement AFTER DELETE ON t REFERENCING OLD TABLE AS gone EXECUTE FUNCTION note_table();
SELECT ttl_index.create_index('t', 'ts', 0);
INSERT INTO t VALUES (1, '2001-01-01', repeat('x', 1000)), (2, '2001-01-02', (SELECT string_agg(md5(g::text), '') FROM generate_series(1, 1000) AS g)),
	(3, '2999-01-01', '');
CALL ttl_index.run_pass();
SELECT what FROM log ORDER BY n;
SELECT id FROM t;

-- foreign keys: CASCADE, SET NULL, RESTRICT, NO ACTION, deferred
CREATE TABLE parent (id int PRIMARY KEY, ts timestamptz);
SELECT ttl_index.create_index('parent', 'ts', 0);
CREATE TABLE cascading (pid int REFERENCES parent ON DELETE CASCADE);
CREATE TABLE nulled (pid int REFERENCES parent ON DELETE SET NULL);
CREATE TABLE restricted (pid int REFERENCES parent ON DELETE RESTRICT);
CREATE TABLE no_action (pid int REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
INSERT INTO parent SELECT g, '2001-01-01' FROM generate_series(1, 40) AS g;
INSERT INTO cascading SELECT generate_series(1, 10);
INSERT INTO nulled SELECT generate_series(1, 10);
INSERT INTO restricted VALUES (20);
INSERT INTO no_action VALUES (30);
SELECT ttl_index.stats_reset();
SET client_min_messages = error;
CALL ttl_index.run_pass();
SET client_min_messages = warning;
SELECT id FROM parent ORDER BY id;
SELECT (SELECT count(*) FROM cascading) AS cascading, (SELECT count(pid) FROM nulled) AS nulled, (SELECT count(*) FROM nulled) AS of;
SELECT deleted_documents, skipped_failed, errors, last_error LIKE '%restricted_pid_fkey%' AS last_error, last_error_sqlstate LIKE '23%' AS last_error_sqlstate
FROM ttl_index.index_stats WHERE relname = 'parent';
DELETE FROM restricted;
DELETE FROM no_action;
CALL ttl_index.run_pass();
SELECT count(*) FROM parent;

-- a cascade into a table that has a TTL of its own
CREATE TABLE child (pid int REFERENCES parent ON DELETE CASCADE, ts timestamptz);
SELECT ttl_index.create_index('child', 'ts', 0);
INSERT INTO parent VALUES (1, '2001-01-01');
INSERT INTO child VALUES (1, '2999-01-01'), (1, '2001-01-01');
CALL ttl_index.run_pass();
SELECT count(*) FROM child;

-- rules: DO ALSO runs, DO INSTEAD keeps the rows
CREATE TABLE ruled (id int, ts timestamptz);
SELECT ttl_index.create_index('ruled', 'ts', 0);
INSERT INTO ruled VALUES (1, '2001-01-01');
TRUNCATE log;
CREATE RULE also AS ON DELETE TO ruled DO ALSO INSERT INTO log (what) VALUES ('rule ' || OLD.id);
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT count(*) FROM ruled;
SELECT what FROM log;
SELECT deleted_documents FROM ttl_index.stats;
DROP RULE also ON ruled;
CREATE RULE instead AS ON DELETE TO ruled DO INSTEAD NOTHING;
INSERT INTO ruled VALUES (1, '2001-01-01');
CALL ttl_index.run_pass();
SELECT count(*) FROM ruled;
SELECT deleted_documents FROM ttl_index.stats;

-- a trigger that changes another row of the same batch: rule 7, the new date counts
CREATE TABLE pushed (id int, ts timestamptz);
CREATE FUNCTION push() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF OLD.id = 1 THEN UPDATE trg.pushed SET ts = '2999-01-01' WHERE id = 2; END IF;
	RETURN OLD;
END $$;
CREATE TRIGGER push BEFORE DELETE ON pushed FOR EACH ROW EXECUTE FUNCTION push();
SELECT ttl_index.create_index('pushed', 'ts', 0);
INSERT INTO pushed VALUES (1, '2001-01-01'), (2, '2001-01-01'), (3, '2001-01-01');
SET client_min_messages = error;
CALL ttl_index.run_pass();
SET client_min_messages = warning;
SELECT id, ts::date FROM pushed ORDER BY id;

-- a trigger that keeps rows: they are counted, and the reason tells it once it keeps all
CREATE TABLE held (id int, ts timestamptz);
CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN CASE WHEN OLD.id > 2 THEN OLD END; END $$;
CREATE TRIGGER hold BEFORE DELETE ON held FOR EACH ROW EXECUTE FUNCTION hold();
SELECT ttl_index.create_index('held', 'ts', 0);
INSERT INTO held SELECT g, '2001-01-01' FROM generate_series(1, 5) AS g;
CALL ttl_index.run_pass();
SELECT deleted_documents, skipped_kept > 0 AS kept, errors, state, reason FROM ttl_index.index_stats JOIN ttl_index.indexes USING (indexrelid) WHERE relname = 'held';
CALL ttl_index.run_pass();
SELECT deleted_documents, skipped_kept > 0 AS kept, errors, state, reason FROM ttl_index.index_stats JOIN ttl_index.indexes USING (indexrelid) WHERE relname = 'held';
UPDATE held SET ts = '2999-01-01';
CALL ttl_index.run_pass();
SELECT state, reason FROM ttl_index.indexes WHERE indexrelid = 'held_ts_ttl'::regclass;
DROP TABLE held;
-- what a cascade has deleted was not kept by a trigger, where each row is deleted by itself
CREATE TABLE tree (id int PRIMARY KEY, parent int REFERENCES tree ON DELETE CASCADE, ts timestamptz);
CREATE TABLE leaf (id int REFERENCES tree);
INSERT INTO tree SELECT g, CASE WHEN g % 2 = 0 THEN g - 1 END, '2001-01-01' FROM generate_series(1, 20) AS g;
INSERT INTO leaf VALUES (20);
SELECT ttl_index.create_index('tree', 'ts', 0);
CALL ttl_index.run_pass();
SELECT id FROM tree;
SELECT skipped_failed, skipped_kept FROM ttl_index.index_stats WHERE relname = 'tree';
DROP TABLE leaf, tree;

-- Rows are found by where they lie, whatever the planner is told.
CREATE TABLE planned (id int, ts timestamptz);
CREATE FUNCTION keep_quiet() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$;
CREATE TRIGGER quiet BEFORE DELETE ON planned FOR EACH ROW EXECUTE FUNCTION keep_quiet();
INSERT INTO planned SELECT g, CASE WHEN g % 1000 = 0 THEN '2001-01-01' ELSE '2999-01-01' END::timestamptz FROM generate_series(1, 20000) AS g;
CREATE INDEX planned_ttl ON planned (ts) WHERE ttl_index.expire_after_seconds(0);
SELECT pg_stat_force_next_flush();
SELECT seq_scan AS scans FROM pg_stat_user_tables WHERE relid = 'planned'::regclass \gset
SET enable_tidscan = off;
SET random_page_cost = 1e10;
SET cpu_tuple_cost = 0;
CALL ttl_index.run_pass();
RESET enable_tidscan;
RESET random_page_cost;
RESET cpu_tuple_cost;
SELECT pg_stat_force_next_flush();
SELECT seq_scan - :scans AS scans, n_tup_del FROM pg_stat_user_tables WHERE relid = 'planned'::regclass;

-- unlogged tables; tables with many indexes; HOT chains
CREATE UNLOGGED TABLE unlogged (ts timestamptz);
SELECT ttl_index.create_index('unlogged', 'ts', 0);
INSERT INTO unlogged SELECT '2001-01-01' FROM generate_series(1, 1500);
CREATE TABLE hot (id int PRIMARY KEY, ts timestamptz, n int) WITH (fillfactor = 50);
SELECT ttl_index.create_index('hot', 'ts', 0);
INSERT INTO hot SELECT g, '2001-01-01', 0 FROM generate_series(1, 100) AS g;
UPDATE hot SET n = n + 1;
UPDATE hot SET n = n + 1 WHERE id % 2 = 0;
UPDATE hot SET ts = '2999-01-01' WHERE id % 10 = 0;
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT (SELECT count(*) FROM unlogged) AS unlogged, (SELECT count(*) FROM hot) AS hot;
SELECT indexrelname, deleted_documents FROM ttl_index.index_stats WHERE deleted_documents > 0 ORDER BY 1;
SET client_min_messages = error;
DROP SCHEMA trg CASCADE;
