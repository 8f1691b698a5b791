// SPDX-License-Identifier: GPL-2.0
/*
 * Lanes: most of the items. A lane is a ring of items, its beads. One producer
 * queues them in turn, each as soon as it has ended. The way of a lane decides
 * which order fairwq promises; see enum tt_way.
 *
 * The producer writes a number and a check value into a bead before the queue
 * call. The bead's function checks that
 *
 *	it sees both values,
 *	it is not inside already,
 *	it has not run under this number,
 *	no more items of the lane are inside than its width allows,
 *	with a width of 1, its number is higher than the last one.
 *
 * In the end the lane must have seen as many runs as calls were accepted.
 *
 * Locking: a lane has one producer at a time. A lane that all actors share has
 * a lock, and its holder is the producer.
 */
#define pr_fmt(fmt) "fairwq-torture: " fmt

#include <linux/delay.h>
#include <linux/hash.h>
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "torture.h"

#define NR_BEADS	512U

/* Way of the beads of a lane to a runner. */
enum tt_way {
	TT_WAY_BATCH,		/* a batch of its own with max_active */
	TT_WAY_SERIALIZER,	/* then any batch, as with the next two */
	TT_WAY_LIMITER,
	TT_WAY_OWN,		/* struct tt_own */
	TT_WAY_FLOW,		/* of tt_flows, which have max_active 1 */
	TT_WAY_ANY,		/* any batch */
	TT_NR_WAYS,
};

static const char * const tt_way_name[TT_NR_WAYS] = {
	[TT_WAY_BATCH] = "batch",
	[TT_WAY_SERIALIZER] = "serializer",
	[TT_WAY_LIMITER] = "limiter",
	[TT_WAY_OWN] = "constraint",
	[TT_WAY_FLOW] = "flow",
	[TT_WAY_ANY] = "any batch",
};

/* A constraint as a driver may write one: works are admitted in the order they came. */
struct tt_own {
	struct fairwq_constraint constraint;
	raw_spinlock_t lock;		/* for the fields below */
	unsigned int in_flight, max;
	struct list_head waiting;
};

struct tt_bead {
	struct fairwq_work work;
	struct tt_lane *lane;
	u64 nr;				/* the producer's: counts what is sent, from 1 */
	unsigned long check;		/* the producer's: made of @nr; its function clears it */
	unsigned long ended;		/* the last @nr that has ended, cut to a long */
	atomic_t inside;
	struct tt_waiting waiting;	/* in struct tt_own */
} ____cacheline_aligned;

struct tt_lane {
	enum tt_way way;
	unsigned int width;		/* most items inside at once; 0: any number */
	struct fairwq_batch *batch;	/* TT_WAY_BATCH */
	union {
		struct fairwq_serializer serializer;
		struct fairwq_limiter limiter;
		struct tt_own own;
	};

	/* The producer's. */
	u64 sent ____cacheline_aligned;
	long accepted;			/* of these */

	/* The items'. */
	atomic_long_t ended ____cacheline_aligned;
	atomic_t inside;
	u64 last;			/* the @nr that ran last; if @width is 1 */
	struct tt_bead bead[NR_BEADS];
};

/* Return the value that @check of @bead must have. */
static unsigned long tt_bead_check(const struct tt_bead *bead, u64 nr)
{
	return (unsigned long)(nr * GOLDEN_RATIO_64) ^ (unsigned long)bead;
}

/* ---- the function of a bead -------------------------------------------- */

/*
 * Check whether no order is promised. That is so if fairwq had no memory for a flow,
 * because then its items go to a batch that flows share.
 */
static bool tt_lane_is_unsure(const struct tt_lane *lane)
{
	return lane->way == TT_WAY_FLOW && fairwq_flows_fallbacks(tt_flows);
}

