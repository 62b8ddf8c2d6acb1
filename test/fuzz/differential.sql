-- Compares document_date() with PostgreSQL's own input, string by string: every
-- string of the format that PostgreSQL takes must be the same instant, and
-- everything else must not be a date.  Run by script/differential.
\set ON_ERROR_STOP on
\pset footer off
SET client_min_messages = warning;
-- neither may depend on it
SET TimeZone = 'America/Los_Angeles';
SET DateStyle = 'SQL, DMY';

CREATE FUNCTION pg_temp.core_date(string text) RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
	RETURN string::timestamptz;
EXCEPTION WHEN data_exception THEN
	RETURN NULL;
END $$;

CREATE TEMP TABLE results AS
SELECT string, CASE WHEN in_format THEN pg_temp.core_date(string) END AS core,
	ttl_index.document_date(jsonb_build_object('d', string), 'd') AS plain,
	ttl_index.document_date(jsonb_build_object('d', jsonb_build_object('$date', string)), 'd') AS wrapped
FROM strings,
	-- hour 24 is of ISO 8601, not of RFC 3339, but PostgreSQL takes it
	LATERAL (SELECT string ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt]([01][0-9]|2[0-35-9]|[3-9][0-9]):[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[-+][0-9]{2}:?[0-9]{2})$') AS f (in_format);

CREATE TEMP TABLE different AS
SELECT string, core, plain, wrapped FROM results
WHERE plain IS DISTINCT FROM core OR wrapped IS DISTINCT FROM core;

SELECT count(*) AS strings, count(DISTINCT string) AS distinct, count(plain) AS dates, count(wrapped) AS "dates inside $date",
	count(*) FILTER (WHERE wrapped IS NULL) AS "not dates", (SELECT count(*) FROM different) AS different
FROM results;
SELECT * FROM different LIMIT 20;
SELECT 1 / (count(*) = 0)::int AS all_the_same FROM different;
