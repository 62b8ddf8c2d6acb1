/* sql/ttl_index.sql: the definition of the extension, from top to bottom */

-- A release that changes this file adds a script ttl_index--OLD--NEW.sql, which begins with
-- SET LOCAL search_path = ttl_index, pg_temp, and the old file as
-- test/released/ttl_index--OLD.sql, for the test 033_extension_update.  Until ALTER EXTENSION
-- UPDATE the new library serves the old objects, so the arguments and the result of a C
-- function never change: use a new name instead.

\echo Use "CREATE EXTENSION ttl_index" to load this file. \quit

-- The schema ttl_index is a member of the extension, so a dump omits it and DROP EXTENSION
-- drops it.  The schema of the control file cannot be a member, so that one is pg_catalog,
-- and each script sets search_path.
--
-- A schema of another role is refused, because that role would own the objects.  An empty
-- schema of a superuser is replaced: some frameworks restore schemas before extensions.
DO $$
DECLARE
	contents text;
BEGIN
	IF EXISTS (
		SELECT FROM pg_catalog.pg_namespace AS n JOIN pg_catalog.pg_roles AS r
			ON r.oid OPERATOR(pg_catalog.=) n.nspowner
		WHERE n.nspname OPERATOR(pg_catalog.=) 'ttl_index' AND NOT r.rolsuper)
	THEN
		RAISE EXCEPTION 'schema "ttl_index" exists and belongs to a role that is no superuser'
			USING ERRCODE = 'duplicate_schema', HINT = 'Rename it.';
	END IF;
	DROP SCHEMA IF EXISTS ttl_index;
EXCEPTION
	WHEN dependent_objects_still_exist THEN
		GET STACKED DIAGNOSTICS contents = PG_EXCEPTION_DETAIL;
		RAISE EXCEPTION 'schema "ttl_index" exists and is not empty'
			USING ERRCODE = 'duplicate_schema', DETAIL = contents, HINT = 'Rename it.';
END
$$;

CREATE SCHEMA ttl_index;
SET LOCAL search_path = ttl_index, pg_temp;
-- The library writes its tables with functions of heap.
SET LOCAL default_table_access_method = heap;

COMMENT ON SCHEMA ttl_index IS
'objects of the extension ttl_index';

-- The control file sets a comment.  A dump would contain it, and only a superuser could
-- restore the dump.
COMMENT ON EXTENSION ttl_index IS NULL;

-- REINDEX CONCURRENTLY loses an option that is the whole predicate.  A dump omits this table,
-- because CREATE INDEX writes it.  An index depends on one of its columns; the number of the
-- column is the slot of its row.  The table is created before the functions, so that DROP
-- EXTENSION names the functions in its errors.
CREATE TABLE saved_options (
	relid oid NOT NULL,
	key_hash bigint NOT NULL,
	slot integer NOT NULL,
	indexrelid oid NOT NULL,
	expire_after_seconds integer NOT NULL,
	time_zone text,
	paused boolean NOT NULL,
	archive_to oid NOT NULL,
	PRIMARY KEY (relid, key_hash, slot)
);
-- clients that decode the WAL do not need it
ALTER TABLE saved_options REPLICA IDENTITY NOTHING;

COMMENT ON TABLE saved_options IS
'the options of TTL indexes without a filter: a pass restores them after REINDEX CONCURRENTLY';

--
-- The options: functions that are always true.  The planner folds them away, and
-- pg_index.indpred keeps them.  They are aliases of built-in functions, so that a table can
-- be read without the library.  An update of the extension never drops or redefines them.
--

CREATE FUNCTION expire_after_seconds(seconds integer, minimum integer DEFAULT -2147483648)
RETURNS boolean LANGUAGE internal IMMUTABLE PARALLEL SAFE AS 'int4ge';

COMMENT ON FUNCTION expire_after_seconds(integer, integer) IS
'option of a TTL index, for the WHERE clause of CREATE INDEX: rows expire this many seconds (0 to 2147483647) after the date in the key; -1 (never) is valid only with document_ttl(...) IS NULL, column_ttl(...) IS NULL or bucket_max_span_seconds(...)';

-- STRICT, unlike the one above: the built-in would dereference a NULL.
CREATE FUNCTION time_zone(zone text, minimum text DEFAULT '')
RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'text_pattern_ge';

COMMENT ON FUNCTION time_zone(text, text) IS
'option of a TTL index on a key of type timestamp or date: the time zone (a name of pg_timezone_names) in which the key is read';

CREATE FUNCTION drop_expired_partitions(delete_boundary_rows boolean DEFAULT false, minimum boolean DEFAULT false)
RETURNS boolean LANGUAGE internal IMMUTABLE PARALLEL SAFE AS 'boolge';

COMMENT ON FUNCTION drop_expired_partitions(boolean, boolean) IS
'option of a TTL index on a table that is range-partitioned by its key: a partition is dropped when its upper bound is due; due rows of other partitions stay, or are deleted one by one with delete_boundary_rows';

CREATE FUNCTION bucket_max_span_seconds(seconds integer, minimum integer DEFAULT -2147483648)
RETURNS boolean LANGUAGE internal IMMUTABLE PARALLEL SAFE AS 'int4ge';

COMMENT ON FUNCTION bucket_max_span_seconds(integer, integer) IS
'option of a TTL index on a table that is range-partitioned by its key: partitions of this span (60 to 31536000 seconds) are created ahead of the clock';

CREATE FUNCTION paused(paused boolean DEFAULT true, minimum boolean DEFAULT false)
RETURNS boolean LANGUAGE internal IMMUTABLE PARALLEL SAFE AS 'boolge';

COMMENT ON FUNCTION paused(boolean, boolean) IS
'option of a TTL index: nothing is deleted by the index; set by pause_index and unpause_index';

CREATE FUNCTION archive_to(target regclass, minimum regclass DEFAULT '-')
RETURNS boolean LANGUAGE internal IMMUTABLE PARALLEL SAFE AS 'oidge';

COMMENT ON FUNCTION archive_to(regclass, regclass) IS
'option of a TTL index: rows that are due are moved to this table, by column names, instead of being deleted';

CREATE FUNCTION detach_expired_partitions(detach boolean DEFAULT true, minimum boolean DEFAULT false)
RETURNS boolean LANGUAGE internal IMMUTABLE PARALLEL SAFE AS 'boolge';

COMMENT ON FUNCTION detach_expired_partitions(boolean, boolean) IS
'option of a TTL index on a table that is range-partitioned by its key: a partition is detached when its upper bound is due, and remains as a table without the TTL; no row is deleted';

-- Not in C, because a table with this function in its predicate must be readable without the
-- library.  PL/pgSQL is several times faster than SQL here, because planning folds the call.
CREATE FUNCTION seconds(span interval)
RETURNS integer LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
	epoch numeric;
BEGIN
	IF pg_catalog.isfinite(span) THEN
		IF extract(year FROM span) OPERATOR(pg_catalog.<>) 0 OR extract(month FROM span) OPERATOR(pg_catalog.<>) 0 THEN
			RAISE EXCEPTION 'an interval with months or years has no fixed number of seconds: %', span
				USING ERRCODE = 'invalid_parameter_value', HINT = 'Write days: ttl_index.seconds(''30 days'').';
		END IF;
		epoch := extract(epoch FROM span);
		IF epoch OPERATOR(pg_catalog.<>) pg_catalog.trunc(epoch) THEN
			RAISE EXCEPTION 'an interval of fractions of a second cannot be a time to live: %', span
				USING ERRCODE = 'invalid_parameter_value', HINT = 'Write whole seconds.';
		END IF;
		IF epoch OPERATOR(pg_catalog.>=) 0 AND epoch OPERATOR(pg_catalog.<=) 2147483647 THEN
			RETURN epoch;
		END IF;
	END IF;
	RAISE EXCEPTION 'a time to live must be between 0 and 2147483647 seconds: %', span
		USING ERRCODE = 'numeric_value_out_of_range', HINT = '2147483647 seconds are 24855 days, which is 68 years.';
END
$$;

