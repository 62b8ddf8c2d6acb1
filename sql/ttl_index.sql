/* sql/ttl_index.sql: the definition of the extension, from top to bottom */

-- A released version of this file changes together with a script ttl_index--OLD--NEW.sql, and
-- with the old file as test/released/ttl_index--OLD.sql; test 033_extension_update compares the
-- two ways.  A new library runs with the objects of the old file until ALTER EXTENSION UPDATE,
-- so the arguments and the result of a C function never change: a new function is added
-- instead.  Each script starts with SET LOCAL search_path = ttl_index, pg_temp.

\echo Use "CREATE EXTENSION ttl_index" to load this file. \quit

-- The schema ttl_index is a member of the extension, so CREATE EXTENSION restores it and DROP
-- EXTENSION drops it.  The schema that the control file names cannot be a member, so that is
-- pg_catalog, and each script sets search_path itself.
--
-- An existing schema of another role is refused, because that role would own the schema of the
-- extension.  An empty one of a superuser is replaced, without its grants: frameworks that
-- restore schemas before extensions create one.
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
-- The library writes its tables with the functions of heap.
SET LOCAL default_table_access_method = heap;

COMMENT ON SCHEMA ttl_index IS
'functions, views and tables of the extension ttl_index';

-- The control file made this comment.  A dump would include it, and only a superuser could
-- restore that.
COMMENT ON EXTENSION ttl_index IS NULL;

-- REINDEX CONCURRENTLY loses an option if the predicate contains nothing else.  A dump does not
-- need the table, because CREATE INDEX writes it.  An index depends on one of its columns, whose
-- number identifies the row.  The table is created before the functions, so that errors of DROP
-- EXTENSION name the functions.
CREATE TABLE saved_options (
	relid oid NOT NULL,
	key_hash bigint NOT NULL,
	slot integer NOT NULL,
	indexrelid oid NOT NULL,
	expire_after_seconds integer NOT NULL,
	time_zone text,
	unit text,
	paused boolean NOT NULL,
	archive_to oid NOT NULL,
	PRIMARY KEY (relid, key_hash, slot)
);
-- clients that decode the WAL do not need the old rows
ALTER TABLE saved_options REPLICA IDENTITY NOTHING;

COMMENT ON TABLE saved_options IS
'the option of each TTL index without a filter; a pass restores it after REINDEX CONCURRENTLY, which loses it';

--
-- Options: functions that are always true.  The planner folds them to true, and
-- pg_index.indpred keeps them.  They are aliases of built-in functions, so that queries do not
-- need our library.  An update of the extension never drops or redefines them.
--

CREATE FUNCTION expire_after_seconds(seconds integer, minimum integer DEFAULT -2147483648)
RETURNS boolean LANGUAGE internal IMMUTABLE PARALLEL SAFE AS 'int4ge';

COMMENT ON FUNCTION expire_after_seconds(integer, integer) IS
'option of a TTL index, in the WHERE clause of CREATE INDEX: a row expires this number of seconds (0 to 2147483647) after the date in the index key; -1 (never) is allowed with document_ttl(...) IS NULL, column_ttl(...) IS NULL or bucket_max_span_seconds(...)';

-- STRICT, because the built-in function would dereference a NULL.
CREATE FUNCTION time_zone(zone text, minimum text DEFAULT '')
RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'text_pattern_ge';

COMMENT ON FUNCTION time_zone(text, text) IS
'option of a TTL index whose key is of type timestamp or date: the time zone of the key, a name of pg_timezone_names';

CREATE FUNCTION unit(unit text, minimum text DEFAULT '')
RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'text_pattern_ge';

COMMENT ON FUNCTION unit(text, text) IS
'option of a TTL index whose key is a number or a UUID: what the number counts since 1970 (seconds, milliseconds, microseconds or nanoseconds), or uuidv7; zero and negative numbers, and UUIDs of other versions, never expire';

CREATE FUNCTION drop_expired_partitions(delete_boundary_rows boolean DEFAULT false, minimum boolean DEFAULT false)
RETURNS boolean LANGUAGE internal IMMUTABLE PARALLEL SAFE AS 'boolge';

COMMENT ON FUNCTION drop_expired_partitions(boolean, boolean) IS
'option of a TTL index on a table that is range-partitioned by its key: a partition is dropped as soon as its upper bound is due; with true, due rows of the other partitions are deleted one by one';

CREATE FUNCTION bucket_max_span_seconds(seconds integer, minimum integer DEFAULT -2147483648)
RETURNS boolean LANGUAGE internal IMMUTABLE PARALLEL SAFE AS 'int4ge';

COMMENT ON FUNCTION bucket_max_span_seconds(integer, integer) IS
'option of a TTL index on a table that is range-partitioned by its key: the monitor creates partitions of this span (60 to 31536000 seconds) ahead of the clock';

CREATE FUNCTION paused(paused boolean DEFAULT true, minimum boolean DEFAULT false)
RETURNS boolean LANGUAGE internal IMMUTABLE PARALLEL SAFE AS 'boolge';

COMMENT ON FUNCTION paused(boolean, boolean) IS
'option of a TTL index: nothing is deleted; pause_index() and unpause_index() set and remove it';

CREATE FUNCTION archive_to(target regclass, minimum regclass DEFAULT '-')
RETURNS boolean LANGUAGE internal IMMUTABLE PARALLEL SAFE AS 'oidge';

COMMENT ON FUNCTION archive_to(regclass, regclass) IS
'option of a TTL index: due rows are moved to this table, by column name and in one transaction, instead of being deleted';

CREATE FUNCTION detach_expired_partitions(detach boolean DEFAULT true, minimum boolean DEFAULT false)
RETURNS boolean LANGUAGE internal IMMUTABLE PARALLEL SAFE AS 'boolge';

COMMENT ON FUNCTION detach_expired_partitions(boolean, boolean) IS
'option of a TTL index on a table that is range-partitioned by its key: a partition is detached as soon as its upper bound is due, and remains as a table without TTL';

-- Not in C, because queries on a table whose option calls it must not need our library.
-- PL/pgSQL is several times as fast as SQL when the planner folds the call.
CREATE FUNCTION seconds(span interval)
RETURNS integer LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
	epoch numeric;
BEGIN
	IF pg_catalog.isfinite(span) THEN
		IF extract(year FROM span) OPERATOR(pg_catalog.<>) 0 OR extract(month FROM span) OPERATOR(pg_catalog.<>) 0 THEN
			RAISE EXCEPTION 'an interval with months or years has no fixed number of seconds: %', span
				USING ERRCODE = 'invalid_parameter_value', HINT = 'Write days: ttl_index.seconds(''30 days''). For calendar months, index ((at AT TIME ZONE ''UTC'' + interval ''1 month'') AT TIME ZONE ''UTC'') with 0 seconds.';
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
'converts an interval of weeks, days, hours, minutes and whole seconds to seconds, for example expire_after_seconds(ttl_index.seconds(''30 days'')); raises an error for months and years, whose length varies';

