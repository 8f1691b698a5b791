// SPDX-License-Identifier: GPL-2.0
/*
 * Sequencers: items run in parallel and are completed in queue order, each
 * once, even if some are cancelled or refused. After a flush, and by its last
 * completion, a sequencer may be freed.
 */
#include "lib/client.h"
#include "lib/hook.h"

/* ---- what the cases share ----------------------------------------------- */

#define NR	5

/* An item whose function waits for @open, and whose completion logs a letter. */
struct step {
	struct fairwq_sequenced_work swork;
	struct completion entered, open;
	struct mock *mock;
	struct fairwq_sequencer *sequencer;
	struct fairwq_batch *batch;	/* the completion queues it again to this one; or NULL */
	char letter;
	bool ended;			/* its function has returned */
	bool early;			/* it was completed before @ended was set */
	int ret;			/* of the queue call in its completion */
};

static void step_fn(struct fairwq_work *work)
{
	struct step *step = container_of(work, struct step, swork.work);

	complete(&step->entered);
	mock_wait(&step->open);
	WRITE_ONCE(step->ended, true);
}

static void step_complete(struct fairwq_work *work)
{
	struct step *step = container_of(work, struct step, swork.work);
	struct fairwq_batch *batch = step->batch;

	step->early |= !step->ended;
	step->batch = NULL;
	if (batch) {
		step->ended = false;
		step->ret = fairwq_sequencer_queue(step->sequencer, NULL, batch, &step->swork);
	}
	mock_log_add(&step->mock->log, step->letter);
}

static struct step *step_new(struct kunit *test, struct fairwq_sequencer *sequencer, char letter)
{
	struct step *step = kunit_kzalloc(test, sizeof(*step), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, step);
	fairwq_sequenced_work_init(&step->swork, step_fn, step_complete);
	init_completion(&step->entered);
	init_completion(&step->open);
	step->mock = test->priv;
	step->sequencer = sequencer;
	step->letter = letter;
	return step;
}

static struct fairwq_sequencer *sequencer_new(struct kunit *test)
{
	struct fairwq_sequencer *sequencer = kunit_kzalloc(test, sizeof(*sequencer), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sequencer);
	fairwq_sequencer_init(sequencer);
	return sequencer;
}

/* Queue NR items with the letters from 'a' on, and wait until all run at once. */
static void steps_run(struct kunit *test, struct fairwq_sequencer *sequencer,
		      struct fairwq_batch *batch, struct step **step)
{
	int i;

	for (i = 0; i < NR; i++) {
		step[i] = step_new(test, sequencer, 'a' + i);
		KUNIT_ASSERT_EQ(test, 1, fairwq_sequencer_queue(sequencer, NULL, batch,
								&step[i]->swork));
	}
	for (i = 0; i < NR; i++)
		mock_await(test, &step[i]->entered);
}

/* Let the function of @step return, and wait until the work is not busy any more. */
static void step_end(struct kunit *test, struct step *step)
{
	complete(&step->open);
	mock_until(test, READ_ONCE(step->ended) && !fairwq_work_busy(&step->swork.work));
}

static struct fairwq_batch *begin(struct kunit *test, unsigned int runners)
{
	struct fairwq_batch *batch = mock_begin(test, runners);

	mock_open(test);
	return batch;
}

static void expect_log(struct kunit *test, const char *order)
{
	struct mock *mock = test->priv;

	mock_until(test, READ_ONCE(mock->log.nr) >= strlen(order));
	KUNIT_EXPECT_STREQ(test, order, &mock->log.text[0]);
}

/* ---- in order ----------------------------------------------------------- */

/* Items that end in the reverse order are completed in queue order. */
static void items_are_completed_in_queue_order(struct kunit *test)
{
	struct fairwq_sequencer *sequencer = sequencer_new(test);
	struct fairwq_batch *a = begin(test, NR + 1);
	struct mock *mock = test->priv;
	struct step *step[NR];
	int i;

	steps_run(test, sequencer, a, step);
	for (i = NR - 1; i > 0; i--)
		step_end(test, step[i]);
	KUNIT_EXPECT_EQ(test, 0U, READ_ONCE(mock->log.nr));
	complete(&step[0]->open);
	fairwq_sequencer_flush(sequencer);
	expect_log(test, "abcde");
	for (i = 0; i < NR; i++)
		KUNIT_EXPECT_FALSE(test, step[i]->early);
}

/* Items in front that have ended are completed at once, although later ones still run. */
static void those_in_front_are_completed_at_once(struct kunit *test)
{
	struct fairwq_sequencer *sequencer = sequencer_new(test);
	struct fairwq_batch *a = begin(test, NR + 1);
	struct step *step[NR];
	int i;

	steps_run(test, sequencer, a, step);
	step_end(test, step[1]);
	step_end(test, step[0]);
	expect_log(test, "ab");
	step_end(test, step[3]);
	step_end(test, step[2]);
	expect_log(test, "abcd");
	step_end(test, step[4]);
	expect_log(test, "abcde");
	for (i = 0; i < NR; i++)
		KUNIT_EXPECT_PTR_EQ(test, NULL, READ_ONCE(step[i]->swork.sequencer));
}

/* A step whose completion waits for @go. */
struct slow_step {
	struct step step;
	struct completion completing, go;
};

static void slow_complete(struct fairwq_work *work)
{
	struct slow_step *slow = container_of(work, struct slow_step, step.swork.work);

	complete(&slow->completing);
	mock_wait(&slow->go);
	step_complete(work);
}

