/*-------------------------------------------------------------------------
 *
 * bounds.c
 *	  The buckets of a time series: partitions and their bounds.
 *
 * A table that is partitioned by RANGE of the key of a TTL index, and of nothing
 * else, is a time series; its immediate partitions are the buckets, whatever is
 * below them.  A bucket holds keys below its upper bound only.  So all of it is
 * due once a row at that bound would be.
 *
 * A partition without an upper bound, DEFAULT or TO (MAXVALUE), is never wholly
 * due.  Its rows expire one by one.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/bounds.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/index.h"
#include "catalog/partition.h"
#include "catalog/pg_am.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_partitioned_table.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "nodes/parsenodes.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "ttl_index.h"

/* Dates further from 2000 than this are further than any microsecond. */
#define MAX_DAYS (PG_INT64_MAX / USECS_PER_DAY)

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
ttl_buckets_possible(Oid relid, AttrNumber attnum, Oid keytype, bool filtered)
{
	if (attnum == 0 || !is_partitioned_by(relid, attnum, keytype))
		return TTL_NOT_PARTITIONED_BY_KEY;
	return filtered ? TTL_FILTERED_BUCKETS : TTL_ACTIVE;
}

/* Do the options about partitions, if there are any, suit the index? */
TtlState
ttl_buckets_defined(const TtlIndex *index)
{
	const TtlOption *option = &index->option;
	AttrNumber	attnum;
	Node	   *expression;

	if (!option->present ||
		(!option->drop_partitions && option->bucket_seconds == 0))
		return TTL_ACTIVE;
	if (!ttl_index_key(index->governor, &attnum, &expression))
		return TTL_NOT_PARTITIONED_BY_KEY;
	return ttl_buckets_possible(IndexGetRelation(index->governor, false),
								attnum, index->keytype,
								option->filter != NIL);
}

/* A bound of this type in microseconds. */
static int64
bound_key(Oid keytype, Datum datum)
{
	int64		days;

	if (keytype != DATEOID)
		return DatumGetTimestamp(datum);
	days = DatumGetDateADT(datum);
	if (days <= -MAX_DAYS)
		return PG_INT64_MIN;
	return days >= MAX_DAYS ? PG_INT64_MAX : days * USECS_PER_DAY;
}

/* One side of a range: true where it is a date. */
static bool
read_side(List *datums, int64 *key)
{
	PartitionRangeDatum *datum = linitial_node(PartitionRangeDatum, datums);
	Const	   *value = (Const *) datum->value;
	Oid			type;

	if (datum->kind != PARTITION_RANGE_DATUM_VALUE)
		return false;
	type = getBaseType(value->consttype);
	if (!ttl_key_type_ok(type))
		return false;
	*key = bound_key(type, value->constvalue);
	return true;
}

/*
 * Reads the bounds of a partition from its row in pg_class.  A partition
 * descriptor would have them all, and in their order; but the relation cache
 * computes the partition key for it, which can call functions of the owner, and
 * wants the table open.
 */
void
ttl_bucket_read(Oid relid, TtlBucket *bucket)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	PartitionBoundSpec *bound;
	Datum		datum;
	bool		isnull;

	memset(bucket, 0, sizeof(*bucket));
	bucket->relid = relid;
	if (!HeapTupleIsValid(tuple))
		return;
	datum = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_relpartbound, &isnull);
	if (!isnull)
	{
		bound = stringToNode(TextDatumGetCString(datum));
		bucket->is_default = bound->is_default;
		if (!bound->is_default && bound->strategy == PARTITION_STRATEGY_RANGE)
		{
			bucket->has_lower = read_side(bound->lowerdatums, &bucket->lower);
			/* infinity is an end that never comes, so it is none */
			bucket->has_upper = read_side(bound->upperdatums, &bucket->upper) &&
				bucket->upper != DT_NOEND;
		}
	}
	ReleaseSysCache(tuple);
}

