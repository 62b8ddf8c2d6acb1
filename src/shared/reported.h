/*-------------------------------------------------------------------------
 *
 * reported.h
 *	  Whether something is to be written to the log again.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/shared/reported.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_REPORTED_H
#define TTL_REPORTED_H

#include "datatype/timestamp.h"

/* What the log was told last of an index, a database or the server (see report.c). */
typedef struct TtlReported
{
	uint32		reason;
	TimestampTz at;				/* 0: nothing, or it is over */
} TtlReported;

/* reported.c */
extern bool ttl_reported_is_news(TtlReported *reported, int sqlerrcode, const char *text);

#endif							/* TTL_REPORTED_H */
