/*-------------------------------------------------------------------------
 *
 * tasks.c
 *	  The processes of a pass: started, watched and reaped.
 *
 * The launcher and run_pass() call ttl_tasks_step() from an event loop.  It waits for
 * nothing.  For each database a survey lists the owners that have something due, then each
 * of these has a worker, until a survey finds nothing.  At most ttl_index.max_workers
 * processes run at a time.  The next one is for the database, and there for the owner, that
 * was served least recently.
 *
 * The processes share a dynamic shared memory area with TtlCommon, a TtlShared for each of
 * them, and the hash table of kept.c.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/server/tasks.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/acl.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#include "server/server.h"
#include "server/tasks.h"
#include "ttl_index.h"

/* The processes are looked after this often. */
#define LOOK_MS 500

/*
 * Maximum time a process may wait for a lock while no timeout is armed, for example during
 * its start.  Then its database waits, for minutes that double each time.
 */
#define MAX_LOCK_WAIT_MS (10 * 1000)
#define MAX_DELAY 8

/* A worker cannot be ended if it is over its limit for so long: its timer has tried to. */
#define MAX_OVERDUE_MS (15 * 1000)

/* How often a pass asks for a worker slot in vain, and at which intervals. */
#define SLOT_TRIES 10
#define SLOT_RETRY_MS 1000

/* A process that runs. */
typedef struct Process
{
	TtlDatabase *db;			/* NULL: it is left alone */
	TtlOwner   *owner;			/* NULL: a survey */
	BackgroundWorkerHandle *handle;
	dsa_pointer pointer;
	TtlShared  *shared;
	TtlPassState before;		/* what it was told of the pass */
	TtlMessages *messages;		/* for a session, else NULL */
	bool		wanted;			/* it was ended: its database is wanted */
	bool		stuck;			/* likewise: it waited for a lock for too long */
	instr_time	free_at;		/* when it was last seen not to wait for a lock */
	uint32		work;			/* the piece of work that it was last seen at, */
	instr_time	work_at;		/* and since when */
} Process;

static dsa_area *area = NULL;
static TtlCommon *common;
static dsa_pointer common_pointer;
static dshash_table *kept;
static MemoryContext context;
static List *databases = NIL;	/* TtlDatabase */
static List *processes = NIL;	/* Process */
static uint64 turns = 0;
static bool held;
static bool lacks_slot;			/* for the process that was last to be started */
static int	slot_tries;			/* in vain, since one was started */
static instr_time slot_at;		/* when that was last tried */
static instr_time looked_at;
static TtlReported slots_said;
static TtlReported hang_said;

/* Milliseconds since a moment, by a clock that nobody can set. */
int64
ttl_tasks_elapsed(instr_time since)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, since);
	return (int64) INSTR_TIME_GET_MILLISEC(now);
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
			ttl_messages_end(process->messages);
	}
	dshash_detach(kept);
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

/* Was there no slot for the process that was last to be started? */
bool
ttl_tasks_lack_slot(void)
{
	return lacks_slot;
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

/* Gives up the tasks of a database that no worker has begun. */
static void
drop_tasks(TtlDatabase *db)
{
	ListCell   *lc;

	foreach(lc, db->tasks)
		list_free(((TtlTask *) lfirst(lc))->roots);
	list_free_deep(db->tasks);
	db->tasks = NIL;
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

		if (!db->seen && db->running == 0)
		{
			databases = foreach_delete_current(databases, lc);
			ttl_kept_forget(kept, db->oid);
			drop_tasks(db);
			/* not the owners themselves: a process that is not waited for can point to one */
			list_free(db->owners);
			pfree(db);
		}
		else
			db->seen = false;
	}
}

/* Lets a pass begin in a database. */
void
ttl_tasks_begin_pass(TtlDatabase *db)
{
	drop_tasks(db);
	db->stage = TTL_STAGE_SURVEY;
	db->begins = true;
	db->more = false;
	db->rounds = 0;
	db->had_pass = true;
	held = false;
}

