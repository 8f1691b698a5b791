// SPDX-License-Identifier: GPL-2.0
/*
 * Batches: a batch's life, and what its holders may do to it.
 *
 *   state     entered when
 *   open      batch_join() has put it into its pool
 *   disposed  fairwq_batch_retire() has set @disposed: queue calls are refused
 *   drained   it is disposed, nothing is queued, held or in flight, and no
 *             call drops works of it
 *   reaped    batch_reap_fn() has unlinked it
 *   released  released() has returned
 *   freed     its last reference was dropped, and a grace period has passed
 *
 * Works that wait for a delay or a grace period are held. A dispose leaves them
 * alone, so the batch drains after the last of them has run. A shutdown ends
 * the delays: see fairwq_batch_shutdown_look().
 *
 * Cancels of what a batch has queued are in work.c.
 *
 * Locking: pool->lock; batch->flush_mutex for one flush at a time.
 * Invariant: a queue call sees that the batch is not disposed, and accepts its
 * work, in one section of inbox->lock. So each work is counted, or refused, but
 * for one that joins a run in a serializer: the first one of that is counted.
 * Invariant: a batch is reaped once, by the CPU that sees it drained under the
 * lock. That is when it is disposed, or when the last item, hold or such call
 * ends.
 * Invariant: works of a disposed batch that are to be dropped do not begin,
 * whatever pauses, resumes or disposes follow. No pause holds back those that
 * are to run; a cancel or another shutdown may still take them out.
 * Model: tests/models/dispose.pml, for all but the last one.
 *
 * Limits: weights of 1 to FAIRWQ_MAX_WEIGHT, and FAIRWQ_MAX_DEPTH owners above
 * a batch.
 */
#include <linux/completion.h>
#include <linux/export.h>
#include <linux/rculist.h>
#include <linux/slab.h>

#include "core/fifo.h"
#include "core/lockdep.h"
#include "core/push.h"
#include "core/runner.h"
#include "core/seat.h"
#include "core/testing.h"
#include "core/trace.h"
#include "core/tree.h"
#include "core/waiter.h"
#include "doors.h"

/* ---- references ------------------------------------------------------- */

static void pool_free(struct kref *refs)
{
	struct fairwq_pool *pool = container_of(refs, struct fairwq_pool, refs);

	kfree(pool->name);
	kfree_rcu(pool, rcu);	/* await_running() may look at it */
}

/* Put a pool. Any context, because RCU callbacks free batches. */
void fairwq_pool_put(struct fairwq_pool *pool)
{
	kref_put(&pool->refs, pool_free);
}

static void batch_free_rcu(struct rcu_head *rcu)
{
	struct fairwq_batch *batch = container_of(rcu, struct fairwq_batch, rcu);

	fairwq_pool_put(batch->pool);
	kfree(batch->group);
	kfree(batch->order);
	kfree(batch->stats->hists);
	kfree(batch->stats);
	kfree(batch->name);
	kfree(batch);
	fairwq_test_count_batch(-1);
}

static void batch_last_put(struct kref *refs)
{
	struct fairwq_batch *batch = container_of(refs, struct fairwq_batch, refs);
	struct fairwq_batch *parent = batch->parent;

	/*
	 * A queue call may still read @disposed. The batch was reaped, or never
	 * joined.
	 */
	call_rcu(&batch->rcu, batch_free_rcu);
	/* Its node is in no tree. This nests FAIRWQ_MAX_DEPTH deep at most. */
	fairwq_batch_put(parent);
}

struct fairwq_batch *fairwq_batch_get(struct fairwq_batch *batch)
{
	if (!IS_ERR_OR_NULL(batch))
		kref_get(&batch->refs);
	return batch;
}
EXPORT_SYMBOL_GPL(fairwq_batch_get);

void fairwq_batch_put(struct fairwq_batch *batch)
{
	if (!IS_ERR_OR_NULL(batch))
		kref_put(&batch->refs, batch_last_put);
}
EXPORT_SYMBOL_GPL(fairwq_batch_put);

/* ---- the end ---------------------------------------------------------- */

