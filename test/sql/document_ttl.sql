-- A document's own time to live: rules 32 and 33.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE SCHEMA own_ttl;
SET search_path = own_ttl;

SELECT oid::regprocedure, provolatile, proisstrict, proparallel, pronargdefaults FROM pg_proc
WHERE oid = ANY (ARRAY['ttl_index.document_ttl(jsonb,text)', 'ttl_index.column_ttl(bigint)', 'ttl_index.expire_at(timestamptz,int)']::regprocedure[])
ORDER BY oid::regprocedure::text;

-- rule 32: whole numbers by value, not by text
SELECT ttl, ttl_index.document_ttl(jsonb_build_object('ttl', ttl)) FROM unnest(ARRAY[
	'1', '20', '20.0', '20.000000000000000000000000000000', '2e1', '2E+1', '200e-1', '0.2e2', '2147483647', '2147483647.0', '-1', '-1.0', '-10e-1',
	-- as if it were missing
	'20.5', '19.999999999999999999999999999999', '0.5', '0', '0.0', '-0', '-0.5', '-1.5', '-2', '-2147483648', '2147483648', '2147483647.5',
	'4294967297', '9223372036854775807', '9223372036854775808', '18446744073709551617', '18446744073709551615', '-18446744073709551617', '1e20', '-1e20',
	'"20"', '"-1"', '""', 'true', 'false', 'null', '[]', '[20]', '{}', '{"ttl": 20}']::jsonb[]) AS ttl;
SELECT ttl_index.document_ttl('{"ttl": 1e100000}') AS large, ttl_index.document_ttl('{"ttl": -1e100000}') AS negative, ttl_index.document_ttl('{"ttl": 1e-16000}') AS small;

-- rule 32: with its type, as Extended JSON has it
SELECT ttl, ttl_index.document_ttl(jsonb_build_object('ttl', ttl)) FROM unnest(ARRAY[
	'{"$numberInt": "20"}', '{"$numberInt": "-1"}', '{"$numberInt": "2147483647"}', '{"$numberInt": "020"}',
	'{"$numberLong": "20"}', '{"$numberLong": "-1"}', '{"$numberLong": "2147483647"}', '{"$numberLong": "0000000000000000000000000000020"}',
	'{"$numberDouble": "20.0"}', '{"$numberDouble": "20"}', '{"$numberDouble": "-1.0"}', '{"$numberDouble": "1e2"}', '{"$numberDouble": "1.0E+2"}',
	'{"$numberDouble": "2000e-2"}', '{"$numberDouble": "2147483647.0"}', '{"$numberDouble": "2.147483647E+9"}', '{"$numberDouble": "020.0"}', '{"$numberDouble": "20."}',
	-- the double that it means is 20
	'{"$numberDouble": "19.99999999999999999999"}',
	-- no number of its type
	'{"$numberInt": 20}', '{"$numberInt": "20.0"}', '{"$numberInt": "2e1"}', '{"$numberInt": " 20"}', '{"$numberInt": "20 "}', '{"$numberInt": "+20"}',
	'{"$numberInt": ""}', '{"$numberInt": "-"}', '{"$numberInt": "0x14"}', '{"$numberInt": "--1"}', '{"$numberInt": null}', '{"$numberInt": ["20"]}',
	'{"$numberInt": {"$numberInt": "20"}}', '{"$numberLong": 20}', '{"$numberLong": "20.0"}', '{"$numberLong": "+20"}', '{"$numberLong": "1_000"}',
	'{"$numberDouble": 20.0}', '{"$numberDouble": " 20.0"}', '{"$numberDouble": "20.0 "}', '{"$numberDouble": "+20.0"}', '{"$numberDouble": "0x14"}',
	'{"$numberDouble": "0x1p4"}', '{"$numberDouble": ".5e2"}', '{"$numberDouble": "1e"}', '{"$numberDouble": "1e+"}',
	'{"$numberDouble": "20,0"}', '{"$numberDouble": ""}', '{"$numberDouble": "-"}', '{"$numberDouble": "1e2e2"}',
	'{"$numberDouble": "Infinity"}', '{"$numberDouble": "-Infinity"}', '{"$numberDouble": "NaN"}', '{"$numberDouble": "inf"}', '{"$numberDouble": "infinity"}',
	-- neither whole nor in range
	'{"$numberDouble": "20.5"}', '{"$numberDouble": "0.5"}', '{"$numberDouble": "1e-2"}', '{"$numberDouble": "-1.5"}', '{"$numberDouble": "0.0"}', '{"$numberDouble": "-0.0"}',
	'{"$numberDouble": "2147483648.0"}', '{"$numberDouble": "2147483647.5"}', '{"$numberDouble": "1e308"}', '{"$numberDouble": "-1e308"}', '{"$numberDouble": "1e400"}',
	'{"$numberDouble": "-1e400"}', '{"$numberDouble": "1e99999999999999999999"}', '{"$numberDouble": "1e-99999999999999999999"}', '{"$numberDouble": "9223372036854775808"}',
	'{"$numberInt": "0"}', '{"$numberInt": "-2"}', '{"$numberInt": "2147483648"}', '{"$numberLong": "4294967297"}', '{"$numberLong": "9223372036854775808"}',
	'{"$numberLong": "18446744073709551617"}', '{"$numberLong": "-18446744073709551617"}',
	-- another key beside it, and other types
	'{"$numberInt": "20", "$numberLong": "20"}', '{"$numberInt": "20", "a": 1}', '{"$numberLong": "20", "": ""}', '{"$numberdouble": "20.0"}', '{"numberInt": "20"}',
	'{"$numberDecimal": "20"}', '[{"$numberInt": "20"}]', '{"$date": {"$numberLong": "20"}}', '{"$oid": "20"}']::jsonb[]) AS ttl;
