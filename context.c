// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts: on whose behalf a function runs. A context is captured by the
 * caller that queues, and entered by the item.
 *
 *   Of the caller    The item enters it by       What uses it
 *   ---------------  --------------------------  ----------------------------
 *   credentials      override_creds()            files, permissions, keys
 *   memory cgroup    set_active_memcg()          allocations, __GFP_ACCOUNT
 *   block cgroup     kthread_associate_blkcg()   bios that the function submits
 *
 * They are left in the opposite order, whatever the function has done
 * meanwhile: see call.c for what a function may leave behind. The tasks that
 * the function forks run in the context, too: run_task() in forkjoin.c. The
 * function must join them. The tasks that were forked before are put aside
 * meanwhile, because theirs is another context.
 *
 * Locking: a lock of its own for threads that are no runners.
 * Invariant: runner->context is what the item runs in at the moment, or NULL.
 * The tasks that it promotes take it along.
 *
 * Limits: no namespace, no address space and no scheduling class is captured.
 */
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/export.h>
#include <linux/kthread.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "core/call.h"
#include "core/fork.h"
#include "core/runner.h"
#include "doors.h"

/* A thread that is no runner, in a context. On the stack of its call. */
struct in_context {
	struct list_head node;
	struct task_struct *task;
	struct fairwq_context *context;
};

/* Those threads, the innermost call of each first; under the lock. */
static LIST_HEAD(fairwq_in_context);
static DEFINE_SPINLOCK(fairwq_in_context_lock);

/* Return the context that the caller is in, or NULL. The kernel does not tell. */
static struct fairwq_context *current_context(void)
{
	const struct fairwq_runner *runner = fairwq_runner_current();
	struct in_context *in;

	if (runner)
		return runner->context;
	guard(spinlock)(&fairwq_in_context_lock);
	list_for_each_entry(in, &fairwq_in_context, node)
		if (in->task == current)
			return in->context;
	return NULL;
}

/* ---- capture ------------------------------------------------------------- */

/*
 * Return the block cgroup of the caller, with a reference; or NULL if the
 * kernel has none. A kernel thread is in that of its context, and not in that
 * of its task.
 */
static struct cgroup_subsys_state *get_blkcg(void)
{
#ifdef CONFIG_BLK_CGROUP
	const struct fairwq_context *context = current->flags & PF_KTHREAD ? current_context() :
									     NULL;

	if (!context)
		return task_get_css(current, io_cgrp_id);
	css_get(context->blkcg);
	return context->blkcg;
#else
	return NULL;
#endif
}

struct fairwq_context *fairwq_context_capture(gfp_t gfp)
{
	struct fairwq_context *context;

	if (WARN_ON_ONCE(!in_task()))
		return ERR_PTR(-EINVAL);
	context = kzalloc(sizeof(*context), gfp);
	if (!context)
		return ERR_PTR(-ENOMEM);
	kref_init(&context->refs);
	context->cred = get_current_cred();
	context->memcg = get_mem_cgroup_from_mm(NULL);
	context->blkcg = get_blkcg();
	return context;
}
EXPORT_SYMBOL_GPL(fairwq_context_capture);

struct fairwq_context *fairwq_context_get(struct fairwq_context *context)
{
	if (!IS_ERR_OR_NULL(context))
		kref_get(&context->refs);
	return context;
}
EXPORT_SYMBOL_GPL(fairwq_context_get);

static void context_free(struct kref *refs)
{
	struct fairwq_context *context = container_of(refs, struct fairwq_context, refs);

	if (context->blkcg)
		css_put(context->blkcg);
	mem_cgroup_put(context->memcg);
	put_cred(context->cred);
	kfree(context);
}

void fairwq_context_put(struct fairwq_context *context)
{
	if (!IS_ERR_OR_NULL(context))
		kref_put(&context->refs, context_free);
}
EXPORT_SYMBOL_GPL(fairwq_context_put);

/* ---- call ----------------------------------------------------------------- */

void fairwq_context_call(struct fairwq_context *context, void (*func)(void *arg), void *arg)
{
	struct fairwq_runner *runner = fairwq_runner_current();
	struct in_context in = { .task = current, .context = context };
	struct fairwq_context *outer = current_context();
	struct fairwq_serializer *serializer = runner ? runner->turn.serializer : NULL;
	struct fairwq_call_state state;
	struct mem_cgroup *memcg;
	const struct cred *cred;
	struct list_head *shared = runner ? runner->forker.shared : NULL;
	LIST_HEAD(forks);

	might_sleep();
	if (WARN_ON_ONCE(fairwq_is_no_pointer(context)))
		return;
	/* @func may put the caller's reference, with the object that has it. */
	fairwq_context_get(context);
	cred = override_creds(context->cred);
	memcg = set_active_memcg(context->memcg);
	kthread_associate_blkcg(context->blkcg);
	if (runner) {
		WRITE_ONCE(runner->context, context);
		list_splice_init(&runner->forker.forks.list, &forks);
		runner->forker.shared = &runner->forker.forks.list;
	} else {
		scoped_guard(spinlock, &fairwq_in_context_lock)
			list_add(&in.node, &fairwq_in_context);
	}
	fairwq_call_begin(&state);
	func(arg);
	if (runner) {
		/* The item is the last of its serializer, and has let go of its lockdep map. */
		if (runner->turn.serializer != serializer && state.locks)
			state.locks--;
		/* Here, because what follows may wait, and other credentials would hide a leak. */
		if (!fairwq_call_state_kept(&state))
			fairwq_call_leaked(&state, runner->turn.func, runner->turn.batch);
		fairwq_forks_end(runner);
		list_splice(&forks, &runner->forker.forks.list);
		runner->forker.shared = shared;
		WRITE_ONCE(runner->context, outer);
	} else {
		scoped_guard(spinlock, &fairwq_in_context_lock)
			list_del(&in.node);
	}
	kthread_associate_blkcg(outer ? outer->blkcg : NULL);
	set_active_memcg(memcg);
	revert_creds(cred);
	fairwq_context_put(context);
}
EXPORT_SYMBOL_GPL(fairwq_context_call);
