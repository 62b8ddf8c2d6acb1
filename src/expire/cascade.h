/*-------------------------------------------------------------------------
 *
 * cascade.h
 *	  Locking the tables that the foreign keys of a batch lead to.
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

extern bool ttl_cascade_lock(Oid relid);
extern bool ttl_cascade_is_locked(Oid relid);

#endif							/* TTL_CASCADE_H */
