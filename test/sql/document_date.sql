-- Dates in jsonb documents: rules 2, 3, 9 to 12.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE SCHEMA documents;
SET search_path = documents;

SELECT provolatile, proisstrict, proparallel, provariadic::regtype
FROM pg_proc WHERE oid = 'ttl_index.document_date(jsonb,text[])'::regprocedure;

-- What is behind "d"; the expected instant stands beside it.
CREATE TABLE cases (n int GENERATED ALWAYS AS IDENTITY, d jsonb, expected timestamptz);
CREATE FUNCTION show_cases() RETURNS TABLE (d jsonb, date timestamptz, as_expected bool) LANGUAGE sql AS $$
	SELECT d, ttl_index.document_date(jsonb_build_object('d', d), 'd'),
		ttl_index.document_date(jsonb_build_object('d', d), 'd') IS NOT DISTINCT FROM expected
	FROM documents.cases ORDER BY n
$$;

-- rule 9, canonical, relaxed and legacy Extended JSON
INSERT INTO cases (d, expected) VALUES
	('{"$date": "2024-02-29T12:34:56Z"}', '2024-02-29 12:34:56+00'),
	('{"$date": "2024-02-29T12:34:56.789Z"}', '2024-02-29 12:34:56.789+00'),
	('{"$date": "2024-02-29T12:34:56.789+05:30"}', '2024-02-29 07:04:56.789+00'),
	('{"$date": "2024-02-29T12:34:56.789+0000"}', '2024-02-29 12:34:56.789+00'),
	('{"$date": "2024-02-29T12:34:56-0130"}', '2024-02-29 14:04:56+00'),
	('{"$date": {"$numberLong": "1709210096789"}}', '2024-02-29 12:34:56.789+00'),
	('{"$date": {"$numberLong": "0"}}', '1970-01-01 00:00:00+00'),
	('{"$date": {"$numberLong": "-1"}}', '1969-12-31 23:59:59.999+00'),
	('{"$date": {"$numberLong": "0001"}}', '1970-01-01 00:00:00.001+00'),
	('{"$date": 1709210096789}', '2024-02-29 12:34:56.789+00'),
	('{"$date": -1}', '1969-12-31 23:59:59.999+00'),
	('{"$date": 0}', '1970-01-01 00:00:00+00'),
	('{"$date": 1e3}', '1970-01-01 00:00:01+00'),
	('{"$date": 1.5e3}', '1970-01-01 00:00:01.5+00'),
	('{"$date": 1000.000}', '1970-01-01 00:00:01+00'),
	('{"$date": 1500e-2}', '1970-01-01 00:00:00.015+00');
SELECT * FROM show_cases();
TRUNCATE cases;

-- rule 9, another key beside $date, or a wrong payload
INSERT INTO cases (d) VALUES
	('{"$date": "2024-02-29T12:34:56Z", "x": 1}'),
	('{"$date": 0, "$date2": 0}'),
	('{"$Date": 0}'), ('{"date": 0}'), ('{"$dat": 0}'), ('{"$dates": 0}'), ('{"": 0}'), ('{}'),
	('{"$date": null}'), ('{"$date": true}'), ('{"$date": []}'), ('{"$date": {}}'),
	('{"$date": [0]}'), ('{"$date": ["2024-02-29T12:34:56Z"]}'), ('{"$date": {"$date": 0}}'),
	('{"$date": ""}'), ('{"$date": "0"}'), ('{"$date": "2024-02-29"}'),
	('{"$date": "2024-02-29T12:34:56"}'), ('{"$date": "2024-02-29T12:34:56+00"}'),
	('{"$date": 0.5}'), ('{"$date": 1e-3}'), ('{"$date": 1000.001}'), ('{"$date": 123456789012345678901234567890.5}'),
	('{"$date": {"$numberLong": 0}}'), ('{"$date": {"$numberLong": null}}'), ('{"$date": {"$numberLong": {}}}'),
	('{"$date": {"$numberLong": "0", "x": 1}}'), ('{"$date": {"$numberInt": "0"}}'), ('{"$date": {"$numberDouble": "0"}}'),
	('{"$date": {"$numberLong": ""}}'), ('{"$date": {"$numberLong": "-"}}'), ('{"$date": {"$numberLong": "+1"}}'),
	('{"$date": {"$numberLong": " 1"}}'), ('{"$date": {"$numberLong": "1 "}}'), ('{"$date": {"$numberLong": "1.0"}}'),
	('{"$date": {"$numberLong": "1."}}'), ('{"$date": {"$numberLong": "1e3"}}'), ('{"$date": {"$numberLong": "0x10"}}'),
	('{"$date": {"$numberLong": "--1"}}'), ('{"$date": {"$numberLong": "1-"}}'), ('{"$date": {"$numberLong": "1709210096789Z"}}');
SELECT d, date FROM show_cases();
TRUNCATE cases;

