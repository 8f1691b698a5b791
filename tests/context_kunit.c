// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts: in fairwq_context_call() an item acts as the task that captured the
 * context. Before and after that, the worker acts as itself.
 *
 * The cases check this from outside: by files that an item can or cannot open,
 * by reference counts of credentials, and by charges to cgroups.
 */
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/fs_struct.h>
#include <linux/gfp.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/path.h>
#include <linux/percpu-refcount.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>

#include "lib/fixture.h"
#include "lib/look.h"

#define SECRET	"tmp/fairwq_secret"
#define USER	KUIDT_INIT(1000)

/* An item that notes what it is allowed to do, in a context if it has one. */
struct context_item {
	struct fairwq_work work;
	struct fairwq_context *context;	/* without a reference, or NULL */
	struct completion done;
	kuid_t uid;
	long opened;			/* 0, or the error of opening SECRET */
	struct mem_cgroup *memcg;
	struct mem_cgroup *charged;	/* for a page that take_page() has taken, or NULL */
	bool blind;			/* opens no file, because that keeps credentials a while */
	void (*does)(struct context_item *item); /* called by the item, or NULL */
	struct fairwq_context *captured; /* by the item itself */
	const struct cred *leaves;	/* overrides its credentials, and stays; or NULL */
};

static struct mem_cgroup *active_memcg(void)
{
	struct mem_cgroup *memcg = set_active_memcg(NULL);

	set_active_memcg(memcg);
	return memcg;
}

/* The root of the first process of the guest, because a kernel thread may have none. */
static struct path guest_root;

/* Open SECRET, which root owns. Return: 0, or a negative error. */
static long open_secret(int flags)
{
	struct file *file = file_open_root(&guest_root, SECRET, flags, 0600);

	if (IS_ERR(file))
		return PTR_ERR(file);
	filp_close(file, NULL);
	return 0;
}

static long try_open(void)
{
	return open_secret(O_RDONLY);
}

static void note(struct context_item *item)
{
	item->uid = current_fsuid();
	item->opened = item->blind ? 0 : try_open();
	item->memcg = active_memcg();
}

static void act(void *arg)
{
	struct context_item *item = arg;

	note(item);
	if (item->does)
		item->does(item);
}

static void context_item_fn(struct fairwq_work *work)
{
	struct context_item *item = container_of(work, struct context_item, work);

	if (item->context)
		fairwq_context_call(item->context, act, item);
	else
		act(item);
	complete(&item->done);
}

static struct context_item *context_item(struct kunit *test, struct fairwq_context *context)
{
	struct context_item *item = kunit_kzalloc(test, sizeof(*item), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, item);
	init_completion(&item->done);
	fairwq_work_init(&item->work, context_item_fn);
	item->context = context;
	return item;
}

/* Queue @item, and wait until its function is about to return. */
static void run(struct kunit *test, struct fairwq_batch *batch, struct context_item *item)
{
	reinit_completion(&item->done);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch, &item->work));
	mock_await(test, &item->done);
}

/* Make credentials of a user without capabilities. */
static struct cred *user_cred(struct kunit *test)
{
	struct cred *cred = prepare_creds();

	KUNIT_ASSERT_NOT_NULL(test, cred);
	cred->uid = USER;
	cred->euid = USER;
	cred->fsuid = USER;
	cap_clear(cred->cap_effective);
	cap_clear(cred->cap_permitted);
	return cred;
}

/* Capture a context in a task with the credentials of that user. */
static struct fairwq_context *user_context(struct kunit *test)
{
	struct cred *cred = user_cred(test);
	const struct cred *old = override_creds(cred);
	struct fairwq_context *context = fairwq_context_capture(GFP_KERNEL);

	revert_creds(old);
	put_cred(cred);
	KUNIT_ASSERT_FALSE(test, IS_ERR(context));
	return context;
}

static void make_secret(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, 0, open_secret(O_RDWR | O_CREAT));
}

/* Return the reference count, which is an atomic_t or an atomic_long_t. */
static long nr_refs(const struct cred *cred)
{
	return READ_ONCE(cred->usage.counter);
}

/* ---- credentials ------------------------------------------------------- */

