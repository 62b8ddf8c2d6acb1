/*-------------------------------------------------------------------------
 *
 * catalog.c
 *	  Which TTL indexes there are, and the state of each.
 *
 * The TTL indexes of a database are found in pg_depend, because their predicates call the
 * option function.  Each is then described from its own catalog rows, as a dependency proves
 * nothing.
 *
 * This file decides which state an index has (state.c has the texts; server/shown_state.c
 * adds what concerns the server or a single partition).  It uses catalog scans and the
 * syscache, never SQL over pg_class, and waits for no table lock.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/definition/catalog.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/partition.h"
#include "catalog/pg_am.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_publication.h"
#include "catalog/pg_rewrite.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "rewrite/rewriteDefine.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "compat.h"
#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "ttl_index.h"

bool
ttl_catalog_key_type_ok(Oid type)
{
	return type == TIMESTAMPTZOID || type == TIMESTAMPOID || type == DATEOID;
}

/* Can a key of this type expire with this option?  Fills in the detail. */
static TtlState
key_state(TtlIndex *index, Oid type)
{
	const char *time_zone = index->option.time_zone;

	index->keytype = getBaseType(type);
	index->detail = format_type_be(type);
	if (!ttl_catalog_key_type_ok(index->keytype))
		return TTL_KEY_TYPE;
	if (!index->option.present)
		return TTL_ACTIVE;
	if (index->keytype == TIMESTAMPTZOID && time_zone != NULL)
		return TTL_TIME_ZONE_UNUSED;
	if (index->keytype != TIMESTAMPTZOID && time_zone == NULL)
		return TTL_TIME_ZONE_MISSING;
	if (time_zone != NULL && !ttl_time_zone_ok(time_zone))
	{
		index->detail = pstrdup(time_zone);
		return TTL_TIME_ZONE_INVALID;
	}
	return TTL_ACTIVE;
}

/* Checks a column (invalid: an expression) that is to get a TTL index, and the time zone. */
void
ttl_catalog_check_key(Oid relid, AttrNumber attnum, Oid type,
					  const char *time_zone)
{
	TtlIndex	index = {.relid = relid,.keyattnum = attnum};

	index.option.present = true;
	index.option.time_zone = unconstify(char *, time_zone);
	index.state = key_state(&index, type);
	if (index.state != TTL_ACTIVE)
		ttl_state_raise_argument(&index);
}

/* Is the OID in a list that list_sort() has sorted? */
bool
ttl_catalog_sorted_oids_have(const List *sorted, Oid oid)
{
	return sorted != NIL &&
		bsearch(&oid, sorted->elements, list_length(sorted), sizeof(ListCell),
				oid_cmp) != NULL;
}

/*
 * Does something with each of many indexes.  Each call has memory of its own, which is
 * freed after it: there can be thousands of indexes, and describing one parses trees.
 */
void
ttl_catalog_each(List *indexes, void (*work) (Oid indexrelid, void *arg),
				 void *arg)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext own = AllocSetContextCreate(caller, "ttl_index each",
											  ALLOCSET_DEFAULT_SIZES);
	ListCell   *lc;

	foreach(lc, indexes)
	{
		CHECK_FOR_INTERRUPTS();
		MemoryContextSwitchTo(own);
		work(lfirst_oid(lc), arg);
		MemoryContextSwitchTo(caller);
		MemoryContextReset(own);
	}
	MemoryContextDelete(own);
}

/* Appends the indexes that depend on a function. */
static List *
add_dependents(List *result, Relation depend, Oid function)
{
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(ProcedureRelationId));
	ScanKeyInit(&key[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(function));
	scan = systable_beginscan(depend, DependReferenceIndexId, true, NULL, 2,
							  key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend row = (Form_pg_depend) GETSTRUCT(tuple);
		char		relkind;

		if (row->classid != RelationRelationId)
			continue;
		relkind = get_rel_relkind(row->objid);
		if (relkind == RELKIND_INDEX || relkind == RELKIND_PARTITIONED_INDEX)
			result = lappend_oid(result, row->objid);
	}
	systable_endscan(scan);
	return result;
}

