/*-------------------------------------------------------------------------
 *
 * event.c
 *	  The functions of the event triggers: DDL that others run.
 *
 * The event triggers refuse what create_index() refuses.  They can be disabled, so the engine
 * does not rely on them: it skips an index that is wrong, with a state.
 *
 * They also write the option that governs a partitioned index into the index of a partition
 * when it is attached.  DETACH leaves it there: which option governed is not known afterwards,
 * and a shorter option of the partition itself would delete its rows.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/ddl/event.c
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
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "commands/event_trigger.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "tcop/deparse_utility.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

#include "compat.h"
#include "ddl/ddl.h"
#include "definition/definition.h"
#include "definition/option.h"
#include "partition/partition.h"
#include "state/state.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_on_ddl);

/*
 * Writes the governing option into a partition's index that the current command made or
 * attached.  The command's locks on the tables exclude changes of options, so a lock on the
 * index is enough.  Reports what the partition loses of an option of its own: rows may be
 * deleted that were to stay.
 */
static void
follow_now(Oid child, const TtlIndex *index)
{
	const TtlOption *option = &index->option;
	StringInfoData changes;
	TtlOption	own;
	TtlOption	part;

	if (index->governor == child || ttl_option_is_inherited(child, option, &part))
		return;
	initStringInfo(&changes);
	if (ttl_option_read(child, &own) && own.present && own.problem == NULL)
	{
		if (own.seconds != option->seconds)
			appendStringInfo(&changes, " expire_after_seconds is %d instead of %d.",
							 option->seconds, own.seconds);
		if (own.paused && !option->paused)
			appendStringInfoString(&changes, " It is no longer paused.");
		if (own.detach_partitions && !option->detach_partitions)
			appendStringInfoString(&changes, " Its partitions are no longer detached when they are due.");
		if (OidIsValid(own.archive_to) && own.archive_to != option->archive_to)
			appendStringInfo(&changes, " Its rows are no longer moved to table %s.",
							 ttl_name_qualified(own.archive_to));
	}
	if (changes.len > 0)
		ereport(NOTICE,
				(errmsg("TTL index \"%s\" of partition \"%s\" follows TTL index \"%s\" now",
						get_rel_name(child), get_rel_name(index->relid),
						get_rel_name(index->governor)),
				 errdetail_internal("%s", changes.data + 1)));
	LockRelationOid(child, ShareUpdateExclusiveLock);
	ttl_saved_option_inherit(child);
}

/* Has this transaction deleted a row of a catalog, or put another one in its place? */
bool
ttl_event_has_deleted(const HeapTupleData *tuple)
{
	return (tuple->t_data->t_infomask & HEAP_XMAX_INVALID) == 0 &&
		TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetUpdateXid(tuple->t_data));
}

/*
 * The former parent of what this transaction detached, or invalid, from the old pg_inherits
 * row.
 */
static Oid
former_parent(Oid relid)
{
	Relation	inherits = table_open(InheritsRelationId, AccessShareLock);
	Oid			parent = InvalidOid;
	CommandId	last = FirstCommandId;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_inherits_inhrelid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(inherits, InheritsRelidSeqnoIndexId, true,
							  SnapshotAny, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		CommandId	deleted;

		if (!ttl_event_has_deleted(tuple))
			continue;
		/* it may have been attached and detached more than once */
		deleted = HeapTupleHeaderGetCmax(tuple->t_data);
		if (deleted < last)
			continue;
		last = deleted;
		parent = ((Form_pg_inherits) GETSTRUCT(tuple))->inhparent;
	}
	systable_endscan(scan);
	table_close(inherits, AccessShareLock);
	return parent;
}

/* Writes the option that governed a detached partition's indexes into them, and those below. */
static void
keep_governing(Oid relid)
{
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		Oid			former = former_parent(lfirst_oid(lc));
		Oid			parent;
		Oid			governor;
		TtlOption	governing;
		TtlOption	part;
		ListCell   *lc2;

		if (!OidIsValid(former) ||
			!ttl_catalog_governor(former, &parent, &governor, &governing))
			continue;
		foreach(lc2, ttl_inherit_tree(lfirst_oid(lc)))
		{
			if (ttl_option_is_inherited(lfirst_oid(lc2), &governing, &part))
				continue;
			LockRelationOid(lfirst_oid(lc2), ShareUpdateExclusiveLock);
			ttl_saved_option_put(lfirst_oid(lc2), &part);
		}
	}
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