/* Check that item @nr may begin now: the width of @lane, and its order. */
void tt_lane_enter(struct tt_lane *lane, u64 nr)
{
	unsigned int inside = atomic_inc_return(&lane->inside);

	if (!lane->width)
		return;
	if (inside > lane->width && !tt_lane_is_unsure(lane))
		tt_problem_of(lane->way, "%u items of a lane (%s) run at once, of %u\n",
			      inside, tt_way_name[lane->way], lane->width);
	if (lane->width > 1)
		return;
	if (nr <= READ_ONCE(lane->last) && !tt_lane_is_unsure(lane))
		tt_problem_of(lane->way, "item %llu of a lane (%s) runs after %llu\n",
			      nr, tt_way_name[lane->way], lane->last);
	WRITE_ONCE(lane->last, nr);
}

void tt_lane_leave(struct tt_lane *lane)
{
	/* Stores of the item, then this. Pairs with tt_lane_enter(). */
	smp_mb__before_atomic();
	atomic_dec(&lane->inside);
}

/* Count an item of @lane that has ended, or was cancelled. */
void tt_lane_ended(struct tt_lane *lane)
{
	if (!(atomic_long_inc_return_release(&lane->ended) % 64))
		tt_count(TT_RAN, 64);
}

/* Count an item that was taken out, so that it has not run. */
static void tt_bead_taken_out(enum tt_count how)
{
	tt_count(how, 1);
	tt_count(TT_RAN, -1);
}

/* End a bead. From here on it may be sent again, or the lane may be gone. */
static void tt_bead_end(struct tt_bead *bead)
{
	struct tt_lane *lane = bead->lane;

	/* Pairs with the load in tt_bead_send(). */
	smp_store_release(&bead->ended, (unsigned long)bead->nr);
	tt_lane_ended(lane);
}

/* Check that @bead sees its number, has not run under it, and is not inside already. */
static void tt_bead_judge(struct tt_bead *bead)
{
	u64 nr = READ_ONCE(bead->nr);

	if (atomic_xchg(&bead->inside, 1))
		tt_problem("bead %llu runs twice at once\n", nr);
	if (READ_ONCE(bead->ended) == (unsigned long)nr)
		tt_problem("bead %llu runs again\n", nr);
	else if (READ_ONCE(bead->check) != tt_bead_check(bead, nr))
		tt_problem("bead %llu sees %lx, not %lx\n", nr, bead->check,
			   tt_bead_check(bead, nr));
	WRITE_ONCE(bead->check, 0);
}

static void tt_bead_fn(struct fairwq_work *work)
{
	struct tt_bead *bead = container_of(work, struct tt_bead, work);
	struct tt_lane *lane = bead->lane;

	bool planted = tt_bug && !(bead->nr % 256);

	if (planted && tt_bug == TT_BUG_CROWD)
		atomic_add(lane->width, &lane->inside);
	tt_bead_judge(bead);
	tt_lane_enter(lane, bead->nr);
	if (planted && tt_bug == TT_BUG_REENTRANT)
		tt_bead_judge(bead);	/* as a second runner would */
	tt_behave_seldom(hash_64((unsigned long)bead ^ bead->nr, 32));
	tt_lane_leave(lane);
	if (planted && tt_bug == TT_BUG_CROWD)
		atomic_sub(lane->width, &lane->inside);
	atomic_set(&bead->inside, 0);
	tt_bead_end(bead);
}

/* Count a bead that a cancel of its batch has taken out, and end it. */
void tt_bead_dropped(struct fairwq_work *work)
{
	struct tt_bead *bead = container_of(work, struct tt_bead, work);

	tt_bead_taken_out(TT_DROPPED);
	tt_bead_end(bead);
}

bool tt_is_bead(const struct fairwq_work *work)
{
	return work->func == tt_bead_fn;
}

/* ---- a constraint as a driver may write one ---------------------------- */

/* Return the link of an item that may wait in the constraint: a bead, or an item of items.c. */
static struct tt_waiting *tt_waiting_of(struct fairwq_work *work)
{
	if (tt_is_bead(work))
		return &container_of(work, struct tt_bead, work)->waiting;
	return &container_of(work, struct tt_item, work)->waiting;
}