/* Shows other processes what is known of the databases and the indexes. */
static void
show(void)
{
	TtlKnownDatabase *known = palloc(Max(list_length(databases), 1) * sizeof(TtlKnownDatabase));
	int			max = ttl_kept_read(kept, NULL, 0);
	TtlKnownIndex *indexes = palloc(Max(max, 1) * sizeof(TtlKnownIndex));
	int			count = 0;
	ListCell   *lc;

	foreach(lc, databases)
	{
		TtlDatabase *db = lfirst(lc);

		if (db->kept.survey.indexes > 0)
		{
			known[count].oid = db->oid;
			known[count++].survey = db->kept.survey;
		}
	}
	ttl_overview_write(known, count, indexes, Min(max, ttl_kept_read(kept, indexes, max)));
	pfree(known);
	pfree(indexes);
}

/* Takes over what a survey has found: a task for each owner. */
static void
take_survey(TtlDatabase *db, TtlShared *shared)
{
	TtlWork    *work = DsaPointerIsValid(shared->work) ?
	dsa_get_address(area, shared->work) : NULL;
	MemoryContext old = MemoryContextSwitchTo(context);

	for (int i = 0; i < shared->nwork; i++)
	{
		TtlOwner   *owner = NULL;
		TtlTask    *task = NULL;
		ListCell   *lc;

		foreach(lc, db->owners)
		{
			if (((TtlOwner *) lfirst(lc))->oid == work[i].owner)
				owner = lfirst(lc);
		}
		if (owner == NULL)
		{
			owner = palloc0(sizeof(TtlOwner));
			owner->oid = work[i].owner;
			db->owners = lappend(db->owners, owner);
		}
		owner->is_superuser = work[i].is_superuser;
		/* a worker that cannot be ended holds up its own owner alone */
		if (owner->hanging > 0 ||
			(OidIsValid(common->caller) && !has_privs_of_role(common->caller, owner->oid)))
			continue;
		foreach(lc, db->tasks)
		{
			if (((TtlTask *) lfirst(lc))->owner == owner)
				task = lfirst(lc);
		}
		if (task == NULL)
		{
			task = palloc0(sizeof(TtlTask));
			task->owner = owner;
			db->tasks = lappend(db->tasks, task);
		}
		task->roots = lappend_oid(task->roots, work[i].root);
	}
	MemoryContextSwitchTo(old);
	if (work != NULL)
		dsa_free(area, shared->work);
	db->kept = shared->kept;
	db->begins = db->more = false;
	db->rounds = 0;
	db->stage = db->tasks == NIL ? TTL_STAGE_DONE : TTL_STAGE_WORKING;
}

/* Takes over what a worker has done, and the index at which it was if it has died. */
static void
take_worker(Process *process)
{
	TtlDatabase *db = process->db;
	TtlShared  *shared = process->shared;
	Oid			at = shared->current_index;

	ttl_kept_add(&db->kept, &process->before, &shared->kept);
	db->more = db->more || shared->more;
	db->rounds = Max(db->rounds, shared->rounds);
	process->owner->resume_at = shared->resume_at;
	if (shared->answered || !OidIsValid(at))
		return;
	/* the sub-pass goes on after the index at which the worker died */
	process->owner->resume_at = at + 1;
	db->rounds = Max(db->rounds, shared->rounds + 1);
	db->more = true;
	ttl_kept_died(kept, db->oid, at,
				  shared->canceled ? TTL_DEAD_CANCELED :
				  process->wanted || process->stuck ? TTL_DEAD_WANTED : TTL_DEAD_TERMINATED);
}

/* Continues with a database when one of its processes has ended, or is not waited for. */
static void
take_answer(Process *process)
{
	TtlDatabase *db = process->db;

	db->running--;
	INSTR_TIME_SET_CURRENT(db->last_pass);
	held = held || process->shared->held;
	if (process->owner != NULL)
		take_worker(process);
	else if (process->shared->answered)
		take_survey(db, process->shared);
	else
		db->stage = TTL_STAGE_DONE;
	/* a database that somebody wants waits for the next pass */
	if (process->wanted || process->stuck || held)
		drop_tasks(db);
	else
		db->delay = 0;
	if (db->stage == TTL_STAGE_WORKING && db->tasks == NIL && db->running == 0)
		db->stage = TTL_STAGE_SURVEY;
}

