// SPDX-License-Identifier: GPL-2.0
/*
 * Flows: batches by a 64-bit key, made on first use and removed when idle.
 *
 * They are for clients that know an item's owner by a number, and keep no
 * object for each: a cgroup, a tenant, a source address. A queue call for a
 * known key is a lookup under RCU and fairwq_queue(). The first one makes the
 * batch, in any context but NMI. If there is no memory for it, the item goes to
 * a batch that all such keys share.
 *
 * The keys are in a latched red-black tree. Its readers take no lock, also in
 * an interrupt on top of its writer. Its writers allocate nothing and need only
 * a raw spinlock. An rhashtable would do all this from 6.3 on. In 6.1 its
 * buckets are locked with interrupts on, so a hardirq must not insert.
 *
 *   a flow is  a queue call that finds it   next
 *   open       queues                       closed by a sweep when it expired
 *   closed     takes the lock, looks again, removed by a sweep a grace period
 *              opens it, queues             later, if it has still expired
 *   removed    makes a new one              freed after its released()
 *
 * A sweep does not wait for the grace period: it leaves that to the next sweep.
 *
 * A flow with a handle, a reference from fairwq_flows_get(), is not closed. If
 * a holder shuts the batch down, the flow refuses items until the batch
 * leaves. That takes the flow out of the tree: flow_left().
 *
 * The shared batch stands for all of them when they are shut down together, as
 * an owner does for the batches that it owns. It counts those that have not
 * left.
 *
 * Invariant: no item is refused because its flow is about to go.
 * Invariant: no item overtakes an earlier one of its key in an old batch. Queue
 * calls that found the flow open have queued before it is removed.
 * Locking: L is flows->lock, raw and irq-safe, outside the pool's lock; S is
 * the sweep, of which there is one at a time; the other letters are those of
 * core/types.h.
 *
 * Limits: there are @max flows at most. Without memory for a flow, or beyond
 * that, its items go to one batch that all such keys share.
 */
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/preempt.h>
#include <linux/rbtree_latch.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "core/fifo.h"
#include "core/push.h"
#include "core/testing.h"
#include "doors.h"

#define FLOWS_DFL_IDLE_MS	10000U
/*
 * Most flows, unless the driver says another number: up to 48 MiB, at 3 KiB
 * each. Few machines serve more clients within the idle time, and few are in
 * trouble without that much memory.
 */
#define FLOWS_DFL_MAX		16384U

/*
 * Invariant: a flow in the tree that is not closed has a batch that accepts
 * items, unless the pool is drained or destroyed, or a holder, an owner or the
 * end of all flows has disposed of the batch.
 */
struct fairwq_flow {
	struct latch_tree_node node;	/* L to write, RCU to read */
	u64 key;			/* I */
	struct fairwq_batch *batch;	/* I: a reference */
	bool closed;			/* L to write, RCU to read: see the head */
	/*
	 * There was a queue call, or an item, since the sweep's last look.
	 * Written without a lock, because a lost store only makes the flow go a
	 * bit early.
	 */
	bool used;
	unsigned long idle_since;	/* L: jiffies */
	struct list_head link;		/* L: in a list of @flows, while it is in the tree */
	struct fairwq_flows *flows;	/* I */
	struct rcu_head rcu;
};

struct fairwq_flows {
	/* Read by every queue call. */
	struct latch_tree_root tree;	/* L to write, RCU to read: by key */
	struct fairwq_batch *shared;	/* I: a reference; disposed: no flow is made or opened */

	raw_spinlock_t lock ____cacheline_aligned_in_smp; /* L, see the head */
	struct list_head list;		/* L: open flows, as the sweep comes to them */
	struct list_head closed;	/* L: flows that were closed by the last sweep */
	unsigned long closed_at;	/* S: the grace period that @closed wait for, for RCU */
	unsigned int nr;		/* L to write, read without: flows in @tree */
	unsigned int max;		/* any: most of them; UINT_MAX: no limit */
	unsigned long idle;		/* any: jiffies that a flow stays idle; 0: for ever */
	atomic64_t fallbacks;		/* A: a count, which orders nothing */
	struct fairwq_batch_attrs attrs;/* I; @shared keeps the owner that it names */
	/* A, set once: or NULL; @data is set before */
	void (*setup)(struct fairwq_flow_attrs *attrs, u64 key, void *data);
	void *data;			/* I, once set */
	struct delayed_work sweep;	/* due while there are flows, unless @idle is 0 */
};

