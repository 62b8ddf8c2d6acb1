/* sql/ttl_index.sql: the definition of the extension, from top to bottom */

-- A new version of this file comes with a script ttl_index--OLD--NEW.sql that
-- leads there, and with the old file as test/released/ttl_index--OLD.sql: the
-- test 033_extension_update compares.  A new library meets the objects of the old file until
-- somebody runs ALTER EXTENSION UPDATE, so a C function never gets other arguments
-- or another result: what needs these gets a name of its own.  Such a script begins with
-- SET LOCAL search_path = ttl_index, pg_temp.

\echo Use "CREATE EXTENSION ttl_index" to load this file. \quit

-- The schema ttl_index is a member of the extension: a dump leaves it to CREATE
-- EXTENSION, and DROP EXTENSION takes it along.  That is not possible for the schema
-- in which the control file puts an extension, so that one is pg_catalog, and each
-- script sets search_path itself.
--
-- A schema of another role would still belong to it, with everything in it.  An empty
-- one of a superuser, as frameworks make it that restore schemas before extensions,
-- makes way for a new one, without what was granted on it.
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
-- The library writes its tables as those of heap.
SET LOCAL default_table_access_method = heap;

COMMENT ON SCHEMA ttl_index IS
'what extension ttl_index consists of';

-- The control file has made this comment.  A dump would repeat it, and the restore fail
-- for everybody but a superuser.
COMMENT ON EXTENSION ttl_index IS NULL;

-- For REINDEX CONCURRENTLY, which loses an option that stands alone.  A dump need not have
-- it: CREATE INDEX writes it.  An index depends on one column, by whose number it finds its
-- row; as the table is older than the functions, DROP EXTENSION names these in its errors.
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
-- nothing of it is for clients that decode the WAL
ALTER TABLE saved_options REPLICA IDENTITY NOTHING;

COMMENT ON TABLE saved_options IS
'the option of each TTL index without a filter: a pass gives it back to an index that has lost it by REINDEX CONCURRENTLY';

--
-- The options: functions that are always true, so that the planner folds them
-- away, and that stay in pg_index.indpred, so that the index carries them.
-- They are aliases of built-ins: reading a table must never need our library.
-- An update of the extension never drops or redefines them.
--

CREATE FUNCTION expire_after_seconds(seconds integer, minimum integer DEFAULT -2147483648)
RETURNS boolean LANGUAGE internal IMMUTABLE PARALLEL SAFE AS 'int4ge';

COMMENT ON FUNCTION expire_after_seconds(integer, integer) IS
'option of a TTL index, for the WHERE clause of CREATE INDEX: rows expire this many seconds (0 to 2147483647) after the date in the index key; -1, never, only beside document_ttl(...) IS NULL, column_ttl(...) IS NULL or bucket_max_span_seconds(...)';

-- STRICT, unlike the one above: the built-in would dereference a NULL.
CREATE FUNCTION time_zone(zone text, minimum text DEFAULT '')
RETURNS boolean LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'text_pattern_ge';

COMMENT ON FUNCTION time_zone(text, text) IS
'option of a TTL index on a key of type timestamp or date: the time zone (a name of pg_timezone_names) in which the key is read';

CREATE FUNCTION drop_expired_partitions(delete_boundary_rows boolean DEFAULT false, minimum boolean DEFAULT false)
RETURNS boolean LANGUAGE internal IMMUTABLE PARALLEL SAFE AS 'boolge';

COMMENT ON FUNCTION drop_expired_partitions(boolean, boolean) IS
'option of a TTL index on a table that is range-partitioned by its key: a partition goes as a whole when its upper bound is due; due rows of the others stay, or go one by one with delete_boundary_rows';

CREATE FUNCTION bucket_max_span_seconds(seconds integer, minimum integer DEFAULT -2147483648)
RETURNS boolean LANGUAGE internal IMMUTABLE PARALLEL SAFE AS 'int4ge';

COMMENT ON FUNCTION bucket_max_span_seconds(integer, integer) IS
'option of a TTL index on a table that is range-partitioned by its key: the monitor makes partitions of this span (60 to 31536000 seconds) ahead of the clock';

CREATE FUNCTION paused(paused boolean DEFAULT true, minimum boolean DEFAULT false)
RETURNS boolean LANGUAGE internal IMMUTABLE PARALLEL SAFE AS 'boolge';

COMMENT ON FUNCTION paused(boolean, boolean) IS
'option of a TTL index: nothing is deleted by it, while all else goes on; pause_index and unpause_index set it without a rebuild';

CREATE FUNCTION archive_to(target regclass, minimum regclass DEFAULT '-')
RETURNS boolean LANGUAGE internal IMMUTABLE PARALLEL SAFE AS 'oidge';