COMMENT ON FUNCTION seconds(interval) IS
'seconds of an interval of weeks, days, hours, minutes and seconds, for any number of seconds, also in the option: expire_after_seconds(ttl_index.seconds(''30 days'')); months and years are errors, because their length varies';

--
-- Keys
--

CREATE FUNCTION earliest(dates timestamptz[])
RETURNS timestamptz LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_earliest';

COMMENT ON FUNCTION earliest(timestamptz[]) IS
'the earliest date in an array, NULL for none: makes an array column the key of a TTL index';

CREATE FUNCTION document_date(document jsonb, VARIADIC path text[])
RETURNS timestamptz LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_document_date';

COMMENT ON FUNCTION document_date(jsonb, text[]) IS
'the earliest date at a path in a document, NULL for none: {"$date": ...} or a string that is an RFC 3339 date-time with an offset; makes a jsonb column the key of a TTL index';

CREATE FUNCTION document_ttl(document jsonb, field text DEFAULT 'ttl')
RETURNS integer LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_document_ttl';

COMMENT ON FUNCTION document_ttl(jsonb, text) IS
'the TTL of a document in a property of its root: 1 to 2147483647 seconds, or -1 for never, as a number or in Extended JSON; NULL if it is missing or not valid';

CREATE FUNCTION column_ttl(ttl bigint)
RETURNS integer LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_column_ttl';

COMMENT ON FUNCTION column_ttl(bigint) IS
'the TTL of a document in an integer column: 1 to 2147483647 seconds, or -1 for never; NULL for other values';

CREATE FUNCTION expire_at(since timestamptz, ttl integer)
RETURNS timestamptz LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_expire_at';

COMMENT ON FUNCTION expire_at(timestamptz, integer) IS
'when a document with its own TTL expires: since plus ttl seconds; infinity if out of range, NULL if ttl is not 1 to 2147483647';

--
-- Declaring, changing, dropping
--

CREATE FUNCTION create_index_command(relation regclass, key text, expire_after_seconds bigint,
	partial_filter_expression text DEFAULT NULL, time_zone text DEFAULT NULL,
	document_ttl_field text DEFAULT NULL, name name DEFAULT NULL,
	drop_expired_partitions boolean DEFAULT NULL, delete_boundary_rows boolean DEFAULT NULL,
	concurrently boolean DEFAULT false, paused boolean DEFAULT NULL, archive_to regclass DEFAULT NULL,
	detach_expired_partitions boolean DEFAULT NULL)
RETURNS SETOF text LANGUAGE C STABLE PARALLEL UNSAFE ROWS 1
AS 'MODULE_PATHNAME', 'ttl_create_index_command';

COMMENT ON FUNCTION create_index_command(regclass, text, bigint, text, text, text, name, boolean, boolean, boolean, boolean, regclass, boolean) IS
'the CREATE INDEX that create_index would run with the same arguments, for psql''s \gexec; two commands with document_ttl_field';

CREATE FUNCTION create_index(relation regclass, key text, expire_after_seconds bigint,
	partial_filter_expression text DEFAULT NULL, time_zone text DEFAULT NULL,
	document_ttl_field text DEFAULT NULL, name name DEFAULT NULL,
	drop_expired_partitions boolean DEFAULT NULL, delete_boundary_rows boolean DEFAULT NULL,
	or_change boolean DEFAULT false, paused boolean DEFAULT NULL, archive_to regclass DEFAULT NULL,
	detach_expired_partitions boolean DEFAULT NULL)
RETURNS regclass LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_create_index';

COMMENT ON FUNCTION create_index(regclass, text, bigint, text, text, text, name, boolean, boolean, boolean, boolean, regclass, boolean) IS
'creates a TTL index and returns it, or returns the existing one: rows expire this many seconds after the date in the key (a column, or a jsonb column and a dotted path); with document_ttl_field, documents can have their own TTL, and two indexes are created; with or_change, an existing index gets the given options without a rebuild; an option that is NULL is not changed';

CREATE FUNCTION coll_mod(relation regclass, key text, expire_after_seconds bigint,
	time_zone text DEFAULT NULL, drop_expired_partitions boolean DEFAULT NULL,
	delete_boundary_rows boolean DEFAULT NULL, archive_to regclass DEFAULT NULL,
	detach_expired_partitions boolean DEFAULT NULL, paused boolean DEFAULT NULL,
	OUT expire_after_seconds_old integer, OUT expire_after_seconds_new integer)
RETURNS record LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_coll_mod';

COMMENT ON FUNCTION coll_mod(regclass, text, bigint, text, boolean, boolean, regclass, boolean, boolean) IS
'changes the options of the TTL index with this key (a column, a jsonb column and a dotted path, or an expression), or makes the plain index with this key a TTL index, without a rebuild; returns the old and the new seconds; an option that is NULL is not changed; archive_to ''-'' ends the archive';

CREATE FUNCTION coll_mod_index(index regclass, expire_after_seconds bigint,
	time_zone text DEFAULT NULL, drop_expired_partitions boolean DEFAULT NULL,
	delete_boundary_rows boolean DEFAULT NULL, archive_to regclass DEFAULT NULL,
	detach_expired_partitions boolean DEFAULT NULL, paused boolean DEFAULT NULL,
	OUT expire_after_seconds_old integer, OUT expire_after_seconds_new integer)
RETURNS record LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_coll_mod_index';

COMMENT ON FUNCTION coll_mod_index(regclass, bigint, text, boolean, boolean, regclass, boolean, boolean) IS
'changes the options of this TTL index, or makes this plain index a TTL index, without a rebuild; returns the old and the new seconds; an option that is NULL is not changed; archive_to ''-'' ends the archive';

CREATE FUNCTION pause_index(index regclass)
RETURNS void LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_pause_index';

COMMENT ON FUNCTION pause_index(regclass) IS
'stops deletion by a TTL index until unpause_index, without a rebuild';

CREATE FUNCTION unpause_index(index regclass)
RETURNS void LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_unpause_index';

COMMENT ON FUNCTION unpause_index(regclass) IS
'resumes deletion by a paused TTL index; a NOTICE shows how many rows are due';

CREATE FUNCTION remove_ttl(index regclass)
RETURNS void LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_remove_ttl';

COMMENT ON FUNCTION remove_ttl(regclass) IS
'makes a TTL index plain, or both indexes of document_ttl_field, without a rebuild';

CREATE FUNCTION remove_all_ttl()
RETURNS bigint LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_remove_all_ttl';

COMMENT ON FUNCTION remove_all_ttl() IS
'makes all TTL indexes of this database plain, without a rebuild, and returns their number; call it before DROP EXTENSION ttl_index';

CREATE FUNCTION drop_index(relation regclass, key text)
RETURNS void LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_drop_index';

COMMENT ON FUNCTION drop_index(regclass, text) IS
'drops the TTL index with this key (a column, a jsonb column and a dotted path, or an expression), or both indexes of document_ttl_field';

CREATE FUNCTION create_time_series(relation regclass, time_field text, meta_field text DEFAULT NULL,
	granularity text DEFAULT NULL, expire_after_seconds bigint DEFAULT NULL,
	bucket_max_span_seconds integer DEFAULT NULL, time_zone text DEFAULT NULL,
	delete_boundary_rows boolean DEFAULT NULL)
RETURNS regclass LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_create_time_series';

COMMENT ON FUNCTION create_time_series(regclass, text, text, text, bigint, integer, text, boolean) IS
'makes a table without partitions, range-partitioned by time_field, a time series: creates a DEFAULT partition, a TTL index that drops partitions (NULL or -1 seconds: never), an index on (meta_field, time_field), and partitions ahead of the clock; the granularity is seconds (partitions of 1 hour), minutes (1 day) or hours (30 days); returns the TTL index';

--
-- The time of the last change, as Cosmos DB's _ts
--

CREATE FUNCTION set_last_modified()
RETURNS trigger LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_set_last_modified';

COMMENT ON FUNCTION set_last_modified() IS
'trigger function: sets the column that is its argument to the current time';

