/*-------------------------------------------------------------------------
 *
 * cascade.c
 *	  Locking the tables that the foreign keys of a batch lead to.
 *
 * The triggers of foreign keys lock other tables, delete and update rows there, and go on
 * from these.  They would wait, while the batch holds its own locks, for DDL that holds such
 * a table and waits for the batch.  So all these tables are locked before the batch (batch.c)
 * takes its first row, without waiting: the batch is the one that gives way.  Which rows there
 * others hold is not known before, so a batch that leads to other tables waits for any lock no
 * longer than ttl_index.bucket_lock_timeout.
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
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "compat.h"
#include "expire/cascade.h"
#include "ttl_index.h"

/* The tables that foreign keys lead to, partitions included, by what is done there. */
typedef struct Cascade
{
	List	   *deleted;		/* first of all the table of the batch itself */
	List	   *updated;
	List	   *read;
} Cascade;

/* The list for a table that the trigger of a foreign key acts on. */
static List **
tables_of_action(Cascade *cascade, Oid function)
{
	switch (function)
	{
		case F_RI_FKEY_CASCADE_DEL:
			return &cascade->deleted;
		case F_RI_FKEY_CASCADE_UPD:
		case F_RI_FKEY_SETNULL_DEL:
		case F_RI_FKEY_SETNULL_UPD:
		case F_RI_FKEY_SETDEFAULT_DEL:
		case F_RI_FKEY_SETDEFAULT_UPD:
			return &cascade->updated;
		default:
			return &cascade->read;
	}
}

/* Has a table AFTER triggers of users, or rules, which lead to those of other tables? */
static bool
has_triggers(Relation rel)
{
	bool		found = rel->rd_rules != NULL;

	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
		found = found || (!rel->trigdesc->triggers[i].tgisinternal &&
						  TRIGGER_FOR_AFTER(rel->trigdesc->triggers[i].tgtype));
	return found;
}

/*
 * Raises an error if AFTER triggers of a table would run with rights that its owner does not
 * have.  Before 18, those of a table that a foreign key changes run as the user who gave the
 * outer command, and a worker gives that command again and again.
 */
static void
check_triggers(Relation rel)
{
	const char *name = RelationGetRelationName(rel);

	if (TTL_TRIGGERS_RUN_AS_QUEUED || !has_triggers(rel) ||
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
 * Locks a table with its indexes, and all partitions below it, without waiting, and adds them
 * to the list.
 */
static bool
lock_tree(Oid relid, LOCKMODE lockmode, List **locked)
{
	ListCell   *lc;

	if (!ttl_lock_now(relid, lockmode))
		return false;
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

/* Locks the tables whose foreign keys act when rows of this one are deleted or updated. */
static bool
lock_referencing(Relation rel, bool deletes, Cascade *cascade)
{
	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		const Trigger *trigger = &rel->trigdesc->triggers[i];
		List	  **tables = tables_of_action(cascade, trigger->tgfoid);

		if ((deletes ? TRIGGER_FOR_DELETE(trigger->tgtype) :
			 TRIGGER_FOR_UPDATE(trigger->tgtype)) &&
			trigger->tgenabled != TRIGGER_DISABLED &&
			RI_FKey_trigger_type(trigger->tgfoid) == RI_TRIGGER_PK &&
			!lock_tree(trigger->tgconstrrelid,
					   tables == &cascade->read ? RowShareLock : RowExclusiveLock, tables))
			return false;
	}
	return true;
}

/*
 * Locks all tables to which the foreign keys on a table lead when rows of it are deleted.
 * Returns false if somebody else has locked one of them.
 */
bool
ttl_cascade_lock(Oid relid)
{
	Cascade		cascade = {.deleted = list_make1_oid(relid)};
	int			ndeleted = 0;
	int			nupdated = 0;

	/* the lists grow by the tables that a cascade goes on to */
	while (ndeleted < list_length(cascade.deleted) || nupdated < list_length(cascade.updated))
	{
		bool		deletes = ndeleted < list_length(cascade.deleted);
		Oid			table = deletes ? list_nth_oid(cascade.deleted, ndeleted++) :
		list_nth_oid(cascade.updated, nupdated++);
		Relation	rel = try_relation_open(table, NoLock);
		bool		locked;

		if (rel == NULL)		/* it was dropped before it was locked */
			continue;
		if (table != relid)
			check_triggers(rel);
		locked = lock_referencing(rel, deletes, &cascade);
		relation_close(rel, NoLock);
		if (!locked)
			return false;
	}
	if (ndeleted > 1 || nupdated > 0 || cascade.read != NIL)
		ttl_lock_limit_waits();
	return true;
}

/* Has somebody else locked a table that the foreign keys of this one, or of a partition, reference? */
bool
ttl_cascade_is_locked(Oid relid)
{
	List	   *referenced = NIL;
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, ttl_inherit_partitions(relid, NoLock))
	{
		Relation	rel;

		CHECK_FOR_INTERRUPTS();
		if (!ConditionalLockRelationOid(lfirst_oid(lc), RowExclusiveLock))
			return true;
		rel = try_relation_open(lfirst_oid(lc), NoLock);
		if (rel == NULL)
			continue;
		foreach(lc2, RelationGetFKeyList(rel))
			referenced = list_append_unique_oid(referenced,
												lfirst_node(ForeignKeyCacheInfo, lc2)->confrelid);
		relation_close(rel, NoLock);
	}
	foreach(lc, referenced)
	{
		foreach(lc2, ttl_inherit_partitions(lfirst_oid(lc), NoLock))
		{
			if (!ConditionalLockRelationOid(lfirst_oid(lc2), RowShareLock))
				return true;
		}
	}
	return false;
}
