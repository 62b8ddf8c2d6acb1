/*-------------------------------------------------------------------------
 *
 * tasks.c
 *	  The processes of a pass: started, watched and reaped (see README).
 *
 * The launcher and run_pass() call ttl_tasks_step() from an event loop.  It waits for
 * nothing.  At most ttl_index.max_workers processes run at a time.  The next one is for the
 * database, and there for the owner, that was served least recently.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#include "server/server.h"

/* The processes are looked after this often. */
#define LOOK_MS 500

/* Maximum time a process may wait for a lock while no timeout is armed, as when it starts. */
#define MAX_LOCK_WAIT_MS (10 * 1000)

/* A worker cannot be ended if it is over its limit for so long: its timer has tried to. */
#define MAX_OVERDUE_MS (15 * 1000)

/* Without a free slot, one is asked for at these intervals; by run_pass() so many times. */
#define SLOT_RETRY_MS 1000
#define SLOT_TRIES 10

/* What is known of the owner of tables in a database. */
typedef struct Owner
{
	Oid			role;
	bool		is_superuser;
	int			hanging;		/* workers of it that cannot be ended */
	uint64		served;			/* when it last had a worker: larger is later */
	Oid			resume_at;		/* the index with which its next worker begins */
	List	   *roots;			/* OIDs of TTL indexes that wait for a worker */
} Owner;

/* A process that runs. */
typedef struct Process
{
	TtlDatabase *db;
	Owner	   *owner;			/* NULL: a survey */
	BackgroundWorkerHandle *handle;
	dsa_pointer pointer;
	TtlShared  *shared;
	TtlPassState before;		/* what it was told of the pass */
	shm_mq_handle *messages;	/* for a session, else NULL */
	bool		ended;			/* its database is wanted, or it waited for a lock */
	bool		hangs;			/* it cannot be ended, and is not waited for */
	instr_time	free_at;		/* when it was last seen not to wait for a lock */
	uint32		work;			/* the piece of work that it was last seen at, */
	instr_time	work_at;		/* and since when */
} Process;

static dsa_area *area = NULL;
static TtlCommon *common;
static dsa_pointer common_pointer;
static dshash_table *kept;		/* TtlResumeState */
static dshash_table *known;		/* TtlKnownDatabase */
static MemoryContext context;
static List *databases = NIL;	/* TtlDatabase */
static List *processes = NIL;	/* Process */
static uint64 turns = 0;
static bool held;				/* nothing may be deleted in any database */
static bool lacks_slot;			/* for the process that was last to be started */
static int	slot_tries;			/* in vain, while no process of ours ran */
static instr_time slot_at;		/* when that was last tried */
static instr_time looked_at;
static TtlReported slots_reported;
static TtlReported lock_reported;
static TtlReported hang_reported;

/* Milliseconds since a moment, by a clock that nobody can set. */
int64
ttl_tasks_elapsed(instr_time since)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, since);
	return (int64) INSTR_TIME_GET_MILLISEC(now);
}

/* Waits for so many milliseconds, or until a signal. */
void
ttl_tasks_nap(long milliseconds)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 milliseconds, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