CREATE FUNCTION track_last_modified(relation regclass, column_name name DEFAULT '_ts')
RETURNS void LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	-- triggers fire in the order of their names, and "~" is the last character of ASCII
	trigger_name name := '~ttl_index_' || CASE WHEN octet_length(column_name::text) <= 52 THEN column_name::text ELSE md5(column_name::text) END;
	typid oid;
	generated "char";
BEGIN
	SELECT atttypid, attgenerated INTO typid, generated FROM pg_attribute WHERE attrelid = relation AND attname = column_name AND attnum > 0;
	IF NOT FOUND THEN
		-- rows that are there get the time of this, or they would never expire
		EXECUTE format('ALTER TABLE %s ADD COLUMN %I timestamptz DEFAULT now()', relation, column_name);
	ELSIF typid <> 'timestamptz'::regtype OR generated <> '' THEN
		RAISE EXCEPTION 'column "%" of relation "%" is % %', column_name, relation,
				CASE generated WHEN '' THEN 'of type' ELSE 'generated, of type' END, format_type(typid, NULL)
			USING ERRCODE = 'datatype_mismatch',
				HINT = 'The time of the last change needs an ordinary column of type timestamp with time zone. Give the name of one that does not exist to have it added.';
	ELSIF EXISTS (SELECT FROM pg_partition_tree(coalesce(pg_partition_root(relation), relation)) AS part, pg_attribute AS a, pg_depend AS d
			WHERE a.attrelid = part.relid AND a.attname = column_name AND d.deptype = 'i' AND d.objsubid = a.attnum
				AND (d.classid, d.objid, d.refclassid, d.refobjid, d.refobjsubid) = ('pg_class'::regclass, part.relid, 'pg_class'::regclass, part.relid, 0)) THEN
		RAISE EXCEPTION 'table "%" is partitioned by column "%"', relation, column_name
			USING ERRCODE = 'feature_not_supported',
				HINT = 'A trigger cannot move a row to another partition. Give the name of another column.';
	ELSIF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = relation AND tgname = trigger_name AND tgenabled <> 'D') THEN
		RAISE NOTICE 'column "%" of relation "%" is already tracked, skipping', column_name, relation;
		RETURN;
	END IF;
	EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION ttl_index.set_last_modified(%L)',
		trigger_name, relation, column_name);
END $$;

COMMENT ON FUNCTION track_last_modified(regclass, name) IS
'makes a column hold the time of each row''s last change: adds the column if it is missing, and a trigger that sets it on every INSERT and UPDATE';

CREATE FUNCTION untrack_last_modified(relation regclass, column_name name DEFAULT '_ts')
RETURNS void LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	EXECUTE format('DROP TRIGGER %I ON %s',
		'~ttl_index_' || CASE WHEN octet_length(column_name::text) <= 52 THEN column_name::text ELSE md5(column_name::text) END, relation);
END $$;

COMMENT ON FUNCTION untrack_last_modified(regclass, name) IS
'drops the trigger of track_last_modified and keeps the column';

--
-- Looking ahead, and running
--

CREATE FUNCTION due_count(index regclass)
RETURNS bigint LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_due_count';

COMMENT ON FUNCTION due_count(regclass) IS
'number of rows that a pass would delete or archive now by this TTL index';

CREATE FUNCTION oldest_due(index regclass)
RETURNS timestamptz LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_oldest_due';

COMMENT ON FUNCTION oldest_due(regclass) IS
'lowest key among the rows that a pass would delete or archive now by this TTL index, NULL for none';

CREATE FUNCTION lag(index regclass)
RETURNS interval LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_lag';

COMMENT ON FUNCTION lag(regclass) IS
'how long the oldest due row of this TTL index has been due, 0 if none is due; NULL if unknown';

CREATE FUNCTION cutoff(index regclass)
RETURNS timestamptz LANGUAGE C STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_cutoff';

COMMENT ON FUNCTION cutoff(regclass) IS
'rows with dates up to this time are due by this TTL index when the statement begins; -infinity if nothing expires; for queries that exclude due rows';

CREATE FUNCTION preview(index regclass, max_rows integer DEFAULT 10)
RETURNS SETOF jsonb LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_preview';

COMMENT ON FUNCTION preview(regclass, integer) IS
'the rows that a pass would delete or archive first by this TTL index, of each partition the oldest first; a SELECT by the caller';

CREATE FUNCTION forecast(index regclass, step interval DEFAULT '1 hour', steps integer DEFAULT 24,
	OUT due_from timestamptz, OUT due_until timestamptz, OUT documents bigint, OUT bytes bigint)
RETURNS SETOF record LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_forecast';

COMMENT ON FUNCTION forecast(regclass, interval, integer) IS
'estimate of the rows that are due now (from -infinity) and in each of the next steps, and of their space with index entries, by the statistics of ANALYZE; NULL without statistics';

CREATE PROCEDURE run_pass()
LANGUAGE C
AS 'MODULE_PATHNAME', 'ttl_run_pass';

COMMENT ON PROCEDURE run_pass() IS
'runs one pass over this database, in workers that it starts and waits for, for all tables whose owner''s privileges the caller has; not in a transaction block';

CREATE FUNCTION resume()
RETURNS void LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_resume';

COMMENT ON FUNCTION resume() IS
'resumes deletion on this server: ends the state held, accepts the current clock, and retries indexes in the state crashed_server; for superusers unless granted';

--
-- Watching
--

CREATE FUNCTION list_indexes(
	OUT indexrelid regclass, OUT relid regclass, OUT parent_indexrelid regclass,
	OUT expire_after_seconds integer, OUT time_zone text, OUT drop_expired_partitions boolean,
	OUT state text, OUT reason text, OUT archive_to regclass, OUT detach_expired_partitions boolean,
	OUT logical_relid regclass, OUT logical_indexrelid regclass)
RETURNS SETOF record LANGUAGE C STABLE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'ttl_list_indexes';

COMMENT ON FUNCTION list_indexes() IS
'rows of the view ttl_index.indexes without key, filter and document_ttl, which index_key(), index_filter() and index_document_ttl() compute';

-- These functions begin a subtransaction, which is not allowed in a parallel query.
CREATE FUNCTION index_key(index regclass)
RETURNS text LANGUAGE C STABLE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_shown_text_key';

COMMENT ON FUNCTION index_key(regclass) IS
'the column key of the view ttl_index.indexes';

CREATE FUNCTION index_filter(index regclass)
RETURNS text LANGUAGE C STABLE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_shown_text_filter';

COMMENT ON FUNCTION index_filter(regclass) IS
'the column partial_filter_expression of the view ttl_index.indexes';

CREATE FUNCTION index_document_ttl(index regclass)
RETURNS text LANGUAGE C STABLE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_shown_text_document_ttl';

COMMENT ON FUNCTION index_document_ttl(regclass) IS
'the column document_ttl of the view ttl_index.indexes';

CREATE FUNCTION relation_name(relation oid, OUT schemaname name, OUT relname name, OUT relowner oid)
RETURNS record LANGUAGE C STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_relation_name';

COMMENT ON FUNCTION relation_name(oid) IS
'schema, name and owner of a relation, also of a shard that Citus hides in pg_class; NULLs if it does not exist';

CREATE VIEW indexes AS
SELECT
	indexrelid,
	relid,
	parent_indexrelid,
	index_key(indexrelid) AS key,
	expire_after_seconds,
	time_zone,
	index_filter(indexrelid) AS partial_filter_expression,
	index_document_ttl(indexrelid) AS document_ttl,
	drop_expired_partitions,
	state,
	reason,
	archive_to,
	detach_expired_partitions,
	logical_relid,
	logical_indexrelid
FROM list_indexes();

COMMENT ON VIEW indexes IS
'all TTL indexes of this database and their parts, with options and state';

