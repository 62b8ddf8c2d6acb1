/*-------------------------------------------------------------------------
 *
 * archive.c
 *	  Can rows move to the table that archive_to() names?
 *
 * Rows are inserted by column name, as the owner of the table that they leave.  DDL refuses
 * what would make the insertion fail or change rows.  If it arises later, nothing is deleted.
 *
 * This file reads catalog rows and opens no relation, because views use it.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/state/archive.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/catalog.h"
#include "catalog/namespace.h"
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
#include "definition/definition.h"
#include "definition/key.h"
#include "state/state.h"
#include "ttl_index.h"

/* An archive may lead on to so many tables, each of which archives to others. */
#define MAX_STAGES 16

/* PostgreSQL 18 has generated columns that are not stored. */
#define GENERATED_VIRTUAL 'v'

/* The name of a table, for a message; its OID where it is gone. */
char *
ttl_archive_name(Oid target)
{
	char	   *name = get_rel_name(target);
	char	   *schema = get_namespace_name(get_rel_namespace(target));

	if (name == NULL || schema == NULL)
		return psprintf("%u", target);
	return psprintf("\"%s.%s\"", schema, name);
}

/* Copies the catalog row of a column that is not dropped. */
static bool
read_column(Oid relid, AttrNumber attnum, FormData_pg_attribute *form)
{
	HeapTuple	tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(relid),
										Int16GetDatum(attnum));

	if (!HeapTupleIsValid(tuple))
		return false;
	memcpy(form, GETSTRUCT(tuple), ATTRIBUTE_FIXED_PART_SIZE);
	ReleaseSysCache(tuple);
	return !form->attisdropped;
}

/* A command that changes an archive. */
static char *
alter_command(Oid target, const char *change)
{
	char	   *name = ttl_name_find(target);

	return psprintf("ALTER TABLE %s %s.", name ? name : "...", change);
}

/* The type of a column, which somebody may be dropping just now. */
static char *
type_of(const FormData_pg_attribute *column)
{
	return format_type_extended(column->atttypid, column->atttypmod,
								FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_ALLOW_INVALID);
}

/* The same with a collation that is not that of the type, for a command. */
char *
ttl_archive_column_type(const FormData_pg_attribute *column)
{
	if (!OidIsValid(column->attcollation) ||
		column->attcollation == get_typcollation(column->atttypid) ||
		get_collation_name(column->attcollation) == NULL)
		return type_of(column);
	return psprintf("%s COLLATE %s", type_of(column),
					generate_collation_name(column->attcollation));
}

/* Sets the reason why rows cannot be moved, and the hint or NULL. */
static TtlState
mismatch(TtlIndex *index, char *reason, char *mend)
{
	return ttl_state_set(index, TTL_ARCHIVE_MISMATCH, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
						 psprintf("rows cannot be moved to table %s: %s",
								  ttl_archive_name(index->option.archive_to), reason),
						 psprintf("%sAnother table can be named with ttl_index.coll_mod_index(..., archive_to => ...).",
								  mend ? psprintf("%s ", mend) : ""));
}

/* The state by a column of the table that the archive has not. */
static TtlState
column_missing(TtlIndex *index, const FormData_pg_attribute *column)
{
	Oid			target = index->option.archive_to;
	const char *name = NameStr(column->attname);

	return mismatch(index, psprintf("it has no column \"%s\" of type %s", name, type_of(column)),
					alter_command(ttl_inherit_top(target),
								  psprintf("ADD COLUMN %s %s", quote_identifier(name),
										   ttl_archive_column_type(column))));
}

