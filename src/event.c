/*-------------------------------------------------------------------------
 *
 * event.c
 *	  DDL by others: what the event triggers and the REINDEX hook call.
 *
 * The event triggers refuse what create_index() refuses, so that the engine
 * meets as few broken TTL indexes as possible.  It does not rely on them: they
 * can be disabled, and what slipped through is skipped with a state.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/event.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "commands/defrem.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "tcop/deparse_utility.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_check_ddl);
PG_FUNCTION_INFO_V1(ttl_restore_options);

static ProcessUtility_hook_type next_process_utility = NULL;

static bool
same_option(const TtlOption *a, const TtlOption *b)
{
	if (a->present != b->present || a->seconds != b->seconds ||
		a->problem != NULL || b->problem != NULL ||
		a->drop_partitions != b->drop_partitions ||
		a->bucket_seconds != b->bucket_seconds)
		return false;
	if (a->time_zone == NULL || b->time_zone == NULL)
		return a->time_zone == b->time_zone;
	return strcmp(a->time_zone, b->time_zone) == 0;
}

/*
 * Writes the option of a partitioned TTL index into its children where they
 * carry none or another, so that DETACH neither silences nor revives one.  A
 * child that is locked just now waits for the next pass.
 */
void
ttl_children_follow(Oid root)
{
	TtlOption	option;
	ListCell   *lc;

	if (get_rel_relkind(root) != RELKIND_PARTITIONED_INDEX ||
		!ttl_option_read(root, &option) || !option.present ||
		option.problem != NULL)
		return;
	foreach(lc, find_all_inheritors(root, NoLock, NULL))
	{
		Oid			child = lfirst_oid(lc);
		TtlOption	own;
		TtlOption	part;

		if (child == root || !ttl_option_read(child, &own))
			continue;
		part = ttl_option_of_part(&option, own.filter);
		if (own.problem != NULL || same_option(&own, &part))
			continue;
		if (ttl_lock_for_repair(child) && ttl_option_read(child, &own))
		{
			part.filter = own.filter;
			ttl_option_write(child, &part);
		}
	}
}

/*
 * Was the index made or changed by this transaction, and is it to be used?  One
 * that slipped through earlier, or whose build failed, must not stand in the way
 * of other changes to its table.
 */
static bool
is_new(Oid indexrelid)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexrelid));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	result = TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data)) &&
		(((Form_pg_index) GETSTRUCT(tuple))->indisvalid ||
		 get_rel_relkind(indexrelid) == RELKIND_PARTITIONED_INDEX);
	ReleaseSysCache(tuple);
	return result;
}

/*
 * Raises what is wrong with an index that depends on an option.  With
 * takes_index the command gave an index to a constraint or made it a replica
 * identity: pg_dump would lose the option of that one.
 */
static void
check_index(Oid indexrelid, bool takes_index, Oid *root)
{
	TtlIndex	index;
	TtlOption	own;

	*root = InvalidOid;
	if (!ttl_catalog_describe(indexrelid, true, &index) ||
		!index.option.present)
		return;
	if (TTL_STATE_IS_WRONG(index.state))
	{
		if (is_new(indexrelid) ||
			(takes_index && index.state == TTL_CONSTRAINT_INDEX))
			ttl_state_raise(&index);
		return;
	}
	*root = index.governor;
	if (ttl_option_read(indexrelid, &own) && own.present && own.problem == NULL)
		ttl_saved_option_write(indexrelid, &own);
}

/*
 * A table that LIKE made after a time series is none, unless it is partitioned in
 * the same way: its new indexes lose the options about partitions.
 */
static void
strip_copies(Oid relid)
{
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		Oid			indexrelid = lfirst_oid(lc);
		TtlIndex	index;

		if (!is_new(indexrelid) ||
			!ttl_catalog_describe(indexrelid, true, &index) ||
			index.state != TTL_NOT_PARTITIONED_BY_KEY)
			continue;
		index.option = ttl_option_of_part(&index.option, index.option.filter);
		ttl_option_write(indexrelid, &index.option);
	}
}

/*
 * Checks the indexes of a table and of its partitions.  Takes no lock on them: the
 * command holds those that it needs, and must wait for no others.
 */
static void
check_table(Oid relid, bool takes_index)
{
	List	   *rels = list_make1_oid(relid);
	List	   *roots = NIL;
	ListCell   *lc;

	if (get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE)
		rels = find_all_inheritors(relid, NoLock, NULL);
	foreach(lc, rels)
	{
		ListCell   *lc2;

		foreach(lc2, ttl_catalog_table_indexes(lfirst_oid(lc)))
		{
			Oid			root;

			check_index(lfirst_oid(lc2), takes_index, &root);
			if (OidIsValid(root))
				roots = list_append_unique_oid(roots, root);
		}
	}
	foreach(lc, roots)
		ttl_children_follow(lfirst_oid(lc));
}

/* The first TTL index of a table, for a message; invalid where it has none. */
static Oid
first_ttl_index(Oid relid)
{
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		TtlOption	option;

		if (ttl_option_read(lfirst_oid(lc), &option) && option.present)
			return lfirst_oid(lc);
	}
	return InvalidOid;
}

