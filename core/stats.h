/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Statistics: what is counted of pools and batches, and how durations are
 * summed up.
 *
 *   fairwq_counter       a pool's counters: "summary" in debugfs
 *   fairwq_batch_stats   a batch's durations and failures: "batches"
 *
 * Locking: pool->lock. @run_avg is also read without it, as a hint; and @hists,
 * by the call that sets it.
 */
#ifndef FAIRWQ_STATS_H
#define FAIRWQ_STATS_H

#include <linux/atomic.h>
#include <linux/average.h>
#include <linux/bitops.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

/* Read the monotonic clock, ns; in any context. Nothing is ordered by it. */
static inline u64 fairwq_clock(void)
{
	return ktime_get_mono_fast_ns();
}

/* Counters of a pool. They only grow, except that "reset" sets them to 0. */
enum fairwq_counter {
	FAIRWQ_KICKS,		/* idle runners queued to the workqueue */
	FAIRWQ_REQUEUES,	/* runners that gave the worker back and queued themselves */
	FAIRWQ_PARKED,		/* items that waited for their own last run to end */
	FAIRWQ_CANCELED,	/* works that a cancel or a new delay took out */
	FAIRWQ_LEAKS,		/* functions that leaked a lock, RCU, irqs, creds */
	FAIRWQ_HUNG,		/* items that the watchdog reported as hung */
	FAIRWQ_FAILURES,	/* failures that items have reported */
	FAIRWQ_PROMOTED,	/* tasks that other runners could take */
	FAIRWQ_STOLEN,		/* tasks that they took */
	FAIRWQ_NR_COUNTERS,
};

/* What is counted of a pool. */
struct fairwq_tally {
	u64 counter[FAIRWQ_NR_COUNTERS];/* P */
	/* A: items of flows without memory or room, and calls that got their batch */
	atomic64_t flow_fallbacks;
};

/*
 * A histogram of durations in ns, with two buckets for each octave. A
 * percentile of it is at most 50 % too high and never too low. The last bucket
 * is open.
 */
#define FAIRWQ_HIST_BUCKETS	80	/* up to 2^40 ns, 18 minutes */

struct fairwq_hist {
	u64 bucket[FAIRWQ_HIST_BUCKETS];
	u64 max;
	u64 count;
};

/*
 * A moving average of run times in ns: 4 bits of fraction, a new one counts
 * 1/8. A long of 32 bits holds 33 ms of it. FAIRWQ_RUN_TIME_MAX_NS must be
 * less.
 */
DECLARE_EWMA(fairwq_run, 4, 8)

/* The histograms of a batch, which are there only while an operator wants them. */
struct fairwq_hists {
	struct fairwq_hist wait;	/* of the turns with a stamp */
	struct fairwq_hist run;		/* of the timed turns */
};

/* The longest of 256 turns, a burst by its mean item, and of 256 before; see policy.c. */
struct fairwq_recent {
	u32 longest[2];
	u32 nr;				/* turns that were noted */
};

/* Statistics of a batch: what most turns do not touch. */
struct fairwq_batch_stats {
	u64 failures;			/* reported by its items */
	u64 wait_max;			/* ns, of the turns with a stamp */
	struct ewma_fairwq_run run_avg;	/* 0: never measured */
	struct fairwq_recent recent;	/* fair time: run times, ns */
	u64 max_cost;			/* of a turn, in the unit of the policy */
	struct fairwq_hists *hists;	/* or NULL */
};

/* Return the bucket of a duration. */
static inline unsigned int fairwq_hist_index(u64 ns)
{
	unsigned int octave;

	if (ns < 2)
		return 0;
	octave = ilog2(ns);
	return min_t(unsigned int, 2 * octave + ((ns >> (octave - 1)) & 1),
		     FAIRWQ_HIST_BUCKETS - 1);
}

/* Return the largest duration that falls into a bucket. */
static inline u64 fairwq_hist_upper(unsigned int index)
{
	u64 base = 1ULL << (index / 2);

	return index < 2 ? 1 : base + (base >> 1) * (1 + (index & 1)) - 1;
}

/* Add a duration. */
static inline void fairwq_hist_add(struct fairwq_hist *hist, u64 ns)
{
	hist->bucket[fairwq_hist_index(ns)]++;
	hist->count++;
	hist->max = max(hist->max, ns);
}

/*
 * Return the duration that @permille of the samples do not exceed, rounded up
 * to the end of its bucket; 0 without samples.
 */
static inline u64 fairwq_hist_quantile(const struct fairwq_hist *hist,
				       unsigned int permille)
{
	u64 sum = 0, want = hist->count - mul_u64_u32_div(hist->count, 1000 - permille, 1000);
	unsigned int i;

	for (i = 0; i < FAIRWQ_HIST_BUCKETS - 1; i++) {
		sum += hist->bucket[i];
		if (sum >= want)
			return min(fairwq_hist_upper(i), hist->max);
	}
	return hist->max;
}

#endif /* FAIRWQ_STATS_H */
