/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fairwq: fair shares of one pool of workers between its clients.
 *
 * A worker pool of the kernel's workqueues serves one FIFO, so the client that
 * queues most is served most. fairwq puts batches in front of a workqueue. A
 * batch is one client's queue, and the batches take turns. An item is a work
 * that was queued, a turn is one item given to its batch, and a runner is a
 * work of fairwq's own that runs items. Documentation/usage.rst shows how the
 * calls are used together, and Documentation/guarantees.rst has all that is
 * promised, and what is not.
 *
 * What holds for all calls, unless they say otherwise:
 *
 * * Where no "Context:" is given, a call may be made from any context but NMI:
 *   from a hardirq, with interrupts off, and from an item, also from the one
 *   that it is about. It does not sleep and, but for flows, allocates nothing.
 * * A call with "not from" in its context would make an item wait for itself
 *   there. It warns then, does not wait, and returns -EDEADLK if it can.
 * * An ERR_PTR() of a pool, a batch or flows counts as NULL, except where NULL
 *   has a meaning. There it is a bad argument. A bad argument gives -EINVAL, or
 *   an ERR_PTR() of that, and a line in the log the first time. A call that
 *   cannot return an error warns, does nothing, and returns 0, false or NULL.
 *   The calls that put, dispose of, destroy or shut down something, and those
 *   that get a batch or a context, ignore NULL.
 *   fairwq_work_pending() and the calls for turns that go on and for tasks
 *   check nothing.
 * * A work must not be freed during a call for it. The caller must hold a
 *   reference to a batch, or know otherwise that it was not released.
 * * A name is a printf format, need not be unique, and is cut after 63 bytes.
 *   Control characters, and what is no UTF-8, become '?'.
 *
 * A pool lives until fairwq_pool_destroy(), and flows until
 * fairwq_flows_destroy(). A batch lives until it has been disposed of and has
 * drained. Its memory is freed a grace period after the last reference.
 *
 * A work belongs to the caller unless it is pending. While it is pending, the
 * caller must not free it or write to it. fairwq does not touch a work once its
 * function was called, so the function may free it. A work of a sequencer
 * belongs to fairwq until it was completed or dropped.
 *
 * Any calls for one work, batch or flows may run at the same time, as long as
 * the work is not freed:
 *
 * * Of several queue calls for a work one returns 1, and the others 0.
 * * Of several cancels one takes the work out: it returns true, or calls
 *   dropped(). That ends a flush of the work. fairwq_work_cancel() takes effect
 *   before or after a queue call; fairwq_work_cancel_sync() has queue calls
 *   refused meanwhile.
 * * A dispose ends the batch once. Items of queue calls that are under way run,
 *   or are refused. A disposed batch is released after its last item was run,
 *   cancelled or dropped.
 * * A flush, and fairwq_batch_cancel(), are for what was queued before them.
 *
 * A work may be freed after fairwq_work_cancel_sync(), and after a cancel that
 * returned true if its function does not run. Both hold only if no caller
 * queues it meanwhile, if it is in no sequencer, and if no cancel or shutdown
 * of its batch or serializer has given it to dropped().
 */
#ifndef FAIRWQ_H
#define FAIRWQ_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/bug.h>
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

/* Check whether this header is of version a.b.c or newer. */
#define FAIRWQ_VERSION_AT_LEAST(a, b, c) \
	(((FAIRWQ_VERSION_MAJOR) << 16) + ((FAIRWQ_VERSION_MINOR) << 8) + \
	 (FAIRWQ_VERSION_PATCH) >= ((a) << 16) + ((b) << 8) + (c))

struct fairwq_pool;
struct fairwq_batch;
struct fairwq_serializer;
struct fairwq_work;

/* ---- Work --------------------------------------------------------------- */

/**
 * typedef fairwq_func_t - the function of a work
 * @work: the work that was queued
 *
 * Called in process context, with interrupts on. It may sleep, queue other
 * works, or dispose of its batch. Unless @work is of a sequencer, it may queue
 * @work again, to the tail of its batch, or free it.
 */
typedef void (*fairwq_func_t)(struct fairwq_work *work);

/**
 * struct fairwq_work - an item, embedded in the caller's object
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
	u64 stamp;			/* when it was queued, see core/state.h */
	struct lockdep_map lockdep_map;	/* of no size without CONFIG_LOCKDEP */
};

