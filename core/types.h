/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the rooms of fairwq share and nobody else sees.
 *
 * Locking. Every field carries one of these letters:
 *
 * I: set before anyone else can see the object, read-only after that
 * P: pool->lock; for the fields of a batch or a runner, that of its pool
 * p: written under pool->lock, also read without it; the comment says why a
 *    stale value does no harm
 * M: pool->mutex
 * F: batch->flush_mutex
 * K: runner->park_lock
 * A: atomic, or a lock-free list; the comment names who pairs with whom
 * R: only the worker that executes the runner
 *
 * Order: batch->flush_mutex, pool->mutex, pool->lock, runner->park_lock, or in
 * place of that one the lock of a constraint.
 * pool->lock is raw and irq-safe, so that a queue call may come from any
 * context but NMI, on PREEMPT_RT too; under it nothing sleeps and nothing is
 * allocated.
 *
 * When a pointer dies: a runner with its pool's destruction, and a grace period
 * after that its memory; a pool's memory one grace period after it was
 * destroyed and the memory of its last batch is gone (pool->refs);
 * a batch's memory one RCU grace period after its last reference. An eligible,
 * running or draining batch is kept by its pool's reference.
 */
#ifndef FAIRWQ_TYPES_H
#define FAIRWQ_TYPES_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "fairwq.h"
#include "tree.h"
#include "stats.h"

/*
 * fairwq_work.data: 0, or a batch, which is aligned to more than these bits; no batch
 * while a constraint keeps the work back.
 *
 * Whoever sets PENDING owns the work until he has pushed it. From the moment
 * that it is LINKED until it is started, only who holds the lock of the pool
 * changes the word. Before that, a cancel may leave CANCELED there, but not while it
 * is CONSTRAINED: see constraint.c.
 */
#define FAIRWQ_WORK_PENDING	BIT(0)	/* queued, not started */
#define FAIRWQ_WORK_LINKED	BIT(1)	/* has been seen under the lock; @place tells where */
#define FAIRWQ_WORK_CANCELED	BIT(2)	/* to be dropped by who finds it in @incoming */
#define FAIRWQ_WORK_DELAYED	BIT(3)	/* waits for its timer, or is pushed by it */
#define FAIRWQ_WORK_GRACE	BIT(4)	/* waits for a grace period, or is pushed after it */
/*
 * Waits in a constraint; with LINKED: in the list of a serializer or limiter, under its
 * lock; with GRACE: is let go, and about to be pushed, or was.
 */
#define FAIRWQ_WORK_CONSTRAINED	BIT(5)
#define FAIRWQ_WORK_FLAGS	63UL

/* fairwq_work.place, P: where a linked work is, and what is to be known of it. */
#define FAIRWQ_PLACE_FIFO	0	/* in batch->fifo */
#define FAIRWQ_PLACE_PARKED	1	/* waits for its last run to end */
#define FAIRWQ_PLACE_DROPPED	2	/* to be given back by a cancel of its batch */
#define FAIRWQ_PLACE_MASK	3
#define FAIRWQ_PLACE_BARRIER	BIT(2)	/* not a work: the place of a flush */
#define FAIRWQ_PLACE_TAKEN	BIT(3)	/* is or was parked: it is in flight already */
#define FAIRWQ_PLACE_COLOR	BIT(4)	/* and this is its color */
#define FAIRWQ_PLACE_AWAITED	BIT(5)	/* a flush waits for it: pool->waiters */

/* A runner goes back to the workqueue core after this long. */
#define FAIRWQ_RUNNER_QUANTUM_NS	(2 * NSEC_PER_MSEC)
#define FAIRWQ_DFL_HUNG_MS		30000U
#define FAIRWQ_DFL_SLICE_US		50U
/*
 * Under fair time the tree counts ns with so many bits of fraction: a ns at
 * the largest weight, where it counts a hundredth, is still 5 of its units.
 */
#define FAIRWQ_COST_NS_SHIFT		9
/*
 * A longer run time counts as this in the moving average: it is sooner forgotten.
 */