/* The OIDs of all indexes that depend on an option function, also invalid ones and children. */
List *
ttl_catalog_dependents(void)
{
	TtlFunctions functions;
	Relation	depend;
	List	   *result = NIL;

	if (!ttl_function_lookup(&functions))
		return NIL;
	depend = table_open(DependRelationId, AccessShareLock);
	for (int i = 0; i < TTL_OPTION_FUNCTIONS; i++)
		result = add_dependents(result, depend, ttl_function_option(&functions, i));
	table_close(depend, AccessShareLock);
	list_sort(result, list_oid_cmp);
	list_deduplicate_oid(result);
	return result;
}

/*
 * The index whose option governs this one: its topmost ancestor that has an
 * option, else itself.  Reads that option; false where the index is gone.
 */
bool
ttl_catalog_governor(Oid indexrelid, Oid *parent, Oid *governor,
					 TtlOption *option)
{
	List	   *ancestors = NIL;

	*parent = InvalidOid;
	if (get_rel_relispartition(indexrelid))
		ancestors = get_partition_ancestors(indexrelid);
	if (ancestors != NIL)
		*parent = linitial_oid(ancestors);
	for (int i = list_length(ancestors) - 1; i >= 0; i--)
	{
		*governor = list_nth_oid(ancestors, i);
		if (ttl_option_read(*governor, option) && option->present)
			return true;
	}
	*governor = indexrelid;
	return ttl_option_read(indexrelid, option);
}

/* Finds the governor and the root; the second index of a pair belongs to the main one. */
static bool
find_root(Oid indexrelid, TtlIndex *index)
{
	Oid			main;
	TtlOption	option;

	if (!ttl_catalog_governor(indexrelid, &index->parent, &index->governor,
							  &index->option))
		return false;
	main = index->option.present ? ttl_pair_main(index->governor) : InvalidOid;
	index->root = OidIsValid(main) ? main : index->governor;
	/* what the main one says counts, if it can be read */
	if (OidIsValid(main) && ttl_option_read(main, &option) && option.problem == NULL)
	{
		index->option.paused = option.paused;
		/* what one of the two says is moved is never deleted */
		if (OidIsValid(option.archive_to))
			index->option.archive_to = option.archive_to;
	}
	if (!OidIsValid(index->parent) && OidIsValid(main))
		index->parent = main;
	return true;
}

/* The TTL index that this one is a part of, if it is one. */
Oid
ttl_catalog_root(Oid indexrelid)
{
	TtlIndex	index;

	if (find_root(indexrelid, &index) && index.option.present)
		return index.root;
	return InvalidOid;
}

/* Lists what the view shows: the dependents, and all partitions below them. */
List *
ttl_catalog_shown(void)
{
	List	   *shown = NIL;
	ListCell   *lc;

	foreach(lc, ttl_catalog_dependents())
	{
		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_PARTITIONED_INDEX)
			shown = list_concat(shown,
								ttl_inherit_tree(lfirst_oid(lc)));
		else
			shown = lappend_oid(shown, lfirst_oid(lc));
	}
	list_sort(shown, list_oid_cmp);
	list_deduplicate_oid(shown);
	return shown;
}

/* An index of a partition, by its table: that comes first, for oid_cmp(). */
typedef struct Child
{
	Oid			relid;
	Oid			indexrelid;
} Child;

/* The children of a partitioned index, sorted by the bounds of their partitions. */
static List *
ordered_children(Oid indexrelid)
{
	List	   *oids = ttl_inherit_children(indexrelid, false);
	int			count = list_length(oids);
	Child	   *children = palloc(sizeof(Child) * Max(count, 1));
	Oid			relid = IndexGetRelation(indexrelid, true);
	List	   *ordered = NIL;
	List	   *rest = NIL;
	ListCell   *lc;

	if (!OidIsValid(relid))
		return oids;
	foreach(lc, oids)
	{
		Child	   *child = &children[foreach_current_index(lc)];

		child->relid = IndexGetRelation(lfirst_oid(lc), true);
		child->indexrelid = lfirst_oid(lc);
	}
	qsort(children, count, sizeof(Child), oid_cmp);
	foreach(lc, ttl_bounds_read(relid))
	{
		Child	   *child = bsearch(&((TtlPartition *) lfirst(lc))->relid,
									children, count, sizeof(Child), oid_cmp);

		if (child != NULL)
		{
			ordered = lappend_oid(ordered, child->indexrelid);
			child->indexrelid = InvalidOid;
		}
	}
	for (int i = 0; i < count; i++)
	{
		if (OidIsValid(children[i].indexrelid))
			rest = lappend_oid(rest, children[i].indexrelid);
	}
	list_sort(rest, list_oid_cmp);
	return list_concat(ordered, rest);
}

