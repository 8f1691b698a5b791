// SPDX-License-Identifier: GPL-2.0
/*
 * Operations: what actors do to fairwq. Each is a small function in the table
 * at the end. To torture something new, write one more and give it a weight.
 */
#define pr_fmt(fmt) "fairwq-torture: " fmt

#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/sched.h>

#include "torture.h"

static struct tt_slot tt_slots[TT_NR_SLOTS];

/* Cancels of batches, which may take out any item, and of packets. */
static atomic_t tt_cancels_begun, tt_cancels_ended;

/* ---- without memory ---------------------------------------------------- */

#ifdef CONFIG_FAILSLAB
/* Let one of the next allocations of this task fail, until tt_fail_end(). */
static void tt_fail_begin(struct tt_actor *actor)
{
	if (tt_starve && in_task() && tt_bug != TT_BUG_STARVED)
		WRITE_ONCE(current->fail_nth, 1 + tt_random(actor, 16));
}

/* End that. @refused: the call returned -ENOMEM, which is counted. */
static void tt_fail_end(bool refused)
{
	WRITE_ONCE(current->fail_nth, 0);
	if (refused)
		tt_count(TT_STARVED, 1);
}
#else
static void tt_fail_begin(struct tt_actor *actor)
{
}

static void tt_fail_end(bool refused)
{
}
#endif

/* ---- batches that all actors share ------------------------------------- */

static void tt_batch_released(struct fairwq_batch *batch, void *priv)
{
	tt_count(TT_RELEASED, tt_bug != TT_BUG_RELEASED);
}

/*
 * Get the batch of @slot, and its nature unless @nature is NULL. Return: the
 * batch, with a reference, or NULL.
 */
static struct fairwq_batch *tt_slot_get(struct tt_slot *slot, struct tt_nature *nature)
{
	struct fairwq_batch *batch;
	unsigned long flags;

	raw_spin_lock_irqsave(&slot->lock, flags);
	batch = slot->batch ? fairwq_batch_get(slot->batch) : NULL;
	if (nature)
		*nature = slot->nature;
	raw_spin_unlock_irqrestore(&slot->lock, flags);
	return batch;
}

/* Put @batch into @slot. Return: the batch before it, with its reference, or NULL. */
static struct fairwq_batch *tt_slot_swap(struct tt_slot *slot, struct fairwq_batch *batch,
					 struct tt_nature nature)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&slot->lock, flags);
	swap(slot->batch, batch);
	slot->nature = nature;
	raw_spin_unlock_irqrestore(&slot->lock, flags);
	return batch;
}

static struct tt_slot *tt_any_slot(struct tt_actor *actor)
{
	return &tt_slots[tt_random(actor, TT_NR_SLOTS)];
}

/* Get any batch. Return: it, with a reference, or NULL if its slot is empty. */
struct fairwq_batch *tt_get_batch(struct tt_actor *actor)
{
	return tt_slot_get(tt_any_slot(actor), NULL);
}

/* Resume the batches of all slots, so that no call waits for a paused one for ever. */
void tt_resume_all(void)
{
	struct fairwq_batch *batch;
	unsigned int i;

	for (i = 0; i < TT_NR_SLOTS; i++) {
		batch = tt_slot_get(&tt_slots[i], NULL);
		if (!batch)
			continue;
		fairwq_batch_resume(batch);
		fairwq_batch_put(batch);
	}
}

static struct fairwq_pool *tt_any_pool(struct tt_actor *actor)
{
	return tt_pools[tt_random(actor, TT_NR_POOLS)];
}

/* Find an owner for a batch in @nature's pool. Return: it, with a reference, or NULL. */
static struct fairwq_batch *tt_get_owner(struct tt_actor *actor, struct tt_nature *nature)
{
	struct tt_nature of;
	struct fairwq_batch *owner = tt_slot_get(tt_any_slot(actor), &of);

	if (!owner || of.pool != nature->pool || of.depth >= TT_MAX_DEPTH) {
		fairwq_batch_put(owner);
		return NULL;
	}
	nature->prio = of.prio;
	nature->depth = of.depth + 1;
	return owner;
}

/* Create a batch in the pool of @nature, perhaps with an owner. Fill in the rest of @nature. */
static struct fairwq_batch *tt_batch_make(struct tt_actor *actor,
					  struct fairwq_batch_attrs *attrs,
					  struct tt_nature *nature)
{
	struct fairwq_batch *batch;

