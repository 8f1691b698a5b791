// SPDX-License-Identifier: GPL-2.0
/*
 * Streams: most of the items. A stream is a ring of items, its packets. One
 * producer queues them in turn, each as soon as it has ended. The way of a
 * stream decides which order fairwq promises; see enum tt_way.
 *
 * The producer writes a number and a check value into a packet before the queue
 * call. The packet's function checks that
 *
 *	it sees both values,
 *	it is not inside already,
 *	it has not run under this number,
 *	no more items of the stream are inside than its width allows,
 *	with a width of 1, its number is higher than the last one.
 *
 * In the end the stream must have seen as many runs as calls were accepted.
 *
 * Locking: a stream has one producer at a time. A stream that all actors share
 * has a lock, and its holder is the producer.
 */
#define pr_fmt(fmt) "fairwq-torture: " fmt

#include <linux/delay.h>
#include <linux/hash.h>
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "torture.h"

#define NR_PACKETS	512U

/* Way of the packets of a stream to a runner. */
enum tt_way {
	TT_WAY_BATCH,		/* a batch of its own with max_active */
	TT_WAY_SERIALIZER,	/* then any batch, as with the next one */
	TT_WAY_LIMITER,
	TT_WAY_FLOW,		/* of tt_flows, which have max_active 1 */
	TT_WAY_ANY,		/* any batch */
	TT_NR_WAYS,
};

static const char * const tt_way_name[TT_NR_WAYS] = {
	[TT_WAY_BATCH] = "batch",
	[TT_WAY_SERIALIZER] = "serializer",
	[TT_WAY_LIMITER] = "limiter",
	[TT_WAY_FLOW] = "flow",
	[TT_WAY_ANY] = "any batch",
};

struct tt_packet {
	struct fairwq_work work;
	struct tt_stream *stream;
	u64 nr;				/* the producer's: counts what is sent, from 1 */
	unsigned long check;		/* the producer's: made of @nr; its function clears it */
	unsigned long ended;		/* the last @nr that has ended, cut to a long */
	atomic_t inside;
} ____cacheline_aligned;

struct tt_stream {
	enum tt_way way;
	unsigned int width;		/* most items inside at once; 0: any number */
	struct fairwq_batch *batch;	/* TT_WAY_BATCH */
	union {
		struct fairwq_serializer serializer;
		struct fairwq_serializer limiter;
	};

	/* The producer's. */
	u64 sent ____cacheline_aligned;
	long accepted;			/* of these */

	/* The items'. */
	atomic_long_t ended ____cacheline_aligned;
	atomic_t inside;
	u64 last;			/* the @nr that ran last; if @width is 1 */
	struct tt_packet packet[NR_PACKETS];
};

/* Return the value that @check of @packet must have. */
static unsigned long tt_packet_check(const struct tt_packet *packet, u64 nr)
{
	return (unsigned long)(nr * GOLDEN_RATIO_64) ^ (unsigned long)packet;
}

/* ---- the function of a packet ------------------------------------------ */

/*
 * Check whether no order is promised. That is so if fairwq had no memory for a
 * flow, because then its items go to a batch that flows share.
 */
static bool tt_stream_is_unsure(const struct tt_stream *stream)
{
	return stream->way == TT_WAY_FLOW && fairwq_flows_fallbacks(tt_flows);
}

/* Check that item @nr may begin now: the width of @stream, and its order. */
void tt_stream_enter(struct tt_stream *stream, u64 nr)
{
	unsigned int inside = atomic_inc_return(&stream->inside);

	if (!stream->width)
		return;
	if (inside > stream->width && !tt_stream_is_unsure(stream))
		tt_problem_of(stream->way, "%u items of a stream (%s) run at once, of %u\n",
			      inside, tt_way_name[stream->way], stream->width);
	if (stream->width > 1)
		return;
	if (nr <= READ_ONCE(stream->last) && !tt_stream_is_unsure(stream))
		tt_problem_of(stream->way, "item %llu of a stream (%s) runs after %llu\n",
			      nr, tt_way_name[stream->way], stream->last);
	WRITE_ONCE(stream->last, nr);
}

