-- Rows that no TTL index reaches: of tables of TimescaleDB, which this test knows by a
-- catalog of the same shape, and of foreign partitions and children.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA reach;
SET search_path = reach;
CREATE TABLE local (id int, ts timestamptz);
CREATE TABLE parted (id int, ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE parted_rest PARTITION OF parted DEFAULT;
CREATE TABLE hyper (id int, ts timestamptz);
CREATE TABLE chunk_1 () INHERITS (hyper);
CREATE INDEX local_ttl ON local (ts) WHERE ttl_index.expire_after_seconds(1);
CREATE INDEX parted_ttl ON parted (ts) WHERE ttl_index.expire_after_seconds(1);
CREATE INDEX hyper_ttl ON hyper (ts) WHERE ttl_index.expire_after_seconds(1);
CREATE INDEX chunk_ttl ON chunk_1 (ts) WHERE ttl_index.expire_after_seconds(1);
INSERT INTO local VALUES (1, '2001-01-01');
INSERT INTO parted VALUES (1, '2001-01-01');
INSERT INTO hyper VALUES (1, '2001-01-01');
INSERT INTO chunk_1 VALUES (1, '2001-01-01');
CREATE VIEW marks AS SELECT indexrelid, state, reason FROM ttl_index.indexes ORDER BY indexrelid::text COLLATE "C";
CREATE VIEW rows AS SELECT (SELECT count(*) FROM local) AS local, (SELECT count(*) FROM parted) AS parted,
	(SELECT count(*) FROM ONLY hyper) AS hyper, (SELECT count(*) FROM chunk_1) AS chunk;
-- what anybody can make says nothing
CREATE ROLE regress_ttl_anybody;
CREATE SCHEMA _timescaledb_catalog;
CREATE TABLE _timescaledb_catalog.hypertable (id int, schema_name name, table_name name);
INSERT INTO _timescaledb_catalog.hypertable VALUES (1, 'reach', 'hyper');
ALTER TABLE _timescaledb_catalog.hypertable OWNER TO regress_ttl_anybody;
SELECT * FROM marks WHERE state <> 'active';
-- what the extension has does
ALTER TABLE _timescaledb_catalog.hypertable OWNER TO CURRENT_USER;
SELECT * FROM marks;
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT * FROM rows;
SELECT deleted_documents, errors FROM ttl_index.stats;
-- DDL and functions refuse them
CREATE INDEX ON hyper (ts) WHERE ttl_index.expire_after_seconds(1);
CREATE INDEX ON chunk_1 (ts) WHERE ttl_index.expire_after_seconds(1);
SELECT ttl_index.create_index_command('hyper', 'ts', 1);
SELECT ttl_index.coll_mod_index('chunk_ttl', 2);
SELECT ttl_index.due_count('hyper_ttl');
-- the way out
SELECT ttl_index.remove_ttl('hyper_ttl');
DROP SCHEMA _timescaledb_catalog CASCADE;
CALL ttl_index.run_pass();
SELECT * FROM rows;
DROP TABLE local, parted, hyper CASCADE;
DROP ROLE regress_ttl_anybody;

-- what an index leaves out is shown
CREATE FOREIGN DATA WRAPPER ttl_nowhere;
CREATE SERVER ttl_nowhere FOREIGN DATA WRAPPER ttl_nowhere;
CREATE TABLE parent (id int, ts timestamptz);
CREATE TABLE child () INHERITS (parent);
CREATE TABLE parted (id int, ts timestamptz) PARTITION BY LIST (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2) PARTITION BY RANGE (ts);
CREATE FOREIGN TABLE parted_2_rest PARTITION OF parted_2 DEFAULT SERVER ttl_nowhere;
CREATE FOREIGN TABLE parted_rest PARTITION OF parted DEFAULT SERVER ttl_nowhere;
SET client_min_messages = notice;
CREATE INDEX parent_ttl ON parent (ts) WHERE ttl_index.expire_after_seconds(1);
CREATE INDEX child_ttl ON child (ts) WHERE ttl_index.expire_after_seconds(1);
SELECT ttl_index.create_index('parted', 'ts', 1);
CREATE INDEX plain ON parent (id, ts);
CREATE INDEX plain_ts ON parent (ts) WHERE id = 1;
SELECT ttl_index.coll_mod_index('plain_ts', 1);
SELECT ttl_index.coll_mod_index('plain_ts', 2);
SET client_min_messages = warning;
SELECT * FROM marks;
DROP FOREIGN TABLE parted_2_rest, parted_rest;
DROP TABLE child;
SELECT * FROM marks WHERE reason IS NOT NULL;
DROP SERVER ttl_nowhere;
DROP FOREIGN DATA WRAPPER ttl_nowhere;

-- pg_repack fills a copy of a table, with the same indexes, and brings it up to date from a log;
-- a row that the TTL took out of it would miss its next update
CREATE SCHEMA repack;
CREATE TABLE repack.table_42 (ts timestamptz);
CREATE TABLE repack.log_42 (id bigint);
INSERT INTO repack.table_42 VALUES ('2001-01-01');
CREATE INDEX index_43 ON repack.table_42 (ts) WHERE ttl_index.expire_after_seconds(1);
CALL ttl_index.run_pass();
SELECT count(*) FROM repack.table_42;
SELECT indexrelid, state, reason FROM ttl_index.indexes WHERE relid = 'repack.table_42'::regclass;
-- other tables of that schema are as any other
CREATE TABLE repack.table_42b (ts timestamptz);
CREATE TABLE repack.table_44 (ts timestamptz);
INSERT INTO repack.table_42b VALUES ('2001-01-01');
INSERT INTO repack.table_44 VALUES ('2001-01-01');
CREATE INDEX ON repack.table_42b (ts) WHERE ttl_index.expire_after_seconds(1);
CREATE INDEX ON repack.table_44 (ts) WHERE ttl_index.expire_after_seconds(1);
CALL ttl_index.run_pass();
SELECT (SELECT count(*) FROM repack.table_42b), (SELECT count(*) FROM repack.table_44);
DROP SCHEMA repack CASCADE;
DROP SCHEMA reach CASCADE;
