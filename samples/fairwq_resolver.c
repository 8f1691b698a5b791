// SPDX-License-Identifier: GPL-2.0
/*
 * A constraint of a driver's own: a step goes on when the steps before it have
 * completed, as with the targets of a makefile. Steps that do not wait for each
 * other run at the same time.
 *
 * Each step counts what it waits for: the steps before it, and its own queue
 * call. The call that counts down to 0 lets the step go. So steps may be queued
 * in any order, and no lock is needed.
 */
#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/delay.h>
#include <linux/module.h>
#include "fairwq.h"

enum { CONFIG, MAIN_O, UTIL_O, MANUAL, PROGRAM, PACKAGE, NR_STEPS };

struct step {
	const char *name;
	unsigned long after;		/* the steps that it comes after */
	atomic_t missing;		/* those that have not completed, and its queue call */
	struct fairwq_work work;
	struct fairwq_constraint constraint;
};

static struct step steps[NR_STEPS] = {
	[CONFIG] = { "config" },
	[MAIN_O] = { "main.o", BIT(CONFIG) },
	[UTIL_O] = { "util.o", BIT(CONFIG) },
	[MANUAL] = { "manual" },
	[PROGRAM] = { "program", BIT(MAIN_O) | BIT(UTIL_O) },
	[PACKAGE] = { "package", BIT(PROGRAM) | BIT(MANUAL) },
};

static unsigned long made;		/* the steps whose functions have returned */
static struct fairwq_pool *pool;

/* Count down. Return: true to the one caller that must let @step go. */
static bool step_count_down(struct step *step)
{
	return atomic_dec_and_test(&step->missing);
}

/*
 * @work was queued. If steps are missing, the one that completes last lets it
 * go, perhaps before this returns.
 */
static bool step_admit(struct fairwq_constraint *constraint, struct fairwq_work *work)
{
	return step_count_down(container_of(constraint, struct step, constraint));
}

/* The step has completed: let go the steps that have waited only for it. */
static void step_complete(struct fairwq_constraint *constraint)
{
	struct step *step = container_of(constraint, struct step, constraint), *next;

	for (next = steps; next < steps + NR_STEPS; next++)
		if (next->after & BIT(step - steps) && step_count_down(next))
			fairwq_constraint_admit(&next->work);
}

static const struct fairwq_constraint_ops step_ops = {
	.admit = step_admit,
	.complete = step_complete,
};

static void step_make(struct fairwq_work *work)
{
	struct step *step = container_of(work, struct step, work);

	WARN((READ_ONCE(made) & step->after) != step->after,
	     "resolver: %s is too early\n", step->name);
	msleep(20);
	pr_info("resolver: %s is made\n", step->name);
	set_bit(step - steps, &made);
}

/* A step that is refused never completes. It must not hold up those after it. */
static void step_queue(struct step *step, struct fairwq_batch *batch)
{
	if (fairwq_queue_constrained(&step->constraint, batch, &step->work) == 1)
		return;
	pr_warn("resolver: %s was refused\n", step->name);
	step_complete(&step->constraint);
}

static int __init resolver_init(void)
{
	struct fairwq_batch *batch;
	struct step *step;

	pool = fairwq_pool_create(NULL, "resolver");
	if (IS_ERR(pool))
		return PTR_ERR(pool);
	for (step = steps; step < steps + NR_STEPS; step++) {
		atomic_set(&step->missing, hweight_long(step->after) + 1);
		fairwq_work_init(&step->work, step_make);
		fairwq_constraint_init(&step->constraint, &step_ops);
	}
	/* Any order will do. Here each step comes before those that it waits for. */
	batch = fairwq_pool_default_batch(pool, FAIRWQ_PRIO_NORMAL);
	while (step-- > steps)
		step_queue(step, batch);
	return 0;
}
module_init(resolver_init);

static void __exit resolver_exit(void)
{
	fairwq_pool_destroy(pool);	/* returns when all steps have completed */
	WARN(made != BIT(NR_STEPS) - 1, "resolver: made %lx\n", made);
}
module_exit(resolver_exit);
MODULE_DESCRIPTION("A constraint of a driver's own: steps that wait for others");
MODULE_LICENSE("GPL");