COMMENT ON COLUMN indexes.indexrelid IS 'the index';
COMMENT ON COLUMN indexes.relid IS 'its table';
COMMENT ON COLUMN indexes.parent_indexrelid IS 'the partitioned index whose TTL governs this index; else NULL';
COMMENT ON COLUMN indexes.key IS 'the column, the jsonb column and dotted path, or the expression; an expression is NULL while the table is locked exclusively';
COMMENT ON COLUMN indexes.expire_after_seconds IS 'the seconds that govern the index: those of the topmost parent with a TTL, else its own';
COMMENT ON COLUMN indexes.time_zone IS 'the time zone in which the key is read; NULL for timestamptz';
COMMENT ON COLUMN indexes.partial_filter_expression IS 'the filter, without the test of a document''s own TTL; NULL for none, and while the table is locked exclusively';
COMMENT ON COLUMN indexes.document_ttl IS 'document_ttl_field, in the index of the documents without their own TTL; else NULL';
COMMENT ON COLUMN indexes.drop_expired_partitions IS 'whether whole partitions are dropped, or moved to the archive';
COMMENT ON COLUMN indexes.state IS 'active, or why no rows are deleted';
COMMENT ON COLUMN indexes.reason IS 'the reason for the state, or what an active index excludes; else NULL';
COMMENT ON COLUMN indexes.logical_relid IS 'for a shard of Citus: the distributed table; else NULL';
COMMENT ON COLUMN indexes.logical_indexrelid IS 'for a shard of Citus: the index of the distributed table; else NULL';
COMMENT ON COLUMN indexes.archive_to IS 'the table that rows are moved to; NULL for none';
COMMENT ON COLUMN indexes.detach_expired_partitions IS 'whether whole partitions are detached';

CREATE FUNCTION monitor_status(OUT status text, OUT reason text, OUT hint text)
RETURNS record LANGUAGE C VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'ttl_monitor_status';

COMMENT ON FUNCTION monitor_status() IS
'what deletes rows in this database: monitor, or run_pass if it was called in the last ten minutes by a role with the privileges of the caller; else why no rows are deleted, and a hint';

CREATE FUNCTION list_operations(
	OUT pid integer, OUT operation text, OUT relid oid, OUT indexrelid oid, OUT op_start timestamptz,
	OUT pass_start timestamptz, OUT pass_deleted bigint, OUT pass_left bigint, OUT pass_time_left interval,
	OUT index_deleted bigint, OUT index_left bigint)
RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'ttl_list_operations';

COMMENT ON FUNCTION list_operations() IS 'operations of the workers, for the view ttl_index.current_op';

CREATE VIEW current_op AS
SELECT a.pid, a.datname, o.operation, o.relid, o.indexrelid,
	t.schemaname, t.relname, x.relname AS indexrelname, o.op_start, a.wait_event_type, a.wait_event,
	o.pass_start, o.pass_deleted, o.pass_left, o.pass_time_left, o.index_deleted, o.index_left
FROM list_operations() AS o
JOIN pg_catalog.pg_stat_activity AS a ON a.pid OPERATOR(pg_catalog.=) o.pid
LEFT JOIN LATERAL relation_name(o.indexrelid) AS x
	ON a.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
LEFT JOIN LATERAL relation_name(o.relid) AS t
	ON a.datname OPERATOR(pg_catalog.=) pg_catalog.current_database();

COMMENT ON VIEW current_op IS
'what each worker of the monitor and of run_pass() is doing, and the progress of its pass; relid and indexrelid are of the database datname';

COMMENT ON COLUMN current_op.pid IS 'the process';
COMMENT ON COLUMN current_op.datname IS 'the database of the process';
COMMENT ON COLUMN current_op.operation IS 'visit; pass between two visits; wait for rate limit; wait for replication; wait for locks';
COMMENT ON COLUMN current_op.relid IS 'the table, in the database datname; NULL unless the operation is a visit';
COMMENT ON COLUMN current_op.indexrelid IS 'the index, in the database datname; NULL unless the operation is a visit';
COMMENT ON COLUMN current_op.schemaname IS 'the schema of the table; NULL if datname is another database, like the other names';
COMMENT ON COLUMN current_op.relname IS 'the name of the table';
COMMENT ON COLUMN current_op.indexrelname IS 'the name of the index';
COMMENT ON COLUMN current_op.op_start IS 'when the visit or the pass began';
COMMENT ON COLUMN current_op.wait_event_type IS 'as in pg_stat_activity';
COMMENT ON COLUMN current_op.wait_event IS 'as in pg_stat_activity';
COMMENT ON COLUMN current_op.pass_start IS 'when the pass began; NULL during a survey';
COMMENT ON COLUMN current_op.pass_deleted IS 'rows deleted in the pass before the current batch, without rows of dropped partitions';
COMMENT ON COLUMN current_op.pass_left IS 'estimate of the rows that are left of those that were due when the pass began; NULL without statistics';
COMMENT ON COLUMN current_op.pass_time_left IS 'estimate of the time that these rows need; NULL in the first seconds of the pass';
COMMENT ON COLUMN current_op.index_deleted IS 'rows deleted in the pass by this TTL index, with all partitions, before the current batch; NULL unless the operation is a visit';
COMMENT ON COLUMN current_op.index_left IS 'estimate of the rows that are left of those that were due by this TTL index when the pass began; NULL without statistics, and until it has deleted 1,000 rows for each of its partitions';

CREATE FUNCTION list_databases(
	OUT datid oid, OUT last_pass_start timestamptz, OUT last_pass_end timestamptz, OUT indexes integer,
	OUT not_active integer, OUT failing integer, OUT paused integer, OUT worst_lag interval,
	OUT pass_left bigint, OUT pass_time_left interval, OUT reason text)
RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'ttl_list_databases';

COMMENT ON FUNCTION list_databases() IS 'databases with TTL indexes, for the view ttl_index.databases';

CREATE VIEW databases AS
SELECT l.datid, d.datname, l.last_pass_start, l.last_pass_end, l.indexes, l.not_active, l.failing, l.paused,
	l.worst_lag, l.pass_left, l.pass_time_left, l.reason
FROM list_databases() AS l
JOIN pg_catalog.pg_database AS d ON d.oid OPERATOR(pg_catalog.=) l.datid;

COMMENT ON VIEW databases IS
'one row for each database of the server in which the monitor found TTL indexes';

COMMENT ON COLUMN databases.datid IS 'the database';
COMMENT ON COLUMN databases.datname IS 'its name';
COMMENT ON COLUMN databases.last_pass_start IS 'start of the monitor''s last pass; NULL for none since the monitor started';
COMMENT ON COLUMN databases.last_pass_end IS 'end of the last completed pass; before last_pass_start while a pass is running';
COMMENT ON COLUMN databases.indexes IS 'TTL indexes; a partitioned index counts as one';
COMMENT ON COLUMN databases.not_active IS 'of these, indexes that delete nothing; the view indexes of that database shows the reasons';
COMMENT ON COLUMN databases.failing IS 'of these, indexes whose last visit raised an error';
COMMENT ON COLUMN databases.paused IS 'of these, indexes that are paused and otherwise active';
COMMENT ON COLUMN databases.worst_lag IS 'longest lag of the indexes that are not paused, as of the last survey; NULL if unknown';
COMMENT ON COLUMN databases.pass_left IS 'estimate of the rows that are left in the running pass, as in current_op; NULL if no pass is running or it is unknown';
COMMENT ON COLUMN databases.pass_time_left IS 'estimate of the time that these rows need';
COMMENT ON COLUMN databases.reason IS 'why the monitor deletes nothing in the database; NULL if it does';

-- Written only by the C code, in the transaction that deletes, and only by insertion: updates
-- would get slower with each row version that an old snapshot keeps.  Each batch inserts a
-- row.  A survey folds the rows of an index into one row for the sum, without an hour, and
-- one for the current hour.  Rows with indexrelid 0 hold the passes and the sums of dropped
-- indexes.  For run_pass() relid is the role of the caller, and last_call the time.
CREATE TABLE counters (
	indexrelid oid NOT NULL,
	relid oid NOT NULL,
	hour timestamptz,
	schemaname text,
	relname text,
	indexrelname text,
	visits bigint NOT NULL,
	batches bigint NOT NULL,
	deleted_documents bigint NOT NULL,
	deleted_buckets bigint NOT NULL,
	archived_documents bigint NOT NULL,
	archived_buckets bigint NOT NULL,
	skipped_locked bigint NOT NULL,
	skipped_failed bigint NOT NULL,
	errors bigint NOT NULL,
	delete_time double precision NOT NULL,
	last_deleted timestamptz,
	last_error text,
	last_error_sqlstate text,
	last_error_role oid NOT NULL,
	last_error_time timestamptz,
	passes bigint NOT NULL,
	sub_passes bigint NOT NULL,
	last_pass_start timestamptz,
	last_pass_end timestamptz,
	last_cutoff timestamptz,
	stats_reset timestamptz,
	lag_pauses bigint NOT NULL,
	last_call timestamptz,
	recovered timestamptz
);