/* If an item ends while another one is being completed, it is completed after that one. */
static void end_beside_a_completion_is_not_lost(struct kunit *test)
{
	struct fairwq_sequencer *sequencer = sequencer_new(test);
	struct slow_step *slow = kunit_kzalloc(test, sizeof(*slow), GFP_KERNEL);
	struct fairwq_batch *a = begin(test, 3);
	struct mock *mock = test->priv;
	struct step *next;

	KUNIT_ASSERT_NOT_NULL(test, slow);
	fairwq_sequenced_work_init(&slow->step.swork, step_fn, slow_complete);
	init_completion(&slow->step.entered);
	init_completion(&slow->step.open);
	init_completion(&slow->completing);
	init_completion(&slow->go);
	slow->step.mock = mock;
	slow->step.letter = 'x';
	next = step_new(test, sequencer, 'y');
	KUNIT_ASSERT_EQ(test, 1, fairwq_sequencer_queue(sequencer, NULL, a, &slow->step.swork));
	KUNIT_ASSERT_EQ(test, 1, fairwq_sequencer_queue(sequencer, NULL, a, &next->swork));
	complete(&slow->step.open);
	mock_await(test, &slow->completing);
	step_end(test, next);
	KUNIT_EXPECT_EQ(test, 0U, READ_ONCE(mock->log.nr));
	complete(&slow->go);
	fairwq_sequencer_flush(sequencer);
	expect_log(test, "xy");
}

/* A completion may queue its work again. The work is the last one of the sequencer then. */
static void completion_may_queue_its_work_again(struct kunit *test)
{
	struct fairwq_sequencer *sequencer = sequencer_new(test);
	struct fairwq_batch *a = begin(test, NR + 1);
	struct step *step[NR];
	int i;

	steps_run(test, sequencer, a, step);
	step[0]->batch = a;
	KUNIT_EXPECT_EQ(test, 0, fairwq_sequencer_queue(sequencer, NULL, a, &step[0]->swork));
	for (i = 0; i < NR; i++)
		complete(&step[i]->open);
	complete(&step[0]->open);
	fairwq_sequencer_flush(sequencer);
	mock_until(test, !fairwq_work_busy(&step[0]->swork.work));
	fairwq_sequencer_flush(sequencer);
	expect_log(test, "abcdea");
	KUNIT_EXPECT_EQ(test, 1, step[0]->ret);
}

/* An item that frees itself in its completion. */
struct gone {
	struct fairwq_sequenced_work swork;
	atomic_t *left;
};

static void gone_fn(struct fairwq_work *work)
{
}

static void gone_complete(struct fairwq_work *work)
{
	struct gone *gone = container_of(work, struct gone, swork.work);
	atomic_t *left = gone->left;

	kfree(gone);
	atomic_dec(left);
}

/* A completion may free its item, and a sequencer may be freed as soon as a flush returns. */
static void all_may_be_freed(struct kunit *test)
{
	struct fairwq_batch *a = begin(test, 4);
	struct fairwq_sequencer *sequencer;
	int i, j, nr = 0, rounds = MOCK_MANY(2000);
	struct gone *gone;
	atomic_t left;

	for (i = 0; i < rounds; i++) {
		sequencer = kmalloc(sizeof(*sequencer), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, sequencer);
		fairwq_sequencer_init(sequencer);
		atomic_set(&left, 0);
		for (j = 0; j < 3; j++) {
			gone = kmalloc(sizeof(*gone), GFP_KERNEL);
			KUNIT_ASSERT_NOT_NULL(test, gone);
			fairwq_sequenced_work_init(&gone->swork, gone_fn, gone_complete);
			gone->left = &left;
			atomic_inc(&left);
			nr += fairwq_sequencer_queue(sequencer, NULL, a, &gone->swork) == 1;
		}
		fairwq_sequencer_flush(sequencer);
		KUNIT_EXPECT_EQ(test, 0, atomic_read(&left));
		memset(sequencer, 0x6b, sizeof(*sequencer));
		kfree(sequencer);
	}
	KUNIT_EXPECT_EQ(test, 3 * rounds, nr);
}

/* A sequencer with its works, whose last completion ends the sequencer. */
struct owner {
	struct fairwq_sequencer sequencer;
	struct owned {
		struct fairwq_sequenced_work swork;
		struct owner *owner;
	} work[3];
	unsigned int left;
};

#define GONE	0x6b

/* Completions are called one at a time, so @left needs no lock. */
static void owned_complete(struct fairwq_work *work)
{
	struct owner *owner = container_of(work, struct owned, swork.work)->owner;

	if (!--owner->left)
		memset(&owner->sequencer, GONE, sizeof(owner->sequencer));
}

/* The completion of the last work may free the sequencer: nothing touches it after that. */
static void last_completion_may_free_the_sequencer(struct kunit *test)
{
	struct owner *owner = kunit_kzalloc(test, sizeof(*owner), GFP_KERNEL);
	struct fairwq_batch *a = begin(test, 4);
	unsigned int i, round, rounds = MOCK_MANY(5000), touched = 0;

	KUNIT_ASSERT_NOT_NULL(test, owner);
	for (i = 0; i < ARRAY_SIZE(owner->work); i++) {
		owner->work[i].owner = owner;
		fairwq_sequenced_work_init(&owner->work[i].swork, gone_fn, owned_complete);
	}
	for (round = 0; round < rounds; round++) {
		fairwq_sequencer_init(&owner->sequencer);
		owner->left = ARRAY_SIZE(owner->work);
		fairwq_batch_pause(a);	/* until all are queued */
		for (i = 0; i < ARRAY_SIZE(owner->work); i++)
			mock_may_refuse(fairwq_sequencer_queue(&owner->sequencer, NULL, a,
							       &owner->work[i].swork));
		fairwq_batch_resume(a);
		fairwq_batch_flush(a);
		touched += !!memchr_inv(&owner->sequencer, GONE, sizeof(owner->sequencer));
	}
	KUNIT_EXPECT_EQ(test, 0U, owner->left);
	KUNIT_EXPECT_EQ(test, 0U, touched);
}

