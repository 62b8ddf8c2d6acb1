/*-------------------------------------------------------------------------
 *
 * bounds.c
 *	  The partitions of a table that is partitioned by the key, and their bounds.
 *
 * The bounds are read from the catalogs, because opening the table or its partition descriptor
 * would run functions of users that the partition key calls.
 *
 * A TTL index may drop and create partitions if the table is partitioned by RANGE of the key
 * alone, because then the bounds of a partition show when all its rows are due.  The index
 * must have no filter, because a filter would exclude some of these rows.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_partitioned_table.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "nodes/parsenodes.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "definition/key.h"
#include "ttl_index.h"

/* Reads one side of a range: a number, or microseconds; false if it is neither. */
static bool
read_side(List *datums, int64 *key)
{
	PartitionRangeDatum *datum = linitial_node(PartitionRangeDatum, datums);
	Const	   *value = (Const *) datum->value;
	Oid			type;
	uint64		rest;

	if (datum->kind != PARTITION_RANGE_DATUM_VALUE)
		return false;
	type = getBaseType(value->consttype);
	if (!OidIsValid(ttl_keytype_opclass(type)))
		return false;
	(void) ttl_keytype_read(type, value->constvalue, key, &rest);
	/* a date can be further from 2000 than any microsecond */
	if (type == DATEOID && pg_mul_s64_overflow(*key, USECS_PER_DAY, key))
		*key = DatumGetDateADT(value->constvalue) < 0 ? PG_INT64_MIN : PG_INT64_MAX;
	return true;
}

/* Reads the bounds of a partition from its row in pg_class. */
void
ttl_bounds_read_one(Oid relid, TtlPartition *partition)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	PartitionBoundSpec *bound;
	Datum		datum;
	bool		isnull;

	memset(partition, 0, sizeof(*partition));
	partition->relid = relid;
	if (!HeapTupleIsValid(tuple))
		return;
	datum = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_relpartbound, &isnull);
	if (!isnull)
	{
		bound = stringToNode(TextDatumGetCString(datum));
		partition->is_default = bound->is_default;
		if (!bound->is_default && bound->strategy == PARTITION_STRATEGY_RANGE)
		{
			partition->has_lower = read_side(bound->lowerdatums, &partition->lower);
			/* infinity is an end that never comes, so it is none */
			partition->has_upper = read_side(bound->upperdatums, &partition->upper) &&
				partition->upper != DT_NOEND;
		}
	}
	ReleaseSysCache(tuple);
}

/* In the order of the bounds, DEFAULT last. */
static int
compare_partitions(const ListCell *a, const ListCell *b)
{
	const TtlPartition *x = lfirst(a);
	const TtlPartition *y = lfirst(b);

	if (x->is_default || y->is_default)
		return x->is_default - y->is_default;
	if (x->has_lower && y->has_lower && x->lower != y->lower)
		return x->lower < y->lower ? -1 : 1;
	if (x->has_lower != y->has_lower)
		return x->has_lower - y->has_lower;
	return x->relid < y->relid ? -1 : x->relid > y->relid;
}

/*
 * The partitions of a table, or those that have a part of an index, sorted by bounds that are
 * dates.  Takes no lock: lock and read again to act.
 */
List *
ttl_bounds_read(Oid whole)
{
	bool		is_index = get_rel_relkind(whole) == RELKIND_PARTITIONED_INDEX;
	List	   *partitions = NIL;
	ListCell   *lc;

	foreach(lc, ttl_inherit_children(whole))
	{
		Oid			part = lfirst_oid(lc);
		TtlPartition *partition = palloc(sizeof(TtlPartition));

		ttl_bounds_read_one(is_index ? IndexGetRelation(part, true) : part, partition);
		if (is_index)
			partition->indexrelid = part;
		partitions = lappend(partitions, partition);
	}
	list_sort(partitions, compare_partitions);
	return partitions;
}

/* Is this column the whole RANGE partition key of the table, in the order of its type? */
bool
ttl_bounds_possible(Oid relid, AttrNumber attnum, Oid keytype)
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
	result = attnum != 0 && form->partstrat == PARTITION_STRATEGY_RANGE &&
		form->partnatts == 1 && form->partattrs.values[0] == attnum &&
		opclass == ttl_keytype_opclass(keytype);
	ReleaseSysCache(tuple);
	return result;
}
