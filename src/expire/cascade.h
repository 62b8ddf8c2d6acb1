/*-------------------------------------------------------------------------
 *
 * cascade.h
 *	  Where foreign keys lead to from a batch.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/cascade.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_CASCADE_H
#define TTL_CASCADE_H

#include "nodes/params.h"
#include "nodes/parsenodes.h"
#include "tcop/dest.h"
#include "utils/queryenvironment.h"

/* cascade.c */
extern bool ttl_cascade_lock(Oid relid, Oid role);
extern bool ttl_cascade_lock_written(Oid relid);
extern bool ttl_cascade_is_locked(Oid relid);
extern void ttl_cascade_check_read(Oid relid);
extern void ttl_cascade_check_query(const Query *query, const char *text);
extern int64 ttl_cascade_run(Query *query, ParamListInfo params, QueryEnvironment *env,
							 const char *name, DestReceiver *dest);

/* foreign_read.c */
extern void ttl_foreign_read_init(void);

#endif							/* TTL_CASCADE_H */
