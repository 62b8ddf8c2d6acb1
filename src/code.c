/*-------------------------------------------------------------------------
 *
 * code.c
 *	  Whose code runs in the process, and what is cached of it.
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
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/code.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "optimizer/planner.h"
#include "plpgsql.h"
#include "postmaster/bgworker.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/syscache.h"

#include "compat.h"
#include "ttl_index.h"

static void note_function(PLpgSQL_execstate *estate, PLpgSQL_function *function);

static PLpgSQL_plugin plugin = {.func_setup = note_function};

static PLpgSQL_plugin **used_plugin;

/* of PLpgSQL_function *: what was called since the code of another role has run */
static HTAB *called;

/* invalid for that of the session, and in a worker before the first owner's */
static Oid	role = InvalidOid;

/* can anything that has run have filled the caches since they are new? */
static bool has_run = false;

/* are they to be dropped as soon as the relations are closed that an error can have left open? */
static bool drops_caches = false;

static planner_hook_type next_planner = NULL;
static needs_fmgr_hook_type next_needs_fmgr = NULL;
static fmgr_hook_type next_fmgr = NULL;

/*
 * Has the extension acted as a role in the midst of other code, in this transaction, and let forget what
 * there was?  Code of another role than what is around, as a SECURITY DEFINER function is, could put in
 * its place what the code around it finds then.
 */
static bool refilled = false;

/* A function that is being called, of which core tells, and the search_path of what has called it. */
typedef struct CalledFunction
{
	Oid			function;
	char	   *path;			/* NULL where that is not known, or need not be put back */
} CalledFunction;

static CalledFunction *called_functions = NULL;
static int	ncalled = 0;
static int	maxcalled = 0;

/* Whose code runs; not always the current user, who changes in a SECURITY DEFINER function. */
Oid
ttl_code_role(void)
{
	return role;
}

/*
 * Notes that code runs.  In the midst of that of a role, a SECURITY DEFINER function is code of
 * another one, which leaves its own: nobody is the same role any more behind it.
 */
static void
note_code(void)
{
	has_run = true;
	if (ttl_leftover_is_other_role())
		role = TTL_ANY_ROLE;
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
bool
ttl_code_is_worker(void)
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

/* Lets all be forgotten once more where code of another role is over that can have filled it anew. */
void
ttl_code_forget_refilled(bool after_error)
{
	if (!refilled)
		return;
	forget_functions();
	if (after_error)
	{
		drops_caches = true;
		return;
	}
	InvalidateSystemCaches();
}

/* From now on the code of this role runs, or goes on, or that of the session. */
void
ttl_code_begin(Oid new_role, bool goes_on, bool after_error)
{
	/* a worker needs no debugger, and a session keeps the one that it has */
	if (*used_plugin == NULL || ttl_code_is_worker())
		*used_plugin = &plugin;
	if (!InSecurityRestrictedOperation())
	{
		if (ttl_code_is_worker())
			return;
		new_role = InvalidOid;
	}
	if (new_role == role && new_role != TTL_ANY_ROLE)
		return;
	role = new_role;
	forget_functions();
	if (has_run && !after_error)
		InvalidateSystemCaches();
	drops_caches = drops_caches || (has_run && goes_on);
	if (goes_on && (InLocalUserIdChange() || InSecurityRestrictedOperation()))
		refilled = true;
	/* what goes on need not look up anew what it calls */
	has_run = goes_on && OidIsValid(role);
}

/*
 * Core keeps what it has computed for a relation, such as the expressions of an index, for as
 * long as that is open.  After an error they are open until the resources are released,
 * which is behind the callbacks of the (sub)transaction: after one that return_next() of PL/Perl
 * has caught as well, of which nobody knows.
 *
 * Only where a (sub)transaction ends, as each turn has one in which it opens what it does.  Where the
 * resources of a cursor are released, core would open relations here that it has to know, with
 * the very resources that are being released.
 */
static void
resources_released(ResourceReleasePhase phase, bool isCommit, bool isTopLevel, void *arg)
{
	if (!drops_caches || phase != RESOURCE_RELEASE_AFTER_LOCKS || IsTransactionState())
		return;
	drops_caches = false;
	InvalidateSystemCaches();
}

/* What is called in the next transaction is called as in a new session. */
void
ttl_code_end_transaction(void)
{
	refilled = false;
}

/* The language of a function, invalid where there is none. */
Oid
ttl_code_language(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Oid			language;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	language = ((Form_pg_proc) GETSTRUCT(tuple))->prolang;
	ReleaseSysCache(tuple);
	return language;
}

/*
 * Can this function be code of a user?  What is in C is a superuser's; so is what the options
 * of TTL indexes are made of, functions of core under other names.
 */
bool
ttl_code_is_of_user(Oid function)
{
	Oid			language;

	if (function < FirstNormalObjectId)
		return false;
	language = ttl_code_language(function);
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
		(!has_run || ttl_leftover_is_other_role()) && ttl_code_is_of_user(function))
		note_code();
}

