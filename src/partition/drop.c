/*-------------------------------------------------------------------------
 *
 * drop.c
 *	  Dropping a partition that is due.
 *
 * A partition is dropped by DROP TABLE as its owner could run it, so that event triggers
 * see it and whatever depends on it keeps it.  That needs ACCESS EXCLUSIVE on the
 * partitioned table and on its DEFAULT partition, whose constraint changes.  DETACH
 * CONCURRENTLY would need less, but it is impossible beside a DEFAULT partition and inside
 * a function.  All locks are taken before the command begins, so they are held for as long
 * as the catalogs take, a few milliseconds; the files are removed after the commit.
 *
 * A partition that is to be kept is detached or moved in place of that (detach.c), with the
 * same locks.
 *
 * monitor/visit.c calls ttl_drop_partition() in a transaction for each partition.  What
 * was read before the locks were taken is read again after that.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/partition/drop.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/objectaddress.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_publication_rel.h"
#include "catalog/pg_subscription.h"
#include "catalog/pg_subscription_rel.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "definition/definition.h"
#include "definition/key.h"
#include "expire/expire.h"
#include "partition/partition.h"
#include "ttl_index.h"

/* Lists the partitions that are due at this clock reading, oldest first. */
List *
ttl_drop_due(const TtlIndex *root, TimestampTz at)
{
	List	   *due = NIL;
	TtlCutoff	cutoff;
	ListCell   *lc;

	if (!root->option.drop_partitions || !ttl_option_expires(&root->option))
		return NIL;
	ttl_cutoff_init(&cutoff, root, at);
	foreach(lc, ttl_bounds_read(root->relid))
	{
		if (ttl_leaves_partition_is_due(lfirst(lc), &cutoff))
			due = lappend(due, lfirst(lc));
	}
	return due;
}

/*
 * What depends on something, one call for each row of pg_depend.  Returns the
 * first object for which the callback is true.
 */