-- An argument that is a number of seconds or an interval.  With an overloaded function, a literal
-- or a parameter without a type would be ambiguous.
CREATE TYPE duration;

CREATE FUNCTION duration_in(cstring)
RETURNS duration LANGUAGE C STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_duration_in';

COMMENT ON FUNCTION duration_in(cstring) IS 'input function of the type ttl_index.duration';

CREATE FUNCTION duration_out(duration)
RETURNS cstring LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'int8out';

COMMENT ON FUNCTION duration_out(duration) IS 'output function of the type ttl_index.duration';

CREATE TYPE duration (INPUT = duration_in, OUTPUT = duration_out, LIKE = bigint);

COMMENT ON TYPE duration IS
'type of arguments: a number of seconds, or an interval such as ''30 days''';

CREATE CAST (bigint AS duration) WITHOUT FUNCTION AS IMPLICIT;
-- by way of text: pg_dump may write these before the one that int8() would need
CREATE CAST (integer AS duration) WITH INOUT AS IMPLICIT;
CREATE CAST (smallint AS duration) WITH INOUT AS IMPLICIT;

CREATE FUNCTION duration(span interval)
RETURNS duration LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ttl_index.seconds(span);

COMMENT ON FUNCTION duration(interval) IS 'converts an interval as ttl_index.seconds() does';

CREATE CAST (interval AS duration) WITH FUNCTION duration(interval) AS IMPLICIT;

--
-- Keys
--

CREATE FUNCTION earliest(dates timestamptz[])
RETURNS timestamptz LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_earliest';

COMMENT ON FUNCTION earliest(timestamptz[]) IS
'returns the earliest date in an array, or NULL if it has none; use it as the key of a TTL index on an array column';

CREATE FUNCTION document_date(document jsonb, VARIADIC path text[])
RETURNS timestamptz LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_document_date';

COMMENT ON FUNCTION document_date(jsonb, text[]) IS
'returns the earliest date at a path of a document, or NULL if it has none; a date is {"$date": ...} or a string in the format of RFC 3339 with an offset; use it as the key of a TTL index on a jsonb column';

CREATE FUNCTION document_date_in(document jsonb, unit_or_time_zone text, VARIADIC path text[])
RETURNS timestamptz LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_document_date_in';

COMMENT ON FUNCTION document_date_in(jsonb, text, text[]) IS
'the same as document_date(), and reads numbers above 0 in a unit (seconds, milliseconds, microseconds or nanoseconds since 1970), or strings without an offset in a time zone';

CREATE FUNCTION document_ttl(document jsonb, field text DEFAULT 'ttl')
RETURNS integer LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_document_ttl';

COMMENT ON FUNCTION document_ttl(jsonb, text) IS
'returns the TTL in a top-level field of a document: a whole number of seconds (1 to 2147483647) or -1 for never, as a JSON number or in Extended JSON; returns NULL for anything else';

CREATE FUNCTION column_ttl(ttl bigint)
RETURNS integer LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_column_ttl';

COMMENT ON FUNCTION column_ttl(bigint) IS
'returns the TTL in an integer column: a number of seconds (1 to 2147483647) or -1 for never; returns NULL for anything else';

CREATE FUNCTION expire_at(since timestamptz, ttl integer)
RETURNS timestamptz LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_expire_at';

COMMENT ON FUNCTION expire_at(timestamptz, integer) IS
'returns the time at which a document with its own TTL expires: since plus ttl seconds; returns infinity if that is out of range, and NULL unless ttl is between 1 and 2147483647';

--
-- Creating, changing and dropping TTL indexes
--

CREATE FUNCTION create_index_command(relation regclass, key text, expire_after_seconds duration,
	partial_filter_expression text DEFAULT NULL, time_zone text DEFAULT NULL,
	document_ttl_field text DEFAULT NULL, name name DEFAULT NULL,
	drop_expired_partitions boolean DEFAULT NULL, delete_boundary_rows boolean DEFAULT NULL,
	concurrently boolean DEFAULT false, paused boolean DEFAULT NULL, archive_to regclass DEFAULT NULL,
	detach_expired_partitions boolean DEFAULT NULL, unit text DEFAULT NULL)
RETURNS SETOF text LANGUAGE C STABLE PARALLEL UNSAFE ROWS 1
AS 'MODULE_PATHNAME', 'ttl_create_index_command';

COMMENT ON FUNCTION create_index_command(regclass, text, duration, text, text, text, name, boolean, boolean, boolean, boolean, regclass, boolean, text) IS
'returns the CREATE INDEX command that create_index() would run, or two commands with document_ttl_field; use it with \gexec of psql, for example to create the index concurrently';

CREATE FUNCTION create_index(relation regclass, key text, expire_after_seconds duration,
	partial_filter_expression text DEFAULT NULL, time_zone text DEFAULT NULL,
	document_ttl_field text DEFAULT NULL, name name DEFAULT NULL,
	drop_expired_partitions boolean DEFAULT NULL, delete_boundary_rows boolean DEFAULT NULL,
	or_change boolean DEFAULT false, paused boolean DEFAULT NULL, archive_to regclass DEFAULT NULL,
	detach_expired_partitions boolean DEFAULT NULL, unit text DEFAULT NULL)
RETURNS regclass LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_create_index';

COMMENT ON FUNCTION create_index(regclass, text, duration, text, text, text, name, boolean, boolean, boolean, boolean, regclass, boolean, text) IS
'creates a TTL index: a row expires expire_after_seconds after the date in the key, which is a column, a jsonb column and a dotted path, or an expression; with document_ttl_field, a document with its own TTL expires by that, and two indexes are created; with or_change, the options of an existing index are changed; an option that is NULL keeps its value; returns the index';

CREATE FUNCTION coll_mod(relation regclass, key text, expire_after_seconds duration,
	time_zone text DEFAULT NULL, drop_expired_partitions boolean DEFAULT NULL,
	delete_boundary_rows boolean DEFAULT NULL, archive_to regclass DEFAULT NULL,
	detach_expired_partitions boolean DEFAULT NULL, paused boolean DEFAULT NULL, unit text DEFAULT NULL,
	OUT expire_after_seconds_old integer, OUT expire_after_seconds_new integer)
RETURNS record LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_coll_mod';

COMMENT ON FUNCTION coll_mod(regclass, text, duration, text, boolean, boolean, regclass, boolean, boolean, text) IS
'changes the options of the TTL index on this key (a column, a jsonb column and a dotted path, or an expression), or makes the plain index on it a TTL index, without a rebuild; an option that is NULL keeps its value; archive_to => ''-'' removes the archive; returns the old and the new expire_after_seconds';

CREATE FUNCTION coll_mod_index(index regclass, expire_after_seconds duration,
	time_zone text DEFAULT NULL, drop_expired_partitions boolean DEFAULT NULL,
	delete_boundary_rows boolean DEFAULT NULL, archive_to regclass DEFAULT NULL,
	detach_expired_partitions boolean DEFAULT NULL, paused boolean DEFAULT NULL, unit text DEFAULT NULL,
	OUT expire_after_seconds_old integer, OUT expire_after_seconds_new integer)
