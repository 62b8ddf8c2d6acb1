/*-------------------------------------------------------------------------
 *
 * pace.h
 *	  How fast rows go, and so when a pass will be over.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/pace.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_PACE_H
#define TTL_PACE_H

/* Rows that a pass deletes one by one. */
typedef struct TtlPace
{
	int64		rows;
	double		weighted;		/* each by the time at which it was deleted,
								 * in microseconds since the pass began */
} TtlPace;

/* pace.c */
extern void ttl_pace_add(TtlPace *pace, int64 rows, int64 took);
extern int64 ttl_pace_rows(const TtlPace *pace, int64 took);
extern int64 ttl_pace_time_left(int64 left, int64 deleted, int64 paced, int64 took);

#endif							/* TTL_PACE_H */
