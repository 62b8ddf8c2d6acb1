-- Stands in for Citus, which is in no Debian: its catalogs, as far as they are read, and
-- its functions that are called.  test/citus has the tests of the real one.
SET allow_system_table_mods = on;
CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass PRIMARY KEY, partmethod "char" NOT NULL, repmodel "char" NOT NULL);
CREATE TABLE pg_catalog.pg_dist_shard (logicalrelid regclass NOT NULL, shardid bigint PRIMARY KEY);
CREATE INDEX ON pg_catalog.pg_dist_shard (logicalrelid);
CREATE TABLE pg_catalog.pg_dist_placement (placementid serial PRIMARY KEY, shardid bigint NOT NULL, shardstate int NOT NULL DEFAULT 1, groupid int NOT NULL);
CREATE INDEX ON pg_catalog.pg_dist_placement (shardid);
CREATE TABLE pg_catalog.pg_dist_local_group (groupid int PRIMARY KEY);
CREATE TABLE pg_catalog.pg_dist_node (nodeid serial PRIMARY KEY, groupid int NOT NULL, isactive bool NOT NULL DEFAULT true, hasmetadata bool NOT NULL DEFAULT true);
GRANT SELECT ON pg_catalog.pg_dist_partition, pg_catalog.pg_dist_shard, pg_catalog.pg_dist_placement, pg_catalog.pg_dist_local_group, pg_catalog.pg_dist_node TO PUBLIC;
RESET allow_system_table_mods;
CREATE FUNCTION pg_catalog.shard_name(object_name regclass, shard_id bigint, skip_qualify_public boolean DEFAULT true)
RETURNS text LANGUAGE sql STABLE STRICT AS $$
	SELECT CASE WHEN nspname = 'public' AND skip_qualify_public THEN '' ELSE quote_ident(nspname) || '.' END ||
		quote_ident(CASE WHEN octet_length(relname) + octet_length(suffix) < 64 THEN relname || suffix
			ELSE left(relname, 53 - octet_length(suffix)) || '_' || left(md5(relname), 8) || suffix END)
	FROM (SELECT relname::text, nspname::text, '_' || shard_id AS suffix
		FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace WHERE c.oid = object_name) AS s $$;
-- shared: for this transaction
CREATE FUNCTION pg_catalog.lock_shard_metadata(lock_mode int, shard_id bigint[])
RETURNS void LANGUAGE plpgsql STRICT AS $$ BEGIN
	PERFORM pg_advisory_xact_lock_shared(id) FROM unnest(shard_id) AS id WHERE lock_mode = 5;
END $$;
-- this is no extension, whose creation enables it
ALTER EVENT TRIGGER ttl_index_before_alter_index ENABLE;
