/*-------------------------------------------------------------------------
 *
 * archive.c
 *	  Whether rows can be moved to the table that archive_to() names.
 *
 * Rows are inserted by column name, as the owner of the table that they leave.  DDL refuses
 * what would lose or change rows or their values.  If it arises later, nothing is deleted.
 * Everything else is left to the INSERT, whose error becomes that of the index.
 *
 * This file reads catalog rows and opens no relation, because views use it.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"
#include "utils/syscache.h"

#include "compat.h"
#include "state/state.h"
#include "ttl_index.h"

/* The rows of an archive can move on to other archives, at most this many. */
#define MAX_STAGES 16

/* PostgreSQL 18 has generated columns that are not stored. */
#define GENERATED_VIRTUAL 'v'

/* The name of a table, for a message; its OID if it is gone. */
char *
ttl_archive_name(Oid target)
{
	char	   *name = get_rel_name(target);
	char	   *schema = get_namespace_name(get_rel_namespace(target));

	if (name == NULL || schema == NULL)
		return psprintf("%u", target);
	return psprintf("\"%s.%s\"", schema, name);
}

/* The type of a column, with a collation that is not that of the type, for a command. */
char *
ttl_archive_column_type(const FormData_pg_attribute *column)
{
	/* the type may be dropped concurrently */
	char	   *type = format_type_extended(column->atttypid, column->atttypmod,
											FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_ALLOW_INVALID);

	if (!OidIsValid(column->attcollation) ||
		column->attcollation == get_typcollation(column->atttypid) ||
		get_collation_name(column->attcollation) == NULL)
		return type;
	return psprintf("%s COLLATE %s", type, generate_collation_name(column->attcollation));
}

/* Sets the reason why rows cannot be moved, and the hint or NULL. */
static TtlState
mismatch(TtlIndex *index, char *reason, char *hint)
{
	return ttl_state_set(index, TTL_ARCHIVE_MISMATCH, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
						 psprintf("rows cannot be moved to table %s: %s",
								  ttl_archive_name(index->option.archive_to), reason),
						 hint ? hint : "Name another table with ttl_index.coll_mod_index(..., archive_to => ...).");
}

/* A command that changes a table, for a hint. */
static char *
alter_command(Oid relid, const char *change)
{
	char	   *name = ttl_name_find(relid);

	return psprintf("ALTER TABLE %s %s;", name ? name : "...", change);
}

/* The state by whether a column of the table has one in the archive that keeps its values. */
static TtlState
column_state(TtlIndex *index, const FormData_pg_attribute *column)
{
	Oid			target = index->option.archive_to;
	const char *name = NameStr(column->attname);
	const char *quoted = quote_identifier(name);
	char	   *type = ttl_archive_column_type(column);
	HeapTuple	tuple = SearchSysCacheCopyAttName(target, name);
	Form_pg_attribute other = HeapTupleIsValid(tuple) ? (Form_pg_attribute) GETSTRUCT(tuple) : NULL;

	if (other == NULL || other->attnum <= 0)
		return mismatch(index, psprintf("it has no column \"%s\" of type %s", name, type),
						alter_command(ttl_inherit_top(target),
									  psprintf("ADD COLUMN %s %s", quoted, type)));
	/* no hint to change the type, which rewrites the archive and can change its values */
	if (other->atttypid != column->atttypid ||
		(other->atttypmod != column->atttypmod && other->atttypmod != -1))
		return mismatch(index, psprintf("its column \"%s\" is of type %s instead of %s", name,
										ttl_archive_column_type(other), type), NULL);

	/* a generated column takes no value, and one that is not stored gives none */
	if (other->attgenerated != '\0' ? column->attgenerated == '\0' :
		column->attgenerated == GENERATED_VIRTUAL)
		return mismatch(index, psprintf("column \"%s\" is generated in one of the two tables only", name),
						"Rename it there, and add a column that is defined as in the other table.");
	return TTL_ACTIVE;
}

/*
 * The state by whether rows would come back to their table.  Follows the archive of the
 * archive, and so on, for at most MAX_STAGES tables.
 */
static TtlState
cycle_state(TtlIndex *index)
{
	Oid			whole = ttl_inherit_top(index->relid);
	List	   *stages = list_make1_oid(index->option.archive_to);
	ListCell   *lc;
	ListCell   *lc2;

	/* the list grows while it is read */
	foreach(lc, stages)
	{
		if (ttl_inherit_top(lfirst_oid(lc)) == whole || list_length(stages) > MAX_STAGES)
			return mismatch(index, "from there they would come back",
							"Name a table whose rows do not return to this one.");
		foreach(lc2, ttl_catalog_table_indexes(lfirst_oid(lc)))
		{
			TtlOption	option;
			Oid			governor;

			if (ttl_catalog_governor(lfirst_oid(lc2), &governor, &option) &&
				OidIsValid(option.archive_to))
				stages = list_append_unique_oid(stages, option.archive_to);
		}
	}
	return TTL_ACTIVE;
}