/* Creates the memory that is shared with the processes.  The caller is that of run_pass(). */
void
ttl_tasks_init(Oid caller)
{
	MemoryContext old;

	context = AllocSetContextCreate(TopMemoryContext, "ttl_index tasks",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	held = lacks_slot = false;
	slot_tries = 0;
	INSTR_TIME_SET_CURRENT(looked_at);
	/* its lock is hardly ever waited for, and each launcher would use up a tranche */
	area = dsa_create(LWTRANCHE_PARALLEL_QUERY_DSA);
	dsa_pin_mapping(area);
	common_pointer = dsa_allocate0(area, sizeof(TtlCommon));
	common = dsa_get_address(area, common_pointer);
	common->starter_pid = MyProcPid;
	common->caller = caller;
	pg_atomic_init_u32(&common->waiting, 0);
	SpinLockInit(&common->throttle.mutex);
	kept = ttl_kept_create(area);
	common->kept = dshash_get_hash_table_handle(kept);
	known = ttl_overview_create(area);
	common->databases = dshash_get_hash_table_handle(known);
	if (OidIsValid(caller))
		common->settings = ttl_settings_store(area);
	MemoryContextSwitchTo(old);
}

/* Ends all processes, and frees the memory.  Also a callback. */
void
ttl_tasks_end(int code, Datum arg)
{
	ListCell   *lc;

	if (area == NULL)
		return;
	foreach(lc, processes)
	{
		Process    *process = lfirst(lc);

		TerminateBackgroundWorker(process->handle);
		if (process->messages != NULL)
			dsm_detach(dsm_find_mapping(process->shared->messages));
	}
	dshash_detach(kept);
	dshash_detach(known);
	dsa_detach(area);
	area = NULL;
	MemoryContextDelete(context);
	databases = processes = NIL;
}

/* Returns the number of the next pass, for pg_stat_activity. */
int64
ttl_tasks_next_pass(void)
{
	return ++common->pass;
}

/* Notes that an index has crashed the server. */
void
ttl_tasks_note_crash(Oid database, Oid indexrelid)
{
	ttl_kept_died(kept, database, indexrelid, TTL_DEAD_CRASHED);
}

/* Shows other processes whether the launcher visits databases, and where its memory is. */
void
ttl_tasks_show(void)
{
	TtlLauncher launcher = {
		.enabled = ttl_monitor_enabled,
		.read_only = DefaultXactReadOnly,
		.no_slot = lacks_slot,
		.area = dsa_get_handle(area),
		.common = common_pointer
	};

	ttl_progress_launcher(&launcher);
}

/* Finds what is known of a database, or adds it. */
TtlDatabase *
ttl_tasks_add_database(Oid oid)
{
	MemoryContext old;
	TtlDatabase *db;
	ListCell   *lc;

	foreach(lc, databases)
	{
		db = lfirst(lc);
		if (db->oid == oid)
			return db;
	}
	old = MemoryContextSwitchTo(context);
	db = palloc0(sizeof(TtlDatabase));
	db->oid = oid;
	ttl_kept_init(&db->kept);
	databases = lappend(databases, db);
	MemoryContextSwitchTo(old);
	return db;
}

/* Gives up the work of a database that no worker has begun, until the next pass. */
static void
drop_work(TtlDatabase *db)
{
	ListCell   *lc;

	foreach(lc, db->owners)
	{
		Owner	   *owner = lfirst(lc);

		list_free(owner->roots);
		owner->roots = NIL;
	}
	db->waiting = 0;
	db->more = false;
	db->stage = db->running > 0 ? TTL_STAGE_WORKING : TTL_STAGE_DONE;
}

/*
 * Forgets the databases that were not seen since the last time, but for those with
 * processes.
 */
void
ttl_tasks_forget_unseen(void)
{
	ListCell   *lc;

	foreach(lc, databases)
	{
		TtlDatabase *db = lfirst(lc);

		if (db->seen || db->running > 0 || db->hanging > 0)
		{
			db->seen = false;
			continue;
		}
		databases = foreach_delete_current(databases, lc);
		ttl_kept_forget(kept, db->oid);
		(void) dshash_delete_key(known, &db->oid);
		drop_work(db);
		list_free_deep(db->owners);
		pfree(db);
	}
}

/* Lets a pass begin in a database. */
void
ttl_tasks_begin_pass(TtlDatabase *db)
{
	drop_work(db);
	db->stage = TTL_STAGE_SURVEY;
	db->begins = true;
	db->rounds = 0;
	db->had_pass = true;
	held = false;
}

/* Finds what is known of an owner in a database, or adds it. */
static Owner *
find_owner(TtlDatabase *db, Oid role)
{
	Owner	   *owner;
	ListCell   *lc;

	foreach(lc, db->owners)
	{
		owner = lfirst(lc);
		if (owner->role == role)
			return owner;
	}
	owner = palloc0(sizeof(Owner));
	owner->role = role;
	db->owners = lappend(db->owners, owner);
	return owner;
}

/* Takes over what a survey has found: the TTL indexes of each owner. */
static void
take_survey(TtlDatabase *db, TtlShared *shared)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	TtlWork    *work = dsa_get_address(area, shared->work);

	for (int i = 0; i < shared->nwork; i++)
	{
		Owner	   *owner = find_owner(db, work[i].owner);

		owner->is_superuser = work[i].is_superuser;
		/* a worker that cannot be ended holds up its own owner alone */
		if (owner->hanging > 0)
			continue;
		if (owner->roots == NIL)
			db->waiting++;
		owner->roots = lappend_oid(owner->roots, work[i].root);
	}
	MemoryContextSwitchTo(old);
	if (work != NULL)
		dsa_free(area, shared->work);
	db->kept = shared->kept;
	ttl_overview_note(known, db->oid, &db->kept.survey);
	db->begins = db->more = false;
	db->rounds = 0;
	db->stage = db->waiting > 0 ? TTL_STAGE_WORKING : TTL_STAGE_DONE;
}