/* A sequencer that is set up anew by its last completion, which then goes on. */
struct renewed_by_last {
	struct fairwq_sequencer sequencer;
	struct fairwq_sequenced_work last, next;
	struct completion renewed, go, completed;
};

static void renewing_complete(struct fairwq_work *work)
{
	struct renewed_by_last *r = container_of(work, struct renewed_by_last, last.work);

	fairwq_sequencer_init(&r->sequencer);
	complete(&r->renewed);
	mock_wait(&r->go);
}

static void next_complete(struct fairwq_work *work)
{
	complete(&container_of(work, struct renewed_by_last, next.work)->completed);
}

/* The completion that is still under way is nothing to the new sequencer at that address. */
static void new_sequencer_at_the_address_is_another(struct kunit *test)
{
	struct renewed_by_last *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	struct fairwq_batch *a = begin(test, 4);

	KUNIT_ASSERT_NOT_NULL(test, r);
	init_completion(&r->renewed);
	init_completion(&r->go);
	init_completion(&r->completed);
	fairwq_sequenced_work_init(&r->last, gone_fn, renewing_complete);
	fairwq_sequenced_work_init(&r->next, gone_fn, next_complete);
	fairwq_sequencer_init(&r->sequencer);
	KUNIT_ASSERT_EQ(test, 1, fairwq_sequencer_queue(&r->sequencer, NULL, a, &r->last));
	mock_await(test, &r->renewed);
	KUNIT_ASSERT_EQ(test, 1, fairwq_sequencer_queue(&r->sequencer, NULL, a, &r->next));
	mock_await(test, &r->completed);
	fairwq_sequencer_flush(&r->sequencer);
	complete(&r->go);
	fairwq_batch_flush(a);
}

/* ---- cancelled and refused ---------------------------------------------- */

/* A cancelled work holds up the works behind it until fairwq_sequencer_drop() is called. */
static void dropped_work_lets_the_others_go_on(struct kunit *test)
{
	struct fairwq_sequencer *sequencer = sequencer_new(test);
	struct fairwq_batch *a = begin(test, 2), *b = mock_batch(test, "b");
	struct step *first = step_new(test, sequencer, 'x'), *next = step_new(test, sequencer, 'y');
	struct mock *mock = test->priv;

	fairwq_batch_pause(b);
	KUNIT_ASSERT_EQ(test, 1, fairwq_sequencer_queue(sequencer, NULL, b, &first->swork));
	KUNIT_ASSERT_EQ(test, 1, fairwq_sequencer_queue(sequencer, NULL, a, &next->swork));
	step_end(test, next);
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel_sync(&first->swork.work));
	KUNIT_EXPECT_EQ(test, 0, fairwq_sequencer_queue(sequencer, NULL, a, &first->swork));
	KUNIT_EXPECT_EQ(test, 0U, READ_ONCE(mock->log.nr));
	fairwq_sequencer_drop(&first->swork.work);
	expect_log(test, "y");
	fairwq_sequencer_flush(sequencer);
	/* The dropped work may be queued again. */
	fairwq_batch_resume(b);
	complete(&first->open);
	KUNIT_EXPECT_EQ(test, 1, fairwq_sequencer_queue(sequencer, NULL, b, &first->swork));
	fairwq_sequencer_flush(sequencer);
	expect_log(test, "yx");
}

/* A cancel of the batch may take fairwq_sequencer_drop() as its dropped(). */
static void batch_is_cancelled(struct kunit *test)
{
	struct fairwq_sequencer *sequencer = sequencer_new(test);
	struct fairwq_batch *a = mock_begin(test, 1);
	struct step *step[NR];
	int i;

	for (i = 0; i < NR; i++) {
		step[i] = step_new(test, sequencer, 'a' + i);
		KUNIT_ASSERT_EQ(test, 1, fairwq_sequencer_queue(sequencer, NULL, a,
								&step[i]->swork));
	}
	KUNIT_EXPECT_EQ(test, (unsigned long)NR, fairwq_batch_cancel(a, fairwq_sequencer_drop));
	fairwq_sequencer_flush(sequencer);
	mock_open(test);
	expect_log(test, "");
}

/* A work that its batch refuses is not in the sequencer, and holds up no other. */
static void refused_work_holds_up_nothing(struct kunit *test)
{
	struct fairwq_sequencer *sequencer = sequencer_new(test);
	struct fairwq_batch *a = begin(test, 2);
	struct fairwq_batch *b = mock_own_batch(test, "b", NULL);
	struct step *refused = step_new(test, sequencer, 'x');
	struct step *next = step_new(test, sequencer, 'y');

	fairwq_batch_get(b);
	fairwq_batch_dispose(b);
	KUNIT_EXPECT_EQ(test, -ESHUTDOWN,
			fairwq_sequencer_queue(sequencer, NULL, b, &refused->swork));
	KUNIT_EXPECT_PTR_EQ(test, NULL, refused->swork.sequencer);
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_sequencer_queue(NULL, NULL, a, &next->swork));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_sequencer_queue(sequencer, NULL, a, NULL));
	complete(&next->open);
	KUNIT_EXPECT_EQ(test, 1, fairwq_sequencer_queue(sequencer, NULL, a, &next->swork));
	fairwq_sequencer_flush(sequencer);
	expect_log(test, "y");
	fairwq_batch_put(b);
}