/* Define a work that is set up at compile time. */
#define DEFINE_FAIRWQ_WORK(name, function)				\
	struct fairwq_work name = {					\
		.data = ATOMIC_LONG_INIT(0),				\
		.func = (function),					\
		__WORK_INIT_LOCKDEP_MAP("(fairwq_work)" #name, &(name))	\
	}

/*
 * Set up an object by @init, with the rest of the arguments, a name, and a
 * lockdep class of its own for each place in the source.
 */
#define __fairwq_init(name, init, ...)					\
	do {								\
		static struct lock_class_key __fairwq_key;		\
									\
		init(__VA_ARGS__, name, &__fairwq_key);			\
	} while (0)

/**
 * fairwq_work_init - set up a work
 * @work: the work. It must not be pending. While it runs, only its own function
 *	may set it up, or a caller whom that told that it is through with @work
 * @func: the function to call when the work has its turn
 *
 * Each place that calls a set-up macro is a lockdep class of its own.
 */
#define fairwq_work_init(work, func)					\
	__fairwq_init("(fairwq_work)" #work, __fairwq_work_init, work, func)

/* The same for a work on the stack, which must stay until it has run. */
#define fairwq_work_init_onstack(work, func) fairwq_work_init(work, func)

static inline void __fairwq_work_init(struct fairwq_work *work, fairwq_func_t func,
				      const char *name, struct lock_class_key *key)
{
	if (WARN_ON_ONCE(!work))
		return;
	*work = (struct fairwq_work){ .func = func };
	lockdep_init_map(&work->lockdep_map, name, key, 0);
}

/**
 * fairwq_queue - queue a work to a batch
 * @batch: the batch
 * @work: the work, set up by fairwq_work_init()
 *
 * Items of one batch start in queue order, but one that still runs starts
 * after that, and others do not wait for it. After 1 or 0 the run to come sees
 * everything that the caller stored before the call. On 0 or an error nothing
 * was changed, and after an error @work is the caller's, unless it was pending.
 * No error can come if @batch has no max_queued, no work is disabled, and the
 * caller disposes of @batch, and drains or destroys its pool, only after its
 * last queue call. If several of the values below apply, the first one is
 * returned.
 * Not promised: the order in which items end, and the CPU.
 * Return:
 * * -EINVAL: an argument is bad, or @work was not set up
 * * 0: @work is pending already, and not disabled
 * * -ESHUTDOWN: @batch was disposed; or its pool is being drained or destroyed,
 *   and the caller is not one of its items
 * * -EAGAIN: @batch has max_queued items
 * * -ECANCELED: @work is disabled, or is being cancelled by a call that waits
 * * 1: @work was queued
 */
__must_check
int fairwq_queue(struct fairwq_batch *batch, struct fairwq_work *work);

/**
 * fairwq_work_pending - check whether a work is queued and not yet started
 * @work: the work
 * Return: true if it is; for a moment also during a queue call that is refused.
 * That may be out of date when it is returned.
 */
static inline bool fairwq_work_pending(const struct fairwq_work *work)
{
	return atomic_long_read(&work->data);
}

/* What fairwq_work_busy() returns, with the values of WORK_BUSY_*. */
#define FAIRWQ_BUSY_PENDING	BIT(0)
#define FAIRWQ_BUSY_RUNNING	BIT(1)

/**
 * fairwq_work_busy - check whether a work is queued, and whether it runs
 * @work: the work
 * Return: FAIRWQ_BUSY_PENDING if it is queued and not yet started,
 * FAIRWQ_BUSY_RUNNING if its function runs, both, or 0. That may be out of
 * date. A work may count for a moment as running after its function, and as
 * pending during a queue call that is refused.
 */
unsigned int fairwq_work_busy(struct fairwq_work *work);

/**
 * fairwq_current_work - return the item that the caller runs in
 *
 * For a function that must not wait for the item that calls it. In a task this
 * is the item that has forked it, whichever runner runs the task.
 * Not promised: that the work still exists: its function may have freed it.
 * Return: the work; NULL if the caller is not an item, or is an interrupt.
 */
struct fairwq_work *fairwq_current_work(void);

/**
 * fairwq_work_cancel - take a work out of the queue
 * @work: the work. If it waits for a grace period, it stays pending
 *
 * If this returns true, the caller may free @work, unless a queue call for it
 * is under way, or its function still runs from an earlier queue call. A work
 * of a sequencer must be given to fairwq_sequencer_drop() first.
 * Not promised: that the function does not run when this returns, or, if this
 * returned false, is not about to start. A queue call that is under way on
 * another CPU may take effect later.
 * Return: true if this took @work out.
 */
bool fairwq_work_cancel(struct fairwq_work *work);

/**
 * fairwq_work_disable - cancel a work and refuse to queue it
 * @work: the work
 *
 * As fairwq_work_cancel(). Queue calls return -ECANCELED until
 * fairwq_work_enable() was called as often as this, at most 65,535 times.
 * Return: true if this took @work out.
 */
bool fairwq_work_disable(struct fairwq_work *work);

/**
 * fairwq_work_disable_sync - disable a work and wait until it does not run
 * @work: the work
 *
 * As fairwq_work_cancel_sync(), and @work stays disabled.
 * Context: Process context, sleeps. Not from @work's own function.
 * Return: true if this took @work out; false also if @work ran after a grace
 * period that this waited for.
 */
bool fairwq_work_disable_sync(struct fairwq_work *work);

/**
 * fairwq_work_enable - undo one fairwq_work_disable(); does not queue the work
 * @work: the work
 * Return: true if @work can be queued again, false if it is still disabled.
 */
bool fairwq_work_enable(struct fairwq_work *work);

/**
 * fairwq_work_cancel_sync - cancel a work and wait until it does not run
 * @work: the work
 *
 * On return @work is neither pending nor running, also if its function queues
 * itself, because @work is disabled during the call. This waits for the end of
 * a grace period that @work waits for. The caller may free @work unless others
 * queue it. A work of a sequencer may be freed only after
 * fairwq_sequencer_drop() if this returned true, and otherwise after
 * fairwq_sequencer_flush() or its completion.
 * Not promised: that a call of dropped() for @work has returned.
 * Context: Process context, sleeps. Not from @work's own function, nor from a
 * completion of its sequencer.
 * Return: true if this took @work out.
 */
static inline bool fairwq_work_cancel_sync(struct fairwq_work *work)
{
	bool ret = fairwq_work_disable_sync(work);

	if (work)
		fairwq_work_enable(work);
	return ret;
}

/**
 * fairwq_work_flush - wait for the run that was queued last
 * @work: the work
 *
 * If @work is pending, this waits until that run has ended or was cancelled,
 * and otherwise for the run that is under way.
 * Not promised: that this waits for runs that are queued during the call, or
 * moved by fairwq_mod_delayed(), for a delay or a grace period, for the
 * completion of a work of a sequencer, or for dropped().
 * Context: Process context, sleeps. Not from @work's own function, nor from a
 * completion of its sequencer, nor from an item in front of @work in a
 * serializer that runs one at a time.
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
 * A lower priority that has waited for 63 turns of higher ones gets the 64th,
 * or 1/64 of the time under FAIRWQ_FAIR_TIME. FAIRWQ_STRICT_PRIO switches that
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
 * @max_active: the most of its items that may be in flight at once, also those
 *	that sleep, 1 to FAIRWQ_MAX_ACTIVE; 0 for no limit but the pool's
 * @max_queued: the most of its items that may be queued and not yet started, 1
 *	to INT_MAX; 0 for no limit. At that number queue calls return -EAGAIN
 * @parent: its owner, a batch of the same pool and priority, or NULL. All
 *	batches of an owner divide the owner's share by their weights. The
 *	owner's own items have a weight of FAIRWQ_DFL_WEIGHT among them. Owners
 *	may be nested 8 deep. Pause, flush and dispose of an owner concern its
 *	own items only, and it may be disposed before its batches
 * @ordered: the batch has a sequencer of its own. Its works are completed when
 *	a flush of the batch returns, and before @released is called, unless
 *	they wait for one that was cancelled, until that is dropped, or for one
 *	that waits in a serializer, which a flush does not see
 * @released: called once, in process context, when the batch was disposed, has
 *	drained and has left its pool; or NULL. It may sleep, which delays only
 *	calls that wait for the end of the batch, its owner, its flows or the
 *	pool. It must not wait for these, and runs on a workqueue with
 *	WQ_MEM_RECLAIM, which must not flush one without that
 * @priv: passed to @released
 */
struct fairwq_batch_attrs {
	enum fairwq_prio prio;
	unsigned int weight;
	unsigned int max_active;
	unsigned int max_queued;
	struct fairwq_batch *parent;
	bool ordered;
	void (*released)(struct fairwq_batch *batch, void *priv);
	void *priv;
};

/**
 * fairwq_batch_create - create a batch in a pool
 * @pool: the pool
 * @attrs: its attributes; NULL for the default ones
 * @fmt: its name
 * Context: Process context, may sleep. May be called from an item.
 * Return: the batch with its only reference, which fairwq_batch_dispose() or
 * fairwq_batch_shutdown() drops, or ERR_PTR(): -EINVAL; -ENOMEM; -ESHUTDOWN if
 * the pool is being destroyed or the owner was disposed.
 */
struct fairwq_batch *fairwq_batch_create(struct fairwq_pool *pool,
					 const struct fairwq_batch_attrs *attrs,
					 const char *fmt, ...) __printf(3, 4);

/**
 * fairwq_batch_dispose - refuse new items, run the accepted ones, then leave
 * @batch: the batch. Several holders of references may dispose of it
 *
 * Drops the caller's reference, and does not wait. Accepted items still run,
 * also of a paused batch. Then it leaves its pool, and released() is called.
 * Not promised: that no item runs on return: see fairwq_batch_shutdown().
 */
void fairwq_batch_dispose(struct fairwq_batch *batch);

/**
 * fairwq_batch_get - take another reference
 * @batch: a batch that the caller holds a reference to
 * Return: @batch, also if it is NULL or an ERR_PTR().
 */
struct fairwq_batch *fairwq_batch_get(struct fairwq_batch *batch);

/**
 * fairwq_batch_put - drop a reference
 * @batch: the batch, which stays in its pool unless it is disposed
 */
void fairwq_batch_put(struct fairwq_batch *batch);

/**
 * fairwq_batch_set_weight - change a batch's share from the next turn on
 * @batch: the batch. The weight of an owner is that of all its batches together
 * @weight: 1 to FAIRWQ_MAX_WEIGHT: batches are served in the ratio of theirs
 * Return: 0, or -EINVAL.
 */
int fairwq_batch_set_weight(struct fairwq_batch *batch, unsigned int weight);

void __fairwq_batch_set_paused(struct fairwq_batch *batch, bool paused);

/**
 * fairwq_batch_pause - start no more items of a batch
 * @batch: the batch. If it was disposed, it is not paused
 *
 * Callers may still queue items. When this returns, only an item that a runner
 * had already taken may still begin; others may still run. Pauses are not
 * counted: one resume undoes them all. A paused batch saves up no share.
 */
static inline void fairwq_batch_pause(struct fairwq_batch *batch)
{
	__fairwq_batch_set_paused(batch, true);
}

/**
 * fairwq_batch_resume - undo fairwq_batch_pause()
 * @batch: the batch
 */
static inline void fairwq_batch_resume(struct fairwq_batch *batch)
{
	__fairwq_batch_set_paused(batch, false);
}

/**
 * fairwq_batch_flush - wait until the items that are queued now have ended
 * @batch: the batch. If it is paused and has items, this waits until it is
 *	resumed or disposed, or they are cancelled
 * Not promised: that this waits for items that are queued during the call, wait
 * in a serializer, for a delay or a grace period, or are being dropped.
 * Context: Process context, sleeps. Not from one of its items.
 */
void fairwq_batch_flush(struct fairwq_batch *batch);

/**
 * fairwq_batch_cancel - take everything out of a batch's queue
 * @batch: the batch
 * @dropped: called in the caller's context for each item that is dropped,
 *	without a lock; or NULL. The item is not pending any more. @dropped may
 *	queue it again, or free it unless its function still runs from an
 *	earlier queue call. It must give a work of a sequencer to
 *	fairwq_sequencer_drop() first. It must not wait for items of @batch, nor
 *	for its shutdown
 *
 * Drops what was queued to @batch before the call and has not started, in queue
 * order, but first what waits for its own last run to end. Items that are
 * queued during the call stay, also those that @dropped queues, or a serializer
 * that loses an item by this. No item of @batch begins until the last one was
 * dropped, except for one that a runner had already taken. An item is pending
 * until @dropped is called for it, so another cancel may take it before. A
 * disposed batch is released after the last call of @dropped.
 * Not promised: that no item of @batch runs when this returns. Items that wait
 * for a delay, for a grace period or in a serializer are not dropped.
 * Return: how many items were dropped.
 */
unsigned long fairwq_batch_cancel(struct fairwq_batch *batch,
				  void (*dropped)(struct fairwq_work *work));

/**
 * fairwq_batch_nr_queued - how many items of a batch have not started
 * @batch: the batch, also one found in the present RCU read-side section
 * Return: the number of items that max_queued limits: those that wait for their
 * turn, for their own last run to end, for a delay, for a grace period, or in a
 * serializer. It may be out of date. Without max_queued, some in serializers
 * may be left out.
 */
unsigned int fairwq_batch_nr_queued(struct fairwq_batch *batch);

/* How a shutdown treats the works there: see fairwq_batch_shutdown(). */
#define FAIRWQ_RUN_REST		0U	/* run them */
#define FAIRWQ_DROP_REST	BIT(0)	/* give those that have not started back */
#define FAIRWQ_AND_OWNED	BIT(1)	/* so for all batches below an owner, too */

/**
 * fairwq_batch_shutdown - refuse new items, run or drop the rest, wait, leave
 * @batch: the batch
 * @how: FAIRWQ_RUN_REST or FAIRWQ_DROP_REST; with FAIRWQ_AND_OWNED also for the
 *	batches that @batch owns, and that those own
 * @dropped: with FAIRWQ_DROP_REST, called as by fairwq_batch_cancel(); or NULL
 *
 * On return no item of @batch is queued or runs, it has left its pool, its
 * released() has returned, and the caller's reference is dropped. So the caller
 * may free what its items use, except works of a sequencer: items of other
 * batches may still complete them. Each accepted work runs, is dropped, or is
 * cancelled, and only one of these:
 *
 * * Delays end now. A work that waits for a grace period or in a serializer
 *   runs, or is dropped, when that lets it go. So the caller must not hold up
 *   the items in front of it, by a lock or a pause.
 * * FAIRWQ_RUN_REST runs what has not started, also of a paused batch.
 *   FAIRWQ_DROP_REST drops it, also a work that still runs and was queued
 *   again. No other call lets it run. If two holders call this, and one drops,
 *   what has not started by then is dropped.
 * * What runs, or continues after its function, is waited for, and so are its
 *   tasks. What it queues to @batch is refused: -ESHUTDOWN.
 *
 * With FAIRWQ_AND_OWNED that holds for each batch below @batch; their
 * references stay with their holders. Flows below @batch must be shut down
 * before, because a queue call for a key may make a new batch.
 * Not promised: that no item starts after the call has begun: a runner may have
 * taken one already, and the batches are disposed one after the other. That no
 * item of another batch waits for one of @batch: an
 * item of the pool that calls this must have no work of @batch behind it in its
 * serializer.
 * Context: Process context, sleeps. Not from an item, or the released(), of a
 * batch that is to leave.
 * Return: 0; -EDEADLK or -EINVAL, with nothing done and no reference dropped.
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
 * Flags of a pool. The first four mean what WQ_* of the same name means. An
 * item of a pool with FAIRWQ_MEM_RECLAIM waiting for a pool without it is
 * reported.
 */
#define FAIRWQ_MEM_RECLAIM	WQ_MEM_RECLAIM
#define FAIRWQ_HIGHPRI		WQ_HIGHPRI
#define FAIRWQ_FREEZABLE	WQ_FREEZABLE
#define FAIRWQ_SYSFS		WQ_SYSFS
#define FAIRWQ_STRICT_PRIO	BIT(5) /* lower priorities get only what higher ones leave */
#define FAIRWQ_NEAR		BIT(7) /* the runners work near @cpu of the attributes */

/**
 * enum fairwq_policy - which batch gets the next turn
 * @FAIRWQ_ROUND_ROBIN: the batches take turns; a turn costs 1 / weight
 * @FAIRWQ_FAIR_TIME: a turn costs the time that its function takes / weight,
 *	also while it is preempted, but not while it sleeps and does not count
 *	in @max_active; at most a minute. Costs two readings of the clock
 * @FAIRWQ_FAIR_COST: a turn costs what the pool's @cost says / weight, before
 *	the item runs. Each item of a serializer is a turn
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
 *	for the number of possible CPUs, at least 2. An item that sleeps does
 *	not count, and another one runs: from the second tick on if the kernel
 *	has no CONFIG_PREEMPT_NOTIFIERS, which comes with KVM
 * @max_in_flight: the most functions of items and stolen tasks that have begun
 *	and not returned, asleep or not, 1 to FAIRWQ_MAX_ACTIVE; 0 for the
 *	largest. max_active, also one set later, counts if it is more. So with
 *	1, items that sleep count as others do. At this number nothing begins;
 *	that is reported after hung_ms
 * @policy: which batch gets the next turn
 * @slice_us: what a turn is charged under FAIRWQ_FAIR_TIME while the batch has
 *	no measured one, in microseconds, 1 to FAIRWQ_MAX_SLICE_US; 0 for 50
 * @max_async: the most turns that may be in flight without a runner, see
 *	fairwq_async_begin(); 0 for no limit. Items and stolen tasks that run or
 *	sleep count, too, because items may become such turns
 * @cost: for FAIRWQ_FAIR_COST: returns the cost of an item, in a unit of the
 *	driver's own such as bytes; 0 counts as 1. Called when a turn begins,
 *	and before that for the first item of a batch without a turn, under a
 *	lock with interrupts off: it must not sleep, nor call fairwq. A task
 *	that another runner takes costs 1
 * @failed: called by fairwq_report_failure(), inside the item, with its batch,
 *	its function (of a task that another runner has taken, that of the task)
 *	and the reason; or NULL. It may sleep and queue works. It must take a
 *	reference to a batch that it keeps
 * @cpu: with FAIRWQ_NEAR, a possible CPU: items run on workers of its cache,
 *	before 6.6 of its node, and with FAIRWQ_SYSFS an operator can change
 *	that. It may go offline. Without the flag 0: a runner works near the
 *	caller that wakes it
 */
struct fairwq_pool_attrs {
	unsigned int flags;
	unsigned int max_active;
	unsigned int max_in_flight;
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
 * @fmt: its name in debugfs and traces. With FAIRWQ_SYSFS it is also the name
 *	in /sys/devices/virtual/workqueue: not empty, cut there after 23 bytes
 *	(31 from 6.9 on), and of nothing else there until the pool is gone
 * Context: Process context, may sleep. May be called from an item. If fairwq is
 * built in, from a core_initcall() on.
 * Return: the pool, or ERR_PTR(): -EINVAL; -ENOMEM, also if the name in sysfs
 * is taken; -ENODEV if fairwq was not started yet.
 */
struct fairwq_pool *fairwq_pool_create(const struct fairwq_pool_attrs *attrs,
				       const char *fmt, ...) __printf(2, 3);

/**
 * fairwq_pool_destroy - drain a pool and destroy it
 * @pool: the pool. Others must not use it meanwhile, and its flows must be gone
 *
 * On return every accepted item has run or was cancelled, also those of paused
 * batches, delayed works after their whole delay, and items that wait in a
 * serializer. Every batch that is left was disposed and released. References to
 * batches, also that of the creator, outlive the pool; queue calls for them
 * return -ESHUTDOWN. During the call only items of the pool, and holders of
 * references to its default batches, may use these.
 * Context: Process context, sleeps, also for an expedited RCU grace period if a
 * runner was kicked just now. Not from the pool's items, nor from a released()
 * of its batches: it does nothing then.
 */
void fairwq_pool_destroy(struct fairwq_pool *pool);

/**
 * fairwq_pool_set_max_active - change how many items may run at once
 * @pool: the pool
 * @max_active: 1 to FAIRWQ_MAX_ACTIVE. If this is less than before, more items
 *	may run until enough of them have ended
 * Return: 0, or -EINVAL.
 */
int fairwq_pool_set_max_active(struct fairwq_pool *pool, unsigned int max_active);

/**
 * fairwq_pool_flush - fairwq_batch_flush() for every batch of the pool
 * @pool: the pool
 * Context: Process context, sleeps. Not from one of the pool's items.
 */
void fairwq_pool_flush(struct fairwq_pool *pool);

/**
 * fairwq_pool_drain - wait until the pool is empty
 * @pool: the pool. Must not be called twice at a time
 *
 * During the call queue calls from elsewhere than items of the pool return
 * -ESHUTDOWN. This waits for the resume or dispose of paused batches.
 * Not promised: that this waits for an item that waits in a serializer, for a
 * delay or for a grace period, which is queued when it is let go, or is being
 * dropped.
 * Context: Process context, sleeps. Not from one of the pool's items.
 */
void fairwq_pool_drain(struct fairwq_pool *pool);

/**
 * fairwq_pool_default_batch - return the pool's own batch of a priority
 * @pool: the pool
 * @prio: the priority
 * Return: the batch, for callers without one, which must not be disposed or
 * shut down; NULL if an argument is bad.
 */
struct fairwq_batch *fairwq_pool_default_batch(struct fairwq_pool *pool,
					       enum fairwq_prio prio);

DEFINE_FREE(fairwq_pool_destroy, struct fairwq_pool *, fairwq_pool_destroy(_T))

/* ---- Delayed and RCU ---------------------------------------------------- */

/*
 * A delayed or RCU work is pending from the queue call on, and counts in the
 * max_queued of its batch. It gets its place in the order of the batch when the
 * delay or grace period is over, and cannot be refused then. If the batch is
 * disposed meanwhile, it stays until the work has run or was cancelled, and
 * fairwq_pool_destroy() waits for that. fairwq_batch_flush() does not.
 */

/**
 * struct fairwq_delayed_work - an item that is queued after a delay
 * @work: the item, for all calls that take one, and for its function
 */
struct fairwq_delayed_work {
	struct fairwq_work work;
	/* private: */
	struct timer_list timer;
};

/**
 * fairwq_delayed_work_init - set up a delayed work that is not on the stack
 * @dwork: the work
 * @func: the function to call when the work has its turn
 */
#define fairwq_delayed_work_init(dwork, func)				\
	__fairwq_init("(fairwq_work)" #dwork, __fairwq_delayed_work_init, dwork, func, 0)

/*
 * The same for a work that may be late: the end of the delay does not wake an
 * idle CPU, and the work is queued when that wakes for another reason.
 * fairwq_pool_destroy() waits for that, so cancel or flush it before.
 */
#define fairwq_delayed_work_init_deferrable(dwork, func)		\
	__fairwq_init("(fairwq_work)" #dwork, __fairwq_delayed_work_init,	\
		      dwork, func, TIMER_DEFERRABLE)

/*
 * The same for a work on the stack. Before its frame is left, it must have run
 * or been cancelled by fairwq_delayed_work_cancel_sync(), and then be passed to
 * fairwq_delayed_work_destroy_onstack().
 */
#define fairwq_delayed_work_init_onstack(dwork, func)			\
	__fairwq_init("(fairwq_work)" #dwork, __fairwq_delayed_work_init,	\
		      dwork, func, FAIRWQ_DELAY_ONSTACK)

/* A kind of delayed works beside TIMER_DEFERRABLE, for the macros above. */
#define FAIRWQ_DELAY_ONSTACK	BIT(0)

void __fairwq_delayed_work_init(struct fairwq_delayed_work *dwork, fairwq_func_t func,
				unsigned int kind, const char *name,
				struct lock_class_key *key);

/**
 * fairwq_delayed_work_destroy_onstack - end a delayed work on the stack
 * @dwork: the work, neither pending nor running
 */
void fairwq_delayed_work_destroy_onstack(struct fairwq_delayed_work *dwork);

/**
 * fairwq_queue_delayed - queue a work after a delay
 * @batch: the batch
 * @dwork: the work, set up by fairwq_delayed_work_init()
 * @delay: in jiffies, at most MAX_JIFFY_OFFSET; 0 to queue it at once
 * Return: as fairwq_queue(). All errors come at once.
 */
__must_check
int fairwq_queue_delayed(struct fairwq_batch *batch, struct fairwq_delayed_work *dwork,
			 unsigned long delay);

/**
 * fairwq_mod_delayed - queue a work after a delay, or change its delay
 * @batch: the batch
 * @dwork: the work, set up by fairwq_delayed_work_init()
 * @delay: the delay from now on, as in fairwq_queue_delayed()
 *
 * Moves @dwork to @batch from wherever it is pending. It stays pending
 * meanwhile, and another queue call returns 0. Once taken out it is queued,
 * also if @batch is disposed meanwhile, or filled: @batch may get more than
 * max_queued items. A work that moves within @batch counts twice for a moment.
 * Return: 1 if it was pending, and 0 if it was idle and was queued, unlike
 * fairwq_queue_delayed(); or an error, as fairwq_queue(). After an error a
 * pending @dwork is where it was. -EAGAIN is only for a work that is idle or
 * pending in another batch.
 */
__must_check
int fairwq_mod_delayed(struct fairwq_batch *batch, struct fairwq_delayed_work *dwork,
		       unsigned long delay);

/**
 * fairwq_delayed_work_flush - end a delay, then wait as fairwq_work_flush()
 * @dwork: the work
 * Context: Process context, sleeps. Not where fairwq_work_flush() may not.
 * Return: true if it waited, false if there was nothing to wait for.
 */
bool fairwq_delayed_work_flush(struct fairwq_delayed_work *dwork);

/* As the calls for a work, also while a delayed work waits for its delay. */
static inline bool fairwq_delayed_work_cancel(struct fairwq_delayed_work *dwork)
{
	return fairwq_work_cancel(&dwork->work);	/* which warns of NULL */
}

static inline bool fairwq_delayed_work_cancel_sync(struct fairwq_delayed_work *dwork)
{
	return fairwq_work_cancel_sync(&dwork->work);
}

/**
 * struct fairwq_rcu_work - an item that is queued after an RCU grace period
 * @work: the item, for all calls that take one, and for its function
 */
struct fairwq_rcu_work {
	struct fairwq_work work;
	/* private: */
	struct rcu_work later;
};

/* Set up a work for after a grace period. */
#define fairwq_rcu_work_init(rwork, func)				\
	__fairwq_init("(fairwq_work)" #rwork, __fairwq_rcu_work_init, rwork, func)

void __fairwq_rcu_work_init(struct fairwq_rcu_work *rwork, fairwq_func_t func,
			    const char *name, struct lock_class_key *key);

/**
 * fairwq_queue_rcu - queue a work after an RCU grace period
 * @batch: the batch
 * @rwork: the work, set up by fairwq_rcu_work_init()
 *
 * The grace period begins no earlier than this call. Until it ends, no call
 * takes the work out: those that wait, such as fairwq_work_cancel_sync(), wait
 * for the end, and the others leave it pending. A disable refuses only later
 * queue calls.
 * Return: as fairwq_queue(). All errors come at once.
 */
__must_check
int fairwq_queue_rcu(struct fairwq_batch *batch, struct fairwq_rcu_work *rwork);

/**
 * fairwq_rcu_work_flush - wait for the grace period, then for the run
 * @rwork: the work
 * Context: Process context, sleeps. Not from @rwork's own function.
 * Return: true if it waited, false if there was nothing to wait for.
 */
static inline bool fairwq_rcu_work_flush(struct fairwq_rcu_work *rwork)
{
	bool waited = rwork && flush_rcu_work(&rwork->later);

	return fairwq_work_flush(&rwork->work) || waited;
}

/* ---- Blocking ----------------------------------------------------------- */

/*
 * An item that sleeps does not count in its pool's max_active, and another one
 * runs meanwhile. Without CONFIG_PREEMPT_NOTIFIERS only a tick can find out. An
 * item may say that it will wait, and another one runs at once on any kernel.
 */

/**
 * fairwq_block_begin - begin a section in which the calling item may wait
 *
 * From here on the item counts as asleep, until the end of the section. It
 * stays in flight: for the max_in_flight and max_async of its pool, for the
 * max_active of its batch, for its serializer or limiter, and for calls that
 * wait for it. It is reported as hung after hung_ms, as any item. Under
 * FAIRWQ_FAIR_TIME it pays for the CPU time of the section, if KVM is there.
 * Sections nest, and only the outermost one counts. A section costs more than a
 * wait of a few microseconds.
 * Context: From an item or task, may sleep. Elsewhere it does nothing.
 */
void fairwq_block_begin(void);

/**
 * fairwq_block_end - end the section of fairwq_block_begin()
 *
 * The item counts in max_active again at once, and waits for no room, so more
 * items may run until one of them has ended. An item must call this before it
 * returns.
 * Context: From the function that called fairwq_block_begin().
 */
void fairwq_block_end(void);

/* ---- Turns that go on --------------------------------------------------- */

/*
 * An item that submits I/O returns before the I/O is done. It can keep its turn
 * until then, so that shares and limits hold for the I/O.
 */

/* What a turn was charged, and what it took. */
struct fairwq_charge {
	/* private: */
	u64 took;			/* R, P at the end: ns, of all items; 0: not measured */
	u32 charged;			/* P: in the unit of the policy */
	unsigned int nr;		/* R, P at the end: number of its items */
	u16 policy_gen;			/* P: pool->policy_gen when it was charged */
	u8 color;			/* P: index into batch->in_flight */
	bool out_of_rank;		/* P: taken before a turn of a higher priority */
};

/**
 * struct fairwq_async - a turn that continues; needs no set-up
 */
struct fairwq_async {
	/* private: */
	struct fairwq_batch *batch;	/* NULL: no turn, or it was completed */
	struct fairwq_runner *runner;	/* P: while the function runs, else NULL */
	struct fairwq_serializer *serializer; /* to be told of the end, or NULL */
	struct fairwq_charge charge;	/* that of the turn */
};

/**
 * fairwq_async_begin - keep the turn of the calling item after its function
 * @async: memory for that, which no other turn may use until it was completed
 *
 * The turn ends by fairwq_async_complete(), and the worker is free meanwhile.
 * The item stays in flight: it counts in the max_active of its batch, the
 * @max_async of its pool, and its serializer or limiter. Flush, drain, shutdown
 * and destroy of each of these wait for it. fairwq_work_flush(),
 * fairwq_work_cancel_sync() and fairwq_work_pending() are about the function
 * alone. The work may be queued again, or freed, before the turn has ended.
 *
 * What completes the turn must not depend on an item of the same pool that has
 * not begun, because at @max_async none begins; that is reported after hung_ms.
 * Nor must it depend on items that wait for this turn: behind it in its
 * serializer or limiter, or because of the max_active of the batch.
 * Context: From the function of an item. Does not sleep.
 * Return: true if the caller must call fairwq_async_complete(), which it may do
 * at once. Otherwise neither has an effect: in a task that another runner runs,
 * where no item runs, and if the turn continues already.
 */
bool fairwq_async_begin(struct fairwq_async *async);

/**
 * fairwq_async_complete - end a turn that continues
 * @async: that of fairwq_async_begin(). It may be freed when this returns
 * @cost_ns: what the turn cost besides its function, in ns, at most a minute,
 *	for FAIRWQ_FAIR_TIME; other policies ignore it
 *
 * To be called once for each fairwq_async_begin(). If the function has not
 * returned yet, the turn ends when it does.
 */
void fairwq_async_complete(struct fairwq_async *async, u64 cost_ns);

/* ---- Context ------------------------------------------------------------ */

/*
 * A worker runs as root, in the cgroups of the kernel. A driver that works for
 * a user captures the context of that user's task, and its items do the work in
 * that context. Documentation/usage.rst has an example.
 */

/**
 * fairwq_context_capture - capture on whose behalf the caller runs
 * @gfp: flags for the memory
 *
 * Captures the credentials, the memory cgroup (with CONFIG_MEMCG) and the block
 * cgroup (with CONFIG_BLK_CGROUP), inside fairwq_context_call() those of its
 * context. Later changes of the task do not change what was captured. Not
 * captured: namespaces, address space, nice value and CPU cgroup.
 * Context: Process context. May sleep, if @gfp allows it.
 * Return: the context with one reference, or ERR_PTR(): -ENOMEM; -EINVAL, with
 * a warning, from an interrupt.
 */
struct fairwq_context *fairwq_context_capture(gfp_t gfp);

/**
 * fairwq_context_get - take a reference
 * @context: the context
 * Return: @context, also if it is NULL or an ERR_PTR().
 */
struct fairwq_context *fairwq_context_get(struct fairwq_context *context);

/**
 * fairwq_context_put - drop a reference
 * @context: the context
 * Context: Any but NMI; on PREEMPT_RT not with interrupts or preemption off.
 */
void fairwq_context_put(struct fairwq_context *context);

/**
 * fairwq_context_call - call a function in a context
 * @context: the context. @func may drop the caller's reference. If it is NULL
 *	or an ERR_PTR(), this warns and does not call @func
 * @func: the function
 * @arg: passed to @func
 *
 * Calls @func with the credentials and cgroups of @context, and then restores
 * the caller's. If an item calls this, credentials that @func leaves behind are
 * reported. Tasks that @func forks run in @context, and @func must join them.
 * It cannot join tasks that its caller has forked.
 * Not promised: the block cgroup afterwards. A thread that is not an item
 * returns to that of its task; one of user space never leaves its own.
 * Context: Process context, may sleep.
 */
void fairwq_context_call(struct fairwq_context *context, void (*func)(void *arg), void *arg);

/* ---- Order -------------------------------------------------------------- */

/*
 * A serializer runs one item at a time, a limiter is a serializer that runs
 * several, and a sequencer completes items in order. A serializer is a struct
 * in the caller's object. It needs no memory, thread or workqueue of its own.
 *
 * A work that waits in a serializer is pending, and counts in the max_queued of
 * its batch. If the batch is disposed, it stays until the work has run or was
 * cancelled, and fairwq_pool_destroy() waits for that. fairwq_work_flush()
 * waits for such a work. fairwq_batch_flush(), fairwq_pool_flush(),
 * fairwq_pool_drain() and fairwq_batch_cancel() do not see it.
 */

/* Longest time for which a runner may be told to go on with one serializer. */
#define FAIRWQ_MAX_INLINE_US	10000U

/**
 * struct fairwq_serializer - runs one item after the other, or a few at a time
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
 */
#define fairwq_serializer_init(serializer)				\
	__fairwq_init("(fairwq_serializer)" #serializer, __fairwq_serializer_init, serializer, 1)

/**
 * fairwq_limiter_init - set up a serializer that runs several items at a time
 * @serializer: the serializer
 * @max: the most of its items that may be in flight at once, at least 1. An
 *	item is in flight while it is queued in its batch, and until it has ended
 */
#define fairwq_limiter_init(serializer, max)				\
	__fairwq_init("(fairwq_limiter)" #serializer, __fairwq_serializer_init, serializer, max)

static inline void __fairwq_serializer_init(struct fairwq_serializer *serializer, unsigned int max,
					    const char *name, struct lock_class_key *key)
{
	if (WARN_ON_ONCE(!serializer))
		return;
	*serializer = (struct fairwq_serializer){ .max = WARN_ON_ONCE(!max) ? 1 : max };
	INIT_LIST_HEAD(&serializer->waiting);
	lockdep_init_map(&serializer->lockdep_map, name, key, 0);
}

/**
 * fairwq_serializer_queue - queue a work to a batch, behind others
 * @serializer: the serializer. After this it may be freed only when a flush,
 *	shutdown or destroy of it has returned; a cancel of @work is not enough
 * @batch: where @work is to run; any batch of any pool
 * @work: the work, set up by fairwq_work_init()
 *
 * The items of a serializer start in queue order, each after the one before has
 * ended: its function has returned, and its turn does not continue. It sees
 * what that has stored. In a limiter up to @max items are in flight, and start
 * when their batches let them. An item gets its place in its batch when the
 * serializer lets it go. A cancelled item does not hold up the others. Once
 * @work has run or was cancelled, this does not touch @work or @serializer. An
 * item must not wait for one behind it.
 * Not promised: that an item of a high priority overtakes those in front of it.
 * Return: as fairwq_queue(); -ESHUTDOWN also if @serializer is being destroyed.
 */
__must_check
int fairwq_serializer_queue(struct fairwq_serializer *serializer,
			    struct fairwq_batch *batch, struct fairwq_work *work);

/**
 * fairwq_serializer_set_inline - let a runner continue with the next item
 * @serializer: the serializer; of a limiter this has no effect
 * @budget_us: for how long, in microseconds of the items behind the first, up
 *	to FAIRWQ_MAX_INLINE_US; 0, the default, to queue each item to its batch
 *
 * A runner continues with the items behind the first for about @budget_us, and
 * at most 1024 items. For other clients these are like one long item: they
 * start before what is queued in their batch, and are charged to it. An item is
 * queued to its batch as usual if that is another one, or is paused, and after
 * a flush, pause or cancel of the batch. A change applies when the next item
 * ends.
 * Not promised: that the budget is kept: no item is cut short.
 * Return: 0, or -EINVAL.
 */
int fairwq_serializer_set_inline(struct fairwq_serializer *serializer, unsigned int budget_us);

/**
 * fairwq_serializer_flush - wait until what is queued now has ended
 * @serializer: the serializer
 * Context: Process context, sleeps. Not from one of its items.
 */
void fairwq_serializer_flush(struct fairwq_serializer *serializer);

/**
 * fairwq_serializer_shutdown - refuse new items, run or drop the rest, and wait
 * @serializer: the serializer. On return it may be freed
 * @how: FAIRWQ_RUN_REST, see fairwq_serializer_destroy(), or FAIRWQ_DROP_REST
 * @dropped: with FAIRWQ_DROP_REST, called as by fairwq_batch_cancel(); or NULL
 *
 * With FAIRWQ_DROP_REST none of the works that wait in @serializer starts any
 * more. They are dropped in queue order. One in flight, which is queued in its
 * batch, runs, or continues after its function, is waited for; a cancel can
 * take it out of its batch. If @serializer runs one item at a time, that item
 * may call this: it is the last one then.
 * Not promised: whether a work whose queue call is under way when this begins
 * runs, is dropped, or is refused.
 * Context: Process context, sleeps.
 * Return: 0, also for NULL; -EINVAL; -EDEADLK, with a warning, from an item if
 * several may be in flight, or if there is a flush behind it, another caller of
 * this, or a work that this does not drop. After an error @serializer accepts
 * items, unless that other caller refuses them. What was dropped stays dropped.
 */
int fairwq_serializer_shutdown(struct fairwq_serializer *serializer, unsigned int how,
			       void (*dropped)(struct fairwq_work *work));

/**
 * fairwq_serializer_destroy - refuse new items, wait until all have ended
 * @serializer: the serializer
 *
 * On return the caller may free it, if no other call for it is under way,
 * except a queue call whose item has run or was cancelled. A queue call during
 * this call is refused, or its item is waited for. The last item of a
 * serializer that runs one at a time may call this, and then free it, also if
 * its turn continues; but a task of it only on the item's own stack. From any
 * other of its items this warns and does nothing.
 * Context: Process context, sleeps.
 */
static inline void fairwq_serializer_destroy(struct fairwq_serializer *serializer)
{
	fairwq_serializer_shutdown(serializer, FAIRWQ_RUN_REST, NULL);
}

/**
 * fairwq_serializer_is_last - check whether nothing waits behind the item
 * @serializer: the serializer that the caller is an item of
 *
 * If so, the item may call fairwq_serializer_destroy(), if the caller keeps
 * others from queueing. An item that is queued later runs after this one.
 * Context: From an item of @serializer, or a task of one. Does not sleep.
 * Return: true if no work and no flush waits in @serializer; false also for a
 * limiter, and if the caller is no item of it.
 */
bool fairwq_serializer_is_last(const struct fairwq_serializer *serializer);

/**
 * struct fairwq_sequencer - runs items in parallel, and completes them in order
 *
 * If no other call for it is under way, it may be freed by the completion of
 * the last work, or after a fairwq_sequencer_flush().
 */
struct fairwq_sequencer {
	/* private: under fairwq's lock */
	struct list_head works;		/* in queue order, until they are completed */
	struct fairwq_completer *completer; /* the task that does that, or did, or NULL */
	struct fairwq_batch *batch;	/* of which each work has a reference; or NULL */
	bool unsafe;			/* as in struct fairwq_serializer */
};

/**
 * struct fairwq_sequenced_work - an item of a sequencer
 * @work: the item, for all calls that take one, and for its functions
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

/* Set up a sequencer. */
static inline void fairwq_sequencer_init(struct fairwq_sequencer *sequencer)
{
	if (WARN_ON_ONCE(!sequencer))
		return;
	*sequencer = (struct fairwq_sequencer){ .works = LIST_HEAD_INIT(sequencer->works) };
}

/**
 * fairwq_sequenced_work_init - set up a work of a sequencer
 * @swork: the work
 * @func: called when the work has its turn. It must not free @swork
 * @complete: called after @func, in queue order. May free or queue @swork
 */
#define fairwq_sequenced_work_init(swork, func, complete)		\
	__fairwq_init("(fairwq_work)" #swork, __fairwq_sequenced_work_init, swork, func, complete)

void __fairwq_sequenced_work_init(struct fairwq_sequenced_work *swork, fairwq_func_t func,
				  fairwq_func_t complete, const char *name,
				  struct lock_class_key *key);

/**
 * fairwq_sequencer_queue - queue a work that is completed in its order
 * @sequencer: the sequencer, which must stay until the completion of @swork
 *	begins, or a call that drops it has returned; or NULL for that of @batch,
 *	which must be ordered
 * @serializer: a serializer that @swork passes through, too; or NULL
 * @batch: where @swork is to run; any batch of any pool
 * @swork: the work, set up by fairwq_sequenced_work_init(). If another queue
 *	call gets it, that warns, and the completion follows the function
 *
 * The functions of a sequencer's works run in parallel. Their completions are
 * called one at a time, in queue order, by the item that made the first of them
 * ready, whose batch is charged. Each sees what the functions and completions
 * before it have stored. It may sleep, and holds up that item and those behind.
 *
 * @swork may be freed by its completion, or after fairwq_sequencer_flush(). A
 * flush of a work, batch or pool waits for functions, and for the completions
 * that these items call. That of a pool waits for all completions, provided
 * that all works of @sequencer are of that pool, none was dropped, and none
 * waits in a serializer. If a work is cancelled, the caller must call
 * fairwq_sequencer_drop(), or those behind it are not completed.
 * Not promised: that a turn that continues after its function ends before that.
 * Return: 1 if the work was queued; 0 if it is pending; or a negative error as
 * fairwq_serializer_queue(). 0, and no run comes for this call, until it was
 * completed or dropped, and if another call has it for another sequencer, which
 * may yet be refused.
 */
__must_check
int fairwq_sequencer_queue(struct fairwq_sequencer *sequencer,
			   struct fairwq_serializer *serializer,
			   struct fairwq_batch *batch, struct fairwq_sequenced_work *swork);

/**
 * fairwq_sequencer_drop - give up a work of a sequencer that was cancelled
 * @work: the work, which is the caller's again when this returns
 *
 * It is not completed. This call completes those behind that waited for it. May
 * be used as @dropped by a caller that may sleep, if all works are such.
 * Context: Process context, may sleep.
 */
void fairwq_sequencer_drop(struct fairwq_work *work);

/**
 * fairwq_sequencer_flush - wait until what is queued now is completed
 * @sequencer: the sequencer
 * Context: Process context, sleeps. Not from one of its items.
 */
void fairwq_sequencer_flush(struct fairwq_sequencer *sequencer);

/* ---- Flows -------------------------------------------------------------- */

/*
 * Flows are for clients that are known only by a number (a cgroup, a tenant, an
 * address). The number is the key, and each key has a batch, called its flow,
 * that the first queue call makes. A flow that was idle for a while is removed,
 * and made again when needed. If there is no memory for a flow, or there are
 * fairwq_flows_set_max() of them, the items of further keys are queued to one
 * shared batch, and counted: see fairwq_flows_fallbacks().
 */

/* Room for the name of a flow's batch, with the zero at the end. */
#define FAIRWQ_MAX_FLOW_NAME	32U
/* Longest time that an idle flow may be told to stay: a day. */
#define FAIRWQ_MAX_IDLE_MS	86400000U

/**
 * fairwq_flows_create - prepare batches that are made by key, on first use
 * @pool: the pool. The caller must destroy the flows before it
 * @attrs: the attributes of each batch; NULL for the default ones. @released
 *	must be NULL: see fairwq_flows_set_setup(). Without a @parent, a client
 *	that can choose its keys gets a share for each of them. With one, all
 *	keys together get the owner's share. @flows keeps the owner, even if
 *	disposed
 *
 * The batches are called "flow-" and the key in hexadecimal. The shared one is
 * "flows-shared", has no max_queued, and is ordered, whatever @attrs say.
 * Context: Process context, may sleep. May be called from an item.
 * Return: the flows, or ERR_PTR(): -EINVAL; -ENOMEM; -ESHUTDOWN if the pool is
 * being destroyed or the owner was disposed.
 */
struct fairwq_flows *fairwq_flows_create(struct fairwq_pool *pool,
					 const struct fairwq_batch_attrs *attrs);

/**
 * struct fairwq_flow_attrs - attributes of the batch of a key
 * @batch: those of fairwq_flows_create() at first. Here @released may be set:
 *	it is called when the batch has left, being idle or shut down
 * @name: in debugfs and traces; "flow-" and the key in hexadecimal at first
 */
struct fairwq_flow_attrs {
	struct fairwq_batch_attrs batch;
	char name[FAIRWQ_MAX_FLOW_NAME];
};

/**
 * fairwq_flows_set_setup - set the attributes of each key by a callback
 * @flows: the flows, to which nothing was queued yet
 * @setup: called with @data before each batch is made, in the context of the
 *	queue call and under rcu_read_lock(). It may change @attrs. It must not
 *	sleep, nor call fairwq for @flows
 * @data: passed to @setup
 *
 * @setup is called again when a flow is made again; a weight that
 * fairwq_batch_set_weight() has set is lost then. An owner that @setup names
 * must stay until @setup has returned. If the attributes are bad, the queue
 * call returns the reason.
 * Not promised: that a batch is made after each call of @setup. So @setup must
 * not take a reference that only @released drops. A batch that was made and not
 * used is released, too.
 * Context: Process context, may sleep.
 * Return: 0; -EINVAL; -EEXIST if @flows has a setup already.
 */
int fairwq_flows_set_setup(struct fairwq_flows *flows,
			   void (*setup)(struct fairwq_flow_attrs *attrs, u64 key, void *data),
			   void *data);

/**
 * fairwq_flows_batch - look up the batch of a key, for any queue call
 * @flows: the flows
 * @key: the key. If it has no batch, one is made
 *
 * For an item that is also delayed, or of a serializer or sequencer. The batch
 * may be queued to until rcu_read_unlock(). A key that can have no batch, for
 * whatever reason, gets the shared one, which refuses items if @flows is being
 * destroyed. The order is that of fairwq_flows_queue().
 * Context: Any but NMI, under rcu_read_lock().
 * Return: the batch, without a reference; ERR_PTR(-EINVAL), which queue calls
 * refuse, if @flows is NULL or an error; never NULL.
 */
struct fairwq_batch *fairwq_flows_batch(struct fairwq_flows *flows, u64 key);

/**
 * fairwq_flows_get - get the batch of a key
 * @flows: the flows
 * @key: the key. If it has no batch, one is made
 *
 * For calls that take a batch, such as a pause of one key. The flow stays until
 * fairwq_batch_put() drops the reference. fairwq_batch_shutdown() drops it,
 * too, and closes the key: queue calls for it return -ESHUTDOWN until the batch
 * has left and its released() has returned. The next one makes a new batch.
 * Not promised: that no items of the key are in the shared batch.
 * Return: the batch, with a reference, or ERR_PTR(): -EINVAL; -ESHUTDOWN if
 * @flows or the pool is being destroyed; and if the batch must be made -ENOMEM,
 * also on PREEMPT_RT if the caller may not be preempted, -ENOSPC at
 * fairwq_flows_set_max(), or the error of bad attributes from the setup.
 */
struct fairwq_batch *fairwq_flows_get(struct fairwq_flows *flows, u64 key);

/**
 * fairwq_flows_shutdown - refuse new items, run or drop the rest, wait, and end
 * @flows: the flows. After the return there must be no call for them
 * @how: FAIRWQ_RUN_REST or FAIRWQ_DROP_REST
 * @dropped: with FAIRWQ_DROP_REST, called as by fairwq_batch_cancel(); or NULL
 *
 * As fairwq_batch_shutdown() for the batches of all keys, at the same time.
 * Items are refused with -ESHUTDOWN, also those of the pool's own items. Calls
 * under way are waited for. References from fairwq_flows_get() must still be
 * dropped.
 * Context: Process context, sleeps for an expedited RCU grace period at least.
 * Not from one of the pool's items, or a released().
 * Return: 0; -EDEADLK or -EINVAL, with nothing done.
 */
int fairwq_flows_shutdown(struct fairwq_flows *flows, unsigned int how,
			  void (*dropped)(struct fairwq_work *work));

/**
 * fairwq_flows_destroy - fairwq_flows_shutdown() with FAIRWQ_RUN_REST
 * @flows: the flows. If the pool was destroyed before, against the rules, that
 *	has warned and ended the batches, and they refuse items
 * Context: Process context, sleeps. Not from one of the pool's items, or a
 * released(): it does nothing then.
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
 * Items of one key start in queue order, also if its flow was made again in
 * between. On PREEMPT_RT a caller that may not be preempted cannot make a flow,
 * and uses the shared batch.
 * Not promised: an order between items of a key in the shared batch and later
 * ones in its own, which may overtake and run beside them. If each key needs
 * its order without exception, use a serializer for each.
 * Return: as fairwq_queue(); -ESHUTDOWN also if @flows is being destroyed, or
 * while a holder of the key's batch shuts it down; -EAGAIN only if the flow has
 * a max_queued; or the error of bad attributes from the setup. Never for want
 * of memory, nor because a flow was just removed.
 */
__must_check
int fairwq_flows_queue(struct fairwq_flows *flows, u64 key, struct fairwq_work *work);

/**
 * fairwq_flows_set_idle_ms - change how long an idle flow stays
 * @flows: the flows
 * @ms: milliseconds since its last item has ended, up to FAIRWQ_MAX_IDLE_MS,
 *	and up to half as long again, or a grace period; 0: until
 *	fairwq_flows_destroy(). The default is 10 s
 * Return: 0 or -EINVAL.
 */
int fairwq_flows_set_idle_ms(struct fairwq_flows *flows, unsigned int ms);

/**
 * fairwq_flows_set_max - limit the number of keys with a batch of their own
 * @flows: the flows. They should have an owner if clients can choose their
 *	keys, because then a few clients may use up all flows
 * @max: the most flows at a time; 0 for no limit. The default is 16384, which
 *	takes 48 MiB of memory at most. Keys that have a flow keep it until it
 *	was idle, or a holder's shutdown of its batch has returned
 * Return: 0 or -EINVAL.
 */
int fairwq_flows_set_max(struct fairwq_flows *flows, unsigned int max);

/**
 * fairwq_flows_fallbacks - return how many items had to share a batch
 * @flows: the flows
 * Return: since @flows was created, the number of items that were queued to the
 * shared batch, and of calls of fairwq_flows_batch() that returned it.
 */
u64 fairwq_flows_fallbacks(struct fairwq_flows *flows);

DEFINE_FREE(fairwq_flows_destroy, struct fairwq_flows *, fairwq_flows_destroy(_T))

/* ---- Fork and join ------------------------------------------------------ */

struct fairwq_task;

/**
 * typedef fairwq_task_func_t - the function of a task, a part of an item
 * @self: the task that runs; for the caller in fairwq_fork() and fairwq_join()
 *
 * Runs in process context, and may sleep. Must join every task that it forks.
 */
typedef void (*fairwq_task_func_t)(struct fairwq_task *self);

/* Tasks that a runner has forked and not joined. Only that runner uses the list. */
struct fairwq_forks {
	/* private: */
	struct list_head list;		/* tasks, the newest last */
	const bool *hungry;		/* of the pool: a runner is free to take a task; a hint */
	struct fairwq_task *innermost;	/* for lockdep: the task that the runner is in, or NULL */
};

/*
 * A join calls a task on the caller's stack if the caller's frame begins with
 * more than so many bytes left. That frame, the task, and interrupts that have
 * no stack of their own share them.
 */
#define FAIRWQ_STACK_LEAST	(THREAD_SIZE / 2)
/* Most stacks that joins of all items have beside those of the runners. */
#define FAIRWQ_MAX_STACKS	64U

/* In task->origin: another runner has ended the task. */
#define FAIRWQ_TASK_DONE	((struct fairwq_runner *)-1L)

/**
 * struct fairwq_task - a part of an item that may run in parallel
 *
 * It may be on the stack of the function that joins it. Declare it
 * __uninitialized, because to clear it costs more than a fork.
 */
struct fairwq_task {
	/* private: */
	struct list_head node;		/* with those that its runner has forked before */
	fairwq_task_func_t func;	/* NULL: it stands for an item */
	struct fairwq_runner *origin;	/* that has promoted it, or NULL, or FAIRWQ_TASK_DONE */
	struct fairwq_work work;	/* by which another runner takes it */
	/* Each fork and join of another runner reads this: so it is far from @node. */
	union {
		struct fairwq_forks *forks;	/* of the runner that runs it; NULL: none does */
		struct fairwq_context *context;	/* until then, if promoted: to run in, or NULL */
	};
	struct lockdep_map lockdep_map;	/* of no size without CONFIG_LOCKDEP */
};

/*
 * Set up a task, with the function to call when it is joined or taken. It may
 * be forked again after it was joined, without a new setup.
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

/*
 * Begin the function of @task in @self. Only the innermost task holds its map,
 * because a task may join one of its own class. An item is held by the map of
 * its work.
 * Return: the task that held its map until now, or NULL.
 */
static inline struct fairwq_task *__fairwq_lockdep_task_begin(struct fairwq_task *self,
							      struct fairwq_task *task)
{
	struct fairwq_task *outer = self->func ? self : NULL;

	if (!IS_ENABLED(CONFIG_LOCKDEP))
		return NULL;
	/* Also if @self stands for the item, because a function of the task has set it up. */
	if (self->forks) {
		outer = self->forks->innermost;
		self->forks->innermost = task;
	}
	if (outer)
		lock_map_release(&outer->lockdep_map);
	/* Outside of an item a join waits for nobody: as a lock that was tried. */
	lock_acquire_exclusive(&task->lockdep_map, 0, !self->forks, NULL, _THIS_IP_);
	return outer;
}

/*
 * End what __fairwq_lockdep_task_begin() has begun. @outer holds its map again,
 * as a lock that was tried, so it comes after no lock that it has taken itself.
 */
static inline void __fairwq_lockdep_task_end(struct fairwq_task *self, struct fairwq_task *task,
					     struct fairwq_task *outer)
{
	if (!IS_ENABLED(CONFIG_LOCKDEP))
		return;
	lock_map_release(&task->lockdep_map);
	if (self->forks)
		self->forks->innermost = outer;
	if (outer)
		lock_acquire_exclusive(&outer->lockdep_map, 0, 1, NULL, _THIS_IP_);
}

void __fairwq_fork_hungry(struct fairwq_forks *forks);
bool __fairwq_unfork(struct fairwq_task *self, struct fairwq_task *task);
void __fairwq_task_elsewhere(struct fairwq_task *self, struct fairwq_task *task);
void __fairwq_forks_left(struct fairwq_forks *forks, struct list_head *newest,
			 const void *func);

/**
 * fairwq_task_here - make a task stand for the calling item
 * @self: the task, not set up; valid until the function of the item returns, in
 *	that function and in those that it calls
 *
 * In an interrupt, or where no item runs, each task runs when it is joined.
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
 * @self: the task that the caller runs as: its own, or that of
 *	fairwq_task_here()
 * @task: the task, set up and not forked
 *
 * The task runs once: on another runner of the pool, if one is free, as a turn
 * of the caller's batch; or else in the caller's fairwq_join(). A function must
 * join what it forks before it returns, also one that fairwq_context_call()
 * calls. It may fork any number of tasks.
 * Not promised: that any task runs in parallel. So no task may wait for another
 * one except in fairwq_join().
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
 * For a caller that does the work of the task itself. Does not check the stack.
 * Context: From the function that forked @task, may sleep.
 * Return: true if no runner has begun the task, nor will: the caller must do
 * its work now, as a part of @self, and must not pass @task as @self. False if
 * the task has run: its stores are seen.
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
	if (newest && unlikely(self->forks->list.prev != newest))
		__fairwq_forks_left(self->forks, newest, func);
}

/*
 * As fairwq_join(), for a caller that knows the function of the task: the call
 * is direct, and may be inlined.
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
 * Calls the function of the task, or waits for the runner that has begun it.
 * All stores of the task are seen when this returns. The tasks of a function
 * may be joined in any order; the newest first is fastest. A join runs nothing
 * but @task, so a caller may hold locks that other items take, but none that
 * @task takes. Meanwhile other items may run, also if the pool has a max_active
 * of 1. No join ends a turn.
 *
 * With less than FAIRWQ_STACK_LEAST bytes of stack left, the task runs on the
 * stack of a worker of fairwq's own, while the caller sleeps. If
 * FAIRWQ_MAX_STACKS are in use, it does not run: that is reported, and the item
 * has failed with -EOVERFLOW.
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
 * @body: called with the first number of a part, the number after its last, and
 *	@arg. Returns 0, or another number to end the loop
 * @arg: passed to @body
 *
 * Each number is in one call of @body, and all calls have returned when this
 * does. They may run in parallel, and in any order. They see what the caller
 * has stored before this, and their stores are seen after it. After a call that
 * does not return 0 no other one begins, except on a CPU that does not yet see
 * that.
 *
 * In an item this forks and joins. Elsewhere it queues one item of its own to
 * @batch and waits for it. That item is given to neither dropped() nor cost(),
 * which would count it as 1. No cancel counts it, and fairwq_current_work() is
 * NULL in it.
 * @body may call this, too, which takes about 1 KiB of stack each time,
 * unchecked.
 * Context: Process context, sleeps.
 * Return: 0; what a call of @body has returned first that is not 0; -EINVAL,
 * also in an item whose batch is not @batch; -ECANCELED, without a call of
 * @body, if fairwq_batch_cancel() or a shutdown that drops has taken the item
 * out; or an error of fairwq_queue().
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
			  int (*body)(unsigned long from, unsigned long to, void *arg),
			  void *arg, const char *name, struct lock_class_key *key);

/* ---- Failure ------------------------------------------------------------ */

/**
 * fairwq_report_failure - report that the calling item has failed
 * @err: the reason, a negative error number
 *
 * Counts a failure of the item's batch and pool in debugfs, and calls @failed
 * of the pool. Nothing else changes. An item may report any number of times.
 * Context: From an item, may sleep. From elsewhere it warns and does nothing.
 */
void fairwq_report_failure(int err);

#endif /* FAIRWQ_H */
