/* SPDX-License-Identifier: GPL-2.0 */
/* Stacks: a call that has more stack than the caller has left. */
#ifndef FAIRWQ_STACK_H
#define FAIRWQ_STACK_H

#include "types.h"

/* What an item may have said of its allocations, such as by memalloc_noio_save(). */
#define FAIRWQ_SCOPES	(PF_MEMALLOC | PF_MEMALLOC_NOFS | PF_MEMALLOC_NOIO)

struct fairwq_runner *fairwq_stack_runner(const struct work_struct *work);
int fairwq_stack_call(struct fairwq_runner *runner, void (*func)(void *arg), void *arg);
int fairwq_stack_init(void);
void fairwq_stack_exit(void);

#endif /* FAIRWQ_STACK_H */