/*
 * Takes over what a process has done when it has ended, or is not waited for, and continues
 * with its database.
 */
static void
take_answer(Process *process)
{
	TtlDatabase *db = process->db;
	TtlShared  *shared = process->shared;

	db->running--;
	INSTR_TIME_SET_CURRENT(db->last_pass);
	held = held || shared->held;
	if (process->owner != NULL)
	{
		Oid			at = shared->current_index;

		ttl_kept_add(&db->kept, &process->before, &shared->kept);
		db->more = db->more || shared->more;
		db->rounds = Max(db->rounds, shared->rounds);
		process->owner->resume_at = shared->resume_at;

		/* if a worker has died, the sub-pass goes on after the index at which it was */
		if (!shared->answered && OidIsValid(at))
		{
			process->owner->resume_at = at + 1;
			db->rounds = Max(db->rounds, shared->rounds + 1);
			db->more = true;
			if (shared->canceled || !process->ended)
				ttl_kept_died(kept, db->oid, at,
							  shared->canceled ? TTL_DEAD_CANCELED : TTL_DEAD_TERMINATED);
		}
	}
	else if (shared->answered)
		take_survey(db, shared);
	else
		db->stage = TTL_STAGE_DONE;

	/* a database that somebody wants waits for the next pass */
	if (process->ended || held)
		drop_work(db);
	if (db->stage == TTL_STAGE_WORKING && db->waiting == 0 && db->running == 0)
		db->stage = TTL_STAGE_SURVEY;
}

static void
forget(Process *process)
{
	if (process->messages != NULL)
		dsm_detach(dsm_find_mapping(process->shared->messages));
	dsa_free(area, process->pointer);
	if (process->handle != NULL)
		pfree(process->handle);
	pfree(process);
}

/* Relays what the processes have said, and reaps those that have ended. */
static void
reap(void)
{
	ListCell   *lc;

	foreach(lc, processes)
	{
		Process    *process = lfirst(lc);
		pid_t		pid;
		bool		over = GetBackgroundWorkerPid(process->handle, &pid) == BGWH_STOPPED;

		/* when it has ended, the queue has the last of it */
		if (process->messages != NULL)
			ttl_messages_relay(process->messages, process->owner == NULL);
		if (!over)
			continue;
		processes = foreach_delete_current(processes, lc);
		if (process->hangs)
		{
			process->owner->hanging--;
			process->db->hanging--;
		}
		else
			take_answer(process);
		forget(process);
	}
}

static bool is_wanted;			/* the result of wanted_work() */

static void
wanted_work(void *arg)
{
	is_wanted = ttl_work_is_wanted(*(Oid *) arg);
}

/*
 * Does somebody want to drop or copy a database?  If the lock table is full, that is not
 * known.  A session is itself connected to its database.
 */
static bool
database_is_wanted(Oid oid)
{
	is_wanted = false;
	if (OidIsValid(common->caller))
		return false;
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	(void) ttl_error_catch(wanted_work, &oid, false);
	CommitTransactionCommand();
	return is_wanted;
}

/*
 * Looks at the processes, every LOOK_MS: whether their database is wanted, whether they wait
 * for a lock, and whether they can be canceled.
 */