static bool tt_own_admit(struct fairwq_constraint *constraint, struct fairwq_work *work)
{
	struct tt_own *own = container_of(constraint, struct tt_own, constraint);
	unsigned long flags;
	bool go;

	raw_spin_lock_irqsave(&own->lock, flags);
	go = own->in_flight < own->max;
	if (go)
		own->in_flight++;
	else
		list_add_tail(&tt_waiting_of(work)->node, &own->waiting);
	raw_spin_unlock_irqrestore(&own->lock, flags);
	return go;
}

static void tt_own_complete(struct fairwq_constraint *constraint)
{
	struct tt_own *own = container_of(constraint, struct tt_own, constraint);
	struct tt_waiting *next;
	unsigned long flags;

	raw_spin_lock_irqsave(&own->lock, flags);
	next = list_first_entry_or_null(&own->waiting, struct tt_waiting, node);
	if (next)
		list_del(&next->node);
	else
		own->in_flight--;
	raw_spin_unlock_irqrestore(&own->lock, flags);
	if (next)
		fairwq_constraint_admit(next->work);
}

/* Check whether all items of the constraint have completed, so that it may be freed. */
static bool tt_own_is_idle(struct tt_own *own)
{
	unsigned long flags;
	bool idle;

	raw_spin_lock_irqsave(&own->lock, flags);
	idle = !own->in_flight;
	raw_spin_unlock_irqrestore(&own->lock, flags);
	return idle;
}

static const struct fairwq_constraint_ops tt_own_ops = {
	.admit = tt_own_admit,
	.complete = tt_own_complete,
};

static void tt_own_init(struct tt_own *own, unsigned int max)
{
	fairwq_constraint_init(&own->constraint, &tt_own_ops);
	raw_spin_lock_init(&own->lock);
	INIT_LIST_HEAD(&own->waiting);
	own->max = max;
	own->in_flight = 0;
}

/* ---- sending ----------------------------------------------------------- */

/* Return the batch that the next items go to, with a reference, or NULL. */
static struct fairwq_batch *tt_lane_batch(struct tt_lane *lane, struct tt_actor *actor)
{
	struct fairwq_pool *pool;

	if (lane->batch)
		return fairwq_batch_get(lane->batch);
	if (tt_random(actor, 8))
		return tt_get_batch(actor);
	pool = tt_pools[tt_random(actor, TT_NR_POOLS)];
	return fairwq_batch_get(fairwq_pool_default_batch(pool, tt_random(actor, 3)));
}

/* Queue @work the way of @lane. Return: the result of the queue call. */
int tt_lane_queue(struct tt_lane *lane, struct fairwq_batch *batch, struct fairwq_work *work)
{
	switch (lane->way) {
	case TT_WAY_SERIALIZER:
		return fairwq_serializer_queue(&lane->serializer, batch, work);
	case TT_WAY_LIMITER:
		return fairwq_limiter_queue(&lane->limiter, batch, work);
	case TT_WAY_OWN:
		return fairwq_queue_constrained(&lane->own.constraint, batch, work);
	case TT_WAY_FLOW:
		return fairwq_flows_queue(tt_flows, (unsigned long)lane, work);
	default:
		return fairwq_queue(batch, work);
	}
}

static int tt_bead_queue(struct tt_bead *bead, struct fairwq_batch *batch)
{
	if (tt_bug == TT_BUG_LOST && !(bead->nr % 1024))
		return 1;
	return tt_lane_queue(bead->lane, batch, &bead->work);
}

/* Return the number of the item that is about to be sent. */
u64 tt_lane_next(struct tt_lane *lane)
{
	u64 nr = ++lane->sent;

	return tt_bug == TT_BUG_ORDER && !(nr % 256) ? nr - 1 : nr;
}

/*
 * Count @n items as accepted. Must be called before the queue call. If the call
 * refuses, call this again with -@n.
 */
void tt_lane_accept(struct tt_lane *lane, long n)
{
	lane->accepted += n;
}

