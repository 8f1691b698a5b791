// SPDX-License-Identifier: GPL-2.0
/*
 * Items that are queued once and free themselves, and what is made of them: a
 * lane, a batch with one producer that serves one item at a time, so that its
 * order can be checked; and a probe, which shows that a flush has waited.
 */
#define pr_fmt(fmt) "fairwq-torture: " fmt

#include <linux/hash.h>
#include <linux/irqflags.h>
#include <linux/slab.h>

#include "torture.h"

/* How many are queued, or about to be. */
atomic_long_t tt_live;

struct tt_lane {
	struct fairwq_batch *batch;
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
	if (tt_queued(fairwq_queue(batch, &shot->once.work)) == 1)
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
	if (tt_bug == TT_BUG_RELEASED)
		atomic_long_inc(&lane->live);
	fairwq_batch_dispose(lane->batch);
}

/* The thread's lane is a new one, the old one runs dry. */
void tt_lane_renew(struct tt_actor *actor)
{
	struct fairwq_batch_attrs attrs = {
		.max_active = 1,
		.prio = tt_random(actor, 3),
		.weight = tt_random(actor, 200),
		.released = tt_lane_released,
	};
	struct tt_lane *lane = kzalloc(sizeof(*lane), GFP_KERNEL);

	if (actor->lane)
		tt_lane_dispose(actor->lane);
	actor->lane = NULL;
	if (!lane || READ_ONCE(tt_stopping))
		goto free;
	attrs.priv = lane;
	lane->batch = fairwq_batch_create(tt_pools[tt_random(actor, TT_NR_POOLS)], &attrs,
					  "lane-%d", actor->nr);
	if (IS_ERR(lane->batch))
		goto free;
	tt_count(TT_BATCHES, 1);
	actor->lane = lane;
	return;
free:
	kfree(lane);
}

void tt_lane_burst(struct tt_actor *actor)
{
	unsigned int n = 1 + tt_random(actor, 128);
	bool irqs_off = !tt_random(actor, 4);
	unsigned long flags;

	if (!actor->lane)
		tt_lane_renew(actor);
	if (!actor->lane)
		return;
	while (n--) {
		if (irqs_off)
			local_irq_save(flags);
		tt_shot(actor->lane->batch, actor->lane, GFP_ATOMIC);
		if (irqs_off)
			local_irq_restore(flags);
	}
}

/* Its order is to hold whatever happens to it. */
void tt_lane_meddle(struct tt_actor *actor)
{
	struct fairwq_batch *batch = actor->lane ? actor->lane->batch : NULL;

	if (!batch)
		return;
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
