/*-------------------------------------------------------------------------
 *
 * archive.c
 *	  Can rows move to the table that archive_to() names?
 *
 * Rows are inserted there by the names of their columns, as the owner of the table that
 * they leave.  Whatever would keep rows from arriving, or change them on the way, is
 * refused by DDL.  Where it comes to be later, nothing is deleted.
 *
 * Catalog rows are read here, and nothing is opened, because a view may only be looking.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/definition/archive.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/catalog.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "compat.h"
#include "definition/definition.h"
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

/* Copies the catalog row of a relation; false where it is gone. */
static bool
read_class(Oid relid, FormData_pg_class *form)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));

	if (!HeapTupleIsValid(tuple))
		return false;
	memcpy(form, GETSTRUCT(tuple), CLASS_TUPLE_SIZE);
	ReleaseSysCache(tuple);
	return true;
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

/* Why this column of the table has no place in the other one, or NULL. */
static char *
column_mismatch(const FormData_pg_attribute *column, Oid target)
{
	FormData_pg_attribute other;
	const char *name = NameStr(column->attname);
	AttrNumber	attnum = get_attnum(target, name);

	if (attnum <= 0 || !read_column(target, attnum, &other))
		return psprintf("it has no column \"%s\" of type %s", name,
						format_type_with_typemod(column->atttypid, column->atttypmod));
	if (other.atttypid != column->atttypid ||
		(other.atttypmod != column->atttypmod && other.atttypmod != -1))
		return psprintf("its column \"%s\" is of type %s instead of %s", name,
						format_type_with_typemod(other.atttypid, other.atttypmod),
						format_type_with_typemod(column->atttypid, column->atttypmod));
	if (other.attgenerated != '\0' && column->attgenerated == '\0')
		return psprintf("its column \"%s\" is generated, so that the value would be lost",
						name);
	if (other.attgenerated == '\0' && column->attgenerated == GENERATED_VIRTUAL)
		return psprintf("its column \"%s\" is not generated, and that of the rows is not stored",
						name);
	return NULL;
}

/* Why the rows of one table have no place in the other, by the columns of both, or NULL. */
static char *
columns_mismatch(Oid relid, int natts, Oid target, int target_natts)
{
	FormData_pg_attribute column;
	char	   *reason = NULL;

	for (AttrNumber i = 1; i <= natts && reason == NULL; i++)
	{
		if (read_column(relid, i, &column))
			reason = column_mismatch(&column, target);
	}
	for (AttrNumber i = 1; i <= target_natts && reason == NULL; i++)
	{
		if (read_column(target, i, &column) && column.attnotnull &&
			!column.atthasdef && column.attidentity == '\0' &&
			get_attnum(relid, NameStr(column.attname)) <= 0)
			reason = psprintf("its column \"%s\" takes no NULL, has no default, and is no column of the rows",
							  NameStr(column.attname));
	}
	return reason;
}

/* Does a table archive to another one, by one or more stages?  Too many count as well. */
static bool
leads_to(Oid relid, Oid wanted, List **seen)
{
	ListCell   *lc;

	*seen = lappend_oid(*seen, relid);
	if (list_length(*seen) > MAX_STAGES)
		return true;
	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		TtlOption	option;

		if (!ttl_option_read(lfirst_oid(lc), &option) || !OidIsValid(option.archive_to))
			continue;
		if (option.archive_to == wanted ||
			(!list_member_oid(*seen, option.archive_to) &&
			 leads_to(option.archive_to, wanted, seen)))
			return true;
	}
	return false;
}

/* Why the tables cannot be those of one archive, by how they belong together, or NULL. */
static char *
relationship(const TtlIndex *index, Oid target)
{
	Oid			tables[2] = {index->relid, InvalidOid};

	if (OidIsValid(index->governor))
		tables[1] = IndexGetRelation(index->governor, true);
	for (int i = 0; i < lengthof(tables); i++)
	{
		List	   *seen = NIL;

		if (!OidIsValid(tables[i]) || (i > 0 && tables[i] == tables[0]))
			continue;
		if (tables[i] == target)
			return pstrdup("it is the table that the rows are in");
		if (ttl_inherit_is_below(target, tables[i]) ||
			ttl_inherit_is_below(tables[i], target))
			return pstrdup("one of the two is a partition of the other, or inherits from it");
		if (leads_to(target, tables[i], &seen))
			return pstrdup("it leads back to the table that the rows are in, or over too many tables");
	}
	return NULL;
}

/* Is a table, or a partition of it, emptied by a crash? */
static bool
is_unlogged(Oid target)
{
	FormData_pg_class form;
	ListCell   *lc;

	foreach(lc, ttl_inherit_tree(target))
	{
		if (read_class(lfirst_oid(lc), &form) &&
			form.relpersistence == RELPERSISTENCE_UNLOGGED)
			return true;
	}
	return false;
}

