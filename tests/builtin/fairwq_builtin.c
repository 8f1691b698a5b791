// SPDX-License-Identifier: GPL-2.0
/*
 * Built-in clients: fairwq used from initcalls of the kernel image. Each client
 * starts at one initcall level, and makes the calls that a driver may make
 * there. The suite runs after all initcalls, and checks the results. Part of
 * the cell "7.3-builtin" of the matrix.
 */
#include <kunit/test.h>
#include <linux/atomic.h>
#include <linux/dcache.h>
#include <linux/debugfs.h>
#include <linux/init.h>

#include "fairwq.h"

#define ITEMS	100

struct client {
	const char *name;
	struct fairwq_pool *pool;
	struct fairwq_flows *flows;
	struct fairwq_work work[ITEMS];
	struct fairwq_work flow_work[ITEMS];
	struct fairwq_rcu_work rcu_work;
	int err;
	atomic_t ran;
	atomic_t released;
	int at_once;		/* number of items that had run in the initcall, after a flush */
};

static struct client core_client = { .name = "builtin-core" };
static struct client subsys_client = { .name = "builtin-subsys" };
static struct client late_client = { .name = "builtin-late" };

/* Count a run for @client if @work is one of its works. */
static void count(struct fairwq_work *work, struct client *client)
{
	if ((work >= client->work && work < client->work + ITEMS) ||
	    (work >= client->flow_work && work < client->flow_work + ITEMS) ||
	    work == &client->rcu_work.work)
		atomic_inc(&client->ran);
}

static void item_fn(struct fairwq_work *work)
{
	count(work, &core_client);
	count(work, &subsys_client);
	count(work, &late_client);
}

static void released(struct fairwq_batch *batch, void *priv)
{
	struct client *client = priv;

	atomic_inc(&client->released);
}

static int queue_all(struct client *client, struct fairwq_batch *batch)
{
	int i;

	for (i = 0; i < ITEMS; i++) {
		fairwq_work_init(&client->work[i], item_fn);
		fairwq_work_init(&client->flow_work[i], item_fn);
		if (fairwq_queue(batch, &client->work[i]) != 1 ||
		    fairwq_flows_queue(client->flows, i % 3, &client->flow_work[i]) != 1)
			return -EIO;
	}
	fairwq_rcu_work_init(&client->rcu_work, item_fn);
	return fairwq_queue_rcu(batch, &client->rcu_work) == 1 ? 0 : -EIO;
}

static int client_start(struct client *client)
{
	const struct fairwq_batch_attrs attrs = { .released = released, .priv = client };
	struct fairwq_batch *batch;

	client->pool = fairwq_pool_create(NULL, "%s", client->name);
	if (IS_ERR(client->pool))
		return client->err = PTR_ERR(client->pool);
	batch = fairwq_batch_create(client->pool, &attrs, "%s", client->name);
	if (IS_ERR(batch))
		return client->err = PTR_ERR(batch);
	client->flows = fairwq_flows_create(client->pool, NULL);
	if (IS_ERR(client->flows))
		return client->err = PTR_ERR(client->flows);
	client->err = queue_all(client, batch);
	fairwq_pool_flush(client->pool);
	client->at_once = atomic_read(&client->ran);
	fairwq_batch_dispose(batch);
	return client->err;
}

static int __init core_start(void)
{
	return client_start(&core_client);
}
core_initcall(core_start);

static int __init subsys_start(void)
{
	return client_start(&subsys_client);
}
subsys_initcall(subsys_start);

static int __init late_start(void)
{
	return client_start(&late_client);
}
late_initcall(late_start);

/* Check whether debugfs has a directory for the client's pool, with the file "summary". */
static bool is_shown(const struct client *client)
{
	struct dentry *root, *dir = NULL, *file = NULL;

	root = debugfs_lookup("fairwq", NULL);
	if (root)
		dir = debugfs_lookup(client->name, root);
	if (dir)
		file = debugfs_lookup("summary", dir);
	dput(file);
	dput(dir);
	dput(root);
	return file;
}

static void judge(struct kunit *test, struct client *client)
{
	KUNIT_ASSERT_EQ(test, 0, client->err);
	KUNIT_EXPECT_GE(test, client->at_once, 2 * ITEMS);
	fairwq_flows_destroy(client->flows);
	KUNIT_EXPECT_TRUE(test, is_shown(client));
	fairwq_pool_destroy(client->pool);
	KUNIT_EXPECT_EQ(test, 2 * ITEMS + 1, atomic_read(&client->ran));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&client->released));
	KUNIT_EXPECT_FALSE(test, is_shown(client));
}

static void builtin_test_core_initcall(struct kunit *test)
{
	judge(test, &core_client);
}

static void builtin_test_subsys_initcall(struct kunit *test)
{
	judge(test, &subsys_client);
}

static void builtin_test_late_initcall(struct kunit *test)
{
	judge(test, &late_client);
}

static struct kunit_case builtin_cases[] = {
	KUNIT_CASE(builtin_test_core_initcall),
	KUNIT_CASE(builtin_test_subsys_initcall),
	KUNIT_CASE(builtin_test_late_initcall),
	{ }
};

static struct kunit_suite builtin_suite = {
	.name = "fairwq_builtin",
	.test_cases = builtin_cases,
};

kunit_test_suite(builtin_suite);

MODULE_DESCRIPTION("Built-in clients of fairwq");
MODULE_LICENSE("GPL");
