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

-- nor where code that it has called was that of the role that goes on
CREATE FUNCTION leftovers.status() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS
$$ SELECT ttl_index.due_count('leftovers.second_ttl') $$;
SET ROLE regress_ttl_first;
CREATE TYPE leftovers.mood AS ENUM ('good');
CREATE FUNCTION leftovers.mood_as_json(leftovers.mood) RETURNS json LANGUAGE plpgsql SET search_path = leftovers, pg_catalog AS
$$ BEGIN PERFORM leftovers.status(); PERFORM leftovers.helper(now()); RETURN '1'; END $$;
CREATE CAST (leftovers.mood AS json) WITH FUNCTION leftovers.mood_as_json(leftovers.mood);
ALTER TABLE leftovers.first ADD mood leftovers.mood;
RESET ROLE;
INSERT INTO leftovers.first VALUES ('2001-01-01', 'good');
SELECT count(*) FROM ttl_index.preview('leftovers.first_ttl');
SELECT leftovers.helper(now());
SELECT by = current_user AS is_mine, of FROM leftovers.calls ORDER BY 1, 2;
TRUNCATE leftovers.calls;

-- nor where it has caught an error before the one that ends it
CREATE OR REPLACE FUNCTION leftovers.mood_as_json(leftovers.mood) RETURNS json LANGUAGE plpgsql SET search_path = leftovers, pg_catalog AS $$
BEGIN
	BEGIN
		PERFORM 1 / 0;
	EXCEPTION
		WHEN division_by_zero THEN PERFORM leftovers.helper(now());
	END;
	RAISE 'no';
END $$;
SELECT count(*) FROM ttl_index.preview('leftovers.first_ttl');
SELECT leftovers.helper(now());
SELECT by = current_user AS is_mine, of FROM leftovers.calls ORDER BY 1, 2;