	nature->prio = tt_random(actor, 3);
	nature->depth = 0;
	attrs->parent = tt_random(actor, 4) ? NULL : tt_get_owner(actor, nature);
	attrs->prio = nature->prio;
	attrs->weight = tt_random(actor, 2) ? 0 : 1 + tt_random(actor, FAIRWQ_MAX_WEIGHT);
	tt_fail_begin(actor);
	batch = fairwq_batch_create(nature->pool, attrs, "b%u", tt_random(actor, 1000));
	tt_fail_end(batch == ERR_PTR(-ENOMEM));
	fairwq_batch_put(attrs->parent);
	if (IS_ERR(batch))
		return NULL;
	tt_count(TT_BATCHES, 1);
	return batch;
}

/* Create a batch in any pool. Return: it, or NULL without memory. */
struct fairwq_batch *tt_batch_create(struct tt_actor *actor, struct fairwq_batch_attrs *attrs)
{
	struct tt_nature nature = { .pool = tt_any_pool(actor) };

	return tt_batch_make(actor, attrs, &nature);
}

/* Create a batch for a slot. Return: it, or NULL without memory. */
static struct fairwq_batch *tt_new_batch(struct tt_actor *actor, struct tt_nature *nature)
{
	struct fairwq_batch_attrs attrs = {
		.max_active = tt_random(actor, 3),
		.max_queued = tt_random(actor, 4) ? 0 : 1 + tt_random(actor, 100),
		.released = tt_batch_released,
	};

	return tt_batch_make(actor, &attrs, nature);
}

static struct tt_item *tt_any_item(struct tt_actor *actor)
{
	return &tt_items[tt_random(actor, TT_NR_ITEMS)];
}

/* Return an item that runs just now, if one is found quickly, or any item. */
static struct tt_item *tt_busy_item(struct tt_actor *actor)
{
	struct tt_item *item = tt_any_item(actor);
	unsigned int n;

	for (n = 0; n < TT_NR_ITEMS / 2 && !atomic_read(&item->inside); n++)
		item = &tt_items[(item->nr + 1) % TT_NR_ITEMS];
	return item;
}

/* Return a delay in jiffies: half the time none, else up to about 20 ms. */
static unsigned long tt_any_delay(struct tt_actor *actor)
{
	return tt_random(actor, 2) ? 0 : 1 + tt_random(actor, HZ / 50 + 1);
}

/* Return an inline budget for a serializer, in us. One in eight is of any size. */
unsigned int tt_any_budget(struct tt_actor *actor)
{
	return tt_random(actor, tt_random(actor, 8) ? 200 : FAIRWQ_MAX_INLINE_US + 1);
}

int tt_slots_init(void)
{
	struct tt_actor actor = { .nr = -1 };
	struct tt_slot *slot;

	prandom_seed_state(&actor.rnd, 1);
	for (slot = tt_slots; slot < tt_slots + TT_NR_SLOTS; slot++)
		raw_spin_lock_init(&slot->lock);
	for (slot = tt_slots; slot < tt_slots + TT_NR_SLOTS; slot++) {
		slot->nature.pool = tt_pools[(slot - tt_slots) % TT_NR_POOLS];
		slot->batch = tt_new_batch(&actor, &slot->nature);
	}
	return 0;
}

void tt_slots_end(void)
{
	struct tt_slot *slot;

	for (slot = tt_slots; slot < tt_slots + TT_NR_SLOTS; slot++)
		fairwq_batch_dispose(tt_slot_swap(slot, NULL, slot->nature));
}

/* ---- queueing ---------------------------------------------------------- */

/* Queue an item to any batch, directly or through a shared stream. */
static void tt_op_queue(struct tt_actor *actor)
{
	struct fairwq_batch *batch = tt_get_batch(actor);
	struct tt_item *item = tt_random(actor, 4) ? tt_any_item(actor) : tt_busy_item(actor);

	if (!batch)
		return;
	tt_item_queue(item, tt_shared_any(actor), tt_bug != TT_BUG_REFUSED ? batch : NULL,
		      tt_any_delay(actor));
	fairwq_batch_put(batch);
}

/* Queue some oneshots to any batch. */
static void tt_op_oneshots(struct tt_actor *actor)
{
	struct fairwq_batch *batch = tt_get_batch(actor);
	unsigned int n = 1 + tt_random(actor, 32);

	if (!batch)
		return;
	while (n-- && tt_oneshot(batch, NULL, GFP_ATOMIC))
		;
	fairwq_batch_put(batch);
}

