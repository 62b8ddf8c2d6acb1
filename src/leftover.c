/*-------------------------------------------------------------------------
 *
 * leftover.c
 *	  What the code of one owner must not leave to that of others in a process.
 *
 * The code of many owners runs in one process, one after another, and then perhaps that of
 * the session which has called run_pass().  Each runs in a security-restricted operation,
 * which keeps it from most of what outlives it.  Seven things are left, for which this file
 * is there: types of pg_temp, what core has cached, functions that PL/pgSQL has compiled,
 * open cursors, signals, locks of pages, and commands that have not come to their end.
 *
 * Caches keep what was computed by the search_path of the first who asked: functions in SQL
 * are inlined in the expressions of an index, a partition key or a domain, and their
 * bodies are parsed then.  So a query of one owner's code, which needs no privileges to be
 * planned, could put its own function "lower" into the index of another one's table, to be
 * called as the latter.  A key or a CHECK does it without the planner, and so does a CREATE
 * INDEX by code of which no hook tells: a cast to json, or a function of a type, in PL/Perl.
 * Plans that were made without forced row security would be used in the session that goes on,
 * also where it is the owner.
 *
 * PL/pgSQL compiles a function once in a process, and looks up the types of its variables
 * then, by the search_path of whoever calls it first.  So one owner could call a function
 * of another one first, with a domain of its own in the place of "date", say, whose CHECK
 * would then be called with the rights of the other one.  Hence each owner's code begins
 * with functions that are compiled anew.  PL/pgSQL cannot be told to forget a function.
 * But it tells a plugin of each one before it runs it, and takes one for outdated whose
 * row in pg_proc is of another transaction than the one that it has compiled.  It never
 * frees these structures.
 *
 * Core makes no cursor WITH HOLD in a restricted operation, as a COMMIT would read it to the
 * end outside of that.  But a COMMIT in a procedure does so with any cursor that a function
 * has pinned, and everywhere else it fails then; and functions in PL/Perl and PL/Python pin
 * those that they leave open.  Each owner's cursors end with its code.
 *
 * PL/Perl lets a function ignore signals.  Then nothing would end the code of others any more
 * that runs for too long, nor the process, and DROP DATABASE would wait for it.  What is
 * done at a signal is put back when an owner's code is over, in an error as well.
 *
 * An error can be raised while a page is locked, as that of a key too long for its index is.  The
 * end of a (sub)transaction gives that lock back, but return_next() of PL/Perl catches errors
 * without one.  Nothing is told that the lock is held, so the process would wait for
 * itself, deaf to signals, where it meets the page again, and VACUUM and the checkpointer for
 * the process.  What is still locked when an owner's code is over is given back, but for what
 * was locked before: core calls code of users while it inserts into an index, as that which
 * tells how far apart two values of a range are, and this can call the extension.  19 tells nobody what is
 * locked; there the command that failed is what ends the turn, see below, and with it the lock.
 *
 * Nor does return_next() take back what the command has done in which the error was raised, as to
 * queue a deferred trigger, which core refuses to fire only then: the commit would, outside of the
 * restricted operation.  So hooks count the commands that have begun and not come to their end; the
 * active snapshots that they leave say less, as a cursor can take them back.  One that changes rows
 * has come to its end when its triggers are fired: SPI can raise an error between what it
 * does and that.  It does where an error has left a level of SPI behind, which each function in a
 * procedural language has.  Such a level would also be that of whoever goes on in a session: of its
 * next commands, by the names of transition tables that are there.  It is counted as well.  Also left is
 * the user whom a foreign key has made of who gave the command.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/leftover.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "optimizer/planner.h"
#include "plpgsql.h"
#include "postmaster/bgworker.h"
#include "storage/lwlock.h"
#include "tcop/utility.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "compat.h"
#include "leftover.h"
#include "ttl_index.h"

static void note_function(PLpgSQL_execstate *estate, PLpgSQL_function *function);

static PLpgSQL_plugin plugin = {.func_setup = note_function};

static PLpgSQL_plugin **used_plugin;

/* of PLpgSQL_function *: what was called since the code of another role has run */
static HTAB *called;