COMMENT ON FUNCTION archive_to(regclass, regclass) IS
'option of a TTL index: rows that are due are not deleted but moved to this table, by the names of their columns, in the same transaction';

CREATE FUNCTION detach_expired_partitions(detach boolean DEFAULT true, minimum boolean DEFAULT false)
RETURNS boolean LANGUAGE internal IMMUTABLE PARALLEL SAFE AS 'boolge';

COMMENT ON FUNCTION detach_expired_partitions(boolean, boolean) IS
'option of a TTL index on a table that is range-partitioned by its key: a partition is detached when its upper bound is due, and stays as a table of its own, without the TTL; nothing is deleted';

-- Any time to live as a number.  Not in C, as a table whose option is written by it is read
-- without our library, too; in PL/pgSQL, which is several times as fast as SQL where
-- planning folds it.
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
'the whole seconds of an interval of weeks, days, hours, minutes and seconds, for every argument that is a number of seconds, also in the option: expire_after_seconds(ttl_index.seconds(''30 days'')); months and years are an error, as they have no fixed length';

--
-- Keys
--

CREATE FUNCTION earliest(dates timestamptz[])
RETURNS timestamptz LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_earliest';

COMMENT ON FUNCTION earliest(timestamptz[]) IS
'the earliest date in an array, NULL where it holds none: makes an array column the key of a TTL index';

CREATE FUNCTION document_date(document jsonb, VARIADIC path text[])
RETURNS timestamptz LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_document_date';

COMMENT ON FUNCTION document_date(jsonb, text[]) IS
'the earliest date at a path of a document, NULL where it holds none: {"$date": ...} or a string that is an RFC 3339 date-time with an offset; makes a jsonb column the key of a TTL index';

CREATE FUNCTION document_ttl(document jsonb, field text DEFAULT 'ttl')
RETURNS integer LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_document_ttl';

COMMENT ON FUNCTION document_ttl(jsonb, text) IS
'the time to live that a document has in a field of its root: a whole number of seconds from 1 to 2147483647, or -1 for never, as a number or in Extended JSON with its type; NULL where the field is missing or holds anything else';

CREATE FUNCTION column_ttl(ttl bigint)
RETURNS integer LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_column_ttl';

COMMENT ON FUNCTION column_ttl(bigint) IS
'the same for a time to live in a column of any integer type: the value where it is 1 to 2147483647 or -1, else NULL';

CREATE FUNCTION expire_at(since timestamptz, ttl integer)
RETURNS timestamptz LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_expire_at';

COMMENT ON FUNCTION expire_at(timestamptz, integer) IS
'when a document expires that has this time to live of its own: since plus ttl seconds, infinity where that is out of range, NULL where ttl is not 1 to 2147483647';

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
'the CREATE INDEX command, or the two with document_ttl_field, that create_index would run with the same arguments, for psql''s \gexec';

CREATE FUNCTION create_index(relation regclass, key text, expire_after_seconds bigint,
	partial_filter_expression text DEFAULT NULL, time_zone text DEFAULT NULL,
	document_ttl_field text DEFAULT NULL, name name DEFAULT NULL,
	drop_expired_partitions boolean DEFAULT NULL, delete_boundary_rows boolean DEFAULT NULL,
	or_change boolean DEFAULT false, paused boolean DEFAULT NULL, archive_to regclass DEFAULT NULL,
	detach_expired_partitions boolean DEFAULT NULL)
RETURNS regclass LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_create_index';

COMMENT ON FUNCTION create_index(regclass, text, bigint, text, text, text, name, boolean, boolean, boolean, boolean, regclass, boolean) IS
'creates a TTL index: rows of the table expire this many seconds after the date in the key, a column or a jsonb column and a dotted path; with document_ttl_field, documents with a TTL of their own expire by that, the seconds can be -1 (never), and there are two indexes; with or_change, the index on the same key and filter gets the options that were given, without a rebuild; with paused, nothing is deleted until unpause_index; with archive_to, rows are moved to that table; with detach_expired_partitions, partitions that are due become tables of their own; an option that is not given, NULL, stays as it is; returns the index, the main one of two';

CREATE FUNCTION coll_mod(relation regclass, key text, expire_after_seconds bigint,
	time_zone text DEFAULT NULL, drop_expired_partitions boolean DEFAULT NULL,
	delete_boundary_rows boolean DEFAULT NULL, archive_to regclass DEFAULT NULL,
	detach_expired_partitions boolean DEFAULT NULL, paused boolean DEFAULT NULL,
	OUT expire_after_seconds_old integer, OUT expire_after_seconds_new integer)
RETURNS record LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_coll_mod';