/* A table that got a TTL index in passing is worth a line. */
static void
notice_table(Oid relid, const char *how)
{
	Oid			indexrelid = OidIsValid(relid) ? first_ttl_index(relid) : InvalidOid;

	if (OidIsValid(indexrelid))
		ereport(NOTICE,
				(errmsg("rows of table \"%s\" expire by TTL index \"%s\"",
						get_rel_name(relid), get_rel_name(indexrelid)),
				 errdetail("%s", how),
				 errhint("ttl_index.remove_ttl() makes it a plain index.")));
}

/* The last subcommand of one of these kinds, or NULL. */
static AlterTableCmd *
find_subcommand(CollectedCommand *command, AlterTableType a, AlterTableType b)
{
	AlterTableCmd *found = NULL;
	ListCell   *lc;

	if (command->type != SCT_AlterTable)
		return NULL;
	foreach(lc, command->d.alterTable.subcmds)
	{
		AlterTableCmd *cmd = (AlterTableCmd *)
		((CollectedATSubcmd *) lfirst(lc))->parsetree;

		if (IsA(cmd, AlterTableCmd) && (cmd->subtype == a || cmd->subtype == b))
			found = cmd;
	}
	return found;
}

/*
 * check_ddl(command pg_ddl_command, object oid, tag text): for ddl_command_end,
 * one call for each relation that a command touched.
 */
Datum
ttl_check_ddl(PG_FUNCTION_ARGS)
{
	CollectedCommand *command = (CollectedCommand *) PG_GETARG_POINTER(0);
	Oid			object = PG_GETARG_OID(1);
	char	   *tag = text_to_cstring(PG_GETARG_TEXT_PP(2));
	char		relkind = get_rel_relkind(object);
	Oid			relid = object;
	AlterTableCmd *detach;

	if (relkind == RELKIND_INDEX || relkind == RELKIND_PARTITIONED_INDEX)
		relid = IndexGetRelation(object, true);
	else if (relkind != RELKIND_RELATION &&
			 relkind != RELKIND_PARTITIONED_TABLE &&
			 relkind != RELKIND_MATVIEW)
		PG_RETURN_VOID();
	if (!OidIsValid(relid))
		PG_RETURN_VOID();

	if (relid == object && strcmp(tag, "ALTER TABLE") != 0 &&
		!get_rel_relispartition(relid))
		strip_copies(relid);
	check_table(relid, find_subcommand(command, AT_AddIndexConstraint,
									   AT_ReplicaIdentity) != NULL);
	if (relid != object && strcmp(tag, "CREATE INDEX") == 0)
		ttl_report_left_out(object);
	detach = find_subcommand(command, AT_DetachPartition, AT_DetachPartition);
	if (detach != NULL)
		notice_table(RangeVarGetRelid(((PartitionCmd *) detach->def)->name,
									  NoLock, true),
					 "The detached partition keeps the TTL of its parent.");
	if (relid == object && strcmp(tag, "CREATE TABLE") == 0 &&
		!get_rel_relispartition(relid))
		notice_table(relid, "The index was copied by LIKE.");
	PG_RETURN_VOID();
}

/* restore_options(): for the event trigger on REINDEX, 17 and later. */
Datum
ttl_restore_options(PG_FUNCTION_ARGS)
{
	ttl_options_restore();
	PG_RETURN_VOID();
}

static bool
is_reindex_concurrently(Node *statement)
{
	ListCell   *lc;

	if (!IsA(statement, ReindexStmt))
		return false;
	foreach(lc, ((ReindexStmt *) statement)->params)
	{
		DefElem    *param = lfirst(lc);

		if (strcmp(param->defname, "concurrently") == 0)
			return defGetBoolean(param);
	}
	return false;
}

/* After REINDEX CONCURRENTLY no snapshot is active, and writing a catalog wants one. */
static void
restore_options(void)
{
	PushActiveSnapshot(GetTransactionSnapshot());
	ttl_options_restore();
	PopActiveSnapshot();
}

/*
 * REINDEX CONCURRENTLY loses a lone option (see option.c).  It ends in a
 * transaction of its own, so the option can be restored before the user has the
 * prompt back.  Before it begins, what is to be remembered is made complete:
 * pg_upgrade does not carry that along, and the first pass may be far away.
 */
static void
process_utility(PlannedStmt *pstmt, const char *queryString, bool readOnlyTree,
				ProcessUtilityContext context, ParamListInfo params,
				QueryEnvironment *queryEnv, DestReceiver *dest,
				QueryCompletion *qc)
{
	bool		reindex = is_reindex_concurrently(pstmt->utilityStmt);

	if (reindex && !RecoveryInProgress())
		restore_options();
	if (next_process_utility)
		next_process_utility(pstmt, queryString, readOnlyTree, context, params,
							 queryEnv, dest, qc);
	else
		standard_ProcessUtility(pstmt, queryString, readOnlyTree, context,
								params, queryEnv, dest, qc);
	if (reindex && IsTransactionState())
		restore_options();
}

void
ttl_event_init(void)
{
	next_process_utility = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
}