/* code that goes on after an error can be that of any role */
#define ANY_ROLE OID_MAX

/* whose code runs; not always the current user, who changes in a SECURITY DEFINER function */
static Oid	role = InvalidOid;

/* As whom the extension acts, and since which subtransaction, which can be as deep as this one. */
typedef struct Acting
{
	Oid			role;
	int			sec_context;
	int			nest_level;
	int			guc_level;		/* of the settings that end with it */
	Oid			commander;		/* who gave the command that runs, whose triggers are fired */
	struct Acting *outer;		/* who goes on behind it, or NULL */
} Acting;

/* in the memory of the transaction, whose end is that of it; NULL for nobody else */
static Acting *acting = NULL;

/* as whom it acted when errors were raised that were caught since ttl_leftover_expect() */
static Oid	failed_as = InvalidOid;

/*
 * What is done at signals where no code of an owner runs.  All that have names, not only those
 * that core's processes obey: PL/Perl would call the code of an owner at a SIGSEGV in that of
 * another one.  Nobody sends those above, which are for real-time applications.
 */
#define LAST_SIGNAL 31
static struct sigaction handlers[LAST_SIGNAL + 1];

/* how deep in subtransactions that has changed last: an error further in changes nothing */
static int	nest_level = 0;

/* can anything that has run have filled the caches since they are new? */
static bool has_run = false;

/* are they to be dropped as soon as the relations are closed that an error has left open? */
static bool drops_caches = false;

/* how deep in subtransactions, at least, types are that were refused and are still there; else 0 */
static int	refused_level = 0;

/*
 * How many commands, or steps of them, have begun and not come to their end, but for those that
 * the end of a subtransaction has taken back.  Only by how it changes in a turn: commands that end a
 * transaction, and those that began before the hooks were set, are not counted right.
 */
static uint64 ncommands = 0;

/* when the subtransaction at each level began */
static uint64 *ncommands_at = NULL;
static int	nlevels = 0;

static bool has_command_hooks = false;
static ExecutorStart_hook_type next_start = NULL;
static ExecutorRun_hook_type next_run = NULL;
static ExecutorFinish_hook_type next_finish = NULL;
static ProcessUtility_hook_type next_process_utility = NULL;
static object_access_hook_type next_object_access = NULL;
static planner_hook_type next_planner = NULL;
static needs_fmgr_hook_type next_needs_fmgr = NULL;
static fmgr_hook_type next_fmgr = NULL;

/* Has the user been changed since the extension acts as a role? */
static bool
is_other_role(void)
{
	return acting == NULL || GetUserId() != acting->role;
}

/*
 * Notes that code runs.  In the midst of that of a role, a SECURITY DEFINER function is code of
 * another one, which leaves its own: nobody is the same role any more behind it.
 */
static void
note_code(void)
{
	has_run = true;
	if (is_other_role())
		role = ANY_ROLE;
}

static void
note_function(PLpgSQL_execstate *estate, PLpgSQL_function *function)
{
	if (OidIsValid(role))
		note_code();
	/* that of a DO block is not kept */
	if (OidIsValid(function->fn_oid))
		(void) hash_search(called, &function, HASH_ENTER, NULL);
}

/* Is this a worker of the monitor?  It runs nothing but the code of owners. */
static bool
is_worker(void)
{
	return MyBgworkerEntry != NULL && strcmp(MyBgworkerEntry->bgw_type, TTL_WORKER_TYPE) == 0;
}

/* Lets PL/pgSQL compile anew what was called. */
static void
forget_functions(void)
{
	HASH_SEQ_STATUS scan;
	PLpgSQL_function **function;

	hash_seq_init(&scan, called);
	while ((function = hash_seq_search(&scan)) != NULL)
	{
		(*function)->ttl_compiled_xmin = InvalidTransactionId;
		(void) hash_search(called, function, HASH_REMOVE, NULL);
	}
}