/* Count a batch for all that wait for it: when it joins the pool, and when it has left. */
static void batch_count_locked(struct fairwq_batch *batch, int n)
{
	struct fairwq_registry *registry = &batch->pool->registry;
	struct fairwq_batch *owner;

	lockdep_assert_held(&batch->pool->lock);

	WRITE_ONCE(registry->nr_batches, registry->nr_batches + n);
	WRITE_ONCE(batch->nr_here, batch->nr_here + n);
	for (owner = batch; owner; owner = owner->parent)
		WRITE_ONCE(owner->nr_owned, owner->nr_owned + n);
	owner = batch->member.shared;
	if (owner)
		WRITE_ONCE(owner->nr_owned, owner->nr_owned + n);
}

/* Take a batch that has drained out of its pool, call released(), and let go of the pool. */
static void batch_reap_fn(struct work_struct *work)
{
	struct fairwq_batch *batch = container_of(work, struct fairwq_batch, reap_work);
	struct fairwq_pool *pool = batch->pool;

	scoped_guard(raw_spinlock_irq, &pool->lock) {
		WRITE_ONCE(batch->reaped, true);
		list_del_rcu(&batch->link);
	}
	trace_fairwq_batch(batch, "release");
	if (batch->released) {
		lock_map_acquire(&pool->released_map);
		batch->released(batch, batch->priv);
		lock_map_release(&pool->released_map);
	}
	if (batch->member.left)
		batch->member.left(batch, batch->member.priv);
	scoped_guard(raw_spinlock_irq, &pool->lock) {
		batch_count_locked(batch, -1);
		fairwq_end_waiters_tell_locked(pool, false);
	}
	/* What is left is memory, with references to it, of which this one kept @pool. */
	fairwq_batch_put(batch);
}

/*
 * Wait for the calls that are under way, to end flows or a pool. That is the
 * end of a device or a driver. It often has more to end, one after the other,
 * and is waited for itself. So this is worth an interrupt on each busy CPU.
 * "rcupdate.rcu_normal" on the kernel's command line rules that out.
 */
void fairwq_batch_wait_grace(void)
{
	synchronize_rcu_expedited();
	fairwq_test_point(FAIRWQ_POINT_GRACE_OVER, NULL);
}

/* Pause a batch, or resume it. Nothing changes if it was disposed. */
void __fairwq_batch_set_paused(struct fairwq_batch *batch, bool paused)
{
	if (WARN_ON_ONCE(fairwq_is_no_pointer(batch)))
		return;
	guard(fairwq_kick)(batch->pool);
	if (fairwq_batch_is_disposed(batch))
		return;
	batch->paused = paused && !batch->pool->registry.dying;
	if (batch->paused)
		fairwq_runner_yield_locked(batch);
	fairwq_fifo_update_locked(batch);
}
EXPORT_SYMBOL_GPL(__fairwq_batch_set_paused);

/*
 * Refuse new items, end a pause, and have the batch reaped when it has drained.
 * With @drop no item of it begins from here on, for good.
 */
void fairwq_batch_retire(struct fairwq_batch *batch, bool drop)
{
	bool was;

	guard(fairwq_kick)(batch->pool);
	scoped_guard(raw_spinlock, &batch->inbox.lock) {	/* see the first invariant */
		was = batch->disposed;
		if (!was)
			trace_fairwq_batch(batch, "dispose");
		WRITE_ONCE(batch->disposed, true);
	}
	/* Nothing changes; and the pool of a reaped batch may be without runners by now. */
	if (batch->reaped || (was && batch->dropping >= drop))
		return;
	WRITE_ONCE(batch->dropping, batch->dropping || drop);
	batch->paused = batch->dropping;
	if (batch->paused)
		fairwq_runner_yield_locked(batch);
	fairwq_fifo_update_locked(batch);
	fairwq_fifo_reap_locked(batch);
}

/* Check whether @batch is one of the pool's own. */
static bool is_default(const struct fairwq_batch *batch)
{
	return batch == batch->pool->registry.default_batch[batch->prio];
}

void fairwq_batch_dispose(struct fairwq_batch *batch)
{
	if (IS_ERR_OR_NULL(batch))
		return;
	if (WARN_ON_ONCE(is_default(batch)))
		return;
	fairwq_batch_retire(batch, false);
	fairwq_batch_put(batch);
}
EXPORT_SYMBOL_GPL(fairwq_batch_dispose);

/* ---- the beginning ---------------------------------------------------- */

