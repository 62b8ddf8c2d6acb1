-- Rule 36: create_time_series, and partitions that are made ahead of the clock.
-- What the clock shows is in test/t/040_time_series.pl, whose clock stands still.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA series;
SET search_path = series;
CREATE VIEW made AS SELECT p.relname AS series, count(*) AS partitions,
	min(nullif(split_part(pg_get_expr(c.relpartbound, c.oid), '''', 4), '')::timestamptz
		- nullif(split_part(pg_get_expr(c.relpartbound, c.oid), '''', 2), '')::timestamptz) AS span,
	bool_or(pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT') AS "default",
	regexp_replace(min(c.relname), '\d', '9', 'g') AS name
	FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid JOIN pg_class AS p ON p.oid = inhparent
	WHERE p.relkind = 'p' AND p.relnamespace = 'series'::regnamespace GROUP BY 1 ORDER BY 1;

-- the example of the manual
CREATE TABLE weather24h ("timestamp" timestamptz, sensor text, temperature float) PARTITION BY RANGE ("timestamp");
SELECT ttl_index.create_time_series('weather24h', time_field => 'timestamp', meta_field => 'sensor', granularity => 'hours',
	expire_after_seconds => 86400);
\d weather24h
\d weather24h_default
INSERT INTO weather24h VALUES (now(), 'MDB_NYC', 7), (now() + interval '1 day', 'early', 8), ('2000-01-01', 'late', 9),
	('2999-01-01', 'far', 9), (NULL, 'never', 0);
SELECT sensor, tableoid::regclass = 'weather24h_default'::regclass AS "default" FROM weather24h ORDER BY sensor;
CALL ttl_index.run_pass();
SELECT sensor FROM weather24h ORDER BY sensor;
-- spans, also for keys that need a zone
CREATE TABLE seconds (ts timestamptz) PARTITION BY RANGE (ts);
SELECT ttl_index.create_time_series('seconds', 'ts');
CREATE TABLE minutes (ts timestamp, sensor int, "Meta" int) PARTITION BY RANGE (ts);
SELECT ttl_index.create_time_series('minutes', 'ts', '"Meta"', 'minutes', 0, time_zone => 'America/New_York');
SELECT ttl_index.create_time_series('minutes', 'ts', 'Meta', 'minutes', 0, time_zone => 'America/New_York');
CREATE TABLE hours (day date) PARTITION BY RANGE (day);
SELECT ttl_index.create_time_series('hours', 'day', granularity => 'hours', expire_after_seconds => 10, time_zone => 'Asia/Tokyo');
CREATE TABLE week (day date) PARTITION BY RANGE (day);
SELECT ttl_index.create_time_series('week', 'day', expire_after_seconds => 10, bucket_max_span_seconds => 7 * 86400,
	time_zone => 'Asia/Tokyo', delete_boundary_rows => true);
CREATE TABLE minute (ts timestamptz) PARTITION BY RANGE (ts);
SELECT ttl_index.create_time_series('minute', 'ts', bucket_max_span_seconds => 60);
CREATE TABLE odd_and_with_a_name_that_takes_all_the_room_that_there_is_in_it (ts timestamptz) PARTITION BY RANGE (ts);
SELECT ttl_index.create_time_series('odd_and_with_a_name_that_takes_all_the_room_that_there_is_in_it', 'ts', bucket_max_span_seconds => 61);
SELECT * FROM made;
-- weeks begin on Mondays
SELECT bool_and(extract(isodow FROM substring(pg_get_expr(relpartbound, oid), '\((.*?)\)')::date) = 1) FROM pg_class
WHERE relname ~ '^week_\d' AND relispartition AND relkind = 'r';
SELECT relname, pg_get_indexdef(oid) FROM pg_class WHERE relname ~ '(ttl|Meta.*idx)$' AND relkind = 'I'
	AND relnamespace = 'series'::regnamespace ORDER BY 1;
SELECT indexrelid, expire_after_seconds, state, reason FROM ttl_index.indexes WHERE parent_indexrelid IS NULL ORDER BY indexrelid::text COLLATE "C";
DROP TABLE hours, week, minute, odd_and_with_a_name_that_takes_all_the_room_that_there_is_in_it, minutes;

-- refusals
CREATE TABLE plain (ts timestamptz);
SELECT ttl_index.create_time_series('plain', 'ts');
CREATE TABLE t (ts timestamptz, day date, doc jsonb) PARTITION BY RANGE (ts);
SELECT ttl_index.create_time_series('t', 'day');
SELECT ttl_index.create_time_series('t', 'day', time_zone => 'UTC');
SELECT ttl_index.create_time_series('t', 'ts', time_zone => 'UTC');
SELECT ttl_index.create_time_series('t', 'doc.ts');
SELECT ttl_index.create_time_series('t', 'none');
SELECT ttl_index.create_time_series('t', 'ts', 'none');
SELECT ttl_index.create_time_series('t', NULL);
SELECT ttl_index.create_time_series('t', 'ts', granularity => 'days');
SELECT ttl_index.create_time_series('t', 'ts', granularity => 'hours', bucket_max_span_seconds => 60);
SELECT ttl_index.create_time_series('t', 'ts', bucket_max_span_seconds => 59);
SELECT ttl_index.create_time_series('t', 'ts', bucket_max_span_seconds => 31536001);
SELECT ttl_index.create_time_series('t', 'ts', expire_after_seconds => -2);
CREATE TABLE d (day date) PARTITION BY RANGE (day);
SELECT ttl_index.create_time_series('d', 'day', time_zone => 'UTC');
CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
SELECT ttl_index.create_time_series('t', 'ts');
CREATE TEMP TABLE temporary (ts timestamptz) PARTITION BY RANGE (ts);
SELECT ttl_index.create_time_series('temporary', 'ts');
-- the name of a partition is taken; the table is left as it was
CREATE TABLE taken (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE taken_default ();
DO $$
DECLARE
	hint text;
	name text;
BEGIN
	PERFORM ttl_index.create_time_series('taken', 'ts', bucket_max_span_seconds => 31536000);
	SELECT max(inhrelid)::regclass INTO name FROM pg_inherits WHERE inhparent = 'taken'::regclass;
	DROP TABLE taken;
	CREATE TABLE taken (ts timestamptz) PARTITION BY RANGE (ts);
	EXECUTE format('CREATE VIEW %s AS SELECT 1', name);
	PERFORM ttl_index.create_time_series('taken', 'ts', bucket_max_span_seconds => 31536000);
EXCEPTION WHEN duplicate_table THEN
	GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
	RAISE WARNING '%', regexp_replace(SQLERRM, '\d', '9', 'g') USING HINT = regexp_replace(hint, '\d', '9', 'g');
END $$;
SELECT ttl_index.create_time_series('taken', 'ts', bucket_max_span_seconds => 31536000);
SELECT series, "default" FROM made WHERE series = 'taken';
DROP TABLE plain, t, d, temporary, taken, taken_default;

-- a granularity with its own span; the same call again makes nothing, another one is refused
CREATE TABLE again (ts timestamptz, sensor int) PARTITION BY RANGE (ts);
SELECT ttl_index.create_time_series('again', 'ts', 'sensor', 'hours', 60, 2592000);
SET client_min_messages = notice;
SELECT ttl_index.create_time_series('again', 'ts', 'sensor', 'hours', 60);
SELECT ttl_index.create_time_series('again', 'ts', 'sensor', 'hours', 61);
SELECT ttl_index.create_time_series('again', 'ts', 'sensor', 'minutes', 60);
SET client_min_messages = warning;
SELECT * FROM made WHERE series = 'again';
SELECT count(*) FROM pg_index WHERE indrelid = 'again'::regclass;
DROP TABLE again;
-- names that begin alike for as long as a name can be
CREATE TABLE alike_in_all_that_there_is_room_for_in_the_name_of_partition_1 (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE alike_in_all_that_there_is_room_for_in_the_name_of_partition_2 (ts timestamptz) PARTITION BY RANGE (ts);
SELECT ttl_index.create_time_series(oid, 'ts', granularity => 'hours') FROM pg_class WHERE relname ~ '^alike.*_\d$' ORDER BY relname;
SELECT series, partitions, span, "default" FROM made WHERE series ~ '^alike';
DROP TABLE alike_in_all_that_there_is_room_for_in_the_name_of_partition_1, alike_in_all_that_there_is_room_for_in_the_name_of_partition_2;

-- the monitor makes what is missing, again and again; a TTL of -1 is none
DROP TABLE seconds;
CREATE TABLE seconds (ts timestamptz, id int GENERATED BY DEFAULT AS IDENTITY, double int GENERATED ALWAYS AS (2) STORED,
	note text COMPRESSION pglz DEFAULT 'x', PRIMARY KEY (ts, id), CHECK (note <> 'y')) PARTITION BY RANGE (ts);
ALTER TABLE seconds ALTER note SET STORAGE EXTERNAL;
SELECT ttl_index.create_time_series('seconds', 'ts', bucket_max_span_seconds => 31536000);
CREATE PROCEDURE drop_partitions(which text) LANGUAGE plpgsql AS $$
DECLARE name text; BEGIN
	FOR name IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'seconds'::regclass AND inhrelid::regclass::text ~ which
	LOOP EXECUTE 'DROP TABLE ' || name; END LOOP;
END $$;
CALL drop_partitions('_\d');
SELECT * FROM made;
SELECT indexrelid, state, regexp_replace(reason, '\d', '9', 'g') AS reason FROM ttl_index.indexes WHERE relid = 'seconds'::regclass;
CALL ttl_index.run_pass();
SELECT * FROM made;
SELECT indexrelid, state FROM ttl_index.indexes WHERE relid = 'seconds'::regclass;
SELECT regexp_replace(string_agg(concat(attname, ' ', attislocal, ' ', attstorage, attcompression), ', ' ORDER BY attnum), '\d', '9', 'g')
FROM pg_attribute WHERE attrelid = (SELECT max(inhrelid) FROM pg_inherits WHERE inhparent = 'seconds'::regclass) AND attnum > 0;
INSERT INTO seconds (ts) VALUES (now()) RETURNING id, double, note, tableoid::regclass = 'seconds_default'::regclass AS "default";
SELECT ttl_index.due_count('seconds_ts_ttl');
-- a change of the whole reaches all partitions, also later ones
SELECT * FROM ttl_index.coll_mod('seconds', 'ts', 1000000000);
CALL drop_partitions('_\d');
CALL ttl_index.run_pass();
SELECT indexrelid = 'seconds_ts_ttl'::regclass AS whole, expire_after_seconds AS n, count(*),
	min(pg_get_expr(indpred, indrelid)) AS predicate
FROM ttl_index.indexes JOIN pg_index USING (indexrelid) WHERE relid::regclass::text ~ '^seconds' GROUP BY 1, 2 ORDER BY 1;
-- remove_ttl is MongoDB's 'off': nothing expires, partitions are still made
SET client_min_messages = notice;
SELECT ttl_index.remove_ttl('seconds_ts_ttl');
CREATE TABLE by_hand PARTITION OF seconds FOR VALUES FROM ('1990-01-01') TO ('1990-01-02');
DROP TABLE by_hand;
SET client_min_messages = warning;
INSERT INTO seconds (ts) VALUES ('2000-01-01');
CALL drop_partitions('_\d');
CALL ttl_index.run_pass();
SELECT * FROM made;
SELECT count(*) FROM seconds;
SELECT indexrelid = 'seconds_ts_ttl'::regclass AS whole, expire_after_seconds AS n, count(*),
	min(pg_get_expr(indpred, indrelid)) AS predicate
FROM ttl_index.indexes JOIN pg_index USING (indexrelid) WHERE relid::regclass::text ~ '^seconds' GROUP BY 1, 2 ORDER BY 1;
SELECT * FROM ttl_index.coll_mod('seconds', 'ts', 86400);
CALL ttl_index.run_pass();
SELECT count(*) FROM seconds;
\d seconds

-- a partition that would collide with rows in DEFAULT is not made, and shown; the others are
CALL drop_partitions('_\d');
INSERT INTO seconds (ts) VALUES (now());
SELECT ttl_index.stats_reset();
SET client_min_messages = error;
CALL ttl_index.run_pass();
SET client_min_messages = warning;
SELECT * FROM made WHERE series = 'seconds';
SELECT indexrelid, state, regexp_replace(reason, '\d', '9', 'g') AS reason FROM ttl_index.indexes WHERE state <> 'active';
SELECT errors, last_error_sqlstate, regexp_replace(last_error, '\d', '9', 'g') AS last_error FROM ttl_index.index_stats WHERE relname = 'seconds';
-- it heals as soon as they are gone
DELETE FROM seconds;
CALL ttl_index.run_pass();
SELECT * FROM made WHERE series = 'seconds';
SELECT indexrelid, state, reason FROM ttl_index.indexes WHERE state <> 'active';

-- so is one whose name is taken
CALL drop_partitions('_\d');
SET timezone = 'UTC';
SELECT format('CREATE TABLE %I ()', 'seconds_' || to_char(timestamptz '2001-01-01 00:00+00'
	+ floor(extract(epoch FROM now() - timestamptz '2001-01-01 00:00+00') / 31536000) * interval '365 days', 'YYYY_MM_DD')) AS command \gset
RESET timezone;
:command;
SET client_min_messages = error;
CALL ttl_index.run_pass();
SET client_min_messages = warning;
SELECT * FROM made WHERE series = 'seconds';
SELECT indexrelid, state, regexp_replace(reason, '\d', '9', 'g') AS reason FROM ttl_index.indexes WHERE state <> 'active';
SELECT errors, last_error_sqlstate, regexp_replace(last_error, '\d', '9', 'g') AS last_error FROM ttl_index.index_stats WHERE relname = 'seconds';
DROP TABLE seconds;

-- made by the owner of the table, who needs the right to
CREATE ROLE ttl_series_owner;
GRANT USAGE, CREATE ON SCHEMA series TO ttl_series_owner;
SET ROLE ttl_series_owner;
CREATE TABLE owned (ts timestamptz, id int) PARTITION BY RANGE (ts);
SELECT ttl_index.create_time_series('owned', 'ts', bucket_max_span_seconds => 31536000);
CREATE PROCEDURE drop_owned() LANGUAGE plpgsql AS $$
DECLARE name text; BEGIN
	FOR name IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'owned'::regclass AND inhrelid::regclass::text ~ '_\d'
	LOOP EXECUTE 'DROP TABLE ' || name; END LOOP;
END $$;
CALL drop_owned();
RESET ROLE;
REVOKE CREATE ON SCHEMA series FROM ttl_series_owner;
SET client_min_messages = error;
CALL ttl_index.run_pass();
SET client_min_messages = warning;
SELECT indexrelid, state, regexp_replace(reason, '\d', '9', 'g') AS reason FROM ttl_index.indexes WHERE state <> 'active';
SELECT errors, last_error_sqlstate, last_error FROM ttl_index.index_stats WHERE relname = 'owned';
GRANT CREATE ON SCHEMA series TO ttl_series_owner;
CALL ttl_index.run_pass();
SELECT DISTINCT relowner::regrole FROM pg_class WHERE relname ~ '^owned';
SELECT * FROM made WHERE series = 'owned';
-- only the owner can make a time series
CREATE TABLE other (ts timestamptz) PARTITION BY RANGE (ts);
SET ROLE ttl_series_owner;
SELECT ttl_index.create_time_series('other', 'ts');
RESET ROLE;

-- whoever calls it, all partitions belong to the owner of the table, so that he can make the next ones
CREATE TABLE others (ts timestamptz) PARTITION BY RANGE (ts);
ALTER TABLE others OWNER TO ttl_series_owner;
SELECT ttl_index.create_time_series('others', 'ts', bucket_max_span_seconds => 31536000);
SELECT DISTINCT relowner::regrole FROM pg_class WHERE relname ~ '^others';
-- where DEFAULT has another owner, as ALTER TABLE ... OWNER does not reach it, no partition is made
ALTER TABLE others_default OWNER TO CURRENT_USER;
DO $$ DECLARE name text; BEGIN
	FOR name IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'others'::regclass AND inhrelid::regclass::text ~ '_\d'
	LOOP EXECUTE 'DROP TABLE ' || name; END LOOP;
END $$;
CALL ttl_index.run_pass();
SELECT state FROM ttl_index.indexes WHERE indexrelid = 'others_ts_ttl'::regclass;
ALTER TABLE others_default OWNER TO ttl_series_owner;
CALL ttl_index.run_pass();
SELECT * FROM made WHERE series = 'others';
DROP TABLE others;

-- another span from now on: the partitions that are there stay, the gaps are filled
DROP TABLE owned;
CREATE TABLE owned (ts timestamptz) PARTITION BY RANGE (ts);
\set ECHO errors
SELECT format($$CREATE TABLE owned_first PARTITION OF owned FOR VALUES FROM (%L) TO (%L)$$,
	now() - interval '1 day', date_trunc('day', now(), 'UTC') + interval '40 days 1 minute 0.25 s') AS command \gset
:command;
\set ECHO all
CREATE INDEX owned_ttl ON owned (ts) WHERE ttl_index.expire_after_seconds(-1) AND ttl_index.bucket_max_span_seconds(31536000);
CALL ttl_index.run_pass();
SELECT count(*) >= 3 AS filled, bool_and(coalesce(lower = upper_before, true)) AS no_gap, bool_or(relname ~ '_00_01_00$') AS odd FROM (
	SELECT c.relname, split_part(pg_get_expr(c.relpartbound, c.oid), '''', 2)::timestamptz AS lower,
		lag(split_part(pg_get_expr(c.relpartbound, c.oid), '''', 4)::timestamptz)
			OVER (ORDER BY split_part(pg_get_expr(c.relpartbound, c.oid), '''', 2)::timestamptz) AS upper_before
	FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid WHERE inhparent = 'owned'::regclass) AS p;

-- where the table has a tablespace, so have its partitions
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE ttl_series LOCATION '';
CREATE TABLE spaced (ts timestamptz) PARTITION BY RANGE (ts) TABLESPACE ttl_series;
SELECT ttl_index.create_time_series('spaced', 'ts', granularity => 'hours');
SELECT DISTINCT spcname FROM pg_class JOIN pg_tablespace AS s ON s.oid = reltablespace WHERE relname ~ '^spaced.*[0-9t]$' AND relkind = 'r';

-- partitions have the row security and the replica identity of their table, and the default privileges.  One
-- call makes some of them, a pass the others.
CREATE ROLE ttl_series_reader;
CREATE ROLE ttl_series_backup;
GRANT USAGE ON SCHEMA series TO ttl_series_reader, ttl_series_backup;
GRANT USAGE, CREATE ON SCHEMA series TO ttl_series_owner;
SET ROLE ttl_series_owner;
ALTER DEFAULT PRIVILEGES IN SCHEMA series GRANT SELECT ON TABLES TO ttl_series_reader;
CREATE TABLE guarded (ts timestamptz NOT NULL, tenant name) PARTITION BY RANGE (ts);
CREATE TABLE open (ts timestamptz NOT NULL, id int) PARTITION BY RANGE (ts);
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY, REPLICA IDENTITY FULL;
CREATE POLICY own ON guarded USING (tenant = current_user);
CREATE UNIQUE INDEX open_key ON open (ts, id);
ALTER TABLE open ALTER id SET NOT NULL, REPLICA IDENTITY USING INDEX open_key;
SELECT ttl_index.create_time_series('guarded', 'ts', granularity => 'hours'), ttl_index.create_time_series('open', 'ts', granularity => 'hours');
DO $$ DECLARE name text; BEGIN
	FOR name IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent IN ('guarded'::regclass, 'open'::regclass) AND inhrelid::regclass::text ~ '_\d'
	ORDER BY inhrelid::regclass::text DESC LIMIT 4
	LOOP EXECUTE 'DROP TABLE ' || name; END LOOP;
END $$;
RESET ROLE;
CALL ttl_index.run_pass();
SELECT p.relname, count(*), c.relrowsecurity, c.relforcerowsecurity, c.relreplident, has_table_privilege('ttl_series_reader', c.oid, 'SELECT') AS reader
FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid JOIN pg_class AS p ON p.oid = inhparent
WHERE inhparent IN ('guarded'::regclass, 'open'::regclass) GROUP BY 1, 3, 4, 5, 6 ORDER BY 1;
INSERT INTO guarded VALUES (now(), 'ttl_series_reader'), (now(), 'ttl_series_backup');
SELECT tableoid::regclass AS bucket FROM guarded LIMIT 1 \gset
SET ROLE ttl_series_reader;
SELECT tenant FROM guarded;
SELECT tenant FROM :bucket;
RESET ROLE;
-- a row of DEFAULT that a policy hides from the owner keeps its bucket from being made, by an error of core
SELECT max(inhrelid::regclass::text) AS bucket FROM pg_inherits WHERE inhparent = 'guarded'::regclass AND inhrelid <> 'guarded_default'::regclass \gset
DROP TABLE :bucket;
INSERT INTO guarded VALUES (now() + interval '60 days', 'somebody');
SET ROLE ttl_series_owner;
SELECT count(*) FROM guarded_default;
RESET ROLE;
CALL ttl_index.run_pass();
SELECT count(*) FROM guarded_default;
SELECT errors, last_error_sqlstate, last_error FROM ttl_index.index_stats WHERE relname = 'guarded';
DELETE FROM guarded_default;
CALL ttl_index.run_pass();
SELECT to_regclass(:'bucket') IS NOT NULL AS made;
SET client_min_messages = error;
CREATE PUBLICATION ttl_series_published FOR TABLE guarded, open;
SET client_min_messages = warning;
UPDATE guarded SET tenant = tenant;
INSERT INTO open VALUES (now(), 1);
UPDATE open SET id = 2;
CALL ttl_index.run_pass();
SELECT indexrelid, state, reason FROM ttl_index.indexes WHERE state <> 'active';
DROP PUBLICATION ttl_series_published;
DROP TABLE guarded, open;
DROP OWNED BY ttl_series_reader, ttl_series_backup;

-- what event triggers of others write is checked at once, as it is in a batch
CREATE TABLE kinds (kind text PRIMARY KEY);
INSERT INTO kinds VALUES ('table');
CREATE TABLE noted (kind text REFERENCES kinds DEFERRABLE INITIALLY DEFERRED);
GRANT INSERT ON noted TO PUBLIC;
CREATE FUNCTION notes() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO series.noted VALUES ('table'); END $$;
CREATE TABLE watched (ts timestamptz) PARTITION BY RANGE (ts);
SELECT ttl_index.create_time_series('watched', 'ts', expire_after_seconds => 0);
DO $$ BEGIN EXECUTE (SELECT string_agg(format('DROP TABLE %s', inhrelid::regclass), '; ') FROM pg_inherits
	WHERE inhparent = 'watched'::regclass AND inhrelid <> 'watched_default'::regclass); END $$;
CREATE TABLE watched_2001 PARTITION OF watched FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
CREATE EVENT TRIGGER ttl_series_drops ON sql_drop EXECUTE FUNCTION notes();
CREATE EVENT TRIGGER ttl_series_makes ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION notes();
CALL ttl_index.run_pass();
SELECT state, reason FROM ttl_index.indexes WHERE indexrelid = 'watched_ts_ttl'::regclass;
SELECT count(*) > 1 AS made, bool_or(inhrelid::regclass::text = 'watched_2001') AS is_left FROM pg_inherits WHERE inhparent = 'watched'::regclass;
SELECT DISTINCT kind FROM noted;
DROP EVENT TRIGGER ttl_series_drops;
DROP EVENT TRIGGER ttl_series_makes;

DROP SCHEMA series CASCADE;
DROP TABLESPACE ttl_series;
DROP OWNED BY ttl_series_owner;
DROP ROLE ttl_series_owner, ttl_series_reader, ttl_series_backup;
