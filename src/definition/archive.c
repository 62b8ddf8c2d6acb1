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
#include "foreign/fdwapi.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"
#include "utils/syscache.h"

#include "compat.h"
#include "definition/archive.h"
#include "definition/definition.h"
#include "definition/key.h"
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
static char *
type_and_collation(const FormData_pg_attribute *column)
{
	if (!OidIsValid(column->attcollation) ||
		column->attcollation == get_typcollation(column->atttypid) ||
		get_collation_name(column->attcollation) == NULL)
		return type_of(column);
	return psprintf("%s COLLATE %s", type_of(column),
					generate_collation_name(column->attcollation));
}

/*
 * Notes why rows cannot be moved, and what ends that: a command or another sentence, or
 * NULL where only another table does.
 */
static TtlState
mismatch(TtlIndex *index, char *reason, char *mend)
{
	index->detail = psprintf("rows cannot be moved to table %s: %s",
							 ttl_archive_name(index->option.archive_to), reason);
	index->mend = mend;
	return TTL_ARCHIVE_MISMATCH;
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
										   type_and_collation(column))));
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
											   type_and_collation(column))));
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
		ttl_partition_key_possible(target, other, index->keytype, false) == TTL_ACTIVE;
}

/*
 * The state by whether a partition with this column, which the archive has, can be attached
 * there: core asks for more than a row does that is inserted.
 */
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
										type_and_collation(&other), type_and_collation(column),
										alone),
						alter_command(target, psprintf("ALTER COLUMN %s TYPE %s",
													   quote_identifier(name),
													   type_and_collation(column))));
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

/* What is known of an archive with all that is below it. */
typedef struct Archive
{
	Oid			target;
	Oid			unlogged;		/* the first table that a crash empties, or
								 * invalid */
	List	   *owners;			/* of the tables */
	List	   *owned;			/* a table of each owner */
	List	   *next;			/* where its own TTL indexes move rows to */
} Archive;

/* What a table is a partition of, or inherits from, directly. */
typedef struct Kin
{
	Oid			relid;			/* key of the hash table */
	List	   *parents;
	uint64		mark;			/* the last one that was set (see mark_above) */
} Kin;

/* What was found out about archives, and about kin, until a relation or an index changes. */
static MemoryContext known_memory = NULL;
static HTAB *known = NULL;
static HTAB *known_kin = NULL;
static uint64 known_version = 0;
static uint64 known_held = 0;
static uint64 catalog_version = 0;

/* The last mark. */
static uint64 marks = 0;

/* This is told also of a parent that is taken away, as that changes the columns. */
static void
relation_changed(Datum arg, Oid relid)
{
	catalog_version++;
}

static HTAB *
make_known(const char *name, Size entry_size)
{
	HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = entry_size,.hcxt = known_memory};

	return hash_create(name, 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* Forgets what may have changed, but for what was good when ttl_pair_hold() began or later. */
static void
forget_archives(void)
{
	uint64		held = ttl_pair_held();

	if (known_memory == NULL)
	{
		known_memory = AllocSetContextCreate(CacheMemoryContext, "ttl_index archives",
											 ALLOCSET_SMALL_SIZES);
		CacheRegisterRelcacheCallback(relation_changed, 0);
	}
	if (known_kin != NULL && known_version == catalog_version)
		known_held = held;
	if (known_kin != NULL && (known_version == catalog_version || (held != 0 && held == known_held)))
		return;
	known = known_kin = NULL;
	MemoryContextReset(known_memory);
	known_version = catalog_version;
	known_held = held;
	known = make_known("ttl_index archives", sizeof(Archive));
	known_kin = make_known("ttl_index kin", sizeof(Kin));
}

/* An entry is made last: it would stay where there is no memory for the lists, and lead nowhere. */
static void
remember_archive(const Archive *archive)
{
	Archive		copy = *archive;
	MemoryContext caller = MemoryContextSwitchTo(known_memory);

	copy.owners = list_copy(archive->owners);
	copy.owned = list_copy(archive->owned);
	copy.next = list_copy(archive->next);
	MemoryContextSwitchTo(caller);
	*(Archive *) hash_search(known, &archive->target, HASH_ENTER, NULL) = copy;
}

/* Where an index moves rows to, or invalid, by the option of its governor. */
Oid
ttl_archive_of(Oid indexrelid, Oid *governor)
{
	TtlOption	option;
	Oid			parent;

	if (!ttl_catalog_governor(indexrelid, &parent, governor, &option))
		return InvalidOid;
	return option.archive_to;
}

/* Notes where the TTL indexes of a table move rows to. */
static void
note_next(Archive *archive, Oid relid)
{
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		Oid			governor;
		Oid			next;

		CHECK_FOR_INTERRUPTS();
		next = ttl_archive_of(lfirst_oid(lc), &governor);
		if (OidIsValid(next))
			archive->next = list_append_unique_oid(archive->next, next);
	}
}

