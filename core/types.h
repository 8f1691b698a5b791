/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Types: the structures of fairwq, their locking, and the states of a work.
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
 * M: pool->mutex
 * K: runner->park_lock
 * A: atomic, or a lock-free list; the comment names the partners
 * R: only the worker that executes the runner
 *
 * Order: batch->flush_mutex, pool->mutex, the lock of a serializer, pool->lock,
 * runner->park_lock, then inbox->lock.
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
#include "tree.h"
#include "stats.h"

/*
 * The state of a work. fairwq_work.data is 0, or one of these and the batch that the work is
 * bound for, which is aligned to more than STATE_MASK.
 *
 * State    Where the work is       What changes the state           A cancel
 * -------- ----------------------  -------------------------------  -------------------
 * idle     nowhere                 a queue call claims the work     returns false
 * queued   inbox->works, then      its turn, under pool->lock       takes it out
 *          batch->fifo
 * parked   runner->parked          its last run ends: pool->lock    takes it out
 * listed   waits in a serializer   lock of the serializer           takes it out
 * delayed  inbox->delayed, its     the timer, under inbox->lock     deletes the timer; tries
 *          timer is set                                             again if that fires
 * grace    RCU has it              RCU, under inbox->lock           returns false, or waits
 * taken    a call moves it to      that call, with interrupts off   tries again
 *          another place
 * running  runner->current_work;   as idle: it may be queued again  returns false, or waits
 *          the word is 0
 *
 * A work enters each state under the inbox->lock of its batch, or leaves another one under the
 * lock in the third column. A cancel has that lock. So it finds the work, or the work is in
 * another state.
 *
 * "Or waits" is fairwq_work_cancel_sync(); fairwq_work_cancel() does not wait. "Tries again"
 * is soon over, because the other CPU has interrupts off.
 */
enum fairwq_state {
	FAIRWQ_STATE_IDLE,		/* or running */
	FAIRWQ_STATE_QUEUED,
	FAIRWQ_STATE_PARKED,
	FAIRWQ_STATE_LISTED,
	FAIRWQ_STATE_DELAYED,
	FAIRWQ_STATE_GRACE,
	FAIRWQ_STATE_TAKEN,
};

#define FAIRWQ_STATE_MASK	7UL

/*
 * fairwq_work.flags. The owner of the work sets them; P once it is queued, and under the lock
 * of the serializer while it is LISTED.
 */
#define FAIRWQ_WORK_BARRIER	BIT(0)	/* not a work: a barrier or a marker */
#define FAIRWQ_WORK_COUNTED	BIT(1)	/* is or was parked: counted as in flight */
#define FAIRWQ_WORK_COLOR	BIT(2)	/* color of a COUNTED work */
#define FAIRWQ_WORK_FORK	BIT(3)	/* of a promoted task */
#define FAIRWQ_WORK_OWN		BIT(4)	/* in a struct fairwq_own_work; never cleared */
#define FAIRWQ_WORK_HELD	BIT(5)	/* LISTED, and in nr_held of its batch */

/* A runner goes back to the workqueue core after this long, counted in ticks. */
#define FAIRWQ_RUNNER_QUANTUM_MS	2
#define FAIRWQ_DFL_HUNG_MS		30000U
#define FAIRWQ_DFL_SLICE_US		50U
/*
 * Bits of fraction of a ns in the tree, under fair time. At the largest weight
 * a ns counts a hundredth, which is still 5 units.
 */
#define FAIRWQ_COST_NS_SHIFT		9
/* Most that one run time counts in the average, so that it is soon forgotten. */
#define FAIRWQ_RUN_TIME_MAX_NS		(10ULL * NSEC_PER_MSEC)
/* Items are over at once if they take less than this on average. */
#define FAIRWQ_QUICK_NS			1000U
/* Most that one item costs. */
#define FAIRWQ_COST_MAX_NS		(60ULL * NSEC_PER_SEC)

/*
 * A turn: one item, given to one batch. It lasts from the tree's choice of the
 * batch until the function has returned and the turn is accounted. In a burst
 * (burst.c) a turn may have several items; it then shows the one that runs.
 */