static void
forget(Process *process)
{
	if (DsaPointerIsValid(process->shared->roots))
		dsa_free(area, process->shared->roots);
	dsa_free(area, process->pointer);
	if (process->messages != NULL)
		ttl_messages_end(process->messages);
	if (process->handle != NULL)
		pfree(process->handle);
	pfree(process);
}

/* Relays what the processes have said, and reaps those that have ended. */
static bool
reap(void)
{
	bool		reaped = false;
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
		if (process->db != NULL)
			take_answer(process);
		else
			process->owner->hanging--;
		forget(process);
		reaped = true;
	}
	return reaped;
}

/* The argument and the result of the question whether a database is wanted. */
typedef struct WantedWork
{
	Oid			database;
	bool		wanted;
} WantedWork;

static void
wanted_work(void *arg)
{
	WantedWork *work = arg;

	work->wanted = ttl_work_is_wanted(work->database);
}

/*
 * Does somebody want to drop or copy a database?  If the lock table is full, that is not
 * known.  A session is itself connected to its database.
 */
static bool
database_is_wanted(Oid oid)
{
	WantedWork	work = {.database = oid};

	if (OidIsValid(common->caller))
		return false;
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	(void) ttl_error_catch(wanted_work, &work, false);
	CommitTransactionCommand();
	return work.wanted;
}

/* Ends a process that has waited for a lock for too long.  Its database waits. */
static void
put_off(Process *process)
{
	TtlDatabase *db = process->db;

	TerminateBackgroundWorker(process->handle);
	process->stuck = true;
	db->delay = db->delay == 0 ? 1 : Min(2 * db->delay, MAX_DELAY);
	ereport(WARNING,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("could not make a TTL pass over database \"%s\"", db->name),
			 errdetail("The worker waited for a lock that any session there needs, as on a system catalog; the next one comes in %d min at the earliest.",
					   db->delay),
			 errhint("VACUUM FULL and REINDEX SYSTEM hold such locks, and wait for transactions that use the catalog.")));
}

/*
 * No longer waits for a worker whose code cannot be canceled.  It costs its owner, and a
 * slot.  When it ends, it writes what it has learned.
 */
static void
leave(Process *process, pid_t pid)
{
	TtlDatabase *db = process->db;

	TerminateBackgroundWorker(process->handle);
	process->owner->hanging++;
	process->shared->canceled = true;
	take_answer(process);
	process->db = NULL;
	if (ttl_reported_is_news(&hang_said, ERRCODE_QUERY_CANCELED, ""))
		ereport(WARNING,
				(errcode(ERRCODE_QUERY_CANCELED),
				 errmsg("could not end the ttl_index worker with PID %d in database \"%s\"",
						(int) pid, db->name),
				 errdetail("It runs code that does not let itself be canceled. Until it ends, no rows of its owner expire there."),
				 errhint("See ttl_index.current_op for the index. What that code does not end, an immediate restart of the server does.")));
}

/* Looks at the processes, every LOOK_MS. */
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

		if (process->db == NULL ||
			GetBackgroundWorkerPid(process->handle, &pid) != BGWH_STARTED)
			continue;
		/* a worker that is within a batch would end only after it */
		if (!process->wanted && database_is_wanted(process->db->oid))
		{
			TerminateBackgroundWorker(process->handle);
			process->wanted = true;
		}
		if (!shared->limited || shared->works != process->work || shared->time_limit == 0)
		{
			process->work = shared->works;
			INSTR_TIME_SET_CURRENT(process->work_at);
		}
		else if (process->owner != NULL &&
				 ttl_tasks_elapsed(process->work_at) >= (int64) shared->time_limit + MAX_OVERDUE_MS)
		{
			leave(process, pid);
			continue;
		}
		proc = BackendPidGetProc(pid);
		if (proc == NULL || shared->limited ||
			(proc->wait_event_info & 0xFF000000U) != PG_WAIT_LOCK)
			INSTR_TIME_SET_CURRENT(process->free_at);
		else if (!process->stuck && ttl_tasks_elapsed(process->free_at) >= MAX_LOCK_WAIT_MS)
			put_off(process);
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

		if (process->db != NULL && !(soon && process->owner == NULL))
			places--;
	}
	return Max(places, 0);
}

