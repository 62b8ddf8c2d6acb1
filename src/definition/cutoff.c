/*-------------------------------------------------------------------------
 *
 * cutoff.c
 *	  Up to which key rows are due, and the time zones of keys.
 *
 * A timestamptz is an instant.  A timestamp or date means "key AT TIME ZONE zone", computed by
 * the zone itself, because that operator depends on the session's timezone_abbreviations.  It
 * is not monotonic at changes of summer time: a scan in key order reads up to the greatest key
 * that can be due, and the keys near the cutoff are checked one by one.  Comparing the key is
 * exact if the offset does not change within 26 hours of the cutoff, which is more than zones
 * can differ by.  A number counts from 1970 in its unit (keytype.c).
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "pgtime.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "definition/key.h"
#include "ttl_index.h"

#define NEAR_HOURS 26

static pg_tz *
find_zone(const char *name)
{
	/* an index that has lost its options names none */
	pg_tz	   *zone = name ? pg_tzset(name) : NULL;

	if (zone == NULL)
		elog(ERROR, "time zone \"%s\" not found", name ? name : "");
	return zone;
}

/* What a clock in the zone shows at this instant. */
static Timestamp
local_time(pg_tz *zone, TimestampTz instant)
{
	struct pg_tm tm;
	fsec_t		fsec;
	int			west;

	if (timestamp2tm(instant, &west, &tm, &fsec, NULL, zone) != 0)
		elog(ERROR, "timestamp out of range");
	return instant - west * USECS_PER_SEC;
}

/* Microseconds to days, towards the past, as a date key counts them. */
static int64
day_of(int64 micros)
{
	return micros / USECS_PER_DAY - (micros % USECS_PER_DAY < 0 ? 1 : 0);
}

/* Computes what is due at this clock reading by an index. */
void
ttl_cutoff_init(TtlCutoff *cutoff, const TtlIndex *index, TimestampTz at)
{
	int64		least = 0;
	int64		most = 0;

	cutoff->instant = at - (int64) index->option.seconds * USECS_PER_SEC;
	cutoff->keytype = index->keytype;
	cutoff->zone = NULL;
	cutoff->unit = index->option.unit;
	cutoff->least = ttl_keytype_least(index->keytype);
	if (cutoff->unit != TTL_UNIT_NONE)
	{
		cutoff->bound = cutoff->sure = ttl_keytype_bound(cutoff->unit, cutoff->instant);
		return;
	}
	if (index->keytype == TIMESTAMPTZOID)
	{
		cutoff->bound = cutoff->sure = cutoff->instant;
		return;
	}
	cutoff->zone = find_zone(index->option.time_zone);
	for (int hour = -NEAR_HOURS; hour <= NEAR_HOURS; hour++)
	{
		TimestampTz near = cutoff->instant + hour * USECS_PER_HOUR;
		int64		offset = local_time(cutoff->zone, near) - near;

		if (hour == -NEAR_HOURS || offset < least)
			least = offset;
		if (hour == -NEAR_HOURS || offset > most)
			most = offset;
	}
	cutoff->bound = cutoff->instant + most;
	cutoff->sure = cutoff->instant + least;

	if (index->keytype == DATEOID)
	{
		cutoff->bound = day_of(cutoff->bound);
		cutoff->sure = day_of(cutoff->sure);
	}
}

/* The instant that a key stands for; the first one that there is, if it is before that. */
TimestampTz
ttl_cutoff_instant(const TtlCutoff *cutoff, int64 key)
{
	Timestamp	local = key;

	if (cutoff->unit != TTL_UNIT_NONE)
		return ttl_keytype_instant(cutoff->unit, key);
	/* the midnight of a date; keys up to a cutoff are never too large for that */
	if (cutoff->keytype == DATEOID)
		local = key == DATEVAL_NOBEGIN ? DT_NOBEGIN : key * USECS_PER_DAY;
	if (cutoff->zone == NULL || TIMESTAMP_NOT_FINITE(local))
		return local;
	return ttl_keytype_in_zone(cutoff->zone, local);
}

/* Is a key due?  The instant of one far in the past may be out of range. */
bool
ttl_cutoff_is_due(const TtlCutoff *cutoff, int64 key)
{
	if (key < cutoff->least)
		return false;
	if (key <= cutoff->sure)
		return true;
	if (key > cutoff->bound)
		return false;
	return ttl_cutoff_instant(cutoff, key) <= cutoff->instant;
}

/* Returns the key of a row that is made at this instant; of a date, its midnight. */
int64
ttl_cutoff_clock(const TtlIndex *index, TimestampTz at)
{
	int64		key = at;

	if (index->option.unit != TTL_UNIT_NONE)
		return ttl_keytype_bound(index->option.unit, at);
	if (index->keytype != TIMESTAMPTZOID)
		key = local_time(find_zone(index->option.time_zone), at);
	return index->keytype == DATEOID ? day_of(key) * USECS_PER_DAY : key;
}

/*
 * The operator AT TIME ZONE takes these names for abbreviations of another offset: in summer
 * it is an hour off.  Names such as UTC and EST mean the same as both.
 */
static const char *const ambiguous_names[] = {"CET", "EET", "MET", "WET"};

/*
 * The names of pg_timezone_names.  To list them means to read hundreds of files, and an index
 * can have a zone that is none of them, so the list is kept.
 */
static List *
zone_names(void)
{
	static List *known = NIL;
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext own;
	pg_tzenum  *zones;
	pg_tz	   *zone;
	List	   *names = NIL;

	if (known != NIL)
		return known;
	/* whatever an error leaves here is freed with the caller's memory */
	own = AllocSetContextCreate(caller, "ttl_index time zones", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(own);
	zones = pg_tzenumerate_start();
	while ((zone = pg_tzenumerate_next(zones)) != NULL)
		names = lappend(names, pstrdup(pg_get_timezone_name(zone)));
	pg_tzenumerate_end(zones);
	MemoryContextSwitchTo(caller);
	MemoryContextSetParent(own, TopMemoryContext);
	return known = names;
}

/* Why keys cannot be read in this time zone; NULL if they can. */
char *
ttl_cutoff_zone_problem(const char *name)
{
	ListCell   *lc;

	for (int i = 0; i < lengthof(ambiguous_names); i++)
	{
		if (pg_strcasecmp(name, ambiguous_names[i]) == 0)
			return psprintf("time zone \"%s\" is also an abbreviation with another meaning", name);
	}
	foreach(lc, zone_names())
	{
		if (pg_strcasecmp(name, lfirst(lc)) == 0)
			return NULL;
	}
	return psprintf("time zone \"%s\" is not a name of pg_timezone_names", name);
}
