-- Tables of Citus: what a table is to it stands in its catalogs.  The stand-in of
-- test/data/citus.sql has them; test/citus has the tests of the real one.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
\getenv abs_srcdir PG_ABS_SRCDIR
\set stand_in :abs_srcdir '/data/citus.sql'
\set stand_in_gone :abs_srcdir '/data/citus_gone.sql'
\i :stand_in
CREATE SCHEMA citus_a;
CREATE SCHEMA citus_b;
SET search_path = citus_a;
SELECT ttl_index.stats_reset();

-- A table with one due row, and a TTL index as on a shell or shard: n is the number behind both names.
CREATE FUNCTION make(relation text, n text DEFAULT '', seconds int DEFAULT 1) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TABLE %s%s (id int, ts timestamptz)', relation, n);
	EXECUTE format('INSERT INTO %s%s VALUES (1, ''2001-01-01'')', relation, n);
	EXECUTE format('CREATE INDEX %s%s ON %s%s (ts) WHERE ttl_index.expire_after_seconds(%s)',
		replace(regexp_replace(relation, '.*\.', ''), 'of_a_table', 'ttl'), '_ttl' || n, relation, n, seconds);
END $$;
CREATE VIEW marks AS SELECT relid, state FROM ttl_index.indexes ORDER BY relid::text COLLATE "C";
-- how many rows each table has: this node's look at them all
CREATE FUNCTION rows() RETURNS TABLE (relid regclass, rows bigint) LANGUAGE plpgsql AS $$
DECLARE t regclass;
BEGIN
	FOR t IN SELECT m.relid FROM marks AS m LOOP
		RETURN QUERY EXECUTE format('SELECT %L::regclass, count(*) FROM %s', t, t);
	END LOOP;
END $$;

-- Citus makes shards before they stand in its catalogs
SET session_replication_role = replica;
SELECT make('dist'), make('dist', '_102008'), make('dist', '_102009'), make('dist', '_102010'), make('dist', '_102011', 2), make('dist', '_102099');
SELECT make('twice'), make('twice', '_102014');
SELECT make('ref'), make('ref', '_102012');
-- these have names like shards, and are none
SELECT make('other', '_102008'), make('citus_b.dist', '_102008'), make('dist', '_2024'), make('plain', '_102030'), make('plain');
-- the name of this shard is cut, with a hash of it before the number
SELECT make('long_name_of_a_table_that_leaves_no_room_for_the_number_of_a_');
SELECT shard_name('long_name_of_a_table_that_leaves_no_room_for_the_number_of_a_', 102013, false) AS cut \gset
SELECT make(:'cut'), make('long_name_of_a_table_that_leaves_no_room_for__0a1b2c3d', '_102013');
SELECT shard_name('long_name_of_a_table_that_leaves_no_room_for_the_number_of_a_', 102098, false) AS unknown \gset
SELECT make(:'unknown');
-- so is that of its index
SELECT parse_ident(shard_name('long_name_ttl_that_leaves_no_room_for_the_number_of_a__ttl', 102013, false)) AS name \gset
SELECT format('ALTER INDEX %s RENAME TO %I', indexrelid::regclass, (:'name'::text[])[2]) FROM pg_index WHERE indrelid = :'cut'::regclass \gexec
RESET session_replication_role;
INSERT INTO pg_dist_local_group VALUES (1);
INSERT INTO pg_dist_node (groupid) VALUES (0), (1), (2);
INSERT INTO pg_dist_partition VALUES ('dist', 'h', 's'), ('twice', 'h', 'c'), ('ref', 'n', 't'),
	('long_name_of_a_table_that_leaves_no_room_for_the_number_of_a_', 'h', 'c');
INSERT INTO pg_dist_shard VALUES ('dist', 102008), ('dist', 102009), ('dist', 102010), ('dist', 102011), ('twice', 102014), ('ref', 102012),
	('long_name_of_a_table_that_leaves_no_room_for_the_number_of_a_', 102013);
INSERT INTO pg_dist_placement (shardid, groupid) VALUES (102008, 1), (102009, 2), (102010, 1), (102011, 1), (102014, 1), (102014, 2), (102012, 1), (102013, 1);
-- a placement that is about to go
INSERT INTO pg_dist_placement (shardid, groupid, shardstate) VALUES (102010, 2, 4);
SELECT * FROM marks;
-- nothing of it is found by the search_path
SET search_path = pg_catalog;
SELECT relid, state FROM citus_a.marks WHERE relid::text ~ '\mdist' ORDER BY 1;
SET search_path = citus_a;
-- who may not look into the schema sees the same
CREATE ROLE regress_ttl_looker;
GRANT USAGE ON SCHEMA citus_a TO regress_ttl_looker;
GRANT SELECT ON marks TO regress_ttl_looker;
SET ROLE regress_ttl_looker;
SELECT state, count(*) FROM marks GROUP BY state ORDER BY state;
RESET ROLE;
CALL ttl_index.run_pass();
SELECT * FROM rows() WHERE rows = 0;
SELECT errors FROM ttl_index.stats;
-- the shard that had another option than its table
SELECT reason FROM ttl_index.indexes WHERE state = 'option_differs';
DROP INDEX dist_ttl_102011;
CREATE INDEX dist_ttl_102011 ON dist_102011 (ts) WHERE ttl_index.expire_after_seconds(1);
CALL ttl_index.run_pass();
SELECT rows FROM rows() WHERE relid = 'dist_102011'::regclass;