/* From now on the code of this role runs, or goes on, or that of the session. */
static void
begin(Oid new_role, bool goes_on, bool after_error)
{
	/* a worker needs no debugger, and a session keeps the one that it has */
	if (*used_plugin == NULL || is_worker())
		*used_plugin = &plugin;
	if (!InSecurityRestrictedOperation())
	{
		if (is_worker())
			return;
		new_role = InvalidOid;
	}
	if (new_role == role && new_role != ANY_ROLE)
		return;
	role = new_role;
	forget_functions();
	if (has_run && !after_error)
		InvalidateSystemCaches();
	drops_caches = drops_caches || (has_run && after_error);
	/* what goes on need not look up anew what it calls */
	has_run = goes_on && OidIsValid(role);
}

/* Notes what is done at signals, before code of an owner runs. */
static void
note_signals(void)
{
	for (int i = 1; i <= LAST_SIGNAL; i++)
	{
		if (sigaction(i, NULL, &handlers[i]) != 0)
			elog(ERROR, "could not read what is done at signal %d: %m", i);
	}
}

/* Puts it back, which those refuse that cannot be caught. */
static void
restore_signals(void)
{
	for (int i = 1; i <= LAST_SIGNAL; i++)
		(void) sigaction(i, &handlers[i], NULL);
}

/*
 * All cursors that are open.  Core lists them in pg_cursors alone, which would take two queries
 * more in each batch.  But each has a memory context of its own, and these have one in common.
 */
static List *
open_cursors(void)
{
	static MemoryContext all = NULL;
	List	   *cursors = NIL;

	for (MemoryContext child = TopMemoryContext->firstchild; all == NULL; child = child->nextchild)
	{
		if (child == NULL)
			elog(ERROR, "could not find the cursors of the session");
		if (strcmp(child->name, "TopPortalContext") == 0)
			all = child;
	}
	for (MemoryContext child = all->firstchild; child != NULL; child = child->nextchild)
		cursors = lappend(cursors, child);
	return cursors;
}

static void
add_lock(LWLock *lock, LWLockMode mode, void *locks)
{
	*(List **) locks = lappend(*(List **) locks, lock);
}

/* All locks of pages, and of structures in shared memory, that this process holds. */
static List *
held_locks(void)
{
	List	   *locks = NIL;

	ForEachLWLockHeldByMe(add_lock, &locks);
	return locks;
}

/* Gives back what is locked, but for what was before. */
static void
release_locks(const List *before)
{
	ListCell   *lc;

	foreach(lc, held_locks())
	{
		if (list_member_ptr(before, lfirst(lc)))
			continue;
		/* the error has allowed interrupts already */
		HOLD_INTERRUPTS();
		LWLockRelease(lfirst(lc));
	}
}

/*
 * How many functions in the transaction have begun to use SPI, and not finished.  Core does not
 * tell, but each has a memory context.
 */
static int
spi_levels(void)
{
	int			levels = 0;

	for (MemoryContext child = TopTransactionContext->firstchild; child != NULL; child = child->nextchild)
		levels += strcmp(child->name, "SPI Proc") == 0;
	return levels;
}

