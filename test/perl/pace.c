/*
 * The arithmetic of src/monitor/pace.c by itself: a pass is played, and what would be told
 * of its end is printed.  test/t/066_pace.pl calls it.
 *
 * pace RATE SECONDS [RATE SECONDS]...: so many rows a second for so long, one after another.
 * Ten times on the way: the seconds that it has still to go, and those that are told; -1
 * for none.
 *
 * Copyright (c) 2026, ttl_index contributors
 */
#include "../../src/monitor/pace.c"

#include <stdio.h>
#include <stdlib.h>

/* that of libpgport would have to be linked */
#undef printf

#define STEP_US INT64CONST(10000)

int
main(int argc, char **argv)
{
	int64		end = 0;
	int64		total = 0;
	int64		deleted = 0;
	int64		now = 0;
	int64		print_at;
	int64		told;
	TtlPace		pace = {0};

	for (int i = 1; i + 1 < argc; i += 2)
	{
		end += atoi(argv[i + 1]) * INT64CONST(1000000);
		total += atoi(argv[i]) * (int64) atoi(argv[i + 1]);
	}
	print_at = end / 10;
	for (int i = 1; i + 1 < argc; i += 2)
	{
		int64		begun = now;
		int64		before = deleted;
		int64		until = now + atoi(argv[i + 1]) * INT64CONST(1000000);

		while (now < until)
		{
			int64		rows;

			now += STEP_US;
			rows = before + atoi(argv[i]) * (now - begun) / 1000000 - deleted;
			deleted += rows;
			ttl_pace_add(&pace, rows, now);
			if (now < print_at)
				continue;
			print_at += end / 10;
			told = ttl_pace_time_left(total - deleted, deleted, ttl_pace_rows(&pace, now), now);
			printf("%.1f %.1f\n", (end - now) / 1e6, told < 0 ? -1 : told / 1e6);
		}
	}
	return 0;
}