static void
look_after(void)
{
	ListCell   *lc;

	if (ttl_tasks_elapsed(looked_at) < LOOK_MS)
		return;
	INSTR_TIME_SET_CURRENT(looked_at);
	foreach(lc, processes)
	{
		Process    *process = lfirst(lc);
		TtlShared  *shared = process->shared;
		PGPROC	   *proc;
		pid_t		pid;

		if (process->hangs ||
			GetBackgroundWorkerPid(process->handle, &pid) != BGWH_STARTED)
			continue;

		/* a worker that is within a batch would end only after it */
		if (!process->ended && database_is_wanted(process->db->oid))
		{
			TerminateBackgroundWorker(process->handle);
			process->ended = true;
		}

		/*
		 * A worker whose code cannot be canceled costs its owner, and a slot.  When it ends, it
		 * writes what it has learned.
		 */
		if (!shared->limited || shared->works != process->work || shared->time_limit == 0)
		{
			process->work = shared->works;
			INSTR_TIME_SET_CURRENT(process->work_at);
		}
		else if (process->owner != NULL &&
				 ttl_tasks_elapsed(process->work_at) >= (int64) shared->time_limit + MAX_OVERDUE_MS)
		{
			TerminateBackgroundWorker(process->handle);
			shared->canceled = true;
			take_answer(process);
			process->hangs = true;
			process->owner->hanging++;
			process->db->hanging++;
			if (ttl_kept_is_news(&hang_reported, ERRCODE_QUERY_CANCELED, ""))
				ereport(WARNING,
						(errcode(ERRCODE_QUERY_CANCELED),
						 errmsg("could not end the ttl_index worker with PID %d in database \"%s\"",
								(int) pid, process->db->name),
						 errdetail("It runs code that cannot be canceled. Until it ends, no rows of its owner expire there."),
						 errhint("ttl_index.current_op shows the index. An immediate restart of the server ends the worker.")));
			continue;
		}

		/* any session of the database would wait as long for a lock on a system catalog */
		proc = BackendPidGetProc(pid);
		if (proc == NULL || shared->limited ||
			(proc->wait_event_info & 0xFF000000U) != PG_WAIT_LOCK)
			INSTR_TIME_SET_CURRENT(process->free_at);
		else if (!process->ended && ttl_tasks_elapsed(process->free_at) >= MAX_LOCK_WAIT_MS)
		{
			TerminateBackgroundWorker(process->handle);
			process->ended = true;
			if (ttl_kept_is_news(&lock_reported, ERRCODE_LOCK_NOT_AVAILABLE, process->db->name))
				ereport(WARNING,
						(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
						 errmsg("could not make a TTL pass over database \"%s\"", process->db->name),
						 errdetail("The worker waited for a lock that any session there needs, as on a system catalog. The next pass tries again."),
						 errhint("VACUUM FULL and REINDEX SYSTEM hold such locks, and wait for transactions that use the catalog.")));
		}
	}
}

/*
 * How many processes may still be started?  One that is not waited for does not count, nor, to
 * know what will soon be free, does a survey.
 */
static int
free_places(bool soon)
{
	int			places = ttl_max_workers;
	ListCell   *lc;

	foreach(lc, processes)
	{
		Process    *process = lfirst(lc);

		if (!process->hangs && !(soon && process->owner == NULL))
			places--;
	}
	return Max(places, 0);
}

/* How many owners, or with surveys processes, wait for a place?  A survey does not take long. */
static int
count_waiting(bool surveys)
{
	int			waiting = 0;
	ListCell   *lc;

	foreach(lc, databases)
	{
		TtlDatabase *db = lfirst(lc);

		waiting += db->waiting;
		if (surveys && db->stage == TTL_STAGE_SURVEY)
			waiting++;
	}
	return waiting;
}

/*
 * Starts the survey of a database, or a worker for the first TTL indexes that an owner waits
 * with; false if there is no slot.
 */
static bool
start(TtlDatabase *db, Owner *owner, int nroots)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	Process    *process = palloc0(sizeof(Process));
	BackgroundWorker entry = {0};
	TtlShared  *shared;
	bool		taken[TTL_MARKS] = {0};
	bool		started;
	ListCell   *lc;

	process->pointer = dsa_allocate0(area, offsetof(TtlShared, roots) + nroots * sizeof(Oid));
	shared = process->shared = dsa_get_address(area, process->pointer);
	process->db = db;
	process->owner = owner;
	process->before = db->kept;
	INSTR_TIME_SET_CURRENT(process->free_at);
	process->work_at = process->free_at;
	shared->common = common_pointer;
	shared->database = db->oid;
	shared->kept = db->kept;

	/* the first mark of crash.c that no process has, or -1: sessions count no crashes */
	shared->mark = -1;
	foreach(lc, processes)
	{
		int			mark = ((Process *) lfirst(lc))->shared->mark;

		if (mark >= 0)
			taken[mark] = true;
	}
	for (int mark = TTL_MARKS - 1; mark >= 0 && !OidIsValid(common->caller); mark--)
	{
		if (!taken[mark])
			shared->mark = mark;
	}

	if (owner == NULL)
	{
		shared->begins = db->begins;
		shared->ends = !db->begins && !db->more;
		shared->rounds = db->rounds;
	}
	else
	{
		shared->owner = owner->role;
		shared->is_superuser = owner->is_superuser;
		shared->resume_at = owner->resume_at;
		shared->nroots = nroots;
		for (int i = 0; i < nroots; i++)
			shared->roots[i] = list_nth_oid(owner->roots, i);
	}
	if (OidIsValid(common->caller))
		process->messages = ttl_messages_begin(&shared->messages);

	/* not BGWORKER_INTERRUPTIBLE of 19: that looks like a termination by hand */
	entry.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	entry.bgw_start_time = BgWorkerStart_RecoveryFinished;
	entry.bgw_restart_time = BGW_NEVER_RESTART;
	snprintf(entry.bgw_library_name, sizeof(entry.bgw_library_name), "ttl_index");
	snprintf(entry.bgw_function_name, sizeof(entry.bgw_function_name), "ttl_worker_main");
	snprintf(entry.bgw_name, sizeof(entry.bgw_name), "ttl_index %s for database %s",
			 owner ? "worker" : "survey", db->name);
	snprintf(entry.bgw_type, sizeof(entry.bgw_type), "%s",
			 owner ? TTL_WORKER_TYPE : TTL_SURVEY_TYPE);
	entry.bgw_main_arg = UInt32GetDatum(dsa_get_handle(area));
	entry.bgw_notify_pid = MyProcPid;
	memcpy(entry.bgw_extra, &process->pointer, sizeof(process->pointer));
	started = RegisterDynamicBackgroundWorker(&entry, &process->handle);
	if (!started)
		forget(process);
	else
	{
		if (process->messages != NULL)
			shm_mq_set_handle(process->messages, process->handle);
		processes = lappend(processes, process);
	}
	MemoryContextSwitchTo(old);
	return started;
}