/* Is a query over with its triggers only?  It is never left open, as a cursor's is. */
static bool
changes_rows(const QueryDesc *query)
{
	return (query->estate->es_top_eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0 &&
		(query->operation != CMD_SELECT || query->plannedstmt->hasModifyingCTE);
}

static void
start_query(QueryDesc *query, int eflags)
{
	ncommands++;
	if (next_start)
		next_start(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
	if (!changes_rows(query))
		ncommands--;
}

static void
run_query(QueryDesc *query, ScanDirection direction, uint64 count ttl_and_once(bool once))
{
	ncommands++;
	if (next_run)
		next_run(query, direction, count ttl_and_once(once));
	else
		standard_ExecutorRun(query, direction, count ttl_and_once(once));
	ncommands--;
}

/* Who gives a command that fires triggers, in the midst of what the extension does as others. */
typedef struct Command
{
	Acting	   *within;			/* or NULL */
	Oid			outer;			/* who gave the one in whose midst that is */
} Command;

static Command
begin_command(bool fires_triggers)
{
	Command		command = {0};

	ncommands++;
	if (acting != NULL && fires_triggers)
	{
		command.within = acting;
		command.outer = acting->commander;
		acting->commander = GetUserId();
	}
	return command;
}

/* Also at an error, which can be caught without any other notice. */
static void
end_command(const Command *command)
{
	if (command->within != NULL)
		command->within->commander = command->outer;
}

/* The end of a query is where its AFTER triggers are fired; a foreign key leaves them to an outer one. */
static void
finish_query(QueryDesc *query)
{
	const Command command =
	begin_command((query->estate->es_top_eflags & EXEC_FLAG_SKIP_TRIGGERS) == 0);

	PG_TRY();
	{
		if (next_finish)
			next_finish(query);
		else
			standard_ExecutorFinish(query);
	}
	PG_FINALLY();
	{
		end_command(&command);
	}
	PG_END_TRY();
	ncommands -= changes_rows(query) ? 2 : 1;
}

/* Other commands fire some as well, as ALTER TABLE does those of a new foreign key. */
static void
process_utility(PlannedStmt *pstmt, const char *queryString, bool readOnlyTree,
				ProcessUtilityContext context, ParamListInfo params,
				QueryEnvironment *queryEnv, DestReceiver *dest, QueryCompletion *qc)
{
	const Command command = begin_command(true);

	PG_TRY();
	{
		if (next_process_utility)
			next_process_utility(pstmt, queryString, readOnlyTree, context, params,
								 queryEnv, dest, qc);
		else
			standard_ProcessUtility(pstmt, queryString, readOnlyTree, context, params,
									queryEnv, dest, qc);
	}
	PG_FINALLY();
	{
		end_command(&command);
	}
	PG_END_TRY();
	ncommands--;
}

/* A subtransaction that ends with an error takes with it the commands that have begun within. */
static void
note_subtransaction(SubXactEvent event, int level)
{
	if (event == SUBXACT_EVENT_ABORT_SUB && level < nlevels)
		ncommands = ncommands_at[level];
	if (event != SUBXACT_EVENT_START_SUB)
		return;
	if (level >= nlevels)
	{
		uint64	   *larger = MemoryContextAllocZero(TopMemoryContext,
													2 * level * sizeof(uint64));

		if (nlevels > 0)
		{
			memcpy(larger, ncommands_at, nlevels * sizeof(uint64));
			pfree(ncommands_at);
		}
		ncommands_at = larger;
		nlevels = 2 * level;
	}
	ncommands_at[level] = ncommands;
}

/* Only a process that acts as others has these. */
static void
set_command_hooks(void)
{
	if (has_command_hooks)
		return;
	next_start = ExecutorStart_hook;
	ExecutorStart_hook = start_query;
	next_run = ExecutorRun_hook;
	ExecutorRun_hook = run_query;
	next_finish = ExecutorFinish_hook;
	ExecutorFinish_hook = finish_query;
	next_process_utility = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
	has_command_hooks = true;
}

/*
 * Notes what has begun, before code of a role can run: also where core itself becomes that role, as
 * for the functions in an index that it builds.
 */
void
ttl_leftover_note(TtlLeftover *before)
{
	set_command_hooks();
	before->commands = ncommands;
	before->spi_levels = spi_levels();
}

/* Raises an error if something that has begun since then did not come to its end. */
void
ttl_leftover_check(const TtlLeftover *before, Oid user)
{
	if (ncommands == before->commands && spi_levels() == before->spi_levels)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
			 errmsg("code of role \"%s\" has caught an error without a subtransaction",
					GetUserNameFromId(user, false)),
			 errdetail("What the command that failed has done is not taken back by that."),
			 errhint("Let no value that return_next() of PL/Perl converts fail in a function or a query, as in the CHECK constraint of a domain.")));
}

