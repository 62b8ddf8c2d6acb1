-- TTL indexes on dates inside documents: rules 2, 3 and 14; the key
-- is a column and MongoDB's dotted path.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA dk;
SET search_path = dk;
CREATE TABLE eventlog (name text, doc jsonb, other json, "doc.dotted" timestamptz, plain int);
INSERT INTO eventlog (name, doc) VALUES
	('goes: string', '{"meta": {"createdAt": "2001-01-01T00:00:00Z"}}'),
	('goes: $date', '{"meta": {"createdAt": {"$date": "2001-01-01T00:00:00Z"}}}'),
	('goes: $date ms', '{"meta": {"createdAt": {"$date": {"$numberLong": "978307200000"}}}}'),
	('goes: array', '{"meta": {"createdAt": ["2999-01-01T00:00:00Z", "2001-01-01T00:00:00Z", 5]}}'),
	('goes: array of objects', '{"meta": [{"createdAt": "2999-01-01T00:00:00Z"}, {"createdAt": "2001-01-01T00:00:00Z"}]}'),
	('stays: future', '{"meta": {"createdAt": "2999-01-01T00:00:00Z"}}'),
	('stays: missing', '{"meta": {}}'),
	('stays: no document', NULL),
	('stays: no offset', '{"meta": {"createdAt": "2001-01-01T00:00:00"}}'),
	('stays: date alone', '{"meta": {"createdAt": "2001-01-01"}}'),
	('stays: number', '{"meta": {"createdAt": 978307200}}'),
	('stays: nested array', '{"meta": {"createdAt": [["2001-01-01T00:00:00Z"]]}}');
SELECT ttl_index.create_index('eventlog', 'doc.meta.createdAt', 3600);
\d eventlog
SELECT indexrelid, key, expire_after_seconds, document_ttl, state FROM ttl_index.indexes;
SELECT ttl_index.create_index('eventlog', 'doc.meta.createdAt', 3600);
SELECT ttl_index.create_index('eventlog', 'doc.meta.createdAt', 60);
SELECT * FROM ttl_index.coll_mod('eventlog', 'doc.meta.createdAt', 60);
SELECT ttl_index.due_count('eventlog_doc_meta_createdat_ttl');
CALL ttl_index.run_pass();
SELECT name FROM eventlog ORDER BY name COLLATE "C";
SELECT ttl_index.drop_index('eventlog', 'doc.meta.createdAt');

-- a numeric component is a field or a position; names that need quotes
SELECT ttl_index.create_index('eventlog', 'doc.0.it''s "x"', 5);
SELECT pg_get_indexdef('eventlog_doc_0_it_s__x__ttl'::regclass);
SELECT ttl_index.drop_index('eventlog', 'doc.0.it''s "x"');
-- a column whose name has a dot wins over a path
SELECT ttl_index.create_index('eventlog', 'doc.dotted', 5);
SELECT ttl_index.drop_index('eventlog', 'doc.dotted');

-- refusals
SELECT ttl_index.create_index('eventlog', 'doc.meta._id', 5);
SELECT ttl_index.create_index('eventlog', 'doc', 5);
SELECT ttl_index.create_index('eventlog', 'doc.', 5);
SELECT ttl_index.create_index('eventlog', 'doc..x', 5);
SELECT ttl_index.create_index('eventlog', 'other.x', 5);
SELECT ttl_index.create_index('eventlog', 'other', 5);
SELECT ttl_index.create_index('eventlog', 'plain.x', 5);
SELECT ttl_index.create_index('eventlog', 'nothing.x', 5);
SELECT ttl_index.coll_mod('eventlog', 'doc.nothing', 5);
SELECT ttl_index.drop_index('eventlog', 'doc.nothing');
SELECT ttl_index.create_index('eventlog', 'doc.at', 5, unit => 'seconds', time_zone => 'UTC');
SELECT ttl_index.create_index('eventlog', 'doc.at', 5, unit => 'uuidv7');
SELECT ttl_index.create_index('eventlog', 'doc.at', 5, time_zone => 'CET');