RETURNS record LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_coll_mod_index';

COMMENT ON FUNCTION coll_mod_index(regclass, duration, text, boolean, boolean, regclass, boolean, boolean, text) IS
'changes the options of this TTL index, or makes this plain index a TTL index, without a rebuild; an option that is NULL keeps its value; archive_to => ''-'' removes the archive; returns the old and the new expire_after_seconds';

CREATE FUNCTION pause_index(index regclass)
RETURNS void LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_pause_index';

COMMENT ON FUNCTION pause_index(regclass) IS
'stops deletion by a TTL index until unpause_index()';

CREATE FUNCTION unpause_index(index regclass)
RETURNS void LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_unpause_index';

COMMENT ON FUNCTION unpause_index(regclass) IS
'resumes deletion by a TTL index that is paused, or held by ttl_index.max_due_fraction; a NOTICE shows how many rows are due';

CREATE FUNCTION remove_ttl(index regclass)
RETURNS void LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_remove_ttl';

COMMENT ON FUNCTION remove_ttl(regclass) IS
'makes a TTL index a plain index, without a rebuild; for documents with their own TTL, both indexes';

CREATE FUNCTION remove_all_ttl()
RETURNS bigint LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_remove_all_ttl';

COMMENT ON FUNCTION remove_all_ttl() IS
'makes all TTL indexes of this database plain indexes, without a rebuild, and returns their number; call it before DROP EXTENSION ttl_index';

CREATE FUNCTION drop_index(relation regclass, key text)
RETURNS void LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_drop_index';

COMMENT ON FUNCTION drop_index(regclass, text) IS
'drops the TTL index on this key (a column, a jsonb column and a dotted path, or an expression); for documents with their own TTL, both indexes';

CREATE FUNCTION create_time_series(relation regclass, time_field text, meta_field text DEFAULT NULL,
	granularity text DEFAULT NULL, expire_after_seconds duration DEFAULT NULL,
	bucket_max_span_seconds integer DEFAULT NULL, time_zone text DEFAULT NULL,
	delete_boundary_rows boolean DEFAULT NULL, unit text DEFAULT NULL)
RETURNS regclass LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_create_time_series';

COMMENT ON FUNCTION create_time_series(regclass, text, text, text, duration, integer, text, boolean, text) IS
'makes an empty table that is range-partitioned by time_field a time series: creates a DEFAULT partition, partitions ahead of the clock, a TTL index that drops partitions, and an index on (meta_field, time_field); granularity is seconds (partitions of 1 hour), minutes (1 day) or hours (30 days); returns the TTL index';

--
-- The time of the last change of a row, like _ts of Cosmos DB
--

CREATE FUNCTION set_last_modified()
RETURNS trigger LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_set_last_modified';

COMMENT ON FUNCTION set_last_modified() IS
'trigger function: sets the column that its argument names to the current time';

CREATE FUNCTION track_last_modified(relation regclass, column_name name DEFAULT '_ts')
RETURNS void LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	-- triggers fire in alphabetical order, and "~" is the last character of ASCII
	trigger_name name := '~ttl_index_' || CASE WHEN octet_length(column_name::text) <= 52 THEN column_name::text ELSE md5(column_name::text) END;
	typid oid;
	generated "char";
BEGIN
	SELECT atttypid, attgenerated INTO typid, generated FROM pg_attribute WHERE attrelid = relation AND attname = column_name AND attnum > 0;
	IF NOT FOUND THEN
		-- existing rows get the current time, or they would never expire
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
'makes a column hold the time of the last change of each row: adds the column if it does not exist, and a trigger that sets it';

CREATE FUNCTION untrack_last_modified(relation regclass, column_name name DEFAULT '_ts')
RETURNS void LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	EXECUTE format('DROP TRIGGER %I ON %s',
		'~ttl_index_' || CASE WHEN octet_length(column_name::text) <= 52 THEN column_name::text ELSE md5(column_name::text) END, relation);
END $$;

COMMENT ON FUNCTION untrack_last_modified(regclass, name) IS
'drops the trigger of track_last_modified(), and keeps the column';

--
-- Due rows, and passes
--

CREATE FUNCTION due_count(index regclass)
RETURNS bigint LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_due_count';

COMMENT ON FUNCTION due_count(regclass) IS
'returns the number of rows that are due now by a TTL index, without the rows of other tables that foreign keys delete or change with them';

CREATE FUNCTION oldest_due(index regclass)
RETURNS timestamptz LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_oldest_due';

COMMENT ON FUNCTION oldest_due(regclass) IS
'returns the lowest key among the rows that are due now by a TTL index, or NULL if none is due';

CREATE FUNCTION lag(index regclass)
RETURNS interval LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_lag';

COMMENT ON FUNCTION lag(regclass) IS
'returns how long the oldest due row of a TTL index has been due, or 0 if none is due; returns NULL if it would have to wait or to read much, or if the role lacks the privilege';

CREATE FUNCTION cutoff(index regclass)
RETURNS timestamptz LANGUAGE C STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_cutoff';

COMMENT ON FUNCTION cutoff(regclass) IS
'returns the time up to which dates are due by a TTL index, as of the start of the statement, or -infinity if nothing expires; use it in queries to hide due rows';

CREATE FUNCTION cutoff_number(index regclass)
RETURNS bigint LANGUAGE C STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_cutoff_number';

COMMENT ON FUNCTION cutoff_number(regclass) IS
'returns the cutoff of a TTL index whose key is a number, in the unit of the key; numbers above 0 and up to this one are due; returns 0 if nothing expires';

CREATE FUNCTION preview(index regclass, max_rows integer DEFAULT 10)
RETURNS SETOF jsonb LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_preview';

COMMENT ON FUNCTION preview(regclass, integer) IS
'returns the rows that the next pass would delete first by a TTL index, the oldest of each partition first, without the rows of other tables that foreign keys delete or change with them; needs SELECT on the table';

CREATE FUNCTION forecast(index regclass, step interval DEFAULT '1 hour', steps integer DEFAULT 24,
	OUT due_from timestamptz, OUT due_until timestamptz, OUT documents bigint, OUT bytes bigint)
RETURNS SETOF record LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_forecast';

COMMENT ON FUNCTION forecast(regclass, interval, integer) IS
'estimates the number and the size of the rows that are due now (due_from is -infinity) and that become due in each step, from the statistics of ANALYZE; NULL without statistics';

CREATE PROCEDURE run_pass()
LANGUAGE C
AS 'MODULE_PATHNAME', 'ttl_run_pass';

COMMENT ON PROCEDURE run_pass() IS
'runs one pass over this database in workers, and waits for it; it covers the tables of each owner whose privileges the caller has; cannot run inside a transaction block';

CREATE FUNCTION resume()
RETURNS void LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_resume';

COMMENT ON FUNCTION resume() IS
'resumes deletion on this server: ends the state held, and retries indexes in the state crashed_server; only superusers can execute it by default';

--
-- Monitoring
--

