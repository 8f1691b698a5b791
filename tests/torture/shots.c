// SPDX-License-Identifier: GPL-2.0
/*
 * Items that are queued once and free themselves, on their own, in a lane, or with
 * the object that they are part of; and probes, which show that a flush has waited.
 */
#define pr_fmt(fmt) "fairwq-torture: " fmt

#include <linux/hash.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "torture.h"

/* The number of items and objects that were created and not freed. */
atomic_long_t tt_live;

static LLIST_HEAD(tt_graves);
static LLIST_HEAD(tt_object_graves);

enum tt_once_type { TT_SHOT, TT_PROBE, TT_OBJECT_ITEM };

/* The head of each structure of this file, so that a function can tell which it is. */
struct tt_once {
	struct fairwq_work work;
	enum tt_once_type type;
};

struct tt_shot {
	struct tt_once once;
	unsigned long check;
	struct tt_lane *lane;		/* or NULL */
	u64 seq;			/* in the lane */
	struct llist_node grave;
};

struct tt_probe {
	struct tt_once once;
	bool ended;
};

#define TT_OBJECT_ITEMS	8U

/* An object with a serializer and items. The last item to end frees all of it. */
struct tt_object {
	struct fairwq_serializer serializer;
	struct tt_object_item {
		struct tt_once once;
		struct tt_object *object;
		unsigned int nr;	/* from 1, in the order of the queue calls */
		unsigned long check;
	} item[TT_OBJECT_ITEMS];
	atomic_t inside;
	unsigned int last;		/* that ran; one at a time */
	atomic_t left;			/* items that did not end yet */
	struct llist_node grave;
};

static unsigned long tt_shot_check(const struct tt_shot *shot)
{
	return ~(unsigned long)shot ^ (unsigned long)shot->seq;
}

/* Return true for one item in many. Not by address, because few addresses are in use. */
static bool tt_shot_is_planted(enum tt_bug bug)
{
	static atomic_t nr;

	return unlikely(tt_bug == bug) && !(atomic_inc_return(&nr) % 64);
}

/* PREEMPT_RT allocates and frees where it may sleep. */
static bool tt_may_allocate(void)
{
	return !IS_ENABLED(CONFIG_PREEMPT_RT) || preemptible();
}

/* Check @shot, spoil its check value so that a later look at it fails, and free it. */
static void tt_shot_free(struct tt_shot *shot)
{
	if (READ_ONCE(shot->check) != tt_shot_check(shot))
		tt_problem("an item that frees itself sees %lx, not %lx\n",
			   shot->check, tt_shot_check(shot));
	WRITE_ONCE(shot->check, 0);
	if (tt_may_allocate())
		kfree(shot);
	else
		llist_add(&shot->grave, &tt_graves);
	atomic_long_dec(&tt_live);
}

/* It waits, unless one of its own items calls it; that is the last, then. */
static void tt_object_free(struct tt_object *object)
{
	fairwq_serializer_destroy(&object->serializer);
	kfree(object);
	tt_count(TT_OBJECTS_FREED, 1);
	atomic_long_dec(&tt_live);
}

/* Those that could not be freed where they ended. */
void tt_shots_bury(void)
{
	struct tt_object *object, *next_object;
	struct tt_shot *shot, *next;

	llist_for_each_entry_safe(shot, next, llist_del_all(&tt_graves), grave)
		kfree(shot);
	llist_for_each_entry_safe(object, next_object, llist_del_all(&tt_object_graves), grave)
		tt_object_free(object);
}

/* It has run, or was cancelled. */
static void tt_shot_end(struct tt_shot *shot)
{
	struct tt_lane *lane = shot->lane;

	tt_shot_free(shot);
	if (lane)
		tt_lane_ended(lane);
}

static void tt_shot_fn(struct fairwq_work *work)
{
	struct tt_shot *shot = container_of(work, struct tt_shot, once.work);
	u32 dice = hash_64((unsigned long)shot ^ shot->seq, 32);
	struct tt_lane *lane = shot->lane;

	if (lane) {
		tt_lane_enter(lane, shot->seq);
		tt_behave_seldom(dice);
		tt_lane_leave(lane);
		tt_shot_end(shot);
		return;
	}
	tt_count(TT_RAN, 1);
	/* Fairwq does not touch it any more, whatever it does from here on. */
	tt_shot_end(shot);
	tt_behave_seldom(dice);
}

