/*-------------------------------------------------------------------------
 *
 * expire.c
 *	  One batch of one index: collect, lock, delete.
 *
 * The scan is ours: the TTL index is read from the resume point up to the cutoff,
 * oldest first, under one snapshot.  A row that the snapshot sees is locked if
 * that can be had at once, which fails if somebody else holds it or has changed
 * it since.  So what is deleted is the very version that was found due.
 *
 * The deletion is SQL's: DELETE FROM ONLY the table where the tuple id is one of
 * those, so that triggers, foreign keys, rules and statistics behave as for any
 * DELETE.  It repeats the expiry and the filter, as a second lock on the door:
 * a trigger of the same batch could have changed another row of it.
 *
 * It all runs as the table's owner (owner.c), in a transaction of the caller's.
 * Nothing here reads a setting, a counter or a clock.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relation.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "rewrite/prs2lock.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "ttl_index.h"

/* A scan of a TTL index in the order of dates. */
typedef struct KeyScan
{
	Relation	heap;
	Relation	index;
	const TtlCutoff *cutoff;
	const TtlResume *resume;
	ScanDirection direction;
	IndexScanDesc scan;
	TupleTableSlot *slot;
	/* the entry at hand */
	int64		key;
	ItemPointerData tid;		/* as the index has it */
} KeyScan;

static bool
open_relations(Oid relid, Oid indexrelid, KeyScan *ks)
{
	ks->heap = try_relation_open(relid, NoLock);
	if (ks->heap == NULL)
		return false;
	ks->index = try_relation_open(indexrelid, NoLock);
	if (ks->index == NULL)
		relation_close(ks->heap, NoLock);
	return ks->index != NULL;
}

static void
close_relations(KeyScan *ks)
{
	relation_close(ks->index, NoLock);
	relation_close(ks->heap, NoLock);
}

static Datum
key_datum(Oid keytype, int64 key)
{
	return keytype == DATEOID ? DateADTGetDatum((DateADT) key) :
		TimestampTzGetDatum(key);
}

static int64
datum_key(Oid keytype, Datum datum)
{
	return keytype == DATEOID ? (int64) DatumGetDateADT(datum) :
		(int64) DatumGetTimestampTz(datum);
}

static void
init_scankey(ScanKey skey, Relation index, StrategyNumber strategy,
			 Oid keytype, int64 key)
{
	Oid			operator = get_opfamily_member(index->rd_opfamily[0], keytype,
											   keytype, strategy);

	if (!OidIsValid(operator))
		elog(ERROR, "missing operator %d for type %u", strategy, keytype);
	ScanKeyInit(skey, 1, strategy, get_opcode(operator),
				key_datum(keytype, key));
}

/*
 * Begins a scan of what can be due, from the resume point on.  A NULL key
 * matches no scan key.  A descending index is read backward, so that the oldest
 * come first there too.
 */
static void
scan_begin(KeyScan *ks)
{
	ScanKeyData skeys[2];
	int			nkeys = 0;

	init_scankey(&skeys[nkeys++], ks->index, BTLessEqualStrategyNumber,
				 ks->cutoff->keytype, ks->cutoff->bound);
	if (ks->resume != NULL)
		init_scankey(&skeys[nkeys++], ks->index, BTGreaterEqualStrategyNumber,
					 ks->cutoff->keytype, ks->resume->key);
	ks->direction = (ks->index->rd_indoption[0] & INDOPTION_DESC) ?
		BackwardScanDirection : ForwardScanDirection;
	ks->slot = table_slot_create(ks->heap, NULL);
	ks->scan = ttl_index_beginscan(ks->heap, ks->index, GetActiveSnapshot(),
								   nkeys);
	ks->scan->xs_want_itup = true;
	index_rescan(ks->scan, skeys, nkeys, NULL, 0);
}

static void
scan_end(KeyScan *ks)
{
	ExecDropSingleTupleTableSlot(ks->slot);
	index_endscan(ks->scan);
}

/*
 * Is the entry at or before the resume point?  Equal keys are in the order of
 * their tuple ids, in the direction of the scan.
 */
static bool
is_before_resume(KeyScan *ks)
{
	ItemPointerData last;
	int			order;

	if (ks->resume == NULL || ks->key != ks->resume->key)
		return false;
	last = ks->resume->tid;
	order = ItemPointerCompare(&ks->tid, &last);
	return ScanDirectionIsForward(ks->direction) ? order <= 0 : order >= 0;
}

/*
 * Goes on to the next row that is due and visible to the snapshot; it is in the
 * slot then.
 */
