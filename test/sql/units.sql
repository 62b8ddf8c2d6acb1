-- Numbers as dates: keys that count seconds since 1970, or parts of one, and UUIDs of version 7 (rule 45).
\set SHOW_CONTEXT never
SET client_min_messages = warning;
SET TimeZone = 'UTC';
SET datestyle = 'ISO';
SET extra_float_digits = 1;
CREATE SCHEMA units;
SET search_path = units;

-- Every case is a row whose name says what becomes of it.
CREATE FUNCTION run(rel regclass) RETURNS TABLE (survivors text) LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY EXECUTE format('SELECT string_agg(name, '', '' ORDER BY name) FROM %s', rel);
END $$;

-- each type; 2001 and 3000, and what programs write for "none"
CREATE TABLE of_int (name text, n int);
INSERT INTO of_int VALUES ('stays: null', NULL), ('stays: 0', 0), ('stays: -1', -1), ('stays: least', -2147483648),
	('goes: 1', 1), ('goes: 2001', 1000000000), ('stays: 2038', 2147483647);
CREATE TABLE of_bigint (name text, n bigint);
INSERT INTO of_bigint VALUES ('stays: null', NULL), ('stays: 0', 0), ('stays: -1', -1), ('stays: least', -9223372036854775808),
	('goes: 1', 1), ('goes: 2001', 1000000000000), ('stays: 3000', 32503680000000), ('stays: greatest', 9223372036854775807),
	('stays: out of range', 9223372036854775806);
CREATE TABLE of_double (name text, n double precision);
INSERT INTO of_double VALUES ('stays: null', NULL), ('stays: 0', 0), ('stays: -0', '-0'), ('stays: -1', -1), ('stays: -Infinity', '-Infinity'),
	('goes: 5e-324', '5e-324'), ('goes: 0.5', 0.5), ('goes: 2001', 1000000000.25), ('stays: 3000', 32503680000.5),
	('stays: 1e300', '1e300'), ('stays: Infinity', 'Infinity'), ('stays: NaN', 'NaN');
CREATE TABLE of_numeric (name text, n numeric);
INSERT INTO of_numeric VALUES ('stays: null', NULL), ('stays: 0', 0), ('stays: 0.000', 0.000), ('stays: -0.5', -0.5), ('stays: -1', -1),
	('stays: -Infinity', '-Infinity'), ('goes: 0.5', 0.5), ('goes: 2001', 1000000000.123456789012345678901234567890),
	('stays: 3000', 32503680000), ('stays: 1e30', 1e30), ('stays: Infinity', 'Infinity'), ('stays: NaN', 'NaN');
SELECT ttl_index.create_index('of_int', 'n', 0, unit => 'seconds');
SELECT ttl_index.create_index('of_bigint', 'n', 0, unit => 'milliseconds');
SELECT ttl_index.create_index('of_double', 'n', 0, unit => 'seconds');
SELECT ttl_index.create_index('of_numeric', 'n', 0, unit => 'seconds');
SELECT indexrelid, key, time_zone, unit, state FROM ttl_index.indexes WHERE relid::text LIKE 'of_%' ORDER BY 1;
SELECT ttl_index.due_count('of_int_n_ttl'), ttl_index.due_count('of_bigint_n_ttl'),
	ttl_index.due_count('of_double_n_ttl'), ttl_index.due_count('of_numeric_n_ttl');
SELECT ttl_index.oldest_due('of_int_n_ttl'), ttl_index.lag('of_int_n_ttl') > '40 years' AS lags;
SELECT abs(ttl_index.cutoff_number('of_int_n_ttl') - extract(epoch FROM now())) < 60 AS seconds,
	abs(ttl_index.cutoff_number('of_bigint_n_ttl') / 1000 - extract(epoch FROM now())) < 60 AS milliseconds;
