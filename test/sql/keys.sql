-- Keys: what is due, and what never expires (rules 1 to 8).
\set SHOW_CONTEXT never
SET client_min_messages = warning;
SET TimeZone = 'UTC';
SET datestyle = 'ISO';
CREATE SCHEMA keys;
SET search_path = keys;

-- Every case is a row whose name says what becomes of it.
CREATE FUNCTION run(rel regclass) RETURNS TABLE (survivors text) LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY EXECUTE format('SELECT string_agg(name, '', '' ORDER BY name) FROM %s', rel);
END $$;

-- rules 1 and 2: before 1970 and after 2038, infinities, NULL
CREATE TABLE dates (name text, ts timestamptz);
INSERT INTO dates VALUES
	('stays: null', NULL), ('goes: -infinity', '-infinity'), ('stays: infinity', 'infinity'),
	('goes: 4713 BC', '4713-01-01 BC'), ('goes: 1901', '1901-12-13 20:45:51'), ('goes: 1969', '1969-12-31 23:59:59'),
	('goes: epoch', 'epoch'), ('goes: 2001', '2001-01-01'),
	('stays: 2038', '2038-01-19 03:14:08'), ('stays: 2106', '2106-02-07 06:28:16'), ('stays: 294276', '294276-12-31');
SELECT ttl_index.create_index('dates', 'ts', 0);
SELECT ttl_index.due_count('dates_ts_ttl'), ttl_index.oldest_due('dates_ts_ttl');
CALL ttl_index.run_pass();
SELECT * FROM run('dates');
SELECT ttl_index.due_count('dates_ts_ttl'), ttl_index.oldest_due('dates_ts_ttl');

-- rule 1: the largest n reaches 68 years back
CREATE TABLE far (name text, ts timestamptz);
INSERT INTO far VALUES ('goes: 1950', '1950-01-01'), ('stays: 1990', '1990-01-01'), ('goes: -infinity', '-infinity');
SELECT ttl_index.create_index('far', 'ts', 2147483647);
CALL ttl_index.run_pass();
SELECT * FROM run('far');

-- rule 1, the boundary, inclusive: the clock of a sub-pass is read after the
-- insertion; rule 4: n = 0 expires at the time in the field
CREATE TABLE boundary (name text, ts timestamptz);
INSERT INTO boundary VALUES ('goes: now', clock_timestamp()),
	('goes: n ago', clock_timestamp() - interval '1000 s'), ('stays: an hour less than n ago', clock_timestamp() - interval '1000 s' + interval '1 hour');
SELECT ttl_index.create_index('boundary', 'ts', 0, 'name <> ''goes: n ago'' AND name NOT LIKE ''stays%''');
SELECT ttl_index.create_index('boundary', 'ts', 1000);
CALL ttl_index.run_pass();
SELECT * FROM run('boundary');

-- rule 3, arrays: the earliest decides; any dimension
CREATE TABLE arrays (name text, a timestamptz[]);
INSERT INTO arrays VALUES
	('goes: earliest first', '{2001-01-01,2999-01-01}'), ('goes: earliest last', '{2999-01-01,NULL,2001-01-01}'),
	('stays: future', '{2999-01-01}'), ('stays: empty', '{}'), ('stays: null', NULL), ('stays: nulls', '{NULL,NULL}'),
	('goes: two dimensions', '{{2999-01-01},{2001-01-01}}'), ('goes: -infinity', '{infinity,-infinity}'), ('stays: infinity', '{infinity}');
SELECT name, ttl_index.earliest(a) FROM arrays ORDER BY name;
SELECT ttl_index.create_index('arrays', 'a', 0);
CALL ttl_index.run_pass();
SELECT * FROM run('arrays');
SELECT provolatile, proisstrict, proparallel FROM pg_proc WHERE oid = 'ttl_index.earliest(timestamptz[])'::regprocedure;

