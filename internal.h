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
 * A: atomic, or a lock-free list; the comment names who pairs with whom
 * R: only the worker that executes the runner
 * S: a flag that is set once and never cleared
 *
 * Order: batch->flush_mutex, pool->mutex, pool->lock.
 * pool->lock is raw and irq-safe, so that a queue call may come from any
 * context but NMI, on PREEMPT_RT too; under it nothing sleeps and nothing is
 * allocated.
 *
 * When a pointer dies: a runner with its pool's destruction; a pool's memory
 * when it was destroyed and the memory of its last batch is gone (pool->refs);
 * a batch's memory one RCU grace period after its last reference. An eligible,
 * running or draining batch is kept by its pool's reference.
 */
#ifndef FAIRWQ_INTERNAL_H
#define FAIRWQ_INTERNAL_H

#include <linux/kref.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "fairwq.h"
#include "mutant.h"
#include "pick.h"
#include "stats.h"

/* fairwq_work.state */
#define FAIRWQ_WORK_PENDING	BIT(0)	/* queued, not started */
#define FAIRWQ_WORK_COLOR	BIT(1)	/* of a turn that was handed over */
#define FAIRWQ_WORK_BARRIER	BIT(2)	/* not a work: the place of a flush */

/* A runner goes back to the workqueue core after this long. */
#define FAIRWQ_RUNNER_QUANTUM_NS	(2 * NSEC_PER_MSEC)
#define FAIRWQ_DFL_HUNG_MS		30000U

/*
 * One item given to one batch: from the moment the tree chose the batch until
 * the function has returned and the batch was told.
 */
struct fairwq_turn {
	struct fairwq_work *work;	/* not to be touched once started */
	struct fairwq_batch *batch;	/* kept by its in-flight count */
	fairwq_func_t func;
	unsigned int color;		/* index into batch->in_flight */
	u64 wait;			/* ns from queueing to the start, if measured */
	bool wait_measured;
	u64 started;			/* clock, ns */
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
	struct task_struct *task;	/* P: who executes it, while it takes turns */
	struct fairwq_turn turn;	/* P, and R reads: what it runs */
	bool reported_hung;		/* P: this turn was reported */
	/*
	 * A: the work whose function runs now, and RUNNER_AGAIN if it was
	 * queued again meanwhile, and its next turn handed over to us. See
	 * fairwq_hand_over().
	 */
	atomic_long_t current_work;
	struct rcu_head rcu;
};

/* A knob in debugfs: which one, and of which pool. */
#define FAIRWQ_NR_KNOBS	4

struct fairwq_knob_file {
	struct fairwq_pool *pool;
	unsigned int index;
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
	struct list_head idle_runners;	/* P: the one that ran last first */
	unsigned int nr_active;		/* P: runners kicked or running */
	unsigned int max_active;	/* P */
	u64 counter[FAIRWQ_NR_COUNTERS];/* P */
	struct fairwq_window window;	/* P: the self-check of promise 6 */
	unsigned int hung_ms;		/* P: 0: never report */
	struct timer_list watchdog;	/* finds items that hang */

	atomic64_t last_arrival;	/* A: stamps under arrival order */

	struct mutex mutex;		/* see the table above */
	bool dying;			/* M: being destroyed, no new batches */
	struct list_head batches;	/* M: by seq */
	struct list_head runners;	/* P and M to write, either to read */
	unsigned int nr_runners;	/* M */
	u64 next_seq;			/* M */
	unsigned int nr_batches;	/* M */
	wait_queue_head_t reaped;	/* woken when a batch has left */
	struct fairwq_batch *default_batch[FAIRWQ_NR_RANKS]; /* I: by prio */
	struct dentry *dir;		/* I */
	struct fairwq_knob_file knob_file[FAIRWQ_NR_KNOBS]; /* I */
	struct kref refs;		/* A: the owner and every batch */
};

