/*-------------------------------------------------------------------------
 *
 * schedule.c
 *	  How large a batch of a visit is, and when the visit ends.
 *
 * The rules are those of MongoDB's TTL monitor; src/pass/README has the words.  This file
 * opens nothing and reads neither a clock nor a setting.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pass/pass.h"

#define FIRST_BATCH_ENTRIES 1200

/* Each batch has at most so many times the rows of the one before. */
#define MAX_GROWTH 8

/* How much smaller a batch is after one that failed: each failure can take a long time. */
#define NARROWING 10

void
ttl_schedule_visit_begin(TtlVisit *visit, const TtlLimits *limits,
						 const TtlResumeState *kept, TimestampTz now)
{
	bool		has_size = kept != NULL && kept->first_docs > 0;

	*visit = (TtlVisit) {.limits = *limits,.begun = now,.batch_entries = FIRST_BATCH_ENTRIES};
	visit->batch_size = Min(has_size ? kept->first_docs : TTL_FIRST_BATCH_DOCS,
							limits->batch_docs);
}

/* How many rows the next batch may delete; 0 ends the visit. */
int
ttl_schedule_batch_size(const TtlVisit *visit, TimestampTz now)
{
	int64		size = visit->single_docs > 0 ? 1 : visit->batch_size;
	int64		limit = visit->limits.index_time;

	/* the clock may have gone back */
	if (visit->over ||
		(limit > 0 && visit->started != 0 &&
		 (now < visit->started || now - visit->started >= limit * 1000)))
		return 0;
	if (visit->limits.index_docs > 0)
		size = Min(size, visit->limits.index_docs - visit->deleted);
	return Max(size, 0);
}

/*
 * Notes how long a batch took, to find the part of the time that does not depend on the
 * number of rows, for example that of a statement trigger.  It shows when a batch of half
 * the rows or fewer takes hardly less time: if 1000 rows took 100 ms, and then 500 rows took
 * 90 ms, that is 0.02 ms a row, and 80 ms for the batch.  If a later batch takes much less
 * time, there was another cause, and that is forgotten.
 */
static void
note_speed(TtlVisit *visit, int64 rows, int64 took_us)
{
	bool		much_smaller;

	if (2 * took_us < visit->fixed_us)
		visit->fixed_us = visit->larger_rows = 0;
	much_smaller = 2 * rows <= visit->larger_rows;
	if (much_smaller)
	{
		double		row_us = (double) Max(visit->larger_us - took_us, 0) /
			(visit->larger_rows - rows);

		visit->fixed_us = Max(took_us - rows * row_us, 0);
		/* a batch must not come near its timeout */
		if (visit->limits.batch_timeout > 0)
			visit->fixed_us = Min(visit->fixed_us,
								  (int64) visit->limits.batch_timeout * 1000 / 4);
	}
	if (much_smaller || rows > visit->larger_rows)
	{
		visit->larger_rows = rows;
		visit->larger_us = took_us;
	}
}

/*
 * Sets the batch size to what would have taken the target time.  At least half of the time
 * is for the rows, or batches would become smaller and smaller.
 */
static void
adapt_size(TtlVisit *visit, int64 rows, int64 took_us)
{
	int64		size = rows * MAX_GROWTH;
	int64		target_us;

	note_speed(visit, rows, took_us);
	target_us = Max((int64) visit->limits.batch_time * 1000,
					2 * visit->fixed_us);
	if (took_us > visit->fixed_us)
		size = Min(size, rows * (target_us - visit->fixed_us) /
				   (took_us - visit->fixed_us));
	size = Max(Min(size, visit->limits.batch_docs), 1);

	/* not smaller if only few entries led to a row */
	if (size > visit->batch_size || took_us > target_us)
		visit->batch_size = size;
}

/*
 * Notes what a batch of this size did, and when it began and ended.  `over`: nothing more
 * is due.
 */
void
ttl_schedule_batch_done(TtlVisit *visit, const TtlBatch *batch, int size,
						bool over, TimestampTz begun, TimestampTz now)
{
	visit->batches++;
	visit->deleted += batch->deleted;
	visit->failures += batch->failed > 0 ? 1 : 0;
	visit->rows_wait = visit->rows_wait || batch->waits;
	visit->single_docs = Max(visit->single_docs - batch->live, 0);
	if (visit->started == 0 && batch->candidates > 0)
		visit->started = begun;
	visit->busy = visit->busy || batch->busy;
	visit->over = batch->busy || over;
	visit->more = !visit->over && !batch->past_pass;

	/* a short batch says nothing about the speed */
	if (batch->candidates < size)
		return;
	/* in a larger batch are more of the rows that others wait for */
	if (batch->waits &&
		(now - begun) * MAX_GROWTH * 2 < (int64) visit->limits.batch_timeout * 1000)
		visit->batch_size = Min(visit->batch_size * MAX_GROWTH, visit->limits.batch_docs);
	else if (batch->live > 0)
		adapt_size(visit, batch->live, now - begun);
	else
	{
		/* only dead rows, or rows that are not due: look at more entries */
		int64		most = batch->candidates * MAX_GROWTH;

		if (now > begun)
			most = Min(most, batch->candidates * visit->limits.batch_time * 1000 / (now - begun));
		visit->batch_entries = Max(Min(most, visit->limits.batch_docs), FIRST_BATCH_ENTRIES);
	}
}

/*
 * Notes that a batch of this size has failed.  To find the row, the next batch is smaller,
 * down to a single row.  If the batch was canceled, these rows are taken one by one, because
 * each attempt at more than one would cost as much.
 */
void
ttl_schedule_batch_failed(TtlVisit *visit, const TtlBatch *batch, int size,
						  bool canceled, bool gives_up, TimestampTz begun)
{
	bool		can_narrow = batch->candidates > 0 && !gives_up;

	if (size == 1)
		visit->single_docs = Max(visit->single_docs - batch->live, 0);
	else if (canceled)
		visit->single_docs = batch->live + 1;
	visit->batches++;
	visit->failures += gives_up ? 0 : 1;
	if (visit->started == 0)
		visit->started = begun;
	visit->over = !can_narrow;
	visit->more = can_narrow;
	visit->batch_size = can_narrow && !canceled ? Max(size / NARROWING, 1) : 1;
}