-- VACUUM would lock it exclusively to truncate it.
-- Its statistics are not used, and autovacuum would write 90 kB of them every 50 rows.
ALTER TABLE counters SET (vacuum_truncate = off, autovacuum_analyze_threshold = 2147483647);

COMMENT ON TABLE counters IS
'data of the views ttl_index.stats and ttl_index.index_stats, and of the current hour of ttl_index.history';

-- A time in the future is from before the clock was set back.
CREATE VIEW stats AS
SELECT coalesce(sum(passes), 0)::bigint AS passes,
	coalesce(sum(sub_passes), 0)::bigint AS sub_passes,
	coalesce(sum(deleted_documents), 0)::bigint AS deleted_documents,
	coalesce(sum(deleted_buckets), 0)::bigint AS deleted_buckets,
	coalesce(sum(archived_documents), 0)::bigint AS archived_documents,
	coalesce(sum(archived_buckets), 0)::bigint AS archived_buckets,
	coalesce(sum(skipped_locked), 0)::bigint AS skipped_locked,
	coalesce(sum(skipped_failed), 0)::bigint AS skipped_failed,
	coalesce(sum(errors), 0)::bigint AS errors,
	max(last_pass_start) FILTER (WHERE last_pass_start OPERATOR(pg_catalog.<=) pg_catalog.clock_timestamp())
		AS last_pass_start,
	max(last_pass_end) FILTER (WHERE last_pass_end OPERATOR(pg_catalog.<=) pg_catalog.clock_timestamp())
		AS last_pass_end,
	max(last_cutoff) FILTER (WHERE last_cutoff OPERATOR(pg_catalog.<=) pg_catalog.clock_timestamp())
		AS last_cutoff,
	max(stats_reset) FILTER (WHERE indexrelid OPERATOR(pg_catalog.=) 0) AS stats_reset,
	coalesce(sum(lag_pauses), 0)::bigint AS lag_pauses
FROM counters;

COMMENT ON VIEW stats IS
'one row: what all passes over this database have done since stats_reset';

COMMENT ON COLUMN stats.passes IS 'completed passes; idle passes are written with the next delete, or once a minute';
COMMENT ON COLUMN stats.sub_passes IS 'completed sub-passes';
COMMENT ON COLUMN stats.deleted_documents IS 'rows deleted, also by dropped indexes; for dropped partitions an estimate, unless count_dropped_documents is on';
COMMENT ON COLUMN stats.deleted_buckets IS 'partitions that were dropped, moved or detached';
COMMENT ON COLUMN stats.archived_documents IS 'of the deleted rows, those that were moved to an archive or detached with their partition';
COMMENT ON COLUMN stats.archived_buckets IS 'of these partitions, those that were moved to an archive or detached';
COMMENT ON COLUMN stats.skipped_locked IS 'rows, tables and indexes that were skipped because of a lock, and partitions that could not be dropped or created because of a lock';
COMMENT ON COLUMN stats.skipped_failed IS 'rows skipped because deleting them raised an error';
COMMENT ON COLUMN stats.errors IS 'visits that raised an error';
COMMENT ON COLUMN stats.last_pass_start IS 'start of the last pass';
COMMENT ON COLUMN stats.last_pass_end IS 'end of the last completed pass';
COMMENT ON COLUMN stats.last_cutoff IS 'the clock reading of the last sub-pass';
COMMENT ON COLUMN stats.stats_reset IS 'when the counters were reset; NULL for never';
COMMENT ON COLUMN stats.lag_pauses IS 'how often deletion paused for replication';

-- The text of an error can hold data that the code that raised it can read.  It is shown to
-- the owner of the table, if the code ran as that owner, and to roles that may read all
-- statistics.
CREATE VIEW index_stats AS
SELECT i.relid::oid AS relid, i.indexrelid::oid AS indexrelid, t.schemaname, t.relname,
	x.relname AS indexrelname,
	coalesce(c.visits, 0) AS visits,
	coalesce(c.batches, 0) AS batches,
	coalesce(c.deleted_documents, 0) AS deleted_documents,
	coalesce(c.deleted_buckets, 0) AS deleted_buckets,
	coalesce(c.archived_documents, 0) AS archived_documents,
	coalesce(c.archived_buckets, 0) AS archived_buckets,
	coalesce(c.skipped_locked, 0) AS skipped_locked,
	coalesce(c.skipped_failed, 0) AS skipped_failed,
	coalesce(c.errors, 0) AS errors,
	coalesce(c.delete_time, 0) AS delete_time,
	c.last_deleted,
	CASE WHEN (pg_catalog.pg_has_role(t.relowner, 'USAGE')
			AND (c.last_error_role OPERATOR(pg_catalog.=) 0 OR pg_catalog.pg_has_role(c.last_error_role, 'USAGE')))
		OR pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE') THEN c.last_error END AS last_error,
	c.last_error_sqlstate,
	c.last_error_time,
	greatest(s.stats_reset, c.stats_reset) AS stats_reset,
	i.logical_relid::oid AS logical_relid,
	i.logical_indexrelid::oid AS logical_indexrelid
FROM indexes AS i
CROSS JOIN LATERAL relation_name(i.relid) AS t
CROSS JOIN LATERAL relation_name(i.indexrelid) AS x
CROSS JOIN stats AS s
LEFT JOIN (
	SELECT indexrelid,
		sum(visits)::bigint AS visits,
		sum(batches)::bigint AS batches,
		sum(deleted_documents)::bigint AS deleted_documents,
		sum(deleted_buckets)::bigint AS deleted_buckets,
		sum(archived_documents)::bigint AS archived_documents,
		sum(archived_buckets)::bigint AS archived_buckets,
		sum(skipped_locked)::bigint AS skipped_locked,
		sum(skipped_failed)::bigint AS skipped_failed,
		sum(errors)::bigint AS errors,
		round(sum(delete_time)::numeric, 3)::double precision AS delete_time,
		max(last_deleted) FILTER (WHERE last_deleted OPERATOR(pg_catalog.<=) pg_catalog.clock_timestamp())
			AS last_deleted,
		(pg_catalog.array_agg(last_error ORDER BY last_error_time DESC)
			FILTER (WHERE last_error_time OPERATOR(pg_catalog.<=) pg_catalog.clock_timestamp()))[1]
			AS last_error,
		(pg_catalog.array_agg(last_error_sqlstate ORDER BY last_error_time DESC)
			FILTER (WHERE last_error_time OPERATOR(pg_catalog.<=) pg_catalog.clock_timestamp()))[1]
			AS last_error_sqlstate,
		(pg_catalog.array_agg(last_error_role ORDER BY last_error_time DESC)
			FILTER (WHERE last_error_time OPERATOR(pg_catalog.<=) pg_catalog.clock_timestamp()))[1]
			AS last_error_role,
		max(last_error_time) FILTER (WHERE last_error_time OPERATOR(pg_catalog.<=) pg_catalog.clock_timestamp())
			AS last_error_time,
		max(stats_reset) AS stats_reset
	FROM counters GROUP BY indexrelid
) AS c ON c.indexrelid OPERATOR(pg_catalog.=) i.indexrelid
WHERE i.parent_indexrelid IS NULL AND t.relname IS NOT NULL AND x.relname IS NOT NULL;

COMMENT ON VIEW index_stats IS
'one row for each TTL index: what all passes have done by it since stats_reset';