/* ---- calls that wait, and completions --------------------------------------- */

/* A call that waits for a batch or a pool, in a thread of its own. */
static struct fairwq_pool *flushed;

static bool flush_the_pool(struct fairwq_work *work)
{
	fairwq_pool_flush(flushed);
	return true;
}

/* A flush of the pool covers the completions if all works are of that pool. */
static void flush_of_the_pool_covers_completions(struct kunit *test)
{
	struct fairwq_sequencer *sequencer = sequencer_new(test);
	struct fairwq_batch *a = begin(test, NR + 1);
	struct mock *mock = test->priv;
	struct step *step[NR];
	struct call *call;
	int i;

	steps_run(test, sequencer, a, step);
	for (i = NR - 1; i > 0; i--)
		step_end(test, step[i]);
	flushed = mock->pool;
	call = mock_call_start(test, flush_the_pool, &step[0]->swork.work);
	complete(&step[0]->open);
	mock_call_end(test, call);
	KUNIT_EXPECT_STREQ(test, "abcde", &mock->log.text[0]);
}

/* It does not cover a completion that an item of another pool calls. */
static void flush_covers_no_completion_by_another_pool(struct kunit *test)
{
	struct fairwq_sequencer *sequencer = sequencer_new(test);
	struct fairwq_pool *pool = fairwq_pool_create(NULL, "other");
	struct fairwq_batch *a = begin(test, 2);
	struct mock *mock = test->priv;
	struct step *first = step_new(test, sequencer, 'x'), *next = step_new(test, sequencer, 'y');

	KUNIT_ASSERT_FALSE(test, IS_ERR(pool));
	KUNIT_EXPECT_EQ(test, 1, fairwq_sequencer_queue(sequencer, NULL,
							fairwq_pool_default_batch(pool, 0),
							&first->swork));
	KUNIT_EXPECT_EQ(test, 1, fairwq_sequencer_queue(sequencer, NULL, a, &next->swork));
	complete(&next->open);
	fairwq_pool_flush(mock->pool);
	KUNIT_EXPECT_TRUE(test, next->ended);
	KUNIT_EXPECT_EQ(test, 0U, READ_ONCE(mock->log.nr));
	complete(&first->open);
	fairwq_sequencer_flush(sequencer);
	expect_log(test, "xy");
	fairwq_pool_destroy(pool);
}

/* Nor does a call that waits for a work alone wait for its completion. */
static void cancel_sync_does_not_wait_for_the_completion(struct kunit *test)
{
	struct fairwq_sequencer *sequencer = sequencer_new(test);
	struct fairwq_batch *a = begin(test, NR + 1);
	struct mock *mock = test->priv;
	struct step *step[NR];
	int i;

	steps_run(test, sequencer, a, step);
	for (i = 1; i < NR; i++) {
		complete(&step[i]->open);
		fairwq_work_flush(&step[i]->swork.work);
		KUNIT_EXPECT_FALSE(test, fairwq_work_cancel_sync(&step[i]->swork.work));
		KUNIT_EXPECT_TRUE(test, step[i]->ended);
	}
	KUNIT_EXPECT_EQ(test, 0U, READ_ONCE(mock->log.nr));
	complete(&step[0]->open);
	fairwq_sequencer_flush(sequencer);
	expect_log(test, "abcde");
}

/* ---- from where works are queued ------------------------------------------- */

/* A step whose function and completion queue @next[0] and @next[1] behind it. */
struct queueing_step {
	struct step step;
	struct step *next[2];
	int ret[2];
};

static void queueing_fn(struct fairwq_work *work)
{
	struct queueing_step *q = container_of(work, struct queueing_step, step.swork.work);

	q->ret[0] = fairwq_sequencer_queue(q->step.sequencer, NULL, q->step.batch,
					   &q->next[0]->swork);
	step_fn(work);
}

static void queueing_complete(struct fairwq_work *work)
{
	struct queueing_step *q = container_of(work, struct queueing_step, step.swork.work);

	q->ret[1] = fairwq_sequencer_queue(q->step.sequencer, NULL, q->step.batch,
					   &q->next[1]->swork);
	q->step.batch = NULL;
	step_complete(work);
}

/* A function and a completion may queue to their own sequencer. */
static void item_and_completion_may_queue(struct kunit *test)
{
	struct queueing_step *q = kunit_kzalloc(test, sizeof(*q), GFP_KERNEL);
	struct fairwq_sequencer *sequencer = sequencer_new(test);
	struct fairwq_batch *a = begin(test, 2);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, q);
	fairwq_sequenced_work_init(&q->step.swork, queueing_fn, queueing_complete);
	init_completion(&q->step.entered);
	init_completion(&q->step.open);
	q->step.mock = test->priv;
	q->step.sequencer = sequencer;
	q->step.batch = a;
	q->step.letter = 'x';
	for (i = 0; i < 2; i++) {
		q->next[i] = step_new(test, sequencer, 'y' + i);
		complete(&q->next[i]->open);
	}
	KUNIT_EXPECT_EQ(test, 1, fairwq_sequencer_queue(sequencer, NULL, a, &q->step.swork));
	complete(&q->step.open);
	expect_log(test, "xyz");
	fairwq_sequencer_flush(sequencer);
	KUNIT_EXPECT_EQ(test, 1, q->ret[0]);
	KUNIT_EXPECT_EQ(test, 1, q->ret[1]);
}

