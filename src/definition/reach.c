/*-------------------------------------------------------------------------
 *
 * reach.c
 *	  Rows that a TTL index does not reach: of other extensions' tables, of
 *	  foreign partitions, and of tables that inherit.
 *
 * Citus and TimescaleDB keep the rows of one table in others, which they move,
 * copy and compress.  A row that is deleted there behind their back can be lost in
 * its newer version, come back, or differ between copies.  Such tables are found
 * by what those extensions write into their catalogs, without linking to them, and
 * without a lock that has to be waited for.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/definition/reach.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "definition/definition.h"
#include "definition/key.h"
#include "ttl_index.h"

/* What is looked for in a column of another extension's catalog. */
typedef struct Wanted
{
	const char *column;
	Oid			type;
	RegProcedure equals;
	Datum		value;
} Wanted;

/*
 * The catalog of another extension, or invalid where that is not installed.  One
 * that anybody else has made says nothing about others' tables.
 */
static Oid
find_catalog(const char *schema, const char *name)
{
	Oid			namespace = get_namespace_oid(schema, true);
	Oid			relid = OidIsValid(namespace) ? get_relname_relid(name, namespace) : InvalidOid;
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	bool		found = false;

	if (HeapTupleIsValid(tuple))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

		found = form->relkind == RELKIND_RELATION &&
			superuser_arg(form->relowner);
		ReleaseSysCache(tuple);
	}
	return found ? relid : InvalidOid;
}

/* The index of a catalog that begins with a column, or invalid. */
static Oid
find_index(Relation rel, AttrNumber attnum)
{
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(rel))
	{
		AttrNumber	key;
		Node	   *expression;

		if (ttl_state_is_usable(lfirst_oid(lc)) &&
			ttl_key_read(lfirst_oid(lc), &key, &expression) && key == attnum)
			return lfirst_oid(lc);
	}
	return InvalidOid;
}

/*
 * Is there a row with these values in an open catalog?  *value is that of one more
 * column of it, an OID, where there is a name for that.  A catalog of another
 * layout than the one that is known has every row: rather too few rows go.
 */
static bool
find_in(Relation rel, const Wanted *wanted, int count, const char *other, Oid *value)
{
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		found;
	bool		isnull;
	AttrNumber	attnum = other ? get_attnum(RelationGetRelid(rel), other) : 0;
	Oid			index = InvalidOid;

	Assert(count <= lengthof(keys));
	if (other != NULL && attnum <= 0)
		return true;
	for (int i = 0; i < count; i++)
	{
		AttrNumber	column = get_attnum(RelationGetRelid(rel), wanted[i].column);

		if (column <= 0 ||
			get_atttype(RelationGetRelid(rel), column) != wanted[i].type)
			return true;
		ScanKeyInit(&keys[i], column, BTEqualStrategyNumber, wanted[i].equals,
					wanted[i].value);
	}
	if (count == 1)
		index = find_index(rel, keys[0].sk_attno);
	scan = systable_beginscan(rel, index, OidIsValid(index), NULL, count, keys);
	tuple = systable_getnext(scan);
	found = HeapTupleIsValid(tuple);
	if (found && other != NULL)
		*value = DatumGetObjectId(heap_getattr(tuple, attnum,
											   RelationGetDescr(rel), &isnull));
	systable_endscan(scan);
	return found;
}

/*
 * The same for a catalog that may not be there.  One that is locked, because its
 * extension is being updated, has every row as well.
 */
static bool
find_row(const char *schema, const char *name, const Wanted *wanted, int count,
		 const char *other, Oid *value)
{
	Oid			relid = find_catalog(schema, name);
	Relation	rel;
	bool		found = false;

	if (!OidIsValid(relid))
		return false;
	if (!ConditionalLockRelationOid(relid, AccessShareLock))
		return true;
	rel = try_table_open(relid, NoLock);
	if (rel != NULL)
	{
		found = find_in(rel, wanted, count, other, value);
		table_close(rel, NoLock);
	}
	UnlockRelationOid(relid, AccessShareLock);
	return found;
}

/*
 * Is this a shard of a table of Citus?  It is called like that table, with the
 * number of the shard behind it; a long name is cut.
 */
static bool
is_shard(Oid relid)
{
	const char *name = get_rel_name(relid);
	const char *suffix = name ? strrchr(name, '_') : NULL;
	Wanted		wanted = {"shardid", INT8OID, F_INT8EQ};
	Oid			table = InvalidOid;
	char	   *whole;

	if (suffix == NULL || strspn(suffix + 1, "0123456789") != strlen(suffix + 1) ||
		suffix[1] == '\0' || strlen(suffix) > 19)
		return false;
	wanted.value = Int64GetDatum(strtoi64(suffix + 1, NULL, 10));
	if (!find_row("pg_catalog", "pg_dist_shard", &wanted, 1, "logicalrelid", &table))
		return false;
	whole = get_rel_name(table);
	if (whole == NULL)
		return true;
	whole = psprintf("%s%s", whole, suffix);
	return get_rel_namespace(table) == get_rel_namespace(relid) &&
		(strlen(whole) >= NAMEDATALEN || strcmp(name, whole) == 0);
}

