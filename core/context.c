// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts: on whose behalf an item runs. A context is captured by the caller that
 * queues, and entered by the runner.
 *
 *   Of the caller           The runner enters it by       What uses it
 *   ----------------------  ----------------------------  ----------------------------
 *   credentials             override_creds()              files, permissions, keys
 *   memory cgroup           set_active_memcg()            allocations, __GFP_ACCOUNT
 *   block cgroup            kthread_associate_blkcg()     bios that the item submits
 *   what the driver knows   its own enter()               the driver
 *
 * They are left in the opposite order, whatever the function has done meanwhile: see
 * call.c for what a function may leave behind.
 *
 *   fairwq_context_fn()      the function that the engine calls, of every work with
 *     enter()                a context
 *     cwork->func()          the client's
 *     leave()
 *
 * The tasks of an item with a context run in it, too: run_stolen() in forkjoin.c.
 *
 * Locking: none. A work's context is changed only while the work is idle, or by its own
 * function. The runner has a reference of its own, because the function may free the
 * work.
 * Invariant: runner->context is what the function of the item runs in, or NULL. The tasks
 * that it promotes take it along.
 *
 * Limits: no namespace, no address space and no scheduling class is captured. A driver
 * that needs one writes an enter() of its own.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/kthread.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "call.h"
#include "context.h"
#include "runner.h"

/* ---- enter and leave ---------------------------------------------------- */

/* What leave() puts back. */
struct context_before {
	const struct cred *cred;
	struct mem_cgroup *memcg;
	void *entered;			/* what the client's enter() has returned */
};

/* Make the caller act as the task that has captured @context. */
static void enter(const struct fairwq_context *context,
		  struct context_before *before)
{
	before->cred = override_creds(context->cred);
	before->memcg = set_active_memcg(context->memcg);
	kthread_associate_blkcg(context->blkcg);
	before->entered = context->ops ? context->ops->enter(context->data) : NULL;
}

/* Undo enter(). @outer is what the caller was in before, or NULL. */
static void leave(const struct fairwq_context *context,
		  const struct context_before *before, const struct fairwq_context *outer)
{
	if (context->ops)
		context->ops->leave(context->data, before->entered);
	kthread_associate_blkcg(outer ? outer->blkcg : NULL);
	set_active_memcg(before->memcg);
	revert_creds(before->cred);
}

/*
 * Call @func in @context, as a part of the runner's item. What it leaves behind is
 * reported and repaired here: afterwards the credentials would hide it.
 */
static void run_checked(struct fairwq_runner *runner, struct fairwq_context *context,
			void (*func)(void *arg), void *arg)
{
	struct fairwq_context *outer = runner->context;
	struct context_before before;
	struct fairwq_call_state state;

	enter(context, &before);
	WRITE_ONCE(runner->context, context);
	fairwq_call_begin(&state);
	func(arg);
	if (!fairwq_call_state_kept(&state))
		fairwq_call_leaked(&state, runner->turn.func, runner->turn.batch);
	WRITE_ONCE(runner->context, outer);
	leave(context, &before, outer);
}

/* Call @func in @context: in an item with the checks of an item, else without. */
void fairwq_context_run(struct fairwq_context *context,
			void (*func)(void *arg), void *arg)
{
	struct fairwq_runner *runner = fairwq_current_runner();
	struct context_before before;

	if (runner) {
		run_checked(runner, context, func, arg);
		return;
	}
	enter(context, &before);
	func(arg);
	leave(context, &before, NULL);
}

/* ---- references --------------------------------------------------------- */

static void context_free(struct kref *refs)
{
	struct fairwq_context *context = container_of(refs, struct fairwq_context, refs);

	if (context->ops && context->ops->release)
		context->ops->release(context->data);
#ifdef CONFIG_BLK_CGROUP
	css_put(context->blkcg);
#endif
	mem_cgroup_put(context->memcg);
	put_cred(context->cred);
	kfree(context);
}

/* Drop a reference; the last one frees the context. */
void fairwq_context_unref(struct fairwq_context *context)
{
	kref_put(&context->refs, context_free);
}

/* ---- works with a context ----------------------------------------------- */

/* What the function of a work with a context is called with. */
struct call {
	fairwq_func_t func;
	struct fairwq_work *work;
};

static void call_func(void *arg)
{
	const struct call *call = arg;

	call->func(call->work);
}

/* Run a work in its context. The function that the engine calls; not the client's. */
void fairwq_context_fn(struct fairwq_work *work)
{
	struct fairwq_context_work *cwork = container_of(work, struct fairwq_context_work, work);
	struct fairwq_context *context = cwork->context;
	struct fairwq_runner *runner = fairwq_current_runner();
	struct call call = { .func = cwork->func, .work = work };

	WRITE_ONCE(runner->turn.func, call.func);	/* reports and tables name it */
	if (!context) {
		call_func(&call);
		return;
	}
	kref_get(&context->refs);
	run_checked(runner, context, call_func, &call);
	fairwq_context_unref(context);
}
