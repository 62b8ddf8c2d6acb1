-- What the code of one owner leaves in the process is not there for that of others.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE ROLE regress_ttl_first;
CREATE SCHEMA leftovers;
GRANT ALL ON SCHEMA leftovers TO PUBLIC;
CREATE TABLE leftovers.calls (by name DEFAULT current_user, of text);
GRANT ALL ON leftovers.calls TO PUBLIC;

-- PL/pgSQL looks up the types of variables when a function is called first
CREATE FUNCTION leftovers.helper(at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	day date := at::pg_catalog.date;
BEGIN
	INSERT INTO leftovers.calls (of)
	SELECT CASE pg_typeof(day)::pg_catalog.oid WHEN 'pg_catalog.date'::pg_catalog.regtype THEN 'date' ELSE 'domain' END;
END $$;
SET ROLE regress_ttl_first;
CREATE FUNCTION leftovers.trap(pg_catalog.date) RETURNS boolean LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO leftovers.calls (of) VALUES ('trap'); RETURN true; END $$;
CREATE DOMAIN leftovers.date AS pg_catalog.date CHECK (leftovers.trap(VALUE));
CREATE FUNCTION leftovers.calls_helper() RETURNS trigger LANGUAGE plpgsql SET search_path = leftovers, pg_catalog AS
$$ BEGIN PERFORM leftovers.helper(OLD.at); RETURN OLD; END $$;
CREATE TABLE leftovers.first (at timestamptz);
CREATE TRIGGER calls_helper BEFORE DELETE ON leftovers.first FOR EACH ROW EXECUTE FUNCTION leftovers.calls_helper();
CREATE INDEX first_ttl ON leftovers.first (at) WHERE ttl_index.expire_after_seconds(0);
RESET ROLE;
CREATE FUNCTION leftovers.calls_helper_as_well() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM leftovers.helper(OLD.at), ttl_index.due_count('leftovers.first_ttl'), leftovers.helper(OLD.at); RETURN OLD; END $$;
CREATE TABLE leftovers.second (at timestamptz);
CREATE TRIGGER calls_helper BEFORE DELETE ON leftovers.second FOR EACH ROW EXECUTE FUNCTION leftovers.calls_helper_as_well();
CREATE INDEX second_ttl ON leftovers.second (at) WHERE ttl_index.expire_after_seconds(0);
-- who creates a function has compiled it
\c -
SET client_min_messages = warning;
INSERT INTO leftovers.first VALUES ('2001-01-01');
INSERT INTO leftovers.second VALUES ('2001-01-01');
CALL ttl_index.run_pass();
SELECT by = current_user AS is_mine, of FROM leftovers.calls ORDER BY by <> 'regress_ttl_first', of;
TRUNCATE leftovers.calls;

-- nor for the session itself, also behind an error
INSERT INTO leftovers.first VALUES ('2001-01-01');
CALL ttl_index.run_pass();
SELECT leftovers.helper(now());
CREATE FUNCTION leftovers.fails() RETURNS trigger LANGUAGE plpgsql SET search_path = leftovers, pg_catalog AS
$$ BEGIN PERFORM leftovers.helper(OLD.at); RAISE 'no'; END $$;
CREATE TRIGGER fails AFTER DELETE ON leftovers.first FOR EACH ROW EXECUTE FUNCTION leftovers.fails();
INSERT INTO leftovers.first VALUES ('2001-01-01');
CALL ttl_index.run_pass();
SELECT leftovers.helper(now());
DROP TRIGGER fails ON leftovers.first;
SELECT DISTINCT of FROM leftovers.calls WHERE by = current_user;
TRUNCATE leftovers.calls;

-- nor does it compile a function without calling it
CREATE OR REPLACE FUNCTION leftovers.calls_helper() RETURNS trigger LANGUAGE plpgsql SET search_path = leftovers, pg_catalog AS
$$ BEGIN PERFORM pg_catalog.plpgsql_validator('leftovers.helper(timestamptz)'::pg_catalog.regprocedure); RETURN OLD; END $$;
INSERT INTO leftovers.second VALUES ('2001-01-01');
SET client_min_messages = error;
CALL ttl_index.run_pass();
SELECT relname, last_error FROM ttl_index.index_stats WHERE schemaname = 'leftovers' ORDER BY 1;
SELECT by = current_user AS is_mine, of FROM leftovers.calls;

-- a DO block is not kept, and what is called in a subtransaction is
CREATE OR REPLACE FUNCTION leftovers.calls_helper() RETURNS trigger LANGUAGE plpgsql SET search_path = leftovers, pg_catalog AS $$
BEGIN
	DO 'DECLARE day date; BEGIN PERFORM leftovers.helper(now()); END';
	BEGIN
		PERFORM leftovers.helper(NULL), 1 / 0;
	EXCEPTION
		WHEN division_by_zero THEN NULL;
	END;
	RETURN OLD;
END $$;
INSERT INTO leftovers.second VALUES ('2001-01-01');
CALL ttl_index.run_pass();
SELECT count(*) FROM leftovers.first;
SELECT DISTINCT of FROM leftovers.calls WHERE by = current_user;
TRUNCATE leftovers.calls;

-- and a session, which can have left anything, runs no code of owners whose rights it has not
SET ROLE regress_ttl_first;
CREATE TABLE leftovers.parted (at timestamptz) PARTITION BY RANGE (at);
CREATE TABLE leftovers.parted_own PARTITION OF leftovers.parted FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE INDEX parted_ttl ON leftovers.parted (at) WHERE ttl_index.expire_after_seconds(0);
RESET ROLE;
CREATE TABLE leftovers.parted_other PARTITION OF leftovers.parted FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
INSERT INTO leftovers.parted VALUES ('2000-01-01'), ('2001-01-01');
SET ROLE regress_ttl_first;
CALL ttl_index.run_pass();
SELECT tableoid::regclass, at FROM leftovers.parted;
SELECT ttl_index.coll_mod_index('leftovers.parted_ttl', 0, drop_expired_partitions => true);
CALL ttl_index.run_pass();
RESET ROLE;
SELECT relid FROM pg_partition_tree('leftovers.parted') WHERE isleaf;
CALL ttl_index.run_pass();
SELECT count(*) FROM pg_partition_tree('leftovers.parted') WHERE isleaf;
-- nor looks into a DEFAULT partition as its owner
SET ROLE regress_ttl_first;
CREATE TABLE leftovers.series (at timestamptz) PARTITION BY RANGE (at);
SELECT ttl_index.create_time_series('leftovers.series', 'at', granularity => 'hours', expire_after_seconds => 3600);
RESET ROLE;
ALTER TABLE leftovers.series_default OWNER TO CURRENT_USER;
DO $$ BEGIN EXECUTE (SELECT 'DROP TABLE ' || string_agg(oid::regclass::text, ', ') FROM pg_class WHERE relname ~ '^series_2' AND relkind = 'r'); END $$;
SET ROLE regress_ttl_first;
SET client_min_messages = error;
CALL ttl_index.run_pass();
RESET ROLE;
SELECT count(*) FROM pg_partition_tree('leftovers.series') WHERE isleaf;
SELECT last_error FROM ttl_index.index_stats WHERE relname = 'series';
CALL ttl_index.run_pass();
SELECT count(*) > 1 FROM pg_partition_tree('leftovers.series') WHERE isleaf;
DROP SCHEMA leftovers CASCADE;
DROP ROLE regress_ttl_first;
