-- Code of a table runs as its owner, with a safe search path; whose tables run_pass() visits:
-- rule 24; who may look; where a foreign key may lead.  See owners for what code leaves behind.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE ROLE regress_ttl_owner;
CREATE ROLE regress_ttl_member IN ROLE regress_ttl_owner;
CREATE ROLE regress_ttl_stranger;
CREATE ROLE regress_ttl_monitor IN ROLE pg_monitor;
CREATE SCHEMA sec;
GRANT ALL ON SCHEMA sec TO PUBLIC;
SET search_path = sec;

-- What each piece of hostile code saw and managed.  It swallows every error, and
-- writes down who it was; the log is open to all, so that it can.
CREATE TABLE log (n serial, place text, who text, path text, did text);
GRANT ALL ON log, log_n_seq TO PUBLIC;
CREATE FUNCTION attack(place text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	did text := '';
	attempt text;
	path text := current_setting('search_path');
BEGIN
	FOREACH attempt IN ARRAY ARRAY['RESET ROLE', 'RESET SESSION AUTHORIZATION', 'SET ROLE NONE', 'SET SESSION AUTHORIZATION DEFAULT',
		'ALTER ROLE regress_ttl_owner SUPERUSER', 'CREATE ROLE regress_ttl_evil SUPERUSER', 'DELETE FROM ttl_index.counters',
		'SELECT ttl_index.stats_reset()'] LOOP
		BEGIN
			EXECUTE attempt;
			did := did || CASE WHEN attempt ~ '^(RE)?SET' THEN '' ELSE attempt || '; ' END;
		EXCEPTION WHEN OTHERS THEN
		END;
	END LOOP;
	-- a setting of theirs must not outlive them
	PERFORM set_config('search_path', 'sec', false), set_config('work_mem', '64kB', false);
	INSERT INTO sec.log (place, who, path, did) VALUES (place,
		current_user || CASE current_setting('is_superuser') WHEN 'on' THEN ', who takes himself for a superuser' ELSE '' END, path, did);
END $$;
-- who they are while only the expirer calls them, not INSERT or CREATE INDEX
CREATE TABLE armed (yes bool);
GRANT SELECT ON armed TO PUBLIC;
SET ROLE regress_ttl_owner;
CREATE TABLE victim (id int, ts timestamptz);
CREATE FUNCTION hostile_key(ts timestamptz) RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF EXISTS (SELECT FROM sec.armed) THEN PERFORM sec.attack('index expression'); END IF;
	RETURN ts;
END $$;
CREATE FUNCTION hostile_filter(id int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF EXISTS (SELECT FROM sec.armed) THEN PERFORM sec.attack('predicate'); END IF;
	RETURN true;
END $$;
CREATE FUNCTION hostile_constant() RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF EXISTS (SELECT FROM sec.armed) THEN PERFORM sec.attack('folded predicate'); END IF;
	RETURN true;
END $$;
CREATE FUNCTION hostile_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM sec.attack(TG_WHEN || ' ' || TG_LEVEL || ' trigger');
	RETURN OLD;
END $$;
INSERT INTO victim VALUES (1, '2001-01-01');
CREATE INDEX victim_ttl ON victim (hostile_key(ts)) WHERE hostile_filter(id) AND hostile_constant() AND ttl_index.expire_after_seconds(0);
CREATE TRIGGER b BEFORE DELETE ON victim FOR EACH ROW EXECUTE FUNCTION hostile_trigger();
CREATE TRIGGER bs BEFORE DELETE ON victim EXECUTE FUNCTION hostile_trigger();
CREATE TRIGGER a AFTER DELETE ON victim FOR EACH ROW EXECUTE FUNCTION hostile_trigger();
CREATE CONSTRAINT TRIGGER d AFTER DELETE ON victim DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hostile_trigger();
-- row security, even forced, does not apply
ALTER TABLE victim ENABLE ROW LEVEL SECURITY;
ALTER TABLE victim FORCE ROW LEVEL SECURITY;
RESET ROLE;
INSERT INTO armed VALUES (true);

SHOW work_mem;
SELECT ttl_index.due_count('victim_ttl');
SELECT * FROM ttl_index.coll_mod_index('victim_ttl', 1);
CALL ttl_index.run_pass();
-- a superuser's own query computes the filter as the superuser
TRUNCATE armed;
SELECT count(*) FROM victim;
SELECT place, who, min(path) AS path, string_agg(DISTINCT did, '') AS did, count(*) > 0 AS ran
FROM log GROUP BY place, who ORDER BY place;
SELECT rolname FROM pg_roles WHERE rolname LIKE 'regress_ttl%' AND rolsuper;
SELECT current_user = session_user AS same_user, current_setting('search_path') AS search_path, current_setting('work_mem') AS work_mem;

-- operators, functions and tables of the same names on the path of the session are not used
CREATE FUNCTION evil_le(timestamptz, timestamptz) RETURNS bool LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR <= (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = evil_le);
CREATE FUNCTION count(anyelement) RETURNS bigint LANGUAGE sql AS 'SELECT 42::bigint';
CREATE TABLE calm (ts timestamptz);
INSERT INTO calm VALUES ('2001-01-01'), ('2999-01-01');
SET search_path = sec, pg_catalog;
SELECT ttl_index.create_index('calm', 'ts', 0);
SELECT ttl_index.due_count('calm_ts_ttl');
CALL ttl_index.run_pass();
SELECT ts::date FROM calm;
SET search_path = sec;
DROP FUNCTION count(anyelement);
DROP OPERATOR sec.<= (timestamptz, timestamptz);

-- rule 24: run_pass() visits the tables whose owner's role the caller has
SET ROLE regress_ttl_owner;
CREATE TABLE theirs (ts timestamptz);
SELECT ttl_index.create_index('theirs', 'ts', 0);
INSERT INTO theirs VALUES ('2001-01-01');
RESET ROLE;
CREATE TABLE ours (ts timestamptz);
SELECT ttl_index.create_index('ours', 'ts', 0);
INSERT INTO ours VALUES ('2001-01-01');
SET ROLE regress_ttl_stranger;
CALL ttl_index.run_pass();
RESET ROLE;
SELECT (SELECT count(*) FROM theirs) AS theirs, (SELECT count(*) FROM ours) AS ours;
SET ROLE regress_ttl_member;
CALL ttl_index.run_pass();
RESET ROLE;
SELECT (SELECT count(*) FROM theirs) AS theirs, (SELECT count(*) FROM ours) AS ours;
CALL ttl_index.run_pass();
SELECT (SELECT count(*) FROM theirs) AS theirs, (SELECT count(*) FROM ours) AS ours;

-- who may count and who may watch
SET ROLE regress_ttl_stranger;
SELECT ttl_index.due_count('theirs_ts_ttl');
SELECT ttl_index.oldest_due('theirs_ts_ttl');
SELECT count(*) > 0 AS visible FROM ttl_index.indexes;
SELECT deleted_documents > 0 AS visible FROM ttl_index.stats;
SELECT * FROM ttl_index.current_op;
SELECT * FROM ttl_index.counters;
SELECT ttl_index.stats_reset();
SELECT ttl_index.coll_mod_index('theirs_ts_ttl', 1);
INSERT INTO ttl_index.counters SELECT * FROM ttl_index.counters;
RESET ROLE;
SET ROLE regress_ttl_member;
SELECT ttl_index.due_count('theirs_ts_ttl'), ttl_index.oldest_due('theirs_ts_ttl');
SELECT ttl_index.coll_mod_index('theirs_ts_ttl', 1);
RESET ROLE;
SET ROLE regress_ttl_monitor;
SELECT ttl_index.due_count('theirs_ts_ttl');
SELECT count(*) FROM ttl_index.current_op;
SELECT count(*) > 0 AS visible FROM ttl_index.counters;
DELETE FROM ttl_index.counters;
SELECT ttl_index.stats_reset();
SELECT ttl_index.coll_mod_index('theirs_ts_ttl', 1);
RESET ROLE;

-- the text of an error can hold data: for the owner and those who may read statistics
CREATE TABLE secrets (ts timestamptz, secret text);
ALTER TABLE secrets OWNER TO regress_ttl_owner;
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'secret: %', OLD.secret; END $$;
CREATE TRIGGER tell BEFORE DELETE ON secrets FOR EACH ROW EXECUTE FUNCTION tell();
SELECT ttl_index.create_index('secrets', 'ts', 0);
INSERT INTO secrets VALUES ('2001-01-01', 'swordfish');
SET client_min_messages = error;
CALL ttl_index.run_pass();
SET client_min_messages = warning;
SET ROLE regress_ttl_stranger;
SELECT errors, last_error, last_error_sqlstate FROM ttl_index.index_stats WHERE relname = 'secrets';
SET ROLE regress_ttl_owner;
SELECT errors, last_error, last_error_sqlstate FROM ttl_index.index_stats WHERE relname = 'secrets';
SET ROLE regress_ttl_monitor;
SELECT errors, last_error, last_error_sqlstate FROM ttl_index.index_stats WHERE relname = 'secrets';
RESET ROLE;

-- triggers of a table that a foreign key changes run as its owner: before 18 only if that has the privileges of the one whose rows go
CREATE TABLE master (id int PRIMARY KEY, ts timestamptz);
GRANT REFERENCES ON master TO regress_ttl_owner;
SELECT ttl_index.create_index('master', 'ts', 0);
INSERT INTO master VALUES (1, '2001-01-01');
CREATE VIEW refused AS SELECT current_setting('server_version_num')::int >= 180000 OR
	last_error LIKE 'a foreign key leads to table "detail" of another owner%' AS as_expected,
	(SELECT count(*) FROM log WHERE who NOT LIKE 'regress_ttl_owner%') AS as_others
FROM ttl_index.index_stats WHERE relname = 'master';
SET ROLE regress_ttl_owner;
CREATE TABLE detail (id int REFERENCES master ON DELETE CASCADE);
CREATE TRIGGER a AFTER DELETE ON detail FOR EACH ROW EXECUTE FUNCTION hostile_trigger();
INSERT INTO detail VALUES (1);
RESET ROLE;
TRUNCATE log;
SET client_min_messages = error;
CALL ttl_index.run_pass();
TABLE refused;
-- a rule leads to a table whose trigger is fired at the end as well
SET ROLE regress_ttl_owner;
DROP TRIGGER a ON detail;
CREATE TABLE behind (id int);
CREATE TRIGGER a AFTER INSERT ON behind FOR EACH ROW EXECUTE FUNCTION hostile_trigger();
CREATE RULE r AS ON DELETE TO detail DO ALSO INSERT INTO sec.behind VALUES (OLD.id);
RESET ROLE;
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
TABLE refused;
-- so is one behind an update of what the foreign key has set to NULL
DROP TABLE detail;
CREATE TABLE nullable (id int UNIQUE REFERENCES master ON DELETE SET NULL);
GRANT REFERENCES ON nullable TO regress_ttl_owner;
SET ROLE regress_ttl_owner;
CREATE TABLE detail (id int REFERENCES nullable (id) ON UPDATE CASCADE);
CREATE TRIGGER a AFTER UPDATE ON detail EXECUTE FUNCTION hostile_trigger();
RESET ROLE;
INSERT INTO master VALUES (1, '2001-01-01') ON CONFLICT DO NOTHING;
INSERT INTO nullable VALUES (1);
INSERT INTO detail VALUES (1);
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
TABLE refused;
DROP TABLE detail, nullable;
DROP VIEW refused;
-- a table that inherits from a referencing one is not touched, so it may be anybody's
CREATE TABLE detail (id int REFERENCES master ON DELETE CASCADE);
CREATE TABLE heir () INHERITS (detail);
ALTER TABLE heir OWNER TO regress_ttl_owner;
INSERT INTO master VALUES (1, '2001-01-01') ON CONFLICT DO NOTHING;
INSERT INTO detail VALUES (1);
CALL ttl_index.run_pass();
SELECT count(*) FROM detail;
DROP TABLE heir;
-- with the rights of the owner of the expiring table all of it may run
TRUNCATE log, detail, master;
ALTER TABLE master OWNER TO regress_ttl_stranger;
GRANT regress_ttl_stranger TO regress_ttl_owner;
ALTER TABLE detail OWNER TO regress_ttl_owner;
SET ROLE regress_ttl_owner;
CREATE TRIGGER b BEFORE DELETE ON detail FOR EACH ROW EXECUTE FUNCTION hostile_trigger();
RESET ROLE;
INSERT INTO master VALUES (1, '2001-01-01');
INSERT INTO detail VALUES (1);
CALL ttl_index.run_pass();
SELECT DISTINCT who, (SELECT count(*) FROM detail) AS detail FROM log;
REVOKE regress_ttl_stranger FROM regress_ttl_owner;
ALTER TABLE master OWNER TO regress_ttl_owner;
ALTER TABLE detail OWNER TO CURRENT_USER;
DROP TRIGGER b ON detail;
CREATE FUNCTION harmless_trigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$;
CREATE TRIGGER a AFTER DELETE ON detail FOR EACH ROW EXECUTE FUNCTION harmless_trigger();
INSERT INTO master VALUES (1, '2001-01-01');
INSERT INTO detail VALUES (1);
CALL ttl_index.run_pass();
SELECT count(*) FROM detail;
SET client_min_messages = warning;

-- no function of ours is SECURITY DEFINER
SELECT count(*) FROM pg_proc WHERE pronamespace = 'ttl_index'::regnamespace AND prosecdef;
-- ALTER DEFAULT PRIVILEGES does not take the option away from users
SET search_path = public;
DROP SCHEMA sec CASCADE;
DROP OWNED BY regress_ttl_owner, regress_ttl_member, regress_ttl_stranger, regress_ttl_monitor;
SELECT ttl_index.remove_all_ttl();
DROP EXTENSION ttl_index;
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES REVOKE USAGE ON SCHEMAS FROM PUBLIC;
CREATE EXTENSION ttl_index;
CALL ttl_index.run_pass();
ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO PUBLIC;
CREATE TABLE open (ts timestamptz);
GRANT SELECT ON open TO regress_ttl_stranger;
SELECT ttl_index.create_index('open', 'ts', 0);
GRANT USAGE ON SCHEMA public TO PUBLIC;
SET ROLE regress_ttl_stranger;
SELECT count(*) FROM open WHERE ts < '2001-01-01';
SELECT ttl_index.expire_after_seconds(1), ttl_index.time_zone('UTC');
RESET ROLE;
DROP TABLE open;
DROP ROLE regress_ttl_owner, regress_ttl_member, regress_ttl_stranger, regress_ttl_monitor;
