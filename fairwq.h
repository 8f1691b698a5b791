/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fair shares of one pool of workers between the clients that queue to it.
 *
 * The kernel's workqueues serve one FIFO per worker pool: whoever queues most
 * is served most. fairwq puts a queue per client, a *batch*, in front of a
 * workqueue and lets the batches take turns.
 *
 *   struct fairwq_pool *pool = fairwq_pool_create(NULL, "mydrv");
 *   struct fairwq_batch *batch = fairwq_batch_create(pool, NULL, "client-%d", id);
 *
 *   fairwq_work_init(&obj->work, my_func);
 *   fairwq_queue(batch, &obj->work);
 *   ...
 *   fairwq_batch_dispose(batch);      what was accepted still runs
 *   fairwq_pool_destroy(pool);
 *
 * Who has a number for each client, and no object, lets fairwq make the batches:
 *
 *   struct fairwq_flows *flows = fairwq_flows_create(pool, NULL);
 *
 *   fairwq_flows_queue(flows, number, &obj->work);
 *   ...
 *   fairwq_flows_destroy(flows);      and then the pool
 *
 * Who owns what: the pool belongs to its creator until fairwq_pool_destroy().
 * A batch is reference counted; its creator holds one reference, which
 * fairwq_batch_dispose() drops. A work belongs to its caller, except while it
 * is pending. Once its function was called, fairwq does not touch it again, so
 * the function may free it.
 *
 * What may run at the same time, on one batch B and one work W:
 *
 *              queue(B,W)  dispose(B)  flush(B)  pause/resume(B)  free W
 * queue(B,W)   one wins,   run or      waits     safe             caller
 *              others 0    refused     or not                     excludes
 * dispose(B)               one wins    safe      safe             safe
 * flush(B)                             safe      safe, waits      safe after
 *
 * The same for what takes works out of the queue, or waits for one:
 *
 *              queue(B,W)    dispose(B)  cancel(W)   cancel_sync(W)  flush(W)
 * cancel(W)    before or     safe        one gets    one gets true   ends the
 *              after it                  true                        wait
 * cancel_      refused       safe                    both wait       ends the
 * sync(W)      meanwhile                                             wait
 * flush(W)     of what was   W runs,                                 both wait
 *              queued before then it goes
 * cancel(B)    of what was   released    W goes to   W goes to       ends the
 *              queued before after it    one of them one of them     wait
 *
 * W may be freed after cancel_sync(W), or after a cancel(W) that returned true if
 * its function does not run; in both cases if nobody queues it meanwhile.
 *
 * Flows may be queued to, and told another idle time, by any number of callers
 * at a time; fairwq_flows_destroy() waits for those that were let in.
 *
 * Limits: not from NMI; no item is preempted, a turn lasts as long as its
 * function; turns are fair within one pool, not between pools.
 */
#ifndef FAIRWQ_H
#define FAIRWQ_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/cleanup.h>
#include <linux/err.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/lockdep.h>
#include <linux/stringify.h>
#include <linux/timer.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#define FAIRWQ_VERSION_MAJOR	0
#define FAIRWQ_VERSION_MINOR	2
#define FAIRWQ_VERSION_PATCH	0
#define FAIRWQ_VERSION		__stringify(FAIRWQ_VERSION_MAJOR) "." \
				__stringify(FAIRWQ_VERSION_MINOR) "." \
				__stringify(FAIRWQ_VERSION_PATCH)
/* True if this header is of version @a.@b.@c or newer. */
#define FAIRWQ_VERSION_AT_LEAST(a, b, c) \
	(((FAIRWQ_VERSION_MAJOR) << 16) + ((FAIRWQ_VERSION_MINOR) << 8) + \
	 (FAIRWQ_VERSION_PATCH) >= ((a) << 16) + ((b) << 8) + (c))