/* A work that was queued without its sequencer has no order, and is reported. */
static void work_without_a_sequencer_is_completed(struct kunit *test)
{
	struct fairwq_sequencer *sequencer = sequencer_new(test);
	struct step *step = step_new(test, NULL, 'x'), *other = step_new(test, sequencer, 'y');
	struct fairwq_batch *a = begin(test, 2);

	complete(&step->open);
	pr_info("# expect-splat begin sequenced_fn\n");
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &step->swork.work));
	expect_log(test, "x");
	fairwq_batch_flush(a);
	pr_info("# expect-splat end\n");
	/* The same if it was in one before, and a drop of one that is in none does nothing. */
	KUNIT_EXPECT_EQ(test, 1, fairwq_sequencer_queue(sequencer, NULL, a, &step->swork));
	KUNIT_EXPECT_EQ(test, 1, fairwq_sequencer_queue(sequencer, NULL, a, &other->swork));
	complete(&step->open);
	expect_log(test, "xx");
	fairwq_work_flush(&step->swork.work);
	complete(&step->open);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &step->swork.work));
	expect_log(test, "xxx");
	fairwq_sequencer_drop(&step->swork.work);
	complete(&other->open);
	fairwq_sequencer_flush(sequencer);
	expect_log(test, "xxxy");
}

/* ---- with a serializer ---------------------------------------------------- */

/* Items that are queued through a limiter of 2 run two at a time, and complete in order. */
static void limiter_and_order_work_together(struct kunit *test)
{
	struct fairwq_sequencer *sequencer = sequencer_new(test);
	struct fairwq_batch *a = begin(test, NR + 1);
	struct fairwq_serializer limiter;
	struct step *step[NR];
	int i;

	fairwq_limiter_init(&limiter, 2);
	for (i = 0; i < NR; i++) {
		step[i] = step_new(test, sequencer, 'a' + i);
		KUNIT_ASSERT_EQ(test, 1, fairwq_sequencer_queue(sequencer, &limiter, a,
								&step[i]->swork));
	}
	mock_await(test, &step[0]->entered);
	mock_await(test, &step[1]->entered);
	KUNIT_EXPECT_EQ(test, FAIRWQ_BUSY_PENDING, fairwq_work_busy(&step[2]->swork.work));
	step_end(test, step[1]);
	mock_await(test, &step[2]->entered);
	step_end(test, step[2]);
	mock_await(test, &step[3]->entered);
	for (i = 0; i < NR; i++)
		complete(&step[i]->open);
	fairwq_sequencer_flush(sequencer);
	expect_log(test, "abcde");
	fairwq_serializer_destroy(&limiter);
}

/* If a batch with a max_active of 2 has items of three serializers, two items run at a time. */
static void limited_batch_limits_its_serializers(struct kunit *test)
{
	static const struct fairwq_batch_attrs two = { .max_active = 2 };
	struct fairwq_batch *a;
	struct fairwq_serializer serial[3];
	struct mock_gate *gate[6];
	int i;

	begin(test, 6);
	a = mock_batch_with(test, "two", &two);
	for (i = 0; i < 3; i++)
		fairwq_serializer_init(&serial[i]);
	/* Each serializer has two items, which run one after the other. */
	for (i = 0; i < 6; i++) {
		gate[i] = mock_gate_new(test);
		KUNIT_ASSERT_EQ(test, 1, fairwq_serializer_queue(&serial[i / 2], a,
								 &gate[i]->work));
	}
	mock_await(test, &gate[0]->entered);
	mock_await(test, &gate[2]->entered);
	KUNIT_EXPECT_EQ(test, FAIRWQ_BUSY_PENDING, fairwq_work_busy(&gate[4]->work));
	complete_all(&gate[0]->open);
	mock_await(test, &gate[4]->entered);
	KUNIT_EXPECT_EQ(test, FAIRWQ_BUSY_PENDING, fairwq_work_busy(&gate[1]->work));
	for (i = 0; i < 6; i++)
		complete_all(&gate[i]->open);
	for (i = 0; i < 3; i++)
		fairwq_serializer_destroy(&serial[i]);
}

/* ---- a wait for the caller's own sequencer -------------------------------- */

static void self_flush_fn(struct fairwq_work *work)
{
	struct step *step = container_of(work, struct step, swork.work);

	fairwq_sequencer_flush(step->sequencer);
	step->ended = true;
}

static void self_wait_warns(struct kunit *test)
{
	struct fairwq_sequencer *sequencer = sequencer_new(test);
	struct step *step = step_new(test, sequencer, 'x');
	struct fairwq_batch *a = begin(test, 2);

	fairwq_sequenced_work_init(&step->swork, self_flush_fn, step_complete);
	pr_info("# expect-splat begin would wait for itself in fairwq_sequencer_flush\n");
	KUNIT_EXPECT_EQ(test, 1, fairwq_sequencer_queue(sequencer, NULL, a, &step->swork));
	fairwq_sequencer_flush(sequencer);
	pr_info("# expect-splat end\n");
	expect_log(test, "x");
}

