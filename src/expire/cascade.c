/*-------------------------------------------------------------------------
 *
 * cascade.c
 *	  Where a batch goes on to: tables that foreign keys lead to.
 *
 * The triggers of foreign keys lock other tables, delete and update rows there, and go on
 * from these.  Four things are seen to for a batch (batch.c) to which that happens.
 *
 * All these tables are locked before the batch takes its first row, without waiting.  The
 * triggers would wait, while the batch holds its own locks, for DDL that holds such a
 * table and waits for the batch; and the batch is the one that has to give way.
 *
 * Which rows there others hold is not known before.  So each command of a foreign key waits
 * for them no longer than ttl_index.bucket_lock_timeout, and then fails with the row that
 * needs it.  Whoever holds one, and comes to wait for a row of the batch, would be ended by the
 * deadlock detector otherwise, or wait until the batch is canceled.  BEFORE triggers run
 * within such a command; all others are the user's own, and may wait.
 *
 * Nobody gets rights by a partition.  What a foreign key reads or changes it does as the owner
 * of the whole table, and code of those who own a partition would run as that one, in triggers
 * or when the query is planned.  So they need the privileges of that owner.
 *
 * Nobody gets rights by a cascade.  A foreign key acts as the owner of the table that it changes.
 * But up to 17, what it leaves to the end of the command, AFTER triggers first of all, is run
 * as whoever gave the command.  And on all releases the code of that owner's triggers would
 * leave settings to that of whoever gave the command, such as a search_path, and what is cached
 * and compiled by it.  So no foreign key may change a table of somebody who has not the
 * privileges of that role.  The tables that are locked are
 * looked at before the batch deletes anything.  But a rule or a trigger can change further
 * tables, with foreign keys on them, and so can what runs elsewhere as an owner, such as an event
 * trigger where a partition goes.  So each command that a foreign key gives while the extension acts
 * as an owner is looked at as well, before it is planned, and where the executor starts it, as a plan
 * can be of before.  To look at which triggers
 * there are would not be enough: any code that runs meanwhile can create one.  What a foreign
 * key only reads may be anybody's, as long as that runs none of their code (foreign_read.c).
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/cascade.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/plannodes.h"
#include "parser/parsetree.h"
#include "storage/lmgr.h"
#include "tcop/dest.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "compat.h"
#include "definition/definition.h"
#include "expire/cascade.h"
#include "expire/expire.h"
#include "leftover.h"
#include "ttl_index.h"

/* What is done to the tables that foreign keys lead to. */
typedef enum CascadeAction
{
	CASCADE_READS,
	CASCADE_UPDATES,
	CASCADE_DELETES
}			CascadeAction;

#define CASCADE_ACTIONS (CASCADE_DELETES + 1)

/* All of them, partitions included, by what is done there. */
typedef struct Cascade
{
	List	   *tables[CASCADE_ACTIONS];
	Oid			role;			/* who gives the command */
}			Cascade;

/* the command of a foreign key that was started last, if none has run since; it can be gone */
static const QueryDesc *of_foreign_key = NULL;

static ExecutorStart_hook_type next_start = NULL;
static ExecutorRun_hook_type next_run = NULL;

/* Raises an error if code of the owner of a table would run as a role where a foreign key leads. */
static void
check_rights(Oid relid, Oid role)
{
	if (has_privs_of_role(ttl_owner_of(relid), role))
		return;
	ttl_leftover_become_nobody();
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("a foreign key leads to table \"%s\" of another owner",
					get_rel_name(relid)),
			 errdetail("Triggers and other code there would run with the privileges of role \"%s\", or beside code that does.",
					   GetUserNameFromId(role, false)),
			 errhint("Let this role own table \"%s\" as well, or grant the role to its owner.",
					 get_rel_name(relid))));
}

static CascadeAction
action_of(const Trigger *trigger)
{
	switch (trigger->tgfoid)
	{
		case F_RI_FKEY_CASCADE_DEL:
			return CASCADE_DELETES;
		case F_RI_FKEY_CASCADE_UPD:
		case F_RI_FKEY_SETNULL_DEL:
		case F_RI_FKEY_SETNULL_UPD:
		case F_RI_FKEY_SETDEFAULT_DEL:
		case F_RI_FKEY_SETDEFAULT_UPD:
			return CASCADE_UPDATES;
		default:
			return CASCADE_READS;
	}
}

/* Has a table triggers, as one with foreign keys has that are enforced? */
static bool
has_triggers(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	bool		result = false;

	if (HeapTupleIsValid(tuple))
	{
		result = ((Form_pg_class) GETSTRUCT(tuple))->relhastriggers;
		ReleaseSysCache(tuple);
	}
	return result;
}