-- rule 10, plain strings with an offset
INSERT INTO cases (d, expected) VALUES
	('"2024-02-29T12:34:56Z"', '2024-02-29 12:34:56+00'),
	('"2024-02-29T12:34:56.789Z"', '2024-02-29 12:34:56.789+00'),
	('"2024-02-29t12:34:56z"', '2024-02-29 12:34:56+00'),
	('"2024-02-29T12:34:56+00:00"', '2024-02-29 12:34:56+00'),
	('"2024-02-29T12:34:56-00:00"', '2024-02-29 12:34:56+00'),
	('"2024-02-29T12:34:56+05:45"', '2024-02-29 06:49:56+00'),
	('"2024-02-29T12:34:56+0000"', '2024-02-29 12:34:56+00'),
	('"2024-02-29T12:34:56-0830"', '2024-02-29 21:04:56+00'),
	('"2024-02-29T12:34:56-08:00"', '2024-02-29 20:34:56+00'),
	('"2024-02-29T12:34:56+15:59"', '2024-02-28 20:35:56+00'),
	('"2024-02-29T12:34:56-15:59"', '2024-03-01 04:33:56+00'),
	('"0001-01-01T00:00:00Z"', '0001-01-01 00:00:00+00'),
	('"0001-01-01T00:00:00+15:59"', '0001-12-31 08:01:00+00 BC'),
	('"9999-12-31T23:59:59.999999Z"', '9999-12-31 23:59:59.999999+00'),
	('"9999-12-31T23:59:59-15:59"', '10000-01-01 15:58:59+00'),
	('"1582-10-10T00:00:00Z"', '1582-10-10 00:00:00+00'),
	('"1900-02-28T23:59:59Z"', '1900-02-28 23:59:59+00'),
	('"2000-02-29T00:00:00Z"', '2000-02-29 00:00:00+00'),
	-- rule 12, the next second
	('"2016-12-31T23:59:60Z"', '2017-01-01 00:00:00+00'),
	('"2016-12-31T12:00:60Z"', '2016-12-31 12:01:00+00'),
	('"2016-12-31T12:00:60.5Z"', '2016-12-31 12:01:00.5+00'),
	('"2016-12-31T18:59:60-05:00"', '2017-01-01 00:00:00+00'),
	('{"$date": "2016-12-31T23:59:60Z"}', '2017-01-01 00:00:00+00');
SELECT * FROM show_cases();
TRUNCATE cases;

-- rules 9 and 12, fractions round as PostgreSQL rounds them
INSERT INTO cases (d, expected)
SELECT to_jsonb('2024-02-29T12:34:56' || f || 'Z'), ('2024-02-29T12:34:56' || f || 'Z')::timestamptz
FROM unnest(ARRAY['.0', '.1', '.123', '.123456', '.1234564', '.1234565', '.1234575', '.0000005', '.0000015', '.0000025',
	'.00000049999999999', '.00000050000000001', '.123456499999999999999999999999', '.123456500000000000000000000001',
	'.999999', '.9999994', '.9999995', '.9999999', '.99999999999999999999999999']) AS f;
SELECT * FROM show_cases();
TRUNCATE cases;
-- ... also at the end of a day, and with more digits than its input takes
INSERT INTO cases (d, expected) VALUES
	('"2024-02-29T23:59:59.9999999Z"', '2024-03-01 00:00:00+00'),
	('"2024-02-29T23:59:60.0000001Z"', '2024-03-01 00:00:00+00');
SELECT * FROM show_cases();
TRUNCATE cases;
SELECT digits, ttl_index.document_date(jsonb_build_object('d', '2024-02-29T12:34:56.' || digits || 'Z'), 'd') AS date
FROM unnest(ARRAY['1234565' || repeat('0', 20), '0000005' || repeat('0', 20)]) AS digits;
SELECT ttl_index.document_date(jsonb_build_object('d', '2024-02-29T12:34:56.' || repeat('1', 1000000) || 'Z'), 'd') AS ones,
	ttl_index.document_date(jsonb_build_object('d', '2024-02-29T12:34:56.' || repeat('9', 1000000) || 'Z'), 'd') AS nines,
	ttl_index.document_date(jsonb_build_object('d', '2024-02-29T12:34:56.5' || repeat('0', 1000000) || '1Z'), 'd') AS half,
	ttl_index.document_date(jsonb_build_object('d', '2024-02-29T12:34:56.' || repeat('1', 1000000)), 'd') AS no_offset;

