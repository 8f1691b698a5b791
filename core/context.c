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
 *     fairwq_context_run()   a context
 *       cwork->func()        the client's
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
#include <linux/export.h>
#include <linux/kthread.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "call.h"
#include "context.h"
#include "runner.h"

/* ---- enter and leave ---------------------------------------------------- */

/*
 * Call @func in @context. In an item, what it leaves behind is reported and repaired here:
 * afterwards the credentials would hide it.
 */
void fairwq_context_run(struct fairwq_context *context,
			void (*func)(void *arg), void *arg)
{
	struct fairwq_runner *runner = fairwq_runner_current();
	struct fairwq_context *outer = runner ? runner->context : NULL;
	const struct cred *cred = override_creds(context->cred);
	struct mem_cgroup *memcg = set_active_memcg(context->memcg);
	struct fairwq_call_state state;
	void *entered;

	kthread_associate_blkcg(context->blkcg);
	entered = context->ops ? context->ops->enter(context->data) : NULL;
	if (runner)
		WRITE_ONCE(runner->context, context);
	fairwq_call_begin(&state);
	func(arg);
	if (runner && !fairwq_call_state_kept(&state))
		fairwq_call_leaked(&state, runner->turn.func, runner->turn.batch);
	if (runner)
		WRITE_ONCE(runner->context, outer);
	if (context->ops)
		context->ops->leave(context->data, entered);
	kthread_associate_blkcg(outer ? outer->blkcg : NULL);
	set_active_memcg(memcg);
	revert_creds(cred);
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

void fairwq_context_put(struct fairwq_context *context)
{
	if (!IS_ERR_OR_NULL(context))
		kref_put(&context->refs, context_free);
}
EXPORT_SYMBOL_GPL(fairwq_context_put);

/* ---- works with a context ----------------------------------------------- */

static void call_func(void *arg)
{
	struct fairwq_context_work *cwork = arg;

	cwork->func(&cwork->work);
}

/* Run a work in its context. The function that the engine calls; not the client's. */
void fairwq_context_fn(struct fairwq_work *work)
{
	struct fairwq_context_work *cwork = container_of(work, struct fairwq_context_work, work);
	struct fairwq_context *context = cwork->context;

	/* Reports and tables name it. */
	WRITE_ONCE(fairwq_runner_current()->turn.func, cwork->func);
	if (!context) {
		cwork->func(work);
		return;
	}
	kref_get(&context->refs);
	fairwq_context_run(context, call_func, cwork);
	fairwq_context_put(context);
}
