/* SPDX-License-Identifier: GPL-2.0 */
/* The main loop of a runner: what the workqueue core calls. */
#ifndef FAIRWQ_RUN_H
#define FAIRWQ_RUN_H

#include <linux/workqueue.h>

void fairwq_run(struct work_struct *work);

#endif /* FAIRWQ_RUN_H */