/* The state by the target of archive_to.  The caller fills in relid, owner and option. */
TtlState
ttl_archive_state(TtlIndex *index)
{
	FormData_pg_class table;
	FormData_pg_class other;
	Oid			target = index->option.archive_to;
	TtlState	state;

	/* a table that is gone has another state */
	if (!index->option.present || !OidIsValid(target) || !ttl_catalog_class(index->relid, &table))
		return TTL_ACTIVE;
	if (!ttl_catalog_class(target, &other))
		return mismatch(index, "it does not exist", NULL);

	/* rows that are inserted into the shell of a Citus table itself are lost */
	if (ttl_citus_kind(index->relid) != TTL_CITUS_NONE)
		return mismatch(index, "those of a table of Citus can only be deleted",
						"Leave archive_to out.");
	if (ttl_citus_kind(target) != TTL_CITUS_NONE)
		return mismatch(index, "it is a table of Citus", "Name a table that is not one of Citus.");
	if (other.relkind != RELKIND_RELATION && other.relkind != RELKIND_PARTITIONED_TABLE &&
		other.relkind != RELKIND_FOREIGN_TABLE)
		return mismatch(index, "it is not a table",
						"Name an ordinary, a partitioned or a foreign table.");
	if (other.relpersistence == RELPERSISTENCE_TEMP)
		return mismatch(index, "it is a temporary table", NULL);
	if (other.relpersistence == RELPERSISTENCE_UNLOGGED &&
		table.relpersistence == RELPERSISTENCE_PERMANENT)
		return mismatch(index, "it is unlogged, so that a crash would lose the rows",
						alter_command(target, "SET LOGGED"));
	if (ttl_state_has_rule(target, CMD_INSERT, false))
		return mismatch(index, "it has a rule ON INSERT",
						"Replace the rule with a trigger, which can do the same.");
	state = cycle_state(index);
	for (AttrNumber i = 1; i <= table.relnatts && state == TTL_ACTIVE; i++)
	{
		HeapTuple	column = SearchSysCacheCopyAttNum(index->relid, i);

		if (HeapTupleIsValid(column))
			state = column_state(index, (Form_pg_attribute) GETSTRUCT(column));
	}
	return state;
}

/* The state by the privileges of the owners.  The archive is locked, and the owner exists. */
static TtlState
rights_state(TtlIndex *index)
{
	Oid			target = index->option.archive_to;
	Oid			schema = get_rel_namespace(target);
	char	   *owner = GetUserNameFromId(index->owner, false);
	const char *quoted = quote_identifier(owner);
	ListCell   *lc;

	foreach(lc, ttl_inherit_tree(target))
	{
		Oid			table = lfirst_oid(lc);
		Oid			other = ttl_owner_of(table);

		if (OidIsValid(other) && !has_privs_of_role(other, index->owner))
			return mismatch(index, psprintf("role \"%s\", which owns table %s, lacks the privileges of the owner of the rows, \"%s\"",
											GetUserNameFromId(other, false), ttl_archive_name(table), owner),
							alter_command(table, psprintf("OWNER TO %s", quoted)));
	}
	if (pg_class_aclcheck(target, index->owner, ACL_INSERT) != ACLCHECK_OK ||
		object_aclcheck(NamespaceRelationId, schema, index->owner, ACL_USAGE) != ACLCHECK_OK)
		return mismatch(index, psprintf("the owner of the rows, \"%s\", lacks INSERT on it or USAGE on its schema",
										owner),
						psprintf("GRANT INSERT ON %s TO %s; GRANT USAGE ON SCHEMA %s TO %s;",
								 ttl_name_qualified(target), quoted,
								 quote_identifier(get_namespace_name(schema)), quoted));
	return TTL_ACTIVE;
}

/*
 * Rows are moved as their owner.  So the owners of the archive and of its partitions, whose
 * triggers and defaults run there, need the privileges of that role.  DDL does not check it,
 * because a dump grants last.  Privileges can be read only of a locked table, because it may be
 * dropped concurrently.  If the lock is not free, a batch does not get it either.
 */
TtlState
ttl_archive_rights(TtlIndex *index)
{
	Oid			target = index->option.archive_to;
	TtlState	state = TTL_ACTIVE;

	if (!index->option.present || !OidIsValid(target) ||
		!ConditionalLockRelationOid(target, AccessShareLock))
		return TTL_ACTIVE;
	if (OidIsValid(ttl_owner_of(target)) &&
		SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(index->owner)))
		state = rights_state(index);
	UnlockRelationOid(target, AccessShareLock);
	return state;
}

/* The state by all that keeps rows from being moved; sets the reason. */
TtlState
ttl_archive_state_now(TtlIndex *index)
{
	TtlState	state = ttl_archive_state(index);

	return state == TTL_ACTIVE ? ttl_archive_rights(index) : state;
}
