/*-------------------------------------------------------------------------
 *
 * kept.c
 *	  State of a database that is kept from one sub-pass to the next.
 *
 * A process ends after its turn.  What the next one has to know of an index (where it
 * continues, what failed, how long it waits) is in a hash table in the dynamic shared memory
 * of the launcher, or of the session that calls run_pass().  A process works with copies of
 * the entries that it uses, and writes them back when it ends.
 *
 * State of the whole pass is in TtlPassState.  Each process has a copy of that, too, and
 * tasks.c adds the numbers by which the copy has increased.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/transam.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/hsearch.h"
#include "utils/syscache.h"

#include "compat.h"
#include "shared/kept.h"
#include "stats/stats.h"
#include "ttl_index.h"

#define INITIAL_INDEXES 256

/* The rate of a pass counts after the first seconds, or the first tenth of the rows. */
#define FIRST_US INT64CONST(5000000)
#define FIRST_PART 10

#define MAX_DELAY 60			/* minutes */
#define MAX_AGAIN_US (60 * USECS_PER_MINUTE)

static void
init_entry(TtlResumeState *index, TtlResumeKey key)
{
	memset(index, 0, sizeof(*index));
	index->key = key;
	ttl_cursor_init(&index->cursor, key.relid, InvalidOid);
}

static const dshash_parameters parameters = TTL_DSHASH_PARAMETERS(TtlResumeKey, TtlResumeState);

dshash_table *
ttl_kept_create(dsa_area *area)
{
	return dshash_create(area, &parameters, NULL);
}

/* Initializes the state of a database of which nothing is known. */
void
ttl_kept_init(TtlPassState *kept)
{
	memset(kept, 0, sizeof(*kept));
	kept->survey.left = kept->survey.time_left = kept->survey.worst_lag = -1;
}