static bool
scan_next(KeyScan *ks)
{
	ItemPointer tid;

	while ((tid = index_getnext_tid(ks->scan, ks->direction)) != NULL)
	{
		bool		isnull;
		Datum		datum;

		CHECK_FOR_INTERRUPTS();
		datum = index_getattr(ks->scan->xs_itup, 1, ks->scan->xs_itupdesc,
							  &isnull);
		Assert(!isnull);
		ks->key = datum_key(ks->cutoff->keytype, datum);
		/* fetching the row moves the scan's tid along its HOT chain */
		ks->tid = *tid;
		if (is_before_resume(ks) || !ttl_key_due(ks->cutoff, ks->key))
			continue;
		if (index_fetch_heap(ks->scan, ks->slot))
			return true;
	}
	return false;
}

/* Locks the row in the slot, unless that needs waiting or it has changed. */
static bool
lock_row(KeyScan *ks, TtlBatch *batch)
{
	TM_FailureData failure;
	TM_Result	result;
	ItemPointerData tid = ks->slot->tts_tid;

	result = table_tuple_lock(ks->heap, &tid, GetActiveSnapshot(), ks->slot,
							  GetCurrentCommandId(true), LockTupleExclusive,
							  LockWaitSkip, 0, &failure);
	if (result == TM_WouldBlock)
		batch->skipped_locked++;
	return result == TM_Ok;
}

/*
 * Collects and locks up to max_docs rows; returns their tuple ids.  The resume
 * point moves past everything that was looked at, locked or not.
 */
static ArrayType *
collect(KeyScan *ks, int max_docs, TtlBatch *batch)
{
	Datum	   *tids = palloc(sizeof(Datum) * max_docs);
	int			count = 0;
	int64		seen = 0;

	scan_begin(ks);
	batch->exhausted = true;
	while (scan_next(ks))
	{
		seen++;
		if (lock_row(ks, batch))
		{
			ItemPointer tid = palloc(sizeof(ItemPointerData));

			*tid = ks->slot->tts_tid;
			tids[count++] = PointerGetDatum(tid);
		}
		batch->moved = true;
		batch->resume.key = ks->key;
		batch->resume.tid = ks->tid;
		ExecClearTuple(ks->slot);

		/* what cannot be locked costs time as well */
		if (count >= max_docs || seen >= 2 * (int64) max_docs)
		{
			batch->exhausted = false;
			break;
		}
	}
	scan_end(ks);
	batch->candidates = seen;
	if (count == 0)
		return NULL;
	return construct_array(tids, count, TIDOID, sizeof(ItemPointerData), false,
						   TYPALIGN_SHORT);
}

/*
 * The DELETE: $1 are the tuple ids, $2 the greatest key that can be due.  The
 * exact check of a key near a change of summer time has been made on the very
 * version that is locked; the bound is enough here.
 */
static char *
delete_command(const TtlIndex *target)
{
	StringInfoData sql;
	TtlOption	own;

	/* not target->option: a partition can number its columns otherwise */
	if (!ttl_option_read(target->indexrelid, &own))
		elog(ERROR, "cache lookup failed for index %u", target->indexrelid);
	initStringInfo(&sql);
	appendStringInfo(&sql, "DELETE FROM ONLY %s WHERE "
					 "ctid OPERATOR(pg_catalog.=) ANY ($1) AND %s OPERATOR(pg_catalog.<=) $2",
					 ttl_qualified_name(target->relid),
					 pg_get_indexdef_columns(target->indexrelid, false));
	if (own.filter != NIL)
		appendStringInfo(&sql, " AND (%s)",
						 deparse_expression((Node *) make_ands_explicit(own.filter),
											deparse_context_for(get_rel_name(target->relid),
																target->relid),
											false, false));
	return sql.data;
}

/*
 * Checks deferrable constraints within the batch: a deferred trigger cannot run
 * in a security-restricted operation, nor after it, as somebody else.
 */
static void
set_constraints_immediate(void)
{
	ConstraintsSetStmt *stmt = makeNode(ConstraintsSetStmt);

	stmt->constraints = NIL;
	stmt->deferred = false;
	AfterTriggerSetState(stmt);
}

static int64
delete_rows(const TtlIndex *target, const TtlCutoff *cutoff, ArrayType *tids)
{
	Oid			argtypes[2] = {TIDARRAYOID, cutoff->keytype};
	Datum		args[2];
	SPIPlanPtr	plan;
	int64		deleted;
	int			result;

	args[0] = PointerGetDatum(tids);
	args[1] = key_datum(cutoff->keytype, cutoff->bound);
	SPI_connect();

	/*
	 * A generic plan: it is made for an array of unknown length, so it is a
	 * TID scan, where one made for these thousands could be a sequential
	 * scan.
	 */
	plan = SPI_prepare_cursor(delete_command(target), 2, argtypes,
							  CURSOR_OPT_GENERIC_PLAN);
	if (plan == NULL)
		elog(ERROR, "could not prepare the deletion: %s",
			 SPI_result_code_string(SPI_result));
	result = SPI_execute_plan(plan, args, NULL, false, 0);
	if (result < 0)
		elog(ERROR, "could not delete: %s", SPI_result_code_string(result));
	deleted = result == SPI_OK_DELETE ? (int64) SPI_processed : 0;
	SPI_finish();
	return deleted;
}

