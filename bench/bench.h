/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bench: declarations that its files share.
 *
 * A *row* is one question, such as "what does an empty item cost". A *side* is
 * one way to run items: queue_work(), kthread_worker, fairwq. In every round a
 * row asks all of its sides, one after the other. Each answer is a *sample*,
 * one line on the console.
 *
 * A side runs items on a *setup*, which has a number of channels. Each client
 * queues to a channel of its own. For fairwq a channel is a batch; for a plain
 * workqueue all channels are the same workqueue.
 *
 * The bench measures and prints. It does not judge.
 */
#ifndef FAIRWQ_BENCH_H
#define FAIRWQ_BENCH_H

#include <linux/bug.h>
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/workqueue.h>

#include "fairwq.h"

struct bench_setup;
struct bench_item;
struct bench_object;
struct bench_row;

/* items.c: items, the same for every side */

#define BENCH_ITEMS	100000U

/*
 * An item is one cache line for every side, so that all sides move the same
 * memory. It has room for the work and one word of the client's own. An item
 * does nothing until a row gives it a function.
 */
struct bench_item {
	union {
		struct work_struct work;
		struct kthread_work kthread_work;
		struct fairwq_work fairwq_work;
		struct list_head list_node;
	};
	union {
		void (*fn)(struct bench_item *item);	/* NULL: an empty item */
		struct bench_object *object;	/* with side "mutex", once queued */
	};
} ____cacheline_aligned;

static_assert(IS_ENABLED(CONFIG_LOCKDEP) || SMP_CACHE_BYTES < 64 ||
	      sizeof(struct bench_item) == SMP_CACHE_BYTES);

/* Check the result of a queue call. No side may be refused an item that it measures. */
static inline void bench_accepted(int ret)
{
	WARN_ON_ONCE(ret < 0);
}

/* An item that holds its runner until it is opened. */
struct bench_gate {
	struct bench_item item;
	struct completion entered;
	struct completion open;
};

extern struct bench_item *bench_items;		/* BENCH_ITEMS of them */
extern u64 *bench_times;			/* BENCH_ITEMS of them, ns */

/* Items of all sides, also if not measured, because a profile has those, too. */
DECLARE_PER_CPU(unsigned long, bench_queued);

u64 bench_items_queued(void);
int bench_items_alloc(void);
void bench_items_free(void);
void bench_items_set_fn(struct bench_item *items, unsigned int nr,
			void (*fn)(struct bench_item *item));
void bench_spin(u64 ns);
void bench_gate_close(struct bench_setup *setup, struct bench_gate *gate);
void bench_gate_open(struct bench_gate *gate);
void bench_finish_expect(unsigned int nr);
void bench_finish_reach(struct bench_item *item);
u64 bench_finish_wait(void);

/* sides.c: the contenders */

/* One client's way into a side. */
union bench_channel {
	struct workqueue_struct *wq;
	struct kthread_worker *worker;
	struct fairwq_batch *batch;
	struct bench_object *object;
	struct bench_list *list;
};

struct bench_setup {
	const struct bench_side *side;
	struct fairwq_pool *pool;		/* of a side of fairwq */
	struct bench_setup *each;		/* of a side that has a pool per channel */
	union bench_channel *channel;
	unsigned int nr_channels;
};

struct bench_ops {
	int (*open)(struct bench_setup *setup, unsigned int active);
	void (*close)(struct bench_setup *setup);
	void (*init)(struct bench_item *items, unsigned int nr);
	void (*queue)(struct bench_setup *setup, unsigned int at, unsigned int over,
		      struct bench_item *items, unsigned int nr);
	/* Wait until all items have ended. The finish only waits for the last ones. */
	void (*settle)(struct bench_setup *setup);
};

struct bench_side {
	const char *name;
	const struct bench_ops *ops;
	unsigned int flags;		/* WQ_* or FAIRWQ_* */
	unsigned int active;		/* runners, unless the row sets it; 0: default */
	unsigned int in_flight;		/* max_in_flight of a pool; 0: no more than active */
	enum fairwq_policy policy;
};

extern const struct bench_side bench_wq_unbound, bench_wq_percpu, bench_wq_each,
	bench_wq_ordered, bench_list, bench_serial, bench_serial_inline, bench_mutex,
	bench_kthread, bench_fairwq, bench_fairwq_each, bench_fairwq_one,
	bench_fairwq_time, bench_fairwq_sleep;