struct fairwq_turn {
	struct fairwq_batch *batch;	/* P: kept by its in-flight count; NULL: no turn */
	fairwq_func_t func;		/* P to begin, R in a burst; either may read it */
	/* as @func: address of the work, which may be gone; NULL: no client has queued it */
	const void *id;
	struct fairwq_serializer *serializer; /* R: to be completed at its end, or NULL */
	u64 stamp;			/* as @func: time of queueing; 0: not measured */
	u64 number;			/* P: of this turn, in its pool */
	u8 color;			/* P: index into batch->in_flight */
	bool timed;			/* P, R reads: @run is to be measured */
	bool quick;			/* P: its batch takes less than FAIRWQ_QUICK_NS a turn */
	bool out_of_rank;		/* P: taken before a turn of a higher priority */
	bool slept;			/* R, P at the end: an item of it has slept */
	u16 policy_gen;			/* P: pool->policy_gen when it was charged */
	u32 charged;			/* P: what it was charged, in the unit of the policy */
	unsigned int nr;		/* R, P at the end: number of its items */
	u64 wait;			/* R: ns from @stamp to the start; 0: not measured */
	u64 run;			/* R: ns, of the last item; 0: not measured */
	u64 took;			/* R, P at the end: ns, of all items; 0: not measured */
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

/* On whose behalf a function runs: references. See context.c. */
struct fairwq_context {
	struct kref refs;		/* A */
	const struct cred *cred;	/* I */
	struct mem_cgroup *memcg;	/* I: NULL without memory cgroups */
	struct cgroup_subsys_state *blkcg; /* I: NULL without block cgroups */
};

/*
 * The function of each work in a sequencer; NULL: none was set up. What the client has named
 * is in the work. See sequencer.c.
 */
extern fairwq_func_t fairwq_sequenced_func;

/*
 * A work that no client has queued: of a call that waits for it, and has it on its stack. It
 * is WORK_OWN, so it never reaches a client's callback, and no cancel counts it.
 */
struct fairwq_own_work {
	struct fairwq_work work;
	struct completion done;		/* it has run, or a cancel has taken it out */
	int ret;			/* until then the caller's; 0 or -ECANCELED */
};

/* Return the function that tables and traces show for @work, which waits or begins. */
static inline fairwq_func_t fairwq_shown_func(const struct fairwq_work *work)
{
	if (unlikely(work->flags & FAIRWQ_WORK_FORK))
		return (fairwq_func_t)(void *)container_of(work, struct fairwq_task, work)->func;
	if (unlikely(work->func == READ_ONCE(fairwq_sequenced_func)))
		return container_of(work, struct fairwq_sequenced_work, work)->func;
	return work->func;
}

/*
 * A forker: what a runner needs beside, once an item of it has forked. Only that runner uses
 * it. See fork.c.
 */
struct fairwq_forker {
	struct fairwq_forks forks;	/* private tasks */
	struct list_head promoted;	/* tasks that were promoted, and not joined */
	struct fairwq_runner *runner;
	fairwq_func_t run_task;		/* the function of the work of a task */
	unsigned int skip;		/* calls before the clock is read again */
	unsigned int step;		/* @skip, as it was set last */
	u64 promote_at;			/* not before, ns */
	unsigned int scopes;		/* p: FAIRWQ_SCOPES of @promoted, all together */
};

/*
 * A runner: a work of the backing workqueue that takes turns.
 *
 * Invariant: on pool->idle_runners iff it is neither kicked nor running.
 */
struct fairwq_runner {
	struct work_struct work;
	struct fairwq_pool *pool;	/* I */
	u32 id;				/* I: index in fairwq_runners */
	struct list_head node;		/* P and M to write, either to read: in pool->runners */
	struct list_head idle_node;	/* P: in pool->idle_runners */
	raw_spinlock_t park_lock;	/* of @parked; taken under any pool's lock */
	struct list_head parked;	/* K: works that wait for current_work to end */
	bool has_parked;		/* K; R reads: @parked is not empty */
	struct task_struct *task;	/* P: worker that executes it, while it is active */
	unsigned long started;		/* R: jiffies: the item began, or it went idle */
	unsigned long reported;		/* P: @started of an item that was reported as hung */
	/* R: the work that runs, or ran last; see fairwq_park_locked() */
	struct fairwq_work *current_work;
	/* P to set, R reads: a burst must end, because a call waits for turns */
	bool yield;
	int cpu;			/* P: CPU that it ran on last */
	u64 since;			/* R: start of the item, later by what it slept; or 0 */
	struct fairwq_forker *forker;	/* R, set once: NULL: no item has forked yet */
	/* R; read by its tasks: that of the item, while the function runs, or NULL */
	const struct fairwq_sequencer *sequencer;
	unsigned int nr_blocks;		/* R: sections of the item that may block */
	u64 blocked_at;			/* R: ns, when the outermost of them began */
	struct fairwq_context *context;	/* R: that of the item, or NULL */
	struct fairwq_runner *origin;	/* R: of the task that it has taken, or NULL */
	struct fairwq_turn turn;	/* letters as in the struct */
	struct fairwq_burst burst;	/* R */
	struct rcu_head rcu;
};

/*
 * A pool: a fair tree of batches, and runners that serve it.
 *
 * Invariant: nr_active == number of runners that are not on idle_runners, less those
 * whose item waits in a join; see fork.c.
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
	struct fairwq_tree tree;	/* P */
	u16 policy_gen;			/* P: changes with the policy */
	struct list_head idle_runners;	/* P: the last to run is first */
	unsigned int nr_active;		/* P: runners kicked or running */
	unsigned int max_active;	/* P and M to write, either to read */
	bool hungry;			/* p: fewer are active than may; a hint for forks */
	bool forks;			/* p: an item has forked; set once */
	unsigned int slice_us;		/* p: estimate for a turn of an unmeasured batch; a hint */
	unsigned int nr_quick;		/* P: turns in flight with @quick set */
	unsigned long quick_at;		/* P: jiffies when the last of these began */
	u64 turn_number;		/* P: number of the turn that was taken last */
	u64 counter[FAIRWQ_NR_COUNTERS];/* P */
	unsigned int nr_async;		/* P: turns in flight whose function has returned */
	unsigned int max_async;		/* I: most of them */
	unsigned long async_at;		/* P: jiffies when @nr_async changed last */
	unsigned long async_told;	/* P: @async_at of a standstill that was reported */
	unsigned int nr_eligible;	/* P: batches in the tree */
	unsigned int hung_ms;		/* P: 0: never report */
	unsigned long hung_reported;	/* P: jiffies of the last report */
	bool ticking;			/* P: @tick is due within a jiffy */
	struct timer_list tick;		/* finds long turns of quick batches, and hung items */
	struct list_head waiters;	/* P: flushes of one work each */
	struct list_head end_waiters;	/* P: calls that wait for batches to leave */