/* The state by whether this column of the table has a place in the archive. */
static TtlState
column_state(TtlIndex *index, const FormData_pg_attribute *column)
{
	FormData_pg_attribute other;
	Oid			target = index->option.archive_to;
	const char *name = NameStr(column->attname);
	AttrNumber	attnum = get_attnum(target, name);

	if (attnum <= 0 || !read_column(target, attnum, &other))
		return column_missing(index, column);
	if (other.atttypid != column->atttypid ||
		(other.atttypmod != column->atttypmod && other.atttypmod != -1))
		return mismatch(index, psprintf("its column \"%s\" is of type %s instead of %s", name,
										type_of(&other), type_of(column)),
						alter_command(ttl_inherit_top(target),
									  psprintf("ALTER COLUMN %s TYPE %s",
											   quote_identifier(name),
											   ttl_archive_column_type(column))));
	if (other.attgenerated != '\0' && column->attgenerated == '\0')
		return mismatch(index, psprintf("its column \"%s\" is generated, so that the value would be lost",
										name),
						other.attgenerated == GENERATED_VIRTUAL ?
						pstrdup("Rename it there, and add an ordinary column of its name.") :
						alter_command(ttl_inherit_top(target),
									  psprintf("ALTER COLUMN %s DROP EXPRESSION",
											   quote_identifier(name))));
	if (other.attgenerated == '\0' && column->attgenerated == GENERATED_VIRTUAL)
		return mismatch(index, psprintf("its column \"%s\" is not generated, and that of the rows is not stored",
										name),
						pstrdup("Rename it there, and add one of its name that the same expression generates."));
	return TTL_ACTIVE;
}

/* Is the archive partitioned by the same key, so that partitions can be attached there? */
bool
ttl_archive_is_attachable(const TtlIndex *index)
{
	Oid			target = index->option.archive_to;
	AttrNumber	attnum;
	AttrNumber	other;
	Node	   *expression;
	char	   *column;

	if (!OidIsValid(target) || get_rel_relispartition(target) ||
		!ttl_key_read(index->indexrelid, &attnum, &expression))
		return false;
	column = get_attname(index->relid, attnum, true);
	other = column ? get_attnum(target, column) : InvalidAttrNumber;
	return other > 0 &&
		ttl_bounds_possible(target, other, index->keytype);
}

/* Can a partition be attached with this column?  ATTACH requires more than INSERT does. */
static TtlState
attached_column_state(TtlIndex *index, const FormData_pg_attribute *column)
{
	static const char *const alone = "so that no partition can be attached";
	FormData_pg_attribute other;
	Oid			target = index->option.archive_to;
	const char *name = NameStr(column->attname);

	if (!read_column(target, get_attnum(target, name), &other))
		return TTL_ACTIVE;
	if (other.atttypmod != column->atttypmod || other.attcollation != column->attcollation)
		return mismatch(index, psprintf("its column \"%s\" is of type %s instead of %s, %s", name,
										ttl_archive_column_type(&other), ttl_archive_column_type(column),
										alone),
						alter_command(target, psprintf("ALTER COLUMN %s TYPE %s",
													   quote_identifier(name),
													   ttl_archive_column_type(column))));
	if (other.attnotnull && !column->attnotnull)
		return mismatch(index, psprintf("its column \"%s\" takes no NULL, and that of the rows does, %s",
										name, alone),
						alter_command(ttl_inherit_top(index->relid),
									  psprintf("ALTER COLUMN %s SET NOT NULL",
											   quote_identifier(name))));
	return TTL_ACTIVE;
}

/* The state by the columns of both tables. */
static TtlState
columns_state(TtlIndex *index, int natts, int target_natts)
{
	FormData_pg_attribute column;
	Oid			target = index->option.archive_to;
	bool		attached = index->option.drop_partitions && ttl_archive_is_attachable(index);
	TtlState	state = TTL_ACTIVE;

	for (AttrNumber i = 1; i <= natts && state == TTL_ACTIVE; i++)
	{
		if (!read_column(index->relid, i, &column))
			continue;
		state = column_state(index, &column);
		if (state == TTL_ACTIVE && attached)
			state = attached_column_state(index, &column);
	}
	for (AttrNumber i = 1; i <= target_natts && state == TTL_ACTIVE; i++)
	{
		if (read_column(target, i, &column) && column.attnotnull &&
			!column.atthasdef && column.attidentity == '\0' &&
			get_attnum(index->relid, NameStr(column.attname)) <= 0)
			state = mismatch(index, psprintf("its column \"%s\" takes no NULL, has no default, and is no column of the rows",
											 NameStr(column.attname)),
							 pstrdup("Give the column a default."));
	}
	return state;
}

