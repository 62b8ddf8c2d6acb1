/*-------------------------------------------------------------------------
 *
 * keytype.c
 *	  The types of keys, and keys as integers.
 *
 * Scans, cursors and cutoffs know a key as an integer: microseconds since 2000, days of a date,
 * a number in its own unit, or the first 64 bits of a UUID.  A number with a fraction becomes the
 * next whole number, so its row expires up to one unit later.  Where the integer is less than the
 * key, "rest" says more, in the order of the keys.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_am.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "port/pg_bswap.h"
#include "utils/date.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "definition/key.h"
#include "ttl_index.h"

/* Of a UUID of version 7, the bits after the milliseconds, in the integer. */
#define UUID_MORE_BITS 16

/* The default btree operator class of a type that a key can have; invalid for other types. */
Oid
ttl_keytype_opclass(Oid type)
{
	static Oid	uuid_ops = InvalidOid;

	switch (type)
	{
		case TIMESTAMPTZOID:
			return TIMESTAMPTZ_BTREE_OPS_OID;
		case TIMESTAMPOID:
			return TIMESTAMP_BTREE_OPS_OID;
		case DATEOID:
			return DATE_BTREE_OPS_OID;
		case INT4OID:
			return INT4_BTREE_OPS_OID;
		case INT8OID:
			return INT8_BTREE_OPS_OID;
		case FLOAT8OID:
			return FLOAT8_BTREE_OPS_OID;
		case NUMERICOID:
			return NUMERIC_BTREE_OPS_OID;
		case UUIDOID:
			if (!OidIsValid(uuid_ops))
				uuid_ops = GetDefaultOpClass(UUIDOID, BTREE_AM_OID);
			return uuid_ops;
		default:
			return InvalidOid;
	}
}

/* Is it a type of dates?  The others need a unit. */
bool
ttl_keytype_is_date(Oid type)
{
	return type == TIMESTAMPTZOID || type == TIMESTAMPOID || type == DATEOID;
}

/* Returns the integer of a number, which is at least zero. */
static int64
read_double(double value, uint64 *rest)
{
	double		whole = ceil(value);

	*rest = TTL_UNIT_WHOLE;
	if (isnan(value) || value >= (double) PG_INT64_MAX)
		return PG_INT64_MAX;
	if (value <= 0)
		return 0;
	/* the bits of doubles above zero have their order */
	if (whole != value)
		memcpy(rest, &value, sizeof(value));
	return (int64) whole;
}

/* Reads a key that is not NULL; false if it is no date, which never expires. */
bool
ttl_keytype_read(Oid type, Datum datum, int64 *key, uint64 *rest)
{
	uint64		uuid[2];
	Numeric		number;

	*rest = 0;
	switch (type)
	{
		case DATEOID:
			*key = DatumGetDateADT(datum);
			return true;
		case INT4OID:
			*key = DatumGetInt32(datum);
			return *key > 0;
		case INT8OID:
			*key = DatumGetInt64(datum);
			return *key > 0 && *key < PG_INT64_MAX;
		case FLOAT8OID:
			*key = read_double(DatumGetFloat8(datum), rest);
			return *key > 0 && *key < PG_INT64_MAX;
		case NUMERICOID:
			number = DatumGetNumeric(datum);
			*key = ttl_unit_read_numeric(number, rest);
			if ((Pointer) number != DatumGetPointer(datum))
				pfree(number);
			return *key > 0 && *key < PG_INT64_MAX;
		case UUIDOID:
			memcpy(uuid, DatumGetUUIDP(datum), sizeof(uuid));
			*key = Min(pg_ntoh64(uuid[0]), PG_INT64_MAX);
			*rest = pg_ntoh64(uuid[1]);
			/* version 7 of the variant of RFC 9562 */
			return *key >= ttl_keytype_least(UUIDOID) && *key < PG_INT64_MAX &&
				(*key >> 12 & 0xF) == 7 && *rest >> 62 == 2;
		default:
			*key = DatumGetTimestampTz(datum);
			return true;
	}
}

/* Makes a key of an integer.  A rest of 0 is the greatest key of the integer before. */
Datum
ttl_keytype_datum(Oid type, int64 key, uint64 rest)
{
	uint64	   *uuid;
	Numeric		number;
	double		value;

	switch (type)
	{
		case DATEOID:
			return DateADTGetDatum((DateADT) key);
		case INT4OID:
			return Int32GetDatum((int32) Max(Min(key, PG_INT32_MAX), PG_INT32_MIN));
		case FLOAT8OID:
			value = (double) (rest == TTL_UNIT_WHOLE ? key : key - 1);
			if (rest != TTL_UNIT_WHOLE && rest != 0)
				memcpy(&value, &rest, sizeof(value));
			return Float8GetDatum(value);
		case NUMERICOID:
			number = int64_to_numeric(rest == TTL_UNIT_WHOLE ? key : key - 1);
			if (rest == TTL_UNIT_WHOLE)
				return NumericGetDatum(number);
			return DirectFunctionCall2(numeric_add, NumericGetDatum(number),
									   NumericGetDatum(int64_div_fast_to_numeric((int64) rest, TTL_UNIT_FRACTION_DIGITS)));
		case UUIDOID:
			uuid = palloc(2 * sizeof(uint64));
			uuid[0] = pg_hton64((uint64) key);
			uuid[1] = pg_hton64(rest);
			return UUIDPGetDatum((pg_uuid_t *) uuid);
		default:
			return Int64GetDatum(key);
	}
}

/* The greatest key of an integer. */
Datum
ttl_keytype_last(Oid type, int64 key)
{
	return ttl_keytype_datum(type, key, TTL_UNIT_WHOLE);
}

/* The least integer that a date can be. */
int64
ttl_keytype_least(Oid type)
{
	switch (type)
	{
		case DATEOID:
			return DATEVAL_NOBEGIN;
		case UUIDOID:
			return INT64CONST(1) << UUID_MORE_BITS;
		default:
			return ttl_keytype_is_date(type) ? DT_NOBEGIN : 1;
	}
}

/* The integer of the last key that is due up to this instant. */
int64
ttl_keytype_bound(Oid type, TtlUnit unit, TimestampTz instant)
{
	int64		number = ttl_unit_number(unit, instant);

	if (type != UUIDOID)
		return number;
	return (Min(number, (PG_INT64_MAX >> UUID_MORE_BITS) - 1) << UUID_MORE_BITS) |
		((1 << UUID_MORE_BITS) - 1);
}

/* The instant of a key that is a number or a UUID. */
TimestampTz
ttl_keytype_instant(Oid type, TtlUnit unit, int64 key)
{
	return ttl_unit_instant(unit, type == UUIDOID ? key >> UUID_MORE_BITS : key);
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
