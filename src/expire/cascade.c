/*-------------------------------------------------------------------------
 *
 * cascade.c
 *	  Locking the tables that the foreign keys of a batch lead to.
 *
 * Foreign key triggers lock other tables, delete and update rows there, and continue from
 * these.  They could deadlock with DDL that holds such a table and waits for the batch.  So
 * all these tables are locked before the first row is, without waiting.  Which of their rows
 * others have locked is not known then, so such a batch limits each wait for a lock to
 * ttl_index.bucket_lock_timeout.
 *
 * Copyright (c) 2026, ttl_index contributors
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
	int			visits;			/* of tables, also repeated ones */
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

/*
 * Locks a table with its indexes and partitions.  If its rows are changed, does the same with
 * the tables whose foreign keys act then.  False if somebody else has locked one.
 */
static bool
lock_table(Cascade *cascade, Oid relid, List **changed)
{
	Relation	rel;
	List	   *children = NIL;
	bool		locked = true;
	ListCell   *lc;

	check_stack_depth();
	cascade->visits++;
	if (changed != NULL && list_member_oid(*changed, relid))
		return true;
	if (!ttl_lock_now(relid, changed ? RowExclusiveLock : RowShareLock))
		return false;
	if (get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE)
		children = ttl_inherit_children(relid);
	foreach(lc, children)
	{
		if (!lock_table(cascade, lfirst_oid(lc), changed))
			return false;
	}
	if (changed == NULL)
		return true;
	*changed = lappend_oid(*changed, relid);
	rel = try_relation_open(relid, NoLock);
	if (rel == NULL)			/* it was dropped before it was locked */
		return true;

	check_triggers(rel);
	for (int i = 0; locked && rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		const Trigger *trigger = &rel->trigdesc->triggers[i];
		bool		fires = changed == &cascade->deleted ?
			TRIGGER_FOR_DELETE(trigger->tgtype) : TRIGGER_FOR_UPDATE(trigger->tgtype);
		List	  **changed_there;

		if (!fires || trigger->tgenabled == TRIGGER_DISABLED ||
			RI_FKey_trigger_type(trigger->tgfoid) != RI_TRIGGER_PK)
			continue;
		switch (trigger->tgfoid)
		{
			case F_RI_FKEY_CASCADE_DEL:
				changed_there = &cascade->deleted;
				break;
			case F_RI_FKEY_CASCADE_UPD:
			case F_RI_FKEY_SETNULL_DEL:
			case F_RI_FKEY_SETNULL_UPD:
			case F_RI_FKEY_SETDEFAULT_DEL:
			case F_RI_FKEY_SETDEFAULT_UPD:
				changed_there = &cascade->updated;
				break;
			default:
				changed_there = NULL;
		}
		locked = lock_table(cascade, trigger->tgconstrrelid, changed_there);
	}
	relation_close(rel, NoLock);
	return locked;
}

/* Locks all tables that foreign keys lead to; false if somebody else has locked one. */
bool
ttl_cascade_lock(Relation rel)
{
	Cascade		cascade = {0};

	if (!lock_table(&cascade, RelationGetRelid(rel), &cascade.deleted))
		return false;
	if (cascade.visits > 1)
		ttl_lock_limit_waits();
	return true;
}