-- rules 10 to 12: not dates
INSERT INTO cases (d) VALUES
	-- without an offset, or a date alone
	('"2024-02-29T12:34:56"'), ('"2024-02-29T12:34:56.789"'), ('"2024-02-29"'), ('"2024-02-29Z"'), ('"2024-02"'), ('"12:34:56Z"'),
	('"2024-02-29T12:34:56+00"'), ('"2024-02-29T12:34:56+0"'), ('"2024-02-29T12:34:56+00:0"'),
	('"2024-02-29T12:34:56+00:000"'), ('"2024-02-29T12:34:56+00:00:00"'), ('"2024-02-29T12:34:56+"'),
	('"2024-02-29T12:34:56 00:00"'), ('"2024-02-29T12:34:56+16:00"'), ('"2024-02-29T12:34:56-23:59"'), ('"2024-02-29T12:34:56+05:60"'),
	('"2024-02-29T12:34:56ZZ"'), ('"2024-02-29T12:34:56Z+00:00"'), ('"2024-02-29T12:34:56 Z"'), ('"2024-02-29T12:34:56UTC"'),
	('"2024-02-29T12:34:56 Europe/Berlin"'),
	-- another form, though PostgreSQL reads some of them
	('"2024-02-29 12:34:56Z"'), ('"2024-02-29 12:34:56+00"'), ('"2024-2-29T12:34:56Z"'), ('"24-02-29T12:34:56Z"'), ('"02024-02-29T12:34:56Z"'),
	('"20240229T123456Z"'), ('"2024-060T12:34:56Z"'), ('"2024-W09-4T12:34:56Z"'), ('"2024-02-29T12:34Z"'), ('"2024-02-29T12Z"'),
	('"2024-02-29T12:34:5Z"'), ('"2024-02-29T12:34:56,789Z"'), ('"2024-02-29T12:34:56.Z"'), ('"2024-02-29T12:34:56.1e3Z"'),
	('"2024-02-29T12:34:56.-1Z"'), ('"2024/02/29T12:34:56Z"'), ('" 2024-02-29T12:34:56Z"'), ('"2024-02-29T12:34:56Z "'), ('"2024-02-29T12:34:56Z\n"'),
	('"+2024-02-29T12:34:56Z"'), ('"-2024-02-29T12:34:56Z"'), ('"2024-02-29T12:34:56Z BC"'), ('"Thu, 29 Feb 2024 12:34:56 GMT"'),
	('"now"'), ('"infinity"'), ('"-infinity"'), ('"epoch"'), ('"today"'), ('"1709210096"'), ('""'), ('"Z"'),
	-- rule 12: the calendar and the clock
	('"2024-02-30T00:00:00Z"'), ('"2023-02-29T00:00:00Z"'), ('"1900-02-29T00:00:00Z"'), ('"2024-04-31T00:00:00Z"'), ('"2024-00-01T00:00:00Z"'),
	('"2024-13-01T00:00:00Z"'), ('"2024-01-00T00:00:00Z"'), ('"2024-01-32T00:00:00Z"'), ('"2024-02-29T24:00:00Z"'), ('"2024-02-29T25:00:00Z"'),
	('"2024-02-29T12:60:00Z"'), ('"2024-02-29T12:00:61Z"'), ('"2016-12-31T23:59:60.5Z"'),
	('"0000-01-01T00:00:00Z"'), ('"0000-12-31T23:59:59-15:59"'), ('"10000-01-01T00:00:00Z"'), ('"294277-01-01T00:00:00Z"'),
	('{"$date": "2023-02-29T00:00:00Z"}'), ('{"$date": "2024-02-29T24:00:00Z"}'),
	-- rule 11: other types
	('1709210096789'), ('1709210096'), ('0'), ('1e20'), ('true'), ('false'), ('null'), ('{"$timestamp": {"t": 1709210096, "i": 1}}'),
	('{"$oid": "65e07af00000000000000000"}'), ('{"$numberLong": "1709210096789"}'), ('{"seconds": 1709210096, "nanos": 0}');
SELECT d, date FROM show_cases();
TRUNCATE cases;

-- digits and signs that are not of ASCII: Arabic, full width, minus sign
SELECT ttl_index.document_date('{"d": {"$date": {"$numberLong": "\u0663"}}}', 'd') AS arabic,
	ttl_index.document_date('{"d": "\uff12\uff10\uff12\uff14-02-29T12:34:56Z"}', 'd') AS full_width,
	ttl_index.document_date('{"d": "2024-02-29T12:34:56\u221205:00"}', 'd') AS minus,
	ttl_index.document_date('{"ä": {"日本": {"$date": 0}}}', 'ä', '日本') AS path;

-- rule 12, milliseconds out of timestamptz's range: far past is due, far future never is
INSERT INTO cases (d, expected) VALUES
	('{"$date": {"$numberLong": "9224318015999999"}}', '294276-12-31 23:59:59.999+00'),
	('{"$date": {"$numberLong": "9224318016000000"}}', 'infinity'),
	('{"$date": {"$numberLong": "-210866803200000"}}', '4714-11-24 00:00:00+00 BC'),
	('{"$date": {"$numberLong": "-210866803200001"}}', '-infinity'),
	('{"$date": {"$numberLong": "9223372036854775807"}}', 'infinity'),
	('{"$date": {"$numberLong": "9223372036854775808"}}', 'infinity'),
	('{"$date": {"$numberLong": "-9223372036854775808"}}', '-infinity'),
	('{"$date": {"$numberLong": "-9223372036854775809"}}', '-infinity'),
	('{"$date": {"$numberLong": "99999999999999999999999999999999"}}', 'infinity'),
	('{"$date": 9224318015999999}', '294276-12-31 23:59:59.999+00'),
	('{"$date": 9224318016000000}', 'infinity'),
	('{"$date": -210866803200000}', '4714-11-24 00:00:00+00 BC'),
	('{"$date": -210866803200001}', '-infinity'),
	('{"$date": 1e30}', 'infinity'), ('{"$date": -1e30}', '-infinity'),
	-- the earliest of both
	('[{"$date": 1e30}, {"$date": 1e30}]', 'infinity'),
	('[{"$date": 1e30}, {"$date": 0}]', '1970-01-01 00:00:00+00'),
	('[{"$date": 0}, {"$date": -1e30}, {"$date": 1e30}]', '-infinity');
