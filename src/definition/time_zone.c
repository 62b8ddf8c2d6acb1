/*-------------------------------------------------------------------------
 *
 * time_zone.c
 *	  The time zones of keys that name no instant by themselves.
 *
 * Only names of pg_timezone_names are taken: a typo like Berlin+3 is a valid POSIX
 * zone.  Names that are also an abbreviation of something else are refused, as the
 * operator AT TIME ZONE takes them for that.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/definition/time_zone.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pgtime.h"
#include "utils/memutils.h"

#include "definition/key.h"
#include "ttl_index.h"

/*
 * Is this also an abbreviation for another offset?  In summer CET is an hour off 'AT TIME
 * ZONE'.  Names such as UTC and EST mean the same as both.
 */
bool
ttl_time_zone_is_ambiguous(const char *name)
{
	static const char *const ambiguous[] = {"CET", "EET", "MET", "WET"};

	for (int i = 0; i < lengthof(ambiguous); i++)
	{
		if (pg_strcasecmp(name, ambiguous[i]) == 0)
			return true;
	}
	return false;
}

/*
 * The names of pg_timezone_names.  To list them means to read hundreds of files, and an index
 * can have a zone that is none of them, so the list is kept.
 */
static List *
zone_names(void)
{
	static List *known = NIL;
	MemoryContext caller;
	MemoryContext own;
	pg_tzenum  *zones;
	pg_tz	   *zone;
	List	   *names = NIL;

	if (known != NIL)
		return known;
	/* whatever an error leaves here is freed with the caller's memory */
	own = AllocSetContextCreate(CurrentMemoryContext, "ttl_index time zones",
								ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(own);
	zones = pg_tzenumerate_start();
	while ((zone = pg_tzenumerate_next(zones)) != NULL)
		names = lappend(names, pstrdup(pg_get_timezone_name(zone)));
	pg_tzenumerate_end(zones);
	MemoryContextSwitchTo(caller);
	MemoryContextSetParent(own, TopMemoryContext);
	return known = names;
}

/* Is this a name of pg_timezone_names?  Core's lookup accepts any POSIX specification, too. */
bool
ttl_time_zone_ok(const char *name)
{
	ListCell   *lc;

	if (ttl_time_zone_is_ambiguous(name))
		return false;
	foreach(lc, zone_names())
	{
		if (pg_strcasecmp(name, lfirst(lc)) == 0)
			return true;
	}
	return false;
}
