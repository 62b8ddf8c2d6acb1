/*-------------------------------------------------------------------------
 *
 * owner.c
 *	  Who owns a table, and who may declare something on it.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/owner.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "ttl_index.h"

/* Reads the owner and the name of a table; invalid if the table is gone. */
static Oid
read_owner(Oid relid, NameData *name)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	*name = ((Form_pg_class) GETSTRUCT(tuple))->relname;
	ReleaseSysCache(tuple);
	return owner;
}

/* Returns the owner of a table; a partition can have another one than the whole. */
Oid
ttl_owner_of(Oid relid)
{
	NameData	name;
	Oid			owner = read_owner(relid, &name);

	if (!OidIsValid(owner))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("could not open relation with OID %u", relid)));
	return owner;
}

/* Raises an error if somebody else owns the table.  Returns false if it is gone. */
bool
ttl_owner_check(Oid relid)
{
	NameData	name;
	Oid			owner = read_owner(relid, &name);

	if (!OidIsValid(owner))
		return false;
	if (!has_privs_of_role(GetUserId(), owner))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE, NameStr(name));
	return true;
}

/*
 * Locks a table on which its owner declares something.  Nobody else may queue for the
 * lock, so the owner is checked before.  During the wait for the lock the table can get
 * another owner, or be dropped, so the owner is checked again after it.  Returns false
 * if the table is gone.
 */
bool
ttl_owner_lock(Oid relid, LOCKMODE lockmode)
{
	if (!ttl_owner_check(relid))
		return false;
	LockRelationOid(relid, lockmode);
	if (ttl_owner_check(relid))
		return true;
	UnlockRelationOid(relid, lockmode);
	return false;
}

/* What to name in place of a relation whose rows cannot expire. */
static const char *
table_hint(char relkind)
{
	switch (relkind)
	{
		case RELKIND_VIEW:
		case RELKIND_MATVIEW:
			return "It is a view: name the table that it reads.";
		case RELKIND_FOREIGN_TABLE:
			return "It is a foreign table: let the rows expire on the server that has them.";
		case RELKIND_INDEX:
		case RELKIND_PARTITIONED_INDEX:
			return "It is an index: name its table.";
		default:
			return "Rows of ordinary and partitioned tables can expire.";
	}
}

/* Does the same for a table that has to be there, and opens it. */
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
				 errhint("%s", table_hint(relkind))));
	return rel;
}

/*
 * Raises an error unless one role owns a table, what that is a partition of, and all of its
 * partitions.  Only such a tree is extended, attached and detached: its partition keys, defaults
 * and constraints are then that role's own.
 */
void
ttl_owner_check_tree(Oid relid, Oid owner)
{
	ListCell   *lc;

	foreach(lc, ttl_inherit_tree(ttl_inherit_top(relid)))
	{
		NameData	name;
		Oid			other = read_owner(lfirst_oid(lc), &name);

		if (OidIsValid(other) && other != owner)
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("table \"%s\" does not belong to role \"%s\"", NameStr(name),
							GetUserNameFromId(owner, false)),
					 errdetail("Partitions are made, attached and detached only where one role owns the table, all its partitions, and what it is a partition of."),
					 errhint("ALTER TABLE %s OWNER TO %s;", ttl_name_qualified(lfirst_oid(lc)),
							 quote_identifier(GetUserNameFromId(owner, false)))));
	}
}