void tt_stream_leave(struct tt_stream *stream)
{
	/* Stores of the item, then this. Pairs with tt_stream_enter(). */
	smp_mb__before_atomic();
	atomic_dec(&stream->inside);
}

/* Count an item of @stream that has ended, or was cancelled. */
void tt_stream_ended(struct tt_stream *stream)
{
	if (!(atomic_long_inc_return_release(&stream->ended) % 64))
		tt_count(TT_RAN, 64);
}

/* Count an item that was taken out, so that it has not run. */
static void tt_packet_taken_out(enum tt_count how)
{
	tt_count(how, 1);
	tt_count(TT_RAN, -1);
}

/* End a packet. From here on it may be sent again, or the stream may be gone. */
static void tt_packet_end(struct tt_packet *packet)
{
	struct tt_stream *stream = packet->stream;

	/* Pairs with the load in tt_packet_send(). */
	smp_store_release(&packet->ended, (unsigned long)packet->nr);
	tt_stream_ended(stream);
}

/* Check that @packet sees its number, has not run under it, and is not inside already. */
static void tt_packet_judge(struct tt_packet *packet)
{
	u64 nr = READ_ONCE(packet->nr);

	if (atomic_xchg(&packet->inside, 1))
		tt_problem("packet %llu runs twice at once\n", nr);
	if (READ_ONCE(packet->ended) == (unsigned long)nr)
		tt_problem("packet %llu runs again\n", nr);
	else if (READ_ONCE(packet->check) != tt_packet_check(packet, nr))
		tt_problem("packet %llu sees %lx, not %lx\n", nr, packet->check,
			   tt_packet_check(packet, nr));
	WRITE_ONCE(packet->check, 0);
}

static void tt_packet_fn(struct fairwq_work *work)
{
	struct tt_packet *packet = container_of(work, struct tt_packet, work);
	struct tt_stream *stream = packet->stream;

	bool planted = tt_bug && !(packet->nr % 256);

	if (planted && tt_bug == TT_BUG_CROWD)
		atomic_add(stream->width, &stream->inside);
	tt_packet_judge(packet);
	tt_stream_enter(stream, packet->nr);
	if (planted && tt_bug == TT_BUG_REENTRANT)
		tt_packet_judge(packet);	/* as a second runner would */
	tt_behave_seldom(hash_64((unsigned long)packet ^ packet->nr, 32));
	tt_stream_leave(stream);
	if (planted && tt_bug == TT_BUG_CROWD)
		atomic_sub(stream->width, &stream->inside);
	atomic_set(&packet->inside, 0);
	tt_packet_end(packet);
}

/* Count a packet that a cancel of its batch has taken out, and end it. */
void tt_packet_dropped(struct fairwq_work *work)
{
	struct tt_packet *packet = container_of(work, struct tt_packet, work);

	tt_packet_taken_out(TT_DROPPED);
	tt_packet_end(packet);
}

bool tt_is_packet(const struct fairwq_work *work)
{
	return work->func == tt_packet_fn;
}

/* ---- sending ----------------------------------------------------------- */

/* Return the batch that the next items go to, with a reference, or NULL. */
static struct fairwq_batch *tt_stream_batch(struct tt_stream *stream, struct tt_actor *actor)
{
	struct fairwq_pool *pool;

	if (stream->batch)
		return fairwq_batch_get(stream->batch);
	if (tt_random(actor, 8))
		return tt_get_batch(actor);
	pool = tt_pools[tt_random(actor, TT_NR_POOLS)];
	return fairwq_batch_get(fairwq_pool_default_batch(pool, tt_random(actor, 3)));
}

/* Queue @work the way of @stream. Return: the result of the queue call. */
int tt_stream_queue(struct tt_stream *stream, struct fairwq_batch *batch, struct fairwq_work *work)
{
	switch (stream->way) {
	case TT_WAY_SERIALIZER:
		return fairwq_serializer_queue(&stream->serializer, batch, work);
	case TT_WAY_LIMITER:
		return fairwq_serializer_queue(&stream->limiter, batch, work);
	case TT_WAY_FLOW:
		return fairwq_flows_queue(tt_flows, (unsigned long)stream, work);
	default:
		return fairwq_queue(batch, work);
	}
}