/* Most runners that one pool may have. */
#define FAIRWQ_MAX_ACTIVE	512U
/* Longest slice_us. */
#define FAIRWQ_MAX_SLICE_US	10000U
/* Longest time that a runner may be told to go on with one serializer. */
#define FAIRWQ_MAX_INLINE_US	10000U
/* Weights go from 1 to this; an unset weight counts as the default. */
#define FAIRWQ_MAX_WEIGHT	10000U
#define FAIRWQ_DFL_WEIGHT	100U
/* Longest time that an idle flow may be told to stay; a day. */
#define FAIRWQ_MAX_IDLE_MS	86400000U

struct fairwq_pool;
struct fairwq_batch;
struct fairwq_constraint;
struct fairwq_flows;
struct fairwq_work;
struct notifier_block;

/**
 * enum fairwq_policy - which batch gets the next turn
 * @FAIRWQ_ROUND_ROBIN: the batches take turns; a turn costs 1 / weight
 * @FAIRWQ_FAIR_TIME: the batches take turns; a turn costs the time that its
 *	function runs / weight, whether it computes, sleeps or is preempted. An
 *	item of more than a minute counts as a minute. Every item is timed, at
 *	two readings of the clock
 * @FAIRWQ_FIFO: the item that was queued first, over all batches; weights do
 *	not count. The yardstick: this is what a plain workqueue does
 */
enum fairwq_policy {
	FAIRWQ_ROUND_ROBIN,
	FAIRWQ_FAIR_TIME,
	FAIRWQ_FIFO,
};

/**
 * enum fairwq_prio - which batches are served first
 * @FAIRWQ_PRIO_NORMAL: the default
 * @FAIRWQ_PRIO_HIGH: before the others
 * @FAIRWQ_PRIO_LOW: after the others
 *
 * A batch is chosen from the highest priority that has an item, except that a
 * lower one that has waited for 63 turns of higher ones gets the 64th. Under
 * FAIRWQ_FAIR_TIME that is 1/64 of the time. Not with FAIRWQ_STRICT_PRIO; and
 * debugfs can change it.
 */
enum fairwq_prio {
	FAIRWQ_PRIO_NORMAL = 0,
	FAIRWQ_PRIO_HIGH,
	FAIRWQ_PRIO_LOW,
};

/* Flags of a pool; the first four mean what WQ_* of the same name means. */
#define FAIRWQ_MEM_RECLAIM	BIT(0)
#define FAIRWQ_HIGHPRI		BIT(1)
#define FAIRWQ_FREEZABLE	BIT(2)
#define FAIRWQ_SYSFS		BIT(3)
#define FAIRWQ_STRICT_TURNS	BIT(4) /* every turn is decided when it is taken: always so */
#define FAIRWQ_STRICT_PRIO	BIT(5) /* lower priorities get what higher ones leave */

/**
 * struct fairwq_pool_attrs - what a pool is to be like; all zero is the default
 * @flags: FAIRWQ_MEM_RECLAIM, FAIRWQ_HIGHPRI, FAIRWQ_FREEZABLE, FAIRWQ_SYSFS,
 *	FAIRWQ_STRICT_TURNS, FAIRWQ_STRICT_PRIO. In sysfs the workqueue is
 *	called fairwq<number>-<name>
 * @max_active: how many items may run at once, 1 to FAIRWQ_MAX_ACTIVE; 0 for
 *	as many as there are possible CPUs, at least 2
 * @policy: which batch gets the next turn
 * @slice_us: what a turn is taken to cost of which nothing is known yet, in microseconds,
 *	1 to FAIRWQ_MAX_SLICE_US; 0 for the default, which is 50. It is also for how long
 *	an item of a higher priority takes along those in front of it in its serializer
 */
struct fairwq_pool_attrs {
	unsigned int flags;
	unsigned int max_active;
	enum fairwq_policy policy;
	unsigned int slice_us;
};

