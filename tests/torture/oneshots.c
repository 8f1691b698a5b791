// SPDX-License-Identifier: GPL-2.0
/*
 * Items that are queued once and free themselves, on their own, in a stream, or
 * with the object that they are part of; and probes, which show that a flush
 * has waited.
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

enum tt_once_type { TT_ONESHOT, TT_PROBE, TT_OBJECT_ITEM };

/* The head of each kind of item of this file. Its type tells the kind. */
struct tt_once {
	struct fairwq_work work;
	enum tt_once_type type;
};

/* An item that is queued once and frees itself. */
struct tt_oneshot {
	struct tt_once once;
	unsigned long check;
	struct tt_stream *stream;	/* or NULL */
	u64 seq;			/* in the stream */
	struct llist_node grave;
};

/* An item that shows whether it has ended; its actor frees it. */
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
	unsigned int last;		/* the @nr that ran last; one item at a time */
	atomic_t left;			/* items that have not ended */
	struct llist_node grave;
};

/* Return the value that @check of @oneshot must have. */
static unsigned long tt_oneshot_check(const struct tt_oneshot *oneshot)
{
	return ~(unsigned long)oneshot ^ (unsigned long)oneshot->seq;
}

/*
 * Return true for one item in many, if @bug is planted. It counts, because few
 * addresses are in use, and a choice by address might never be true.
 */
static bool tt_oneshot_is_planted(enum tt_bug bug)
{
	static atomic_t nr;

	return unlikely(tt_bug == bug) && !(atomic_inc_return(&nr) % 64);
}

/* Check whether this context may allocate and free. On PREEMPT_RT both may sleep. */
static bool tt_may_allocate(void)
{
	return !IS_ENABLED(CONFIG_PREEMPT_RT) || preemptible();
}

/* Check @oneshot, spoil its check value so that a later look at it fails, and free it. */
static void tt_oneshot_free(struct tt_oneshot *oneshot)
{
	if (READ_ONCE(oneshot->check) != tt_oneshot_check(oneshot))
		tt_problem("an item that frees itself sees %lx, not %lx\n",
			   oneshot->check, tt_oneshot_check(oneshot));
	WRITE_ONCE(oneshot->check, 0);
	if (tt_may_allocate())
		kfree(oneshot);
	else
		llist_add(&oneshot->grave, &tt_graves);
	atomic_long_dec(&tt_live);
}

/* Destroy and free @object. It waits, unless the object's own last item calls it. */
static void tt_object_free(struct tt_object *object)
{
	fairwq_serializer_destroy(&object->serializer);
	kfree(object);
	tt_count(TT_OBJECTS_FREED, 1);
	atomic_long_dec(&tt_live);
}

/* Free the items and objects that could not be freed where they ended. */
void tt_oneshots_bury(void)
{
	struct tt_object *object, *next_object;
	struct tt_oneshot *oneshot, *next;

	llist_for_each_entry_safe(oneshot, next, llist_del_all(&tt_graves), grave)
		kfree(oneshot);
	llist_for_each_entry_safe(object, next_object, llist_del_all(&tt_object_graves), grave)
		tt_object_free(object);
}

/* Free a oneshot that has run or was cancelled, and count it for its stream. */
static void tt_oneshot_end(struct tt_oneshot *oneshot)
{
	struct tt_stream *stream = oneshot->stream;

	tt_oneshot_free(oneshot);
	if (stream)
		tt_stream_ended(stream);
}

static void tt_oneshot_fn(struct fairwq_work *work)
{
	struct tt_oneshot *oneshot = container_of(work, struct tt_oneshot, once.work);
	u32 dice = hash_64((unsigned long)oneshot ^ oneshot->seq, 32);
	struct tt_stream *stream = oneshot->stream;

	if (stream) {
		tt_stream_enter(stream, oneshot->seq);
		tt_behave_seldom(dice);
		tt_stream_leave(stream);
		tt_oneshot_end(oneshot);
		return;
	}
	tt_count(TT_RAN, 1);
	/* The function goes on after it has freed the item: fairwq must not touch it. */
	tt_oneshot_end(oneshot);
	tt_behave_seldom(dice);
}

/* Count an item of @object that a cancel took out. The last one buries the object. */
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
		tt_oneshot_end(container_of(once, struct tt_oneshot, once));
	}
}

/* Count an item of this file that a cancel of its batch has taken out, and end it. */
void tt_oneshot_dropped(struct fairwq_work *work)
{
	struct tt_once *once = container_of(work, struct tt_once, work);

	tt_count(TT_DROPPED, 1);
	if (once->type == TT_ONESHOT && container_of(once, struct tt_oneshot, once)->stream)
		tt_count(TT_RAN, -1);	/* what the stream counts as run */
	tt_once_dropped(once);
}

/*
 * Queue @oneshot to its stream. If it has none, queue it to @batch, or to one
 * of many flows if that is NULL. Return: the result of the queue call.
 */