/* Notes whose a table of the archive is, and whether it stays. */
static void
note_table(Archive *archive, Oid relid)
{
	FormData_pg_class form;

	if (!read_class(relid, &form))
		return;
	if (form.relpersistence == RELPERSISTENCE_UNLOGGED && !OidIsValid(archive->unlogged))
		archive->unlogged = relid;
	if (list_member_oid(archive->owners, form.relowner))
		return;
	archive->owners = lappend_oid(archive->owners, form.relowner);
	archive->owned = lappend_oid(archive->owned, relid);
}

/*
 * What is known of an archive, with all that is below it.  Each of many partitions asks for
 * the same one, which can have as many itself, and many archives lead on to the same one.
 */
static void
read_archive(Oid target, Archive *archive)
{
	Archive    *found;
	ListCell   *lc;

	forget_archives();
	found = hash_search(known, &target, HASH_FIND, NULL);
	if (found != NULL)
	{
		*archive = *found;
		return;
	}
	memset(archive, 0, sizeof(*archive));
	archive->target = target;
	foreach(lc, ttl_inherit_partitions(target, NoLock))
	{
		note_table(archive, lfirst_oid(lc));
		note_next(archive, lfirst_oid(lc));
	}
	/* what has changed meanwhile makes it stale */
	remember_archive(archive);
}

/* Where rows of an archive move on to, over all stages; one more than allowed is enough. */
static List *
further_stages(const Archive *archive)
{
	List	   *stages = list_make1_oid(archive->target);
	ListCell   *lc;
	ListCell   *lc2;

	/* the list grows while it is read */
	foreach(lc, stages)
	{
		Archive		stage;

		read_archive(lfirst_oid(lc), &stage);
		foreach(lc2, stage.next)
		{
			stages = list_append_unique_oid(stages, lfirst_oid(lc2));
			if (list_length(stages) > MAX_STAGES)
				return list_delete_first(stages);
		}
	}
	return list_delete_first(stages);
}

/* What is above a table, directly.  To ask that takes a scan, and is done once. */
static Kin *
kin_of(Oid relid)
{
	Kin		   *kin = hash_search(known_kin, &relid, HASH_FIND, NULL);
	List	   *parents;
	MemoryContext caller;

	if (kin != NULL)
		return kin;
	parents = ttl_inherit_parents(relid);
	caller = MemoryContextSwitchTo(known_memory);
	parents = list_copy(parents);
	MemoryContextSwitchTo(caller);
	kin = hash_search(known_kin, &relid, HASH_ENTER, NULL);
	kin->parents = parents;
	kin->mark = 0;
	return kin;
}

/* Marks a table and all above it; not again where it has the mark. */
static void
mark_above(Oid relid, uint64 mark)
{
	List	   *above = list_make1_oid(relid);
	ListCell   *lc;

	/* the list grows while it is read */
	foreach(lc, above)
	{
		Kin		   *kin = kin_of(lfirst_oid(lc));

		CHECK_FOR_INTERRUPTS();
		if (kin->mark == mark)
			continue;
		kin->mark = mark;
		above = list_concat(above, kin->parents);
	}
	list_free(above);
}

/*
 * One of these tables, rows of which belong to another table as well, or can; or invalid.
 *
 * Users can make thousands of tables of which one inherits from the other, many TTL indexes on
 * them, and an archive of an archive of these.  Each table is looked at twice at most.
 */
static Oid
find_related(Oid relid, List *tables)
{
	uint64		mark = ++marks;
	ListCell   *lc;

	forget_archives();
	mark_above(relid, mark);
	foreach(lc, tables)
	{
		if (kin_of(lfirst_oid(lc))->mark == mark)
			return lfirst_oid(lc);
	}
	mark = ++marks;
	foreach(lc, tables)
	{
		mark_above(lfirst_oid(lc), mark);
		if (kin_of(relid)->mark == mark)
			return lfirst_oid(lc);
	}
	return InvalidOid;
}