/**
 * struct fairwq_batch_attrs - what a batch is to be like; all zero is the default
 * @prio: FAIRWQ_PRIO_NORMAL, FAIRWQ_PRIO_HIGH or FAIRWQ_PRIO_LOW
 * @weight: its share, 1 to FAIRWQ_MAX_WEIGHT; 0 for FAIRWQ_DFL_WEIGHT
 * @max_active: how many of its items may run at once; 0 for no limit but the
 *	pool's
 * @max_queued: how many of its items may be queued and not yet started before
 *	fairwq_queue() returns -EAGAIN; 0 for no limit
 * @parent: its owner, a batch of the same pool and priority, or NULL. All
 *	batches of an owner together get the owner's share, so that nobody gains
 *	by having many; they divide it by their weights, and the owner's own items
 *	have a weight of FAIRWQ_DFL_WEIGHT among them. An owner may have an owner,
 *	up to 8. Pause, flush and dispose of an owner concern its own items only;
 *	it may go before its batches do. FAIRWQ_FIFO knows no owners
 * @released: called once, from process context, when the batch was disposed,
 *	has drained and left its pool; or NULL. May sleep, and then holds up
 *	only the destruction of the pool; must not wait for that
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
 * enum fairwq_event - what a notifier of a pool is told
 * @FAIRWQ_EVENT_FAILURE: an item has failed; see struct fairwq_failure
 */
enum fairwq_event {
	FAIRWQ_EVENT_FAILURE = 1,
};

/**
 * typedef fairwq_func_t - the function of a work
 * @work: the work that was queued
 *
 * Called in process context from a worker of the kernel's workqueue; may
 * sleep, queue @work again (it goes to the tail of its batch), free it, or
 * dispose its batch.
 */
typedef void (*fairwq_func_t)(struct fairwq_work *work);

/**
 * struct fairwq_failure - an item that has failed
 * @pool: the pool that it runs in
 * @batch: the batch that it was queued to; to keep it, take a reference
 * @func: its function
 * @err: why, a negative error number
 *
 * Good until the callback returns.
 */
struct fairwq_failure {
	struct fairwq_pool *pool;
	struct fairwq_batch *batch;
	fairwq_func_t func;
	int err;
};

/**
 * struct fairwq_work - an item, embedded in the caller's object
 *
 * Set up by fairwq_work_init(); every field is fairwq's own.
 */
struct fairwq_work {
	/* private: */
	atomic_long_t data;		/* FAIRWQ_WORK_*, and its batch, or who keeps it back */
	u32 last_runner;		/* id of the runner that started it last, 0: none */
	u16 place;			/* while linked: FAIRWQ_PLACE_*, where it is */
	u16 disabled;			/* how often */
	union {
		struct {			/* while only pushed */
			struct llist_node llnode;
			unsigned long ahead;	/* another that was pushed, to be prefetched */
		};
		struct list_head node;		/* once sorted into the FIFO */
	};
	fairwq_func_t func;
	struct fairwq_constraint *constraint; /* while pending: to be told of its end, or NULL */
	u64 stamp;			/* when it was queued, ns; 0: not measured; */
					/* while it is kept back: its batch */
#ifdef CONFIG_LOCKDEP
	struct lockdep_map lockdep_map;
#endif
};

/**
 * struct fairwq_delayed_work - an item that is queued after a delay
 * @work: the item; its function is called with this, see container_of()
 *
 * Set up by fairwq_delayed_work_init(). Once it was queued, fairwq_work_flush()
 * and its like on @work do what they do for any work.
 */
struct fairwq_delayed_work {
	struct fairwq_work work;
	/* private: */
	struct timer_list timer;
};

/**
 * struct fairwq_rcu_work - an item that is queued after an RCU grace period
 * @work: the item; its function is called with this, see container_of()
 *
 * Set up by fairwq_rcu_work_init().
 */
struct fairwq_rcu_work {
	struct fairwq_work work;
	/* private: */
	struct rcu_work later;
};

/**
 * struct fairwq_constraint_ops - what a constraint does
 * @admit: may @work go on to its batch at once? If not, the constraint keeps it
 *	back, and lets it go by fairwq_constraint_admit(): one call for each,
 *	which may come before this has returned. Called with interrupts off;
 *	from then on @work is not to be touched but by that call
 * @complete: a work that went on has run, and its function has returned; or it
 *	was cancelled on the way. Once for each. In any context but NMI, without
 *	a lock. The constraint may be gone when this returns
 *
 * A work that a constraint of the caller's own keeps back cannot be cancelled
 * there: fairwq_work_cancel() returns false, and fairwq_work_cancel_sync()
 * waits until it is let go.
 */