CREATE FUNCTION list_indexes(
	OUT indexrelid regclass, OUT relid regclass, OUT parent_indexrelid regclass,
	OUT expire_after_seconds integer, OUT time_zone text, OUT drop_expired_partitions boolean,
	OUT state text, OUT reason text, OUT archive_to regclass, OUT detach_expired_partitions boolean,
	OUT logical_relid regclass, OUT logical_indexrelid regclass, OUT unit text, OUT governor regclass)
RETURNS SETOF record LANGUAGE C STABLE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'ttl_list_indexes';

COMMENT ON FUNCTION list_indexes() IS
'returns the rows of the view ttl_index.indexes without the columns that take long to compute';

CREATE FUNCTION index_key(index regclass)
RETURNS text LANGUAGE C STABLE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'ttl_shown_state_key';

COMMENT ON FUNCTION index_key(regclass) IS
'returns the column key of the view ttl_index.indexes';

CREATE FUNCTION index_filter(index regclass)
RETURNS text LANGUAGE C STABLE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'ttl_shown_state_filter';

COMMENT ON FUNCTION index_filter(regclass) IS
'returns the column partial_filter_expression of the view ttl_index.indexes';

CREATE FUNCTION index_document_ttl(index regclass)
RETURNS text LANGUAGE C STABLE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'ttl_shown_state_document_ttl';

COMMENT ON FUNCTION index_document_ttl(regclass) IS
'returns the column document_ttl of the view ttl_index.indexes';

CREATE FUNCTION relation_name(relation oid, OUT schemaname name, OUT relname name, OUT relowner oid)
RETURNS record LANGUAGE C STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_relation_name';

COMMENT ON FUNCTION relation_name(oid) IS
'returns the schema, name and owner of a relation, also of a shard, which Citus hides in pg_class; NULLs if the relation does not exist';

CREATE VIEW indexes AS
SELECT
	indexrelid,
	relid,
	parent_indexrelid,
	index_key(indexrelid) AS key,
	expire_after_seconds,
	time_zone,
	index_filter(governor) AS partial_filter_expression,
	index_document_ttl(governor) AS document_ttl,
	drop_expired_partitions,
	state,
	reason,
	archive_to,
	detach_expired_partitions,
	logical_relid,
	logical_indexrelid,
	unit
FROM list_indexes();

COMMENT ON VIEW indexes IS
'all TTL indexes of this database, and their partitions, with their options and their state';

COMMENT ON COLUMN indexes.indexrelid IS 'the index';
COMMENT ON COLUMN indexes.relid IS 'the table of the index';
COMMENT ON COLUMN indexes.parent_indexrelid IS 'the index of the partitioned table from which this one inherits its TTL; else NULL';
COMMENT ON COLUMN indexes.key IS 'the column, the jsonb column and dotted path, or the expression; an expression is NULL while the table is locked exclusively';
COMMENT ON COLUMN indexes.expire_after_seconds IS 'the number of seconds after the key at which a row expires; inherited from the topmost parent that has a TTL';
COMMENT ON COLUMN indexes.time_zone IS 'the time zone of a key of type timestamp or date; else NULL';
COMMENT ON COLUMN indexes.unit IS 'the unit of a key that is a number, or uuidv7; else NULL';
COMMENT ON COLUMN indexes.partial_filter_expression IS 'the filter, without the test of a document''s own TTL; NULL if there is none, and while the table is locked exclusively';
COMMENT ON COLUMN indexes.document_ttl IS 'the document_ttl_field, in the index of the documents without their own TTL; else NULL';
COMMENT ON COLUMN indexes.drop_expired_partitions IS 'true if due partitions are dropped, or moved to the archive';
COMMENT ON COLUMN indexes.state IS 'active, or a keyword that shows why nothing is deleted';
COMMENT ON COLUMN indexes.reason IS 'why the index is not active, or what keeps rows of an active one; else NULL';
COMMENT ON COLUMN indexes.logical_relid IS 'for a shard of Citus, the distributed table; else NULL';
COMMENT ON COLUMN indexes.logical_indexrelid IS 'for a shard of Citus, the index of the distributed table; else NULL';
COMMENT ON COLUMN indexes.archive_to IS 'the table that due rows are moved to; NULL if they are deleted';
COMMENT ON COLUMN indexes.detach_expired_partitions IS 'true if due partitions are detached';

CREATE FUNCTION monitor_status(OUT status text, OUT reason text, OUT hint text)
RETURNS record LANGUAGE C VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'ttl_monitor_status';

COMMENT ON FUNCTION monitor_status() IS
'returns what deletes due rows in this database: monitor, or run_pass if a session with the caller''s privileges called run_pass() in the last ten minutes; else a keyword that shows why nothing is deleted, with a reason and a hint';

CREATE FUNCTION list_operations(
	OUT pid integer, OUT operation text, OUT relid oid, OUT indexrelid oid, OUT op_start timestamptz,
	OUT pass_start timestamptz, OUT pass_deleted bigint, OUT pass_left bigint, OUT pass_time_left interval,
	OUT index_deleted bigint, OUT index_left bigint)
RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'ttl_list_operations';

COMMENT ON FUNCTION list_operations() IS 'returns the columns of the view ttl_index.current_op that pg_stat_activity does not have';

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
'what each worker of the monitor and of run_pass() is doing, and the progress of its pass';

COMMENT ON COLUMN current_op.pid IS 'the process ID of the worker';
COMMENT ON COLUMN current_op.datname IS 'the database of the worker';
COMMENT ON COLUMN current_op.operation IS 'visit (to an index), pass (between two visits), wait for rate limit, or wait for replication';
COMMENT ON COLUMN current_op.relid IS 'the OID of the visited table in the database datname; else NULL';
COMMENT ON COLUMN current_op.indexrelid IS 'the OID of the visited index in the database datname; else NULL';
COMMENT ON COLUMN current_op.schemaname IS 'the schema of the visited table; NULL in another database than datname';
COMMENT ON COLUMN current_op.relname IS 'the name of the visited table; NULL in another database than datname';
COMMENT ON COLUMN current_op.indexrelname IS 'the name of the visited index; NULL in another database than datname';
COMMENT ON COLUMN current_op.op_start IS 'the time when the visit or the pass began';
COMMENT ON COLUMN current_op.wait_event_type IS 'the type of event that the worker waits for, as in pg_stat_activity';
COMMENT ON COLUMN current_op.wait_event IS 'the event that the worker waits for, as in pg_stat_activity';
COMMENT ON COLUMN current_op.pass_start IS 'the time when the pass began';
COMMENT ON COLUMN current_op.pass_deleted IS 'rows that committed batches of the pass deleted one by one';
COMMENT ON COLUMN current_op.pass_left IS 'estimated number of rows that were due when the pass began and are not yet deleted; NULL without statistics';
COMMENT ON COLUMN current_op.pass_time_left IS 'estimated time for the rows that are left, from the recent rate of the pass; NULL in its first seconds';
COMMENT ON COLUMN current_op.index_deleted IS 'rows that committed batches of the pass deleted by this TTL index, including its partitions; NULL unless the operation is a visit';
COMMENT ON COLUMN current_op.index_left IS 'estimated number of rows that were due by this TTL index when the pass began and are not yet deleted; NULL without statistics, and until a few thousand rows are deleted';