/* Flows that are about to be destroyed; see tt_op_flows_beside(). */
static struct fairwq_flows __rcu *tt_beside;

/* Queue an item to flows that are about to be destroyed, if there are any. */
static void tt_queue_beside(struct tt_actor *actor)
{
	struct tt_item *item = tt_any_item(actor);
	struct fairwq_flows *flows;

	rcu_read_lock();
	flows = rcu_dereference(tt_beside);
	if (flows && item->kind == TT_PLAIN)
		tt_item_queued(item, fairwq_flows_queue(flows, tt_random(actor, 16),
							&item->work));
	rcu_read_unlock();
}

/* Queue some oneshots to flows. */
static void tt_op_flows(struct tt_actor *actor)
{
	unsigned int n = 1 + tt_random(actor, 16);

	tt_queue_beside(actor);
	while (n-- && tt_oneshot(NULL, NULL, GFP_ATOMIC))
		;
}

/* Queue an item to a default batch of a pool. */
static void tt_op_default(struct tt_actor *actor)
{
	struct fairwq_pool *pool = tt_any_pool(actor);

	tt_item_queue(tt_any_item(actor), tt_shared_any(actor),
		      fairwq_pool_default_batch(pool, tt_random(actor, 3)), 0);
}

static void tt_op_mod(struct tt_actor *actor)
{
	struct fairwq_batch *batch = tt_get_batch(actor);

	if (!batch)
		return;
	tt_item_mod(tt_any_item(actor), batch, tt_any_delay(actor));
	fairwq_batch_put(batch);
}

/* ---- reaching into the queue ------------------------------------------- */

static bool tt_cancel_delayed(struct fairwq_work *work)
{
	return fairwq_delayed_work_cancel(container_of(work, struct fairwq_delayed_work, work));
}

static bool tt_cancel_delayed_sync(struct fairwq_work *work)
{
	return fairwq_delayed_work_cancel_sync(container_of(work, struct fairwq_delayed_work,
							    work));
}

static void tt_cancel_one(struct tt_item *item)
{
	tt_item_cancel(item, item->kind == TT_DELAYED ? tt_cancel_delayed : fairwq_work_cancel);
}

static void tt_op_cancel(struct tt_actor *actor)
{
	tt_cancel_one(tt_any_item(actor));
}

static void tt_op_cancel_sync(struct tt_actor *actor)
{
	struct tt_item *item = tt_busy_item(actor);

	tt_item_cancel(item, item->kind == TT_DELAYED ? tt_cancel_delayed_sync :
							fairwq_work_cancel_sync);
}

/* Disable and enable @item: a cancel of another kind. */
static void tt_disable_one(struct tt_item *item)
{
	tt_item_cancel(item, fairwq_work_disable);
	fairwq_work_enable(&item->work);
}

/* Disable an item, and let the enable queue it. */
static void tt_disable_and_queue(struct tt_actor *actor, struct tt_item *item)
{
	struct fairwq_batch *batch = fairwq_pool_default_batch(tt_any_pool(actor), 0);

	tt_item_cancel(item, fairwq_work_disable);
	tt_item_queued(item, fairwq_work_enable(&item->work) ?
			     fairwq_queue(batch, &item->work) : -ECANCELED);
}

static void tt_op_disable(struct tt_actor *actor)
{
	struct tt_item *item = tt_any_item(actor);

	if (item->kind == TT_PLAIN && tt_random(actor, 2))
		tt_disable_and_queue(actor, item);
	else
		tt_disable_one(item);
}

/* Check that an item is not pending and does not run while it is disabled. */
static void tt_op_disable_sync(struct tt_actor *actor)
{
	struct tt_item *item = tt_busy_item(actor);

	if (tt_bug != TT_BUG_DISABLED)
		tt_item_cancel(item, fairwq_work_disable_sync);
	if (fairwq_work_pending(&item->work))
		tt_problem("item %u is pending although disabled\n", item->nr);
	if (!tt_random(actor, 8))
		schedule_timeout_uninterruptible(1);
	if (atomic_read(&item->inside))
		tt_problem("item %u runs although disabled\n", item->nr);
	if (tt_bug != TT_BUG_DISABLED)
		fairwq_work_enable(&item->work);
}

