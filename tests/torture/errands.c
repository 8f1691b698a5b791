// SPDX-License-Identifier: GPL-2.0
/*
 * Errands: items that an actor lets run for one of many users. Each must act
 * for that user, and so must its tasks. All other items must act for root.
 */
#define pr_fmt(fmt) "fairwq-torture: " fmt

#include <linux/cred.h>

#include "torture.h"

struct tt_errand {
	struct fairwq_work work;
	struct fairwq_context *context;
	kuid_t uid;
	u32 dice;
};

static void tt_serve(void *arg)
{
	struct tt_errand *errand = arg;

	tt_judge_user(errand->uid);
	tt_fork(errand->dice);
	tt_behave_seldom(errand->dice);
	tt_judge_user(errand->uid);
}

static void tt_errand_fn(struct fairwq_work *work)
{
	struct tt_errand *errand = container_of(work, struct tt_errand, work);

	fairwq_context_call(errand->context, tt_serve, errand);
	tt_judge_user(GLOBAL_ROOT_UID);
	tt_count(TT_ERRANDS, 1);
}

/* Report an item that does not act for user @uid. */
void tt_judge_user(kuid_t uid)
{
	if (!uid_eq(current_fsuid(), uid))
		tt_problem("an item for user %u acted for user %u\n", __kuid_val(uid),
			   __kuid_val(current_fsuid()));
}

bool tt_is_errand(const struct fairwq_work *work)
{
	return work->func == tt_errand_fn;
}

/* Capture the context that a task of user @uid would have. Return: it, or an error. */
static struct fairwq_context *tt_context_of(kuid_t uid)
{
	struct cred *cred = prepare_creds();
	struct fairwq_context *context;
	const struct cred *old;

	if (!cred)
		return ERR_PTR(-ENOMEM);
	cred->fsuid = uid;
	old = override_creds(cred);
	context = fairwq_context_capture(GFP_KERNEL);
	revert_creds(old);
	put_cred(cred);
	return context;
}

/* Queue an errand, let it run for a moment, and cancel it if it has not begun. */
void tt_op_errand(struct tt_actor *actor)
{
	struct tt_errand errand = {
		.uid = KUIDT_INIT(1000 + tt_random(actor, 1000)),
		.dice = tt_random(actor, 1U << 31),
	};
	struct fairwq_batch *batch = tt_get_batch(actor);

	if (!batch)
		return;
	errand.context = tt_context_of(errand.uid);
	if (!IS_ERR(errand.context)) {
		fairwq_work_init(&errand.work, tt_errand_fn);
		if (fairwq_queue(batch, &errand.work) > 0)
			schedule_timeout_uninterruptible(tt_random(actor, 3));
		fairwq_work_cancel_sync(&errand.work);
		fairwq_context_put(errand.context);
	}
	fairwq_batch_put(batch);
}
