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

/* What share of a table is due by a TTL index, and which dates a sample of the index has. */
typedef struct TtlShare
{
	double		due;			/* rows */
	double		total;			/* rows of the table */
	double		looked;			/* rows of the partitions that were looked at */
	int			partitions;		/* due as a whole */
	int64		rows;			/* in the sample */
	int64		dates;			/* of these */
	int64		past;			/* dates before February 1970 */
	int64		future;			/* dates after the year 9999 */
} TtlShare;

/* Of a smaller table, any share may be deleted. */
#define TTL_SHARE_ROWS 10000

/* due.c */
extern bool ttl_due_may_look(const TtlIndex *index);
extern void ttl_due_describe(Oid indexrelid, bool check_user, TtlIndex *index);
extern bool ttl_due_lock(Oid relid, Oid indexrelid);
extern bool ttl_due_lock_leaf(Oid indexrelid, TtlIndex *index);
extern bool ttl_due_since(Oid indexrelid, const TtlLag *lag, TimestampTz *since,
						  bool *may_be_due);
extern Datum ttl_due_ask_nodes(Oid indexrelid, const char *call, const char *aggregate,
							   int elevel, bool *isnull);

/* share.c */
extern void ttl_share_find(const TtlIndex *index, TimestampTz at, TimestampTz until,
						   TtlShare *share);
extern char *ttl_share_doubt(const TtlIndex *index);
extern char *ttl_share_text(const TtlIndex *index, const TtlShare *share);

#endif							/* TTL_DUE_H */
