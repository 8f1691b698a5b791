// SPDX-License-Identifier: GPL-2.0
/*
 * Items that are queued once and free themselves, and what is made of them: a
 * lane, a batch with one producer that serves one item at a time, so that its
 * order can be checked, or a serializer, whose items go to any batch; and a
 * probe, which shows that a flush has waited.
 */
#define pr_fmt(fmt) "fairwq-torture: " fmt

#include <linux/hash.h>
#include <linux/irqflags.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "torture.h"

/* How many are queued, or about to be. */
atomic_long_t tt_live;

struct tt_lane {
	struct fairwq_batch *batch;	/* NULL: it is a serializer */
	struct fairwq_serializer serializer;
	u64 sent;			/* its producer's */
	u64 last;			/* the item's that ran last; one at a time */
	atomic_t inside;
	atomic_long_t live;
};

enum tt_once_type { TT_SHOT, TT_PROBE };

/* What a shot and a probe begin with. */
struct tt_once {
	struct fairwq_work work;
	enum tt_once_type type;
};

struct tt_shot {
	struct tt_once once;
	unsigned long check;
	struct tt_lane *lane;
	u64 seq;
};

struct tt_probe {
	struct tt_once once;
	bool ended;
};

static unsigned long tt_shot_check(const struct tt_shot *shot)
{
	return ~(unsigned long)shot ^ (unsigned long)shot->seq;
}

/* It was seen once: whoever sees it again sees that. */
static void tt_shot_free(struct tt_shot *shot)
{
	if (READ_ONCE(shot->check) != tt_shot_check(shot))
		tt_problem("an item that frees itself sees %lx, not %lx\n",
			   shot->check, tt_shot_check(shot));
	WRITE_ONCE(shot->check, 0);
	if (shot->lane)
		atomic_long_dec_return_release(&shot->lane->live);
	kfree(shot);
	atomic_long_dec(&tt_live);
}

static void tt_lane_enter(struct tt_lane *lane, u64 seq)
{
	if (atomic_xchg(&lane->inside, 1))
		tt_problem("two items of a batch with max_active 1 run at once\n");
	if (seq <= lane->last)
		tt_problem("item %llu of a batch runs after %llu\n", seq, lane->last);
	lane->last = seq;
}

static void tt_shot_fn(struct fairwq_work *work)
{
	struct tt_shot *shot = container_of(work, struct tt_shot, once.work);
	u32 dice = hash_64((unsigned long)shot ^ shot->seq, 32);
	struct tt_lane *lane = shot->lane;

	tt_count(TT_RAN, 1);
	if (lane) {
		tt_lane_enter(lane, shot->seq);
		tt_behave(dice);
		atomic_set_release(&lane->inside, 0);
		tt_shot_free(shot);
		return;
	}
	/* Fairwq does not touch it any more, whatever it does from here on. */
	tt_shot_free(shot);
	tt_behave(dice);
}

static void tt_once_dropped(struct tt_once *once)
{
	if (once->type == TT_PROBE)
		WRITE_ONCE(container_of(once, struct tt_probe, once)->ended, true);
	else
		tt_shot_free(container_of(once, struct tt_shot, once));
}

void tt_shot_dropped(struct fairwq_work *work)
{
	tt_count(TT_DROPPED, 1);
	tt_once_dropped(container_of(work, struct tt_once, work));
}

/* To the lane, if there is one; without a batch, to one of many flows. */
static int tt_shot_send(struct tt_shot *shot, struct fairwq_batch *batch)
{
	struct fairwq_work *work = &shot->once.work;

	if (!batch)
		return fairwq_flows_queue(tt_flows, hash_ptr(shot, 6), work);
	if (shot->lane && !shot->lane->batch)
		return fairwq_serializer_queue(&shot->lane->serializer, batch, work);
	return fairwq_queue(batch, work);
}

/* Returns whether it was queued. */
bool tt_shot(struct fairwq_batch *batch, struct tt_lane *lane, gfp_t gfp)
{
	struct tt_shot *shot;

	if (atomic_long_read(&tt_live) > tt_backlog)
		return false;
	shot = kmalloc(sizeof(*shot), gfp | __GFP_NOWARN);
	if (!shot)
		return false;
	fairwq_work_init(&shot->once.work, tt_shot_fn);
	shot->once.type = TT_SHOT;
	shot->lane = lane;
	shot->seq = lane ? ++lane->sent : 0;
	if (lane && tt_bug == TT_BUG_ORDER && !(lane->sent % 256))
		shot->seq--;
	shot->check = tt_shot_check(shot);
	atomic_long_inc(&tt_live);
	if (lane)
		atomic_long_inc(&lane->live);
	if (tt_queued(tt_shot_send(shot, batch)) == 1)
		return true;
	tt_shot_free(shot);
	return false;
}

/* ---- probes ------------------------------------------------------------ */