-- functions in SQL are inlined by the search_path of who plans a query of the table first
CREATE TABLE leftovers.noted (word text);
CREATE FUNCTION leftovers.fold_case(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT lower($1)';
CREATE INDEX ON leftovers.noted (leftovers.fold_case(word));
CREATE OR REPLACE FUNCTION leftovers.calls_helper_as_well() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO leftovers.noted VALUES ('A'); RETURN OLD; END $$;
SET ROLE regress_ttl_first;
CREATE FUNCTION leftovers.lower(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
$$ BEGIN RAISE 'the trap is called as %', current_user; END $$;
CREATE OR REPLACE FUNCTION leftovers.calls_helper() RETURNS trigger LANGUAGE plpgsql SET search_path = leftovers, pg_catalog AS $$
BEGIN
	PERFORM word FROM leftovers.noted;
EXCEPTION
	WHEN insufficient_privilege THEN RETURN OLD;
END $$;
RESET ROLE;
\c -
SET client_min_messages = warning;
INSERT INTO leftovers.first VALUES ('2001-01-01');
INSERT INTO leftovers.second VALUES ('2001-01-01');
CALL ttl_index.run_pass();
SELECT (SELECT count(*) FROM leftovers.first) AS first, (SELECT count(*) FROM leftovers.second) AS second, * FROM leftovers.noted;
INSERT INTO leftovers.noted VALUES ('B');
-- nor where an error has come while the table was open: as long as it is, core keeps what it has computed
CREATE TABLE leftovers.kept (word text) PARTITION BY LIST (leftovers.fold_case(word));
CREATE TABLE leftovers.kept_rest PARTITION OF leftovers.kept DEFAULT;
SET ROLE regress_ttl_first;
CREATE FUNCTION leftovers.fails_in_planning() RETURNS text LANGUAGE plpgsql STABLE AS $$ BEGIN RAISE 'no'; END $$;
CREATE FUNCTION leftovers.plans_kept() RETURNS trigger LANGUAGE plpgsql SET search_path = leftovers, pg_catalog AS $$
BEGIN
	PERFORM FROM leftovers.kept WHERE leftovers.fold_case(word) = leftovers.fails_in_planning();
	RETURN OLD;
END $$;
CREATE TABLE leftovers.last (at timestamptz, mood leftovers.mood);
CREATE TRIGGER plans_kept BEFORE DELETE ON leftovers.last FOR EACH ROW EXECUTE FUNCTION leftovers.plans_kept();
CREATE INDEX last_ttl ON leftovers.last (at) WHERE ttl_index.expire_after_seconds(0);
CREATE OR REPLACE FUNCTION leftovers.mood_as_json(leftovers.mood) RETURNS json LANGUAGE plpgsql SET search_path = leftovers, pg_catalog AS $$
BEGIN
	PERFORM FROM leftovers.kept WHERE leftovers.fold_case(word) = leftovers.fails_in_planning();
	RETURN '1';
END $$;
RESET ROLE;
\c -
SET client_min_messages = error;
INSERT INTO leftovers.last VALUES ('2001-01-01', 'good');
CALL ttl_index.run_pass();
SELECT count(*) FROM leftovers.last;
INSERT INTO leftovers.kept VALUES ('C');
SELECT count(*) FROM ttl_index.preview('leftovers.last_ttl');
INSERT INTO leftovers.kept VALUES ('D');
DO $$ BEGIN
	PERFORM ttl_index.preview('leftovers.last_ttl');
EXCEPTION
	WHEN raise_exception THEN NULL;
END $$;
INSERT INTO leftovers.kept VALUES ('E');
-- nor of an index that the query of the caller has open, and that was changed since that was planned
SET ROLE regress_ttl_first;
CREATE OR REPLACE FUNCTION leftovers.mood_as_json(leftovers.mood) RETURNS json LANGUAGE plpgsql SET search_path = leftovers, pg_catalog AS $$
BEGIN
	PERFORM FROM leftovers.noted WHERE leftovers.fold_case(word) = 'a';
	RETURN '1';
EXCEPTION
	WHEN insufficient_privilege THEN RETURN '2';
END $$;
RESET ROLE;
CREATE FUNCTION leftovers.loops(looks bool) RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
	word text;
BEGIN
	FOR word IN SELECT n.word FROM leftovers.noted AS n WHERE leftovers.fold_case(n.word) = 'a' LOOP
		IF looks THEN
			PERFORM FROM ttl_index.preview('leftovers.last_ttl');
		END IF;
	END LOOP;
END $$;
SELECT leftovers.loops(false);
ALTER INDEX leftovers.noted_fold_case_idx SET (fillfactor = 80);
SELECT leftovers.loops(true);
INSERT INTO leftovers.noted VALUES ('F');
-- nor what it has computed for a partition that is open, where the caller catches an error of it
CREATE TABLE leftovers.compared (word text) PARTITION BY LIST (leftovers.fold_case(word));
CREATE TABLE leftovers.compared_g PARTITION OF leftovers.compared FOR VALUES IN ('g');
SET ROLE regress_ttl_first;
CREATE OR REPLACE FUNCTION leftovers.mood_as_json(leftovers.mood) RETURNS json LANGUAGE plpgsql
	SET search_path = leftovers, pg_catalog SET constraint_exclusion = on AS $$
BEGIN
	BEGIN
		PERFORM FROM leftovers.compared_g WHERE word = 'g';
	EXCEPTION WHEN insufficient_privilege THEN
	END;
	RAISE 'no';
END $$;
RESET ROLE;
CREATE FUNCTION leftovers.catches() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM FROM ttl_index.preview('leftovers.last_ttl');
	RETURN NEW;
EXCEPTION
	WHEN raise_exception THEN RETURN NEW;
END $$;
CREATE TRIGGER catches BEFORE INSERT ON leftovers.compared_g FOR EACH ROW WHEN (NEW.word = 'G') EXECUTE FUNCTION leftovers.catches();
INSERT INTO leftovers.compared_g VALUES ('G');
INSERT INTO leftovers.compared VALUES ('G');
-- nor where code of another role has run in between, so that what the caller had computed was dropped
SET ROLE regress_ttl_first;
CREATE OR REPLACE FUNCTION leftovers.mood_as_json(leftovers.mood) RETURNS json LANGUAGE plpgsql
	SET search_path = leftovers, pg_catalog SET constraint_exclusion = on AS $$
BEGIN
	PERFORM leftovers.status();
	PERFORM FROM ttl_index.preview('leftovers.inner_ttl');
	BEGIN
		PERFORM FROM leftovers.compared_g WHERE word = 'g';
	EXCEPTION WHEN insufficient_privilege THEN
	END;
	RAISE 'no';
END $$;
CREATE TABLE leftovers.inner (at timestamptz);
CREATE INDEX inner_ttl ON leftovers.inner (at) WHERE ttl_index.expire_after_seconds(0);
RESET ROLE;
INSERT INTO leftovers.compared_g VALUES ('g');
INSERT INTO leftovers.compared_g VALUES ('G');
-- nor for one that is not open, but has new files
CREATE OR REPLACE FUNCTION leftovers.mood_as_json(leftovers.mood) RETURNS json LANGUAGE plpgsql
	SET search_path = leftovers, pg_catalog SET constraint_exclusion = on AS $$
BEGIN
	PERFORM FROM leftovers.compared_g WHERE word = 'g';
	RETURN '1';
EXCEPTION WHEN insufficient_privilege THEN
	RETURN '2';
END $$;
DROP TRIGGER catches ON leftovers.compared_g;
\c -
SET client_min_messages = error;
BEGIN;
TRUNCATE leftovers.compared_g;
SELECT count(*) FROM ttl_index.preview('leftovers.last_ttl');
INSERT INTO leftovers.compared_g VALUES ('G');
COMMIT;
-- nor what it computes where code of another role within has made core forget what the caller had computed
CREATE TABLE leftovers.nested (word text) PARTITION BY LIST (leftovers.fold_case(word));
CREATE TABLE leftovers.nested_g PARTITION OF leftovers.nested FOR VALUES IN ('g') PARTITION BY LIST (leftovers.fold_case(word));
CREATE TABLE leftovers.nested_g_g PARTITION OF leftovers.nested_g FOR VALUES IN ('g');
CREATE OR REPLACE FUNCTION leftovers.mood_as_json(leftovers.mood) RETURNS json LANGUAGE plpgsql
	SET search_path = leftovers, pg_catalog SET constraint_exclusion = on AS $$
BEGIN
	PERFORM leftovers.status();
	PERFORM FROM ttl_index.preview('leftovers.inner_ttl');
	PERFORM FROM leftovers.nested_g WHERE leftovers.fold_case(word) = 'g';
	RETURN '1';
EXCEPTION WHEN insufficient_privilege THEN
	RETURN '2';
END $$;
\c -
SET client_min_messages = error;
INSERT INTO leftovers.nested_g VALUES ('g');
INSERT INTO leftovers.nested_g SELECT 'G' FROM (SELECT count(*) FROM ttl_index.preview('leftovers.last_ttl') OFFSET 0) AS x;
INSERT INTO leftovers.nested_g VALUES ('G');
SELECT count(*) FROM leftovers.nested_g;
-- nor for an index of which the key alone was computed, as CREATE INDEX does
CREATE OR REPLACE FUNCTION leftovers.mood_as_json(leftovers.mood) RETURNS json LANGUAGE plpgsql
	SET search_path = leftovers, pg_catalog AS $$
BEGIN
	PERFORM FROM leftovers.keyed WHERE leftovers.fold_case(word) <> 'q';
	RETURN '1';
EXCEPTION WHEN insufficient_privilege THEN
	RETURN '2';
END $$;
CREATE TABLE leftovers.keyed (word text);
CREATE FUNCTION leftovers.same_case(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN $1; END $$;
BEGIN;
CREATE INDEX ON leftovers.keyed (leftovers.same_case(word)) WHERE leftovers.fold_case(word) <> 'q';
SELECT count(*) FROM ttl_index.preview('leftovers.last_ttl');
INSERT INTO leftovers.keyed VALUES ('G');
COMMIT;
-- nor for one that gets new files only within the call, by code of the caller that CREATE INDEX runs
CREATE TABLE leftovers.staged (id int, at timestamptz) PARTITION BY LIST (id);
CREATE TABLE leftovers.staged_1 PARTITION OF leftovers.staged FOR VALUES IN (1);
CREATE TABLE leftovers.staged_2 PARTITION OF leftovers.staged FOR VALUES IN (2);
CREATE TABLE leftovers.staged_3 PARTITION OF leftovers.staged FOR VALUES IN (3);
INSERT INTO leftovers.staged SELECT id, '2001-01-01' FROM generate_series(1, 3) AS id;
ALTER TABLE leftovers.staged_2 OWNER TO regress_ttl_first;
CREATE FUNCTION leftovers.truncates(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN true; END $$;
SET ROLE regress_ttl_first;
CREATE FUNCTION leftovers.plans(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN 1; END $$;
CREATE INDEX ON leftovers.staged_2 (id) WHERE leftovers.plans(1) = 1;
CREATE OR REPLACE FUNCTION leftovers.plans(int) RETURNS int LANGUAGE plpgsql IMMUTABLE
	SET search_path = leftovers, pg_catalog SET constraint_exclusion = on AS $$
BEGIN
	PERFORM FROM leftovers.nested_g_g WHERE word = 'g';
	RETURN 1;
EXCEPTION WHEN insufficient_privilege THEN
	RETURN 1;
END $$;
RESET ROLE;
CREATE FUNCTION leftovers.renews_nested() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO leftovers.nested_g_g VALUES ('G');
	TRUNCATE leftovers.nested;
END $$;
CREATE OR REPLACE FUNCTION leftovers.truncates(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF current_user = session_user THEN
		PERFORM leftovers.renews_nested();
	END IF;
	RETURN true;
END $$;
\c -
SET client_min_messages = error;
BEGIN;
SELECT ttl_index.create_index('leftovers.staged', 'at', 60, 'leftovers.truncates(id)');
INSERT INTO leftovers.nested_g_g VALUES ('G');
ROLLBACK;
-- nor are deferred triggers of the caller fired by the settings of this code
CREATE FUNCTION leftovers.measures() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM leftovers.fold_case(NEW.word), length(NEW.word); RETURN NULL; END $$;
CREATE TABLE leftovers.deferring (word text);
CREATE CONSTRAINT TRIGGER measures AFTER INSERT ON leftovers.deferring DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION leftovers.measures();
SET ROLE regress_ttl_first;
CREATE FUNCTION leftovers.length(text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'the trap is shown "%"', $1; END $$;
CREATE OR REPLACE FUNCTION leftovers.mood_as_json(leftovers.mood) RETURNS json LANGUAGE plpgsql SET search_path = leftovers, pg_catalog AS $$
BEGIN
	SET CONSTRAINTS ALL IMMEDIATE;
	RETURN '1';
END $$;
RESET ROLE;
BEGIN;
INSERT INTO leftovers.deferring VALUES ('secret');
SELECT count(*) FROM ttl_index.preview('leftovers.last_ttl');
COMMIT;
SELECT word FROM leftovers.deferring;
-- a cursor that is left keeps tables open as well
SET ROLE regress_ttl_first;
CREATE OR REPLACE FUNCTION leftovers.mood_as_json(leftovers.mood) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
	cursor refcursor := 'left open';
	other refcursor := '<unnamed>';
BEGIN
	OPEN cursor FOR SELECT 1;
	OPEN other FOR SELECT 1;
	RETURN '1';
END $$;
RESET ROLE;
BEGIN;
DECLARE own CURSOR FOR SELECT 1;
SELECT count(*) FROM ttl_index.preview('leftovers.last_ttl');
SELECT name FROM pg_cursors;
DECLARE held CURSOR WITH HOLD FOR SELECT 1;
COMMIT;
SELECT count(ttl_index.due_count('leftovers.last_ttl')) FROM generate_series(1, 200);
SELECT count(*) FROM ttl_index.preview('leftovers.last_ttl');
SELECT name FROM pg_cursors;
CLOSE held;

-- nor does it close one of the caller's, and open another one by that name and in that memory
SET ROLE regress_ttl_first;
CREATE FUNCTION leftovers.opens_anew(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	own refcursor;
	name text;
BEGIN
	FOREACH name IN ARRAY ARRAY['another', 'own'] LOOP
		own := name;
		IF name = 'own' THEN
			CLOSE own;
		END IF;
		OPEN own FOR SELECT current_user FROM generate_series(1, 3);
		IF name <> 'own' THEN
			CLOSE own;
		END IF;
	END LOOP;
	RETURN true;
EXCEPTION
	WHEN invalid_cursor_state OR invalid_cursor_name THEN RETURN true;
END $$;
CREATE TABLE leftovers.new_series (id int, at timestamptz NOT NULL, CHECK (leftovers.opens_anew(1))) PARTITION BY RANGE (at);
RESET ROLE;
BEGIN;
DECLARE own CURSOR FOR SELECT 'of the caller' FROM generate_series(1, 3);
FETCH own;
SELECT ttl_index.create_time_series('leftovers.new_series', 'at', granularity => 'hours');
SELECT name, statement FROM pg_cursors;
FETCH own;
ROLLBACK;

-- nor does it read on from one of the caller, whose functions in SQL are parsed when they are asked for rows,
-- or rewind it, when limits and keys are computed
CREATE FUNCTION leftovers.words() RETURNS SETOF text LANGUAGE sql AS 'SELECT lower(word) FROM leftovers.noted';
CREATE FUNCTION leftovers.most() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	RAISE NOTICE 'the limit is computed with the search_path %', current_setting('search_path');
	RETURN 3;
END $$;
CREATE OR REPLACE FUNCTION leftovers.mood_as_json(leftovers.mood) RETURNS json LANGUAGE plpgsql
	SET search_path = leftovers, pg_catalog AS $$
DECLARE
	command text;
BEGIN
	FOREACH command IN ARRAY ARRAY['FETCH not_read', 'MOVE ABSOLUTE 0 FROM read'] LOOP
		BEGIN
			EXECUTE command;
			RAISE NOTICE '%: done', command;
		EXCEPTION
			WHEN OTHERS THEN RAISE NOTICE '%: %', command, SQLERRM;
		END;
	END LOOP;
	PERFORM FROM leftovers.noted WHERE leftovers.fold_case(leftovers.noted.word) = 'a';
	RETURN '1';
END $$;
GRANT SELECT ON leftovers.noted TO regress_ttl_first;
\c -
BEGIN;
DECLARE not_read CURSOR FOR SELECT leftovers.words();
DECLARE read SCROLL CURSOR FOR SELECT generate_series(1, 3) LIMIT leftovers.most();
DECLARE held CURSOR WITH HOLD FOR SELECT 1;
FETCH read;
SELECT count(*) FROM ttl_index.preview('leftovers.last_ttl');
FETCH read;
FETCH not_read;
-- nor where that ends with an error
SAVEPOINT before;
CREATE OR REPLACE FUNCTION leftovers.mood_as_json(leftovers.mood) RETURNS json LANGUAGE plpgsql AS $$ BEGIN RAISE 'failed'; END $$;
SELECT count(*) FROM ttl_index.preview('leftovers.last_ttl');
ROLLBACK TO before;
FETCH read;
COMMIT;
FETCH held;
CLOSE held;
SET client_min_messages = error;
REVOKE SELECT ON leftovers.noted FROM regress_ttl_first;
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
SELECT ttl_index.preview('leftovers.parted_ttl');
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

-- what core has parsed of a function that belongs to a range type, by the search_path of who used that first, it
-- keeps until the subtransaction ends
CREATE FUNCTION leftovers.distance(int, int) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT float8(abs($1 - $2))';
CREATE TYPE leftovers.span AS RANGE (SUBTYPE = int4, SUBTYPE_DIFF = leftovers.distance);
SET ROLE regress_ttl_first;
CREATE FUNCTION leftovers.abs(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF current_user <> 'regress_ttl_first' THEN
		RAISE 'the trap is called as somebody else';
	END IF;
	RETURN $1;
END $$;
CREATE TABLE leftovers.spans (span leftovers.span);
INSERT INTO leftovers.spans SELECT leftovers.span(n, n + 10) FROM generate_series(1, 300) AS n;
ANALYZE leftovers.spans;
CREATE FUNCTION leftovers.uses_distance(int) RETURNS int LANGUAGE plpgsql IMMUTABLE SET search_path = leftovers, pg_catalog AS $$
BEGIN
	PERFORM FROM leftovers.spans WHERE span && leftovers.span(10, 20);
	RETURN $1;
END $$;
RESET ROLE;
CREATE TABLE leftovers.rest_mine (id int, at timestamptz, span leftovers.span);
INSERT INTO leftovers.rest_mine SELECT 2, '2001-01-01', leftovers.span(n, n + 10) FROM generate_series(1, 300) AS n;
CREATE INDEX ON leftovers.rest_mine (id) WHERE at IS NOT NULL OR span && leftovers.span(10, 20);
ANALYZE leftovers.rest_mine;
\c -
SET client_min_messages = error;
-- nor is it there for the session behind preview(), or behind create_index() that finds the index
SET ROLE regress_ttl_first;
CREATE OR REPLACE FUNCTION leftovers.mood_as_json(leftovers.mood) RETURNS json LANGUAGE plpgsql AS
$$ BEGIN PERFORM leftovers.uses_distance(1); RETURN '1'; END $$;
CREATE TABLE leftovers.filtered (at timestamptz);
CREATE INDEX filtered_ttl ON leftovers.filtered (at) WHERE leftovers.uses_distance(1) = 1 AND ttl_index.expire_after_seconds(0);
RESET ROLE;
BEGIN;
SELECT count(*) FROM ttl_index.preview('leftovers.last_ttl');
SELECT count(*) FROM leftovers.rest_mine WHERE span && leftovers.span(10, 20);
COMMIT;
BEGIN;
SELECT ttl_index.create_index('leftovers.filtered', 'at', 0, 'leftovers.uses_distance(1) = 1');
SELECT count(*) FROM leftovers.rest_mine WHERE span && leftovers.span(10, 20);
COMMIT;
-- a function that looks while it runs is not compiled again for that: PL/pgSQL would never free it
SET ROLE regress_ttl_first;
CREATE FUNCTION leftovers.looks_itself(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN true; END $$;
CREATE TABLE leftovers.looked_at (n int, at timestamptz);
INSERT INTO leftovers.looked_at VALUES (0, '2001-01-01');
CREATE INDEX looked_at_ttl ON leftovers.looked_at (at) WHERE leftovers.looks_itself(n) AND ttl_index.expire_after_seconds(0);
CREATE TABLE leftovers.looking (n int, at timestamptz);
INSERT INTO leftovers.looking SELECT n, '2001-01-01' FROM generate_series(1, 9) AS n;
CREATE INDEX looking_ttl ON leftovers.looking (at) WHERE leftovers.looks_itself(n) AND ttl_index.expire_after_seconds(0);
CREATE OR REPLACE FUNCTION leftovers.looks_itself(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF $1 > 0 THEN
		PERFORM ttl_index.preview('leftovers.looked_at_ttl');
	END IF;
	RETURN true;
END $$;
RESET ROLE;
\c -
SET client_min_messages = error;
SELECT count(*) FROM ttl_index.preview('leftovers.looking_ttl');
SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'PL/pgSQL function' AND ident LIKE '%looks_itself%';
-- nor where it catches an error of what it calls
CREATE TABLE leftovers.looked_at_unreadable (n int, at timestamptz, document json);
ALTER TABLE leftovers.looked_at_unreadable OWNER TO regress_ttl_first;
INSERT INTO leftovers.looked_at_unreadable VALUES (0, '2001-01-01', '"\u0000"');
CREATE INDEX looked_at_unreadable_ttl ON leftovers.looked_at_unreadable (at) WHERE leftovers.looks_itself(n) AND ttl_index.expire_after_seconds(0);
CREATE OR REPLACE FUNCTION leftovers.looks_itself(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF $1 > 0 THEN
		PERFORM ttl_index.preview('leftovers.looked_at_unreadable_ttl');
	END IF;
	RETURN true;
EXCEPTION
	WHEN untranslatable_character THEN RETURN leftovers.looks_itself(0);
END $$;
SELECT count(*) FROM ttl_index.preview('leftovers.looking_ttl');
SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'PL/pgSQL function' AND ident LIKE '%looks_itself%';
-- nor where core itself runs it, for ANALYZE and the like
CREATE OR REPLACE FUNCTION leftovers.looks_itself(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF $1 > 0 THEN
		PERFORM FROM ttl_index.indexes AS i WHERE i::text = '';
		PERFORM ttl_index.preview('leftovers.looked_at_ttl');
		PERFORM leftovers.looks_itself(0);
	END IF;
	RETURN true;
END $$;
\c -
SET client_min_messages = error;
ANALYZE leftovers.looking;
SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'PL/pgSQL function' AND ident LIKE '%looks_itself%';
-- nor are large objects that this code has left open
SET ROLE regress_ttl_first;
SELECT lo_from_bytea(987654, 'secret');
CREATE OR REPLACE FUNCTION leftovers.mood_as_json(leftovers.mood) RETURNS json LANGUAGE plpgsql AS
$$ BEGIN PERFORM lo_open(987654, 262144); RETURN '1'; END $$;
RESET ROLE;
BEGIN;
SELECT count(*) FROM ttl_index.preview('leftovers.last_ttl');
SELECT loread(0, 6);
ROLLBACK;
SELECT lo_unlink(987654);

-- where core runs code of an owner itself, that goes on as it was behind an error of what was done as an owner
CREATE TABLE leftovers.unreadable (at timestamptz, document json);
CREATE INDEX unreadable_ttl ON leftovers.unreadable (at) WHERE ttl_index.expire_after_seconds(0);
INSERT INTO leftovers.unreadable VALUES ('2001-01-01', '"\u0000"');
CREATE FUNCTION leftovers.is_positive(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN $1 > 0; END $$;
CREATE TABLE leftovers.master (id int PRIMARY KEY CHECK (leftovers.is_positive(1)));
CREATE TABLE leftovers.detail (id int REFERENCES leftovers.master);
INSERT INTO leftovers.master VALUES (1);
CREATE FUNCTION leftovers.looks(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	BEGIN
		PERFORM ttl_index.preview('leftovers.unreadable_ttl');
	EXCEPTION WHEN untranslatable_character THEN
	END;
	PERFORM leftovers.refers($1);
	RETURN $1;
END $$;
CREATE FUNCTION leftovers.refers(int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO leftovers.detail VALUES ($1); END $$;
CREATE TABLE leftovers.looked (id int);
INSERT INTO leftovers.looked VALUES (1);
CREATE INDEX ON leftovers.looked (leftovers.looks(id));
SELECT id FROM leftovers.detail;
DROP SCHEMA leftovers CASCADE;
DROP ROLE regress_ttl_first;
