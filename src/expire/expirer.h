/*-------------------------------------------------------------------------
 *
 * expirer.h
 *	  The state of one batch, for the files that implement it.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_EXPIRER_H
#define TTL_EXPIRER_H

#include "access/tableam.h"
#include "definition/definition.h"
#include "expire/expire.h"
#include "nodes/execnodes.h"
#include "nodes/params.h"
#include "tcop/cmdtag.h"
#include "tcop/dest.h"
#include "utils/queryenvironment.h"
#include "utils/tuplestore.h"

/* A row that the SQL way deletes. */
typedef struct TtlLockedRow
{
	ItemPointerData tid;
	TtlScanPosition entry;		/* of the index, or the row in block order */
} TtlLockedRow;

/* The state of one batch while it runs. */
typedef struct TtlExpirer
{
	Relation	heap;
	Relation	index;
	const TtlCutoff *cutoff;
	TransactionId pass_xid;		/* those before it are older than the pass */
	Snapshot	snapshot;
	TupleTableSlot *slot;		/* the row at hand */
	int64		key;			/* and its key */
	ItemPointerData entry;		/* and the tuple ID in its index entry */
	TableScanDesc scan;			/* of a range of the heap */
	bool		direct;
	const char *root;			/* the TTL index to announce, NULL once done */
	/* to compute the key and the filter of a row */
	IndexInfo  *info;
	EState	   *estate;
	ExprState  *filter;
	/* the SQL way */
	int			nrows;
	TtlLockedRow *rows;
	/* the rows that were deleted, if they are to be moved */
	Relation	archive;		/* to here; NULL if they are not */
	Tuplestorestate *moved;
	List	   *values;			/* for the columns of the archive */
	TtlBatch   *batch;
} TtlExpirer;

/* row.c */
extern void ttl_row_begin(TtlExpirer *x);
extern void ttl_row_end(TtlExpirer *x);
extern void ttl_row_scan(TtlExpirer *x, ItemPointer first, ItemPointer last);
extern bool ttl_row_is_due(TtlExpirer *x);
extern bool ttl_row_is_older(TtlExpirer *x, TransactionId xid);
extern void ttl_row_delete(TtlExpirer *x);
extern void ttl_row_delete_locked(TtlExpirer *x);

/* query.c */
extern bool ttl_query_is_plain(Relation rel, CmdType command);
extern Query *ttl_query_make_delete(Relation rel, Node *condition, bool returns_rows);
extern Query *ttl_query_make_insert(Relation to, List *values, QueryEnvironment *env, char *rows);
extern List *ttl_query_plan(Query *query, const char *name);
extern int64 ttl_query_run(List *plans, CommandTag tag, ParamListInfo params,
						   QueryEnvironment *env, const char *name, DestReceiver *dest);

/* cascade.c */
extern bool ttl_cascade_lock(Relation rel);

/* by_value.c */
extern void ttl_by_value_take(TtlExpirer *x, const TtlIndex *index, int max_docs);

/* move.c */
extern bool ttl_move_begin(TtlExpirer *x, const TtlIndex *index);
extern void ttl_move_end(TtlExpirer *x);

/* index_order.c */
extern void ttl_index_order_take(TtlExpirer *x, int max_docs, int64 max_entries);

/* block_order.c */
extern bool ttl_block_order_is_better(TtlExpirer *x, int blocks, int count);
extern void ttl_block_order_take(TtlExpirer *x, int max_docs, int64 max_entries);

#endif							/* TTL_EXPIRER_H */