/*
 * Allocate a batch with one reference, for the creator. Takes over @name, also
 * on error; and the caller's reference to the owner, if it returns the batch.
 * Return: the batch, or NULL.
 */
static struct fairwq_batch *batch_alloc(struct fairwq_pool *pool,
					const struct fairwq_batch_attrs *attrs,
					const char *name, gfp_t gfp)
{
	struct fairwq_batch_stats *stats = kzalloc(sizeof(*stats), gfp);
	struct fairwq_batch *batch = kzalloc(sizeof(*batch), gfp);
	struct fairwq_sequencer *order = attrs->ordered ? kmalloc(sizeof(*order), gfp) : NULL;

	if (!batch || !name || !stats || (attrs->ordered && !order)) {
		kfree(order);
		kfree(stats);
		kfree(batch);
		kfree(name);
		return NULL;
	}
	if (order) {
		fairwq_sequencer_init(order);
		order->batch = batch;
	}
	if (READ_ONCE(pool->histograms))	/* without memory it has none */
		stats->hists = kzalloc(sizeof(*stats->hists), gfp | __GFP_NOWARN);
	fairwq_node_init(&batch->node, &pool->tree.rank[fairwq_prio_rank(attrs->prio)],
			 attrs->weight ?: FAIRWQ_DFL_WEIGHT);
	raw_spin_lock_init(&batch->inbox.lock);
	INIT_LIST_HEAD(&batch->inbox.works);
	INIT_HLIST_HEAD(&batch->inbox.delayed);
	INIT_LIST_HEAD(&batch->fifo);
	mutex_init(&batch->flush_mutex);
	/* A class for each workqueue: only released() may wait for what waits for the other. */
	if (attrs->released)
		INIT_WORK(&batch->reap_work, batch_reap_fn);
	else
		INIT_WORK(&batch->reap_work, batch_reap_fn);
	batch->pool = pool;
	batch->stats = stats;
	batch->order = order;
	batch->name = name;
	batch->prio = attrs->prio;
	batch->max_active = attrs->max_active;
	batch->max_queued = attrs->max_queued;
	batch->released = attrs->released;
	batch->priv = attrs->priv;
	batch->parent = attrs->parent;
	batch->depth = attrs->parent ? attrs->parent->depth + 1 : 0;
	kref_init(&batch->refs);
	kref_get(&pool->refs);
	fairwq_test_count_batch(1);
	return batch;
}

int fairwq_batch_check_attrs(const struct fairwq_pool *pool,
			     const struct fairwq_batch_attrs *attrs)
{
	const struct fairwq_batch *parent = attrs->parent;

	if ((unsigned int)attrs->prio > FAIRWQ_PRIO_LOW)
		return fairwq_bad_arg("attrs->prio is unknown");
	if (attrs->weight > FAIRWQ_MAX_WEIGHT)
		return fairwq_bad_arg("attrs->weight is not in 0..10000");
	if (attrs->max_active > FAIRWQ_MAX_ACTIVE)
		return fairwq_bad_arg("attrs->max_active is not in 0..512");
	if (attrs->max_queued > INT_MAX)
		return fairwq_bad_arg("attrs->max_queued is not in 0..INT_MAX");
	if (!parent)
		return 0;
	if (IS_ERR(parent))
		return fairwq_bad_arg("attrs->parent is an error");
	if (parent->pool != pool)
		return fairwq_bad_arg("attrs->parent is of another pool");
	if (parent->prio != attrs->prio)
		return fairwq_bad_arg("attrs->prio is not that of attrs->parent");
	if (parent->depth >= FAIRWQ_MAX_DEPTH)
		return fairwq_bad_arg("attrs->parent has too many owners");
	return fairwq_batch_is_disposed(parent) ? -ESHUTDOWN : 0;
}

/*
 * Check whether the owner of @batch takes more. A shutdown of the owner does
 * not find what joins after it. Flows go on below an owner of theirs that was
 * disposed, until they are shut down with it.
 */
static bool owner_is_open_locked(const struct fairwq_batch *batch)
{
	const struct fairwq_batch *owner = batch->parent, *shared = batch->member.shared;

	lockdep_assert_held(&batch->pool->lock);

	if (shared && shared->parent == owner)
		owner = shared;
	return !owner || !fairwq_batch_is_disposed(owner);
}