/* The tables that foreign keys of a table reference. */
static List *
referenced_by(Oid relid)
{
	List	   *referenced = NIL;
	Relation	constraints;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (!has_triggers(relid))
		return NIL;
	constraints = table_open(ConstraintRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_constraint_conrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(constraints, ConstraintRelidTypidNameIndexId, true, NULL, 1,
							  &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_constraint form = (Form_pg_constraint) GETSTRUCT(tuple);

		if (form->contype == CONSTRAINT_FOREIGN && TTL_IS_ENFORCED(form))
			referenced = list_append_unique_oid(referenced, form->confrelid);
	}
	systable_endscan(scan);
	table_close(constraints, AccessShareLock);
	return referenced;
}

/*
 * Raises an error if somebody gets rights where the foreign keys of a table are checked, as
 * rows are written to it.  They read the referenced tables.  Returns true.
 */
bool
ttl_cascade_lock_written(Oid relid)
{
	ListCell   *lc;
	ListCell   *lc2;
	ListCell   *lc3;

	foreach(lc, ttl_inherit_partitions(relid, NoLock))
	{
		CHECK_FOR_INTERRUPTS();
		foreach(lc2, referenced_by(lfirst_oid(lc)))
		{
			foreach(lc3, ttl_inherit_partitions(lfirst_oid(lc2), NoLock))
				check_rights(lfirst_oid(lc3), ttl_owner_of(lfirst_oid(lc2)));
		}
	}
	return true;
}

/* Has somebody else locked a table that is read where the foreign keys of this one are checked? */
bool
ttl_cascade_is_locked(Oid relid)
{
	ListCell   *lc;
	ListCell   *lc2;
	ListCell   *lc3;

	foreach(lc, ttl_inherit_partitions(relid, NoLock))
	{
		CHECK_FOR_INTERRUPTS();
		foreach(lc2, referenced_by(lfirst_oid(lc)))
		{
			foreach(lc3, ttl_inherit_partitions(lfirst_oid(lc2), NoLock))
			{
				if (!ConditionalLockRelationOid(lfirst_oid(lc3), RowShareLock))
					return true;
			}
		}
	}
	return false;
}

/*
 * Locks a table, or a partition of it, with its indexes and all below it, without waiting, and
 * adds them to the list.
 */
static bool
lock_tree(Oid relid, Oid whole, LOCKMODE lockmode, List **locked)
{
	ListCell   *lc;

	if (!ttl_lock_now(relid, lockmode))
		return false;
	/* it may just have been dropped */
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
		return true;
	check_rights(relid, ttl_owner_of(whole));
	*locked = list_append_unique_oid(*locked, relid);
	if (get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE)
		return true;
	foreach(lc, ttl_inherit_children(relid, false))
	{
		if (!lock_tree(lfirst_oid(lc), whole, lockmode, locked))
			return false;
	}
	return true;
}

/*
 * Locks the table on which a foreign key is, and all below it, and looks at whose code can run
 * there.
 */
static bool
lock_referencing_table(const Trigger *trigger, Cascade * cascade)
{
	Oid			relid = trigger->tgconstrrelid;
	CascadeAction action = action_of(trigger);

	/* a lock can replace the trigger in the cache */
	if (!lock_tree(relid, relid, action == CASCADE_READS ? RowShareLock : RowExclusiveLock,
				   &cascade->tables[action]))
		return false;
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
		return true;

	/*
	 * an update that sets a column to NULL can write others, too: by a move
	 * to another partition, a generated column, a trigger
	 */
	return action != CASCADE_UPDATES || ttl_cascade_lock_written(relid);
}

/* Locks the tables whose foreign keys act when rows of this one are deleted or updated. */
static bool
lock_referencing(Oid relid, bool deletes, Cascade * cascade)
{
	Relation	rel = try_relation_open(relid, NoLock);
	bool		locked = true;

	for (int i = 0; rel != NULL && rel->trigdesc != NULL && locked &&
		 i < rel->trigdesc->numtriggers; i++)
	{
		const Trigger *trigger = &rel->trigdesc->triggers[i];

		if ((deletes ? TRIGGER_FOR_DELETE(trigger->tgtype) :
			 TRIGGER_FOR_UPDATE(trigger->tgtype)) &&
			trigger->tgenabled != TRIGGER_DISABLED &&
			RI_FKey_trigger_type(trigger->tgfoid) == RI_TRIGGER_PK)
			locked = lock_referencing_table(trigger, cascade);
	}
	if (rel != NULL)
		relation_close(rel, NoLock);
	return locked;
}

/*
 * Locks all tables to which the foreign keys on a table lead when rows of it are deleted
 * by a role.  Returns false if somebody else has locked one of them.
 */
bool
ttl_cascade_lock(Oid relid, Oid role)
{
	Cascade		cascade = {.role = role};
	List	  **tables = cascade.tables;
	int			deleted = 0;
	int			updated = 0;

	tables[CASCADE_DELETES] = list_make1_oid(relid);
	/* the lists grow by the tables that a cascade goes on to */
	while (deleted < list_length(tables[CASCADE_DELETES]) ||
		   updated < list_length(tables[CASCADE_UPDATES]))
	{
		bool		deletes = deleted < list_length(tables[CASCADE_DELETES]);
		Oid			table = deletes ?
		list_nth_oid(tables[CASCADE_DELETES], deleted++) :
		list_nth_oid(tables[CASCADE_UPDATES], updated++);

		if (table != relid)
			check_rights(table, role);
		if (!lock_referencing(table, deletes, &cascade))
			return false;
	}
	return true;
}

/*
 * Checks a table to which a foreign key leads from one that code of the batch has changed, as those
 * are checked to which the foreign keys of the table itself lead (lock_referencing_table).
 */
static void
check_table(Oid relid, bool changes)
{
	const Oid	role = changes ? ttl_leftover_commander() : InvalidOid;
	const TtlCheck check = changes ? TTL_CHECK_CHANGE : TTL_CHECK_READ;
	uint64		since;
	ListCell   *lc;

	if (ttl_checked_find(relid, role, check, &since))
		return;
	if (changes)
		check_rights(relid, role);
	/* a query of the whole is planned with all of them, and an update can move rows to any */
	foreach(lc, ttl_inherit_partitions(relid, NoLock))
		check_rights(lfirst_oid(lc), ttl_owner_of(relid));
	ttl_checked_add(relid, role, check, since);
}

/* Checks a table that a foreign key reads as its owner, who runs the code of the batch as well. */
void
ttl_cascade_check_read(Oid relid)
{
	check_table(relid, false);
}

/*
 * Checks a command of a foreign key before it is planned, which can call code in the definition of
 * the table, which the current user owns, and of what a rule changes in its place.
 */
void
ttl_cascade_check_change(const Query *query)
{
	ListCell   *lc;

	foreach(lc, query->rtable)
	{
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (rte->rtekind == RTE_RELATION && ttl_owner_of(rte->relid) == GetUserId())
			check_table(rte->relid, true);
	}
}

/* Checks the tables that a part of a command of a foreign key changes, if it does. */
static void
check_plan(const PlannedStmt *stmt, Plan * plan)
{
	const ModifyTable *change = (ModifyTable *) plan;
	ListCell   *lc;

	if (plan == NULL || !IsA(plan, ModifyTable))
		return;
	/* the partitions are checked with the whole, whose locks a batch may have taken already */
	if (change->rootRelation > 0)
	{
		check_table(rt_fetch(change->rootRelation, stmt->rtable)->relid, true);
		return;
	}
	foreach(lc, change->resultRelations)
		check_table(rt_fetch(lfirst_int(lc), stmt->rtable)->relid, true);
}

/* Checks all of it: a rule can change tables in a WITH as well. */
static void
check_command(const PlannedStmt *stmt)
{
	ListCell   *lc;

	check_plan(stmt, stmt->planTree);
	foreach(lc, stmt->subplans)
		check_plan(stmt, lfirst(lc));
}

/*
 * Only foreign keys ask to leave the AFTER triggers of their commands to an outer one, and so
 * do functions in SQL for a query that is read row by row.  Core says the same of every SELECT,
 * but later.  It runs the command of a foreign key as soon as it has started it.
 */
static void
start_command(QueryDesc *query, int eflags)
{
	bool		is_of_foreign_key = OidIsValid(ttl_leftover_commander()) &&
		(eflags & EXEC_FLAG_SKIP_TRIGGERS) != 0 &&
		query->dest->mydest != DestSQLFunction;

	if (is_of_foreign_key)
		check_command(query->plannedstmt);
	if (next_start)
		next_start(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
	of_foreign_key = is_of_foreign_key ? query : NULL;
}

static void
run_next(QueryDesc *query, ScanDirection direction, uint64 count ttl_and_once(bool once))
{
	if (next_run)
		next_run(query, direction, count ttl_and_once(once));
	else
		standard_ExecutorRun(query, direction, count ttl_and_once(once));
}

static void
run_command(QueryDesc *query, ScanDirection direction, uint64 count ttl_and_once(bool once))
{
	bool		is_of_foreign_key = query == of_foreign_key;
	char	   *lock_timeout;

	of_foreign_key = NULL;
	if (!is_of_foreign_key)
	{
		run_next(query, direction, count ttl_and_once(once));
		return;
	}
	/* no level of settings: what triggers have set there stays */
	lock_timeout = pstrdup(GetConfigOption("lock_timeout", false, false));
	ttl_lock_limit_waits();
	run_next(query, direction, count ttl_and_once(once));
	ttl_settings_set("lock_timeout", lock_timeout);
}

void
ttl_cascade_init(void)
{
	next_start = ExecutorStart_hook;
	ExecutorStart_hook = start_command;
	next_run = ExecutorRun_hook;
	ExecutorRun_hook = run_command;
}