-- any immutable expression of the type; descending; included columns; a domain
CREATE TABLE expressions (name text, ts timestamptz, minutes int);
INSERT INTO expressions VALUES ('goes', '2001-01-01', 5), ('stays', '2001-01-01', 1000000000), ('stays: null', NULL, 5);
CREATE FUNCTION plus_minutes(timestamptz, int) RETURNS timestamptz LANGUAGE sql IMMUTABLE
	AS 'SELECT $1 + $2 * interval ''60 s''';
CREATE INDEX expr ON expressions ((plus_minutes(ts, minutes)) DESC NULLS LAST) INCLUDE (name) WHERE ttl_index.expire_after_seconds(60);
SELECT key, state FROM ttl_index.indexes WHERE indexrelid = 'expr'::regclass;
CALL ttl_index.run_pass();
SELECT * FROM run('expressions');
-- a column in an expression is that column, also with the name of its table
SELECT ttl_index.create_index_command('expressions', '(expressions.ts)', 60);
CREATE DOMAIN stamp AS timestamptz;
CREATE TABLE domains (name text, ts stamp);
INSERT INTO domains VALUES ('goes', '2001-01-01'), ('stays', '2999-01-01');
SELECT ttl_index.create_index('domains', 'ts', 0);
CALL ttl_index.run_pass();
SELECT * FROM run('domains');

-- rule 5: several TTL indexes, a shorter one wins
CREATE TABLE several (name text, a timestamptz, b timestamptz);
INSERT INTO several VALUES ('goes: by a', '2001-01-01', '2999-01-01'), ('goes: by b', NULL, '2001-01-01'),
	('goes: by both', '2001-01-01', '2001-01-01'), ('stays', NULL, '2999-01-01');
SELECT ttl_index.create_index('several', 'a', 10), ttl_index.create_index('several', 'a', 2000000000, 'b IS NULL', name => 'longer'),
	ttl_index.create_index('several', 'b', 20);
CALL ttl_index.run_pass();
SELECT * FROM run('several');

-- rule 6: a filter
CREATE TABLE filtered (name text, ts timestamptz, kind text);
INSERT INTO filtered VALUES ('goes', '2001-01-01', 'debug'), ('stays: other', '2001-01-01', 'error'),
	('stays: null', '2001-01-01', NULL), ('stays: later', '2999-01-01', 'debug'), ('stays: changed', '2001-01-01', 'debug');
SELECT ttl_index.create_index('filtered', 'ts', 0, 'kind = ''debug''');
UPDATE filtered SET kind = 'error' WHERE name = 'stays: changed';
CALL ttl_index.run_pass();
SELECT * FROM run('filtered');

-- rule 8: timestamp and date name an instant only in their zone, whatever the session's
CREATE TABLE local (name text, ts timestamp);
INSERT INTO local
	SELECT CASE WHEN h < 0 THEN 'goes' ELSE 'stays' END || to_char(h, ' S09') || ' h',
		(clock_timestamp() + h * interval '1 hour' - interval '1 minute') AT TIME ZONE 'Pacific/Kiritimati'
	FROM unnest('{-20, -14, -2, -1, 1, 2, 14, 20}'::int[]) AS h;
INSERT INTO local VALUES ('goes -infinity', '-infinity'), ('stays infinity', 'infinity'), ('stays null', NULL),
	('goes 4713 BC', '4713-01-01 BC'), ('stays 294276', '294276-12-31 23:59:59');
SET TimeZone = 'America/Los_Angeles';
SELECT ttl_index.create_index('local', 'ts', 0, time_zone => 'Pacific/Kiritimati');
CALL ttl_index.run_pass();
SELECT * FROM run('local');
SET TimeZone = 'UTC';
CREATE TABLE days (name text, d date);
INSERT INTO days
	SELECT CASE WHEN n <= 0 THEN 'goes' ELSE 'stays' END || to_char(n, ' S09') || ' days',
		(clock_timestamp() AT TIME ZONE 'America/Los_Angeles')::date + n FROM generate_series(-3, 3) AS n;
INSERT INTO days VALUES ('goes -infinity', '-infinity'), ('stays infinity', 'infinity'), ('stays null', NULL),
	('goes 4713 BC', '4713-01-01 BC'), ('stays 5874897', '5874897-12-31');