static int tt_oneshot_send(struct tt_oneshot *oneshot, struct fairwq_batch *batch)
{
	struct fairwq_work *work = &oneshot->once.work;

	if (tt_oneshot_is_planted(TT_BUG_LOST))
		return 1;
	if (oneshot->stream)
		return tt_stream_queue(oneshot->stream, batch, work);
	if (!batch)
		return fairwq_flows_queue(tt_flows, hash_ptr(oneshot, 6), work);
	return fairwq_queue(batch, work);
}

/* Make a oneshot. Return: NULL without memory, or if too many items are queued. */
static struct tt_oneshot *tt_oneshot_new(struct tt_stream *stream, gfp_t gfp)
{
	struct tt_oneshot *oneshot;

	if (!tt_may_allocate() || atomic_long_read(&tt_live) > tt_backlog)
		return NULL;
	oneshot = kmalloc(sizeof(*oneshot), gfp | __GFP_NOWARN);
	if (!oneshot)
		return NULL;
	fairwq_work_init(&oneshot->once.work, tt_oneshot_fn);
	oneshot->once.type = TT_ONESHOT;
	oneshot->stream = stream;
	oneshot->seq = stream ? tt_stream_next(stream) : 0;
	oneshot->check = tt_oneshot_is_planted(TT_BUG_STALE) ? 0 : tt_oneshot_check(oneshot);
	atomic_long_inc(&tt_live);
	return oneshot;
}

/* Make a oneshot and queue it; see tt_oneshot_send(). Return: true if it was queued. */
bool tt_oneshot(struct fairwq_batch *batch, struct tt_stream *stream, gfp_t gfp)
{
	struct tt_oneshot *oneshot = tt_oneshot_new(stream, gfp);

	if (!oneshot)
		return false;
	if (stream)
		tt_stream_accept(stream, 1);
	if (tt_queued(tt_oneshot_send(oneshot, batch)) == 1)
		return true;
	if (stream)
		tt_stream_accept(stream, -1);
	tt_oneshot_free(oneshot);
	return false;
}

/* ---- objects that their last item frees -------------------------------- */

/* Return the value that @check of @item must have. */
static unsigned long tt_object_check(const struct tt_object_item *item)
{
	return ~(unsigned long)item ^ item->nr;
}

/* Check that items run one at a time, in order, and see the stores before their call. */
static void tt_object_judge(struct tt_object *object, struct tt_object_item *item)
{
	if (tt_oneshot_is_planted(TT_BUG_REENTRANT))
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

/* Run an item of an object. The last one frees the object: none waits behind it. */
static void tt_object_fn(struct fairwq_work *work)
{
	struct tt_object_item *item = container_of(work, struct tt_object_item, once.work);
	struct tt_object *object = item->object;

	tt_count(TT_RAN, 1);
	tt_object_judge(object, item);
	if (atomic_dec_and_test(&object->left) && tt_bug != TT_BUG_OBJECT)
		tt_object_free(object);
	/* The function goes on without both: fairwq must not touch them. */
	tt_behave_seldom(hash_ptr(item, 32));
}

static void tt_object_item_init(struct tt_object *object, unsigned int i)
{
	struct tt_object_item *item = &object->item[i];

	fairwq_work_init(&item->once.work, tt_object_fn);
	item->once.type = TT_OBJECT_ITEM;
	item->object = object;
	item->nr = tt_oneshot_is_planted(TT_BUG_ORDER) ? i : i + 1;
	item->check = tt_oneshot_is_planted(TT_BUG_STALE) ? 0 : tt_object_check(item);
}

/* Make an object of @n items. Return: NULL without memory, or if too many live. */
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

/* Queue item @i to any batch. @object may be gone as soon as its last item is queued. */
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

/* Make an object, and queue all of its items. */
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

/* Check that an item has ended after a flush of its batch, or of @pool unless NULL. */
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
	/* If a cancel of the batch runs, it may have dropped it and not yet said so. */
	if (tt_cancels_quiet() && !READ_ONCE(probe.ended))
		tt_problem_of(!!pool, "a flush of a %s did not wait\n", pool ? "pool" : "batch");
	tt_count(TT_PROBES, 1);
	if (fairwq_work_cancel_sync(&probe.once.work)) {
		tt_count(TT_CANCELED, 1);
		return;
	}
	while (!READ_ONCE(probe.ended))	/* no flush or cancel waits for tt_dropped() */
		schedule_timeout_uninterruptible(1);
}

/* ---- a batch that is cancelled ----------------------------------------- */

#define TT_EMPTY_ITEMS	16U

/*
 * Queue items to @batch and cancel the batch. Each item must have run, or been
 * counted by a cancel, which does not report the items that it took out. Then
 * all are freed: fairwq must not touch them any more.
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
	if (tt_oneshot_is_planted(TT_BUG_LOST))
		queued++;
	if (queued != ended + dropped)
		tt_problem("a batch took %lu items: %lu ran, %lu were dropped\n", queued,
			   ended, dropped);
	tt_count(TT_DROPPED, dropped);
	kfree(probe);
}
