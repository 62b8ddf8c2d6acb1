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

#include "nodes/parsenodes.h"

/* cascade.c */
extern bool ttl_cascade_lock(Oid relid, Oid role);
extern bool ttl_cascade_lock_written(Oid relid);
extern bool ttl_cascade_is_locked(Oid relid);
extern void ttl_cascade_check_read(Oid relid);
extern void ttl_cascade_check_change(const Query *query);
extern void ttl_cascade_init(void);

/* foreign_read.c */
extern void ttl_foreign_read_init(void);

#endif							/* TTL_CASCADE_H */