/* ---- the tree --------------------------------------------------------- */

static struct fairwq_flow *flow_of(struct latch_tree_node *node)
{
	return container_of(node, struct fairwq_flow, node);
}

static bool flow_less(struct latch_tree_node *a, struct latch_tree_node *b)
{
	return flow_of(a)->key < flow_of(b)->key;
}

static int flow_cmp(void *key, struct latch_tree_node *node)
{
	u64 a = *(u64 *)key, b = flow_of(node)->key;

	return a < b ? -1 : a > b;
}

static const struct latch_tree_ops fairwq_flow_ops = {
	.less = flow_less,
	.comp = flow_cmp,
};

/*
 * Look up @key, under rcu_read_lock() or the lock. Return: the flow, or NULL.
 */
static struct fairwq_flow *flow_find(struct fairwq_flows *flows, u64 key)
{
	struct latch_tree_node *node;

	node = latch_tree_find(&key, &flows->tree, &fairwq_flow_ops);
	return node ? flow_of(node) : NULL;
}

/* Take a flow out of the tree. It stays until its batch leaves. */
static void flow_remove_locked(struct fairwq_flows *flows, struct fairwq_flow *flow)
{
	lockdep_assert_held(&flows->lock);

	latch_tree_erase(&flow->node, &flows->tree, &fairwq_flow_ops);
	list_del_init(&flow->link);
	WRITE_ONCE(flows->nr, flows->nr - 1);
}

/* ---- a flow's beginning ----------------------------------------------- */

/*
 * The batch of a flow leaves: free the flow. If it is still in the tree, a
 * holder, an owner or all flows were shut down. The next queue call makes a new
 * one.
 */
static void flow_left(struct fairwq_batch *batch, void *priv)
{
	struct fairwq_flow *flow = priv;

	scoped_guard(raw_spinlock_irq, &flow->flows->lock)
		if (!list_empty(&flow->link))
			flow_remove_locked(flow->flows, flow);
	fairwq_batch_put(batch);
	kfree_rcu(flow, rcu);
}

/* Check whether the caller may allocate: on PREEMPT_RT the allocator sleeps. */
static bool may_allocate(void)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT) && !preemptible())
		return false;
	return !fairwq_test_fails();
}

#define FLOWS_GFP	(GFP_NOWAIT | __GFP_NOWARN)

/* Ask the driver what the batch of @key is to be. Return: 0 or a negative error. */
static int flow_setup(struct fairwq_flows *flows, u64 key, struct fairwq_flow_attrs *attrs)
{
	void (*setup)(struct fairwq_flow_attrs *attrs, u64 key, void *data);
	int err;

	attrs->batch = flows->attrs;
	scnprintf(attrs->name, sizeof(attrs->name), "flow-%016llx", key);
	/* Pairs with fairwq_flows_set_setup(). No model. */
	setup = smp_load_acquire(&flows->setup);
	if (!setup)
		return 0;
	setup(attrs, key, flows->data);
	attrs->name[sizeof(attrs->name) - 1] = 0;
	err = fairwq_batch_check_attrs(flows->shared->pool, &attrs->batch);
	/* Their own owner may have been disposed. */
	return err == -ESHUTDOWN && attrs->batch.parent == flows->attrs.parent ? 0 : err;
}

/*
 * Make a flow with a batch, which is not in the tree yet. Return: the flow, or
 * an ERR_PTR().
 */
static struct fairwq_flow *flow_new(struct fairwq_flows *flows, u64 key)
{
	struct fairwq_flow *flow __free(kfree) =
		may_allocate() ? kzalloc(sizeof(*flow), FLOWS_GFP) : NULL;
	struct fairwq_member member = { flows->shared, flow_left, flow };
	struct fairwq_flow_attrs attrs;
	char *name;
	int err;

	if (!flow || !may_allocate())
		return ERR_PTR(-ENOMEM);
	flow->key = key;
	flow->used = true;
	flow->flows = flows;
	INIT_LIST_HEAD(&flow->link);
	err = flow_setup(flows, key, &attrs);
	if (err)
		return ERR_PTR(err);
	name = kstrdup(fairwq_clean_name(attrs.name), FLOWS_GFP);
	flow->batch = fairwq_batch_new(flows->shared->pool, &attrs.batch, &member, name,
				       FLOWS_GFP);
	if (IS_ERR(flow->batch))
		return ERR_CAST(flow->batch);
	return no_free_ptr(flow);
}

