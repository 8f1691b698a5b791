/* SPDX-License-Identifier: GPL-2.0 */
/* Contexts: on whose behalf an item runs. See context.c. */
#ifndef FAIRWQ_CORE_CONTEXT_H
#define FAIRWQ_CORE_CONTEXT_H

#include "types.h"

void fairwq_context_run(struct fairwq_context *context,
			void (*func)(void *arg), void *arg);
void fairwq_context_fn(struct fairwq_work *work);

#endif /* FAIRWQ_CORE_CONTEXT_H */
