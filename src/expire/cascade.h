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

/* What is looked at where a foreign key leads to a table. */
typedef enum TtlCheck
{
	TTL_CHECK_READ,				/* that nobody else has code there */
	TTL_CHECK_CHANGE,			/* that somebody else's has not more rights */
	TTL_CHECK_CODE				/* that none is in its definition */
} TtlCheck;

/* cascade.c */
extern bool ttl_cascade_lock(Oid relid, Oid role);
extern bool ttl_cascade_lock_written(Oid relid);
extern bool ttl_cascade_is_locked(Oid relid);
extern void ttl_cascade_check_read(Oid relid);
extern void ttl_cascade_check_change(const Query *query);
extern void ttl_cascade_init(void);

/* checked.c */
extern bool ttl_checked_find(Oid relid, Oid role, TtlCheck check, uint64 *since);
extern void ttl_checked_add(Oid relid, Oid role, TtlCheck check, uint64 since);
extern void ttl_checked_init(void);

/* foreign_read.c */
extern void ttl_foreign_read_init(void);

#endif							/* TTL_CASCADE_H */