/* The state by how a table belongs together with the archive and those behind it. */
static TtlState
table_relationship(TtlIndex *index, Oid relid, const Archive *archive)
{
	static char *const elsewhere = "Let one of these tables archive to another one, or make its index a plain one with ttl_index.remove_ttl().";
	List	   *stages;
	Oid			related;

	if (relid == archive->target)
		return mismatch(index, "it is the table that the rows are in", NULL);
	stages = further_stages(archive);
	related = find_related(relid, lcons_oid(archive->target, list_copy(stages)));
	if (related == archive->target)
		return mismatch(index, "one of the two is a partition of the other, or inherits from it",
						NULL);
	if (OidIsValid(related))
		return mismatch(index, psprintf("its rows move on to table %s, and would come back",
										ttl_archive_name(related)),
						elsewhere);
	if (list_length(stages) >= MAX_STAGES)
		return mismatch(index, "its rows move on over too many tables", elsewhere);
	return TTL_ACTIVE;
}

/* The state by how the tables belong together: rows must not move in a circle. */
static TtlState
relationship(TtlIndex *index, const Archive *archive)
{
	TtlState	state = table_relationship(index, index->relid, archive);
	Oid			whole;

	if (state != TTL_ACTIVE || !OidIsValid(index->governor) ||
		index->governor == index->indexrelid)
		return state;
	whole = IndexGetRelation(index->governor, true);
	return OidIsValid(whole) ? table_relationship(index, whole, archive) : state;
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
	if (ttl_catalog_has_rule(target, CMD_INSERT, false))
		return mismatch(index, "it has a rule ON INSERT",
						"Replace the rule with a trigger, which can do the same.");
	return TTL_ACTIVE;
}

/* The state by what a crash leaves of the archive. */
static TtlState
persistence_state(TtlIndex *index, const Archive *archive, bool source_is_logged)
{
	if (!source_is_logged || !OidIsValid(archive->unlogged))
		return TTL_ACTIVE;
	return mismatch(index, "it is unlogged, so that a crash would lose the rows",
					alter_command(archive->unlogged, "SET LOGGED"));
}

/*
 * The state of an index by where its option moves rows to.  Its table, its governor if
 * there is one, and its option are filled in; fills in the detail.
 */
TtlState
ttl_archive_state(TtlIndex *index)
{
	FormData_pg_class table;
	FormData_pg_class other;
	Archive		archive;
	Oid			target = index->option.archive_to;
	TtlState	state;

	/* where the table is gone, something else is said */
	if (!index->option.present || !OidIsValid(target) || !read_class(index->relid, &table))
		return TTL_ACTIVE;
	if (!read_class(target, &other))
		return mismatch(index, "it does not exist", NULL);
	/* what is written to a shell itself is lost */
	if (ttl_citus_kind(index->relid) != TTL_CITUS_NONE)
		return mismatch(index, "those of a table of Citus can only be deleted",
						"Leave archive_to out.");
	if (ttl_citus_kind(target) != TTL_CITUS_NONE)
		return mismatch(index, "it is a table of Citus", "Name one that is not.");
	state = kind_state(index, &other);
	if (state != TTL_ACTIVE)
		return state;
	read_archive(target, &archive);
	state = persistence_state(index, &archive,
							  table.relpersistence == RELPERSISTENCE_PERMANENT);
	if (state == TTL_ACTIVE)
		state = relationship(index, &archive);
	return state == TTL_ACTIVE ? columns_state(index, table.relnatts, other.relnatts) : state;
}

/* Does the owner lack the user mapping that postgres_fdw needs?  The table is locked. */
static bool
lacks_user_mapping(const TtlIndex *index, ForeignServer **server)
{
	Oid			target = index->option.archive_to;
	ForeignDataWrapper *wrapper;

	if (get_rel_relkind(target) != RELKIND_FOREIGN_TABLE)
		return false;
	*server = GetForeignServerExtended(GetForeignServerIdByRelId(target), FSV_MISSING_OK);
	if (*server == NULL)
		return false;
	wrapper = GetForeignDataWrapperExtended((*server)->fdwid, FDW_MISSING_OK);
	return wrapper != NULL && strcmp(wrapper->fdwname, "postgres_fdw") == 0 &&
		!SearchSysCacheExists2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(index->owner),
							   ObjectIdGetDatum((*server)->serverid)) &&
		!SearchSysCacheExists2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(InvalidOid),
							   ObjectIdGetDatum((*server)->serverid));
}

/*
 * The state by what the owner of the rows lacks.  It is asked for rights on a table only
 * while that is locked, as it may be dropped meanwhile; where the lock is not free, the
 * batch will not get it either.
 */