static void tt_object_dropped(struct tt_object *object)
{
	if (atomic_dec_and_test(&object->left))
		llist_add(&object->grave, &tt_object_graves);
}

static void tt_once_dropped(struct tt_once *once)
{
	switch (once->type) {
	case TT_PROBE:
		WRITE_ONCE(container_of(once, struct tt_probe, once)->ended, true);
		break;
	case TT_OBJECT_ITEM:
		tt_object_dropped(container_of(once, struct tt_object_item, once)->object);
		break;
	default:
		tt_shot_end(container_of(once, struct tt_shot, once));
	}
}

void tt_shot_dropped(struct fairwq_work *work)
{
	struct tt_once *once = container_of(work, struct tt_once, work);

	tt_count(TT_DROPPED, 1);
	if (once->type == TT_SHOT && container_of(once, struct tt_shot, once)->lane)
		tt_count(TT_RAN, -1);	/* what the lane counts as run */
	tt_once_dropped(once);
}

/* To the lane, if there is one; without a batch, to one of many flows. */
static int tt_shot_send(struct tt_shot *shot, struct fairwq_batch *batch)
{
	struct fairwq_work *work = &shot->once.work;

	if (tt_shot_is_planted(TT_BUG_LOST))
		return 1;
	if (shot->lane)
		return tt_lane_queue(shot->lane, batch, work);
	if (!batch)
		return fairwq_flows_queue(tt_flows, hash_ptr(shot, 6), work);
	return fairwq_queue(batch, work);
}

static struct tt_shot *tt_shot_new(struct tt_lane *lane, gfp_t gfp)
{
	struct tt_shot *shot;

	if (!tt_may_allocate() || atomic_long_read(&tt_live) > tt_backlog)
		return NULL;
	shot = kmalloc(sizeof(*shot), gfp | __GFP_NOWARN);
	if (!shot)
		return NULL;
	fairwq_work_init(&shot->once.work, tt_shot_fn);
	shot->once.type = TT_SHOT;
	shot->lane = lane;
	shot->seq = lane ? tt_lane_next(lane) : 0;
	shot->check = tt_shot_is_planted(TT_BUG_STALE) ? 0 : tt_shot_check(shot);
	atomic_long_inc(&tt_live);
	return shot;
}

/* Returns whether it was queued. */
bool tt_shot(struct fairwq_batch *batch, struct tt_lane *lane, gfp_t gfp)
{
	struct tt_shot *shot = tt_shot_new(lane, gfp);

	if (!shot)
		return false;
	if (lane)
		tt_lane_accept(lane, 1);
	if (tt_queued(tt_shot_send(shot, batch)) == 1)
		return true;
	if (lane)
		tt_lane_accept(lane, -1);
	tt_shot_free(shot);
	return false;
}

/* ---- objects that go with their last item ------------------------------ */

static unsigned long tt_object_check(const struct tt_object_item *item)
{
	return ~(unsigned long)item ^ item->nr;
}

/* Check that items run one at a time, in order, and see what was stored before the call. */
static void tt_object_judge(struct tt_object *object, struct tt_object_item *item)
{
	if (tt_shot_is_planted(TT_BUG_REENTRANT))
		atomic_set(&object->inside, 1);	/* as a second runner would */
	if (atomic_xchg(&object->inside, 1))
		tt_problem("two items of an object run at once\n");
	if (READ_ONCE(item->check) != tt_object_check(item))
		tt_problem("an item of an object sees %lx, not %lx\n", item->check,
			   tt_object_check(item));
	if (item->nr <= READ_ONCE(object->last))
		tt_problem("item %u of an object runs after %u\n", item->nr, object->last);
	WRITE_ONCE(object->last, item->nr);
	atomic_set_release(&object->inside, 0);	/* pairs with atomic_xchg() here */
}

/* Where it is the last, the others have ended or were dropped, and none waits behind it. */
static void tt_object_fn(struct fairwq_work *work)
{
	struct tt_object_item *item = container_of(work, struct tt_object_item, once.work);
	struct tt_object *object = item->object;

	tt_count(TT_RAN, 1);
	tt_object_judge(object, item);
	if (atomic_dec_and_test(&object->left) && tt_bug != TT_BUG_OBJECT)
		tt_object_free(object);
	/* Fairwq touches neither any more, whatever it does from here on. */
	tt_behave_seldom(hash_ptr(item, 32));
}

