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
#include "expire/index_scan.h"

/* What a lag is told by, the same for all indexes. */
typedef struct TtlLag
{
	TimestampTz at;				/* the clock */
	int			elevel;			/* for what is said where it cannot be told */
	int64		max_tuples;		/* looked at in one place of an index; 0: no
								 * limit */
	/* how far a pass has got in an index; false for none */
	bool		(*find_position) (Oid indexrelid, void *arg, TtlScanPosition *position);
	void	   *arg;
} TtlLag;

/* What is known of the oldest row that is due. */
typedef enum TtlDue
{
	TTL_DUE_UNKNOWN,
	TTL_DUE_NOTHING,
	TTL_DUE_EVER,				/* only rows at -infinity are due */
	TTL_DUE_KNOWN
} TtlDue;

/* due.c */
extern void ttl_due_describe(Oid indexrelid, TtlIndex *index);
extern bool ttl_due_lock_leaf(Oid indexrelid, TtlIndex *index);
extern TtlDue ttl_due_since_leaf(const TtlIndex *leaf, const TtlLag *lag, TimestampTz *since);
extern bool ttl_due_since(Oid indexrelid, const TtlLag *lag, TimestampTz *since);

/* nodes.c */
extern bool ttl_nodes_have(Oid indexrelid);
extern bool ttl_nodes_know(Oid indexrelid);
extern Datum ttl_nodes_ask(Oid indexrelid, const char *call, const char *aggregate,
						   int elevel, bool *isnull);

#endif							/* TTL_DUE_H */