/* From now on the code of this role runs. */
void
ttl_leftover_begin(Oid new_role, int guc_level, TtlLeftover *before)
{
	Acting	   *inner = MemoryContextAlloc(TopTransactionContext, sizeof(Acting));
	Oid			user;

	before->role = role;
	before->cursors = open_cursors();
	before->locks = held_locks();
	ttl_leftover_note(before);
	/* the code of one owner can make the extension run that of another one */
	if (acting != NULL)
		restore_signals();
	else
		note_signals();
	nest_level = GetCurrentTransactionNestLevel();
	*inner = (Acting)
	{
		.role = new_role,.nest_level = nest_level,.guc_level = guc_level,
		.commander = new_role,.outer = acting
	};
	GetUserIdAndSecContext(&user, &inner->sec_context);
	acting = inner;
	begin(new_role, false, false);
}

/*
 * Closes the cursors that the code of a role has left open.  Called while that is still the
 * current user, as whose the executor ends.
 */
void
ttl_leftover_close(const TtlLeftover *before)
{
	ListCell   *lc;

	foreach(lc, open_cursors())
	{
		MemoryContext cursor = lfirst(lc);
		Portal		portal;

		CHECK_FOR_INTERRUPTS();
		/* it is called like the cursor, but for one with what that has read */
		if (list_member_ptr(before->cursors, cursor) || cursor->ident == NULL)
			continue;
		portal = GetPortalByName(cursor->ident);
		if (portal == NULL || portal->portalContext != cursor ||
			portal->status == PORTAL_ACTIVE)
			continue;
		if (portal->portalPinned)
			UnpinPortal(portal);
		PortalDrop(portal, false);
	}
}

static void
raise_temporary_type(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("cannot create a type in a temporary schema within security-restricted operation")));
}

/*
 * From now on that goes on whose code ran before.  Not where that code has caught an error as
 * return_next() of PL/Perl does, and has left what only the end of a subtransaction takes back: a
 * type that was refused to it, or a command that did not come to its end, and can have queued
 * deferred triggers, say.  Then an error is raised for who goes on, which takes it back.
 */
void
ttl_leftover_end(const TtlLeftover *before)
{
	Acting	   *inner = acting;
	Oid			user = inner->role;

	nest_level = GetCurrentTransactionNestLevel();
	restore_signals();
	release_locks(before->locks);
	acting = inner->outer;
	pfree(inner);
	begin(before->role, true, false);
	if (refused_level > 0)
		raise_temporary_type();
	ttl_leftover_check(before, user);
}

/* Begins to note as whom errors are raised. */
void
ttl_leftover_expect(void)
{
	failed_as = InvalidOid;
}

/*
 * As whom the extension acted when errors were raised that have been caught since then; invalid
 * for nobody else, and no role that there is for more than one.  Code that has caught an error
 * of another role can say what that was in one of its own.
 */
Oid
ttl_leftover_failed(void)
{
	return failed_as;
}

/* The role in the midst of whose code something runs as another one; else invalid. */
Oid
ttl_leftover_beside(void)
{
	return acting != NULL && InSecurityRestrictedOperation() && is_other_role() ?
		acting->role : InvalidOid;
}

/* Who gave the command that runs, whose triggers are fired; invalid where nobody else is acted as. */
Oid
ttl_leftover_commander(void)
{
	return acting != NULL ? acting->commander : InvalidOid;
}

/*
 * Goes on as who gave the command.  For those who raise an error where a foreign key has made core
 * become somebody else: it can be caught as ttl_leftover_call() says, and that code would go on
 * as the latter.
 */
void
ttl_leftover_fall_back(void)
{
	if (acting != NULL)
		SetUserIdAndSecContext(acting->commander,
							   acting->sec_context | SECURITY_LOCAL_USERID_CHANGE);
}

/* An error has ended what the extension did as others within this one. */
static void
end_acting(Acting *outer)
{
	if (acting == outer)
		return;
	restore_signals();
	failed_as = OidIsValid(failed_as) && failed_as != acting->role ? ANY_ROLE : acting->role;
	/* the memory is that of the transaction */
	acting = outer;
}