/* Send a bead. Return: false if the ring is full, or the queue call refuses. */
static bool tt_bead_send(struct tt_lane *lane, struct fairwq_batch *batch, long *nr_queued)
{
	struct tt_bead *bead = &lane->bead[lane->sent % NR_BEADS];
	int ret;

	/* Pairs with tt_bead_end(). */
	if (smp_load_acquire(&bead->ended) != (unsigned long)bead->nr)
		return false;
	bead->nr = tt_lane_next(lane);
	WRITE_ONCE(bead->check, tt_bug == TT_BUG_STALE && !(bead->nr % 256) ? 0 :
					tt_bead_check(bead, bead->nr));
	if (tt_bug == TT_BUG_TWICE && !(bead->nr % 256))
		WRITE_ONCE(bead->ended, (unsigned long)bead->nr);
	lane->accepted++;
	ret = tt_bead_queue(bead, batch);
	if (ret == 1) {
		++*nr_queued;
		return true;
	}
	lane->accepted--;
	bead->ended = bead->nr;
	if (!ret)
		tt_problem("a bead that has ended is pending\n");
	tt_queued(ret);
	return false;
}

/* Send up to @n beads to one batch. Return: true if there is room for more. */
static bool tt_lane_send(struct tt_lane *lane, struct tt_actor *actor, unsigned int n)
{
	struct fairwq_batch *batch = tt_lane_batch(lane, actor);
	bool irqs_off = !tt_random(actor, 8), more = true;
	bool shots = lane->way != TT_WAY_OWN && !tt_random(actor, 16);
	unsigned long flags;
	long nr_queued = 0;

	if (!batch)
		return false;
	if (irqs_off)
		local_irq_save(flags);
	while (n-- && more)
		more = shots ? tt_shot(batch, lane, GFP_ATOMIC) :
			       tt_bead_send(lane, batch, &nr_queued);
	if (irqs_off)
		local_irq_restore(flags);
	tt_count(TT_QUEUED, nr_queued);
	fairwq_batch_put(batch);
	return more;
}

/* Return one of the actor's own lanes, or NULL. */
static struct tt_lane *tt_any_lane(struct tt_actor *actor)
{
	return actor->lane[tt_random(actor, TT_NR_LANES)];
}

/* Send some beads of one lane, each group to another batch. */
void tt_lane_burst(struct tt_actor *actor)
{
	struct tt_lane *lane = tt_any_lane(actor);
	unsigned int n = 1 + tt_random(actor, 4);

	while (lane && n-- && tt_lane_send(lane, actor, 1 + tt_random(actor, 64)))
		;
}

/* ---- waiting ----------------------------------------------------------- */

/* Flush the bead that was sent last, and check that it has ended. */
static void tt_lane_flush_bead(struct tt_lane *lane)
{
	struct tt_bead *bead = &lane->bead[(lane->sent - 1) % NR_BEADS];

	if (!lane->sent)
		return;
	if (tt_bug != TT_BUG_FLUSH)
		fairwq_work_flush(&bead->work);
	/* Pairs with tt_bead_end(). */
	if (tt_cancels_quiet() && smp_load_acquire(&bead->ended) != (unsigned long)bead->nr)
		tt_problem("a flush of a bead did not wait\n");
}

static void tt_lane_flush_all(struct tt_lane *lane)
{
	if (lane->way == TT_WAY_BATCH)
		fairwq_batch_flush(lane->batch);
	else if (lane->way == TT_WAY_SERIALIZER)
		fairwq_serializer_flush(&lane->serializer);
	else
		fairwq_limiter_flush(&lane->limiter);
}

