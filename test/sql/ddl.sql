-- DDL beside create_index: option rule 5.
\set SHOW_CONTEXT never
CREATE SCHEMA ddl;
SET search_path = ddl;
CALL ttl_index.run_pass();
CREATE VIEW marks AS SELECT indexrelid, relid, key, expire_after_seconds AS n, time_zone, state
	FROM ttl_index.indexes ORDER BY indexrelid::text COLLATE "C";
CREATE TABLE t (id int, ts timestamptz, local timestamp);
CREATE INDEX t_ts ON t (ts) WHERE ttl_index.expire_after_seconds(3600);

-- the option follows renames and moves
ALTER INDEX t_ts RENAME TO renamed;
ALTER TABLE t RENAME TO u;
ALTER TABLE u RENAME ts TO stamp;
CREATE SCHEMA ddl2;
ALTER TABLE u SET SCHEMA ddl2;
SELECT * FROM marks;
ALTER TABLE ddl2.u SET SCHEMA ddl;
ALTER TABLE u RENAME TO t;
ALTER TABLE t RENAME stamp TO ts;

-- LIKE copies it, and says so
CREATE TABLE copy (LIKE t INCLUDING INDEXES);
CREATE TABLE no_copy (LIKE t);
SELECT * FROM marks;
DROP TABLE copy;

-- ALTER TYPE builds the index anew from its definition
ALTER TABLE t ALTER ts TYPE timestamptz(3);
SELECT * FROM marks;
ALTER TABLE t ALTER ts TYPE timestamp;
ALTER TABLE t ALTER ts TYPE text;
CREATE INDEX t_local ON t (local) WHERE ttl_index.expire_after_seconds(5) AND ttl_index.time_zone('Asia/Tokyo');
ALTER TABLE t ALTER local TYPE date;
ALTER TABLE t ALTER local TYPE timestamptz;
SELECT * FROM marks;
-- so does every command that writes the table or the index anew, or moves it
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_ttl_space LOCATION '';
CREATE INDEX t_order ON t (id);
-- by name, as REINDEX CONCURRENTLY changes the OID
CREATE VIEW options AS
	SELECT indexrelid::text, n::text AS option, time_zone, state FROM marks
	UNION ALL
	SELECT indexrelid::regclass::text, expire_after_seconds::text, time_zone, 'saved' FROM ttl_index.saved_options;
CALL ttl_index.run_pass();
CREATE TABLE before AS TABLE options;
TABLE before ORDER BY indexrelid COLLATE "C", option, state;
CREATE PROCEDURE check_same() LANGUAGE plpgsql AS $$
BEGIN
	ASSERT NOT EXISTS (TABLE options EXCEPT TABLE before) AND NOT EXISTS (TABLE before EXCEPT TABLE options);
END $$;
VACUUM FULL t;
CALL check_same();
CLUSTER t USING t_order;
CALL check_same();
ALTER TABLE t SET UNLOGGED;
ALTER TABLE t SET LOGGED;
CALL check_same();
ALTER TABLE t SET TABLESPACE regress_ttl_space;
ALTER INDEX renamed SET TABLESPACE regress_ttl_space;
CALL check_same();
REINDEX (TABLESPACE pg_default) TABLE t;
CALL check_same();
REINDEX (TABLESPACE regress_ttl_space, CONCURRENTLY) INDEX t_local;
CALL ttl_index.run_pass();
CALL check_same();
REINDEX SCHEMA ddl;
CALL check_same();
SELECT current_database() AS db \gset
REINDEX DATABASE :"db";
CALL check_same();
TRUNCATE t;
CALL check_same();
ALTER TABLE t ADD COLUMN volatile float DEFAULT random();
ALTER TABLE t DROP COLUMN volatile;
CALL check_same();
DROP TABLE before;
DROP INDEX t_order;
ALTER TABLE t SET TABLESPACE pg_default;
ALTER INDEX renamed SET TABLESPACE pg_default;
REINDEX (TABLESPACE pg_default) INDEX t_local;
DROP TABLESPACE regress_ttl_space;

-- CREATE SCHEMA with its elements
CREATE SCHEMA ddl3 CREATE TABLE a (ts timestamptz) CREATE INDEX a_ts ON a (ts) WHERE ttl_index.expire_after_seconds(-1);
CREATE SCHEMA ddl3 CREATE TABLE a (ts timestamptz) CREATE INDEX a_ts ON a (ts) WHERE ttl_index.expire_after_seconds(1);
SELECT * FROM marks WHERE relid = 'ddl3.a'::regclass;

-- a unique index, so neither a constraint nor a replica identity, can have it
CREATE UNIQUE INDEX bad ON t (ts) WHERE ttl_index.expire_after_seconds(5);
ALTER TABLE t ADD CONSTRAINT bad UNIQUE USING INDEX renamed;
ALTER TABLE t ALTER ts SET NOT NULL;
ALTER TABLE t REPLICA IDENTITY USING INDEX renamed;
ALTER EVENT TRIGGER ttl_index_ddl DISABLE;
CREATE UNIQUE INDEX slipped ON t (ts) WHERE ttl_index.expire_after_seconds(5);
CREATE INDEX slipped2 ON t (ts, id) WHERE ttl_index.expire_after_seconds(5);
ALTER EVENT TRIGGER ttl_index_ddl ENABLE;
SELECT * FROM marks WHERE relid = 't'::regclass;
-- what slipped through is in nobody's way, and does nothing
ALTER TABLE t ADD COLUMN more int;
CREATE INDEX t_id ON t (id);
INSERT INTO t VALUES (1, '2001-01-01', NULL);
DROP INDEX renamed;
CALL ttl_index.run_pass();
SELECT count(*) FROM t;

-- the extension stays where it is
ALTER EXTENSION ttl_index SET SCHEMA ddl;
DROP FUNCTION ttl_index.expire_after_seconds;
SET client_min_messages = error;
DROP SCHEMA ddl, ddl2, ddl3 CASCADE;