/* Does a database wait for a process? */
static bool
is_ready(const TtlDatabase *db)
{
	if (db->delay > 0 && ttl_tasks_elapsed(db->last_pass) < db->delay * INT64CONST(60000))
		return false;
	return db->stage == TTL_STAGE_SURVEY ||
		(db->stage == TTL_STAGE_WORKING && db->tasks != NIL);
}

/* How many workers, or with surveys processes, wait for a place?  A survey does not take long. */
static int
count_waiting(bool surveys)
{
	int			waiting = 0;
	ListCell   *lc;

	foreach(lc, databases)
	{
		TtlDatabase *db = lfirst(lc);

		if (!is_ready(db))
			continue;
		if (db->stage == TTL_STAGE_WORKING)
			waiting += list_length(db->tasks);
		else if (surveys)
			waiting++;
	}
	return waiting;
}

/* Cuts the largest of the waiting tasks in two.  False if none can be. */
static bool
cut_task(void)
{
	TtlDatabase *database = NULL;
	TtlTask    *largest = NULL;
	TtlTask    *half;
	List	   *roots = NIL;
	ListCell   *lc;
	ListCell   *lc2;
	MemoryContext old;

	foreach(lc, databases)
	{
		TtlDatabase *db = lfirst(lc);

		foreach(lc2, is_ready(db) ? db->tasks : NIL)
		{
			TtlTask    *task = lfirst(lc2);

			if (list_length(task->roots) >= 2 &&
				(largest == NULL || list_length(task->roots) > list_length(largest->roots)))
			{
				largest = task;
				database = db;
			}
		}
	}
	if (largest == NULL)
		return false;
	old = MemoryContextSwitchTo(context);
	half = palloc0(sizeof(TtlTask));
	half->owner = largest->owner;
	foreach(lc, largest->roots)
	{
		if (foreach_current_index(lc) % 2 == 0)
			roots = lappend_oid(roots, lfirst_oid(lc));
		else
			half->roots = lappend_oid(half->roots, lfirst_oid(lc));
	}
	list_free(largest->roots);
	largest->roots = roots;
	database->tasks = lappend(database->tasks, half);
	MemoryContextSwitchTo(old);
	return true;
}

/* The first mark of crash.c that no process has, or -1: sessions count no crashes. */
static int
free_mark(void)
{
	for (int mark = 0; !OidIsValid(common->caller) && mark < TTL_MARKS; mark++)
	{
		bool		taken = false;
		ListCell   *lc;

		foreach(lc, processes)
			taken = taken || ((Process *) lfirst(lc))->shared->mark == mark;
		if (!taken)
			return mark;
	}
	return -1;
}

