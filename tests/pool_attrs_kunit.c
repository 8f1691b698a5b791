// SPDX-License-Identifier: GPL-2.0
/*
 * Pool attributes that are handed to the workqueue: the name in sysfs, and the
 * CPU near which the runners work (promise 14).
 */
#include <linux/cpumask.h>
#include <linux/dcache.h>
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/fs_struct.h>
#include <linux/path.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/workqueue.h>

#include "lib/fixture.h"

static int create_error(const struct fairwq_pool_attrs *attrs, const char *name)
{
	struct fairwq_pool *pool = fairwq_pool_create(attrs, "%s", name);

	if (IS_ERR(pool))
		return PTR_ERR(pool);
	fairwq_pool_destroy(pool);
	return 0;
}

/* ---- the name in sysfs -------------------------------------------------- */

#define WQ_DIR	"/sys/devices/virtual/workqueue/"

/* Open a file below WQ_DIR in the root of init, because kernel threads may have another one. */
static struct file *open_in_sysfs(const char *name, int flags)
{
	char *where = kasprintf(GFP_KERNEL, WQ_DIR "%s", name);
	struct path root;
	struct file *file;

	if (!where)
		return ERR_PTR(-ENOMEM);
	get_fs_root(init_pid_ns.child_reaper->fs, &root);
	file = file_open_root(&root, where, flags, 0);
	path_put(&root);
	kfree(where);
	return file;
}

static bool is_in_sysfs(const char *name)
{
	struct file *file = open_in_sysfs(name, O_RDONLY);

	if (IS_ERR(file))
		return false;
	filp_close(file, NULL);
	return true;
}

static void name_in_sysfs_is_the_pools(struct kunit *test)
{
	struct fairwq_pool_attrs attrs = { .flags = FAIRWQ_SYSFS };
	struct fairwq_pool *pool;

	KUNIT_EXPECT_EQ(test, -EINVAL, create_error(&attrs, ""));
	if (!is_in_sysfs(""))
		kunit_skip(test, "sysfs is not mounted");
	pool = fairwq_pool_create(&attrs, "mock/pool");
	KUNIT_ASSERT_FALSE(test, IS_ERR(pool));
	KUNIT_EXPECT_TRUE(test, is_in_sysfs("mock!pool/cpumask"));
	/* Others may have the name, if they are not in sysfs. */
	KUNIT_EXPECT_EQ(test, 0, create_error(NULL, "mock/pool"));
	fairwq_pool_destroy(pool);
	KUNIT_EXPECT_FALSE(test, is_in_sysfs("mock!pool"));
	KUNIT_EXPECT_EQ(test, 0, create_error(&attrs, "mock/pool"));
}

/* A name in sysfs is given once. The kernel prints a stack. */
static void name_of_another_workqueue_is_refused(struct kunit *test)
{
	struct fairwq_pool_attrs attrs = { .flags = FAIRWQ_SYSFS };
	struct workqueue_struct *wq;
	int err;

	if (!is_in_sysfs(""))
		kunit_skip(test, "sysfs is not mounted");
	wq = alloc_workqueue("mock-other", WQ_UNBOUND | WQ_SYSFS, 0);
	KUNIT_ASSERT_NOT_NULL(test, wq);
	pr_info("# expect-splat begin Call Trace\n");
	err = create_error(&attrs, "mock-other");
	pr_info("# expect-splat end\n");
	KUNIT_EXPECT_EQ(test, -ENOMEM, err);
	destroy_workqueue(wq);
	KUNIT_EXPECT_EQ(test, 0, create_error(&attrs, "mock-other"));
	/* A file that the kernel itself has there. */
	pr_info("# expect-splat begin Call Trace\n");
	KUNIT_EXPECT_EQ(test, -ENOMEM, create_error(&attrs, "cpumask"));
	pr_info("# expect-splat end\n");
}

/* ---- names in debugfs ---------------------------------------------------- */

/* Check whether debugfs shows @pool in a folder called @name. */
static bool is_in_debugfs(const struct fairwq_pool *pool, const char *name)
{
	struct dentry *top = debugfs_lookup("fairwq", NULL);
	struct dentry *dir = debugfs_lookup(name, top);
	struct dentry *file = dir ? debugfs_lookup("summary", dir) : NULL;
	bool found = file && d_inode(file)->i_private == pool;

	dput(file);
	dput(dir);
	dput(top);
	return found;
}

#define NAME_47 "a-name-of-47-letters-xxxxxxxxxxxxxxxxxxxxxxxxxx"

/* Whatever its name is, a pool has a folder, and so has a second one of the name. */
static void each_pool_has_a_folder(struct kunit *test)
{
	static const struct {
		const char *name, *first, *second;
	} row[] = {
		{ "plain", "plain", "plain-2" },
		{ "", "!", "!-2" },
		{ ".", "!.", "!.-2" },
		{ "..", "!..", "!..-2" },
		{ "...", "...", "...-2" },
		{ "/", "!", "!-2" },
		{ "a/b", "a!b", "a!b-2" },
		{ "../x", "..!x", "..!x-2" },
		{ " ", " ", " -2" },
		{ "version", "version-2", "version-3" },
		{ "\n", "?", "?-2" },
		{ NAME_47 "/" NAME_47, NAME_47 "!a-name-of-47-le", NAME_47 "!-2" },
	};
	struct fairwq_pool *first, *second;
	int i;

	if (!debugfs_initialized())
		kunit_skip(test, "no debugfs");
	for (i = 0; i < ARRAY_SIZE(row); i++) {
		first = fairwq_pool_create(NULL, "%s", row[i].name);
		KUNIT_ASSERT_FALSE(test, IS_ERR(first));
		second = fairwq_pool_create(NULL, "%s", row[i].name);
		KUNIT_EXPECT_FALSE(test, IS_ERR(second));
		KUNIT_EXPECT_TRUE_MSG(test, is_in_debugfs(first, row[i].first), "%s",
				      row[i].first);
		if (!IS_ERR(second))
			KUNIT_EXPECT_TRUE_MSG(test, is_in_debugfs(second, row[i].second), "%s",
					      row[i].second);
		fairwq_pool_destroy(second);
		fairwq_pool_destroy(first);
		KUNIT_EXPECT_FALSE(test, is_in_debugfs(first, row[i].first));
	}
}

