/*-------------------------------------------------------------------------
 *
 * left.c
 *	  Workers that are left alone, as nothing ends them.
 *
 * Code of users can go on for hours without letting itself be canceled, as some functions in
 * C do, and loops in PL/Perl.  Nothing ends such a worker but a crash of the server.  So it is
 * left alone with its memory, and the next one goes on behind the index at which it is, whose
 * lock it holds.  As each keeps a slot, a database with MAX_LEFT of them waits.
 *
 * What it had learned by then is taken over when it has ended after all.
 *
 * A launcher that ends cannot end such workers, either, and neither can the next one, which
 * counts them but shares no memory with them.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/left.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/backend_status.h"
#include "utils/memutils.h"

#include "compat.h"
#include "monitor/launcher.h"
#include "monitor/pass.h"
#include "ttl_index.h"

#define MAX_LEFT 2

/* A worker that cannot be ended. */
typedef struct LeftWorker
{
	Oid			database;
	pid_t		pid;
	BackgroundWorkerHandle *handle; /* NULL: an earlier launcher started it */
	dsa_pointer shared;			/* its TtlShared, if this one did */
	TtlSaid		said;			/* that it is there */
} LeftWorker;

static List *workers = NIL;

static void
add(Oid database, pid_t pid, BackgroundWorkerHandle *handle, dsa_pointer shared)
{
	MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);
	LeftWorker *left = palloc0(sizeof(LeftWorker));

	left->database = database;
	left->pid = pid;
	left->handle = handle;
	left->shared = shared;
	workers = lappend(workers, left);
	MemoryContextSwitchTo(caller);
}

/* Adds a worker, with the memory that the launcher shared with it. */
void
ttl_left_add(const TtlDatabase *db, BackgroundWorkerHandle *handle, dsa_pointer shared)
{
	pid_t		pid;

	/* one that has ended is forgotten with the next look */
	if (GetBackgroundWorkerPid(handle, &pid) != BGWH_STARTED)
		pid = InvalidPid;
	add(db->oid, pid, handle, shared);
}

static bool
is_worker(pid_t pid)
{
	const char *type = GetBackgroundWorkerTypeByPid(pid);

	return type != NULL && strcmp(type, TTL_WORKER_TYPE) == 0;
}

/*
 * Adds those that an earlier launcher left.  Returns whether there are any: a crash would
 * have ended them.
 */
bool
ttl_left_adopt(void)
{
	for (int i = 1; i <= pgstat_fetch_stat_numbackends(); i++)
	{
		LocalPgBackendStatus *local = pgstat_get_local_beentry_by_index(i);

		if (local != NULL && is_worker(local->backendStatus.st_procpid))
			add(local->backendStatus.st_databaseid, local->backendStatus.st_procpid, NULL,
				InvalidDsaPointer);
	}
	return workers != NIL;
}

/* Has it ended? */
static bool
has_ended(const LeftWorker *left)
{
	pid_t		pid;

	if (left->handle == NULL)
		return !is_worker(left->pid);
	return GetBackgroundWorkerPid(left->handle, &pid) == BGWH_STOPPED;
}

/* Says now and then that a worker is left. */
static void
report(const TtlDatabase *db, LeftWorker *left)
{
	if (!ttl_report_is_news(&left->said, ERRCODE_QUERY_CANCELED, ""))
		return;
	ereport(WARNING,
			(errcode(ERRCODE_QUERY_CANCELED),
			 errmsg("could not end the ttl_index worker with PID %d in database \"%s\"",
					(int) left->pid, db->name),
			 errdetail("It runs code that does not let itself be canceled. With %d such workers nothing is deleted in a database.",
					   MAX_LEFT),
			 errhint("See ttl_index.current_op for the index. What that code does not end, an immediate restart of the server does.")));
}

/*
 * Adds to what is kept what a worker that was left has learned of the index at which it was,
 * as of a row that is to be skipped.  No other could lock that index until it ended; what one
 * has learned of it since is learned again.
 */
static void
learn(TtlDatabase *db, dsa_area *area, const TtlShared *answer)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext context;
	TtlKept		kept;
	TtlKept		learned;
	TtlKeptIndex *index;

	if (!OidIsValid(answer->current_leaf) || !DsaPointerIsValid(answer->kept_next))
		return;
	context = AllocSetContextCreate(caller, "ttl_index left worker", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);
	ttl_kept_load(&kept, area, db->told.kept);
	ttl_kept_load(&learned, area, answer->kept_next);
	index = ttl_kept_find(&learned, answer->current_leaf);
	if (index != NULL)
	{
		*ttl_kept_index(&kept, index->relid) = *index;
		ttl_database_keep(db, area, ttl_kept_store(&kept, area));
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
}

/* Takes over what a worker has learned that has ended since it was left, and forgets it. */
static void
forget(LeftWorker *left, dsa_area *area)
{
	if (left->handle != NULL)
	{
		TtlShared  *answer = dsa_get_address(area, left->shared);
		TtlDatabase *db = ttl_database_find(left->database);

		if (db != NULL)
			learn(db, area, answer);
		if (DsaPointerIsValid(answer->kept_next))
			dsa_free(area, answer->kept_next);
		dsa_free(area, left->shared);
		pfree(left->handle);
	}
	pfree(left);
}

/*
 * Are as many workers left in a database as may be?  Forgets those of all databases that have
 * ended.
 */
bool
ttl_left_is_full(const TtlDatabase *db, dsa_area *area)
{
	int			count = 0;
	ListCell   *lc;

	foreach(lc, workers)
	{
		LeftWorker *left = lfirst(lc);

		if (has_ended(left))
		{
			forget(left, area);
			workers = foreach_delete_current(workers, lc);
		}
		else if (left->database == db->oid)
		{
			report(db, left);
			count++;
		}
	}
	return count >= MAX_LEFT;
}
