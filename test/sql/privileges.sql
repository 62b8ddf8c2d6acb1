-- Who may do what.  One row for each function, procedure, view,
-- table and type of the extension; one that is new has no row and fails the test.
\set SHOW_CONTEXT never
SET client_min_messages = error;
CREATE ROLE regress_ttl_owner LOGIN;
CREATE ROLE regress_ttl_member LOGIN IN ROLE regress_ttl_owner;
CREATE ROLE regress_ttl_other LOGIN;
CREATE ROLE regress_ttl_super LOGIN SUPERUSER;
CREATE ROLE regress_ttl_monitor LOGIN IN ROLE pg_monitor;
CREATE ROLE regress_ttl_nologin NOLOGIN;
CREATE SCHEMA priv;
GRANT ALL ON SCHEMA priv TO PUBLIC;
SET search_path = priv;

-- the first five look at the owner's table, the last one at a table of its own
CREATE TABLE t (id int, ts timestamptz, doc jsonb);
CREATE INDEX t_ttl ON t (ts) WHERE ttl_index.expire_after_seconds(0);
ALTER TABLE t OWNER TO regress_ttl_owner;
CREATE TABLE n (id int, ts timestamptz, doc jsonb);
CREATE INDEX n_ttl ON n (ts) WHERE ttl_index.expire_after_seconds(0);
ALTER TABLE n OWNER TO regress_ttl_nologin;
SELECT ttl_index.track_last_modified('t', 'changed'), ttl_index.track_last_modified('n', 'changed');
INSERT INTO t VALUES (1, '2001-01-01'), (2, '2999-01-01');
INSERT INTO n VALUES (1, '2001-01-01'), (2, '2999-01-01');

-- %1$s is the table; ok or the SQLSTATE
CREATE TABLE expected (object text, command text,
	owner text, member text, other text, super text, monitor text, nologin text);
