-- Mistakes of the first hour: what is said, and that the statements in the hints work.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA hints;
SET search_path = hints;

-- the error of a command; then whether each statement that its hint names runs
CREATE FUNCTION try(command text, show_hint boolean DEFAULT true) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	said text;
	way text;
BEGIN
	EXECUTE command;
	RETURN NEXT 'no error';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS said = PG_EXCEPTION_HINT;
	-- core's own; since 19 it is a detail, of which there are several
	said := nullif(said, 'No function matches the given name and argument types. You might need to add explicit type casts.');
	RETURN NEXT format('%s: %s', SQLSTATE, SQLERRM);
	RETURN NEXT CASE WHEN show_hint THEN said END;
	FOR way IN SELECT m[1] FROM unnest(ARRAY['(CREATE FUNCTION .*?;)', '(CREATE INDEX ON .*?expire_after_seconds\(\.\.\.\))',
		'(ALTER TABLE .*? TYPE (?:jsonb|timestamptz\[\]))']) WITH ORDINALITY AS r (pattern, n),
		LATERAL regexp_matches(said, pattern, 'g') AS m ORDER BY n
	LOOP
		EXECUTE replace(way, '...', '86400');
		RETURN NEXT 'runs: ' || CASE WHEN show_hint THEN left(way, 40) ELSE '' END;
	END LOOP;
END $$;

CREATE TABLE "T" (id uuid, ms bigint, s int, n numeric, txt text, vc varchar(40), "Js" json, doc jsonb,
	ts timestamp, d date, ok timestamptz, days date[], during tstzrange, span interval);
SELECT try($$SELECT ttl_index.create_index('"T"', 'ms', 60)$$);
SELECT try($$CREATE INDEX ON "T" (ms) WHERE ttl_index.expire_after_seconds(60)$$);
SELECT try($$SELECT ttl_index.create_index('"T"', 's', 60)$$);
SELECT try($$SELECT ttl_index.create_index('"T"', 'n', 60)$$);
SELECT try($$SELECT ttl_index.create_index('"T"', 'txt', 60)$$);
DROP FUNCTION text_date CASCADE;
SELECT try($$CREATE INDEX ON "T" (vc) WHERE ttl_index.expire_after_seconds(60)$$);
SELECT try($$SELECT ttl_index.create_index('"T"', 'id', 60)$$, false);
SELECT try($$SELECT ttl_index.create_index('"T"', 'Js', 60)$$);
ALTER TABLE "T" DROP COLUMN "Js", ADD COLUMN "Js" json;
SELECT try($$SELECT ttl_index.create_index('"T"', 'Js.meta.at', 60)$$);
SELECT try($$SELECT ttl_index.create_index('"T"', 'doc', 60)$$);
SELECT try($$CREATE INDEX ON "T" (doc) WHERE ttl_index.expire_after_seconds(60)$$);
SELECT try($$SELECT ttl_index.create_index('"T"', 'days', 60)$$);
SELECT try($$SELECT ttl_index.create_index('"T"', 'during', 60)$$);
SELECT try($$SELECT ttl_index.create_index('"T"', 'span', 60)$$);
SELECT count(*), bool_and(state = 'active') AS active FROM ttl_index.indexes;

-- an expression has no name to put there
CREATE INDEX ON "T" ((doc->>'at')) WHERE ttl_index.expire_after_seconds(60);

-- what is no table
CREATE VIEW v AS SELECT * FROM "T";
CREATE MATERIALIZED VIEW mv AS SELECT * FROM "T";
CREATE FOREIGN DATA WRAPPER hints_fdw;
CREATE SERVER hints_server FOREIGN DATA WRAPPER hints_fdw;
CREATE FOREIGN TABLE ft (ok timestamptz) SERVER hints_server;
CREATE INDEX t_ok ON "T" (ok);
SELECT try($$SELECT ttl_index.create_index('v', 'ok', 60)$$);
SELECT try($$SELECT ttl_index.create_index('mv', 'ok', 60)$$);
SELECT try($$SELECT ttl_index.create_index('ft', 'ok', 60)$$);
SELECT try($$SELECT ttl_index.coll_mod('v', 'ok', 60)$$);
SELECT try($$SELECT ttl_index.coll_mod('t_ok', 'ok', 60)$$);
DROP FOREIGN DATA WRAPPER hints_fdw CASCADE;

