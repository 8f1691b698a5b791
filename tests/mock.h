/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suites share: a gate, a run log, and waits with a bound.
 *
 * The gate pattern: the first item blocks its runner at the gate, the test
 * queues the rest, opens the gate, and compares the log of what ran with the
 * exact order it expects. Nothing sleeps for correctness, and every wait has a
 * bound: a time-out fails the case.
 */
#ifndef FAIRWQ_MOCK_H
#define FAIRWQ_MOCK_H

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "../internal.h"

/* Long for a slow machine; short where a planted bug is known to hang it. */
#define MOCK_WAIT	(fairwq_mutant(NONE) ? 20 * HZ : 3 * HZ)
#define MOCK_LOG	2048

/* Who watches every access or every lock is slow: he does less of what is done often. */
#define MOCK_WATCHED	(IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_KCSAN) || \
			 IS_ENABLED(CONFIG_PROVE_LOCKING))
#define MOCK_MANY(n)	((n) / (MOCK_WATCHED ? 20 : 1))

struct mock_log {
	spinlock_t lock;	/* what follows */
	unsigned int nr;
	char text[MOCK_LOG];
};

/* An item that writes its letter into the log. */
struct mock_item {
	struct fairwq_work work;
	struct mock_log *log;
	struct completion *done;	/* or NULL: completed when it ran */
	char letter;
};

/* An item that waits at the gate. */
struct mock_gate {
	struct fairwq_work work;
	struct completion entered;
	struct completion open;
	atomic_t runs;
	struct mock_gate *next;		/* in mock->gates */
};

/* One pool under test, and what holds it up. */
struct mock {
	struct fairwq_pool *pool;
	unsigned int flags;		/* of the pool to be */
	struct fairwq_batch *gate_batch;
	struct mock_gate gate;
	struct mock_gate *gates;	/* more of them, open after every case */
	struct mock_log log;
};

static inline void mock_log_add(struct mock_log *log, char letter)
{
	unsigned long flags;

	spin_lock_irqsave(&log->lock, flags);
	if (log->nr < MOCK_LOG - 1)
		log->text[log->nr++] = letter;
	spin_unlock_irqrestore(&log->lock, flags);
}

static inline void mock_item_fn(struct fairwq_work *work)
{
	struct mock_item *item = container_of(work, struct mock_item, work);
	struct completion *done = item->done;

	mock_log_add(item->log, item->letter);
	if (done)
		complete(done);
}

static inline void mock_gate_fn(struct fairwq_work *work)
{
	struct mock_gate *gate = container_of(work, struct mock_gate, work);

	atomic_inc(&gate->runs);
	complete(&gate->entered);
	wait_for_completion(&gate->open);
}

static inline void mock_gate_init(struct mock_gate *gate)
{
	fairwq_work_init(&gate->work, mock_gate_fn);
	init_completion(&gate->entered);
	init_completion(&gate->open);
	atomic_set(&gate->runs, 0);
}

static inline void mock_await(struct kunit *test, struct completion *done)
{
	KUNIT_ASSERT_NE_MSG(test, wait_for_completion_timeout(done, MOCK_WAIT), 0UL,
			    "timed out\n");
}

/*
 * Until @cond holds, at most MOCK_WAIT. The line ends: one that does not is not
 * seen before the next, and what hangs after it has none.
 */
