/*-------------------------------------------------------------------------
 *
 * reach.c
 *	  Rows that a TTL index must not or cannot delete.
 *
 * TimescaleDB keeps the rows of one table in others, which it compresses and copies.  A row
 * deleted there could come back, or be lost in its newer version.  pg_repack fills a copy of a
 * table, which is found by its name.  A TTL index does not reach the rows of foreign
 * partitions and of tables that inherit.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "utils/lsyscache.h"

#include "state/state.h"
#include "ttl_index.h"

/* Is this a hypertable of TimescaleDB, or a chunk of one, which inherits from it? */
bool
ttl_reach_is_hypertable(Oid relid)
{
	return ttl_select_has_catalog("_timescaledb_catalog", "hypertable") &&
		ttl_select_value(psprintf("SELECT 1 FROM _timescaledb_catalog.hypertable AS h "
								  "JOIN pg_class AS c ON c.relname = h.table_name "
								  "JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = h.schema_name "
								  "WHERE c.oid IN (%u, %u)",
								  relid, ttl_inherit_parent(relid, NULL))) != NULL;
}

/*
 * Is this the copy that pg_repack fills and then swaps in?  Its rows are updated from a log.
 * A row deleted from the copy alone would miss an update to a later date, and would be
 * archived twice.  The log exists as long as the copy.
 */
bool
ttl_reach_is_repack_copy(Oid relid)
{
	Oid			schema = get_rel_namespace(relid);
	const char *nspname = get_namespace_name(schema);
	const char *relname = get_rel_name(relid);
	const char *number;

	if (nspname == NULL || strcmp(nspname, "repack") != 0 ||
		relname == NULL || strncmp(relname, "table_", strlen("table_")) != 0)
		return false;
	number = relname + strlen("table_");
	return OidIsValid(get_relname_relid(psprintf("log_%s", number), schema));
}

/* What a TTL index does not reach, for the view; NULL if it reaches all rows. */
char *
ttl_reach_left_out(const TtlIndex *index)
{
	bool		partitioned = index->relkind == RELKIND_PARTITIONED_INDEX;
	List	   *tables;
	char	   *name;

	if (index->governor != index->indexrelid)
		return NULL;
	tables = partitioned ? ttl_inherit_foreign_tables(index->relid) :
		ttl_inherit_children(index->relid);
	if (tables == NIL || (name = get_rel_name(linitial_oid(tables))) == NULL)
		return NULL;
	return psprintf("leaves out the rows of %s: \"%s\"%s",
					partitioned ? "foreign partitions" : "tables that inherit", name,
					list_length(tables) == 1 ? "" :
					psprintf(" and %d more", list_length(tables) - 1));
}
