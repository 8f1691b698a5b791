// SPDX-License-Identifier: GPL-2.0
/* The smallest user of fairwq: two clients take turns in one pool. */
#include <linux/delay.h>
#include <linux/module.h>
#include "fairwq.h"

struct greeting {			/* an object of the driver ... */
	struct fairwq_work work;	/* ... with its place in a queue inside */
	const char *from;
};

static struct fairwq_pool *pool;
static struct greeting anna[4], bert[1];

/* The item has its turn. The function may sleep, and may free the object. */
static void greet(struct fairwq_work *work)
{
	struct greeting *g = container_of(work, struct greeting, work);

	pr_info("hello from %s\n", g->from);
	msleep(20);
}

/* Create a batch for one client, queue its items, and dispose of the batch. */
static void serve_client(const char *name, struct greeting *g, int items)
{
	struct fairwq_batch *batch = fairwq_batch_create(pool, NULL, "%s", name);

	if (IS_ERR(batch))
		return;
	for (; items--; g++) {
		g->from = name;
		fairwq_work_init(&g->work, greet);
		if (fairwq_queue(batch, &g->work) < 0)
			pr_warn("hello: %s was refused\n", name);
	}
	fairwq_batch_dispose(batch);	/* accepted items still run */
}

static int __init hello_init(void)
{
	const struct fairwq_pool_attrs attrs = { .max_active = 1, .max_in_flight = 1 };

	pool = fairwq_pool_create(&attrs, "hello");
	if (IS_ERR(pool))
		return PTR_ERR(pool);
	serve_client("anna", anna, 4);	/* four items of anna, and yet */
	serve_client("bert", bert, 1);	/* bert's is the second, not the fifth */
	return 0;
}
module_init(hello_init);

static void __exit hello_exit(void)
{
	fairwq_pool_destroy(pool);	/* returns when all items have run */
}
module_exit(hello_exit);
MODULE_DESCRIPTION("The smallest user of fairwq");
MODULE_LICENSE("GPL");
