/*-------------------------------------------------------------------------
 *
 * move.c
 *	  Moving the rows of a batch to another table instead of only deleting them.
 *
 * Rows that were deleted are inserted at the end of the batch, in the same transaction.  So a
 * row is always in one of the two tables, and a row that was not deleted is not inserted.
 *
 * A plain table gets them directly (insert.c), others by the command INSERT.  If that inserts
 * fewer rows, as when a trigger returns NULL, the batch fails, and the row is found like one
 * that cannot be deleted.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/move.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "definition/definition.h"
#include "expire/expirer.h"
#include "state/state.h"
#include "ttl_index.h"

/* What the rows are called in the query. */
#define MOVED_ROWS "moved"

/*
 * Opens and locks the archive, if there is one; false if that needs waiting.  While it is
 * open, core lets code of users rename its columns, but not alter it otherwise.
 */
bool
ttl_move_begin(TtlExpirer *x, const TtlIndex *index)
{
	Oid			target = index->option.archive_to;
	TtlIndex	now = *index;

	if (!OidIsValid(target))
		return true;
	if (!ttl_lock_now(target, RowExclusiveLock))
		return false;
	x->archive = try_relation_open(target, NoLock);
	x->batch->inactive = x->archive == NULL || ttl_archive_state_now(&now) != TTL_ACTIVE;
	if (x->batch->inactive)
		return true;
	x->batch->moves = true;
	x->batch->elsewhere = ttl_inherit_foreign_tables(target) != NIL;
	x->moved = tuplestore_begin_heap(false, false, maintenance_work_mem);
	x->values = ttl_query_values(x->archive, x->heap);
	return true;
}

/* Inserts the rows by a command, and checks that the table has taken them all. */
static void
insert_by_query(TtlExpirer *x)
{
	EphemeralNamedRelationData rows = {
		.md = {
			.name = MOVED_ROWS,
			.reliddesc = RelationGetRelid(x->heap),
			.enrtype = ENR_NAMED_TUPLESTORE,
			.enrtuples = tuplestore_tuple_count(x->moved)
		},
		.reldata = x->moved
	};
	QueryEnvironment *env = create_queryEnv();
	char	   *name = psprintf("INSERT by TTL index \"%s\"",
								RelationGetRelationName(x->index));
	int64		count;

	register_ENR(env, &rows);
	count = ttl_query_run(ttl_query_make_insert(x->archive, x->values, env, MOVED_ROWS),
						  NULL, env, name, None_Receiver);
	if (count != x->batch->archived)
		ereport(ERROR,
				(errcode(ERRCODE_TRIGGERED_ACTION_EXCEPTION),
				 errmsg("table \"%s\" did not take %lld of %lld rows that were to be moved to it",
						RelationGetRelationName(x->archive),
						(long long) (x->batch->archived - count),
						(long long) x->batch->archived),
				 errhint("A trigger BEFORE INSERT there that returns NULL would lose these rows.")));
}

/*
 * Raises an error if code that ran in the batch has renamed a column: rows of which time were
 * meant?  An open relation does not yet show what a subtransaction has rolled back.
 */
static void
check_columns(TtlExpirer *x)
{
	Relation	heap = relation_open(RelationGetRelid(x->heap), NoLock);
	Relation	archive = relation_open(RelationGetRelid(x->archive), NoLock);

	if (!equal(x->values, ttl_query_values(archive, heap)))
		ereport(ERROR,
				(errcode(ERRCODE_TRIGGERED_ACTION_EXCEPTION),
				 errmsg("a column of table \"%s\" or \"%s\" was renamed while rows were moved",
						RelationGetRelationName(heap), RelationGetRelationName(archive))));
	relation_close(archive, NoLock);
	relation_close(heap, NoLock);
}

/*
 * Inserts the deleted rows.  Which partitions the command locks is unknown before, and others
 * can hold a row that a unique index or a foreign key needs.  So waits are limited.
 */
void
ttl_move_end(TtlExpirer *x)
{
	if (x->moved == NULL)
		return;
	x->batch->archived = tuplestore_tuple_count(x->moved);
	if (x->batch->archived > 0)
	{
		/* triggers and functions there are to see that the rows are gone here */
		CommandCounterIncrement();
		ttl_lock_limit_waits();
		x->batch->inserts = true;
		PushActiveSnapshot(GetTransactionSnapshot());
		if (!ttl_insert_rows(x->archive, x->heap, x->values, x->moved))
			insert_by_query(x);
		PopActiveSnapshot();
		check_columns(x);
	}
	tuplestore_end(x->moved);
	x->moved = NULL;
}
