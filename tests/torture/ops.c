// SPDX-License-Identifier: GPL-2.0
/*
 * What can be done to fairwq, each a small function in the table at the end.
 * To torture something new, write one more and give it a weight.
 */
#define pr_fmt(fmt) "fairwq-torture: " fmt

#include <linux/delay.h>
#include <linux/mutex.h>
#include <linux/sched.h>

#include "torture.h"

static struct tt_slot tt_slots[TT_NR_SLOTS];

/* Cancels of batches, which may take out any item. */
static atomic_t tt_cancels_begun, tt_cancels_ended;

/* ---- batches that all can reach ---------------------------------------- */

void tt_batch_released(struct fairwq_batch *batch, void *priv)
{
	tt_count(TT_RELEASED, 1);
}

static struct fairwq_batch *tt_slot_get(struct tt_slot *slot)
{
	struct fairwq_batch *batch;
	unsigned long flags;

	raw_spin_lock_irqsave(&slot->lock, flags);
	batch = slot->batch ? fairwq_batch_get(slot->batch) : NULL;
	raw_spin_unlock_irqrestore(&slot->lock, flags);
	return batch;
}

/* Whoever takes a batch out of its slot has its reference. */
static struct fairwq_batch *tt_slot_swap(struct tt_slot *slot, struct fairwq_batch *batch)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&slot->lock, flags);
	swap(slot->batch, batch);
	raw_spin_unlock_irqrestore(&slot->lock, flags);
	return batch;
}

static struct tt_slot *tt_any_slot(struct tt_actor *actor)
{
	return &tt_slots[tt_random(actor, TT_NR_SLOTS)];
}

/* With a reference; NULL if there is none. */
struct fairwq_batch *tt_get_batch(struct tt_actor *actor)
{
	return tt_slot_get(tt_any_slot(actor));
}

/* So that nothing waits for ever. */
void tt_resume_all(void)
{
	struct fairwq_batch *batch;
	unsigned int i;

	for (i = 0; i < TT_NR_SLOTS; i++) {
		batch = tt_slot_get(&tt_slots[i]);
		if (!batch)
			continue;
		fairwq_batch_resume(batch);
		fairwq_batch_put(batch);
	}
}

static struct fairwq_batch *tt_new_batch(struct tt_actor *actor, struct fairwq_pool *pool)
{
	struct fairwq_batch_attrs attrs = {
		.prio = tt_random(actor, 3),
		.weight = tt_random(actor, 2) ? 0 : 1 + tt_random(actor, FAIRWQ_MAX_WEIGHT),
		.max_active = tt_random(actor, 3),
		.max_queued = tt_random(actor, 4) ? 0 : 1 + tt_random(actor, 100),
		.released = tt_batch_released,
	};
	struct fairwq_batch *batch = fairwq_batch_create(pool, &attrs, "b%u",
							 tt_random(actor, 1000));

	if (IS_ERR(batch))
		return NULL;
	tt_count(TT_BATCHES, 1);
	return batch;
}

static struct fairwq_pool *tt_any_pool(struct tt_actor *actor)
{
	return tt_pools[tt_random(actor, TT_NR_POOLS)];
}

static struct tt_item *tt_any_item(struct tt_actor *actor)
{
	return &tt_items[tt_random(actor, TT_NR_ITEMS)];
}

static unsigned long tt_any_delay(struct tt_actor *actor)
{
	return tt_random(actor, 2) ? 0 : 1 + tt_random(actor, HZ / 50 + 1);
}

int tt_slots_init(void)
{
	struct tt_actor actor = { .nr = -1 };
	unsigned int i;

	prandom_seed_state(&actor.rnd, 1);
	for (i = 0; i < TT_NR_SLOTS; i++) {
		raw_spin_lock_init(&tt_slots[i].lock);
		tt_slots[i].batch = tt_new_batch(&actor, tt_pools[i % TT_NR_POOLS]);
	}
	return 0;
}

void tt_slots_end(void)
{
	unsigned int i;

	for (i = 0; i < TT_NR_SLOTS; i++)
		fairwq_batch_dispose(tt_slot_swap(&tt_slots[i], NULL));
}

/* ---- queueing ---------------------------------------------------------- */

static void tt_op_queue(struct tt_actor *actor)
{
	struct fairwq_batch *batch = tt_get_batch(actor);
	struct tt_item *item = tt_any_item(actor);

	if (!batch)
		return;
	tt_item_queue(item, batch, tt_any_delay(actor));
	fairwq_batch_put(batch);
}