/* Why nothing can be archived to a relation of this kind, or NULL. */
static char *
kind_mismatch(Oid target, const FormData_pg_class *form, bool source_is_logged)
{
	if (form->relkind != RELKIND_RELATION &&
		form->relkind != RELKIND_PARTITIONED_TABLE &&
		form->relkind != RELKIND_FOREIGN_TABLE)
		return pstrdup("it is not a table");
	if (IsCatalogRelationOid(target) ||
		form->relnamespace == get_namespace_oid(TTL_SCHEMA, true))
		return pstrdup("it is a system table");
	if (form->relpersistence == RELPERSISTENCE_TEMP)
		return pstrdup("it is a temporary table");
	if (source_is_logged && is_unlogged(target))
		return pstrdup("it is unlogged, so that a crash would lose the rows");
	if (ttl_catalog_has_rule(target, CMD_INSERT, false))
		return pstrdup("it has a rule ON INSERT");
	return NULL;
}

static char *
find_reason(const TtlIndex *index, Oid target)
{
	FormData_pg_class table;
	FormData_pg_class other;
	char	   *reason;

	/* where the table is gone, something else is said */
	if (!read_class(index->relid, &table))
		return NULL;
	if (!read_class(target, &other))
		return pstrdup("it does not exist");
	/* what is written to a shell itself is lost */
	if (ttl_citus_kind(index->relid) != TTL_CITUS_NONE ||
		ttl_citus_kind(target) != TTL_CITUS_NONE)
		return pstrdup("one of the two is a table of Citus");
	reason = kind_mismatch(target, &other,
						   table.relpersistence == RELPERSISTENCE_PERMANENT);
	if (reason == NULL)
		reason = relationship(index, target);
	if (reason == NULL)
		reason = columns_mismatch(index->relid, table.relnatts, target, other.relnatts);
	return reason;
}

static TtlState
state_by_reason(TtlIndex *index, const char *reason)
{
	if (reason == NULL)
		return TTL_ACTIVE;
	index->detail = psprintf("rows cannot be moved to table %s: %s",
							 ttl_archive_name(index->option.archive_to), reason);
	return TTL_ARCHIVE_MISMATCH;
}

/*
 * The state of an index by where its option moves rows to.  Its table, its governor if
 * there is one, and its option are filled in; fills in the detail.
 */
TtlState
ttl_archive_state(TtlIndex *index)
{
	Oid			target = index->option.archive_to;

	if (!index->option.present || !OidIsValid(target))
		return TTL_ACTIVE;
	return state_by_reason(index, find_reason(index, target));
}

/*
 * What the owner of the rows lacks, or NULL.  It is asked for rights on a table only while
 * that is locked, as it may be dropped meanwhile; where the lock is not free, the batch
 * will not get it either.
 */
static char *
lacking_privilege(Oid target, Oid owner)
{
	char	   *reason = NULL;

	if (!ConditionalLockRelationOid(target, AccessShareLock))
		return NULL;
	if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(target)) &&
		(pg_class_aclcheck(target, owner, ACL_INSERT) != ACLCHECK_OK ||
		 object_aclcheck(NamespaceRelationId, get_rel_namespace(target), owner,
						 ACL_USAGE) != ACLCHECK_OK))
		reason = psprintf("the owner of the rows, \"%s\", lacks INSERT on it or USAGE on its schema",
						  GetUserNameFromId(owner, true));
	UnlockRelationOid(target, AccessShareLock);
	return reason;
}

/*
 * Who of the owners of the archive and its partitions lacks the privileges of the owner of
 * the rows, or invalid.
 *
 * Triggers and all other code that they attach runs as the owner of the rows, as for any
 * INSERT.  A monitor that inserts all the time would make that a way to rights, so they must
 * be there before.
 */
static Oid
find_stranger(Oid target, Oid owner)
{
	FormData_pg_class form;
	ListCell   *lc;

	foreach(lc, ttl_inherit_tree(target))
	{
		if (read_class(lfirst_oid(lc), &form) &&
			!has_privs_of_role(form.relowner, owner))
			return form.relowner;
	}
	return InvalidOid;
}

/*
 * The state of an index by who has which rights.  It is one of the moment, and no reason to
 * refuse DDL: a dump grants last.  The owner is filled in, too.
 */
TtlState
ttl_archive_rights(TtlIndex *index)
{
	Oid			target = index->option.archive_to;
	Oid			stranger;
	char	   *reason;

	if (!index->option.present || !OidIsValid(target))
		return TTL_ACTIVE;
	reason = lacking_privilege(target, index->owner);
	stranger = find_stranger(target, index->owner);
	if (reason == NULL && OidIsValid(stranger))
		reason = psprintf("its owner, \"%s\", has not the privileges of the owner of the rows, \"%s\", with which its triggers would run",
						  GetUserNameFromId(stranger, true),
						  GetUserNameFromId(index->owner, true));
	return state_by_reason(index, reason);
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
	index->state = ttl_archive_state_now(index);
	if (index->state != TTL_ACTIVE)
		ttl_state_raise_argument(index);
}
