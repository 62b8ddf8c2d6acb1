/*-------------------------------------------------------------------------
 *
 * event.c
 *	  The functions of the event triggers, for DDL that users run.
 *
 * The event triggers refuse what create_index() refuses.  They can be disabled, so the engine
 * does not rely on them: it skips an index that is wrong, with a state.
 *
 * They also write the option that governs a partitioned index into the index of a partition
 * when it is attached, so that a detached partition keeps the TTL that it had.  If they were
 * disabled then, it has the option that its index had before, and a NOTICE of DETACH says which.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_index.h"
#include "commands/event_trigger.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "parser/parse_utilcmd.h"
#include "postmaster/bgworker.h"
#include "storage/lmgr.h"
#include "tcop/deparse_utility.h"
#include "tcop/pquery.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

#include "compat.h"
#include "ddl/ddl.h"
#include "state/state.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_check_ddl);
PG_FUNCTION_INFO_V1(ttl_on_alter_index);

/*
 * The TTL indexes of a table, or the TTL index that the relation is.  An option governs each of
 * them, its own or that of an index above it.
 */
static List *
ttl_indexes_of(Oid relid)
{
	FormData_pg_class form;
	List	   *indexes = NIL;
	List	   *result = NIL;
	ListCell   *lc;

	(void) ttl_catalog_class(relid, &form);
	if (form.relkind == RELKIND_INDEX || form.relkind == RELKIND_PARTITIONED_INDEX)
		indexes = list_make1_oid(relid);
	else if (form.relhasindex)
		indexes = ttl_catalog_table_indexes(relid);
	foreach(lc, indexes)
	{
		if (OidIsValid(ttl_catalog_root(lfirst_oid(lc))))
			result = lappend_oid(result, lfirst_oid(lc));
	}
	return result;
}

/*
 * Did this transaction make or change the index, and is it valid?  An index that slipped
 * through earlier must not prevent other changes of its table.
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
 * Writes the governing option into a partition's index that the current command made or
 * attached.  The command's locks on the tables exclude changes of options, so a lock on the
 * index is enough.  If the partition had an option of its own, rows may be deleted that were
 * to stay, so a NOTICE says so.
 */
static void
inherit_option(Oid child, const TtlIndex *index)
{
	const TtlOption *option = &index->option;
	TtlOption	own;
	TtlOption	governing;
	TtlOption	part;
	Oid			governor;

	if (index->governor == child || ttl_option_is_inherited(child, option, &part))
		return;
	if (ttl_option_read(child, &own) && own.present && own.problem == NULL &&
		(own.seconds != option->seconds || own.paused != option->paused ||
		 own.archive_to != option->archive_to))
		ereport(NOTICE,
				(errmsg("TTL index \"%s\" of partition \"%s\" now follows TTL index \"%s\"",
						get_rel_name(child), get_rel_name(index->relid),
						get_rel_name(index->governor)),
				 errdetail("Its own options no longer apply; expire_after_seconds is now %d.",
						   option->seconds)));

	/* whoever changes an option locks all indexes that it governs first, so read it again */
	LockRelationOid(child, ShareUpdateExclusiveLock);
	if (ttl_catalog_governor(child, &governor, &governing) &&
		governor != child && !ttl_option_is_inherited(child, &governing, &part))
		ttl_saved_option_put(child, &part);
}

/*
 * Raises what is wrong with an index that a command made, attached, or rebuilt for another type.
 * Ensures that its option is that of the index above it, and is saved.
 */
static void
check_index(Oid indexrelid, void *arg)
{
	TtlIndex	index;
	TtlOption	own;

	if (!ttl_state_describe(indexrelid, true, &index) || !index.option.present)
		return;
	if (TTL_STATE_IS_WRONG(index.state) && is_new(indexrelid))
	{
		/* ALTER TYPE has rebuilt it */
		if (*(bool *) arg)
			index.hint = psprintf("TTL index \"%s\" is in the way: SELECT ttl_index.remove_ttl(%s); "
								  "Afterwards make it a TTL index again with ttl_index.coll_mod_index().",
								  get_rel_name(index.governor),
								  quote_literal_cstr(ttl_name_qualified(index.governor)));
		ttl_state_raise(&index);
	}
	inherit_option(indexrelid, &index);

	/* coll_mod() may hold the lock; then the next pass saves the option */
	if (ttl_saved_option_needs_repair(indexrelid) &&
		(is_new(indexrelid) || ttl_saved_option_lock(indexrelid)) &&
		ttl_option_read(indexrelid, &own) && own.present && own.problem == NULL)
		ttl_saved_option_write(indexrelid, &own);
}