static int tt_packet_queue(struct tt_packet *packet, struct fairwq_batch *batch)
{
	if (tt_bug == TT_BUG_LOST && !(packet->nr % 1024))
		return 1;
	return tt_stream_queue(packet->stream, batch, &packet->work);
}

/* Return the number of the item that is about to be sent. */
u64 tt_stream_next(struct tt_stream *stream)
{
	u64 nr = ++stream->sent;

	return tt_bug == TT_BUG_ORDER && !(nr % 256) ? nr - 1 : nr;
}

/*
 * Count @n items as accepted. Must be called before the queue call. If the call
 * refuses, call this again with -@n.
 */
void tt_stream_accept(struct tt_stream *stream, long n)
{
	stream->accepted += n;
}

/* Send a packet. Return: false if the ring is full, or the queue call refuses. */
static bool tt_packet_send(struct tt_stream *stream, struct fairwq_batch *batch, long *nr_queued)
{
	struct tt_packet *packet = &stream->packet[stream->sent % NR_PACKETS];
	int ret;

	/* Pairs with tt_packet_end(). */
	if (smp_load_acquire(&packet->ended) != (unsigned long)packet->nr)
		return false;
	packet->nr = tt_stream_next(stream);
	WRITE_ONCE(packet->check, tt_bug == TT_BUG_STALE && !(packet->nr % 256) ? 0 :
					tt_packet_check(packet, packet->nr));
	if (tt_bug == TT_BUG_TWICE && !(packet->nr % 256))
		WRITE_ONCE(packet->ended, (unsigned long)packet->nr);
	stream->accepted++;
	ret = tt_packet_queue(packet, batch);
	if (ret == 1) {
		++*nr_queued;
		return true;
	}
	stream->accepted--;
	packet->ended = packet->nr;
	if (!ret)
		tt_problem("a packet that has ended is pending\n");
	tt_queued(ret);
	return false;
}

/* Send up to @n packets to one batch. Return: true if there is room for more. */
static bool tt_stream_send(struct tt_stream *stream, struct tt_actor *actor, unsigned int n)
{
	struct fairwq_batch *batch = tt_stream_batch(stream, actor);
	bool irqs_off = !tt_random(actor, 8), more = true;
	bool oneshots = !tt_random(actor, 16);
	unsigned long flags;
	long nr_queued = 0;

	if (!batch)
		return false;
	if (irqs_off)
		local_irq_save(flags);
	while (n-- && more)
		more = oneshots ? tt_oneshot(batch, stream, GFP_ATOMIC) :
			       tt_packet_send(stream, batch, &nr_queued);
	if (irqs_off)
		local_irq_restore(flags);
	tt_count(TT_QUEUED, nr_queued);
	fairwq_batch_put(batch);
	return more;
}

/* Return one of the actor's own streams, or NULL. */
static struct tt_stream *tt_any_stream(struct tt_actor *actor)
{
	return actor->stream[tt_random(actor, TT_NR_STREAMS)];
}

/* Send some packets of one stream, each group to another batch. */
void tt_stream_burst(struct tt_actor *actor)
{
	struct tt_stream *stream = tt_any_stream(actor);
	unsigned int n = 1 + tt_random(actor, 4);

	while (stream && n-- && tt_stream_send(stream, actor, 1 + tt_random(actor, 64)))
		;
}

/* ---- waiting ----------------------------------------------------------- */

/* Flush the packet that was sent last, and check that it has ended. */
static void tt_stream_flush_packet(struct tt_stream *stream)
{
	struct tt_packet *packet = &stream->packet[(stream->sent - 1) % NR_PACKETS];

	if (!stream->sent)
		return;
	if (tt_bug != TT_BUG_FLUSH)
		fairwq_work_flush(&packet->work);
	/* Pairs with tt_packet_end(). */
	if (tt_cancels_quiet() && smp_load_acquire(&packet->ended) != (unsigned long)packet->nr)
		tt_problem("a flush of a packet did not wait\n");
}