/*
 * Open the flow of @key. If there is none, put @new in its place. Return: the
 * flow; NULL if there is none and @new is NULL; or an ERR_PTR().
 */
static struct fairwq_flow *flow_claim(struct fairwq_flows *flows, u64 key,
				      struct fairwq_flow *new)
{
	struct fairwq_flow *flow;

	guard(raw_spinlock_irqsave)(&flows->lock);
	flow = flow_find(flows, key);
	if (flow) {
		WRITE_ONCE(flow->closed, false);
		WRITE_ONCE(flow->used, true);
		return flow;
	}
	if (!new)
		return NULL;
	if (flows->nr >= READ_ONCE(flows->max))
		return ERR_PTR(-ENOSPC);
	/*
	 * If an owner or the pool ends it already, flow_left() may have freed
	 * it. If a shutdown of the flows began before it joined the pool, the
	 * shutdown may have missed it.
	 */
	if (fairwq_batch_is_disposed(new->batch) || fairwq_batch_is_disposed(flows->shared))
		return ERR_PTR(-ESHUTDOWN);
	latch_tree_insert(&new->node, &flows->tree, &fairwq_flow_ops);
	list_add_tail(&new->link, &flows->list);
	WRITE_ONCE(flows->nr, flows->nr + 1);
	return new;
}

static void flows_arm(struct fairwq_flows *flows)
{
	unsigned long idle = READ_ONCE(flows->idle);

	/* Some sweeps within the idle time. */
	if (idle)
		queue_delayed_work(fairwq_reap_wq, &flows->sweep, idle / 4 + 1);
}

/* ---- queueing --------------------------------------------------------- */

/*
 * Get a flow to queue to, under rcu_read_lock(). If there is none that is open,
 * open or make one under the lock.
 *
 * Return: the flow, or an ERR_PTR(): -ENOMEM if there is no memory for it,
 * -ENOSPC if there are too many, -ESHUTDOWN if the flows go, or the error of a
 * batch that cannot be made.
 */
static struct fairwq_flow *flow_get(struct fairwq_flows *flows, u64 key)
{
	struct fairwq_flow *flow, *new;

	flow = flow_find(flows, key);
	/* Pairs with the grace period in fairwq_flows_sweep(). No model. */
	if (likely(flow && !READ_ONCE(flow->closed))) {
		fairwq_test_point(FAIRWQ_POINT_FLOW_FOUND, flow->batch);
		/* All CPUs share the line: write it only if that says something new. */
		if (!READ_ONCE(flow->used))
			WRITE_ONCE(flow->used, true);
		return flow;
	}
	/* Pairs with the grace period in fairwq_flows_shutdown(). No model. */
	if (fairwq_batch_is_disposed(flows->shared))
		return ERR_PTR(-ESHUTDOWN);
	fairwq_test_point(FAIRWQ_POINT_FLOW_CLOSED, flow ? flow->batch : flows->shared);
	/* Without the lock, because many may come here, and for each of their items. */
	if (!flow && READ_ONCE(flows->nr) >= READ_ONCE(flows->max))
		return ERR_PTR(-ENOSPC);
	flow = flow_claim(flows, key, NULL);
	if (flow)
		return flow;
	fairwq_test_point(FAIRWQ_POINT_FLOW_MAKING, flows->shared);
	new = flow_new(flows, key);
	if (IS_ERR(new))
		return new;
	flow = flow_claim(flows, key, new);
	if (flow != new)
		fairwq_batch_retire(new->batch, false);
	/* A destroy waits for this section before it stops the sweep. */
	flows_arm(flows);
	return flow;
}

static void count_fallback(struct fairwq_flows *flows)
{
	atomic64_inc(&flows->fallbacks);
	atomic64_inc(&flows->shared->pool->tally.flow_fallbacks);
}

