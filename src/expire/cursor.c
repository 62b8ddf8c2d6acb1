/*-------------------------------------------------------------------------
 *
 * cursor.c
 *	  Where an index goes on: from batch to batch, and from pass to pass.
 *
 * Each batch begins where the one before it ended, so that it meets neither the
 * entries of the rows that have just been deleted nor those of rows that had to be
 * left: an entry stays until a vacuum takes it away, and no vacuum can while an old
 * snapshot is open.  What lies before that place is not done with for ever, though:
 * rows arrive there that are due already, and transactions commit that the walk has
 * read past.  So an index that is out of what is due catches up on that, in every
 * visit.
 *
 *		   visit begins
 *				|
 *				v	  most of the heap is due
 *	   .---> FORWARD -----------------------------> BLOCK ORDER
 *	   |		|  ^										|
 *	   |		|  '--------------- end of the heap --------'
 *	   |		|
 *	   |		| nothing more is due, or was when the pass began
 *	   |		v
 *	   |	 CATCH UP ---- place of FORWARD reached ----> over, if nothing more is due
 *	   |												|
 *	   '------------------------------------------------'
 *
 *	FORWARD		walks the entries from where it was to the cutoff
 *	BLOCK ORDER	goes over the heap instead, block by block
 *	CATCH UP	walks from the oldest entry to where FORWARD is, once in a visit.
 *				A round of it that a limit cuts short goes on with the next visit.
 *
 * CATCH UP does not look at all that lies there.  A leaf of the index whose LSN is
 * older than the beginning of the round before has got no entry since, and all of
 * its entries have been looked at: it is skipped, so that millions of dead entries
 * cost a look at one page for each few hundred.  What was met and had to be left,
 * because somebody held the row or had not committed it, is remembered as a range of
 * keys, whose leaves are read all the same.  Where pages have no LSN (an unlogged
 * table), and where a round took long because of the mere size, the next one waits
 * for a time in proportion to that.
 *
 * Rows that could not be deleted, or that a trigger kept, are tried again after 1
 * minute, then 2, 4 ... 60, by a round that is thorough: it reads all leaves.  Until
 * then they are passed over.  The first of them are known by their tuple id; where
 * there are more, by their age: they were there in the round before.
 *
 * All this is kept from pass to pass, where it saves reading many pages or there are
 * rows that could not be deleted.  Else the next pass begins anew at the oldest entry.
 *
 * Pure bookkeeping like schedule.c, which is told the time.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/cursor.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "expire/expire.h"
#include "expire/index_scan.h"
#include "ttl_index.h"

/* So many entries, or leaves, to walk again are worth remembering a place. */
#define MANY_ENTRIES 5000
#define MANY_PAGES 16

#define MAX_DELAY 60			/* minutes */

/*
 * A round over more leaves and entries than this that found nothing rests so long
 * for each of them: a hundred times what it takes, or so.
 */
#define FREE_STEPS 10000
#define REST_US 100
#define MAX_REST (10 * USECS_PER_MINUTE)

static void
wait_longer(TtlCursor *resume, TimestampTz now)
{
	resume->delay = resume->delay == 0 ? 1 : Min(2 * resume->delay, MAX_DELAY);
	resume->retry_at = now + resume->delay * USECS_PER_MINUTE;
}

/* Begins anew: at the oldest entry, of this file. */
void
ttl_cursor_init(TtlCursor *resume, Oid indexrelid, Oid filenode)
{
	memset(resume, 0, sizeof(*resume));
	resume->indexrelid = indexrelid;
	resume->filenode = filenode;
}

/* Extends a range, so that it holds this key too. */
void
ttl_cursor_range_add(TtlRange *range, int64 key)
{
	range->first = range->set ? Min(range->first, key) : key;
	range->last = range->set ? Max(range->last, key) : key;
	range->set = true;
}

/*
 * What can be due goes back: the clock did, or coll_mod() made the time longer.  A
 * place behind all that is due would hide what falls due from now on.
 */
void
ttl_cursor_pull_back(TtlCursor *resume, int64 key)
{
	if (!resume->at.set || resume->at.key <= key)
		return;
	resume->at.key = key;
	ItemPointerSet(&resume->at.tid, MaxBlockNumber, MaxOffsetNumber);
}

/*
 * A pass begins.  Returns whether there is anything to remember of those before.
 */
bool
ttl_cursor_begin_pass(TtlCursor *resume, TimestampTz now)
{
	if (!resume->keep)
	{
		ttl_cursor_init(resume, resume->indexrelid, InvalidOid);
		return false;
	}
	/* should the clock have gone back */
	resume->retry_at = Min(resume->retry_at,
						   now + resume->delay * USECS_PER_MINUTE);
	resume->rest_until = Min(resume->rest_until, now + MAX_REST);
	resume->walked = 0;
	resume->order_decided = false;
	return true;
}

