/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Torture of fairwq: what its files share.
 *
 * Threads, timers and interrupts do at random what the public header offers;
 * every item keeps books. What fairwq promises and a user cannot do without is
 * checked, on the way or at the end:
 *
 *   lost, twice   a queue call that returned 1 ran once, or a cancel said so
 *   reentrant     one item never runs twice at once
 *   stale         what was stored before the call is seen by the run to come
 *   order         the items of one producer of one batch start in order, and
 *                 with max_active 1 do not overlap
 *   flush         what was queued before has ended after
 *   disabled      after disable_sync an item is not pending and does not run
 *   released      once for each batch, after its last item
 *
 * Each of these names is also one for the parameter bug=: then the torture
 * breaks its own rule, and its check has to say so.
 */
#ifndef FAIRWQ_TORTURE_H
#define FAIRWQ_TORTURE_H

#include <linux/atomic.h>
#include <linux/irq_work.h>
#include <linux/hrtimer.h>
#include <linux/prandom.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

#include "fairwq.h"

#define TT_MAX_THREADS	16
#define TT_NR_ITEMS	256U	/* shared by all, as long as the test lasts */
#define TT_NR_SLOTS	24U	/* batches that all can reach */
#define TT_NR_POOLS	4U

enum tt_bug {
	TT_BUG_NONE,
	TT_BUG_LOST,
	TT_BUG_TWICE,
	TT_BUG_REENTRANT,
	TT_BUG_STALE,
	TT_BUG_ORDER,
	TT_BUG_FLUSH,
	TT_BUG_DISABLED,
	TT_BUG_RELEASED,
};

enum tt_count {
	TT_QUEUED,	/* calls that returned 1 */
	TT_ALREADY,	/* 0 */
	TT_REFUSED,	/* less */
	TT_RAN,
	TT_CANCELED,
	TT_DROPPED,	/* by a cancel of their batch */
	TT_BATCHES,	/* created */
	TT_RELEASED,
	TT_POOLS,	/* created */
	TT_PROBES,	/* checks of a flush */
	TT_STAMPS,	/* checks of what a run saw */
	TT_NR_COUNTS,
};

/* Who acts: a thread, or one of the interrupts that it sets off. */
struct tt_actor {
	struct rnd_state rnd;
	int nr;				/* of the thread; interrupts: -1 */
	u32 stamp;			/* of a thread: the last it has given */
	struct tt_lane *lane;		/* of a thread */
};

struct tt_thread {
	struct tt_actor actor;
	struct tt_actor soft, hard, work;	/* one each, never twice at a time */
	struct timer_list timer;
	struct hrtimer hrtimer;
	struct irq_work irq_work;
	struct task_struct *task;
};

enum tt_kind { TT_PLAIN, TT_DELAYED, TT_RCU, TT_NR_KINDS };

/* An item that lives as long as the test. */
struct tt_item {
	union {
		struct fairwq_work work;
		struct fairwq_delayed_work dwork;
		struct fairwq_rcu_work rwork;
	};
	enum tt_kind kind;
	unsigned int nr;
	unsigned long held;		/* bit 0: somebody queues or modifies it */
	atomic_t inside;
	atomic_long_t queued, ran, canceled, dropped;
	atomic_long_t unsure;		/* taken out, perhaps, by a call that failed */
	atomic_t cancels_begun, cancels_ended;
	u32 stamp[TT_MAX_THREADS];	/* stored by a thread before it queues */
	u32 seen[TT_MAX_THREADS];	/* what the last run saw of that */
};

struct tt_slot {
	raw_spinlock_t lock;
	struct fairwq_batch *batch;	/* with a reference */
};

/* One thing that can be done. */
struct tt_op {
	const char *name;
	unsigned int weight;
	bool anywhere;			/* in any context */
	void (*act)(struct tt_actor *actor);
};

/* main.c */
extern enum tt_bug tt_bug;
extern unsigned int tt_nr_threads, tt_backlog;
extern struct fairwq_pool *tt_pools[TT_NR_POOLS];
extern struct fairwq_flows *tt_flows;
extern struct tt_thread *tt_threads;
extern bool tt_stopping;
void tt_problem(const char *fmt, ...) __printf(1, 2);
void tt_count(enum tt_count which, long n);
u32 tt_random(struct tt_actor *actor, u32 below);

/* ops.c */
extern struct tt_op tt_ops[];
extern const unsigned int tt_nr_ops;
const struct tt_op *tt_pick_op(struct tt_actor *actor, bool anywhere);
struct fairwq_batch *tt_get_batch(struct tt_actor *actor);
void tt_resume_all(void);
int tt_slots_init(void);
void tt_slots_end(void);
void tt_batch_released(struct fairwq_batch *batch, void *priv);
bool tt_cancels_quiet(void);
void tt_cancel_batch(struct fairwq_batch *batch);

/* items.c */
extern struct tt_item *tt_items;
int tt_items_init(void);
void tt_items_end(void);
int tt_item_queue(struct tt_item *item, struct fairwq_batch *batch, unsigned long delay);
void tt_item_mod(struct tt_item *item, struct fairwq_batch *batch, unsigned long delay);
bool tt_item_cancel(struct tt_item *item, bool (*cancel)(struct fairwq_work *work));
void tt_item_flush(struct tt_item *item);
void tt_dropped(struct fairwq_work *work);
int tt_queued(int ret);
void tt_behave(u32 dice);

/* lanes.c: items that free themselves; one producer, one order */
extern atomic_long_t tt_live;
bool tt_shot(struct fairwq_batch *batch, struct tt_lane *lane, gfp_t gfp);
void tt_shot_dropped(struct fairwq_work *work);
void tt_probe(struct fairwq_batch *batch, struct fairwq_pool *pool);
void tt_lane_renew(struct tt_actor *actor);
void tt_lane_burst(struct tt_actor *actor);
void tt_lane_meddle(struct tt_actor *actor);

#endif /* FAIRWQ_TORTURE_H */
