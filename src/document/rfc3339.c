/*-------------------------------------------------------------------------
 *
 * rfc3339.c
 *	  From an RFC 3339 date-time to an instant.
 *
 * The input function of PostgreSQL is not immutable, because it reads a date without an offset
 * in the session's zone, and it raises errors.  This parser accepts only "date-time" of RFC
 * 3339, section 5.6, with all fields: 2024-02-29T23:59:60.123456789+05:30.  The offset may also be
 * without a colon, or missing.
 *
 * For every string that it accepts, PostgreSQL's function gives the same instant.  It also
 * refuses what PostgreSQL refuses: year 0000, an offset of 16 hours or more, and a fraction of
 * a leap second at the end of a day.  But it accepts fractions of any length, in strings of
 * any length.
 *
 * It uses no memory management or errors of the server, so it can be fuzzed alone (test/fuzz).
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "document/rfc3339.h"

#define MICROS_PER_SECOND INT64_C(1000000)
#define MICROS_PER_DAY (86400 * MICROS_PER_SECOND)
/* from 0001-01-01 to 2000-01-01, PostgreSQL's epoch */
#define DAYS_TO_EPOCH 730119
/* what PostgreSQL takes: its MAX_TZDISP_HOUR */
#define MAX_OFFSET_HOUR 15

/*
 * More digits of a fraction cannot change the microseconds, except by being
 * anything but zeros: a double near a fraction of 1e-8 or more, and so the
 * middle of two of them, has at most 80 digits.
 */
#define SIGNIFICANT_DIGITS 100

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Two digits that the caller has looked at. */
static int
two_digits(const char *s)
{
	return (s[0] - '0') * 10 + (s[1] - '0');
}

static int
days_in_month(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool		is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return days[month - 1] + (month == 2 && is_leap ? 1 : 0);
}

/* Days since 2000-01-01, in the Gregorian calendar of all times. */
static int64_t
day_number(int year, int month, int day)
{
	int64_t		before = year - 1;
	int64_t		days = before * 365 + before / 4 - before / 100 + before / 400;

	for (int m = 1; m < month; m++)
		days += days_in_month(year, m);
	return days + day - 1 - DAYS_TO_EPOCH;
}

/* Has the string the form of "2024-02-29T23:59:60" at its beginning? */
static bool
has_form(const char *s, size_t length)
{
	static const char form[] = "0000-00-00T00:00:00";

	if (length < sizeof(form) - 1)
		return false;
	for (size_t i = 0; i < sizeof(form) - 1; i++)
	{
		bool		fits = form[i] == '0' ? is_digit(s[i]) : s[i] == form[i];

		if (!fits && !(form[i] == 'T' && s[i] == 't'))
			return false;
	}
	return true;
}

/* Reads "Z", "+hh:mm" or "+hhmm", up to the end of the string, as minutes. */
static bool
read_offset(const char *s, size_t length, int *minutes)
{
	const char *last;

	if (length == 1 && (s[0] == 'Z' || s[0] == 'z'))
	{
		*minutes = 0;
		return true;
	}
	if (length == 6 && s[3] == ':')
		last = s + 4;
	else if (length == 5)
		last = s + 3;
	else
		return false;
	if ((s[0] != '+' && s[0] != '-') || !is_digit(s[1]) || !is_digit(s[2]) ||
		!is_digit(last[0]) || !is_digit(last[1]) ||
		two_digits(s + 1) > MAX_OFFSET_HOUR || two_digits(last) > 59)
		return false;
	*minutes = two_digits(s + 1) * 60 + two_digits(last);
	if (s[0] == '-')
		*minutes = -*minutes;
	return true;
}

/*
 * Microseconds of a fraction of "count" digits.  More than six are rounded as
 * PostgreSQL does it, in double precision: a half goes to the even neighbour
 * only where the product is one.
 */
static int64_t
fraction_micros(const char *digits, size_t count)
{
	char		buffer[1 + SIGNIFICANT_DIGITS + 1 + 1];
	size_t		used = count < SIGNIFICANT_DIGITS ? count : SIGNIFICANT_DIGITS;
	int64_t		micros = 0;

	if (count <= 6)
	{
		for (size_t i = 0; i < 6; i++)
			micros = micros * 10 + (i < count ? digits[i] - '0' : 0);
		return micros;
	}
	buffer[0] = '.';
	memcpy(buffer + 1, digits, used);
	buffer[1 + used] = '\0';
	for (size_t i = used; i < count; i++)
	{
		if (digits[i] != '0')
		{
			memcpy(buffer + 1 + used, "1", 2);
			break;
		}
	}
	return (int64_t) rint(strtod(buffer, NULL) * MICROS_PER_SECOND);
}

/*
 * Reads the string, which needs no terminating NUL, as microseconds since
 * 2000-01-01T00:00:00Z; false if it is not exactly one date-time.  Without an offset it is read
 * as if it had Z.
 */
bool
rfc3339_parse(const char *string, size_t length, bool *has_offset,
			  int64_t *micros)
{
	const char *end = string + length;
	const char *rest;
	int			year;
	int			month;
	int			day;
	int			hour;
	int			minute;
	int			second;
	int64_t		fraction = 0;
	int64_t		time;
	int			offset = 0;

	if (!has_form(string, length))
		return false;
	year = two_digits(string) * 100 + two_digits(string + 2);
	month = two_digits(string + 5);
	day = two_digits(string + 8);
	hour = two_digits(string + 11);
	minute = two_digits(string + 14);
	second = two_digits(string + 17);
	if (year < 1 || month < 1 || month > 12 ||
		day < 1 || day > days_in_month(year, month) ||
		hour > 23 || minute > 59 || second > 60)
		return false;

	rest = string + 19;
	if (rest < end && *rest == '.')
	{
		const char *digits = ++rest;

		while (rest < end && is_digit(*rest))
			rest++;
		if (rest == digits)
			return false;
		fraction = fraction_micros(digits, rest - digits);
	}

	/* second 60 is second 0 of the next minute */
	time = ((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND + fraction;
	*has_offset = rest < end;
	if (time > MICROS_PER_DAY ||
		(*has_offset && !read_offset(rest, end - rest, &offset)))
		return false;

	*micros = day_number(year, month, day) * MICROS_PER_DAY + time -
		offset * 60 * MICROS_PER_SECOND;
	return true;
}