SELECT * FROM show_cases();
SELECT ttl_index.document_date('{"d": {"$date": 1e100000}}', 'd') AS future, ttl_index.document_date('{"d": {"$date": -1e100000}}', 'd') AS past,
	ttl_index.document_date('{"d": {"$date": 1e-16000}}', 'd') AS small;
TRUNCATE cases;

-- rule 3: the earliest date in an array decides, one level is unwrapped
INSERT INTO cases (d, expected) VALUES
	('["2024-02-29T12:34:56Z"]', '2024-02-29 12:34:56+00'),
	('["2024-02-29T12:34:56Z", "2023-01-01T00:00:00Z"]', '2023-01-01 00:00:00+00'),
	('["2023-01-01T00:00:00Z", "2024-02-29T12:34:56Z"]', '2023-01-01 00:00:00+00'),
	('["2024-02-29T00:00:00+01:00", "2024-02-29T00:00:00+02:00"]', '2024-02-28 22:00:00+00'),
	('[{"$date": 1}, {"$date": "1960-01-01T00:00:00+0000"}, "2024-02-29T12:34:56Z"]', '1960-01-01 00:00:00+00'),
	('[1, null, true, "x", {}, [], {"$date": "x"}, {"$date": 5000}, "1960-01-01"]', '1970-01-01 00:00:05+00'),
	('[]', NULL), ('[1, null, "x", {}]', NULL), ('["2024-02-29T12:34:56"]', NULL),
	('[["2024-02-29T12:34:56Z"]]', NULL), ('[[{"$date": 0}]]', NULL), ('[[], [["2024-02-29T12:34:56Z"]]]', NULL),
	('[["2023-01-01T00:00:00Z"], "2024-02-29T12:34:56Z"]', '2024-02-29 12:34:56+00'),
	('[{"d": "2023-01-01T00:00:00Z"}]', NULL);
SELECT * FROM show_cases();
TRUNCATE cases;

-- rule 2 and 3: paths
CREATE TABLE paths (n int GENERATED ALWAYS AS IDENTITY, document jsonb, path text, expected timestamptz);
CREATE FUNCTION show_paths() RETURNS TABLE (document jsonb, path text, date timestamptz, as_expected bool) LANGUAGE sql AS $$
	SELECT document, path, ttl_index.document_date(document, VARIADIC string_to_array(path, '.')),
		ttl_index.document_date(document, VARIADIC string_to_array(path, '.')) IS NOT DISTINCT FROM expected
	FROM documents.paths ORDER BY n