/* A place in a batch's FIFO; fires when everything before it has been taken. */
struct fairwq_barrier {
	struct fairwq_work entry;	/* P: in batch->fifo */
	unsigned int color;		/* P: of the turns to wait for */
	struct completion *done;	/* I */
};

/*
 * A batch: one client's queue.
 *
 * Invariant: the node is in the tree iff an item is in @fifo, @paused is not
 * set and fewer than @max_active are in flight.
 * Invariant: the head of @fifo is never a barrier.
 */
struct fairwq_batch {
	/* What a queue call into a busy batch touches. */
	struct llist_head incoming;	/* A: pushed, newest first */
	struct fairwq_pool *pool;	/* I */
	/*
	 * p: whoever holds the lock next will look at @incoming. Read after a
	 * push, with a full barrier on both sides; see fairwq_batch_idle_locked().
	 */
	bool watched;
	bool disposed;			/* S: refuse items; by xchg */
	unsigned int max_queued;	/* I: 0: no limit */
	atomic_t nr_queued;		/* A: pushed and not taken, if max_queued */

	/* What a turn touches. */
	struct fairwq_node node ____cacheline_aligned_in_smp; /* P */
	struct list_head fifo;		/* P: in queue order, barriers among them */
	unsigned int in_flight[2];	/* P: turns not ended, by color */
	unsigned int color;		/* P: of the turns that begin now */
	unsigned int max_active;	/* I: 0: no limit */
	unsigned int nr_fifo;		/* P: works in @fifo */
	bool paused;			/* P */
	bool closed;			/* P: disposed, and no push is under way */
	bool reaped;			/* P: has left the pool */
	bool is_default;		/* I */
	enum fairwq_prio prio;		/* I */
	u64 window_seq;			/* P: eligible since that window began; 0: not */
	u64 window_base;		/* P: stats->turns when it began */
	struct fairwq_barrier *barrier;	/* P: has fired and waits for its color */
	struct fairwq_batch_stats *stats; /* I; P for what it points to */

	const char *name;		/* I */
	u64 seq;			/* I */
	struct list_head link;		/* M: in pool->batches */
	struct mutex flush_mutex;	/* one flush at a time */
	struct rcu_work reap_work;	/* first after a grace period, then directly */
	void (*released)(struct fairwq_batch *batch, void *priv); /* I */
	void *priv;			/* I */
	struct kref refs;		/* A: holders, and the pool until it is reaped */
	struct rcu_head rcu;
};

static_assert(IS_ENABLED(CONFIG_LOCKDEP) || IS_ENABLED(CONFIG_DEBUG_MUTEXES) ||
	      sizeof(struct fairwq_batch) <= 512);
static_assert(IS_ENABLED(CONFIG_LOCKDEP) || sizeof(struct fairwq_work) <= 64);

/* fairwq.c: queueing and runners */
extern struct workqueue_struct *fairwq_reap_wq;
void fairwq_kick(struct fairwq_pool *pool);
struct fairwq_runner *fairwq_kick_locked(struct fairwq_pool *pool);
void fairwq_kick_send(struct fairwq_pool *pool, struct fairwq_runner *runner);
struct fairwq_runner *fairwq_current_runner(void);
struct fairwq_runner *fairwq_runner_alloc(struct fairwq_pool *pool);
void fairwq_runner_free(struct fairwq_runner *runner);

/* fifo.c: one batch's items, under the lock */
bool fairwq_batch_splice_locked(struct fairwq_batch *batch);
void fairwq_batch_update_locked(struct fairwq_batch *batch);
struct fairwq_work *fairwq_batch_pop_locked(struct fairwq_batch *batch);
void fairwq_batch_add_barrier_locked(struct fairwq_batch *batch,
				     struct fairwq_barrier *barrier);
void fairwq_batch_turn_begin_locked(struct fairwq_batch *batch,
				    struct fairwq_turn *turn);
void fairwq_batch_turn_end_locked(struct fairwq_turn *turn, u64 now);
bool fairwq_batch_drained_locked(const struct fairwq_batch *batch);