COMMENT ON FUNCTION coll_mod(regclass, text, bigint, text, boolean, boolean, regclass, boolean, boolean) IS
'changes the seconds of the TTL index on this key (a column, a jsonb column and a dotted path, or an expression), or turns the plain index on it into a TTL index, without a rebuild; returns the old and the new seconds; an option that is not given, NULL, stays as it is; archive_to names the table that rows are moved to, ''-'' ends that; -1, never, only where documents can have a TTL of their own, and for a time series';

CREATE FUNCTION coll_mod_index(index regclass, expire_after_seconds bigint,
	time_zone text DEFAULT NULL, drop_expired_partitions boolean DEFAULT NULL,
	delete_boundary_rows boolean DEFAULT NULL, archive_to regclass DEFAULT NULL,
	detach_expired_partitions boolean DEFAULT NULL, paused boolean DEFAULT NULL,
	OUT expire_after_seconds_old integer, OUT expire_after_seconds_new integer)
RETURNS record LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_coll_mod_index';

COMMENT ON FUNCTION coll_mod_index(regclass, bigint, text, boolean, boolean, regclass, boolean, boolean) IS
'changes the seconds of this TTL index, or turns this plain index into a TTL index, without a rebuild; returns the old and the new seconds; an option that is not given, NULL, stays as it is; archive_to names the table that rows are moved to, ''-'' ends that; -1, never, only where documents can have a TTL of their own, and for a time series';

CREATE FUNCTION pause_index(index regclass)
RETURNS void LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_pause_index';

COMMENT ON FUNCTION pause_index(regclass) IS
'keeps the rows of a TTL index from being deleted, until unpause_index; the index and its seconds stay, and nothing is rebuilt';

CREATE FUNCTION unpause_index(index regclass)
RETURNS void LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_unpause_index';

COMMENT ON FUNCTION unpause_index(regclass) IS
'lets the rows of a paused TTL index expire again; gives a NOTICE about those that are due';

CREATE FUNCTION remove_ttl(index regclass)
RETURNS void LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_remove_ttl';

COMMENT ON FUNCTION remove_ttl(regclass) IS
'turns a TTL index back into a plain index, both indexes where documents can have a TTL of their own, without a rebuild';

CREATE FUNCTION remove_all_ttl()
RETURNS bigint LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_remove_all_ttl';

COMMENT ON FUNCTION remove_all_ttl() IS
'turns every TTL index of this database back into a plain index, without a rebuild, and returns their number, where two indexes made with document_ttl_field count as one; to be called before DROP EXTENSION ttl_index';

CREATE FUNCTION drop_index(relation regclass, key text)
RETURNS void LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_drop_index';

COMMENT ON FUNCTION drop_index(regclass, text) IS
'drops the TTL index on this key (a column, a jsonb column and a dotted path, or an expression), both indexes where documents can have a TTL of their own';

CREATE FUNCTION create_time_series(relation regclass, time_field text, meta_field text DEFAULT NULL,
	granularity text DEFAULT NULL, expire_after_seconds bigint DEFAULT NULL,
	bucket_max_span_seconds integer DEFAULT NULL, time_zone text DEFAULT NULL,
	delete_boundary_rows boolean DEFAULT NULL)
RETURNS regclass LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_create_time_series';

COMMENT ON FUNCTION create_time_series(regclass, text, text, text, bigint, integer, text, boolean) IS
'makes an empty table that is range-partitioned by time_field a time series: a DEFAULT partition, a TTL index that drops whole partitions (-1 seconds, or none: never), an index on (meta_field, time_field), and partitions ahead of the clock, which the monitor goes on making; granularity is seconds (1 hour a partition), minutes (1 day) or hours (30 days); returns the TTL index';

--
-- The time of the last change, as Cosmos DB's _ts
--

CREATE FUNCTION set_last_modified()
RETURNS trigger LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_set_last_modified';

COMMENT ON FUNCTION set_last_modified() IS
'trigger function: sets the column that is its argument to the current time, whatever the client wrote';

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
'makes a column hold the time of each row''s last change: adds the column where it is missing, and a trigger that sets it on every insert and update';

CREATE FUNCTION untrack_last_modified(relation regclass, column_name name DEFAULT '_ts')
RETURNS void LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	EXECUTE format('DROP TRIGGER %I ON %s',
		'~ttl_index_' || CASE WHEN octet_length(column_name::text) <= 52 THEN column_name::text ELSE md5(column_name::text) END, relation);
END $$;

COMMENT ON FUNCTION untrack_last_modified(regclass, name) IS
'drops the trigger that track_last_modified has created, and keeps the column';

--
-- Looking ahead, and running
--

CREATE FUNCTION due_count(index regclass)
RETURNS bigint LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_due_count';

COMMENT ON FUNCTION due_count(regclass) IS
'number of rows that a pass would delete now, or move to the archive, by this TTL index, by both indexes where documents can have a TTL of their own';