/* Does a rule run another command in the place of a DELETE? */
static bool
has_instead_rule(Relation rel)
{
	for (int i = 0; rel->rd_rules != NULL && i < rel->rd_rules->numLocks; i++)
	{
		RewriteRule *rule = rel->rd_rules->rules[i];

		if (rule->event == CMD_DELETE && rule->isInstead)
			return true;
	}
	return false;
}

/* How many of these rows are gone, as this transaction sees it now? */
static int64
count_gone(KeyScan *ks, ArrayType *tids)
{
	ItemPointer rows = (ItemPointer) ARR_DATA_PTR(tids);
	int			count = ArrayGetNItems(ARR_NDIM(tids), ARR_DIMS(tids));
	int64		gone = 0;
	TupleTableSlot *slot = table_slot_create(ks->heap, NULL);

	PushActiveSnapshot(GetLatestSnapshot());
	for (int i = 0; i < count; i++)
	{
		if (!table_tuple_fetch_row_version(ks->heap, &rows[i],
										   GetActiveSnapshot(), slot))
			gone++;
		ExecClearTuple(slot);
	}
	PopActiveSnapshot();
	ExecDropSingleTupleTableSlot(slot);
	return gone;
}

/*
 * Locks the table ROW EXCLUSIVE and the index SHARE UPDATE EXCLUSIVE for a batch,
 * until the end of the transaction, if both can be had without waiting.  The lock
 * on the index keeps every other pass away from it, and coll_mod() too: what is
 * read of the definition after this stays true until the batch is done.
 */
bool
ttl_expire_lock(Oid relid, Oid indexrelid)
{
	return ConditionalLockRelationOid(relid, RowExclusiveLock) &&
		ConditionalLockRelationOid(indexrelid, ShareUpdateExclusiveLock);
}

/*
 * One batch of up to max_docs rows of a locked index, in the caller's transaction,
 * from the resume point on (NULL: from the oldest).  Any code of a user may raise
 * an error here.
 */
void
ttl_expire_batch(const TtlIndex *index, const TtlCutoff *cutoff,
				 const TtlCutoff *pass_cutoff, const TtlResume *resume,
				 int max_docs, TtlBatch *batch)
{
	KeyScan		ks = {0};
	TtlUser		saved;
	ArrayType  *tids;

	memset(batch, 0, sizeof(*batch));
	batch->resume.indexrelid = index->indexrelid;
	ks.cutoff = cutoff;
	ks.resume = resume;
	if (!open_relations(index->relid, index->indexrelid, &ks))
	{
		batch->exhausted = true;
		return;
	}
	ttl_become_owner(index->owner, &saved);
	PushActiveSnapshot(GetTransactionSnapshot());
	tids = collect(&ks, max_docs, batch);
	PopActiveSnapshot();
	if (tids != NULL)
	{
		PushActiveSnapshot(GetTransactionSnapshot());
		set_constraints_immediate();
		batch->deleted = delete_rows(index, cutoff, tids);
		PopActiveSnapshot();
		/* what the rule did is not what SPI has counted */
		if (has_instead_rule(ks.heap))
			batch->deleted = count_gone(&ks, tids);
	}
	ttl_restore_user(&saved);
	close_relations(&ks);
	batch->past_pass = batch->moved && batch->resume.key > pass_cutoff->bound;
}

/*
 * Counts what would be deleted at this clock reading, and finds the oldest date
 * among it (DT_NOEND where nothing is due).  Without *oldest it counts all, with
 * it only the first is looked at.  The caller may look at the table.
 */
int64
ttl_expire_count(const TtlIndex *index, TimestampTz at, TimestampTz *oldest)
{
	TtlCutoff	cutoff;
	KeyScan		ks = {0};
	TtlUser		saved;
	int64		count = 0;

	ttl_cutoff_init(&cutoff, index, at);
	ks.cutoff = &cutoff;
	if (!ConditionalLockRelationOid(index->relid, AccessShareLock) ||
		!ConditionalLockRelationOid(index->indexrelid, AccessShareLock) ||
		!open_relations(index->relid, index->indexrelid, &ks))
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("could not obtain lock on table \"%s\"",
						get_rel_name(index->relid))));
	ttl_become_owner(index->owner, &saved);
	PushActiveSnapshot(GetTransactionSnapshot());
	scan_begin(&ks);
	while (scan_next(&ks))
	{
		count++;
		if (oldest != NULL)
		{
			*oldest = ttl_key_instant(&cutoff, ks.key);
			break;
		}
	}
	scan_end(&ks);
	PopActiveSnapshot();
	ttl_restore_user(&saved);
	close_relations(&ks);
	return count;
}