static TtlState
privilege_state(TtlIndex *index)
{
	Oid			target = index->option.archive_to;
	TtlState	state = TTL_ACTIVE;
	ForeignServer *server;
	char	   *owner;
	Oid			schema;

	if (!ConditionalLockRelationOid(target, AccessShareLock))
		return TTL_ACTIVE;
	owner = GetUserNameFromId(index->owner, true);
	schema = get_rel_namespace(target);
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(target)) || owner == NULL)
		state = TTL_ACTIVE;
	else if ((pg_class_aclcheck(target, index->owner, ACL_INSERT) != ACLCHECK_OK ||
			  object_aclcheck(NamespaceRelationId, schema, index->owner, ACL_USAGE) != ACLCHECK_OK))
		state = mismatch(index, psprintf("the owner of the rows, \"%s\", lacks INSERT on it or USAGE on its schema",
										 owner),
						 psprintf("GRANT INSERT ON %s TO %s; GRANT USAGE ON SCHEMA %s TO %s.",
								  ttl_name_qualified(target), quote_identifier(owner),
								  quote_identifier(get_namespace_name(schema)),
								  quote_identifier(owner)));
	else if (lacks_user_mapping(index, &server))
		state = mismatch(index, psprintf("the owner of the rows, \"%s\", has no user mapping for server \"%s\"",
										 owner, server->servername),
						 psprintf("CREATE USER MAPPING FOR %s SERVER %s OPTIONS (user '...', password '...').",
								  quote_identifier(owner),
								  quote_identifier(server->servername)));
	UnlockRelationOid(target, AccessShareLock);
	return state;
}

/*
 * The state by whether one of the owners of the archive and its partitions lacks the
 * privileges of the owner of the rows.
 *
 * Triggers and all other code that they attach runs as the owner of the rows, as for any
 * INSERT.  A monitor that inserts all the time would make that a way to rights, so they must
 * be there before.
 */
static TtlState
owners_state(TtlIndex *index)
{
	Archive		archive;
	Oid			above = ttl_partition_key_of_stranger(index->option.archive_to, index->owner);
	ListCell   *lc;
	ListCell   *lc2;

	if (OidIsValid(above))
		return mismatch(index, psprintf("it is a partition of table %s, whose owner has not the privileges of the owner of the rows, with which its partition key would be computed",
										ttl_archive_name(above)),
						"Give both tables the same owner, or detach the one.");
	read_archive(index->option.archive_to, &archive);
	forboth(lc, archive.owners, lc2, archive.owned)
	{
		char	   *stranger = GetUserNameFromId(lfirst_oid(lc), true);
		char	   *owner = GetUserNameFromId(index->owner, true);

		if (has_privs_of_role(lfirst_oid(lc), index->owner))
			continue;
		if (stranger == NULL || owner == NULL)
			return mismatch(index, "its owner is gone", NULL);
		return mismatch(index, psprintf("its owner, \"%s\", has not the privileges of the owner of the rows, \"%s\", with which its triggers would run",
										stranger, owner),
						psprintf("GRANT %s TO %s, or %s", quote_identifier(owner),
								 quote_identifier(stranger),
								 alter_command(lfirst_oid(lc2),
											   psprintf("OWNER TO %s", quote_identifier(owner)))));
	}
	return TTL_ACTIVE;
}

/*
 * The state of an index by who has which rights.  It is one of the moment, and no reason to
 * refuse DDL: a dump grants last.  The owner is filled in, too.
 */
TtlState
ttl_archive_rights(TtlIndex *index)
{
	TtlState	state;

	if (!index->option.present || !OidIsValid(index->option.archive_to))
		return TTL_ACTIVE;
	state = privilege_state(index);
	return state == TTL_ACTIVE ? owners_state(index) : state;
}

/*
 * Where a column was renamed in one of the two tables, and has the old name in the other
 * one, that ends the mismatch by being renamed there as well.
 */
void
ttl_archive_mend_renamed(TtlIndex *index, const char *from, const char *to)
{
	Oid			tables[2] = {index->option.archive_to, index->relid};

	for (int i = 0; i < lengthof(tables); i++)
	{
		if (get_attnum(tables[i], from) > 0 && get_attnum(tables[i], to) <= 0)
			index->mend = alter_command(ttl_inherit_top(tables[i]),
										psprintf("RENAME COLUMN %s TO %s",
												 quote_identifier(from),
												 quote_identifier(to)));
	}
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
