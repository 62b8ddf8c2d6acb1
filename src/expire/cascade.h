/*-------------------------------------------------------------------------
 *
 * cascade.h
 *	  Locking the tables that foreign keys lead to from a table.
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

/* cascade.c */
extern bool ttl_cascade_lock(Oid relid, Oid role);

#endif							/* TTL_CASCADE_H */