/* Does an option govern the index?  What has none is not looked at any further. */
static bool
has_option(Oid indexrelid)
{
	TtlOption	option;
	Oid			parent;
	Oid			governor;

	return ttl_catalog_governor(indexrelid, &parent, &governor, &option) && option.present;
}

/* What a command did with an index. */
typedef enum Change
{
	MADE,						/* or attached it */
	TAKEN,						/* by a constraint or replica identity:
								 * pg_dump would lose the option */
	REBUILT						/* by ALTER TABLE, for another type */
} Change;

/*
 * Raises what is wrong with an index that a command made, attached, or changed; and sees to it
 * that its option is that of the index above it, and is saved.
 */
static void
check_index(Oid indexrelid, void *arg)
{
	Change		change = *(Change *) arg;
	TtlIndex	index;
	TtlOption	own;

	if (!ttl_state_describe(indexrelid, true, &index) ||
		!index.option.present)
		return;
	if (TTL_STATE_IS_WRONG(index.state) &&
		(is_new(indexrelid) ||
		 (change == TAKEN && index.state == TTL_UNSUITABLE_INDEX)))
	{
		if (change == REBUILT)
			ttl_state_raise_altered(&index);
		ttl_state_raise(&index);
	}
	follow_now(indexrelid, &index);
	if (!ttl_saved_option_needs_repair(indexrelid))
		return;

	/* coll_mod() may hold the lock; then the next pass does it */
	if ((is_new(indexrelid) || ttl_saved_option_lock(indexrelid)) &&
		ttl_option_read(indexrelid, &own) && own.present && own.problem == NULL)
		ttl_saved_option_write(indexrelid, &own);
}

/* Checks an index and those of partitions below it. */
static void
check_indexes(Oid indexrelid, Change change)
{
	if (has_option(indexrelid))
		ttl_catalog_each(ttl_inherit_tree(indexrelid), check_index, &change);
}

/* The indexes of a table, or the index that it is. */
static List *
indexes_of(Oid relid)
{
	char		relkind = get_rel_relkind(relid);

	if (relkind == RELKIND_INDEX || relkind == RELKIND_PARTITIONED_INDEX)
		return list_make1_oid(relid);
	return ttl_catalog_table_indexes(relid);
}

static void
check_relation(Oid relid)
{
	ListCell   *lc;

	foreach(lc, indexes_of(relid))
		check_indexes(lfirst_oid(lc), MADE);
}

/* The first TTL index of a table, or the one that it is; invalid where it has none. */
static Oid
first_ttl_index(Oid relid)
{
	ListCell   *lc;

	foreach(lc, indexes_of(relid))
	{
		if (has_option(lfirst_oid(lc)))
			return lfirst_oid(lc);
	}
	return InvalidOid;
}

/* A constraint or replica identity of this table takes one of its indexes. */
static void
check_taken(Oid relid)
{
	Change		change = TAKEN;
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		if (has_option(lfirst_oid(lc)))
			check_index(lfirst_oid(lc), &change);
	}
}

/*
 * A table that LIKE made after a time series is none, unless it is partitioned in the same
 * way: its new indexes lose options about partitions that do not suit it.
 */
static void
strip_copies(Oid relid)
{
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		TtlIndex	index;

		if (!has_option(lfirst_oid(lc)) || !is_new(lfirst_oid(lc)) ||
			!ttl_state_describe(lfirst_oid(lc), true, &index) ||
			index.state != TTL_UNSUITABLE_PARTITIONS)
			continue;
		index.option = ttl_option_of_part(&index.option, index.option.filter);
		ttl_saved_option_put(lfirst_oid(lc), &index.option);
	}
}

/* A table that got a TTL index in passing is worth a line. */
static void
notice_table(Oid relid, const char *how)
{
	Oid			indexrelid = first_ttl_index(relid);

	if (OidIsValid(indexrelid))
		ereport(NOTICE,
				(errmsg("rows of table \"%s\" expire by TTL index \"%s\"",
						get_rel_name(relid), get_rel_name(indexrelid)),
				 errdetail("%s", how),
				 errhint("ttl_index.remove_ttl() makes it a plain index.")));
}

/* Tells what is due at once by an index that a command has made or attached. */
static void
report_due(Oid indexrelid, bool is_new)
{
	if (client_min_messages <= NOTICE)
		ttl_notice_report_due(indexrelid, is_new);
}

/*
 * An option in a CHECK constraint is always true, and no row expires by it: whoever writes
 * it there wants an index.  Looks at the one of this name, or, of a new table, at all.
 */