$$;
INSERT INTO paths (document, path, expected) VALUES
	('{"a": {"b": {"c": "2021-01-01T00:00:00Z"}}}', 'a.b.c', '2021-01-01 00:00:00+00'),
	('{"a": {"b": {"c": "2021-01-01T00:00:00Z"}}}', 'a.b', NULL),
	('{"a": {"b": {"c": "2021-01-01T00:00:00Z"}}}', 'a.b.c.d', NULL),
	('{"a": {"b": {"c": "2021-01-01T00:00:00Z"}}}', 'a.x.c', NULL),
	('{"a": {"b": {"c": "2021-01-01T00:00:00Z"}}}', 'A.b.c', NULL),
	('{"a.b": "2021-01-01T00:00:00Z"}', 'a.b', NULL),
	('{"a": null}', 'a', NULL), ('{"a": null}', 'a.b', NULL), ('{}', 'a', NULL), ('{"a": "b"}', 'a.b', NULL), ('{"a": 1}', 'a.b', NULL),
	('{"": {"": "2021-01-01T00:00:00Z"}}', '.', '2021-01-01 00:00:00+00'),
	-- the wrapper is the value, wherever it is; what is in it is reached only by name
	('{"a": {"$date": "2021-01-01T00:00:00Z"}}', 'a', '2021-01-01 00:00:00+00'),
	('{"a": {"$date": {"$numberLong": "0"}}}', 'a.$date', NULL),
	-- fanning out
	('{"a": [{"b": "2022-01-01T00:00:00Z"}, {"b": "2021-01-01T00:00:00Z"}]}', 'a.b', '2021-01-01 00:00:00+00'),
	('{"a": [{"b": 1}, {}, 5, null, "x", {"c": "2020-01-01T00:00:00Z"}, {"b": {"$date": 0}}]}', 'a.b', '1970-01-01 00:00:00+00'),
	('{"a": [{"b": ["2022-01-01T00:00:00Z", "2021-01-01T00:00:00Z"]}, {"b": "2023-01-01T00:00:00Z"}]}', 'a.b', '2021-01-01 00:00:00+00'),
	('{"a": [{"b": [{"c": "2022-01-01T00:00:00Z"}]}, {"b": {"c": ["2021-01-01T00:00:00Z"]}}]}', 'a.b.c', '2021-01-01 00:00:00+00'),
	('{"a": [{"b": [{"c": "2022-01-01T00:00:00Z"}, {"c": "2021-01-01T00:00:00Z"}]}, {"b": []}, {"b": [{"c": "2023-01-01T00:00:00Z"}]}]}', 'a.b.c', '2021-01-01 00:00:00+00'),
	('{"a": []}', 'a.b', NULL), ('{"a": [[]]}', 'a.b', NULL),
	-- ... over arrays of objects, not over arrays in arrays
	('{"a": [[{"b": "2021-01-01T00:00:00Z"}]]}', 'a.b', NULL),
	('{"a": [[{"b": "2021-01-01T00:00:00Z"}], {"b": "2022-01-01T00:00:00Z"}]}', 'a.b', '2022-01-01 00:00:00+00'),
	('{"a": [{"b": [["2021-01-01T00:00:00Z"]]}]}', 'a.b', NULL),
	-- a number is a key in an object
	('{"a": {"0": "2021-01-01T00:00:00Z"}}', 'a.0', '2021-01-01 00:00:00+00'),
	('{"a": {"0": ["2022-01-01T00:00:00Z", "2021-01-01T00:00:00Z"]}}', 'a.0', '2021-01-01 00:00:00+00'),
	-- ... a position in an array
	('{"a": ["2022-01-01T00:00:00Z", "2021-01-01T00:00:00Z"]}', 'a.0', '2022-01-01 00:00:00+00'),
	('{"a": ["2022-01-01T00:00:00Z", "2021-01-01T00:00:00Z"]}', 'a.1', '2021-01-01 00:00:00+00'),
	('{"a": ["2022-01-01T00:00:00Z", "2021-01-01T00:00:00Z"]}', 'a.2', NULL),
	('{"a": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, {"$date": 0}]}', 'a.10', '1970-01-01 00:00:00+00'),
	('{"a": [{"b": "2022-01-01T00:00:00Z"}, {"b": "2021-01-01T00:00:00Z"}]}', 'a.0.b', '2022-01-01 00:00:00+00'),
	('{"a": [{"b": ["2022-01-01T00:00:00Z", "2020-01-01T00:00:00Z"]}, {"b": "2021-01-01T00:00:00Z"}]}', 'a.0.b', '2020-01-01 00:00:00+00'),
	('{"a": [{"b": ["2022-01-01T00:00:00Z", "2020-01-01T00:00:00Z"]}, {"b": ["2021-01-01T00:00:00Z"]}]}', 'a.b.0', '2021-01-01 00:00:00+00'),
	('{"a": [["2022-01-01T00:00:00Z"]]}', 'a.0.0', '2022-01-01 00:00:00+00'),
	('{"a": [[{"b": "2022-01-01T00:00:00Z"}, {"b": "2021-01-01T00:00:00Z"}]]}', 'a.0.b', '2021-01-01 00:00:00+00'),
	('{"a": [[{"b": ["2022-01-01T00:00:00Z"]}]]}', 'a.0.b', '2022-01-01 00:00:00+00'),
	('{"a": [[{"b": "2022-01-01T00:00:00Z"}, {"b": "2021-01-01T00:00:00Z"}]]}', 'a.0.0.b', '2022-01-01 00:00:00+00'),
	-- ... and both in an array of objects
	('{"a": [{"0": "2021-01-01T00:00:00Z"}]}', 'a.0', '2021-01-01 00:00:00+00'),
	('{"a": ["2022-01-01T00:00:00Z", {"0": "2021-01-01T00:00:00Z"}]}', 'a.0', '2021-01-01 00:00:00+00'),
	('{"a": ["2021-01-01T00:00:00Z", {"0": "2022-01-01T00:00:00Z"}]}', 'a.0', '2021-01-01 00:00:00+00'),
	('{"a": [{"0": ["2022-01-01T00:00:00Z", "2021-01-01T00:00:00Z"]}]}', 'a.0', '2021-01-01 00:00:00+00'),
	('{"a": [{"0": {"b": "2021-01-01T00:00:00Z"}, "b": "2022-01-01T00:00:00Z"}]}', 'a.0.b', '2021-01-01 00:00:00+00'),
	('{"a": [{"0": {"b": "2022-01-01T00:00:00Z"}, "b": "2021-01-01T00:00:00Z"}]}', 'a.0.b', '2021-01-01 00:00:00+00'),
	('{"a": [{"0": [{"0": [{"0": "2021-01-01T00:00:00Z"}]}]}]}', 'a.0.0.0', '2021-01-01 00:00:00+00'),
	-- an array found by its position is an array in an array, as in MongoDB
	('{"a": [["2022-01-01T00:00:00Z"]]}', 'a.0', NULL),
	('{"a": [["2022-01-01T00:00:00Z"]]}', 'a', NULL),
	('{"a": [[["2022-01-01T00:00:00Z"]]]}', 'a.0.0', NULL),
	-- not a position
	('{"a": ["2022-01-01T00:00:00Z"]}', 'a.00', NULL), ('{"a": ["2022-01-01T00:00:00Z"]}', 'a.-1', NULL), ('{"a": ["2022-01-01T00:00:00Z"]}', 'a.-0', NULL),
	('{"a": ["2022-01-01T00:00:00Z"]}', 'a.+0', NULL), ('{"a": ["2022-01-01T00:00:00Z"]}', 'a. 0', NULL), ('{"a": ["2022-01-01T00:00:00Z"]}', 'a.0x0', NULL),
	('{"a": ["2022-01-01T00:00:00Z"]}', 'a.4294967296', NULL), ('{"a": ["2022-01-01T00:00:00Z"]}', 'a.18446744073709551616', NULL),
	('{"a": ["2022-01-01T00:00:00Z"]}', 'a.', NULL), ('{"a": "2022-01-01T00:00:00Z"}', 'a.0', NULL), ('{"a": {"$date": 0}}', 'a.0', NULL),
	('{"a": {"00": "2021-01-01T00:00:00Z"}}', 'a.00', '2021-01-01 00:00:00+00'),
	-- the root: an array is walked, a scalar has no members
	('[{"a": "2022-01-01T00:00:00Z"}, {"a": "2021-01-01T00:00:00Z"}]', 'a', '2021-01-01 00:00:00+00'),
	('["2022-01-01T00:00:00Z", "2021-01-01T00:00:00Z"]', '0', '2022-01-01 00:00:00+00'),
	('"2022-01-01T00:00:00Z"', '0', NULL), ('"2022-01-01T00:00:00Z"', 'a', NULL), ('1', 'a', NULL), ('null', 'a', NULL), ('[]', 'a', NULL),
	-- without a path, the document itself
	('"2022-01-01T00:00:00Z"', '', '2022-01-01 00:00:00+00'), ('{"$date": 0}', '', '1970-01-01 00:00:00+00'),
	('["2022-01-01T00:00:00Z", {"$date": 0}]', '', '1970-01-01 00:00:00+00'), ('[["2022-01-01T00:00:00Z"]]', '', NULL), ('{}', '', NULL),
	('null', '', NULL), ('1', '', NULL);