#define FAIRWQ_RUN_TIME_MAX_NS		(10ULL * NSEC_PER_MSEC)
/* A longer item costs as much as this one. */
#define FAIRWQ_COST_MAX_NS		(60ULL * NSEC_PER_SEC)

/*
 * A turn: one item given to one batch, from the moment the tree chose the batch until the
 * function has returned and the batch was told. A streak (streak.c) is one turn with
 * several items, and shows the one that runs.
 */
struct fairwq_turn {
	struct fairwq_batch *batch;	/* P: kept by its in-flight count; NULL: no turn */
	fairwq_func_t func;		/* P to begin, R in a streak; either may read it */
	const void *id;			/* likewise: address of the work; no more than that */
	struct fairwq_constraint *constraint; /* R: to be told of its end, or NULL */
	u64 stamp;			/* as @func: when it was queued; 0: not measured */
	u64 number;			/* P: of this turn, in its pool */
	u8 color;			/* P: index into batch->in_flight */
	bool timed;			/* P, R reads: @run is to be measured */
	bool quick;			/* P: as a rule its batch's items are over at once */
	bool jumps;			/* P: taken before one of a higher priority */
	bool slept;			/* R, P at the end: an item of it */
	u16 era;			/* P: pool->era when it was charged */
	u32 charged;			/* P: under fair time: what for, ns */
	unsigned int nr;		/* R, P at the end: items it had */
	unsigned int streak;		/* R, P at the end: items of its streak by now, or 0 */
	unsigned int held;		/* R, P at the end: of these, its batch was held for */
	u64 wait;			/* R: ns from @stamp to the start */
	u64 run;			/* R: ns, of the last item; 0: not measured */
	u64 took;			/* R: of all of them */
};

/* Most items of a serializer that one of a higher priority takes along. */
#define FAIRWQ_LIFT_MAX		64U
/* So many are shown per hold of the lock. */
#define FAIRWQ_DUMP_CHUNK	128U

/* A runner goes on with the items of one serializer; see streak.c. */
struct fairwq_streak {
	unsigned int nr;		/* R: items in it; 0: it has not begun */
	u64 budget;			/* R: ns; 0: none */
	u64 due;			/* R: when it is used up, ns */
	u64 lift_due;			/* R: and what is lifted has had its time */
	unsigned int left;		/* R: items before the clock is looked at again */
	bool alone;			/* R: it has none, and nothing else waits */
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
	bool wanted;			/* K; R reads: @parked is not empty */
	struct task_struct *task;	/* P: who executes it, while it is active */
	unsigned long started;		/* R: jiffies at the start of the item */
	unsigned long reported;		/* P: @started of a turn that was reported as hung */
	/* R: whose function runs, or ran last; see fairwq_park_locked() */
	struct fairwq_work *current_work;
	/* R reads: its streak is to end, as something waits for turns; set under P */
	bool yield;
	int cpu;			/* P: where it ran last */
	u64 began, now;			/* R: the first and the last clock of this run, ns */
	struct fairwq_turn turn;	/* see there */
	struct fairwq_streak streak;	/* R */
	struct rcu_head rcu;
};

/* A knob in debugfs: which one, and of which pool. */
#define FAIRWQ_NR_KNOBS	6

struct fairwq_knob_file {
	struct fairwq_pool *pool;
	unsigned int index;
};

struct seq_file;

/*
 * What an ideal server would do, that serves all clients of a rank that have a backlog at
 * once, by weight; for the self-check, see fairness.c.
 */
struct fairwq_ideal {
	u64 vtime;			/* P: service that each has had by now, by weight */
	s64 pending;			/* P: service that is not in @vtime yet, by no weight */
	s64 got;			/* P: turns of all in this window, whatever the weight */
	s64 waited;			/* P: for so many turns of others, when it began */
	u64 longest;			/* P: the most service at once in this window */
	u32 weight;			/* P: of those that have a backlog, together */
	u32 least;			/* P: the least of it in this window */
	u32 nr;				/* P: how many these are */
	u32 began;			/* P: and were when it began */
	u32 emptied;			/* P: the turn before which the last one left */
	bool busy;			/* P: there has been one in the whole window */
	bool streak;			/* P: one had several turns for one in this window */
};