	atomic64_t flow_fallbacks;	/* A: a count, which orders nothing */

	struct mutex mutex;		/* see the order above */
	bool dying;			/* P: no new batches, no pause */
	struct list_head batches;	/* P to write, P or RCU to read: by seq */
	struct list_head runners;	/* P to add, P and M to remove; P to read, or M as by RCU */
	unsigned int nr_runners;	/* p: a stale value adds one too many or too few */
	struct delayed_work shrink;	/* takes idle runners away that are too many */
	u64 next_seq;			/* P */
	unsigned int nr_batches;	/* p: read again after each that leaves */
	atomic_t nr_flows;		/* A: only for a warning if the pool goes before them */
	struct fairwq_batch *default_batch[FAIRWQ_NR_RANKS]; /* I: by prio */
	struct dentry *dir;		/* in debugfs; see debugfs.c */
	struct list_head dir_link;	/* of all pools; see debugfs.c */
	struct kref refs;		/* A: the owner and every batch */
	struct rcu_head rcu;
	struct lock_class_key runner_key, wait_key; /* I */
	struct lockdep_map lockdep_map;	/* see lockdep.h */
};

/* Longest name of a pool or batch, in bytes; see name.c. */
#define FAIRWQ_MAX_NAME		63U

/* Most owners of a batch, each being the next one's. */
#define FAIRWQ_MAX_DEPTH	8

/* Bits of batch->flags. */
#define FAIRWQ_BATCH_DISPOSED	0	/* refuse items; P to set */
#define FAIRWQ_BATCH_LEFT	1	/* released() has returned; P to set */

/*
 * A barrier: a place in a batch's FIFO. It fires when everything before it has
 * been taken, and sets @fired. With @done, the batch changes its color, and that is
 * completed when the turns of the other color have ended.
 */
struct fairwq_barrier {
	struct fairwq_work entry;	/* P: in batch->fifo */
	struct completion *done;	/* I */
	bool fired;			/* P */
};

/* A marker: a place in the list of a serializer. A flush waits for all before it. */
struct fairwq_marker {
	struct fairwq_work entry;	/* lock of the serializer: in serializer->waiting */
	struct completion done;
};

/* A waiter: a flush of one work, which waits for one turn to end; see waiter.c. */
struct fairwq_waiter {
	struct list_head node;		/* P: in pool->waiters */
	const void *what;		/* I: the work */
	u64 turn;			/* P: number of its turn; 0: not taken yet */
	bool for_reclaim;		/* I, if a work is waited for: of its pool */
	struct completion done;
};

