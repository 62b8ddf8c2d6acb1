/*-------------------------------------------------------------------------
 *
 * partition.h
 *	  Dropping, detaching and creating whole partitions.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_PARTITION_H
#define TTL_PARTITION_H

#include "definition/key.h"
#include "expire/expire.h"

/* An index that holds rows, of which a pass would delete some. */
typedef struct TtlDueLeaf
{
	Oid			indexrelid;
	TimestampTz since;			/* when its partition became due, which is
								 * dropped; -infinity if rows are deleted one
								 * by one */
} TtlDueLeaf;

/* leaves.c */
extern bool ttl_leaves_partition_is_due(const TtlPartition *partition, const TtlCutoff *cutoff);
extern bool ttl_leaves_table_is_due(const TtlIndex *index, Oid relid, TimestampTz at);
extern List *ttl_leaves_by_row(Oid root);
extern bool ttl_leaves_is_by_row(const TtlIndex *leaf);
extern List *ttl_leaves_due(const TtlIndex *index, TimestampTz at);

/* drop.c */
extern List *ttl_drop_due(const TtlIndex *root, TimestampTz at);
extern char *ttl_drop_detach_command(Oid parent, Oid relid);
extern void ttl_drop_partition(Oid indexrelid, Oid relid, TimestampTz at,
							   TtlBatch *batch);

/* detach.c */
extern bool ttl_detach_is_attachable(const TtlIndex *root);
extern bool ttl_detach_by_row_only(const TtlOption *option);
extern void ttl_detach_check(const TtlIndex *root, Oid relid);
extern bool ttl_detach_is_referenced(Oid relid, bool check);
extern void ttl_detach_partition(const TtlIndex *root, Oid relid);

/* make.c */
extern List *ttl_make_wanted(const TtlIndex *root, TimestampTz at);
extern void ttl_make_partition(Oid indexrelid, const TtlPartition *partition,
							   TtlBatch *batch);
extern void ttl_make_follow_table(Oid parent, const char *name);
extern void ttl_make_attach(const TtlIndex *root, const TtlPartition *partition);
extern List *ttl_make_missing(const TtlIndex *root, TimestampTz at, int64 ahead);
extern char *ttl_make_name(const TtlIndex *root, const TtlPartition *partition);
extern char *ttl_make_bounds(const TtlIndex *root, const TtlPartition *partition);

#endif							/* TTL_PARTITION_H */
