// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts: capture, references, works with a context.
 *
 *   fairwq_context_capture()    takes credentials and cgroups of the calling task
 *   fairwq_work_set_context()   gives a work a context
 *   a runner, see core/         enters it before the function, leaves it after
 *
 * Locking: none. A context does not change after its set-up; its references are counted.
 * Limits: capture() allocates, and so may fail. All else cannot.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/export.h>
#include <linux/memcontrol.h>
#include <linux/slab.h>

#include "core/context.h"
#include "core/runner.h"
#include "doors.h"

#ifdef CONFIG_BLK_CGROUP
/*
 * Return the block cgroup of the caller, with a reference. A worker is in that of the
 * context in which its item runs, and not in that of its task.
 */
static struct cgroup_subsys_state *get_blkcg(void)
{
	const struct fairwq_runner *runner = fairwq_runner_current();
	struct cgroup_subsys_state *css = runner && runner->context ? runner->context->blkcg :
								       NULL;

	if (!css)
		return task_get_css(current, io_cgrp_id);
	css_get(css);
	return css;
}
#else
static struct cgroup_subsys_state *get_blkcg(void)
{
	return NULL;
}
#endif

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

void fairwq_context_set_ops(struct fairwq_context *context,
			    const struct fairwq_context_ops *ops, void *data)
{
	if (IS_ERR_OR_NULL(context))
		return;
	context->ops = ops;
	context->data = data;
}
EXPORT_SYMBOL_GPL(fairwq_context_set_ops);

struct fairwq_context *fairwq_context_get(struct fairwq_context *context)
{
	if (!IS_ERR_OR_NULL(context))
		kref_get(&context->refs);
	return context;
}
EXPORT_SYMBOL_GPL(fairwq_context_get);

void __fairwq_context_work_init(struct fairwq_context_work *cwork, fairwq_func_t func,
				const char *name, struct lock_class_key *key)
{
	if (unlikely(!READ_ONCE(fairwq_context_func)))
		WRITE_ONCE(fairwq_context_func, fairwq_context_fn);	/* for tables */
	__fairwq_work_init(&cwork->work, fairwq_context_fn, name, key);
	cwork->func = func;
	cwork->context = NULL;
}
EXPORT_SYMBOL_GPL(__fairwq_context_work_init);

void fairwq_work_set_context(struct fairwq_context_work *cwork, struct fairwq_context *context)
{
	struct fairwq_context *old = cwork->context;

	if (WARN_ON_ONCE(IS_ERR(context)))
		context = NULL;
	/* The setup would forget the reference. */
	if (WARN_ON_ONCE(context && cwork->work.func != fairwq_context_fn))
		return;
	cwork->context = fairwq_context_get(context);
	fairwq_context_put(old);
}
EXPORT_SYMBOL_GPL(fairwq_work_set_context);

void fairwq_context_call(struct fairwq_context *context, void (*func)(void *arg), void *arg)
{
	might_sleep();
	if (WARN_ON_ONCE(fairwq_is_no_pointer(context)))
		return;
	fairwq_context_run(context, func, arg);
}
EXPORT_SYMBOL_GPL(fairwq_context_call);