/* A delayed work on the stack of its actor. */
struct tt_brief {
	struct fairwq_delayed_work dwork;
	bool ran;
};

static void tt_brief_fn(struct fairwq_work *work)
{
	WRITE_ONCE(container_of(work, struct tt_brief, dwork.work)->ran, true);
}

/*
 * Queue a work on the stack, and check that it has ended before this returns.
 * It goes to a default batch, because no actor cancels that.
 */
static void tt_op_onstack(struct tt_actor *actor)
{
	struct fairwq_batch *batch = fairwq_pool_default_batch(tt_any_pool(actor), 0);
	struct tt_brief brief = { };
	bool queued;

	fairwq_delayed_work_init_onstack(&brief.dwork, tt_brief_fn);
	queued = fairwq_queue_delayed(batch, &brief.dwork, tt_any_delay(actor)) == 1;
	if (tt_random(actor, 2))
		fairwq_delayed_work_flush(&brief.dwork);
	else if (fairwq_delayed_work_cancel_sync(&brief.dwork))
		queued = false;
	if (fairwq_work_pending(&brief.dwork.work) || READ_ONCE(brief.ran) != queued)
		tt_problem("a work on the stack has not ended, or is lost\n");
	fairwq_delayed_work_destroy_onstack(&brief.dwork);
}

/*
 * Begin a call that may take out items other than those of items.c. Until
 * tt_cancel_end(), which must follow, these may be out and not yet counted.
 */
void tt_cancel_begin(void)
{
	atomic_inc(&tt_cancels_begun);
	smp_mb__after_atomic();		/* pairs with tt_cancels_quiet() */
}

void tt_cancel_end(void)
{
	smp_mb__before_atomic();	/* pairs with tt_cancels_quiet() */
	atomic_inc(&tt_cancels_ended);
}

/* Check that no such call is under way. */
bool tt_cancels_quiet(void)
{
	int ended = atomic_read(&tt_cancels_ended);

	smp_rmb();	/* load ended, then begun; pairs with tt_cancel_begin() */
	return ended == atomic_read(&tt_cancels_begun);
}

void tt_cancel_batch(struct fairwq_batch *batch)
{
	tt_cancel_begin();
	fairwq_batch_cancel(batch, tt_dropped);
	tt_cancel_end();
}

static void tt_op_batch_cancel(struct tt_actor *actor)
{
	struct fairwq_batch *batch = tt_get_batch(actor);

	if (!batch)
		return;
	tt_cancel_batch(batch);
	fairwq_batch_put(batch);
}

/* Empty a batch that no other actor knows. */
static void tt_op_empty(struct tt_actor *actor)
{
	struct fairwq_batch_attrs attrs = {
		.max_active = tt_random(actor, 3),
		.released = tt_batch_released,
	};
	struct fairwq_batch *batch = tt_batch_create(actor, &attrs);

	if (!batch)
		return;
	tt_empty(batch, actor);
	fairwq_batch_dispose(batch);
}

/* ---- a hard interrupt on top ------------------------------------------- */

/* Queue @item, or take it out of the queue by a call that does not sleep. */
static void tt_duel_act(struct tt_actor *actor, struct tt_item *item)
{
	struct fairwq_batch *batch = tt_get_batch(actor);

	switch (tt_random(actor, 5)) {
	case 0:
		tt_cancel_one(item);
		break;
	case 1:
		tt_disable_one(item);
		break;
	case 2:
		if (batch)
			tt_item_mod(item, batch, tt_any_delay(actor));
		break;
	default:
		if (batch)
			tt_item_queue(item, tt_shared_any(actor), batch, tt_any_delay(actor));
	}
	fairwq_batch_put(batch);
}

/* Return the time until the next interrupt, ns. */
static u64 tt_duel_pause(struct tt_actor *actor)
{
	return 1000 + tt_random(actor, 30000);
}

/* Act upon the item of the duel, in a hard interrupt on top of its thread. */
enum hrtimer_restart tt_duel_fn(struct hrtimer *timer)
{
	struct tt_thread *thread = container_of(timer, struct tt_thread, duel_timer);
	struct tt_item *item = READ_ONCE(thread->rival);

	if (!item)
		return HRTIMER_NORESTART;
	tt_duel_act(&thread->duel, item);
	tt_count(TT_MEDDLED, 1);
	hrtimer_forward_now(timer, ns_to_ktime(tt_duel_pause(&thread->duel)));
	return HRTIMER_RESTART;
}