/* An item opens only what its user may open. An item without a context is root. */
static void item_opens_only_what_its_user_may(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct fairwq_context *context = user_context(test);
	struct context_item *user = context_item(test, context);
	struct context_item *root = context_item(test, NULL);

	make_secret(test);
	mock_open(test);
	run(test, a, user);
	run(test, a, root);	/* by the same runner */
	run(test, a, user);
	KUNIT_EXPECT_EQ(test, 1000, __kuid_val(user->uid));
	KUNIT_EXPECT_EQ(test, -EACCES, user->opened);
	KUNIT_EXPECT_EQ(test, 0, __kuid_val(root->uid));
	KUNIT_EXPECT_EQ(test, 0, root->opened);
	fairwq_context_put(context);
}

/* A burst runs two items in one turn. The context of the first ends with that item. */
static void context_ends_with_its_item_in_a_burst(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct fairwq_context *context = user_context(test);
	struct context_item *user = context_item(test, context);
	struct context_item *root = context_item(test, NULL);
	struct fairwq_serializer serial;

	make_secret(test);
	fairwq_serializer_init(&serial);
	KUNIT_ASSERT_EQ(test, 0, fairwq_serializer_set_inline(&serial, 1000));
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&serial, a, &user->work));
	KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&serial, a, &root->work));
	mock_open(test);
	mock_await(test, &user->done);
	mock_await(test, &root->done);
	fairwq_serializer_destroy(&serial);
	KUNIT_EXPECT_EQ(test, -EACCES, user->opened);
	KUNIT_EXPECT_EQ(test, 0, root->opened);
	fairwq_context_put(context);
}

static void capture_again(struct context_item *item)
{
	item->captured = fairwq_context_capture(GFP_KERNEL);
}

/* An item captures the context that it runs in. */
static void item_captures_what_it_runs_in(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct fairwq_context *context = user_context(test);
	struct context_item *first = context_item(test, context), *second;

	make_secret(test);
	mock_open(test);
	first->does = capture_again;
	run(test, a, first);
	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(first->captured));
	second = context_item(test, first->captured);
	run(test, a, second);
	KUNIT_EXPECT_EQ(test, -EACCES, second->opened);
	fairwq_context_put(first->captured);
	fairwq_context_put(context);
}

/* ---- references -------------------------------------------------------- */

/* Calls keep no reference to the credentials. */
static void no_reference_leaks(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	const struct cred *own = current_cred();
	struct cred *cred = user_cred(test);
	const struct cred *old = override_creds(cred);
	struct fairwq_context *context = fairwq_context_capture(GFP_KERNEL);
	struct context_item *item;
	long before, i;

	revert_creds(old);
	KUNIT_ASSERT_FALSE(test, IS_ERR(context));
	item = context_item(test, context);
	item->blind = true;
	mock_open(test);
	run(test, a, item);
	/* The runner may not have left the context of the last run. */
	fairwq_batch_flush(a);
	before = nr_refs(cred);
	for (i = 0; i < 10; i++)
		run(test, a, item);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, before, nr_refs(cred));
	fairwq_context_put(context);
	KUNIT_EXPECT_EQ(test, 1, nr_refs(cred));
	KUNIT_EXPECT_PTR_EQ(test, own, current_cred());
	put_cred(cred);
}

/* A driver need not check that its capture went well before it hands the result on. */
static void failed_capture_is_ignored(struct kunit *test)
{
	struct fairwq_context *failed = ERR_PTR(-ENOMEM);

	KUNIT_EXPECT_PTR_EQ(test, failed, fairwq_context_get(failed));
	KUNIT_EXPECT_PTR_EQ(test, NULL, fairwq_context_get(NULL));
	fairwq_context_put(failed);
	fairwq_context_put(NULL);
}

/* A request that its own function frees, with its context, before it opens SECRET. */
struct request {
	struct fairwq_context *context;
	long *opened;
};

static void free_yourself(void *arg)
{
	struct request *request = arg;
	long *opened = request->opened;

	fairwq_context_put(request->context);
	kfree(request);
	*opened = try_open();
}

