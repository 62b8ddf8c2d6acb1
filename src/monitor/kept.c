/*-------------------------------------------------------------------------
 *
 * kept.c
 *	  What is kept of a database from one sub-pass to the next.
 *
 * A worker ends after its sub-pass, so the launcher keeps, for each database, what the
 * next worker has to know: which pass it is in and, of each index, where it goes on
 * and what went wrong.  In the worker, and in run_pass(), the indexes are a hash
 * table.  For the launcher, which only stores it, everything is packed into one piece
 * of shared memory.  The number of indexes has no limit: an index that is forgotten
 * would begin anew in each sub-pass, and the pass would never end.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/kept.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "expire/expire.h"
#include "monitor/kept.h"
#include "ttl_index.h"

#define INITIAL_INDEXES 256
#define MAX_DELAY 60			/* minutes */
#define MAX_REST 4				/* likewise */
#define MAX_AGAIN_US (60 * USECS_PER_MINUTE)

/*
 * What was due is estimated where a pass has deleted so many rows for each index that
 * holds them: what goes in a moment needs no estimate.
 */
#define ESTIMATE_ROWS 1000

/* Initializes it for a database of which nothing is known, in the current context. */
void
ttl_kept_init(TtlKept *kept)
{
	HASHCTL		info = {.keysize = sizeof(Oid),.entrysize = sizeof(TtlKeptIndex),
		.hcxt = CurrentMemoryContext
	};

	memset(kept, 0, sizeof(*kept));
	kept->unfolded_rows = TTL_UNFOLDED_UNKNOWN;
	kept->indexes = hash_create("ttl_index kept indexes", INITIAL_INDEXES, &info,
								HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* Finds what is kept of an index, or of a partition that is dropped; NULL if nothing. */
TtlKeptIndex *
ttl_kept_find(const TtlKept *kept, Oid relid)
{
	return hash_search(kept->indexes, &relid, HASH_FIND, NULL);
}

/* Finds what is kept of it, and makes an entry if there is none. */
TtlKeptIndex *
ttl_kept_index(TtlKept *kept, Oid relid)
{
	bool		found;
	TtlKeptIndex *index = hash_search(kept->indexes, &relid, HASH_ENTER, &found);

	if (!found)
	{
		memset(index, 0, sizeof(*index));
		index->relid = relid;
		ttl_cursor_init(&index->cursor, relid, InvalidOid);
	}
	return index;
}

/* Begins a pass: forgets what does not outlast one. */
void
ttl_kept_begin_pass(TtlKept *kept, TimestampTz now)
{
	HASH_SEQ_STATUS scan;
	TtlKeptIndex *index;

	kept->pass_at = now;
	kept->pass_xid = ReadNextTransactionId();
	memset(&kept->sum, 0, sizeof(kept->sum));
	kept->again_delay = Min(ttl_monitor_sleep * USECS_PER_SEC, MAX_AGAIN_US);
	kept->again_at = now + kept->again_delay;
	hash_seq_init(&scan, kept->indexes);
	while ((index = hash_seq_search(&scan)) != NULL)
	{
		bool		goes_on = ttl_cursor_begin_pass(&index->cursor, now);

		/*
		 * what once was canceled, and is not any more, begins with a minute
		 * again
		 */
		if (index->visited && !index->skipped)
			index->delay = 0;
		index->failed = index->skipped = index->summed = false;
		index->busy = index->visited = false;
		index->pace = (TtlPace)
		{
			0
		};
		index->estimated = false;
		/* this is too far ahead if the clock has gone back */
		index->retry_at = Min(index->retry_at,
							  now + index->delay * USECS_PER_MINUTE);
		if ((goes_on || index->hangs || index->delay > 0 || index->first_docs > 0 ||
			 index->single_docs > 0 || index->said.at != 0 || OidIsValid(index->last_leaf)) &&
			SearchSysCacheExists1(RELOID, ObjectIdGetDatum(index->relid)))
			continue;
		(void) hash_search(kept->indexes, &index->relid, HASH_REMOVE, NULL);
	}
}

/*
 * Lets a pass that lasts try again what it has left for the next one: rows of one index can
 * keep it going for hours, and the others must not wait for that.  The delay grows, so that
 * these tries do not keep it going themselves.
 */
void
ttl_kept_try_again(TtlKept *kept, TimestampTz now)
{
	HASH_SEQ_STATUS scan;
	TtlKeptIndex *index;

	/* this is too far ahead if the clock has gone back */
	kept->again_at = Min(kept->again_at, now + kept->again_delay);
	if (now < kept->again_at)
		return;
	kept->again_delay = Min(2 * kept->again_delay, MAX_AGAIN_US);
	kept->again_at = now + kept->again_delay;
	hash_seq_init(&scan, kept->indexes);
	while ((index = hash_seq_search(&scan)) != NULL)
	{
		/* one that hangs is not well until a visit after this one says so */
		index->visited = index->visited && !index->skipped;
		index->failed = index->skipped = false;
	}
}

/*
 * Notes which indexes fail, as the counters say.  What the log was told of one that another
 * session has found to be well is over.
 */
void
ttl_kept_set_failing(TtlKept *kept, const List *failing)
{
	HASH_SEQ_STATUS scan;
	TtlKeptIndex *index;
	ListCell   *lc;

	foreach(lc, failing)
		ttl_kept_index(kept, ((TtlFailing *) lfirst(lc))->root)->still_failing = true;
	hash_seq_init(&scan, kept->indexes);
	while ((index = hash_seq_search(&scan)) != NULL)
	{
		if (index->failing && !index->still_failing)
			index->said.at = 0;
		index->failing = index->still_failing;
		index->still_failing = false;
	}
}

/*
 * Notes that work on an index had to be canceled: at one of those that hold its rows, at a
 * partition, or at the whole of it.  It would take that long in every pass, so what hangs
 * waits, longer each time that it is tried again.  The others go on.
 */
void
ttl_kept_canceled(TtlKept *kept, Oid root, Oid leaf, TimestampTz now)
{
	TtlKeptIndex *index = ttl_kept_index(kept, root);

	if (!ttl_kept_waits(index, now))
		index->delay = index->delay == 0 ? 1 : Min(2 * index->delay, MAX_DELAY);
	index->retry_at = now + index->delay * USECS_PER_MINUTE;
	ttl_kept_index(kept, leaf)->hangs = true;
}

/* Is what hangs of an index not to be tried again yet? */
bool
ttl_kept_waits(const TtlKeptIndex *index, TimestampTz now)
{
	return index->delay > 0 && now < index->retry_at;
}

/*
 * Is all of an index put off: did it hang at the last try, and is it not time for another
 * one?  Where several of those that hold its rows did, the next one may or may not hang, so
 * it is tried sooner.
 */
bool
ttl_kept_is_put_off(const TtlKept *kept, Oid relid, TimestampTz now)
{
	const TtlKeptIndex *index = ttl_kept_find(kept, relid);
	int			sooner;

	if (index == NULL || !(index->hangs || index->rests))
		return false;
	sooner = index->hangs ? 0 : Max(index->delay - MAX_REST, 0);
	return ttl_kept_waits(index, now + sooner * USECS_PER_MINUTE);
}

/* Notes rows that a pass has deleted one by one. */
void
ttl_kept_deleted(TtlKept *kept, Oid root, int64 rows, TimestampTz now)
{
	/* the clock may have gone back */
	int64		took = Max(now - kept->pass_at, 0);
	TtlKeptIndex *index;

	if (rows == 0)
		return;
	index = ttl_kept_index(kept, root);
	if (index->estimated && index->due > index->pace.rows)
		kept->sum.left -= Min(rows, index->due - index->pace.rows);
	ttl_pace_add(&index->pace, rows, took);
	ttl_pace_add(&kept->sum.pace, rows, took);
}

/* Is it time to estimate what was due by an index when the pass began? */
bool
ttl_kept_lacks_estimate(const TtlKept *kept, Oid root, int leaves)
{
	const TtlKeptIndex *index = ttl_kept_find(kept, root);

	return index != NULL && !index->estimated &&
		index->pace.rows >= ESTIMATE_ROWS * (int64) leaves;
}

/* Notes that estimate; -1 for one that could not be made. */
void
ttl_kept_estimated(TtlKept *kept, Oid root, int64 due)
{
	TtlKeptIndex *index = ttl_kept_index(kept, root);

	index->estimated = true;
	index->due = due;
	if (due < 0)
	{
		kept->sum.not_estimated = true;
		return;
	}
	kept->sum.estimated = true;
	kept->sum.left += Max(due - index->pace.rows, 0);
}

/* Sums up how far the pass is, in all and by an index, which may be invalid. */
void
ttl_kept_progress(const TtlKept *kept, Oid root, TimestampTz now, TtlProgress *progress)
{
	int64		took = now - kept->pass_at;
	const TtlKeptIndex *index = OidIsValid(root) ? ttl_kept_find(kept, root) : NULL;

	progress->begun = kept->pass_at;
	progress->deleted = kept->sum.pace.rows;
	progress->paced = ttl_pace_rows(&kept->sum.pace, took);
	progress->left = kept->sum.estimated && !kept->sum.not_estimated ? kept->sum.left : -1;
	progress->index_deleted = index ? index->pace.rows : 0;
	progress->index_paced = index ? ttl_pace_rows(&index->pace, took) : 0;
	progress->index_due = index && index->estimated ? index->due : -1;
}

/* Packs it into shared memory of its own; an invalid pointer where there is none for it. */
dsa_pointer
ttl_kept_store(const TtlKept *kept, dsa_area *area)
{
	Size		size = sizeof(TtlKept) +
	hash_get_num_entries(kept->indexes) * sizeof(TtlKeptIndex);
	dsa_pointer packed = dsa_allocate_extended(area, size,
											   DSA_ALLOC_HUGE | DSA_ALLOC_NO_OOM);
	TtlKept    *header;
	TtlKeptIndex *next;
	HASH_SEQ_STATUS scan;
	TtlKeptIndex *index;

	if (!DsaPointerIsValid(packed))
		return packed;
	header = dsa_get_address(area, packed);
	next = (TtlKeptIndex *) (header + 1);
	*header = *kept;
	header->nindexes = 0;
	hash_seq_init(&scan, kept->indexes);
	while ((index = hash_seq_search(&scan)) != NULL)
	{
		*next++ = *index;
		header->nindexes++;
	}
	return packed;
}

/*
 * Lists the indexes whose cursor is worth keeping, with the keys up to which they have been
 * read, and returns how many there are; known is NULL to count them.  Where rows have failed,
 * the oldest ones may be among these, and it is not said.
 */
int
ttl_kept_read(const void *packed, Oid database, TtlKnownIndex *known)
{
	const TtlKept *header = packed;
	const TtlKeptIndex *indexes = (const TtlKeptIndex *) (header + 1);
	int			count = 0;

	for (int64 i = 0; i < header->nindexes; i++)
	{
		const TtlCursor *cursor = &indexes[i].cursor;
		int64		key;

		if (!cursor->keep || ttl_cursor_rows_failed(cursor) ||
			!ttl_cursor_read_to(cursor, &key))
			continue;
		if (known != NULL)
			known[count] = (TtlKnownIndex)
		{
			database, indexes[i].relid, key
		};
		count++;
	}
	return count;
}

/* Unpacks it, if it is there, into the current memory context. */
void
ttl_kept_load(TtlKept *kept, dsa_area *area, dsa_pointer packed)
{
	const TtlKept *header;
	const TtlKeptIndex *indexes;
	HTAB	   *table;

	ttl_kept_init(kept);
	if (!DsaPointerIsValid(packed))
		return;
	header = dsa_get_address(area, packed);
	indexes = (const TtlKeptIndex *) (header + 1);
	table = kept->indexes;
	*kept = *header;
	kept->indexes = table;
	for (int64 i = 0; i < header->nindexes; i++)
		*ttl_kept_index(kept, indexes[i].relid) = indexes[i];
}