CREATE FUNCTION oldest_due(index regclass)
RETURNS timestamptz LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_oldest_due';

COMMENT ON FUNCTION oldest_due(regclass) IS
'lowest key among the rows that a pass would delete now, or move to the archive, by this TTL index, NULL where none is due; for documents with a TTL of their own the key is the time when they expire';

CREATE FUNCTION lag(index regclass)
RETURNS interval LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_lag';

COMMENT ON FUNCTION lag(regclass) IS
'how long the oldest row that is due by this TTL index has been due, 0 where none is; NULL where that cannot be told without waiting or reading much, or by this role';

CREATE FUNCTION cutoff(index regclass)
RETURNS timestamptz LANGUAGE C STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_cutoff';

COMMENT ON FUNCTION cutoff(regclass) IS
'rows with dates up to this time are due by this TTL index when the statement begins, -infinity where nothing expires; for queries that leave them out';

CREATE FUNCTION preview(index regclass, max_rows integer DEFAULT 10)
RETURNS SETOF jsonb LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_preview';

COMMENT ON FUNCTION preview(regclass, integer) IS
'the rows that a pass would delete first, or move to the archive, by this TTL index, of each partition the oldest first; a SELECT as the caller';

CREATE FUNCTION forecast(index regclass, step interval DEFAULT '1 hour', steps integer DEFAULT 24,
	OUT due_from timestamptz, OUT due_until timestamptz, OUT documents bigint, OUT bytes bigint)
RETURNS SETOF record LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_forecast';

COMMENT ON FUNCTION forecast(regclass, interval, integer) IS
'about how many rows are due now (from -infinity) and fall due in each of the next steps, and what space they and their index entries take, by the statistics of ANALYZE; NULL without these';

CREATE PROCEDURE run_pass()
LANGUAGE C
AS 'MODULE_PATHNAME', 'ttl_run_pass';

COMMENT ON PROCEDURE run_pass() IS
'one full pass over this database, now, by workers that it starts and waits for, over the tables whose owner''s privileges the caller has; not inside a transaction block';

CREATE FUNCTION resume()
RETURNS void LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_resume';

COMMENT ON FUNCTION resume() IS
'lets rows expire again on this server: ends the state held, takes the clock as it is, and tries indexes in the state crashed_server again; for superusers unless granted';

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
'the rows of the view ttl_index.indexes, without the texts that only those get who ask for them: index_key(), index_filter() and index_document_ttl()';

-- They begin a subtransaction, which no process may in a parallel query, the leader neither.
CREATE FUNCTION index_key(index regclass)
RETURNS text LANGUAGE C STABLE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_shown_text_key';

COMMENT ON FUNCTION index_key(regclass) IS
'the key of an index as the view ttl_index.indexes shows it';

CREATE FUNCTION index_filter(index regclass)
RETURNS text LANGUAGE C STABLE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_shown_text_filter';

COMMENT ON FUNCTION index_filter(regclass) IS
'the filter of a TTL index as the view ttl_index.indexes shows it';

CREATE FUNCTION index_document_ttl(index regclass)
RETURNS text LANGUAGE C STABLE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_shown_text_document_ttl';

COMMENT ON FUNCTION index_document_ttl(regclass) IS
'where the documents of a TTL index have a TTL of their own, as the view ttl_index.indexes shows it';

CREATE FUNCTION relation_name(relation oid, OUT schemaname name, OUT relname name, OUT relowner oid)
RETURNS record LANGUAGE C STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'ttl_relation_name';

COMMENT ON FUNCTION relation_name(oid) IS
'the schema, the name and the owner of a relation, also of a shard, which Citus hides in pg_class; NULLs for one that is gone';

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
'every TTL index of this database, and each part of one, with its options and its state: active, or why the monitor skips it';

COMMENT ON COLUMN indexes.indexrelid IS 'the index';
COMMENT ON COLUMN indexes.relid IS 'its table';
COMMENT ON COLUMN indexes.parent_indexrelid IS 'the index that it is a partition of and whose TTL it follows; else NULL';
COMMENT ON COLUMN indexes.key IS 'the column, the jsonb column and dotted path, or the expression; an expression is NULL while the table is locked exclusively';
COMMENT ON COLUMN indexes.expire_after_seconds IS 'the seconds that govern it: those of the topmost parent with a TTL, else its own';
COMMENT ON COLUMN indexes.time_zone IS 'the time zone in which the key is read; NULL where the key is an instant by itself';
COMMENT ON COLUMN indexes.partial_filter_expression IS 'the filter, without the test of a document''s own TTL; NULL for none, and while the table is locked exclusively';
COMMENT ON COLUMN indexes.document_ttl IS 'where documents can have a TTL of their own: document_ttl_field, in the index of those without one; else NULL';
COMMENT ON COLUMN indexes.drop_expired_partitions IS 'whether the option governs it that whole partitions are dropped, or moved where there is an archive';
COMMENT ON COLUMN indexes.state IS 'active, or why it is skipped, in a word';
COMMENT ON COLUMN indexes.reason IS 'why it is not active, or what an active one leaves out, in a sentence; NULL where there is nothing to say';
COMMENT ON COLUMN indexes.logical_relid IS 'of a shard of Citus: the table that it is a part of; else NULL';
COMMENT ON COLUMN indexes.logical_indexrelid IS 'of a shard of Citus: the index of that table; else NULL';
COMMENT ON COLUMN indexes.archive_to IS 'the table that rows are moved to instead of being deleted; NULL for none';
COMMENT ON COLUMN indexes.detach_expired_partitions IS 'whether the option governs it that whole partitions are detached';

