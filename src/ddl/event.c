/*-------------------------------------------------------------------------
 *
 * event.c
 *	  The functions of the event triggers: DDL that others run.
 *
 * The event triggers refuse what create_index() refuses, so that the engine
 * meets as few broken TTL indexes as possible.  It does not rely on them: they
 * can be disabled, and what slipped through is skipped with a state.
 *
 * They also see to it that the index of a partition carries the option that governs
 * it, from the command on that attaches it, and that DETACH leaves it there: what
 * governs no longer is not known afterwards, and an option of the partition's own
 * that is shorter would delete its rows.
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
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "commands/defrem.h"
#include "commands/event_trigger.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "tcop/deparse_utility.h"
#include "tcop/utility.h"
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
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_on_ddl);

/* Says what a partition loses of its own option: rows may go that were to stay. */
static void
report_follows(Oid child, const TtlOption *own, const TtlIndex *index)
{
	const TtlOption *option = &index->option;
	StringInfoData changes;

	initStringInfo(&changes);
	if (own->seconds != option->seconds)
		appendStringInfo(&changes, " expire_after_seconds is %d instead of %d.",
						 option->seconds, own->seconds);
	if (own->paused && !option->paused)
		appendStringInfoString(&changes, " It is no longer paused.");
	if (own->detach_partitions && !option->detach_partitions)
		appendStringInfoString(&changes, " Its partitions are no longer detached when they are due.");
	if (OidIsValid(own->archive_to) && own->archive_to != option->archive_to)
		appendStringInfo(&changes, " Its rows are no longer moved to table %s.",
						 ttl_name_qualified(own->archive_to));
	if (changes.len == 0)
		return;
	ereport(NOTICE,
			(errmsg("TTL index \"%s\" of partition \"%s\" follows TTL index \"%s\" now",
					get_rel_name(child), get_rel_name(index->relid),
					get_rel_name(index->governor)),
			 errdetail_internal("%s", changes.data + 1)));
}

/*
 * Writes the option that governs the index of a partition into it, which the command at
 * hand has made or attached: the option has to be right at once.  The command's own locks on the tables keep away
 * whoever changes options, so the index's lock is enough, and waiting for that on
 * the table, which VACUUM or CREATE INDEX CONCURRENTLY may have, is not needed.
 */
static void
follow_now(Oid child, const TtlIndex *index)
{
	TtlOption	own;
	TtlOption	part;

	if (index->governor == child || ttl_children_is_right(child, &index->option, &part))
		return;
	if (ttl_option_read(child, &own) && own.present && own.problem == NULL)
		report_follows(child, &own, index);
	LockRelationOid(child, ShareUpdateExclusiveLock);
	ttl_children_write(child);
}

/*
 * The row of a relation in pg_class as the command found it, by its snapshot; NULL where it was not
 * there.
 */
HeapTuple
ttl_event_class_before(Oid relid, Snapshot before)
{
	Relation	classes = table_open(RelationRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_class_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(classes, ClassOidIndexId, true, before, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		tuple = heap_copytuple(tuple);
	systable_endscan(scan);
	table_close(classes, AccessShareLock);
	return tuple;
}

/* Has this transaction deleted a row of a catalog, or put another one in its place? */
bool
ttl_event_has_deleted(const HeapTupleData *tuple)
{
	return (tuple->t_data->t_infomask & HEAP_XMAX_INVALID) == 0 &&
		TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetUpdateXid(tuple->t_data));
}

/*
 * What this table or index was a partition of before this transaction detached it,
 * or invalid.  pg_inherits still has the row, which is deleted for this transaction.
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

/*
 * Gives the indexes of a partition that was detached, and those below them, the
 * option that governed them until now.
 */
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
			if (ttl_children_is_right(lfirst_oid(lc2), &governing, &part))
				continue;
			LockRelationOid(lfirst_oid(lc2), ShareUpdateExclusiveLock);
			ttl_saved_option_put(lfirst_oid(lc2), &part);
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
 * Can the definition of an index name an option?  A look at one catalog row, as
 * most indexes that DDL makes have nothing to do with TTL.
 */
static bool
has_expressions(Oid indexrelid)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexrelid));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	result = !heap_attisnull(tuple, Anum_pg_index_indpred, NULL) ||
		!heap_attisnull(tuple, Anum_pg_index_indexprs, NULL);
	ReleaseSysCache(tuple);
	return result;
}

