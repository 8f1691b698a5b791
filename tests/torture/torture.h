/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Torture of fairwq: declarations that its files share.
 *
 * Threads, timers and interrupts call the functions of the public header at
 * random, and every item counts its calls and runs. The torture checks these
 * promises of fairwq, on the way or at the end:
 *
 *   lost, twice   an item that a queue call took runs once, or a cancel reports it
 *   reentrant     one item never runs twice at once
 *   stale         a run sees all that was stored before its queue call
 *   order         the items of one producer start in order: of one batch with
 *                 max_active 1, one serializer, one flow
 *   crowd         no more items run at once than their batch, serializer or
 *                 limiter allows
 *   flush         an item that was queued before a flush has ended after it
 *   disabled      after disable_sync an item is not pending and does not run
 *   released      released() is called once for each batch, after its last item
 *   failure       the driver is told of each item that fails
 *   refused       a queue call refuses when it must, and with the right error
 *   object        the last item of a serializer may destroy and free all of it
 *   unfair        batches that stay eligible have their shares: lib/judge.h
 *   hung          items run all the time, and all have ended in the end
 *   race          no data race; by KCSAN
 *
 * The torture also checks that these parameters take effect:
 *
 *   starved       allocations fail
 *   hotplug       CPUs go and come back
 *
 * Each name is also a value of the parameter bug=. Then the torture breaks its
 * own rule, and each check for that rule must report it.
 */
#ifndef FAIRWQ_TORTURE_H
#define FAIRWQ_TORTURE_H

#include <linux/atomic.h>
#include <linux/irq_work.h>
#include <linux/hrtimer.h>
#include <linux/prandom.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

#include "fairwq.h"

#define TT_MAX_THREADS	16
#define TT_NR_ITEMS	256U	/* shared by all actors, as long as the test lasts */
#define TT_NR_SLOTS	24U	/* batches that all actors share */
#define TT_NR_POOLS	4U
#define TT_MAX_DEPTH	6U	/* owners above a batch */
#define TT_NR_STREAMS	4U	/* of each actor */
#define TT_NR_SHARED	6U	/* streams that all actors send to */
#define TT_PROBLEM_KINDS 8U	/* at least TT_NR_WAYS */
#define TT_QUIET_S	30U	/* longest time without a run: the host may be busy */

enum tt_bug {
	TT_BUG_NONE,
	TT_BUG_LOST,
	TT_BUG_TWICE,
	TT_BUG_REENTRANT,
	TT_BUG_STALE,
	TT_BUG_ORDER,
	TT_BUG_FLUSH,
	TT_BUG_DISABLED,
	TT_BUG_RELEASED,
	TT_BUG_CROWD,
	TT_BUG_FAILURE,
	TT_BUG_REFUSED,
	TT_BUG_HUNG,
	TT_BUG_OBJECT,
	TT_BUG_UNFAIR,
	TT_BUG_STARVED,
	TT_BUG_HOTPLUG,
	TT_BUG_RACE,	/* for KCSAN alone: threads add to a count without a lock */
};

enum tt_count {
	TT_QUEUED,	/* calls that returned 1 */
	TT_ALREADY,	/* 0 */
	TT_REFUSED,	/* a negative error */
	TT_RAN,
	TT_CANCELED,
	TT_DROPPED,	/* by a cancel of their batch */
	TT_BATCHES,	/* created */
	TT_RELEASED,
	TT_POOLS,	/* created */
	TT_PROBES,	/* checks of a flush */
	TT_STAMPS,	/* checks that a run saw the store before its queue call */
	TT_OBJECTS,	/* created: with a serializer that their last item destroys */
	TT_OBJECTS_FREED,
	TT_FAILED,	/* calls of fairwq_report_failure() */
	TT_TOLD,	/* calls of failed() */
	TT_STARVED,	/* calls that failed because an allocation was made to fail */
	TT_MEDDLED,	/* calls by a hard interrupt, on the item of its thread */
	TT_TASKS,	/* of items that fork */
	TT_JUDGED,	/* shares of batches that stayed eligible, at all looks */
	TT_WENT_ON,	/* turns that went on after their function */
	TT_ERRANDS,	/* items that ran for a user */
	TT_STEPS_DONE,	/* items that were completed in order */
	TT_NR_COUNTS,
};