/* Wait until each item that was sent has ended. Only the producer may call it. */
static void tt_lane_flush(struct tt_lane *lane)
{
	tt_count(TT_PROBES, 1);
	if (lane->way > TT_WAY_LIMITER)		/* only the bead can be flushed */
		return tt_lane_flush_bead(lane);
	if (tt_bug != TT_BUG_FLUSH)
		tt_lane_flush_all(lane);
	/* If a cancel runs, it may have taken an item out and not yet counted it. */
	if (tt_cancels_quiet() && atomic_long_read_acquire(&lane->ended) != lane->accepted)
		tt_problem_of(lane->way, "a flush of a lane (%s) did not wait\n",
			      tt_way_name[lane->way]);
}

/*
 * Send until the ring is full. A wait for its end each time would leave the CPUs
 * idle. Therefore the thread mostly goes on with another lane. It sleeps if all
 * lanes seem to be full.
 */
void tt_lane_stream(struct tt_actor *actor)
{
	struct tt_lane *lane = tt_any_lane(actor);
	unsigned int n;

	for (n = 0; lane && n < NR_BEADS; n += 64)
		if (!tt_lane_send(lane, actor, 64))
			break;
	if (n)
		actor->stuck = 0;
	else if (lane && !tt_random(actor, 32))
		tt_lane_flush(lane);
	else if (++actor->stuck >= TT_NR_LANES)
		usleep_range(200, 1000);
}

/* ---- a lane's beginning and end ---------------------------------------- */

/* Check whether all items of @lane have ended, so that it may be freed. */
static bool tt_lane_is_through(struct tt_lane *lane)
{
	return atomic_long_read_acquire(&lane->ended) == lane->accepted &&
	       (lane->way != TT_WAY_OWN || tt_own_is_idle(&lane->own));
}

/* Free @lane, which no item and no actor may use any more. */
static void tt_lane_free(struct tt_lane *lane)
{
	tt_count(TT_RAN, atomic_long_read(&lane->ended) % 64);
	kvfree(lane);
}

/* Free the lane of a batch that is released. All its items must have ended. */
static void tt_lane_released(struct fairwq_batch *batch, void *priv)
{
	struct tt_lane *lane = priv;

	tt_count(TT_RELEASED, 1);
	if (!tt_lane_is_through(lane))
		tt_problem("a batch was released, and of %ld items %ld have ended\n",
			   lane->accepted, atomic_long_read(&lane->ended));
	tt_lane_free(lane);
}

/*
 * Wait until all items of @lane have ended, and free it. A cancel may not yet have
 * counted an item, and not every way has a flush. After tt_patience it is a problem.
 */