CREATE FUNCTION list_databases(
	OUT datid oid, OUT last_pass_start timestamptz, OUT last_pass_end timestamptz, OUT indexes integer,
	OUT not_active integer, OUT failing integer, OUT paused integer, OUT worst_lag interval,
	OUT pass_left bigint, OUT pass_time_left interval, OUT reason text)
RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'ttl_list_databases';

COMMENT ON FUNCTION list_databases() IS 'returns the columns of the view ttl_index.databases except the name';

CREATE VIEW databases AS
SELECT l.datid, d.datname, l.last_pass_start, l.last_pass_end, l.indexes, l.not_active, l.failing, l.paused,
	l.worst_lag, l.pass_left, l.pass_time_left, l.reason
FROM list_databases() AS l
JOIN pg_catalog.pg_database AS d ON d.oid OPERATOR(pg_catalog.=) l.datid;

COMMENT ON VIEW databases IS
'one row for each database of the server with TTL indexes, with the result of the monitor''s last passes; the same in all databases';

COMMENT ON COLUMN databases.datid IS 'the OID of the database';
COMMENT ON COLUMN databases.datname IS 'the name of the database';
COMMENT ON COLUMN databases.last_pass_start IS 'the time when the last pass began; NULL if there was none since the monitor started';
COMMENT ON COLUMN databases.last_pass_end IS 'the time when the last complete pass ended; earlier than last_pass_start during a pass';
COMMENT ON COLUMN databases.indexes IS 'number of TTL indexes; a partitioned index counts once';
COMMENT ON COLUMN databases.not_active IS 'number of TTL indexes whose state in the view indexes of that database is not active';
COMMENT ON COLUMN databases.failing IS 'number of TTL indexes whose last visit ended in an error';
COMMENT ON COLUMN databases.paused IS 'number of TTL indexes that are paused and otherwise active';
COMMENT ON COLUMN databases.worst_lag IS 'how long the oldest due row had been due at the last look, over all TTL indexes that are not paused; the monitor looks at the start and the end of a pass and between its sub-passes; NULL if not known';
COMMENT ON COLUMN databases.pass_left IS 'during a pass, estimated number of rows that were due when it began and are not yet deleted; else NULL';
COMMENT ON COLUMN databases.pass_time_left IS 'during a pass, estimated time for the rows that are left; else NULL';
COMMENT ON COLUMN databases.reason IS 'why the monitor deletes nothing in that database; NULL if it does';

-- The C code inserts one row for each batch, in the transaction that deletes.  It does not
-- update rows, because updates become slower with each version that an old snapshot keeps.  A
-- survey folds the rows of an index into one for the sum, without an hour, and one for the
-- current hour.  Rows with indexrelid 0 belong to no index: they count passes, and what dropped
-- indexes deleted.  For run_pass(), relid is the role that called it, and last_call the time.
CREATE TABLE counters (
	indexrelid oid NOT NULL,
	relid oid NOT NULL,
	hour timestamptz,
	schemaname text,
	relname text,
	indexrelname text,
	batches bigint NOT NULL,
	deleted_documents bigint NOT NULL,
	deleted_buckets bigint NOT NULL,
	estimated_documents bigint NOT NULL,
	archived_documents bigint NOT NULL,
	archived_buckets bigint NOT NULL,
	skipped_locked bigint NOT NULL,
	skipped_failed bigint NOT NULL,
	errors bigint NOT NULL,
	delete_time double precision NOT NULL,
	skipped_kept bigint NOT NULL,
	visits bigint NOT NULL,
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
	recovered timestamptz,
	last_kept timestamptz,
	approved timestamptz,
	shortened timestamptz
);

-- VACUUM would lock the table exclusively to truncate it.  Statistics are not needed, and
-- autovacuum would write 90 kB of them every 50 rows.
ALTER TABLE counters SET (vacuum_truncate = off, autovacuum_analyze_threshold = 2147483647);

COMMENT ON TABLE counters IS
'what the views ttl_index.stats and ttl_index.index_stats and the current hour of ttl_index.history are computed from; written by workers only';

-- Times in the future are from before the clock was set back.
CREATE VIEW stats AS
SELECT coalesce(sum(passes), 0)::bigint AS passes,
	coalesce(sum(sub_passes), 0)::bigint AS sub_passes,
	coalesce(sum(deleted_documents), 0)::bigint AS deleted_documents,
	coalesce(sum(deleted_buckets), 0)::bigint AS deleted_buckets,
	coalesce(sum(estimated_documents), 0)::bigint AS estimated_documents,
	coalesce(sum(archived_documents), 0)::bigint AS archived_documents,
	coalesce(sum(archived_buckets), 0)::bigint AS archived_buckets,
	coalesce(sum(skipped_locked), 0)::bigint AS skipped_locked,
	coalesce(sum(skipped_failed), 0)::bigint AS skipped_failed,
	coalesce(sum(skipped_kept), 0)::bigint AS skipped_kept,
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
'one row with the sums over all passes in this database since stats_reset';

COMMENT ON COLUMN stats.passes IS 'passes that ended; passes that deleted nothing are written once a minute, or with the next delete';
COMMENT ON COLUMN stats.sub_passes IS 'sub-passes that ended';
COMMENT ON COLUMN stats.deleted_documents IS 'rows deleted, without those in estimated_documents; includes indexes that no longer exist';
COMMENT ON COLUMN stats.deleted_buckets IS 'partitions dropped, detached or moved as a whole';
COMMENT ON COLUMN stats.estimated_documents IS 'estimated rows of the partitions in deleted_buckets whose rows were not counted';
COMMENT ON COLUMN stats.archived_documents IS 'deleted rows that were moved to an archive, or that remain in a detached partition';
COMMENT ON COLUMN stats.archived_buckets IS 'partitions that were moved to an archive, or detached';
COMMENT ON COLUMN stats.skipped_locked IS 'rows skipped because they were locked, indexes and tables skipped because they were locked (once in a pass), and partitions that could not be dropped or created because of a lock';
COMMENT ON COLUMN stats.skipped_failed IS 'rows skipped because deleting them raised an error';
COMMENT ON COLUMN stats.skipped_kept IS 'rows that a trigger kept: it returned NULL';
COMMENT ON COLUMN stats.errors IS 'visits that ended in an error';
COMMENT ON COLUMN stats.last_pass_start IS 'the time when the last pass began';
COMMENT ON COLUMN stats.last_pass_end IS 'the time when the last complete pass ended';
COMMENT ON COLUMN stats.last_cutoff IS 'the time of the clock that the last sub-pass deleted by';
COMMENT ON COLUMN stats.stats_reset IS 'the time when the counters were last set to zero; NULL if never';
COMMENT ON COLUMN stats.lag_pauses IS 'number of times that deletion paused for replication';