/* A call that waits for batches to leave, and may have to drop what they get meanwhile. */
struct fairwq_end_waiter {
	struct list_head node;		/* P: in pool->end_waiters */
	const struct fairwq_batch *batch; /* I: NULL: all of the pool */
	struct completion done;		/* P to clear: there is something to look at */
};

/*
 * An inbox: where queue calls put the works of a batch, until a turn finds its FIFO empty, and
 * takes them over.
 *
 * Invariant: @watched is set while @works is not empty. The call that sets it looks at the
 * batch under pool->lock soon. After that, the FIFO is not empty as long as @watched is set.
 */
struct fairwq_inbox {
	raw_spinlock_t lock;		/* see the order above */
	bool watched;			/* B: a holder of pool->lock will look here again */
	bool hurry;			/* B: a shutdown has ended the delays; set once */
	unsigned int nr_in;		/* b: works that were queued here, ever; may wrap */
	unsigned int nr_held;		/* b: works that will be: DELAYED, GRACE, TAKEN, HELD */
	struct list_head works;		/* b: in queue order; empty or not is read without */
	struct hlist_head delayed;	/* B: works whose timers are set */
};

/*
 * A batch: one client's queue.
 *
 * Invariant: the node is in the tree iff
 * - an item is in @fifo, and it is a part of one that has begun; or
 * - @paused is not set, and @nr_canceling is 0, and
 * - fewer than @max_active are in flight, or the head was put back.
 * Invariant: the head of @fifo is never a barrier.
 * Invariant: what is in @fifo is older than what is in the inbox.
 */
struct fairwq_batch {
	/* Read by queue calls and turns, hardly ever written. */
	struct fairwq_pool *pool;	/* I */
	unsigned long flags;		/* A: FAIRWQ_BATCH_*, set once */
	u8 prio;			/* I: enum fairwq_prio */
	u8 depth;			/* I: number of its owners */
	bool is_default;		/* I */
	unsigned int max_queued;	/* I: 0: no limit */
	unsigned int max_active;	/* I: 0: no limit */
	unsigned int nr_owned;		/* p: batches below it that have not left */
	struct fairwq_batch_stats *stats; /* I; P for what it points to */
	const char *name;		/* I */
	u64 seq;			/* I */
	struct fairwq_batch *parent;	/* I: its owner, a reference; or NULL */

	/* Written by queue calls. A turn leaves this line alone, so that it does not move. */
	struct fairwq_inbox inbox ____cacheline_aligned_in_smp;
	/* Not touched by either, but there is room. */
	struct kref refs;		/* A: holders, and the pool until it is reaped */
	struct fairwq_node *group;	/* P, set once: as an owner, the place of all its batches */
	void (*released)(struct fairwq_batch *batch, void *priv); /* I */
	void *priv;			/* I */
	struct list_head link;		/* P: in pool->batches, until after @reaped is set */

	/* What a turn touches. */
	struct fairwq_node node ____cacheline_aligned_in_smp; /* P */
	struct list_head fifo;		/* P: in queue order, barriers among them */
	unsigned int in_flight[2];	/* P: turns not ended, by color */
	unsigned int nr_out;		/* p: works that have begun, or were cancelled; of nr_in */
	unsigned int nr_parked;		/* P: works that wait for their last run to end */
	unsigned int nr_canceling;	/* P: fairwq_batch_cancel() calls; no item begins */
	u8 color;			/* P: of the turns that begin now */
	u8 paused:1;			/* p: no item begins; a hint for a burst */
	u8 dropping:1;			/* P: disposed, to drop what waits; @paused for good */
	u8 reaping:1;			/* P: will leave the pool */
	u8 quick:1;			/* P: its items are over at once, as a rule */
	bool reaped;			/* p: has left the pool; set once */
	struct completion *flush;	/* P: waits for the turns of the other color, or NULL */
	u64 done;			/* P: items that have ended */

	struct mutex flush_mutex;	/* one flush at a time */
	struct work_struct reap_work;	/* reaps the batch, then calls released() */
	struct rcu_head rcu;		/* frees it when it was put */
};

static_assert(IS_ENABLED(CONFIG_LOCKDEP) || IS_ENABLED(CONFIG_DEBUG_MUTEXES) ||
	      IS_ENABLED(CONFIG_DEBUG_OBJECTS) || SMP_CACHE_BYTES > 128 ||
	      sizeof(struct fairwq_batch) <= 512);