static void
check_constraints(Oid relid, const char *name)
{
	Relation	rel = table_open(relid, NoLock);
	TupleConstr *constr = rel->rd_att->constr;
	TtlFunctions functions;

	if (!ttl_function_lookup(&functions))
		constr = NULL;
	for (int i = 0; constr != NULL && i < constr->num_check; i++)
	{
		ConstrCheck *check = &constr->check[i];

		if ((name == NULL || strcmp(name, check->ccname) == 0) &&
			ttl_option_is_within(stringToNode(check->ccbin), &functions))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TABLE_DEFINITION),
					 errmsg("check constraint \"%s\" of table \"%s\" has an option of TTL indexes",
							check->ccname, RelationGetRelationName(rel)),
					 errdetail("It is always true, and no row expires by it."),
					 errhint("Create an index on the date with it: CREATE INDEX ON ... (...) WHERE " TTL_SCHEMA ".expire_after_seconds(...).")));
	}
	table_close(rel, NoLock);
}

/*
 * IF NOT EXISTS has found something of the name and made nothing: says what it is, unless it is
 * what the command asked for.
 */
static void
report_existing(const IndexStmt *statement)
{
	Oid			relid = RangeVarGetRelid(statement->relation, NoLock, true);
	Oid			existing = get_relname_relid(statement->idxname, get_rel_namespace(relid));
	const FuncExpr *call = NULL;
	TtlFunctions functions;
	TtlOption	option;
	int32		seconds;
	ListCell   *lc;

	if (!statement->transformed || !OidIsValid(existing) || !ttl_function_lookup(&functions))
		return;
	foreach(lc, make_ands_implicit((Expr *) statement->whereClause))
	{
		if (IsA(lfirst(lc), FuncExpr) &&
			((FuncExpr *) lfirst(lc))->funcid == functions.expire_after_seconds)
			call = lfirst(lc);
	}
	if (call == NULL ||
		!ttl_option_read_seconds(linitial(ttl_function_arguments(call)), &seconds))
		return;
	if (IndexGetRelation(existing, true) != relid ||
		!ttl_option_read(existing, &option) || !option.present)
		ereport(NOTICE,
				(errmsg("relation \"%s\" is no TTL index of table \"%s\"",
						get_rel_name(existing), get_rel_name(relid)),
				 errhint("Rename it, or give another name.")));
	else if (option.problem == NULL && seconds != option.seconds)
		ereport(NOTICE,
				(errmsg("TTL index \"%s\" is left as it is: expire_after_seconds is %d instead of %d",
						get_rel_name(existing), option.seconds, seconds),
				 errhint("ttl_index.coll_mod_index(%s, %d) changes it. ttl_index.create_index(..., or_change => true) creates or changes it.",
						 quote_literal_cstr(ttl_name_qualified(existing)), seconds)));
}

/* What a CREATE TABLE or CREATE INDEX has made, also one inside CREATE SCHEMA, or renamed. */
static void
check_created(const CollectedCommand *command, CommandTag tag)
{
	ObjectAddress made = command->d.simple.address;

	if (made.classId != RelationRelationId || !OidIsValid(made.objectId))
		return;
	if (IsA(command->parsetree, IndexStmt))
	{
		if (!has_option(made.objectId))
			return;
		check_indexes(made.objectId, MADE);
		ttl_beside_report(made.objectId);
		if (tag == CMDTAG_CREATE_INDEX)
			ttl_reach_report_left_out(made.objectId);
		report_due(made.objectId, true);
	}
	else if (IsA(command->parsetree, CreateStmt))
	{
		bool		is_partition = get_rel_relispartition(made.objectId);

		if (!is_partition)
		{
			strip_copies(made.objectId);
			check_constraints(made.objectId, NULL);
		}
		check_relation(made.objectId);
		if (!is_partition && tag == CMDTAG_CREATE_TABLE)
			notice_table(made.objectId, "The index was copied by LIKE.");
	}
}

/*
 * The partition that a subcommand attached or detached; invalid if its parent has no TTL
 * index.  The command has only its name, which can mean something else after a rename of its
 * schema.
 */