COMMENT ON COLUMN index_stats.relid IS 'the table';
COMMENT ON COLUMN index_stats.indexrelid IS 'the index';
COMMENT ON COLUMN index_stats.schemaname IS 'the schema of the table';
COMMENT ON COLUMN index_stats.relname IS 'the name of the table';
COMMENT ON COLUMN index_stats.indexrelname IS 'the name of the index';
COMMENT ON COLUMN index_stats.visits IS 'visits that found something due';
COMMENT ON COLUMN index_stats.batches IS 'transactions of these visits';
COMMENT ON COLUMN index_stats.deleted_documents IS 'rows deleted; for dropped partitions an estimate, unless count_dropped_documents is on';
COMMENT ON COLUMN index_stats.deleted_buckets IS 'partitions that were dropped, moved or detached';
COMMENT ON COLUMN index_stats.archived_documents IS 'of the deleted rows, those that were moved to an archive or detached with their partition';
COMMENT ON COLUMN index_stats.archived_buckets IS 'of these partitions, those that were moved to an archive or detached';
COMMENT ON COLUMN index_stats.skipped_locked IS 'rows that were skipped because of a lock, how often the index was locked (once in a pass), and partitions that could not be dropped or created because of a lock';
COMMENT ON COLUMN index_stats.skipped_failed IS 'rows skipped because deleting them raised an error';
COMMENT ON COLUMN index_stats.errors IS 'visits that raised an error';
COMMENT ON COLUMN index_stats.delete_time IS 'time spent in batches, in milliseconds';
COMMENT ON COLUMN index_stats.last_deleted IS 'when it last deleted a row, or dropped a partition with rows';
COMMENT ON COLUMN index_stats.last_error IS 'text of the last error; it can hold data of the table, so it is NULL unless the reader is the owner, as whose code raised it, or may read all statistics';
COMMENT ON COLUMN index_stats.last_error_sqlstate IS 'the SQLSTATE of the last error';
COMMENT ON COLUMN index_stats.last_error_time IS 'when the last error was raised; it stays after the state failing has ended';
COMMENT ON COLUMN index_stats.stats_reset IS 'when these counters were reset; NULL for never';
COMMENT ON COLUMN index_stats.logical_relid IS 'for a shard of Citus: the distributed table; else NULL';
COMMENT ON COLUMN index_stats.logical_indexrelid IS 'for a shard of Citus: the index of the distributed table; else NULL';

CREATE FUNCTION stats_reset()
RETURNS void LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_stats_reset';

COMMENT ON FUNCTION stats_reset() IS
'resets all counters of ttl_index in this database; for superusers unless granted';

CREATE FUNCTION stats_reset(index regclass)
RETURNS void LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_stats_reset_index';

COMMENT ON FUNCTION stats_reset(regclass) IS
'resets the counters and the last error of one TTL index; the sums in stats do not change; for superusers unless granted';

-- The counts of past hours.  The sums in counters include them.
CREATE TABLE past_hours (
	hour timestamptz NOT NULL,
	indexrelid oid NOT NULL,
	relid oid NOT NULL,
	schemaname text,
	relname text,
	indexrelname text,
	deleted_documents bigint NOT NULL,
	deleted_buckets bigint NOT NULL,
	archived_documents bigint NOT NULL,
	archived_buckets bigint NOT NULL,
	batches bigint NOT NULL,
	delete_time double precision NOT NULL,
	errors bigint NOT NULL,
	skipped_locked bigint NOT NULL,
	skipped_failed bigint NOT NULL
);

COMMENT ON TABLE past_hours IS
'data of the view ttl_index.history, except for the current hour';

CREATE FUNCTION ignore_subscription()
RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'ttl_ignore_subscription';

COMMENT ON FUNCTION ignore_subscription() IS
'trigger function: skips the rows of another server that a subscription to all tables brings';

-- Only a subscription fires these triggers: the library writes the tables without a command.
CREATE TRIGGER ignore_subscription BEFORE INSERT OR UPDATE OR DELETE ON counters
	FOR EACH ROW EXECUTE FUNCTION ignore_subscription();
ALTER TABLE counters ENABLE REPLICA TRIGGER ignore_subscription;
CREATE TRIGGER ignore_subscription BEFORE INSERT OR UPDATE OR DELETE ON past_hours
	FOR EACH ROW EXECUTE FUNCTION ignore_subscription();
ALTER TABLE past_hours ENABLE REPLICA TRIGGER ignore_subscription;
CREATE TRIGGER ignore_subscription BEFORE INSERT OR UPDATE OR DELETE ON saved_options
	FOR EACH ROW EXECUTE FUNCTION ignore_subscription();
ALTER TABLE saved_options ENABLE REPLICA TRIGGER ignore_subscription;

-- An existing index has its current names, a dropped index its last names.  Rows are grouped
-- by name, so that an index keeps its rows after REINDEX CONCURRENTLY.
CREATE VIEW history AS
SELECT h.hour,
	coalesce(t.schemaname, h.schemaname::name) AS schemaname,
	coalesce(t.relname, h.relname::name) AS relname,
	coalesce(x.relname, h.indexrelname::name) AS indexrelname,
	sum(h.deleted_documents)::bigint AS deleted_documents,
	sum(h.deleted_buckets)::bigint AS deleted_buckets,
	sum(h.archived_documents)::bigint AS archived_documents,
	sum(h.archived_buckets)::bigint AS archived_buckets,
	sum(h.batches)::bigint AS batches,
	round(sum(h.delete_time)::numeric, 3)::double precision AS delete_time,
	sum(h.errors)::bigint AS errors,
	sum(h.skipped_locked)::bigint AS skipped_locked,
	sum(h.skipped_failed)::bigint AS skipped_failed
FROM (
	SELECT * FROM past_hours
	UNION ALL
	SELECT hour, indexrelid, relid, schemaname, relname, indexrelname, deleted_documents, deleted_buckets,
		archived_documents, archived_buckets, batches, delete_time, errors, skipped_locked, skipped_failed
	FROM counters WHERE hour IS NOT NULL
) AS h
LEFT JOIN (
	pg_catalog.pg_index AS i
	CROSS JOIN LATERAL relation_name(i.indexrelid) AS x
	CROSS JOIN LATERAL relation_name(i.indrelid) AS t
) ON i.indexrelid OPERATOR(pg_catalog.=) h.indexrelid AND i.indrelid OPERATOR(pg_catalog.=) h.relid
GROUP BY 1, 2, 3, 4;

COMMENT ON VIEW history IS
'one row for each TTL index and hour in which it deleted rows, skipped rows or failed; kept for ttl_index.history_retention, also after the index is dropped';

COMMENT ON COLUMN history.hour IS 'start of the hour, in UTC';
COMMENT ON COLUMN history.schemaname IS 'the schema of the table';
COMMENT ON COLUMN history.relname IS 'the name of the table; the last known name if the index was dropped';
COMMENT ON COLUMN history.indexrelname IS 'the name of the index; the last known name if it was dropped';
COMMENT ON COLUMN history.deleted_documents IS 'rows deleted; for dropped partitions an estimate, unless count_dropped_documents is on';
COMMENT ON COLUMN history.deleted_buckets IS 'partitions that were dropped, moved or detached';
COMMENT ON COLUMN history.archived_documents IS 'of the deleted rows, those that were moved to an archive or detached with their partition';
COMMENT ON COLUMN history.archived_buckets IS 'of these partitions, those that were moved to an archive or detached';
COMMENT ON COLUMN history.batches IS 'transactions of these deletes';
COMMENT ON COLUMN history.delete_time IS 'time spent in batches, in milliseconds';
COMMENT ON COLUMN history.errors IS 'visits that raised an error';
COMMENT ON COLUMN history.skipped_locked IS 'rows, indexes and partitions that were skipped because of a lock, as in index_stats';
COMMENT ON COLUMN history.skipped_failed IS 'rows skipped because deleting them raised an error';

--
-- The nodes of a Citus cluster; without Citus, this server.
--

CREATE FUNCTION ask_nodes(query text, OUT nodeid integer, OUT nodename text, OUT nodeport integer,
	OUT error text, OUT answer jsonb)