/* The same, also by an option of an index above it. */
static bool
may_have_option(Oid indexrelid)
{
	ListCell   *lc;

	if (has_expressions(indexrelid))
		return true;
	if (!get_rel_relispartition(indexrelid))
		return false;
	foreach(lc, get_partition_ancestors(indexrelid))
	{
		if (has_expressions(lfirst_oid(lc)))
			return true;
	}
	return false;
}

/* Does an option govern the index?  What has none is not looked at any further. */
static bool
has_option(Oid indexrelid)
{
	TtlOption	option;
	Oid			parent;
	Oid			governor;

	return may_have_option(indexrelid) &&
		ttl_catalog_governor(indexrelid, &parent, &governor, &option) &&
		option.present;
}

/* What else a command did with an index than making or attaching it. */
typedef enum Change
{
	TAKEN = 1,					/* by a constraint or replica identity:
								 * pg_dump would lose the option */
	REBUILT						/* by ALTER TABLE, for another type */
} Change;

static bool
is_change(const Change *change, Change wanted)
{
	return change != NULL && *change == wanted;
}

/*
 * Raises what is wrong with an index that a command made, attached, or changed (change,
 * or NULL); and sees to it that its option is that of the index above it, and is saved.
 */
static void
check_index(Oid indexrelid, void *change)
{
	TtlIndex	index;
	TtlOption	own;

	if (!ttl_catalog_describe(indexrelid, true, &index) ||
		!index.option.present)
		return;
	if (TTL_STATE_IS_WRONG(index.state) &&
		(is_new(indexrelid) ||
		 (is_change(change, TAKEN) && index.state == TTL_CONSTRAINT_INDEX)))
	{
		if (is_change(change, REBUILT))
			ttl_state_raise_altered(&index);
		ttl_state_raise(&index);
	}
	follow_now(indexrelid, &index);
	if (!ttl_saved_option_needs_repair(indexrelid))
		return;

	/*
	 * coll_mod() may be changing an older one, which then waits for the next
	 * pass
	 */
	if ((is_new(indexrelid) || ttl_saved_option_lock(indexrelid)) &&
		ttl_option_read(indexrelid, &own) && own.present && own.problem == NULL)
		ttl_saved_option_write(indexrelid, &own);
}

/* Checks an index and those of partitions below it. */
static void
check_indexes(Oid indexrelid, void *change)
{
	if (!has_option(indexrelid))
		return;
	if (get_rel_relkind(indexrelid) != RELKIND_PARTITIONED_INDEX)
		check_index(indexrelid, change);
	else
		ttl_catalog_each(ttl_inherit_tree(indexrelid), check_index, change);
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
	ttl_catalog_each(indexes_of(relid), check_indexes, NULL);
}

/* Is the option of a TTL index that of partitions of this table or index, too? */
static bool
governs_partitions(Oid relid)
{
	ListCell   *lc;

	foreach(lc, indexes_of(relid))
	{
		if (has_option(lfirst_oid(lc)))
			return true;
	}
	return false;
}

static void
check_taken_index(Oid indexrelid, void *arg)
{
	Change		change = TAKEN;

	if (has_option(indexrelid))
		check_index(indexrelid, &change);
}

/* A constraint or replica identity of this table takes one of its indexes. */
static void
check_taken(Oid relid)
{
	ttl_catalog_each(ttl_catalog_table_indexes(relid), check_taken_index, NULL);
}

/* An index that is new loses options about partitions that do not suit its table. */
static void
strip_copy(Oid indexrelid, void *arg)
{
	TtlIndex	index;

	if (!has_option(indexrelid) || !is_new(indexrelid) ||
		!ttl_catalog_describe(indexrelid, true, &index) ||
		index.state != TTL_NOT_PARTITIONED_BY_KEY)
		return;
	index.option = ttl_option_of_part(&index.option, index.option.filter);
	ttl_saved_option_put(indexrelid, &index.option);
}

