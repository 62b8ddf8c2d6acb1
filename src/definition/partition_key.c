/*-------------------------------------------------------------------------
 *
 * partition_key.c
 *	  May a TTL index drop and make the partitions of its table?
 *
 * It may if the table is partitioned by RANGE of the key alone: then the bounds of a
 * partition say when all of its rows are due.  A filter would keep some of them.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/definition/partition_key.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/index.h"
#include "catalog/partition.h"
#include "catalog/pg_am.h"
#include "catalog/pg_partitioned_table.h"
#include "commands/defrem.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "ttl_index.h"

/*
 * Is a table partitioned by RANGE of this column alone, in the order of its
 * type?
 */
static bool
is_partitioned_by(Oid relid, AttrNumber attnum, Oid keytype)
{
	HeapTuple	tuple = SearchSysCache1(PARTRELID, ObjectIdGetDatum(relid));
	Form_pg_partitioned_table form;
	Datum		classes;
	bool		isnull;
	Oid			opclass;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_partitioned_table) GETSTRUCT(tuple);
	classes = SysCacheGetAttr(PARTRELID, tuple,
							  Anum_pg_partitioned_table_partclass, &isnull);
	opclass = ((oidvector *) DatumGetPointer(classes))->values[0];
	result = form->partstrat == PARTITION_STRATEGY_RANGE &&
		form->partnatts == 1 && form->partattrs.values[0] == attnum &&
		opclass == GetDefaultOpClass(keytype, BTREE_AM_OID);
	ReleaseSysCache(tuple);
	return result;
}

/* Can an index on this column drop and make the partitions of the table? */
TtlState
ttl_partition_key_possible(Oid relid, AttrNumber attnum, Oid keytype, bool filtered)
{
	if (attnum == 0 || !is_partitioned_by(relid, attnum, keytype))
		return TTL_NOT_PARTITIONED_BY_KEY;
	return filtered ? TTL_FILTERED_BUCKETS : TTL_ACTIVE;
}

/* Do the options about partitions, if there are any, suit the index? */
TtlState
ttl_partition_key_state(const TtlIndex *index)
{
	const TtlOption *option = &index->option;
	AttrNumber	attnum;
	Node	   *expression;

	if (!option->present ||
		(!option->drop_partitions && option->bucket_seconds == 0))
		return TTL_ACTIVE;
	if (!ttl_key_read(index->governor, &attnum, &expression))
		return TTL_NOT_PARTITIONED_BY_KEY;
	return ttl_partition_key_possible(IndexGetRelation(index->governor, false),
									  attnum, index->keytype,
									  option->filter != NIL);
}

/* Has a partitioned table a key with an expression, which can call functions? */
static bool
has_expression(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(PARTRELID, ObjectIdGetDatum(relid));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	result = !heap_attisnull(tuple, Anum_pg_partitioned_table_partexprs, NULL);
	ReleaseSysCache(tuple);
	return result;
}

static List *
tables_above(Oid relid)
{
	return get_rel_relispartition(relid) ? get_partition_ancestors(relid) : NIL;
}

/*
 * Locks all tables of which a locked one is a partition, without waiting, so that their owners
 * neither get another one nor attach them to one.  False where somebody else has locked one.
 */
bool
ttl_partition_key_lock_above(Oid relid)
{
	List	   *locked = NIL;

	/* what was put above meanwhile is locked, too */
	while (list_length(locked) < list_length(tables_above(relid)))
	{
		ListCell   *lc;

		locked = tables_above(relid);
		foreach(lc, locked)
		{
			if (!ConditionalLockRelationOid(lfirst_oid(lc), AccessShareLock))
				return false;
		}
	}
	return true;
}

/*
 * A table above this one whose partition key can call functions, and whose owner has not the
 * privileges of a role: where core computes for that role what belongs into a partition, it
 * computes the keys of all tables above.  Invalid where there is none.
 */
Oid
ttl_partition_key_of_stranger(Oid relid, Oid owner)
{
	ListCell   *lc;

	foreach(lc, tables_above(relid))
	{
		if (has_expression(lfirst_oid(lc)) &&
			!has_privs_of_role(ttl_owner_of(lfirst_oid(lc)), owner))
			return lfirst_oid(lc);
	}
	return InvalidOid;
}
