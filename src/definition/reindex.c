/*-------------------------------------------------------------------------
 *
 * reindex.c
 *	  What REINDEX CONCURRENTLY would lose is saved before it, and restored behind it.
 *
 * REINDEX CONCURRENTLY loses an option that stands alone (saved_option.c).  It ends in a
 * transaction of its own, so the option can be restored before the user has the prompt
 * back.  Before it begins, what is saved is made complete: pg_upgrade does not carry that
 * along, and the first pass may be far away.
 *
 * Both are done for the indexes that the statement names, and for no others: nobody's
 * REINDEX fails, or takes long, because of an index that it has nothing to do with.  Each
 * index takes two locks until the end of the transaction, and there can be more indexes
 * than locks.  The hook works in several transactions, as the command itself does.  An
 * event trigger, which does the same from 17 on where the library is not loaded yet,
 * cannot: it has one transaction for all.  What does not fit into it is an error before
 * the command, which would lose it, and waits for the next pass behind it.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/definition/reindex.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "tcop/utility.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#include "definition/definition.h"
#include "definition/option.h"
#include "compat.h"
#include "ttl_index.h"

/* Those indexes that a statement names and a function chooses, in memory of the caller. */
typedef struct NamedIndexes
{
	ReindexObjectType kind;
	Oid			named;			/* the index, table or schema */
	bool		(*is_it) (Oid indexrelid);
	List	   *indexes;
	MemoryContext context;
} NamedIndexes;

/* Is it this relation, or a partition below it? */
static bool
is_or_is_below(Oid relid, Oid named)
{
	return relid == named ||
		(get_rel_relispartition(relid) &&
		 list_member_oid(get_partition_ancestors(relid), named));
}

static bool
is_named(Oid indexrelid, const NamedIndexes *search)
{
	Oid			relid = IndexGetRelation(indexrelid, true);

	switch (search->kind)
	{
		case REINDEX_OBJECT_INDEX:
			return is_or_is_below(indexrelid, search->named);
		case REINDEX_OBJECT_TABLE:
			return is_or_is_below(relid, search->named);
		case REINDEX_OBJECT_SCHEMA:
			return get_rel_namespace(relid) == search->named;
		case REINDEX_OBJECT_DATABASE:
			return true;
		default:
			return false;
	}
}

static void
add_if_named(Oid indexrelid, void *arg)
{
	NamedIndexes *search = arg;
	MemoryContext own;

	if (!is_named(indexrelid, search) || !search->is_it(indexrelid))
		return;
	own = MemoryContextSwitchTo(search->context);
	search->indexes = lappend_oid(search->indexes, indexrelid);
	MemoryContextSwitchTo(own);
}

static List *
named_indexes(const ReindexStmt *statement, bool (*is_it) (Oid indexrelid))
{
	NamedIndexes search = {
		.kind = statement->kind,
		.is_it = is_it,
		.context = CurrentMemoryContext
	};

	if (statement->relation != NULL)
		search.named = RangeVarGetRelid(statement->relation, NoLock, true);
	else if (statement->kind == REINDEX_OBJECT_SCHEMA)
		search.named = get_namespace_oid(statement->name, true);

	/*
	 * Behind the command no snapshot is active, and what is toasted needs
	 * one.
	 */
	PushActiveSnapshot(GetTransactionSnapshot());
	ttl_catalog_each(ttl_catalog_dependents(), add_if_named, &search);
	PopActiveSnapshot();
	return search.indexes;
}

/* Has the index an option that a rebuild would lose for good? */
static bool
is_unsaved(Oid indexrelid)
{
	TtlOption	option;

	return get_rel_relkind(indexrelid) == RELKIND_INDEX &&
		ttl_option_read(indexrelid, &option) && option.present &&
		ttl_saved_option_needs_repair(indexrelid);
}

/* Repairs an index, and warns where that is too late. */
static void
repair(Oid indexrelid, void *arg)
{
	ttl_saved_option_repair(indexrelid);
	if (ttl_saved_option_is_lost(indexrelid))
		ttl_saved_option_warn(indexrelid);
}

/* Commits in the middle of a command; the portal, if it has a snapshot, gets a new one. */
static void
commit_and_go_on(MemoryContext caller)
{
	bool		has_snapshot = ActiveSnapshotSet();

	if (has_snapshot)
		PopActiveSnapshot();
	CommitTransactionCommand();
	StartTransactionCommand();
	if (has_snapshot)
		EnsurePortalSnapshotExists();
	MemoryContextSwitchTo(caller);
}

