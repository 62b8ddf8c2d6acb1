SET allow_system_table_mods = on;
DROP FUNCTION pg_catalog.shard_name, pg_catalog.lock_shard_metadata;
DROP TABLE pg_catalog.pg_dist_partition, pg_catalog.pg_dist_shard, pg_catalog.pg_dist_placement, pg_catalog.pg_dist_local_group, pg_catalog.pg_dist_node;
RESET allow_system_table_mods;
ALTER EVENT TRIGGER ttl_index_before_alter_index DISABLE;