CREATE FUNCTION monitor_status(OUT status text, OUT reason text, OUT hint text)
RETURNS record LANGUAGE C VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'ttl_monitor_status';

COMMENT ON FUNCTION monitor_status() IS
'who deletes in this database: monitor; run_pass where a session with the rights of the caller has called it within ten minutes; else why nobody does, in a word, and a sentence, and what to do';

CREATE FUNCTION list_operations(
	OUT pid integer, OUT operation text, OUT relid oid, OUT indexrelid oid, OUT op_start timestamptz,
	OUT pass_start timestamptz, OUT pass_deleted bigint, OUT pass_left bigint, OUT pass_time_left interval,
	OUT index_deleted bigint, OUT index_left bigint)
RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'ttl_list_operations';

COMMENT ON FUNCTION list_operations() IS 'what each worker is at; the view ttl_index.current_op adds pg_stat_activity';

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
'what each worker of the monitor and of run_pass() is doing now, and how far its pass is; relid and indexrelid belong to the database of that row';

COMMENT ON COLUMN current_op.pid IS 'the process';
COMMENT ON COLUMN current_op.datname IS 'the database in which it works';
COMMENT ON COLUMN current_op.operation IS 'visit; pass between two visits; wait for rate limit; wait for replication; wait for locks';
COMMENT ON COLUMN current_op.relid IS 'the table that is visited, in the database datname; NULL unless the operation is a visit';
COMMENT ON COLUMN current_op.indexrelid IS 'the index that is visited, in the database datname; NULL unless the operation is a visit';
COMMENT ON COLUMN current_op.schemaname IS 'the schema of the table; NULL where datname is another database than this one, here and below';
COMMENT ON COLUMN current_op.relname IS 'the name of the table';
COMMENT ON COLUMN current_op.indexrelname IS 'the name of the index';
COMMENT ON COLUMN current_op.op_start IS 'when the visit, or the pass, began';
COMMENT ON COLUMN current_op.wait_event_type IS 'as in pg_stat_activity';
COMMENT ON COLUMN current_op.wait_event IS 'as in pg_stat_activity';
COMMENT ON COLUMN current_op.pass_start IS 'when the pass began, of which this may be one of many sub-passes; NULL while the process finds out what there is to do';
COMMENT ON COLUMN current_op.pass_deleted IS 'rows deleted in the pass before the batch at hand, without those of partitions that were dropped';
COMMENT ON COLUMN current_op.pass_left IS 'about how many rows are left of those that were due when the pass began, by the indexes by which it has deleted thousands so far; NULL where statistics lack';
COMMENT ON COLUMN current_op.pass_time_left IS 'the time for these, by the rate of the pass so far, of late above all; NULL in its first seconds';
COMMENT ON COLUMN current_op.index_deleted IS 'rows deleted in the pass by this TTL index, with all its partitions, before the batch at hand; NULL unless the operation is a visit, here and below';
COMMENT ON COLUMN current_op.index_left IS 'about how many rows are left of those that were due by it when the pass began, by statistics; NULL where these lack, where more were deleted, and until it has deleted 1,000 rows, times its partitions';

CREATE FUNCTION list_databases(
	OUT datid oid, OUT last_pass_start timestamptz, OUT last_pass_end timestamptz, OUT indexes integer,
	OUT not_active integer, OUT failing integer, OUT paused integer, OUT worst_lag interval,
	OUT pass_left bigint, OUT pass_time_left interval, OUT reason text)
RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'ttl_list_databases';

COMMENT ON FUNCTION list_databases() IS 'what the monitor knows of each database with TTL indexes; the view ttl_index.databases adds the name';

CREATE VIEW databases AS
SELECT l.datid, d.datname, l.last_pass_start, l.last_pass_end, l.indexes, l.not_active, l.failing, l.paused,
	l.worst_lag, l.pass_left, l.pass_time_left, l.reason
