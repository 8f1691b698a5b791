/* SPDX-License-Identifier: GPL-2.0 */
/* Stacks: a call that has more stack than the caller has left. */
#ifndef FAIRWQ_STACK_H
#define FAIRWQ_STACK_H

#include <linux/sched.h>

#include "types.h"

/* What an item may have said of its allocations, such as by memalloc_noio_save(). */
#define FAIRWQ_SCOPES	(PF_MEMALLOC | PF_MEMALLOC_NOFS | PF_MEMALLOC_NOIO)

/*
 * Give the current task the allocation scopes of an item for which it runs a
 * part.
 *
 * Return: what fairwq_scopes_leave() needs.
 */
static inline unsigned int fairwq_scopes_enter(unsigned int scopes)
{
	unsigned int flags = current->flags;

	/*
	 * Only a task itself writes its flags. Other CPUs read those of a
	 * worker without a lock if a CPU goes away or comes back.
	 */
	data_race(current->flags |= scopes);
	return flags;
}

static inline void fairwq_scopes_leave(unsigned int flags)
{
	/* As above. */
	data_race(({ current_restore_flags(flags, FAIRWQ_SCOPES); 0; }));
}

struct fairwq_runner *fairwq_stack_runner(const struct work_struct *work, work_func_t func);
int fairwq_stack_call(struct fairwq_runner *runner, void (*func)(void *arg), void *arg);
int fairwq_stack_init(void);
void fairwq_stack_exit(void);

#endif /* FAIRWQ_STACK_H */