#define mock_until(test, cond)						\
	do {								\
		unsigned long __end = jiffies + MOCK_WAIT;		\
		bool __met;						\
									\
		for (;;) {						\
			__met = (cond);					\
			if (__met || time_after(jiffies, __end))	\
				break;					\
			usleep_range(50, 200);				\
		}							\
		KUNIT_ASSERT_TRUE_MSG(test, __met, "timed out: " #cond "\n");\
	} while (0)

#define MOCK_SPIN_MS	5000	/* for what has to come */

/* Until @cond holds, at most @ms, also with interrupts off. Returns whether it does. */
#define spin_for(ms, cond)						\
	({								\
		u64 __end = fairwq_clock() + (u64)(ms) * NSEC_PER_MSEC;	\
		bool __met, __late;					\
									\
		do {							\
			/* First: time may pass in between. */		\
			__late = fairwq_clock() > __end;		\
			__met = (cond);					\
			cpu_relax();					\
		} while (!__met && !__late);				\
		__met;							\
	})

static inline void mock_item_init(struct mock_item *item, struct mock_log *log, char letter)
{
	fairwq_work_init(&item->work, mock_item_fn);
	item->log = log;
	item->letter = letter;
}

static inline struct mock_item *mock_item(struct kunit *test, char letter)
{
	struct mock *mock = test->priv;
	struct mock_item *item = kunit_kzalloc(test, sizeof(*item), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, item);
	mock_item_init(item, &mock->log, letter);
	return item;
}

/*
 * Queue @n items with the same letter. One array: where everything is checked, to
 * free thousands one by one takes so long that the kernel takes it for a lockup.
 */
static inline void mock_queue(struct kunit *test, struct fairwq_batch *batch,
			      char letter, unsigned int n)
{
	struct mock_item *items = kunit_kcalloc(test, n, sizeof(*items), GFP_KERNEL);
	struct mock *mock = test->priv;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, items);
	for (i = 0; i < n; i++) {
		mock_item_init(&items[i], &mock->log, letter);
		KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch, &items[i].work));
	}
}

/*
 * A pool with @max_active runners, one of which is held at the gate. The gate
 * has a batch of its own, which has had its turn.
 */
static inline void mock_pool(struct kunit *test, unsigned int max_active,
			     enum fairwq_policy policy)
{
	struct mock *mock = test->priv;
	struct fairwq_pool_attrs attrs = {
		.max_active = max_active, .policy = policy, .flags = mock->flags,
	};

	mock->pool = fairwq_pool_create(&attrs, "mock");
	KUNIT_ASSERT_FALSE(test, IS_ERR(mock->pool));
	mock->gate_batch = fairwq_batch_create(mock->pool, NULL, "gate");
	KUNIT_ASSERT_FALSE(test, IS_ERR(mock->gate_batch));
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(mock->gate_batch, &mock->gate.work));
	mock_await(test, &mock->gate.entered);
}

static inline struct fairwq_batch *mock_batch(struct kunit *test, const char *name)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *batch = fairwq_batch_create(mock->pool, NULL, "%s", name);

	KUNIT_ASSERT_FALSE(test, IS_ERR(batch));
	return batch;
}

static inline struct fairwq_batch *mock_batch_weight(struct kunit *test,
						     const char *name,
						     unsigned int weight)
{
	struct fairwq_batch_attrs attrs = { .weight = weight };
	struct mock *mock = test->priv;
	struct fairwq_batch *batch = fairwq_batch_create(mock->pool, &attrs, "%s", name);

	KUNIT_ASSERT_FALSE(test, IS_ERR(batch));
	return batch;
}

static inline void mock_open(struct kunit *test)
{
	struct mock *mock = test->priv;

	complete_all(&mock->gate.open);
}

/* Open the gate, wait until @nr items have run, and compare their order. */
static inline void mock_expect(struct kunit *test, const char *order)
{
	struct mock *mock = test->priv;

	mock_open(test);
	mock_until(test, READ_ONCE(mock->log.nr) >= strlen(order));
	KUNIT_EXPECT_STREQ(test, order, &mock->log.text[0]);
}

static inline int mock_init(struct kunit *test)
{
	struct mock *mock = kunit_kzalloc(test, sizeof(*mock), GFP_KERNEL);

	if (!mock)
		return -ENOMEM;
	spin_lock_init(&mock->log.lock);
	mock_gate_init(&mock->gate);
	test->priv = mock;
	return 0;
}

/*
 * After every case, also one that failed: the pool goes, and the module's own
 * check of its fairness has found nothing.
 */
static inline void mock_exit(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct mock_gate *gate;

	fairwq_test_set_hook(NULL);
	for (gate = mock ? mock->gates : NULL; gate; gate = gate->next)
		complete_all(&gate->open);
	if (!mock || IS_ERR_OR_NULL(mock->pool))
		return;
	complete_all(&mock->gate.open);
	KUNIT_EXPECT_EQ(test, 0ULL,
			fairwq_test_counter(mock->pool, FAIRWQ_VIOLATIONS));
	if (!IS_ERR_OR_NULL(mock->gate_batch))
		fairwq_batch_dispose(mock->gate_batch);
	fairwq_pool_destroy(mock->pool);
}

#endif /* FAIRWQ_MOCK_H */
