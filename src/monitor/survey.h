/*-------------------------------------------------------------------------
 *
 * survey.h
 *	  How the TTL indexes of a database are, for those who look from elsewhere.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/survey.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_SURVEY_H
#define TTL_SURVEY_H

#include "datatype/timestamp.h"
#include "storage/dsm.h"

/* What the monitor has done in a database, and how it has found its TTL indexes. */
typedef struct TtlSurvey
{
	TimestampTz pass_start;		/* of the last pass; 0 for none */
	TimestampTz pass_end;		/* of the last pass that has ended, likewise */
	int64		deleted;		/* rows, since the launcher started */
	int64		partitions;		/* dropped, likewise */
	int64		left;			/* about so many rows, of a pass that goes on;
								 * -1: not known, or there is none */
	int64		time_left;		/* for these, in microseconds; -1: likewise */
	TimestampTz at;				/* when the following were found; 0: never */
	int32		indexes;
	int32		not_active;		/* of these, by the view ttl_index.indexes */
	int32		failing;
	int32		paused;
	int32		lag_unknown;
	int64		worst_lag;		/* microseconds; -1: unknown of all */
} TtlSurvey;

/* What the launcher knows of a database. */
typedef struct TtlKnownDatabase
{
	Oid			oid;
	TtlSurvey	survey;
} TtlKnownDatabase;

/* Up to which key the monitor has read an index in which it has deleted much. */
typedef struct TtlKnownIndex
{
	Oid			database;
	Oid			indexrelid;
	int64		key;
} TtlKnownIndex;

/* overview.c */
extern void ttl_overview_write(const TtlKnownDatabase *databases, int count,
							   const TtlKnownIndex *indexes, int index_count);
extern dsm_handle ttl_overview_handle(void);

#endif							/* TTL_SURVEY_H */