SELECT * FROM show_paths();

-- strict; a path with a NULL in it leads nowhere
SELECT ttl_index.document_date(NULL, 'a') AS no_document, ttl_index.document_date('{"a": {"$date": 0}}', VARIADIC NULL) AS no_path,
	ttl_index.document_date('{"a": {"$date": 0}}', 'a', NULL) AS null_in_path, ttl_index.document_date('{"a": {"$date": 0}}', NULL::text) AS null_path;
SELECT ttl_index.document_date('{"a": {"b": {"$date": 0}}}', VARIADIC '{{a,b}}') AS two_dimensions;

-- no setting of the session matters
CREATE FUNCTION changes() RETURNS bigint LANGUAGE sql AS $$
	SELECT count(*) FROM documents.show_paths() WHERE NOT as_expected
$$;
SET TimeZone = 'America/Los_Angeles';
SET DateStyle = 'German, DMY';
SET IntervalStyle = 'iso_8601';
SET extra_float_digits = -15;
SELECT changes();
SELECT ttl_index.document_date('{"d": "2024-02-29T12:34:56Z"}', 'd') = '2024-02-29 12:34:56+00' AS same,
	ttl_index.document_date('{"d": "2024-02-29T12:34:56"}', 'd') IS NULL AS none;
SET TimeZone = 'Asia/Kathmandu';
SELECT changes();
RESET IntervalStyle;
RESET extra_float_digits;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';

-- deeply nested documents, long paths, and many of them
CREATE FUNCTION nested(opening text, inner_value text, closing text, depth int) RETURNS jsonb LANGUAGE sql AS $$
	SELECT (repeat(opening, depth) || inner_value || repeat(closing, depth))::jsonb
$$;
SELECT ttl_index.document_date(nested('{"a":', '{"$date": 0}', '}', 3000), VARIADIC array_fill('a'::text, ARRAY[3000])) AS objects,
	ttl_index.document_date(nested('{"a":[', '{"$date": 0}', ']}', 1500), VARIADIC array_fill('a'::text, ARRAY[1500])) AS fan_out,
	ttl_index.document_date(nested('[', '{"$date": 0}', ']', 3000), VARIADIC array_fill('0'::text, ARRAY[3000])) AS positions,
	ttl_index.document_date(nested('[', '{"$date": 0}', ']', 3000), VARIADIC array_fill('0'::text, ARRAY[2999])) AS too_deep,
	ttl_index.document_date(nested('{"a":', '{"$date": 0}', '}', 3000), 'a') AS short_path,
	ttl_index.document_date('{"a": {"$date": 0}}', VARIADIC array_fill('a'::text, ARRAY[100000])) AS long_path;
