/*-------------------------------------------------------------------------
 *
 * due.h
 *	  What is due by a TTL index.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_DUE_H
#define TTL_DUE_H

#include "definition/definition.h"
#include "expire/look.h"

/* How ttl_due_since() looks at an index. */
typedef struct TtlLag
{
	TimestampTz at;				/* the clock */
	int			elevel;			/* of the message if the lag cannot be told */
	int64		max_tuples;		/* looked at in one place of an index; 0: no
								 * limit */
	/* how far a pass has read an index; false if that is unknown */
	bool		(*find_position) (Oid indexrelid, void *arg, TtlScanPosition *position);
	void	   *arg;
} TtlLag;

/* due.c */
extern void ttl_due_describe(Oid indexrelid, bool check_user, TtlIndex *index);
extern bool ttl_due_lock(Oid relid, Oid indexrelid);
extern bool ttl_due_lock_leaf(Oid indexrelid, TtlIndex *index);
extern bool ttl_due_since(Oid indexrelid, const TtlLag *lag, TimestampTz *since,
						  bool *may_be_due);
extern Datum ttl_due_ask_nodes(Oid indexrelid, const char *call, const char *aggregate,
							   int elevel, bool *isnull);

#endif							/* TTL_DUE_H */