/* A function may put the last reference to its context, which lasts until it returns. */
static void function_may_put_its_context(struct kunit *test)
{
	struct request *request = kzalloc(sizeof(*request), GFP_KERNEL);
	long opened = 1;

	KUNIT_ASSERT_NOT_NULL(test, request);
	make_secret(test);
	request->context = user_context(test);
	request->opened = &opened;
	fairwq_context_call(request->context, free_yourself, request);
	KUNIT_EXPECT_EQ(test, -EACCES, opened);
}

/* ---- credentials that the function leaves behind ----------------------- */

static void leave_creds(struct context_item *item)
{
	override_creds(item->leaves);
}

/* Credentials that a function leaves behind are reported and put back. */
static void what_the_function_leaves_is_undone(struct kunit *test)
{
	struct mock *mock = test->priv;
	struct fairwq_batch *a = mock_begin(test, 1);
	struct fairwq_context *context = user_context(test);
	struct context_item *item = context_item(test, context);
	struct context_item *root = context_item(test, NULL);
	struct cred *other = user_cred(test);
	long refs;

	make_secret(test);
	mock_open(test);
	item->blind = true;
	item->does = leave_creds;
	item->leaves = other;
	refs = nr_refs(other);
	pr_info("# expect-splat begin item leaked atomic\n");
	run(test, a, item);
	fairwq_batch_flush(a);
	pr_info("# expect-splat end\n");
	run(test, a, root);
	KUNIT_EXPECT_EQ(test, 0, root->opened);
	KUNIT_EXPECT_EQ(test, 0, __kuid_val(root->uid));
	KUNIT_EXPECT_EQ(test, refs, nr_refs(other));
	KUNIT_EXPECT_EQ(test, 1, mock_counter(mock->pool, FAIRWQ_LEAKS));
	fairwq_context_put(context);
	put_cred(other);
}

/* ---- calls and tasks ---------------------------------------------------- */

static void open_into(void *arg)
{
	*(long *)arg = try_open();
}

/* fairwq_context_call() enters the context for the function, and leaves it after that. */
static void call_is_for_the_function_only(struct kunit *test)
{
	struct fairwq_context *context = user_context(test);
	long opened = 1;

	make_secret(test);
	fairwq_context_call(context, open_into, &opened);
	KUNIT_EXPECT_EQ(test, -EACCES, opened);
	KUNIT_EXPECT_EQ(test, 0, try_open());
	fairwq_context_put(context);
}

/* One of two tasks that wait for each other, so two runners must run them. */
struct pair {
	struct fairwq_task task;
	struct completion *mine, *other;
	long opened;
	struct completion begun;
	bool met;
};

static void pair_fn(struct fairwq_task *self)
{
	struct pair *pair = container_of(self, struct pair, task);

	complete(&pair->begun);
	complete(pair->mine);
	pair->met = mock_wait(pair->other);
	pair->opened = try_open();
}

static struct pair pairs[2];

static void fork_pair(struct context_item *item)
{
	struct fairwq_task self;
	unsigned int i;

	fairwq_task_here(&self);
	for (i = 0; i < 2; i++) {
		init_completion(&pairs[i].begun);
		fairwq_task_init(&pairs[i].task, pair_fn);
		fairwq_fork(&self, &pairs[i].task);
	}
	/* Another runner takes the first task while this one, or a third, runs the second. */
	mock_fork_until(&self, &pairs[0].begun);
	fairwq_join(&self, &pairs[1].task);
	fairwq_join(&self, &pairs[0].task);
	item->opened = try_open();
}

/* Tasks run in the context of their item, also a task that another runner takes. */
static void tasks_run_in_the_context_of_their_item(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 3);
	struct fairwq_context *context = user_context(test);
	struct context_item *item = context_item(test, context);
	struct context_item *root = context_item(test, NULL);
	struct completion met[2];
	unsigned int i;

	make_secret(test);
	for (i = 0; i < 2; i++) {
		init_completion(&met[i]);
		pairs[i] = (struct pair){ .mine = &met[i], .other = &met[!i] };
	}
	mock_open(test);
	item->does = fork_pair;
	run(test, a, item);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_TRUE(test, pairs[i].met);
		KUNIT_EXPECT_EQ(test, -EACCES, pairs[i].opened);
	}
	KUNIT_EXPECT_EQ(test, -EACCES, item->opened);
	for (i = 0; i < 6; i++) {
		run(test, a, root);
		KUNIT_EXPECT_EQ(test, 0, root->opened);
	}
	fairwq_context_put(context);
}

