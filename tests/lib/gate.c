// SPDX-License-Identifier: GPL-2.0
/*
 * Gates, see gate.h.
 */
#include <linux/module.h>

#include "fixture.h"

/* Count the run, tell the test that the runner is here, and wait until the gate opens. */
void mock_gate_fn(struct fairwq_work *work)
{
	struct mock_gate *gate = container_of(work, struct mock_gate, work);

	atomic_inc(&gate->runs);
	complete(&gate->entered);
	if (gate->computes)
		compute_within(completion_done(&gate->open));
	else
		wait_for_completion(&gate->open);
}
EXPORT_SYMBOL_GPL(mock_gate_fn);

/* Initialize a gate that is part of another struct. The caller must open it. */
void mock_gate_init(struct mock_gate *gate)
{
	fairwq_work_init(&gate->work, mock_gate_fn);
	init_completion(&gate->entered);
	init_completion(&gate->open);
	gate->computes = false;
	atomic_set(&gate->runs, 0);
}
EXPORT_SYMBOL_GPL(mock_gate_init);

/* Make a gate. mock_exit() opens it, so that a case that failed can end. */
struct mock_gate *mock_gate_new(struct kunit *test)
{
	struct mock_gate *gate = kunit_kzalloc(test, sizeof(*gate), GFP_KERNEL);
	struct mock *mock = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, gate);
	mock_gate_init(gate);
	gate->next = mock->gates;
	mock->gates = gate;
	return gate;
}
EXPORT_SYMBOL_GPL(mock_gate_new);

/* Queue @gate, and wait until a runner has entered it. */
void mock_gate_enter(struct kunit *test, struct fairwq_batch *batch, struct mock_gate *gate)
{
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(batch, &gate->work));
	mock_await(test, &gate->entered);
}
EXPORT_SYMBOL_GPL(mock_gate_enter);

/* Open @gates and all that are behind it in the list. */
void mock_gates_open(struct mock_gate *gates)
{
	for (; gates; gates = gates->next)
		complete_all(&gates->open);
}
EXPORT_SYMBOL_GPL(mock_gates_open);

#define QUICK_WARM_UP	200

/*
 * Make a pool with one runner, and a batch whose items so far were quick. Pause
 * the batch and queue @gate to it. Items that the test queues to the batch
 * before mock_held_go() wait behind @gate. Return: the batch.
 */
struct fairwq_batch *mock_held_begin(struct kunit *test, struct mock_gate *gate)
{
	struct fairwq_batch *a = mock_begin(test, 1);

	mock_open(test);
	mock_queue(test, a, '-', QUICK_WARM_UP);
	fairwq_batch_flush(a);
	mock_log_clear(test->priv);
	fairwq_batch_pause(a);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &gate->work));
	return a;
}
EXPORT_SYMBOL_GPL(mock_held_begin);

/* Let the runner enter @gate. Then all items up to @last are queued behind it. */
void mock_held_go(struct kunit *test, struct fairwq_batch *a, struct mock_gate *gate,
		  const struct mock_item *last)
{
	fairwq_batch_resume(a);
	mock_await(test, &gate->entered);
	KUNIT_ASSERT_EQ(test, FAIRWQ_STATE_QUEUED, mock_state(&last->work));
}
EXPORT_SYMBOL_GPL(mock_held_go);

/* Make a gate that runs, and is queued again: its next turn is parked until it opens. */
struct mock_gate *mock_parked_begin(struct kunit *test, struct fairwq_batch *a)
{
	struct mock_gate *gate = mock_gate_new(test);

	mock_gate_enter(test, a, gate);
	KUNIT_ASSERT_EQ(test, 1, fairwq_queue(a, &gate->work));
	mock_until(test, READ_ONCE(a->nr_parked) == 1);
	return gate;
}
EXPORT_SYMBOL_GPL(mock_parked_begin);
