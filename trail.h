/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What each CPU has pushed last, to whatever batch it was.
 *
 * What was pushed is put into queue order from the newest on, each naming the
 * one before it: one cache line of another CPU after the other, with nothing to
 * do meanwhile. So each also names one that was pushed some calls earlier, whose
 * line is asked for while those in between are put into order. It may be in
 * another list, or gone by now: it is prefetched, and nothing else. Then that was
 * in vain, and may have taken a line away from a CPU that has it in use.
 */
#ifndef FAIRWQ_TRAIL_H
#define FAIRWQ_TRAIL_H

#include <linux/percpu.h>

#include "compat.h"
#include "fairwq.h"

#define FAIRWQ_TRAIL		8U

struct fairwq_trail {
	unsigned int seq;	/* of the last one */
	unsigned long step[FAIRWQ_TRAIL];	/* complements, or kmemleak sees a reference */
};

DECLARE_PER_CPU_ALIGNED(struct fairwq_trail, fairwq_trail);

/* @work is about to be pushed. Returns the how many-th it is on this CPU. */
static inline unsigned int fairwq_leave_trail(struct fairwq_work *work)
{
	/* raw_: if the caller is preempted or interrupted, a step is lost, which does no harm. */
	struct fairwq_trail *trail = raw_cpu_ptr(&fairwq_trail);
	unsigned int seq = READ_ONCE(trail->seq) + 1;
	unsigned long *step = &trail->step[seq % FAIRWQ_TRAIL];

	WRITE_ONCE(trail->seq, seq);
	work->ahead = READ_ONCE(*step);
	WRITE_ONCE(*step, ~(unsigned long)work);
	return seq;
}

/* Before @work is put into order. */
static inline void fairwq_follow_trail(const struct fairwq_work *work)
{
	fairwq_prefetchw((const void *)~work->ahead);
}

#endif /* FAIRWQ_TRAIL_H */
