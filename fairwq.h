/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fairwq: fair shares of one pool of workers between the clients that queue
 * to it.
 *
 * A worker pool of the kernel's workqueues serves one FIFO, so the client that
 * queues most is served most. fairwq puts a queue per client, a *batch*, in
 * front of a workqueue. The batches take turns.
 *
 *   struct fairwq_pool *pool = fairwq_pool_create(NULL, "mydrv");
 *   struct fairwq_batch *batch = fairwq_batch_create(pool, NULL, "client-%d", id);
 *
 *   fairwq_work_init(&obj->work, my_func);
 *   fairwq_queue(batch, &obj->work);
 *   ...
 *   fairwq_batch_dispose(batch);      accepted items still run
 *   fairwq_pool_destroy(pool);        returns when all of them have run
 *
 * A queue call may be refused, so it is __must_check.
 *
 * Contents:
 *
 *   Work              one item: set up, queue, cancel, disable, wait
 *   Batch             the queue of one client: its share, limits and end
 *   Pool              the runners, and the batches that they serve
 *   Delayed and RCU   items that are queued later
 *   Blocking          items that wait for long
 *   Turns that go on  items whose function only starts something
 *   Context           the user on whose behalf an item runs
 *   Order             serializer (one item at a time), limiter (N at a time),
 *                     sequencer (completed in order)
 *   Flows             a batch per number, made on first use
 *   Fork and join     parts of an item that idle runners may take
 *   Failure           items that report an error
 *   Limits            what this interface does not do
 *
 * Lifetimes:
 *
 *   object   lives until                   its memory goes
 *   pool     fairwq_pool_destroy()         after those of its batches
 *   batch    disposed and drained          a grace period after its last
 *                                          reference
 *   flows    fairwq_flows_destroy()        before that returns
 *   work     the caller's object goes      with that object: see below
 *
 * A work belongs to the caller unless it is pending. While it is pending, the
 * caller must not free it or write to it. fairwq does not touch a work once
 * its function was called, so the function may free it. A work of a sequencer
 * belongs to fairwq until its completion was called, or it was dropped: see
 * fairwq_sequencer_queue().
 *
 * Calls that may run at the same time, on one batch B and one work W. Each
 * cell is the result for both calls:
 *
 *              queue(B,W)   dispose(B)  flush(B)  pause/resume(B)  free W
 * queue(B,W)   one gets 1,  run or      waits     safe             caller
 *              others 0     refused     or not                     excludes
 * dispose(B)                one ends B  safe      safe             safe
 * flush(B)                              safe      safe, waits      safe after
 *
 * The same for calls that take works out of the queue, or wait for one:
 *
 *              queue(B,W)    dispose(B)  cancel(W)   cancel_sync(W)  flush(W)
 * cancel(W)    before or     safe        one gets    one gets true   ends the
 *              after it                  true                        wait
 * cancel_      refused       safe                    both wait       ends the
 * sync(W)      meanwhile                                             wait
 * flush(W)     of works      W runs,                                 both wait
 *              queued before then B goes
 * cancel(B)    of works      released    W goes to   W goes to       ends the
 *              queued before after it    one call    one call        wait
 *
 * W may be freed after cancel_sync(W). It may be freed after a cancel(W) that
 * returned true if its function does not run. Both hold only if no caller
 * queues W meanwhile, if W is in no sequencer, and if no cancel or shutdown of
 * its batch or serializer has given W to dropped().
 */
#ifndef FAIRWQ_H
#define FAIRWQ_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/cleanup.h>
#include <linux/err.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/spinlock.h>
#include <linux/stringify.h>
#include <linux/thread_info.h>
#include <linux/timer.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#define FAIRWQ_VERSION_MAJOR	0
#define FAIRWQ_VERSION_MINOR	3
#define FAIRWQ_VERSION_PATCH	0
#define FAIRWQ_VERSION		__stringify(FAIRWQ_VERSION_MAJOR) "." \
				__stringify(FAIRWQ_VERSION_MINOR) "." \
				__stringify(FAIRWQ_VERSION_PATCH)

/**
 * FAIRWQ_VERSION_AT_LEAST - check the version of this header
 * @a: the major number
 * @b: the minor number
 * @c: the patch number
 *
 * Return: true if this header is of version @a.@b.@c or newer.
 */
#define FAIRWQ_VERSION_AT_LEAST(a, b, c) \
	(((FAIRWQ_VERSION_MAJOR) << 16) + ((FAIRWQ_VERSION_MINOR) << 8) + \
	 (FAIRWQ_VERSION_PATCH) >= ((a) << 16) + ((b) << 8) + (c))

struct fairwq_pool;
struct fairwq_batch;
struct fairwq_serializer;
struct fairwq_context;
struct fairwq_runner;
struct fairwq_flows;
struct fairwq_work;

/* ---- Work --------------------------------------------------------------- */

/**
 * typedef fairwq_func_t - the function of a work
 * @work: the work that was queued
 *
 * A worker of the kernel's workqueue calls it in process context, with
 * interrupts on. It may sleep. It may queue @work again, which then goes to the
 * tail of its batch. It may free @work, queue other works, or dispose of its
 * batch. The function of a work of a sequencer must not free it.
 */
typedef void (*fairwq_func_t)(struct fairwq_work *work);

/**
 * struct fairwq_work - an item, embedded in the caller's object
 *
 * Set up by fairwq_work_init(). Every field is fairwq's own.
 */
struct fairwq_work {
	/* private: */
	atomic_long_t data;		/* its state, FAIRWQ_STATE_*, and its batch; or 0 */
	u32 last_runner;		/* id of the runner that started it last, 0: none */
	u16 flags;			/* FAIRWQ_WORK_* */
	u16 disabled;			/* how often */
	union {
		struct list_head node;		/* while it waits in a list */
		struct hlist_node later;	/* while its timer is set */
	};
	fairwq_func_t func;
	struct fairwq_serializer *serializer; /* while pending: to be told of its end, or NULL */
	u64 stamp;			/* when it was queued, ns; 0: not measured */
	struct lockdep_map lockdep_map;	/* of no size without CONFIG_LOCKDEP */
};

