-- REINDEX in all its forms keeps the option: option rule 9.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
LOAD 'ttl_index';
CREATE SCHEMA re;
SET search_path = re;
CREATE VIEW marks AS SELECT indexrelid, expire_after_seconds AS n, time_zone, partial_filter_expression AS filter, state
	FROM ttl_index.indexes ORDER BY indexrelid::text COLLATE "C";
CREATE TABLE t (ts timestamptz, local timestamp, kind text);
SELECT ttl_index.create_index('t', 'ts', 2147483647), ttl_index.create_index('t', 'local', 0, time_zone => 'Europe/Berlin'),
	ttl_index.create_index('t', 'ts', 5, 'kind = ''x''', name => 'filtered');
CREATE TABLE p (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
SELECT ttl_index.create_index('p', 'ts', 77);
SELECT * FROM marks;

-- the saved option is made of dependencies that core's own functions can name
CREATE VIEW saved AS SELECT objid::regclass::text AS index, count(*) AS digits,
	sum(split_part(attname, '_', 2)::bigint * split_part(attname, '_', 3)::int) FILTER (WHERE attname LIKE 'seconds%') AS seconds
FROM pg_depend JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid
WHERE refclassid = 'pg_class'::regclass AND refobjid = to_regclass('ttl_index.saved_option')
GROUP BY objid ORDER BY objid::regclass::text COLLATE "C";
CREATE FUNCTION undescribed() RETURNS SETOF pg_depend LANGUAGE sql AS
$$
	SELECT * FROM pg_depend
	WHERE pg_describe_object(classid, objid, objsubid) IS NULL
		OR pg_describe_object(refclassid, refobjid, refobjsubid) IS NULL
		OR (pg_identify_object(classid, objid, objsubid)).identity IS NULL
		OR (pg_identify_object(refclassid, refobjid, refobjsubid)).identity IS NULL
		OR (pg_identify_object_as_address(classid, objid, objsubid)).object_names IS NULL
		OR (pg_identify_object_as_address(refclassid, refobjid, refobjsubid)).object_names IS NULL
$$;
SELECT * FROM undescribed();
TABLE saved;
SELECT pg_describe_object(refclassid, refobjid, refobjsubid) FROM pg_depend
WHERE objid = 'p_ts_ttl'::regclass AND refobjid = to_regclass('ttl_index.saved_option') ORDER BY refobjsubid;

REINDEX TABLE t;
REINDEX INDEX t_ts_ttl;
VACUUM FULL t;
SELECT * FROM marks;
REINDEX INDEX CONCURRENTLY t_ts_ttl;
SELECT * FROM marks;
REINDEX TABLE CONCURRENTLY t;
REINDEX TABLE CONCURRENTLY p;
REINDEX INDEX CONCURRENTLY p_ts_ttl;
REINDEX SCHEMA CONCURRENTLY re;
SELECT * FROM marks;
-- of parameters that contradict each other the last one counts
REINDEX (CONCURRENTLY off, CONCURRENTLY on) INDEX t_ts_ttl;
SELECT * FROM marks WHERE indexrelid = 't_ts_ttl'::regclass;
SELECT * FROM undescribed();
TABLE saved;
\d t
\d p1

-- after coll_mod the new seconds are saved, not the old ones
SELECT ttl_index.coll_mod_index('t_ts_ttl', 1234567890);
REINDEX TABLE CONCURRENTLY t;
SELECT ttl_index.coll_mod_index('t_local_ttl', 99, 'america/new_york');
REINDEX TABLE CONCURRENTLY t;
SELECT * FROM marks WHERE indexrelid::text LIKE 't%';
-- a plain index stays one
SELECT ttl_index.remove_ttl('t_ts_ttl');
REINDEX TABLE CONCURRENTLY t;
SELECT * FROM marks WHERE indexrelid::text LIKE 't%';

-- where no hook and no trigger was at hand, the next pass repairs it
CREATE FUNCTION lose(index regclass) RETURNS void LANGUAGE sql
	AS 'UPDATE pg_index SET indpred = NULL WHERE indexrelid = index';
INSERT INTO p VALUES ('2001-01-01');
SELECT lose('t_local_ttl'), lose('p_ts_ttl'), lose('p1_ts_idx');
SELECT * FROM marks;
SELECT ttl_index.due_count('t_local_ttl');
CALL ttl_index.run_pass();
SELECT * FROM marks;
SELECT count(*) FROM p;

-- coll_mod takes what is saved for what there is
SELECT lose('t_local_ttl'), lose('p_ts_ttl');
SELECT ttl_index.coll_mod_index('t_local_ttl', 98), ttl_index.coll_mod('p', 'ts', 77);
SELECT * FROM marks;

-- nothing is saved, or not all of it, or more than that: a state, never a guess
CREATE PROCEDURE forget(index regclass, condition text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('DELETE FROM pg_depend WHERE objid = %s AND refclassid = ''pg_class''::regclass
		AND refobjid = ''ttl_index.saved_option''::regclass AND %s', index::oid, condition);
END $$;
INSERT INTO t (local) VALUES ('2001-01-01');
CREATE PROCEDURE lose_and_forget(condition text) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM ttl_index.coll_mod_index('t_local_ttl', 5, 'UTC');
	PERFORM lose('t_local_ttl');
	CALL forget('t_local_ttl', condition);
END $$;
CALL lose_and_forget('true');
CALL ttl_index.run_pass();
SELECT * FROM marks WHERE indexrelid = 't_local_ttl'::regclass;
-- what is not known cannot be paused
SELECT ttl_index.pause_index('t_local_ttl');

-- a digit of the seconds is missing
CALL lose_and_forget('refobjsubid <= 36');
CALL ttl_index.run_pass();
SELECT * FROM marks WHERE indexrelid = 't_local_ttl'::regclass;
-- or one of the time zone
CALL lose_and_forget('refobjsubid > 11 * 36');
CALL ttl_index.run_pass();
SELECT * FROM marks WHERE indexrelid = 't_local_ttl'::regclass;
-- or is there twice
CALL lose_and_forget('false');
INSERT INTO pg_depend SELECT classid, objid, objsubid, refclassid, refobjid, refobjsubid + 1, deptype
FROM pg_depend WHERE objid = 't_local_ttl'::regclass AND refobjid = 'ttl_index.saved_option'::regclass AND refobjsubid <= 36;
CALL ttl_index.run_pass();
SELECT * FROM marks WHERE indexrelid = 't_local_ttl'::regclass;
-- or stands for more than the seconds can be
CALL lose_and_forget('false');
UPDATE pg_depend SET refobjsubid = ((refobjsubid - 1) / 36 + 1) * 36
WHERE objid = 't_local_ttl'::regclass AND refobjid = 'ttl_index.saved_option'::regclass AND refobjsubid <= 216;
CALL ttl_index.run_pass();
SELECT * FROM marks WHERE indexrelid = 't_local_ttl'::regclass;
-- or for a time zone that there is not
CALL lose_and_forget('false');
UPDATE pg_depend SET refobjsubid = CASE refobjsubid WHEN 217 THEN 218 ELSE 217 END
WHERE objid = 't_local_ttl'::regclass AND refobjid = 'ttl_index.saved_option'::regclass AND refobjsubid BETWEEN 217 AND 252;
CALL ttl_index.run_pass();
SELECT * FROM marks WHERE indexrelid = 't_local_ttl'::regclass;
SELECT count(*) FROM t;
SELECT ttl_index.coll_mod_index('t_local_ttl', 5, 'UTC');
SELECT * FROM marks WHERE indexrelid = 't_local_ttl'::regclass;
SELECT ttl_index.remove_ttl('t_local_ttl');
SELECT * FROM marks;
TABLE saved;
-- what is saved goes with the index
DROP TABLE t, p;
SELECT count(*) FROM pg_depend WHERE refobjid = 'ttl_index.expire_after_seconds(integer,integer)'::regprocedure
	AND classid = 'pg_class'::regclass;
TABLE saved;
SET client_min_messages = error;
DROP SCHEMA re CASCADE;
