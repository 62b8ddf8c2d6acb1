/*-------------------------------------------------------------------------
 *
 * time_zone.c
 *	  The time zones of keys that are no instants by themselves.
 *
 * Only names of pg_timezone_names are accepted: a typo like Berlin+3 is a valid POSIX zone.
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
ttl_time_zone_problem(const char *name)
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