/* Code that has caught an error of its own goes on as it was, or the session does. */
static void
go_on(void)
{
	nest_level = GetCurrentTransactionNestLevel();
	if (OidIsValid(role))
		begin(acting != NULL ? ANY_ROLE : InvalidOid, true, true);
}

/*
 * Calls a function that can become the owner of a table, as it was declared (TTL_FUNCTION).  An
 * error needs no clean-up where the end of a (sub)transaction restores the user and the
 * settings.  But return_next() of PL/Perl catches errors without that, as functions in C can: the code
 * that called it, of any role, would go on as the owner.
 */
Datum
ttl_leftover_call(PGFunction function, FunctionCallInfo fcinfo)
{
	Acting	   *outer = acting;
	Oid			user;
	int			sec_context;
	Datum		result;

	GetUserIdAndSecContext(&user, &sec_context);
	PG_TRY();
	{
		result = function(fcinfo);
	}
	PG_CATCH();
	{
		SetUserIdAndSecContext(user, sec_context);
		if (acting != outer)
		{
			for (Acting *inner = acting; inner != outer; inner = inner->outer)
				AtEOXact_GUC(false, inner->guc_level);
			end_acting(outer);
			go_on();
		}
		PG_RE_THROW();
	}
	PG_END_TRY();
	return result;
}

/* An error can have ended what ran as another role. */
static void
xact_event(XactEvent event, void *arg)
{
	/* code that core itself has called, for a CREATE INDEX, can have left it */
	if (event == XACT_EVENT_PRE_COMMIT && refused_level > 0)
		raise_temporary_type();
	if (event != XACT_EVENT_ABORT)
	{
		Assert(acting == NULL);
		return;
	}
	refused_level = 0;
	end_acting(NULL);
	if (OidIsValid(role))
		begin(InvalidOid, true, true);
}

static void
subxact_event(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	int			level = GetCurrentTransactionNestLevel();
	Acting	   *outer = acting;

	note_subtransaction(event, level);
	if (refused_level >= level && event == SUBXACT_EVENT_COMMIT_SUB)
		refused_level = level - 1;
	if (refused_level >= level && event == SUBXACT_EVENT_ABORT_SUB)
		refused_level = 0;
	if (event != SUBXACT_EVENT_ABORT_SUB || nest_level < level)
		return;
	while (outer != NULL && outer->nest_level >= level)
		outer = outer->outer;
	end_acting(outer);
	go_on();
	nest_level = level - 1;
}

/*
 * Core keeps what it has computed for a relation, such as the expressions of an index, for as
 * long as that is open.  After an error they are open until the resources are released,
 * which is behind the events above.
 */
static void
resources_released(ResourceReleasePhase phase, bool isCommit, bool isTopLevel, void *arg)
{
	if (!drops_caches || phase != RESOURCE_RELEASE_AFTER_LOCKS)
		return;
	drops_caches = false;
	InvalidateSystemCaches();
}

/*
 * Is this the validator of PL/pgSQL?  It compiles a function for whoever may execute it,
 * and no plugin is told.
 */
static bool
is_validator(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(LANGNAME, CStringGetDatum("plpgsql"));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_language) GETSTRUCT(tuple))->lanvalidator == function;
	ReleaseSysCache(tuple);
	return result;
}

/*
 * Can this function be code of a user?  What is in C is a superuser's; so is what the options
 * of TTL indexes are made of, functions of core under other names.
 */
bool
ttl_leftover_is_code(Oid function)
{
	HeapTuple	tuple;
	Oid			language;

	if (function < FirstNormalObjectId)
		return false;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		return true;
	language = ((Form_pg_proc) GETSTRUCT(tuple))->prolang;
	ReleaseSysCache(tuple);
	return language != ClanguageId && language != INTERNALlanguageId;
}

/*
 * Notes a function that is called, or inlined.  That is enough, however the code came to run
 * that makes core do so: what caches keep of the search_path is what functions were inlined
 * to, or what they returned when an expression was folded.
 */