-- both meanings of a number at each of ten levels
SELECT ttl_index.document_date(nested('[{"0":', '{"$date": 0}', '}]', 10), VARIADIC array_fill('0'::text, ARRAY[n])) AS date, count(*)
FROM generate_series(0, 25) AS n GROUP BY 1 ORDER BY 1;
-- large ones: the date is the last of 200,000
SELECT ttl_index.document_date(jsonb_build_object('a', jsonb_agg(jsonb_build_object('b',
	to_jsonb(to_char('2020-01-01'::timestamp - n * interval '1 s', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))))), 'a', 'b')
	= '2020-01-01 00:00:00+00'::timestamptz - 200000 * interval '1 s' AS last
FROM generate_series(1, 200000) AS n;
SELECT ttl_index.document_date(jsonb_build_object('a', jsonb_agg(n) || '[{"$date": 0}]'), 'a') AS in_array,
	ttl_index.document_date(jsonb_build_object('a', jsonb_agg(n) || '[{"$date": 0}]'), 'a', '200000') AS at_position
FROM generate_series(1, 200000) AS n;
SELECT ttl_index.document_date(jsonb_object_agg('k' || n, n) || '{"k": {"$date": 0}}', 'k') AS in_object FROM generate_series(1, 200000) AS n;
-- a walk can be canceled
CREATE TABLE big AS SELECT jsonb_build_object('a', jsonb_agg(jsonb_build_object('b', n))) AS doc FROM generate_series(1, 20000) AS n;
SET statement_timeout = '100ms';
SELECT count(ttl_index.document_date(doc, 'a', 'b')) FROM big, generate_series(1, 1000000);
RESET statement_timeout;

-- A number is a name and a position, so the ways to a value are as many as
-- Fibonacci's numbers; the arrays on the way are not.
SET statement_timeout = '60s';
SELECT steps, ttl_index.document_date((repeat('{"0": [', 200) || '"2021-01-01T00:00:00Z"' || repeat(']}', 200))::jsonb, VARIADIC array_fill('0'::text, ARRAY[steps]))
FROM unnest(ARRAY[199, 200, 201, 300, 400, 401, 1000]) AS steps;
SELECT ttl_index.document_date((repeat('[{"0": ', 200) || '"2021-01-01T00:00:00Z"' || repeat('}]', 200))::jsonb, VARIADIC array_fill('0'::text, ARRAY[300]));
SELECT ttl_index.document_date((repeat('{"0": [{"1": 0}, ', 200) || '"2021-01-01T00:00:00Z"' || repeat(']}', 200))::jsonb, VARIADIC array_fill('1'::text, ARRAY[300]));
RESET statement_timeout;

-- the same as by the definition, for documents of all shapes
CREATE FUNCTION dates_at(doc jsonb, path text[], by_position bool DEFAULT false) RETURNS SETOF timestamptz LANGUAGE plpgsql AS $$
DECLARE
	step text := path[1];
	rest text[] := path[2:];
BEGIN
	IF cardinality(path) = 0 AND jsonb_typeof(doc) <> 'array' THEN
		RETURN NEXT ttl_index.document_date(doc, VARIADIC '{}');
	ELSIF cardinality(path) = 0 AND NOT by_position THEN
		RETURN QUERY SELECT ttl_index.document_date(e, VARIADIC '{}') FROM jsonb_array_elements(doc) AS e WHERE jsonb_typeof(e) <> 'array';
	ELSIF cardinality(path) > 0 AND jsonb_typeof(doc) = 'object' AND doc ? step THEN
		RETURN QUERY SELECT dates_at(doc -> step, rest);
	ELSIF cardinality(path) > 0 AND jsonb_typeof(doc) = 'array' THEN
		RETURN QUERY SELECT dates_at(e, path) FROM jsonb_array_elements(doc) AS e WHERE jsonb_typeof(e) = 'object';
		IF step ~ '^[0-9]$' AND doc -> step::int IS NOT NULL THEN
			RETURN QUERY SELECT dates_at(doc -> step::int, rest, true);
		END IF;
	END IF;