INSERT INTO expected VALUES
('expire_after_seconds(integer,integer)', 'SELECT ttl_index.expire_after_seconds(1)', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('time_zone(text,text)', 'SELECT ttl_index.time_zone(''UTC'')', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('unit(text,text)', 'SELECT ttl_index.unit(''seconds'')', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('drop_expired_partitions(boolean,boolean)', 'SELECT ttl_index.drop_expired_partitions()', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('bucket_max_span_seconds(integer,integer)', 'SELECT ttl_index.bucket_max_span_seconds(60)', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('detach_expired_partitions(boolean,boolean)', 'SELECT ttl_index.detach_expired_partitions()', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('archive_to(regclass,regclass)', 'SELECT ttl_index.archive_to(''pg_class'')', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('paused(boolean,boolean)', 'SELECT ttl_index.paused()', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('seconds(interval)', 'SELECT ttl_index.seconds(''1 day'')', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('duration', 'SELECT ''1 day''::ttl_index.duration', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('duration_in(cstring)', 'SELECT ttl_index.duration_in(''1 day'')', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('duration_out(duration)', 'SELECT ttl_index.duration_out(1)', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('duration(interval)', 'SELECT ttl_index.duration(interval ''1 day'')', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('earliest(timestamp with time zone[])', 'SELECT ttl_index.earliest(''{}'')', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('document_date(jsonb,text[])', 'SELECT ttl_index.document_date(''{}'', ''a'')', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('document_date_in(jsonb,text,text[])', 'SELECT ttl_index.document_date_in(''{}'', ''seconds'', ''a'')', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('document_ttl(jsonb,text)', 'SELECT ttl_index.document_ttl(''{}'')', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('column_ttl(bigint)', 'SELECT ttl_index.column_ttl(1)', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('expire_at(timestamp with time zone,integer)', 'SELECT ttl_index.expire_at(now(), 1)', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
-- declaring is for owners
('create_index_command(regclass,text,duration,text,text,text,name,boolean,boolean,boolean,boolean,regclass,boolean,text)', 'SELECT ttl_index.create_index_command(''%1$s'', ''doc.at'', 1)', 'ok', 'ok', '42501', 'ok', '42501', 'ok'),
('create_index(regclass,text,duration,text,text,text,name,boolean,boolean,boolean,boolean,regclass,boolean,text)', 'SELECT ttl_index.create_index(''%1$s'', ''doc.at'', 1)', 'ok', 'ok', '42501', 'ok', '42501', 'ok'),
('coll_mod(regclass,text,duration,text,boolean,boolean,regclass,boolean,boolean,text)', 'SELECT ttl_index.coll_mod(''%1$s'', ''ts'', 5)', 'ok', 'ok', '42501', 'ok', '42501', 'ok'),
('coll_mod_index(regclass,duration,text,boolean,boolean,regclass,boolean,boolean,text)', 'SELECT ttl_index.coll_mod_index(''%1$s_ttl'', 5)', 'ok', 'ok', '42501', 'ok', '42501', 'ok'),
-- the tables here are not partitioned
('create_time_series(regclass,text,text,text,duration,integer,text,boolean,text)', 'SELECT ttl_index.create_time_series(''%1$s'', ''ts'')', '0A000', '0A000', '42501', '0A000', '42501', '0A000'),
('pause_index(regclass)', 'SELECT ttl_index.pause_index(''%1$s_ttl'')', 'ok', 'ok', '42501', 'ok', '42501', 'ok'),
('unpause_index(regclass)', 'SELECT ttl_index.unpause_index(''%1$s_ttl'')', 'ok', 'ok', '42501', 'ok', '42501', 'ok'),
('remove_ttl(regclass)', 'SELECT ttl_index.remove_ttl(''%1$s_ttl'')', 'ok', 'ok', '42501', 'ok', '42501', 'ok'),
('drop_index(regclass,text)', 'SELECT ttl_index.drop_index(''%1$s'', ''ts'')', 'ok', 'ok', '42501', 'ok', '42501', 'ok'),
('track_last_modified(regclass,name)', 'SELECT ttl_index.track_last_modified(''%1$s'')', 'ok', 'ok', '42501', 'ok', '42501', 'ok'),
('untrack_last_modified(regclass,name)', 'SELECT ttl_index.untrack_last_modified(''%1$s'', ''changed'')', 'ok', 'ok', '42501', 'ok', '42501', 'ok'),
-- for the owner of all that has a TTL, and there are two
('remove_all_ttl()', 'SELECT ttl_index.remove_all_ttl()', '42501', '42501', '42501', 'ok', '42501', '42501'),
-- looking ahead is also for those who watch
('due_count(regclass)', 'SELECT ttl_index.due_count(''%1$s_ttl'')', 'ok', 'ok', '42501', 'ok', 'ok', 'ok'),
('oldest_due(regclass)', 'SELECT ttl_index.oldest_due(''%1$s_ttl'')', 'ok', 'ok', '42501', 'ok', 'ok', 'ok'),
('preview(regclass,integer)', 'SELECT ttl_index.preview(''%1$s_ttl'')', 'ok', 'ok', '42501', 'ok', '42501', 'ok'),
('forecast(regclass,interval,integer)', 'SELECT ttl_index.forecast(''%1$s_ttl'')', 'ok', 'ok', '42501', 'ok', 'ok', 'ok'),
('lag(regclass)', 'SELECT ttl_index.lag(''%1$s_ttl'')', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('cutoff(regclass)', 'SELECT ttl_index.cutoff(''%1$s_ttl'')', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('cutoff_number(regclass)', 'SELECT ttl_index.cutoff_number(''%1$s_ttl'')', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
-- refused in a transaction only: see below
('run_pass()', 'CALL ttl_index.run_pass()', '25001', '25001', '25001', '25001', '25001', '25001'),
('stats_reset()', 'SELECT ttl_index.stats_reset()', '42501', '42501', '42501', 'ok', '42501', '42501'),
('stats_reset(regclass)', 'SELECT ttl_index.stats_reset(''%1$s_ttl''::regclass)', '42501', '42501', '42501', 'ok', '42501', '42501'),
('resume()', 'SELECT ttl_index.resume()', '42501', '42501', '42501', 'ok', '42501', '42501'),
('indexes', 'SELECT * FROM ttl_index.indexes', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('stats', 'SELECT * FROM ttl_index.stats', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('index_stats', 'SELECT * FROM ttl_index.index_stats', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('cluster_stats', 'SELECT * FROM ttl_index.cluster_stats', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('cluster_index_stats', 'SELECT * FROM ttl_index.cluster_index_stats', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('history', 'SELECT * FROM ttl_index.history', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('cluster_history', 'SELECT * FROM ttl_index.cluster_history', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('past_hours', 'SELECT * FROM ttl_index.past_hours', '42501', '42501', '42501', 'ok', 'ok', '42501'),
('past_hours', 'DELETE FROM ttl_index.past_hours', '42501', '42501', '42501', 'ok', '42501', '42501'),
('current_op', 'SELECT * FROM ttl_index.current_op', '42501', '42501', '42501', 'ok', 'ok', '42501'),
('databases', 'SELECT * FROM ttl_index.databases', '42501', '42501', '42501', 'ok', 'ok', '42501'),
('counters', 'SELECT * FROM ttl_index.counters', '42501', '42501', '42501', 'ok', 'ok', '42501'),
('counters', 'DELETE FROM ttl_index.counters', '42501', '42501', '42501', 'ok', '42501', '42501'),
('counters', 'LOCK ttl_index.counters IN ACCESS SHARE MODE', '42501', '42501', '42501', 'ok', 'ok', '42501'),
('counters', 'LOCK ttl_index.counters IN ROW EXCLUSIVE MODE', '42501', '42501', '42501', 'ok', '42501', '42501'),
('list_indexes()', 'SELECT * FROM ttl_index.list_indexes()', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('index_key(regclass)', 'SELECT ttl_index.index_key(''pg_class_oid_index'')', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('index_filter(regclass)', 'SELECT ttl_index.index_filter(''pg_class_oid_index'')', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('index_document_ttl(regclass)', 'SELECT ttl_index.index_document_ttl(''pg_class_oid_index'')', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('relation_name(oid)', 'SELECT * FROM ttl_index.relation_name(1259)', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('ask_nodes(text)', 'SELECT * FROM ttl_index.ask_nodes(''SELECT pg_catalog.to_jsonb(1)'')', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
-- as the caller, like all that has no row in the list of SECURITY DEFINER below
('ask_nodes(text)', 'SELECT * FROM ttl_index.ask_nodes(''SELECT pg_catalog.to_jsonb(c) FROM ttl_index.counters AS c LIMIT 1'')', '42501', '42501', '42501', 'ok', 'ok', '42501'),
('monitor_status()', 'SELECT * FROM ttl_index.monitor_status()', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'),
('list_operations()', 'SELECT * FROM ttl_index.list_operations()', '42501', '42501', '42501', 'ok', 'ok', '42501'),
('list_databases()', 'SELECT * FROM ttl_index.list_databases()', '42501', '42501', '42501', 'ok', 'ok', '42501'),
('saved_options', 'SELECT * FROM ttl_index.saved_options', '42501', '42501', '42501', 'ok', '42501', '42501'),
('saved_options', 'DELETE FROM ttl_index.saved_options', '42501', '42501', '42501', 'ok', '42501', '42501'),
-- for the triggers alone
('set_last_modified()', 'SELECT ttl_index.set_last_modified()', '39P01', '39P01', '39P01', '39P01', '39P01', '39P01'),
('ignore_subscription()', 'SELECT ttl_index.ignore_subscription()', '42501', '42501', '42501', '0A000', '42501', '42501'),
('on_ddl()', 'SELECT ttl_index.on_ddl()', '42501', '42501', '42501', '0A000', '42501', '42501'),
('check_ddl(text)', 'SELECT ttl_index.check_ddl(''CREATE TABLE'')', '39P03', '39P03', '39P03', '39P03', '39P03', '39P03'),
('on_create_extension()', 'SELECT ttl_index.on_create_extension()', '42501', '42501', '42501', '0A000', '42501', '42501'),
('on_alter_index()', 'SELECT ttl_index.on_alter_index()', '42501', '42501', '42501', '39P03', '42501', '42501');

-- What has no row, and rows for nothing.  Array types are members since 17.
CREATE VIEW members AS
SELECT replace(CASE d.classid WHEN 'pg_proc'::regclass THEN d.objid::regprocedure::text
	WHEN 'pg_type'::regclass THEN d.objid::regtype::text ELSE d.objid::regclass::text END,
	'ttl_index.', '') AS object
FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass
WHERE e.extname = 'ttl_index' AND d.deptype = 'e' AND d.classid IN ('pg_proc'::regclass, 'pg_class'::regclass, 'pg_type'::regclass)
AND (d.classid <> 'pg_type'::regclass OR d.objid NOT IN (SELECT typarray FROM pg_type));
SELECT object FROM members EXCEPT SELECT object FROM expected ORDER BY 1;
SELECT object FROM expected EXCEPT SELECT object FROM members ORDER BY 1;

-- Runs a command as somebody, and takes it back.
CREATE FUNCTION attempt(role text, command text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('role', role, true);
	EXECUTE command;
	RAISE EXCEPTION USING ERRCODE = 'TTLOK';
EXCEPTION WHEN OTHERS THEN
	RETURN CASE SQLSTATE WHEN 'TTLOK' THEN 'ok' ELSE SQLSTATE END;
END $$;
SELECT command, role, expected, got
FROM expected,
	LATERAL (VALUES ('owner', owner), ('member', member), ('other', other), ('super', super),
		('monitor', monitor), ('nologin', nologin)) AS v (role, expected),
	LATERAL attempt('regress_ttl_' || role, format(command, CASE role WHEN 'nologin' THEN 'n' ELSE 't' END)) AS got
WHERE got IS DISTINCT FROM expected;

-- run_pass() deletes what is due in the tables whose owner's role the caller has
CREATE TABLE seen (role text, t bigint, n bigint);
SELECT format('SET ROLE %I', role), 'CALL ttl_index.run_pass()', 'RESET ROLE',
	format('INSERT INTO seen SELECT %L, (SELECT count(*) FROM t WHERE id = 1), (SELECT count(*) FROM n WHERE id = 1)', role),
	'DELETE FROM t WHERE id = 1', 'DELETE FROM n WHERE id = 1',
	'INSERT INTO t VALUES (1, ''2001-01-01'')', 'INSERT INTO n VALUES (1, ''2001-01-01'')'
FROM unnest(ARRAY['regress_ttl_owner', 'regress_ttl_member', 'regress_ttl_other', 'regress_ttl_super',
	'regress_ttl_monitor', 'regress_ttl_nologin']) AS role \gexec
TABLE seen;

-- none is SECURITY DEFINER, and none is written in SQL, whose names somebody's
-- search_path could lead elsewhere, but some in PL/pgSQL that name all with their schema
SELECT p.oid::regprocedure, l.lanname, p.prosecdef, p.proconfig
FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
WHERE p.pronamespace = 'ttl_index'::regnamespace AND (p.prosecdef OR l.lanname NOT IN ('c', 'internal'))
ORDER BY 1;

-- each column of each view has a comment
SELECT c.relname, a.attname
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relnamespace = 'ttl_index'::regnamespace AND c.relkind = 'v' AND col_description(c.oid, a.attnum) IS NULL
ORDER BY 1, a.attnum;

-- whatever was revoked, DDL that has nothing to do with TTL goes on; so does a
-- change to a table with a TTL index
BEGIN;
REVOKE USAGE ON SCHEMA ttl_index FROM PUBLIC;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA ttl_index FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_event_trigger_ddl_commands() FROM PUBLIC;
SET ROLE regress_ttl_owner;
CREATE TABLE revoked (id int PRIMARY KEY, at timestamptz) PARTITION BY RANGE (id);
CREATE INDEX ON revoked (at);
CREATE TABLE revoked_1 PARTITION OF revoked DEFAULT;
ALTER TABLE revoked ALTER at TYPE timestamp;
ALTER TABLE revoked DETACH PARTITION revoked_1;
REINDEX TABLE revoked_1;
ALTER TABLE t ADD COLUMN more int;
ROLLBACK;

-- a partition of a role whose privileges the owner of the whole lacks is left
SET ROLE regress_ttl_owner;
CREATE TABLE told (id int, at timestamptz) PARTITION BY LIST (id);
CREATE TABLE told_1 PARTITION OF told FOR VALUES IN (1);
CREATE INDEX told_ttl ON told (at) WHERE ttl_index.expire_after_seconds(0);
INSERT INTO told VALUES (1, '2001-01-01');
RESET ROLE;
CREATE FUNCTION tells() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'a secret'; END $$;
CREATE TRIGGER tells BEFORE DELETE ON told_1 FOR EACH ROW EXECUTE FUNCTION tells();
SELECT tableoid::regclass FROM told;
CALL ttl_index.run_pass();
SELECT last_error FROM ttl_index.index_stats WHERE indexrelname = 'told_ttl';
ALTER TABLE told_1 OWNER TO regress_ttl_other;
CALL ttl_index.run_pass();
SELECT last_error, last_error_sqlstate FROM ttl_index.index_stats WHERE indexrelname = 'told_ttl';
-- nor is what the code of a former owner said for the next one
SET ROLE regress_ttl_owner;
CREATE TABLE given (at timestamptz);
CREATE INDEX given_ttl ON given (at) WHERE ttl_index.expire_after_seconds(0);
INSERT INTO given VALUES ('2001-01-01');
RESET ROLE;
CREATE FUNCTION tells_plainly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'a secret'; END $$;
CREATE TRIGGER tells BEFORE DELETE ON given FOR EACH ROW EXECUTE FUNCTION tells_plainly();
CALL ttl_index.run_pass();
SET ROLE regress_ttl_owner;
SELECT last_error, last_error_sqlstate FROM ttl_index.index_stats WHERE indexrelname = 'given_ttl';
RESET ROLE;
ALTER TABLE given OWNER TO regress_ttl_other;
SET ROLE regress_ttl_other;
SELECT last_error, last_error_sqlstate FROM ttl_index.index_stats WHERE indexrelname = 'given_ttl';
RESET ROLE;
CALL ttl_index.run_pass();
SET ROLE regress_ttl_other;
SELECT last_error, last_error_sqlstate FROM ttl_index.index_stats WHERE indexrelname = 'given_ttl';
RESET ROLE;
DROP TABLE given;
DROP TABLE told;
DROP SCHEMA priv CASCADE;
DROP ROLE regress_ttl_owner, regress_ttl_member, regress_ttl_other, regress_ttl_super, regress_ttl_monitor, regress_ttl_nologin;
