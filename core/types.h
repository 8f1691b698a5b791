/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Types: the structures of fairwq, and their locking.
 * Clients use fairwq.h only.
 *
 * Locking. The letter of a field says what protects it:
 *
 * I: set before another CPU can see the object, read-only after that
 * P: pool->lock; for the fields of a batch or a runner, that of its pool
 * p: written under pool->lock, also read without it; the comment says why a
 *    stale value does no harm
 * B: inbox->lock
 * b: as p, under inbox->lock
 * K: runner->park_lock
 * A: atomic; the comment says what it is for
 * R: only the worker that executes the runner
 *
 * Order: batch->flush_mutex; the spinlock of a sequencer or of flows; of a
 * serializer; pool->lock; a runner's park_lock; then inbox->lock. inbox.c,
 * context.c, debugfs.c and the table of runners have a lock each, under which
 * none of these is taken.
 *
 * pool->lock is raw and irq-safe, because a queue call may come from any
 * context but NMI, on PREEMPT_RT too. Code that holds it must not sleep or
 * allocate.
 *
 *   Object   Its memory is freed one RCU grace period after
 *   -------  -------------------------------------------------------------
 *   runner   tune.c has taken it out of its pool, or the destruction of that
 *   batch    its last reference; an eligible, running or draining batch is
 *            kept by its pool's reference
 *   pool     its destruction, and the freeing of its last batch (pool->refs)
 */
#ifndef FAIRWQ_TYPES_H
#define FAIRWQ_TYPES_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "fairwq.h"
#include "registry.h"
#include "runner.h"
#include "state.h"
#include "stats.h"
#include "tree.h"
#include "waiter.h"
#include "watchdog.h"

/* A runner goes back to the workqueue core after this long, counted in ticks. */
#define FAIRWQ_RUNNER_QUANTUM_MS	2
#define FAIRWQ_DFL_HUNG_MS		30000U
/* Most that one run time counts in the average, so that it is soon forgotten. */
#define FAIRWQ_RUN_TIME_MAX_NS		(10ULL * NSEC_PER_MSEC)
/* Items are over at once if they take less than this on average. */
#define FAIRWQ_QUICK_NS			1000U

/*
 * A turn: one item, given to one batch. It lasts from the tree's choice of the
 * batch until the function has returned and the turn is accounted. In a burst
 * (burst.c) a turn may have several items; it then shows the one that runs.
 */
struct fairwq_turn {
	struct fairwq_batch *batch;	/* P, R and tasks read: in flight in it; NULL: no turn */
	fairwq_func_t func;		/* P to begin, R while it lasts; tasks read it, too */
	struct fairwq_serializer *serializer; /* R, tasks read: to be told of its end */
	u64 stamp;			/* as @func: time of queueing, ns; 0: not measured */
	u64 number;			/* P: of this turn, in its pool */
	bool timed;			/* P, R reads: its items are to be measured */
	bool quick;			/* P: its batch takes less than FAIRWQ_QUICK_NS an item */
	bool slept;			/* R, P at the end: an item of it has slept */
	u64 wait;			/* R: ns from @stamp to the start; 0: not measured */
	struct fairwq_charge charge;	/* letters as in the struct */
	/* R sets, P clears: the turn goes on after the function; NULL when it begins */
	struct fairwq_async *async;
	u64 later;			/* P: ns, what went on meanwhile, and has ended */
};

/* Most items that a dump shows under one hold of the lock. */
#define FAIRWQ_DUMP_CHUNK	16U

/* A burst: a runner goes on with the items of one serializer; see burst.c. */
struct fairwq_burst {
	u64 due;			/* R: end of the budget, ns; 0: used up */
	unsigned int left;		/* R: items before the clock is read again */
};

/*
 * A runner: a work of the backing workqueue that takes turns.
 *
 * Invariant: on pool->crew.idle iff it has no seat, and is not asleep.
 */
