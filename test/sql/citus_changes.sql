-- Changes of the option of a table of Citus, and what is shown of one.  Citus carries a
-- change to other nodes and shards, which the stand-in does not: test/citus has that.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
\getenv abs_srcdir PG_ABS_SRCDIR
\set stand_in :abs_srcdir '/data/citus.sql'
\set stand_in_gone :abs_srcdir '/data/citus_gone.sql'
\i :stand_in
CREATE SCHEMA citus_c;
SET search_path = citus_c;
-- Citus makes shards before they stand in its catalogs
SET session_replication_role = replica;
CREATE TABLE dist (id int, ts timestamptz);
CREATE INDEX dist_ttl ON dist (ts) WHERE ttl_index.expire_after_seconds(1);
CREATE TABLE dist_102008 (id int, ts timestamptz);
CREATE INDEX dist_ttl_102008 ON dist_102008 (ts) WHERE ttl_index.expire_after_seconds(1);
CREATE TABLE plain (id int, ts timestamptz);
CREATE INDEX plain_ttl ON plain (ts) WHERE ttl_index.expire_after_seconds(1);
RESET session_replication_role;
INSERT INTO pg_dist_local_group VALUES (0);
INSERT INTO pg_dist_node (groupid) VALUES (0), (1);
INSERT INTO pg_dist_partition VALUES ('dist', 'h', 's');
INSERT INTO pg_dist_shard VALUES ('dist', 102008);
INSERT INTO pg_dist_placement (shardid, groupid) VALUES (102008, 0);
CREATE VIEW predicates AS
SELECT indexrelid::regclass AS index, pg_get_expr(indpred, indrelid) AS predicate, indnkeyatts AS keys
FROM pg_index WHERE indrelid::regclass::text IN ('dist', 'dist_102008', 'plain') ORDER BY 1;

-- a shell: what Citus carries is a command for the shell alone
SELECT ttl_index.pause_index('dist_ttl');
TABLE predicates;
SELECT ttl_index.unpause_index('dist_ttl');
-- a session that carries nothing
SET citus.enable_ddl_propagation = off;
SELECT ttl_index.pause_index('dist_ttl');
SET citus.enable_ddl_propagation = on;
SELECT ttl_index.pause_index('dist_ttl');
-- a shard is not changed by itself
SELECT ttl_index.pause_index('dist_ttl_102008');
SELECT ttl_index.remove_ttl('dist_ttl_102008');
-- but by the command that Citus runs there
ALTER INDEX dist_ttl_102008 SET (ttl_index.option = 'ttl_index.expire_after_seconds(1) AND ttl_index.paused()');
TABLE predicates;
SELECT reloptions FROM pg_class WHERE relname = 'dist_ttl_102008';
ALTER INDEX dist_ttl_102008 SET (ttl_index.option = 'ttl_index.expire_after_seconds(7)');
ALTER INDEX dist_ttl_102008 SET (ttl_index.option = 'ttl_index.expire_after_seconds(-2)');
ALTER INDEX dist_ttl_102008 SET (ttl_index.no_such = 1);
ALTER INDEX dist_ttl_102008 SET (ttl_index.option = 'many');
ALTER INDEX dist_ttl_102008 SET (ttl_index.option = 'ttl_index.paused()');
ALTER INDEX dist_ttl_102008 SET (ttl_index.option = 'id > 1 AND ttl_index.expire_after_seconds(7)');
ALTER INDEX dist_ttl_102008 SET (ttl_index.option = 'ttl_index.expire_after_seconds(7)', fillfactor = 80);
ALTER INDEX dist_ttl_102008 SET (fillfactor = 80);
ALTER INDEX IF EXISTS no_such SET (ttl_index.option = 'ttl_index.expire_after_seconds(7)');
-- nor does it make of an index what no other way does
CREATE INDEX dist_hash ON dist USING hash (id);
ALTER INDEX dist_hash SET (ttl_index.option = 'ttl_index.expire_after_seconds(7)');
ALTER INDEX dist_ttl SET (ttl_index.option = 'ttl_index.expire_after_seconds(7) AND ttl_index.bucket_max_span_seconds(-5)');
ALTER INDEX dist_ttl SET (ttl_index.option = 'ttl_index.expire_after_seconds(7) AND ttl_index.drop_expired_partitions()');
DROP INDEX dist_hash;
-- nobody else's
ALTER INDEX plain_ttl SET (ttl_index.option = 'ttl_index.expire_after_seconds(7)');
CREATE ROLE regress_ttl_citizen;
GRANT USAGE ON SCHEMA citus_c TO regress_ttl_citizen;
SET ROLE regress_ttl_citizen;
ALTER INDEX dist_ttl SET (ttl_index.option = 'ttl_index.expire_after_seconds(7)');
ALTER INDEX dist_ttl_102008 SET (ttl_index.option = 'ttl_index.expire_after_seconds(7)');
RESET ROLE;
-- without the event trigger a node refuses
ALTER EVENT TRIGGER ttl_index_before_alter_index DISABLE;
SELECT ttl_index.unpause_index('dist_ttl');
ALTER EVENT TRIGGER ttl_index_before_alter_index ENABLE;
TABLE predicates;

-- a shard is shown with its table, and its names also where Citus hides them in pg_class
SELECT indexrelid, logical_relid, logical_indexrelid FROM ttl_index.indexes WHERE relid::text ~ 'dist|plain' ORDER BY indexrelid::text;
SELECT schemaname, relname, indexrelname, logical_relid::regclass, logical_indexrelid::regclass
FROM ttl_index.index_stats WHERE schemaname = 'citus_c' ORDER BY 3;
SELECT * FROM ttl_index.relation_name(0);

-- the nodes: this one, and one that is down
CREATE FUNCTION pg_catalog.run_command_on_all_nodes(command text, OUT nodeid int, OUT success boolean, OUT result text)
RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
	nodeid := 1; success := true; EXECUTE command INTO result; RETURN NEXT;
	nodeid := 2; success := false; result := 'failed to connect'; RETURN NEXT;
END $$;
SET allow_system_table_mods = on;
ALTER TABLE pg_dist_node ADD nodename text DEFAULT 'host', ADD nodeport int DEFAULT 5432;
SELECT nodeid, nodename, nodeport, error, passes IS NULL AS nothing, version IS NOT NULL AS version, monitor IS NOT NULL AS monitor
FROM ttl_index.cluster_stats;
SELECT relname, indexrelname, shards, nodes_without_answer, deleted_documents
FROM ttl_index.cluster_index_stats WHERE schemaname = 'citus_c' ORDER BY 1;
-- a database's owner can set the search_path that a node finds
CREATE DOMAIN citus_c.oid AS pg_catalog.oid CHECK (VALUE = 0);
ALTER FUNCTION pg_catalog.run_command_on_all_nodes SET search_path = citus_c, pg_catalog;
SELECT nodeid, error FROM ttl_index.cluster_stats;
SELECT relname, indexrelname, shards FROM ttl_index.cluster_index_stats WHERE schemaname = 'citus_c' ORDER BY 1;
DROP DOMAIN citus_c.oid;


-- the table alone is counted, as its shards go with it
BEGIN;
SELECT count(*) AS expire FROM ttl_index.indexes WHERE parent_indexrelid IS NULL AND logical_relid IS NULL \gset
SELECT ttl_index.remove_all_ttl() = :expire AS all;
TABLE predicates;
ROLLBACK;
DROP FUNCTION pg_catalog.run_command_on_all_nodes;
\i :stand_in_gone
DROP SCHEMA citus_c CASCADE;
DROP ROLE regress_ttl_citizen;
