// SPDX-License-Identifier: GPL-2.0
/*
 * Sequences: an actor queues some items through a sequencer, cancels some of
 * them, and waits. The completions must come in the order of the queue calls,
 * each once.
 */
#define pr_fmt(fmt) "fairwq-torture: " fmt

#include <linux/slab.h>

#include "torture.h"

#define TT_STEPS	8

struct tt_sequence;

/* An item of a sequence. */
struct tt_step {
	struct fairwq_sequenced_work swork;
	struct tt_sequence *sequence;
	unsigned int number;
	u32 dice;
	bool queued, ended;
	bool dropped;			/* by a cancel of its batch: tt_step_drop() */
};

struct tt_sequence {
	struct fairwq_sequencer sequencer;
	struct fairwq_serializer limiter;
	unsigned int next;		/* only completions change it, one at a time */
	struct tt_step step[TT_STEPS];
};

static void tt_step_fn(struct fairwq_work *work)
{
	struct tt_step *step = container_of(work, struct tt_step, swork.work);

	tt_behave_seldom(step->dice);
	step->ended = true;
}

/* Check that @work has run, and completes in order. */
static void tt_step_complete(struct fairwq_work *work)
{
	struct tt_step *step = container_of(work, struct tt_step, swork.work);
	struct tt_sequence *sequence = step->sequence;

	if (!step->ended || step->number < sequence->next)
		tt_problem("step %u was completed %s, after step %u\n", step->number,
			   step->ended ? "late" : "early", sequence->next - 1);
	sequence->next = step->number + 1;
	tt_count(TT_STEPS_DONE, 1);
	WRITE_ONCE(step->queued, false);
}

static void tt_sequence_init(struct tt_actor *actor, struct tt_sequence *sequence)
{
	unsigned int i;

	fairwq_sequencer_init(&sequence->sequencer);
	fairwq_limiter_init(&sequence->limiter, 1 + tt_random(actor, 3));
	for (i = 0; i < TT_STEPS; i++) {
		struct tt_step *step = &sequence->step[i];

		fairwq_sequenced_work_init(&step->swork, tt_step_fn, tt_step_complete);
		step->sequence = sequence;
		step->number = i;
		step->dice = tt_random(actor, 1U << 31);
	}
}

/* Queue all steps, some of them through the limiter. */
static void tt_sequence_queue(struct tt_actor *actor, struct tt_sequence *sequence,
			      struct fairwq_batch *batch)
{
	unsigned int i;

	for (i = 0; i < TT_STEPS; i++) {
		struct tt_step *step = &sequence->step[i];
		struct fairwq_serializer *limiter = tt_random(actor, 2) ?
			&sequence->limiter : NULL;

		/* Its completion may come before the call returns. */
		WRITE_ONCE(step->queued, true);
		if (fairwq_sequencer_queue(&sequence->sequencer, limiter, batch,
					   &step->swork) <= 0)
			WRITE_ONCE(step->queued, false);
	}
}

/* Note that a cancel of its batch, in any context, took @work out. The actor drops it. */
void tt_step_dropped(struct fairwq_work *work)
{
	struct tt_step *step = container_of(work, struct tt_step, swork.work);

	WRITE_ONCE(step->dropped, true);
}

/* A step to compare with: fairwq gives all of them the same function. */
static struct fairwq_sequenced_work tt_any_step;

void tt_sequences_init(void)
{
	fairwq_sequenced_work_init(&tt_any_step, tt_step_fn, tt_step_complete);
}

bool tt_is_step(const struct fairwq_work *work)
{
	return work->func == tt_any_step.work.func;
}

/* Tell the sequencer that @step will not run. */
static void tt_step_drop(struct tt_step *step)
{
	fairwq_sequencer_drop(&step->swork.work);
	WRITE_ONCE(step->dropped, false);
	WRITE_ONCE(step->queued, false);
}

/* Drop the steps that were taken out. Return: true if a step must still complete. */
static bool tt_sequence_busy(struct tt_sequence *sequence)
{
	bool busy = false;
	unsigned int i;

	for (i = 0; i < TT_STEPS; i++) {
		struct tt_step *step = &sequence->step[i];

		if (READ_ONCE(step->dropped))
			tt_step_drop(step);
		busy |= READ_ONCE(step->queued);
	}
	return busy;
}

/* Queue some items, cancel some of them, and wait until the others are completed. */
void tt_op_sequence(struct tt_actor *actor)
{
	struct tt_sequence *sequence = kzalloc(sizeof(*sequence), GFP_KERNEL);
	struct fairwq_batch *batch = tt_get_batch(actor);
	unsigned int i;

	if (!sequence || !batch)
		goto out;
	tt_sequence_init(actor, sequence);
	tt_sequence_queue(actor, sequence, batch);
	for (i = tt_random(actor, 2 * TT_STEPS); i < TT_STEPS; i++)
		if (fairwq_work_cancel_sync(&sequence->step[i].swork.work))
			tt_step_drop(&sequence->step[i]);
	while (tt_sequence_busy(sequence))
		schedule_timeout_uninterruptible(1);
	fairwq_sequencer_flush(&sequence->sequencer);
	fairwq_serializer_destroy(&sequence->limiter);
out:
	fairwq_batch_put(batch);
	kfree(sequence);
}