static void tt_object_item_init(struct tt_object *object, unsigned int i)
{
	struct tt_object_item *item = &object->item[i];

	fairwq_work_init(&item->once.work, tt_object_fn);
	item->once.type = TT_OBJECT_ITEM;
	item->object = object;
	item->nr = tt_shot_is_planted(TT_BUG_ORDER) ? i : i + 1;
	item->check = tt_shot_is_planted(TT_BUG_STALE) ? 0 : tt_object_check(item);
}

static struct tt_object *tt_object_new(struct tt_actor *actor, unsigned int n)
{
	struct tt_object *object;
	unsigned int i;

	if (atomic_long_read(&tt_live) > tt_backlog)
		return NULL;
	object = kmalloc(sizeof(*object), GFP_KERNEL | __GFP_NOWARN);
	if (!object)
		return NULL;
	fairwq_serializer_init(&object->serializer);
	if (tt_random(actor, 2))
		fairwq_serializer_set_inline(&object->serializer, tt_any_budget(actor));
	atomic_set(&object->inside, 0);
	object->last = 0;
	atomic_set(&object->left, n);
	for (i = 0; i < n; i++)
		tt_object_item_init(object, i);
	tt_count(TT_OBJECTS, 1);
	atomic_long_inc(&tt_live);
	return object;
}

/* Queue an item to any batch. @object may be gone as soon as its last item is queued. */
static void tt_object_send(struct tt_object *object, struct tt_actor *actor, unsigned int i)
{
	struct fairwq_work *work = &object->item[i].once.work;
	struct fairwq_batch *batch = tt_get_batch(actor);
	int ret = -ESHUTDOWN;

	if (batch)
		ret = tt_queued(fairwq_serializer_queue(&object->serializer, batch, work));
	if (ret != 1 && atomic_dec_and_test(&object->left))
		tt_object_free(object);
	fairwq_batch_put(batch);
}

void tt_object(struct tt_actor *actor)
{
	unsigned int n = 1 + tt_random(actor, TT_OBJECT_ITEMS), i;
	struct tt_object *object = tt_object_new(actor, n);

	for (i = 0; object && i < n; i++)
		tt_object_send(object, actor, i);
}

/* ---- probes ------------------------------------------------------------ */

static void tt_probe_fn(struct fairwq_work *work)
{
	struct tt_probe *probe = container_of(work, struct tt_probe, once.work);

	tt_count(TT_RAN, 1);
	WRITE_ONCE(probe->ended, true);
}

/* Check that what was queued before a flush of its batch, or its pool, has ended after. */
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
		tt_problem_of(!!pool, "a flush of a %s did not wait\n", pool ? "pool" : "batch");
	tt_count(TT_PROBES, 1);
	if (fairwq_work_cancel_sync(&probe.once.work)) {
		tt_count(TT_CANCELED, 1);
		return;
	}
	while (!READ_ONCE(probe.ended))	/* neither waits for the last word of a drop */
		schedule_timeout_uninterruptible(1);
}

/* ---- a batch that is emptied ------------------------------------------- */

#define TT_EMPTY_ITEMS	16U

/*
 * Queue to a batch and cancel all of it. Each item must have run, or been counted
 * by a cancel, which does not say which items it took out. Fairwq must not touch
 * those any more.
 */
void tt_empty(struct fairwq_batch *batch, struct tt_actor *actor)
{
	struct tt_probe *probe = kcalloc(TT_EMPTY_ITEMS, sizeof(*probe), GFP_KERNEL);
	unsigned long dropped = 0, ended = 0, queued = 0;
	unsigned int i, at = tt_random(actor, TT_EMPTY_ITEMS + 1);

	if (!probe)
		return;
	for (i = 0; i < TT_EMPTY_ITEMS; i++) {
		fairwq_work_init(&probe[i].once.work, tt_probe_fn);
		probe[i].once.type = TT_PROBE;
		queued += tt_queued(fairwq_queue(batch, &probe[i].once.work)) == 1;
		if (i == at)
			dropped += fairwq_batch_cancel(batch, NULL);
	}
	dropped += fairwq_batch_cancel(batch, NULL);
	fairwq_batch_flush(batch);
	for (i = 0; i < TT_EMPTY_ITEMS; i++)
		ended += READ_ONCE(probe[i].ended);
	if (tt_shot_is_planted(TT_BUG_LOST))
		queued++;
	if (queued != ended + dropped)
		tt_problem("a batch took %lu items: %lu ran, %lu were dropped\n", queued,
			   ended, dropped);
	tt_count(TT_DROPPED, dropped);
	kfree(probe);
}