static bool
find_dependent(Oid classid, Oid objid,
			   bool (*wanted) (const ObjectAddress *object, char deptype, List *tree),
			   List *tree, ObjectAddress *found)
{
	Relation	depend = table_open(DependRelationId, AccessShareLock);
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		result = false;

	ScanKeyInit(&key[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(classid));
	ScanKeyInit(&key[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(objid));
	scan = systable_beginscan(depend, DependReferenceIndexId, true, NULL, 2,
							  key);
	while (!result && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend row = (Form_pg_depend) GETSTRUCT(tuple);

		ObjectAddressSubSet(*found, row->classid, row->objid, row->objsubid);
		result = wanted(found, row->deptype, tree);
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
	return result;
}

/* Does an object go with one of these tables, whatever else it depends on? */
static bool
goes_along(const ObjectAddress *object, List *tree)
{
	Relation	depend = table_open(DependRelationId, AccessShareLock);
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		result = false;

	ScanKeyInit(&key[0], Anum_pg_depend_classid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(object->classId));
	ScanKeyInit(&key[1], Anum_pg_depend_objid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(object->objectId));
	scan = systable_beginscan(depend, DependDependerIndexId, true, NULL, 2,
							  key);
	while (!result && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend row = (Form_pg_depend) GETSTRUCT(tuple);

		result = row->refclassid == RelationRelationId &&
			row->deptype != DEPENDENCY_NORMAL &&
			list_member_oid(tree, row->refobjid);
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
	return result;
}

/* Would DROP ... RESTRICT stop at this object, which depends on one of the tree? */
static bool
is_obstacle(const ObjectAddress *object, char deptype, List *tree)
{
	/* a table that is published by itself would leave its publication */
	if (object->classId == PublicationRelRelationId)
		return true;
	if (object->classId == RelationRelationId &&
		list_member_oid(tree, object->objectId))
		return false;
	return deptype == DEPENDENCY_NORMAL && !goes_along(object, tree);
}

/* Is this a foreign key that references a table as a part of its whole? */
static bool
is_reference(const ObjectAddress *object, char deptype, List *tree)
{
	HeapTuple	tuple;
	Form_pg_constraint form;
	bool		result;

	if (object->classId != ConstraintRelationId)
		return false;
	tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(object->objectId));
	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_constraint) GETSTRUCT(tuple);
	result = form->contype == CONSTRAINT_FOREIGN && OidIsValid(form->conparentid) &&
		form->confrelid == linitial_oid(tree);
	ReleaseSysCache(tuple);
	return result;
}

/* Finds a foreign key that references a partition through its table; false if none does. */
bool
ttl_drop_find_reference(Oid relid, ObjectAddress *found)
{
	return find_dependent(RelationRelationId, relid, is_reference,
						  list_make1_oid(relid), found);
}

/*
 * The subscription that writes to a table by itself.  What the publisher has yet
 * to send would stop it for good if the table were gone.
 */
bool
ttl_drop_find_subscription(Oid relid, ObjectAddress *found)
{
	Relation	rel = table_open(SubscriptionRelRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		result;

	ScanKeyInit(&key, Anum_pg_subscription_rel_srrelid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, SubscriptionRelSrrelidSrsubidIndexId, true,
							  NULL, 1, &key);
	tuple = systable_getnext(scan);
	result = HeapTupleIsValid(tuple);
	if (result)
		ObjectAddressSet(*found, SubscriptionRelationId,
						 ((Form_pg_subscription_rel) GETSTRUCT(tuple))->srsubid);
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return result;
}

/*
 * The partition, at or below this one, that somebody has begun to detach: DETACH
 * CONCURRENTLY was interrupted, or waits.  It is no part of the table any more,
 * but DROP would still take it along.  Invalid where there is none.
 */
static Oid
find_pending_detach(Oid relid)
{
	bool		pending;
	ListCell   *lc;

	if (OidIsValid(ttl_inherit_parent(relid, &pending)) && pending)
		return relid;
	/* ttl_inherit_tree() would leave it out, and what is below it */
	foreach(lc, ttl_inherit_children(relid, true))
	{
		Oid			found = find_pending_detach(lfirst_oid(lc));

		if (OidIsValid(found))
			return found;
	}
	return InvalidOid;
}

/*
 * What goes with a partition: all below it, and their own sequences.  Those can be
 * in use elsewhere, where the partition once was the whole table.
 */
static List *
whole_tree(Oid relid)
{
	List	   *tree = ttl_inherit_tree(relid);
	List	   *sequences = NIL;
	ListCell   *lc;

	foreach(lc, tree)
		sequences = list_concat(sequences, getOwnedSequences(lfirst_oid(lc)));
	return list_concat(tree, sequences);
}

/* Does something depend on a type, or on arrays of it? */
static bool
find_type_dependent(Oid type, List *tree, ObjectAddress *found)
{
	return OidIsValid(type) &&
		(find_dependent(TypeRelationId, type, is_obstacle, tree, found) ||
		 find_type_dependent(get_array_type(type), tree, found));
}

/*
 * What keeps a partition, with all below it, from being dropped, as a text; NULL
 * where nothing does.  Looks at what depends on the tables, their sequences and row
 * types directly, which is where views, foreign keys and publications are; DROP
 * itself has the last word.
 */
char *
ttl_drop_obstacle(Oid relid)
{
	Oid			pending = find_pending_detach(relid);
	List	   *tree = whole_tree(relid);
	ListCell   *lc;

	if (OidIsValid(pending))
		return psprintf("the pending DETACH of partition \"%s\"",
						get_rel_name(pending));
	foreach(lc, tree)
	{
		ObjectAddress object;

		/* nobody has compared the rows of a foreign table with its bounds */
		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_FOREIGN_TABLE)
		{
			ObjectAddressSet(object, RelationRelationId, lfirst_oid(lc));
			return getObjectDescription(&object, true);
		}
		if (ttl_drop_find_subscription(lfirst_oid(lc), &object) ||
			find_dependent(RelationRelationId, lfirst_oid(lc), is_obstacle, tree,
						   &object) ||
			find_type_dependent(get_rel_type_id(lfirst_oid(lc)), tree, &object))
			return getObjectDescription(&object, true);
	}
	return NULL;
}

/* A table's TOAST table, or invalid. */
static Oid
toast_table(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			result = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		result = ((Form_pg_class) GETSTRUCT(tuple))->reltoastrelid;
		ReleaseSysCache(tuple);
	}
	return result;
}

/*
 * Locks a partition and all below it, unless others hold a lock there, or one has been
 * given meanwhile to somebody as whom this session may not act.
 */
bool
ttl_drop_lock_tree(Oid relid, LOCKMODE lockmode)
{
	ListCell   *lc;

	foreach(lc, ttl_inherit_tree(relid))
	{
		Oid			table = lfirst_oid(lc);
		Oid			toast = toast_table(table);

		if (!ttl_lock_below(table, lockmode) ||
			(OidIsValid(toast) && !ttl_lock_below(toast, lockmode)) ||
			(SearchSysCacheExists1(RELOID, ObjectIdGetDatum(table)) &&
			 !has_privs_of_role(GetUserId(), ttl_owner_of(table))))
			return false;
	}
	return true;
}

/* Since when others wait for a table of which a partition goes, or 0. */
static TimestampTz locked_since = 0;
static Oid	locked_table = InvalidOid;

/* Says for how long, just before the locks are released. */
static void
report_locked(XactEvent event, void *arg)
{
	if (locked_since == 0 || (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT))
		return;
	ereport(DEBUG1,
			(errmsg_internal("table %u was locked for %.3f ms, for a partition to go",
							 locked_table,
							 (GetCurrentTimestamp() - locked_since) / 1000.0)));
	locked_since = 0;
}

/* The benchmark bench/buckets reads this; who looks from outside sees no exact times. */
static void
note_locked(Oid relid)
{
	static bool registered = false;

	if (!message_level_is_interesting(DEBUG1))
		return;
	if (!registered)
		RegisterXactCallback(report_locked, NULL);
	registered = true;
	locked_table = relid;
	locked_since = GetCurrentTimestamp();
}

/*
 * Locks all that DROP TABLE will lock.  Only the lock on the partitioned table is waited
 * for, and briefly: with that lock, no query through the table is running.
 */
static bool
lock_for_drop(Oid parent, Oid relid, TtlBatch *batch)
{
	Oid			rest;

	if (!ttl_lock_soon(parent, AccessExclusiveLock))
		return false;
	note_locked(parent);
	rest = get_default_partition_oid(parent);
	if (OidIsValid(rest) && !ttl_lock_below(rest, AccessExclusiveLock))
		return false;
	batch->busy_alone = !ttl_drop_lock_tree(relid, AccessExclusiveLock);
	return !batch->busy_alone;
}

/*
 * Has a partition a part of the index, in a state that lets it be dropped?  A
 * foreign table has none, and an owner may lack a privilege.
 */
static bool
is_droppable(Oid root, Oid relid, TtlIndex *part)
{
	Oid			indexrelid = ttl_leaves_index_of(root, relid);

	memset(part, 0, sizeof(*part));
	return OidIsValid(indexrelid) &&
		ttl_catalog_describe(indexrelid, false, part) &&
	/* states of rows that are deleted one by one */
		(part->state == TTL_ACTIVE || part->state == TTL_NO_REPLICA_IDENTITY ||
		 part->state == TTL_OLD_SNAPSHOTS);
}

/* Is this still a partition that is due?  Called with the locks in hand. */
static bool
is_still_due(Oid root, Oid relid, TimestampTz at, TtlIndex *index, TtlIndex *part)
{
	TtlPartition partition;
	TtlCutoff	cutoff;

	if (!is_droppable(root, relid, part) ||
		OidIsValid(find_pending_detach(relid)) ||
		!ttl_catalog_describe(root, false, index) ||
		index->state != TTL_ACTIVE || index->governor != root ||
		!index->option.drop_partitions || !ttl_option_expires(&index->option) ||
		!ttl_citus_keeps_partitions(&index->citus))
		return false;
	ttl_cutoff_init(&cutoff, index, at);
	ttl_bounds_read_one(relid, &partition);
	return ttl_leaves_partition_is_due(&partition, &cutoff);
}

/*
 * How many rows has a table, which is locked, as far as is known without looking?  No
 * more than there is room for: its owner can set reltuples, from 18 on, and a sum
 * that is out of range would be an error in everybody's view of the counters.
 */
static int64
estimate_rows(Oid relid)
{
	int64		live = DatumGetInt64(DirectFunctionCall1(pg_stat_get_live_tuples,
														 ObjectIdGetDatum(relid)));
	Relation	rel = relation_open(relid, NoLock);
	int64		most = (int64) RelationGetNumberOfBlocks(rel) * MaxHeapTuplesPerPage;

	/* after a crash the one is gone, before the first ANALYZE the other */
	live = Max(live, (int64) Min(rel->rd_rel->reltuples, (double) most));
	relation_close(rel, NoLock);
	return Min(live, most);
}

static int64
estimate_documents(Oid relid)
{
	int64		rows = 0;
	ListCell   *lc;

	foreach(lc, ttl_inherit_tree(relid))
	{
		if (get_rel_relkind(lfirst_oid(lc)) != RELKIND_PARTITIONED_TABLE)
			rows += estimate_rows(lfirst_oid(lc));
	}
	return rows;
}

/* Has a table without partitions no row?  Calls no code of users, as a query could. */
static bool
is_table_empty(Oid relid)
{
	Relation	rel = table_open(relid, NoLock);
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	TableScanDesc scan = ttl_table_beginscan(rel, snapshot);
	bool		empty = !table_scan_getnextslot(scan, ForwardScanDirection, slot);

	table_endscan(scan);
	UnregisterSnapshot(snapshot);
	ExecDropSingleTupleTableSlot(slot);
	table_close(rel, NoLock);
	return empty;
}

/* Has a partition that is locked, with all below it, no row? */
static bool
is_empty(Oid relid)
{
	ListCell   *lc;

	foreach(lc, ttl_inherit_tree(relid))
	{
		/* rows of a foreign table cannot be counted on to stay as they are */
		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_FOREIGN_TABLE ||
			(get_rel_relkind(lfirst_oid(lc)) == RELKIND_RELATION &&
			 !is_table_empty(lfirst_oid(lc))))
			return false;
	}
	return true;
}