/* Checks the TTL indexes of a relation and those of partitions below them. */
static void
check_relation(Oid relid, bool rebuilt)
{
	ListCell   *lc;

	foreach(lc, ttl_indexes_of(relid))
		ttl_catalog_each(ttl_inherit_tree(lfirst_oid(lc)), check_index, &rebuilt);
}

/*
 * Removes options about partitions from the indexes that LIKE copied from a time series,
 * unless the new table is partitioned in the same way.
 */
static void
strip_copies(Oid relid)
{
	ListCell   *lc;

	foreach(lc, ttl_indexes_of(relid))
	{
		TtlIndex	index;

		if (!is_new(lfirst_oid(lc)) ||
			!ttl_state_describe(lfirst_oid(lc), true, &index) ||
			index.state != TTL_UNSUITABLE_PARTITIONS)
			continue;
		index.option = ttl_option_of_part(&index.option, index.option.filter);
		ttl_saved_option_put(lfirst_oid(lc), &index.option);
	}
}

/* Tells of a TTL index that a table got from LIKE or kept after DETACH. */
static void
notice_table(Oid relid, const char *how)
{
	List	   *indexes = ttl_indexes_of(relid);
	TtlOption	option;

	if (indexes != NIL && ttl_option_read(linitial_oid(indexes), &option) && option.problem == NULL)
		ereport(NOTICE,
				(errmsg("rows of table \"%s\" expire by TTL index \"%s\"",
						get_rel_name(relid), get_rel_name(linitial_oid(indexes))),
				 errdetail("%s It has %s.", how, ttl_create_option_sql(&option)),
				 errhint("SELECT ttl_index.remove_ttl(%s);",
						 quote_literal_cstr(ttl_name_qualified(linitial_oid(indexes))))));
}

/*
 * CREATE INDEX IF NOT EXISTS found a relation of the name and made nothing.  Tells if that is
 * another one than the TTL index that the command describes.  A command within a function is
 * not known here.
 */
static void
report_existing(void)
{
	IndexStmt  *statement = NULL;
	Oid			relid;
	Oid			existing;
	TtlOption	wanted;
	TtlOption	option;
	bool		is_ttl_index;

	if (ActivePortal != NULL && list_length(ActivePortal->stmts) == 1)
		statement = (IndexStmt *) linitial_node(PlannedStmt, ActivePortal->stmts)->utilityStmt;
	if (statement == NULL || !IsA(statement, IndexStmt) || !statement->if_not_exists)
		return;
	relid = RangeVarGetRelid(statement->relation, NoLock, true);
	existing = get_relname_relid(statement->idxname, get_rel_namespace(relid));
	if (!OidIsValid(existing))
		return;
	statement = transformIndexStmt(relid, copyObject(statement), ActivePortal->sourceText);
	ttl_option_read_members(make_ands_implicit((Expr *) statement->whereClause), true, &wanted);
	if (!wanted.present || wanted.problem != NULL)
		return;
	is_ttl_index = IndexGetRelation(existing, true) == relid &&
		ttl_option_read(existing, &option) && option.present;
	if (is_ttl_index && (option.problem != NULL || option.seconds == wanted.seconds))
		return;
	ereport(NOTICE,
			(errmsg("existing relation \"%s\" is not the TTL index that the command describes",
					get_rel_name(existing)),
			 is_ttl_index ?
			 errdetail("expire_after_seconds is %d instead of %d.", option.seconds, wanted.seconds) :
			 errdetail("It is not a TTL index of table \"%s\".", get_rel_name(relid)),
			 is_ttl_index ?
			 errhint("SELECT ttl_index.coll_mod_index(%s, %d);",
					 quote_literal_cstr(ttl_name_qualified(existing)), wanted.seconds) :
			 errhint("Rename it, or give another name.")));
}