static void tt_op_shots(struct tt_actor *actor)
{
	struct fairwq_batch *batch = tt_get_batch(actor);
	unsigned int n = 1 + tt_random(actor, 32);

	if (!batch)
		return;
	while (n-- && tt_shot(batch, NULL, GFP_ATOMIC))
		;
	fairwq_batch_put(batch);
}

static void tt_op_flows(struct tt_actor *actor)
{
	unsigned int n = 1 + tt_random(actor, 16);

	while (n-- && tt_shot(NULL, NULL, GFP_ATOMIC))
		;
}

static void tt_op_default(struct tt_actor *actor)
{
	struct fairwq_pool *pool = tt_any_pool(actor);
	struct tt_item *item = tt_any_item(actor);

	tt_item_queue(item, fairwq_pool_default_batch(pool, tt_random(actor, 3)), 0);
}

static void tt_op_mod(struct tt_actor *actor)
{
	struct fairwq_batch *batch = tt_get_batch(actor);

	if (!batch)
		return;
	tt_item_mod(tt_any_item(actor), batch, tt_any_delay(actor));
	fairwq_batch_put(batch);
}

static void tt_op_lane(struct tt_actor *actor)
{
	tt_lane_burst(actor);
}

static void tt_op_lane_meddle(struct tt_actor *actor)
{
	tt_lane_meddle(actor);
}

static void tt_op_lane_renew(struct tt_actor *actor)
{
	tt_lane_renew(actor);
}

/* ---- reaching into the queue ------------------------------------------- */

static void tt_op_cancel(struct tt_actor *actor)
{
	tt_item_cancel(tt_any_item(actor), fairwq_work_cancel);
}

static void tt_op_cancel_sync(struct tt_actor *actor)
{
	tt_item_cancel(tt_any_item(actor), fairwq_work_cancel_sync);
}

static void tt_op_disable(struct tt_actor *actor)
{
	struct tt_item *item = tt_any_item(actor);

	tt_item_cancel(item, fairwq_work_disable);
	fairwq_work_enable(&item->work);
}

static void tt_op_disable_sync(struct tt_actor *actor)
{
	struct tt_item *item = tt_any_item(actor);

	if (item->kind == TT_RCU)	/* not while it waits for its grace period */
		return;
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

/* No cancel of a batch is under way. */
bool tt_cancels_quiet(void)
{
	int ended = atomic_read(&tt_cancels_ended);

	smp_rmb();	/* load ended, then begun; pairs with tt_cancel_batch() */
	return ended == atomic_read(&tt_cancels_begun);
}

void tt_cancel_batch(struct fairwq_batch *batch)
{
	atomic_inc(&tt_cancels_begun);
	smp_mb__after_atomic();		/* pairs with tt_cancels_quiet() */
	fairwq_batch_cancel(batch, tt_dropped);
	smp_mb__before_atomic();	/* and this, too */
	atomic_inc(&tt_cancels_ended);
}

static void tt_op_batch_cancel(struct tt_actor *actor)
{
	struct fairwq_batch *batch = tt_get_batch(actor);

	if (!batch)
		return;
	tt_cancel_batch(batch);
	fairwq_batch_put(batch);
}

/* ---- waiting ----------------------------------------------------------- */

/* What may have taken an item out since @then was taken. */
static int tt_disturbances(struct tt_item *item)
{
	int nr = atomic_read(&item->cancels_begun) + atomic_read(&tt_cancels_begun);

	smp_mb();	/* pairs with tt_cancel_begin() and tt_cancel_batch() */
	return nr;
}

static bool tt_undisturbed(struct tt_item *item)
{
	int ended = atomic_read(&item->cancels_ended);

	smp_rmb();	/* load ended, then begun; pairs with tt_cancel_end() */
	return ended == atomic_read(&item->cancels_begun) && tt_cancels_quiet();
}

/*
 * Store, queue, flush: the run has seen what was stored, unless somebody has
 * taken the item out meanwhile. Also if it was pending already, but for those
 * that another call was just about to give a timer: there a flush may miss it.
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
	ret = tt_item_queue(item, batch, tt_any_delay(actor));
	fairwq_batch_put(batch);
	if (ret < 0 || (!ret && item->kind != TT_PLAIN))
		return;
	tt_item_flush(item);
	smp_mb();	/* flush, then look; pairs with tt_cancel_begin() */
	if (!quiet || disturbances != tt_disturbances(item))
		return;
	tt_count(TT_STAMPS, 1);
	if (READ_ONCE(item->seen[actor->nr]) != stamp)
		tt_problem("item %u (kind %d) was told %d and flushed, and saw %u, not %u\n",
			   item->nr, item->kind, ret, item->seen[actor->nr], stamp);
}

