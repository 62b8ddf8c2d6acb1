-- The option in the index predicate: doc/semantics.md, option rules 1 and 7,
-- and rules 13 and 17.
\set VERBOSITY terse
SET client_min_messages = warning;

-- always true, on both ends of the range, and no library is needed for it
SELECT bool_and(ttl_index.expire_after_seconds(n)) AS always_true FROM generate_series(0, 5000) AS n;
SELECT ttl_index.expire_after_seconds(-2147483648) AND ttl_index.expire_after_seconds(2147483647)
	AND ttl_index.expire_after_seconds(NULL) AS always_true;
SELECT bool_and(ttl_index.time_zone(name)) AS always_true FROM pg_timezone_names;
SELECT ttl_index.time_zone('') AS empty, ttl_index.time_zone(NULL) AS "null";
SELECT proname, prolang = (SELECT oid FROM pg_language WHERE lanname = 'internal') AS internal,
	provolatile, proparallel, prosrc
FROM pg_proc WHERE pronamespace = 'ttl_index'::regnamespace AND proname IN ('expire_after_seconds', 'time_zone')
ORDER BY proname;

CREATE SCHEMA opt;
SET search_path = opt;
CALL ttl_index.run_pass();
CREATE TABLE eventlog (id int, last_modified timestamptz, sensor text, other timestamptz);
INSERT INTO eventlog SELECT g, '2001-01-01'::timestamptz + g * interval '1 minute', 's' || g % 10,
	'2001-01-01'::timestamptz + g * interval '1 minute' FROM generate_series(1, 20000) AS g;
CREATE INDEX eventlog_plain ON eventlog (other);
CREATE INDEX eventlog_ttl ON eventlog (last_modified) WHERE ttl_index.expire_after_seconds(3600);
VACUUM ANALYZE eventlog;
\d eventlog
SELECT pg_get_indexdef('eventlog_ttl'::regclass);

