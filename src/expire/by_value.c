/*-------------------------------------------------------------------------
 *
 * by_value.c
 *	  Deleting rows of a Citus table that has copies on several nodes.
 *
 * Copies of a row have only their values in common, not the tuple ID.  So the coordinator
 * alone deletes, by a DELETE that Citus runs on all copies in one two-phase commit:
 *
 *		DELETE FROM ONLY ref WHERE (at) >= '...' AND (at) <= '...' AND (filter)
 *
 * The bounds are constants, so no node uses its own clock.  Rows with the same key are deleted
 * by the same batch, so a position in the cursor is a key alone: if one of these rows cannot
 * be deleted, all of them are skipped.  Writers are locked out, because a writer that waited
 * would use an older snapshot on its own node than on the others.
 *
 * The lock does not exclude a transaction that has committed here and is still prepared on
 * another node, for example after a crash.  A due row of it is deleted from the other copies.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/catalog.h"
#include "executor/spi.h"
#include "nodes/makefuncs.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"

#include "expire/expirer.h"
#include "state/state.h"
#include "ttl_index.h"

/* The key of a row that was found, as a constant. */
static char *
write_key(HeapTuple row, Oid keytype)
{
	return psprintf("%s::%s", quote_literal_cstr(SPI_getvalue(row, SPI_tuptable->tupdesc, 1)),
					format_type_be_qualified(keytype));
}

/*
 * Deletes the rows after a position whose keys are not later than the bound: at most so many,
 * and all that have the key of the last one.  Moves the position to that key.
 */
static void
take_range(TtlExpirer *x, const TtlIndex *index, TtlScanPosition *position, int64 bound,
		   int max_docs)
{
	TtlBatch   *batch = x->batch;
	List	   *context = deparse_context_for(RelationGetRelationName(x->heap), index->relid);
	char	   *table = ttl_name_qualified(index->relid);
	Oid			types[] = {index->keytype, index->keytype};
	Datum		values[] = {
		ttl_keytype_datum(index->keytype, bound, TTL_KEYTYPE_WHOLE),
		ttl_keytype_datum(index->keytype, position->key, position->rest)
	};
	TtlOption	own;
	AttrNumber	attnum;
	Node	   *expression;
	char	   *key;
	char	   *filter;
	char	   *first;
	char	   *last;
	HeapTuple	last_row;
	bool		isnull;

	if (!ttl_key_read(index->indexrelid, &attnum, &expression) ||
		!ttl_option_read(index->indexrelid, &own))
		elog(ERROR, "cache lookup failed for index %u", index->indexrelid);
	key = deparse_expression(ttl_key_node(index->relid, attnum, expression), context, false, false);
	filter = deparse_expression((Node *) make_ands_explicit(own.filter), context, false, false);
	if (ttl_keytype_condition(index->keytype, key) != NULL)
		filter = psprintf("(%s) AND %s", filter,
						  ttl_keytype_condition(index->keytype, psprintf("(%s)", key)));
	if (SPI_execute_with_args(psprintf("SELECT %s FROM ONLY %s WHERE (%s) <= $1 AND (%s) %s AND (%s) "
									   "ORDER BY 1 LIMIT %d",
									   key, table, key, key, position->set ? "> $2" : "IS NOT NULL",
									   filter, max_docs),
							  position->set ? 2 : 1, types, values, NULL, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not select what is due by index %u", index->indexrelid);
	batch->candidates = batch->live = SPI_processed;
	batch->exhausted = batch->live < max_docs;
	batch->from_before = true;
	if (batch->live == 0)
		return;

	last_row = SPI_tuptable->vals[batch->live - 1];
	first = write_key(SPI_tuptable->vals[0], index->keytype);
	last = write_key(last_row, index->keytype);

	/* if the DELETE fails, this is the key that failed */
	position->set = true;
	(void) ttl_keytype_read(index->keytype,
							SPI_getbinval(last_row, SPI_tuptable->tupdesc, 1, &isnull),
							&position->key, &position->rest);
	ItemPointerSet(&position->tid, MaxBlockNumber, MaxOffsetNumber);

	batch->locks_copies = true;
	ttl_citus_lock_copies(index->relid);
	batch->locks_copies = false;
	if (RelationIsLogicallyLogged(x->heap))
		ttl_batch_announce_to_wal(x->root, NULL, NULL);
	if (SPI_execute(psprintf("DELETE FROM ONLY %s WHERE (%s) >= %s AND (%s) <= %s AND (%s)",
							 table, key, first, key, last, filter),
					false, 0) != SPI_OK_DELETE)
		elog(ERROR, "could not delete what is due by index %u", index->indexrelid);
	/* if a schema was renamed in the meantime, rows of another table were deleted */
	if (strcmp(table, ttl_name_qualified(index->relid)) != 0)
		elog(ERROR, "table %s was renamed", table);
	batch->deleted = SPI_processed;
}

/* Deletes the rows of a batch, from the cursor on. */
void
ttl_by_value_take(TtlExpirer *x, const TtlIndex *index, int max_docs)
{
	/* each node reads values that are written like this, whatever its settings are */
	static const char *const formats[][2] = {
		{"datestyle", "ISO, YMD"}, {"intervalstyle", "postgres"}, {"extra_float_digits", "1"},
		{"array_nulls", "on"}, {"xmloption", "content"}
	};
	TtlBatch   *batch = x->batch;
	TtlCursor  *cursor = &batch->cursor;
	bool		forward = cursor->phase != TTL_CATCH_UP;
	int64		bound = x->cutoff->sure;

	batch->by_value = batch->elsewhere = true;

	/*
	 * Forced row security applies on the other nodes, which would keep rows
	 * that are deleted here.
	 */
	if (x->heap->rd_rel->relrowsecurity && x->heap->rd_rel->relforcerowsecurity &&
		!has_bypassrls_privilege(index->owner))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("row security of table \"%s\", which has copies on other nodes, is forced for its owner",
						RelationGetRelationName(x->heap)),
				 errhint("ALTER TABLE ... NO FORCE ROW LEVEL SECURITY.")));

	/* rows that become due from now on have keys after the position */
	ttl_cursor_pull_back(cursor, bound);
	if (!forward)
		bound = Min(bound, cursor->forward.key);

	/* only a thorough round tries the rows before it that failed */
	batch->exhausted = !forward && !cursor->thorough && cursor->nfailures > 0;
	if (batch->exhausted)
		return;
	for (int i = 0; i < lengthof(formats); i++)
		ttl_settings_set(formats[i][0], formats[i][1]);
	SPI_connect();
	take_range(x, index, forward ? &cursor->forward : &cursor->catch_up, bound, max_docs);
	SPI_finish();
}
