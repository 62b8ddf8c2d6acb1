/*-------------------------------------------------------------------------
 *
 * resume.c
 *	  Where an index goes on: from batch to batch, and from pass to pass.
 *
 * Within a pass each batch begins where the one before it ended, so that it meets
 * neither the entries of the rows that have just been deleted nor those of rows
 * that had to be left.
 *
 * The next pass would meet them all: an entry stays until a vacuum takes it away,
 * and no vacuum can while an old snapshot is open.  So where a pass has left
 * many entries behind, or rows that could not be deleted, it leaves a mark.  The
 * next one begins at the mark.  What lies to its left is walked afterwards, on
 * a budget:
 *
 *	- a batch of it in each pass: where that deletes something, the walk goes on;
 *	  where it reaches the mark, a vacuum has been here, and the mark is given up;
 *	- all of it after 1 minute, then 2, 4 ... 60: late rows in the middle of dead
 *	  ones are found then, and rows that could not be deleted get another try.
 *
 * Until then rows that could not be deleted are passed over.  Where there are too
 * many of them to remember, nothing to the left is walked before.
 *
 * Rows that were locked or changed meanwhile, and dates in a zone that are not due
 * in spite of later ones that are, are no reason to wait: the mark stays before
 * them.
 *
 * Pure bookkeeping like pass.c, which is told the time.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/resume.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "ttl_index.h"

/* So many entries to walk again are worth a mark. */
#define MANY_ENTRIES 5000

#define MAX_DELAY 60			/* minutes */

/* So many rows that fail are tried again for the sake of a locked one. */
#define MAX_STUCK_FAILURES 100

static void
wait_longer(TtlResume *resume, TimestampTz now)
{
	resume->delay = resume->delay == 0 ? 1 : Min(2 * resume->delay, MAX_DELAY);
	resume->left_at = now + resume->delay * USECS_PER_MINUTE;
}

static void
give_up_mark(TtlResume *resume)
{
	resume->mark.set = false;
	resume->keep_mark = false;
	resume->nfailures = resume->delay = 0;
	resume->left_at = 0;
}

/*
 * What can be due goes back: the clock did, or coll_mod() made the time longer.  A
 * place behind all that is due would hide what falls due from now on.
 */
void
ttl_resume_pull_back(TtlResume *resume, int64 key)
{
	TtlPlace   *places[] = {&resume->at, &resume->done, &resume->mark};

	for (int i = 0; i < lengthof(places); i++)
	{
		if (places[i]->set && places[i]->key > key)
		{
			places[i]->key = key;
			ItemPointerSet(&places[i]->tid, MaxBlockNumber, MaxOffsetNumber);
		}
	}
}

/*
 * A pass begins.  Returns whether there is anything to remember of those before.
 */
bool
ttl_resume_begin_pass(TtlResume *resume, TimestampTz now)
{
	resume->mark = resume->done;
	if (!resume->keep_mark || !resume->mark.set)
		give_up_mark(resume);
	else if (resume->delay == 0)
		wait_longer(resume, now);
	/* should the clock have gone back */
	resume->left_at = Min(resume->left_at,
						  now + resume->delay * USECS_PER_MINUTE);

	/* where the first batch meets a locked row, the mark stays where it is */
	resume->at = resume->done = resume->mark;
	resume->walked = 0;
	resume->to_mark = resume->left_over = false;
	resume->by_block = resume->order_decided = false;
	if (!resume->stuck)
		resume->stuck_failures = 0;
	resume->stuck = false;
	return resume->mark.set || resume->stuck_failures > 0;
}

/* A visit begins: in a later sub-pass it goes on to the right. */
void
ttl_resume_begin_visit(TtlResume *resume)
{
	if (resume->left_over)
		resume->to_mark = false;
}

/* Could this row not be deleted, and is not to be tried again yet? */
bool
ttl_resume_has_failed(const TtlResume *resume, ItemPointer tid)
{
	for (int i = 0; i < Min(resume->nfailures, TTL_KNOWN_FAILURES); i++)
	{
		ItemPointerData failed = resume->failures[i];

		if (ItemPointerEquals(&failed, tid))
			return true;
	}
	return false;
}

/* What lies to the left of the mark, after the rest. */
static bool
begin_left(TtlResume *resume, TimestampTz now)
{
	if (!resume->mark.set || resume->left_over ||
		(resume->nfailures > TTL_KNOWN_FAILURES && now < resume->left_at))
		return false;
	if (!resume->left.set)
	{
		resume->left_walked = 0;
		resume->left_all = now >= resume->left_at;
		if (resume->left_all)
			resume->nfailures = 0;
	}
	resume->to_mark = true;
	return true;
}

/* The walk from the left end has reached the mark. */
static void
end_left(TtlResume *resume, TimestampTz now)
{
	resume->left.set = false;
	resume->left_over = true;
	if (resume->nfailures == 0 && resume->left_walked <= MANY_ENTRIES)
		give_up_mark(resume);
	else if (resume->left_all)
		wait_longer(resume, now);
}

static bool
left_batch_done(TtlResume *resume, const TtlBatch *batch, TimestampTz now)
{
	resume->left_walked += batch->candidates;
	if (batch->exhausted)
		end_left(resume, now);
	else if (batch->deleted == 0 && !resume->left_all)
	{
		resume->left.set = false;
		resume->left_over = true;
	}
	return resume->left_over;
}

/*
 * Takes note of what a batch did.  Returns whether there is nothing more to do
 * here for now.
 */
bool
ttl_resume_batch_done(TtlResume *resume, const TtlBatch *batch, TimestampTz now)
{
	*resume = batch->resume;
	if (resume->to_mark)
		return left_batch_done(resume, batch, now);

	resume->walked += batch->candidates;
	if (resume->walked > MANY_ENTRIES)
		resume->keep_mark = true;
	if (batch->look_again)
		resume->stuck = true;
	if (!resume->stuck && !resume->by_block)
		resume->done = resume->at;
	return batch->exhausted && !begin_left(resume, now);
}

/*
 * Takes note of a row that could not be deleted: it is left behind.  Many of them
 * would use up every pass that begins at a locked row before them, and keep it
 * from what is due behind them; then that one waits like them.
 */
void
ttl_resume_row_failed(TtlResume *resume, const TtlBatch *batch, TimestampTz now)
{
	*resume = batch->resume;
	resume->keep_mark = true;
	if (resume->nfailures < TTL_KNOWN_FAILURES)
		resume->failures[resume->nfailures] =
			resume->to_mark ? resume->left.tid : resume->at.tid;
	resume->nfailures++;
	if (resume->stuck && ++resume->stuck_failures > MAX_STUCK_FAILURES)
		resume->stuck = false;
	if (!resume->to_mark && !resume->stuck && !resume->by_block)
		resume->done = resume->at;
	if (resume->delay == 0)
		wait_longer(resume, now);
}