/*
 * A table that LIKE made after a time series is none, unless it is partitioned in
 * the same way.
 */
static void
strip_copies(Oid relid)
{
	ttl_catalog_each(ttl_catalog_table_indexes(relid), strip_copy, NULL);
}

/* The first TTL index of a table, for a message; invalid where it has none. */
static Oid
first_ttl_index(Oid relid)
{
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		if (has_option(lfirst_oid(lc)))
			return lfirst_oid(lc);
	}
	return InvalidOid;
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

/* Tells the same of an index whose key has changed its type, and with it its dates. */
static void
report_rebuilt(Oid indexrelid)
{
	if (get_rel_relispartition(indexrelid) || !has_option(indexrelid))
		return;
	ttl_beside_report(indexrelid);
	report_due(indexrelid, false);
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
		check_indexes(made.objectId, NULL);
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

/* The table or index that this one is a partition of now. */
static Oid
present_parent(Oid relid)
{
	bool		detaching;
	Oid			parent = ttl_inherit_parent(relid, &detaching);

	return detaching ? InvalidOid : parent;
}

/*
 * The partition, a table or an index, that a subcommand has attached or detached;
 * invalid where its parent has no TTL index.  The command tells its name alone,
 * which can have become that of something else with its schema's.
 */
static Oid
find_partition(Oid parent, const AlterTableCmd *cmd)
{
	const RangeVar *name = castNode(PartitionCmd, cmd->def)->name;
	Oid			found;

	if (!governs_partitions(parent))
		return InvalidOid;
	found = RangeVarGetRelid(name, NoLock, true);
	if (!OidIsValid(found) ||
		parent != (cmd->subtype == AT_AttachPartition ?
				   present_parent(found) : former_parent(found)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("partition \"%s\" of \"%s\" was renamed in the meantime",
						name->relname, get_rel_name(parent)),
				 errhint("Run the command again with the new name. DETACH CONCURRENTLY goes on with FINALIZE.")));
	return found;
}

/*
 * Tells what is due at once in a partition by the indexes of the whole, and of TTL indexes
 * of its own beside those.
 */
static void
report_attached(Oid partition)
{
	ListCell   *lc;

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

/* Notes what became of the indexes of a partition that was attached or detached. */
static void
check_partition(Oid parent, const AlterTableCmd *cmd)
{
	Oid			partition = find_partition(parent, cmd);

	if (!OidIsValid(partition))
		return;
	if (cmd->subtype == AT_AttachPartition)
	{
		check_relation(partition);
		if (!ttl_detach_is_running(partition))
			report_attached(partition);
	}
	else if (!ttl_detach_is_running(partition))
	{
		keep_governing(partition);
		notice_table(partition,
					 "The detached partition keeps the TTL of its parent.");
	}
}

/*
 * What an ALTER TABLE or ALTER INDEX has done: only the indexes that it made or
 * changed are looked at, never those of the other partitions.
 */
static void
check_altered(const CollectedCommand *command)
{
	Oid			object = command->d.alterTable.objectId;
	Change		rebuilt = REBUILT;
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
				check_indexes(subcommand->address.objectId, NULL);
				break;
			case AT_ReAddIndex:
				check_indexes(subcommand->address.objectId, &rebuilt);
				report_rebuilt(subcommand->address.objectId);
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
 * What the command at hand has done, from pg_event_trigger_ddl_commands().  That
 * is called without SQL, which would look up names and ask for privileges: whatever
 * somebody revoked, DDL must not fail because of us.
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

	/*
	 * A command that works in several transactions ends without a snapshot,
	 * and whoever writes a catalog wants one.
	 */
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
		ttl_dropped_report(command, before);
		ttl_mismatch_report(command, before);
		MemoryContextSwitchTo(caller);
		MemoryContextReset(own);
	}
	if (commands == NIL && IsA(statement, IndexStmt) && statement->if_not_exists)
		report_existing(statement);
	PopActiveSnapshot();
	MemoryContextDelete(own);
	PG_RETURN_NULL();
}