/* ---- memory ------------------------------------------------------------ */

/* The captured memory cgroup is active in the item, and no cgroup is active after it. */
static void item_charges_the_captured_cgroup(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct context_item *item, *root = context_item(test, NULL);
	struct fairwq_context *context;

	if (!IS_ENABLED(CONFIG_MEMCG))
		kunit_skip(test, "a kernel without memory cgroups");
	context = user_context(test);
	item = context_item(test, context);
	mock_open(test);
	run(test, a, item);
	run(test, a, root);
	KUNIT_EXPECT_NOT_NULL(test, item->memcg);
	KUNIT_EXPECT_NULL(test, root->memcg);
	fairwq_context_put(context);
}

#ifdef CONFIG_MEMCG
/* Take a page, and note which cgroup it is charged to. */
static void take_page(struct context_item *item)
{
	struct page *page = alloc_page(GFP_KERNEL_ACCOUNT);

	if (!page)
		return;
	rcu_read_lock();
	item->charged = folio_memcg(page_folio(page));
	rcu_read_unlock();
	__free_page(page);
}
#else
static void take_page(struct context_item *item)
{
}
#endif

/* The context of the task that loaded the suite, captured before the first case. */
static struct fairwq_context *loader_context;

/* A page of an item is charged to the captured cgroup, without a context to none. */
static void page_is_charged_to_the_captured_cgroup(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct context_item *item = context_item(test, loader_context);
	struct context_item *root = context_item(test, NULL);

	mock_open(test);
	item->does = take_page;
	root->does = take_page;
	run(test, a, item);
	run(test, a, root);
	run(test, a, item);
	if (!item->charged)
		kunit_skip(test, "the suite was loaded by a task in no memory cgroup");
	KUNIT_EXPECT_PTR_EQ(test, item->charged, loader_context->memcg);
	KUNIT_EXPECT_NULL(test, root->charged);
}

/* ---- block cgroups -------------------------------------------------------- */

#ifdef CONFIG_BLK_CGROUP
static void nothing_to_release(struct percpu_ref *ref)
{
}

/* Capture a context, and give it a block cgroup that only counts its references. */
static struct fairwq_context *counting_context(struct kunit *test)
{
	struct cgroup_subsys_state *css = kunit_kzalloc(test, sizeof(*css), GFP_KERNEL);
	struct fairwq_context *context = fairwq_context_capture(GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, css);
	KUNIT_ASSERT_FALSE(test, IS_ERR(context));
	KUNIT_ASSERT_EQ(test, 0, percpu_ref_init(&css->refcnt, nothing_to_release,
						 PERCPU_REF_INIT_ATOMIC, GFP_KERNEL));
	css_put(context->blkcg);
	context->blkcg = css;
	return context;
}

static long nr_blkcg_refs(const struct fairwq_context *context)
{
	return atomic_long_read(&context->blkcg->refcnt.data->count);
}

static void counting_put(struct fairwq_context *context)
{
	struct cgroup_subsys_state *css = context->blkcg;

	fairwq_context_put(context);
	percpu_ref_exit(&css->refcnt);
}

/* A call in a context, which calls in another one. */
struct nested {
	struct fairwq_context *outer, *inner;
	long idle, before, after;	/* references to the block cgroup of @outer */
	long captured;			/* and with another context captured there */
};

static void do_nothing(void *arg)
{
}

static void call_the_inner(void *arg)
{
	struct nested *nested = arg;
	struct fairwq_context *context;

	nested->before = nr_blkcg_refs(nested->outer);
	fairwq_context_call(nested->inner, do_nothing, NULL);
	nested->after = nr_blkcg_refs(nested->outer);
	context = fairwq_context_capture(GFP_KERNEL);
	nested->captured = nr_blkcg_refs(nested->outer);
	fairwq_context_put(context);
}

/*
 * Calls nest in a thread, as in an item: after the inner one the thread is in
 * the block cgroup of the outer one. The thread has a reference to the block
 * cgroup that it is in. A context that is captured there has one more.
 */