RETURNS SETOF record LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	has_nodes boolean := false;
BEGIN
	IF pg_catalog.to_regclass('pg_catalog.pg_dist_node') IS NOT NULL THEN
		EXECUTE 'SELECT EXISTS (SELECT FROM pg_catalog.pg_dist_node)' INTO has_nodes;
	END IF;
	IF NOT has_nodes THEN
		nodeid := 0;
		EXECUTE query INTO answer;
		RETURN NEXT;
		RETURN;
	END IF;
	RETURN QUERY EXECUTE 'SELECT r.nodeid, n.nodename, n.nodeport,
			CASE WHEN NOT r.success THEN r.result END, CASE WHEN r.success THEN r.result::pg_catalog.jsonb END
		FROM pg_catalog.run_command_on_all_nodes($1) AS r LEFT JOIN pg_catalog.pg_dist_node AS n ON n.nodeid = r.nodeid
		ORDER BY 1' USING query;
END
$$;

COMMENT ON FUNCTION ask_nodes(text) IS
'runs a query that returns one jsonb on each node of a Citus cluster, as the caller; error shows why a node did not answer';

CREATE VIEW cluster_stats AS
SELECT a.nodeid, a.nodename, a.nodeport, a.error,
	a.answer OPERATOR(pg_catalog.->>) 'version' AS version,
	a.answer OPERATOR(pg_catalog.->>) 'monitor' AS monitor, s.*
FROM ask_nodes($$
SELECT pg_catalog.to_jsonb(s) OPERATOR(pg_catalog.||) pg_catalog.jsonb_build_object(
	'version', e.extversion, 'monitor', m.status)
FROM ttl_index.stats AS s CROSS JOIN ttl_index.monitor_status() AS m
CROSS JOIN pg_catalog.pg_extension AS e WHERE e.extname OPERATOR(pg_catalog.=) 'ttl_index'
$$) AS a
CROSS JOIN LATERAL pg_catalog.jsonb_populate_record(NULL::stats, a.answer) AS s;

COMMENT ON VIEW cluster_stats IS
'one row for each node of a Citus cluster, with its ttl_index.stats; only the error if a node did not answer';

COMMENT ON COLUMN cluster_stats.nodeid IS 'the node, as in pg_dist_node; 0 without a cluster';
COMMENT ON COLUMN cluster_stats.nodename IS 'the name of its host';
COMMENT ON COLUMN cluster_stats.nodeport IS 'its port';
COMMENT ON COLUMN cluster_stats.error IS 'why the node did not answer; else NULL';
COMMENT ON COLUMN cluster_stats.version IS 'the version of the extension on the node';
COMMENT ON COLUMN cluster_stats.monitor IS 'the status of monitor_status() on the node';

CREATE VIEW cluster_index_stats AS
WITH nodes AS MATERIALIZED (
	SELECT * FROM ask_nodes($$
SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.to_jsonb(s) OPERATOR(pg_catalog.||) pg_catalog.jsonb_build_object(
	'state', i.state, 'schemaname', t.schemaname, 'relname', t.relname, 'indexrelname', x.relname)), '[]')
FROM ttl_index.index_stats AS s
JOIN ttl_index.indexes AS i ON i.indexrelid::pg_catalog.oid OPERATOR(pg_catalog.=) s.indexrelid
CROSS JOIN LATERAL ttl_index.relation_name(coalesce(s.logical_relid, s.relid)) AS t
CROSS JOIN LATERAL ttl_index.relation_name(coalesce(s.logical_indexrelid, s.indexrelid)) AS x
$$)
)
SELECT p.schemaname, p.relname, p.indexrelname,
	count(p.logical_relid)::integer AS shards,
	(count(*) FILTER (WHERE p.state OPERATOR(pg_catalog.<>) 'active'))::integer AS not_active,
	(SELECT count(*) FROM nodes WHERE error IS NOT NULL)::integer AS nodes_without_answer,
	sum(p.visits)::bigint AS visits,
	sum(p.batches)::bigint AS batches,
	sum(p.deleted_documents)::bigint AS deleted_documents,
	sum(p.deleted_buckets)::bigint AS deleted_buckets,
	sum(p.skipped_locked)::bigint AS skipped_locked,
	sum(p.skipped_failed)::bigint AS skipped_failed,
	sum(p.errors)::bigint AS errors,
	round(sum(p.delete_time)::numeric, 3)::double precision AS delete_time,
	max(p.last_deleted) AS last_deleted,
	(pg_catalog.array_agg(p.last_error ORDER BY p.last_error_time DESC NULLS LAST))[1] AS last_error,
	(pg_catalog.array_agg(p.last_error_sqlstate ORDER BY p.last_error_time DESC NULLS LAST))[1] AS last_error_sqlstate,
	max(p.last_error_time) AS last_error_time
FROM nodes AS n
CROSS JOIN LATERAL pg_catalog.jsonb_to_recordset(n.answer) AS p (schemaname name, relname name, indexrelname name,
	logical_relid oid, state text, visits bigint, batches bigint, deleted_documents bigint, deleted_buckets bigint,
	skipped_locked bigint, skipped_failed bigint, errors bigint, delete_time double precision,
	last_deleted timestamptz, last_error text, last_error_sqlstate text, last_error_time timestamptz)
GROUP BY 1, 2, 3;

COMMENT ON VIEW cluster_index_stats IS
'one row for each TTL index of a Citus cluster: the sum of ttl_index.index_stats over the table, its shards and all nodes';

COMMENT ON COLUMN cluster_index_stats.schemaname IS 'the schema of the table';
COMMENT ON COLUMN cluster_index_stats.relname IS 'the name of the table, not of a shard';
COMMENT ON COLUMN cluster_index_stats.indexrelname IS 'the name of its index';
COMMENT ON COLUMN cluster_index_stats.shards IS 'number of shards in the sums; 0 for a table that is not distributed';
COMMENT ON COLUMN cluster_index_stats.not_active IS 'number of its indexes, of shards and of the table on each node, that are not active';
COMMENT ON COLUMN cluster_index_stats.nodes_without_answer IS 'number of nodes that are missing in the sums: see cluster_stats';

-- Rows of a shard that was moved or split have the names of the shard.  They count for the
-- table with the same name without the number, if it has such an index.
CREATE VIEW cluster_history AS
WITH nodes AS MATERIALIZED (
	SELECT * FROM ask_nodes($$
WITH known AS MATERIALIZED (
	SELECT s.schemaname, s.relname, s.indexrelname, t.relname AS whole, x.relname AS index_of_whole
	FROM ttl_index.index_stats AS s
	CROSS JOIN LATERAL ttl_index.relation_name(coalesce(s.logical_relid, s.relid)) AS t
	CROSS JOIN LATERAL ttl_index.relation_name(coalesce(s.logical_indexrelid, s.indexrelid)) AS x
)
SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.to_jsonb(h) OPERATOR(pg_catalog.||) pg_catalog.jsonb_build_object(
	'relname', coalesce(k.whole, g.whole, h.relname),
	'indexrelname', coalesce(k.index_of_whole, g.index_of_whole, h.indexrelname))), '[]')
FROM ttl_index.history AS h
LEFT JOIN known AS k ON k.schemaname OPERATOR(pg_catalog.=) h.schemaname
	AND k.relname OPERATOR(pg_catalog.=) h.relname AND k.indexrelname OPERATOR(pg_catalog.=) h.indexrelname
LEFT JOIN known AS g ON g.schemaname OPERATOR(pg_catalog.=) h.schemaname
	AND pg_catalog.concat(g.relname, pg_catalog.substring(h.relname::pg_catalog.text, '_[1-9][0-9]{5,}$'))
		OPERATOR(pg_catalog.=) h.relname::pg_catalog.text
	AND pg_catalog.concat(g.indexrelname, pg_catalog.substring(h.relname::pg_catalog.text, '_[1-9][0-9]{5,}$'))
		OPERATOR(pg_catalog.=) h.indexrelname::pg_catalog.text
	AND k.whole IS NULL
