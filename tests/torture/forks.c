// SPDX-License-Identifier: GPL-2.0
/*
 * Items that fork: a tree of tasks, or a loop. Each task and each number must
 * have run once when the join returns.
 */
#define pr_fmt(fmt) "fairwq-torture: " fmt

#include <linux/cred.h>
#include <linux/hash.h>

#include "torture.h"

#define TT_DEPTH	6U
#define TT_NUMBERS	64UL

/* A task: a node of a tree. */
struct tt_task {
	struct fairwq_task task;
	struct fairwq_work *item;	/* that it is a part of */
	unsigned int depth;		/* levels below it */
	kuid_t uid;			/* the item acts for this user */
	u32 dice;
	atomic_t ran;
	unsigned int nodes;		/* in its tree */
};

static void tt_task_fn(struct fairwq_task *self);

static void tt_task_init(struct tt_task *task, struct fairwq_work *item, unsigned int depth,
			 u32 dice)
{
	fairwq_task_init(&task->task, tt_task_fn);
	task->item = item;
	task->depth = depth;
	task->dice = hash_32(dice, 32);
	atomic_set(&task->ran, 0);
	task->nodes = 0;
}

/* Run a node: fork the two nodes below it, and join them in any order. */
static void tt_task_fn(struct fairwq_task *self)
{
	struct tt_task *task = container_of(self, struct tt_task, task), below[2];
	unsigned int first = task->dice % 2, i;

	if (atomic_inc_return(&task->ran) != 1)
		tt_problem("a task ran twice\n");
	tt_judge_user(task->uid);
	if (fairwq_current_work() != task->item)
		tt_problem("a task is told that it is in another item\n");
	task->nodes = 1;
	tt_count(TT_TASKS, 1);
	tt_behave_seldom(task->dice);
	if (!task->depth)
		return;
	for (i = 0; i < 2; i++) {
		tt_task_init(&below[i], task->item, task->depth - 1, task->dice + i + 1);
		below[i].uid = task->uid;
		fairwq_fork(self, &below[i].task);
	}
	/* Now and then be slow, so that other runners ask for the forks. */
	tt_behave_seldom(hash_32(task->dice + 3, 32));
	fairwq_join(self, &below[first].task);
	fairwq_join(self, &below[!first].task);
	for (i = 0; i < 2; i++) {
		if (atomic_read(&below[i].ran) != 1)
			tt_problem("a join returned before its task had run\n");
		task->nodes += below[i].nodes;
	}
}

static int tt_number_fn(unsigned long from, unsigned long to, void *arg)
{
	atomic_t *ran = arg;

	for (; from < to; from++)
		atomic_inc(&ran[from]);
	return 0;
}

/* Run a parallel loop, and check that each number came once. */
static void tt_fork_loop(u32 dice)
{
	atomic_t ran[TT_NUMBERS] = { };
	unsigned long i;

	if (fairwq_parallel_for(NULL, 0, TT_NUMBERS, 1 + dice % 16, tt_number_fn, ran))
		tt_problem("a loop was refused\n");
	for (i = 0; i < TT_NUMBERS; i++)
		if (atomic_read(&ran[i]) != 1)
			tt_problem("a loop ran number %lu %d times\n", i, atomic_read(&ran[i]));
}

/* Run a tree of tasks, and check that each node came once. */
static void tt_fork_tree(u32 dice)
{
	unsigned int depth = dice % (TT_DEPTH + 1);
	struct tt_task top;

	tt_task_init(&top, fairwq_current_work(), depth, dice);
	top.uid = current_fsuid();
	fairwq_task_here(&top.task);
	tt_task_fn(&top.task);
	if (top.nodes != (2U << depth) - 1)
		tt_problem("a tree of depth %u had %u nodes\n", depth, top.nodes);
}

/* Let one in eight of the calling items fork. */
void tt_fork(u32 dice)
{
	if (dice % 8)
		return;
	dice /= 8;
	if (dice % 4)
		tt_fork_tree(dice / 4);
	else
		tt_fork_loop(dice / 4);
}