-- hints on an argument speak of arguments
SELECT try($$SELECT ttl_index.create_index('"T"', 'd', 60)$$);
SELECT try($$CREATE INDEX ON "T" (d) WHERE ttl_index.expire_after_seconds(60)$$);
SELECT try($$SELECT ttl_index.create_index('"T"', 'ok', -5)$$);
SELECT try($$SELECT ttl_index.create_index('"T"', 'ok', -1)$$);
SELECT try($$SELECT ttl_index.coll_mod('"T"', 'ok', -5)$$);
SELECT try($$SELECT ttl_index.coll_mod_index('t_ok', -1)$$);

SELECT try($$SELECT ttl_index.create_index('"T"', 'ok', 60, 'ok < now()')$$);

-- IF NOT EXISTS changes nothing, which is said where other seconds are written
RESET client_min_messages;
CREATE TABLE again (at timestamptz, n int);
CREATE INDEX again_ttl ON again (at) WHERE ttl_index.expire_after_seconds(60);
CREATE INDEX IF NOT EXISTS again_ttl ON again (at) WHERE ttl_index.expire_after_seconds(30 + 30);
CREATE INDEX IF NOT EXISTS again_ttl ON again (at) WHERE ttl_index.expire_after_seconds(30);
CREATE INDEX CONCURRENTLY IF NOT EXISTS again_ttl ON again (at) WHERE n > 5 AND ttl_index.expire_after_seconds(seconds => ttl_index.seconds('1 day'));
SELECT * FROM ttl_index.coll_mod_index('hints.again_ttl', 86400);
CREATE INDEX IF NOT EXISTS again_ttl ON again (at) WHERE ttl_index.expire_after_seconds(ttl_index.seconds('1 day'));
CREATE INDEX IF NOT EXISTS again_ttl ON again (at) WHERE ttl_index.expire_after_seconds(n);
CREATE INDEX IF NOT EXISTS again_ttl ON again (at);
CREATE INDEX IF NOT EXISTS t_ok ON again (at) WHERE ttl_index.expire_after_seconds(60);
CREATE INDEX IF NOT EXISTS again ON again (at) WHERE ttl_index.expire_after_seconds(60);
SET client_min_messages = warning;

-- ALTER TABLE cannot give a time zone, or take it
SELECT try($$ALTER TABLE again ALTER at TYPE timestamp$$);
SELECT ttl_index.remove_ttl('hints.again_ttl');
ALTER TABLE again ALTER at TYPE timestamp;
SELECT * FROM ttl_index.coll_mod_index('hints.again_ttl', 60, 'UTC');
SELECT try($$ALTER TABLE again ALTER at TYPE timestamptz$$);
DROP TABLE again;

-- milliseconds, in all functions; untyped parameters are numbers all the same
SELECT try($$SELECT ttl_index.create_index('"T"', 'ok', 2592000000)$$);
SELECT try($$SELECT ttl_index.create_index_command('"T"', 'ok', 2592000000)$$);
SELECT try($$SELECT ttl_index.coll_mod('"T"', 'ok', 2147483648)$$);
SELECT try($$SELECT ttl_index.coll_mod_index('t_ok', -2147483649)$$);
SELECT try($$SELECT ttl_index.create_time_series('"T"', 'ok', expire_after_seconds => 2592000000)$$);
PREPARE untyped AS SELECT * FROM ttl_index.create_index_command('"T"', 'ok', $1, 's > 5');
EXECUTE untyped(60);
SELECT * FROM ttl_index.create_index_command('"T"', 'ok', '60', 's > 5');
SELECT * FROM ttl_index.create_index_command('"T"', 'ok', 60::smallint, 's > 5');