int bench_open(struct bench_setup *setup, const struct bench_side *side,
	       unsigned int nr_channels, unsigned int active);
void bench_close(struct bench_setup *setup);
void bench_pool_settle(struct bench_setup *setup);
void bench_set_weight(struct bench_setup *setup, unsigned int channel, unsigned int weight);

/* Set up @nr empty items. */
static inline void bench_init(struct bench_setup *setup, struct bench_item *items,
			      unsigned int nr)
{
	setup->side->ops->init(items, nr);
	bench_items_set_fn(items, nr, NULL);
}

/*
 * Queue @nr items, one by one, to the channels 0 to @over - 1 in rotation,
 * the first of them to channel @at.
 */
static inline void bench_queue(struct bench_setup *setup, unsigned int at, unsigned int over,
			       struct bench_item *items, unsigned int nr)
{
	raw_cpu_add(bench_queued, nr);
	setup->side->ops->queue(setup, at, over, items, nr);
}

/* Queue calls between two calls of cond_resched(). */
#define BENCH_STRETCH	1024U

/*
 * The loop of bench_queue(). It is compiled once for each side, so that it has
 * the call that a client would write, and no indirect one.
 */
static __always_inline void
bench_rotate(struct bench_setup *setup, unsigned int at, unsigned int over,
	     struct bench_item *items, unsigned int nr,
	     void (*queue_one)(union bench_channel channel, struct bench_item *item))
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		queue_one(setup->channel[at], &items[i]);
		if (++at == over)
			at = 0;
		if (i % BENCH_STRETCH == BENCH_STRETCH - 1)
			cond_resched();
	}
}

/* Run an item, in the function of its side. */
static __always_inline void bench_run(struct bench_item *item)
{
	if (item->fn)
		item->fn(item);
}

/* threads.c: the threads that queue */

#define BENCH_THREADS	16U

int bench_threads(unsigned int nr, void (*fn)(void *arg, unsigned int index), void *arg);
void bench_barrier(void);

/* report.c: the results as lines */

extern unsigned int bench_round;

__printf(3, 4)
void bench_say(const struct bench_row *row, const char *side, const char *fmt, ...);
void bench_say_ns(const struct bench_row *row, const char *side, u64 ns, unsigned int nr);
void bench_sort_times(unsigned int nr);
u64 bench_middle_mean(unsigned int nr);
u64 bench_percentile(unsigned int nr, unsigned int percent);

/* inside.c: results that need fairwq's own headers */

int bench_size(const struct bench_row *row, const struct bench_side *side);

/* rows_*.c: the questions. Each takes one sample of one side. */

struct bench_row {
	const char *name;
	int (*sample)(const struct bench_row *row, const struct bench_side *side);
	const struct bench_side * const *sides;	/* to NULL; or NULL: called once */
	unsigned int channels;
	unsigned int threads;
	unsigned int active;		/* runners; 0: the default of the side */
	unsigned int spin_ns;		/* what an item of bench_empty() takes; 0: empty */
};

int bench_floor(const struct bench_row *row, const struct bench_side *side);

int bench_push(const struct bench_row *row, const struct bench_side *side);
int bench_empty(const struct bench_row *row, const struct bench_side *side);
int bench_round_trip(const struct bench_row *row, const struct bench_side *side);
int bench_sleep(const struct bench_row *row, const struct bench_side *side);
int bench_one_each(const struct bench_row *row, const struct bench_side *side);

extern const struct bench_side bench_ideal;
int bench_behind(const struct bench_row *row, const struct bench_side *side);
int bench_quiet(const struct bench_row *row, const struct bench_side *side);
int bench_time_fair(const struct bench_row *row, const struct bench_side *side);
int bench_time_weights(const struct bench_row *row, const struct bench_side *side);

int bench_objects(const struct bench_row *row, const struct bench_side *side);

int bench_pick(const struct bench_row *row, const struct bench_side *side);
int bench_idle(const struct bench_row *row, const struct bench_side *side);
int bench_eligible(const struct bench_row *row, const struct bench_side *side);

extern const struct bench_side bench_fork_plain, bench_fork_serial, bench_fork_one,
	bench_fork_direct, bench_fork_all;
int bench_fork_join(const struct bench_row *row, const struct bench_side *side);
int bench_tree(const struct bench_row *row, const struct bench_side *side);
int bench_tiny(const struct bench_row *row, const struct bench_side *side);
int bench_parallel_for(const struct bench_row *row, const struct bench_side *side);

#endif /* FAIRWQ_BENCH_H */