/*
 * Act upon one item by a thread and by a hard interrupt, which comes in the
 * middle of a call of the thread. Most of the time the item is a delayed one.
 */
static void tt_op_duel(struct tt_actor *actor)
{
	struct tt_thread *thread = &tt_threads[actor->nr];
	unsigned int n = 32 + tt_random(actor, 128);
	struct tt_item *item = tt_any_item(actor);

	if (tt_random(actor, 4))
		item = &tt_items[item->nr / 4 * 4 + 1];
	WRITE_ONCE(thread->rival, item);
	hrtimer_start(&thread->duel_timer, ns_to_ktime(tt_duel_pause(actor)),
		      HRTIMER_MODE_REL_PINNED_HARD);
	while (n--)
		tt_duel_act(actor, item);
	WRITE_ONCE(thread->rival, NULL);
	hrtimer_cancel(&thread->duel_timer);
}

/* ---- waiting ----------------------------------------------------------- */

/* Return a count of the calls that may have taken @item out. */
static int tt_disturbances(struct tt_item *item)
{
	int nr = atomic_read(&item->cancels_begun) + atomic_read(&tt_cancels_begun);

	smp_mb();	/* pairs with both of the *_cancel_begin() */
	return nr;
}

/* Check that no call is under way that may take @item out. */
static bool tt_undisturbed(struct tt_item *item)
{
	int ended = atomic_read(&item->cancels_ended);

	smp_rmb();	/* load ended, then begun; pairs with tt_item_cancel_end() */
	return ended == atomic_read(&item->cancels_begun) && tt_cancels_quiet();
}

/*
 * Store, queue, flush. The run must have seen the store, unless another actor
 * has taken the item out meanwhile. That also holds for an item that was
 * pending, but only for a plain one: another call may be about to start the
 * timer of a delayed item, and a flush may miss that.
 */
static void tt_op_stamp(struct tt_actor *actor)
{
	struct fairwq_batch *batch = tt_get_batch(actor);
	struct tt_item *item = tt_any_item(actor);
	bool quiet = tt_undisturbed(item);
	int disturbances, ret;
	u32 stamp = ++actor->stamp;

	if (!batch)
		return;
	disturbances = tt_disturbances(item);
	if (tt_bug != TT_BUG_STALE)
		WRITE_ONCE(item->stamp[actor->nr], stamp);
	ret = tt_item_queue(item, tt_shared_any(actor), batch, tt_any_delay(actor));
	fairwq_batch_put(batch);
	if (ret < 0 || (!ret && item->kind != TT_PLAIN))
		return;
	tt_item_flush(item);
	smp_mb();	/* flush, then look; pairs with the same */
	if (!quiet || disturbances != tt_disturbances(item))
		return;
	tt_count(TT_STAMPS, 1);
	if (READ_ONCE(item->seen[actor->nr]) != stamp)
		tt_problem("item %u (kind %d) was told %d and flushed, and saw %u, not %u\n",
			   item->nr, item->kind, ret, item->seen[actor->nr], stamp);
}

static void tt_op_flush(struct tt_actor *actor)
{
	tt_item_flush(tt_busy_item(actor));
}

static void tt_op_batch_flush(struct tt_actor *actor)
{
	struct fairwq_batch *batch = tt_get_batch(actor);

	if (!batch)
		return;
	tt_probe(batch, NULL);
	fairwq_batch_put(batch);
}

static void tt_op_pool_flush(struct tt_actor *actor)
{
	struct fairwq_pool *pool = tt_any_pool(actor);

	tt_probe(fairwq_pool_default_batch(pool, tt_random(actor, 3)), pool);
}

/* Drain a pool, one at a time. */
static void tt_op_drain(struct tt_actor *actor)
{
	static DEFINE_MUTEX(mutex);

	if (!mutex_trylock(&mutex))
		return;
	fairwq_pool_drain(tt_any_pool(actor));
	mutex_unlock(&mutex);
}

/* ---- batches and pools ------------------------------------------------- */

/* Replace the batch of a slot by a new one, and dispose of the old one. */
static void tt_op_renew(struct tt_actor *actor)
{
	struct tt_nature nature = { .pool = tt_any_pool(actor) };
	struct fairwq_batch *batch = tt_new_batch(actor, &nature);

	if (batch)
		fairwq_batch_dispose(tt_slot_swap(tt_any_slot(actor), batch, nature));
}