static List *
leaf_indexes(Oid root)
{
	List	   *leaves = NIL;
	ListCell   *lc;

	if (get_rel_relkind(root) != RELKIND_PARTITIONED_INDEX)
		return list_make1_oid(root);
	foreach(lc, ordered_children(root))
		leaves = list_concat(leaves, leaf_indexes(lfirst_oid(lc)));
	return leaves;
}

/*
 * The indexes of a TTL index that hold rows: itself, or those of the leaf
 * partitions in the order of their bounds; then those of the other one of a pair.
 */
List *
ttl_catalog_leaves(Oid root)
{
	List	   *leaves = leaf_indexes(root);
	Oid			other = ttl_pair_other(root);

	if (OidIsValid(other))
		leaves = list_concat(leaves, leaf_indexes(other));
	return leaves;
}

/* All indexes of a table, in the order of their OIDs, without a lock on it. */
List *
ttl_catalog_table_indexes(Oid relid)
{
	Relation	rel = table_open(IndexRelationId, AccessShareLock);
	List	   *indexes = NIL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_index_indrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, IndexIndrelidIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		indexes = lappend_oid(indexes,
							  ((Form_pg_index) GETSTRUCT(tuple))->indexrelid);
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	list_sort(indexes, list_oid_cmp);
	return indexes;
}

/* Copies the row of a relation in pg_class; false, and zeros, where it is gone. */
bool
ttl_catalog_class(Oid relid, FormData_pg_class *form)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));

	memset(form, 0, sizeof(*form));
	if (!HeapTupleIsValid(tuple))
		return false;
	memcpy(form, GETSTRUCT(tuple), CLASS_TUPLE_SIZE);
	ReleaseSysCache(tuple);
	return true;
}

/*
 * Is the index part of a constraint, its own or a foreign key to it?  That is to a unique one;
 * what core finds of others are constraints, of anybody's, that name the index.
 */
static bool
has_constraint(Oid indexrelid, Form_pg_index form)
{
	return form->indisprimary || form->indisexclusion || form->indisreplident ||
		OidIsValid(get_index_constraint(indexrelid)) ||
		(form->indisunique && get_index_ref_constraints(indexrelid) != NIL);
}

/* Does an enabled rule add a command to this one or, if asked for, replace it? */
bool
ttl_catalog_has_rule(Oid relid, CmdType event, bool instead)
{
	FormData_pg_class form;
	bool		found = false;
	Relation	rel;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (!ttl_catalog_class(relid, &form) || !form.relhasrules)
		return false;
	rel = table_open(RewriteRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_rewrite_ev_class, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, RewriteRelRulenameIndexId, true, NULL, 1, &key);
	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_rewrite rule = (Form_pg_rewrite) GETSTRUCT(tuple);

		found = rule->ev_type == '0' + (int) event &&
			(rule->is_instead || !instead) &&
			rule->ev_enabled != RULE_DISABLED;
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

/* The state by the table alone. */
static TtlState
table_state(Oid relid, TtlCitusTable *citus)
{
	FormData_pg_class form;
	TtlState	state;

	ttl_catalog_class(relid, &form);
	if (form.relkind == RELKIND_MATVIEW)
		return TTL_MATERIALIZED_VIEW;
	if (form.relpersistence == RELPERSISTENCE_TEMP)
		return TTL_TEMPORARY_TABLE;
	state = ttl_reach_state(relid, citus);
	/* such a rule would keep rows, or change them in every pass */
	if (state == TTL_ACTIVE && ttl_catalog_has_rule(relid, CMD_DELETE, true))
		state = TTL_INSTEAD_RULE;
	return state;
}

/* Raises what is wrong with a table that is to get a TTL index. */
void
ttl_catalog_check_table(Oid relid)
{
	TtlIndex	index = {0};

	index.state = table_state(relid, &index.citus);
	if (index.state != TTL_ACTIVE)
		ttl_state_raise(&index);
}

/* Asks the operator class itself: GetDefaultOpClass() reads all of pg_opclass. */
static bool
is_default_opclass(Oid opclass, Oid type)
{
	HeapTuple	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	Form_pg_opclass form;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_opclass) GETSTRUCT(tuple);
	result = form->opcmethod == BTREE_AM_OID && form->opcdefault &&
		form->opcintype == type;
	ReleaseSysCache(tuple);
	return result;
}