/* Checks what CREATE TABLE or CREATE INDEX made, also inside CREATE SCHEMA. */
static void
check_created(const CollectedCommand *command, CommandTag tag)
{
	Oid			made = command->d.simple.address.objectId;

	if (command->d.simple.address.classId != RelationRelationId || !OidIsValid(made))
		return;
	if (IsA(command->parsetree, IndexStmt) && ttl_indexes_of(made) != NIL)
	{
		check_relation(made, false);
		ttl_notice_report_overlap(made, WARNING);
		ttl_notice_report_due(made, true);
	}
	else if (IsA(command->parsetree, CreateStmt) && ttl_indexes_of(made) != NIL)
	{
		bool		is_partition = get_rel_relispartition(made);

		if (!is_partition)
			strip_copies(made);
		check_relation(made, false);
		if (!is_partition && tag == CMDTAG_CREATE_TABLE)
			notice_table(made, "LIKE copied the index.");
	}
}

/*
 * Checks the indexes of a partition that was attached, and tells what is due by them.  Tells
 * that a detached one keeps its TTL.  A worker that keeps or archives a partition tells nobody.
 * The command has only the name of the partition.  If that was renamed in the meantime, nothing
 * is checked.
 */
static void
check_partition(Oid parent, const AlterTableCmd *cmd)
{
	Oid			partition = RangeVarGetRelid(castNode(PartitionCmd, cmd->def)->name, NoLock, true);
	ListCell   *lc;

	if (!OidIsValid(partition) || ttl_indexes_of(parent) == NIL)
		return;
	if (cmd->subtype != AT_AttachPartition)
	{
		if (MyBgworkerEntry == NULL)
			notice_table(partition, "The detached partition keeps the index.");
		return;
	}
	if (ttl_inherit_parent(partition, NULL) != parent)
		return;
	check_relation(partition, false);
	if (MyBgworkerEntry != NULL)
		return;
	foreach(lc, ttl_indexes_of(partition))
	{
		if (!get_rel_relispartition(lfirst_oid(lc)))
			ttl_notice_report_overlap(lfirst_oid(lc), WARNING);
		else if (client_min_messages <= NOTICE)
			ttl_notice_report_due(lfirst_oid(lc), false);
	}
}

/*
 * Reports the TTL indexes that ALTER TABLE has dropped.  Core drops an index together with a
 * column that its key or its filter names, and does not report it, so expiry would end silently.
 * The snapshot is from before the command.  Indexes that another transaction dropped in the
 * meantime are not reported.
 */
static void
report_dropped(Oid relid, Snapshot before)
{
	TtlFunctions functions;
	Relation	indexes;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (!ttl_option_functions(&functions))
		return;
	indexes = table_open(IndexRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_index_indrelid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(indexes, IndexIndrelidIndexId, true, before, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Oid			indexrelid = ((Form_pg_index) GETSTRUCT(tuple))->indexrelid;

		if ((tuple->t_data->t_infomask & HEAP_XMAX_INVALID) == 0 &&
			TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetUpdateXid(tuple->t_data)) &&
			get_rel_relkind(indexrelid) == '\0' &&
			ttl_option_is_within(ttl_option_stored_tree(tuple, Anum_pg_index_indpred), &functions))
		{
			ereport(NOTICE,
					(errmsg("TTL indexes of table \"%s\" were dropped with a column",
							get_rel_name(relid)),
					 errdetail("Their key or their filter used the column. Rows no longer expire by them.")));
			break;
		}
	}
	systable_endscan(scan);
	table_close(indexes, AccessShareLock);
}

