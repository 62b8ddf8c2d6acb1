/*-------------------------------------------------------------------------
 *
 * keytype.c
 *	  The types of keys, and keys as integers.
 *
 * Scans, cursors and cutoffs know a key as an integer: microseconds since 2000, days of a date,
 * a number in its own unit, or the first 64 bits of a UUID.  A number with a fraction becomes the
 * next whole number, so its row expires up to one unit later.  "rest" has the order of keys that
 * become the same integer.
 *
 * Zero and negative numbers are not dates: programs write them for "none".
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>
#include <math.h>

#include "catalog/pg_am.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "common/int.h"
#include "port/pg_bswap.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "keytype.h"

/* from 1970 to 2000, PostgreSQL's epoch */
#define EPOCH_MICROS \
	((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

/* So many digits of a numeric's fraction are in the rest. */
#define FRACTION_DIGITS 18

/* Of a UUID of version 7, the bits after the milliseconds, in the integer. */
#define UUID_MORE_BITS 16

/* in the order of TtlUnit; dates count microseconds */
const char *const ttl_keytype_units[] = {
	"", "seconds", "milliseconds", "microseconds", "nanoseconds", "uuidv7"
};
const int64 ttl_keytype_per_second[] = {
	USECS_PER_SEC, 1, 1000, USECS_PER_SEC, 1000 * USECS_PER_SEC, 1000
};

/* The default btree operator class of a type that a key can have; invalid for other types. */
Oid
ttl_keytype_opclass(Oid type)
{
	static const Oid classes[][2] = {
		{TIMESTAMPTZOID, TIMESTAMPTZ_BTREE_OPS_OID}, {TIMESTAMPOID, TIMESTAMP_BTREE_OPS_OID},
		{DATEOID, DATE_BTREE_OPS_OID}, {INT4OID, INT4_BTREE_OPS_OID}, {INT8OID, INT8_BTREE_OPS_OID},
		{FLOAT8OID, FLOAT8_BTREE_OPS_OID}, {NUMERICOID, NUMERIC_BTREE_OPS_OID}
	};

	for (int i = 0; i < lengthof(classes); i++)
	{
		if (classes[i][0] == type)
			return classes[i][1];
	}
	return type == UUIDOID ? GetDefaultOpClass(UUIDOID, BTREE_AM_OID) : InvalidOid;
}

/* Is it a type of dates?  The others need a unit. */
bool
ttl_keytype_is_date(Oid type)
{
	return type == TIMESTAMPTZOID || type == TIMESTAMPOID || type == DATEOID;
}

/* The unit of this name, or none. */
TtlUnit
ttl_keytype_find_unit(const char *name)
{
	for (int i = TTL_UNIT_SECONDS; i < lengthof(ttl_keytype_units); i++)
	{
		if (strcmp(ttl_keytype_units[i], name) == 0)
			return i;
	}
	return TTL_UNIT_NONE;
}

/* The least integer that a date can be. */
int64
ttl_keytype_least(Oid type)
{
	if (type == UUIDOID)
		return INT64CONST(1) << UUID_MORE_BITS;
	return type == DATEOID ? DATEVAL_NOBEGIN : ttl_keytype_is_date(type) ? DT_NOBEGIN : 1;
}

/* The greatest integer, except the last one, that is due at this instant; 0 for none. */
int64
ttl_keytype_bound(TtlUnit unit, TimestampTz at)
{
	int64		number;

	if (pg_add_s64_overflow(at, EPOCH_MICROS, &number))
		number = PG_INT64_MAX;
	if (number <= 0)
		return 0;
	if (unit != TTL_UNIT_NANOSECONDS)
		number /= USECS_PER_SEC / ttl_keytype_per_second[unit];
	else if (pg_mul_s64_overflow(number, 1000, &number))
		number = PG_INT64_MAX;
	if (unit == TTL_UNIT_UUIDV7)
		number = ((Min(number, PG_INT64_MAX >> UUID_MORE_BITS) + 1) << UUID_MORE_BITS) - 1;
	return Min(number, PG_INT64_MAX - 1);
}

/* The instant of an integer above zero: infinity if it is out of range. */
TimestampTz
ttl_keytype_instant(TtlUnit unit, int64 key)
{
	int64		micros;

	if (unit == TTL_UNIT_UUIDV7)
		key >>= UUID_MORE_BITS;
	if (unit == TTL_UNIT_NANOSECONDS)
		micros = key / 1000 + (key % 1000 > 0 ? 1 : 0);
	else if (pg_mul_s64_overflow(key, USECS_PER_SEC / ttl_keytype_per_second[unit], &micros))
		return DT_NOEND;
	micros -= EPOCH_MICROS;
	return IS_VALID_TIMESTAMP(micros) ? micros : DT_NOEND;
}

/* When do clocks in a zone show this?  At the first instant that there is, if that is before it. */
TimestampTz
ttl_keytype_in_zone(pg_tz *zone, Timestamp local)
{
	struct pg_tm tm;
	fsec_t		fsec;

	if (timestamp2tm(local, NULL, &tm, &fsec, NULL, NULL) != 0)
		elog(ERROR, "timestamp out of range");
	return Max(local + DetermineTimeZoneOffset(&tm, zone) * USECS_PER_SEC,
			   MIN_TIMESTAMP);
}

/*
 * Rounds a number up.  What is below zero becomes 0, and what is too great, or not a number, the
 * last integer.
 */
int64
ttl_keytype_round_up(Numeric number, uint64 *rest)
{
	char	   *text = DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(number)));
	const char *s = text;
	uint64		fraction = 0;
	int64		whole = *s == '-' || isdigit((unsigned char) *s) ? 0 : PG_INT64_MAX;

	for (; isdigit((unsigned char) *s); s++)
	{
		if (pg_mul_s64_overflow(whole, 10, &whole) ||
			pg_add_s64_overflow(whole, *s - '0', &whole))
			whole = PG_INT64_MAX;
	}
	*rest = TTL_KEYTYPE_WHOLE;
	if (*s == '.')
	{
		s++;
		for (int i = 0; i < FRACTION_DIGITS; i++)
			fraction = fraction * 10 + (*s != '\0' ? *s++ - '0' : 0);
		if ((fraction != 0 || strspn(s, "0") != strlen(s)) && whole < PG_INT64_MAX)
		{
			whole++;
			*rest = fraction;
		}
	}
	pfree(text);
	return whole;
}