int fairwq_flows_queue(struct fairwq_flows *flows, u64 key, struct fairwq_work *work)
{
	struct fairwq_flow *flow;
	int ret;

	if (fairwq_is_no_pointer(flows))
		return fairwq_bad_arg("flows is NULL or an error");
	if (!work || !work->func)
		return fairwq_bad_arg("work is NULL or has no function");
	guard(rcu)();
	flow = flow_get(flows, key);
	if (!IS_ERR(flow)) {
		fairwq_test_point(FAIRWQ_POINT_FLOW_QUEUEING, flow->batch);
		return fairwq_queue(flow->batch, work);
	}
	ret = PTR_ERR(flow);
	if (ret != -ENOMEM && ret != -ENOSPC)
		return fairwq_unless_pending(work, ret);
	ret = fairwq_queue(flows->shared, work);
	if (ret == 1)
		count_fallback(flows);
	return ret;
}
EXPORT_SYMBOL_GPL(fairwq_flows_queue);

struct fairwq_batch *fairwq_flows_batch(struct fairwq_flows *flows, u64 key)
{
	struct fairwq_flow *flow;

	if (fairwq_is_no_pointer(flows))
		return ERR_PTR(fairwq_bad_arg("flows is NULL or an error"));
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "the batch of a flow without rcu_read_lock()");
	flow = flow_get(flows, key);
	if (!IS_ERR(flow))
		return flow->batch;
	count_fallback(flows);
	return flows->shared;
}
EXPORT_SYMBOL_GPL(fairwq_flows_batch);

struct fairwq_batch *fairwq_flows_get(struct fairwq_flows *flows, u64 key)
{
	struct fairwq_flow *flow;

	if (fairwq_is_no_pointer(flows))
		return ERR_PTR(fairwq_bad_arg("flows is NULL or an error"));
	guard(rcu)();
	if (fairwq_batch_is_disposed(flows->shared))
		return ERR_PTR(-ESHUTDOWN);
	/* A flow that was removed meanwhile may have put the last reference of its batch. */
	do {
		flow = flow_get(flows, key);
	} while (!IS_ERR(flow) && !kref_get_unless_zero(&flow->batch->refs));
	return IS_ERR(flow) ? ERR_CAST(flow) : flow->batch;
}
EXPORT_SYMBOL_GPL(fairwq_flows_get);

int fairwq_flows_set_setup(struct fairwq_flows *flows,
			   void (*setup)(struct fairwq_flow_attrs *attrs, u64 key, void *data),
			   void *data)
{
	if (fairwq_is_no_pointer(flows))
		return fairwq_bad_arg("flows is NULL or an error");
	if (!setup)
		return fairwq_bad_arg("setup is NULL");
	guard(raw_spinlock_irqsave)(&flows->lock);
	if (flows->setup)
		return -EEXIST;
	flows->data = data;
	/* Pairs with flow_setup(). No model. */
	smp_store_release(&flows->setup, setup);
	return 0;
}
EXPORT_SYMBOL_GPL(fairwq_flows_set_setup);

int fairwq_flows_set_max(struct fairwq_flows *flows, unsigned int max)
{
	if (fairwq_is_no_pointer(flows))
		return fairwq_bad_arg("flows is NULL or an error");
	WRITE_ONCE(flows->max, max ?: UINT_MAX);
	return 0;
}
EXPORT_SYMBOL_GPL(fairwq_flows_set_max);

u64 fairwq_flows_fallbacks(struct fairwq_flows *flows)
{
	if (fairwq_is_bad(fairwq_is_no_pointer(flows), "flows is NULL or an error"))
		return 0;
	return atomic64_read(&flows->fallbacks);
}
EXPORT_SYMBOL_GPL(fairwq_flows_fallbacks);

/* ---- the sweep -------------------------------------------------------- */

/*
 * Check whether nothing needs the flow: no item is queued, runs or waits for a
 * delay, and no holder has a handle. The flow and the pool have a reference
 * each. One that a holder has shut down is removed when it leaves.
 */
static bool flow_is_idle_locked(const struct fairwq_flows *flows,
				const struct fairwq_flow *flow)
{
	struct fairwq_batch *batch = flow->batch;

	lockdep_assert_held(&flows->lock);

	/* In this order, because a work that is let go is held, then queued, then in flight. */
	return !fairwq_batch_is_disposed(batch) && kref_read(&batch->refs) <= 2 &&
	       !fairwq_inbox_nr(batch) && fairwq_batch_is_idle(batch);
}

