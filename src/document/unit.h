/*-------------------------------------------------------------------------
 *
 * unit.h
 *	  Numbers and local times that stand for dates.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_UNIT_H
#define TTL_UNIT_H

#include "pgtime.h"
#include "datatype/timestamp.h"
#include "utils/numeric.h"

/* What a number counts since 1970.  A UUID of version 7 begins with milliseconds. */
typedef enum TtlUnit
{
	TTL_UNIT_NONE,				/* it is no number */
	TTL_UNIT_SECONDS,
	TTL_UNIT_MILLISECONDS,
	TTL_UNIT_MICROSECONDS,
	TTL_UNIT_NANOSECONDS,
	TTL_UNIT_UUIDV7
} TtlUnit;

#define TTL_UNIT_NAMES "seconds, milliseconds, microseconds, nanoseconds or uuidv7"

/* The rest of a whole number, the last one of those that are rounded up to it. */
#define TTL_UNIT_WHOLE PG_UINT64_MAX

/* So many digits of a numeric's fraction are in the rest. */
#define TTL_UNIT_FRACTION_DIGITS 18

extern TtlUnit ttl_unit_find(const char *name);
extern const char *ttl_unit_name(TtlUnit unit);
extern int64 ttl_unit_per_second(TtlUnit unit);
extern int64 ttl_unit_number(TtlUnit unit, TimestampTz at);
extern TimestampTz ttl_unit_instant(TtlUnit unit, int64 number);
extern int64 ttl_unit_read_numeric(Numeric number, uint64 *rest);
extern TimestampTz ttl_unit_in_zone(pg_tz *zone, Timestamp local);

#endif							/* TTL_UNIT_H */