/*
 * A pool: a fair tree of batches, and runners that serve it.
 *
 * Invariant: nr_active == number of runners that are not on idle_runners.
 */
struct fairwq_pool {
	/* Read by every queue call, hardly ever written. */
	struct workqueue_struct *wq;	/* I */
	const char *name;		/* I */
	enum fairwq_policy policy;	/* p: a push under the old one is re-sorted */
	bool draining;			/* p: set, then a grace period passes */
	unsigned int flags;		/* I */

	raw_spinlock_t lock ____cacheline_aligned_in_smp; /* see the table above */
	struct fairwq_tree tree;	/* P */
	u16 era;			/* P: changes with the policy */
	struct list_head idle_runners;	/* P: the one that ran last first */
	unsigned int nr_active;		/* P: runners kicked or running */
	unsigned int max_active;	/* P */
	unsigned int slice_us;		/* p: what an unknown turn is likely to take; a hint */
	unsigned int nr_quick;		/* P: turns under way that are over at once, as a rule */
	unsigned long quick_at;		/* P: jiffies when the last of these began */
	u64 turn_number;		/* P: of the turn that was taken last */
	u64 counter[FAIRWQ_NR_COUNTERS];/* P */
	u64 run_time;			/* P: ns, of the timed turns */
	unsigned int nr_eligible;	/* p: batches in the tree; a hint for who has one */
	struct list_head sorting;	/* P: batches that have something unsorted; */
					/* read without it: as a hint */
	struct fairwq_window window;	/* P: the self-check of promise 6 */
	struct list_head window_members[FAIRWQ_NR_RANKS]; /* P: nodes compared */
	struct fairwq_ideal ideal[FAIRWQ_NR_RANKS]; /* P: and what they are compared with */
	struct fairwq_node *just_left;	/* P: left the tree with the last turn, and may be back */
	unsigned int hung_ms;		/* P: 0: never report */
	unsigned long hung_reported;	/* P: jiffies of the last report */
	bool ticking;			/* P: @tick is due within a jiffy */
	struct timer_list tick;		/* finds turns that take long, and items that hang */
	struct list_head waiters;	/* P: flushes of one work each */

	atomic64_t last_arrival;	/* A: stamps under arrival order */

	struct mutex mutex;		/* see the table above */
	bool dying;			/* P: no new batches, no pause */
	bool quiet;			/* p: set once: nothing can come in, no push is under way */
	struct list_head batches;	/* P to write, P or RCU to read: by seq */
	struct list_head runners;	/* P and M to write, either to read */
	unsigned int nr_runners;	/* M */
	u64 next_seq;			/* P */
	unsigned int nr_batches;	/* p: who waits for none of them is woken */
	unsigned int nr_flows;		/* p: only to warn if it goes before them */
	wait_queue_head_t reaped;	/* woken when a batch has left */
	struct workqueue_struct *release_wq; /* A, set once: for released(), if a batch has one */
	struct fairwq_batch *default_batch[FAIRWQ_NR_RANKS]; /* I: by prio */
	struct dentry *dir;		/* in debugfs; see debugfs.c */
	struct list_head dir_link;	/* until there is debugfs; see debugfs.c */
	struct fairwq_knob_file knob_file[FAIRWQ_NR_KNOBS]; /* I */
	struct raw_notifier_head failure_chain; /* under @failure_rwsem */
	struct rw_semaphore failure_rwsem; /* see failure.c */
	struct kref refs;		/* A: the owner and every batch */
	struct rcu_head rcu;
#ifdef CONFIG_LOCKDEP
	struct lock_class_key runner_key, wait_key; /* I */
	struct lockdep_map lockdep_map;	/* held around items; taken by who waits */
#endif
};

/* So many owners may one batch have, one being the next one's. */
#define FAIRWQ_MAX_DEPTH	8

#define FAIRWQ_BATCH_DISPOSED	0	/* bit of batch->flags: refuse items */

/*
 * A place in a batch's FIFO; fires when everything before it has been taken.
 * Then @done is completed when the turns of its color have ended; or, without
 * @done, @fired is set at once.
 */