static void tt_stream_flush_all(struct tt_stream *stream)
{
	if (stream->way == TT_WAY_BATCH)
		fairwq_batch_flush(stream->batch);
	else if (stream->way == TT_WAY_SERIALIZER)
		fairwq_serializer_flush(&stream->serializer);
	else
		fairwq_serializer_flush(&stream->limiter);
}

/* Wait until each item that was sent has ended. Only the producer may call it. */
static void tt_stream_flush(struct tt_stream *stream)
{
	tt_count(TT_PROBES, 1);
	if (stream->way > TT_WAY_LIMITER)	/* only the packet can be flushed */
		return tt_stream_flush_packet(stream);
	if (tt_bug != TT_BUG_FLUSH)
		tt_stream_flush_all(stream);
	/* If a cancel runs, it may have taken an item out and not yet counted it. */
	if (tt_cancels_quiet() && atomic_long_read_acquire(&stream->ended) != stream->accepted)
		tt_problem_of(stream->way, "a flush of a stream (%s) did not wait\n",
			      tt_way_name[stream->way]);
}

/*
 * Send until the ring is full. A wait for its end each time would leave the
 * CPUs idle. Therefore the thread mostly goes on with another stream. It sleeps
 * if all streams seem to be full.
 */
void tt_stream_fill(struct tt_actor *actor)
{
	struct tt_stream *stream = tt_any_stream(actor);
	unsigned int n;

	for (n = 0; stream && n < NR_PACKETS; n += 64)
		if (!tt_stream_send(stream, actor, 64))
			break;
	if (n)
		actor->stuck = 0;
	else if (stream && !tt_random(actor, 32))
		tt_stream_flush(stream);
	else if (++actor->stuck >= TT_NR_STREAMS)
		usleep_range(200, 1000);
}

/* ---- a stream's beginning and end -------------------------------------- */

/* Check whether all items of @stream have ended, so that it may be freed. */
static bool tt_stream_is_through(struct tt_stream *stream)
{
	return atomic_long_read_acquire(&stream->ended) == stream->accepted;
}

/* Free @stream, which no item and no actor may use any more. */
static void tt_stream_free(struct tt_stream *stream)
{
	tt_count(TT_RAN, atomic_long_read(&stream->ended) % 64);
	kvfree(stream);
}

/* Free the stream of a batch that is released. All its items must have ended. */
static void tt_stream_released(struct fairwq_batch *batch, void *priv)
{
	struct tt_stream *stream = priv;

	tt_count(TT_RELEASED, 1);
	if (!tt_stream_is_through(stream))
		tt_problem("a batch was released, and of %ld items %ld have ended\n",
			   stream->accepted, atomic_long_read(&stream->ended));
	tt_stream_free(stream);
}

/*
 * Wait until all items of @stream have ended, and free it. A cancel may not yet
 * have counted an item, and not every way has a flush. After tt_patience it is
 * a problem.
 */
static void tt_stream_await(struct tt_stream *stream)
{
	unsigned long end = (READ_ONCE(tt_stopping) ? tt_stopped : READ_ONCE(tt_now)) +
			    tt_patience * HZ;

	while (!tt_stream_is_through(stream) && time_before(READ_ONCE(tt_now), end))
		schedule_timeout_uninterruptible(1);
	if (tt_stream_is_through(stream))
		return tt_stream_free(stream);
	tt_problem_of(stream->way, "of %ld items of a stream (%s) %ld have ended\n",
		      stream->accepted, tt_way_name[stream->way],
		      atomic_long_read(&stream->ended));
}

/* End @stream, and free it when its items have ended. */
static void tt_stream_dispose(struct tt_stream *stream)
{
	if (tt_bug == TT_BUG_RELEASED && stream->way == TT_WAY_BATCH)
		stream->accepted++;
	switch (stream->way) {
	case TT_WAY_BATCH:
		fairwq_batch_dispose(stream->batch);	/* then tt_stream_released() */
		return;
	case TT_WAY_SERIALIZER:
		fairwq_serializer_destroy(&stream->serializer);
		break;
	case TT_WAY_LIMITER:
		fairwq_serializer_destroy(&stream->limiter);
		break;
	default:
		break;
	}
	tt_stream_await(stream);
}

