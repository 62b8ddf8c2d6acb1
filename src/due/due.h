/*-------------------------------------------------------------------------
 *
 * due.h
 *	  Who may look at what is due, and a lock for it.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/due/due.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_DUE_H
#define TTL_DUE_H

#include "definition/definition.h"

/* due.c */
extern void ttl_due_describe(Oid indexrelid, TtlIndex *index);
extern bool ttl_due_lock_leaf(Oid indexrelid, TtlIndex *index);

#endif							/* TTL_DUE_H */