struct fairwq_barrier {
	struct fairwq_work entry;	/* P: in batch->fifo */
	unsigned int color;		/* P: of the turns to wait for */
	struct completion *done;	/* I */
	bool fired;			/* P */
};

/* In the queue of a constraint: a flush waits for what is before it. */
struct fairwq_marker {
	struct fairwq_work entry;	/* its place */
	struct completion done;
};

/* A flush of one work: it waits for one turn to end. */
struct fairwq_waiter {
	struct list_head node;		/* P: in pool->waiters */
	struct fairwq_work *work;	/* I */
	u64 turn;			/* P: number of its turn; 0: not taken yet */
	struct completion done;
};

/*
 * A batch: one client's queue.
 *
 * Invariant: the node is in the tree iff an item is in @fifo, @paused is not
 * set, @nr_canceling is 0 and fewer than @max_active are in flight, or the head was
 * put back; but for a guest of a streak, under one hold of the lock.
 * Invariant: the head of @fifo is never a barrier.
 * Invariant: what is in @fifo is older than @unsorted, which is older than
 * @sorted, which is older than @incoming. Without @unsorted nothing is in
 * @sorted; with it the batch is on pool->sorting.
 */
struct fairwq_batch {
	/* What a queue call into a busy batch touches. */
	struct llist_head incoming;	/* A: pushed, newest first */
	struct fairwq_pool *pool;	/* I */
	/*
	 * p: whoever holds the lock next will look at @incoming. Read after a
	 * push, with a full barrier on both sides; see batch_idle_locked().
	 */
	bool watched;
	/*
	 * p: so many works were cancelled on their way into @incoming; whoever
	 * pushes has to look. Read as @watched is; see cancel_unlinked_locked().
	 */
	unsigned int nr_canceled;
	unsigned long flags;		/* A: FAIRWQ_BATCH_*, set once */
	atomic_t nr_held;		/* A: works that will be pushed later, and cancels */
	unsigned int max_queued;	/* I: 0: no limit */
	atomic_t nr_queued;		/* A: pushed and not taken, if max_queued */
	enum fairwq_prio prio;		/* I */
	/* Not for that, but there is room. */
	const char *name;		/* I */
	u64 seq;			/* I */

	/* What a turn touches. */
	struct fairwq_node node ____cacheline_aligned_in_smp; /* P */
	struct list_head fifo;		/* P: in queue order, barriers among them */
	struct llist_node *unsorted;	/* P: out of @incoming, newest first */
	struct list_head sorted;	/* P: what was pushed after @unsorted, in queue order */
	unsigned int in_flight[2];	/* P: turns not ended, by color */
	unsigned int max_active;	/* I: 0: no limit */
	unsigned int nr_fifo;		/* P: works in @fifo and @sorted */
	unsigned int nr_parked;		/* P: works that wait for their last run to end */
	unsigned int nr_canceling;	/* P: cancels of it that look for what is queued */
	u8 color;			/* P: of the turns that begin now */
	bool paused;			/* P */
	bool closed;			/* p: disposed, and no push is under way; set once */
	bool reaping;			/* P: will leave the pool */
	bool reaped;			/* p: has left the pool; set once */
	bool is_default;		/* I */
	u8 depth;			/* I: how many owners it has */
	struct fairwq_barrier *barrier;	/* P: has fired and waits for its color */
	struct fairwq_batch_stats *stats; /* I; P for what it points to */

	struct fairwq_batch *parent;	/* I: its owner, a reference; or NULL */
	struct fairwq_node *group;	/* P, set once: as an owner, the place of all its batches */

	struct list_head link;		/* P: in pool->batches, until after @reaped is set */
	struct list_head sort_link;	/* P: in pool->sorting */
	struct mutex flush_mutex;	/* one flush at a time */
	struct rcu_work reap_work;	/* first after a grace period, then directly; last in */
					/* pool->release_wq; its rcu_head for the memory, too */
	void (*released)(struct fairwq_batch *batch, void *priv); /* I */
	void *priv;			/* I */
	struct kref refs;		/* A: holders, and the pool until it is reaped */
};