/*
 * Look at the first flow in @list, if there is one. It has expired if it was
 * drained, and not queued to, for the idle time. That counts from the first
 * look that finds nothing new. A look that sees an item tells the next one by
 * @used.
 *
 * An open flow that has expired is closed. A flow in the list of closed ones is
 * removed if it has expired, and else open from here on. It has not expired if
 * a queue call has opened it, which sets @used. It leaves that list either way,
 * so looks at the list come to an end.
 *
 * Return: false if there is none.
 */
static bool flows_look_next(struct fairwq_flows *flows, struct list_head *list,
			    unsigned long now)
{
	unsigned long limit = READ_ONCE(flows->idle);
	struct fairwq_flow *flow;
	bool idle, expired;

	guard(raw_spinlock_irq)(&flows->lock);
	flow = list_first_entry_or_null(list, struct fairwq_flow, link);
	if (!flow)
		return false;
	idle = flow_is_idle_locked(flows, flow);
	if (READ_ONCE(flow->used) || !idle)
		flow->idle_since = now;
	WRITE_ONCE(flow->used, !idle);
	expired = limit && idle && time_after_eq(now, flow->idle_since + limit);
	if (expired && list == &flows->closed) {
		/* It stays until the unlock: flow_left() takes the lock. */
		flow_remove_locked(flows, flow);
		fairwq_batch_retire(flow->batch, false);
		return true;
	}
	WRITE_ONCE(flow->closed, expired);
	list_move_tail(&flow->link, expired ? &flows->closed : &flows->list);
	return true;
}

/*
 * Remove the flows that an earlier sweep has closed, if a grace period has
 * passed since. Then look at each flow once, as if it were @now, and close
 * those that have expired.
 *
 * It does not wait, because RCU works and the ends of batches wait for the same
 * workers.
 *
 * Return: whether flows are closed, for which another sweep must come.
 */
bool fairwq_flows_sweep(struct fairwq_flows *flows, unsigned long now)
{
	unsigned int left;

	if (!list_empty(&flows->closed)) {
		/* Calls that found one open have queued. Pairs with flow_get(). No model. */
		if (!poll_state_synchronize_rcu(flows->closed_at))
			return true;
		fairwq_test_point(FAIRWQ_POINT_FLOWS_SWEEP_WAITED, flows->shared);
		while (flows_look_next(flows, &flows->closed, now)) {
			fairwq_test_point(FAIRWQ_POINT_FLOW_REMOVED, flows->shared);
			cond_resched();
		}
	}
	for (left = READ_ONCE(flows->nr); left; left--) {
		flows_look_next(flows, &flows->list, now);
		cond_resched();
	}
	if (!list_empty(&flows->closed)) {
		fairwq_test_point(FAIRWQ_POINT_FLOWS_SWEEP_CLOSED, flows->shared);
		flows->closed_at = start_poll_synchronize_rcu();
	}
	return !list_empty(&flows->closed);
}

FAIRWQ_TEST_EXPORT(fairwq_flows_sweep);

static void flows_sweep_fn(struct work_struct *work)
{
	struct fairwq_flows *flows = container_of(to_delayed_work(work),
						  struct fairwq_flows, sweep);

	fairwq_flows_sweep(flows, jiffies);
	/* Without flows the next one that is made arms it. */
	if (READ_ONCE(flows->nr))
		flows_arm(flows);
}

int fairwq_flows_set_idle_ms(struct fairwq_flows *flows, unsigned int ms)
{
	unsigned long idle;

	if (fairwq_is_no_pointer(flows))
		return fairwq_bad_arg("flows is NULL or an error");
	if (ms > FAIRWQ_MAX_IDLE_MS)
		return fairwq_bad_arg("ms is not in 0..86400000");
	idle = msecs_to_jiffies(ms);
	/*
	 * A destroy cancels what is armed here, because it waits for the calls
	 * that have not seen @shared disposed. Pairs with the grace period in
	 * fairwq_flows_shutdown(). No model.
	 */
	guard(rcu)();
	WRITE_ONCE(flows->idle, idle);
	fairwq_test_point(FAIRWQ_POINT_FLOWS_IDLE, flows->shared);
	/* The sweep may be due much later, or never. */
	if (idle && !fairwq_batch_is_disposed(flows->shared))
		mod_delayed_work(fairwq_reap_wq, &flows->sweep, idle / 4 + 1);
	return 0;
}
EXPORT_SYMBOL_GPL(fairwq_flows_set_idle_ms);