/* Where an index moves rows to, or invalid, by the option of its governor. */
Oid
ttl_archive_of(Oid indexrelid, Oid *governor)
{
	TtlOption	option;

	if (!ttl_catalog_governor(indexrelid, governor, &option))
		return InvalidOid;
	return option.archive_to;
}

/* A table and all that it is a partition of, or inherits from. */
static List *
self_and_above(Oid relid)
{
	List	   *tables = list_make1_oid(relid);
	ListCell   *lc;

	/* the list grows while it is read */
	foreach(lc, tables)
	{
		CHECK_FOR_INTERRUPTS();
		tables = list_concat_unique_oid(tables, ttl_inherit_parents(lfirst_oid(lc), NULL));
	}
	return tables;
}

/*
 * The state by how the tables belong together: rows must not come back.  Follows the archive of
 * the archive, and so on, for at most MAX_STAGES tables.
 */
static TtlState
relationship_state(TtlIndex *index)
{
	static char *const elsewhere = "Let one of these tables archive to another one, or make its index a plain one with ttl_index.remove_ttl().";
	Oid			target = index->option.archive_to;
	List	   *own = self_and_above(index->relid);
	Oid			whole = ttl_inherit_top(index->relid);
	List	   *stages = list_make1_oid(target);
	ListCell   *lc;
	ListCell   *lc2;

	if (target == index->relid)
		return mismatch(index, "it is the table that the rows are in", NULL);
	/* the list grows while it is read */
	foreach(lc, stages)
	{
		Oid			stage = lfirst_oid(lc);
		List	   *above = self_and_above(stage);

		if (list_member_oid(own, stage) || list_member_oid(above, index->relid) ||
			list_member_oid(above, whole))
			return stage == target ?
				mismatch(index, "one of the two is a partition of the other, or inherits from it", NULL) :
				mismatch(index, psprintf("its rows move on to table %s, and would come back",
										 ttl_archive_name(stage)), elsewhere);
		foreach(lc2, ttl_catalog_table_indexes(stage))
		{
			Oid			governor;
			Oid			next = ttl_archive_of(lfirst_oid(lc2), &governor);

			if (OidIsValid(next))
				stages = list_append_unique_oid(stages, next);
		}
		if (list_length(stages) > MAX_STAGES)
			return mismatch(index, "its rows move on over too many tables", elsewhere);
	}
	return TTL_ACTIVE;
}

/* The state by what kind of a relation it is. */
static TtlState
kind_state(TtlIndex *index, const FormData_pg_class *form)
{
	Oid			target = index->option.archive_to;

	if (form->relkind != RELKIND_RELATION &&
		form->relkind != RELKIND_PARTITIONED_TABLE &&
		form->relkind != RELKIND_FOREIGN_TABLE)
		return mismatch(index, "it is not a table",
						form->relkind == RELKIND_VIEW ? "Name a table that the view reads." :
						"Name an ordinary, a partitioned or a foreign table.");
	if (IsCatalogRelationOid(target) ||
		form->relnamespace == get_namespace_oid(TTL_SCHEMA, true))
		return mismatch(index, "it is a system table", NULL);
	if (form->relpersistence == RELPERSISTENCE_TEMP)
		return mismatch(index, "it is a temporary table",
						"Name a table that stays when the session ends.");
	if (ttl_state_has_rule(target, CMD_INSERT, false))
		return mismatch(index, "it has a rule ON INSERT",
						"Replace the rule with a trigger, which can do the same.");
	return TTL_ACTIVE;
}

