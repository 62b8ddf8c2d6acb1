-- Code that a user wrote runs as the table's owner in a restricted operation with
-- a safe search path (doc/security.md); whose tables run_pass() visits: rule 24.
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
	FOREACH attempt IN ARRAY ARRAY['ALTER ROLE regress_ttl_owner SUPERUSER', 'RESET ROLE', 'RESET SESSION AUTHORIZATION',
		'SET ROLE NONE', 'SET SESSION AUTHORIZATION DEFAULT', 'CREATE ROLE regress_ttl_evil SUPERUSER',
		'CREATE TEMP TABLE trap (x int)', 'CREATE DOMAIN pg_temp.date AS pg_catalog.date',
		'CREATE TYPE pg_temp.text AS ENUM ()', 'CREATE FUNCTION pg_temp.trap() RETURNS int LANGUAGE sql AS ''SELECT 1''', 'CREATE OPERATOR pg_temp.+++ (FUNCTION = int4pl, LEFTARG = int, RIGHTARG = int)', 'CREATE COLLATION pg_temp.trap FROM "C"', 'CREATE TEXT SEARCH CONFIGURATION pg_temp.trap (COPY = simple)', 'CREATE TYPE pg_temp.name AS (x int)', 'CREATE STATISTICS pg_temp.trap ON id, ts FROM sec.victim', 'CREATE TYPE pg_temp.timestamptz AS RANGE (SUBTYPE = int4)', 'LISTEN trap', 'DELETE FROM ttl_index.counters', 'SELECT ttl_index.stats_reset()'] LOOP
		BEGIN
			EXECUTE attempt;
			did := did || attempt || '; ';
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

-- a trigger that is deferred after all would run at commit, as somebody else: it is not
SET ROLE regress_ttl_owner;
CREATE TABLE deferring (id int, ts timestamptz);
CREATE FUNCTION defer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	SET CONSTRAINTS ALL DEFERRED;
	RETURN OLD;
END $$;
CREATE TRIGGER b BEFORE DELETE ON deferring FOR EACH ROW EXECUTE FUNCTION defer();
CREATE CONSTRAINT TRIGGER d AFTER DELETE ON deferring DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hostile_trigger();
CREATE INDEX deferring_ttl ON deferring (ts) WHERE ttl_index.expire_after_seconds(0);
INSERT INTO deferring VALUES (1, '2001-01-01');
RESET ROLE;
TRUNCATE log;
\set VERBOSITY terse
CALL ttl_index.run_pass();
\set VERBOSITY default
SELECT count(*) FROM deferring;
SELECT * FROM log;
DROP TABLE deferring;

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