static void calls_nest_in_a_thread(struct kunit *test)
{
	struct nested nested = {
		.outer = counting_context(test), .inner = counting_context(test),
	};

	nested.idle = nr_blkcg_refs(nested.outer);
	fairwq_context_call(nested.outer, call_the_inner, &nested);
	KUNIT_EXPECT_EQ(test, nested.idle + 1, nested.before);
	KUNIT_EXPECT_EQ(test, nested.idle, nr_blkcg_refs(nested.outer));
	counting_put(nested.outer);
	counting_put(nested.inner);
	KUNIT_EXPECT_EQ(test, nested.before, nested.after);
	KUNIT_EXPECT_EQ(test, nested.before + 1, nested.captured);
}
#else
static void calls_nest_in_a_thread(struct kunit *test)
{
	kunit_skip(test, "a kernel without block cgroups");
}
#endif

/* The last item of a serializer, which ends that in a context. */
static struct {
	struct fairwq_work work;
	struct fairwq_serializer serializer;
	struct fairwq_context *context;
	struct completion done;
} last;

static void end_serializer(void *arg)
{
	fairwq_serializer_destroy(&last.serializer);
}

static void last_fn(struct fairwq_work *work)
{
	fairwq_context_call(last.context, end_serializer, NULL);
	complete(&last.done);
}

/* It leaves nothing behind by that. */
static void last_item_ends_its_serializer_in_a_context(struct kunit *test)
{
	struct fairwq_batch *a = mock_begin(test, 1);
	struct mock *mock = test->priv;

	mock_open(test);
	last.context = fairwq_context_capture(GFP_KERNEL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(last.context));
	init_completion(&last.done);
	fairwq_serializer_init(&last.serializer);
	fairwq_work_init(&last.work, last_fn);
	KUNIT_EXPECT_EQ(test, 1, fairwq_serializer_queue(&last.serializer, a, &last.work));
	mock_await(test, &last.done);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 0ULL, mock_counter(mock->pool, FAIRWQ_LEAKS));
	fairwq_context_put(last.context);
}

static struct kunit_case context_cases[] = {
	KUNIT_CASE(item_opens_only_what_its_user_may),
	KUNIT_CASE(context_ends_with_its_item_in_a_burst),
	KUNIT_CASE(item_captures_what_it_runs_in),
	KUNIT_CASE(no_reference_leaks),
	KUNIT_CASE(failed_capture_is_ignored),
	KUNIT_CASE(function_may_put_its_context),
	KUNIT_CASE(what_the_function_leaves_is_undone),
	KUNIT_CASE(call_is_for_the_function_only),
	KUNIT_CASE(tasks_run_in_the_context_of_their_item),
	KUNIT_CASE(item_charges_the_captured_cgroup),
	KUNIT_CASE(page_is_charged_to_the_captured_cgroup),
	KUNIT_CASE(calls_nest_in_a_thread),
	KUNIT_CASE(last_item_ends_its_serializer_in_a_context),
	{ }
};

/* Set @guest_root and @loader_context. Return: 0, or a negative error. */
static int find_root(struct kunit_suite *suite)
{
	struct pid *pid = find_get_pid(1);
	struct task_struct *task = get_pid_task(pid, PIDTYPE_PID);

	put_pid(pid);
	if (!task)
		return -ESRCH;
	task_lock(task);
	get_fs_root(task->fs, &guest_root);
	task_unlock(task);
	put_task_struct(task);
	loader_context = fairwq_context_capture(GFP_KERNEL);
	if (!IS_ERR(loader_context))
		return 0;
	path_put(&guest_root);
	return PTR_ERR(loader_context);
}

static void put_root(struct kunit_suite *suite)
{
	fairwq_context_put(loader_context);
	path_put(&guest_root);
}

static struct kunit_suite context_suite = {
	.name = "fairwq_context",
	.suite_init = find_root,
	.suite_exit = put_root,
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = context_cases,
};

kunit_test_suite(context_suite);

MODULE_DESCRIPTION("KUnit: on whose behalf an item runs");
MODULE_LICENSE("GPL");