-- rule 17: the plans are those of an index without the option
CREATE FUNCTION same_plan(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plans text[] := '{"", ""}';
	queries text[] := ARRAY[replace(query, '@', 'last_modified'), replace(query, '@', 'other')];
BEGIN
	FOR i IN 1..2 LOOP
		FOR line IN EXECUTE 'EXPLAIN ' || queries[i] LOOP
			plans[i] := plans[i] || E'\n' || line;
		END LOOP;
	END LOOP;
	plans[2] := replace(replace(plans[2], 'eventlog_plain', 'eventlog_ttl'), 'other', 'last_modified');
	IF plans[1] = plans[2] AND plans[1] LIKE '%eventlog_ttl%' THEN
		RETURN 'same';
	END IF;
	RETURN plans[1] || E'\n---' || plans[2];
END $$;
SELECT same_plan('SELECT * FROM eventlog WHERE @ = ''2001-01-02 03:04''');
SELECT same_plan('SELECT * FROM eventlog WHERE @ < ''2001-01-01 01:00''');
SELECT same_plan('SELECT * FROM eventlog ORDER BY @ LIMIT 10');
SELECT same_plan('SELECT * FROM eventlog ORDER BY @ DESC LIMIT 10');
SELECT same_plan('SELECT max(@) FROM eventlog');
SELECT same_plan('SELECT @ FROM eventlog WHERE @ BETWEEN ''2001-01-02'' AND ''2001-01-03''');
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT same_plan('SELECT count(*) FROM eventlog a JOIN eventlog b USING (@)');
RESET enable_hashjoin;
RESET enable_nestloop;
SELECT same_plan('SELECT * FROM eventlog WHERE @ = ANY (ARRAY[''2001-01-02''::timestamptz, ''2001-01-03''])');
-- and so are the results
SET enable_seqscan = off;
SELECT count(*), min(last_modified) = min(other) AS min, max(last_modified) = max(other) AS max
FROM eventlog WHERE last_modified < '2001-01-10';
RESET enable_seqscan;

-- how an option may be written
CREATE INDEX o1 ON eventlog (last_modified) WHERE ttl_index.expire_after_seconds(60*60);
CREATE INDEX o2 ON eventlog (last_modified) WHERE ttl_index.expire_after_seconds(30 * 60 + ttl_index.seconds(interval '30 minutes'));
CREATE INDEX o3 ON eventlog (last_modified) WHERE sensor = 's1' AND ttl_index.expire_after_seconds(0) AND id > 5;
CREATE INDEX o4 ON eventlog (last_modified DESC NULLS LAST) INCLUDE (id) WHERE ttl_index.expire_after_seconds(2147483647);
CREATE INDEX CONCURRENTLY o5 ON eventlog (last_modified) WHERE ttl_index.expire_after_seconds(7);
SELECT indexrelid, key, expire_after_seconds, partial_filter_expression, state
FROM ttl_index.indexes ORDER BY indexrelid::text COLLATE "C";
DROP INDEX o1, o2, o3, o4, o5;

-- by name, too; coll_mod leaves the name out
CREATE INDEX o1 ON eventlog (last_modified) WHERE ttl_index.expire_after_seconds(seconds => 60);
CREATE INDEX o2 ON eventlog (last_modified) WHERE id > 5 AND ttl_index.expire_after_seconds(seconds := 60*60);
CREATE INDEX o3 ON eventlog (timezone('UTC', last_modified))
	WHERE ttl_index.time_zone(zone => 'UTC') AND ttl_index.expire_after_seconds(seconds => 0);
SELECT indexrelid, key, expire_after_seconds, time_zone, partial_filter_expression, state
FROM ttl_index.indexes ORDER BY indexrelid::text COLLATE "C";
SELECT pg_get_indexdef('o1'::regclass);
REINDEX INDEX CONCURRENTLY o1;
SELECT ttl_index.coll_mod_index('o1', 61), ttl_index.coll_mod_index('o3', 1);
SELECT pg_get_indexdef(i) FROM unnest('{o1,o3}'::regclass[]) AS i;
SELECT ttl_index.remove_ttl('o2');
SELECT pg_get_indexdef('o2'::regclass);
DROP INDEX o1, o2, o3;
CREATE TABLE parts (ts timestamptz) PARTITION BY RANGE (ts);
CREATE INDEX parts_ttl ON parts (ts) WHERE ttl_index.expire_after_seconds(seconds => -1)
	AND ttl_index.drop_expired_partitions(delete_boundary_rows => true) AND ttl_index.bucket_max_span_seconds(seconds => 3600);
SELECT expire_after_seconds, drop_expired_partitions, state FROM ttl_index.indexes WHERE relid = 'parts'::regclass;
DROP INDEX parts_ttl;
CREATE INDEX bad ON parts (ts) WHERE ttl_index.expire_after_seconds(5) AND ttl_index.drop_expired_partitions(minimum => true);
CREATE INDEX bad ON parts (ts) WHERE ttl_index.expire_after_seconds(seconds => 5, minimum => 0);
CREATE INDEX bad ON parts (ts) WHERE ttl_index.expire_after_seconds(seconds => NULL);
DROP TABLE parts;

-- and how not (rule of the option 1)
CREATE INDEX bad ON eventlog (last_modified) WHERE ttl_index.expire_after_seconds(-1);
CREATE INDEX bad ON eventlog (last_modified) WHERE ttl_index.expire_after_seconds(NULL);
CREATE INDEX bad ON eventlog (last_modified) WHERE ttl_index.expire_after_seconds(id);
CREATE INDEX bad ON eventlog (last_modified) WHERE ttl_index.expire_after_seconds(5, 5);
CREATE INDEX bad ON eventlog (last_modified) WHERE ttl_index.expire_after_seconds(5) OR id > 3;
CREATE INDEX bad ON eventlog (last_modified) WHERE NOT ttl_index.expire_after_seconds(5);
CREATE INDEX bad ON eventlog (last_modified) WHERE CASE WHEN id > 1 THEN ttl_index.expire_after_seconds(5) END;
CREATE INDEX bad ON eventlog (last_modified) WHERE ttl_index.expire_after_seconds(5) AND ttl_index.expire_after_seconds(6);
CREATE INDEX bad ON eventlog (last_modified) WHERE id > 1 AND (id > 2 AND ttl_index.expire_after_seconds(5));
CREATE INDEX bad ON eventlog (last_modified) WHERE ttl_index.expire_after_seconds(1/0);
CREATE INDEX bad ON eventlog (last_modified) WHERE ttl_index.expire_after_seconds(2147483647 * 2);
CREATE FUNCTION mine() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 5';
CREATE INDEX bad ON eventlog (last_modified) WHERE ttl_index.expire_after_seconds(mine());
CREATE INDEX bad ON eventlog (last_modified) WHERE ttl_index.time_zone('UTC');
CREATE INDEX bad ON eventlog (last_modified) WHERE ttl_index.expire_after_seconds(5) AND ttl_index.time_zone('UTC');


-- nor anywhere but in the predicate
CREATE INDEX bad ON eventlog (ttl_index.expire_after_seconds(5));
CREATE UNIQUE INDEX bad ON eventlog (id, (CASE WHEN ttl_index.expire_after_seconds(5) THEN last_modified END));
CREATE INDEX bad ON eventlog (last_modified, ttl_index.time_zone(sensor));
CREATE INDEX bad ON eventlog ((CASE WHEN ttl_index.drop_expired_partitions() THEN last_modified END))
	WHERE ttl_index.expire_after_seconds(5);
CREATE INDEX bad ON eventlog USING gin ((ARRAY[ttl_index.bucket_max_span_seconds(id)]));
ALTER TABLE eventlog ADD EXCLUDE ((CASE WHEN ttl_index.expire_after_seconds(5) THEN id END) WITH =);

-- what is no key of a TTL index (rule 13)
\set VERBOSITY default
\set SHOW_CONTEXT never
CREATE INDEX bad ON eventlog (last_modified, id) WHERE ttl_index.expire_after_seconds(5);
CREATE INDEX bad ON eventlog (sensor) WHERE ttl_index.expire_after_seconds(5);
CREATE UNIQUE INDEX bad ON eventlog (last_modified) WHERE ttl_index.expire_after_seconds(5);
CREATE INDEX bad ON eventlog USING hash (last_modified) WHERE ttl_index.expire_after_seconds(5);
CREATE INDEX bad ON eventlog USING brin (last_modified) WHERE ttl_index.expire_after_seconds(5);
CREATE OPERATOR CLASS mine FOR TYPE timestamptz USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 timestamptz_cmp(timestamptz, timestamptz);
CREATE INDEX bad ON eventlog (last_modified mine) WHERE ttl_index.expire_after_seconds(5);
CREATE TEMP TABLE temporary (ts timestamptz);
CREATE INDEX bad ON temporary (ts) WHERE ttl_index.expire_after_seconds(5);
CREATE MATERIALIZED VIEW mat AS SELECT last_modified FROM eventlog;
CREATE INDEX bad ON mat (last_modified) WHERE ttl_index.expire_after_seconds(5);

-- CONCURRENTLY raises the same, and leaves an index that is not valid, as any build that fails
CREATE INDEX CONCURRENTLY bad ON eventlog (last_modified) WHERE ttl_index.expire_after_seconds(-1);
CREATE INDEX CONCURRENTLY bad2 ON eventlog (last_modified, id) WHERE ttl_index.expire_after_seconds(1);
SELECT indexrelid, expire_after_seconds, state, reason FROM ttl_index.indexes WHERE indexrelid::text LIKE 'bad%' ORDER BY 1;
SELECT indexrelid::regclass, indisvalid FROM pg_index WHERE indexrelid IN ('bad'::regclass, 'bad2'::regclass) ORDER BY 1;
DROP INDEX bad, bad2;

-- an option that the library does not know, as that of a later version: it may ask for anything but
-- deleting the rows
BEGIN;
CREATE TABLE elsewhere (LIKE eventlog);
CREATE INDEX unknown_1 ON eventlog (last_modified) WHERE ttl_index.expire_after_seconds(5) AND ttl_index.archive_to('opt.elsewhere');
CREATE INDEX unknown_2 ON eventlog (last_modified) WHERE id > 0 AND ttl_index.expire_after_seconds(6) AND ttl_index.paused();
ALTER FUNCTION ttl_index.archive_to(regclass, regclass) RENAME TO later_option;
ALTER FUNCTION ttl_index.paused(boolean, boolean) SET SCHEMA opt;
SELECT indexrelid, state, reason FROM ttl_index.indexes WHERE indexrelid::text ~ 'unknown' ORDER BY 1;
CREATE INDEX unknown_3 ON eventlog (last_modified) WHERE ttl_index.expire_after_seconds(5) AND ttl_index.later_option('opt.elsewhere');
ROLLBACK;

-- rule 7: what every user may do, whatever the default privileges say
SELECT proname FROM pg_proc
WHERE pronamespace = 'ttl_index'::regnamespace AND NOT has_function_privilege('public', oid, 'EXECUTE')
ORDER BY proname;
SELECT has_schema_privilege('public', 'ttl_index', 'USAGE'), has_schema_privilege('public', 'ttl_index', 'CREATE');
-- every object that users see is described
SELECT count(*) AS undescribed FROM pg_proc
WHERE pronamespace = 'ttl_index'::regnamespace AND obj_description(oid, 'pg_proc') IS NULL;
SELECT count(*) AS undescribed FROM pg_class
WHERE relnamespace = 'ttl_index'::regnamespace AND relkind IN ('r', 'v') AND obj_description(oid, 'pg_class') IS NULL;

SET client_min_messages = error;
DROP SCHEMA opt CASCADE;