static void tt_probe_fn(struct fairwq_work *work)
{
	struct tt_probe *probe = container_of(work, struct tt_probe, once.work);

	tt_count(TT_RAN, 1);
	WRITE_ONCE(probe->ended, true);
}

/* What was queued before a flush of its batch, or its pool, has ended after. */
void tt_probe(struct fairwq_batch *batch, struct fairwq_pool *pool)
{
	struct tt_probe probe = { .once.type = TT_PROBE };

	fairwq_work_init_onstack(&probe.once.work, tt_probe_fn);
	if (tt_queued(fairwq_queue(batch, &probe.once.work)) != 1)
		return;
	if (tt_bug == TT_BUG_FLUSH)
		;
	else if (pool)
		fairwq_pool_flush(pool);
	else
		fairwq_batch_flush(batch);
	/* Or it was dropped: that may still be on its way. */
	if (tt_cancels_quiet() && !READ_ONCE(probe.ended))
		tt_problem("a flush of a %s did not wait\n", pool ? "pool" : "batch");
	tt_count(TT_PROBES, 1);
	if (fairwq_work_cancel_sync(&probe.once.work)) {
		tt_count(TT_CANCELED, 1);
		return;
	}
	while (!READ_ONCE(probe.ended))	/* neither waits for the last word of a drop */
		schedule_timeout_uninterruptible(1);
}

/* ---- lanes ------------------------------------------------------------- */

static void tt_lane_released(struct fairwq_batch *batch, void *priv)
{
	struct tt_lane *lane = priv;
	long live = atomic_long_read(&lane->live);

	tt_count(TT_RELEASED, 1);
	if (live)
		tt_problem("a batch was released before %ld of its items\n", live);
	kfree(lane);
}

static void tt_lane_dispose(struct tt_lane *lane)
{
	if (lane->batch) {
		if (tt_bug == TT_BUG_RELEASED)
			atomic_long_inc(&lane->live);
		fairwq_batch_dispose(lane->batch);
		return;
	}
	fairwq_serializer_destroy(&lane->serializer);
	/* The last word of a drop may be on its way. */
	while (atomic_long_read_acquire(&lane->live))
		schedule_timeout_uninterruptible(1);
	kfree(lane);
}

static struct tt_lane *tt_lane_new(struct tt_actor *actor)
{
	struct fairwq_batch_attrs attrs = {
		.max_active = 1,
		.prio = tt_random(actor, 3),
		.weight = tt_random(actor, 200),
		.released = tt_lane_released,
	};
	struct tt_lane *lane = kzalloc(sizeof(*lane), GFP_KERNEL);

	if (!lane)
		return NULL;
	if (tt_random(actor, 2)) {
		fairwq_serializer_init(&lane->serializer);
		return lane;
	}
	attrs.priv = lane;
	lane->batch = fairwq_batch_create(tt_pools[tt_random(actor, TT_NR_POOLS)], &attrs,
					  "lane-%d", actor->nr);
	if (IS_ERR(lane->batch)) {
		kfree(lane);
		return NULL;
	}
	tt_count(TT_BATCHES, 1);
	return lane;
}

/* The thread's lane is a new one, the old one runs dry. */
void tt_lane_renew(struct tt_actor *actor)
{
	if (actor->lane)
		tt_lane_dispose(actor->lane);
	actor->lane = READ_ONCE(tt_stopping) ? NULL : tt_lane_new(actor);
}

static void tt_lane_queue(struct tt_actor *actor)
{
	struct tt_lane *lane = actor->lane;
	struct fairwq_batch *batch = lane->batch ? fairwq_batch_get(lane->batch) :
						   tt_get_batch(actor);
	bool irqs_off = !tt_random(actor, 4);
	unsigned long flags;

	if (!batch)
		return;
	if (irqs_off)
		local_irq_save(flags);
	tt_shot(batch, lane, GFP_ATOMIC);
	if (irqs_off)
		local_irq_restore(flags);
	fairwq_batch_put(batch);
}

void tt_lane_burst(struct tt_actor *actor)
{
	unsigned int n = 1 + tt_random(actor, 128);

	if (!actor->lane)
		tt_lane_renew(actor);
	while (actor->lane && n--)
		tt_lane_queue(actor);
}

/* Its order is to hold whatever happens to it. */
void tt_lane_meddle(struct tt_actor *actor)
{
	struct fairwq_batch *batch = actor->lane ? actor->lane->batch : NULL;

	if (!batch) {
		if (actor->lane)
			fairwq_serializer_flush(&actor->lane->serializer);
		return;
	}
	switch (tt_random(actor, 4)) {
	case 0:
		fairwq_batch_pause(batch);
		tt_lane_burst(actor);
		fairwq_batch_resume(batch);
		break;
	case 1:
		tt_cancel_batch(batch);
		break;
	case 2:
		fairwq_batch_set_weight(batch, 1 + tt_random(actor, FAIRWQ_MAX_WEIGHT));
		break;
	default:
		tt_probe(batch, NULL);
	}
}