/* Checks what an ALTER TABLE or ALTER INDEX made, changed or dropped, not other partitions. */
static void
check_altered(const CollectedCommand *command, Snapshot before)
{
	Oid			object = command->d.alterTable.objectId;
	bool		drops = false;
	ListCell   *lc;

	foreach(lc, command->d.alterTable.subcmds)
	{
		CollectedATSubcmd *subcommand = lfirst(lc);
		AlterTableCmd *cmd = (AlterTableCmd *) subcommand->parsetree;
		Oid			changed = subcommand->address.objectId;

		if (!IsA(cmd, AlterTableCmd))
			continue;
		drops = drops || TTL_IS_DROP_COLUMN(cmd->subtype);
		switch (cmd->subtype)
		{
			case AT_AddIndex:
			case AT_ReAddIndex:
				check_relation(changed, cmd->subtype == AT_ReAddIndex);
				break;
			case AT_AttachPartition:
			case AT_DetachPartition:
			case AT_DetachPartitionFinalize:
				check_partition(object, cmd);
				break;
			default:
				break;
		}
	}
	if (drops && before != NULL)
		report_dropped(object, before);
}

/*
 * Calls pg_event_trigger_ddl_commands() without SQL, which would look up names and check
 * privileges: DDL must not fail because a privilege was revoked.
 */
static List *
collected_commands(void)
{
	LOCAL_FCINFO(call, 0);
	FmgrInfo	function;
	ReturnSetInfo result = {
		.type = T_ReturnSetInfo,
		.econtext = CreateStandaloneExprContext(),
		.allowedModes = SFRM_Materialize
	};
	TupleTableSlot *slot;
	List	   *commands = NIL;

	fmgr_info(F_PG_EVENT_TRIGGER_DDL_COMMANDS, &function);
	InitFunctionCallInfoData(*call, &function, 0, InvalidOid, NULL,
							 (Node *) &result);
	(void) FunctionCallInvoke(call);
	slot = MakeSingleTupleTableSlot(result.setDesc, &TTSOpsMinimalTuple);
	while (tuplestore_gettupleslot(result.setResult, true, false, slot))
	{
		bool		isnull;
		Datum		command = slot_getattr(slot, result.setDesc->natts, &isnull);

		commands = lappend(commands, DatumGetPointer(command));
	}
	ExecDropSingleTupleTableSlot(slot);
	tuplestore_end(result.setResult);
	FreeExprContext(result.econtext, true);
	return commands;
}

/*
 * check_ddl(tag text) returns boolean: checks the TTL indexes that a command made or changed.
 * on_ddl() calls it.  With NULL, it only loads the library.
 */
Datum
ttl_check_ddl(PG_FUNCTION_ARGS)
{
	CommandTag	tag;
	List	   *commands;
	Snapshot	before;
	ErrorContextCallback *caller_context = error_context_stack;
	ListCell   *lc;

	if (PG_ARGISNULL(0))
		PG_RETURN_BOOL(true);
	tag = GetCommandTagEnum(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	commands = collected_commands();
	/* that of the command itself, to which its changes are not visible: on_ddl() is STABLE */
	before = ActiveSnapshotSet() ? GetActiveSnapshot() : NULL;
	/* messages are those of the command, and do not name on_ddl() */
	if (caller_context != NULL)
		error_context_stack = caller_context->previous;

	/* Commands of several transactions end without a snapshot; catalog writes need one. */
	PushActiveSnapshot(GetTransactionSnapshot());
	/* LIKE makes a command of each index that it copies */
	foreach(lc, commands)
	{
		CollectedCommand *command = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		if (command->type == SCT_Simple)
			check_created(command, tag);
		else if (command->type == SCT_AlterTable)
			check_altered(command, before);
	}
	if (commands == NIL && tag == CMDTAG_CREATE_INDEX)
		report_existing();
	PopActiveSnapshot();
	error_context_stack = caller_context;
	PG_RETURN_BOOL(true);
}

/* on_alter_index(): makes the change of an index of a table of Citus (cluster.c). */
Datum
ttl_on_alter_index(PG_FUNCTION_ARGS)
{
	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("this function can only be called by an event trigger")));
	ttl_cluster_apply(((EventTriggerData *) fcinfo->context)->parsetree);
	PG_RETURN_NULL();
}