-- The message of an error can contain data of the table, and other data that the code which
-- raised it could read.  So it is shown to the owner of the table, if the owner was the same
-- then, and to members of pg_read_all_stats.
CREATE VIEW index_stats AS
SELECT i.relid::oid AS relid, i.indexrelid::oid AS indexrelid, t.schemaname, t.relname,
	x.relname AS indexrelname,
	coalesce(c.visits, 0) AS visits,
	coalesce(c.batches, 0) AS batches,
	coalesce(c.deleted_documents, 0) AS deleted_documents,
	coalesce(c.deleted_buckets, 0) AS deleted_buckets,
	coalesce(c.estimated_documents, 0) AS estimated_documents,
	coalesce(c.archived_documents, 0) AS archived_documents,
	coalesce(c.archived_buckets, 0) AS archived_buckets,
	coalesce(c.skipped_locked, 0) AS skipped_locked,
	coalesce(c.skipped_failed, 0) AS skipped_failed,
	coalesce(c.skipped_kept, 0) AS skipped_kept,
	coalesce(c.errors, 0) AS errors,
	coalesce(c.delete_time, 0) AS delete_time,
	c.last_deleted,
	CASE WHEN (pg_catalog.pg_has_role(t.relowner, 'USAGE')
			AND (c.last_error_role OPERATOR(pg_catalog.=) 0 OR pg_catalog.pg_has_role(c.last_error_role, 'USAGE')))
		OR pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE') THEN c.last_error
		WHEN c.last_error IS NOT NULL THEN '<insufficient privilege>' END AS last_error,
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
		sum(estimated_documents)::bigint AS estimated_documents,
		sum(archived_documents)::bigint AS archived_documents,
		sum(archived_buckets)::bigint AS archived_buckets,
		sum(skipped_locked)::bigint AS skipped_locked,
		sum(skipped_failed)::bigint AS skipped_failed,
		sum(skipped_kept)::bigint AS skipped_kept,
		sum(errors)::bigint AS errors,
		round(sum(delete_time)::numeric, 3)::double precision AS delete_time,
		max(last_deleted) FILTER (WHERE last_deleted OPERATOR(pg_catalog.<=) pg_catalog.clock_timestamp())
			AS last_deleted,
		(pg_catalog.array_agg(last_error ORDER BY last_error_time DESC NULLS LAST))[1] AS last_error,
		(pg_catalog.array_agg(last_error_sqlstate ORDER BY last_error_time DESC NULLS LAST))[1] AS last_error_sqlstate,
		(pg_catalog.array_agg(last_error_role ORDER BY last_error_time DESC NULLS LAST))[1] AS last_error_role,
		max(last_error_time) AS last_error_time,
		max(stats_reset) AS stats_reset
	FROM counters GROUP BY indexrelid
) AS c ON c.indexrelid OPERATOR(pg_catalog.=) i.indexrelid
WHERE i.parent_indexrelid IS NULL AND t.relname IS NOT NULL AND x.relname IS NOT NULL;

COMMENT ON VIEW index_stats IS
'one row for each TTL index, with the sums over all passes since stats_reset; a partitioned index has one row';

COMMENT ON COLUMN index_stats.relid IS 'the OID of the table';
COMMENT ON COLUMN index_stats.indexrelid IS 'the OID of the index';
COMMENT ON COLUMN index_stats.schemaname IS 'the schema of the table';
COMMENT ON COLUMN index_stats.relname IS 'the name of the table';
COMMENT ON COLUMN index_stats.indexrelname IS 'the name of the index';
COMMENT ON COLUMN index_stats.visits IS 'visits that found due rows';
COMMENT ON COLUMN index_stats.batches IS 'transactions that deleted rows';
COMMENT ON COLUMN index_stats.deleted_documents IS 'rows deleted, without those in estimated_documents';
COMMENT ON COLUMN index_stats.deleted_buckets IS 'partitions dropped, detached or moved as a whole';
COMMENT ON COLUMN index_stats.estimated_documents IS 'estimated rows of the partitions in deleted_buckets whose rows were not counted';
COMMENT ON COLUMN index_stats.archived_documents IS 'deleted rows that were moved to an archive, or that remain in a detached partition';
COMMENT ON COLUMN index_stats.archived_buckets IS 'partitions that were moved to an archive, or detached';
COMMENT ON COLUMN index_stats.skipped_locked IS 'rows skipped because they were locked, indexes and tables skipped because they were locked (once in a pass), and partitions that could not be dropped or created because of a lock';
COMMENT ON COLUMN index_stats.skipped_failed IS 'rows skipped because deleting them raised an error';
COMMENT ON COLUMN index_stats.skipped_kept IS 'rows that a trigger kept: it returned NULL';
COMMENT ON COLUMN index_stats.errors IS 'visits that ended in an error';
COMMENT ON COLUMN index_stats.delete_time IS 'time spent in these transactions, in milliseconds';
COMMENT ON COLUMN index_stats.last_deleted IS 'the time when a row was last deleted, or a partition that held rows dropped';
COMMENT ON COLUMN index_stats.last_error IS 'the message of the last error, with its detail and hint; <insufficient privilege> unless the reader has the privileges of the table''s owner or of pg_read_all_stats, because it can contain data of the table';
COMMENT ON COLUMN index_stats.last_error_sqlstate IS 'the SQLSTATE of the last error';
COMMENT ON COLUMN index_stats.last_error_time IS 'the time of the last error; it remains after the state failing has ended';
COMMENT ON COLUMN index_stats.stats_reset IS 'the time when these counters were last set to zero; NULL if never';
COMMENT ON COLUMN index_stats.logical_relid IS 'for a shard of Citus, the OID of the distributed table; else NULL';
COMMENT ON COLUMN index_stats.logical_indexrelid IS 'for a shard of Citus, the OID of the index of the distributed table; else NULL';

CREATE FUNCTION stats_reset()
RETURNS void LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_stats_reset';

COMMENT ON FUNCTION stats_reset() IS
'sets all counters of this database to zero; only superusers can execute it by default';

CREATE FUNCTION stats_reset(index regclass)
RETURNS void LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_stats_reset_index';

COMMENT ON FUNCTION stats_reset(regclass) IS
'sets the counters of one TTL index to zero, but not their sum in the view ttl_index.stats; only superusers can execute it by default';

-- What was counted in past hours: the first columns of the table counters, whose sums include it.
CREATE TABLE past_hours (
	indexrelid oid NOT NULL,
	relid oid NOT NULL,
	hour timestamptz NOT NULL,
	schemaname text,
	relname text,
	indexrelname text,
	batches bigint NOT NULL,
	deleted_documents bigint NOT NULL,
	deleted_buckets bigint NOT NULL,
	estimated_documents bigint NOT NULL,
	archived_documents bigint NOT NULL,
	archived_buckets bigint NOT NULL,
	skipped_locked bigint NOT NULL,
	skipped_failed bigint NOT NULL,
	errors bigint NOT NULL,
	delete_time double precision NOT NULL
);

COMMENT ON TABLE past_hours IS
'what the view ttl_index.history shows, except the current hour; written by workers only';

CREATE FUNCTION ignore_subscription()
RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$ BEGIN RETURN NULL; END $$;