SELECT ttl_index.create_index('days', 'd', 0, time_zone => 'america/los_angeles');
CALL ttl_index.run_pass();
SELECT * FROM run('days');

-- rule 8, both changes of summer time: the instant is exactly key AT TIME ZONE
-- zone, for every minute around the change, whatever second the cutoff is
CREATE TABLE dst (name text, ts timestamp);
CREATE INDEX dst_ts ON dst (ts);
CREATE FUNCTION check_dst(change timestamptz, zone text) RETURNS TABLE (cutoffs bigint, wrong bigint) LANGUAGE plpgsql AS $$
DECLARE
	seconds int;
	m int;
	wrong_here int;
BEGIN
	cutoffs := 0;
	wrong := 0;
	TRUNCATE dst;
	INSERT INTO dst SELECT g, g FROM generate_series((change AT TIME ZONE zone) - interval '3 hours',
		(change AT TIME ZONE zone) + interval '4 hours', '1 minute') AS g;
	FOR m IN -130..130 BY 10 LOOP
		-- the cutoff is now - seconds, a moment in the middle of a minute
		seconds := extract(epoch FROM clock_timestamp() - (change + m * interval '1 minute' + interval '30 s'))::int;
		PERFORM ttl_index.coll_mod('dst', 'ts', seconds, zone);
		SELECT count(*) FILTER (WHERE (ts AT TIME ZONE zone) <= change + m * interval '1 minute' + interval '30 s')
			- ttl_index.due_count('dst_ts') INTO wrong_here FROM dst;
		cutoffs := cutoffs + 1;
		wrong := wrong + abs(wrong_here);
	END LOOP;
	RETURN NEXT;
END $$;
SELECT * FROM check_dst('2024-03-31 01:00+00', 'Europe/Berlin');
SELECT * FROM check_dst('2024-10-27 01:00+00', 'Europe/Berlin');
SELECT * FROM check_dst('2023-11-05 09:00+00', 'America/Los_Angeles');
SELECT * FROM check_dst('2024-10-05 15:30+00', 'Australia/Lord_Howe');
-- Samoa skipped a whole day
SELECT * FROM check_dst('2011-12-30 10:00+00', 'Pacific/Apia');
-- and what is deleted is what was counted
SELECT check_dst.* FROM check_dst('2024-10-27 01:00+00', 'Europe/Berlin');
SELECT (ttl_index.coll_mod('dst', 'ts', extract(epoch FROM clock_timestamp() - '2024-10-27 00:45:30+00')::int, 'Europe/Berlin')).expire_after_seconds_old > 0 AS changed;
CALL ttl_index.run_pass();
SELECT count(*) AS undue_deleted FROM generate_series('2024-10-27 00:00'::timestamp, '2024-10-27 06:00', '1 minute') AS g
WHERE (g AT TIME ZONE 'Europe/Berlin') > '2024-10-27 00:45:30+00' AND NOT EXISTS (SELECT FROM dst WHERE ts = g);
SELECT count(*) AS due_left FROM dst WHERE (ts AT TIME ZONE 'Europe/Berlin') <= '2024-10-27 00:45:30+00';

-- a type without a zone that DDL let through is skipped with a state (rule 8)
ALTER EVENT TRIGGER ttl_index_ddl DISABLE;
CREATE TABLE no_zone (name text, ts timestamp);
INSERT INTO no_zone VALUES ('stays', '2001-01-01');
CREATE INDEX no_zone_ts ON no_zone (ts) WHERE ttl_index.expire_after_seconds(0);
CREATE INDEX wrong_zone ON no_zone (ts) WHERE ttl_index.expire_after_seconds(0) AND ttl_index.time_zone('Berlin+3');
ALTER EVENT TRIGGER ttl_index_ddl ENABLE;
CALL ttl_index.run_pass();
SELECT * FROM run('no_zone');
SELECT indexrelid, state, reason FROM ttl_index.indexes WHERE relid = 'no_zone'::regclass ORDER BY 1;
SET client_min_messages = error;
DROP SCHEMA keys CASCADE;