/* batch.c */
struct fairwq_batch *fairwq_batch_new(struct fairwq_pool *pool,
				      const struct fairwq_batch_attrs *attrs,
				      bool is_default, const char *name);
void fairwq_batch_retire(struct fairwq_batch *batch);
void fairwq_batch_wait(struct fairwq_batch *batch);

/* pool.c */
void fairwq_pool_put(struct fairwq_pool *pool);
void fairwq_pool_set_policy(struct fairwq_pool *pool, enum fairwq_policy policy);
void fairwq_pool_reset_stats(struct fairwq_pool *pool);

/* fairness.c */
void fairwq_window_start_locked(struct fairwq_pool *pool);
void fairwq_window_reset_locked(struct fairwq_pool *pool);
void fairwq_window_turn_locked(struct fairwq_batch *batch);
void fairwq_window_join_locked(struct fairwq_batch *batch);

/* guard.c: around the function of an item */
void fairwq_call(struct fairwq_work *work, fairwq_func_t func,
		 struct fairwq_batch *batch);
void fairwq_watchdog_init(struct fairwq_pool *pool);
void fairwq_watchdog_set(struct fairwq_pool *pool, unsigned int hung_ms);
void fairwq_watchdog_arm_locked(struct fairwq_pool *pool);

/* debugfs.c */
void fairwq_debugfs_init(void);
void fairwq_debugfs_exit(void);
void fairwq_debugfs_add_pool(struct fairwq_pool *pool);
void fairwq_debugfs_del_pool(struct fairwq_pool *pool);

/* Monotonic ns; any context. Never a reason for an order, but see FAIRWQ_FIFO. */
static inline u64 fairwq_clock(void)
{
	return ktime_get_mono_fast_ns();
}

/*
 * Places where a test can step in, to force an interleaving that a race would
 * only hit by chance. Nothing in a build without -DFAIRWQ_TESTING.
 */
enum fairwq_test_point {
	FAIRWQ_POINT_QUEUE_ACCEPTED,	/* not refused, and not yet pushed */
	FAIRWQ_POINT_QUEUE_PUSHED,	/* pushed, and nobody told yet */
	FAIRWQ_POINT_BATCH_EMPTY,	/* seen empty, still marked as watched */
};

#ifdef FAIRWQ_TESTING
extern void (*fairwq_test_hook)(enum fairwq_test_point point,
				struct fairwq_batch *batch);
void fairwq_test_set_hook(void (*hook)(enum fairwq_test_point point,
				       struct fairwq_batch *batch));
static inline void fairwq_test_point(enum fairwq_test_point point,
				     struct fairwq_batch *batch)
{
	void (*hook)(enum fairwq_test_point, struct fairwq_batch *) =
		READ_ONCE(fairwq_test_hook);

	if (hook)
		hook(point, batch);
}

unsigned int fairwq_test_nr_batches(struct fairwq_pool *pool);
unsigned int fairwq_test_nr_eligible(struct fairwq_pool *pool);
u64 fairwq_test_counter(struct fairwq_pool *pool, enum fairwq_counter which);
void fairwq_test_set_policy(struct fairwq_pool *pool, enum fairwq_policy policy);
void fairwq_test_set_hung_ms(struct fairwq_pool *pool, unsigned int ms);
long fairwq_test_live_batches(void);
void fairwq_test_settle(void);
void fairwq_test_watchdog(struct fairwq_pool *pool);
#else
static inline void fairwq_test_point(enum fairwq_test_point point,
				     struct fairwq_batch *batch)
{
}
#endif

/* Bad input: one line that names the argument, and -EINVAL. */
#define fairwq_bad_arg(arg)						\
	({								\
		pr_warn_once("%s: invalid argument: " arg "\n", __func__);\
		-EINVAL;						\
	})

#endif /* FAIRWQ_INTERNAL_H */
