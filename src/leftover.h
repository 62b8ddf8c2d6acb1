/*-------------------------------------------------------------------------
 *
 * leftover.h
 *	  What the code of one owner must not leave to that of others in a process.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/leftover.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_LEFTOVER_H
#define TTL_LEFTOVER_H

/* leftover.c */
extern void ttl_leftover_init(void);
extern Oid	ttl_leftover_begin(Oid new_role);
extern void ttl_leftover_end(Oid old_role);

#endif							/* TTL_LEFTOVER_H */
