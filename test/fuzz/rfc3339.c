/*-------------------------------------------------------------------------
 *
 * rfc3339.c
 *	  Fuzz target: the parser of dates, with sanitizers, and against the C
 *	  library.
 *
 * What the parser takes is read again here, in the simplest way, and its instant
 * must be the one of timegm().  It is given an exact copy of the input on the
 * heap, so that reading beyond it is seen.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  test/fuzz/rfc3339.c
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "document/rfc3339.h"

#define EPOCH INT64_C(946684800)	/* of PostgreSQL, in Unix time */

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
require(bool condition)
{
	if (!condition)
		abort();
}

/* The seconds that a string means which the parser has taken. */
static int64_t
expected_seconds(const char *string)
{
	struct tm	tm = {0};
	int			length;
	int			hours = 0;
	int			minutes = 0;
	char		sign = '+';

	require(sscanf(string, "%4d-%2d-%2d%*1[Tt]%2d:%2d:%2d%n", &tm.tm_year,
				   &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
				   &tm.tm_sec, &length) == 6 && length == 19);
	require(tm.tm_year >= 1 && tm.tm_mon >= 1 && tm.tm_mon <= 12 &&
			tm.tm_mday >= 1 && tm.tm_mday <= 31 && tm.tm_hour <= 23 &&
			tm.tm_min <= 59 && tm.tm_sec <= 60);
	tm.tm_year -= 1900;
	tm.tm_mon--;

	string += length;
	if (*string == '.')
		string += 1 + strspn(string + 1, "0123456789");
	if (*string != '\0' && strcasecmp(string, "Z") != 0)
	{
		require(sscanf(string, "%c%2d:%2d%n", &sign, &hours, &minutes,
					   &length) == 3 ||
				sscanf(string, "%c%2d%2d%n", &sign, &hours, &minutes,
					   &length) == 3);
		require(string[length] == '\0' && (sign == '+' || sign == '-') &&
				hours <= 15 && minutes <= 59);
	}
	return timegm(&tm) - EPOCH -
		(sign == '-' ? -1 : 1) * (hours * 60 + minutes) * 60;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char	   *string = malloc(size == 0 ? 1 : size);
	char	   *terminated = calloc(1, size + 1);
	int64_t		micros;
	bool		has_offset;
	bool		is_date;

	memcpy(string, data, size);
	memcpy(terminated, data, size);
	is_date = rfc3339_parse(string, size, &has_offset, &micros);
	if (is_date)
	{
		int64_t		fraction = micros - expected_seconds(terminated) * 1000000;

		require(memchr(string, '\0', size) == NULL);
		require(fraction >= 0 && fraction <= 1000000);
		require(fraction == 0 || size > 20);
		require(has_offset == (strpbrk(terminated + 19, "Zz+-") != NULL));
	}
	free(string);
	free(terminated);
	return 0;
}