FROM list_databases() AS l
JOIN pg_catalog.pg_database AS d ON d.oid OPERATOR(pg_catalog.=) l.datid;

COMMENT ON VIEW databases IS
'one row for each database of the server in which the monitor has found TTL indexes, from whatever database: whether the monitor is well';

COMMENT ON COLUMN databases.datid IS 'the database';
COMMENT ON COLUMN databases.datname IS 'its name';
COMMENT ON COLUMN databases.last_pass_start IS 'when the monitor''s last pass there began; NULL for none since the monitor has started';
COMMENT ON COLUMN databases.last_pass_end IS 'when its last pass there that has ended did so; before last_pass_start while a pass goes on';
COMMENT ON COLUMN databases.indexes IS 'TTL indexes; a partitioned one with all its partitions is one';
COMMENT ON COLUMN databases.not_active IS 'of these, those from which no row is deleted, for a reason that the view indexes of that database shows';
COMMENT ON COLUMN databases.failing IS 'those with an error that no good visit has followed';
COMMENT ON COLUMN databases.paused IS 'those that are paused and else active';
COMMENT ON COLUMN databases.worst_lag IS 'how long the oldest due row of all that are not paused had been due when the monitor last looked: when a pass begins, between its sub-passes, and when it ends; NULL where it is known of none';
COMMENT ON COLUMN databases.pass_left IS 'in a pass that goes on, about how many rows are left of those that were due when it began, as in current_op; NULL where no pass goes on or that is not known';
COMMENT ON COLUMN databases.pass_time_left IS 'the time for these, as the last rows of it went';
COMMENT ON COLUMN databases.reason IS 'why the monitor deletes nothing there; NULL if it does';

-- Written only by the C code, in the transaction that deletes, and only by
-- insertion: an update would get slower with every version that an old
-- snapshot keeps.  A row is what one batch adds; a survey folds the rows of an index
-- into one for its sum, without an hour, and one for the hour at hand.  indexrelid 0 holds what belongs to no index: the passes, and what was counted
-- for indexes that are gone; those of run_pass() have in relid the role that has called
-- it, and in last_call when.
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

-- To truncate it, VACUUM would lock it exclusively.
-- Statistics of it serve nobody, and autovacuum would write 90 kB of them every 50 rows.
ALTER TABLE counters SET (vacuum_truncate = off, autovacuum_analyze_threshold = 2147483647);

COMMENT ON TABLE counters IS
'what is behind the views ttl_index.stats and ttl_index.index_stats, and the hour at hand of ttl_index.history; written by the monitor and by run_pass() only';

-- A time in the future was written by a clock that has been set back since.
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

COMMENT ON COLUMN stats.passes IS 'passes that have ended; idle ones are written with the next delete, or once a minute';
COMMENT ON COLUMN stats.sub_passes IS 'sub-passes that have ended';
COMMENT ON COLUMN stats.deleted_documents IS 'rows deleted, also by indexes that are gone; of partitions that were dropped, an estimate, unless count_dropped_documents was on';
COMMENT ON COLUMN stats.deleted_buckets IS 'partitions that went as a whole';
COMMENT ON COLUMN stats.archived_documents IS 'of the deleted rows, those that were moved to an archive, or stay in a table that was a partition';
COMMENT ON COLUMN stats.archived_buckets IS 'of these partitions, those that were moved to an archive, or stay as tables of their own';
COMMENT ON COLUMN stats.skipped_locked IS 'rows skipped because others held them, tables and indexes that were locked (each once in a pass), and partitions that could not be dropped or made because of a lock';
COMMENT ON COLUMN stats.skipped_failed IS 'rows skipped because deleting them raised an error';
COMMENT ON COLUMN stats.errors IS 'visits with an error';
COMMENT ON COLUMN stats.last_pass_start IS 'the clock at the beginning of the last pass';
COMMENT ON COLUMN stats.last_pass_end IS 'the clock at the end of the last pass that has ended';
COMMENT ON COLUMN stats.last_cutoff IS 'the clock reading of the last sub-pass';
COMMENT ON COLUMN stats.stats_reset IS 'when the counters were set to zero; NULL for never';
COMMENT ON COLUMN stats.lag_pauses IS 'how often deletion has paused for replication';

-- The text of an error can hold data of the table, and what else the code that raised it
-- can read: for the table's owner, unless that was another one then, and for those who may
-- read all statistics.
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
'one row for each TTL index: what all passes have done by it since stats_reset; delete_time in milliseconds';