static void
note_call(Oid function)
{
	if (OidIsValid(role) && InSecurityRestrictedOperation() &&
		(!has_run || is_other_role()) && ttl_leftover_is_code(function))
		note_code();
}

/* Core asks before it looks up a function to call it, and before it inlines one, in SQL. */
static bool
note_lookup(Oid function)
{
	note_call(function);
	return next_needs_fmgr && next_needs_fmgr(function);
}

/*
 * Core asks nothing of functions with settings of their own, or another role's rights, but tells
 * of each call.  That is all where the planner calls one to estimate how many rows an operator
 * selects.
 */
static void
note_event(FmgrHookEventType event, FmgrInfo *function, Datum *arg)
{
	if (event == FHET_START)
		note_call(function->fn_oid);
	if (next_fmgr)
		next_fmgr(event, function, arg);
}

static PlannedStmt *
note_planning(Query *parse, const char *query_string, int options,
			  ParamListInfo params ttl_and_explain(struct ExplainState *es))
{
	planner_hook_type plan = next_planner ? next_planner : standard_planner;

	if (OidIsValid(role) && InSecurityRestrictedOperation() && !is_other_role())
		note_code();
	return plan(parse, query_string, options, params ttl_and_explain(es));
}

/*
 * Is a type, of which syscaches do not know yet, one of pg_temp?  Not those that come with
 * a table, which VACUUM FULL makes anew, of rows and of arrays of them.
 */
static bool
is_temporary(Oid type)
{
	Relation	rel = table_open(TypeRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		result = false;

	ScanKeyInit(&key, Anum_pg_type_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(type));
	scan = systable_beginscan(rel, TypeOidIndexId, true, SnapshotSelf, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		Form_pg_type form = (Form_pg_type) GETSTRUCT(tuple);

		result = form->typtype != TYPTYPE_COMPOSITE &&
			form->typtype != TYPTYPE_BASE &&
			isAnyTempNamespace(form->typnamespace);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return result;
}

/*
 * A type of pg_temp outlives the restricted operation that makes it, and hides the one of
 * this name in pg_catalog wherever search_path does not name pg_temp: a domain "date" would
 * call its CHECK as the next owner whose trigger sets search_path, and as whoever goes on
 * in a session after run_pass().  Core refuses a temporary table there, and a type in
 * its latest releases only.
 */
static void
object_access(ObjectAccessType access, Oid classId, Oid objectId, int subId, void *arg)
{
	if (next_object_access)
		next_object_access(access, classId, objectId, subId, arg);
	if (!InSecurityRestrictedOperation())
		return;
	if (access == OAT_FUNCTION_EXECUTE && is_validator(objectId))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("cannot validate a function within security-restricted operation")));
	if (access == OAT_POST_CREATE && classId == TypeRelationId && is_temporary(objectId))
	{
		int			level = GetCurrentTransactionNestLevel();

		/* another one can be there already, which is not gone with this one */
		refused_level = refused_level > 0 ? Min(refused_level, level) : level;
		raise_temporary_type();
	}
}

void
ttl_leftover_init(void)
{
	HASHCTL		ctl = {.keysize = sizeof(PLpgSQL_function *),.entrysize = sizeof(PLpgSQL_function *)};

	used_plugin = (PLpgSQL_plugin **) find_rendezvous_variable("PLpgSQL_plugin");
	called = hash_create("ttl_index functions in PL/pgSQL", 64, &ctl, HASH_ELEM | HASH_BLOBS);
	RegisterXactCallback(xact_event, NULL);
	RegisterSubXactCallback(subxact_event, NULL);
	RegisterResourceReleaseCallback(resources_released, NULL);
	next_object_access = object_access_hook;
	object_access_hook = object_access;
	next_planner = planner_hook;
	planner_hook = note_planning;
	next_needs_fmgr = needs_fmgr_hook;
	needs_fmgr_hook = note_lookup;
	next_fmgr = fmgr_hook;
	fmgr_hook = note_event;
}
