-- Names, settings, arguments and rules that mislead: an index does what its
-- definition says, or nothing.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA misleading;
SET search_path = misleading;
CREATE VIEW since AS SELECT passes, sub_passes, deleted_documents, skipped_failed, errors FROM ttl_index.stats;

-- no setting of a session moves the cutoff of a zone (rule 8)
CREATE TABLE zones (ts timestamp);
INSERT INTO zones VALUES (clock_timestamp() AT TIME ZONE INTERVAL '-5 hours' - interval '1 hour');
-- EST is an abbreviation too; newer time zone databases can be without the name
SELECT coalesce((SELECT name FROM pg_timezone_names WHERE name = 'EST'), 'Etc/GMT+5') AS zone \gset
SELECT ttl_index.create_index('zones', 'ts', 36000, time_zone => :'zone');
SELECT ttl_index.due_count('zones_ts_ttl');
SET timezone_abbreviations = 'Australia';
SELECT ttl_index.due_count('zones_ts_ttl');
CALL ttl_index.run_pass();
SELECT count(*) FROM zones;
RESET timezone_abbreviations;
-- and a name that is also an abbreviation with another meaning is refused
SELECT ttl_index.coll_mod('zones', 'ts', 5, 'CET');
SELECT ttl_index.coll_mod('zones', 'ts', 2000000000, 'UTC');
DROP TABLE zones;

-- the copy that an interrupted REINDEX CONCURRENTLY leaves does not bring an old
-- option back: one with a filter keeps its option in the copy
CREATE TABLE reborn (ts timestamptz, kind text);
CREATE INDEX reborn_ttl ON reborn (ts) WHERE kind IS NOT NULL AND ttl_index.expire_after_seconds(60);
CREATE INDEX reborn_ttl_ccnew ON reborn (ts) WHERE kind IS NOT NULL AND ttl_index.expire_after_seconds(60);
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'reborn_ttl_ccnew'::regclass;
INSERT INTO reborn VALUES (clock_timestamp() - interval '10 minutes', 'x');
SELECT ttl_index.coll_mod_index('reborn_ttl', 86400);
REINDEX TABLE reborn;
SELECT indexrelid, state, expire_after_seconds FROM ttl_index.indexes ORDER BY 1;
CALL ttl_index.run_pass();
SELECT count(*) FROM reborn;
-- nor when it is valid and the option is changed then
SELECT ttl_index.coll_mod_index('reborn_ttl', 90000);
SELECT ttl_index.pause_index('reborn_ttl');
SELECT indexrelid, state, expire_after_seconds FROM ttl_index.indexes ORDER BY 1;
SELECT ttl_index.unpause_index('reborn_ttl');
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'reborn_ttl_ccnew'::regclass;
SELECT ttl_index.remove_ttl('reborn_ttl');
REINDEX TABLE reborn;
SELECT count(*) FROM ttl_index.indexes;
DROP TABLE reborn;

-- names that hide the types of the event trigger
CREATE TEMP TABLE text (a int);
CREATE TEMP TABLE int4 (a int);
CREATE TEMP TABLE record (a pg_catalog.int4);
CREATE TABLE plain (a pg_catalog.int4, at timestamptz);
\c
SET search_path = misleading;
SET client_min_messages = warning;
CREATE TEMP TABLE record (a pg_catalog.int4);
CREATE INDEX plain_at ON plain (at) WHERE ttl_index.expire_after_seconds(-1);
DROP TABLE pg_temp.record;

-- the argument of an option is not a way to spend hours
CREATE TABLE costly (ts timestamptz);
CREATE INDEX costly_ttl ON costly (ts) WHERE ttl_index.expire_after_seconds((0::numeric * factorial(5))::int + 1);
CREATE INDEX costly_ttl ON costly (ts) WHERE ttl_index.expire_after_seconds(length('abc'));
CREATE INDEX costly_ttl ON costly (ts) WHERE ttl_index.expire_after_seconds(2 * 60 + 5);
SELECT expire_after_seconds FROM ttl_index.indexes;
DROP TABLE costly;