struct tt_stream;

/* An actor: a thread, or one of the interrupts that it raises. */
struct tt_actor {
	struct rnd_state rnd;
	int nr;				/* of the thread; interrupts: -1 */
	u32 stamp;			/* of a thread: the last that it stored */
	struct tt_stream *stream[TT_NR_STREAMS];
	unsigned int stuck;		/* tries in a row that found a stream full */
};

struct tt_thread {
	struct tt_actor actor;
	struct tt_actor soft, hard, work, duel;	/* one each, never twice at a time */
	struct timer_list timer;
	struct hrtimer hrtimer;
	struct hrtimer duel_timer;	/* acts upon @rival, again and again */
	struct tt_item *rival;		/* the item of the duel, or NULL */
	struct irq_work irq_work;
	struct task_struct *task;
};

enum tt_kind { TT_PLAIN, TT_DELAYED, TT_RCU, TT_NR_KINDS };

/* An item that lives as long as the test. */
struct tt_item {
	union {
		struct fairwq_work work;
		struct fairwq_delayed_work dwork;
		struct fairwq_rcu_work rwork;
	};
	enum tt_kind kind;
	unsigned int nr;
	unsigned long held;		/* bit 0: an actor queues or modifies it */
	atomic_t inside;
	atomic_long_t queued, ran, canceled, dropped;
	atomic_long_t unsure;		/* runs that may be missing: see tt_item_mod() */
	atomic_t cancels_begun, cancels_ended;
	u32 stamp[TT_MAX_THREADS];	/* stored by a thread before it queues */
	u32 seen[TT_MAX_THREADS];	/* @stamp as the last run saw it */
};

/* A place for a batch that all actors share. */
struct tt_slot {
	raw_spinlock_t lock;
	struct fairwq_batch *batch;	/* with a reference */
	struct tt_nature {
		struct fairwq_pool *pool;
		enum fairwq_prio prio;
		unsigned int depth;	/* the number of its owners */
	} nature;			/* of @batch, to check if it can be an owner */
};

/* An operation that actors do. */
struct tt_op {
	const char *name;
	unsigned int weight;
	bool anywhere;			/* may be done in any context */
	void (*act)(struct tt_actor *actor);
	atomic_long_t done;
};

/* main.c */
extern enum tt_bug tt_bug;
extern unsigned int tt_nr_threads, tt_backlog, tt_patience;
extern bool tt_starve;
extern struct fairwq_pool *tt_pools[TT_NR_POOLS];
extern struct fairwq_flows *tt_flows;
extern struct tt_thread *tt_threads;
extern bool tt_stopping;
extern unsigned long tt_now;		/* time in which this guest ran, ticks; see tt_nap() */
extern unsigned long tt_stopped;	/* tt_now then, if tt_stopping */
void tt_tell_problem(atomic_t *told, const char *fmt, ...) __printf(2, 3);
/* Report a problem. Each caller prints only the first few of each @kind. */
#define tt_problem_of(kind, ...)					\
	do {								\
		static atomic_t __told[TT_PROBLEM_KINDS];		\
									\
		tt_tell_problem(&__told[(kind) % TT_PROBLEM_KINDS], __VA_ARGS__);\
	} while (0)
#define tt_problem(...)	tt_problem_of(0, __VA_ARGS__)
void tt_count(enum tt_count which, long n);
u32 tt_random(struct tt_actor *actor, u32 below);

void tt_judge_look(unsigned int i);
void tt_told(struct fairwq_batch *batch, fairwq_func_t func, int err);

