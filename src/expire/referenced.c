/*-------------------------------------------------------------------------
 *
 * referenced.c
 *	  Which rows of a batch are kept by foreign keys.
 *
 * A DELETE of a batch fails if rows of another table reference one of its rows, and does not
 * say which others are referenced.  So the referencing rows of all of them are looked up, by
 * indexes as the foreign key itself would do it.  A row of the batch does not keep another one,
 * unless it is kept itself.  What this misses is found by single deletes (row.c).
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_am.h"
#include "catalog/pg_constraint.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "expire/expirer.h"
#include "state/state.h"
#include "ttl_index.h"

/* How to find the rows of a table that reference a row. */
typedef struct Lookup
{
	Relation	rel;
	Relation	index;
	int			nkeys;
	AttrNumber	keys[INDEX_MAX_KEYS];	/* the referenced columns */
	ScanKeyData scankeys[INDEX_MAX_KEYS];	/* for the index, without values */
	int		   *parents;		/* of the rows of the batch, which this table
								 * holds: those that they reference, or -1 */
} Lookup;

static int
compare_rows(const void *a, const void *b)
{
	return ItemPointerCompare(unconstify(ItemPointerData *, &((const TtlLockedRow *) a)->tid),
							  unconstify(ItemPointerData *, &((const TtlLockedRow *) b)->tid));
}

/* Can this index find the rows?  Then this makes its scan keys. */
static bool
use_index(Lookup *lookup, const TtlReference *reference, Relation heap)
{
	Relation	index = lookup->index;

	if (index->rd_rel->relam != BTREE_AM_OID || !index->rd_index->indisvalid ||
		RelationGetIndexPredicate(index) != NIL ||
		IndexRelationGetNumberOfKeyAttributes(index) < reference->ncolumns)
		return false;
	lookup->nkeys = reference->ncolumns;
	for (int i = 0; i < reference->ncolumns; i++)
	{
		AttrNumber	attnum = index->rd_index->indkey.values[i];
		Oid			type = index->rd_opcintype[i];
		int			column = 0;
		Oid			operator;

		/* a partition can have its columns in another order */
		while (column < reference->ncolumns &&
			   (attnum == 0 ||
				strcmp(get_attname(reference->relid, reference->columns[column], false),
					   get_attname(RelationGetRelid(lookup->rel), attnum, false)) != 0))
			column++;
		if (column == reference->ncolumns)
			return false;
		lookup->keys[i] = reference->keys[column];
		if (get_atttype(RelationGetRelid(heap), lookup->keys[i]) !=
			get_atttype(RelationGetRelid(lookup->rel), attnum))
			type = get_atttype(RelationGetRelid(heap), lookup->keys[i]);
		operator = get_opfamily_member(index->rd_opfamily[i], index->rd_opcintype[i], type,
									   BTEqualStrategyNumber);
		if (!OidIsValid(operator))
			return false;
		ScanKeyEntryInitialize(&lookup->scankeys[i], 0, attnum, BTEqualStrategyNumber, type,
							   index->rd_indcollation[i], get_opcode(operator), (Datum) 0);
	}
	return true;
}

/* Adds how to look into a table, which is locked, unless no index of it helps. */
static List *
add_lookup(List *lookups, const TtlExpirer *x, const TtlReference *reference, Oid relid)
{
	Relation	rel = try_relation_open(relid, NoLock);
	ListCell   *lc;

	foreach(lc, rel != NULL && rel->rd_rel->relkind == RELKIND_RELATION ?
			RelationGetIndexList(rel) : NIL)
	{
		Lookup	   *lookup = palloc0(sizeof(Lookup));

		lookup->rel = rel;
		lookup->index = index_open(lfirst_oid(lc), NoLock);
		if (use_index(lookup, reference, x->heap))
		{
			if (relid == RelationGetRelid(x->heap))
				lookup->parents = palloc(sizeof(int) * x->nrows);
			for (int i = 0; lookup->parents != NULL && i < x->nrows; i++)
				lookup->parents[i] = -1;
			return lappend(lookups, lookup);
		}
		index_close(lookup->index, NoLock);
	}
	if (rel != NULL)
		relation_close(rel, NoLock);
	return lookups;
}