SELECT ttl, ttl_index.document_ttl(jsonb_build_object('ttl', jsonb_build_object(name, '2' || repeat('0', 1000000) || ending))) AS large,
	ttl_index.document_ttl(jsonb_build_object('ttl', jsonb_build_object(name, repeat('0', 1000000) || '20' || ending))) AS zeros
FROM (VALUES ('Int', '$numberInt', ''), ('Long', '$numberLong', ''), ('Double', '$numberDouble', ''), ('Double', '$numberDouble', '.0'), ('Double', '$numberDouble', 'e-1000000')) AS v (ttl, name, ending);
SELECT ttl_index.document_ttl(jsonb_build_object('ttl', jsonb_build_object('$numberDouble', '20.' || repeat('0', 1000000)))) AS zeros,
	ttl_index.document_ttl(jsonb_build_object('ttl', jsonb_build_object('$numberDouble', '20.' || repeat('0', 10) || '1' || repeat('0', 1000000)))) AS fraction;
-- within a date there is nothing but $numberLong
SELECT ttl_index.document_date('{"at": {"$date": {"$numberInt": "20"}}}', 'at') AS int, ttl_index.document_date('{"at": {"$date": {"$numberDouble": "20.0"}}}', 'at') AS double;

-- rule 32: a property of the root, and exactly that name
SELECT document, ttl_index.document_ttl(document) FROM unnest(ARRAY[
	'{"ttl": 5}', '{"a": 1, "ttl": 5, "z": null}', '{}', '{"TTL": 5}', '{"Ttl": 5}', '{"ttl ": 5}', '{"tt": 5}', '{"ttls": 5}', '{"": 5}',
	'{"a": {"ttl": 5}}', '{"ttl": {"ttl": 5}}', '[{"ttl": 5}]', '["ttl", 5]', '["ttl"]', '[5]', '[]', '5', '-1', '"ttl"', 'true', 'null']::jsonb[]) AS document;
SELECT field, ttl_index.document_ttl('{"ttl": 5, "expires": 7, "a.b": 8, "a": {"b": 9}, "": 10}', field)
FROM unnest(ARRAY['ttl', 'expires', 'Expires', 'a.b', 'a', '', NULL]) AS field;
SELECT ttl_index.document_ttl(field => 'expires', document => '{"ttl": 5, "expires": 7}') AS named,
	ttl_index.document_ttl(NULL) AS no_document, ttl_index.document_ttl('{"ttl": 5}', NULL) AS no_field;
SELECT ttl_index.document_ttl(jsonb_object_agg('k' || n, n) || '{"ttl": 5}') AS large FROM generate_series(1, 100000) AS n;
SELECT ttl_index.document_ttl(('{"ttl":' || repeat('[', 3000) || repeat(']', 3000) || '}')::jsonb) AS deep;