static_assert(IS_ENABLED(CONFIG_LOCKDEP) || IS_ENABLED(CONFIG_DEBUG_MUTEXES) ||
	      IS_ENABLED(CONFIG_DEBUG_OBJECTS) || SMP_CACHE_BYTES > 128 ||
	      sizeof(struct fairwq_batch) <= 512);
static_assert(IS_ENABLED(CONFIG_LOCKDEP) || sizeof(struct fairwq_work) <= 64);
static_assert(IS_ENABLED(CONFIG_LOCKDEP) || sizeof(struct fairwq_serializer) <= 56);

static inline bool fairwq_batch_is_disposed(const struct fairwq_batch *batch)
{
	return test_bit(FAIRWQ_BATCH_DISPOSED, &batch->flags);
}

/* Check whether a work with @data in its word is queued and not started. */
static inline bool fairwq_word_pending(long data)
{
	return (data & (FAIRWQ_WORK_PENDING | FAIRWQ_WORK_CANCELED)) == FAIRWQ_WORK_PENDING;
}

/* Where a pending work is queued, or will be; not if it is kept back, see below. */
static inline struct fairwq_batch *fairwq_work_batch(long data)
{
	return (struct fairwq_batch *)(data & ~FAIRWQ_WORK_FLAGS);
}

/*
 * It is in a constraint, or on its way there. Until it is let go @stamp says the batch.
 * Once it was let go it is about to be pushed, or was: then it is CONSTRAINED until it is
 * found there, which may take as long as its batch is not served, and has to be looked
 * for there.
 */
static inline bool fairwq_work_is_kept_back(long data)
{
	return (data & (FAIRWQ_WORK_CONSTRAINED | FAIRWQ_WORK_GRACE)) ==
	       FAIRWQ_WORK_CONSTRAINED;
}

/*
 * Check whether a work waits for its grace period, or was pushed after that and
 * is not linked yet.
 */
static inline bool fairwq_work_is_graced(long data)
{
	return (data & (FAIRWQ_WORK_CONSTRAINED | FAIRWQ_WORK_GRACE)) == FAIRWQ_WORK_GRACE;
}

/* Where it is bound for: while it is kept back, and after that until it is pushed. */
static inline struct fairwq_batch *fairwq_kept_batch(const struct fairwq_work *work)
{
	return (struct fairwq_batch *)(unsigned long)work->stamp;
}

static inline unsigned int fairwq_work_place(const struct fairwq_work *work)
{
	return work->place & FAIRWQ_PLACE_MASK;
}

/* The next item; not a barrier. */
static inline struct fairwq_work *fairwq_head_locked(const struct fairwq_batch *batch)
{
	lockdep_assert_held(&batch->pool->lock);

	return list_first_entry(&batch->fifo, struct fairwq_work, node);
}

/* Something stands in the tree, or will when it was put into order. */
static inline bool fairwq_has_work_locked(const struct fairwq_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	return pool->nr_eligible || !list_empty(&pool->sorting);
}

/* It ran last on another runner than @id. */
static inline bool fairwq_ran_elsewhere(const struct fairwq_work *work, u32 id)
{
	return unlikely(work->last_runner && work->last_runner != id);
}

/* 0 is served first. */
static inline unsigned int fairwq_prio_rank(enum fairwq_prio prio)
{
	return prio == FAIRWQ_PRIO_HIGH ? 0 : prio == FAIRWQ_PRIO_NORMAL ? 1 : 2;
}

/* Monotonic ns; any context. Never a reason for an order, but see FAIRWQ_FIFO. */
static inline u64 fairwq_clock(void)
{
	return ktime_get_mono_fast_ns();
}

/* NULL or an ERR_PTR(), found by one comparison. */
static __always_inline bool fairwq_is_no_pointer(const void *p)
{
	return unlikely((unsigned long)p - 1 >= (unsigned long)-MAX_ERRNO - 1);
}

/* Bad input: one line that names the argument, and -EINVAL. */
#define fairwq_bad_arg(arg)						\
	({								\
		pr_warn_once("%s: invalid argument: " arg "\n", __func__);\
		-EINVAL;						\
	})

#endif /* FAIRWQ_TYPES_H */