#ifdef CONFIG_LOCKDEP
#define __FAIRWQ_WORK_LOCKDEP(name) \
	.lockdep_map = STATIC_LOCKDEP_MAP_INIT("(fairwq_work)" #name, &(name)),
#else
#define __FAIRWQ_WORK_LOCKDEP(name)
#endif

/**
 * DEFINE_FAIRWQ_WORK - define a work that is set up at compile time
 * @name: the variable
 * @function: the function to call when the work has its turn
 */
#define DEFINE_FAIRWQ_WORK(name, function)				\
	struct fairwq_work name = {					\
		.data = ATOMIC_LONG_INIT(0),				\
		.func = (function),					\
		__FAIRWQ_WORK_LOCKDEP(name)				\
	}

/*
 * Set up an object by @init, which gets the rest of the arguments, a name, and a lockdep
 * class of its own for each place in the source.
 */
#define __fairwq_init(name, init, ...)					\
	do {								\
		static struct lock_class_key __fairwq_key;		\
									\
		init(__VA_ARGS__, name, &__fairwq_key);			\
	} while (0)

/**
 * fairwq_work_init - set up a work
 * @work: the work
 * @func: the function to call when the work has its turn
 *
 * The caller must not set up a work that is pending. Only the work's own
 * function may set it up while it runs. Each place in the source that calls
 * this is a lockdep class of its own, as with INIT_WORK().
 *
 * Context: Any.
 */
#define fairwq_work_init(work, func)					\
	__fairwq_init("(fairwq_work)" #work, __fairwq_work_init, work, func)

/**
 * fairwq_work_init_onstack - set up a work that lies on the stack
 * @work: the work
 * @func: the function to call when the work has its turn
 *
 * As fairwq_work_init(). The caller must wait until the function has returned
 * before it leaves the frame that holds @work.
 *
 * Context: Any.
 */
#define fairwq_work_init_onstack(work, func) fairwq_work_init(work, func)

void __fairwq_work_init(struct fairwq_work *work, fairwq_func_t func,
			const char *name, struct lock_class_key *key);

/**
 * fairwq_queue - queue a work to a batch
 * @batch: the batch. The caller must hold a reference, or know otherwise that
 *	it was not released
 * @work: the work, set up by fairwq_work_init()
 *
 * Items of one batch start in the order in which they were queued. If this
 * returns 1 or 0, the run to come sees everything that the caller stored before
 * the call. On 0 or an error nothing was changed. After an error @work is the
 * caller's, unless it was pending.
 *
 * If several of the values below hold, the first one of the list is returned.
 *
 * No error can come if @batch has no max_queued, and the caller keeps two
 * rules. It disposes of @batch, and drains or destroys its pool, only after its
 * last queue call. And it disables no work.
 *
 * What is not promised: the order in which items end, and the CPU.
 *
 * Context: Any but NMI. Does not sleep, allocates nothing. May be called from
 * @work's own function.
 * Return:
 * * -EINVAL: an argument is bad, or @work was not set up
 * * 0: @work is pending already, and not disabled
 * * -ESHUTDOWN: @batch was disposed; or its pool is being drained or destroyed,
 *   and the caller is not one of its items
 * * -EAGAIN: @batch has max_queued items
 * * -ECANCELED: @work is disabled
 * * 1: @work was queued
 */
__must_check
int fairwq_queue(struct fairwq_batch *batch, struct fairwq_work *work);

/**
 * fairwq_work_pending - check whether a work is queued and not yet started
 * @work: the work
 *
 * A hint: the answer may be out of date when it is returned.
 *
 * Context: Any.
 * Return: true if it is.
 */
static inline bool fairwq_work_pending(const struct fairwq_work *work)
{
	return atomic_long_read(&work->data);
}

/* What fairwq_work_busy() returns, with the values of WORK_BUSY_PENDING and _RUNNING. */
#define FAIRWQ_BUSY_PENDING	BIT(0)
#define FAIRWQ_BUSY_RUNNING	BIT(1)

/**
 * fairwq_work_busy - check whether a work is queued, and whether it runs
 * @work: the work. The caller must keep it from being freed during the call
 *
 * A hint, for debugging and statistics: the answer may be out of date when it is
 * returned. A work may still count as running for a moment after its function
 * has returned.
 *
 * Context: Any but NMI. Does not sleep.
 * Return: FAIRWQ_BUSY_PENDING if @work is queued and not yet started,
 * FAIRWQ_BUSY_RUNNING if its function runs, both, or 0.
 */
unsigned int fairwq_work_busy(struct fairwq_work *work);

/**
 * fairwq_current_work - return the item that the caller runs in
 *
 * For a function that may be called by an item and must not wait for that item.
 * In a task it is the item that has forked the task, also if another runner has
 * taken the task.
 *
 * What is not promised: that the work still exists, because its function may
 * have freed it. Then only the address means something.
 *
 * Context: Any but NMI. Does not sleep.
 * Return: the work, or NULL if the caller is not an item. In an interrupt that
 * is so, also on top of an item.
 */
struct fairwq_work *fairwq_current_work(void);

/**
 * fairwq_work_cancel - take a work out of the queue
 * @work: the work
 *
 * Does not wait for the function. If this returns true, the caller may free
 * @work. It must not if a queue call for @work is still under way, or if the
 * function still runs from an earlier queue call. A work of a sequencer must go
 * to fairwq_sequencer_drop() first.
 *
 * A work that waits for a grace period stays pending.
 *
 * What is not promised: that the function does not run when this returns. If
 * this returned false, it may be about to start. A queue call that is under way
 * on another CPU may come later.
 *
 * Context: Any but NMI. Does not sleep. May be called from @work's own
 * function.
 * Return: true if @work was pending and is not any more.
 */
bool fairwq_work_cancel(struct fairwq_work *work);

/**
 * fairwq_work_cancel_sync - cancel a work and wait until it does not run
 * @work: the work
 *
 * On return @work is neither pending nor running, also if its function queues
 * itself, because @work is disabled during the call. The caller may free it
 * unless others queue it afterwards.
 *
 * But a work of a sequencer may still be completed, if this returns false. So
 * it may be freed only after fairwq_sequencer_flush() or its completion. If this
 * returns true, it may be freed after fairwq_sequencer_drop().
 *
 * If @work waits for a grace period, this waits for the end of that, as
 * cancel_work_sync() does.
 *
 * What is not promised: that a call of dropped() for @work has returned; see
 * fairwq_batch_cancel().
 *
 * Context: Process context, sleeps. From @work's own function it warns and does
 * not wait.
 * Return: true if @work was pending.
 */
bool fairwq_work_cancel_sync(struct fairwq_work *work);

/**
 * fairwq_work_disable - cancel a work and refuse to queue it
 * @work: the work
 *
 * Disabling is counted, up to 65,535: queue calls return -ECANCELED until
 * fairwq_work_enable() was called as often. The rest is as with
 * fairwq_work_cancel().
 *
 * Context: Any but NMI. Does not sleep. May be called from @work's own
 * function.
 * Return: true if @work was pending and is not any more.
 */
bool fairwq_work_disable(struct fairwq_work *work);

/**
 * fairwq_work_disable_sync - disable a work and wait until it does not run
 * @work: the work
 *
 * On return @work is neither pending nor running, and stays so until it is
 * enabled. Waits as fairwq_work_cancel_sync() does.
 *
 * Context: Process context, sleeps. From @work's own function it warns and does
 * not wait.
 * Return: true if it took @work out. False also if @work ran instead, after a grace
 * period that it waited for.
 */
bool fairwq_work_disable_sync(struct fairwq_work *work);

/**
 * fairwq_work_enable - undo one fairwq_work_disable()
 * @work: the work
 *
 * Does not queue @work, even if queue calls were refused meanwhile.
 *
 * Context: Any but NMI. Does not sleep.
 * Return: true if @work can be queued again, false if it is still disabled.
 */
bool fairwq_work_enable(struct fairwq_work *work);

/**
 * fairwq_work_flush - wait for the run that was queued last
 * @work: the work. The caller must keep it from being freed during the call
 *
 * If @work is pending, this waits until that run has ended or was cancelled.
 * Otherwise it waits for the run that is under way, if there is one. If @work
 * waits in a serializer, this sleeps until it is let go, and may then wait for
 * a later run.
 *
 * What is not promised: runs that are queued during the call are not waited
 * for, nor is the delay of a delayed work: see fairwq_delayed_work_flush(). Nor
 * is the completion of a work of a sequencer, nor dropped() of a cancel or shutdown
 * that drops @work at the time.
 *
 * Context: Process context, sleeps. From @work's own function it warns and
 * returns false. It does the same from an item of a serializer that runs one
 * at a time, in which @work waits behind that item.
 * Return: true if it waited, false if there was nothing to wait for.
 */
bool fairwq_work_flush(struct fairwq_work *work);

/* ---- Batch -------------------------------------------------------------- */

/* Weights go from 1 to this. A weight of 0 in the attributes is the default. */
#define FAIRWQ_MAX_WEIGHT	10000U
#define FAIRWQ_DFL_WEIGHT	100U

/**
 * enum fairwq_prio - which batches are served first
 * @FAIRWQ_PRIO_NORMAL: the default
 * @FAIRWQ_PRIO_HIGH: before the others
 * @FAIRWQ_PRIO_LOW: after the others
 *
 * A turn goes to a batch of the highest priority that has an item. A lower
 * priority that has waited for 63 turns of higher ones gets the 64th. Under
 * FAIRWQ_FAIR_TIME that is 1/64 of the time. FAIRWQ_STRICT_PRIO switches that
 * off, and debugfs can change it.
 */
enum fairwq_prio {
	FAIRWQ_PRIO_NORMAL = 0,
	FAIRWQ_PRIO_HIGH,
	FAIRWQ_PRIO_LOW,
};

/**
 * struct fairwq_batch_attrs - attributes of a batch; all zero is the default
 * @prio: FAIRWQ_PRIO_NORMAL, FAIRWQ_PRIO_HIGH or FAIRWQ_PRIO_LOW
 * @weight: its share, 1 to FAIRWQ_MAX_WEIGHT; 0 for FAIRWQ_DFL_WEIGHT
 * @max_active: the most of its items that may run at once; 0 for no limit but
 *	the pool's
 * @max_queued: the most of its items that may be queued and not yet started.
 *	At that number queue calls return -EAGAIN. 0 for no limit
 * @parent: its owner, a batch of the same pool and priority, or NULL. All
 *	batches of an owner together get the owner's share, so a client gains
 *	nothing by having many. They divide it by their weights. The owner's own
 *	items have a weight of FAIRWQ_DFL_WEIGHT among them. An owner may have an
 *	owner, up to 8. Pause, flush and dispose of an owner concern its own items
 *	only. The owner may be disposed before its batches
 * @released: called once, in process context, when the batch was disposed, has
 *	drained and has left its pool; or NULL. It may sleep, which delays only
 *	the destruction of the pool. It must not wait for that destruction
 * @priv: passed to @released
 */
struct fairwq_batch_attrs {
	enum fairwq_prio prio;
	unsigned int weight;
	unsigned int max_active;
	unsigned int max_queued;
	struct fairwq_batch *parent;
	void (*released)(struct fairwq_batch *batch, void *priv);
	void *priv;
};

/**
 * fairwq_batch_create - create a batch in a pool
 * @pool: the pool
 * @attrs: its attributes; NULL for the default ones
 * @fmt: printf format of its name, which need not be unique. It is cut after 63
 *	bytes. Control characters, and what is no UTF-8, become '?'
 *
 * The caller gets the only reference, and must drop it with
 * fairwq_batch_dispose().
 *
 * Context: Process context, may sleep. May be called from an item.
 * Return: the batch, or ERR_PTR(): -EINVAL; -ENOMEM; -ESHUTDOWN if the pool is
 * being destroyed or the owner was disposed.
 */
struct fairwq_batch *fairwq_batch_create(struct fairwq_pool *pool,
					 const struct fairwq_batch_attrs *attrs,
					 const char *fmt, ...) __printf(3, 4);

/**
 * fairwq_batch_dispose - refuse new items, run the accepted ones, then go
 * @batch: the batch; NULL or an ERR_PTR() does nothing. Must not be a default
 *	batch of a pool
 *
 * Drops the caller's reference. Does not wait. Accepted items still run, also
 * if the batch was paused. Then the batch leaves its pool and debugfs, and its
 * released() is called once. Its memory goes after the last reference. Two
 * holders of references may both dispose of it; each call drops one.
 *
 * What is not promised: that no item runs any more when this returns. A caller
 * that needs that must flush first, or wait for released().
 *
 * Context: Any but NMI. Does not sleep. May be called from the batch's own
 * items.
 */
void fairwq_batch_dispose(struct fairwq_batch *batch);

/**
 * fairwq_batch_get - take another reference
 * @batch: a batch that the caller holds a reference to; NULL or an ERR_PTR() is
 *	returned as it is
 *
 * Context: Any.
 * Return: @batch.
 */
struct fairwq_batch *fairwq_batch_get(struct fairwq_batch *batch);

/**
 * fairwq_batch_put - drop a reference
 * @batch: the batch; NULL or an ERR_PTR() does nothing
 *
 * The memory goes one RCU grace period after the last reference. A batch that
 * was never disposed stays in its pool until the pool is destroyed.
 *
 * Context: Any but NMI. Does not sleep.
 */
void fairwq_batch_put(struct fairwq_batch *batch);

/**
 * fairwq_batch_set_weight - change a batch's share
 * @batch: the batch
 * @weight: 1 to FAIRWQ_MAX_WEIGHT. Two batches of one priority are served in
 *	the ratio of their weights while both have items
 *
 * Holds from the next turn on, also for items that are queued already. The
 * weight of an owner is that of all its batches together.
 *
 * Context: Any but NMI. Does not sleep.
 * Return: 0, or -EINVAL.
 */
int fairwq_batch_set_weight(struct fairwq_batch *batch, unsigned int weight);

/**
 * fairwq_batch_pause - start no more items of a batch
 * @batch: the batch
 *
 * Callers may still queue items, and items that run go on. When this returns,
 * only an item that a runner had already taken may still begin. Pauses are not
 * counted: one resume undoes any number of them. A batch that was disposed is
 * not paused. A paused batch saves up no credit: after the resume it joins at
 * the present virtual time.
 *
 * What is not promised: that none of its items runs when this returns. A caller
 * that needs that must wait for them by other means. A flush of a paused batch
 * waits for the resume.
 *
 * Context: Any but NMI. Does not sleep.
 */
void fairwq_batch_pause(struct fairwq_batch *batch);

/**
 * fairwq_batch_resume - undo fairwq_batch_pause()
 * @batch: the batch
 *
 * Context: Any but NMI. Does not sleep.
 */
void fairwq_batch_resume(struct fairwq_batch *batch);

/**
 * fairwq_batch_flush - wait for the items that are queued now
 * @batch: the batch. The caller must hold a reference
 *
 * On return every item that was queued before the call has ended. If the batch
 * is paused, this waits until it is resumed or disposed.
 *
 * What is not promised: items that are queued during the call are not waited
 * for, nor are items that wait in a serializer or for a delay, nor those that a
 * cancel or shutdown is dropping.
 *
 * Context: Process context, sleeps. From one of the batch's own items it warns
 * and returns at once, because the item would wait for itself.
 */
void fairwq_batch_flush(struct fairwq_batch *batch);

/**
 * fairwq_batch_cancel - take everything out of a batch's queue
 * @batch: the batch. The caller must hold a reference
 * @dropped: called for each item that is dropped, in the caller's context and
 *	without a lock. The item is not pending any more: @dropped may free it or
 *	queue it again. It must not free it if its function still runs, from an
 *	earlier queue call. A work of a sequencer must go to
 *	fairwq_sequencer_drop() first. @dropped must not wait for items of @batch,
 *	nor for its shutdown, because those wait for this call. Or NULL
 *
 * Drops the items that were queued to @batch before the call and have not
 * started. Items that wait for their own last run to end come first, then the
 * rest in queue order. Items that run go on. Items that are queued during the
 * call stay, also those that @dropped queues. No item of @batch begins until the
 * last one was dropped, but one that a runner had already taken.
 *
 * An item is pending until @dropped is called for it. Another cancel may take
 * it before that; then @dropped is not called. If the batch was disposed, it is
 * released after the last call of @dropped.
 *
 * What is not promised: that no item of @batch runs when this returns; a flush
 * afterwards waits for that. Delayed works whose time has not come are not
 * dropped, nor are items that wait in a serializer. fairwq_work_cancel_sync()
 * does not wait for @dropped.
 *
 * Context: Any but NMI. Does not sleep. May be called from @batch's own items.
 * Return: how many items were dropped.
 */
unsigned long fairwq_batch_cancel(struct fairwq_batch *batch,
				  void (*dropped)(struct fairwq_work *work));

/**
 * fairwq_batch_nr_queued - how many items of a batch have not started
 * @batch: the batch. The caller must hold a reference, or be in an RCU read-side
 *	section in which it has found @batch
 *
 * Counts the items that count in max_queued: those that wait for their turn, for a
 * delay, for a grace period, or in a serializer.
 *
 * What is not promised: that the number is still so when this returns; that all items in
 * serializers are counted, if @batch has no max_queued. Some of them may be left out then.
 *
 * Context: Any but NMI. Does not sleep.
 * Return: the number.
 */
unsigned int fairwq_batch_nr_queued(struct fairwq_batch *batch);

/*
 * How a shutdown of a batch, of flows or of a serializer treats the works that it finds:
 * see fairwq_batch_shutdown().
 */
#define FAIRWQ_RUN_REST		0U	/* run them */
#define FAIRWQ_DROP_REST	BIT(0)	/* give those that have not started back */
#define FAIRWQ_AND_OWNED	BIT(1)	/* so for all batches below an owner, too */

/**
 * fairwq_batch_shutdown - refuse new items, run or drop the rest, wait, then go
 * @batch: the batch; NULL or an ERR_PTR() does nothing. Must not be a default
 *	batch of a pool
 * @how: FAIRWQ_RUN_REST or FAIRWQ_DROP_REST; with FAIRWQ_AND_OWNED also for the
 *	batches that @batch owns, and that those own
 * @dropped: with FAIRWQ_DROP_REST, called for each work that is dropped, as by
 *	fairwq_batch_cancel(); or NULL
 *
 * fairwq_batch_dispose(), and then waits. On return no item of @batch is queued or
 * runs, it has left its pool, and its released() has returned. So the caller may
 * free what its items use, but for works of a sequencer: items of other batches may
 * still complete them. Drops the caller's reference.
 *
 * =========================  ==========================  ===========================
 * A work of @batch that      FAIRWQ_RUN_REST             FAIRWQ_DROP_REST
 * =========================  ==========================  ===========================
 * is queued, also paused     runs                        is dropped
 * waits for a delay          runs, the delay ends now    is dropped now
 * waits for a grace period   runs after it               is dropped after it
 * waits in a serializer      runs when that lets it go   is dropped when that lets
 *                                                        it go
 * runs, or has gone on       is waited for               is waited for
 * after its function
 * waits for its last run     runs after that             is dropped
 * was forked by an item      runs: it is a part of that  runs: it is a part of that
 * is queued by its item      is refused: -ESHUTDOWN      is refused: -ESHUTDOWN
 * =========================  ==========================  ===========================
 *
 * Each work runs, is dropped, or is cancelled, and only one of these. Two holders of
 * references may both call this. If one of them drops, what has not started by then is
 * dropped. No pause, resume or dispose, nor the end of the pool, lets it run. Works that
 * wait in a serializer are let go in its order. So the caller must not hold up the items
 * in front of them: a batch that is paused, or a lock. If @dropped gets a work of a
 * sequencer, the caller must call fairwq_sequencer_drop() for it, as after a cancel.
 *
 * With FAIRWQ_AND_OWNED the same holds for each batch below @batch. Their references
 * are left to their holders. Flows below @batch must be shut down before: otherwise a
 * queue call for a key may make a new batch.
 *
 * What is not promised: with FAIRWQ_DROP_REST, that no item starts after the call has
 * begun: one that a runner had already taken may. Without FAIRWQ_AND_OWNED the batches
 * that @batch owns go on. Nor is it known whether items of other batches wait for those
 * of @batch. So an item of the same pool that calls this needs a second runner, and must
 * have no work of @batch behind it in its serializer.
 *
 * Context: Process context, sleeps. From an item of a batch that is to go, or its
 * released(), it warns and returns -EDEADLK.
 * Return: 0; -EDEADLK or -EINVAL, with nothing done: the reference is the caller's.
 */
int fairwq_batch_shutdown(struct fairwq_batch *batch, unsigned int how,
			  void (*dropped)(struct fairwq_work *work));

DEFINE_FREE(fairwq_batch_dispose, struct fairwq_batch *, fairwq_batch_dispose(_T))
DEFINE_FREE(fairwq_batch_put, struct fairwq_batch *, fairwq_batch_put(_T))

/* ---- Pool --------------------------------------------------------------- */

/* Most runners that one pool may have. */
#define FAIRWQ_MAX_ACTIVE	512U
/* Longest slice_us. */
#define FAIRWQ_MAX_SLICE_US	10000U

/*
 * Flags of a pool. The first four mean what WQ_* of the same name means. An item of a pool
 * with FAIRWQ_MEM_RECLAIM that waits for items of a pool without it is reported.
 */
#define FAIRWQ_MEM_RECLAIM	BIT(0)
#define FAIRWQ_HIGHPRI		BIT(1)
#define FAIRWQ_FREEZABLE	BIT(2)
#define FAIRWQ_SYSFS		BIT(3)
#define FAIRWQ_STRICT_PRIO	BIT(5) /* lower priorities get only what higher ones leave */
#define FAIRWQ_NEAR		BIT(7) /* the runners work near @cpu of the attributes */

/**
 * enum fairwq_policy - which batch gets the next turn
 * @FAIRWQ_ROUND_ROBIN: the batches take turns; a turn costs 1 / weight
 * @FAIRWQ_FAIR_TIME: the batches take turns; a turn costs the time that its
 *	function runs / weight, whether it computes, sleeps or is preempted. An
 *	item of more than a minute counts as a minute. Every item is timed, by two
 *	readings of the clock
 * @FAIRWQ_FAIR_COST: the batches take turns; a turn costs what the pool's @cost says /
 *	weight, before the item runs. For work whose time says little, such as I/O of so
 *	many bytes. A serializer's items are a turn each
 *
 * A plain workqueue begins the item first that was queued first. A pool does
 * that for clients that share one batch.
 */
enum fairwq_policy {
	FAIRWQ_ROUND_ROBIN,
	FAIRWQ_FAIR_TIME,
	FAIRWQ_FAIR_COST,
};

/**
 * struct fairwq_pool_attrs - attributes of a pool; all zero is the default
 * @flags: FAIRWQ_MEM_RECLAIM, FAIRWQ_HIGHPRI, FAIRWQ_FREEZABLE, FAIRWQ_SYSFS,
 *	FAIRWQ_STRICT_PRIO, FAIRWQ_NEAR
 * @max_active: the most items that may run at once, 1 to FAIRWQ_MAX_ACTIVE; 0
 *	for the number of possible CPUs, at least 2
 * @policy: which batch gets the next turn
 * @slice_us: microseconds, 1 to FAIRWQ_MAX_SLICE_US; 0 for the default, 50.
 *	Under FAIRWQ_FAIR_TIME a turn is charged this while the batch has no
 *	measured turn yet
 * @max_async: the most turns that may be in flight without a runner, see
 *	fairwq_async_begin(); 0 for no limit. An item that runs may become one, so it
 *	counts, too: while as many run and go on together, the pool begins no turn.
 *	An item that waits between fairwq_block_begin() and fairwq_block_end(), or in
 *	a join, does not count, and may make one too many afterwards
 * @cost: for FAIRWQ_FAIR_COST: returns the cost of an item, in a unit of the driver's own
 *	such as bytes; 0 counts as 1. Asked for each turn when it begins, and before
 *	that for the first item of a batch that had no turn yet. It is called under a
 *	lock of fairwq with interrupts off: it must not sleep, nor call fairwq. A task
 *	that another runner takes costs 1
 * @failed: called by fairwq_report_failure() with the batch and the function of the item
 *	that has failed, and the reason, inside that item; or NULL. The function is
 *	that of a task if another runner has taken it, so it is for messages. It may
 *	sleep and queue works. It must take a reference to a batch that it keeps
 * @cpu: with FAIRWQ_NEAR, a possible CPU. The items run on workers that belong
 *	to it: those of its cache, and before 6.6 of its node. With FAIRWQ_SYSFS
 *	an operator can change that scope. The CPU may go offline. Without
 *	FAIRWQ_NEAR it must be 0, and a runner works near the caller that wakes it
 */
struct fairwq_pool_attrs {
	unsigned int flags;
	unsigned int max_active;
	enum fairwq_policy policy;
	unsigned int slice_us;
	unsigned int max_async;
	unsigned int cpu;
	u32 (*cost)(const struct fairwq_work *work);
	void (*failed)(struct fairwq_batch *batch, fairwq_func_t func, int err);
};

/**
 * fairwq_pool_create - create a pool of runners
 * @attrs: its attributes; NULL for the default ones
 * @fmt: printf format of its name, shown in debugfs and traces. It need not be
 *	unique. It is cut after 63 bytes. Control characters, and what is no
 *	UTF-8, become '?'. The folder in debugfs has another name where this one
 *	is none for a folder. With FAIRWQ_SYSFS it is also the name in
 *	/sys/devices/virtual/workqueue, as alloc_workqueue() gives it with
 *	WQ_SYSFS: not empty, cut after 23 bytes (31 from 6.9 on), and nothing else
 *	there may have it
 *
 * In a kernel that has fairwq built in, clients may call this from their
 * core_initcall() on.
 *
 * Context: Process context, may sleep. May be called from an item.
 * Return: the pool, or ERR_PTR(): -EINVAL; -ENOMEM; -ENODEV if fairwq was not
 * started yet. With FAIRWQ_SYSFS also -ENOMEM if something there has the name; the
 * kernel prints a stack then. A name is free again when fairwq_pool_destroy()
 * returns.
 */
struct fairwq_pool *fairwq_pool_create(const struct fairwq_pool_attrs *attrs,
				       const char *fmt, ...) __printf(2, 3);

/**
 * fairwq_pool_destroy - drain a pool and destroy it
 * @pool: the pool; NULL or an ERR_PTR() does nothing
 *
 * Every accepted item has run or was cancelled when this returns, also those of
 * paused batches, delayed works and items that wait in a serializer. Every
 * batch that is left is disposed, and was released when this returns.
 * References to batches may outlive the pool; queueing to such a batch returns
 * -ESHUTDOWN.
 *
 * The caller must not let others use @pool itself during the call. Only items
 * of the pool, and holders of a reference to one, may use its default batches.
 * The caller must destroy the flows of the pool first.
 *
 * If a runner was kicked just now, this takes an RCU grace period, an expedited one, so
 * that a driver may end many pools one after the other.
 *
 * Context: Process context, sleeps. From one of the pool's own items it warns
 * and returns with nothing done.
 */
void fairwq_pool_destroy(struct fairwq_pool *pool);

/**
 * fairwq_pool_set_max_active - change how many items may run at once
 * @pool: the pool
 * @max_active: 1 to FAIRWQ_MAX_ACTIVE
 *
 * Items that run go on: after the number was lowered, more than @max_active may
 * run until they end.
 *
 * Context: Process context, may sleep. May be called from an item.
 * Return: 0, -EINVAL or -ENOMEM. On an error nothing was changed.
 */
int fairwq_pool_set_max_active(struct fairwq_pool *pool, unsigned int max_active);

/**
 * fairwq_pool_flush - wait for everything that is queued now
 * @pool: the pool
 *
 * On return every item that was queued to any batch of the pool before the call
 * has ended. This waits for paused batches until they are resumed or disposed.
 *
 * What is not promised: items that are queued during the call are not waited
 * for, nor are items that wait in a serializer or for a delay.
 *
 * Context: Process context, sleeps. From one of the pool's own items it warns
 * and returns at once.
 */
void fairwq_pool_flush(struct fairwq_pool *pool);

/**
 * fairwq_pool_drain - wait until the pool is empty
 * @pool: the pool
 *
 * During the call only items of the pool itself may queue to it; other callers
 * get -ESHUTDOWN. When this returns, all callers may queue again. This waits
 * for paused batches until they are resumed or disposed.
 *
 * What is not promised: an item that was accepted before, and waits in a
 * serializer or for a delay, is not waited for. It comes in when it is let go.
 * Nor are items waited for that a cancel or shutdown is dropping.
 *
 * Context: Process context, sleeps. From one of the pool's own items it warns
 * and returns at once. Must not be called twice at a time.
 */
void fairwq_pool_drain(struct fairwq_pool *pool);

/**
 * fairwq_pool_default_batch - return the pool's own batch of a priority
 * @pool: the pool
 * @prio: its priority
 *
 * For callers without a batch of their own. The batch belongs to the pool, goes
 * with it, and must not be disposed.
 *
 * Context: Any.
 * Return: the batch, or NULL if @pool is NULL or an ERR_PTR(), or @prio
 * unknown.
 */
struct fairwq_batch *fairwq_pool_default_batch(struct fairwq_pool *pool,
					       enum fairwq_prio prio);

DEFINE_FREE(fairwq_pool_destroy, struct fairwq_pool *, fairwq_pool_destroy(_T))

/* ---- Delayed and RCU ---------------------------------------------------- */

/**
 * struct fairwq_delayed_work - an item that is queued after a delay
 * @work: the item. Its function is called with this, see container_of()
 *
 * Set up by fairwq_delayed_work_init(). fairwq_work_cancel() and its like may
 * be called on @work.
 */
struct fairwq_delayed_work {
	struct fairwq_work work;
	/* private: */
	struct timer_list timer;
};

/**
 * fairwq_delayed_work_init - set up a delayed work
 * @dwork: the work. For one that lies on the stack there is
 *	fairwq_delayed_work_init_onstack()
 * @func: the function to call when the work has its turn
 *
 * As fairwq_work_init().
 *
 * Context: Any.
 */
#define fairwq_delayed_work_init(dwork, func)				\
	__fairwq_init("(fairwq_work)" #dwork, __fairwq_delayed_work_init, dwork, func, 0)

/**
 * fairwq_delayed_work_init_deferrable - set up a delayed work that may be late
 * @dwork: the work
 * @func: the function to call when the work has its turn
 *
 * As fairwq_delayed_work_init(). But the end of the delay does not wake an idle
 * CPU. The work is queued when that CPU wakes for another reason.
 * fairwq_pool_destroy() waits for that, too, so cancel or flush the work first.
 *
 * Context: Any.
 */
#define fairwq_delayed_work_init_deferrable(dwork, func)		\
	__fairwq_init("(fairwq_work)" #dwork, __fairwq_delayed_work_init,	\
		      dwork, func, FAIRWQ_DELAY_DEFERRABLE)

/**
 * fairwq_delayed_work_init_onstack - set up a delayed work that lies on the stack
 * @dwork: the work
 * @func: the function to call when the work has its turn
 *
 * As fairwq_delayed_work_init(). The caller must wait until the function has
 * returned, or cancel the work by fairwq_delayed_work_cancel_sync(). Then it
 * must call fairwq_delayed_work_destroy_onstack() before it leaves the frame
 * that holds @dwork.
 *
 * Context: Any.
 */
#define fairwq_delayed_work_init_onstack(dwork, func)			\
	__fairwq_init("(fairwq_work)" #dwork, __fairwq_delayed_work_init,	\
		      dwork, func, FAIRWQ_DELAY_ONSTACK)

/* Kinds of delayed works, for the macros above. */
#define FAIRWQ_DELAY_DEFERRABLE	BIT(0)
#define FAIRWQ_DELAY_ONSTACK	BIT(1)

void __fairwq_delayed_work_init(struct fairwq_delayed_work *dwork, fairwq_func_t func,
				unsigned int kind, const char *name,
				struct lock_class_key *key);

/**
 * fairwq_delayed_work_destroy_onstack - end a delayed work that lies on the stack
 * @dwork: the work, set up by fairwq_delayed_work_init_onstack(). It must be
 *	neither pending nor running
 *
 * Tells CONFIG_DEBUG_OBJECTS_TIMERS that the timer goes. Without that it does
 * nothing.
 *
 * Context: Any.
 */
void fairwq_delayed_work_destroy_onstack(struct fairwq_delayed_work *dwork);

/**
 * fairwq_delayed_work_pending - check whether a delayed work is not yet started
 * @dwork: the work
 *
 * As fairwq_work_pending(). True during the delay, and until the work is started.
 *
 * Context: Any.
 * Return: true if it is.
 */
static inline bool fairwq_delayed_work_pending(const struct fairwq_delayed_work *dwork)
{
	return fairwq_work_pending(&dwork->work);
}

/**
 * fairwq_queue_delayed - queue a work after a delay
 * @batch: the batch. The caller must hold a reference, or know otherwise that
 *	it was not released
 * @dwork: the work, set up by fairwq_delayed_work_init()
 * @delay: the delay, in jiffies; 0 to queue it at once. More than MAX_JIFFY_OFFSET
 *	counts as that
 *
 * The work is pending from now on, and takes up room in @batch (max_queued). It
 * gets its place in the order of @batch when the delay is over. If @batch is
 * disposed during the delay, it stays until the work has run or was cancelled;
 * fairwq_pool_destroy() waits for that, too. fairwq_batch_flush() does not wait
 * for the delay.
 *
 * Context: Any but NMI. Does not sleep, allocates nothing. May be called from
 * @dwork's own function.
 * Return: as fairwq_queue(), with the same errors, all of them at once: none can
 * come when the delay is over.
 */
__must_check
int fairwq_queue_delayed(struct fairwq_batch *batch, struct fairwq_delayed_work *dwork,
			 unsigned long delay);

/**
 * fairwq_mod_delayed - queue a work after a delay, or change its delay
 * @batch: the batch. The caller must hold a reference
 * @dwork: the work, set up by fairwq_delayed_work_init()
 * @delay: the delay from now on, in jiffies; 0 to queue it at once
 *
 * If @dwork is pending, to whatever batch, this takes it out of where it waits.
 * It stays pending meanwhile, so another queue call returns 0. Whether @batch
 * takes it is checked before that: a work that was taken out is queued, also if
 * @batch was disposed or filled in between. So an error loses nothing. In that
 * moment @batch may have more than max_queued items, and a work that moves within
 * @batch counts twice.
 *
 * Context: Any but NMI. Does not sleep, allocates nothing. May be called from
 * @dwork's own function.
 * Return: 1 if it was pending and its delay was changed; 0 if it was idle and
 * was queued now; or an error, as fairwq_queue(). Mind that this is the answer
 * of mod_delayed_work(), and that fairwq_queue_delayed() returns 1 for a work
 * that was idle. After an error a pending @dwork is where it was. -EAGAIN is
 * only for a work that is idle or pending in another batch.
 */
__must_check
int fairwq_mod_delayed(struct fairwq_batch *batch, struct fairwq_delayed_work *dwork,
		       unsigned long delay);

/**
 * fairwq_delayed_work_flush - queue a delayed work now and wait for it
 * @dwork: the work. The caller must keep it from being freed during the call
 *
 * Ends the delay, if @dwork waits for one. Then as fairwq_work_flush().
 *
 * Context: Process context, sleeps. From @dwork's own function it warns and
 * does not wait. It does the same from an item of a serializer that runs one
 * at a time, in which @dwork waits behind that item.
 * Return: true if it waited, false if there was nothing to wait for.
 */
bool fairwq_delayed_work_flush(struct fairwq_delayed_work *dwork);

/**
 * fairwq_delayed_work_cancel - cancel a delayed work
 * @dwork: the work
 *
 * As fairwq_work_cancel(), also while the work waits for its delay.
 *
 * Context: Any but NMI. Does not sleep. May be called from @dwork's own
 * function.
 * Return: true if it was pending and is not any more.
 */
static inline bool fairwq_delayed_work_cancel(struct fairwq_delayed_work *dwork)
{
	return fairwq_work_cancel(&dwork->work);	/* which warns of NULL */
}

/**
 * fairwq_delayed_work_cancel_sync - cancel a delayed work, wait for its run
 * @dwork: the work
 *
 * As fairwq_work_cancel_sync(), also while the work waits for its delay.
 *
 * Context: Process context, sleeps. From @dwork's own function it warns and
 * does not wait.
 * Return: true if it was pending.
 */
static inline bool fairwq_delayed_work_cancel_sync(struct fairwq_delayed_work *dwork)
{
	return fairwq_work_cancel_sync(&dwork->work);
}

/**
 * fairwq_delayed_work_disable - cancel a delayed work and refuse to queue it
 * @dwork: the work
 *
 * As fairwq_work_disable(), also while the work waits for its delay.
 *
 * Context: Any but NMI. Does not sleep. May be called from @dwork's own
 * function.
 * Return: true if it was pending and is not any more.
 */
static inline bool fairwq_delayed_work_disable(struct fairwq_delayed_work *dwork)
{
	return fairwq_work_disable(&dwork->work);
}

/**
 * fairwq_delayed_work_disable_sync - disable a delayed work, wait for its run
 * @dwork: the work
 *
 * As fairwq_work_disable_sync(), also while the work waits for its delay.
 *
 * Context: Process context, sleeps. From @dwork's own function it warns and
 * does not wait.
 * Return: true if it was pending.
 */
static inline bool fairwq_delayed_work_disable_sync(struct fairwq_delayed_work *dwork)
{
	return fairwq_work_disable_sync(&dwork->work);
}

/**
 * fairwq_delayed_work_enable - undo one fairwq_delayed_work_disable()
 * @dwork: the work
 *
 * As fairwq_work_enable().
 *
 * Context: Any but NMI. Does not sleep.
 * Return: true if @dwork can be queued again, false if it is still disabled.
 */
static inline bool fairwq_delayed_work_enable(struct fairwq_delayed_work *dwork)
{
	return fairwq_work_enable(&dwork->work);
}

/**
 * struct fairwq_rcu_work - an item that is queued after an RCU grace period
 * @work: the item. Its function is called with this, see container_of()
 *
 * Set up by fairwq_rcu_work_init().
 */
struct fairwq_rcu_work {
	struct fairwq_work work;
	/* private: */
	struct rcu_work later;
};

/**
 * fairwq_rcu_work_init - set up a work for after a grace period
 * @rwork: the work
 * @func: the function to call when the work has its turn
 *
 * As fairwq_work_init().
 *
 * Context: Any.
 */
#define fairwq_rcu_work_init(rwork, func)				\
	__fairwq_init("(fairwq_work)" #rwork, __fairwq_rcu_work_init, rwork, func)

void __fairwq_rcu_work_init(struct fairwq_rcu_work *rwork, fairwq_func_t func,
			    const char *name, struct lock_class_key *key);

/**
 * fairwq_queue_rcu - queue a work after an RCU grace period
 * @batch: the batch. The caller must hold a reference, or know otherwise that
 *	it was not released
 * @rwork: the work, set up by fairwq_rcu_work_init()
 *
 * The grace period begins no earlier than this call. As with queue_rcu_work(),
 * the work can be neither cancelled nor disabled before the grace period ends:
 *
 * * fairwq_work_cancel() and fairwq_work_disable() leave it pending
 * * fairwq_work_cancel_sync() and fairwq_work_disable_sync() wait for the end
 *
 * @batch is kept as by fairwq_queue_delayed().
 *
 * Context: Any but NMI. Does not sleep, allocates nothing.
 * Return: as fairwq_queue(). All errors come at once, and none when the grace
 * period is over.
 */
__must_check
int fairwq_queue_rcu(struct fairwq_batch *batch, struct fairwq_rcu_work *rwork);

/**
 * fairwq_rcu_work_flush - wait for a work that was queued after a grace period
 * @rwork: the work. The caller must keep it from being freed during the call
 *
 * Waits for the grace period first. Then as fairwq_work_flush().
 *
 * Context: Process context, sleeps. From @rwork's own function it warns and
 * does not wait for the run.
 * Return: true if it waited, false if there was nothing to wait for.
 */
static inline bool fairwq_rcu_work_flush(struct fairwq_rcu_work *rwork)
{
	bool waited = flush_rcu_work(&rwork->later);

	return fairwq_work_flush(&rwork->work) || waited;
}

/* ---- Blocking ----------------------------------------------------------- */

/**
 * fairwq_block_begin - say that the calling item may wait for long from here on
 *
 * max_active counts the items that run. An item that waits for I/O, for another request
 * or for user space keeps one of these places for nothing. If all of them wait for an
 * item that is queued behind them, the pool is stuck. Between this call and
 * fairwq_block_end() the item has no place, and another one may run.
 *
 * If no runner is idle, one is made for that other item. A pool has up to 512 runners so;
 * runners that are too many go when they were idle for 10 s. If there is no memory for a
 * runner, the other item waits for one that is free.
 *
 * The item stays in flight: for the max_active of its batch, its serializer or limiter,
 * and whatever waits for it. Under FAIRWQ_FAIR_TIME it does not pay for the section.
 * Sections nest; only the outermost counts. A section is too dear for a wait of less
 * than some microseconds. An item that is in flight for longer than hung_ms is reported
 * as hung, in a section too.
 *
 * Context: From the function of an item or task, may sleep. Elsewhere it does nothing.
 */
void fairwq_block_begin(void);

/**
 * fairwq_block_end - say that the calling item goes on
 *
 * The item has its place back at once, because it may hold what the others wait for. So
 * more items than max_active may run, until the next one of them has ended. An item that
 * returns without this call is reported.
 *
 * Context: As the fairwq_block_begin() before.
 */
void fairwq_block_end(void);

/* ---- Turns that go on --------------------------------------------------- */

/**
 * struct fairwq_async - a turn that goes on after its function has returned
 *
 * In the caller's object. Needs no setup. Every field is fairwq's own.
 */
struct fairwq_async {
	/* private: */
	struct fairwq_batch *batch;	/* NULL: no turn, or it was completed */
	struct fairwq_runner *runner;	/* P: while the function runs, else NULL */
	struct fairwq_serializer *serializer; /* to be told of the end, or NULL */
	u64 took;			/* as in the turn, and so are all that follow */
	u32 charged;
	unsigned int nr;
	u16 policy_gen;
	u8 color;
	bool out_of_rank;
};

/**
 * fairwq_async_begin - say that the calling item goes on after its function
 * @async: memory for that, which must stay until fairwq_async_complete(). No other turn
 *	may use it before then, also if the work is queued again
 *
 * An item that submits I/O is over at once for its worker, and not for the device. So a
 * client that submits much is not held to its share. After this call the turn does not
 * end when the function returns, but by fairwq_async_complete(). The worker is free
 * meanwhile. The item stays in flight: it counts for the max_active of its batch, the
 * @max_async of its pool, and its serializer or limiter. A flush of the batch or pool
 * waits for it, and so do drain, dispose and destroy.
 *
 * fairwq_work_flush(), fairwq_work_cancel_sync() and fairwq_work_pending() are about the
 * function alone. The work may be queued again, or freed, before the turn has ended.
 *
 * What completes the turn must not depend on an item of the same pool that has not begun:
 * at @max_async none begins. After hung_ms, which debugfs shows, that is reported in the
 * kernel's log. Nor must it depend on items that wait for this turn, because of the
 * max_active of the batch, or behind it in its serializer or limiter.
 *
 * Context: From the function of an item. Does not sleep.
 * Return: true if the caller must call fairwq_async_complete(), which it may do at once.
 * False from a task that another runner runs, where no item runs, and if the turn goes on
 * already. Then the call has no effect, and fairwq_async_complete() has none.
 */
bool fairwq_async_begin(struct fairwq_async *async);

/**
 * fairwq_async_complete - end a turn that goes on
 * @async: that of fairwq_async_begin()
 * @cost_ns: what the turn cost after its function, or besides it, in ns. Under
 *	FAIRWQ_FAIR_TIME the batch is charged for it; more than a minute counts as a
 *	minute. Other policies ignore it
 *
 * May be called before the function has returned. Then the turn ends with that. @async
 * may be freed when this returns. A call for each fairwq_async_begin(), and no second one.
 *
 * Context: Any but NMI. Does not sleep.
 */
void fairwq_async_complete(struct fairwq_async *async, u64 cost_ns);

/* ---- Context ------------------------------------------------------------ */

/*
 * A worker runs as root, in the cgroups of the kernel. A driver that works for a
 * user captures the context of that user's task, and its items do the work in it:
 *
 *	request->context = fairwq_context_capture(GFP_KERNEL);
 *	fairwq_queue(batch, &request->work);
 *
 *	static void request_fn(struct fairwq_work *work)
 *	{
 *		...
 *		fairwq_context_call(request->context, serve, request);
 *		fairwq_context_put(request->context);
 *	}
 */

/**
 * fairwq_context_capture - capture on whose behalf the caller runs
 * @gfp: flags for the memory
 *
 * Captures the credentials, the memory cgroup (with CONFIG_MEMCG) and the block
 * cgroup (with CONFIG_BLK_CGROUP). In fairwq_context_call() it captures what that
 * has entered. A later setuid() or move of the task to another cgroup does not
 * change what was captured.
 *
 * Not captured are namespaces, the address space, nice and CPU cgroup.
 *
 * Context: Process context. May sleep, if @gfp allows it.
 * Return: the context with one reference, -ENOMEM, or -EINVAL from an interrupt.
 */
struct fairwq_context *fairwq_context_capture(gfp_t gfp);

/**
 * fairwq_context_get - take a reference
 * @context: the context. NULL and errors are ignored
 *
 * Context: Any but NMI.
 * Return: @context.
 */
struct fairwq_context *fairwq_context_get(struct fairwq_context *context);

/**
 * fairwq_context_put - put a reference
 * @context: the context. NULL and errors are ignored
 *
 * Context: Any but NMI, but on PREEMPT_RT not with interrupts or preemption off.
 */
void fairwq_context_put(struct fairwq_context *context);

/**
 * fairwq_context_call - call a function in a context
 * @context: the context. It stays until the call returns, so @func may put the
 *	caller's reference
 * @func: the function
 * @arg: for @func
 *
 * Changes to the context, calls @func, and changes back, whatever @func has
 * done. In an item, credentials that @func leaves behind are reported as a bug.
 * The tasks that @func forks run in the same context, and it must join them.
 * Tasks that the caller has forked before are not joined by it, and wait for
 * the caller.
 *
 * What is not promised: that a thread is in its block cgroup of before when this returns.
 * A thread that is not an item is in that of its task then, and a task that is not a
 * kernel thread never leaves its own.
 *
 * Context: Process context; may sleep.
 */
void fairwq_context_call(struct fairwq_context *context, void (*func)(void *arg), void *arg);

/* ---- Order -------------------------------------------------------------- */

/*
 * A work that waits in a serializer is pending. It takes up room in its batch
 * (max_queued), and the batch stays. fairwq_work_flush() waits for such a work.
 * fairwq_batch_flush(), fairwq_pool_flush(), fairwq_pool_drain() and
 * fairwq_batch_cancel() do not see it.
 */

/* Longest time for which a runner may be told to go on with one serializer. */
#define FAIRWQ_MAX_INLINE_US	10000U

/**
 * struct fairwq_serializer - runs one item after the other, or so many at a time
 *
 * Embedded in the caller's object, and set up by fairwq_serializer_init() or
 * fairwq_limiter_init(). Has no memory, thread or workqueue of its own.
 */
struct fairwq_serializer {
	/* private: under fairwq's lock */
	struct list_head waiting;	/* in queue order */
	unsigned int max;		/* how many may be in flight */
	unsigned int in_flight;		/* or about to be */
	unsigned int inline_us;		/* how long a runner may go on with it */
	bool dropping;			/* what waits is dropped, and does not start */
	u8 ending;			/* calls that end it, which refuse new items */
	bool unsafe;			/* it was used with a pool without FAIRWQ_MEM_RECLAIM */
	struct lockdep_map lockdep_map;	/* of no size without CONFIG_LOCKDEP */
};

/**
 * fairwq_serializer_init - set up a serializer, which runs one item at a time
 * @serializer: the serializer
 *
 * Allocates nothing, and cannot fail. Each place in the source that calls this
 * is a lockdep class of its own.
 *
 * Context: Any.
 */
#define fairwq_serializer_init(serializer)				\
	__fairwq_init("(fairwq_serializer)" #serializer, __fairwq_serializer_init, serializer, 1)

/**
 * fairwq_limiter_init - set up a serializer that runs several items at a time
 * @serializer: the serializer
 * @max: the most of its items that may be in flight at once, at least 1. An item is
 *	in flight while it is queued in its batch, and while it runs
 *
 * As fairwq_serializer_init().
 *
 * Context: Any.
 */
#define fairwq_limiter_init(serializer, max)				\
	__fairwq_init("(fairwq_limiter)" #serializer, __fairwq_serializer_init, serializer, max)

void __fairwq_serializer_init(struct fairwq_serializer *serializer, unsigned int max,
			      const char *name, struct lock_class_key *key);

/**
 * fairwq_serializer_queue - queue a work to a batch, behind others
 * @serializer: the serializer. It must stay until @work has ended, or its
 *	function has called fairwq_serializer_destroy()
 * @batch: where @work is to run. The items of one serializer may be bound for
 *	any batches, of any pools
 * @work: the work, set up by fairwq_work_init()
 *
 * The items of a serializer start in the order in which they were queued to it.
 * Each starts after the function of the one before has returned, and sees what
 * that function did. With fairwq_limiter_init(), as many items as that allows are
 * in flight, and start as their batches let them. The others wait, in queue order.
 * An item gets its place in its batch when its turn in the serializer has come.
 * Cancelling an item does not hold up the others.
 *
 * If @batch is disposed before that, it stays until the work has run or was
 * cancelled; fairwq_pool_destroy() waits for that, too. The call does not touch
 * @work or @serializer any more once @work has run or was cancelled.
 *
 * What is not promised: that an item of a high priority overtakes those in front of
 * it. An item must not wait for one behind it.
 *
 * Context: Any but NMI. Does not sleep, allocates nothing. May be called from
 * @work's own function.
 * Return: as fairwq_queue(); -ESHUTDOWN also if @serializer is
 * being destroyed. The number of items that wait is never a reason to refuse,
 * but for the max_queued of @batch.
 */
__must_check
int fairwq_serializer_queue(struct fairwq_serializer *serializer,
			    struct fairwq_batch *batch, struct fairwq_work *work);

/**
 * fairwq_serializer_set_inline - let a runner go on with the next item
 * @serializer: the serializer
 * @budget_us: for how long, in microseconds of the items behind the first, up
 *	to FAIRWQ_MAX_INLINE_US. 0, which is how it is set up: each item goes
 *	through its batch
 *
 * When an item of @serializer has ended, its runner goes on with the next ones,
 * for about @budget_us and at most 1024 items. Then the next item goes to its
 * batch. This saves most of the cost of an item, and keeps the object's memory
 * in one CPU's caches. For other clients the items are like one long item: they
 * are charged to their batches, but start before the items that are queued
 * there.
 *
 * An item goes to its batch as always if that is not the batch of the item
 * before, or is paused. The same holds after a flush, a pause or a cancel of the
 * batch has asked its runners to end their turns.
 *
 * What is not promised: that the budget is kept to. An item that takes longer
 * than those before it is not cut short. Where several items are in flight, it has no
 * effect.
 *
 * Context: Any. Does not sleep. Holds from the next item on that ends.
 * Return: 0, or -EINVAL.
 */
int fairwq_serializer_set_inline(struct fairwq_serializer *serializer, unsigned int budget_us);

/**
 * fairwq_serializer_flush - wait for the items that are queued now
 * @serializer: the serializer
 *
 * On return every item that was queued before the call has ended or was
 * cancelled. Items that are queued during the call are not waited for.
 *
 * Context: Process context, sleeps. From one of its own items it warns and
 * returns at once, because the item would wait for itself.
 */
void fairwq_serializer_flush(struct fairwq_serializer *serializer);

/**
 * fairwq_serializer_shutdown - refuse new items, run or drop the rest, and wait
 * @serializer: the serializer
 * @how: FAIRWQ_RUN_REST or FAIRWQ_DROP_REST
 * @dropped: with FAIRWQ_DROP_REST, called for each work that is dropped, in queue
 *	order, in the caller's context and without a lock; or NULL. The work is not
 *	pending any more: @dropped may free it, or queue it elsewhere. A work of a
 *	sequencer must go to fairwq_sequencer_drop() first
 *
 * With FAIRWQ_RUN_REST this is fairwq_serializer_destroy(). With FAIRWQ_DROP_REST
 * the works that wait in @serializer are dropped: none of them starts any more, also if
 * the one in flight ends meanwhile. That one has left the list: it is queued in its
 * batch, or runs, or has gone on after its function. It is waited for;
 * fairwq_batch_cancel() and fairwq_work_cancel() can take it out of its batch.
 *
 * With FAIRWQ_DROP_REST any item of a serializer that runs one at a time may call this: it
 * drops the works behind it, and is the last then. On return @serializer may be freed, also
 * by that item.
 *
 * What is not promised: a work whose queue call is under way when this begins may run
 * or be dropped, unless it is refused.
 *
 * Context: Process context, sleeps.
 * Return: 0; -EINVAL; -EDEADLK, with a warning, from an item of @serializer behind which
 * a flush or another caller of this waits, or a work that it does not drop, and from any
 * item if several may be in flight. After an error @serializer goes on taking items, unless
 * that other caller refuses them. Works that were dropped are not queued again.
 */
int fairwq_serializer_shutdown(struct fairwq_serializer *serializer, unsigned int how,
			       void (*dropped)(struct fairwq_work *work));

/**
 * fairwq_serializer_destroy - refuse new items, wait until all have ended
 * @serializer: the serializer
 *
 * On return the caller may free the memory. It must make sure that no other
 * call for @serializer is under way then. One kind of call may be: a queue call
 * whose item has run or was cancelled does not touch the serializer any more. A
 * queue call during this call is refused, or its item is waited for.
 *
 * The last item of a serializer that runs one at a time may call this, if no item waits
 * behind it. Then its function may free the serializer at once, together with the item.
 * Any other item of the serializer gets a warning, and the call does nothing: the
 * serializer goes on taking items.
 *
 * Context: Process context, sleeps.
 */
static inline void fairwq_serializer_destroy(struct fairwq_serializer *serializer)
{
	fairwq_serializer_shutdown(serializer, FAIRWQ_RUN_REST, NULL);
}

/**
 * fairwq_serializer_is_last - check whether nothing waits behind the calling item
 * @serializer: the serializer that the caller is an item of
 *
 * For an item that serves several requests at once, such as a doorbell or a commit, or
 * that takes its object down. True means that fairwq_serializer_destroy() would return
 * at once, if the item called it.
 *
 * What is not promised: that the answer is still true when it is returned, unless the
 * caller keeps others from queueing. A call that queues an item later finds that this
 * one has not ended, so its item runs after it.
 *
 * Context: From an item of @serializer, or a task of one. Does not sleep.
 * Return: true if no work and no flush waits in @serializer; false also if the caller is
 * no item of it, or if several may be in flight.
 */
bool fairwq_serializer_is_last(const struct fairwq_serializer *serializer);

/**
 * struct fairwq_sequencer - runs items in parallel, and completes them in order
 *
 * Set up by fairwq_sequencer_init(). It takes no other resources, so there is no call to
 * destroy it: it may be freed after a fairwq_sequencer_flush(), if no call queues to it.
 * No completion may free it, not even that of its last work, nor may a task that such a
 * completion wakes, without that flush: fairwq still uses it when the completion returns.
 */
struct fairwq_sequencer {
	/* private: */
	raw_spinlock_t lock;
	struct list_head works;		/* in queue order, until they are completed */
	struct task_struct *completer;	/* the task that completes works, or NULL */
	bool unsafe;			/* as in struct fairwq_serializer */
};

/**
 * struct fairwq_sequenced_work - an item of a sequencer
 * @work: the item, for all calls that take one. Both functions are called with this,
 *	see container_of()
 *
 * Set up by fairwq_sequenced_work_init().
 */
struct fairwq_sequenced_work {
	struct fairwq_work work;
	/* private: the first two are the client's functions */
	fairwq_func_t func;
	fairwq_func_t complete;
	struct fairwq_sequencer *sequencer;
	struct list_head node;		/* in sequencer->works */
	bool ended;			/* the function has returned */
};

/**
 * fairwq_sequencer_init - set up a sequencer
 * @sequencer: the sequencer
 *
 * Context: Any.
 */
static inline void fairwq_sequencer_init(struct fairwq_sequencer *sequencer)
{
	*sequencer = (struct fairwq_sequencer){ };
	raw_spin_lock_init(&sequencer->lock);
	INIT_LIST_HEAD(&sequencer->works);
}

/**
 * fairwq_sequenced_work_init - set up a work of a sequencer
 * @swork: the work
 * @func: the function to call when the work has its turn. It must not free @swork
 * @complete: the function to call after @func, in queue order. It may free @swork, or
 *	queue it again
 *
 * As fairwq_work_init().
 *
 * Context: Any.
 */
#define fairwq_sequenced_work_init(swork, func, complete)		\
	__fairwq_init("(fairwq_work)" #swork, __fairwq_sequenced_work_init, swork, func, complete)

void __fairwq_sequenced_work_init(struct fairwq_sequenced_work *swork, fairwq_func_t func,
				  fairwq_func_t complete, const char *name,
				  struct lock_class_key *key);

/**
 * fairwq_sequencer_queue - queue a work that is completed in its order
 * @sequencer: the sequencer. It must stay until fairwq_sequencer_flush() has returned,
 *	after @swork was completed or dropped
 * @serializer: a serializer that @swork goes through, too; or NULL
 * @batch: where @swork is to run; any batch of any pool
 * @swork: the work, set up by fairwq_sequenced_work_init()
 *
 * The functions of a sequencer's works run whenever they have their turns, several at a
 * time. Their completions are called one after the other, in the order of the queue
 * calls, by the item that made the first of them ready. So a completion may run in the
 * turn of another batch, which is charged for it. It sees what the functions and
 * completions before it have stored. It may sleep, which holds up the completions behind
 * it, and the item that calls it.
 *
 * @swork may be freed by its completion, or after fairwq_sequencer_flush(). Calls that wait
 * for a work, a batch or a pool wait for functions, and for the completions that these items
 * call. So a flush of a pool covers the completions if all works of @sequencer are of that
 * pool, and none was dropped. fairwq_work_flush() and fairwq_work_cancel_sync() do not tell
 * that @swork was completed.
 *
 * A work that is taken out of its batch keeps those behind it from being completed. So
 * the caller of fairwq_work_cancel() and its like must call fairwq_sequencer_drop() if
 * the cancel has returned true.
 *
 * Not promised: that a turn that goes on after its function, see fairwq_async_begin(),
 * has ended when the work is completed.
 *
 * Such a work is queued by this call alone. If another queue call gets it, such as
 * fairwq_queue(), there is no order: it warns, and the completion follows the function.
 *
 * Context: Any but NMI. Does not sleep, allocates nothing. May be called from an item, also
 * one of @sequencer, and from a completion, also that of @swork.
 * Return: 1 if the work was queued; 0 if it is in the sequencer already, or pending; or
 * a negative error as fairwq_serializer_queue().
 */
__must_check
int fairwq_sequencer_queue(struct fairwq_sequencer *sequencer,
			   struct fairwq_serializer *serializer,
			   struct fairwq_batch *batch, struct fairwq_sequenced_work *swork);

/**
 * fairwq_sequencer_drop - do without a work that was cancelled
 * @work: a work of a sequencer that the caller has taken out of its batch
 *
 * The work is not completed. It is the caller's again when this returns. Those behind it
 * that have waited for it are completed by the caller. May be passed to
 * fairwq_batch_cancel() as @dropped, if the batch has no other works.
 *
 * Context: Process context, may sleep.
 */
void fairwq_sequencer_drop(struct fairwq_work *work);

/**
 * fairwq_sequencer_flush - wait until the works that are queued now are completed
 * @sequencer: the sequencer
 *
 * Afterwards the sequencer may be freed, if no call queues to it.
 *
 * Context: Process context, sleeps. From one of its own items it warns and returns at
 * once.
 */
void fairwq_sequencer_flush(struct fairwq_sequencer *sequencer);

/* ---- Flows -------------------------------------------------------------- */

/*
 * For clients that are known only by a number (a cgroup, a tenant, an address):
 *
 *   struct fairwq_flows *flows = fairwq_flows_create(pool, NULL);
 *
 *   fairwq_flows_queue(flows, number, &obj->work);
 *   ...
 *   fairwq_flows_destroy(flows);      and then the pool
 *
 * Calls for the same flows may run at the same time. fairwq_flows_destroy() waits for
 * those that were not refused.
 */

/* Room for the name of a flow's batch, with the zero at the end. */
#define FAIRWQ_MAX_FLOW_NAME	32U
/* Longest time that an idle flow may be told to stay: a day. */
#define FAIRWQ_MAX_IDLE_MS	86400000U

/**
 * fairwq_flows_create - prepare batches that are made by key, on first use
 * @pool: the pool that they are to be in
 * @attrs: the attributes of each of them; NULL for the default ones. What differs
 *	from key to key is for fairwq_flows_set_setup(); so is @released, which must
 *	be NULL here. Without a
 *	@parent, a client that can choose its keys gets a share for each of them.
 *	With one, all of them together get the owner's share. @flows keeps the
 *	owner's memory; an owner that is disposed meanwhile stays their owner
 *
 * In debugfs the batches are called "flow-" and the key in hexadecimal. Keys
 * for which there is no memory, or which are too many, see fairwq_flows_set_max(),
 * share one batch, "flows-shared". That one has no max_queued, so that its items do
 * not make each other fail.
 *
 * The caller must end @flows by fairwq_flows_destroy() before the pool ends.
 *
 * Context: Process context, may sleep. May be called from an item.
 * Return: the flows, or ERR_PTR(): -EINVAL; -ENOMEM; -ESHUTDOWN if the pool is
 * being destroyed or the owner was disposed.
 */
struct fairwq_flows *fairwq_flows_create(struct fairwq_pool *pool,
					 const struct fairwq_batch_attrs *attrs);

/**
 * struct fairwq_flow_attrs - attributes of the batch of a key
 * @batch: its attributes; those of fairwq_flows_create() at first. Here @released may be
 *	set: it is called when the batch has left, because it was idle, or was shut down
 * @name: its name in debugfs and traces; "flow-" and the key in hexadecimal at first.
 *	Control characters, and what is no UTF-8, become '?'
 */
struct fairwq_flow_attrs {
	struct fairwq_batch_attrs batch;
	char name[FAIRWQ_MAX_FLOW_NAME];
};

/**
 * fairwq_flows_set_setup - set the attributes of each key by a callback
 * @flows: the flows, to which nothing was queued yet
 * @setup: called before each batch is made. It may change @attrs: the weight of the
 *	key, its limits, its owner, its name, its released(). It is called in the context
 *	of the queue call, under rcu_read_lock(). It must not sleep, nor call fairwq for
 *	@flows
 * @data: for @setup
 *
 * A batch goes when it was idle, and is made again by the next queue call of its key.
 * Then a weight that fairwq_batch_set_weight() has set is lost, and @setup is called again.
 *
 * An owner that @setup names must stay until @setup has returned, and then the batch
 * keeps it. If the attributes are bad, the queue call returns the reason. At the limit
 * of fairwq_flows_set_max() no batch is made, so @setup is not called.
 *
 * What is not promised: that a batch is made after each call of @setup, since there may
 * be no memory, or another CPU may be first. So @setup must not take a reference that
 * only @released drops. A batch that was made and not used is released like any other.
 *
 * Context: Process context, may sleep.
 * Return: 0; -EINVAL; -ENOMEM; -EEXIST if @flows has one already.
 */
int fairwq_flows_set_setup(struct fairwq_flows *flows,
			   void (*setup)(struct fairwq_flow_attrs *attrs, u64 key, void *data),
			   void *data);

/**
 * fairwq_flows_batch - look up the batch of a key, for any queue call
 * @flows: the flows
 * @key: the key. If it has no batch, one is made
 *
 * For an item that is of a flow and something else: delayed, or of a serializer, or of a
 * sequencer. It may be queued to the batch until rcu_read_unlock()::
 *
 *	rcu_read_lock();
 *	ret = fairwq_serializer_queue(&obj->serializer, fairwq_flows_batch(flows, key), work);
 *	rcu_read_unlock();
 *
 * A key that can have no batch gets the one that @flows has for all such keys, as by
 * fairwq_flows_queue(), and the call is counted in fairwq_flows_fallbacks(). If @flows is
 * being destroyed, that one refuses items.
 *
 * What is not promised: what is not promised of fairwq_flows_queue().
 *
 * Context: Any but NMI, under rcu_read_lock(). Does not sleep.
 * Return: the batch, without a reference; never NULL. ERR_PTR(-EINVAL) if @flows is NULL
 * or an error; queue calls refuse that.
 */
struct fairwq_batch *fairwq_flows_batch(struct fairwq_flows *flows, u64 key);

/**
 * fairwq_flows_get - get the batch of a key
 * @flows: the flows
 * @key: the key. If it has no batch, one is made
 *
 * A handle, with which the caller can pause, flush, weigh or cancel one key, or queue
 * delayed works to it. The batch stays while a caller has a reference to it, also if it
 * is idle. The reference is dropped by fairwq_batch_put().
 *
 * To close a key, shut its batch down: that drops the reference. Queue calls for the key
 * are refused with -ESHUTDOWN until the batch has left and its released() has returned.
 * The next one after that makes a new batch::
 *
 *	fairwq_batch_shutdown(fairwq_flows_get(flows, key), FAIRWQ_DROP_REST, dropped);
 *
 * What is not promised: items of the key that went to the shared batch are not in this
 * one.
 *
 * Context: Any but NMI. Does not sleep.
 * Return: the batch, with a reference, or ERR_PTR(): -EINVAL; -ENOMEM, also on PREEMPT_RT
 * if the batch must be made and the caller may not be preempted; -ENOSPC if it must be
 * made and there are too many, see fairwq_flows_set_max(); -ESHUTDOWN if @flows or the
 * pool is being destroyed; or the error of bad attributes from the setup.
 */
struct fairwq_batch *fairwq_flows_get(struct fairwq_flows *flows, u64 key);

/**
 * fairwq_flows_shutdown - refuse new items, run or drop the rest, wait, and end
 * @flows: the flows; NULL or an ERR_PTR() does nothing
 * @how: FAIRWQ_RUN_REST or FAIRWQ_DROP_REST
 * @dropped: with FAIRWQ_DROP_REST, called for each work that is dropped; or NULL
 *
 * As fairwq_batch_shutdown() for the batches of all keys, at the same time. New items are
 * refused with -ESHUTDOWN, also those of the pool's own items. On return each batch has
 * left the pool, and each released() has returned. Handles are still to be dropped. The
 * caller must make sure that @flows is not used after the return.
 *
 * Context: Process context, sleeps: for one expedited RCU grace period at least. From one
 * of the pool's own items, or a released(), it warns and returns -EDEADLK.
 * Return: 0; -EDEADLK or -EINVAL, with nothing done.
 */
int fairwq_flows_shutdown(struct fairwq_flows *flows, unsigned int how,
			  void (*dropped)(struct fairwq_work *work));

/**
 * fairwq_flows_destroy - refuse new items, run the rest, and end
 * @flows: the flows; NULL or an ERR_PTR() does nothing
 *
 * fairwq_flows_shutdown() with FAIRWQ_RUN_REST. As with destroy_workqueue(), every
 * accepted item has returned when this returns.
 *
 * A pool must not be destroyed before its flows: fairwq_pool_destroy() warns then, takes
 * the batches along, and the flows refuse items until they are destroyed.
 *
 * Context: Process context, sleeps. From one of the pool's own items it warns
 * and returns with nothing done.
 */
static inline void fairwq_flows_destroy(struct fairwq_flows *flows)
{
	fairwq_flows_shutdown(flows, FAIRWQ_RUN_REST, NULL);
}

/**
 * fairwq_flows_queue - queue a work to the batch of a key
 * @flows: the flows
 * @key: any number. Equal numbers are one flow, and flows take turns
 * @work: the work, set up by fairwq_work_init()
 *
 * The first call for a key makes its batch. If there is no memory for that, or
 * there are as many as fairwq_flows_set_max() allows, the item goes to the batch
 * that @flows has for all such keys, and is counted: see fairwq_flows_fallbacks().
 * On PREEMPT_RT that also happens if the caller may not be preempted. Each further
 * call for the key tries again.
 *
 * Items of one key start in the order in which they were queued, as with
 * fairwq_queue(). That also holds if the flow was idle, went, and was made anew
 * in between.
 *
 * What is not promised: an order between items of a key in the shared batch and
 * those in its own. A key changes from its own to the shared one only when its flow
 * was idle and went, so then the earlier items have ended. It changes back with the
 * next call that finds memory and room. That item may overtake those that still wait
 * in the shared batch, and run beside them. A driver that needs the order of each key
 * without exception uses a serializer for each.
 *
 * Context: Any but NMI. Does not sleep. May be called from an item. For a key
 * that has a flow it takes no lock but those of fairwq_queue().
 * Return: as fairwq_queue(); -ESHUTDOWN also if @flows is being destroyed; -EAGAIN
 * only for a flow with a max_queued, of @flows or of its setup, that has so many.
 * Memory is never a reason to refuse, nor that a flow has just gone. A flow that
 * was made stays until it is found idle, even if the item was refused. While a holder
 * of the key's batch shuts it down, -ESHUTDOWN as well: see fairwq_flows_get().
 */
__must_check
int fairwq_flows_queue(struct fairwq_flows *flows, u64 key, struct fairwq_work *work);

/**
 * fairwq_flows_set_idle_ms - change how long an idle flow stays
 * @flows: the flows
 * @ms: milliseconds since its last item has ended, up to FAIRWQ_MAX_IDLE_MS; 0:
 *	until fairwq_flows_destroy(). The default is 10 s
 *
 * fairwq looks at each flow four times within the idle time. So a flow may stay
 * for up to half as long again, and at least a few jiffies. An idle flow takes
 * up to 3 KiB of memory, and no time but for that look.
 *
 * Context: Any but NMI. Does not sleep.
 * Return: 0 or -EINVAL.
 */
int fairwq_flows_set_idle_ms(struct fairwq_flows *flows, unsigned int ms);

/**
 * fairwq_flows_set_max - limit the number of keys that have a batch of their own
 * @flows: the flows
 * @max: the most flows at a time; 0 for no limit. The default is 16384, which takes
 *	48 MiB of memory at most
 *
 * A client that can choose its keys can have a batch made for each. At the limit a key
 * that has none shares a batch with all others of the kind: see fairwq_flows_queue(). A
 * key that has a flow keeps it. When a flow was idle and went, the next key gets one. A
 * key whose batch a holder has shut down gives its place back soon after that.
 *
 * If @max is less than the number of flows, none goes for that. As they become idle,
 * their number falls below @max.
 *
 * What is not promised: that a modest client gets a flow while others use all of them.
 * If keys can be chosen, give @flows an owner: then all of them together have one share.
 *
 * Context: Any but NMI. Does not sleep.
 * Return: 0 or -EINVAL.
 */
int fairwq_flows_set_max(struct fairwq_flows *flows, unsigned int max);

/**
 * fairwq_flows_fallbacks - return how many items had to share a batch
 * @flows: the flows
 *
 * Context: Any.
 * Return: the number of items, since @flows was created, that went to the
 * shared batch because there was no memory for a flow, or because there were too
 * many; 0 if @flows is NULL or an ERR_PTR().
 */
u64 fairwq_flows_fallbacks(struct fairwq_flows *flows);

DEFINE_FREE(fairwq_flows_destroy, struct fairwq_flows *, fairwq_flows_destroy(_T))

/* ---- Fork and join ------------------------------------------------------ */

struct fairwq_task;

/**
 * typedef fairwq_task_func_t - the function of a task
 * @self: the task that runs; it stands for the caller in fairwq_fork() and
 *	fairwq_join()
 *
 * Runs in process context, as part of an item of the batch that forked it. It
 * may sleep. It must join every task that it forks before it returns.
 */
typedef void (*fairwq_task_func_t)(struct fairwq_task *self);

/* Tasks that a runner has forked and not joined, and that no other runner can see. */
struct fairwq_forks {
	/* private: */
	struct list_head list;		/* tasks, the newest last */
	const bool *hungry;		/* of the pool: a runner is free to take a task; a hint */
#ifdef CONFIG_LOCKDEP
	struct fairwq_task *innermost;	/* the task that the runner is in, or NULL */
#endif
};

/*
 * A join calls a task on the caller's stack if the caller's frame begins with more than so
 * many bytes left. That frame, the task, and interrupts where these have no stack of their
 * own share them.
 */
#define FAIRWQ_STACK_LEAST	(THREAD_SIZE / 2)
/* Most stacks that joins of all items have beside those of the runners. */
#define FAIRWQ_MAX_STACKS	64U

/* In task->origin: another runner has ended the task. */
#define FAIRWQ_TASK_DONE	((struct fairwq_runner *)-1L)

/**
 * struct fairwq_task - a part of an item that may run in parallel
 *
 * Set up by fairwq_task_init(). It may be on the stack of the function that
 * joins it. Where the compiler clears what is on the stack, declare it
 * __uninitialized, because clearing costs more than a fork. Every field is
 * fairwq's own.
 */
struct fairwq_task {
	/* private: */
	fairwq_task_func_t func;	/* NULL: it stands for an item */
	struct list_head node;		/* with those that its runner has forked before */
	union {
		struct fairwq_forks *forks;	/* of the runner that runs it; NULL: none does */
		struct fairwq_context *context;	/* until then, if promoted: to run in, or NULL */
	};
	struct fairwq_runner *origin;	/* that has promoted it, or NULL, or FAIRWQ_TASK_DONE */
	struct fairwq_work work;	/* by which another runner takes it */
	struct lockdep_map lockdep_map;	/* of no size without CONFIG_LOCKDEP */
};

/**
 * fairwq_task_init - set up a task
 * @task: the task
 * @function: the function to call when it is joined or taken
 *
 * A task may be forked again after it was joined, without a new setup.
 *
 * Context: Any.
 */
#define fairwq_task_init(task, function)				\
	__fairwq_init("(fairwq_task)" #task, __fairwq_task_init, task, function)

static __always_inline void __fairwq_task_init(struct fairwq_task *task,
					       fairwq_task_func_t function, const char *name,
					       struct lock_class_key *key)
{
	task->func = function;
	lockdep_init_map(&task->lockdep_map, name, key, 0);
}

#ifdef CONFIG_LOCKDEP
/*
 * Begin the function of @task in @self. Only the innermost task holds its map, because a
 * task may join another one of its own class. An item is held by the map of its work.
 *
 * Return: the task that held its map until now, or NULL.
 */
static inline struct fairwq_task *__fairwq_lockdep_task_begin(struct fairwq_task *self,
							      struct fairwq_task *task)
{
	struct fairwq_task *outer = self->func ? self : NULL;

	/* Also if @self stands for the item, because a function of the task has set it up. */
	if (self->forks) {
		outer = self->forks->innermost;
		self->forks->innermost = task;
	}
	if (outer)
		lock_map_release(&outer->lockdep_map);
	lock_map_acquire(&task->lockdep_map);
	return outer;
}

/* Let @task be the one that the runner is in. Return: the one before. */
static inline struct fairwq_task *__fairwq_lockdep_swap(struct fairwq_forks *forks,
							struct fairwq_task *task)
{
	swap(forks->innermost, task);
	return task;
}

/*
 * End what __fairwq_lockdep_task_begin() has begun. @outer holds its map again, as a lock that
 * was tried: it waits for nothing, so it comes after no lock that it has taken itself.
 */
static inline void __fairwq_lockdep_task_end(struct fairwq_task *self, struct fairwq_task *task,
					     struct fairwq_task *outer)
{
	lock_map_release(&task->lockdep_map);
	if (self->forks)
		self->forks->innermost = outer;
	if (outer)
		lock_acquire_exclusive(&outer->lockdep_map, 0, 1, NULL, _THIS_IP_);
}
#else
static inline struct fairwq_task *__fairwq_lockdep_task_begin(struct fairwq_task *self,
							      struct fairwq_task *task)
{
	return NULL;
}

static inline struct fairwq_task *__fairwq_lockdep_swap(struct fairwq_forks *forks,
							struct fairwq_task *task)
{
	return NULL;
}

static inline void __fairwq_lockdep_task_end(struct fairwq_task *self, struct fairwq_task *task,
					     struct fairwq_task *outer)
{
}
#endif

void __fairwq_fork_hungry(struct fairwq_forks *forks);
bool __fairwq_unfork(struct fairwq_task *self, struct fairwq_task *task);
void __fairwq_task_elsewhere(struct fairwq_task *self, struct fairwq_task *task);
void __fairwq_task_left(struct fairwq_task *self, struct list_head *newest,
			fairwq_task_func_t func);

/**
 * fairwq_task_here - make a task stand for the calling item
 * @self: the task; it needs no fairwq_task_init()
 *
 * @self is valid until the function of the item returns, in that function and
 * in those that it calls. In an interrupt, or where no item runs, it is valid,
 * too. There, tasks run one after the other, each when it is joined.
 *
 * The first call in a pool makes more runners, at least twice as many. They are
 * needed because a runner whose item waits in a join lets another one work.
 *
 * Context: From the function of an item, may sleep. From elsewhere, any.
 */
void fairwq_task_here(struct fairwq_task *self);

/* Check whether so little stack is left that a task must run on another one. */
static __always_inline bool fairwq_stack_is_low(void)
{
	return ((unsigned long)__builtin_frame_address(0) & (THREAD_SIZE - 1)) <
	       FAIRWQ_STACK_LEAST;
}

/**
 * fairwq_fork - offer a task to idle runners
 * @self: the task that the caller runs as: its own, or that of fairwq_task_here()
 * @task: the task, set up and not forked
 *
 * The task runs once: on another runner of the pool, if one is free, or else in
 * the caller's fairwq_join(). It is a turn of the caller's batch, if another
 * runner takes it. A fork costs a few stores, and wakes no runner as long as
 * none is idle. A runner that is idle later gets the oldest task at the next
 * fork or join of the item.
 *
 * The function that forks a task must join it before it returns, also one that
 * fairwq_context_call() calls. An item may fork any number of tasks.
 *
 * fairwq does not promise that any task runs in parallel. So no task may wait
 * for another one but in fairwq_join().
 *
 * Context: From the function of @self. May be called in atomic context.
 */
static inline void fairwq_fork(struct fairwq_task *self, struct fairwq_task *task)
{
	struct fairwq_forks *forks = self->forks;

	task->origin = NULL;
	if (unlikely(!forks))
		return;
	list_add_tail(&task->node, &forks->list);
	if (unlikely(READ_ONCE(*forks->hungry)))
		__fairwq_fork_hungry(forks);
}

/**
 * fairwq_unfork - take a forked task back, or wait until it has run
 * @self: as in the fairwq_fork() of @task
 * @task: the task
 *
 * A part of fairwq_join(), for a caller that does the work of the task itself. It
 * does not look how much stack is left.
 *
 * Context: From the function that forked @task, may sleep.
 * Return: true if no runner has begun the task, nor will: the caller must do its
 * work now, as a part of @self. It must not pass @task as @self: that is for the
 * function of @task alone, when fairwq calls it. false if the task has run: its
 * stores are seen.
 */
static __always_inline bool fairwq_unfork(struct fairwq_task *self, struct fairwq_task *task)
{
	struct fairwq_forks *forks = self->forks;

	/* A wait is to lockdep as if the caller ran the task itself. */
	__fairwq_lockdep_task_end(self, task, __fairwq_lockdep_task_begin(self, task));
	if (unlikely(!forks)) {
		task->forks = NULL;
		return true;
	}
	if (unlikely(READ_ONCE(task->origin)))
		return __fairwq_unfork(self, task);
	list_del(&task->node);
	task->forks = forks;
	if (unlikely(READ_ONCE(*forks->hungry)))
		__fairwq_fork_hungry(forks);
	return true;
}

/* Run a task that was not taken. Report what it has forked and not joined. */
static __always_inline void __fairwq_task_run(struct fairwq_task *self, struct fairwq_task *task,
					      fairwq_task_func_t func)
{
	struct list_head *newest = self->forks ? self->forks->list.prev : NULL;
	struct fairwq_task *outer = __fairwq_lockdep_task_begin(self, task);

	func(task);
	__fairwq_lockdep_task_end(self, task, outer);
	/* Forks are promoted from the oldest on, so this is so or none is left. */
	if (newest && unlikely(self->forks->list.prev != newest))
		__fairwq_task_left(self, newest, func);
}

/**
 * fairwq_join_func - join a task whose function the caller knows
 * @self: as in the fairwq_fork() of @task
 * @task: the task
 * @func: its function
 *
 * As fairwq_join(). The call is direct, and may be inlined.
 *
 * Context: From the function that forked @task, may sleep.
 */
static __always_inline void fairwq_join_func(struct fairwq_task *self,
					     struct fairwq_task *task,
					     fairwq_task_func_t func)
{
	if (!fairwq_unfork(self, task))
		return;
	if (unlikely(self->forks && fairwq_stack_is_low()))
		__fairwq_task_elsewhere(self, task);
	else
		__fairwq_task_run(self, task, func);
}

/**
 * fairwq_join - wait until a task has run
 * @self: as in the fairwq_fork() of @task
 * @task: the task
 *
 * Calls the function of the task, if no runner has begun it. Otherwise waits
 * until that runner has ended it. Meanwhile another runner works in the place
 * of the caller's. A join never runs anything but @task, so a caller may hold
 * locks that other items take. It must not hold one that @task takes: with
 * CONFIG_LOCKDEP that is reported.
 *
 * All stores of the task are seen when this returns. The tasks of one function
 * may be joined in any order; the newest first is fastest.
 *
 * A task that is joined while less than FAIRWQ_STACK_LEAST bytes of stack are
 * left runs on the stack of a worker of fairwq's own, while the caller sleeps.
 * If FAIRWQ_MAX_STACKS of all items are in use, the task does not run: that is
 * reported, and the item has failed with -EOVERFLOW.
 *
 * While the caller waits, other items of the pool may run, also with a
 * max_active of 1. An item that forks is not preempted: no join ends its turn.
 *
 * Context: From the function that forked @task, may sleep.
 */
static __always_inline void fairwq_join(struct fairwq_task *self, struct fairwq_task *task)
{
	fairwq_join_func(self, task, task->func);
}

/**
 * fairwq_parallel_for - call a function for the parts of a range
 * @batch: whose turns the parts are; NULL in an item: the item's batch
 * @start: the first number of the range
 * @end: the number after the last; nothing is done unless it is above @start
 * @grain: the most numbers in one call of @body, at least 1
 * @body: the function, which gets the first number of its part, the number after
 *	the last, and @arg
 * @arg: for @body
 *
 * Returns when all calls of @body have returned. Each number is in one call.
 * Calls may run in parallel, and in any order. The caller's stores before this
 * are seen by @body, and those of @body after it.
 *
 * Called in an item, it forks and joins, as fairwq_fork() does. Called elsewhere,
 * it queues one item of its own to @batch and waits for it. No callback of the
 * driver gets the work of that item: not dropped(), and not cost(), without
 * which it costs 1. fairwq_current_work() is NULL in it. No cancel counts it.
 * @body may call it, too. That takes about 1 KiB of the stack each time, and no
 * loop looks how much is left. Each place in the source that calls it is a
 * lockdep class of its own.
 *
 * Context: Process context, sleeps.
 * Return: 0; -EINVAL for bad arguments, or in an item whose batch is not @batch;
 * -ECANCELED, without a call of @body, if fairwq_batch_cancel() or a shutdown
 * that drops has taken the item out; or what fairwq_queue() returns.
 */
#define fairwq_parallel_for(batch, start, end, grain, body, arg)		\
({										\
	static struct lock_class_key __fairwq_key;				\
										\
	__fairwq_parallel_for(batch, start, end, grain, body, arg,		\
			      "(fairwq_loop)" #body, &__fairwq_key);		\
})

__must_check
int __fairwq_parallel_for(struct fairwq_batch *batch, unsigned long start,
			  unsigned long end, unsigned long grain,
			  void (*body)(unsigned long from, unsigned long to, void *arg),
			  void *arg, const char *name, struct lock_class_key *key);

/* ---- Failure ------------------------------------------------------------ */

/**
 * fairwq_report_failure - report that the calling item has failed
 * @err: the reason, a negative error number
 *
 * Counts a failure of the item's batch and pool, which debugfs shows, and calls
 * @failed of the pool's attributes. Changes nothing else: the item ends when its
 * function returns, as always, and the items behind it go on. An item may report
 * any number of times.
 *
 * Context: From the function of an item, in process context, may sleep. From
 * anywhere else it warns and does nothing.
 */
void fairwq_report_failure(int err);

/*
 * ---- Limits ---------------------------------------------------------------
 *
 * No function may be called from NMI. No item is preempted: a turn lasts as
 * long as its function. Turns are fair within one pool, not between pools. No
 * choice of CPU but by FAIRWQ_NEAR: the workers are those of an unbound
 * workqueue. An item that waits for another item of its pool needs a second
 * runner.
 * Documentation/guarantees.rst has the whole list.
 */

#endif /* FAIRWQ_H */
