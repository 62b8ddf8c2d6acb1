/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  The differences between PostgreSQL 15 to 19, each behind the newest
 *	  spelling.  No other file looks at PG_VERSION_NUM.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/compat.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_COMPAT_H
#define TTL_COMPAT_H

#include "access/genam.h"
#include "access/tableam.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "utils/acl.h"
#include "utils/backend_status.h"
#include "utils/snapmgr.h"

#if PG_VERSION_NUM < 150000
#error "ttl_index needs PostgreSQL 15 or later"
#endif

/* One function for all classes of objects since 16. */
#if PG_VERSION_NUM < 160000
static inline bool
object_ownercheck(Oid classid, Oid objectid, Oid roleid)
{
	Assert(classid == RelationRelationId);
	return pg_class_ownercheck(objectid, roleid);
}

static inline AclResult
object_aclcheck(Oid classid, Oid objectid, Oid roleid, AclMode mode)
{
	if (classid == ProcedureRelationId)
		return pg_proc_aclcheck(objectid, roleid, mode);
	Assert(classid == NamespaceRelationId);
	return pg_namespace_aclcheck(objectid, roleid, mode);
}
#endif

/* Renamed in 16, when backend IDs and array indexes were told apart. */
#if PG_VERSION_NUM < 160000
#define pgstat_get_local_beentry_by_index(i) pgstat_fetch_stat_local_beentry(i)
#endif

/* The instrumentation came with 18, the flags with 19. */
static inline IndexScanDesc
ttl_index_beginscan(Relation heap, Relation index, Snapshot snapshot, int nkeys)
{
#if PG_VERSION_NUM >= 190000
	return index_beginscan(heap, index, snapshot, NULL, nkeys, 0, SO_NONE);
#elif PG_VERSION_NUM >= 180000
	return index_beginscan(heap, index, snapshot, NULL, nkeys, 0);
#else
	return index_beginscan(heap, index, snapshot, nkeys, 0);
#endif
}

/* Flags since 19. */
static inline TableScanDesc
ttl_table_beginscan(Relation rel, Snapshot snapshot)
{
#if PG_VERSION_NUM >= 190000
	return table_beginscan(rel, snapshot, 0, NULL, SO_NONE);
#else
	return table_beginscan(rel, snapshot, 0, NULL);
#endif
}

/* Since 19 DROP DATABASE and its like may end a worker at once. */
#ifndef BGWORKER_INTERRUPTIBLE
#define BGWORKER_INTERRUPTIBLE 0
#endif

#endif							/* TTL_COMPAT_H */