static void tt_lane_await(struct tt_lane *lane)
{
	unsigned long end = (READ_ONCE(tt_stopping) ? tt_stopped : jiffies) + tt_patience * HZ;

	while (!tt_lane_is_through(lane) && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	if (tt_lane_is_through(lane))
		return tt_lane_free(lane);
	tt_problem_of(lane->way, "of %ld items of a lane (%s) %ld have ended\n",
		      lane->accepted, tt_way_name[lane->way],
		      atomic_long_read(&lane->ended));
}

/* End @lane, and free it when its items have ended. */
static void tt_lane_dispose(struct tt_lane *lane)
{
	if (tt_bug == TT_BUG_RELEASED && lane->way == TT_WAY_BATCH)
		lane->accepted++;
	switch (lane->way) {
	case TT_WAY_BATCH:
		fairwq_batch_dispose(lane->batch);	/* then tt_lane_released() */
		return;
	case TT_WAY_SERIALIZER:
		fairwq_serializer_destroy(&lane->serializer);
		break;
	case TT_WAY_LIMITER:
		fairwq_limiter_destroy(&lane->limiter);
		break;
	default:
		break;
	}
	tt_lane_await(lane);
}

/* Make the batch or the constraint of @lane. Return: false without memory. */
static bool tt_lane_open(struct tt_lane *lane, struct tt_actor *actor)
{
	struct fairwq_batch_attrs attrs = {
		.max_active = lane->width,
		.max_queued = tt_random(actor, 4) ? 0 : 1 + tt_random(actor, NR_BEADS),
		.released = tt_lane_released,
		.priv = lane,
	};

	switch (lane->way) {
	case TT_WAY_BATCH:
		lane->batch = tt_batch_create(actor, &attrs);
		return lane->batch;
	case TT_WAY_SERIALIZER:
		fairwq_serializer_init(&lane->serializer);
		if (tt_random(actor, 2))
			fairwq_serializer_set_inline(&lane->serializer, tt_any_budget(actor));
		return true;
	case TT_WAY_LIMITER:
		fairwq_limiter_init(&lane->limiter, lane->width);
		return true;
	case TT_WAY_OWN:
		tt_own_init(&lane->own, lane->width);
		return true;
	default:
		return true;
	}
}

/* Choose how many items of a lane may be inside at once. Return: it; 0: any number. */
static unsigned int tt_lane_width(enum tt_way way, struct tt_actor *actor)
{
	switch (way) {
	case TT_WAY_BATCH:
		return tt_random(actor, 4);
	case TT_WAY_LIMITER:
	case TT_WAY_OWN:
		return 1 + tt_random(actor, 3);
	case TT_WAY_ANY:
		return 0;
	default:
		return 1;
	}
}

/* Make a lane. Return: it, or NULL without memory. */
static struct tt_lane *tt_lane_new_way(struct tt_actor *actor, enum tt_way way)
{
	struct tt_lane *lane = kvzalloc(sizeof(*lane), GFP_KERNEL);
	unsigned int i;

	if (!lane)
		return NULL;
	lane->way = way;
	lane->width = tt_lane_width(lane->way, actor);
	for (i = 0; i < NR_BEADS; i++) {
		fairwq_work_init(&lane->bead[i].work, tt_bead_fn);
		lane->bead[i].lane = lane;
		lane->bead[i].waiting.work = &lane->bead[i].work;
	}
	if (tt_lane_open(lane, actor))
		return lane;
	kvfree(lane);
	return NULL;
}

static struct tt_lane *tt_lane_new(struct tt_actor *actor)
{
	return tt_lane_new_way(actor, tt_random(actor, 2) ? TT_WAY_BATCH :
					tt_random(actor, TT_NR_WAYS));
}

void tt_lanes_init(struct tt_actor *actor)
{
	unsigned int i;

	for (i = 0; i < TT_NR_LANES; i++)
		actor->lane[i] = tt_lane_new(actor);
}

void tt_lanes_end(struct tt_actor *actor)
{
	unsigned int i;

	for (i = 0; i < TT_NR_LANES; i++) {
		if (actor->lane[i])
			tt_lane_dispose(actor->lane[i]);
		actor->lane[i] = NULL;
	}
}

/* Replace one of the thread's lanes by a new one. The old one runs dry. */
void tt_lane_renew(struct tt_actor *actor)
{
	unsigned int i = tt_random(actor, TT_NR_LANES);

	if (actor->lane[i])
		tt_lane_dispose(actor->lane[i]);
	actor->lane[i] = tt_lane_new(actor);
}

/* ---- lanes that all actors share --------------------------------------- */

static const enum tt_way tt_shared_ways[TT_NR_SHARED] = {
	TT_WAY_SERIALIZER, TT_WAY_SERIALIZER, TT_WAY_LIMITER, TT_WAY_LIMITER,
	TT_WAY_OWN, TT_WAY_FLOW,
};

/*
 * The holder of @lock is the producer of the lane's beads. Items of items.c go
 * through the lane as well.
 */
static struct tt_shared {
	raw_spinlock_t lock;
	struct tt_lane *lane;
} tt_shared[TT_NR_SHARED];

int tt_shared_init(void)
{
	struct tt_actor actor = { .nr = -1 };
	unsigned int i;

	prandom_seed_state(&actor.rnd, 2);
	for (i = 0; i < TT_NR_SHARED; i++) {
		raw_spin_lock_init(&tt_shared[i].lock);
		tt_shared[i].lane = tt_lane_new_way(&actor, tt_shared_ways[i]);
		if (!tt_shared[i].lane)
			return -ENOMEM;
	}
	return 0;
}

void tt_shared_end(void)
{
	unsigned int i;

	for (i = 0; i < TT_NR_SHARED; i++) {
		if (tt_shared[i].lane)
			tt_lane_dispose(tt_shared[i].lane);
		tt_shared[i].lane = NULL;
	}
}

/* Return a shared lane, or, most of the time, NULL, because they are crowded. */
struct tt_lane *tt_shared_any(struct tt_actor *actor)
{
	unsigned int i = tt_random(actor, 4 * TT_NR_SHARED);

	return i < TT_NR_SHARED ? tt_shared[i].lane : NULL;
}

/* Send to a shared lane, in any context. Items are numbered under its lock. */
void tt_shared_burst(struct tt_actor *actor)
{
	struct tt_shared *shared = &tt_shared[tt_random(actor, TT_NR_SHARED)];
	struct fairwq_batch *batch = tt_get_batch(actor);
	unsigned int n = 1 + tt_random(actor, 16);
	unsigned long flags;
	long nr_queued = 0;

	if (!batch)
		return;
	raw_spin_lock_irqsave(&shared->lock, flags);
	while (n-- && tt_bead_send(shared->lane, batch, &nr_queued))
		;
	raw_spin_unlock_irqrestore(&shared->lock, flags);
	tt_count(TT_QUEUED, nr_queued);
	fairwq_batch_put(batch);
}

/* ---- a lane's order must hold under cancels, pauses and weights -------- */

/* Call @cancel for one bead of @lane, and count it if it was taken out. */
static void tt_lane_cancel_bead(struct tt_lane *lane, bool (*cancel)(struct fairwq_work *),
				u32 dice)
{
	struct tt_bead *bead = &lane->bead[dice % NR_BEADS];

	tt_cancel_begin();
	if (cancel(&bead->work)) {
		tt_bead_taken_out(TT_CANCELED);
		tt_bead_end(bead);
	}
	tt_cancel_end();
	if (cancel == fairwq_work_disable)
		fairwq_work_enable(&bead->work);
}

/* Cancel or disable some beads of a lane, in any context. */
void tt_lane_cancel(struct tt_actor *actor)
{
	struct tt_lane *lane = tt_any_lane(actor);
	unsigned int n = 1 + tt_random(actor, 8);

	while (lane && n--)
		tt_lane_cancel_bead(lane, tt_random(actor, 4) ? fairwq_work_cancel :
				    fairwq_work_disable, tt_random(actor, NR_BEADS));
}

static void tt_lane_meddle_batch(struct tt_lane *lane, struct tt_actor *actor)
{
	struct fairwq_batch *batch = lane->batch;

	switch (tt_random(actor, 4)) {
	case 0:
		fairwq_batch_pause(batch);
		tt_lane_send(lane, actor, 64);
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

/*
 * Meddle with a lane of the thread, or of one of its interrupts, which live as long
 * as the test.
 */
void tt_lane_meddle(struct tt_actor *actor)
{
	struct tt_thread *thread = &tt_threads[actor->nr];
	struct tt_actor *owner[] = { actor, &thread->soft, &thread->hard, &thread->work };
	unsigned int which = tt_random(actor, ARRAY_SIZE(owner));
	struct tt_lane *lane = owner[which]->lane[tt_random(actor, TT_NR_LANES)];

	if (!lane)
		return;
	if (lane->way == TT_WAY_SERIALIZER && tt_random(actor, 2))
		fairwq_serializer_set_inline(&lane->serializer, tt_any_budget(actor));
	if (tt_random(actor, 2))
		tt_lane_cancel_bead(lane, fairwq_work_cancel_sync, tt_random(actor, NR_BEADS));
	else if (!which && lane->batch)
		tt_lane_meddle_batch(lane, actor);
	else if (!which)
		tt_lane_flush(lane);
	else if (lane->batch && tt_random(actor, 2))
		tt_cancel_batch(lane->batch);
	else if (lane->batch)
		fairwq_batch_flush(lane->batch);
}