COMMENT ON FUNCTION ignore_subscription() IS
'trigger function: ignores changes of this table that a subscription FOR ALL TABLES applies';

-- Only subscriptions fire these triggers, because the library does not run commands.
CREATE TRIGGER ignore_subscription BEFORE INSERT OR UPDATE OR DELETE ON counters
	FOR EACH ROW EXECUTE FUNCTION ignore_subscription();
ALTER TABLE counters ENABLE REPLICA TRIGGER ignore_subscription;
CREATE TRIGGER ignore_subscription BEFORE INSERT OR UPDATE OR DELETE ON past_hours
	FOR EACH ROW EXECUTE FUNCTION ignore_subscription();
ALTER TABLE past_hours ENABLE REPLICA TRIGGER ignore_subscription;
CREATE TRIGGER ignore_subscription BEFORE INSERT OR UPDATE OR DELETE ON saved_options
	FOR EACH ROW EXECUTE FUNCTION ignore_subscription();
ALTER TABLE saved_options ENABLE REPLICA TRIGGER ignore_subscription;

-- An index that exists is shown with its current names, a dropped one with its last names.
-- Grouped by names, because REINDEX CONCURRENTLY changes the OID of an index.
CREATE VIEW history AS
SELECT h.hour,
	coalesce(t.schemaname, h.schemaname::name) AS schemaname,
	coalesce(t.relname, h.relname::name) AS relname,
	coalesce(x.relname, h.indexrelname::name) AS indexrelname,
	sum(h.deleted_documents)::bigint AS deleted_documents,
	sum(h.deleted_buckets)::bigint AS deleted_buckets,
	sum(h.estimated_documents)::bigint AS estimated_documents,
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
	SELECT indexrelid, relid, hour, schemaname, relname, indexrelname, batches, deleted_documents, deleted_buckets,
		estimated_documents, archived_documents, archived_buckets, skipped_locked, skipped_failed, errors, delete_time
	FROM counters WHERE hour IS NOT NULL
) AS h
LEFT JOIN (
	pg_catalog.pg_index AS i
	CROSS JOIN LATERAL relation_name(i.indexrelid) AS x
	CROSS JOIN LATERAL relation_name(i.indrelid) AS t
) ON i.indexrelid OPERATOR(pg_catalog.=) h.indexrelid AND i.indrelid OPERATOR(pg_catalog.=) h.relid
GROUP BY 1, 2, 3, 4;

COMMENT ON VIEW history IS
'one row for each TTL index and each hour in which it deleted rows, skipped some or failed; kept for ttl_index.history_retention, also after the index is dropped';

COMMENT ON COLUMN history.hour IS 'the start of the hour, in UTC';
COMMENT ON COLUMN history.schemaname IS 'the schema of the table';
COMMENT ON COLUMN history.relname IS 'the name of the table, or its last name if it is dropped';
COMMENT ON COLUMN history.indexrelname IS 'the name of the index, or its last name if it is dropped';
COMMENT ON COLUMN history.deleted_documents IS 'rows deleted, without those in estimated_documents';
COMMENT ON COLUMN history.deleted_buckets IS 'partitions dropped, detached or moved as a whole';
COMMENT ON COLUMN history.estimated_documents IS 'estimated rows of the partitions in deleted_buckets whose rows were not counted';
COMMENT ON COLUMN history.archived_documents IS 'deleted rows that were moved to an archive, or that remain in a detached partition';
COMMENT ON COLUMN history.archived_buckets IS 'partitions that were moved to an archive, or detached';
COMMENT ON COLUMN history.batches IS 'transactions that deleted rows';
COMMENT ON COLUMN history.delete_time IS 'time spent in these transactions, in milliseconds';
COMMENT ON COLUMN history.errors IS 'visits that ended in an error';
COMMENT ON COLUMN history.skipped_locked IS 'rows skipped because they were locked, indexes and tables skipped because they were locked (once in a pass), and partitions that could not be dropped or created because of a lock';
COMMENT ON COLUMN history.skipped_failed IS 'rows skipped because deleting them raised an error';

--
-- The nodes of a Citus cluster, or this server alone
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
'runs a query that returns one jsonb value on each node of a Citus cluster, as the caller; error says why a node gave no answer';

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
'one row for each node of a Citus cluster, with its view ttl_index.stats';

COMMENT ON COLUMN cluster_stats.nodeid IS 'the node ID of pg_dist_node; 0 without a cluster';
COMMENT ON COLUMN cluster_stats.nodename IS 'the host of the node';
COMMENT ON COLUMN cluster_stats.nodeport IS 'the port of the node';
COMMENT ON COLUMN cluster_stats.error IS 'why the node gave no answer; NULL if it did';
COMMENT ON COLUMN cluster_stats.version IS 'the version of the extension on the node';
COMMENT ON COLUMN cluster_stats.monitor IS 'the status that monitor_status() returns on the node';

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
	sum(p.skipped_kept)::bigint AS skipped_kept,
	sum(p.errors)::bigint AS errors,
	round(sum(p.delete_time)::numeric, 3)::double precision AS delete_time,
	max(p.last_deleted) AS last_deleted,
	(pg_catalog.array_agg(p.last_error ORDER BY p.last_error_time DESC NULLS LAST))[1] AS last_error,
	(pg_catalog.array_agg(p.last_error_sqlstate ORDER BY p.last_error_time DESC NULLS LAST))[1] AS last_error_sqlstate,
	max(p.last_error_time) AS last_error_time
FROM nodes AS n
CROSS JOIN LATERAL pg_catalog.jsonb_to_recordset(n.answer) AS p (schemaname name, relname name, indexrelname name,
	logical_relid oid, state text, visits bigint, batches bigint, deleted_documents bigint, deleted_buckets bigint,
	skipped_locked bigint, skipped_failed bigint, skipped_kept bigint, errors bigint, delete_time double precision,
	last_deleted timestamptz, last_error text, last_error_sqlstate text, last_error_time timestamptz)
GROUP BY 1, 2, 3;

COMMENT ON VIEW cluster_index_stats IS
'one row for each TTL index of a Citus cluster: the sums of ttl_index.index_stats on all nodes over the table and its shards';

COMMENT ON COLUMN cluster_index_stats.schemaname IS 'the schema of the table';
COMMENT ON COLUMN cluster_index_stats.relname IS 'the name of the table; of a shard, that of the distributed table';
COMMENT ON COLUMN cluster_index_stats.indexrelname IS 'the name of the index';
COMMENT ON COLUMN cluster_index_stats.shards IS 'number of shards in the sums; 0 for a table that is not distributed';
COMMENT ON COLUMN cluster_index_stats.not_active IS 'number of its indexes, of the table on each node and of shards, whose state is not active';
COMMENT ON COLUMN cluster_index_stats.nodes_without_answer IS 'number of nodes that gave no answer and are not in the sums; see cluster_stats';

-- A shard that was moved away or split leaves rows with its own names.  They count for the
-- table whose name is the same without the number, if that has such an index.
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
	sum(p.estimated_documents)::bigint AS estimated_documents,
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
'one row for each TTL index of a Citus cluster and hour: the sums of ttl_index.history on all nodes over the table and its shards; nodes without an answer are left out, see cluster_stats';