/* ---- near a CPU --------------------------------------------------------- */

static void odd_cpus_are_refused(struct kunit *test)
{
	struct fairwq_pool_attrs attrs = { .flags = FAIRWQ_NEAR, .cpu = nr_cpu_ids };

	KUNIT_EXPECT_EQ(test, -EINVAL, create_error(&attrs, "a"));
	attrs.cpu = UINT_MAX;
	KUNIT_EXPECT_EQ(test, -EINVAL, create_error(&attrs, "a"));
	attrs.cpu = 0;
	KUNIT_EXPECT_EQ(test, 0, create_error(&attrs, "a"));
	attrs.flags = 0;
	KUNIT_EXPECT_EQ(test, 0, create_error(&attrs, "a"));
	attrs.cpu = 1;
	KUNIT_EXPECT_EQ(test, -EINVAL, create_error(&attrs, "a"));
}

/* Write to a file below WQ_DIR. Return: false on an error; before 6.6 there are no scopes. */
static bool write_wq(const char *name, const char *text)
{
	struct file *file = open_in_sysfs(name, O_WRONLY);
	loff_t pos = 0;
	ssize_t ret;

	if (IS_ERR(file))
		return false;
	ret = kernel_write(file, text, strlen(text), &pos);
	filp_close(file, NULL);
	return ret == strlen(text);
}

struct near {
	struct fairwq_work work;
	unsigned int cpu;
	atomic_t ran, far;
	struct completion done;
};

static void note_cpu(struct near *near)
{
	atomic_inc(&near->ran);
	if (raw_smp_processor_id() != near->cpu)
		atomic_inc(&near->far);
}

static void near_fn(struct fairwq_work *work)
{
	struct near *near = container_of(work, struct near, work);

	note_cpu(near);
	complete(&near->done);
}

static int near_part(unsigned long from, unsigned long to, void *arg)
{
	note_cpu(arg);
	/* So that another runner takes the next part; any time will do. */
	usleep_range(500, 1000);
	return 0;
}

/* With a strict affinity scope of one CPU, all items run on it, wherever the caller is. */
static void runners_work_near_their_cpu(struct kunit *test)
{
	struct fairwq_pool_attrs attrs = { .flags = FAIRWQ_SYSFS | FAIRWQ_NEAR, .max_active = 3 };
	struct near *near = kunit_kzalloc(test, sizeof(*near), GFP_KERNEL);
	struct fairwq_pool *pool;
	unsigned int cpu, i;

	KUNIT_ASSERT_NOT_NULL(test, near);
	attrs.cpu = cpumask_last(cpu_online_mask);
	near->cpu = attrs.cpu;
	fairwq_work_init(&near->work, near_fn);
	pool = fairwq_pool_create(&attrs, "mock-near");
	KUNIT_ASSERT_FALSE(test, IS_ERR(pool));
	if (!write_wq("mock-near/affinity_scope", "cpu") ||
	    !write_wq("mock-near/affinity_strict", "1")) {
		fairwq_pool_destroy(pool);
		kunit_skip(test, "no affinity scopes");
	}
	for_each_online_cpu(cpu) {
		set_cpus_allowed_ptr(current, cpumask_of(cpu));
		for (i = 0; i < 10; i++) {
			init_completion(&near->done);
			KUNIT_EXPECT_EQ(test, 1, mock_pool_queue(pool, &near->work));
			mock_await(test, &near->done);
		}
		KUNIT_EXPECT_EQ(test, 0, fairwq_parallel_for(fairwq_pool_default_batch(pool, 0),
							     0, 20, 1, near_part, near));
	}
	set_cpus_allowed_ptr(current, cpu_possible_mask);
	fairwq_pool_destroy(pool);
	KUNIT_EXPECT_EQ(test, 30U * num_online_cpus(), (unsigned int)atomic_read(&near->ran));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&near->far));
}

static struct kunit_case pool_attrs_cases[] = {
	KUNIT_CASE(name_in_sysfs_is_the_pools),
	KUNIT_CASE(name_of_another_workqueue_is_refused),
	KUNIT_CASE(each_pool_has_a_folder),
	KUNIT_CASE(odd_cpus_are_refused),
	KUNIT_CASE(runners_work_near_their_cpu),
	{}
};

static struct kunit_suite pool_attrs_suite = {
	.name = "fairwq_pool_attrs",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = pool_attrs_cases,
};

kunit_test_suite(pool_attrs_suite);

MODULE_DESCRIPTION("KUnit: attributes of pools that their workqueue has");
MODULE_LICENSE("GPL");