-- a key that is none
SELECT try($$SELECT ttl_index.create_index('"T"', 'nope', 60)$$);
SELECT try($$SELECT ttl_index.create_index('"T"', 'OK', 60)$$);
SELECT try($$SELECT ttl_index.create_index('"T"', 'to_timestamp(ms / 1000)', 60)$$);
SELECT try($$SELECT ttl_index.coll_mod('"T"', 'OK', 60)$$);
SELECT try($$SELECT ttl_index.coll_mod('"T"', 'to_timestamp(ms / 1000.00)', 60)$$);
-- a key, or another argument, that is nearly right
CREATE TYPE made AS (created_at timestamptz);
CREATE DOMAIN moment AS timestamptz;
CREATE TABLE near ("Created At" timestamptz, doc jsonb, docs jsonb[], m made, moments moment[], "TTL" int);
SELECT try($$SELECT ttl_index.create_index('near', 'created at', 60)$$);
SELECT try($$SELECT ttl_index.create_index('near', 'Doc.at', 60)$$);
SELECT try($$SELECT ttl_index.create_index('near', '"doc".at', 60)$$);
SELECT try($$SELECT ttl_index.create_index('near', '{"at": 1}', 60)$$);
SELECT try($$SELECT ttl_index.create_index('near', 'doc.items[0].at', 60)$$);
SELECT try($$SELECT ttl_index.create_index('near', 'doc.$.at', 60)$$);
SELECT try($$SELECT ttl_index.create_index('near', 'm.created_at', 60)$$);
SELECT ttl_index.create_index('near', 'docs.at', 60);
SELECT try($$SELECT ttl_index.create_index('near', 'Created At', 60, '{"status": "done"}')$$);
SELECT try($$SELECT ttl_index.create_index('near', 'Created At', 60, document_ttl_field => 'ttl')$$);
SELECT try($$SELECT ttl_index.create_index('near', 'Created At', 60, document_ttl_field => 'doc.a.ttl')$$);
SELECT try($$SELECT ttl_index.create_index('near', '_ts', 60)$$);
SELECT ttl_index.track_last_modified('hints.near');
SELECT ttl_index.create_index_command('near', k, 60) FROM unnest('{_ts,moments,"\"Created At\"",(m).created_at}'::text[]) AS k;
ALTER TABLE hints.near ALTER COLUMN docs TYPE jsonb USING to_jsonb(docs);
SELECT ttl_index.create_index_command('near', 'docs.at', 60);

-- the span as an interval, in each function
SELECT ttl_index.create_index('near', 'doc.at', '30 days', name => 'near_ttl');
SELECT * FROM ttl_index.coll_mod('near', 'doc.at', '7d');
SELECT * FROM ttl_index.coll_mod_index('near_ttl', interval '1 hour');
SELECT * FROM ttl_index.create_index_command('near', '_ts', '-1 day');
SELECT * FROM ttl_index.create_index_command('near', '_ts', '1 year');
SELECT * FROM ttl_index.create_index_command('near', '_ts', 'soon');
CREATE TABLE series (at timestamptz) PARTITION BY RANGE (at);
SELECT ttl_index.create_time_series('series', 'at', expire_after_seconds => '2 days');
EXECUTE untyped('1 day');
SELECT indexrelid, expire_after_seconds FROM ttl_index.indexes WHERE relid IN ('near'::regclass, 'series') ORDER BY 1;

-- what is there already: the call that makes it what was asked for
SELECT try($$SELECT ttl_index.create_index('near', 'doc.at', 60, paused => true)$$);
SELECT * FROM ttl_index.coll_mod_index('hints.near_ttl', 60, paused => true);
CREATE INDEX near_plain ON near ("Created At");
SELECT try($$SELECT * FROM ttl_index.create_index_command('near', 'Created At', 60, archive_to => 'near')$$);
SELECT try($$SELECT * FROM ttl_index.create_index_command('near', 'Created At', 60, paused => true)$$);
SELECT * FROM ttl_index.coll_mod_index('hints.near_plain', 60, paused => true);
-- which index is in the way of another type
SELECT try($$ALTER TABLE near ALTER "Created At" TYPE bigint USING 1$$);
DROP TABLE near;
-- the index of a table that belongs to an extension
RESET client_min_messages;
CREATE TABLE member (at timestamptz);
ALTER EXTENSION plpgsql ADD TABLE member;
CREATE INDEX member_ttl ON member (at) WHERE ttl_index.expire_after_seconds(60);
ALTER EXTENSION plpgsql DROP TABLE member;
SET client_min_messages = error;
DROP SCHEMA hints CASCADE;