/* Is this a table of Citus, of any kind, or a shard of one? */
static bool
is_distributed(Oid relid)
{
	Wanted		wanted = {"logicalrelid", REGCLASSOID, F_OIDEQ, ObjectIdGetDatum(relid)};

	return find_row("pg_catalog", "pg_dist_partition", &wanted, 1, NULL, NULL) ||
		is_shard(relid);
}

static bool
is_hypertable(Oid relid)
{
	NameData	schema;
	NameData	name;
	Wanted		wanted[2] = {
		{"schema_name", NAMEOID, F_NAMEEQ, NameGetDatum(&schema)},
		{"table_name", NAMEOID, F_NAMEEQ, NameGetDatum(&name)}
	};
	const char *relname = get_rel_name(relid);
	const char *nspname = get_namespace_name(get_rel_namespace(relid));

	if (relname == NULL || nspname == NULL)
		return false;
	namestrcpy(&schema, nspname);
	namestrcpy(&name, relname);
	return find_row("_timescaledb_catalog", "hypertable", wanted, 2, NULL, NULL);
}

/*
 * The table that another one inherits from or is a partition of, the first where
 * there are more, and whether that partition is being detached; invalid for none.
 */
Oid
ttl_reach_inherits_from(Oid relid, bool *detaching)
{
	Relation	rel = table_open(InheritsRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			parent = InvalidOid;

	ScanKeyInit(&key, Anum_pg_inherits_inhrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, InheritsRelidSeqnoIndexId, true, NULL, 1,
							  &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		Form_pg_inherits form = (Form_pg_inherits) GETSTRUCT(tuple);

		parent = form->inhparent;
		*detaching = form->inhdetachpending;
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return parent;
}

/* Is TimescaleDB in this database? */
bool
ttl_reach_has_hypertables(void)
{
	return OidIsValid(find_catalog("_timescaledb_catalog", "hypertable"));
}

/* Is the table another extension's to delete from?  A chunk inherits. */
TtlState
ttl_reach_state(Oid relid)
{
	Oid			parent;
	bool		detaching;

	if (is_distributed(relid))
		return TTL_DISTRIBUTED_TABLE;
	if (!ttl_reach_has_hypertables())
		return TTL_ACTIVE;
	parent = ttl_reach_inherits_from(relid, &detaching);
	if (is_hypertable(relid) || (OidIsValid(parent) && is_hypertable(parent)))
		return TTL_HYPERTABLE;
	return TTL_ACTIVE;
}

/* The foreign tables below a partitioned table. */
static List *
foreign_partitions(Oid relid)
{
	List	   *foreign = NIL;
	ListCell   *lc;

	foreach(lc, ttl_inherit_tree(relid))
	{
		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_FOREIGN_TABLE)
			foreign = lappend_oid(foreign, lfirst_oid(lc));
	}
	return foreign;
}

/*
 * What a TTL index leaves out of its table, for a message; NULL where it reaches
 * all that a query of the table does.
 */
char *
ttl_reach_left_out(const TtlIndex *index)
{
	bool		partitioned = index->relkind == RELKIND_PARTITIONED_INDEX;
	List	   *tables;
	char	   *name;

	if (index->governor != index->indexrelid)
		return NULL;
	tables = partitioned ? foreign_partitions(index->relid) :
		ttl_inherit_children(index->relid, false);
	if (tables == NIL || (name = get_rel_name(linitial_oid(tables))) == NULL)
		return NULL;
	if (list_length(tables) > 1)
		name = psprintf("\"%s\" and %d more", name, list_length(tables) - 1);
	else
		name = psprintf("\"%s\"", name);
	return psprintf(partitioned ? "leaves out the rows of foreign partitions: %s" :
					"leaves out the rows of tables that inherit: %s", name);
}

/* Tells the client what a new TTL index does not reach. */
void
ttl_reach_report_left_out(Oid indexrelid)
{
	TtlIndex	index;
	char	   *left_out;

	/* most tables have nothing below them */
	if (ttl_inherit_children(IndexGetRelation(indexrelid, true), false) == NIL ||
		!ttl_catalog_describe(indexrelid, true, &index) ||
		!index.option.present || index.state != TTL_ACTIVE ||
		(left_out = ttl_reach_left_out(&index)) == NULL)
		return;
	ereport(NOTICE,
			(errmsg("TTL index \"%s\" %s", get_rel_name(indexrelid), left_out),
			 index.relkind == RELKIND_PARTITIONED_INDEX ?
			 errhint("Let their rows expire where they are stored.") :
			 errhint("Create a TTL index on each of these tables.")));
}