/* The name of a relation for a hint, where somebody may be dropping it just now. */
static const char *
name_in_hint(Oid relid)
{
	char	   *name = ttl_name_find(relid);

	return name ? name : "...";
}

/* The command that takes a partition out of its table, and nothing from what depends on it. */
char *
ttl_drop_detach_command(Oid parent, Oid relid)
{
	return psprintf("ALTER TABLE %s DETACH PARTITION %s", name_in_hint(parent),
					name_in_hint(relid));
}

/*
 * What to do about an obstacle.  DROP ... CASCADE of a partition would drop a foreign key to
 * the whole table; once the partition is detached, that does not depend on it.
 */
static char *
obstacle_hint(Oid parent, Oid relid, const char *obstacle)
{
	Oid			pending = find_pending_detach(relid);
	char	   *detach = ttl_drop_detach_command(parent, relid);
	ObjectAddress object;
	char	   *reference = NULL;

	if (OidIsValid(pending))
		return psprintf("%s FINALIZE;",
						ttl_drop_detach_command(ttl_inherit_parent(pending, NULL), pending));
	if (ttl_drop_find_reference(relid, &object))
		reference = getObjectDescription(&object, true);
	if (reference != NULL && strcmp(obstacle, reference) == 0)
		return psprintf("%s; DROP TABLE %s;", detach, name_in_hint(relid));
	return psprintf("%s;", detach);
}