static void tt_op_flush(struct tt_actor *actor)
{
	tt_item_flush(tt_any_item(actor));
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

/* One at a time. */
static void tt_op_drain(struct tt_actor *actor)
{
	static DEFINE_MUTEX(mutex);

	if (!mutex_trylock(&mutex))
		return;
	fairwq_pool_drain(tt_any_pool(actor));
	mutex_unlock(&mutex);
}

/* ---- batches and pools ------------------------------------------------- */

static void tt_op_renew(struct tt_actor *actor)
{
	struct fairwq_batch *batch = tt_new_batch(actor, tt_any_pool(actor));

	if (batch)
		fairwq_batch_dispose(tt_slot_swap(tt_any_slot(actor), batch));
}

/* The slot keeps what refuses everything, until it is renewed. */
static void tt_op_dispose(struct tt_actor *actor)
{
	fairwq_batch_dispose(tt_get_batch(actor));
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

/* A pool beside: items that live longer come by, and it goes with a backlog. */
static void tt_op_pool(struct tt_actor *actor)
{
	struct fairwq_pool_attrs attrs = {
		.flags = tt_random(actor, 2) ? 0 : FAIRWQ_STRICT_TURNS,
		.max_active = tt_random(actor, 4),
		.policy = tt_random(actor, 3),
		.slice_us = tt_random(actor, 500),
	};
	struct fairwq_pool *pool = fairwq_pool_create(&attrs, "beside");
	struct fairwq_batch *batch;
	unsigned int n;

	if (IS_ERR(pool))
		return;
	tt_count(TT_POOLS, 1);
	batch = tt_new_batch(actor, pool);
	for (n = tt_random(actor, 200); n && batch; n--) {
		tt_shot(batch, NULL, GFP_KERNEL);
		tt_item_queue(tt_any_item(actor), batch, tt_any_delay(actor));
	}
	if (!tt_random(actor, 4))
		fairwq_pool_flush(pool);
	if (!tt_random(actor, 2)) {
		fairwq_batch_dispose(batch);
		batch = NULL;
	}
	fairwq_pool_destroy(pool);
	if (batch && fairwq_queue(batch, &tt_items[0].work) == 1)
		tt_problem("a batch of a pool that is gone took an item\n");
	fairwq_batch_put(batch);
}

/* ---- other contexts ---------------------------------------------------- */

static void tt_op_irqs_off(struct tt_actor *actor)
{
	unsigned int n = 1 + tt_random(actor, 8);
	unsigned long flags;

	local_irq_save(flags);
	while (n--)
		tt_pick_op(actor, true)->act(actor);
	local_irq_restore(flags);
}

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
	{ "queue",	  4000, true,  tt_op_queue },
	{ "shots",	  2000, true,  tt_op_shots },
	{ "flows",	   500, true,  tt_op_flows },
	{ "default",	   200, true,  tt_op_default },
	{ "mod",	   200, true,  tt_op_mod },
	{ "cancel",	   400, true,  tt_op_cancel },
	{ "disable",	   100, true,  tt_op_disable },
	{ "batch_cancel", 10, true,  tt_op_batch_cancel },
	{ "dispose",	    20, true,  tt_op_dispose },
	{ "pause",	    20, true,  tt_op_pause },
	{ "resume",	   100, true,  tt_op_resume },
	{ "weight",	   100, true,  tt_op_weight },
	{ "lane",	  2000, false, tt_op_lane },
	{ "lane_meddle", 10, false, tt_op_lane_meddle },
	{ "lane_renew", 10, false, tt_op_lane_renew },
	{ "cancel_sync", 20, false, tt_op_cancel_sync },
	{ "disable_sync", 20, false, tt_op_disable_sync },
	{ "stamp",	    40, false, tt_op_stamp },
	{ "flush",	    10, false, tt_op_flush },
	{ "batch_flush", 10, false, tt_op_batch_flush },
	{ "pool_flush",	     5, false, tt_op_pool_flush },
	{ "drain",	     2, false, tt_op_drain },
	{ "renew",	    40, false, tt_op_renew },
	{ "limit",	    10, false, tt_op_limit },
	{ "pool",	     2, false, tt_op_pool },
	{ "irqs_off",	   400, false, tt_op_irqs_off },
	{ "timer",	   100, false, tt_op_timer },
	{ "hrtimer",	   200, false, tt_op_hrtimer },
	{ "irq_work",	   200, false, tt_op_irq_work },
	{ "sleep",	    10, false, tt_op_sleep },
};

const unsigned int tt_nr_ops = ARRAY_SIZE(tt_ops);

/* By weight; @anywhere: one that any context may do. */
const struct tt_op *tt_pick_op(struct tt_actor *actor, bool anywhere)
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
	return &tt_ops[i];
}