-- the same for a column, of any integer type
SELECT ttl, ttl_index.column_ttl(ttl) FROM unnest(ARRAY[1, 20, 2147483647, -1, 0, -2, -2147483648, NULL]) AS ttl;
SELECT ttl_index.column_ttl(20::smallint) AS smallint, ttl_index.column_ttl((-1)::smallint) AS never, ttl_index.column_ttl(20::bigint) AS bigint,
	ttl_index.column_ttl(2147483648) AS large, ttl_index.column_ttl(4294967297) AS larger, ttl_index.column_ttl(-9223372036854775808) AS smallest;

-- expire_at: saturates, never an error
SELECT since, ttl, ttl_index.expire_at(since, ttl) FROM (VALUES
	(timestamptz '2024-02-28 23:59:59.123456+00', 1), ('2024-02-28 00:00+00', 86400), ('2024-02-28 00:00+00', 2147483647),
	('4714-11-24 00:00:00+00 BC', 1), ('1970-01-01 00:00+00', 2147483647),
	('294276-12-31 23:59:58.999999+00', 1), ('294276-12-31 23:59:59+00', 1), ('294276-12-31 23:59:59.999999+00', 2147483647), ('294240-01-01 00:00+00', 2147483647),
	('infinity', 1), ('-infinity', 1), ('infinity', 2147483647), ('-infinity', 2147483647),
	-- never, and no time to live at all
	('2024-02-28 00:00+00', -1), ('infinity', -1), ('-infinity', -1), ('2024-02-28 00:00+00', 0), ('2024-02-28 00:00+00', -2),
	('2024-02-28 00:00+00', -2147483648), ('4714-11-24 00:00:00+00 BC', -2147483648), ('2024-02-28 00:00+00', NULL), (NULL, 1), (NULL, NULL)) AS v (since, ttl);
-- whatever the zone: seconds, not days
SET TimeZone = 'Europe/Berlin';
SELECT ttl_index.expire_at('2024-03-30 12:00:00', 86400);
SET TimeZone = 'UTC';

-- rule 33, the truth table, with the two indexes written by hand
CREATE TABLE items (name text, doc jsonb, _ts timestamptz);
INSERT INTO items
	SELECT name || ', ' || age || ' s', doc, clock_timestamp() - age * interval '1 s'
	FROM (VALUES ('missing', jsonb '{}'), ('invalid', '{"ttl": "2000"}'), ('never', '{"ttl": -1}'), ('2000', '{"ttl": 2000}'),
			('never, typed', '{"ttl": {"$numberLong": "-1"}}'), ('2000, typed', '{"ttl": {"$numberDouble": "2000.0"}}')) AS v (name, doc),
		unnest(ARRAY[500, 1500, 2500]) AS age;
CREATE INDEX items_default ON items (_ts) WHERE ttl_index.document_ttl(doc) IS NULL AND ttl_index.expire_after_seconds(1000);
CREATE INDEX items_own ON items (ttl_index.expire_at(_ts, ttl_index.document_ttl(doc))) WHERE ttl_index.expire_after_seconds(0);
SELECT indexrelid, expire_after_seconds, partial_filter_expression, state FROM ttl_index.indexes WHERE relid = 'items'::regclass ORDER BY 1;
CALL ttl_index.run_pass();
SELECT name FROM items ORDER BY name;

-- the same over a column
CREATE TABLE columns (name text, ttl int, _ts timestamptz);
INSERT INTO columns
	SELECT coalesce(ttl::text, 'missing') || ', ' || age || ' s', ttl, clock_timestamp() - age * interval '1 s'
	FROM unnest(ARRAY[NULL, 0, -2, -1, 2000]) AS ttl, unnest(ARRAY[500, 1500, 2500]) AS age;
CREATE INDEX columns_default ON columns (_ts) WHERE ttl_index.column_ttl(ttl) IS NULL AND ttl_index.expire_after_seconds(1000);
CREATE INDEX columns_own ON columns (ttl_index.expire_at(_ts, ttl_index.column_ttl(ttl))) WHERE ttl_index.expire_after_seconds(0);
CALL ttl_index.run_pass();
SELECT name FROM columns ORDER BY name;

-- anyone may call them
CREATE ROLE regress_own_ttl;
SET ROLE regress_own_ttl;
SELECT ttl_index.document_ttl('{"ttl": 5}'), ttl_index.column_ttl(5), ttl_index.expire_at('2024-02-28 00:00+00', 5);
RESET ROLE;
DROP ROLE regress_own_ttl;
SET client_min_messages = error;
DROP SCHEMA own_ttl CASCADE;