/* The state by the target of archive_to.  The caller fills in table, governor and option. */
TtlState
ttl_archive_state(TtlIndex *index)
{
	FormData_pg_class table;
	FormData_pg_class other;
	Oid			target = index->option.archive_to;
	TtlState	state;

	/* if the table is gone, another state says so */
	if (!index->option.present || !OidIsValid(target) || !ttl_catalog_class(index->relid, &table))
		return TTL_ACTIVE;
	if (!ttl_catalog_class(target, &other))
		return mismatch(index, "it does not exist", NULL);
	/* what is written to a shell itself is lost */
	if (ttl_citus_kind(index->relid) != TTL_CITUS_NONE)
		return mismatch(index, "those of a table of Citus can only be deleted",
						"Leave archive_to out.");
	if (ttl_citus_kind(target) != TTL_CITUS_NONE)
		return mismatch(index, "it is a table of Citus", "Name one that is not.");
	state = kind_state(index, &other);
	if (state == TTL_ACTIVE && other.relpersistence == RELPERSISTENCE_UNLOGGED &&
		table.relpersistence == RELPERSISTENCE_PERMANENT)
		state = mismatch(index, "it is unlogged, so that a crash would lose the rows",
						 alter_command(target, "SET LOGGED"));
	if (state == TTL_ACTIVE)
		state = relationship_state(index);
	return state == TTL_ACTIVE ? columns_state(index, table.relnatts, other.relnatts) : state;
}

/* The state by the rights of the owners, who are there, while the archive is locked. */
static TtlState
rights_state(TtlIndex *index)
{
	Oid			target = index->option.archive_to;
	char	   *owner = GetUserNameFromId(index->owner, false);
	ListCell   *lc;

	foreach(lc, ttl_inherit_tree(target))
	{
		Oid			other = ttl_owner_of(lfirst_oid(lc));

		if (OidIsValid(other) && !has_privs_of_role(other, index->owner))
			return mismatch(index, psprintf("role \"%s\", which owns table %s, lacks the privileges of the owner of the rows, \"%s\"",
											GetUserNameFromId(other, false),
											ttl_archive_name(lfirst_oid(lc)), owner),
							psprintf("GRANT %s TO %s, or %s", quote_identifier(owner),
									 quote_identifier(GetUserNameFromId(other, false)),
									 alter_command(lfirst_oid(lc), psprintf("OWNER TO %s", quote_identifier(owner)))));
	}
	if (pg_class_aclcheck(target, index->owner, ACL_INSERT) != ACLCHECK_OK ||
		object_aclcheck(NamespaceRelationId, get_rel_namespace(target), index->owner,
						ACL_USAGE) != ACLCHECK_OK)
		return mismatch(index, psprintf("the owner of the rows, \"%s\", lacks INSERT on it or USAGE on its schema",
										owner),
						psprintf("GRANT INSERT ON %s TO %s; GRANT USAGE ON SCHEMA %s TO %s.",
								 ttl_name_qualified(target), quote_identifier(owner),
								 quote_identifier(get_namespace_name(get_rel_namespace(target))),
								 quote_identifier(owner)));
	return TTL_ACTIVE;
}

/*
 * Rows are moved as their owner.  So the owners of the archive and of its partitions, whose
 * triggers and defaults act there, need the privileges of that role.  DDL does not check it,
 * because a dump grants last.  Privileges can be asked for only of a locked table, which may
 * otherwise be dropped concurrently.  If the lock is not free, a batch does not get it either.
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

/* The state by all that keeps rows from being moved; fills in the detail. */
TtlState
ttl_archive_state_now(TtlIndex *index)
{
	TtlState	state = ttl_archive_state(index);

	return state == TTL_ACTIVE ? ttl_archive_rights(index) : state;
}

/* Raises what keeps rows from being moved, for the argument of a function. */
void
ttl_archive_check(TtlIndex *index)
{
	if (ttl_archive_state_now(index) != TTL_ACTIVE)
		ttl_state_raise(index);
}
