/*-------------------------------------------------------------------------
 *
 * cursor.c
 *	  Where the next batch of an index continues, also in the next pass.
 *
 * Each batch begins where the previous one ended, because the entries of deleted rows stay
 * until vacuum.  When nothing more is due after that position, the index catches up on what
 * lies before it: new rows that are due, late commits, and rows that could not be deleted.
 * src/expire/README has the diagram, the resume point and the hazards.
 *
 * This file does only bookkeeping, and the caller passes the time.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"

#include "expire/expire.h"

/* A cursor is worth keeping if it saves reading more entries or leaf pages than this. */
#define MANY_ENTRIES 5000
#define MANY_PAGES 16

#define MAX_DELAY 60			/* minutes */

/* The delay begins with 1 minute again if more than one of so many failed rows was deleted. */
#define FEW_FAILURES 16

/*
 * After a round that read more pages and entries than FREE_STEPS and deleted nothing, the next
 * one waits REST_US for each of them: about a hundred times what reading it took.
 */
#define FREE_STEPS 10000
#define REST_US 100
#define MAX_REST (10 * USECS_PER_MINUTE)

static void
wait_longer(TtlCursor *cursor, TimestampTz now)
{
	cursor->delay = cursor->delay == 0 ? 1 : Min(2 * cursor->delay, MAX_DELAY);
	cursor->retry_at = now + cursor->delay * USECS_PER_MINUTE;
}

/* Sets a cursor to the oldest entry of this index file. */
void
ttl_cursor_init(TtlCursor *cursor, Oid indexrelid, Oid filenode)
{
	memset(cursor, 0, sizeof(*cursor));
	cursor->indexrelid = indexrelid;
	cursor->filenode = filenode;
}

/* Extends a range, so that it holds this key too. */
static void
add_key(TtlRange *range, int64 key)
{
	range->first = range->set ? Min(range->first, key) : key;
	range->last = range->set ? Max(range->last, key) : key;
	range->set = true;
}

static uint32
row_bit(const ItemPointerData *tid)
{
	return hash_combine(murmurhash32(ItemPointerGetBlockNumberNoCheck(tid)),
						ItemPointerGetOffsetNumberNoCheck(tid)) % TTL_REREAD_BITS;
}

/* Notes that a row was met and could not be taken yet, for the next round. */
void
ttl_cursor_reread(TtlCursor *cursor, int64 key, const ItemPointerData *tid)
{
	uint32		bit = row_bit(tid);

	add_key(&cursor->reread_next.keys, key);
	cursor->reread_next.rows[bit / 32] |= (uint32) 1 << (bit % 32);
}

/*
 * Moves the position back to this key: the latest key that can be due is earlier after a
 * change of the clock or coll_mod(), and nothing after it may be skipped.
 */
void
ttl_cursor_pull_back(TtlCursor *cursor, int64 key)
{
	if (!cursor->forward.set || cursor->forward.key <= key)
		return;
	cursor->forward.key = key;
	cursor->forward.rest = PG_UINT64_MAX;
	ItemPointerSet(&cursor->forward.tid, MaxBlockNumber, MaxOffsetNumber);
}

/* Begins a pass.  Returns whether the cursor holds anything of the passes before. */
bool
ttl_cursor_begin_pass(TtlCursor *cursor, TimestampTz now)
{
	if (!cursor->keep)
	{
		ttl_cursor_init(cursor, cursor->indexrelid, InvalidOid);
		return false;
	}
	/* if the clock was set back, these are too far ahead */
	cursor->retry_at = Min(cursor->retry_at,
						   now + cursor->delay * USECS_PER_MINUTE);
	cursor->rest_until = Min(cursor->rest_until, now + MAX_REST);
	cursor->entries_read = 0;
	cursor->order_decided = false;
	return true;
}

/* Begins a visit: its round reads again what could not be taken so far. */
void
ttl_cursor_begin_visit(TtlCursor *cursor)
{
	cursor->exhausted = cursor->caught_up = false;
	if (cursor->phase == TTL_CATCH_UP || !cursor->reread_next.keys.set)
		return;
	add_key(&cursor->reread.keys, cursor->reread_next.keys.first);
	add_key(&cursor->reread.keys, cursor->reread_next.keys.last);
	for (int i = 0; i < lengthof(cursor->reread.rows); i++)
		cursor->reread.rows[i] |= cursor->reread_next.rows[i];
	memset(&cursor->reread_next, 0, sizeof(TtlReread));
}

/*
 * Must this row not be tried again yet?  The key must match as well, because a tuple ID can be
 * reused.  If the key is NULL (unknown), only failures without a key match.
 */
bool
ttl_cursor_has_failed(const TtlCursor *cursor, const int64 *key, ItemPointer tid)
{
	for (int i = 0; i < Min(cursor->nfailures, TTL_KNOWN_FAILURES); i++)
	{
		TtlScanPosition failed = cursor->failures[i];

		if (ItemPointerEquals(&failed.tid, tid) &&
			(!failed.set || (key != NULL && failed.key == *key)))
			return true;
	}
	return false;
}

/* Are there rows that could not be deleted, as far as is known? */
bool
ttl_cursor_rows_failed(const TtlCursor *cursor)
{
	return cursor->nfailures > 0 ||
		(cursor->phase == TTL_CATCH_UP && cursor->thorough);
}

