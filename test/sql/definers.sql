-- What code of another role does in the midst of an owner's, as a SECURITY DEFINER function does, is
-- not there for what follows: neither what it has had core keep, nor what PL/pgSQL has compiled for it.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE ROLE regress_ttl_definer;
CREATE SCHEMA definers;
GRANT ALL ON SCHEMA definers TO PUBLIC;
CREATE SCHEMA trap AUTHORIZATION regress_ttl_definer;
SET ROLE regress_ttl_definer;
CREATE FUNCTION trap.springs() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF current_user <> 'regress_ttl_definer' THEN
		RAISE 'the trap is called as %', current_user;
	END IF;
END $$;
CREATE FUNCTION trap.abs(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM trap.springs(); RETURN $1; END $$;
CREATE FUNCTION trap.is_date(pg_catalog.date) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN PERFORM trap.springs(); RETURN true; END $$;
CREATE DOMAIN trap.date AS pg_catalog.date CHECK (trap.is_date(VALUE));
RESET ROLE;
CREATE FUNCTION definers.is_positive(int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT abs($1) > 0';
CREATE DOMAIN definers.positive AS int CHECK (definers.is_positive(VALUE));
CREATE FUNCTION definers.uses_date(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
$$ DECLARE day date := '2001-01-01'; BEGIN RETURN $1; END $$;

-- an archive, row by row, behind a trigger
SET ROLE regress_ttl_definer;
CREATE FUNCTION definers.reads_check() RETURNS int LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = trap, pg_catalog AS
$$ DECLARE n int; BEGIN EXECUTE 'SELECT 7::definers.positive' INTO n; RETURN n; END $$;
CREATE FUNCTION definers.compiles() RETURNS int LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = trap, pg_catalog AS
$$ BEGIN RETURN definers.uses_date(7); END $$;
RESET ROLE;
CREATE FUNCTION definers.calls_both() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM definers.reads_check(), definers.compiles(); RETURN OLD; END $$;
CREATE TABLE definers.log (id int, at timestamptz);
CREATE TABLE definers.log_archive (id int, at timestamptz, seven int DEFAULT 7::definers.positive,
	eight int DEFAULT definers.uses_date(8));
CREATE TRIGGER calls_both BEFORE DELETE ON definers.log FOR EACH ROW EXECUTE FUNCTION definers.calls_both();
CREATE INDEX log_ttl ON definers.log (at) WHERE ttl_index.expire_after_seconds(0)
	AND ttl_index.archive_to('definers.log_archive'::regclass);
INSERT INTO definers.log VALUES (1, '2001-01-01');
CALL ttl_index.run_pass();
SELECT last_error FROM ttl_index.index_stats WHERE indexrelname = 'log_ttl';
SELECT id, seven, eight FROM definers.log_archive;

-- an archive of partitions, whose columns have defaults
CREATE TABLE definers.parts (id int, at timestamptz) PARTITION BY RANGE (at);
CREATE TABLE definers.parts_2001 PARTITION OF definers.parts FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
CREATE TABLE definers.parts_archive (id int, at timestamptz, six int DEFAULT definers.reads_check(), seven int DEFAULT 7::definers.positive)
	PARTITION BY RANGE (at);
INSERT INTO definers.parts VALUES (1, '2001-01-01');
CREATE INDEX parts_ttl ON definers.parts (at) WHERE ttl_index.expire_after_seconds(0)
	AND ttl_index.drop_expired_partitions() AND ttl_index.archive_to('definers.parts_archive'::regclass);
CALL ttl_index.run_pass();
SELECT last_error FROM ttl_index.index_stats WHERE indexrelname = 'parts_ttl';
SELECT tableoid::regclass, six, seven FROM definers.parts_archive;

-- one that looks at a table of its role makes functions be compiled anew, and then calls them first: in a batch
SET ROLE regress_ttl_definer;
CREATE TABLE definers.own (id int, at timestamptz);
INSERT INTO definers.own VALUES (1, '2001-01-01');
CREATE FUNCTION definers.same(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN $1; END $$;
CREATE INDEX own_ttl ON definers.own (at) WHERE definers.same(id) = id AND ttl_index.expire_after_seconds(0) AND ttl_index.paused();
CREATE FUNCTION definers.looks_and_calls() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM FROM ttl_index.preview('definers.own_ttl');
	PERFORM definers.uses_date(7);
END $$;
CREATE FUNCTION definers.looks(int) RETURNS int LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER SET search_path = trap, pg_catalog AS
$$ BEGIN PERFORM definers.looks_and_calls(); RETURN $1; END $$;
RESET ROLE;
CREATE TABLE definers.filtered (id int, at timestamptz);
CREATE INDEX filtered_ttl ON definers.filtered (at) WHERE definers.uses_date(id) = id AND definers.looks(id) = id
	AND ttl_index.expire_after_seconds(0);
INSERT INTO definers.filtered SELECT id, '2001-01-01' FROM generate_series(1, 3) AS id;
CALL ttl_index.run_pass();
SELECT last_error FROM ttl_index.index_stats WHERE indexrelname = 'filtered_ttl';
SELECT * FROM definers.filtered;
-- also where it leaves a search_path
SET ROLE regress_ttl_definer;
CREATE FUNCTION definers.leaves(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN $1; END $$;
RESET ROLE;
CREATE TABLE definers.left (id int, at timestamptz);
CREATE INDEX left_ttl ON definers.left (at) WHERE definers.uses_date(id) = id AND definers.leaves(id) = id
	AND ttl_index.expire_after_seconds(0);
INSERT INTO definers.left SELECT id, '2001-01-01' FROM generate_series(1, 3) AS id;
SET ROLE regress_ttl_definer;
CREATE FUNCTION definers.sets() RETURNS void LANGUAGE plpgsql AS
$$ BEGIN PERFORM definers.looks(1), set_config('search_path', 'trap, pg_catalog', true); END $$;
CREATE OR REPLACE FUNCTION definers.leaves(int) RETURNS int LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER AS
$$ BEGIN PERFORM definers.sets(); RETURN $1; END $$;
RESET ROLE;
CALL ttl_index.run_pass();
SELECT last_error FROM ttl_index.index_stats WHERE indexrelname = 'left_ttl';
SELECT * FROM definers.left;
-- in a session
SELECT definers.uses_date(1);
SELECT definers.looks(1);
SELECT definers.uses_date(1);
-- where a query goes on
SELECT definers.uses_date(id), definers.looks(id) FROM generate_series(1, 2) AS id;
-- also where code of a third role runs in between
CREATE FUNCTION definers.does_nothing() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN END $$;
ALTER FUNCTION definers.does_nothing OWNER TO pg_monitor;
SET ROLE regress_ttl_definer;
CREATE FUNCTION definers.looks_and_calls_more() RETURNS int LANGUAGE plpgsql SECURITY DEFINER SET search_path = trap, pg_catalog AS $$
BEGIN
	PERFORM FROM ttl_index.preview('definers.own_ttl');
	PERFORM definers.does_nothing();
	RETURN definers.uses_date(7);
END $$;
RESET ROLE;
SELECT definers.uses_date(id), definers.looks_and_calls_more() FROM generate_series(1, 2) AS id;
-- also where another function of that role is called for it
SET ROLE regress_ttl_definer;
CREATE FUNCTION definers.only_looks() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS
$$ BEGIN RETURN (SELECT count(*) FROM ttl_index.preview('definers.own_ttl')); END $$;
RESET ROLE;
SELECT definers.uses_date(id), definers.only_looks(), definers.compiles() FROM generate_series(1, 2) AS id;
-- also behind an error that it catches, in the extension or after it
SET ROLE regress_ttl_definer;
CREATE TABLE definers.unreadable (at timestamptz, n int);
INSERT INTO definers.unreadable VALUES ('2001-01-01', 0);
CREATE FUNCTION definers.divides(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN 1; END $$;
CREATE INDEX unreadable_ttl ON definers.unreadable (at) WHERE definers.divides(n) = 1 AND ttl_index.expire_after_seconds(0)
	AND ttl_index.paused();
CREATE OR REPLACE FUNCTION definers.divides(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN 1 / $1; END $$;
CREATE OR REPLACE FUNCTION definers.sets() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	BEGIN
		PERFORM FROM ttl_index.preview('definers.unreadable_ttl');
	EXCEPTION WHEN division_by_zero THEN
	END;
	BEGIN
		PERFORM FROM ttl_index.preview('definers.own_ttl');
		RAISE 'caught';
	EXCEPTION WHEN raise_exception THEN
	END;
	PERFORM definers.compiles();
END $$;
-- rows can come only while the function of the filter is harmless
\set insert_left 'CREATE OR REPLACE FUNCTION definers.leaves(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN $1; END $$; RESET ROLE; INSERT INTO definers.left SELECT id, ''2001-01-01'' FROM generate_series(1, 3) AS id; SET ROLE regress_ttl_definer; CREATE OR REPLACE FUNCTION definers.leaves(int) RETURNS int LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER AS $$ BEGIN PERFORM definers.sets(); RETURN $1; END $$; RESET ROLE;'
:insert_left
CALL ttl_index.run_pass();
SELECT last_error FROM ttl_index.index_stats WHERE indexrelname = 'left_ttl';
SELECT * FROM definers.left;
-- also where the extension runs a command for such a function, which is no part of the batch
SET ROLE regress_ttl_definer;
CREATE TABLE definers.dropped (at timestamptz);
CREATE INDEX dropped_ttl ON definers.dropped (at) WHERE ttl_index.expire_after_seconds(0);
CREATE OR REPLACE FUNCTION definers.sets() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT FROM pg_class WHERE relname = 'dropped_ttl') THEN
		PERFORM ttl_index.drop_index('definers.dropped', 'at');
	END IF;
	PERFORM definers.compiles();
END $$;
:insert_left
CALL ttl_index.run_pass();
SELECT last_error FROM ttl_index.index_stats WHERE indexrelname = 'left_ttl';
SELECT * FROM definers.left;
SELECT count(*) FROM pg_class WHERE relname = 'dropped_ttl';
-- but what goes on keeps the settings of its own
CREATE TABLE definers.noted (id int);
CREATE FUNCTION definers.notes() RETURNS trigger LANGUAGE plpgsql SET search_path = definers, pg_temp AS
$$ BEGIN PERFORM looks(1); INSERT INTO noted VALUES (OLD.id); RETURN OLD; END $$;
CREATE TRIGGER notes BEFORE DELETE ON definers.filtered FOR EACH ROW EXECUTE FUNCTION definers.notes();
INSERT INTO definers.filtered VALUES (1, '2001-01-01');
CALL ttl_index.run_pass();
SELECT last_error FROM ttl_index.index_stats WHERE indexrelname = 'filtered_ttl';
SELECT * FROM definers.noted;
-- also behind an error
SET ROLE regress_ttl_definer;
CREATE FUNCTION definers.looks_and_fails() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = trap, pg_catalog AS
$$ BEGIN PERFORM definers.looks_and_calls(); RAISE 'fails'; END $$;
RESET ROLE;
CREATE FUNCTION definers.catches() RETURNS void LANGUAGE plpgsql AS
$$ BEGIN PERFORM definers.looks_and_fails(); EXCEPTION WHEN raise_exception THEN NULL; END $$;
SELECT definers.uses_date(id), definers.catches() FROM generate_series(1, 4) AS id;
-- and as a trigger to which a foreign key leads, whose user nobody calls
CREATE TABLE definers.master (id int PRIMARY KEY);
INSERT INTO definers.master VALUES (1);
GRANT SELECT, REFERENCES ON definers.master TO regress_ttl_definer;
SET ROLE regress_ttl_definer;
CREATE TABLE definers.detail (id int REFERENCES definers.master ON DELETE CASCADE);
INSERT INTO definers.detail VALUES (1);
CREATE FUNCTION definers.looks_as_well() RETURNS trigger LANGUAGE plpgsql SET search_path = trap, pg_catalog AS
$$ BEGIN PERFORM definers.looks_and_calls(); RETURN OLD; END $$;
CREATE TRIGGER looks BEFORE DELETE ON definers.detail FOR EACH ROW EXECUTE FUNCTION definers.looks_as_well();
RESET ROLE;
DELETE FROM definers.master;
SELECT definers.uses_date(1);
DROP SCHEMA definers, trap CASCADE;
DROP ROLE regress_ttl_definer;
