/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls: what surrounds the function of an item. The part that each item needs
 * is here, to be inline; the rest is in call.c.
 */
#ifndef FAIRWQ_CALL_H
#define FAIRWQ_CALL_H

#include <linux/cred.h>
#include <linux/debug_locks.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "lockdep.h"
#include "types.h"

/* The state that an item must leave as it found it. */
struct fairwq_call_state {
	struct task_struct *self;	/* the runner's: current may cost a call */
	int preempt;
	int locks;
	int rcu;
	const struct cred *cred;
};

void fairwq_call_begin(struct fairwq_call_state *state);
void fairwq_call_leaked(struct fairwq_call_state *before, fairwq_func_t func,
			struct fairwq_batch *batch);

/* Return the credentials of @self, which must be the current task. */
static inline const struct cred *fairwq_cred_of(const struct task_struct *self)
{
	return rcu_dereference_protected(self->cred, self == current);
}

/* Check whether all is as fairwq_call_begin() has found it. */
static inline bool fairwq_call_state_kept(const struct fairwq_call_state *before)
{
	return likely(preempt_count() == before->preempt &&
		      /* Once lockdep has found something anywhere, it counts none. */
		      (lockdep_depth(before->self) == before->locks || !debug_locks) &&
		      rcu_preempt_depth() == before->rcu &&
		      fairwq_cred_of(before->self) == before->cred && !irqs_disabled());
}

/* Call the function of an item; @work may be gone when it returns. */
static __always_inline void fairwq_call(struct fairwq_work *work,
					const struct fairwq_turn *turn,
					struct fairwq_call_state *state)
{
	/* It may be claimed again by now, which leaves these flags as they are. */
	bool waited = data_race(fairwq_is_of_client(work));
#ifdef CONFIG_LOCKDEP
	struct lockdep_map map;

	/* A copy: the function may free the work, and lockdep needs the map. */
	lockdep_copy_map(&map, &work->lockdep_map);
#endif
	lock_map_acquire(&turn->batch->pool->lockdep_map);
	if (turn->serializer)
		lock_map_acquire(&turn->serializer->lockdep_map);
	if (waited)
		lock_map_acquire(&map);
	turn->func(work);
	if (waited)
		lock_map_release(&map);
	if (turn->serializer)
		lock_map_release(&turn->serializer->lockdep_map);
	lock_map_release(&turn->batch->pool->lockdep_map);
	if (!fairwq_call_state_kept(state))
		fairwq_call_leaked(state, turn->func, turn->batch);
}

#endif /* FAIRWQ_CALL_H */
