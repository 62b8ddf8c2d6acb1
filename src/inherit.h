/*-------------------------------------------------------------------------
 *
 * inherit.h
 *	  What is below and above a relation.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/inherit.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_INHERIT_H
#define TTL_INHERIT_H

#include "nodes/pg_list.h"
#include "storage/lockdefs.h"

extern List *ttl_inherit_children(Oid relid, bool detaching);
extern List *ttl_inherit_tree(Oid relid);
extern List *ttl_inherit_partitions(Oid relid, LOCKMODE lockmode);
extern List *ttl_inherit_foreign_tables(Oid relid);
extern List *ttl_inherit_parents(Oid relid);
extern Oid	ttl_inherit_parent(Oid relid, bool *detaching);
extern Oid	ttl_inherit_top(Oid relid);

#endif							/* TTL_INHERIT_H */
