/*-------------------------------------------------------------------------
 *
 * reported.c
 *	  Whether something is to be written to the log again.
 *
 * A problem of one pass is usually a problem of the next pass, too.  The monitor reports it
 * when it begins, when its reason changes, and once an hour while it lasts.  A TtlReported
 * remembers the last report.  A pass of run_pass() begins with empty ones, so it reports
 * everything.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/shared/reported.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "utils/timestamp.h"

#include "shared/kept.h"

/* A problem that lasts is reported again after this time. */
#define REPEAT (1 * USECS_PER_HOUR)

/* Should this be reported now?  If so, the caller reports it. */
bool
ttl_reported_is_news(TtlReported *reported, int sqlerrcode, const char *text)
{
	TimestampTz now = GetCurrentTimestamp();
	uint32		reason = (uint32) sqlerrcode;

	/* ignore words with digits: numbers, times and keys of rows differ each time */
	while (*text != '\0')
	{
		int			length = strcspn(text, " ");

		if ((int) strcspn(text, "0123456789") >= length)
			reason = hash_combine(reason, hash_bytes((const unsigned char *) text, length));
		text += length;
		text += strspn(text, " ");
	}
	/* the clock may have gone back */
	if (reported->at != 0 && reported->reason == reason &&
		now >= reported->at && now - reported->at < REPEAT)
		return false;
	reported->reason = reason;
	reported->at = now;
	return true;
}
