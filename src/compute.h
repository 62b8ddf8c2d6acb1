/*-------------------------------------------------------------------------
 *
 * compute.h
 *	  What core computes for this extension in the midst of code of others.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/compute.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_COMPUTE_H
#define TTL_COMPUTE_H

#include "nodes/execnodes.h"
#include "nodes/parsenodes.h"
#include "partitioning/partdefs.h"
#include "utils/relcache.h"

extern Node *ttl_compute_folded(Node *expression);
extern Expr *ttl_compute_planned(Expr *expression);
extern Const *ttl_compute_value(Expr *expression, Oid typid, int32 typmod, Oid collation);
extern void ttl_compute_index(Relation index);
extern IndexInfo *ttl_compute_index_info(Relation index);
extern List *ttl_compute_bounds(Relation partition);
extern void ttl_compute_command(const char *command);
extern void ttl_compute_command_of_caller(const char *command);
extern void ttl_compute_select(const char *query, bool read_only);

#endif							/* TTL_COMPUTE_H */