/*
 * Repairs indexes, or the first ones where they are too many for a transaction that has to
 * do for all: together they get a quarter of the lock table.
 */
static void
repair_all(List *indexes, bool may_commit)
{
	MemoryContext caller = CurrentMemoryContext;
	int			portion = Max((int64) max_locks_per_xact * MaxBackends / 8, 1);

	for (int done = 0; done < list_length(indexes); done += portion)
	{
		PushActiveSnapshot(GetTransactionSnapshot());
		ttl_catalog_each(list_truncate(list_copy_tail(indexes, done), portion),
						 repair, NULL);
		PopActiveSnapshot();
		if (!may_commit)
			return;
		commit_and_go_on(caller);
	}
}

/* Refuses to begin where an option would be lost. */
static void
check_saved(Oid indexrelid, void *arg)
{
	if (is_unsaved(indexrelid))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("could not save the option of TTL index %s",
						ttl_name_index(indexrelid)),
				 errdetail("REINDEX CONCURRENTLY would lose it.  The index or its table is locked, or there are more such indexes than fit into one transaction."),
				 errhint("Try it again behind CALL " TTL_SCHEMA ".run_pass(), which saves the options of all TTL indexes.")));
}

static bool
is_concurrently(const ReindexStmt *statement)
{
	bool		result = false;
	ListCell   *lc;

	/* of several ones the last one counts, as for the command */
	foreach(lc, statement->params)
	{
		DefElem    *param = lfirst(lc);

		if (strcmp(param->defname, "concurrently") == 0)
			result = defGetBoolean(param);
	}
	return result;
}

/* The statement, if it is a REINDEX CONCURRENTLY. */
static const ReindexStmt *
reindex_concurrently(Node *statement)
{
	if (!IsA(statement, ReindexStmt) ||
		!is_concurrently((ReindexStmt *) statement))
		return NULL;
	return (const ReindexStmt *) statement;
}

/* Saves what the statement could lose. */
static void
save_named(const ReindexStmt *statement, bool may_commit)
{
	List	   *unsaved = named_indexes(statement, is_unsaved);

	repair_all(unsaved, may_commit);
	ttl_catalog_each(unsaved, check_saved, NULL);
}

/* Restores what the statement has lost. */
static void
restore_named(const ReindexStmt *statement, bool may_commit)
{
	repair_all(named_indexes(statement, ttl_saved_option_needs_repair), may_commit);
}

/* The same from an event trigger, which cannot commit. */
void
ttl_reindex_before(Node *statement)
{
	const ReindexStmt *reindex = reindex_concurrently(statement);

	if (reindex != NULL)
		save_named(reindex, false);
}

void
ttl_reindex_after(Node *statement)
{
	const ReindexStmt *reindex = reindex_concurrently(statement);

	if (reindex != NULL)
		restore_named(reindex, false);
}

static ProcessUtility_hook_type next_process_utility = NULL;

/* Is the command run by itself?  Elsewhere it is refused. */
static bool
is_alone(ProcessUtilityContext context)
{
	return !RecoveryInProgress() &&
		!IsInTransactionBlock(context == PROCESS_UTILITY_TOPLEVEL);
}

static void
process_utility(PlannedStmt *pstmt, const char *queryString, bool readOnlyTree,
				ProcessUtilityContext context, ParamListInfo params,
				QueryEnvironment *queryEnv, DestReceiver *dest,
				QueryCompletion *qc)
{
	const ReindexStmt *reindex = reindex_concurrently(pstmt->utilityStmt);
	MemoryContext caller = CurrentMemoryContext;
	bool		alone = reindex != NULL && is_alone(context);

	if (alone)
		save_named(reindex, true);
	if (next_process_utility)
		next_process_utility(pstmt, queryString, readOnlyTree, context, params,
							 queryEnv, dest, qc);
	else
		standard_ProcessUtility(pstmt, queryString, readOnlyTree, context,
								params, queryEnv, dest, qc);
	if (alone)
	{
		MemoryContextSwitchTo(caller);
		restore_named(reindex, true);
	}
}

void
ttl_reindex_init(void)
{
	next_process_utility = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
}