-- what is behind a foreign key runs as the owner of its table, who must have the privileges of the one whose rows go
CREATE TABLE master (id int PRIMARY KEY, ts timestamptz);
GRANT REFERENCES ON master TO regress_ttl_owner;
SELECT ttl_index.create_index('master', 'ts', 0);
INSERT INTO master VALUES (1, '2001-01-01');
SET ROLE regress_ttl_owner;
CREATE TABLE detail (id int REFERENCES master ON DELETE CASCADE);
CREATE TRIGGER a AFTER DELETE ON detail FOR EACH ROW EXECUTE FUNCTION hostile_trigger();
INSERT INTO detail VALUES (1);
RESET ROLE;
TRUNCATE log;
SET client_min_messages = error;
CALL ttl_index.run_pass();
SELECT DISTINCT who FROM log WHERE who <> 'regress_ttl_owner';
SELECT last_error, (SELECT count(*) FROM detail) FROM ttl_index.index_stats WHERE relname = 'master';
-- a rule leads to a table whose trigger is fired at the end as well
SET ROLE regress_ttl_owner;
DROP TRIGGER a ON detail;
CREATE TABLE behind (id int);
CREATE TRIGGER a AFTER INSERT ON behind FOR EACH ROW EXECUTE FUNCTION hostile_trigger();
CREATE RULE r AS ON DELETE TO detail DO ALSO INSERT INTO sec.behind VALUES (OLD.id);
RESET ROLE;
CALL ttl_index.run_pass();
SELECT DISTINCT who FROM log WHERE who <> 'regress_ttl_owner';
-- so is one behind an update of what the foreign key has set to NULL, and one behind a table that a rule or a trigger changes
DROP TABLE detail;
CREATE TABLE nullable (id int UNIQUE REFERENCES master ON DELETE SET NULL);
CREATE TABLE by_rule (id int PRIMARY KEY);
CREATE TABLE by_trigger (id int PRIMARY KEY);
GRANT REFERENCES ON nullable, by_rule, by_trigger TO regress_ttl_owner;
SET ROLE regress_ttl_owner;
CREATE TABLE behind_update (id int REFERENCES nullable (id) ON UPDATE CASCADE);
CREATE TRIGGER a AFTER UPDATE ON behind_update EXECUTE FUNCTION hostile_trigger();
CREATE TABLE behind_rule (id int REFERENCES by_rule ON DELETE CASCADE);
CREATE TRIGGER a AFTER DELETE ON behind_rule FOR EACH ROW EXECUTE FUNCTION hostile_trigger();
CREATE TABLE behind_trigger (id int REFERENCES by_trigger ON DELETE SET NULL);
CREATE TRIGGER a AFTER UPDATE ON behind_trigger FOR EACH ROW EXECUTE FUNCTION hostile_trigger();
RESET ROLE;
INSERT INTO master VALUES (1, '2001-01-01') ON CONFLICT DO NOTHING;
INSERT INTO nullable VALUES (1);
INSERT INTO by_rule VALUES (1);
INSERT INTO by_trigger VALUES (1);
INSERT INTO behind_update VALUES (1);
INSERT INTO behind_rule VALUES (1);
INSERT INTO behind_trigger VALUES (1);
CALL ttl_index.run_pass();
DROP TABLE behind_update, nullable;
INSERT INTO master VALUES (1, '2001-01-01') ON CONFLICT DO NOTHING;
CREATE RULE r AS ON DELETE TO master DO ALSO DELETE FROM sec.by_rule WHERE id = OLD.id;
CALL ttl_index.run_pass();
DROP RULE r ON master;
INSERT INTO master VALUES (1, '2001-01-01') ON CONFLICT DO NOTHING;
CREATE FUNCTION clean_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM sec.by_trigger; RETURN OLD; END $$;
CREATE TRIGGER clean_up AFTER DELETE ON master FOR EACH ROW EXECUTE FUNCTION clean_up();
CALL ttl_index.run_pass();
DROP TRIGGER clean_up ON master;
SELECT DISTINCT who FROM log WHERE who <> 'regress_ttl_owner';
SELECT errors, last_error FROM ttl_index.index_stats WHERE relname = 'master';
-- what is only read may be anybody's, but no code is called to plan that
TRUNCATE log, master, behind_rule, behind_trigger CASCADE;
SET ROLE regress_ttl_owner;
CREATE FUNCTION hostile_read() RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF EXISTS (SELECT FROM sec.armed) THEN PERFORM sec.attack('foreign key'); END IF;
	RETURN true;