/* Publish a complete batch in its pool. Return: 0, -ESHUTDOWN or -ENOMEM. */
static int batch_join(struct fairwq_batch *batch, gfp_t gfp)
{
	struct fairwq_node *group __free(kfree) = NULL;	/* after the unlock */
	struct fairwq_batch *parent = batch->parent;
	struct fairwq_pool *pool = batch->pool;

	if (parent) {
		group = kzalloc(sizeof(*group), gfp);
		if (!group)
			return -ENOMEM;
	}
	guard(raw_spinlock_irqsave)(&pool->lock);
	if (pool->registry.dying || !owner_is_open_locked(batch))
		return -ESHUTDOWN;
	/* The place of an owner in the tree becomes that of its group with its first batch. */
	if (parent && !parent->group) {
		fairwq_tree_make_group(&parent->node, group);
		parent->group = no_free_ptr(group);
	}
	if (parent)
		fairwq_node_init(&batch->node, parent->group, batch->node.weight);
	batch->seq = pool->registry.next_seq++;
	kref_get(&batch->refs);			/* the pool's */
	list_add_tail_rcu(&batch->link, &pool->registry.batches);
	batch_count_locked(batch, 1);
	return 0;
}

/*
 * Create a batch and put it into its pool; in any context but NMI, if @gfp says
 * so. Takes over @name, also on error; NULL means that there was no memory for
 * it. @member: what it must know of its flow, or NULL.
 * Return: the batch, or an ERR_PTR().
 */
struct fairwq_batch *fairwq_batch_new(struct fairwq_pool *pool,
				      const struct fairwq_batch_attrs *attrs,
				      const struct fairwq_member *member, const char *name,
				      gfp_t gfp)
{
	struct fairwq_batch *parent = attrs->parent, *batch;
	int err;

	fairwq_test_point(FAIRWQ_POINT_BATCH_NEW, parent);
	/* One that a driver's setup() of flows has named may have ended since. */
	if (parent && !kref_get_unless_zero(&parent->refs)) {
		kfree(name);
		return ERR_PTR(-ESHUTDOWN);
	}
	batch = batch_alloc(pool, attrs, name, gfp);
	if (!batch) {
		fairwq_batch_put(parent);
		return ERR_PTR(-ENOMEM);
	}
	if (member)
		batch->member = *member;
	err = batch_join(batch, gfp);
	if (err) {
		fairwq_batch_put(batch);
		return ERR_PTR(err);
	}
	trace_fairwq_batch(batch, "create");
	return batch;
}

struct fairwq_batch *fairwq_batch_create(struct fairwq_pool *pool,
					 const struct fairwq_batch_attrs *attrs,
					 const char *fmt, ...)
{
	static const struct fairwq_batch_attrs dfl;
	const char *name;
	va_list args;
	int err;

	if (fairwq_is_no_pointer(pool))
		return ERR_PTR(fairwq_bad_arg("pool is NULL or an error"));
	if (!fmt)
		return ERR_PTR(fairwq_bad_arg("fmt is NULL"));
	attrs = attrs ?: &dfl;
	err = fairwq_batch_check_attrs(pool, attrs);
	if (err)
		return ERR_PTR(err);
	va_start(args, fmt);
	name = fairwq_make_name(fmt, args);
	va_end(args);
	return fairwq_batch_new(pool, attrs, NULL, name, GFP_KERNEL);
}
EXPORT_SYMBOL_GPL(fairwq_batch_create);

/* ---- weight and flush --------------------------------------------------- */

int fairwq_batch_set_weight(struct fairwq_batch *batch, unsigned int weight)
{
	if (fairwq_is_no_pointer(batch))
		return fairwq_bad_arg("batch is NULL or an error");
	if (!weight || weight > FAIRWQ_MAX_WEIGHT)
		return fairwq_bad_arg("weight is not in 1..10000");
	guard(raw_spinlock_irqsave)(&batch->pool->lock);
	fairwq_tree_set_weight(batch->group ?: &batch->node, weight);
	return 0;
}
EXPORT_SYMBOL_GPL(fairwq_batch_set_weight);