static Oid
find_partition(Oid parent, const AlterTableCmd *cmd)
{
	const RangeVar *name = castNode(PartitionCmd, cmd->def)->name;
	bool		pending = false;
	Oid			found;

	if (!OidIsValid(first_ttl_index(parent)))
		return InvalidOid;
	found = RangeVarGetRelid(name, NoLock, true);
	if (!OidIsValid(found) ||
		parent != (cmd->subtype == AT_AttachPartition ?
				   ttl_inherit_parent(found, &pending) : former_parent(found)) || pending)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("partition \"%s\" of \"%s\" was renamed in the meantime",
						name->relname, get_rel_name(parent)),
				 errhint("Run the command again with the new name. DETACH CONCURRENTLY goes on with FINALIZE.")));
	return found;
}

/* Notes what became of the indexes of a partition that was attached or detached. */
static void
check_partition(Oid parent, const AlterTableCmd *cmd)
{
	Oid			partition = find_partition(parent, cmd);
	ListCell   *lc;

	if (!OidIsValid(partition))
		return;
	if (cmd->subtype == AT_AttachPartition)
		check_relation(partition);
	if (ttl_detach_is_running(partition))
		return;
	if (cmd->subtype != AT_AttachPartition)
	{
		keep_governing(partition);
		notice_table(partition, "The detached partition keeps the TTL of its parent.");
		return;
	}
	/* tell what is due in it at once, and of TTL indexes of its own beside those of the whole */
	foreach(lc, indexes_of(partition))
	{
		if (!has_option(lfirst_oid(lc)))
			continue;
		if (get_rel_relispartition(lfirst_oid(lc)))
			report_due(lfirst_oid(lc), false);
		else
			ttl_beside_report(lfirst_oid(lc));
	}
}

/* Checks what an ALTER TABLE or ALTER INDEX made or changed, not the other partitions. */
static void
check_altered(const CollectedCommand *command)
{
	Oid			object = command->d.alterTable.objectId;
	ListCell   *lc;

	foreach(lc, command->d.alterTable.subcmds)
	{
		CollectedATSubcmd *subcommand = lfirst(lc);
		AlterTableCmd *cmd = (AlterTableCmd *) subcommand->parsetree;

		if (!IsA(cmd, AlterTableCmd))
			continue;
		if (ttl_adds_constraint(cmd->subtype) &&
			subcommand->address.classId == ConstraintRelationId)
			check_constraints(object, get_constraint_name(subcommand->address.objectId));
		switch (cmd->subtype)
		{
			case AT_AddIndex:
				check_indexes(subcommand->address.objectId, MADE);
				break;
			case AT_ReAddIndex:
				check_indexes(subcommand->address.objectId, REBUILT);
				/* the dates are of another type, too */
				if (get_rel_relispartition(subcommand->address.objectId) ||
					!has_option(subcommand->address.objectId))
					break;
				ttl_beside_report(subcommand->address.objectId);
				report_due(subcommand->address.objectId, false);
				break;
			case AT_AddIndexConstraint:
			case AT_ReplicaIdentity:
				check_taken(object);
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

/* What an event trigger function is called for. */
EventTriggerData *
ttl_event_data(FunctionCallInfo fcinfo)
{
	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("this function can be called by an event trigger only")));
	return (EventTriggerData *) fcinfo->context;
}

/* on_ddl(): checks the TTL indexes that a command made or changed. */
Datum
ttl_on_ddl(PG_FUNCTION_ARGS)
{
	CommandTag	tag = ttl_event_data(fcinfo)->tag;
	IndexStmt  *statement = (IndexStmt *) ttl_event_data(fcinfo)->parsetree;
	List	   *commands = collected_commands();
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext own = AllocSetContextCreate(caller, "ttl_index command",
											  ALLOCSET_DEFAULT_SIZES);
	/* that of the command itself, to which its changes are not visible */
	Snapshot	before = ActiveSnapshotSet() ? GetActiveSnapshot() : NULL;
	ListCell   *lc;

	/* Commands of several transactions end without a snapshot; catalog writes need one. */
	PushActiveSnapshot(GetTransactionSnapshot());
	/* LIKE makes a command of each index that it copies */
	foreach(lc, commands)
	{
		CollectedCommand *command = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		MemoryContextSwitchTo(own);
		if (command->type == SCT_Simple)
			check_created(command, tag);
		else if (command->type == SCT_AlterTable)
			check_altered(command);
		ttl_altered_report(command, before);
		MemoryContextSwitchTo(caller);
		MemoryContextReset(own);
	}
	if (commands == NIL && IsA(statement, IndexStmt) && statement->if_not_exists)
		report_existing(statement);
	PopActiveSnapshot();
	MemoryContextDelete(own);
	PG_RETURN_NULL();
}
