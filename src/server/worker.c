/*-------------------------------------------------------------------------
 *
 * worker.c
 *	  The processes of a pass: a survey, and the worker of an owner.
 *
 * tasks.c starts both as dynamic background workers (see README).  A worker is connected as
 * the owner of tables, and does what a session of that owner could do.
 *
 * A before_shmem_exit() callback writes what is to be kept, so that this also happens when
 * the process is terminated.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "commands/dbcommands.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/dsa.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "server/server.h"

PGDLLEXPORT void ttl_worker_main(Datum arg);

/* Even if nobody waits, a worker leaves after this time, so that a survey looks again. */
#define TURN_MS (10 * 1000)

/* If nothing else is to do, what was locked is tried again so many times, at these intervals. */
#define LOCK_TRIES 10
#define LOCK_RETRY_MS 100

static dsa_area *area;
static TtlCommon *common;
static TtlShared *shared;
static TtlPassState kept;

/*
 * Sets what no ALTER DATABASE or ALTER ROLE may change.  A delete that a crash has lost is
 * repeated, so no batch waits for the disk or for a standby.
 */
static void
force_settings(void)
{
	static const char *const settings[][2] = {
		{"application_name", TTL_EXTENSION},
		{"role", "none"},
		{"search_path", "pg_catalog, pg_temp"},
		{"session_replication_role", "origin"},
		{"row_security", "on"},
		{"statement_timeout", "0"},
		{"lock_timeout", "0"},
		{"idle_in_transaction_session_timeout", "0"},
		{"idle_session_timeout", "0"},
		{"transaction_timeout", "0"},
		{"default_transaction_isolation", "read committed"},
		{"default_transaction_deferrable", "off"},
		{"synchronous_commit", "off"},
		/* an error of an index must not end the process */
		{"exit_on_error", "off"},
		/* nor how foreign keys find rows: each would read all of a table, or all partitions */
		{"enable_indexscan", "on"},
		{"enable_indexonlyscan", "on"},
		{"enable_bitmapscan", "on"},
		{"enable_tidscan", "on"},
		{"enable_partition_pruning", "on"},
		{"constraint_exclusion", "partition"},
		{"seq_page_cost", "1"},
		{"random_page_cost", "4"},
		{"cpu_tuple_cost", "0.01"},
		{"cpu_index_tuple_cost", "0.005"},
		{"cpu_operator_cost", "0.0025"},
		{"jit", "off"}
	};

	for (int i = 0; i < lengthof(settings); i++)
		ttl_settings_force(settings[i][0], settings[i][1]);
	if (!DsaPointerIsValid(common->settings))
		return;
	ttl_settings_load(dsa_get_address(area, common->settings));
	/* the session logs what is relayed to it */
	ttl_settings_force("log_min_messages", "log");
}

/*
 * Ends the process without the other callbacks: they free nothing that its end does not
 * free, and PL/Perl runs the END blocks of users' code, which nothing cancels.  Other
 * codes, as of a function of a user that calls exit(), are a crash for the postmaster, and
 * the mark stays.
 */
static void
leave(int code, Datum arg)
{
	if (code != 0 && code != 1)
		return;
	ttl_crash_mark(InvalidOid);
	_exit(code);
}

/* Hands over what is to be kept, however the process ends. */
static void
answer(int code, Datum arg)
{
	/* it is called before what others have registered until now */
	on_proc_exit(leave, (Datum) 0);
	shared->canceled = !ttl_visit_died() && ttl_work_is_canceled();
	shared->kept = kept;
	ttl_kept_store(&kept);
}

/*
 * Can this release connect a role without LOGIN?  From PostgreSQL 17 on a background worker can
 * connect as any role.  Up to 16, InitializeSessionUserId() refuses a role without LOGIN.  There
 * the user and the session's user are set before the connection, as ParallelWorkerMain() does,
 * and the connection looks up no role.  This needs the minor releases 15.11 and 16.7; before
 * these, owners need LOGIN.
 */
static bool
can_skip_login(void)
{
	int			version = atoi(GetConfigOption("server_version_num", false, false));

	return version >= 160007 || (version >= 150011 && version < 160000);
}

/* Can a worker connect as this owner?  Asked in a transaction. */
bool
ttl_worker_can_connect(Oid owner)
{
	HeapTuple	tuple;
	bool		result;

	if (can_skip_login())
		return true;
	tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(owner));
	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_authid) GETSTRUCT(tuple))->rolcanlogin;
	ReleaseSysCache(tuple);
	return result;
}

#ifdef BGWORKER_BYPASS_ROLELOGINCHECK
static void
connect_as(Oid database, Oid owner, bool is_superuser)
{
	BackgroundWorkerInitializeConnectionByOid(database, owner,
											  BGWORKER_BYPASS_ALLOWCONN |
											  BGWORKER_BYPASS_ROLELOGINCHECK);
}

