/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gates: items that block their runner until the test opens them.
 */
#ifndef FAIRWQ_TEST_GATE_H
#define FAIRWQ_TEST_GATE_H

#include <kunit/test.h>
#include <linux/completion.h>

#include "core/testing.h"
#include "core/types.h"
#include "look.h"

struct mock_item;

/* An item that waits at the gate. */
struct mock_gate {
	struct fairwq_work work;
	struct completion entered;
	struct completion open;
	bool computes;			/* it does not sleep at the gate, so it keeps its seat */
	atomic_t runs;
	struct mock_gate *next;		/* in mock->gates */
};

void mock_gate_fn(struct fairwq_work *work);
void mock_gate_init(struct mock_gate *gate);
struct mock_gate *mock_gate_new(struct kunit *test);
void mock_gate_enter(struct kunit *test, struct fairwq_batch *batch, struct mock_gate *gate);
void mock_gates_open(struct mock_gate *gates);

/* A batch with a history of quick items, and items that wait in it behind a gate. */
struct fairwq_batch *mock_held_begin(struct kunit *test, struct mock_gate *gate);
void mock_held_go(struct kunit *test, struct fairwq_batch *a, struct mock_gate *gate,
		  const struct mock_item *last);

/* A turn that is parked, because its work still runs. */
struct mock_gate *mock_parked_begin(struct kunit *test, struct fairwq_batch *a);

#endif /* FAIRWQ_TEST_GATE_H */