/* Attaches a process.  Its copies of entries are in the current memory context. */
void
ttl_kept_open(TtlPassState *kept, dsa_area *area, dshash_table_handle handle)
{
	HASHCTL		info = {.keysize = sizeof(TtlResumeKey),.entrysize = sizeof(TtlResumeState),
		.hcxt = CurrentMemoryContext
	};

	kept->shared = dshash_attach(area, &parameters, handle, NULL);
	kept->indexes = hash_create("ttl_index kept indexes", INITIAL_INDEXES, &info,
								HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* Copies all entries of this database.  For a survey. */
void
ttl_kept_load(TtlPassState *kept)
{
	dshash_seq_status scan;
	TtlResumeState *entry;

	dshash_seq_init(&scan, kept->shared, false);
	while ((entry = dshash_seq_next(&scan)) != NULL)
	{
		if (entry->key.database == MyDatabaseId)
			*(TtlResumeState *) hash_search(kept->indexes, &entry->key, HASH_ENTER, NULL) = *entry;
	}
	dshash_seq_term(&scan);
}

/* Writes the copies back. */
void
ttl_kept_store(const TtlPassState *kept)
{
	HASH_SEQ_STATUS scan;
	TtlResumeState *index;

	hash_seq_init(&scan, kept->indexes);
	while ((index = hash_seq_search(&scan)) != NULL)
	{
		bool		found;
		TtlResumeState *entry = dshash_find_or_insert(kept->shared, &index->key, &found);

		*entry = *index;
		dshash_release_lock(kept->shared, entry);
	}
}

/* Adds what a copy has gained since it was made. */
void
ttl_kept_add(TtlPassState *kept, const TtlPassState *before, const TtlPassState *after)
{
#define ADD(field) (kept->field += after->field - before->field)
	ADD(sum.deleted);
	ADD(sum.rows);
	ADD(sum.weighted);
	ADD(sum.left);
	ADD(sum.partitions);
	ADD(sum.estimated_rows);
	ADD(sum.archived);
	ADD(sum.archived_partitions);
	ADD(sum.locked);
	ADD(sum.failed);
	ADD(lag_pauses);
	ADD(unfolded_rows);
#undef ADD
	kept->sum.estimated = kept->sum.estimated || after->sum.estimated;
	kept->sum.not_estimated = kept->sum.not_estimated || after->sum.not_estimated;
	if (memcmp(&after->reported, &before->reported, sizeof(TtlReported)) != 0)
		kept->reported = after->reported;
	if (after->uncounted.at != before->uncounted.at)
		kept->uncounted = after->uncounted;
}

/* Notes that a worker died at an index.  The next survey counts it. */
void
ttl_kept_died(dshash_table *shared, Oid database, Oid relid, TtlDeath death)
{
	TtlResumeKey key = {database, relid};
	bool		found;
	TtlResumeState *entry = dshash_find_or_insert(shared, &key, &found);

	if (!found)
		init_entry(entry, key);
	entry->death = death;
	dshash_release_lock(shared, entry);
}

/* Forgets a database that is gone. */
void
ttl_kept_forget(dshash_table *shared, Oid database)
{
	dshash_seq_status scan;
	TtlResumeState *entry;

	dshash_seq_init(&scan, shared, true);
	while ((entry = dshash_seq_next(&scan)) != NULL)
	{
		if (entry->key.database == database)
			dshash_delete_current(&scan);
	}
	dshash_seq_term(&scan);
}

/* Finds what is kept of an index or table; NULL if nothing. */
TtlResumeState *
ttl_kept_find(const TtlPassState *kept, Oid relid)
{
	TtlResumeKey key = {MyDatabaseId, relid};
	TtlResumeState *index = hash_search(kept->indexes, &key, HASH_FIND, NULL);
	TtlResumeState *entry;

	if (index != NULL)
		return index;
	entry = dshash_find(kept->shared, &key, false);
	if (entry == NULL)
		return NULL;
	index = hash_search(kept->indexes, &key, HASH_ENTER, NULL);
	*index = *entry;
	dshash_release_lock(kept->shared, entry);
	return index;
}

/* Finds what is kept of an index or table, and makes an entry if there is none. */
TtlResumeState *
ttl_kept_index(TtlPassState *kept, Oid relid)
{
	TtlResumeKey key = {MyDatabaseId, relid};
	TtlResumeState *index = ttl_kept_find(kept, relid);

	if (index == NULL)
	{
		index = hash_search(kept->indexes, &key, HASH_ENTER, NULL);
		init_entry(index, key);
	}
	return index;
}

/* Begins a pass, in a survey that has loaded all entries. */
void
ttl_kept_begin_pass(TtlPassState *kept, TimestampTz now)
{
	HASH_SEQ_STATUS scan;
	TtlResumeState *index;

	kept->pass_at = now;
	kept->pass_xid = ReadNextTransactionId();
	memset(&kept->sum, 0, sizeof(kept->sum));
	hash_seq_init(&scan, kept->indexes);
	while ((index = hash_seq_search(&scan)) != NULL)
	{
		bool		goes_on = ttl_cursor_begin_pass(&index->cursor, now);

		index->failed_until = 0;
		index->skipped = false;
		index->deleted = 0;
		index->estimated = false;
		/* this is too far ahead if the clock has gone back */
		index->retry_at = Min(index->retry_at, now + index->delay * USECS_PER_MINUTE);

		/* drop the entry if it holds nothing, or if the relation is gone */
		if ((goes_on || index->death != TTL_NOT_DEAD || index->delay > 0 ||
			 index->first_docs > 0 || index->single_docs > 0 ||
			 index->reported.at != 0 || OidIsValid(index->last_leaf)) &&
			SearchSysCacheExists1(RELOID, ObjectIdGetDatum(index->key.relid)))
			continue;
		(void) dshash_delete_key(kept->shared, &index->key);
		(void) hash_search(kept->indexes, &index->key, HASH_REMOVE, NULL);
	}
}

/* Notes which indexes fail by the counters, which other sessions write as well. */
void
ttl_kept_set_failing(TtlPassState *kept, HTAB *failing)
{
	HASH_SEQ_STATUS scan;
	TtlFailing *entry;
	TtlResumeState *index;

	hash_seq_init(&scan, kept->indexes);
	while ((index = hash_seq_search(&scan)) != NULL)
		index->failing = false;
	hash_seq_init(&scan, failing);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		if (entry->at != 0)
			ttl_kept_index(kept, entry->root)->failing = true;
	}
}

/* Has an index or partition failed lately in this pass?  The clock may have gone back. */
static bool
has_failed(const TtlResumeState *index, TimestampTz now)
{
	return now < index->failed_until && index->failed_until - now <= MAX_AGAIN_US;
}

/*
 * Notes that an index or partition has failed, and whether it is skipped.  Returns false if
 * that is known.  A pass that lasts tries again after as much time as it has lasted so far,
 * so that these tries do not keep it going themselves.
 */
bool
ttl_kept_failed(TtlPassState *kept, Oid relid, bool skipped, TimestampTz now)
{
	TtlResumeState *index = ttl_kept_index(kept, relid);
	bool		is_new = !has_failed(index, now);

	if (is_new || skipped)
		index->failed_until = now +
			Min(Max(now - kept->pass_at, ttl_monitor_sleep * USECS_PER_SEC), MAX_AGAIN_US);
	index->skipped = skipped || (index->skipped && !is_new);
	return is_new;
}

/*
 * Notes that work on an index or partition was canceled.  It waits for 1, 2, 4 ... 60
 * minutes.  A visit that gets through it resets the delay.
 */
void
ttl_kept_canceled(TtlPassState *kept, Oid relid, TimestampTz now)
{
	TtlResumeState *index = ttl_kept_index(kept, relid);

	/* a survey looks at it even while it waits */
	if (index->delay == 0)
		index->delay = 1;
	else if (now >= index->retry_at)
		index->delay = Min(2 * index->delay, MAX_DELAY);
	index->retry_at = now + index->delay * USECS_PER_MINUTE;
}

/* Is an index or partition left out now, because it failed or was canceled? */
bool
ttl_kept_is_left_out(const TtlPassState *kept, Oid relid, TimestampTz now)
{
	const TtlResumeState *index = ttl_kept_find(kept, relid);

	return index != NULL && ((index->skipped && has_failed(index, now)) ||
							 (index->delay > 0 && now < index->retry_at));
}

/* Notes rows that a pass has deleted one by one. */
void
ttl_kept_deleted(TtlPassState *kept, Oid root, int64 rows, TimestampTz now)
{
	/* the clock may have gone back */
	int64		took = Max(now - kept->pass_at, 0);
	TtlResumeState *index;

	if (rows == 0)
		return;
	index = ttl_kept_index(kept, root);
	if (index->estimated && index->due > index->deleted)
		kept->sum.left -= Min(rows, index->due - index->deleted);
	index->deleted += rows;
	kept->sum.rows += rows;
	kept->sum.weighted += (double) rows * took;
}

/* Notes how many rows were due by an index when the pass began; -1: not known. */
void
ttl_kept_estimated(TtlPassState *kept, Oid root, int64 due)
{
	TtlResumeState *index = ttl_kept_index(kept, root);

	index->estimated = true;
	index->due = due;
	if (due < 0)
		kept->sum.not_estimated = true;
	else
	{
		kept->sum.estimated = true;
		kept->sum.left += Max(due - index->deleted, 0);
	}
}

/*
 * The time in microseconds for the rows that are left of a pass that began so long ago; -1 if
 * it is not known.
 *
 * The rate changes during a pass: cached pages come first, autovacuum starts, others begin to
 * work.  A window of fixed length fits neither a pass of half a minute nor one of a day.  So
 * each row is weighted by the time since the pass began: at an even rate, the last half of
 * the time makes up three quarters of the sum.
 */
static int64
time_left(const TtlPassSum *sum, int64 left, int64 took)
{
	double		paced;			/* would be deleted by now at the recent rate */
	double		time;

	/* the clock may have gone back; in the first seconds a rate says little */
	if (left < 0 || sum->weighted <= 0 || took <= 0 ||
		(took < FIRST_US && sum->rows < (sum->rows + left) / FIRST_PART))
		return -1;
	paced = 2 * sum->weighted / took;
	time = left / paced * took;
	return time < (double) PG_INT64_MAX / 2 ? (int64) rint(time) : -1;
}

/* Says how far the pass is, in total and at an index, which may be invalid. */
void
ttl_kept_progress(const TtlPassState *kept, Oid root, TtlProgress *progress)
{
	const TtlResumeState *index = OidIsValid(root) ? ttl_kept_find(kept, root) : NULL;

	progress->begun = kept->pass_at;
	progress->deleted = kept->sum.rows;
	progress->left = kept->sum.estimated && !kept->sum.not_estimated ? kept->sum.left : -1;
	progress->time_left = time_left(&kept->sum, progress->left,
									GetCurrentTimestamp() - kept->pass_at);
	progress->index_deleted = index ? index->deleted : 0;
	/* more than was expected: it is not known how many more */
	progress->index_left = index && index->estimated && index->due >= index->deleted ?
		index->due - index->deleted : -1;
}

/*
 * Finds up to which key an index of this database was read, if its cursor is worth keeping.
 * If rows of it have failed, these can be older than that key.
 */
void
ttl_kept_position(dsa_area *area, dshash_table_handle handle, Oid indexrelid,
				  TtlScanPosition *position)
{
	TtlResumeKey key = {MyDatabaseId, indexrelid};
	dshash_table *shared = dshash_attach(area, &parameters, handle, NULL);
	TtlResumeState *entry = dshash_find(shared, &key, false);
	int64		read_to;

	if (entry != NULL)
	{
		if (entry->cursor.keep && !ttl_cursor_rows_failed(&entry->cursor) &&
			ttl_cursor_read_to(&entry->cursor, &read_to))
			*position = ttl_index_scan_from(read_to);
		dshash_release_lock(shared, entry);
	}
	dshash_detach(shared);
}

/*
 * Should this be reported now?  If so, the caller reports it.  A problem of one pass is usually
 * one of the next pass, too: it is reported when it begins, when its reason (the text before any
 * number) changes, and once an hour while it lasts.
 */
bool
ttl_kept_is_news(TtlReported *reported, int sqlerrcode, const char *text)
{
	TimestampTz now = GetCurrentTimestamp();
	uint32		reason = (uint32) sqlerrcode;

	/* ignore words with digits: numbers, times and keys of rows differ each time */
	while (*text != '\0')
	{
		int			length = strcspn(text, " ");

		if ((int) strcspn(text, "0123456789") >= length)
			reason = hash_combine(reason, hash_bytes((const unsigned char *) text, length));
		text += length;
		text += strspn(text, " ");
	}
	/* the clock may have gone back */
	if (reported->at != 0 && reported->reason == reason &&
		now >= reported->at && now - reported->at < USECS_PER_HOUR)
		return false;
	reported->reason = reason;
	reported->at = now;
	return true;
}