/* Up to which key has the index been read?  False for none, and in BLOCK ORDER. */
bool
ttl_cursor_read_to(const TtlCursor *cursor, int64 *key)
{
	*key = cursor->forward.key;
	return cursor->forward.set && cursor->phase != TTL_BLOCK_ORDER;
}

/* Notes that a row could not be deleted. */
void
ttl_cursor_note_failed(TtlCursor *cursor, const TtlScanPosition *row)
{
	if (cursor->nfailures < TTL_KNOWN_FAILURES)
		cursor->failures[cursor->nfailures] = *row;
	cursor->nfailures++;
	cursor->keep = cursor->rows_remain = true;
}

/*
 * Have more rows failed than are known by tuple ID?  Then a row that the previous round could
 * see is skipped, unless it may be one of those that could not be taken.
 */
bool
ttl_cursor_judges_by_age(const TtlCursor *cursor, const ItemPointerData *tid)
{
	uint32		bit;

	if (cursor->phase != TTL_CATCH_UP || cursor->thorough ||
		cursor->nfailures <= TTL_KNOWN_FAILURES || !cursor->seen.set)
		return false;
	bit = row_bit(tid);
	return (cursor->reread.rows[bit / 32] & (uint32) 1 << (bit % 32)) == 0;
}

/* Begins a round of CATCH UP, unless there is nothing to catch up on or it must wait. */
static bool
begin_catch_up(TtlCursor *cursor, TimestampTz now)
{
	if (!cursor->forward.set || now < cursor->rest_until)
		return false;
	cursor->phase = TTL_CATCH_UP;
	cursor->catch_up.set = cursor->round.set = false;
	cursor->pages = cursor->steps = 0;
	cursor->found = 0;
	/* what rows wait for may be deleted now */
	cursor->at_once = cursor->rows_wait;
	cursor->thorough = cursor->at_once || (cursor->rows_remain && now >= cursor->retry_at);
	cursor->rows_wait = false;
	if (cursor->thorough)
	{
		cursor->rows_remain = false;
		cursor->nfailures = 0;
	}
	return true;
}

static void
end_catch_up(TtlCursor *cursor, TimestampTz now)
{
	/* if a good part of the rows that failed was deleted, others may be deletable now */
	bool		helped = cursor->found > cursor->nfailures / FEW_FAILURES;

	cursor->phase = TTL_FORWARD;
	cursor->seen = cursor->round;
	memset(&cursor->reread, 0, sizeof(TtlReread));
	if (cursor->thorough && cursor->rows_remain)
	{
		if (helped)
			cursor->delay = 0;
		wait_longer(cursor, now);
	}
	else if (!cursor->rows_remain)
		cursor->delay = 0;
	if (cursor->found == 0 && !cursor->thorough && cursor->steps > FREE_STEPS)
		cursor->rest_until = now + Min(cursor->steps * REST_US, MAX_REST);
	cursor->keep = cursor->pages > MANY_PAGES || cursor->nfailures > 0;

	/* rows that wait for others are tried at once as long as that helps, and once more at last */
	cursor->rows_wait = cursor->rows_wait && (helped || cursor->at_once);
	cursor->at_once = cursor->thorough = false;
	cursor->caught_up = !(cursor->rows_wait && begin_catch_up(cursor, now));
	cursor->at_once = cursor->at_once && helped;
}

/* Takes over the position of a batch, and what its snapshot could see. */
static void
take_over(TtlCursor *cursor, const TtlBatch *batch, TimestampTz now)
{
	*cursor = batch->cursor;
	if (cursor->phase == TTL_CATCH_UP && !cursor->round.set)
		cursor->round = batch->horizon;
	if (!cursor->seen.set)
		cursor->seen = batch->horizon;
	if (cursor->rows_remain && cursor->delay == 0)
		wait_longer(cursor, now);
}

/* Notes what a batch did.  Returns whether the index needs no more batches for now. */
bool
ttl_cursor_batch_done(TtlCursor *cursor, TtlBatch *batch, TimestampTz now)
{
	/* rows that were inserted in the meantime can be anywhere */
	if (batch->inactive)
	{
		ttl_cursor_init(cursor, cursor->indexrelid, InvalidOid);
		return true;
	}
	take_over(cursor, batch, now);
	if (cursor->phase == TTL_CATCH_UP)
	{
		cursor->pages += batch->pages;
		cursor->steps += batch->pages + batch->candidates;
		cursor->found += batch->deleted;
		if (batch->exhausted)
			end_catch_up(cursor, now);
		return cursor->caught_up && cursor->exhausted;
	}

	cursor->entries_read += batch->candidates;
	if (cursor->entries_read > MANY_ENTRIES)
		cursor->keep = true;
	cursor->exhausted = batch->exhausted;
	if (!cursor->caught_up && (batch->exhausted || batch->past_pass))
		cursor->caught_up = !begin_catch_up(cursor, now);
	/* what CATCH UP finds may have been due when the pass began */
	batch->past_pass = batch->past_pass && cursor->caught_up;
	return cursor->exhausted && cursor->caught_up;
}

/* Notes that a single row could not be deleted, and continues after it. */
void
ttl_cursor_row_failed(TtlCursor *cursor, const TtlBatch *batch, TimestampTz now)
{
	take_over(cursor, batch, now);
	ttl_cursor_note_failed(cursor, cursor->phase == TTL_BLOCK_ORDER ? &batch->row :
						   cursor->phase == TTL_CATCH_UP ? &cursor->catch_up : &cursor->forward);
	if (cursor->delay == 0)
		wait_longer(cursor, now);
}
