/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is counted, and how durations are summed up.
 *
 * All of it is written and read under the pool's lock.
 */
#ifndef FAIRWQ_STATS_H
#define FAIRWQ_STATS_H

#include <linux/average.h>
#include <linux/bitops.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

/* Of a pool. Monotonic, except that "reset" sets them to 0. */
enum fairwq_counter {
	FAIRWQ_TURNS,		/* items taken by runners */
	FAIRWQ_KICKS,		/* idle runners queued to the workqueue */
	FAIRWQ_REQUEUES,	/* runners that gave the worker back and went on */
	FAIRWQ_PARKED,		/* items that waited for their own last run to end */
	FAIRWQ_CANCELED,	/* items that were taken out of the queue */
	FAIRWQ_LEAKS,		/* functions that leaked a lock, RCU, irqs, creds */
	FAIRWQ_HUNG,		/* items that were reported as hung */
	FAIRWQ_FLOW_FALLBACKS,	/* items of flows for which there was no memory */
	FAIRWQ_FAILURES,	/* failures that items have reported */
	FAIRWQ_WINDOWS,		/* windows that were checked for fairness */
	FAIRWQ_VIOLATIONS,	/* windows that broke the bound */
	FAIRWQ_STARVED,		/* of these: a client got less than an eighth of its share */
	FAIRWQ_LEAKED,		/* of these: a lower priority got more than is its */
	FAIRWQ_NR_COUNTERS,
};

/*
 * A histogram of durations in ns, two buckets an octave: a percentile read
 * from it is at most 50 % too high and never too low; the last one is open.
 */
#define FAIRWQ_HIST_BUCKETS	80	/* up to 2^40 ns, 18 minutes */

struct fairwq_hist {
	u64 bucket[FAIRWQ_HIST_BUCKETS];
	u64 max;
	u64 count;
};

/*
 * A moving average of run times in ns: 4 bits of fraction, new ones count 1/8. Where a
 * long has 32 bits it holds 33 ms: FAIRWQ_RUN_TIME_MAX_NS keeps below that.
 */
DECLARE_EWMA(fairwq_run, 4, 8)

struct fairwq_batch_stats {
	u64 turns;			/* begun */
	u64 done;			/* ended */
	u64 run_time;			/* ns, of the timed ones; fair time: of all */
	u64 failures;			/* reported by its items */
	struct ewma_fairwq_run run_avg;	/* 0: never measured */
	u32 longest[2];			/* fair time: run times, ns; see cost.c */
	u32 measured;			/* turns that @longest knows of */
	struct fairwq_hist wait;	/* of the measured ones */
	struct fairwq_hist run;		/* of the timed ones */
};

/* The last window over which the fairness of the turns was checked; any rank's. */
struct fairwq_window {
	u64 turns_left;			/* until it ends */
	unsigned int nr;		/* batches and owners that were compared */
	bool by_time;			/* what follows is us, not turns */
	u64 lag;			/* largest difference, 1/100, at weight 100 */
	u64 bound;			/* what it may be */
	u64 worst_lag;			/* since reset, in % of the bound then */
	unsigned int jain;		/* Jain's index, 1/10000 */
	u64 longest_wait;		/* turns of others in a row while one had a backlog */
	unsigned int clients;		/* that had one then */
};

static inline unsigned int fairwq_hist_index(u64 ns)
{
	unsigned int octave;

	if (ns < 2)
		return 0;
	octave = ilog2(ns);
	return min_t(unsigned int, 2 * octave + ((ns >> (octave - 1)) & 1),
		     FAIRWQ_HIST_BUCKETS - 1);
}

/* The largest duration that falls into a bucket. */
static inline u64 fairwq_hist_upper(unsigned int index)
{
	u64 base = 1ULL << (index / 2);

	return index < 2 ? 1 : base + (base >> 1) * (1 + (index & 1)) - 1;
}

static inline void fairwq_hist_add(struct fairwq_hist *hist, u64 ns)
{
	hist->bucket[fairwq_hist_index(ns)]++;
	hist->count++;
	hist->max = max(hist->max, ns);
}

/* The duration that @permille of the samples do not exceed, from above. */
static inline u64 fairwq_hist_quantile(const struct fairwq_hist *hist,
				       unsigned int permille)
{
	u64 sum = 0, want = div_u64(hist->count * permille + 999, 1000);
	unsigned int i;

	if (!hist->count)
		return 0;
	for (i = 0; i < FAIRWQ_HIST_BUCKETS; i++) {
		sum += hist->bucket[i];
		if (sum >= want)
			break;
	}
	return i < FAIRWQ_HIST_BUCKETS - 1 ? min(fairwq_hist_upper(i), hist->max) :
					     hist->max;
}

#endif /* FAIRWQ_STATS_H */