struct fairwq_constraint_ops {
	bool (*admit)(struct fairwq_constraint *constraint, struct fairwq_work *work);
	void (*complete)(struct fairwq_constraint *constraint);
	/* private: out of what waits. With this, it and admit() are called under fairwq's lock */
	void (*remove)(struct fairwq_constraint *constraint, struct fairwq_work *work);
};

/**
 * struct fairwq_constraint - says when a work may go on to its batch
 *
 * Embedded in the caller's own kind of constraint, and set up by
 * fairwq_constraint_init(). Serializers and limiters are constraints.
 */
struct fairwq_constraint {
	/* private: */
	const struct fairwq_constraint_ops *ops;
	/* Of serializers and limiters, under fairwq's lock: */
	struct list_head waiting;	/* in queue order */
	unsigned int max;		/* how many may be in flight */
	unsigned int in_flight;		/* or about to be */
	unsigned int inline_us;		/* how long a runner may go on with a serializer */
	u8 seen;			/* priorities of what was queued to it, a bit each */
	bool serial;			/* it is a serializer */
	bool dead;			/* is being destroyed */
#ifdef CONFIG_LOCKDEP
	struct lockdep_map lockdep_map;
#endif
};

/**
 * struct fairwq_serializer - order: one item after the other
 *
 * Embedded in the caller's object, and set up by fairwq_serializer_init(). Has
 * no memory, thread or workqueue of its own.
 */
struct fairwq_serializer {
	/* private: */
	struct fairwq_constraint constraint;
};

/**
 * struct fairwq_limiter - so many items at a time
 *
 * As struct fairwq_serializer; set up by fairwq_limiter_init().
 */
struct fairwq_limiter {
	/* private: */
	struct fairwq_constraint constraint;
};

/* pool.c */

struct fairwq_pool *fairwq_pool_create(const struct fairwq_pool_attrs *attrs,
				       const char *fmt, ...) __printf(2, 3);
void fairwq_pool_destroy(struct fairwq_pool *pool);
int fairwq_pool_set_max_active(struct fairwq_pool *pool, unsigned int max_active);
void fairwq_pool_flush(struct fairwq_pool *pool);
void fairwq_pool_drain(struct fairwq_pool *pool);
struct fairwq_batch *fairwq_pool_default_batch(struct fairwq_pool *pool,
					       enum fairwq_prio prio);
int fairwq_pool_queue(struct fairwq_pool *pool, struct fairwq_work *work);

/* batch.c */

struct fairwq_batch *fairwq_batch_create(struct fairwq_pool *pool,
					 const struct fairwq_batch_attrs *attrs,
					 const char *fmt, ...) __printf(3, 4);
void fairwq_batch_dispose(struct fairwq_batch *batch);
struct fairwq_batch *fairwq_batch_get(struct fairwq_batch *batch);
void fairwq_batch_put(struct fairwq_batch *batch);
int fairwq_batch_set_weight(struct fairwq_batch *batch, unsigned int weight);
void fairwq_batch_pause(struct fairwq_batch *batch);
void fairwq_batch_resume(struct fairwq_batch *batch);
void fairwq_batch_flush(struct fairwq_batch *batch);

/* flows.c */

struct fairwq_flows *fairwq_flows_create(struct fairwq_pool *pool,
					 const struct fairwq_batch_attrs *attrs);
void fairwq_flows_destroy(struct fairwq_flows *flows);
int fairwq_flows_queue(struct fairwq_flows *flows, u64 key, struct fairwq_work *work);
int fairwq_flows_set_idle_ms(struct fairwq_flows *flows, unsigned int ms);
u64 fairwq_flows_fallbacks(struct fairwq_flows *flows);

/* fairwq.c */

int fairwq_queue(struct fairwq_batch *batch, struct fairwq_work *work);
bool fairwq_work_pending(const struct fairwq_work *work);
void __fairwq_work_init(struct fairwq_work *work, fairwq_func_t func,
			const char *name, struct lock_class_key *key);

