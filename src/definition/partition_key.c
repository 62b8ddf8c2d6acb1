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
#include "catalog/pg_am.h"
#include "catalog/pg_partitioned_table.h"
#include "commands/defrem.h"
#include "nodes/parsenodes.h"
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