/* A task that a completion forks, which flushes the sequencer. */
struct flushing {
	struct fairwq_task task;
	struct fairwq_sequencer *sequencer;
	struct completion begun;
};

static void flushing_fn(struct fairwq_task *self)
{
	struct flushing *flushing = container_of(self, struct flushing, task);

	complete(&flushing->begun);
	fairwq_sequencer_flush(flushing->sequencer);
}

static void forking_complete(struct fairwq_work *work)
{
	struct step *step = container_of(work, struct step, swork.work);
	struct flushing flushing = { .sequencer = step->sequencer };
	struct fairwq_task self;

	init_completion(&flushing.begun);
	fairwq_task_here(&self);
	fairwq_task_init(&flushing.task, flushing_fn);
	fairwq_fork(&self, &flushing.task);
	step->early |= !mock_fork_until(&self, &flushing.begun);
	fairwq_join(&self, &flushing.task);
	step_complete(work);
}

/* A task is a part of the completion that has forked it, also on another runner. */
static void task_of_a_completion_may_not_flush(struct kunit *test)
{
	struct fairwq_sequencer *sequencer = sequencer_new(test);
	struct step *step = step_new(test, sequencer, 'x');
	struct mock *mock = test->priv;
	struct fairwq_batch *a;

	mock->max_in_flight = FAIRWQ_MAX_ACTIVE;
	a = begin(test, 2);
	fairwq_sequenced_work_init(&step->swork, step_fn, forking_complete);
	complete_all(&step->open);
	/* self_wait_warns() has seen the warning, which comes once. */
	KUNIT_EXPECT_EQ(test, 1, fairwq_sequencer_queue(sequencer, NULL, a, &step->swork));
	expect_log(test, "x");
	KUNIT_EXPECT_FALSE(test, step->early);
	fairwq_sequencer_flush(sequencer);
}

/* An item whose function makes another work of its memory, and waits for that. */
struct renewed {
	union {
		struct fairwq_work work;
		struct fairwq_sequenced_work swork;
	};
	struct fairwq_sequencer sequencer;
	struct fairwq_batch *batch;
	struct completion done;
	int ret;
	bool ran, completed, waited;
};

static void again_fn(struct fairwq_work *work)
{
	struct renewed *renewed = container_of(work, struct renewed, work);

	/* Give a flush that does not wait the time to return. */
	msleep(20);
	WRITE_ONCE(renewed->ran, true);
}

static void again_complete(struct fairwq_work *work)
{
	container_of(work, struct renewed, work)->completed = true;
}

static void renewed_fn(struct fairwq_work *work)
{
	struct renewed *renewed = container_of(work, struct renewed, work);

	fairwq_sequenced_work_init(&renewed->swork, again_fn, again_complete);
	renewed->ret = fairwq_sequencer_queue(&renewed->sequencer, NULL, renewed->batch,
					      &renewed->swork);
	fairwq_sequencer_flush(&renewed->sequencer);
	renewed->waited = READ_ONCE(renewed->ran) && renewed->completed;
	complete(&renewed->done);
}

/* It does not wait for itself. Its own work is gone, so fairwq must not look at that. */
static void work_in_recycled_memory_may_be_waited_for(struct kunit *test)
{
	struct renewed *renewed = kunit_kzalloc(test, sizeof(*renewed), GFP_KERNEL);
	struct fairwq_batch *a = begin(test, 3);

	KUNIT_ASSERT_NOT_NULL(test, renewed);
	fairwq_sequencer_init(&renewed->sequencer);
	init_completion(&renewed->done);
	renewed->batch = a;
	fairwq_work_init(&renewed->work, renewed_fn);
	KUNIT_EXPECT_EQ(test, 1, fairwq_queue(a, &renewed->work));
	mock_await(test, &renewed->done);
	fairwq_batch_flush(a);
	KUNIT_EXPECT_EQ(test, 1, renewed->ret);
	KUNIT_EXPECT_TRUE(test, renewed->waited);
}

/* ---- several sequencers ------------------------------------------------- */

/* A work that two threads queue at once, each to a sequencer of its own. */
struct contested {
	struct fairwq_sequenced_work swork;
	struct fairwq_sequencer *sequencer[2];
	struct fairwq_batch *batch;
	unsigned int go, done;		/* rounds that were begun, and that the other has done */
	unsigned int queued;		/* by the other */
	atomic_t ran, completed;
};

static void contested_fn(struct fairwq_work *work)
{
	atomic_inc(&container_of(work, struct contested, swork.work)->ran);
}

static void contested_complete(struct fairwq_work *work)
{
	atomic_inc(&container_of(work, struct contested, swork.work)->completed);
}

static bool contest(struct contested *c, int which)
{
	return fairwq_sequencer_queue(c->sequencer[which], NULL, c->batch, &c->swork) == 1;
}

static void contest_other(void *arg)
{
	struct contested *c = arg;
	unsigned int round = 0;

	/* The last round is UINT_MAX. */
	while (round != UINT_MAX) {
		/* Pairs with contest_round(). */
		while (smp_load_acquire(&c->go) == round)
			cond_resched();
		round = READ_ONCE(c->go);
		c->queued += contest(c, 1);
		/* So does this: @queued is seen. */
		smp_store_release(&c->done, round);
	}
}

