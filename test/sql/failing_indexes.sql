-- An index whose deletes fail, hang or lie costs itself its turn and no other index
-- anything (rule 23).
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA failing;
SET search_path = failing;
CREATE VIEW since AS SELECT passes, sub_passes, deleted_documents, skipped_failed, errors FROM ttl_index.stats;

-- rule 23: an index that fails slowly ends its turn, not the pass its end; it is
-- reported once a pass
CREATE TABLE slow (ts timestamptz);
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.2); RAISE EXCEPTION 'no'; END $$;
CREATE TRIGGER slow BEFORE DELETE ON slow FOR EACH ROW EXECUTE FUNCTION slow();
SELECT ttl_index.create_index('slow', 'ts', 1);
INSERT INTO slow VALUES ('2001-01-01');
CREATE TABLE busy (ts timestamptz);
SELECT ttl_index.create_index('busy', 'ts', 1);
INSERT INTO busy SELECT '2001-01-01' FROM generate_series(1, 300);
SET ttl_index.index_delete_target_docs = 100;
SET ttl_index.index_delete_target_time = 100;
SELECT ttl_index.stats_reset();
\set VERBOSITY terse
CALL ttl_index.run_pass();
\set VERBOSITY default
SELECT passes, sub_passes >= 3 AS sub_passes, deleted_documents, skipped_failed, errors FROM since;
RESET ttl_index.index_delete_target_time;
RESET ttl_index.index_delete_target_docs;
DROP TABLE slow, busy;

