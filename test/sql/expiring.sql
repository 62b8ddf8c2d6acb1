-- The setting ttl_index.expiring tells code of users that a TTL index deletes, and which one.
-- What is decoded from the WAL is in test/t/023_decoding.pl.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA told;
SET search_path = told;
CREATE TABLE log (n serial, place text, expiring text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO told.log (place, expiring) VALUES (concat_ws(' ', TG_TABLE_NAME, TG_WHEN, TG_LEVEL), current_setting('ttl_index.expiring', true));
	RETURN OLD;
END $$;

-- a DELETE of a client, and that of a pass; before, after, deferred, and where a cascade goes on
SHOW ttl_index.expiring;
CREATE TABLE t (id int PRIMARY KEY, ts timestamptz);
CREATE TABLE child (id int REFERENCES t ON DELETE CASCADE);
CREATE TRIGGER a BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER b AFTER DELETE ON t EXECUTE FUNCTION note();
CREATE CONSTRAINT TRIGGER c AFTER DELETE ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER a BEFORE DELETE ON child FOR EACH ROW EXECUTE FUNCTION note();
SELECT ttl_index.create_index('t', 'ts', 0, name => 'Odd "name"');
INSERT INTO t VALUES (1, '2001-01-01'), (2, '2001-01-01');
INSERT INTO child VALUES (1), (2);
DELETE FROM t WHERE id = 1;
CALL ttl_index.run_pass();
SELECT place, expiring, expiring = '' OR expiring::regclass IS NOT NULL AS is_name FROM log ORDER BY n;
SHOW ttl_index.expiring;

-- it is the TTL index of the whole table, and the main one of a pair
CREATE TABLE parts (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE parts_1 PARTITION OF parts DEFAULT;
CREATE TRIGGER a BEFORE DELETE ON parts FOR EACH ROW EXECUTE FUNCTION note();
SELECT ttl_index.create_index('parts', 'ts', 0);
CREATE TABLE pair (ts timestamptz, doc jsonb);
CREATE TRIGGER a BEFORE DELETE ON pair FOR EACH ROW EXECUTE FUNCTION note();
SELECT ttl_index.create_index('pair', 'ts', 0, document_ttl_field => 'doc.ttl');
INSERT INTO parts VALUES ('2001-01-01');
INSERT INTO pair VALUES ('2001-01-01', '{}'), ('2001-01-01', '{"ttl": 5}');
TRUNCATE log;
CALL ttl_index.run_pass();
SELECT place, expiring FROM log ORDER BY place COLLATE "C";

-- a trigger can ask in its condition
CREATE TABLE archived (LIKE t);
CREATE FUNCTION archive() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO told.archived VALUES (OLD.*);
	RETURN OLD;
END $$;
DROP TABLE child;
CREATE TRIGGER archive BEFORE DELETE ON t FOR EACH ROW
	WHEN (current_setting('ttl_index.expiring', true) <> '') EXECUTE FUNCTION archive();
INSERT INTO t VALUES (3, '2001-01-01'), (4, '2001-01-01');
DELETE FROM t WHERE id = 3;
CALL ttl_index.run_pass();
SELECT id FROM archived;

-- event triggers see it when a partition is dropped, and not when one is made
CREATE FUNCTION note_ddl() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO told.log (place, expiring) VALUES (concat_ws(' ', TG_EVENT, TG_TAG), current_setting('ttl_index.expiring', true));
END $$;
CREATE TABLE series (ts timestamptz) PARTITION BY RANGE (ts);
SELECT ttl_index.create_time_series('series', 'ts', expire_after_seconds => 0, bucket_max_span_seconds => 31536000, granularity => NULL);
CREATE TABLE series_old PARTITION OF series FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
DO $$ BEGIN EXECUTE format('DROP TABLE %s', (SELECT max(inhrelid)::regclass FROM pg_inherits
	WHERE inhparent = 'told.series'::regclass AND inhrelid <> 'told.series_old'::regclass)); END $$;
TRUNCATE log;
CREATE EVENT TRIGGER told_drop ON sql_drop EXECUTE FUNCTION note_ddl();
CREATE EVENT TRIGGER told_start ON ddl_command_start WHEN TAG IN ('CREATE TABLE', 'DROP TABLE') EXECUTE FUNCTION note_ddl();
CALL ttl_index.run_pass();
DROP EVENT TRIGGER told_drop;
DROP EVENT TRIGGER told_start;
SELECT to_regclass('series_old'), place, expiring FROM log ORDER BY n;
DROP TABLE series;

-- an error takes it back, and the rows of another index see their own
CREATE TABLE failing (id int, ts timestamptz);
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF OLD.id = 2 THEN RAISE EXCEPTION 'kept by %', current_setting('ttl_index.expiring'); END IF;
	RETURN OLD;
END $$;
CREATE TRIGGER fail BEFORE DELETE ON failing FOR EACH ROW EXECUTE FUNCTION fail();
SELECT ttl_index.create_index('failing', 'ts', 0);
INSERT INTO failing VALUES (1, '2001-01-01'), (2, '2001-01-01'), (3, '2001-01-01');
SET client_min_messages = error;
CALL ttl_index.run_pass();
SET client_min_messages = warning;
SHOW ttl_index.expiring;
SELECT id FROM failing;
SELECT last_error FROM ttl_index.index_stats WHERE relname = 'failing';
DROP TABLE failing;

-- nobody can set it: no client, no trigger, no function, whoever they are
SET ttl_index.expiring = 'fake';
SET LOCAL ttl_index.expiring = 'fake';
SELECT set_config('ttl_index.expiring', 'fake', false);
UPDATE pg_settings SET setting = 'fake' WHERE name = 'ttl_index.expiring';
RESET ttl_index.expiring;
ALTER ROLE CURRENT_USER SET ttl_index.expiring = 'fake';
ALTER SYSTEM SET ttl_index.expiring = 'fake';
CREATE FUNCTION fake() RETURNS text LANGUAGE sql SET ttl_index.expiring = 'fake' RETURN current_setting('ttl_index.expiring');
CREATE FUNCTION fight() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	attempt text;
BEGIN
	FOREACH attempt IN ARRAY ARRAY['SET ttl_index.expiring = ''''', 'SET LOCAL ttl_index.expiring TO DEFAULT', 'RESET ttl_index.expiring',
		'SELECT set_config(''ttl_index.expiring'', '''', true)', 'RESET ALL'] LOOP
		BEGIN
			EXECUTE attempt;
		EXCEPTION WHEN OTHERS THEN
			INSERT INTO told.log (place) VALUES (SQLERRM);
		END;
	END LOOP;
	INSERT INTO told.log (place, expiring) VALUES ('after the fight', current_setting('ttl_index.expiring'));
	RETURN OLD;
END $$;
CREATE TRIGGER z_fight BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION fight();
INSERT INTO t VALUES (5, '2001-01-01');
TRUNCATE log;
CALL ttl_index.run_pass();
SELECT place, expiring FROM log WHERE place NOT LIKE 't %' ORDER BY n;
SHOW ttl_index.expiring;

-- the client's own settings are as they were
SET application_name = 'mine';
INSERT INTO t VALUES (6, '2001-01-01');
CALL ttl_index.run_pass();
SHOW application_name;
RESET application_name;
SET client_min_messages = error;
DROP SCHEMA told CASCADE;