/* ---- create and destroy ----------------------------------------------- */

struct fairwq_flows *fairwq_flows_create(struct fairwq_pool *pool,
					 const struct fairwq_batch_attrs *attrs)
{
	struct fairwq_flows *flows __free(kfree) = NULL;
	static const struct fairwq_batch_attrs dfl;
	struct fairwq_batch_attrs shared_attrs;
	int err;

	if (fairwq_is_no_pointer(pool))
		return ERR_PTR(fairwq_bad_arg("pool is NULL or an error"));
	attrs = attrs ?: &dfl;
	err = fairwq_batch_check_attrs(pool, attrs);
	if (err)
		return ERR_PTR(err);
	if (attrs->released)
		return ERR_PTR(fairwq_bad_arg("attrs->released is set"));
	flows = kzalloc(sizeof(*flows), GFP_KERNEL);
	if (!flows)
		return ERR_PTR(-ENOMEM);
	/*
	 * For items that get no flow. It has no limit, because they may be of
	 * any key. It is ordered, because the setup of a key may ask for that.
	 */
	shared_attrs = *attrs;
	shared_attrs.max_queued = 0;
	shared_attrs.ordered = true;
	flows->shared = fairwq_batch_new(pool, &shared_attrs, NULL,
					 kstrdup("flows-shared", GFP_KERNEL), GFP_KERNEL);
	if (IS_ERR(flows->shared))
		return ERR_CAST(flows->shared);
	seqcount_latch_init(&flows->tree.seq);
	raw_spin_lock_init(&flows->lock);
	INIT_LIST_HEAD(&flows->list);
	INIT_LIST_HEAD(&flows->closed);
	INIT_DELAYED_WORK(&flows->sweep, flows_sweep_fn);
	flows->attrs = *attrs;
	flows->idle = msecs_to_jiffies(FLOWS_DFL_IDLE_MS);
	flows->max = FLOWS_DFL_MAX;
	atomic_inc(&pool->registry.nr_flows);
	return no_free_ptr(flows);
}
EXPORT_SYMBOL_GPL(fairwq_flows_create);

int fairwq_flows_shutdown(struct fairwq_flows *flows, unsigned int how,
			  void (*dropped)(struct fairwq_work *work))
{
	const struct fairwq_batch *own = fairwq_own_batch();
	struct fairwq_pool *pool;

	if (IS_ERR_OR_NULL(flows))
		return 0;
	if (how & ~FAIRWQ_DROP_REST)
		return fairwq_bad_arg("how has an unknown flag");
	might_sleep();
	pool = flows->shared->pool;
	if (WARN_ONCE(own && own->pool == pool,
		      "fairwq: an item or released() of batch %s/%s destroys flows of its own pool\n",
		      own->pool->name, own->name))
		return -EDEADLK;
	fairwq_batch_lockdep_wait(flows->shared, true);
	/*
	 * This disposes of @shared before the batches of the flows. So a batch
	 * that it does not find joins later, and flow_claim() refuses that.
	 * Items run, or are dropped, while this waits for a grace period.
	 */
	how |= FAIRWQ_AND_OWNED;
	fairwq_batch_shutdown_look(flows->shared, how, NULL, true);
	fairwq_test_point(FAIRWQ_POINT_FLOWS_DYING, flows->shared);
	/*
	 * Calls that have not seen @shared disposed have queued, let a new flow
	 * go, or armed the sweep. Pairs with flow_get() and
	 * fairwq_flows_set_idle_ms(). No model.
	 */
	fairwq_batch_wait_grace();
	fairwq_batch_shutdown_wait(pool, &flows->shared->nr_owned, flows->shared, how, dropped);
	/* It finds no flow any more, but may be due, or under way. */
	cancel_delayed_work_sync(&flows->sweep);
	atomic_dec(&pool->registry.nr_flows);
	fairwq_batch_put(flows->shared);
	kfree(flows);
	return 0;
}
EXPORT_SYMBOL_GPL(fairwq_flows_shutdown);

#ifdef FAIRWQ_TESTING
unsigned int fairwq_test_nr_flows(struct fairwq_flows *flows)
{
	return READ_ONCE(flows->nr);
}
EXPORT_SYMBOL_GPL(fairwq_test_nr_flows);
#endif
