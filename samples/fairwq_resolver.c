// SPDX-License-Identifier: GPL-2.0
/*
 * An order of a driver's own, on top of the queue calls: a step goes on when
 * the steps before it have completed, as with the targets of a makefile. Steps
 * that do not wait for each other run at the same time.
 *
 * Each step counts what it waits for: the steps before it, and the start. The
 * call that counts down to 0 queues the step. So the steps may be started in
 * any order, and no lock is needed.
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
	atomic_t missing;		/* those that have not completed, and the start */
	struct fairwq_work work;
};

static struct step steps[NR_STEPS] = {
	[CONFIG] = { "config" },
	[MAIN_O] = { "main.o", BIT(CONFIG) },
	[UTIL_O] = { "util.o", BIT(CONFIG) },
	[MANUAL] = { "manual" },
	[PROGRAM] = { "program", BIT(MAIN_O) | BIT(UTIL_O) },
	[PACKAGE] = { "package", BIT(PROGRAM) | BIT(MANUAL) },
};

static unsigned long made;		/* the steps that have completed */
static struct fairwq_pool *pool;
static struct fairwq_batch *batch;

static void step_completed(struct step *step);

/* Count down. The one call that counts to 0 queues @step. */
static void step_count_down(struct step *step)
{
	if (!atomic_dec_and_test(&step->missing) || fairwq_queue(batch, &step->work) == 1)
		return;
	/* A step that is refused never runs. It must not hold up those after it. */
	pr_warn("resolver: %s was refused\n", step->name);
	set_bit(step - steps, &made);
	step_completed(step);
}

/* Let the steps go that have waited only for @step. */
static void step_completed(struct step *step)
{
	struct step *next;

	for (next = steps; next < steps + NR_STEPS; next++)
		if (next->after & BIT(step - steps))
			step_count_down(next);
}

static void step_make(struct fairwq_work *work)
{
	struct step *step = container_of(work, struct step, work);

	WARN((READ_ONCE(made) & step->after) != step->after,
	     "resolver: %s is too early\n", step->name);
	msleep(20);
	pr_info("resolver: %s is made\n", step->name);
	set_bit(step - steps, &made);
	step_completed(step);
}

static int __init resolver_init(void)
{
	unsigned int i = NR_STEPS;
	struct step *step;

	pool = fairwq_pool_create(NULL, "resolver");
	if (IS_ERR(pool))
		return PTR_ERR(pool);
	for (step = steps; step < steps + NR_STEPS; step++) {
		atomic_set(&step->missing, hweight_long(step->after) + 1);
		fairwq_work_init(&step->work, step_make);
	}
	/* Any order will do. Here each step comes before those that it waits for. */
	batch = fairwq_pool_default_batch(pool, FAIRWQ_PRIO_NORMAL);
	while (i--)
		step_count_down(&steps[i]);
	return 0;
}
module_init(resolver_init);

static void __exit resolver_exit(void)
{
	fairwq_pool_destroy(pool);	/* returns when all steps have completed */
	WARN(made != BIT(NR_STEPS) - 1, "resolver: made %lx\n", made);
}
module_exit(resolver_exit);
MODULE_DESCRIPTION("An order of a driver's own: steps that wait for others");
MODULE_LICENSE("GPL");