/* Wait until every item that is queued now has ended. */
void fairwq_batch_wait(struct fairwq_batch *batch)
{
	struct fairwq_own_work barrier = { .work.flags = FAIRWQ_WORK_OWN };

	init_completion(&barrier.done);
	guard(mutex)(&batch->flush_mutex);
	fairwq_test_point(FAIRWQ_POINT_BATCH_WAIT, batch);
	scoped_guard(raw_spinlock_irq, &batch->pool->lock) {
		/* The pool of a reaped batch may be without runners by now. */
		if (batch->reaped)
			return;
		fairwq_fifo_add_barrier_locked(batch, &barrier.work);
	}
	wait_for_completion(&barrier.done);
}

/*
 * Check that the caller may wait for items of the batch, and with @end for its
 * released(): fairwq_wait_begin(). A reaped batch has nothing to wait for, and
 * its pool may be gone. But the pool's lockdep maps are there for a grace
 * period after that.
 */
void fairwq_batch_lockdep_wait(struct fairwq_batch *batch, bool end)
{
	const struct fairwq_batch *own = fairwq_own_batch();

	guard(rcu)();
	/* From an item or a released() of the pool this may be right; lockdep cannot tell. */
	if (READ_ONCE(batch->reaped) || (own && own->pool == batch->pool))
		return;
	fairwq_wait_begin(&batch->pool->lockdep_map, fairwq_is_for_reclaim(batch));
	if (end)
		fairwq_lockdep_wait(&batch->pool->released_map);
}

void fairwq_batch_flush(struct fairwq_batch *batch)
{
	if (WARN_ON_ONCE(fairwq_is_no_pointer(batch)))
		return;
	might_sleep();
	if (fairwq_waits_for_itself(fairwq_runner_own_turn()->batch == batch, __func__))
		return;
	fairwq_batch_lockdep_wait(batch, false);
	fairwq_batch_wait(batch);
}
EXPORT_SYMBOL_GPL(fairwq_batch_flush);

unsigned int fairwq_batch_nr_queued(struct fairwq_batch *batch)
{
	if (fairwq_is_bad(fairwq_is_no_pointer(batch), "batch is NULL or an error"))
		return 0;
	return fairwq_inbox_nr(batch);
}
EXPORT_SYMBOL_GPL(fairwq_batch_nr_queued);

bool fairwq_batch_is_idle(struct fairwq_batch *batch)
{
	guard(raw_spinlock_irqsave)(&batch->pool->lock);
	return fairwq_fifo_is_idle_locked(batch);
}

/* ---- one batch of a pool after the other ------------------------------- */

/*
 * Find the first batch after @last, or the first if that is NULL. If @last has
 * left the list, its successors are those with a higher number.
 *
 * A batch is marked as reaped before it leaves the list. So one that is not
 * marked is in the list now, and what follows it stays during this read-side
 * section.
 *
 * Return: the batch, with a reference, or NULL. The reference to @last is
 * dropped.
 */
struct fairwq_batch *fairwq_pool_next_batch(struct fairwq_pool *pool,
					    struct fairwq_batch *last)
{
	struct fairwq_batch *batch, *found = NULL;

	rcu_read_lock();
	batch = last && !READ_ONCE(last->reaped) ? last : NULL;
	batch = list_prepare_entry(batch, &pool->registry.batches, link);
	list_for_each_entry_continue_rcu(batch, &pool->registry.batches, link) {
		if (last && batch->seq <= last->seq)
			continue;
		/* A batch that has left meanwhile has no item any more. */
		if (kref_get_unless_zero(&batch->refs)) {
			found = batch;
			break;
		}
	}
	rcu_read_unlock();
	fairwq_batch_put(last);
	return found;
}

/* ---- going away in one call ------------------------------------------- */

/*
 * Return the batch of which the caller is an item, or in whose released() it
 * is; or NULL.
 */
struct fairwq_batch *fairwq_own_batch(void)
{
	const struct fairwq_turn *turn = fairwq_runner_own_turn();
	work_func_t func;
	struct work_struct *work = fairwq_current_work_of_core(&func);

	if (turn)
		return turn->batch;
	if (!work || func != batch_reap_fn)
		return NULL;
	return container_of(work, struct fairwq_batch, reap_work);
}

