/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fixture of the suites: a pool, a batch "a" in it, a gate in front of
 * both, and a log of what ran.
 *
 *	fairwq_queue() --> a --.
 *	                        >-- pool, one of whose runners stands at the gate
 *	               gate_batch
 *
 * The gate pattern: the first item blocks its runner at the gate. The test
 * queues the rest and opens the gate. Then it compares the log with the exact
 * order that it expects. No sleep is needed for correctness, and every wait has
 * a bound (see bound.h): a time-out fails the case.
 *
 * A suite must name mock_init() and mock_exit(). A case begins with one call:
 *
 *	mock_begin()		the pool, and the batch "a"
 *	mock_begin_with()	the same, with attributes for "a"
 *	mock_begin_by()		the same, with a policy for the pool
 *	mock_pool()		the pool alone
 *	mock_pool_by()		the same, with a policy
 *
 * All of them let the judge look at the shares when an item has logged
 * (judge.h), and mock_exit() asks it. A case with items of its own calls
 * judge_look().
 *
 * With one runner, what the case queues waits behind the gate. With two, one
 * runner is free. mock_exit() frees what these calls and mock_batch() have
 * made, also if the case failed.
 *
 * These functions are compiled once, into fairwq_testlib.ko. A header only has
 * macros that report the line of their caller, and functions that must be
 * inline.
 */
#ifndef FAIRWQ_TEST_FIXTURE_H
#define FAIRWQ_TEST_FIXTURE_H

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "bound.h"
#include "gate.h"
#include "judge.h"

#define MOCK_LOG	2048

/* KASAN, KCSAN and lockdep make a kernel slow: there, MOCK_MANY() is a 20th. */
#define MOCK_WATCHED	(IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_KCSAN) || \
			 IS_ENABLED(CONFIG_PROVE_LOCKING))
#define MOCK_MANY(n)	((n) / (MOCK_WATCHED ? 20 : 1))

struct mock_log {
	spinlock_t lock;	/* for @nr and @text */
	unsigned int nr;
	char text[MOCK_LOG];
	struct judge *judge;	/* looks at each item that logs; or NULL */
};

/* An item that writes its letter into the log. */
struct mock_item {
	struct fairwq_work work;
	struct mock_log *log;
	struct completion *done;	/* or NULL: completed when the item ran */
	char letter;
};

/* A batch that mock_exit() disposes of. */
struct mock_kept {
	struct fairwq_batch *batch;
	struct mock_kept *next;
};

/* One pool under test, its batches and its gates: test->priv. */
struct mock {
	struct fairwq_pool *pool;
	/* Of the pool, if set before the case begins: */
	unsigned int flags;
	unsigned int max_in_flight;	/* 0: as many as may be active */
	void (*failed)(struct fairwq_batch *batch, fairwq_func_t func, int err);
	struct mock_kept *kept;		/* batches of the case, the newest first */
	struct fairwq_batch *gate_batch;
	struct mock_gate gate;
	struct mock_gate *gates;	/* of mock_gate_new(): mock_exit() opens them */
	struct mock_log log;
	struct judge judge;		/* of the pool: see mock_judge() */
};

/* Queue @work to the default batch of NORMAL priority. */
static inline int mock_pool_queue(struct fairwq_pool *pool, struct fairwq_work *work)
{
	return fairwq_queue(fairwq_pool_default_batch(pool, FAIRWQ_PRIO_NORMAL), work);
}

/*
 * Between these calls of the kernel all grace periods are expedited. It exports
 * them, and declares them in kernel/rcu/rcu.h alone.
 */
void rcu_expedite_gp(void);
void rcu_unexpedite_gp(void);

/* For a suite. */
void mock_setup(struct mock *mock);
int mock_init(struct kunit *test);
void mock_exit(struct kunit *test);

/* For a case: how it begins. */
struct fairwq_batch *mock_begin(struct kunit *test, unsigned int runners);
struct fairwq_batch *mock_begin_with(struct kunit *test, unsigned int runners,
				     const struct fairwq_batch_attrs *attrs);
struct fairwq_batch *mock_begin_by(struct kunit *test, unsigned int runners,
				   enum fairwq_policy policy);
void mock_pool(struct kunit *test, unsigned int runners);
void mock_pool_by(struct kunit *test, unsigned int runners, enum fairwq_policy policy);

/* More batches. */
struct fairwq_batch *mock_batch(struct kunit *test, const char *name);
struct fairwq_batch *mock_batch_with(struct kunit *test, const char *name,
				     const struct fairwq_batch_attrs *attrs);
struct fairwq_batch *mock_batch_weight(struct kunit *test, const char *name,
				       unsigned int weight);
struct fairwq_batch *mock_batch_prio(struct kunit *test, const char *name,
				     enum fairwq_prio prio);
struct fairwq_batch *mock_own_batch(struct kunit *test, const char *name,
				    const struct fairwq_batch_attrs *attrs);

/* Promise 6. */
void mock_judge(struct kunit *test);

/* What it queues, and what it sees. */
struct mock_item *mock_item(struct kunit *test, char letter);
struct mock_item *mock_queue_item(struct kunit *test, struct fairwq_batch *batch, char letter);
void mock_queue(struct kunit *test, struct fairwq_batch *batch, char letter, unsigned int n);
void mock_open(struct kunit *test);
void mock_free_runners(struct kunit *test);
void mock_expect(struct kunit *test, const char *order);
void mock_expect_order(struct kunit *test, const char *order, struct mock_item **items,
		       unsigned int nr);

void mock_item_fn(struct fairwq_work *work);
void mock_nothing_fn(struct fairwq_work *work);
void mock_log_add(struct mock_log *log, char letter);
void mock_log_clear(struct mock *mock);
void mock_released_count(struct fairwq_batch *batch, void *priv);

/* Ignore the answer of a queue call: the case checks in another way what ran. */
static inline void mock_may_refuse(int ret)
{
}

void mock_stay(void);
void mock_wait_released(void);

/* Wait for @done, or fail the case. */
bool mock_fork_until(struct fairwq_task *self, struct completion *begun);
void mock_await(struct kunit *test, struct completion *done);

/*
 * Wait until @cond holds, or fail the case. The message must end with a
 * newline. Without one, printk() shows it only with the next message, and after
 * a hang there is none.
 */
#define mock_until(test, cond)						\
	do {								\
		bool __in_time = mock_within(cond);			\
									\
		KUNIT_ASSERT_TRUE_MSG(test, __in_time, "timed out: " #cond "\n");\
	} while (0)

#endif /* FAIRWQ_TEST_FIXTURE_H */
