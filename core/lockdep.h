/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lockdep: the maps that make it report a deadlock when its shape first
 * appears, and not when it strikes.
 *
 *   Map              Held around                     Taken for a moment by
 *   of a pool        each item                       a call that waits for the
 *                                                    pool or one of its batches
 *   released_map     each released() of a pool       a call that waits for the end
 *                                                    of the pool, or of a batch
 *   of a serializer  each item of it                 a call that waits for it
 *   of a work        its function, if a client has   a call that waits for it
 *                    queued it
 *   of a task        its function, but for tasks     a join of it: fairwq.h
 *                    that this joins
 *
 * One map for all batches of a pool is right, because they share its runners.
 * To wait for one batch with a lock held that items of another batch take can
 * hang for good.
 *
 * The map of a serializer is taken inside that of the pool. So an item of the
 * pool may wait for a serializer, which lockdep cannot judge.
 *
 * The runners of a pool have a class of their own, because an item may destroy
 * another pool and wait for its workqueue.
 *
 * Without CONFIG_LOCKDEP a map has no size, and the kernel's macros do nothing.
 */
#ifndef FAIRWQ_LOCKDEP_H
#define FAIRWQ_LOCKDEP_H

#include <linux/lockdep.h>

/*
 * Tell lockdep that the caller is about to wait for what holds @map.
 * fairwq_wait_begin() in runner.c also checks for memory reclaim.
 */
static inline void fairwq_lockdep_wait(struct lockdep_map *map)
{
	lock_map_acquire(map);
	lock_map_release(map);
}

#endif /* FAIRWQ_LOCKDEP_H */