END $$;
-- as the digits of a hash say; the value tells where it was
CREATE FUNCTION any_document(seed text, depth int) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	digit int := get_byte(decode(md5(seed), 'hex'), 0);
BEGIN
	IF depth = 0 OR digit < 16 THEN
		RETURN to_jsonb(to_char(timestamp '2000-01-01' + hashtext(seed) % 100000 * interval '1 hour', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'));
	ELSIF digit < 140 THEN
		RETURN jsonb_build_object('0', any_document(seed || 'a', depth - 1), CASE WHEN digit % 2 = 0 THEN '1' ELSE 'x' END, any_document(seed || 'b', depth - 1));
	ELSIF digit < 200 THEN
		RETURN jsonb_build_array(any_document(seed || 'a', depth - 1));
	END IF;
	RETURN jsonb_build_array(any_document(seed || 'a', depth - 1), any_document(seed || 'b', depth - 1));
END $$;
SELECT count(*) FILTER (WHERE found IS NOT NULL) > 500 AS finds, count(*) FILTER (WHERE found IS DISTINCT FROM wanted) AS differ
FROM generate_series(1, 150) AS seed, any_document(seed::text, 5) AS doc,
	unnest(ARRAY['0', '0.0', '0.1', '1.0', '0.0.0', '0.1.0', '0.x.0', 'x.0.0', '0.0.0.0', '1.0.0.1', '0.1.0.1.0', '0.0.0.0.0', '0.0.0.0.0.0', '0.0.0.0.0.0.0']) AS path,
	ttl_index.document_date(doc, VARIADIC string_to_array(path, '.')) AS found,
	LATERAL (SELECT min(date) FROM dates_at(doc, string_to_array(path, '.')) AS date) AS expected (wanted);

-- as the key of a TTL index
CREATE TABLE events (name text, doc jsonb);
INSERT INTO events VALUES
	('goes: extended JSON', '{"meta": {"at": {"$date": "2001-01-01T00:00:00Z"}}}'),
	('goes: a string', '{"meta": {"at": "2001-01-01T00:00:00Z"}}'),
	('goes: the earliest', '{"meta": {"at": ["2999-01-01T00:00:00Z", {"$date": 0}]}}'),
	('goes: one of many', '{"meta": [{"at": "2999-01-01T00:00:00Z"}, {"at": "2001-01-01T00:00:00Z"}]}'),
	('goes: far past', '{"meta": {"at": {"$date": {"$numberLong": "-9223372036854775808"}}}}'),
	('stays: far future', '{"meta": {"at": {"$date": {"$numberLong": "9223372036854775807"}}}}'),
	('stays: later', '{"meta": {"at": "2999-01-01T00:00:00Z"}}'),
	('stays: no offset', '{"meta": {"at": "2001-01-01T00:00:00"}}'),
	('stays: number', '{"meta": {"at": 0}}'), ('stays: missing', '{"meta": {}}'), ('stays: empty', '{"meta": {"at": []}}'), ('stays: NULL', NULL);
CREATE INDEX events_at ON events (ttl_index.document_date(doc, 'meta', 'at')) WHERE ttl_index.expire_after_seconds(0);
SELECT key, state FROM ttl_index.indexes WHERE indexrelid = 'events_at'::regclass;
SELECT ttl_index.due_count('events_at');
CALL ttl_index.run_pass();
SELECT name FROM events ORDER BY name;
-- the index serves queries
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE ttl_index.document_date(doc, 'meta', 'at') < '2002-01-01';
RESET enable_seqscan;
-- rule 46: numbers in a unit, and strings without an offset in a zone, beside what is a date anyway
SELECT v AS value, ttl_index.document_date_in(doc, 'seconds', 'd') AS seconds, ttl_index.document_date_in(doc, 'milliseconds', 'd') AS milliseconds,
	ttl_index.document_date_in(doc, 'Europe/Berlin', 'd') AS berlin, ttl_index.document_date(doc, 'd') AS plain
FROM (VALUES ('1709210096'), ('1709210096789'), ('1709210096.5'), ('0'), ('0.0'), ('-1'), ('-0.5'), ('1e-30'), ('1e30'), ('9223372036854775807'),
	('{"$numberLong": "1709210096789"}'), ('{"$numberLong": "0"}'), ('{"$numberDouble": "1709210096.0"}'), ('"2024-02-29T12:34:56"'),
	('"2024-08-31T12:34:56.789"'), ('"2024-03-31T02:30:00"'), ('"2024-10-27T02:30:00"'), ('"2024-02-29T12:34:56Z"'),
	('"2024-02-29T12:34:56+0530"'), ('"2024-02-29"'), ('"2024-02-29 12:34:56"'), ('"1709210096"'), ('{"$date": 0}'),
	('{"$date": "2024-02-29T12:34:56"}'), ('[1709210097, 5e9, 0, "2999-01-01T00:00:00Z"]'), ('true'), ('null')) AS c (v),
	LATERAL (SELECT jsonb_build_object('d', v::jsonb) AS doc) AS _;
SELECT ttl_index.document_date_in('{"d": 5}', 'nothing', 'd'), ttl_index.document_date_in('{"d": 5}', 'uuidv7', 'd'),
	ttl_index.document_date_in('{"d": "2024-02-29T12:34:56"}', '', 'd'), ttl_index.document_date_in('{"d": "2024-02-29T12:34:56"}', repeat('x', 1000), 'd'),
	ttl_index.document_date_in('{"d": 5}', NULL, 'd'), ttl_index.document_date_in('{"a": [{"d": 9}, {"d": 5}]}', 'seconds', 'a', 'd');
SELECT provolatile, proisstrict, proparallel FROM pg_proc WHERE proname = 'document_date_in';

-- anyone may call it
CREATE ROLE regress_documents;
SET ROLE regress_documents;
SELECT ttl_index.document_date('{"a": {"$date": 0}}', 'a');
RESET ROLE;
DROP ROLE regress_documents;
SET client_min_messages = error;
DROP SCHEMA documents CASCADE;
