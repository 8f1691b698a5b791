// SPDX-License-Identifier: GPL-2.0
/*
 * Report: the results as lines on the console, for tools/bench.py:
 *
 *   fairwq-bench: row=ROW side=SIDE round=N NAME=VALUE [NAME=VALUE...]
 */
#define pr_fmt(fmt) "fairwq-bench: " fmt

#include <linux/math64.h>
#include <linux/printk.h>
#include <linux/sort.h>

#include "bench.h"

unsigned int bench_round;

void bench_say(const struct bench_row *row, const char *side, const char *fmt, ...)
{
	struct va_format values = { .fmt = fmt };
	va_list args;

	va_start(args, fmt);
	values.va = &args;
	pr_info("row=%s side=%s round=%u %pV\n", row->name, side, bench_round, &values);
	va_end(args);
}

/* Print the time of one item, if @nr took @ns. */
void bench_say_ns(const struct bench_row *row, const char *side, u64 ns, unsigned int nr)
{
	u64 each = div_u64(ns * 100, nr);
	u32 rest;

	each = div_u64_rem(each, 100, &rest);
	bench_say(row, side, "ns=%llu.%02u", each, rest);
}

static int bench_compare_times(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* Sort the first @nr of bench_times. Must be called before the next two functions. */
void bench_sort_times(unsigned int nr)
{
	sort(bench_times, nr, sizeof(*bench_times), bench_compare_times, NULL);
}

/*
 * Return the mean of the middle half. A median would be too coarse, because
 * some clocks move in steps: of 256 ns on user-mode Linux.
 */
u64 bench_middle_mean(unsigned int nr)
{
	unsigned int i;
	u64 sum = 0;

	for (i = nr / 4; i < nr - nr / 4; i++)
		sum += bench_times[i];
	return div_u64(sum, nr - 2 * (nr / 4));
}

/* Return a percentile of bench_times; 100: the largest. */
u64 bench_percentile(unsigned int nr, unsigned int percent)
{
	return bench_times[(nr - 1) * percent / 100];
}