/* Make the batch or the serializer of @stream. Return: false without memory. */
static bool tt_stream_open(struct tt_stream *stream, struct tt_actor *actor)
{
	struct fairwq_batch_attrs attrs = {
		.max_active = stream->width,
		.max_queued = tt_random(actor, 4) ? 0 : 1 + tt_random(actor, NR_PACKETS),
		.released = tt_stream_released,
		.priv = stream,
	};

	switch (stream->way) {
	case TT_WAY_BATCH:
		stream->batch = tt_batch_create(actor, &attrs);
		return stream->batch;
	case TT_WAY_SERIALIZER:
		fairwq_serializer_init(&stream->serializer);
		if (tt_random(actor, 2))
			fairwq_serializer_set_inline(&stream->serializer, tt_any_budget(actor));
		return true;
	case TT_WAY_LIMITER:
		fairwq_limiter_init(&stream->limiter, stream->width);
		return true;
	default:
		return true;
	}
}

/* Choose how many items of a stream may be inside at once. Return: it; 0: any number. */
static unsigned int tt_stream_width(enum tt_way way, struct tt_actor *actor)
{
	switch (way) {
	case TT_WAY_BATCH:
		return tt_random(actor, 4);
	case TT_WAY_LIMITER:
		return 1 + tt_random(actor, 3);
	case TT_WAY_ANY:
		return 0;
	default:
		return 1;
	}
}

/* Make a stream. Return: it, or NULL without memory. */
static struct tt_stream *tt_stream_new_way(struct tt_actor *actor, enum tt_way way)
{
	struct tt_stream *stream = kvzalloc(sizeof(*stream), GFP_KERNEL);
	unsigned int i;

	if (!stream)
		return NULL;
	stream->way = way;
	stream->width = tt_stream_width(stream->way, actor);
	for (i = 0; i < NR_PACKETS; i++) {
		fairwq_work_init(&stream->packet[i].work, tt_packet_fn);
		stream->packet[i].stream = stream;
	}
	if (tt_stream_open(stream, actor))
		return stream;
	kvfree(stream);
	return NULL;
}

static struct tt_stream *tt_stream_new(struct tt_actor *actor)
{
	return tt_stream_new_way(actor, tt_random(actor, 2) ? TT_WAY_BATCH :
					tt_random(actor, TT_NR_WAYS));
}

void tt_streams_init(struct tt_actor *actor)
{
	unsigned int i;

	for (i = 0; i < TT_NR_STREAMS; i++)
		actor->stream[i] = tt_stream_new(actor);
}

void tt_streams_end(struct tt_actor *actor)
{
	unsigned int i;

	for (i = 0; i < TT_NR_STREAMS; i++) {
		if (actor->stream[i])
			tt_stream_dispose(actor->stream[i]);
		actor->stream[i] = NULL;
	}
}

/* Replace one of the thread's streams by a new one. The old one runs dry. */
void tt_stream_renew(struct tt_actor *actor)
{
	unsigned int i = tt_random(actor, TT_NR_STREAMS);

	if (actor->stream[i])
		tt_stream_dispose(actor->stream[i]);
	actor->stream[i] = tt_stream_new(actor);
}

/* ---- streams that all actors share --------------------------------------- */

static const enum tt_way tt_shared_ways[TT_NR_SHARED] = {
	TT_WAY_SERIALIZER, TT_WAY_SERIALIZER, TT_WAY_SERIALIZER,
	TT_WAY_LIMITER, TT_WAY_LIMITER, TT_WAY_FLOW,
};

/*
 * The holder of @lock is the producer of the stream's packets. Items of items.c
 * go through the stream as well.
 */
static struct tt_shared {
	raw_spinlock_t lock;
	struct tt_stream *stream;
} tt_shared[TT_NR_SHARED];