static_assert(IS_ENABLED(CONFIG_LOCKDEP) || sizeof(struct fairwq_work) <= 64);
static_assert(IS_ENABLED(CONFIG_LOCKDEP) || sizeof(struct fairwq_serializer) <= 40);

static inline bool fairwq_batch_is_disposed(const struct fairwq_batch *batch)
{
	return test_bit(FAIRWQ_BATCH_DISPOSED, &batch->flags);
}

/* Return the word of a work that is bound for @batch, and in @state. */
static inline long fairwq_word(const struct fairwq_batch *batch, enum fairwq_state state)
{
	return (long)batch | state;
}

/* Return the state of a work with @word. */
static inline enum fairwq_state fairwq_word_state(long word)
{
	return word & FAIRWQ_STATE_MASK;
}

/* Return the batch that a work with @word is bound for. */
static inline struct fairwq_batch *fairwq_word_batch(long word)
{
	return (struct fairwq_batch *)(word & ~FAIRWQ_STATE_MASK);
}

/* Return the batch that a pending work is bound for. */
static inline struct fairwq_batch *fairwq_work_batch(const struct fairwq_work *work)
{
	return fairwq_word_batch(atomic_long_read(&work->data));
}

static inline bool fairwq_work_pending_in(const struct fairwq_work *work, enum fairwq_state state)
{
	return fairwq_word_state(atomic_long_read(&work->data)) == state;
}

/* Return the first item of @batch. Its FIFO must not be empty. */
static inline struct fairwq_work *fairwq_head_locked(const struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	return list_first_entry(&batch->fifo, struct fairwq_work, node);
}

/*
 * Check whether a batch is in the tree, and a turn may begin.
 */
static inline bool fairwq_has_work_locked(const struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	return pool->nr_eligible && pool->nr_async < pool->max_async;
}

/*
 * Return how many runners may be active: each may have a turn that will go on after its
 * function. So no turn that begins can lead to more than @max_async that do.
 */
static inline unsigned int fairwq_seats_locked(const struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	return min(pool->max_active, pool->max_async - min(pool->nr_async, pool->max_async));
}

/* Check whether a work ran last on another runner than @id. */
static inline bool fairwq_park_ran_elsewhere(const struct fairwq_work *work, u32 id)
{
	u32 last = READ_ONCE(work->last_runner);

	return unlikely(last && last != id);
}

/* Check whether @work is a part of an item in flight, which no client has queued. */
static inline bool fairwq_is_of_item(const struct fairwq_work *work)
{
	return work->flags & FAIRWQ_WORK_FORK;
}

/* Check whether a client has queued @work. */
static inline bool fairwq_is_of_client(const struct fairwq_work *work)
{
	return !(work->flags & (FAIRWQ_WORK_FORK | FAIRWQ_WORK_OWN));
}

/* Check whether items of @batch go on while memory is short. */
static inline bool fairwq_is_for_reclaim(const struct fairwq_batch *batch)
{
	return batch->pool->flags & FAIRWQ_MEM_RECLAIM;
}

/* Return pool->slice_us in ns. A hint, which is written under the pool's lock. */
static inline u64 fairwq_slice_ns(const struct fairwq_pool *pool)
{
	return (u64)(READ_ONCE(pool->slice_us) ?: FAIRWQ_DFL_SLICE_US) * NSEC_PER_USEC;
}

/* Return the rank of a priority; rank 0 is served first. */
static inline unsigned int fairwq_prio_rank(enum fairwq_prio prio)
{
	return prio == FAIRWQ_PRIO_HIGH ? 0 : prio == FAIRWQ_PRIO_NORMAL ? 1 : 2;
}

/* Read the monotonic clock, ns; in any context. Nothing is ordered by it. */
static inline u64 fairwq_clock(void)
{
	return ktime_get_mono_fast_ns();
}

/* Check for NULL or an ERR_PTR() by one comparison. */
static __always_inline bool fairwq_is_no_pointer(const void *p)
{
	return unlikely((unsigned long)p - 1 >= (unsigned long)-MAX_ERRNO - 1);
}

/* Report bad input by one line that names the argument. Return: -EINVAL. */
#define fairwq_bad_arg(arg)						\
	({								\
		pr_warn_once("%s: invalid argument: " arg "\n", __func__);\
		-EINVAL;						\
	})

#endif /* FAIRWQ_TYPES_H */
