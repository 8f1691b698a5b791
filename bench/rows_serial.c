// SPDX-License-Identifier: GPL-2.0
/*
 * Sides: order per object. Each object has a serializer, a mutex around plain
 * items, or an ordered workqueue. A channel is an object here. Its items must
 * not overlap. They start in queue order, except with the mutex.
 */
#include <linux/mutex.h>
#include <linux/slab.h>

#include "bench.h"

struct bench_object {
	union {
		struct fairwq_serializer serializer;
		struct {
			struct mutex mutex;	/* around the items of this object */
			struct bench_item *eventful;	/* item with @fn, or NULL */
			void (*fn)(struct bench_item *item);	/* of @eventful */
		};
	};
	struct fairwq_batch *batch;
};

/* ---- both sides of fairwq: one batch for all objects ---------------------- */

static int objects_open(struct bench_setup *setup, unsigned int active)
{
	const struct fairwq_pool_attrs attrs = {
		.max_active = active, .max_in_flight = 1, /* as in sides.c */
	};
	struct bench_object *objects;
	struct fairwq_batch *batch;
	unsigned int i;

	setup->pool = fairwq_pool_create(&attrs, "bench");
	if (IS_ERR(setup->pool)) {
		setup->pool = NULL;
		return -ENOMEM;
	}
	batch = fairwq_batch_create(setup->pool, NULL, "objects");
	if (IS_ERR(batch))
		return PTR_ERR(batch);
	objects = kvcalloc(setup->nr_channels, sizeof(*objects), GFP_KERNEL);
	if (!objects)
		return -ENOMEM;
	for (i = 0; i < setup->nr_channels; i++) {
		objects[i].batch = batch;
		setup->channel[i].object = &objects[i];
	}
	return 0;
}

static void objects_close(struct bench_setup *setup)
{
	if (!setup->pool)
		return;
	fairwq_pool_flush(setup->pool);
	fairwq_pool_destroy(setup->pool);	/* with the batch */
	kvfree(setup->channel[0].object);
}

/* ---- a serializer for each object ------------------------------------- */

static void serial_fn(struct fairwq_work *work)
{
	bench_run(container_of(work, struct bench_item, fairwq_work));
}

static void serial_init(struct bench_item *items, unsigned int nr)
{
	for (; nr--; items++)
		fairwq_work_init(&items->fairwq_work, serial_fn);
}

static __always_inline void serial_queue_one(union bench_channel channel,
					     struct bench_item *item)
{
	bench_accepted(fairwq_serializer_queue(&channel.object->serializer, channel.object->batch,
					       &item->fairwq_work));
}

static void serial_queue(struct bench_setup *setup, unsigned int at, unsigned int over,
			 struct bench_item *items, unsigned int nr)
{
	bench_rotate(setup, at, over, items, nr, serial_queue_one);
}

static int serial_open_with(struct bench_setup *setup, unsigned int active,
			    unsigned int budget_us)
{
	int err = objects_open(setup, active);
	struct fairwq_serializer *serializer;
	unsigned int i;

	for (i = 0; i < setup->nr_channels && !err; i++) {
		serializer = &setup->channel[i].object->serializer;
		fairwq_serializer_init(serializer);
		err = fairwq_serializer_set_inline(serializer, budget_us);
	}
	return err;
}

static int serial_open(struct bench_setup *setup, unsigned int active)
{
	return serial_open_with(setup, active, 0);
}

static int serial_inline_open(struct bench_setup *setup, unsigned int active)
{
	return serial_open_with(setup, active, 50);
}

static void serial_close(struct bench_setup *setup)
{
	unsigned int i;

	for (i = 0; i < setup->nr_channels && setup->channel[i].object; i++)
		fairwq_serializer_destroy(&setup->channel[i].object->serializer);
	objects_close(setup);
}

static const struct bench_ops serial_ops = {
	.open = serial_open, .close = serial_close, .init = serial_init,
	.queue = serial_queue, .settle = bench_pool_settle,
};

const struct bench_side bench_serial = {
	.name = "serial", .ops = &serial_ops,
};

static const struct bench_ops serial_inline_ops = {
	.open = serial_inline_open, .close = serial_close, .init = serial_init,
	.queue = serial_queue, .settle = bench_pool_settle,
};

const struct bench_side bench_serial_inline = {
	.name = "serial_inline", .ops = &serial_inline_ops,
};

/* ---- a mutex for each object, which its items take -------------------- */

/*
 * Run an item under the mutex of its object. The one word of an item points to
 * the object, so the object has the function. Hence only one item at a time may
 * have one.
 */
static void mutex_fn(struct fairwq_work *work)
{
	struct bench_item *item = container_of(work, struct bench_item, fairwq_work);
	struct bench_object *object = item->object;

	mutex_lock(&object->mutex);
	if (READ_ONCE(object->eventful) == item) {
		WRITE_ONCE(object->eventful, NULL);
		object->fn(item);
	}
	mutex_unlock(&object->mutex);
}

static void mutex_init_items(struct bench_item *items, unsigned int nr)
{
	for (; nr--; items++)
		fairwq_work_init(&items->fairwq_work, mutex_fn);
}

/* Queue an item, and move its function to the object. */
static __always_inline void mutex_queue_one(union bench_channel channel,
					    struct bench_item *item)
{
	if (item->fn) {
		WARN_ON_ONCE(channel.object->eventful);
		channel.object->fn = item->fn;
		WRITE_ONCE(channel.object->eventful, item);
	}
	item->object = channel.object;
	bench_accepted(fairwq_queue(channel.object->batch, &item->fairwq_work));
}

static void mutex_queue(struct bench_setup *setup, unsigned int at, unsigned int over,
			struct bench_item *items, unsigned int nr)
{
	bench_rotate(setup, at, over, items, nr, mutex_queue_one);
}

static int mutex_open(struct bench_setup *setup, unsigned int active)
{
	int err = objects_open(setup, active);
	unsigned int i;

	for (i = 0; i < setup->nr_channels && !err; i++)
		mutex_init(&setup->channel[i].object->mutex);
	return err;
}

static const struct bench_ops mutex_ops = {
	.open = mutex_open, .close = objects_close, .init = mutex_init_items,
	.queue = mutex_queue, .settle = bench_pool_settle,
};

const struct bench_side bench_mutex = {
	.name = "mutex", .ops = &mutex_ops,
};