COMMENT ON COLUMN index_stats.relid IS 'the table';
COMMENT ON COLUMN index_stats.indexrelid IS 'the index';
COMMENT ON COLUMN index_stats.schemaname IS 'the schema of the table';
COMMENT ON COLUMN index_stats.relname IS 'the name of the table';
COMMENT ON COLUMN index_stats.indexrelname IS 'the name of the index';
COMMENT ON COLUMN index_stats.visits IS 'visits that found something due';
COMMENT ON COLUMN index_stats.batches IS 'transactions of these visits';
COMMENT ON COLUMN index_stats.deleted_documents IS 'rows deleted; of partitions that were dropped, an estimate, unless count_dropped_documents was on';
COMMENT ON COLUMN index_stats.deleted_buckets IS 'partitions that went as a whole';
COMMENT ON COLUMN index_stats.archived_documents IS 'of the deleted rows, those that were moved to an archive, or stay in a table that was a partition';
COMMENT ON COLUMN index_stats.archived_buckets IS 'of these partitions, those that were moved to an archive, or stay as tables of their own';
COMMENT ON COLUMN index_stats.skipped_locked IS 'rows skipped because others held them, how often the index was locked (once in a pass), and partitions that could not be dropped or made because of a lock';
COMMENT ON COLUMN index_stats.skipped_failed IS 'rows skipped because deleting them raised an error';
COMMENT ON COLUMN index_stats.errors IS 'visits with an error';
COMMENT ON COLUMN index_stats.delete_time IS 'time spent in batches, in milliseconds';
COMMENT ON COLUMN index_stats.last_deleted IS 'when it last deleted a row, or dropped a partition that held some';
COMMENT ON COLUMN index_stats.last_error IS 'the text of the last error; it can hold data of the table, so it is NULL unless the reader is the owner, as whose code raised it, or may read all statistics';
COMMENT ON COLUMN index_stats.last_error_sqlstate IS 'the SQLSTATE of the last error';
COMMENT ON COLUMN index_stats.last_error_time IS 'when the last error was raised; it stays after the state failing has ended';
COMMENT ON COLUMN index_stats.stats_reset IS 'when these counters, or all, were set to zero; NULL for never';
COMMENT ON COLUMN index_stats.logical_relid IS 'of a shard of Citus: the table that it is a part of; else NULL';
COMMENT ON COLUMN index_stats.logical_indexrelid IS 'of a shard of Citus: the index of that table; else NULL';

CREATE FUNCTION stats_reset()
RETURNS void LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_stats_reset';

COMMENT ON FUNCTION stats_reset() IS
'sets all counters of ttl_index in this database to zero; for superusers unless granted';

CREATE FUNCTION stats_reset(index regclass)
RETURNS void LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'ttl_stats_reset_index';

COMMENT ON FUNCTION stats_reset(regclass) IS
'sets the counters of one TTL index to zero, with its last error; they stay in the sums of stats; for superusers unless granted';

-- What the counters had in hours that are over; they have it in their sums, too.
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
'what is behind the view ttl_index.history, but for the hour at hand; written by the monitor and by run_pass() only';

CREATE FUNCTION ignore_subscription()
RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'ttl_ignore_subscription';

COMMENT ON FUNCTION ignore_subscription() IS
'trigger function: leaves out what a subscription to all tables brings of the counters of another server';

-- Nothing else fires them: the library writes these tables without a command.
CREATE TRIGGER ignore_subscription BEFORE INSERT OR UPDATE OR DELETE ON counters
	FOR EACH ROW EXECUTE FUNCTION ignore_subscription();
ALTER TABLE counters ENABLE REPLICA TRIGGER ignore_subscription;
CREATE TRIGGER ignore_subscription BEFORE INSERT OR UPDATE OR DELETE ON past_hours
	FOR EACH ROW EXECUTE FUNCTION ignore_subscription();
ALTER TABLE past_hours ENABLE REPLICA TRIGGER ignore_subscription;
CREATE TRIGGER ignore_subscription BEFORE INSERT OR UPDATE OR DELETE ON saved_options
	FOR EACH ROW EXECUTE FUNCTION ignore_subscription();
ALTER TABLE saved_options ENABLE REPLICA TRIGGER ignore_subscription;

-- An index that is there has the names that it has now, one that is gone those that it
-- had.  By names, so that an index goes on after a REINDEX CONCURRENTLY.
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
'one row for each TTL index and hour in which it had something to do: what the passes of that hour have done by it; kept for ttl_index.history_retention, also of indexes that are gone';

