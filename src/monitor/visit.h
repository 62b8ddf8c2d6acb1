/*-------------------------------------------------------------------------
 *
 * visit.h
 *	  What a visit to a TTL index is made of.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/visit.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_VISIT_H
#define TTL_VISIT_H

#include "expire/expire.h"
#include "monitor/pass.h"

/* attempt.c */
extern void ttl_attempt_batch(TtlRun *run, Oid root, Oid leaf, TtlVisit *visit, TtlCursor *cursor,
							  int size);
extern bool ttl_attempt_died(void);

/* outcome.c */
extern bool ttl_outcome_is_skipped(const TtlRun *run, Oid relid);
extern bool ttl_outcome_hangs(const TtlRun *run, Oid relid);
extern bool ttl_outcome_is_long(const TtlRun *run, TimestampTz now);
extern bool ttl_outcome_note_failed(TtlRun *run, Oid relid, bool skipped);
extern void ttl_outcome_note_error(TtlRun *run, Oid root, Oid indexrelid, const ErrorData *edata,
								   bool timed_out);
extern void ttl_outcome_set_error(TtlCount *count, Oid role, const ErrorData *edata);
extern bool ttl_outcome_count(Oid root, const TtlVisit *visit, const TtlBatch *batch,
							  bool skipped, const ErrorData *edata, double milliseconds);
extern void ttl_outcome_counted(TtlRun *run, TtlVisit *visit, const TtlBatch *batch);

/* visit.c */
extern void ttl_visit_target(TtlRun *run, TtlSubPass *sub, TtlTarget *target);

/* visit_partitions.c */
extern bool ttl_visit_partitions(TtlRun *run, const TtlTarget *target, TtlVisit *visit, bool makes);

#endif							/* TTL_VISIT_H */
