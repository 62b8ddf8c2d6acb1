/*-------------------------------------------------------------------------
 *
 * unit.c
 *	  Numbers and local times that stand for dates.
 *
 * A number counts seconds since 1970, or parts of a second.  Zero and negative numbers are no
 * dates: programs write them for "none".  What is rounded is rounded so that no row expires too
 * early.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>

#include "common/int.h"
#include "pgtime.h"
#include "utils/datetime.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"

#include "document/unit.h"

/* from 1970 to 2000, PostgreSQL's epoch */
#define EPOCH_MICROS \
	((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

/* in the order of TtlUnit */
static const struct
{
	const char *name;
	int64		per_second;
}			units[] =
{
	{"", 0},
	{"seconds", 1},
	{"milliseconds", 1000},
	{"microseconds", USECS_PER_SEC},
	{"nanoseconds", 1000 * USECS_PER_SEC},
	{"uuidv7", 1000}
};

/* The unit of this name, or none. */
TtlUnit
ttl_unit_find(const char *name)
{
	for (int i = TTL_UNIT_SECONDS; i < lengthof(units); i++)
	{
		if (strcmp(units[i].name, name) == 0)
			return i;
	}
	return TTL_UNIT_NONE;
}

const char *
ttl_unit_name(TtlUnit unit)
{
	return units[unit].name;
}

int64
ttl_unit_per_second(TtlUnit unit)
{
	return units[unit].per_second;
}

/*
 * The greatest number whose instant is not later than this one; 0 if there is none.  The greatest
 * int64 stands for "never".
 */
int64
ttl_unit_number(TtlUnit unit, TimestampTz at)
{
	int64		number;

	if (pg_add_s64_overflow(at, EPOCH_MICROS, &number))
		number = PG_INT64_MAX;
	if (number <= 0)
		return 0;
	if (unit != TTL_UNIT_NANOSECONDS)
		number /= USECS_PER_SEC / units[unit].per_second;
	else if (pg_mul_s64_overflow(number, 1000, &number))
		number = PG_INT64_MAX;
	return Min(number, PG_INT64_MAX - 1);
}

/* The instant of a number above zero: infinity if it is out of range. */
TimestampTz
ttl_unit_instant(TtlUnit unit, int64 number)
{
	int64		micros;

	if (unit == TTL_UNIT_NANOSECONDS)
		micros = number / 1000 + (number % 1000 > 0 ? 1 : 0);
	else if (pg_mul_s64_overflow(number, USECS_PER_SEC / units[unit].per_second, &micros))
		return DT_NOEND;
	micros -= EPOCH_MICROS;
	return IS_VALID_TIMESTAMP(micros) ? micros : DT_NOEND;
}

/*
 * Rounds a number up to a whole one.  "rest" has the order of those that become the same one.
 * What is below zero becomes 0, and what is too great, or not a number, the greatest int64.
 */
int64
ttl_unit_read_numeric(Numeric number, uint64 *rest)
{
	char	   *text = DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(number)));
	const char *s = text;
	uint64		fraction = 0;
	int64		whole = 0;

	*rest = TTL_UNIT_WHOLE;
	if (*s != '-' && !isdigit((unsigned char) *s))	/* Infinity, NaN */
		whole = PG_INT64_MAX;
	else if (*s != '-')
	{
		for (; isdigit((unsigned char) *s); s++)
		{
			if (pg_mul_s64_overflow(whole, 10, &whole) ||
				pg_add_s64_overflow(whole, *s - '0', &whole))
				whole = PG_INT64_MAX;
		}
		s += *s == '.' ? 1 : 0;
		for (int i = 0; i < TTL_UNIT_FRACTION_DIGITS; i++)
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

/* The instant at which clocks in a zone show this; the first one that there is, if it is before that. */
TimestampTz
ttl_unit_in_zone(pg_tz *zone, Timestamp local)
{
	struct pg_tm tm;
	fsec_t		fsec;

	if (timestamp2tm(local, NULL, &tm, &fsec, NULL, NULL) != 0)
		elog(ERROR, "timestamp out of range");
	return Max(local + DetermineTimeZoneOffset(&tm, zone) * USECS_PER_SEC,
			   MIN_TIMESTAMP);
}