/* In the order of the bounds, DEFAULT last. */
static int
compare_buckets(const ListCell *a, const ListCell *b)
{
	const TtlBucket *x = lfirst(a);
	const TtlBucket *y = lfirst(b);

	if (x->is_default || y->is_default)
		return x->is_default - y->is_default;
	if (x->has_lower && y->has_lower && x->lower != y->lower)
		return x->lower < y->lower ? -1 : 1;
	if (x->has_lower != y->has_lower)
		return x->has_lower - y->has_lower;
	return x->relid < y->relid ? -1 : x->relid > y->relid;
}

/*
 * The partitions of a table, in the order of their bounds where these are dates.
 * Takes no lock: whoever acts on what it read takes one and reads again.
 */
List *
ttl_buckets_read(Oid relid)
{
	List	   *buckets = NIL;
	ListCell   *lc;

	foreach(lc, find_inheritance_children(relid, NoLock))
	{
		TtlBucket  *bucket = palloc(sizeof(TtlBucket));

		ttl_bucket_read(lfirst_oid(lc), bucket);
		buckets = lappend(buckets, bucket);
	}
	list_sort(buckets, compare_buckets);
	return buckets;
}

/*
 * Has the upper bound come to the cutoff?  Near a change of the zone's offset
 * the instants of keys are not in their order: there a bucket waits until all of
 * them are due.
 */
bool
ttl_bucket_due(const TtlBucket *bucket, const TtlCutoff *cutoff)
{
	int64		sure = cutoff->sure;

	if (cutoff->keytype == DATEOID)
		sure *= USECS_PER_DAY;
	return bucket->has_upper && bucket->upper <= sure;
}

/* Do the rows of a bucket expire one by one? */
bool
ttl_bucket_by_row(const TtlBucket *bucket, const TtlOption *option)
{
	return !option->drop_partitions || option->boundary_rows ||
		!bucket->has_upper;
}

/* The index of a partition that is the child of this one, or invalid. */
Oid
ttl_bucket_index(Oid root, Oid relid)
{
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		if (get_rel_relispartition(lfirst_oid(lc)) &&
			get_partition_parent(lfirst_oid(lc), true) == root)
			return lfirst_oid(lc);
	}
	return InvalidOid;
}

/* The leaves of those buckets whose rows expire one by one, or that are due. */
static List *
find_leaves(const TtlIndex *root, const TtlCutoff *cutoff)
{
	List	   *leaves = NIL;
	ListCell   *lc;

	foreach(lc, ttl_buckets_read(root->relid))
	{
		TtlBucket  *bucket = lfirst(lc);
		Oid			indexrelid;

		if (!ttl_bucket_by_row(bucket, &root->option) &&
			!(cutoff != NULL && ttl_bucket_due(bucket, cutoff)))
			continue;
		indexrelid = ttl_bucket_index(root->indexrelid, bucket->relid);
		if (OidIsValid(indexrelid))
			leaves = list_concat(leaves, ttl_catalog_leaves(indexrelid));
	}
	return leaves;
}

/* The indexes of a TTL index whose rows are to be deleted one by one. */
List *
ttl_buckets_row_leaves(Oid root)
{
	TtlIndex	index;

	if (!ttl_catalog_describe(root, true, &index) ||
		!index.option.drop_partitions || index.option.boundary_rows ||
		index.state != TTL_ACTIVE || index.relkind != RELKIND_PARTITIONED_INDEX)
		return ttl_catalog_leaves(root);
	return find_leaves(&index, NULL);
}

/* Those of an index, or of a part of one, of which a pass would delete rows. */
List *
ttl_buckets_due_leaves(const TtlIndex *index, TimestampTz at)
{
	List	   *leaves = ttl_catalog_leaves(index->indexrelid);
	List	   *due = NIL;
	List	   *expiring;
	TtlIndex	root;
	TtlCutoff	cutoff;
	ListCell   *lc;

	if (!index->option.drop_partitions || index->option.boundary_rows ||
		!ttl_catalog_describe(index->governor, true, &root) ||
		root.state != TTL_ACTIVE)
		return leaves;
	ttl_cutoff_init(&cutoff, &root, at);
	expiring = find_leaves(&root, &cutoff);
	list_sort(expiring, list_oid_cmp);
	foreach(lc, leaves)
	{
		if (ttl_sorted_oids_have(expiring, lfirst_oid(lc)))
			due = lappend_oid(due, lfirst_oid(lc));
	}
	return due;
}
