/*-------------------------------------------------------------------------
 *
 * expire.h
 *	  Deleting the rows of one index.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_EXPIRE_H
#define TTL_EXPIRE_H

#include "access/xlogdefs.h"
#include "definition/key.h"
#include "expire/look.h"

/* So many rows that could not be deleted are known by their key and tuple ID. */
#define TTL_KNOWN_FAILURES 16

/* What a batch could see: nothing that was written later. */
typedef struct TtlHorizon
{
	bool		set;
	XLogRecPtr	lsn;			/* pages with a later LSN have changed since;
								 * invalid if pages have none */
	TransactionId xmin;			/* all transactions before this one had ended */
} TtlHorizon;

#define TTL_REREAD_BITS 1024

/* Rows that were met and could not be taken yet: a bit for each, by its tuple ID. */
typedef struct TtlReread
{
	TtlRange	keys;			/* of these rows */
	uint32		rows[TTL_REREAD_BITS / 32];
} TtlReread;

/* What the next batch of an index does (see cursor.c). */
typedef enum TtlPhase
{
	TTL_FORWARD,
	TTL_BLOCK_ORDER,
	TTL_CATCH_UP
} TtlPhase;

/* Where the next batch of an index continues (see cursor.c). */
typedef struct TtlCursor
{
	Oid			indexrelid;
	Oid			filenode;		/* positions are of this file of the index */
	TtlPhase	phase;
	bool		keep;			/* the next pass continues here */
	/* FORWARD; BLOCK ORDER moves forward.tid, and forward.key never ahead */
	TtlScanPosition forward;	/* the last entry that was read */
	int64		entries_read;	/* in this pass */
	bool		order_decided;	/* BLOCK ORDER was considered in this pass */
	bool		exhausted;		/* nothing more is due after `forward` */
	bool		caught_up;		/* this visit had its round, or it must wait */
	/* CATCH UP */
	TtlHorizon	seen;			/* what the previous round could see */
	TtlHorizon	round;			/* what this round can see */
	TtlScanPosition catch_up;	/* the last entry that this round has read */
	TtlReread	reread;			/* its leaf pages are read, changed or not */
	TtlReread	reread_next;	/* the same for the next round */
	bool		thorough;		/* this round reads all leaf pages */
	bool		at_once;		/* and has not waited for retry_at */
	int64		found;			/* rows that were deleted since the previous
								 * round ended */
	int64		pages;			/* leaf pages that this round has read */
	int64		steps;			/* leaf pages and entries */
	TimestampTz rest_until;		/* no round before this time */
	/* rows that could not be deleted, or that a trigger kept */
	bool		rows_remain;	/* there are such rows */
	bool		rows_wait;		/* since the last round, some were found that
								 * wait for others of the table */
	int			nfailures;
	TtlScanPosition failures[TTL_KNOWN_FAILURES];	/* key known if set */
	TimestampTz retry_at;		/* when a thorough round tries them again */
	int			delay;			/* minutes until then */
} TtlCursor;

/* What a batch did. */
typedef struct TtlBatch
{
	bool		careful;		/* if its DELETE fails, find the rows that can
								 * be deleted */
	bool		busy;			/* table or index locked by others */
	bool		inactive;		/* the index is not active: nothing was done */
	bool		exhausted;		/* nothing more up to the cutoff */
	bool		past_pass;		/* what remains was not yet due when the pass
								 * began */
	bool		from_before;	/* FORWARD met rows that may be older than the
								 * pass */
	int64		candidates;		/* entries, or rows in block order, looked at */
	int64		live;			/* rows that were found due */
	int64		deleted;
	int64		partitions;		/* dropped */
	int64		estimated;		/* rows of these, where they were not counted */
	bool		rows_first;		/* a partition waits for its rows to go */
	int64		archived;		/* of the deleted rows, and */
	int64		archived_partitions;	/* of these, those that are kept
										 * elsewhere */
	bool		moves;			/* rows are moved to another table */
	bool		inserts;		/* rows there, while waits are limited */
	bool		elsewhere;		/* another server takes part */
	bool		by_value;		/* all nodes of Citus do (see by_value.c) */
	bool		locks_copies;	/* it is locking the copies there */
	int64		skipped_locked;
	int64		failed;			/* rows that could not be deleted */
	ErrorData  *edata;			/* and the first error, else NULL */
	bool		waits;			/* rows wait for other rows of the table */
	int64		skipped_kept;	/* by a trigger that returned NULL */
	int64		pages;			/* leaf pages of the index that were read */
	TtlHorizon	horizon;		/* what it could see */
	TtlScanPosition row;		/* the row in block order; key known if set */
	TtlCursor	cursor;			/* where the next batch continues */
} TtlBatch;

/* batch.c */
extern void ttl_batch_announce_to_session(const char *root);
extern void ttl_batch_announce_to_wal(const char *root, const char *partition,
									  const char *archive);
extern void ttl_batch_set_immediate(void);
extern bool ttl_batch_lock(Oid relid, Oid indexrelid);
extern void ttl_batch_run(const TtlIndex *index, const TtlCutoff *cutoff,
						  const TtlCutoff *pass_cutoff,
						  TransactionId pass_xid, int max_docs, int64 max_entries,
						  TtlBatch *batch);

/* cursor.c */
extern void ttl_cursor_init(TtlCursor *cursor, Oid indexrelid, Oid filenode);
extern void ttl_cursor_reread(TtlCursor *cursor, int64 key, const ItemPointerData *tid);
extern void ttl_cursor_pull_back(TtlCursor *cursor, int64 key);
extern bool ttl_cursor_begin_pass(TtlCursor *cursor, TimestampTz now);
extern void ttl_cursor_begin_visit(TtlCursor *cursor);
extern bool ttl_cursor_has_failed(const TtlCursor *cursor, const int64 *key,
								  ItemPointer tid);
extern bool ttl_cursor_rows_failed(const TtlCursor *cursor);
extern bool ttl_cursor_read_to(const TtlCursor *cursor, int64 *key);
extern bool ttl_cursor_judges_by_age(const TtlCursor *cursor, const ItemPointerData *tid);
extern bool ttl_cursor_batch_done(TtlCursor *cursor, TtlBatch *batch,
								  TimestampTz now);
extern void ttl_cursor_note_failed(TtlCursor *cursor, const TtlScanPosition *row);
extern void ttl_cursor_row_failed(TtlCursor *cursor, const TtlBatch *batch,
								  TimestampTz now);

#endif							/* TTL_EXPIRE_H */