/* Starts the survey of a database, or the worker of a task; false if there is no slot. */
static bool
start(TtlDatabase *db, TtlTask *task)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	Process    *process = palloc0(sizeof(Process));
	BackgroundWorker entry = {0};
	TtlShared  *shared;
	bool		started;

	process->pointer = dsa_allocate0(area, sizeof(TtlShared));
	shared = process->shared = dsa_get_address(area, process->pointer);
	process->db = db;
	process->owner = task ? task->owner : NULL;
	process->before = db->kept;
	INSTR_TIME_SET_CURRENT(process->free_at);
	process->work_at = process->free_at;
	shared->common = common_pointer;
	shared->database = db->oid;
	shared->kept = db->kept;
	shared->mark = free_mark();
	if (task == NULL)
	{
		shared->begins = db->begins;
		shared->ends = !db->begins && !db->more;
		shared->rounds = db->rounds;
	}
	else
	{
		Oid		   *roots;
		ListCell   *lc;

		shared->owner = task->owner->oid;
		shared->is_superuser = task->owner->is_superuser;
		shared->resume_at = task->owner->resume_at;
		shared->nroots = list_length(task->roots);
		shared->roots = dsa_allocate(area, shared->nroots * sizeof(Oid));
		roots = dsa_get_address(area, shared->roots);
		foreach(lc, task->roots)
			roots[foreach_current_index(lc)] = lfirst_oid(lc);
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
			 task ? "worker" : "survey", db->name);
	snprintf(entry.bgw_type, sizeof(entry.bgw_type), "%s",
			 task ? TTL_WORKER_TYPE : TTL_SURVEY_TYPE);
	entry.bgw_main_arg = UInt32GetDatum(dsa_get_handle(area));
	entry.bgw_notify_pid = MyProcPid;
	memcpy(entry.bgw_extra, &process->pointer, sizeof(process->pointer));
	started = RegisterDynamicBackgroundWorker(&entry, &process->handle);
	if (!started)
		forget(process);
	else
	{
		if (process->messages != NULL)
			ttl_messages_set_handle(process->messages, process->handle);
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
	TtlDatabase *next = NULL;
	TtlTask    *task = NULL;
	ListCell   *lc;

	foreach(lc, databases)
	{
		TtlDatabase *db = lfirst(lc);

		if (is_ready(db) && (next == NULL || db->served < next->served))
			next = db;
	}
	if (database_is_wanted(next->oid))
	{
		/* it waits for the next pass */
		drop_tasks(next);
		next->more = false;
		return true;
	}
	foreach(lc, next->tasks)
	{
		TtlTask    *other = lfirst(lc);

		if (task == NULL || other->owner->served < task->owner->served)
			task = other;
	}
	if (!start(next, task))
		return false;
	next->served = ++turns;
	next->running++;
	if (task == NULL)
		next->stage = TTL_STAGE_SURVEYING;
	else
	{
		task->owner->served = turns;
		next->tasks = list_delete_ptr(next->tasks, task);
		list_free(task->roots);
		pfree(task);
	}
	return true;
}

/*
 * Notes that there was no slot: parallel queries use them up and give them back.  After
 * SLOT_TRIES, a pass gives up what waits, and run_pass() ends.
 */
static void
note_no_slot(void)
{
	bool		is_session = OidIsValid(common->caller);
	ListCell   *lc;

	lacks_slot = true;
	INSTR_TIME_SET_CURRENT(slot_at);
	/* a process of our own gives its slot back */
	if (free_places(false) == ttl_max_workers)
		slot_tries++;
	if (is_session ? slot_tries >= SLOT_TRIES :
		ttl_reported_is_news(&slots_said, ERRCODE_INSUFFICIENT_RESOURCES, ""))
		ereport(is_session ? ERROR : WARNING,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("no background worker slot is free for ttl_index"),
				 errhint("%s", TTL_SLOTS_HINT)));
	foreach(lc, slot_tries < SLOT_TRIES ? NIL : databases)
	{
		TtlDatabase *db = lfirst(lc);

		drop_tasks(db);
		db->more = false;
	}
}

/*
 * Reaps what has ended, and starts what may be started.  Returns false when the pass is
 * over: nothing runs, and nothing waits.
 */
bool
ttl_tasks_step(bool may_start)
{
	bool		reaped = reap();
	ListCell   *lc;

	look_after();
	while (may_start && !held && count_waiting(true) > 0 && free_places(false) > 0)
	{
		if (slot_tries > 0 && ttl_tasks_elapsed(slot_at) < SLOT_RETRY_MS)
			break;
		while (count_waiting(false) < free_places(true) && cut_task())
			;
		if (!start_next())
		{
			note_no_slot();
			break;
		}
		lacks_slot = false;
		slot_tries = 0;
		slots_said.at = 0;
	}
	pg_atomic_write_u32(&common->waiting, count_waiting(true) > 0 || !may_start);
	if (reaped && !OidIsValid(common->caller))
		show();
	foreach(lc, databases)
	{
		TtlDatabase *db = lfirst(lc);

		if (db->running > 0 || (may_start && !held && is_ready(db)))
			return true;
	}
	return false;
}