/* Check whether @owner owns @batch, or is the shared batch of its flows. */
static bool batch_is_below(const struct fairwq_batch *batch, const struct fairwq_batch *owner)
{
	if (batch->member.shared == owner)
		return true;
	do {
		batch = batch->parent;
	} while (batch && batch != owner);
	return batch;
}

/*
 * Find the first batch after @last that goes with @owner, or the first if that
 * is NULL.
 * Return: as fairwq_pool_next_batch().
 */
static struct fairwq_batch *next_owned(struct fairwq_batch *owner, unsigned int how,
				       struct fairwq_batch *last)
{
	if (!(how & FAIRWQ_AND_OWNED))
		return NULL;
	do {
		last = fairwq_pool_next_batch(owner->pool, last);
	} while (last && !batch_is_below(last, owner));
	return last;
}

/*
 * Refuse new items of @owner and all that goes with it, and end their delays.
 * Unless this is the @first look, drop what is there if it is to be, and what a
 * serializer lets go by that. All of them are stopped before. Works of one may
 * wait for those of another in a serializer.
 */
void fairwq_batch_shutdown_look(struct fairwq_batch *owner, unsigned int how,
				fairwq_func_t dropped, bool first)
{
	struct fairwq_batch *batch = NULL, *next;

	do {
		next = batch ?: owner;
		cond_resched();
		/* Many are looked at for each work that one gets. */
		if (READ_ONCE(next->dropping) && !fairwq_inbox_nr_queued(next))
			continue;
		fairwq_test_point(FAIRWQ_POINT_SHUTDOWN_LOOK, next);
		fairwq_batch_retire(next, how & FAIRWQ_DROP_REST);	/* it may be new */
		fairwq_delays_end(next);
		while (!first && how & FAIRWQ_DROP_REST && fairwq_batch_cancel(next, dropped))
			cond_resched();
	} while ((batch = next_owned(owner, how, batch)));
}

/*
 * Wait until @left is 0, a count of batches of @pool. With FAIRWQ_DROP_REST,
 * look at @owner and those that go with it: now, and each time that there is
 * something to drop.
 */
void fairwq_batch_shutdown_wait(struct fairwq_pool *pool, const unsigned int *left,
				struct fairwq_batch *owner, unsigned int how,
				fairwq_func_t dropped)
{
	struct fairwq_end_waiter waiter = { .left = left };

	init_completion(&waiter.done);
	scoped_guard(raw_spinlock_irq, &pool->lock)
		list_add_tail(&waiter.node, &pool->waits.batches);
	for (;;) {
		if (how & FAIRWQ_DROP_REST)
			fairwq_batch_shutdown_look(owner, how, dropped, false);
		if (!READ_ONCE(*left))
			break;
		wait_for_completion(&waiter.done);
		/* Under the lock: what has told this call is seen in the next round. */
		scoped_guard(raw_spinlock_irq, &pool->lock)
			reinit_completion(&waiter.done);
	}
	guard(raw_spinlock_irq)(&pool->lock);
	list_del(&waiter.node);
}

int fairwq_batch_shutdown(struct fairwq_batch *batch, unsigned int how,
			  void (*dropped)(struct fairwq_work *work))
{
	const struct fairwq_batch *own = fairwq_own_batch();

	if (IS_ERR_OR_NULL(batch))
		return 0;
	if (how & ~(FAIRWQ_DROP_REST | FAIRWQ_AND_OWNED))
		return fairwq_bad_arg("how has an unknown flag");
	if (is_default(batch))
		return fairwq_bad_arg("batch is a pool's own");
	might_sleep();
	/* It would wait for itself. */
	if (WARN_ONCE(own && (own == batch ||
			      ((how & FAIRWQ_AND_OWNED) && batch_is_below(own, batch))),
		      "fairwq: an item or released() of batch %s/%s shuts down %s\n",
		      own->pool->name, own->name, batch->name))
		return -EDEADLK;
	fairwq_batch_lockdep_wait(batch, true);
	fairwq_batch_shutdown_look(batch, how, NULL, true);
	fairwq_batch_shutdown_wait(batch->pool, how & FAIRWQ_AND_OWNED ? &batch->nr_owned :
				   &batch->nr_here, batch, how, dropped);
	fairwq_batch_put(batch);
	return 0;
}
EXPORT_SYMBOL_GPL(fairwq_batch_shutdown);
