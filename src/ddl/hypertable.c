/*-------------------------------------------------------------------------
 *
 * hypertable.c
 *	  Refuses TTL indexes of TimescaleDB's hypertables by CREATE INDEX.
 *
 * TimescaleDB executes CREATE INDEX on a hypertable itself, and no event trigger is told
 * of it.  Its library is loaded after all others, so that no hook for utility commands
 * gets to see the command either.  What is left is the hook that core calls for each new
 * object.  Without the library preloaded, the index is made, and has the state hypertable.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/ddl/hypertable.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "utils/fmgroids.h"
#include "utils/snapmgr.h"

#include "ddl/ddl.h"
#include "definition/definition.h"
#include "ttl_index.h"

static object_access_hook_type next_object_access = NULL;

/*
 * Raises an error where a new index of a hypertable has the option.  What a chunk gets
 * later must not fail: a hypertable can be made of a table that has a TTL index.
 */
static void
check_index(HeapTuple tuple)
{
	Form_pg_index form = (Form_pg_index) GETSTRUCT(tuple);
	TtlIndex	index = {.indexrelid = form->indexrelid,.relid = form->indrelid};
	TtlFunctions functions;

	index.state = ttl_reach_state(form->indrelid, &index.citus);
	if (index.state == TTL_HYPERTABLE &&
		!OidIsValid(ttl_inherit_parent(form->indrelid, NULL)) &&
		ttl_function_lookup(&functions) &&
		ttl_option_is_within(ttl_option_stored_tree(tuple, Anum_pg_index_indpred),
							 &functions))
		ttl_state_raise(&index);
}

/* Checks a new relation, if it is an index: its rows are not visible to syscaches yet. */
static void
check_relation(Oid relid)
{
	Relation	rel = table_open(IndexRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_index_indexrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, IndexRelidIndexId, true, SnapshotSelf, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		check_index(tuple);
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
}

static void
object_access(ObjectAccessType access, Oid classId, Oid objectId, int subId, void *arg)
{
	if (next_object_access)
		next_object_access(access, classId, objectId, subId, arg);
	if (access == OAT_POST_CREATE && classId == RelationRelationId && subId == 0 &&
		ttl_reach_has_hypertables())
		check_relation(objectId);
}

void
ttl_hypertable_init(void)
{
	next_object_access = object_access_hook;
	object_access_hook = object_access;
}