/* Let both queue it at once. Return: whether it was completed before @end. */
static bool contest_round(struct contested *c, unsigned int round, unsigned long end,
			  unsigned int *queued)
{
	unsigned int i;

	/* Pairs with contest_other(). */
	smp_store_release(&c->go, round);
	for (i = 0; i < round % 64; i++)	/* until the other sees that */
		cpu_relax();
	*queued += contest(c, 0);
	/* Pairs with contest_other(). */
	while (smp_load_acquire(&c->done) != round ||
	       atomic_read(&c->completed) < *queued + c->queued) {
		if (time_after(jiffies, end))
			return false;
		cond_resched();
	}
	return true;
}

/* Of several queue calls for a work one returns 1, also if each is for another sequencer. */
static void work_is_in_one_sequencer(struct kunit *test)
{
	struct contested *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	unsigned long end = jiffies + 2 * HZ;
	unsigned int queued = 0, round = 0;
	struct caller *other;

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->batch = begin(test, 2);
	c->sequencer[0] = sequencer_new(test);
	c->sequencer[1] = sequencer_new(test);
	fairwq_sequenced_work_init(&c->swork, contested_fn, contested_complete);
	other = mock_caller(test, contest_other, c);
	while (++round < MOCK_MANY(20000) && contest_round(c, round, end, &queued))
		;
	/* Pairs with contest_other(). */
	smp_store_release(&c->go, UINT_MAX);
	mock_caller_end(test, other);
	fairwq_batch_flush(c->batch);
	fairwq_sequencer_flush(c->sequencer[0]);
	fairwq_sequencer_flush(c->sequencer[1]);
	KUNIT_EXPECT_EQ(test, queued + c->queued, (unsigned int)atomic_read(&c->ran));
	KUNIT_EXPECT_EQ(test, queued + c->queued, (unsigned int)atomic_read(&c->completed));
}

/* ---- ordered batches ---------------------------------------------------- */

/* The works of an ordered batch are completed when a flush of it returns. */
static void ordered_batch_completes_in_queue_order(struct kunit *test)
{
	const struct fairwq_batch_attrs attrs = { .ordered = true };
	struct mock *mock = test->priv;
	struct fairwq_batch *ordered;
	struct step *step[NR];
	int i;

	begin(test, NR + 1);
	ordered = mock_batch_with(test, "ordered", &attrs);
	steps_run(test, NULL, ordered, step);
	for (i = NR - 1; i > 0; i--)
		step_end(test, step[i]);
	KUNIT_EXPECT_EQ(test, 0U, READ_ONCE(mock->log.nr));
	complete(&step[0]->open);
	fairwq_batch_flush(ordered);
	KUNIT_EXPECT_STREQ(test, "abcde", &mock->log.text[0]);
	for (i = 0; i < NR; i++)
		KUNIT_EXPECT_FALSE(test, step[i]->early);
}

/* A disposed ordered batch is released after its last completion. */
static void ordered_batch_stays_until_all_are_completed(struct kunit *test)
{
	atomic_t released = ATOMIC_INIT(0);
	const struct fairwq_batch_attrs attrs = {
		.ordered = true, .released = mock_released_count, .priv = &released,
	};
	struct fairwq_batch *ordered;
	struct step *step[NR];
	int i;

	begin(test, NR + 1);
	ordered = mock_own_batch(test, "ordered", &attrs);
	steps_run(test, NULL, ordered, step);
	fairwq_batch_dispose(ordered);
	for (i = NR - 1; i > 0; i--)
		step_end(test, step[i]);
	mock_wait_released();
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&released));
	complete(&step[0]->open);
	mock_until(test, atomic_read(&released) == 1);
	expect_log(test, "abcde");
}

/* A work that a cancel has taken out is dropped from the order of its batch, too. */
static void ordered_batch_goes_on_after_a_cancel(struct kunit *test)
{
	const struct fairwq_batch_attrs attrs = { .ordered = true };
	struct fairwq_batch *ordered;
	struct step *step[3];
	int i;

	begin(test, 2);
	ordered = mock_batch_with(test, "ordered", &attrs);
	fairwq_batch_pause(ordered);
	for (i = 0; i < 3; i++) {
		step[i] = step_new(test, NULL, 'a' + i);
		complete(&step[i]->open);
		KUNIT_ASSERT_EQ(test, 1, fairwq_sequencer_queue(NULL, NULL, ordered,
								&step[i]->swork));
	}
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&step[0]->swork.work));
	fairwq_sequencer_drop(&step[0]->swork.work);
	fairwq_batch_resume(ordered);
	fairwq_batch_flush(ordered);
	expect_log(test, "bc");
}

/* A work that was cancelled keeps the memory of its ordered batch until it is dropped. */
static void cancelled_work_keeps_its_ordered_batch(struct kunit *test)
{
	const struct fairwq_batch_attrs attrs = { .ordered = true };
	struct step *step = step_new(test, NULL, 'x');
	struct fairwq_batch *ordered;
	long live;

	begin(test, 2);
	mock_wait_released();	/* also those of the cases before */
	live = fairwq_test_live_batches();
	ordered = mock_own_batch(test, "ordered", &attrs);
	fairwq_batch_pause(ordered);
	KUNIT_ASSERT_EQ(test, 1, fairwq_sequencer_queue(NULL, NULL, ordered, &step->swork));
	KUNIT_EXPECT_TRUE(test, fairwq_work_cancel(&step->swork.work));
	fairwq_batch_dispose(ordered);
	mock_wait_released();
	KUNIT_EXPECT_EQ(test, live + 1, fairwq_test_live_batches());
	fairwq_sequencer_drop(&step->swork.work);
	mock_wait_released();
	KUNIT_EXPECT_EQ(test, live, fairwq_test_live_batches());
}

