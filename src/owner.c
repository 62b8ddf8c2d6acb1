/*-------------------------------------------------------------------------
 *
 * owner.c
 *	  The owner of a table, and checks for it.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "definition/definition.h"
#include "ttl_index.h"

/* Returns the owner of a table or index; invalid if it is gone. */
Oid
ttl_owner_of(Oid relid)
{
	FormData_pg_class form;

	(void) ttl_catalog_class(relid, &form);
	return form.relowner;
}

/* Raises an error unless the user has the privileges of the owner.  Returns false if the table is gone. */
static bool
check_owner(Oid relid)
{
	Oid			owner = ttl_owner_of(relid);

	if (OidIsValid(owner) && !has_privs_of_role(GetUserId(), owner))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE, get_rel_name(relid));
	return OidIsValid(owner);
}

/*
 * Locks a table for its owner; false if it is gone.  Checks the owner before, so that others
 * cannot queue for the lock, and again after the wait.
 */
bool
ttl_owner_lock(Oid relid, LOCKMODE lockmode)
{
	if (!check_owner(relid))
		return false;
	LockRelationOid(relid, lockmode);
	if (check_owner(relid))
		return true;
	UnlockRelationOid(relid, lockmode);
	return false;
}

/* Locks and opens a table for its owner, or raises an error. */
Relation
ttl_owner_open(Oid relid, LOCKMODE lockmode)
{
	Relation	rel;
	char		relkind;

	if (!ttl_owner_lock(relid, lockmode))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("could not open relation with OID %u", relid)));
	rel = relation_open(relid, NoLock);
	relkind = rel->rd_rel->relkind;
	if (relkind != RELKIND_RELATION && relkind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table", RelationGetRelationName(rel)),
				 errdetail_relkind_not_supported(relkind),
				 errhint("Name an ordinary or a partitioned table.")));
	return rel;
}

/*
 * Raises an error unless one role owns a table, its ancestors and all its partitions.  Only such
 * a tree is changed, because all code in its definition is then that role's.
 */
void
ttl_owner_check_tree(Oid relid, Oid owner)
{
	ListCell   *lc;

	foreach(lc, ttl_inherit_tree(ttl_inherit_top(relid)))
	{
		Oid			other = ttl_owner_of(lfirst_oid(lc));

		if (OidIsValid(other) && other != owner)
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("table \"%s\" does not belong to role \"%s\"", get_rel_name(lfirst_oid(lc)),
							GetUserNameFromId(owner, false)),
					 errdetail("Partitions are made, attached and detached only if one role owns all tables of the partition tree."),
					 errhint("ALTER TABLE %s OWNER TO %s;", ttl_name_qualified(lfirst_oid(lc)),
							 quote_identifier(GetUserNameFromId(owner, false)))));
	}
}
