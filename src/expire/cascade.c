/*-------------------------------------------------------------------------
 *
 * cascade.c
 *	  Locking the tables that foreign keys lead to from a table.
 *
 * When rows are deleted, triggers of foreign keys read, update and delete rows of the
 * referencing tables, and go on from these.  A batch locks all of these tables before it takes
 * its first row, without waiting: later it would wait, with its own locks held, for DDL that
 * holds such a table and waits for the batch.
 *
 * Rows there that other transactions hold are not known before.  So the batch waits for any
 * lock no longer than ttl_index.bucket_lock_timeout, and then fails with the row that needs it.
 * A longer wait could end in a deadlock with the transaction that holds the row.
 *
 * Core runs the command of a foreign key as the owner of the table that it changes.  But up to
 * 17 it runs AFTER triggers there at the end of the outer command, as whoever gave that.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/cascade.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/pg_class.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "expire/cascade.h"
#include "ttl_index.h"

/* The tables whose rows a batch deletes or updates, partitions included. */
typedef struct Cascade
{
	List	   *deleted;
	List	   *updated;
	bool		leads_on;		/* to any other table */
}			Cascade;

/* Raises an error if AFTER triggers of somebody else on a table would run as this role. */
static void
check_triggers(Relation rel, Oid role)
{
	Oid			owner = rel->rd_rel->relowner;

	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		const Trigger *trigger = &rel->trigdesc->triggers[i];

		if (trigger->tgisinternal || trigger->tgenabled == TRIGGER_DISABLED ||
			!TRIGGER_FOR_AFTER(trigger->tgtype) || has_privs_of_role(owner, role))
			continue;
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("a foreign key leads to table \"%s\" of another owner",
						RelationGetRelationName(rel)),
				 errdetail("Before PostgreSQL 18, its trigger \"%s\" would run with the privileges of role \"%s\".",
						   trigger->tgname, GetUserNameFromId(role, false)),
				 errhint("Let this role own table \"%s\" as well, or grant the role to its owner.",
						 RelationGetRelationName(rel))));
	}
}

/* Locks a table with its indexes and all partitions below it, without waiting, and adds them to the list. */
static bool
lock_tree(Oid relid, LOCKMODE lockmode, List **locked)
{
	ListCell   *lc;

	if (!ttl_lock_now(relid, lockmode))
		return false;
	/* it may just have been dropped */
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
		return true;
	*locked = list_append_unique_oid(*locked, relid);
	if (get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE)
		return true;
	foreach(lc, ttl_inherit_children(relid, false))
	{
		if (!lock_tree(lfirst_oid(lc), lockmode, locked))
			return false;
	}
	return true;
}

/* Locks the table on which the foreign key of a trigger is. */
static bool
lock_referencing_table(const Trigger *trigger, Cascade * cascade)
{
	List	   *read = NIL;

	cascade->leads_on = true;
	switch (trigger->tgfoid)
	{
		case F_RI_FKEY_CASCADE_DEL:
			return lock_tree(trigger->tgconstrrelid, RowExclusiveLock, &cascade->deleted);
		case F_RI_FKEY_CASCADE_UPD:
		case F_RI_FKEY_SETNULL_DEL:
		case F_RI_FKEY_SETNULL_UPD:
		case F_RI_FKEY_SETDEFAULT_DEL:
		case F_RI_FKEY_SETDEFAULT_UPD:
			return lock_tree(trigger->tgconstrrelid, RowExclusiveLock, &cascade->updated);
		default:
			return lock_tree(trigger->tgconstrrelid, RowShareLock, &read);
	}
}

/* Locks the tables whose foreign keys act when rows of this one are deleted or updated. */
static bool
lock_referencing(Relation rel, bool deletes, Cascade * cascade)
{
	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		/* a lock can replace the triggers of the relation cache */
		Trigger		trigger = rel->trigdesc->triggers[i];

		if ((deletes ? TRIGGER_FOR_DELETE(trigger.tgtype) : TRIGGER_FOR_UPDATE(trigger.tgtype)) &&
			trigger.tgenabled != TRIGGER_DISABLED &&
			RI_FKey_trigger_type(trigger.tgfoid) == RI_TRIGGER_PK &&
			!lock_referencing_table(&trigger, cascade))
			return false;
	}
	return true;
}

/*
 * Locks all tables to which the foreign keys on a locked table lead when this role deletes rows
 * of it, and limits waits for rows there.  Returns false if somebody else has locked a table.
 */
bool
ttl_cascade_lock(Oid relid, Oid role)
{
	Cascade		cascade = {.deleted = list_make1_oid(relid)};
	int			deleted = 0;
	int			updated = 0;

	/* the lists grow by the tables that a cascade goes on to */
	while (deleted < list_length(cascade.deleted) || updated < list_length(cascade.updated))
	{
		bool		deletes = deleted < list_length(cascade.deleted);
		Oid			table = deletes ? list_nth_oid(cascade.deleted, deleted++) :
		list_nth_oid(cascade.updated, updated++);
		Relation	rel = relation_open(table, NoLock);
		bool		locked = lock_referencing(rel, deletes, &cascade);

		if (PG_VERSION_NUM < 180000 && table != relid)
			check_triggers(rel, role);
		relation_close(rel, NoLock);
		if (!locked)
			return false;
	}
	if (cascade.leads_on)
		ttl_lock_limit_waits();
	return true;
}