-- a batch that is canceled costs its partition the pass, not the partitions behind it:
-- nobody would remember that for the next call
CREATE TABLE parts (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (MINVALUE) TO ('2001-01-01');
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
CREATE TABLE parts_3 PARTITION OF parts FOR VALUES FROM ('2002-01-01') TO ('2003-01-01');
CREATE FUNCTION sleep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(3600); RETURN OLD; END $$;
CREATE TRIGGER sleep BEFORE DELETE ON parts_1 FOR EACH ROW EXECUTE FUNCTION sleep();
CREATE TRIGGER sleep BEFORE DELETE ON parts_2 FOR EACH ROW EXECUTE FUNCTION sleep();
SELECT ttl_index.create_index('parts', 'ts', 1);
INSERT INTO parts VALUES ('2000-01-01'), ('2001-01-01'), ('2002-01-01');
SET ttl_index.batch_timeout = '200ms';
SELECT ttl_index.stats_reset();
\set VERBOSITY terse
CALL ttl_index.run_pass();
\set VERBOSITY default
SELECT deleted_documents, errors, last_error FROM ttl_index.index_stats WHERE relname = 'parts';
SELECT ts FROM parts ORDER BY ts;
RESET ttl_index.batch_timeout;
DROP TABLE parts;

-- an error that looks like a cancellation is an error of its index alone
CREATE TABLE liar (ts timestamptz);
CREATE FUNCTION lie() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'mine' USING ERRCODE = '57014'; END $$;
CREATE TRIGGER lie BEFORE DELETE ON liar FOR EACH ROW EXECUTE FUNCTION lie();
SELECT ttl_index.create_index('liar', 'ts', 1);
INSERT INTO liar VALUES ('2001-01-01');
CREATE TABLE next (ts timestamptz);
SELECT ttl_index.create_index('next', 'ts', 1);
INSERT INTO next VALUES ('2001-01-01');
SELECT ttl_index.stats_reset();
\set VERBOSITY terse
CALL ttl_index.run_pass();
\set VERBOSITY default
SELECT passes, deleted_documents, skipped_failed, errors FROM since;
DROP TABLE liar, next;

-- an error text of any length is clipped
CREATE TABLE long (ts timestamptz);
CREATE FUNCTION long() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '%', repeat('x', 1000000); END $$;
CREATE TRIGGER long BEFORE DELETE ON long FOR EACH ROW EXECUTE FUNCTION long();
SELECT ttl_index.create_index('long', 'ts', 1);
INSERT INTO long VALUES ('2001-01-01');
SET client_min_messages = error;
CALL ttl_index.run_pass();
SET client_min_messages = warning;
SELECT length(last_error) FROM ttl_index.index_stats WHERE relname = 'long';
DROP TABLE long;
-- a session of others whose stack is too small for a definition says nothing of the index
CREATE TABLE deep (ts timestamptz, x int);
SELECT ttl_index.create_index('deep', 'ts', 1, 'x' || repeat('+1', 400) || ' > 0');
CREATE ROLE regress_ttl_stranger;
SET max_stack_depth = '100kB';
SET ROLE regress_ttl_stranger;
CALL ttl_index.run_pass();
RESET ROLE;
RESET max_stack_depth;
DROP ROLE regress_ttl_stranger;
SELECT errors, last_error FROM ttl_index.index_stats WHERE relname = 'deep';
DROP TABLE deep;
-- what a filter raises as if it was canceled is no reason to refuse a change
CREATE FUNCTION canceled(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN true; END $$;
CREATE TABLE canceled (ts timestamptz, x int);
SELECT ttl_index.create_index('canceled', 'ts', 1000, 'canceled(x)');
INSERT INTO canceled VALUES ('2001-01-01', 1);
CREATE OR REPLACE FUNCTION canceled(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE query_canceled; END $$;
SELECT ttl_index.coll_mod('canceled', 'ts', 1);
DROP TABLE canceled;
-- an index that loses its options in its last batch is not asked how much was due by them
CREATE TABLE loses (ts timestamptz);
INSERT INTO loses SELECT '2001-01-01' FROM generate_series(1, 1000);
CREATE INDEX loses_ttl ON loses (ts) WHERE ttl_index.expire_after_seconds(0);
ANALYZE loses;
CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE pg_catalog.pg_index SET indpred = NULL
	WHERE indrelid = TG_RELID AND NOT EXISTS (SELECT FROM failing.loses);
	RETURN NULL;
END $$;
CREATE TRIGGER lose AFTER DELETE ON loses FOR EACH STATEMENT EXECUTE FUNCTION lose();
CALL ttl_index.run_pass();
SELECT state, (SELECT count(*) FROM loses) FROM ttl_index.indexes WHERE relid = 'loses'::regclass;
DROP TABLE loses;
-- an error whose text breaks off within a character can be read, by clients of each encoding
CREATE TABLE breaks_off (ts timestamptz);
CREATE FUNCTION break_off() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN PERFORM to_date(U&'\20AC\20AC', 'DD'); RETURN OLD; END $$;
CREATE TRIGGER break_off BEFORE DELETE ON breaks_off FOR EACH ROW EXECUTE FUNCTION break_off();
SELECT ttl_index.create_index('breaks_off', 'ts', 0);
INSERT INTO breaks_off VALUES ('2001-01-01');
SET client_encoding = 'latin1';
\set VERBOSITY terse
CALL ttl_index.run_pass();
\set VERBOSITY default
SELECT errors, last_error, last_error_sqlstate FROM ttl_index.index_stats WHERE relname = 'breaks_off';
RESET client_encoding;
DROP TABLE breaks_off;

-- an error that code has caught and thrown anew is told like any other: it lies where that has thrown it
CREATE TABLE thrown (ts timestamptz);
CREATE FUNCTION fails() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'thrown anew'; END $$;
DO $do$ BEGIN EXECUTE format('CREATE FUNCTION throw() RETURNS trigger LANGUAGE plpgsql AS %L',
	'DECLARE a text := repeat(''x'', 5000); BEGIN EXECUTE ''SELECT failing.fails()'' USING a' || repeat(', a', 3000)
	|| '; RETURN OLD; EXCEPTION WHEN OTHERS THEN RAISE; END'); END $do$;
CREATE TRIGGER throw BEFORE DELETE ON thrown FOR EACH ROW EXECUTE FUNCTION throw();
SELECT ttl_index.create_index('thrown', 'ts', 0);
INSERT INTO thrown VALUES ('2001-01-01');
\set VERBOSITY terse
CALL ttl_index.run_pass();
\set VERBOSITY default
SELECT errors, last_error, last_error_sqlstate FROM ttl_index.index_stats WHERE relname = 'thrown';
DROP TABLE thrown;

-- if a batch takes too long, fewer rows at a time go in the same pass; the index that a foreign
-- key lacks is named
CREATE TABLE slow (id int PRIMARY KEY, at timestamptz);
CREATE TABLE refers (slow_id int REFERENCES slow ON DELETE CASCADE);
CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.01); RETURN OLD; END $$;
CREATE TRIGGER slow BEFORE DELETE ON slow FOR EACH ROW EXECUTE FUNCTION slowly();
INSERT INTO slow SELECT g, '2001-01-01'::timestamptz + g * interval '1 s' FROM generate_series(1, 120) AS g;
SELECT ttl_index.create_index('slow', 'at', 86400);
SET ttl_index.batch_timeout = 500;
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT deleted_documents, skipped_failed, errors, last_error FROM ttl_index.index_stats WHERE relname = 'slow';
RESET ttl_index.batch_timeout;
DROP TABLE refers, slow;

-- rows that cannot be deleted keep none of those behind them, however many they are: those of a
-- foreign key, and those of a trigger
CREATE TABLE par (id int PRIMARY KEY, at timestamptz);
CREATE TABLE chi (id int PRIMARY KEY, par_id int REFERENCES par);
CREATE INDEX ON chi (par_id);
INSERT INTO par SELECT g, '2001-01-01'::timestamptz + g * interval '1 s' FROM generate_series(1, 6100) AS g;
INSERT INTO chi SELECT g, g FROM generate_series(1, 6000) AS g;
SELECT ttl_index.create_index('par', 'at', 86400);
CREATE TABLE held (id int PRIMARY KEY, at timestamptz);
INSERT INTO held TABLE par;
CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'row is held' USING DETAIL = OLD.id; END $$;
CREATE TRIGGER hold BEFORE DELETE ON held FOR EACH ROW WHEN (OLD.id <= 6000) EXECUTE FUNCTION hold();
SELECT ttl_index.create_index('held', 'at', 86400);
SET ttl_index.index_delete_target_time = 50;
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT (SELECT count(*) FROM par) AS par, (SELECT count(*) FROM held) AS held;
SELECT relname, deleted_documents, skipped_failed, split_part(last_error, E'\n', 1) AS last_error FROM ttl_index.index_stats WHERE relname IN ('par', 'held') ORDER BY 1;
-- they stay due, and go once they can
DELETE FROM chi WHERE id > 10;
ALTER TABLE held DISABLE TRIGGER hold;
CALL ttl_index.run_pass();
SELECT (SELECT count(*) FROM par) AS par, (SELECT count(*) FROM held) AS held;
DROP TABLE par, chi, held;
-- also if the foreign key has several columns, of another order and type
CREATE TABLE par (a int, b bigint, c text, at timestamptz, PRIMARY KEY (a, b), UNIQUE (c));
CREATE TABLE chi (b int, a bigint, c varchar REFERENCES par (c), FOREIGN KEY (a, b) REFERENCES par ON DELETE RESTRICT);
CREATE INDEX ON chi (b, a);
CREATE INDEX ON chi (c);
INSERT INTO par SELECT g, 1 + g % 3, 'c' || g, '2001-01-01' FROM generate_series(1, 3000) AS g;
INSERT INTO chi SELECT 1 + g % 3, CASE WHEN g % 2 = 0 THEN g END, CASE WHEN g % 5 = 0 THEN 'c' || g END FROM generate_series(1, 1000) AS g;
SELECT ttl_index.create_index('par', 'at', 86400);
CREATE TABLE deletes (rows bigint);
CREATE FUNCTION deletes() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO failing.deletes SELECT count(*) FROM gone; RETURN NULL; END $$;
CREATE TRIGGER deletes AFTER DELETE ON par REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION deletes();
-- 18 words the error of RESTRICT in another way
SET client_min_messages = error;
CALL ttl_index.run_pass();
SET client_min_messages = warning;
SELECT count(*), count(*) FILTER (WHERE a <= 1000 AND (a % 2 = 0 OR a % 5 = 0)) AS referenced FROM par;
SELECT sum(rows), max(rows) > 100 AS many_at_a_time FROM deletes;
DROP TABLE par, chi;
RESET ttl_index.index_delete_target_time;

-- rows of a table that references itself go as one DELETE would take them, whatever the order
CREATE TABLE st (id int PRIMARY KEY, p int REFERENCES st, at timestamptz);
CREATE INDEX ON st (p);
SELECT ttl_index.create_index('st', 'at', 86400);
SELECT ttl_index.stats_reset();
-- a chain
INSERT INTO st SELECT g, nullif(g - 1, 0), '2001-01-01'::timestamptz + g * interval '1 s' FROM generate_series(1, 300) AS g;
CALL ttl_index.run_pass();
SELECT count(*) FROM st;
-- threads
INSERT INTO st SELECT t * 5 + d, CASE WHEN d > 0 THEN t * 5 + d - 1 END,
	'2001-01-01'::timestamptz + t * interval '1 minute' + d * interval '3 hours'
FROM generate_series(0, 999) AS t, generate_series(0, 4) AS d;
CALL ttl_index.run_pass();
SELECT count(*) FROM st;
-- pairs
INSERT INTO st SELECT g, 1 + (g + 999) % 2000, '2001-01-01'::timestamptz + g * interval '1 s' FROM generate_series(1, 2000) AS g;
CALL ttl_index.run_pass();
SELECT count(*) FROM st;
-- a chain of which a row that is not due references the middle
INSERT INTO st SELECT g, nullif(g - 1, 0), '2001-01-01'::timestamptz + g * interval '1 s' FROM generate_series(1, 3000) AS g;
INSERT INTO st VALUES (3001, 1000, 'infinity');
SELECT errors, skipped_failed FROM ttl_index.index_stats WHERE relname = 'st';
\set VERBOSITY terse
CALL ttl_index.run_pass();
\set VERBOSITY default
SELECT count(*), max(id) FILTER (WHERE id <= 3000) FROM st;
SELECT errors, skipped_failed, split_part(last_error, E'\n', 1) AS last_error FROM ttl_index.index_stats WHERE relname = 'st';
DROP SCHEMA failing CASCADE;