/* The state by what the index is defined on; needs no lock. */
static TtlState
definition_state(TtlIndex *index, HeapTuple tuple)
{
	Form_pg_index form = (Form_pg_index) GETSTRUCT(tuple);
	Oid			indexrelid = index->indexrelid;
	Oid			type = get_atttype(indexrelid, 1);
	TtlState	state;
	FormData_pg_class index_class;
	FormData_pg_class table_class;
	Datum		indclass;
	bool		isnull;

	ttl_catalog_class(indexrelid, &index_class);
	ttl_catalog_class(index->relid, &table_class);
	if (ttl_option_is_long(tuple))
		return TTL_LONG_DEFINITION;
	if (index->option.problem != NULL)
		return TTL_MALFORMED_OPTION;
	state = table_state(index->relid, &index->citus);
	index->citus_governor = index->citus;
	if (state == TTL_ACTIVE && index->governor != indexrelid)
		state = table_state(IndexGetRelation(index->governor, true), &index->citus_governor);
	if (state != TTL_ACTIVE)
		return state;
	if (index_class.relam != BTREE_AM_OID)
		return TTL_NOT_BTREE;
	if (has_constraint(indexrelid, form))
		return TTL_CONSTRAINT_INDEX;
	if (form->indisunique)
		return TTL_UNIQUE_INDEX;
	if (form->indnkeyatts != 1)
		return TTL_COMPOUND_KEY;
	if (ttl_key_is_id(indexrelid, index->relid))
		return TTL_ID_KEY;

	if (!OidIsValid(type))		/* dropped just now */
		return TTL_NOT_VALID;
	index->keyattnum = form->indkey.values[0];
	state = key_state(index, type);
	if (state == TTL_KEY_TYPE)
		return state;
	indclass = SysCacheGetAttr(INDEXRELID, tuple, Anum_pg_index_indclass,
							   &isnull);
	if (!is_default_opclass(((oidvector *) DatumGetPointer(indclass))->values[0],
							index->keytype))
		return TTL_OPERATOR_CLASS;
	if (state != TTL_ACTIVE)
		return state;
	if (table_class.relkind == RELKIND_RELATION &&
		table_class.relam != HEAP_TABLE_AM_OID)
		return TTL_TABLE_ACCESS_METHOD;
	state = ttl_bounds_state(index);
	return state == TTL_ACTIVE ? ttl_archive_state(index) : state;
}

