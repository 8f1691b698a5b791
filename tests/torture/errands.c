// SPDX-License-Identifier: GPL-2.0
/*
 * Errands: items that an actor lets run for one of many users. Each must act for that
 * user, and so must its tasks. All other items must act for root.
 */
#define pr_fmt(fmt) "fairwq-torture: " fmt

#include <linux/cred.h>

#include "torture.h"

struct tt_errand {
	struct fairwq_context_work cwork;
	kuid_t uid;
	u32 dice;
};

static void tt_errand_fn(struct fairwq_work *work)
{
	struct tt_errand *errand = container_of(work, struct tt_errand, cwork.work);

	tt_judge_user(errand->uid);
	tt_fork(errand->dice);
	tt_behave_seldom(errand->dice);
	tt_judge_user(errand->uid);
	tt_count(TT_ERRANDS, 1);
}

/* Report an item that does not act for user @uid. */
void tt_judge_user(kuid_t uid)
{
	if (!uid_eq(current_fsuid(), uid))
		tt_problem("an item for user %u acted for user %u\n", __kuid_val(uid),
			   __kuid_val(current_fsuid()));
}

/* An errand to compare with: fairwq gives all of them the same function. */
static struct fairwq_context_work tt_any_errand;

void tt_errands_init(void)
{
	fairwq_context_work_init(&tt_any_errand, tt_errand_fn);
}

bool tt_is_errand(const struct fairwq_work *work)
{
	return work->func == tt_any_errand.work.func;
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
	struct fairwq_context *context;

	if (!batch)
		return;
	context = tt_context_of(errand.uid);
	if (!IS_ERR(context)) {
		fairwq_context_work_init(&errand.cwork, tt_errand_fn);
		fairwq_work_set_context(&errand.cwork, context);
		fairwq_context_put(context);
		if (fairwq_queue(batch, &errand.cwork.work) > 0)
			schedule_timeout_uninterruptible(tt_random(actor, 3));
		fairwq_work_cancel_sync(&errand.cwork.work);
		fairwq_work_set_context(&errand.cwork, NULL);
	}
	fairwq_batch_put(batch);
}
