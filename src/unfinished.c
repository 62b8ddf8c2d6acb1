/*-------------------------------------------------------------------------
 *
 * unfinished.c
 *	  What an owner's code has begun and not brought to its end.
 *
 * PL/Perl's return_next() catches errors without the end of a subtransaction.  So it does
 * not take back what the command has done in which the error was raised, as to
 * queue a deferred trigger, which core refuses to fire only then: the commit would, outside of
 * the restricted operation.  So hooks count the commands that have begun and not come to their
 * end; the active snapshots that they leave say less, as a cursor can take them back.  One that
 * changes rows has come to its end when its triggers are fired: SPI can raise an error between
 * what it does and that.
 *
 * It does where an error has left a level of SPI behind, which each function in a procedural
 * language has.  Such a level would also be that of whoever goes on in a session: of its next
 * commands, by the names of transition tables that are there.  It is counted as well.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/unfinished.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/memutils.h"

#include "compat.h"
#include "ttl_index.h"

/*
 * How many commands, or steps of them, have begun and not come to their end, but for those that
 * the end of a subtransaction has taken back.  Only by how it changes in a turn: commands that end a
 * transaction are not counted right.
 */
static uint64 ncommands = 0;

/* when the subtransaction at each level began */
static uint64 *ncommands_at = NULL;
static int	nlevels = 0;

static ExecutorStart_hook_type next_start = NULL;
static ExecutorRun_hook_type next_run = NULL;
static ExecutorFinish_hook_type next_finish = NULL;
static ProcessUtility_hook_type next_process_utility = NULL;

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

/* The end of a query is where its AFTER triggers are fired; a foreign key leaves them to an outer one. */
static void
finish_query(QueryDesc *query)
{
	const bool	fires_triggers = (query->estate->es_top_eflags & EXEC_FLAG_SKIP_TRIGGERS) == 0;
	const TtlCommand command = ttl_leftover_begin_command(fires_triggers);

	ncommands++;
	PG_TRY();
	{
		if (next_finish)
			next_finish(query);
		else
			standard_ExecutorFinish(query);
	}
	PG_CATCH();
	{
		ttl_leftover_end_command(&command);
		ttl_leftover_become_nobody();
		PG_RE_THROW();
	}
	PG_END_TRY();
	ttl_leftover_end_command(&command);
	ncommands -= changes_rows(query) ? 2 : 1;
}

/*
 * Would this change when triggers are fired?  It changes nothing in the midst of what the extension
 * does as others: core refuses to queue deferred triggers in a restricted operation, so those that
 * are there are the caller's, whose triggers would be fired by the settings of the code that
 * runs, or be deferred behind it.
 */
static bool
sets_constraints(const PlannedStmt *pstmt)
{
	return IsA(pstmt->utilityStmt, ConstraintsSetStmt) && OidIsValid(ttl_leftover_commander());
}

/* Other commands fire some as well, as ALTER TABLE does those of a new foreign key. */
static void
process_utility(PlannedStmt *pstmt, const char *queryString, bool readOnlyTree,
				ProcessUtilityContext context, ParamListInfo params,
				QueryEnvironment *queryEnv, DestReceiver *dest, QueryCompletion *qc)
{
	const TtlCommand command = ttl_leftover_begin_command(true);

	ncommands++;
	PG_TRY();
	{
		if (sets_constraints(pstmt))
			 /* all of this code's are immediate */ ;
		else if (next_process_utility)
			next_process_utility(pstmt, queryString, readOnlyTree, context, params,
								 queryEnv, dest, qc);
		else
			standard_ProcessUtility(pstmt, queryString, readOnlyTree, context, params,
									queryEnv, dest, qc);
	}
	PG_CATCH();
	{
		ttl_leftover_end_command(&command);
		ttl_leftover_become_nobody();
		PG_RE_THROW();
	}
	PG_END_TRY();
	ttl_leftover_end_command(&command);
	ncommands--;
	/* a command of the session, as that of create_index() is, can have truncated tables */
	if (!OidIsValid(ttl_leftover_commander()))
		ttl_uncomputed_restore_candidates((TtlCandidates){0});
}

/* A subtransaction that ends with an error takes with it the commands that have begun within. */
static void
note_subtransaction(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	int			level = GetCurrentTransactionNestLevel();

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

/*
 * Notes what has begun, before code of a role can run: also where core itself becomes that role, as
 * for the functions in an index that it builds.
 */
void
ttl_unfinished_note(TtlUnfinished *before)
{
	before->commands = ncommands;
	before->spi_levels = spi_levels();
}

/* Says that code of a role has left something unfinished. */
void
ttl_unfinished_raise(Oid user)
{
	ereport(ERROR,
			(errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
			 errmsg("code of role \"%s\" has caught an error without a subtransaction",
					GetUserNameFromId(user, false)),
			 errdetail("What the command that failed has done is not taken back by that."),
			 errhint("Let no value that return_next() of PL/Perl converts fail in a function or a query, as in the CHECK constraint of a domain.")));
}

/* Raises an error if something that has begun since then did not come to its end. */
void
ttl_unfinished_check(const TtlUnfinished *before, Oid user)
{
	if (ncommands != before->commands || spi_levels() != before->spi_levels)
		ttl_unfinished_raise(user);
}

void
ttl_unfinished_init(void)
{
	RegisterSubXactCallback(note_subtransaction, NULL);
	next_start = ExecutorStart_hook;
	ExecutorStart_hook = start_query;
	next_run = ExecutorRun_hook;
	ExecutorRun_hook = run_query;
	next_finish = ExecutorFinish_hook;
	ExecutorFinish_hook = finish_query;
	next_process_utility = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
}