-- what Citus changes holds at the next look
BEGIN;
UPDATE pg_dist_placement SET groupid = 1 WHERE shardid = 102009;
UPDATE pg_dist_placement SET groupid = 2 WHERE shardid = 102008;
SELECT * FROM marks WHERE relid::text IN ('dist_102008', 'dist_102009');
ROLLBACK;
BEGIN;
DELETE FROM pg_dist_placement WHERE shardid = 102008;
SELECT * FROM marks WHERE relid::text = 'dist_102008';
ROLLBACK;
BEGIN;
DELETE FROM pg_dist_local_group;
SELECT * FROM marks WHERE relid::text = 'dist_102008';
ROLLBACK;
-- a node that is told nothing of its cluster has shards alone
BEGIN;
DELETE FROM pg_dist_partition;
DELETE FROM pg_dist_shard;
DELETE FROM pg_dist_placement;
DELETE FROM pg_dist_node;
SELECT * FROM marks;
ROLLBACK;
-- a catalog of another shape than the one that is known: nothing is certain
BEGIN;
SET LOCAL allow_system_table_mods = on;
ALTER TABLE pg_dist_partition ALTER logicalrelid TYPE oid;
SELECT DISTINCT state FROM marks;
ROLLBACK;
BEGIN;
SET LOCAL allow_system_table_mods = on;
ALTER TABLE pg_dist_placement RENAME shardstate TO state;
SELECT DISTINCT state FROM marks WHERE relid::text = 'dist_102008';
ROLLBACK;
-- indexes that do not lead to all rows are left alone
BEGIN;
SET LOCAL allow_system_table_mods = on;
ALTER TABLE pg_dist_shard DROP CONSTRAINT pg_dist_shard_pkey;
CREATE INDEX ON pg_dist_shard USING hash (shardid);
CREATE INDEX ON pg_dist_shard (shardid) WHERE shardid < 0;
SELECT * FROM marks WHERE relid::text IN ('dist_102008', 'dist_102009');
ROLLBACK;
-- the catalogs count, whoever owns them
BEGIN;
SET LOCAL allow_system_table_mods = on;
ALTER TABLE pg_dist_partition OWNER TO regress_ttl_looker;
ALTER TABLE pg_dist_shard OWNER TO regress_ttl_looker;
SELECT * FROM marks WHERE relid::text IN ('dist_102008', 'dist_102009');
ROLLBACK;

-- DDL and functions refuse a table that has copies, but not what Citus makes of it
CREATE INDEX ON ref (ts) WHERE ttl_index.expire_after_seconds(1);
SELECT ttl_index.create_index('twice', 'ts', 1);
CREATE INDEX ON ref_102012 (ts) WHERE ttl_index.expire_after_seconds(1);
DROP INDEX ref_102012_ts_idx;
-- what is written to a table of Citus itself, and not by Citus, is lost
CREATE TABLE archive (id int, ts timestamptz);
CREATE INDEX dist_archived ON dist (ts) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.archive_to('archive');
CREATE INDEX plain_archived ON plain (ts) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.archive_to('dist');

-- the partitions of a table of Citus are dropped and made at the coordinator, those of shards nowhere else
SELECT ttl_index.stats_reset();
CREATE TABLE series (at timestamptz NOT NULL) PARTITION BY RANGE (at);
CREATE TABLE series_102040 (at timestamptz NOT NULL) PARTITION BY RANGE (at);
CREATE INDEX series_ttl ON series (at) WHERE ttl_index.expire_after_seconds(1) AND
	ttl_index.drop_expired_partitions() AND ttl_index.bucket_max_span_seconds(86400);
CREATE INDEX series_ttl_102040 ON series_102040 (at) WHERE ttl_index.expire_after_seconds(1) AND
	ttl_index.drop_expired_partitions() AND ttl_index.bucket_max_span_seconds(86400);
CREATE TABLE series_old PARTITION OF series FOR VALUES FROM ('2001-01-01') TO ('2001-01-02');
CREATE TABLE series_old_102041 PARTITION OF series_102040 FOR VALUES FROM ('2001-01-01') TO ('2001-01-02');
INSERT INTO pg_dist_partition VALUES ('series', 'h', 's'), ('series_old', 'h', 's');
INSERT INTO pg_dist_shard VALUES ('series', 102040), ('series_old', 102041);
INSERT INTO pg_dist_placement (shardid, groupid) VALUES (102040, 1), (102041, 1);
SELECT relid, state FROM marks WHERE relid::text ~ '^series';
CALL ttl_index.run_pass();
SELECT inhparent::regclass, count(*) FROM pg_inherits WHERE inhparent IN ('series'::regclass, 'series_102040'::regclass) GROUP BY 1;
SELECT errors, deleted_buckets FROM ttl_index.stats;
DROP TABLE series, series_102040;
\i :stand_in_gone
SELECT DISTINCT state FROM marks;
CALL ttl_index.run_pass();
SELECT sum(rows) FROM rows();
DROP SCHEMA citus_a, citus_b CASCADE;
DROP ROLE regress_ttl_looker;