/* Dispose of a batch. Its slot keeps it until it is renewed, and it refuses all items. */
static void tt_op_dispose(struct tt_actor *actor)
{
	fairwq_batch_dispose(tt_get_batch(actor));
}

/*
 * Choose whether a shutdown runs or drops the rest; tt_how_end() must follow.
 * While one drops, items are not judged. Return: the flag for the shutdown.
 */
static unsigned int tt_how_begin(struct tt_actor *actor)
{
	if (tt_random(actor, 4))
		return FAIRWQ_RUN_REST;
	tt_cancel_begin();
	return FAIRWQ_DROP_REST;
}

static void tt_how_end(unsigned int how)
{
	if (how & FAIRWQ_DROP_REST)
		tt_cancel_end();
}

/* Count a released batch, and note it for tt_op_shutdown(). */
static void tt_gone_released(struct fairwq_batch *batch, void *priv)
{
	tt_batch_released(batch, NULL);
	WRITE_ONCE(*(bool *)priv, true);
}

/*
 * Create a batch, and one that it owns, queue items to them in all ways, and
 * shut both down. Other actors cancel, modify and hold back these items
 * meanwhile. When the shutdown returns, both batches must have been released.
 */
static void tt_op_shutdown(struct tt_actor *actor)
{
	unsigned int n, how;
	struct fairwq_pool *pool = tt_any_pool(actor);
	struct fairwq_batch *batch[2];
	struct fairwq_batch_attrs attrs = {
		.max_active = tt_random(actor, 3),
		.prio = tt_random(actor, 3),
		.released = tt_gone_released,
	};
	bool released[2] = { };

	for (n = 0; n < 2; n++) {
		attrs.priv = &released[n];
		attrs.parent = n ? batch[0] : NULL;
		batch[n] = fairwq_batch_create(pool, &attrs, "gone%u", n);
		if (IS_ERR(batch[n]))
			break;
		tt_count(TT_BATCHES, 1);
	}
	if (!n)
		return;
	for (n = n == 2 ? tt_random(actor, 50) : 0; n; n--)
		tt_item_queue(tt_any_item(actor), tt_shared_any(actor), batch[n % 2],
			      tt_random(actor, 8) ? tt_any_delay(actor) : 3600 * HZ);
	how = tt_how_begin(actor);
	fairwq_batch_shutdown(batch[0], how | FAIRWQ_AND_OWNED, tt_dropped);
	tt_how_end(how);
	if (!READ_ONCE(released[0]) || (!IS_ERR(batch[1]) && !READ_ONCE(released[1])))
		tt_problem("a shutdown has returned before released()\n");
	fairwq_batch_put(batch[1]);
}

static void tt_op_pause(struct tt_actor *actor)
{
	struct fairwq_batch *batch = tt_get_batch(actor);

	if (!batch)
		return;
	fairwq_batch_pause(batch);
	fairwq_batch_put(batch);
}

static void tt_op_resume(struct tt_actor *actor)
{
	struct fairwq_batch *batch = tt_get_batch(actor);

	if (!batch)
		return;
	fairwq_batch_resume(batch);
	fairwq_batch_put(batch);
}

static void tt_op_weight(struct tt_actor *actor)
{
	struct fairwq_batch *batch = tt_get_batch(actor);

	if (!batch)
		return;
	fairwq_batch_set_weight(batch, 1 + tt_random(actor, FAIRWQ_MAX_WEIGHT));
	fairwq_batch_put(batch);
}

static void tt_op_limit(struct tt_actor *actor)
{
	fairwq_pool_set_max_active(tt_any_pool(actor), 1 + tt_random(actor, 6));
}

/* Use the batch of a key by a handle, in any context. It must stay until the put. */
static void tt_op_handle(struct tt_actor *actor)
{
	struct fairwq_batch *batch = fairwq_flows_get(tt_flows, tt_random(actor, 64));

	if (IS_ERR(batch))
		return;
	fairwq_batch_set_weight(batch, 1 + tt_random(actor, 200));
	tt_item_queue(tt_any_item(actor), NULL, batch, tt_any_delay(actor));
	fairwq_batch_put(batch);
}

static void tt_op_flows_idle(struct tt_actor *actor)
{
	fairwq_flows_set_idle_ms(tt_flows, 1 + tt_random(actor, 100));
}