int tt_shared_init(void)
{
	struct tt_actor actor = { .nr = -1 };
	unsigned int i;

	prandom_seed_state(&actor.rnd, 2);
	for (i = 0; i < TT_NR_SHARED; i++) {
		raw_spin_lock_init(&tt_shared[i].lock);
		tt_shared[i].stream = tt_stream_new_way(&actor, tt_shared_ways[i]);
		if (!tt_shared[i].stream)
			return -ENOMEM;
	}
	return 0;
}

void tt_shared_end(void)
{
	unsigned int i;

	for (i = 0; i < TT_NR_SHARED; i++) {
		if (tt_shared[i].stream)
			tt_stream_dispose(tt_shared[i].stream);
		tt_shared[i].stream = NULL;
	}
}

/* Return a shared stream, or, most of the time, NULL, because they are crowded. */
struct tt_stream *tt_shared_any(struct tt_actor *actor)
{
	unsigned int i = tt_random(actor, 4 * TT_NR_SHARED);

	return i < TT_NR_SHARED ? tt_shared[i].stream : NULL;
}

/* Send to a shared stream, in any context. Items are numbered under its lock. */
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
	while (n-- && tt_packet_send(shared->stream, batch, &nr_queued))
		;
	raw_spin_unlock_irqrestore(&shared->lock, flags);
	tt_count(TT_QUEUED, nr_queued);
	fairwq_batch_put(batch);
}

/* ---- a stream's order must hold under cancels, pauses and weights -------- */

/* Call @cancel for one packet of @stream, and count it if it was taken out. */
static void tt_stream_cancel_packet(struct tt_stream *stream, bool (*cancel)(struct fairwq_work *),
				    u32 dice)
{
	struct tt_packet *packet = &stream->packet[dice % NR_PACKETS];

	tt_cancel_begin();
	if (cancel(&packet->work)) {
		tt_packet_taken_out(TT_CANCELED);
		tt_packet_end(packet);
	}
	tt_cancel_end();
	if (cancel == fairwq_work_disable)
		fairwq_work_enable(&packet->work);
}

/* Cancel or disable some packets of a stream, in any context. */
void tt_stream_cancel(struct tt_actor *actor)
{
	struct tt_stream *stream = tt_any_stream(actor);
	unsigned int n = 1 + tt_random(actor, 8);

	while (stream && n--)
		tt_stream_cancel_packet(stream, tt_random(actor, 4) ? fairwq_work_cancel :
					fairwq_work_disable, tt_random(actor, NR_PACKETS));
}

static void tt_stream_meddle_batch(struct tt_stream *stream, struct tt_actor *actor)
{
	struct fairwq_batch *batch = stream->batch;

	switch (tt_random(actor, 4)) {
	case 0:
		fairwq_batch_pause(batch);
		tt_stream_send(stream, actor, 64);
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
 * Meddle with a stream of the thread, or of one of its interrupts, which live
 * as long as the test.
 */
void tt_stream_meddle(struct tt_actor *actor)
{
	struct tt_thread *thread = &tt_threads[actor->nr];
	struct tt_actor *owner[] = { actor, &thread->soft, &thread->hard, &thread->work };
	unsigned int which = tt_random(actor, ARRAY_SIZE(owner));
	struct tt_stream *stream = owner[which]->stream[tt_random(actor, TT_NR_STREAMS)];

	if (!stream)
		return;
	if (stream->way == TT_WAY_SERIALIZER && tt_random(actor, 2))
		fairwq_serializer_set_inline(&stream->serializer, tt_any_budget(actor));
	if (tt_random(actor, 2))
		tt_stream_cancel_packet(stream, fairwq_work_cancel_sync,
					tt_random(actor, NR_PACKETS));
	else if (!which && stream->batch)
		tt_stream_meddle_batch(stream, actor);
	else if (!which)
		tt_stream_flush(stream);
	else if (stream->batch && tt_random(actor, 2))
		tt_cancel_batch(stream->batch);
	else if (stream->batch)
		fairwq_batch_flush(stream->batch);
}