static void setup_ordered(struct fairwq_flow_attrs *attrs, u64 key, void *data)
{
	attrs->batch.ordered = true;
}

/* Keys beyond the limit share a batch that takes the same calls, whoever has asked for order. */
static void keys_beyond_the_limit_are_ordered_too(struct kunit *test)
{
	struct step *step[3];
	struct mock *mock = test->priv;
	struct fairwq_flows *flows;
	unsigned int i;
	int ret;

	begin(test, 2);
	flows = fairwq_flows_create(mock->pool, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(flows));
	KUNIT_EXPECT_EQ(test, 0, fairwq_flows_set_setup(flows, setup_ordered, NULL));
	KUNIT_EXPECT_EQ(test, 0, fairwq_flows_set_max(flows, 1));
	for (i = 0; i < 3; i++) {
		step[i] = step_new(test, NULL, 'a' + i);
		complete(&step[i]->open);
		scoped_guard(rcu)
			ret = fairwq_sequencer_queue(NULL, NULL, fairwq_flows_batch(flows, i),
						     &step[i]->swork);
		KUNIT_EXPECT_EQ(test, 1, ret);
	}
	fairwq_flows_destroy(flows);
	KUNIT_EXPECT_EQ(test, 3U, READ_ONCE(mock->log.nr));
}

/* The batch of a key may be ordered, and each of them is so by itself. */
static void ordered_flows_are_in_order_each(struct kunit *test)
{
	const struct fairwq_batch_attrs attrs = { .ordered = true };
	struct mock *mock = test->priv;
	struct fairwq_flows *flows;
	struct step *step[4];
	int i;

	begin(test, 5);
	flows = fairwq_flows_create(mock->pool, &attrs);
	KUNIT_ASSERT_FALSE(test, IS_ERR(flows));
	for (i = 0; i < 4; i++) {
		step[i] = step_new(test, NULL, 'a' + i);
		guard(rcu)();
		KUNIT_EXPECT_EQ(test, 1, fairwq_sequencer_queue(NULL, NULL,
								fairwq_flows_batch(flows, i % 2),
								&step[i]->swork));
	}
	for (i = 0; i < 4; i++)
		mock_await(test, &step[i]->entered);
	step_end(test, step[2]);		/* behind the first of its key */
	step_end(test, step[1]);
	expect_log(test, "b");
	step_end(test, step[0]);
	expect_log(test, "bac");
	complete(&step[3]->open);
	fairwq_flows_destroy(flows);
	expect_log(test, "bacd");
}

/* Without a sequencer the batch must be an ordered one. */
static void plain_batch_is_not_ordered(struct kunit *test)
{
	struct step *step = step_new(test, NULL, 'a');
	struct fairwq_batch *a = begin(test, 1);

	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_sequencer_queue(NULL, NULL, a, &step->swork));
	KUNIT_EXPECT_EQ(test, -EINVAL, fairwq_sequencer_queue(NULL, NULL, NULL, &step->swork));
	KUNIT_EXPECT_FALSE(test, fairwq_work_pending(&step->swork.work));
}

static struct kunit_case sequencer_cases[] = {
	KUNIT_CASE(items_are_completed_in_queue_order),
	KUNIT_CASE(those_in_front_are_completed_at_once),
	KUNIT_CASE(end_beside_a_completion_is_not_lost),
	KUNIT_CASE(completion_may_queue_its_work_again),
	KUNIT_CASE(all_may_be_freed),
	KUNIT_CASE(last_completion_may_free_the_sequencer),
	KUNIT_CASE(new_sequencer_at_the_address_is_another),
	KUNIT_CASE(dropped_work_lets_the_others_go_on),
	KUNIT_CASE(batch_is_cancelled),
	KUNIT_CASE(refused_work_holds_up_nothing),
	KUNIT_CASE(flush_of_the_pool_covers_completions),
	KUNIT_CASE(flush_covers_no_completion_by_another_pool),
	KUNIT_CASE(cancel_sync_does_not_wait_for_the_completion),
	KUNIT_CASE(item_and_completion_may_queue),
	KUNIT_CASE(work_without_a_sequencer_is_completed),
	KUNIT_CASE(limiter_and_order_work_together),
	KUNIT_CASE(limited_batch_limits_its_serializers),
	KUNIT_CASE(self_wait_warns),
	KUNIT_CASE(task_of_a_completion_may_not_flush),
	KUNIT_CASE(work_in_recycled_memory_may_be_waited_for),
	KUNIT_CASE(work_is_in_one_sequencer),
	KUNIT_CASE(ordered_batch_completes_in_queue_order),
	KUNIT_CASE(ordered_batch_stays_until_all_are_completed),
	KUNIT_CASE(ordered_batch_goes_on_after_a_cancel),
	KUNIT_CASE(cancelled_work_keeps_its_ordered_batch),
	KUNIT_CASE(keys_beyond_the_limit_are_ordered_too),
	KUNIT_CASE(ordered_flows_are_in_order_each),
	KUNIT_CASE(plain_batch_is_not_ordered),
	{}
};

static struct kunit_suite sequencer_suite = {
	.name = "fairwq_sequencer",
	.init = mock_init,
	.exit = mock_exit,
	.test_cases = sequencer_cases,
};

kunit_test_suite(sequencer_suite);

MODULE_DESCRIPTION("KUnit: items that are completed in order");
MODULE_LICENSE("GPL");