/*
 * Starts a process for the database that was served least recently, and there for the owner
 * that was.  Returns false if there is no slot.
 */
static bool
start_next(void)
{
	TtlDatabase *db = NULL;
	Owner	   *owner = NULL;
	int			nroots = 0;
	ListCell   *lc;

	foreach(lc, databases)
	{
		TtlDatabase *candidate = lfirst(lc);

		if ((candidate->stage == TTL_STAGE_SURVEY || candidate->waiting > 0) &&
			(db == NULL || candidate->served < db->served))
			db = candidate;
	}
	if (database_is_wanted(db->oid))
	{
		drop_work(db);
		return true;
	}

	if (db->waiting > 0)
	{
		int			spare = free_places(true) - count_waiting(false);

		foreach(lc, db->owners)
		{
			Owner	   *candidate = lfirst(lc);

			if (candidate->roots != NIL &&
				(owner == NULL || candidate->served < owner->served))
				owner = candidate;
		}
		/* where nobody else waits for a place, further workers of the owner share its indexes */
		nroots = list_length(owner->roots);
		if (spare > 0)
			nroots = (nroots + spare) / (spare + 1);
	}
	if (!start(db, owner, nroots))
		return false;

	db->served = ++turns;
	db->running++;
	if (owner == NULL)
		db->stage = TTL_STAGE_SURVEYING;
	else
	{
		MemoryContext old = MemoryContextSwitchTo(context);
		List	   *rest = list_copy_tail(owner->roots, nroots);

		MemoryContextSwitchTo(old);
		list_free(owner->roots);
		owner->roots = rest;
		owner->served = turns;
		if (rest == NIL)
			db->waiting--;
	}
	return true;
}

/*
 * Reaps what has ended, and starts what may be started.  Returns false when the pass is
 * over: nothing runs, and nothing waits.
 */
bool
ttl_tasks_step(bool may_start)
{
	bool		is_session = OidIsValid(common->caller);
	ListCell   *lc;

	reap();
	look_after();
	while (may_start && !held && count_waiting(true) > 0 && free_places(false) > 0 &&
		   !(lacks_slot && ttl_tasks_elapsed(slot_at) < SLOT_RETRY_MS))
	{
		lacks_slot = !start_next();
		if (!lacks_slot)
		{
			slot_tries = 0;
			slots_reported.at = 0;
			continue;
		}

		/* parallel queries use the slots up and give them back, and so do processes of ours */
		INSTR_TIME_SET_CURRENT(slot_at);
		if (free_places(false) == ttl_max_workers)
			slot_tries++;
		if (is_session ? slot_tries >= SLOT_TRIES :
			ttl_kept_is_news(&slots_reported, ERRCODE_INSUFFICIENT_RESOURCES, ""))
			ereport(is_session ? ERROR : WARNING,
					(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
					 errmsg("no background worker slot is free for ttl_index"),
					 errhint("%s", TTL_SLOTS_HINT)));
	}
	pg_atomic_write_u32(&common->waiting, count_waiting(true) > 0 || !may_start);
	foreach(lc, databases)
	{
		if (((TtlDatabase *) lfirst(lc))->running > 0)
			return true;
	}
	return may_start && !held && count_waiting(true) > 0;
}
