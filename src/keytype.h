/*-------------------------------------------------------------------------
 *
 * keytype.h
 *	  The types of keys, and the units of numbers.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_KEYTYPE_H
#define TTL_KEYTYPE_H

#include "datatype/timestamp.h"
#include "pgtime.h"
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
#define TTL_KEYTYPE_WHOLE PG_UINT64_MAX

extern const char *const ttl_keytype_units[];
extern const int64 ttl_keytype_per_second[];

extern Oid	ttl_keytype_opclass(Oid type);
extern bool ttl_keytype_is_date(Oid type);
extern TtlUnit ttl_keytype_find_unit(const char *name);
extern int64 ttl_keytype_least(Oid type);
extern int64 ttl_keytype_bound(TtlUnit unit, TimestampTz at);
extern TimestampTz ttl_keytype_instant(TtlUnit unit, int64 key);
extern TimestampTz ttl_keytype_in_zone(pg_tz *zone, Timestamp local);
extern int64 ttl_keytype_round_up(Numeric number, uint64 *rest);
extern bool ttl_keytype_read(Oid type, Datum datum, int64 *key, uint64 *rest);
extern Datum ttl_keytype_datum(Oid type, int64 key, uint64 rest);
extern char *ttl_keytype_condition(Oid type, const char *key);

#endif							/* TTL_KEYTYPE_H */
