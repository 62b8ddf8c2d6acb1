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
#include "access/relation.h"
#include "catalog/pg_am.h"
#include "catalog/pg_constraint.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "expire/expirer.h"
#include "state/state.h"

/* How to find the rows that reference a row by a foreign key. */
typedef struct Lookup
{
	Relation	rel;
	Relation	index;
	int			nkeys;
	AttrNumber	keys[INDEX_MAX_KEYS];	/* the referenced columns */
	ScanKeyData scankeys[INDEX_MAX_KEYS];	/* for the index, without values */
	int		   *parents;		/* if the table references itself, the row of
								 * the batch that each one references, or -1 */
} Lookup;

static int
compare_rows(const void *a, const void *b)
{
	return ItemPointerCompare(unconstify(ItemPointerData *, &((const TtlLockedRow *) a)->tid),
							  unconstify(ItemPointerData *, &((const TtlLockedRow *) b)->tid));
}

/* Makes the scan keys; false if the index begins with other columns, or compares other types. */
static bool
use_index(Lookup *lookup, const TtlReference *reference, Relation heap)
{
	Relation	index = lookup->index;

	lookup->nkeys = reference->ncolumns;
	if (index->rd_rel->relam != BTREE_AM_OID || !index->rd_index->indisvalid ||
		RelationGetIndexPredicate(index) != NIL ||
		IndexRelationGetNumberOfKeyAttributes(index) < lookup->nkeys)
		return false;
	for (int i = 0; i < lookup->nkeys; i++)
	{
		AttrNumber	attnum = index->rd_index->indkey.values[i];
		int			column = 0;
		Oid			type;
		Oid			operator;

		while (column < lookup->nkeys && reference->columns[column] != attnum)
			column++;
		if (column == lookup->nkeys)
			return false;
		lookup->keys[i] = reference->keys[column];
		type = get_atttype(RelationGetRelid(heap), lookup->keys[i]);
		if (type == get_atttype(reference->relid, attnum))
			type = index->rd_opcintype[i];
		operator = get_opfamily_member(index->rd_opfamily[i], index->rd_opcintype[i], type,
									   BTEqualStrategyNumber);
		if (!OidIsValid(operator))
			return false;
		ScanKeyEntryInitialize(&lookup->scankeys[i], 0, attnum, BTEqualStrategyNumber, type,
							   index->rd_indcollation[i], get_opcode(operator), (Datum) 0);
	}
	return true;
}

/* Prepares to look into the referencing table, which is locked; NULL if no index of it helps. */
static Lookup *
begin_lookup(const TtlExpirer *x, const TtlReference *reference)
{
	Lookup	   *lookup = palloc0(sizeof(Lookup));
	ListCell   *lc;

	lookup->rel = relation_open(reference->relid, NoLock);
	foreach(lc, lookup->rel->rd_rel->relkind == RELKIND_RELATION ?
			RelationGetIndexList(lookup->rel) : NIL)
	{
		lookup->index = index_open(lfirst_oid(lc), NoLock);
		if (use_index(lookup, reference, x->heap))
		{
			if (reference->relid == reference->to)
			{
				lookup->parents = palloc(sizeof(int) * x->nrows);
				memset(lookup->parents, -1, sizeof(int) * x->nrows);
			}
			return lookup;
		}
		index_close(lookup->index, NoLock);
	}
	relation_close(lookup->rel, NoLock);
	return NULL;
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
		TtlLockedRow *child = lookup->parents == NULL ? NULL :
			bsearch(&key, x->rows, x->nrows, sizeof(TtlLockedRow), compare_rows);

		if (child != NULL)
			lookup->parents[child - x->rows] = row;
		else
			x->rows[row].kept = true;
	}
	systable_endscan_ordered(scan);
}

/* Marks the rows that others reference which are kept themselves.  Returns whether there are new ones. */
static bool
mark_parents(TtlExpirer *x, const int *parents)
{
	bool		found = false;

	for (int i = 0; parents != NULL && i < x->nrows; i++)
	{
		for (int row = i; x->rows[row].kept && parents[row] >= 0 &&
			 !x->rows[parents[row]].kept; row = parents[row])
			found = x->rows[parents[row]].kept = true;
	}
	return found;
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
	bool		found = true;
	ListCell   *lc;

	qsort(x->rows, x->nrows, sizeof(TtlLockedRow), compare_rows);
	foreach(lc, ttl_references_to(RelationGetRelid(x->heap)))
	{
		const TtlReference *reference = lfirst(lc);
		Lookup	   *lookup = NULL;

		if (reference->to == RelationGetRelid(x->heap) &&
			(reference->action == FKCONSTR_ACTION_NOACTION ||
			 reference->action == FKCONSTR_ACTION_RESTRICT))
			lookup = begin_lookup(x, reference);
		if (lookup != NULL)
			lookups = lappend(lookups, lookup);
	}
	for (int i = 0; i < x->nrows && lookups != NIL; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!table_tuple_fetch_row_version(x->heap, &x->rows[i].tid, snapshot, slot))
			continue;
		foreach(lc, lookups)
		{
			Lookup	   *lookup = lfirst(lc);

			if (x->rows[i].kept)
				break;
			look_up(x, lookup, i, slot, snapshot);
			only_wait = only_wait && (!x->rows[i].kept || lookup->parents != NULL);
			x->batch->cursor.rows_wait = x->batch->cursor.rows_wait ||
				(x->rows[i].kept && lookup->parents != NULL);
		}
	}
	while (found)
	{
		found = false;
		foreach(lc, lookups)
			found = mark_parents(x, ((Lookup *) lfirst(lc))->parents) || found;
	}
	foreach(lc, lookups)
	{
		index_close(((Lookup *) lfirst(lc))->index, NoLock);
		relation_close(((Lookup *) lfirst(lc))->rel, NoLock);
	}
	ExecDropSingleTupleTableSlot(slot);
	UnregisterSnapshot(snapshot);
	return only_wait;
}