/* Create flows and shut them down with a backlog, while other actors queue to them. */
static void tt_op_flows_beside(struct tt_actor *actor)
{
	struct fairwq_batch_attrs attrs = {
		.weight = tt_random(actor, 200),
		.prio = tt_random(actor, 3),
		.max_active = tt_random(actor, 3),
		.max_queued = tt_random(actor, 2) ? 0 : 1 + tt_random(actor, 10),
	};
	static DEFINE_MUTEX(mutex);
	bool open = mutex_trylock(&mutex);
	struct fairwq_flows *flows;
	unsigned int n, how;

	tt_fail_begin(actor);
	flows = fairwq_flows_create(tt_any_pool(actor), &attrs);
	tt_fail_end(flows == ERR_PTR(-ENOMEM));
	if (IS_ERR(flows))
		goto out;
	fairwq_flows_set_max(flows, tt_random(actor, 9));	/* of 8 keys */
	if (open)
		rcu_assign_pointer(tt_beside, flows);
	for (n = tt_random(actor, 100); n; n--) {
		struct tt_item *item = tt_any_item(actor);

		if (item->kind != TT_PLAIN)
			continue;
		tt_fail_begin(actor);
		tt_item_queued(item, fairwq_flows_queue(flows, n % 8, &item->work));
		tt_fail_end(false);	/* a flow without memory uses a shared batch */
	}
	/* An actor that uses @flows holds rcu_read_lock(). The shutdown waits for it. */
	if (open)
		RCU_INIT_POINTER(tt_beside, NULL);
	how = tt_how_begin(actor);
	fairwq_flows_shutdown(flows, how, tt_dropped);
	tt_how_end(how);
out:
	if (open)
		mutex_unlock(&mutex);
}

/* Check whether @batch accepts an item. */
static bool tt_takes_item(struct fairwq_batch *batch)
{
	if (tt_bug == TT_BUG_REFUSED)
		batch = fairwq_pool_default_batch(tt_pools[0], 0);
	return fairwq_queue(batch, &tt_items[0].work) == 1;
}

/* Create a pool, queue items to it that outlive it, and destroy it with a backlog. */
static void tt_op_pool(struct tt_actor *actor)
{
	struct fairwq_pool_attrs attrs = {
		.flags = tt_random(actor, 64) &
			 (FAIRWQ_MEM_RECLAIM | FAIRWQ_HIGHPRI | FAIRWQ_FREEZABLE),
		.max_active = tt_random(actor, 4),
		.policy = tt_random(actor, 2),
		.slice_us = tt_random(actor, 500),
		.failed = tt_told,
	};
	struct fairwq_batch *batch;
	struct tt_nature nature;
	struct fairwq_pool *pool;
	unsigned int n;

	if (tt_random(actor, 2))
		attrs.flags |= FAIRWQ_STRICT_PRIO;
	if (tt_random(actor, 2)) {
		attrs.flags |= FAIRWQ_NEAR;
		attrs.cpu = tt_random(actor, nr_cpu_ids);
	}
	tt_fail_begin(actor);
	pool = fairwq_pool_create(&attrs, "beside");
	tt_fail_end(pool == ERR_PTR(-ENOMEM));
	if (IS_ERR(pool))
		return;
	nature.pool = pool;
	tt_count(TT_POOLS, 1);
	fairwq_pool_set_max_active(pool, 1 + tt_random(actor, 8));
	batch = tt_new_batch(actor, &nature);
	for (n = tt_random(actor, 200); n && batch; n--) {
		tt_oneshot(batch, NULL, GFP_KERNEL);
		tt_item_queue(tt_any_item(actor), tt_shared_any(actor), batch,
			      tt_any_delay(actor));
	}
	if (!tt_random(actor, 4))
		fairwq_pool_flush(pool);
	if (!tt_random(actor, 2)) {
		fairwq_batch_dispose(batch);
		batch = NULL;
	}
	fairwq_pool_destroy(pool);
	if (batch && tt_takes_item(batch))
		tt_problem("a batch of a pool that is gone took an item\n");
	fairwq_batch_put(batch);
}

/* ---- other contexts ---------------------------------------------------- */

/* Do a few operations that any context may do, with interrupts off. */
static void tt_op_irqs_off(struct tt_actor *actor)
{
	unsigned int n = 1 + tt_random(actor, 8);
	unsigned long flags;

	local_irq_save(flags);
	while (n--)
		tt_act(actor, true);
	local_irq_restore(flags);
}