COMMENT ON COLUMN history.hour IS 'when the hour began, by UTC';
COMMENT ON COLUMN history.schemaname IS 'the schema of the table';
COMMENT ON COLUMN history.relname IS 'the name of the table; the last one that was counted, if the index is gone';
COMMENT ON COLUMN history.indexrelname IS 'the name of the index; likewise';
COMMENT ON COLUMN history.deleted_documents IS 'rows deleted; of partitions that were dropped, an estimate, unless count_dropped_documents was on';
COMMENT ON COLUMN history.deleted_buckets IS 'partitions that went as a whole';
COMMENT ON COLUMN history.archived_documents IS 'of the deleted rows, those that were moved to an archive, or stay in a table that was a partition';
COMMENT ON COLUMN history.archived_buckets IS 'of these partitions, those that were moved to an archive, or stay as tables of their own';
COMMENT ON COLUMN history.batches IS 'transactions of these deletes';
COMMENT ON COLUMN history.delete_time IS 'time spent in batches, in milliseconds';
COMMENT ON COLUMN history.errors IS 'visits with an error';
COMMENT ON COLUMN history.skipped_locked IS 'rows skipped because others held them, and locks that were not free, as in index_stats';
COMMENT ON COLUMN history.skipped_failed IS 'rows skipped because deleting them raised an error';

--
-- The nodes of a cluster of Citus; without one, this server alone.
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
'runs a query that returns one jsonb on each node of a cluster of Citus, as the caller, in a transaction of each; error says why a node gave no answer';

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
'one row for each node of a cluster of Citus, with what its view ttl_index.stats shows; of a node that gives no answer, the error alone';

COMMENT ON COLUMN cluster_stats.nodeid IS 'the node, as in pg_dist_node; 0 where there is no cluster';
COMMENT ON COLUMN cluster_stats.nodename IS 'the name of its host';
COMMENT ON COLUMN cluster_stats.nodeport IS 'its port';
COMMENT ON COLUMN cluster_stats.error IS 'why it gave no answer, as when it is down; NULL if it did';
COMMENT ON COLUMN cluster_stats.version IS 'the version of the extension there';
COMMENT ON COLUMN cluster_stats.monitor IS 'who deletes there: the status of its monitor_status()';

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
'one row for each TTL index of a cluster of Citus: the sum of what the view ttl_index.index_stats of each node shows of the table and of its shards';

COMMENT ON COLUMN cluster_index_stats.schemaname IS 'the schema of the table';
COMMENT ON COLUMN cluster_index_stats.relname IS 'the name of the table, not of a shard';
COMMENT ON COLUMN cluster_index_stats.indexrelname IS 'the name of its index';
COMMENT ON COLUMN cluster_index_stats.shards IS 'so many shards are in the sums; 0 for a table that is not distributed';
COMMENT ON COLUMN cluster_index_stats.not_active IS 'so many of its indexes, of shards and of the table on each node, have another state than active';
COMMENT ON COLUMN cluster_index_stats.nodes_without_answer IS 'so many nodes are not in the sums: see cluster_stats';

-- A shard that has moved away, or was split, left rows with its own names.  They count for
-- the table that is called like it without the number, if that has such an index.
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
'one row for each TTL index of a cluster of Citus and hour in which it had something to do: the sum of what the view ttl_index.history of each node shows of the table and of its shards; cluster_stats says which nodes are left out, as they give no answer';

-- The other columns are those of the views that they sum up.
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
-- DDL: the same refusals for CREATE INDEX and friends as for create_index.  In C:
-- an event trigger runs with the rights of whoever runs the command, and what is
-- written in SQL would make that command fail where this role lacks one; it would
-- also take longer than the command, and add its own lines to every refusal.
--

CREATE FUNCTION on_ddl()
RETURNS event_trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'ttl_on_ddl';

COMMENT ON FUNCTION on_ddl() IS 'event trigger function: validates the TTL indexes that a command made or changed';

CREATE EVENT TRIGGER ttl_index_ddl ON ddl_command_end
	WHEN TAG IN ('CREATE INDEX', 'CREATE TABLE', 'CREATE SCHEMA', 'ALTER TABLE', 'ALTER INDEX')
	EXECUTE FUNCTION on_ddl();

COMMENT ON EVENT TRIGGER ttl_index_ddl IS
'refuses what cannot be a TTL index, as create_index() does';

CREATE FUNCTION on_alter_index()
RETURNS event_trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'ttl_on_alter_index';

COMMENT ON FUNCTION on_alter_index() IS
'event trigger function: changes the option of an index of Citus, on each node to which Citus carries the command of coll_mod';

CREATE EVENT TRIGGER ttl_index_before_alter_index ON ddl_command_start
	WHEN TAG IN ('ALTER INDEX')
	EXECUTE FUNCTION on_alter_index();

COMMENT ON EVENT TRIGGER ttl_index_before_alter_index IS 'changes the options of tables of Citus on each node';

--
-- Privileges, by name and whatever ALTER DEFAULT PRIVILEGES says: folding an
-- option checks the right of whoever reads the table, and whoever could write the
-- counters, or make something in the schema, could mislead those who look.
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

-- Everything works without the monitor, but who expects it would wait for ever.
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