/* Drops a table; the table and its name are locked. */
static void
drop_table(Oid relid)
{
	char	   *name = ttl_name_qualified(relid);

	ttl_citus_run_command(psprintf("DROP TABLE %s", name));
	if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("DROP TABLE %s did not drop partition \"%s\"",
						name, get_rel_name(relid))));
}

/*
 * Is a partition kept as a table?  Not where its rows are archived one by one before, and
 * none is left.
 */
static bool
is_kept(const TtlOption *option, bool empty)
{
	return ttl_detach_is_wanted(option) && !(option->boundary_rows && empty);
}

/*
 * Raises an error if something depends on a partition that is to be dropped, or if it
 * cannot be kept as it is wanted; takes no strong lock for that.
 */
static void
check_obstacles(const TtlIndex *root, Oid relid, bool empty)
{
	char	   *dependent;

	if (is_kept(&root->option, empty))
	{
		ttl_detach_check(root, relid);
		return;
	}
	dependent = ttl_drop_obstacle(relid);
	if (dependent != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
				 errmsg("partition \"%s\" cannot be dropped because of %s",
						get_rel_name(relid), dependent),
				 errhint("%s", obstacle_hint(root->relid, relid, dependent))));
}

/* Drops a partition, or does what is wanted instead, as its owner; the locks are in hand. */
static void
let_go(const TtlIndex *root, const TtlIndex *part, Oid relid, bool keep)
{
	char	   *name = ttl_name_qualified(root->indexrelid);
	TtlUser		saved;

	ttl_owner_become(part->owner, &saved);
	ttl_batch_set_immediate();
	ttl_announce_to_session(name);
	ttl_announce_to_wal(name, ttl_name_qualified(relid), !keep ? NULL :
						ttl_name_qualified(OidIsValid(root->option.archive_to) ?
										   root->option.archive_to : relid));
	/* a foreign key of its own has triggers on another table */
	ttl_lock_limit_waits();
	if (keep)
		ttl_detach_partition(root, relid);
	else
		drop_table(relid);
	ttl_owner_restore(&saved);
}