END $$;
CREATE TABLE reader (id int REFERENCES master);
CREATE INDEX reader_id ON reader (id) WHERE hostile_read();
CREATE FUNCTION hostile_sql() RETURNS bool LANGUAGE sql IMMUTABLE AS $$ SELECT count(set_config('search_path', 'sec', false)) = 1 $$;
CREATE FUNCTION harmless_sql(int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1 > 0';
RESET ROLE;
INSERT INTO master SELECT g, '2001-01-01' FROM generate_series(1, 3) AS g;
SELECT ttl_index.stats_reset();
CREATE VIEW read AS SELECT * FROM log WHERE place LIKE '%foreign key%';
INSERT INTO armed VALUES (true);
ALTER TABLE master OWNER TO regress_ttl_monitor;
\set VERBOSITY default
SET client_min_messages = warning;
CALL ttl_index.run_pass();
\set VERBOSITY terse
SET client_min_messages = error;
ALTER TABLE master OWNER TO CURRENT_USER;
SELECT count(*), (SELECT count(*) FROM master) FROM read;
-- a function in SQL that is not inlined is called as well, but a trigger can catch that
DROP INDEX reader_id;
CREATE INDEX reader_id ON reader (id) WHERE hostile_sql();
CREATE TABLE first (id int, ts timestamptz);
CREATE FUNCTION delete_master() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM sec.master WHERE id = 1;
	RETURN OLD;
EXCEPTION WHEN insufficient_privilege THEN
	INSERT INTO sec.log (place, path) VALUES (SQLERRM, current_setting('search_path'));
	RETURN OLD;
END $$;
CREATE TRIGGER a BEFORE DELETE ON first FOR EACH ROW EXECUTE FUNCTION delete_master();
SELECT ttl_index.create_index('first', 'ts', 0);
INSERT INTO first VALUES (1, '2001-01-01');
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT relname, last_error, deleted_documents FROM ttl_index.index_stats WHERE relname IN ('master', 'first') ORDER BY 1;
SELECT place, path FROM read;
DROP TABLE first;
-- nor is anything read where functions of users are computed for rows, or inlined; those of PostgreSQL are as ever
DELETE FROM read;
DROP INDEX reader_id;
CREATE INDEX ON reader (hostile_filter(id)) WHERE harmless_sql(id);
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT last_error, (SELECT count(*) FROM master), (SELECT count(*) FROM read) FROM ttl_index.index_stats WHERE relname = 'master';
DROP INDEX reader_hostile_filter_idx;
CREATE TABLE partitioned_reader (id int REFERENCES master) PARTITION BY LIST (harmless_sql(id));
ALTER TABLE partitioned_reader OWNER TO regress_ttl_owner;
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT last_error, (SELECT count(*) FROM master) FROM ttl_index.index_stats WHERE relname = 'master';
DROP TABLE partitioned_reader;
CREATE INDEX ON reader (abs(id)) WHERE id IS NOT NULL OR id > 0;
ALTER TABLE reader ADD seen timestamptz CHECK (seen >= date '2000-01-01' AND date_part('year', seen) > 1),
	ADD CONSTRAINT opens CHECK (pg_get_partition_constraintdef(id) IS NULL);
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT last_error, (SELECT count(*) FROM master) FROM ttl_index.index_stats WHERE relname = 'master';
ALTER TABLE reader DROP CONSTRAINT opens;
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT last_error, (SELECT count(*) FROM master) FROM ttl_index.index_stats WHERE relname = 'master';
-- a cast of the key is called for rows, and the rows that are looked at need not be locked for a foreign key
INSERT INTO master SELECT g, '2001-01-01' FROM generate_series(1, 3) AS g;
SET ROLE regress_ttl_owner;
CREATE TYPE number AS ENUM ('1', '2');
CREATE FUNCTION as_integer(number) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('search_path', 'sec', false); RETURN 7; END $$;
CREATE CAST (number AS int) WITH FUNCTION as_integer(number) AS IMPLICIT;
CREATE TABLE cast_reader (id number REFERENCES master);
CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
	PERFORM FROM sec.cast_reader WHERE sec.hostile_read() FOR KEY SHARE;
	RETURN OLD;
END $$;
CREATE TABLE looked (id int, ts timestamptz);
CREATE TRIGGER a BEFORE DELETE ON looked FOR EACH ROW EXECUTE FUNCTION look();
RESET ROLE;
ALTER TABLE looked OWNER TO regress_ttl_member;
SELECT ttl_index.create_index('looked', 'ts', 0);
INSERT INTO looked VALUES (1, '2001-01-01');
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT relname, last_error, deleted_documents FROM ttl_index.index_stats WHERE relname IN ('master', 'looked') ORDER BY 1;
DROP TABLE cast_reader, looked;
-- likewise what a table references that rows are moved to
SET ROLE regress_ttl_owner;
CREATE TABLE read_by_archive (id int PRIMARY KEY);
INSERT INTO read_by_archive VALUES (1);
CREATE INDEX read_by_archive_filter ON read_by_archive (id) WHERE hostile_read();
RESET ROLE;
CREATE TABLE archive (id int REFERENCES read_by_archive, ts timestamptz);
CREATE TABLE archived (id int, ts timestamptz);
SELECT ttl_index.create_index('archived', 'ts', 0, archive_to => 'archive');
INSERT INTO archived VALUES (1, '2001-01-01');
DELETE FROM read;
CALL ttl_index.run_pass();
-- from 19 on nothing is planned to find out whether what a row references is there
SELECT CASE WHEN current_setting('server_version_num')::int < 190000
	THEN last_error = 'a foreign key reads table "read_by_archive" of another owner, whose definition may call functions of users'
	ELSE last_error IS NULL END AS said, (SELECT count(*) FROM read)
FROM ttl_index.index_stats WHERE relname = 'archived';
-- one's own may be called
ALTER TABLE archived OWNER TO regress_ttl_owner;
ALTER TABLE archive OWNER TO regress_ttl_owner;
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT count(*), (SELECT count(*) FROM read WHERE who <> 'regress_ttl_owner') FROM archive;
TRUNCATE armed;
DROP VIEW read;
DROP TABLE reader, archived, archive, read_by_archive;
-- what core keeps of a relation that the batch has open is not computed by a function of another role that a trigger calls
CREATE SCHEMA regress_ttl_path AUTHORIZATION regress_ttl_owner;
CREATE FUNCTION inlined_lower(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT lower($1)';
CREATE TABLE lowered (name text, ts timestamptz) PARTITION BY LIST (inlined_lower(name));
CREATE TABLE lowered_rest PARTITION OF lowered DEFAULT;
CREATE TABLE named (name text, ts timestamptz);
SELECT ttl_index.create_index('named', 'ts', 0, partial_filter_expression => 'sec.inlined_lower(name) = ''a''', archive_to => 'lowered');
SET ROLE regress_ttl_owner;
CREATE FUNCTION regress_ttl_path.lower(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM sec.attack('lower'); RETURN pg_catalog.lower($1); END $$;
CREATE FUNCTION plan_by_path() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = regress_ttl_path, pg_catalog AS $$
DECLARE
	name text;
BEGIN
	FOREACH name IN ARRAY ARRAY['named', 'lowered'] LOOP
		BEGIN
			EXECUTE format('EXPLAIN SELECT FROM sec.%I', name);
		EXCEPTION WHEN insufficient_privilege THEN
		END;
	END LOOP;
END $$;
RESET ROLE;
CREATE FUNCTION write_name() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM sec.plan_by_path();
	INSERT INTO sec.named VALUES ('B', NULL);
	RETURN OLD;
END $$;
CREATE TRIGGER a BEFORE DELETE ON named FOR EACH ROW EXECUTE FUNCTION write_name();
INSERT INTO named VALUES ('A', '2001-01-01');
-- nor does it matter what a trigger has set where a foreign key reads a table of one with more privileges
SET ROLE regress_ttl_owner;
CREATE FUNCTION hostile_above(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF EXISTS (SELECT FROM sec.armed) THEN PERFORM sec.attack('partition key'); END IF;
	RETURN $1;
END $$;
CREATE TABLE above (id int, k int) PARTITION BY LIST ((k % hostile_above(10)));
CREATE TABLE excluding (id int PRIMARY KEY, ts timestamptz);
CREATE FUNCTION set_exclusion() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('constraint_exclusion', 'on', false); RETURN OLD; END $$;
CREATE TRIGGER a BEFORE DELETE ON excluding FOR EACH ROW EXECUTE FUNCTION set_exclusion();
SELECT ttl_index.create_index('excluding', 'ts', 0);
RESET ROLE;
CREATE TABLE below PARTITION OF above FOR VALUES IN (1);
ALTER TABLE below ADD FOREIGN KEY (id) REFERENCES excluding;
INSERT INTO excluding VALUES (1, '2001-01-01');
INSERT INTO armed VALUES (true);
TRUNCATE log;
-- with nothing cached, and functions in SQL inlined, as the tests do not where they watch whose functions run
\c -
SET rights.watch = off;
SET search_path = sec;
SET client_min_messages = error;
CALL ttl_index.run_pass();
SELECT DISTINCT place, who FROM log WHERE who <> 'regress_ttl_owner';
TRUNCATE armed;
SELECT name, (SELECT name FROM lowered), (SELECT count(*) FROM excluding) FROM named;
DROP TABLE named, lowered, above, excluding;
DROP SCHEMA regress_ttl_path CASCADE;
-- a table that inherits from a referencing one is not touched, so it may be anybody's
CREATE TABLE detail (id int REFERENCES master ON DELETE CASCADE);
CREATE TABLE heir () INHERITS (detail);
ALTER TABLE heir OWNER TO regress_ttl_owner;
INSERT INTO master VALUES (1, '2001-01-01') ON CONFLICT DO NOTHING;
INSERT INTO detail VALUES (1);
CALL ttl_index.run_pass();
SELECT count(*) FROM detail;
DROP TABLE heir;
-- what a foreign key reads or changes it does as the owner of the whole table, so nobody else may own a partition of it
CREATE TABLE whole (id int PRIMARY KEY) PARTITION BY LIST (id);
CREATE TABLE part PARTITION OF whole DEFAULT;
ALTER TABLE part OWNER TO regress_ttl_owner;
SET ROLE regress_ttl_owner;
CREATE INDEX ON part (id) WHERE hostile_constant();
RESET ROLE;
INSERT INTO whole VALUES (1);
CREATE TABLE moves (id int, ts timestamptz);
CREATE TABLE moved (id int, ts timestamptz);
SELECT ttl_index.create_index('moves', 'ts', 0, archive_to => 'moved');
INSERT INTO moves VALUES (1, '2001-01-01');
INSERT INTO master VALUES (1, '2001-01-01') ON CONFLICT DO NOTHING;
TRUNCATE detail, log;
CREATE VIEW refused AS SELECT relname, last_error FROM ttl_index.index_stats WHERE relname IN ('master', 'moves') ORDER BY relname;
-- it is read
ALTER TABLE whole ADD CONSTRAINT one FOREIGN KEY (id) REFERENCES master;
SELECT ttl_index.stats_reset();
INSERT INTO armed VALUES (true);
CALL ttl_index.run_pass();
SELECT DISTINCT who FROM log WHERE who <> 'regress_ttl_owner';
TABLE refused;
TRUNCATE armed;
-- it is referenced by what is written, as rows move or other rows go
ALTER TABLE whole DROP CONSTRAINT one;
INSERT INTO whole VALUES (0);
ALTER TABLE moved ADD CONSTRAINT one FOREIGN KEY (id) REFERENCES whole;
CREATE TABLE written (id int DEFAULT 0 REFERENCES master ON DELETE SET DEFAULT REFERENCES whole);
INSERT INTO master VALUES (0, '2999-01-01'), (1, '2001-01-01') ON CONFLICT DO NOTHING;
INSERT INTO moves VALUES (1, '2001-01-01');
INSERT INTO written VALUES (1);
TRUNCATE moved;
SELECT ttl_index.stats_reset();
INSERT INTO armed VALUES (true);
CALL ttl_index.run_pass();
SELECT DISTINCT who FROM log WHERE who <> 'regress_ttl_owner';
TABLE refused;
TRUNCATE armed;
-- an update to NULL writes further columns
DROP TABLE written;
CREATE TABLE nulled (id int REFERENCES master ON DELETE SET NULL, other int GENERATED ALWAYS AS (coalesce(id, 0)) STORED REFERENCES whole);
INSERT INTO nulled VALUES (1);
SELECT ttl_index.stats_reset();
INSERT INTO armed VALUES (true);
CALL ttl_index.run_pass();
SELECT DISTINCT who FROM log WHERE who <> 'regress_ttl_owner';
TABLE refused;
TRUNCATE armed;
DROP TABLE nulled;
-- the partition keys above it are computed as well, in an UPDATE, and where it is partitioned itself
SET ROLE regress_ttl_owner;
CREATE FUNCTION hostile_zero() RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF EXISTS (SELECT FROM sec.armed) THEN PERFORM sec.attack('partition key'); END IF;
	RETURN 0;
END $$;
CREATE TABLE above_all (id int, more int) PARTITION BY LIST ((more + hostile_zero()));
RESET ROLE;
CREATE TABLE below_leaf PARTITION OF above_all FOR VALUES IN (1);
CREATE TABLE below_parted PARTITION OF above_all FOR VALUES IN (2) PARTITION BY LIST (id);
CREATE TABLE below_parted_rest PARTITION OF below_parted DEFAULT;
INSERT INTO below_leaf VALUES (1, 1);
INSERT INTO master VALUES (1, '2001-01-01') ON CONFLICT DO NOTHING;
ALTER TABLE below_leaf ADD CONSTRAINT one FOREIGN KEY (id) REFERENCES master ON DELETE SET NULL;
SELECT ttl_index.stats_reset();
INSERT INTO armed VALUES (true);
CALL ttl_index.run_pass();
SELECT DISTINCT who FROM log WHERE who <> 'regress_ttl_owner';
TABLE refused;
TRUNCATE armed;
ALTER TABLE below_leaf DROP CONSTRAINT one;
ALTER TABLE below_parted ADD CONSTRAINT one FOREIGN KEY (id) REFERENCES master;
SELECT ttl_index.stats_reset();
INSERT INTO armed VALUES (true);
CALL ttl_index.run_pass();
SELECT DISTINCT who FROM log WHERE who <> 'regress_ttl_owner';
TABLE refused;
TRUNCATE armed;
DROP TABLE moves, moved, whole, above_all;
DELETE FROM master WHERE id = 0;
-- all of that also where a trigger leads there, to tables of the owner, or of a member of that role
SET ROLE regress_ttl_stranger;
CREATE SEQUENCE stranger_calls;
SELECT setval('stranger_calls', 1000);
CREATE FUNCTION stranger_counts() RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF EXISTS (SELECT FROM sec.armed) THEN PERFORM nextval('sec.stranger_calls'); END IF;
	RETURN 0;
END $$;
CREATE FUNCTION stranger_trigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM sec.stranger_counts(); RETURN OLD; END $$;
GRANT USAGE ON stranger_calls TO PUBLIC;
CREATE TABLE stranger_whole (id int, more int) PARTITION BY LIST ((more + stranger_counts()));
SET ROLE regress_ttl_owner;
CREATE TABLE leads (id int, ts timestamptz);
CREATE TABLE led (id int PRIMARY KEY);
CREATE FUNCTION lead_on() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM sec.led WHERE id = OLD.id; RETURN OLD; END $$;
CREATE TRIGGER a BEFORE DELETE ON leads FOR EACH ROW EXECUTE FUNCTION lead_on();
SELECT ttl_index.create_index('leads', 'ts', 0);
INSERT INTO led VALUES (1), (2), (3);
INSERT INTO leads VALUES (1, '2001-01-01');
RESET ROLE;
CREATE TABLE led_leaf PARTITION OF stranger_whole FOR VALUES IN (1);
ALTER TABLE led_leaf OWNER TO regress_ttl_member;
SET ROLE regress_ttl_member;
ALTER TABLE led_leaf ADD FOREIGN KEY (id) REFERENCES led ON DELETE SET NULL;
INSERT INTO led_leaf VALUES (1, 1);
CREATE TABLE led_whole (id int REFERENCES led ON DELETE CASCADE) PARTITION BY LIST (id);
CREATE TABLE led_part PARTITION OF led_whole DEFAULT;
INSERT INTO led_whole VALUES (1), (2);
RESET ROLE;
ALTER TABLE led_part OWNER TO regress_ttl_stranger;
CREATE TRIGGER a BEFORE DELETE ON led_part FOR EACH ROW EXECUTE FUNCTION stranger_trigger();
SET ROLE regress_ttl_owner;
CREATE TABLE read_whole (id int REFERENCES led) PARTITION BY LIST (id);
CREATE TABLE read_part PARTITION OF read_whole DEFAULT;
INSERT INTO read_whole VALUES (3);
RESET ROLE;
ALTER TABLE read_part OWNER TO regress_ttl_stranger;
SET ROLE regress_ttl_stranger;
CREATE INDEX ON read_part (id) WHERE stranger_counts() = 0;
RESET ROLE;
INSERT INTO armed VALUES (true);
CALL ttl_index.run_pass();
SELECT last_error FROM ttl_index.index_stats WHERE relname = 'leads';
DROP TABLE stranger_whole;
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT last_error FROM ttl_index.index_stats WHERE relname = 'leads';
DROP TABLE led_whole;
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT last_error FROM ttl_index.index_stats WHERE relname = 'leads';
SELECT last_value FROM stranger_calls;
-- who has the rights may own a partition
ALTER TABLE read_part OWNER TO regress_ttl_member;
CALL ttl_index.run_pass();
SELECT (SELECT count(*) FROM leads) AS leads, (SELECT count(*) FROM led) AS led;
TRUNCATE armed;
DROP TABLE leads, led, read_whole;
DROP FUNCTION lead_on(), stranger_trigger(), stranger_counts() CASCADE;
DROP SEQUENCE stranger_calls;

-- and where an event trigger leads there, as a partition goes
CREATE TABLE listed (name text PRIMARY KEY);
GRANT DELETE, SELECT ON listed TO regress_ttl_owner;
GRANT REFERENCES ON listed TO regress_ttl_stranger;
CREATE FUNCTION note_drop() RETURNS event_trigger LANGUAGE plpgsql AS
	$$ BEGIN DELETE FROM sec.listed WHERE name IN (SELECT object_name FROM pg_event_trigger_dropped_objects()); END $$;
SET ROLE regress_ttl_stranger;
CREATE TABLE noted (name text REFERENCES listed ON DELETE CASCADE);
CREATE FUNCTION strangers() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO sec.log (place, who) VALUES ('stranger', current_user); RETURN OLD; END $$;
CREATE TRIGGER a AFTER DELETE ON noted FOR EACH ROW EXECUTE FUNCTION strangers();
SET ROLE regress_ttl_owner;
CREATE TABLE series (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE series_2001 PARTITION OF series FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
SELECT ttl_index.create_index('series', 'ts', 0, drop_expired_partitions => true);
RESET ROLE;
INSERT INTO listed VALUES ('series_2001');
INSERT INTO noted VALUES ('series_2001');
TRUNCATE log;
CREATE EVENT TRIGGER note_drop ON sql_drop EXECUTE FUNCTION note_drop();
CALL ttl_index.run_pass();
DROP EVENT TRIGGER note_drop;
SELECT last_error, to_regclass('series_2001') FROM ttl_index.index_stats WHERE relname = 'series';
SELECT place, who FROM log;
DROP TABLE series, noted, listed;
DROP FUNCTION note_drop(), strangers();

-- what the extension plans in the midst of such code is not planned by the search_path that code of another role has set
CREATE SCHEMA strange_path AUTHORIZATION regress_ttl_stranger;
SET ROLE regress_ttl_stranger;
CREATE SEQUENCE strange_path.calls;
SELECT setval('strange_path.calls', 1000);
GRANT USAGE ON SCHEMA strange_path TO PUBLIC;
GRANT USAGE ON strange_path.calls TO PUBLIC;
CREATE FUNCTION strange_path.abs(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM nextval('strange_path.calls'); RETURN $1; END $$;
CREATE FUNCTION strange_path.aclexplode(aclitem[], OUT grantee oid, OUT privilege_type text, OUT is_grantable bool) RETURNS SETOF record LANGUAGE plpgsql AS
	$$ BEGIN PERFORM nextval('strange_path.calls'); RETURN; END $$;
CREATE FUNCTION strange_path.leave(int) RETURNS int LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER AS $$
BEGIN
	PERFORM set_config('search_path', 'strange_path, pg_catalog', true), set_config('extra_float_digits', '-10', true), set_config('array_nulls', 'off', true);
	RETURN $1;
END $$;
RESET ROLE;
CREATE TABLE series (id int, ts timestamptz) PARTITION BY RANGE (ts);
CREATE INDEX ON series (id) WHERE strange_path.leave(1) = 1;
SELECT ttl_index.create_time_series('series', 'ts', granularity => 'hours');
SELECT last_value FROM strange_path.calls;
CREATE FUNCTION harmless() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$;
CREATE FUNCTION absolute(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT abs($1)';
CREATE TABLE calls (id int, ts timestamptz);
CREATE TRIGGER a BEFORE DELETE ON calls FOR EACH ROW EXECUTE FUNCTION harmless();
CREATE FUNCTION absolute(timestamptz) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS 'SELECT CASE abs(1) WHEN 1 THEN $1 END';
CREATE INDEX ON calls (absolute(ts)) WHERE absolute(id) = id AND strange_path.leave(id) = id AND strange_path.leave(1) = 1 AND ttl_index.expire_after_seconds(0);
BEGIN;
SET LOCAL search_path = pg_catalog;
INSERT INTO sec.calls VALUES (1, '2001-01-01');
COMMIT;
-- core itself plans constant parts one behind the other
SELECT setval('strange_path.calls', 1000);
CALL ttl_index.run_pass();
SELECT (SELECT count(*) FROM calls) AS calls, last_value FROM strange_path.calls;
-- nor are filters that are compared one after the other, and the defaults of columns that an archive alone has
CREATE INDEX ON calls (ts) WHERE id = 1 AND absolute(1) = 1 AND ttl_index.expire_after_seconds(0);
CREATE INDEX ON calls (ts) WHERE id = 2 AND strange_path.leave(1) = 1 AND ttl_index.expire_after_seconds(0);
CREATE INDEX ON calls (ts) WHERE id = 3 AND absolute(1) = 1 AND ttl_index.expire_after_seconds(0);
CREATE TABLE hot (id int, ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE hot_2001 PARTITION OF hot FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
CREATE TABLE cold (id int, ts timestamptz, a int DEFAULT strange_path.leave(1), b int DEFAULT absolute(7),
	c float8 DEFAULT 1.2345678901234, d text[] DEFAULT ARRAY['a', NULL]) PARTITION BY RANGE (ts);
INSERT INTO hot VALUES (1, '2001-06-01');
SELECT ttl_index.create_index('hot', 'ts', 0, drop_expired_partitions => true, archive_to => 'cold');
SET extra_float_digits = 1;
CALL ttl_index.run_pass();
SELECT a, b, c, d, d[2] IS NULL AS is_null, tableoid::regclass, (SELECT last_value FROM strange_path.calls) FROM cold;
DROP TABLE calls, series, hot, cold;
DROP FUNCTION absolute(int), absolute(timestamptz);
DROP SCHEMA strange_path CASCADE;

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

-- what one owner's code lets PostgreSQL cache in the process is nothing to that of others:
-- here a key of an archive that is computed by the search_path of the stranger, for a query
-- that the stranger has not even the privilege for
CREATE FUNCTION plain(pg_catalog.text) RETURNS pg_catalog.text LANGUAGE sql IMMUTABLE AS 'SELECT lower($1)';
CREATE TABLE kept_rows (ts timestamptz);
CREATE UNIQUE INDEX ON kept_rows (nullif(plain('A'), 'a'));
CREATE SCHEMA strange AUTHORIZATION regress_ttl_stranger;
SET ROLE regress_ttl_stranger;
CREATE FUNCTION strange.lower(pg_catalog.text) RETURNS pg_catalog.text LANGUAGE sql IMMUTABLE AS $$ SELECT 'no null' $$;
CREATE FUNCTION strange.poison() RETURNS trigger LANGUAGE plpgsql SET search_path = strange, pg_catalog AS $$
BEGIN
	PERFORM FROM sec.kept_rows;
EXCEPTION WHEN insufficient_privilege THEN
	RETURN OLD;
END $$;
CREATE TABLE strange.rows (ts timestamptz);
SELECT ttl_index.create_index('strange.rows', 'ts', 60);
INSERT INTO strange.rows VALUES ('2001-01-01');
CREATE TRIGGER a BEFORE DELETE ON strange.rows FOR EACH ROW EXECUTE FUNCTION strange.poison();
RESET ROLE;
CREATE TABLE kept_source (LIKE kept_rows);
CREATE INDEX ON kept_source (ts) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.archive_to('kept_rows');
SET client_min_messages = error;
CALL ttl_index.run_pass();
INSERT INTO kept_source VALUES ('2001-01-01'), ('2001-01-01');
CALL ttl_index.run_pass();
SET client_min_messages = warning;
SELECT (SELECT count(*) FROM strange.rows) AS left, (SELECT count(*) FROM kept_rows) AS moved;
-- nor is a plan that was made without forced row security
SET ROLE regress_ttl_owner;
CREATE TABLE forced (yes bool);
INSERT INTO forced VALUES (true), (false);
ALTER TABLE forced ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY p ON forced USING (yes);
CREATE FUNCTION count_forced() RETURNS bigint LANGUAGE plpgsql SET search_path = sec, pg_catalog AS $$
BEGIN
	RETURN (SELECT count(*) FROM forced);
END $$;
CREATE FUNCTION calls_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO sec.log (place) VALUES ('trigger sees ' || sec.count_forced());
	RETURN OLD;
END $$;
CREATE TABLE calls (ts timestamptz);
SELECT ttl_index.create_index('calls', 'ts', 60);
INSERT INTO calls VALUES ('2001-01-01');
CREATE TRIGGER a BEFORE DELETE ON calls FOR EACH ROW EXECUTE FUNCTION calls_count();
SET client_min_messages = error;
CALL ttl_index.run_pass();
SET client_min_messages = warning;
SELECT place, count_forced() FROM log WHERE place LIKE 'trigger%';
RESET ROLE;
DROP SCHEMA strange CASCADE;
DROP TABLE kept_source, kept_rows, calls;

-- a table that VACUUM FULL makes anew, in such an operation, has types as well
CREATE TEMP TABLE kept (id int);
CREATE INDEX kept_id ON kept (id);
VACUUM FULL kept;
CLUSTER kept USING kept_id;
DROP TABLE kept;
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
