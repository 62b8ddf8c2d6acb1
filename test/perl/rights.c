/*
 * rights.c
 *	  To be preloaded into a server: whose functions run with whose rights, while
 *	  code of ttl_index is at work.
 *
 * A function that a user wrote and that the extension makes run, through whatever
 * definition it stands in, has to run as the owner of the table with that
 * definition.  One that runs as somebody whose rights its own owner does not have
 * is a hole: it is logged as "borrowed rights".
 *
 * The extension is at work in its workers and surveys, and between the call of a function of its
 * schema and the return.  What a user's function calls is that user's business.
 *
 * What is in C here stands for what a user's code can do in other languages.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "access/xact.h"
#include "executor/spi.h"
#include "catalog/namespace.h"
#include "catalog/pg_proc.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/portal.h"
#include "utils/syscache.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

PG_FUNCTION_INFO_V1(leave_cursor);
PG_FUNCTION_INFO_V1(leave_subtransaction);
PG_FUNCTION_INFO_V1(exits);
PG_FUNCTION_INFO_V1(fail_commit);
PG_FUNCTION_INFO_V1(hang_at_exit);

#define MAX_SEEN 1000

typedef struct Frame
{
	struct Frame *up;
	bool		ours;			/* of the extension, else of a user */
} Frame;

typedef struct Seen
{
	Oid			function;
	Oid			user;
} Seen;

static needs_fmgr_hook_type next_needs_hook = NULL;
static fmgr_hook_type next_hook = NULL;
static Frame *top = NULL;
static Seen seen[MAX_SEEN];
static int	nseen = 0;

static bool
is_in_worker(void)
{
	return MyBgworkerEntry != NULL &&
		(strcmp(MyBgworkerEntry->bgw_type, "ttl_index worker") == 0 ||
		 strcmp(MyBgworkerEntry->bgw_type, "ttl_index survey") == 0);
}

static bool
is_ours(Oid function)
{
	Oid			schema = get_namespace_oid("ttl_index", true);

	return OidIsValid(schema) && get_func_namespace(function) == schema;
}

/* Once a process is enough. */
static bool
is_new(Oid function, Oid user)
{
	for (int i = 0; i < nseen; i++)
	{
		if (seen[i].function == function && seen[i].user == user)
			return false;
	}
	if (nseen < MAX_SEEN)
	{
		seen[nseen].function = function;
		seen[nseen++].user = user;
	}
	return true;
}

static Oid
function_owner(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Oid			owner = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;
		ReleaseSysCache(tuple);
	}
	return owner;
}

/* A function of a user begins that code of ours has made run. */
static void
look_at(Oid function)
{
	Oid			user = GetUserId();
	Oid			owner = function_owner(function);

	if (has_privs_of_role(owner, user) || !is_new(function, user))
		return;
	ereport(LOG_SERVER_ONLY,
			(errmsg("borrowed rights: function \"%s\" of \"%s\" runs as \"%s\"",
					get_func_name(function),
					GetUserNameFromId(owner, true),
					GetUserNameFromId(user, true)),
			 errhidestmt(true)));
}

static bool
needs_hook(Oid function)
{
	return function >= FirstNormalObjectId ||
		(next_needs_hook && next_needs_hook(function));
}

static void
hook(FmgrHookEventType event, FmgrInfo *info, Datum *private)
{
	if (event == FHET_START)
	{
		bool		ours = is_ours(info->fn_oid);
		Frame	   *frame;

		/* who refuses the call raises an error before it is counted */
		if (next_hook)
			next_hook(event, info, private);
		if (!ours && info->fn_oid >= FirstNormalObjectId &&
			(top != NULL ? top->ours : is_in_worker()))
			look_at(info->fn_oid);
		frame = malloc(sizeof(Frame));
		if (frame == NULL)
			elog(ERROR, "out of memory");
		frame->up = top;
		frame->ours = ours;
		top = frame;
	}
	else
	{
		Frame	   *frame = top;

		top = frame->up;
		free(frame);
	}
	if (next_hook && event != FHET_START)
		next_hook(event, info, private);
}

/* Has the commit of the transaction fail, or hang, as the remote server of a foreign table can. */
static enum
{
	COMMIT_GOES, COMMIT_FAILS, COMMIT_HANGS
}			commit = COMMIT_GOES;

static void
at_commit(XactEvent event, void *arg)
{
	int			how = commit;

	commit = COMMIT_GOES;
	if (event != XACT_EVENT_PRE_COMMIT || how == COMMIT_GOES)
		return;
	while (how == COMMIT_HANGS)
	{
		CHECK_FOR_INTERRUPTS();
		pg_usleep(10000);
	}
	ereport(ERROR, (errmsg("the commit fails")));
}

Datum
fail_commit(PG_FUNCTION_ARGS)
{
	static bool registered = false;

	if (!registered)
		RegisterXactCallback(at_commit, NULL);
	registered = true;
	commit = PG_GETARG_BOOL(0) ? COMMIT_HANGS : COMMIT_FAILS;
	PG_RETURN_VOID();
}

/* Does not let the process end, as an END block of PL/Perl can. */
static void
at_exit(int code, Datum arg)
{
	for (;;)
		pg_usleep(10000);
}

Datum
hang_at_exit(PG_FUNCTION_ARGS)
{
	on_proc_exit(at_exit, (Datum) 0);
	PG_RETURN_VOID();
}

/* Leaves a cursor open, or one that has failed, as spi_query() of PL/Perl does. */
Datum
leave_cursor(PG_FUNCTION_ARGS)
{
	SPIPlanPtr	plan;
	Portal		cursor;

	SPI_connect();
	plan = SPI_prepare(text_to_cstring(PG_GETARG_TEXT_PP(0)), 0, NULL);
	cursor = SPI_cursor_open(NULL, plan, NULL, NULL, false);
	PinPortal(cursor);
	if (PG_GETARG_BOOL(1))
		MarkPortalFailed(cursor);
	SPI_finish();
	PG_RETURN_VOID();
}

/* Leaves a subtransaction open, as a language does that meets no memory where it catches an error. */
Datum
leave_subtransaction(PG_FUNCTION_ARGS)
{
	BeginInternalSubTransaction(NULL);
	if (PG_GETARG_BOOL(0))
		ereport(ERROR, (errmsg("left open")));
	PG_RETURN_VOID();
}

/* Ends the process, as PL/Perl does where a signal has no handler any more. */
Datum
exits(PG_FUNCTION_ARGS)
{
	exit(11);
}

void
_PG_init(void)
{
	next_needs_hook = needs_fmgr_hook;
	needs_fmgr_hook = needs_hook;
	next_hook = fmgr_hook;
	fmgr_hook = hook;
}