SELECT name AS hidden FROM of_bigint WHERE n > 0 AND n <= ttl_index.cutoff_number('of_bigint_n_ttl') ORDER BY n;
SELECT p ->> 'name' AS preview FROM ttl_index.preview('of_int_n_ttl') AS p;
SELECT p ->> 'name' AS preview FROM ttl_index.preview('of_bigint_n_ttl') AS p;
SELECT p ->> 'name' AS preview FROM ttl_index.preview('of_double_n_ttl') AS p;
SELECT p ->> 'name' AS preview FROM ttl_index.preview('of_numeric_n_ttl') AS p;
CALL ttl_index.run_pass();
SELECT * FROM run('of_int');
SELECT * FROM run('of_bigint');
SELECT * FROM run('of_double');
SELECT * FROM run('of_numeric');
-- each unit, a second ago and in an hour
CREATE TABLE edge (name text, s bigint, ms bigint, us bigint, ns bigint);
INSERT INTO edge SELECT name, m / 1000000, m / 1000, m, m * 1000
	FROM (VALUES ('goes: a second ago', -1), ('stays: in an hour', 3600)) AS v (name, seconds),
	LATERAL (SELECT floor(extract(epoch FROM clock_timestamp()) + seconds)::bigint * 1000000 AS m) AS _;
SELECT ttl_index.create_index('edge', 's', 0, unit => 'seconds', paused => true),
	ttl_index.create_index('edge', 'ms', 0, unit => 'milliseconds', paused => true),
	ttl_index.create_index('edge', 'us', 0, unit => 'microseconds', paused => true),
	ttl_index.create_index('edge', 'ns', 0, unit => 'nanoseconds', paused => true);
SELECT indexrelid, unit, ttl_index.due_count(indexrelid), (SELECT p ->> 'name' FROM ttl_index.preview(indexrelid) AS p)
	FROM ttl_index.indexes WHERE relid = 'edge'::regclass ORDER BY 1;
-- the cutoff is rounded down, so that no row is early
SELECT unit, ttl_index.cutoff_number(indexrelid) = floor(extract(epoch FROM ttl_index.cutoff(indexrelid)) * per_second) AS exact
	FROM ttl_index.indexes JOIN (VALUES ('seconds', 1), ('milliseconds', 1000), ('microseconds', 1000000), ('nanoseconds', 1000000000)) AS u (unit, per_second) USING (unit)
	WHERE relid = 'edge'::regclass ORDER BY per_second;
-- 2^63 - 1 nanoseconds are in 2262, and stand for "never" all the same
CREATE TABLE nanos (name text, n bigint);
INSERT INTO nanos VALUES ('goes: 2001', 1000000000000000001), ('stays: greatest', 9223372036854775807), ('stays: 0', 0);
SELECT ttl_index.create_index('nanos', 'n', 0, unit => 'nanoseconds');
SELECT ttl_index.oldest_due('nanos_n_ttl');
CALL ttl_index.run_pass();
SELECT * FROM run('nanos');

-- UUIDs: only version 7 of the variant of RFC 9562
CREATE TABLE ids (name text, id uuid);
INSERT INTO ids VALUES ('goes: 2001', '00e8d4a5-1000-7000-8000-000000000000'), ('goes: 2024', '018df0a1-7b80-7fff-bfff-ffffffffffff'),
	('stays: version 4', '00e8d4a5-1000-4000-8000-000000000000'), ('stays: other variant', '00e8d4a5-1000-7000-c000-000000000000'),
	('stays: nil', '00000000-0000-0000-0000-000000000000'), ('stays: 1970', '00000000-0000-7000-8000-000000000000'),
	('stays: 3000', '1d8fd0c1-e800-7000-8000-000000000000'), ('stays: 9999', 'e677d21f-dbff-7000-8000-000000000000'),
	('stays: max', 'ffffffff-ffff-ffff-ffff-ffffffffffff'), ('stays: null', NULL);
SELECT ttl_index.create_index('ids', 'id', 0, unit => 'uuidv7');
SELECT ttl_index.due_count('ids_id_ttl'), ttl_index.oldest_due('ids_id_ttl');
SELECT p ->> 'name' AS preview FROM ttl_index.preview('ids_id_ttl') AS p;
CALL ttl_index.run_pass();
SELECT * FROM run('ids');