-- rule 16: a partitioned index that is not valid yet deletes nothing in its parts
CREATE TABLE half (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE half_1 PARTITION OF half FOR VALUES FROM (MINVALUE) TO ('2002-01-01');
CREATE TABLE half_2 PARTITION OF half DEFAULT;
CREATE INDEX half_ttl ON ONLY half (ts) WHERE ttl_index.expire_after_seconds(1);
CREATE INDEX half_1_ts ON half_1 (ts);
ALTER INDEX half_ttl ATTACH PARTITION half_1_ts;
INSERT INTO half VALUES ('2001-01-01');
CALL ttl_index.run_pass();
SELECT count(*) FROM half;
SELECT indexrelid, state FROM ttl_index.indexes ORDER BY 1;
CREATE INDEX half_2_ts ON half_2 (ts);
ALTER INDEX half_ttl ATTACH PARTITION half_2_ts;
CALL ttl_index.run_pass();
SELECT count(*) FROM half;
DROP TABLE half;

-- a rule that does something instead of a DELETE keeps the rows, or changes them in each pass: refused, and skipped
CREATE TABLE instead (id int, ts timestamptz);
INSERT INTO instead SELECT g, '2001-01-01' FROM generate_series(1, 10) AS g;
CREATE RULE instead AS ON DELETE TO instead DO INSTEAD UPDATE misleading.instead SET id = id;
SELECT ttl_index.create_index('instead', 'ts', 1);
CREATE INDEX ON instead (ts) WHERE ttl_index.expire_after_seconds(1);
CREATE INDEX instead_ttl ON instead (ts);
SELECT ttl_index.coll_mod_index('instead_ttl', 1);
ALTER TABLE instead DISABLE RULE instead;
SELECT ttl_index.coll_mod_index('instead_ttl', 1);
ALTER TABLE instead ENABLE RULE instead;
CREATE TABLE parted (ts timestamptz) PARTITION BY LIST (ts);
CREATE TABLE parted_rest PARTITION OF parted DEFAULT;
SELECT ttl_index.create_index('parted', 'ts', 1);
CREATE RULE sometimes AS ON DELETE TO parted WHERE OLD.ts > '2001-01-01' DO INSTEAD NOTHING;
INSERT INTO parted VALUES ('2001-01-01');
SELECT indexrelid, state, reason FROM ttl_index.indexes WHERE state <> 'active' ORDER BY 1;
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT deleted_documents, (SELECT count(*) FROM instead) AS instead, (SELECT count(*) FROM parted) AS parted FROM since;
-- the state ends with the rule
DROP RULE instead ON instead;
DROP RULE sometimes ON parted;
CALL ttl_index.run_pass();
SELECT deleted_documents, (SELECT count(*) FROM instead) AS instead, (SELECT count(*) FROM parted) AS parted FROM since;
DROP TABLE instead, parted;

-- nothing is written in a read-only transaction
CREATE TABLE frozen (ts timestamptz);
SELECT ttl_index.create_index('frozen', 'ts', 1);
BEGIN READ ONLY;
SELECT ttl_index.coll_mod_index('frozen_ts_ttl', 60);
ROLLBACK;
BEGIN READ ONLY;
SELECT ttl_index.remove_all_ttl();
ROLLBACK;
-- nor by a parallel worker, also where a function that says it is safe there calls ours
CREATE FUNCTION said_safe(command text) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE COST 10000
AS $$ DECLARE result text; BEGIN EXECUTE command INTO result; RETURN result; END $$;
INSERT INTO frozen VALUES ('infinity');
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
BEGIN;
CREATE TABLE written ();
SELECT said_safe('SELECT ttl_index.coll_mod_index(''frozen_ts_ttl'', 60)') FROM frozen;
ROLLBACK;
BEGIN;
CREATE TABLE written ();
SELECT said_safe('SELECT ttl_index.drop_index(''frozen'', ''ts'')') FROM frozen;
ROLLBACK;
BEGIN;
CREATE TABLE written ();
SELECT said_safe('SELECT ttl_index.stats_reset()') FROM frozen;
ROLLBACK;
-- a query that could be parallel shows keys and filters
CREATE FUNCTION is_cold(timestamptz) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN $1 > '2000-01-01'; END $$;
CREATE TABLE colds (ts timestamptz);
CREATE INDEX cold ON colds (ts) WHERE is_cold(ts) AND ttl_index.expire_after_seconds(1);
SELECT i.partial_filter_expression, n FROM ttl_index.indexes AS i, (SELECT count(said_safe('SELECT 1')) AS n FROM frozen) AS f WHERE i.indexrelid = 'cold'::regclass;
DROP TABLE colds;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
DROP FUNCTION said_safe;
DROP TABLE frozen;

-- a constraint elsewhere that names an index, as anybody can make, is no constraint of it
CREATE TABLE named (ts timestamptz);
SELECT ttl_index.create_index('named', 'ts', 1);
CREATE DOMAIN naming AS int CHECK ('named_ts_ttl'::regclass IS NOT NULL);
SELECT state, reason FROM ttl_index.indexes WHERE indexrelid = 'named_ts_ttl'::regclass;
DROP DOMAIN naming;
DROP TABLE named;

-- an option that cannot be computed, beside a member for which nobody has to: an error for nobody who looks
CREATE TABLE hidden (ts timestamptz);
CREATE INDEX CONCURRENTLY hidden_ttl ON hidden (ts) WHERE false AND ttl_index.expire_after_seconds(1 / 0);
CREATE INDEX CONCURRENTLY hidden_typmod_ttl ON hidden (ts) WHERE false
	AND ttl_index.expire_after_seconds(ttl_index.seconds("interval"(interval '1 day', 99)));
REINDEX INDEX hidden_ttl;
REINDEX INDEX hidden_typmod_ttl;
SELECT indexrelid, state, reason FROM ttl_index.indexes;
SELECT ttl_index.remove_all_ttl();
DROP TABLE hidden;
SET client_min_messages = error;
DROP SCHEMA misleading CASCADE;