/* ops.c */
extern struct tt_op tt_ops[];
extern const unsigned int tt_nr_ops;
void tt_act(struct tt_actor *actor, bool anywhere);
enum hrtimer_restart tt_duel_fn(struct hrtimer *timer);
struct fairwq_batch *tt_get_batch(struct tt_actor *actor);
void tt_resume_all(void);
unsigned int tt_any_budget(struct tt_actor *actor);
int tt_slots_init(void);
void tt_slots_end(void);
struct fairwq_batch *tt_batch_create(struct tt_actor *actor, struct fairwq_batch_attrs *attrs);
void tt_cancel_begin(void);
void tt_cancel_end(void);
bool tt_cancels_quiet(void);
void tt_cancel_batch(struct fairwq_batch *batch);

/* items.c */
extern struct tt_item *tt_items;
int tt_items_init(void);
void tt_items_quiesce(void);
void tt_items_end(void);
int tt_item_queue(struct tt_item *item, struct tt_stream *way, struct fairwq_batch *batch,
		  unsigned long delay);
void tt_item_queued(struct tt_item *item, int ret);
void tt_item_mod(struct tt_item *item, struct fairwq_batch *batch, unsigned long delay);
bool tt_item_cancel(struct tt_item *item, bool (*cancel)(struct fairwq_work *work));
void tt_item_flush(struct tt_item *item);
void tt_dropped(struct fairwq_work *work);
int tt_queued(int ret);
void tt_behave(u32 dice);
void tt_behave_seldom(u32 dice);

/* oneshots.c: items that free themselves, or the object that they are part of */
extern atomic_long_t tt_live;
bool tt_oneshot(struct fairwq_batch *batch, struct tt_stream *stream, gfp_t gfp);
void tt_oneshot_dropped(struct fairwq_work *work);
void tt_oneshots_bury(void);
void tt_object(struct tt_actor *actor);
void tt_probe(struct fairwq_batch *batch, struct fairwq_pool *pool);
void tt_empty(struct fairwq_batch *batch, struct tt_actor *actor);

/* streams.c: one producer, one order */
void tt_streams_init(struct tt_actor *actor);
void tt_streams_end(struct tt_actor *actor);
void tt_stream_renew(struct tt_actor *actor);
void tt_stream_fill(struct tt_actor *actor);
void tt_stream_burst(struct tt_actor *actor);
int tt_shared_init(void);
struct tt_stream *tt_shared_any(struct tt_actor *actor);
void tt_shared_end(void);
void tt_shared_burst(struct tt_actor *actor);
void tt_stream_cancel(struct tt_actor *actor);
void tt_stream_meddle(struct tt_actor *actor);
bool tt_is_packet(const struct fairwq_work *work);
void tt_packet_dropped(struct fairwq_work *work);
int tt_stream_queue(struct tt_stream *stream, struct fairwq_batch *batch, struct fairwq_work *work);
u64 tt_stream_next(struct tt_stream *stream);
void tt_stream_accept(struct tt_stream *stream, long n);
void tt_stream_enter(struct tt_stream *stream, u64 nr);
void tt_stream_leave(struct tt_stream *stream);
void tt_stream_ended(struct tt_stream *stream);

/* hotplug.c: CPUs that go and come back */
int tt_hotplug_begin(void);
void tt_hotplug_end(void);
void tt_hotplug_say(const char *when);

/* forks.c: items that fork */

void tt_fork(u32 dice);

/* async.c: turns that go on */

void tt_asyncs_init(void);
void tt_asyncs_end(void);
void tt_go_on(u32 dice);

/* errands.c: items that act for a user */

void tt_judge_user(kuid_t uid);
bool tt_is_errand(const struct fairwq_work *work);
void tt_op_errand(struct tt_actor *actor);

/* sequence.c: items that are completed in order */

void tt_sequences_init(void);
bool tt_is_step(const struct fairwq_work *work);
void tt_step_dropped(struct fairwq_work *work);
void tt_op_sequence(struct tt_actor *actor);

#endif /* FAIRWQ_TORTURE_H */