/* work.c */

bool fairwq_work_flush(struct fairwq_work *work);
bool fairwq_work_cancel(struct fairwq_work *work);
bool fairwq_work_cancel_sync(struct fairwq_work *work);
bool fairwq_work_disable(struct fairwq_work *work);
bool fairwq_work_disable_sync(struct fairwq_work *work);
bool fairwq_work_enable(struct fairwq_work *work);
unsigned long fairwq_batch_cancel(struct fairwq_batch *batch,
				  void (*dropped)(struct fairwq_work *work));

/* failure.c */

int fairwq_pool_register_notifier(struct fairwq_pool *pool, struct notifier_block *nb);
int fairwq_pool_unregister_notifier(struct fairwq_pool *pool, struct notifier_block *nb);
void fairwq_report_failure(int err);

/* delay.c */

int fairwq_queue_delayed(struct fairwq_batch *batch, struct fairwq_delayed_work *dwork,
			 unsigned long delay);
int fairwq_mod_delayed(struct fairwq_batch *batch, struct fairwq_delayed_work *dwork,
		       unsigned long delay);
bool fairwq_delayed_work_flush(struct fairwq_delayed_work *dwork);
bool fairwq_delayed_work_cancel(struct fairwq_delayed_work *dwork);
bool fairwq_delayed_work_cancel_sync(struct fairwq_delayed_work *dwork);
void __fairwq_delayed_work_init(struct fairwq_delayed_work *dwork, fairwq_func_t func,
				const char *name, struct lock_class_key *key);
int fairwq_queue_rcu(struct fairwq_batch *batch, struct fairwq_rcu_work *rwork);
bool fairwq_rcu_work_flush(struct fairwq_rcu_work *rwork);
void __fairwq_rcu_work_init(struct fairwq_rcu_work *rwork, fairwq_func_t func,
			    const char *name, struct lock_class_key *key);

/* constraint.c */

int fairwq_queue_constrained(struct fairwq_constraint *constraint,
			     struct fairwq_batch *batch, struct fairwq_work *work);
void fairwq_constraint_admit(struct fairwq_work *work);
void __fairwq_constraint_init(struct fairwq_constraint *constraint,
			      const struct fairwq_constraint_ops *ops,
			      const char *name, struct lock_class_key *key);

/* serializer.c */

int fairwq_serializer_queue(struct fairwq_serializer *serializer,
			    struct fairwq_batch *batch, struct fairwq_work *work);
int fairwq_serializer_set_inline(struct fairwq_serializer *serializer, unsigned int budget_us);
void fairwq_serializer_flush(struct fairwq_serializer *serializer);
void fairwq_serializer_destroy(struct fairwq_serializer *serializer);
void __fairwq_serializer_init(struct fairwq_serializer *serializer,
			      const char *name, struct lock_class_key *key);

/* limiter.c */

int fairwq_limiter_queue(struct fairwq_limiter *limiter, struct fairwq_batch *batch,
			 struct fairwq_work *work);
void fairwq_limiter_flush(struct fairwq_limiter *limiter);
void fairwq_limiter_destroy(struct fairwq_limiter *limiter);
void __fairwq_limiter_init(struct fairwq_limiter *limiter, unsigned int max,
			   const char *name, struct lock_class_key *key);

/**
 * fairwq_work_init - set up a work
 * @work: the work
 * @func: what to call when its turn comes
 *
 * Must not be called on a work that is pending. A work that is running may be
 * set up again only by its own function. Each place in the source that calls
 * this is a lockdep class of its own, as with INIT_WORK().
 *
 * Context: Any.
 */
#define fairwq_work_init(work, func)					\
	do {								\
		static struct lock_class_key __fairwq_key;		\
									\
		__fairwq_work_init(work, func, "(fairwq_work)" #work,	\
				   &__fairwq_key);			\
	} while (0)

/**
 * fairwq_work_init_onstack - set up a work that lies on the stack
 * @work: the work
 * @func: what to call when its turn comes
 *
 * The caller must wait until the function has returned before he leaves the
 * frame that holds @work.
 *
 * Context: Any.
 */