/*
 * Drops a partition, in the caller's transaction, if it is due at this clock reading and
 * the locks are free soon; or detaches it, or moves it to the archive.
 */
void
ttl_drop_partition(Oid root, Oid relid, TimestampTz at, TtlBatch *batch)
{
	TtlIndex	index;
	TtlIndex	part = {0};
	Oid			parent;
	Oid			archive;
	int64		rows = -1;
	bool		by_row;
	bool		empty;
	bool		keep;

	memset(batch, 0, sizeof(*batch));
	/* what keeps it is found out without a lock on the whole table */
	if (!OidIsValid(parent = IndexGetRelation(root, true)) ||
		!is_droppable(root, relid, &part) || !ttl_catalog_describe(root, false, &index))
	{
		batch->busy = part.state == TTL_TABLE_LOCKED;
		return;
	}
	by_row = index.option.boundary_rows && ttl_detach_is_wanted(&index.option);
	if (by_row && !ttl_drop_lock_tree(relid, ShareLock))
	{
		batch->busy = batch->busy_alone = true;
		return;
	}
	empty = by_row && is_empty(relid);
	if (by_row && !empty && ttl_detach_by_row_only(&index.option))
		return;
	check_obstacles(&index, relid, empty);
	keep = is_kept(&index.option, empty);
	archive = index.option.archive_to;
	/* rows can be counted while nobody writes there; readers go on */
	if (ttl_count_dropped_documents)
	{
		if (!ttl_drop_lock_tree(relid, ShareLock))
		{
			batch->busy = batch->busy_alone = true;
			return;
		}
		if (!is_still_due(root, relid, at, &index, &part))
			return;
		rows = ttl_leaves_count_rows(relid, "true", PG_INT64_MAX);
	}
	if ((keep && !ttl_detach_lock(&index, relid)) || !lock_for_drop(parent, relid, batch) ||
		!ttl_name_lock(parent, false) || !ttl_name_lock(relid, false))
	{
		batch->busy = true;
		return;
	}
	/* what was checked and locked was for what is to become of it */
	if (!is_still_due(root, relid, at, &index, &part) ||
		keep != is_kept(&index.option, empty) || archive != index.option.archive_to)
		return;

	/* nor has code of the owner that was called meanwhile written there */
	if (empty && !is_empty(relid))
		return;
	/* what keeps it may have come while the locks were waited for */
	check_obstacles(&index, relid, empty);
	if (rows < 0)
		rows = empty ? 0 : estimate_documents(relid);
	let_go(&index, &part, relid, keep);
	batch->partitions = 1;
	batch->deleted = rows;
	if (keep)
	{
		batch->archived_partitions = 1;
		batch->archived = rows;
	}
	batch->live = Max(rows, 1); /* an empty one counts too */
}