$$)
)
SELECT p.hour, p.schemaname, p.relname, p.indexrelname,
	sum(p.deleted_documents)::bigint AS deleted_documents,
	sum(p.deleted_buckets)::bigint AS deleted_buckets,
	sum(p.archived_documents)::bigint AS archived_documents,
	sum(p.archived_buckets)::bigint AS archived_buckets,
	sum(p.batches)::bigint AS batches,
	round(sum(p.delete_time)::numeric, 3)::double precision AS delete_time,
	sum(p.errors)::bigint AS errors,
	sum(p.skipped_locked)::bigint AS skipped_locked,
	sum(p.skipped_failed)::bigint AS skipped_failed
FROM nodes AS n
CROSS JOIN LATERAL pg_catalog.jsonb_populate_recordset(NULL::history, n.answer) AS p
GROUP BY 1, 2, 3, 4;

COMMENT ON VIEW cluster_history IS
'one row for each TTL index of a Citus cluster and hour: the sum of ttl_index.history over the table, its shards and all nodes that answered';

-- The other columns have the comments of the views that they sum up.
DO $$
DECLARE
	command text;
BEGIN
	FOR command IN
		SELECT format('COMMENT ON COLUMN ttl_index.%I.%I IS %L', c.relname, a.attname, col_description(b.attrelid, b.attnum))
		FROM (VALUES ('cluster_stats', 'stats'), ('cluster_index_stats', 'index_stats'),
			('cluster_history', 'history')) AS v (relname, source)
		JOIN pg_class AS c ON c.relname = v.relname AND c.relnamespace = 'ttl_index'::regnamespace
		JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
		JOIN pg_class AS s ON s.relname = v.source AND s.relnamespace = c.relnamespace
		JOIN pg_attribute AS b ON b.attrelid = s.oid AND b.attname = a.attname
		WHERE col_description(a.attrelid, a.attnum) IS NULL
	LOOP
		EXECUTE command;
	END LOOP;
END
$$;

--
-- DDL raises the errors of create_index.  The event triggers are in C, because they run with
-- the privileges of the role that runs the command: SQL in them could fail for lack of
-- privileges.  It would also be slow and add CONTEXT lines to each error.
--

CREATE FUNCTION on_ddl()
RETURNS event_trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'ttl_on_ddl';

COMMENT ON FUNCTION on_ddl() IS 'event trigger function: checks the TTL indexes that a command created or changed';

CREATE EVENT TRIGGER ttl_index_ddl ON ddl_command_end
	WHEN TAG IN ('CREATE INDEX', 'CREATE TABLE', 'CREATE SCHEMA', 'ALTER TABLE', 'ALTER INDEX')
	EXECUTE FUNCTION on_ddl();

COMMENT ON EVENT TRIGGER ttl_index_ddl IS
'raises an error for an index that cannot be a TTL index, as create_index() does';

CREATE FUNCTION on_alter_index()
RETURNS event_trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'ttl_on_alter_index';

COMMENT ON FUNCTION on_alter_index() IS
'event trigger function: changes the options of an index of a Citus table, on each node that receives the command of coll_mod';

CREATE EVENT TRIGGER ttl_index_before_alter_index ON ddl_command_start
	WHEN TAG IN ('ALTER INDEX')
	EXECUTE FUNCTION on_alter_index();

COMMENT ON EVENT TRIGGER ttl_index_before_alter_index IS 'changes the options of Citus tables on each node';

--
-- Privileges are set explicitly, whatever ALTER DEFAULT PRIVILEGES says.  Every role that
-- reads a table needs EXECUTE on the options.  Nobody else may write the counters or create
-- objects in the schema.
--

DO $$
DECLARE
	command text;
BEGIN
	FOR command IN
		SELECT pg_catalog.format('REVOKE ALL ON %s FROM %s', o.name,
			CASE WHEN a.grantee OPERATOR(pg_catalog.=) 0 THEN 'PUBLIC'
				ELSE pg_catalog.format('%I', pg_catalog.pg_get_userbyid(a.grantee)) END)
		FROM (
			SELECT 'SCHEMA ttl_index' AS name, nspacl AS acl FROM pg_catalog.pg_namespace
			WHERE oid OPERATOR(pg_catalog.=) 'ttl_index'::regnamespace
			UNION ALL
			SELECT pg_catalog.format('TABLE ttl_index.%I', relname), relacl FROM pg_catalog.pg_class
			WHERE relnamespace OPERATOR(pg_catalog.=) 'ttl_index'::regnamespace AND relacl IS NOT NULL
			UNION ALL
			SELECT pg_catalog.format('ROUTINE ttl_index.%I(%s)', proname, pg_catalog.pg_get_function_identity_arguments(oid)), proacl
			FROM pg_catalog.pg_proc WHERE pronamespace OPERATOR(pg_catalog.=) 'ttl_index'::regnamespace
		) AS o, LATERAL pg_catalog.aclexplode(o.acl) AS a
		WHERE a.grantee OPERATOR(pg_catalog.<>) a.grantor
		GROUP BY o.name, a.grantee
	LOOP
		EXECUTE command;
	END LOOP;
END
$$;

GRANT USAGE ON SCHEMA ttl_index TO PUBLIC;

GRANT EXECUTE ON FUNCTION
	expire_after_seconds(integer, integer),
	time_zone(text, text),
	drop_expired_partitions(boolean, boolean),
	bucket_max_span_seconds(integer, integer),
	paused(boolean, boolean),
	archive_to(regclass, regclass),
	detach_expired_partitions(boolean, boolean),
	seconds(interval),
	earliest(timestamptz[]),
	document_date(jsonb, text[]),
	document_ttl(jsonb, text),
	column_ttl(bigint),
	expire_at(timestamptz, integer),
	create_index_command(regclass, text, bigint, text, text, text, name, boolean, boolean, boolean, boolean, regclass, boolean),
	create_index(regclass, text, bigint, text, text, text, name, boolean, boolean, boolean, boolean, regclass, boolean),
	coll_mod(regclass, text, bigint, text, boolean, boolean, regclass, boolean, boolean),
	coll_mod_index(regclass, bigint, text, boolean, boolean, regclass, boolean, boolean),
	pause_index(regclass),
	unpause_index(regclass),
	remove_ttl(regclass),
	remove_all_ttl(),
	drop_index(regclass, text),
	create_time_series(regclass, text, text, text, bigint, integer, text, boolean),
	set_last_modified(),
	track_last_modified(regclass, name),
	untrack_last_modified(regclass, name),
	due_count(regclass),
	oldest_due(regclass),
	lag(regclass),
	preview(regclass, integer),
	forecast(regclass, interval, integer),
	cutoff(regclass),
	list_indexes(),
	index_key(regclass),
	index_filter(regclass),
	index_document_ttl(regclass),
	relation_name(oid),
	ask_nodes(text),
	monitor_status()
TO PUBLIC;

GRANT EXECUTE ON PROCEDURE run_pass() TO PUBLIC;

REVOKE ALL ON FUNCTION resume(), stats_reset(), stats_reset(regclass), list_operations(), list_databases(), on_ddl(), on_alter_index(),
	ignore_subscription() FROM PUBLIC;
REVOKE ALL ON TABLE counters, past_hours, saved_options FROM PUBLIC;

GRANT SELECT ON indexes, stats, index_stats, cluster_stats, cluster_index_stats TO PUBLIC;
GRANT SELECT ON history, cluster_history TO PUBLIC;
GRANT EXECUTE ON FUNCTION list_operations(), list_databases() TO pg_monitor;
GRANT SELECT ON counters, past_hours, current_op, databases TO pg_monitor;

-- The extension works without the monitor, but then nothing is deleted in the background.
DO $$
DECLARE
	monitor record;
BEGIN
	SELECT * INTO monitor FROM ttl_index.monitor_status();
	IF monitor.status IN ('not_preloaded', 'no_launcher') THEN
		RAISE WARNING 'rows that expire will not be deleted by themselves'
			USING DETAIL = pg_catalog.format('No monitor: %s.', monitor.reason), HINT = monitor.hint;
	END IF;
END
$$;