#else
/* the oldest minor releases do not have it, and the library must load there */
#pragma weak SetAuthenticatedUserId

static void
connect_as(Oid database, Oid owner, bool is_superuser)
{
	/* a survey is connected as no role */
	if (!OidIsValid(owner) || !can_skip_login())
	{
		BackgroundWorkerInitializeConnectionByOid(database, owner, BGWORKER_BYPASS_ALLOWCONN);
		return;
	}
	InitializingParallelWorker = true;
	SetAuthenticatedUserId(owner, is_superuser);
	SetSessionAuthorization(owner, is_superuser);
	BackgroundWorkerInitializeConnectionByOid(database, owner, BGWORKER_BYPASS_ALLOWCONN);
	InitializingParallelWorker = false;
	/* else SHOW session_authorization is empty */
	StartTransactionCommand();
	SetConfigOption("session_authorization", GetUserNameFromId(owner, false), PGC_BACKEND,
					PGC_S_OVERRIDE);
	CommitTransactionCommand();
}

#endif

/* Makes the sub-passes of a turn. */
static void
run_turn(TtlRun *run)
{
	bool		is_owner;
	instr_time	begun;

	/* is the owner still the one that the survey has found?  connect_as() may not look it up */
	ttl_work_begin(run);
	is_owner = SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(shared->owner)) &&
		superuser_arg(shared->owner) == shared->is_superuser;
	ttl_work_commit(run);
	if (!is_owner)
		return;
	INSTR_TIME_SET_CURRENT(begun);
	for (int i = 0; i < shared->nroots; i++)
		run->roots = lappend_oid(run->roots, shared->roots[i]);
	list_sort(run->roots, list_oid_cmp);
	do
	{
		ttl_visit_all(run, &shared->resume_at);
		shared->rounds++;
		if (run->stop)
			return;
	} while (shared->more && pg_atomic_read_u32(&common->waiting) == 0 &&
			 ttl_tasks_elapsed(begun) < TURN_MS);

	/* a lock that is held for a moment does not cost the pass */
	run->again = true;
	for (int i = 0; i < LOCK_TRIES && run->locked != NIL && !run->stop && !shared->more &&
		 pg_atomic_read_u32(&common->waiting) == 0; i++)
	{
		run->roots = run->locked;
		ttl_tasks_nap(LOCK_RETRY_MS);
		ttl_visit_all(run, &shared->resume_at);
	}
}

void
ttl_worker_main(Datum arg)
{
	dsa_pointer pointer;
	TtlRun		run;
	bool		may_run;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	pqsignal(SIGINT, ttl_work_cancel);
	BackgroundWorkerUnblockSignals();

	memcpy(&pointer, MyBgworkerEntry->bgw_extra, sizeof(pointer));
	area = dsa_attach(DatumGetUInt32(arg));
	dsa_pin_mapping(area);
	shared = dsa_get_address(area, pointer);
	common = dsa_get_address(area, shared->common);
	if (shared->messages != 0)
		ttl_messages_redirect(shared->messages);
	force_settings();
	connect_as(shared->database, shared->owner, shared->is_superuser);

	/* what is relayed to a session of this database needs no conversion */
	if (shared->messages != 0)
		(void) SetClientEncoding(GetDatabaseEncoding());
	MemoryContextSwitchTo(TopMemoryContext);
	kept = shared->kept;
	ttl_kept_open(&kept, area, common->kept);
	before_shmem_exit(answer, (Datum) 0);
	ttl_crash_watch(shared->mark);
	ttl_work_init(&run, common, shared, &kept);
	pgstat_report_activity(STATE_RUNNING, psprintf("ttl_index: pass %lld", (long long) common->pass));

	may_run = ttl_monitor_enabled || OidIsValid(common->caller);
	if (may_run && DefaultXactReadOnly)
	{
		may_run = false;
		if (ttl_kept_is_news(&kept.reported, ERRCODE_READ_ONLY_SQL_TRANSACTION, ""))
		{
			ttl_work_begin(&run);
			ereport(LOG,
					(errmsg("ttl_index is idle in database \"%s\"",
							get_database_name(MyDatabaseId)),
					 errdetail("default_transaction_read_only is on for role \"%s\".",
							   GetUserNameFromId(GetUserId(), false)),
					 errhint("Turn default_transaction_read_only off to let rows expire.")));
			ttl_work_commit(&run);
		}
	}
	if (!OidIsValid(shared->owner))
		ttl_survey_run(&run, area, may_run);
	else if (may_run)
		run_turn(&run);
	shared->answered = true;
	proc_exit(0);
}