-- The other columns have the comments of the views whose rows they sum up.
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
-- Event triggers.  They run with the privileges of the user who runs the command.  A database
-- can outlive the library, so DDL of others must not need it: on_ddl() tries to load it first.
-- For the same reason DDL passes if a privilege was revoked.  The work is in C, which does not
-- look up names in search_path.
--

CREATE FUNCTION check_ddl(tag text)
RETURNS boolean LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_check_ddl';

COMMENT ON FUNCTION check_ddl(text) IS
'called by the event trigger function on_ddl(): checks the TTL indexes that a command created or changed';

-- STABLE, so that check_ddl() runs with the snapshot of the command.  Assignments are evaluated
-- without a query.  SET search_path would hide that of the user from check_ddl().
CREATE FUNCTION on_ddl()
RETURNS event_trigger LANGUAGE plpgsql STABLE
AS $$
DECLARE
	done boolean;
BEGIN
	BEGIN
		done := ttl_index.check_ddl(NULL);
	EXCEPTION WHEN OTHERS THEN
		RAISE WARNING 'TTL indexes are not checked: %', SQLERRM
			USING HINT = 'Install ttl_index again, or drop the extension. DROP EXTENSION ttl_index CASCADE drops the TTL indexes, too.';
		RETURN;
	END;
	done := ttl_index.check_ddl(tg_tag);
END $$;

COMMENT ON FUNCTION on_ddl() IS 'event trigger function: checks the TTL indexes that a command created or changed';

CREATE EVENT TRIGGER ttl_index_ddl ON ddl_command_end
	WHEN TAG IN ('CREATE INDEX', 'CREATE TABLE', 'CREATE SCHEMA', 'ALTER TABLE', 'ALTER INDEX')
	EXECUTE FUNCTION on_ddl();

COMMENT ON EVENT TRIGGER ttl_index_ddl IS
'refuses what cannot be a TTL index, as create_index() does';

-- Changes the command itself, which only C can.  Without the library ALTER INDEX would fail, so
-- the event trigger is enabled only where Citus is.
CREATE FUNCTION on_alter_index()
RETURNS event_trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'ttl_on_alter_index';

COMMENT ON FUNCTION on_alter_index() IS
'event trigger function: changes the options of an index of a Citus table on each node';

CREATE EVENT TRIGGER ttl_index_before_alter_index ON ddl_command_start
	WHEN TAG IN ('ALTER INDEX')
	EXECUTE FUNCTION on_alter_index();

COMMENT ON EVENT TRIGGER ttl_index_before_alter_index IS
'changes the options of an index of a Citus table on each node; disabled without Citus';

CREATE FUNCTION on_create_extension()
RETURNS event_trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF EXISTS (SELECT FROM pg_extension, pg_event_trigger WHERE extname = 'citus'
			AND evtname = 'ttl_index_before_alter_index' AND evtenabled = 'D' AND pg_has_role(evtowner, 'USAGE')) THEN
		ALTER EVENT TRIGGER ttl_index_before_alter_index ENABLE;
	END IF;
END $$;

COMMENT ON FUNCTION on_create_extension() IS 'event trigger function: enables ttl_index_before_alter_index if Citus is installed';

CREATE EVENT TRIGGER ttl_index_create_extension ON ddl_command_end
	WHEN TAG IN ('CREATE EXTENSION')
	EXECUTE FUNCTION on_create_extension();

COMMENT ON EVENT TRIGGER ttl_index_create_extension IS 'enables ttl_index_before_alter_index if Citus is installed';

DO $$
BEGIN
	IF NOT EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) 'citus') THEN
		ALTER EVENT TRIGGER ttl_index_before_alter_index DISABLE;
	END IF;
END
$$;

--
-- Privileges, independent of ALTER DEFAULT PRIVILEGES.  All roles need EXECUTE on the options,
-- because the planner checks it when it folds them.  Nobody else may write the tables or create
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
	unit(text, text),
	drop_expired_partitions(boolean, boolean),
	bucket_max_span_seconds(integer, integer),
	paused(boolean, boolean),
	archive_to(regclass, regclass),
	detach_expired_partitions(boolean, boolean),
	seconds(interval),
	duration_in(cstring),
	duration_out(duration),
	duration(interval),
	earliest(timestamptz[]),
	document_date(jsonb, text[]),
	document_date_in(jsonb, text, text[]),
	document_ttl(jsonb, text),
	column_ttl(bigint),
	expire_at(timestamptz, integer),
	create_index_command(regclass, text, duration, text, text, text, name, boolean, boolean, boolean, boolean, regclass, boolean, text),
	create_index(regclass, text, duration, text, text, text, name, boolean, boolean, boolean, boolean, regclass, boolean, text),
	coll_mod(regclass, text, duration, text, boolean, boolean, regclass, boolean, boolean, text),
	coll_mod_index(regclass, duration, text, boolean, boolean, regclass, boolean, boolean, text),
	pause_index(regclass),
	unpause_index(regclass),
	remove_ttl(regclass),
	remove_all_ttl(),
	drop_index(regclass, text),
	create_time_series(regclass, text, text, text, duration, integer, text, boolean, text),
	set_last_modified(),
	track_last_modified(regclass, name),
	untrack_last_modified(regclass, name),
	due_count(regclass),
	oldest_due(regclass),
	lag(regclass),
	preview(regclass, integer),
	forecast(regclass, interval, integer),
	cutoff(regclass),
	cutoff_number(regclass),
	list_indexes(),
	index_key(regclass),
	index_filter(regclass),
	index_document_ttl(regclass),
	relation_name(oid),
	ask_nodes(text),
	monitor_status(),
	check_ddl(text)
TO PUBLIC;

GRANT EXECUTE ON PROCEDURE run_pass() TO PUBLIC;

REVOKE ALL ON FUNCTION resume(), stats_reset(), stats_reset(regclass), list_operations(), list_databases(), on_ddl(), on_alter_index(),
	on_create_extension(), ignore_subscription() FROM PUBLIC;
REVOKE ALL ON TABLE counters, past_hours, saved_options FROM PUBLIC;

GRANT SELECT ON indexes, stats, index_stats, cluster_stats, cluster_index_stats TO PUBLIC;
GRANT SELECT ON history, cluster_history TO PUBLIC;
GRANT EXECUTE ON FUNCTION list_operations(), list_databases() TO pg_monitor;
GRANT SELECT ON counters, past_hours, current_op, databases TO pg_monitor;

-- Functions and views work without the monitor, but due rows would stay silently.
DO $$
DECLARE
	monitor record;
BEGIN
	SELECT * INTO monitor FROM ttl_index.monitor_status();
	IF monitor.status IN ('not_preloaded', 'no_launcher') THEN
		RAISE WARNING 'rows that expire will not be deleted automatically'
			USING DETAIL = pg_catalog.format('No monitor: %s.', monitor.reason), HINT = monitor.hint;
	END IF;
END
$$;