/* A visit begins: what had to be left so far is to be looked at in its round. */
void
ttl_cursor_begin_visit(TtlCursor *resume)
{
	resume->exhausted = resume->caught_up = false;
	if (resume->phase == TTL_CATCH_UP || !resume->left_over.set)
		return;
	ttl_cursor_range_add(&resume->again, resume->left_over.first);
	ttl_cursor_range_add(&resume->again, resume->left_over.last);
	resume->left_over.set = false;
}

/* Could this row not be deleted, and is not to be tried again yet? */
bool
ttl_cursor_has_failed(const TtlCursor *resume, ItemPointer tid)
{
	for (int i = 0; i < Min(resume->nfailures, TTL_KNOWN_FAILURES); i++)
	{
		ItemPointerData failed = resume->failures[i];

		if (ItemPointerEquals(&failed, tid))
			return true;
	}
	return false;
}

/*
 * Have more failed than are known?  Then only the age of a row tells that it is to be
 * left: it was visible in the round before.
 */
bool
ttl_cursor_goes_by_age(const TtlCursor *resume)
{
	return resume->phase == TTL_CATCH_UP && !resume->thorough &&
		resume->nfailures > TTL_KNOWN_FAILURES && resume->seen.set;
}

/* Begins a round of CATCH UP, if there is to be one now. */
static bool
begin_catch_up(TtlCursor *resume, TimestampTz now)
{
	if (!resume->at.set || now < resume->rest_until)
		return false;
	resume->phase = TTL_CATCH_UP;
	resume->left.set = resume->round.set = false;
	resume->pages = resume->steps = 0;
	resume->found = false;
	resume->thorough = resume->rows_left && now >= resume->retry_at;
	if (resume->thorough)
	{
		resume->rows_left = false;
		resume->nfailures = 0;
	}
	return true;
}

static void
end_catch_up(TtlCursor *resume, TimestampTz now)
{
	resume->phase = TTL_FORWARD;
	resume->caught_up = true;
	resume->seen = resume->round;
	resume->again.set = false;
	if (resume->thorough && resume->rows_left)
		wait_longer(resume, now);
	else if (!resume->rows_left)
		resume->delay = 0;
	if (!resume->found && !resume->thorough && resume->steps > FREE_STEPS)
		resume->rest_until = now + Min(resume->steps * REST_US, MAX_REST);
	resume->keep = resume->pages > MANY_PAGES || resume->nfailures > 0;
}

/* Takes over from a batch how far it has come, and since when it has looked. */
static void
take_over(TtlCursor *resume, const TtlBatch *batch, TimestampTz now)
{
	*resume = batch->resume;
	if (resume->phase == TTL_CATCH_UP && !resume->round.set)
		resume->round = batch->horizon;
	if (!resume->seen.set)
		resume->seen = batch->horizon;
	if (resume->rows_left && resume->delay == 0)
		wait_longer(resume, now);
}

/*
 * Takes note of what a batch did.  Returns whether there is nothing more to do
 * here for now.
 */
bool
ttl_cursor_batch_done(TtlCursor *resume, TtlBatch *batch, TimestampTz now)
{
	take_over(resume, batch, now);
	if (resume->phase == TTL_CATCH_UP)
	{
		resume->pages += batch->pages;
		resume->steps += batch->pages + batch->candidates;
		resume->found = resume->found || batch->deleted > 0;
		if (batch->exhausted)
			end_catch_up(resume, now);
		return batch->exhausted && resume->exhausted;
	}

	resume->walked += batch->candidates;
	if (resume->walked > MANY_ENTRIES)
		resume->keep = true;
	resume->exhausted = batch->exhausted;
	if (!resume->caught_up && (batch->exhausted || batch->past_pass))
		resume->caught_up = !begin_catch_up(resume, now);
	/* what CATCH UP finds was due when the pass began, or may have been */
	batch->past_pass = batch->past_pass && resume->caught_up;
	return resume->exhausted && resume->caught_up;
}

/* Takes note of a row that could not be deleted: it is left behind. */
void
ttl_cursor_row_failed(TtlCursor *resume, const TtlBatch *batch, TimestampTz now)
{
	take_over(resume, batch, now);
	if (resume->nfailures < TTL_KNOWN_FAILURES)
		resume->failures[resume->nfailures] =
			resume->phase == TTL_CATCH_UP ? resume->left.tid : resume->at.tid;
	resume->nfailures++;
	resume->keep = resume->rows_left = true;
	if (resume->delay == 0)
		wait_longer(resume, now);
}