-- rule 46: numbers in a unit, and strings without an offset in a time zone
CREATE TABLE declared (name text, doc jsonb);
INSERT INTO declared VALUES ('goes: number', '{"exp": 1000000000}'), ('goes: string', '{"exp": "2001-01-01T00:00:00Z"}'),
	('stays: 0', '{"exp": 0}'), ('stays: later', '{"exp": 32503680000}'), ('goes with a zone', '{"exp": "2001-01-01T00:00:00"}');
SELECT ttl_index.create_index('declared', 'doc.exp', 60, unit => 'seconds');
SELECT ttl_index.create_index('declared', 'doc.exp', 60, unit => 'seconds');
SELECT ttl_index.create_index('declared', 'doc.exp', 5, unit => 'seconds', or_change => true);
SELECT ttl_index.create_index('declared', 'doc.exp', 5, unit => 'milliseconds', paused => true, name => 'milliseconds');
SELECT pg_get_indexdef(indexrelid), key, unit, state FROM ttl_index.indexes WHERE relid = 'declared'::regclass ORDER BY indexrelid;
CALL ttl_index.run_pass();
SELECT name FROM declared ORDER BY name COLLATE "C";
DROP INDEX milliseconds;
SELECT * FROM ttl_index.coll_mod('declared', 'doc.exp', 0);
SELECT * FROM ttl_index.coll_mod('declared', 'ttl_index.document_date_in(doc, ''seconds'', ''exp'')', 0);
SELECT * FROM ttl_index.coll_mod('declared', 'doc.exp', 0, unit => 'seconds');
SELECT ttl_index.drop_index('declared', 'doc.exp');
SELECT ttl_index.create_index('declared', 'doc.exp', 0, time_zone => 'America/New_York', document_ttl_field => 'doc.ttl');
SELECT pg_get_indexdef(indexrelid), document_ttl, state FROM ttl_index.indexes WHERE relid = 'declared'::regclass ORDER BY indexrelid;
SELECT ttl_index.oldest_due('declared_doc_exp_ttl') AT TIME ZONE 'UTC' AS utc;
CALL ttl_index.run_pass();
SELECT name FROM declared ORDER BY name COLLATE "C";

-- a domain over jsonb; a step that cannot be written in a key
CREATE DOMAIN document AS jsonb;
CREATE TABLE domains (doc document);
SELECT ttl_index.create_index('domains', 'doc.at', 5, document_ttl_field => 'doc.ttl');
CREATE INDEX dotted ON domains (ttl_index.document_date(doc, 'a.b')) WHERE ttl_index.expire_after_seconds(5);
CREATE INDEX folded ON domains (ttl_index.document_date(doc, VARIADIC ARRAY['{a}', '{b}'::text[]])) WHERE ttl_index.expire_after_seconds(5);
SELECT indexrelid, key, document_ttl FROM ttl_index.indexes WHERE relid = 'domains'::regclass ORDER BY 1;

-- what is there instead of dates: a wrong type is what users trip over
CREATE TABLE wrong (doc jsonb);
INSERT INTO wrong SELECT jsonb_build_object('unix', g, 'local', '2001-01-01T00:00:00', 'flag', true, 'nil', NULL, 'list', '[1]'::jsonb,
	'obj', '{"$date": "yesterday"}'::jsonb) FROM generate_series(1, 10) AS g;
SELECT ttl_index.create_index('wrong', 'doc.unix', 5);
SELECT ttl_index.create_index('wrong', 'doc.local', 5);
SELECT ttl_index.create_index('wrong', 'doc.flag', 5);
SELECT ttl_index.create_index('wrong', 'doc.nil', 5);
SELECT ttl_index.create_index('wrong', 'doc.list', 5);
SELECT ttl_index.create_index('wrong', 'doc.obj', 5);
SELECT ttl_index.create_index('wrong', 'doc.missing', 5);
INSERT INTO wrong VALUES ('{"x": 1, "mixed": 5}');
SELECT ttl_index.create_index('wrong', 'doc.mixed', 5, 'doc ? ''x''');
-- deep documents are not read to the bottom: that takes the square of their depth
CREATE TABLE deep (doc jsonb);
INSERT INTO deep SELECT (repeat('{"a":', 5000) || '1' || repeat('}', 5000))::jsonb FROM generate_series(1, 20);
SET statement_timeout = '60s';
SELECT ttl_index.create_index('deep', 'doc.at', 5);
RESET statement_timeout;
DROP SCHEMA dk CASCADE;