/* Looks for rows that reference this row of the batch, which is in the slot. */
static void
look_up(TtlExpirer *x, Lookup *lookup, int row, TupleTableSlot *slot, Snapshot snapshot)
{
	ScanKeyData scankeys[INDEX_MAX_KEYS];
	SysScanDesc scan;
	HeapTuple	tuple;

	memcpy(scankeys, lookup->scankeys, sizeof(scankeys));
	for (int i = 0; i < lookup->nkeys; i++)
	{
		bool		isnull;

		scankeys[i].sk_argument = slot_getattr(slot, lookup->keys[i], &isnull);
		if (isnull)
			return;
	}
	scan = systable_beginscan_ordered(lookup->rel, lookup->index, snapshot, lookup->nkeys, scankeys);
	while (!x->rows[row].kept &&
		   (tuple = systable_getnext_ordered(scan, ForwardScanDirection)) != NULL)
	{
		TtlLockedRow key = {.tid = tuple->t_self};
		TtlLockedRow *child = NULL;

		if (lookup->parents != NULL)
			child = bsearch(&key, x->rows, x->nrows, sizeof(TtlLockedRow), compare_rows);
		if (child != NULL)
			lookup->parents[child - x->rows] = row;
		else
			x->rows[row].kept = true;
	}
	systable_endscan_ordered(scan);
}

/*
 * Marks the rows that are kept, and sorts all of them.  Returns whether all of these wait for
 * other rows of the same table, which another batch may delete.
 */
bool
ttl_referenced_mark(TtlExpirer *x)
{
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	TupleTableSlot *slot = table_slot_create(x->heap, NULL);
	List	   *lookups = NIL;
	bool		only_wait = true;
	bool		changed = true;
	ListCell   *lc;

	qsort(x->rows, x->nrows, sizeof(TtlLockedRow), compare_rows);
	foreach(lc, ttl_references_to(RelationGetRelid(x->heap)))
	{
		const TtlReference *reference = lfirst(lc);
		bool		partitioned = get_rel_relkind(reference->relid) == RELKIND_PARTITIONED_TABLE;
		ListCell   *table;

		if (reference->to != RelationGetRelid(x->heap) ||
			(reference->action != FKCONSTR_ACTION_NOACTION &&
			 reference->action != FKCONSTR_ACTION_RESTRICT))
			continue;
		/* the foreign key of a table is not one of those that inherit from it */
		foreach(table, partitioned ? ttl_inherit_tree(reference->relid) :
				list_make1_oid(reference->relid))
			lookups = add_lookup(lookups, x, reference, lfirst_oid(table));
	}
	for (int i = 0; i < x->nrows && lookups != NIL; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!table_tuple_fetch_row_version(x->heap, &x->rows[i].tid, snapshot, slot))
			continue;
		foreach(lc, lookups)
		{
			Lookup	   *lookup = lfirst(lc);
			bool		kept = x->rows[i].kept;

			look_up(x, lookup, i, slot, snapshot);
			if (x->rows[i].kept && !kept && lookup->parents != NULL)
				x->batch->cursor.rows_wait = true;
			else if (x->rows[i].kept && !kept)
				only_wait = false;
		}
	}
	ExecDropSingleTupleTableSlot(slot);

	/* a row that is kept keeps those that it references */
	while (changed)
	{
		changed = false;
		foreach(lc, lookups)
		{
			const int  *parents = ((Lookup *) lfirst(lc))->parents;

			for (int i = 0; parents != NULL && i < x->nrows; i++)
			{
				for (int row = i; x->rows[row].kept && parents[row] >= 0 &&
					 !x->rows[parents[row]].kept; row = parents[row])
					changed = x->rows[parents[row]].kept = true;
			}
		}
	}
	foreach(lc, lookups)
	{
		index_close(((Lookup *) lfirst(lc))->index, NoLock);
		relation_close(((Lookup *) lfirst(lc))->rel, NoLock);
	}
	UnregisterSnapshot(snapshot);
	return only_wait;
}