/* The next three raise an interrupt, which acts in its own context; see main.c. */
static void tt_op_timer(struct tt_actor *actor)
{
	mod_timer(&tt_threads[actor->nr].timer, jiffies + tt_random(actor, 3));
}

static void tt_op_hrtimer(struct tt_actor *actor)
{
	hrtimer_start(&tt_threads[actor->nr].hrtimer,
		      ns_to_ktime(1000 + tt_random(actor, 500000)), HRTIMER_MODE_REL_HARD);
}

static void tt_op_irq_work(struct tt_actor *actor)
{
	irq_work_queue(&tt_threads[actor->nr].irq_work);
}

static void tt_op_sleep(struct tt_actor *actor)
{
	schedule_timeout_uninterruptible(tt_random(actor, 3));
}

/* ---- the table --------------------------------------------------------- */

struct tt_op tt_ops[] = {
	{ "fill",	  3000, false, tt_stream_fill },
	{ "stream",	  1000, true,  tt_stream_burst },
	{ "stream_cancel",  50, true,  tt_stream_cancel },
	{ "shared",	   200, true,  tt_shared_burst },
	{ "queue",	  1000, true,  tt_op_queue },
	{ "oneshots",	   300, true,  tt_op_oneshots },
	{ "object",	   300, false, tt_object },
	{ "flows",	   100, true,  tt_op_flows },
	{ "default",	   100, true,  tt_op_default },
	{ "mod",	   100, true,  tt_op_mod },
	{ "cancel",	   200, true,  tt_op_cancel },
	{ "disable",	    50, true,  tt_op_disable },
	{ "duel",	    50, false, tt_op_duel },
	{ "batch_cancel",   10, true,  tt_op_batch_cancel },
	{ "empty",	    20, false, tt_op_empty },
	{ "dispose",	    20, true,  tt_op_dispose },
	{ "shutdown",	    10, false, tt_op_shutdown },
	{ "pause",	    10, true,  tt_op_pause },
	{ "resume",	    50, true,  tt_op_resume },
	{ "weight",	    50, true,  tt_op_weight },
	{ "stream_meddle",  30, false, tt_stream_meddle },
	{ "stream_renew",   20, false, tt_stream_renew },
	{ "cancel_sync",    30, false, tt_op_cancel_sync },
	{ "disable_sync",  100, false, tt_op_disable_sync },
	{ "onstack",	    20, false, tt_op_onstack },
	{ "stamp",	   100, false, tt_op_stamp },
	{ "flush",	    20, false, tt_op_flush },
	{ "batch_flush",    20, false, tt_op_batch_flush },
	{ "pool_flush",	     2, false, tt_op_pool_flush },
	{ "drain",	     1, false, tt_op_drain },
	{ "renew",	    40, false, tt_op_renew },
	{ "limit",	    10, false, tt_op_limit },
	{ "handle",	    20, true,  tt_op_handle },
	{ "flows_idle",	     5, false, tt_op_flows_idle },
	{ "flows_beside",    2, false, tt_op_flows_beside },
	{ "pool",	     2, false, tt_op_pool },
	{ "irqs_off",	   200, false, tt_op_irqs_off },
	{ "timer",	    50, false, tt_op_timer },
	{ "hrtimer",	   100, false, tt_op_hrtimer },
	{ "irq_work",	   100, false, tt_op_irq_work },
	{ "errand",	    50, false, tt_op_errand },
	{ "sequence",	    50, false, tt_op_sequence },
	{ "sleep",	     5, false, tt_op_sleep },
};

const unsigned int tt_nr_ops = ARRAY_SIZE(tt_ops);

/* Choose an operation by weight and do it. @anywhere: one that any context may do. */
void tt_act(struct tt_actor *actor, bool anywhere)
{
	unsigned int total = 0, i, at;

	for (i = 0; i < tt_nr_ops; i++)
		total += !anywhere || tt_ops[i].anywhere ? tt_ops[i].weight : 0;
	at = tt_random(actor, total);
	for (i = 0; i < tt_nr_ops; i++) {
		if (anywhere && !tt_ops[i].anywhere)
			continue;
		if (at < tt_ops[i].weight)
			break;
		at -= tt_ops[i].weight;
	}
	atomic_long_inc(&tt_ops[i].done);
	tt_ops[i].act(actor);
}