-- many keys that differ in what no integer shows, in many batches; ascending and descending
CREATE TABLE many (i int, u uuid, d double precision, n numeric, b bigint);
CREATE FUNCTION fill() RETURNS void LANGUAGE sql AS $$
	INSERT INTO many SELECT i, ('018df0a1-7b80-7000-8000-' || lpad(to_hex((i * 7919) % 6007), 12, '0'))::uuid,
		1000000000 + ((i * 7919) % 6007) / 8192.0, 1000000000 + ((i * 7919) % 6007)::numeric / 6007, 0
	FROM generate_series(1, 6000) AS i;
	INSERT INTO many SELECT i, ('018df0a1-7b80-4000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 0, 0, 0 FROM generate_series(6001, 7000) AS i;
$$;
DO $$
DECLARE
	keys text[] := '{u,u DESC,d,d DESC,n,n DESC NULLS LAST}';
BEGIN
	FOR i IN 1 .. 6 LOOP
		EXECUTE format('CREATE INDEX many_%s ON many (%s) WHERE ttl_index.expire_after_seconds(0) AND ttl_index.unit(%L) AND ttl_index.paused()',
			i, keys[i], CASE WHEN i <= 2 THEN 'uuidv7' ELSE 'seconds' END);
	END LOOP;
END $$;
SELECT fill();
SELECT ttl_index.due_count('many_1') AS u, ttl_index.due_count('many_2') AS u_desc, ttl_index.due_count('many_3') AS d,
	ttl_index.due_count('many_4') AS d_desc, ttl_index.due_count('many_5') AS n, ttl_index.due_count('many_6') AS n_desc;
-- a trigger keeps every 1000th row
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN CASE WHEN OLD.i % 1000 = 0 THEN NULL ELSE OLD END; END $$;
CREATE TRIGGER refuse BEFORE DELETE ON many FOR EACH ROW EXECUTE FUNCTION refuse();
SELECT ttl_index.unpause_index('many_1');
CALL ttl_index.run_pass();
SELECT count(*), min(i), max(i), count(*) FILTER (WHERE i > 6000) AS others FROM many;
TRUNCATE many; SELECT fill(); SELECT ttl_index.pause_index('many_1'), ttl_index.unpause_index('many_2');
CALL ttl_index.run_pass();
SELECT count(*), min(i), max(i), count(*) FILTER (WHERE i > 6000) AS others FROM many;
TRUNCATE many; SELECT fill(); SELECT ttl_index.pause_index('many_2'), ttl_index.unpause_index('many_3');
CALL ttl_index.run_pass();
SELECT count(*), min(i), max(i), count(*) FILTER (WHERE i > 6000) AS others FROM many;
TRUNCATE many; SELECT fill(); SELECT ttl_index.pause_index('many_3'), ttl_index.unpause_index('many_4');
CALL ttl_index.run_pass();
SELECT count(*), min(i), max(i), count(*) FILTER (WHERE i > 6000) AS others FROM many;
TRUNCATE many; SELECT fill(); SELECT ttl_index.pause_index('many_4'), ttl_index.unpause_index('many_5');
CALL ttl_index.run_pass();
SELECT count(*), min(i), max(i), count(*) FILTER (WHERE i > 6000) AS others FROM many;
TRUNCATE many; SELECT fill(); SELECT ttl_index.pause_index('many_5'), ttl_index.unpause_index('many_6');
CALL ttl_index.run_pass();
SELECT count(*), min(i), max(i), count(*) FILTER (WHERE i > 6000) AS others FROM many;
DROP TABLE many;

-- the index serves the application's own queries, costs no expression, and its definition can be replayed
CREATE TABLE limits (name text, expire bigint);
SELECT ttl_index.create_index('limits', 'expire', 60, unit => 'milliseconds');
SELECT pg_get_indexdef('limits_expire_ttl'::regclass) AS definition \gset
\echo :definition
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT FROM limits WHERE expire < 1000000000000;
RESET enable_seqscan;
DROP INDEX limits_expire_ttl;
:definition;
SELECT expire_after_seconds, unit, state FROM ttl_index.indexes WHERE relid = 'limits'::regclass;

-- what does not fit
SELECT ttl_index.create_index('limits', 'expire', 0, name => 'other', partial_filter_expression => 'name IS NULL');
SELECT ttl_index.create_index('limits', 'expire', 0, 'name IS NULL', unit => 'minutes');
SELECT ttl_index.create_index('limits', 'expire', 0, 'name IS NULL', unit => 'uuidv7');
SELECT ttl_index.create_index('limits', 'expire', 0, 'name IS NULL', unit => 'seconds', time_zone => 'UTC');
SELECT ttl_index.create_index('limits', 'expire', 0, unit => 'seconds');
SELECT ttl_index.create_index('limits', 'expire', 0, unit => 'seconds', document_ttl_field => 'expire', name => 'other');
CREATE INDEX ON limits (expire) WHERE ttl_index.expire_after_seconds(0);
CREATE INDEX ON limits (expire) WHERE ttl_index.expire_after_seconds(0) AND ttl_index.unit('minutes');
CREATE INDEX ON limits (expire) WHERE ttl_index.expire_after_seconds(0) AND ttl_index.unit('seconds') AND ttl_index.unit('seconds');
CREATE INDEX ON limits (expire) WHERE ttl_index.unit('seconds');
CREATE TABLE others (at timestamptz, small smallint, id uuid, day date);
SELECT ttl_index.create_index('others', 'at', 0, unit => 'seconds');
SELECT ttl_index.create_index('others', 'day', 0, unit => 'seconds', time_zone => 'UTC');
SELECT ttl_index.create_index('others', 'small', 0, unit => 'seconds');
SELECT ttl_index.create_index('others', 'id', 0);
SELECT ttl_index.create_index('others', 'id', 0, unit => 'seconds');

-- coll_mod: a plain index becomes a TTL index, and keeps its unit
CREATE TABLE plain (name text, n bigint);
CREATE INDEX plain_n ON plain (n);
INSERT INTO plain VALUES ('goes: 2001', 1000000000), ('stays: 0', 0), ('stays: 3000', 32503680000);
SELECT * FROM ttl_index.coll_mod('plain', 'n', 60);
SET client_min_messages = notice;
SELECT * FROM ttl_index.coll_mod('plain', 'n', 60, unit => 'milliseconds');
SELECT * FROM ttl_index.coll_mod('plain', 'n', 3600, unit => 'seconds');
SET client_min_messages = warning;
SELECT * FROM ttl_index.coll_mod_index('plain_n', 1800);
SELECT expire_after_seconds, unit, state FROM ttl_index.indexes WHERE indexrelid = 'plain_n'::regclass;
-- REINDEX CONCURRENTLY loses the option; the next pass restores it
SELECT ttl_index.pause_index('plain_n');
REINDEX INDEX CONCURRENTLY plain_n;
SELECT state FROM ttl_index.indexes WHERE indexrelid = 'plain_n'::regclass;
CALL ttl_index.run_pass();
SELECT pg_get_expr(indpred, indrelid) FROM pg_index WHERE indexrelid = 'plain_n'::regclass;
SELECT ttl_index.unpause_index('plain_n');
CALL ttl_index.run_pass();
SELECT * FROM run('plain');
-- the wrong unit: a warning
CREATE TABLE wrong (n bigint);
INSERT INTO wrong SELECT 1700000000 + i FROM generate_series(1, 10) AS i;
SELECT ttl_index.create_index('wrong', 'n', 0, unit => 'milliseconds', paused => true);
DROP INDEX wrong_n_ttl;
UPDATE wrong SET n = n * 1000;
SELECT ttl_index.create_index('wrong', 'n', 0, unit => 'seconds');
DROP INDEX wrong_n_ttl;
UPDATE wrong SET n = 0;
SELECT ttl_index.create_index('wrong', 'n', 0, unit => 'seconds');

-- an expression as the key of create_index
CREATE TABLE expressions (name text, a bigint, "B" bigint, at timestamptz);
INSERT INTO expressions VALUES ('goes: a', 1000000000, 0, NULL), ('stays', 0, 0, NULL), ('goes: at', 0, 0, '2001-01-01');
SELECT ttl_index.create_index('expressions', 'greatest(a, "B")', 60, 'name <> ''x'' -- not x', unit => 'seconds');
SELECT ttl_index.create_index('expressions', 'greatest(a, "B")', 60, 'name <> ''x''', unit => 'seconds');
SELECT ttl_index.create_index('expressions', 'greatest(a, "B")', 60, 'name <> ''x''', unit => 'milliseconds');
SELECT ttl_index.create_index('expressions', 'to_timestamp(nullif(a, 0)) -- a comment', 0, name => 'later');
SELECT ttl_index.create_index('expressions', '(at AT TIME ZONE ''UTC'') + interval ''1 month''', 0, time_zone => 'UTC');
SELECT ttl_index.create_index('expressions', '"B"', 0, unit => 'seconds');
SELECT ttl_index.create_index_command('expressions', 'a + 1', 0, unit => 'seconds');
-- not immutable; 19 also shows where
\set VERBOSITY sqlstate
SELECT ttl_index.create_index('expressions', 'at + interval ''1 day''', 0);
\echo :LAST_ERROR_MESSAGE
\set VERBOSITY default
SELECT ttl_index.create_index('expressions', 'lower(name)', 0);
SELECT ttl_index.create_index('expressions', 'a, "B"', 0, unit => 'seconds');
SELECT ttl_index.create_index('expressions', 'nothing', 0);
SELECT indexrelid, key, unit, time_zone FROM ttl_index.indexes WHERE relid = 'expressions'::regclass ORDER BY indexrelid::text;
CALL ttl_index.run_pass();
SELECT * FROM run('expressions');

-- with all arguments: a TTL of its own, an archive, a change, a pause
CREATE TABLE own (name text, a timestamptz, b timestamptz, doc jsonb);
CREATE TABLE own_archive (LIKE own);
INSERT INTO own VALUES ('goes', '2001-01-01', NULL, '{}'), ('goes: ttl', '2001-01-01', NULL, '{"ttl": 5}'), ('stays: never', '2001-01-01', NULL, '{"ttl": -1}'),
	('stays: b', '2001-01-01', '2999-01-01', '{}');
SELECT ttl_index.create_index('own', 'greatest(a, b) -- the later one', 60, document_ttl_field => 'doc.ttl', archive_to => 'own_archive', paused => true);
SELECT ttl_index.create_index('own', 'GREATEST(a, b)', 60, document_ttl_field => 'doc.ttl', archive_to => 'own_archive', paused => true);
SELECT ttl_index.create_index('own', 'greatest(a,b)', 30, document_ttl_field => 'doc.ttl', or_change => true, paused => false);
SELECT indexrelid, key, expire_after_seconds, document_ttl, archive_to, state FROM ttl_index.indexes WHERE relid = 'own'::regclass ORDER BY 1;
CALL ttl_index.run_pass();
SELECT * FROM run('own');
SELECT * FROM run('own_archive');
SELECT * FROM ttl_index.coll_mod('own', 'greatest(a, b)', 20);
SELECT ttl_index.drop_index('own', 'greatest(a, b)');
SELECT count(*) FROM pg_index WHERE indrelid = 'own'::regclass;

-- a filter and an expression
CREATE TABLE events (name text, data jsonb, n bigint);
INSERT INTO events VALUES ('goes', '{"at": 1000000000}', 1000000000), ('stays: later', '{"at": 32503680000}', 1000000000),
	('stays: filtered', '{"at": 1000000000, "open": true}', 1000000000), ('stays: none', '{}', NULL);
CREATE INDEX events_at ON events (((data ->> 'at')::bigint)) WHERE data ->> 'open' IS NULL
	AND ttl_index.expire_after_seconds(0) AND ttl_index.unit('seconds');
CALL ttl_index.run_pass();
SELECT * FROM run('events');

-- an archive
CREATE TABLE old_events (name text, data jsonb, n bigint);
SELECT ttl_index.create_index('events', 'n', 0, unit => 'seconds', archive_to => 'old_events');
CALL ttl_index.run_pass();
SELECT * FROM run('events');
SELECT * FROM run('old_events');

-- statistics: zeros are not due
CREATE TABLE stats (n bigint);
INSERT INTO stats SELECT 0 FROM generate_series(1, 100);
INSERT INTO stats SELECT 1000000000 + i FROM generate_series(1, 300) AS i;
SELECT ttl_index.create_index('stats', 'n', 0, unit => 'seconds', paused => true);
ANALYZE stats;
SELECT documents FROM ttl_index.forecast('stats_n_ttl', steps => 0);

-- whole partitions; one that can hold 0 goes row by row
CREATE TABLE parts (name text, n bigint) PARTITION BY RANGE (n);
CREATE TABLE parts_none PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (0);
CREATE TABLE parts_zero PARTITION OF parts FOR VALUES FROM (0) TO (1000000000);
CREATE TABLE parts_2001 PARTITION OF parts FOR VALUES FROM (1000000000) TO (1000086400);
CREATE TABLE parts_3000 PARTITION OF parts FOR VALUES FROM (1000086400) TO (32503680000);
CREATE TABLE parts_never PARTITION OF parts FOR VALUES FROM (32503680000) TO (MAXVALUE);
INSERT INTO parts VALUES ('stays: -1', -1), ('stays: 0', 0), ('goes: 1', 1), ('goes: 2001', 1000000001), ('stays: boundary', 1000090000),
	('stays: greatest', 9223372036854775807);
SELECT ttl_index.create_index('parts', 'n', 0, unit => 'seconds', drop_expired_partitions => true);
SELECT ttl_index.due_count('parts_n_ttl'), ttl_index.lag('parts_n_ttl') > '20 years' AS lags;
CALL ttl_index.run_pass();
SELECT * FROM run('parts');
SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'parts'::regclass ORDER BY 1;
-- a partition moves to an archive that is partitioned by the same key; a detached one keeps the unit
CREATE TABLE kept (name text, n bigint) PARTITION BY RANGE (n);
CREATE TABLE kept_2001 PARTITION OF kept FOR VALUES FROM (1000000000) TO (1000086400);
CREATE TABLE kept_2024 PARTITION OF kept FOR VALUES FROM (1700000000) TO (1700086400);
INSERT INTO kept VALUES ('goes: 2001', 1000000001), ('goes: 2024', 1700000001);
CREATE TABLE kept_archive (name text, n bigint) PARTITION BY RANGE (n);
SELECT ttl_index.create_index('kept', 'n', 0, unit => 'seconds', drop_expired_partitions => true, archive_to => 'kept_archive', paused => true);
ALTER TABLE kept DETACH PARTITION kept_2024;
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'kept_2024'::regclass;
SELECT ttl_index.unpause_index('kept_n_ttl');
CALL ttl_index.run_pass();
SELECT inhrelid::regclass, pg_get_expr(relpartbound, oid) FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = 'kept_archive'::regclass;
SELECT * FROM run('kept_archive');

CREATE TABLE by_id (id uuid) PARTITION BY RANGE (id);
SELECT ttl_index.create_index('by_id', 'id', 0, unit => 'uuidv7', drop_expired_partitions => true);

-- a time series; the bounds are whole days
CREATE TABLE series (n bigint, v int) PARTITION BY RANGE (n);
SELECT ttl_index.create_time_series('series', 'n', granularity => 'minutes', expire_after_seconds => 86400, unit => 'milliseconds');
SELECT count(*) FILTER (WHERE lower % 86400000 = 0 AND upper = lower + 86400000
		AND to_char(to_timestamp(lower / 1000), 'YYYY_MM_DD') = right(name, 10)) AS made, count(*)
FROM (SELECT relname AS name, (regexp_match(b, 'FROM \(''(\d+)''\)'))[1]::bigint AS lower, (regexp_match(b, 'TO \(''(\d+)''\)'))[1]::bigint AS upper
	FROM pg_class, LATERAL pg_get_expr(relpartbound, oid) AS b
	WHERE oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'series'::regclass) AND b <> 'DEFAULT') AS p;
INSERT INTO series VALUES (extract(epoch FROM now()) * 1000, 1), (0, 2), (1000000000000, 3);
CALL ttl_index.run_pass();
SELECT v, tableoid::regclass = 'series_default'::regclass AS is_default FROM series ORDER BY v;

DROP SCHEMA units CASCADE;
