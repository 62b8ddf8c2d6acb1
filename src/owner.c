/*-------------------------------------------------------------------------
 *
 * owner.c
 *	  Becoming the owner of a table.
 *
 * Whatever a user wrote (index expressions, predicates, triggers, the functions that
 * they call) runs between ttl_owner_become() and ttl_owner_restore(): as the table's
 * owner, in a security-restricted operation, with a search_path to which nobody can add
 * anything, and with a level of settings of its own, so that a SET in that code ends with
 * it.  An error needs no clean-up: the end of the (sub)transaction restores the user and
 * the settings, and so does ttl_leftover_call() for who catches one without that.
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
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "compat.h"
#include "ttl_index.h"

/* Policies ask whether the user is a superuser; a worker is one, and who calls run_pass() can be. */
static void
show_superuser(Oid owner)
{
	if (!superuser_arg(owner))
		(void) set_config_option("is_superuser", "off", PGC_INTERNAL, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
}

static void
begin(Oid owner, TtlUser *saved)
{
	ttl_leftover_begin(owner, saved->userid, saved->sec_context, saved->guc_level, true,
					   &saved->leftover);
}

void
ttl_owner_become(Oid owner, TtlUser *saved)
{
	GetUserIdAndSecContext(&saved->userid, &saved->sec_context);

	/* Row security does not apply to expiry, even where it is forced. */
	SetUserIdAndSecContext(owner,
						   saved->sec_context | SECURITY_RESTRICTED_OPERATION |
						   SECURITY_NOFORCE_RLS);
	saved->guc_level = ttl_settings_begin_safe();
	show_superuser(owner);
	begin(owner, saved);
	ttl_leftover_note_uncomputed();
	ttl_leftover_forget_plans(saved->sec_context);
}

void
ttl_owner_restore(const TtlUser *saved)
{
	ttl_leftover_close();
	AtEOXact_GUC(false, saved->guc_level);
	SetUserIdAndSecContext(saved->userid, saved->sec_context);
	ttl_leftover_end(&saved->leftover);
}

/* Writes values so that they are read again as the same ones, until ttl_owner_restore(). */
void
ttl_owner_write_exactly(void)
{
	static const char *const settings[][2] = {
		{"datestyle", "ISO, YMD"}, {"intervalstyle", "postgres"}, {"extra_float_digits", "1"},
		{"array_nulls", "on"}, {"xmloption", "content"}
	};

	for (int i = 0; i < lengthof(settings); i++)
		ttl_settings_set(settings[i][0], settings[i][1]);
}

/*
 * The search_path of the current user, for an owner to find names by: "$user", and the schemas that
 * the current user may not use, would not be the same.  It ends before one that is closed to
 * the owner, so that what is behind it is written with its schema.
 */
static char *
search_path_of_user(Oid owner)
{
	StringInfoData path;
	List	   *names;
	ListCell   *lc;

	initStringInfo(&path);
	/* it was checked when it was set */
	(void) SplitIdentifierString(pstrdup(namespace_search_path), ',', &names);
	foreach(lc, names)
	{
		const char *name = lfirst(lc);
		Oid			schema;

		if (strcmp(name, "$user") == 0)
			name = GetUserNameFromId(GetUserId(), false);
		schema = get_namespace_oid(name, true);
		if (strcmp(name, "pg_temp") != 0 &&
			(!OidIsValid(schema) ||
			 object_aclcheck(NamespaceRelationId, schema, GetUserId(), ACL_USAGE) != ACLCHECK_OK))
			continue;
		if (OidIsValid(schema) &&
			object_aclcheck(NamespaceRelationId, schema, owner, ACL_USAGE) != ACLCHECK_OK)
			break;
		appendStringInfo(&path, "%s%s", path.len > 0 ? ", " : "", quote_identifier(name));
	}
	return path.data;
}

/*
 * Becomes an owner who finds names as the current user does, to parse a text that this user
 * wrote.  Constants of domains are computed, whose CHECK constraints call functions.
 */
static void
parse_as(Oid owner, TtlUser *saved)
{
	char	   *path = search_path_of_user(owner);

	GetUserIdAndSecContext(&saved->userid, &saved->sec_context);
	SetUserIdAndSecContext(owner,
						   saved->sec_context | SECURITY_RESTRICTED_OPERATION);
	saved->guc_level = NewGUCNestLevel();
	ttl_settings_set("search_path", path);
	begin(owner, saved);
	show_superuser(owner);
	ttl_leftover_note_uncomputed();
}

/* Something to do as an owner, and how to become that. */
typedef struct OwnerWork
{
	Oid			owner;
	void		(*become) (Oid owner, TtlUser *saved);
	void		(*work) (void *arg);
	void	   *arg;
} OwnerWork;

static void
owner_work(void *arg)
{
	OwnerWork  *work = arg;
	TtlUser		saved;

	work->become(work->owner, &saved);
	work->work(work->arg);
	ttl_owner_restore(&saved);
}

/*
 * Does something as an owner, in a subtransaction of its own: with that end what core keeps of the
 * code of this owner until then, and what the code has left open.
 */
void
ttl_owner_do(Oid owner, void (*work) (void *), void *arg)
{
	OwnerWork	as = {owner, ttl_owner_become, work, arg};

	ttl_error_enclose(owner_work, &as);
}

/* Looks at something as an owner: nothing is kept but what is put into memory. */
void
ttl_owner_look(Oid owner, void (*work) (void *), void *arg)
{
	OwnerWork	as = {owner, ttl_owner_become, work, arg};

	ttl_error_isolate(owner_work, &as);
}

/* The same for a text of the caller, who finds names by his own search_path. */
void
ttl_owner_parse(Oid owner, void (*work) (void *), void *arg)
{
	OwnerWork	as = {owner, parse_as, work, arg};

	ttl_error_isolate(owner_work, &as);
}

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