struct fairwq_runner {
	struct work_struct work;
	struct fairwq_pool *pool;	/* I */
	u32 id;				/* I: index in fairwq_runners */
	struct list_head node;		/* as crew.runners, which has it */
	struct list_head idle_node;	/* P: in pool->crew.idle */
	raw_spinlock_t park_lock;	/* of @parked; inside any pool's lock */
	struct list_head parked;	/* K, R reads if empty: works that wait for current_work */
	bool seated;			/* p: has a seat; a hint for a burst */
	u8 naps;			/* P: looks of the timer until it counts as computing */
	struct task_struct *task;	/* P, R reads: worker that executes it, unless idle */
	struct fairwq_asleep asleep;	/* see asleep.c */
	u64 away;			/* R, or P without notifiers: ns that it does not pay */
	unsigned long started;		/* R sets: jiffies: the item began, or it went idle */
	unsigned long reported;		/* P: @started of an item that was reported as hung */
	/* R sets, others read by the barriers in turn.h: the work that runs, or ran last */
	struct fairwq_work *current_work;
	/* P to set, R reads: a burst must end: a call waits for it, or holds the others */
	bool yield;
	int cpu;			/* P: CPU that it ran on last */
	struct fairwq_forker forker;	/* R, but for what its comments say */
	/* R; read by its tasks: that of the item, while the function runs, or NULL */
	const struct fairwq_sequencer *sequencer;
	unsigned int nr_blocks;		/* R, a hint for others: sections of it that may block */
	struct fairwq_context *context;	/* R: that of the item, or NULL */
	struct fairwq_runner *origin;	/* R, tasks read: of the task that it has taken, or NULL */
	struct fairwq_turn turn;	/* letters as in the struct */
	struct fairwq_burst burst;	/* R */
	struct rcu_head rcu;
};

/*
 * A pool: a fair tree of batches, and runners that serve it.
 *
 * The fields of one file are in a struct that its header declares.
 */
struct fairwq_pool {
	/* Read by every queue call, hardly ever written. */
	struct workqueue_struct *wq;	/* I */
	const char *name;		/* I */
	enum fairwq_policy policy;	/* p: a hint for bursts */
	bool draining;			/* set, then each inbox->lock is taken: pool_is_idle() */
	bool histograms;		/* p: new batches get some; a hint */
	unsigned int flags;		/* I */
	unsigned int cpu;		/* I: whose workers run it; or WORK_CPU_UNBOUND */
	u32 (*cost)(const struct fairwq_work *work); /* I: for FAIRWQ_FAIR_COST */
	/* I: or NULL */
	void (*failed)(struct fairwq_batch *batch, fairwq_func_t func, int err);

	raw_spinlock_t lock ____cacheline_aligned_in_smp; /* see the order above */
	struct fairwq_crew crew;	/* see runner.h */
	struct fairwq_tree tree;	/* P; debugfs reads a number without */
	u16 policy_gen;			/* P: changes with the policy */
	unsigned int slice_us;		/* p: estimate for a turn of an unmeasured batch; a hint */
	struct fairwq_tally tally;	/* see stats.h */
	struct fairwq_watch watch;	/* see watchdog.h */
	struct fairwq_waits waits;	/* see waiter.h */

	struct fairwq_registry registry; /* see registry.h */
	struct {			/* see debugfs.c */
		struct dentry *dir;
		struct list_head link;	/* of all pools */
	} debugfs;
	struct kref refs;		/* A: the owner and every batch */
	struct rcu_head rcu;
	struct lock_class_key runner_key, wait_key, released_key; /* I */
	struct lockdep_map lockdep_map, released_map; /* see lockdep.h */
};

/* Longest name of a pool or batch, in bytes; see name.c. */
#define FAIRWQ_MAX_NAME		63U

/* Most owners of a batch, each being the next one's. */
#define FAIRWQ_MAX_DEPTH	8

/*
 * An inbox: where queue calls put the works of a batch, until a holder of
 * pool->lock takes them over: when it finds the FIFO empty, or for a flush, a
 * cancel or a dump.
 *
 * Invariant: @watched is set while @works is not empty. The call that sets it
 * looks at the batch under pool->lock soon. After that, the FIFO is not empty
 * as long as @watched is set.
 */
struct fairwq_inbox {
	raw_spinlock_t lock;		/* see the order above */
	bool watched;			/* b: a holder of pool->lock will look here again */
	bool hurry;			/* B: a shutdown has ended the delays; set once */
	unsigned int nr_in;		/* b: works that were queued here, ever; may wrap */
	unsigned int nr_held;		/* B: works that will be: DELAYED, GRACE, TAKEN, HELD */
	struct list_head works;		/* B: in queue order */
	struct hlist_head delayed;	/* B: works whose timers are set, or have fired */
};

