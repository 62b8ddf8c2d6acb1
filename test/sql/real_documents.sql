-- Dates that nobody made up for a test: rules 2, 9 and 10.
-- test/data/npm_times.json is what "npm view NAME name time --json" printed for
-- eight packages on 2026-11-21, one document per line.  A cache stood between
-- npm and the registry: the dates are its own, not those of the publications,
-- and the members "created" and "modified" were missing.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE SCHEMA npm;
SET search_path = npm;
\getenv abs_srcdir PG_ABS_SRCDIR
\set file :abs_srcdir '/data/npm_times.json'
CREATE TABLE packages (doc jsonb);
COPY packages FROM :'file';
CREATE VIEW dates AS
	SELECT doc->>'name' AS name, key AS version, value AS date, doc
	FROM packages, jsonb_each_text(doc->'time');
SELECT name, count(*) AS dates, min(date::timestamptz), max(date::timestamptz)
FROM dates GROUP BY name ORDER BY name COLLATE "C";
SELECT translate(date, '123456789', '000000000') AS form, count(*) FROM dates GROUP BY form ORDER BY count(*);

-- every date is read as timestamptz reads it, whatever the session's zone
SELECT count(*) AS dates,
	count(*) FILTER (WHERE ttl_index.document_date(doc, 'time', version) = date::timestamptz) AS equal
FROM dates;
SET TimeZone = 'Asia/Kathmandu';
SELECT count(*) AS dates,
	count(*) FILTER (WHERE ttl_index.document_date(doc, 'time', version) = date::timestamptz) AS equal
FROM dates;
SET TimeZone = 'UTC';
-- what is no date
SELECT count(*) AS documents,
	count(ttl_index.document_date(doc, 'name')) AS names,
	count(ttl_index.document_date(doc, 'time')) AS objects,
	count(ttl_index.document_date(doc, 'time', 'created')) AS missing
FROM packages;

-- Everything before the instant is due, whenever the test runs: no date is
-- within days of the instants below.
CREATE FUNCTION seconds_since(instant timestamptz) RETURNS int LANGUAGE sql
RETURN extract(epoch FROM clock_timestamp() - instant)::int;

-- a document for each release; what stays is what timestamptz says
CREATE TABLE releases (doc jsonb);
INSERT INTO releases
SELECT jsonb_build_object('name', name, 'version', version, 'meta', jsonb_build_object('date', date)) FROM dates;
SELECT ttl_index.create_index('releases', 'doc.meta.date', 2147483647);
CALL ttl_index.run_pass();
SELECT count(*) FROM releases;
SELECT FROM ttl_index.coll_mod('releases', 'doc.meta.date', seconds_since('2025-06-01 00:00:00+00'));
SELECT ttl_index.due_count('releases_doc_meta_date_ttl'), ttl_index.oldest_due('releases_doc_meta_date_ttl');
CALL ttl_index.run_pass();
SELECT name, count(*) AS dates, count(*) FILTER (WHERE date::timestamptz >= '2025-06-01 00:00:00+00') AS expected,
	count(r.doc) AS there, min(ttl_index.document_date(r.doc, 'meta', 'date'))
FROM dates LEFT JOIN releases AS r ON r.doc->>'name' = name AND r.doc->>'version' = version
GROUP BY name ORDER BY name COLLATE "C";
SELECT count(*) FROM releases
WHERE (doc #>> '{meta,date}')::timestamptz < '2025-06-01 00:00:00+00';

-- an array of all dates of a package: the earliest decides
CREATE TABLE histories (doc jsonb);
INSERT INTO histories
SELECT jsonb_build_object('name', name, 'dates', jsonb_agg(date ORDER BY version COLLATE "C")) FROM dates GROUP BY name;
SELECT ttl_index.create_index('histories', 'doc.dates', 2147483647);
SELECT FROM ttl_index.coll_mod('histories', 'doc.dates', seconds_since('2024-03-01 00:00:00+00'));
CALL ttl_index.run_pass();
SELECT doc->>'name' AS name, jsonb_array_length(doc->'dates') AS dates, ttl_index.document_date(doc, 'dates') AS earliest
FROM histories ORDER BY doc->>'name' COLLATE "C";

-- The documents as they came.  The name of a version has dots: no dotted path
-- leads there, but an expression does.
SELECT ttl_index.create_index('packages', 'doc.time.1.0.0', 2147483647);
SELECT ttl_index.drop_index('packages', 'doc.time.1.0.0');
CREATE INDEX packages_1_0_0_ttl ON packages (ttl_index.document_date(doc, 'time', '1.0.0'))
	WHERE ttl_index.expire_after_seconds(2147483647);
SELECT doc->>'name' AS name, doc #>> '{time,1.0.0}' AS date FROM packages ORDER BY doc->>'name' COLLATE "C";
SELECT FROM ttl_index.coll_mod_index('packages_1_0_0_ttl', seconds_since('2025-06-01 00:00:00+00'));
CALL ttl_index.run_pass();
SELECT doc->>'name' AS name, doc #>> '{time,1.0.0}' AS date FROM packages ORDER BY doc->>'name' COLLATE "C";

SELECT relname, deleted_documents, errors FROM ttl_index.index_stats WHERE schemaname = 'npm' ORDER BY relname COLLATE "C";
DROP SCHEMA npm CASCADE;
