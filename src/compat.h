/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  The differences between PostgreSQL 15 to 19, in the newest spelling.
 *	  No other file reads PG_VERSION_NUM.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_COMPAT_H
#define TTL_COMPAT_H

#include "access/nbtree.h"
#include "access/tableam.h"
#include "parser/parse_node.h"
#include "replication/message.h"
#include "replication/slot.h"
#include "storage/lwlock.h"
#include "tcop/pquery.h"
#include "utils/acl.h"
#include "utils/backend_status.h"
#include "utils/wait_event.h"

#if PG_VERSION_NUM < 150000
#error "ttl_index needs PostgreSQL 15 or later"
#endif

/* One function for all classes of objects since 16; only schemas are checked. */
#if PG_VERSION_NUM < 160000
#define object_aclcheck(classid, objectid, roleid, mode) pg_namespace_aclcheck(objectid, roleid, mode)
#endif

/* Since 18 a constraint need not be enforced, nor a generated column be stored. */
#if PG_VERSION_NUM < 180000
#define TTL_ENFORCE(constraint) ((void) 0)
#define TTL_EXPAND_VIRTUAL(node, rel) (node)
#else
#define TTL_ENFORCE(constraint) ((constraint)->is_enforced = true)
#define TTL_EXPAND_VIRTUAL(node, rel) expand_generated_columns_in_expr(node, rel, 1)
#endif

/* Makes the index entries of a new row; no constraint is deferred. */
#if PG_VERSION_NUM >= 190000
#define TTL_INSERT_INDEX_ENTRIES(table, slot, estate) \
	ExecInsertIndexTuples(table, estate, 0, slot, NIL, NULL)
#elif PG_VERSION_NUM >= 160000
#define TTL_INSERT_INDEX_ENTRIES(table, slot, estate) \
	ExecInsertIndexTuples(table, slot, estate, false, false, NULL, NIL, false)
#else
#define TTL_INSERT_INDEX_ENTRIES(table, slot, estate) \
	ExecInsertIndexTuples(table, slot, estate, false, false, NULL, NIL)
#endif

/* Since 18 an AFTER trigger runs as the user who queued it, before as the user of the outer command. */
#define TTL_TRIGGERS_RUN_AS_QUEUED (PG_VERSION_NUM >= 180000)

/* A plain number, and a handler as of C, before 19. */
#if PG_VERSION_NUM < 190000
#define PG_SIG_IGN SIG_IGN
typedef int SysCacheIdentifier;
#endif

/* Since 17 a dshash table copies its keys by a function. */
#if PG_VERSION_NUM >= 170000
#define TTL_DSHASH_COPY .copy_function = dshash_memcpy,
#else
#define TTL_DSHASH_COPY
#endif

/* Its locks are hardly ever waited for, and each launcher would use up a tranche of its own. */
#define TTL_DSHASH_PARAMETERS(key, entry) \
	{.key_size = sizeof(key), .entry_size = sizeof(entry), .compare_function = dshash_memcmp, \
		.hash_function = dshash_memhash, TTL_DSHASH_COPY \
		.tranche_id = LWTRANCHE_PARALLEL_QUERY_DSA}

/* Renamed in 16, when backend IDs and array indexes were told apart. */
#if PG_VERSION_NUM < 160000
#define pgstat_get_local_beentry_by_index(i) pgstat_fetch_stat_local_beentry(i)
#endif

/* Descends to the leaf page of a key, and returns it pinned and locked for reading. */
static inline Buffer
ttl_bt_search(Relation index, Relation heap, BTScanInsert key)
{
	Buffer		buffer;

#if PG_VERSION_NUM >= 190000
	(void) _bt_search(index, heap, key, &buffer, BT_READ, false);
#elif PG_VERSION_NUM >= 170000
	_bt_freestack(_bt_search(index, heap, key, &buffer, BT_READ));
#elif PG_VERSION_NUM >= 160000
	_bt_freestack(_bt_search(index, heap, key, &buffer, BT_READ, NULL));
#else
	(void) heap;
	_bt_freestack(_bt_search(index, key, &buffer, BT_READ, NULL));
#endif
	return buffer;
}

/* Deletes a row without waiting, and begins scans: all take options or flags since 19. */
#if PG_VERSION_NUM >= 190000
#define ttl_tuple_delete(rel, tid, cid, snapshot, failure) \
	table_tuple_delete(rel, tid, cid, 0, snapshot, InvalidSnapshot, false, failure)
#define ttl_index_fetch_begin(rel) table_index_fetch_begin(rel, SO_NONE)
#define ttl_beginscan_tidrange(rel, snapshot, first, last) \
	table_beginscan_tidrange(rel, snapshot, first, last, SO_NONE)
#define ttl_table_beginscan(rel, snapshot) table_beginscan(rel, snapshot, 0, NULL, SO_NONE)
#else
#define ttl_tuple_delete(rel, tid, cid, snapshot, failure) \
	table_tuple_delete(rel, tid, cid, snapshot, InvalidSnapshot, false, failure, false)
#define ttl_index_fetch_begin(rel) table_index_fetch_begin(rel)
#define ttl_beginscan_tidrange(rel, snapshot, first, last) \
	table_beginscan_tidrange(rel, snapshot, first, last)
#define ttl_table_beginscan(rel, snapshot) table_beginscan(rel, snapshot, 0, NULL)
#endif

/* The table of a query that is written as a tree; its privileges moved with 16. */
static inline void
ttl_query_take_table(Query *query, ParseState *pstate, ParseNamespaceItem *item,
					 AclMode needed)
{
	query->rtable = pstate->p_rtable;
#if PG_VERSION_NUM >= 160000
	item->p_perminfo->requiredPerms = needed;
	query->rteperminfos = pstate->p_rteperminfos;
#else
	item->p_rte->requiredPerms = needed;
#endif
}

/* Since 17 a message of logical decoding can be flushed, and a wait event be one's own. */
#if PG_VERSION_NUM >= 170000
#define ttl_log_logical_message(prefix, message, size) \
	((void) LogLogicalMessage(prefix, message, size, true, false))
#define ttl_wait_event(name) WaitEventExtensionNew(name)
#else
#define ttl_log_logical_message(prefix, message, size) \
	((void) LogLogicalMessage(prefix, message, size, true))
#define ttl_wait_event(name) PG_WAIT_EXTENSION
#endif

/* Up to 17 the caller says that the portal is run once. */
#if PG_VERSION_NUM >= 180000
#define ttl_portal_run(portal, dest, completion) \
	PortalRun(portal, FETCH_ALL, false, dest, dest, completion)
#else
#define ttl_portal_run(portal, dest, completion) \
	PortalRun(portal, FETCH_ALL, false, true, dest, dest, completion)
#endif

/*
 * Does a replication slot no longer retain WAL?  The caller holds its mutex.  Before 16 there
 * was a single cause of invalidation, which also clears restart_lsn.
 */
#if PG_VERSION_NUM >= 160000
#define ttl_slot_is_invalidated(slot) ((slot)->data.invalidated != RS_INVAL_NONE)
#else
#define ttl_slot_is_invalidated(slot) (!XLogRecPtrIsInvalid((slot)->data.invalidated_at))
#endif

/* 15 has a kind of its own for a column that is dropped in children, too. */
#if PG_VERSION_NUM < 160000
#define TTL_IS_DROP_COLUMN(subtype) \
	((subtype) == AT_DropColumn || (subtype) == AT_DropColumnRecurse)
#else
#define TTL_IS_DROP_COLUMN(subtype) ((subtype) == AT_DropColumn)
#endif

#endif							/* TTL_COMPAT_H */
