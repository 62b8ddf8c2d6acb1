/*-------------------------------------------------------------------------
 *
 * cascade.c
 *	  Locking the tables that the foreign keys of a batch lead to.
 *
 * Foreign key triggers lock other tables, delete and update rows there, and continue from
 * these.  They could deadlock with DDL that holds such a table and waits for the batch.  So
 * all these tables are locked before the first row is, without waiting.  Which of their rows
 * others hold is not known then, so such a batch limits each wait for a lock to
 * ttl_index.bucket_lock_timeout.
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
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "compat.h"
#include "expire/expirer.h"
#include "ttl_index.h"

/* The tables whose own foreign keys were followed, by what is done to their rows. */
typedef struct Cascade
{
	List	   *deleted;
	List	   *updated;
	bool		found;			/* there are others than that of the batch */
} Cascade;

/*
 * Before 18, AFTER triggers of a table that a foreign key changes run as the user of the outer
 * command.  Raises an error if that would give them more rights than the owner has.
 */
static void
check_triggers(Relation rel)
{
	const char *name = RelationGetRelationName(rel);
	bool		found = rel->rd_rules != NULL;

	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
		found = found || (!rel->trigdesc->triggers[i].tgisinternal &&
						  TRIGGER_FOR_AFTER(rel->trigdesc->triggers[i].tgtype));
	if (TTL_TRIGGERS_RUN_AS_QUEUED || !found ||
		has_privs_of_role(rel->rd_rel->relowner, GetUserId()))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("a foreign key leads to table \"%s\" of another owner", name),
			 errdetail("Triggers there would run with the privileges of role \"%s\".",
					   GetUserNameFromId(GetUserId(), false)),
			 errhint("Let this role own table \"%s\" as well, or grant the role to its owner.",
					 name)));
}

static bool lock_table(Cascade *cascade, Oid relid, List **changed);

/* Locks the tables whose foreign keys act when rows of this one are deleted or updated. */
static bool
lock_referencing(Cascade *cascade, Relation rel, bool deletes)
{
	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		const Trigger *trigger = &rel->trigdesc->triggers[i];
		List	  **changed;

		if (trigger->tgenabled == TRIGGER_DISABLED ||
			RI_FKey_trigger_type(trigger->tgfoid) != RI_TRIGGER_PK ||
			!(deletes ? TRIGGER_FOR_DELETE(trigger->tgtype) : TRIGGER_FOR_UPDATE(trigger->tgtype)))
			continue;
		switch (trigger->tgfoid)
		{
			case F_RI_FKEY_CASCADE_DEL:
				changed = &cascade->deleted;
				break;
			case F_RI_FKEY_CASCADE_UPD:
			case F_RI_FKEY_SETNULL_DEL:
			case F_RI_FKEY_SETNULL_UPD:
			case F_RI_FKEY_SETDEFAULT_DEL:
			case F_RI_FKEY_SETDEFAULT_UPD:
				changed = &cascade->updated;
				break;
			default:
				changed = NULL;
		}
		if (!lock_table(cascade, trigger->tgconstrrelid, changed))
			return false;
	}
	return true;
}

/*
 * Locks a table that the trigger of a foreign key acts on, with its indexes and partitions, and
 * what the foreign keys on it lead to if rows of it are changed.
 */
static bool
lock_table(Cascade *cascade, Oid relid, List **changed)
{
	Relation	rel;
	bool		locked = true;
	ListCell   *lc;

	check_stack_depth();
	cascade->found = true;
	if (changed != NULL && list_member_oid(*changed, relid))
		return true;
	if (!ttl_lock_now(relid, changed ? RowExclusiveLock : RowShareLock))
		return false;
	foreach(lc, get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE ? ttl_inherit_children(relid, false) : NIL)
	{
		if (!lock_table(cascade, lfirst_oid(lc), changed))
			return false;
	}
	if (changed == NULL)
		return true;
	*changed = lappend_oid(*changed, relid);
	rel = try_relation_open(relid, NoLock);
	if (rel != NULL)			/* else it was dropped before it was locked */
	{
		check_triggers(rel);
		locked = lock_referencing(cascade, rel, changed == &cascade->deleted);
		relation_close(rel, NoLock);
	}
	return locked;
}

/* Locks all tables that foreign keys lead to; false if somebody else has locked one. */
bool
ttl_cascade_lock(Relation rel)
{
	Cascade		cascade = {.deleted = list_make1_oid(RelationGetRelid(rel))};

	if (!lock_referencing(&cascade, rel, true))
		return false;
	if (cascade.found)
		ttl_lock_limit_waits();
	return true;
}