/* Does the same with a double. */
static int64
round_up_double(double number, uint64 *rest)
{
	*rest = TTL_KEYTYPE_WHOLE;
	if (isnan(number) || number >= (double) PG_INT64_MAX)
		return PG_INT64_MAX;
	if (number <= 0)
		return 0;
	/* the bits of doubles above zero have their order */
	if (number != ceil(number))
		memcpy(rest, &number, sizeof(number));
	return (int64) ceil(number);
}

/* Reads a key that is not NULL; false if it is no date, which never expires. */
bool
ttl_keytype_read(Oid type, Datum datum, int64 *key, uint64 *rest)
{
	uint64		uuid[2];
	Numeric		number;
	bool		is_date = true;

	*rest = 0;
	switch (type)
	{
		case DATEOID:
			*key = DatumGetDateADT(datum);
			return true;
		case INT4OID:
			*key = DatumGetInt32(datum);
			break;
		case FLOAT8OID:
			*key = round_up_double(DatumGetFloat8(datum), rest);
			break;
		case NUMERICOID:
			number = DatumGetNumeric(datum);
			*key = ttl_keytype_round_up(number, rest);
			if ((Pointer) number != DatumGetPointer(datum))
				pfree(number);
			break;
		case UUIDOID:
			memcpy(uuid, DatumGetUUIDP(datum), sizeof(uuid));
			*key = Min(pg_ntoh64(uuid[0]), PG_INT64_MAX);
			*rest = pg_ntoh64(uuid[1]);
			/* version 7 of the variant of RFC 9562 */
			is_date = (*key >> 12 & 0xF) == 7 && *rest >> 62 == 2;
			break;
		default:
			*key = DatumGetInt64(datum);
			if (ttl_keytype_is_date(type))
				return true;
	}
	return is_date && *key >= ttl_keytype_least(type) && *key < PG_INT64_MAX;
}

/* Makes a key of an integer.  A rest of 0 is the last key of the integer before. */
Datum
ttl_keytype_datum(Oid type, int64 key, uint64 rest)
{
	int64		whole = rest == TTL_KEYTYPE_WHOLE ? key : key - 1;
	uint64	   *uuid;
	double		number;

	switch (type)
	{
		case DATEOID:
			return DateADTGetDatum((DateADT) key);
		case INT4OID:
			return Int32GetDatum((int32) Max(Min(key, PG_INT32_MAX), PG_INT32_MIN));
		case FLOAT8OID:
			number = (double) whole;
			if (rest != TTL_KEYTYPE_WHOLE && rest != 0)
				memcpy(&number, &rest, sizeof(number));
			return Float8GetDatum(number);
		case NUMERICOID:
			return DirectFunctionCall2(numeric_add, NumericGetDatum(int64_to_numeric(whole)),
									   NumericGetDatum(int64_div_fast_to_numeric(rest == TTL_KEYTYPE_WHOLE ? 0 : (int64) rest,
																				 FRACTION_DIGITS)));
		case UUIDOID:
			uuid = palloc(2 * sizeof(uint64));
			uuid[0] = pg_hton64((uint64) key);
			uuid[1] = pg_hton64(rest);
			return UUIDPGetDatum((pg_uuid_t *) uuid);
		default:
			return Int64GetDatum(key);
	}
}

/* The condition that a key, given as SQL, is a date, if it is not too great; NULL for none. */
char *
ttl_keytype_condition(Oid type, const char *key)
{
	if (ttl_keytype_is_date(type))
		return NULL;
	if (type != UUIDOID)
		return psprintf("%s OPERATOR(pg_catalog.>) 0", key);
	return psprintf("%s OPERATOR(pg_catalog.>=) '00000000-0001-0000-0000-000000000000' AND "
					"%s::pg_catalog.text OPERATOR(pg_catalog.~) '^.{14}7.{4}[89ab]'", key, key);
}