/* Core asks before it looks up a function to call it, and before it inlines one, in SQL. */
static bool
note_lookup(Oid function)
{
	note_call(function);
	return next_needs_fmgr && next_needs_fmgr(function);
}

/* Has a function the rights of another role than what calls it, the current user? */
static bool
is_of_other_role(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return true;
	result = ((Form_pg_proc) GETSTRUCT(tuple))->prosecdef &&
		((Form_pg_proc) GETSTRUCT(tuple))->proowner != GetUserId();
	ReleaseSysCache(tuple);
	return result;
}

/* Could a function that begins leave a search_path to the code of an owner, and is that of the latter still set? */
static bool
can_leave_path(Oid function)
{
	HeapTuple	tuple;
	bool		result;

	if (!OidIsValid(ttl_leftover_commander()) || !ttl_leftover_is_other_role())
		return false;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_proc) GETSTRUCT(tuple))->prosecdef &&
		heap_attisnull(tuple, Anum_pg_proc_proconfig, NULL);
	ReleaseSysCache(tuple);
	return result;
}

static void
enter_function(Oid function)
{
	if (ncalled == maxcalled)
	{
		int			larger = Max(2 * maxcalled, 16);

		called_functions = called_functions == NULL ?
			MemoryContextAlloc(TopMemoryContext, larger * sizeof(CalledFunction)) :
			repalloc(called_functions, larger * sizeof(CalledFunction));
		maxcalled = larger;
	}
	called_functions[ncalled].function = function;
	called_functions[ncalled].path = can_leave_path(function) ?
		MemoryContextStrdup(TopMemoryContext, namespace_search_path) : NULL;
	ncalled++;
}

/* The path from before a function, which is no more noted then; nor are those of which core has told no end. */
static char *
forget_function(Oid function)
{
	while (ncalled > 0)
	{
		CalledFunction *last = &called_functions[--ncalled];

		if (last->function == function)
			return last->path;
		if (last->path != NULL)
			pfree(last->path);
	}
	return NULL;
}

/*
 * A function of another role that runs in the midst of what the extension does as an owner leaves no
 * search_path to the code of the owner, and nothing that core keeps, where that was forgotten
 * meanwhile.  What the path was before one with settings of its own is not known: there it is a safe one
 * again, unless what has called it has settings of its own.
 */
static void
leave_function(Oid function, bool after_error)
{
	char	   *path = forget_function(function);

	if (refilled && (after_error || is_of_other_role(function)))
	{
		ttl_code_forget_refilled(after_error);
		if (path == NULL && !after_error && !IsInParallelMode() && ttl_leftover_has_own_settings())
			ttl_settings_renew_safe();
	}
	if (path == NULL)
		return;
	if (!after_error && strcmp(path, namespace_search_path) != 0 && !IsInParallelMode())
		ttl_settings_set("search_path", path);
	pfree(path);
}

/*
 * Core asks nothing of functions with settings of their own, or another role's rights, but tells
 * of each call.  That is all where the planner calls one to estimate how many rows an operator
 * selects.  It does not restore the user where an error ends one.
 */
static void
note_event(FmgrHookEventType event, FmgrInfo *function, Datum *arg)
{
	if (event == FHET_START)
		note_call(function->fn_oid);
	if (event == FHET_ABORT)
		ttl_leftover_become_nobody();
	if (next_fmgr)
		next_fmgr(event, function, arg);
	/* where another hook raises an error, core tells of no end */
	if (event == FHET_START)
		enter_function(function->fn_oid);
	else
		leave_function(function->fn_oid, event == FHET_ABORT);
}

static PlannedStmt *
note_planning(Query *parse, const char *query_string, int options,
			  ParamListInfo params ttl_and_explain(struct ExplainState *es))
{
	planner_hook_type plan = next_planner ? next_planner : standard_planner;

	if (OidIsValid(role) && InSecurityRestrictedOperation() && !ttl_leftover_is_other_role())
		note_code();
	return plan(parse, query_string, options, params ttl_and_explain(es));
}

void
ttl_code_init(void)
{
	HASHCTL		ctl = {.keysize = sizeof(PLpgSQL_function *),.entrysize = sizeof(PLpgSQL_function *)};

	used_plugin = (PLpgSQL_plugin **) find_rendezvous_variable("PLpgSQL_plugin");
	called = hash_create("ttl_index functions in PL/pgSQL", 64, &ctl, HASH_ELEM | HASH_BLOBS);
	RegisterResourceReleaseCallback(resources_released, NULL);
	next_planner = planner_hook;
	planner_hook = note_planning;
	next_needs_fmgr = needs_fmgr_hook;
	needs_fmgr_hook = note_lookup;
	next_fmgr = fmgr_hook;
	fmgr_hook = note_event;
}