#define fairwq_work_init_onstack(work, func) fairwq_work_init(work, func)

/**
 * fairwq_delayed_work_init - set up a delayed work
 * @dwork: the work
 * @func: what to call when its turn comes
 *
 * As fairwq_work_init().
 *
 * Context: Any.
 */
#define fairwq_delayed_work_init(dwork, func)				\
	do {								\
		static struct lock_class_key __fairwq_key;		\
									\
		__fairwq_delayed_work_init(dwork, func,			\
					   "(fairwq_work)" #dwork,	\
					   &__fairwq_key);		\
	} while (0)

/**
 * fairwq_rcu_work_init - set up a work for after a grace period
 * @rwork: the work
 * @func: what to call when its turn comes
 *
 * As fairwq_work_init().
 *
 * Context: Any.
 */
#define fairwq_rcu_work_init(rwork, func)				\
	do {								\
		static struct lock_class_key __fairwq_key;		\
									\
		__fairwq_rcu_work_init(rwork, func,			\
				       "(fairwq_work)" #rwork,		\
				       &__fairwq_key);			\
	} while (0)

/**
 * fairwq_constraint_init - set up a constraint of the caller's own kind
 * @constraint: the constraint
 * @ops: what it does
 *
 * Each place in the source that calls this is a lockdep class of its own.
 *
 * Context: Any.
 */
#define fairwq_constraint_init(constraint, ops)				\
	do {								\
		static struct lock_class_key __fairwq_key;		\
									\
		__fairwq_constraint_init(constraint, ops,		\
					 "(fairwq_constraint)" #constraint,\
					 &__fairwq_key);		\
	} while (0)

/**
 * fairwq_serializer_init - set up a serializer
 * @serializer: the serializer
 *
 * Allocates nothing, and cannot fail. Each place in the source that calls this
 * is a lockdep class of its own.
 *
 * Context: Any.
 */
#define fairwq_serializer_init(serializer)				\
	do {								\
		static struct lock_class_key __fairwq_key;		\
									\
		__fairwq_serializer_init(serializer,			\
					 "(fairwq_serializer)" #serializer,\
					 &__fairwq_key);		\
	} while (0)

/**
 * fairwq_limiter_init - set up a limiter
 * @limiter: the limiter
 * @max: how many of its items may be in flight at once, at least 1
 *
 * As fairwq_serializer_init().
 *
 * Context: Any.
 */
#define fairwq_limiter_init(limiter, max)				\
	do {								\
		static struct lock_class_key __fairwq_key;		\
									\
		__fairwq_limiter_init(limiter, max,			\
				      "(fairwq_limiter)" #limiter,	\
				      &__fairwq_key);			\
	} while (0)

#ifdef CONFIG_LOCKDEP
#define __FAIRWQ_WORK_LOCKDEP(name) \
	.lockdep_map = STATIC_LOCKDEP_MAP_INIT("(fairwq_work)" #name, &(name)),
#else
#define __FAIRWQ_WORK_LOCKDEP(name)
#endif

/**
 * DEFINE_FAIRWQ_WORK - define a work that is set up at compile time
 * @name: the variable
 * @function: what to call when its turn comes
 */
#define DEFINE_FAIRWQ_WORK(name, function)				\
	struct fairwq_work name = {					\
		.data = ATOMIC_LONG_INIT(0),				\
		.func = (function),					\
		__FAIRWQ_WORK_LOCKDEP(name)				\
	}

DEFINE_FREE(fairwq_pool_destroy, struct fairwq_pool *, fairwq_pool_destroy(_T))
DEFINE_FREE(fairwq_batch_dispose, struct fairwq_batch *, fairwq_batch_dispose(_T))
DEFINE_FREE(fairwq_batch_put, struct fairwq_batch *, fairwq_batch_put(_T))
DEFINE_FREE(fairwq_flows_destroy, struct fairwq_flows *, fairwq_flows_destroy(_T))

#endif /* FAIRWQ_H */