/*
 * A batch: one client's queue.
 *
 * Invariant: the node is in the tree iff @fifo is not empty, and its head is a
 * part of an item that has begun; or @paused is not set, @nr_canceling is 0,
 * and fewer than @max_active are in flight, those of @nr_parked left out.
 * Invariant: the head of @fifo is never a barrier.
 * Invariant: what is in @fifo is older than what is in the inbox.
 */
struct fairwq_batch {
	/* Read by queue calls and turns, hardly ever written. */
	struct fairwq_pool *pool;	/* I */
	bool disposed;			/* P and B to set, for good; or a hint: refuses items */
	u8 prio;			/* I: enum fairwq_prio */
	u8 depth;			/* I: number of its owners */
	unsigned int max_queued;	/* I: 0: no limit */
	unsigned int max_active;	/* I: 0: no limit */
	unsigned int nr_here;		/* p: 1 until it has left; read after each that leaves */
	unsigned int nr_owned;		/* p: the same of it and all below it, or of its flows */
	struct fairwq_batch_stats *stats; /* I; P for what it points to */
	const char *name;		/* I */
	u64 seq;			/* I */
	struct fairwq_batch *parent;	/* I: its owner, a reference; or NULL */

	/* Written by queue calls. A turn leaves this line alone, so that it does not move. */
	struct fairwq_inbox inbox ____cacheline_aligned_in_smp;
	/* Not touched by either, but there is room. */
	struct work_struct reap_work;	/* reaps the batch, then calls released() */
	struct kref refs;		/* A: holders, and the pool until it has left */
	unsigned int nr_dropping;	/* P: calls of dropped() by serializers */
	struct fairwq_node *group;	/* P, set once: as an owner, the place of all its batches */
	void (*released)(struct fairwq_batch *batch, void *priv); /* I */
	void *priv;			/* I */
	struct fairwq_sequencer *order;	/* I: of an ordered batch, or NULL */
	struct list_head link;		/* P, RCU to read: in registry.batches; until @reaped */

	/* What a turn writes is in two lines: the first of @node, and this one. */
	struct fairwq_node node;	/* P */
	struct list_head fifo;		/* P: in queue order, barriers among them */
	unsigned int in_flight[2];	/* P: turns, parked works and tasks, by color */
	unsigned int nr_out;		/* p: of nr_in: begun or cancelled; less those moved here */
	unsigned int nr_parked;		/* P: works that were parked, and have not begun since */
	unsigned int nr_canceling;	/* p: fairwq_batch_cancel() calls; as @paused */
	u8 color;			/* P: of the turns that begin now */
	u8 paused:1;			/* p: no item begins; a hint for a burst */
	u8 reaping:1;			/* P: will leave the pool */
	u8 quick:1;			/* P: its items are over at once, as a rule */
	bool dropping;			/* p: disposed, to drop what waits; @paused for good */
	bool reaped;			/* p: not in registry.batches any more; set once */
	struct completion *flush;	/* P: waits for the turns of the other color, or NULL */
	u64 done;			/* P: items and stolen tasks that have ended */

	struct fairwq_member member;	/* I: of flows, or all 0 */
	struct mutex flush_mutex;	/* one flush at a time */
	struct rcu_head rcu;		/* frees it when it was put */
};

static_assert(IS_ENABLED(CONFIG_LOCKDEP) || IS_ENABLED(CONFIG_DEBUG_MUTEXES) ||
	      IS_ENABLED(CONFIG_DEBUG_OBJECTS) || SMP_CACHE_BYTES > 128 ||
	      sizeof(struct fairwq_batch) <= 512);
static_assert(IS_ENABLED(CONFIG_LOCKDEP) || sizeof(struct fairwq_work) <= 64);
static_assert(IS_ENABLED(CONFIG_LOCKDEP) || sizeof(struct fairwq_serializer) <= 40);

static inline bool fairwq_batch_is_disposed(const struct fairwq_batch *batch)
{
	return READ_ONCE(batch->disposed);
}

/* Check whether items of @batch go on while memory is short. */
static inline bool fairwq_is_for_reclaim(const struct fairwq_batch *batch)
{
	return batch->pool->flags & FAIRWQ_MEM_RECLAIM;
}

#endif /* FAIRWQ_TYPES_H */