static bool
has_publications(void)
{
	Relation	rel = table_open(PublicationRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
	bool		result = HeapTupleIsValid(systable_getnext(scan));

	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return result;
}

/*
 * Does a publication of deletes need what the table cannot give?  It is locked, so
 * that it can be opened.  Before 18, core's look at the publications of each of many tables
 * gets slower with their number.
 */
static bool
lacks_replica_identity(Oid relid)
{
	PublicationDesc publications;
	Relation	rel = try_relation_open(relid, NoLock);
	bool		result = false;

	if (rel == NULL)
		return false;
	if (rel->rd_rel->relkind == RELKIND_RELATION &&
		rel->rd_rel->relreplident != REPLICA_IDENTITY_FULL &&
		!OidIsValid(RelationGetReplicaIndex(rel)) && has_publications())
	{
		RelationBuildPublicationDesc(rel, &publications);
		result = publications.pubactions.pubdelete;
	}
	relation_close(rel, NoLock);
	return result;
}

static bool
owner_may_delete(const TtlIndex *index)
{
	AclMode		needed = ACL_SELECT | ACL_DELETE;

	return pg_class_aclmask(index->relid, index->owner, needed,
							ACLMASK_ALL) == needed &&
		object_aclcheck(NamespaceRelationId, get_rel_namespace(index->relid),
						index->owner, ACL_USAGE) == ACLCHECK_OK;
}

/*
 * The tables that a partition belongs to have triggers there, and the TTL index of one of them
 * says what is deleted, and where to rows move.  All of it acts as the owner of the partition
 * whose rows are deleted.  So their owners need the privileges of that role; else this gives the
 * index a state, and returns false.
 */
bool
ttl_catalog_owners_above(TtlIndex *index)
{
	ListCell   *lc;

	foreach(lc, get_rel_relispartition(index->relid) ? get_partition_ancestors(index->relid) : NIL)
	{
		Oid			owner = ttl_owner_of(lfirst_oid(lc));

		if (!OidIsValid(owner) || has_privs_of_role(owner, index->owner))
			continue;
		index->state = TTL_OWNER_LACKS_PRIVILEGE;
		index->detail = psprintf("the owner of table %s lacks the privileges of the owner of partition %s",
								 ttl_name_qualified(lfirst_oid(lc)), ttl_name_qualified(index->relid));
		index->mend = psprintf("ALTER TABLE %s OWNER TO %s;", ttl_name_qualified(index->relid),
							   quote_identifier(GetUserNameFromId(owner, false)));
		return false;
	}
	return true;
}

/* The state of the moment, for an index that is well defined. */
static TtlState
runtime_state(TtlIndex *index, HeapTuple tuple, bool locked)
{
	Form_pg_index form = (Form_pg_index) GETSTRUCT(tuple);
	TtlState	state;

	if (ttl_reach_is_repack_copy(index->relid))
		return TTL_REPACK_COPY;
	if (!locked)
		return TTL_TABLE_LOCKED;
	if (!owner_may_delete(index))
		return TTL_OWNER_LACKS_PRIVILEGE;
	if (lacks_replica_identity(index->relid))
		return TTL_NO_REPLICA_IDENTITY;

	/* The planner's rule: a broken HOT chain would show keys of old versions. */
	if (form->indcheckxmin &&
		!TransactionIdPrecedes(HeapTupleHeaderGetXmin(tuple->t_data),
							   TransactionXmin))
		return TTL_OLD_SNAPSHOTS;
	state = ttl_archive_rights(index);
	return state == TTL_ACTIVE ? ttl_citus_state(index) : state;
}

/* Can what REINDEX CONCURRENTLY lost be restored? */
static TtlState
lost_state(Oid indexrelid)
{
	TtlOption	option = {0};

	return ttl_saved_option_apply(indexrelid, &option) ?
		TTL_OPTION_REMEMBERED : TTL_OPTION_LOST;
}

/* Describes an index whose table is locked against being dropped, if it can be. */
static bool
describe(Oid indexrelid, bool definition_only, bool locked, TtlIndex *index)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexrelid));
	FormData_pg_class table;

	if (!HeapTupleIsValid(tuple))
		return false;
	index->relid = ((Form_pg_index) GETSTRUCT(tuple))->indrelid;
	index->relkind = get_rel_relkind(indexrelid);
	ttl_catalog_class(index->relid, &table);
	index->owner = table.relowner;
	if (!OidIsValid(index->owner) || index->relkind == '\0' ||
		!find_root(indexrelid, index))
	{
		ReleaseSysCache(tuple);
		return false;
	}
	if (!definition_only &&
		!(ttl_state_is_usable(indexrelid) && ttl_state_is_usable(index->governor)))
		index->state = TTL_NOT_VALID;
	else if (!definition_only && !index->option.present)
		index->state = lost_state(indexrelid);
	else
		index->state = definition_state(index, tuple);
	if (index->state == TTL_ACTIVE && !definition_only)
		index->state = runtime_state(index, tuple, locked);
	ReleaseSysCache(tuple);
	return true;
}

/*
 * Describes an index as it is now, with its governing option; false if it or its table is
 * gone.  With definition_only the state is what DDL checks, also for a plain index.  The table
 * is locked if that takes no waiting.  Otherwise nothing is asked that raises an error for a
 * table that was dropped concurrently.
 */
bool
ttl_catalog_describe(Oid indexrelid, bool definition_only, TtlIndex *index)
{
	Oid			relid = IndexGetRelation(indexrelid, true);
	bool		locked;
	bool		found;

	memset(index, 0, sizeof(*index));
	index->indexrelid = indexrelid;
	if (!OidIsValid(relid))
		return false;
	locked = ConditionalLockRelationOid(relid, AccessShareLock);
	found = describe(indexrelid, definition_only, locked, index);
	if (locked)
		UnlockRelationOid(relid, AccessShareLock);
	return found;
}
