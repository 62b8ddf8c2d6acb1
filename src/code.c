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

/* What was called since the code of another role has run, and by whom first, who has had it compiled. */
typedef struct Called
{
	PLpgSQL_function *function;
	bool		by_other;		/* not by the role as which the extension acts */
} Called;

static HTAB *called;

/* invalid for that of the session, and in a worker before the first owner's */
static Oid	role = InvalidOid;

static bool in_pass = false;

/* can anything that has run have filled the caches since they are new? */
static bool has_run = false;

/* are they to be dropped as soon as the relations are closed that an error can have left open? */
static bool drops_caches = false;

static planner_hook_type next_planner = NULL;
static needs_fmgr_hook_type next_needs_fmgr = NULL;
static fmgr_hook_type next_fmgr = NULL;

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
	Called	   *entry;
	bool		found;

	if (OidIsValid(role))
		note_code();
	/* that of a DO block is not kept */
	if (!OidIsValid(function->fn_oid))
		return;
	entry = hash_search(called, &function, HASH_ENTER, &found);
	if (!found)
		entry->by_other = ttl_leftover_is_other_role();
}

/* Is this a worker of the monitor?  It runs nothing but the code of owners. */
bool
ttl_code_is_worker(void)
{
	return MyBgworkerEntry != NULL && strcmp(MyBgworkerEntry->bgw_type, TTL_WORKER_TYPE) == 0;
}

/* A session is in a pass while run_pass() runs. */
void
ttl_code_set_in_pass(bool is_in_pass)
{
	in_pass = is_in_pass;
}

bool
ttl_code_is_in_pass(void)
{
	return in_pass || ttl_code_is_worker();
}

/* Lets PL/pgSQL compile anew what was called, or only what others have called first. */
static void
forget_functions(bool by_other_only)
{
	HASH_SEQ_STATUS scan;
	Called	   *entry;

	hash_seq_init(&scan, called);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		if (by_other_only && !entry->by_other)
			continue;
		entry->function->ttl_compiled_xmin = InvalidTransactionId;
		(void) hash_search(called, &entry->function, HASH_REMOVE, NULL);
	}
}

/*
 * The role goes on for which this one was begun, behind functions of other roles: nothing is there that
 * these have had compiled or kept.
 */
void
ttl_code_renew(Oid new_role)
{
	if (role != TTL_ANY_ROLE)
		return;
	role = new_role;
	forget_functions(true);
	InvalidateSystemCaches();
	has_run = false;
}

/* Has PL/pgSQL tell what it calls.  A worker needs no debugger, and a session keeps the one that it has. */
static void
watch_functions(void)
{
	if (*used_plugin == NULL || ttl_code_is_worker())
		*used_plugin = &plugin;
}

/* Code runs for which nothing is forgotten: it is for those that come after it. */
void
ttl_code_go_on(void)
{
	watch_functions();
	has_run = true;
}

/* From now on the code of this role runs, or goes on, or that of the session. */
void
ttl_code_begin(Oid new_role, bool goes_on, bool after_error)
{
	watch_functions();
	if (!InSecurityRestrictedOperation())
	{
		if (ttl_code_is_worker())
			return;
		new_role = InvalidOid;
	}
	if (new_role == role && new_role != TTL_ANY_ROLE)
		return;
	role = new_role;
	forget_functions(false);
	if (has_run && !after_error)
		InvalidateSystemCaches();
	drops_caches = drops_caches || (has_run && goes_on);
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
	HASHCTL		ctl = {.keysize = sizeof(PLpgSQL_function *),.entrysize = sizeof(Called)};

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
