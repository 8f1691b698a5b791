/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Doors: functions that the files at the top level offer each other.
 *
 * Where the functions of fairwq.h are:
 *
 *   fairwq.c       queueing; the start and end of the module
 *   work.c         cancel, disable, flush of works; cancel of a batch's works
 *   delay.c        works that are queued later
 *   serializer.c   queueing through an object that lets so many items go at a time
 *   name.c         what of a driver's text reaches tables and traces
 *   batch.c        a batch's life; its weight, pause, resume and flush
 *   pool.c         a pool's life; flush, drain and destroy
 *   tune.c         runners, policy and counters of a pool that exists
 *   async.c        turns that outlive their function
 *   block.c        items that may wait for long
 *   sequencer.c    works that are completed in queue order
 *   flows.c        batches by a number, made on demand
 *   forkjoin.c     tasks of items, and loops over ranges
 *   context.c      on whose behalf an item runs
 *   failure.c      reports of items that fail
 *   debugfs.c      tables and knobs for an operator
 *
 * Invariant: calls go down to core/, and among these files as in Kbuild.
 */
#ifndef FAIRWQ_DOORS_H
#define FAIRWQ_DOORS_H

#include "core/runner.h"
#include "core/types.h"

/* Check for NULL or an ERR_PTR() by one comparison. */
static __always_inline bool fairwq_is_no_pointer(const void *p)
{
	return unlikely((unsigned long)p - 1 >= (unsigned long)-MAX_ERRNO - 1);
}

/* Check for bad input. Report it by one line that names the argument. */
#define fairwq_is_bad(bad, arg)						\
	({								\
		bool __bad = unlikely(bad);				\
									\
		if (__bad)						\
			pr_warn_once("fairwq: %s: invalid argument: " arg "\n", __func__);\
		__bad;							\
	})

/* Report bad input. Return: -EINVAL. */
#define fairwq_bad_arg(arg)	({ fairwq_is_bad(true, arg); -EINVAL; })

/* Check what a queue call gets: a batch, and a work of that @name if it @is_set. */
#define fairwq_is_bad_queue(batch, is_set, name)			\
	(fairwq_is_bad(fairwq_is_no_pointer(batch), "batch is NULL or an error") ||	\
	 fairwq_is_bad(!(is_set), name " is NULL or has no function"))

/* On whose behalf a function runs: references. See context.c. */
struct fairwq_context {
	struct kref refs;		/* A */
	const struct cred *cred;	/* I */
	struct mem_cgroup *memcg;	/* I: NULL without memory cgroups */
	struct cgroup_subsys_state *blkcg; /* I: NULL without block cgroups */
};

struct seq_file;

/* tune.c */
int fairwq_pool_add_runner(struct fairwq_pool *pool, gfp_t gfp);
void fairwq_pool_grow_fn(struct work_struct *work);
void fairwq_pool_shrink(struct fairwq_pool *pool, unsigned long idle);
void fairwq_pool_shrink_fn(struct work_struct *work);
int fairwq_pool_set_policy(struct fairwq_pool *pool, unsigned int policy);
int fairwq_pool_reset_stats(struct fairwq_pool *pool, unsigned int value);
int fairwq_pool_set_histograms(struct fairwq_pool *pool, unsigned int on);

/* batch.c */
struct fairwq_batch *fairwq_batch_new(struct fairwq_pool *pool,
				      const struct fairwq_batch_attrs *attrs,
				      const struct fairwq_member *member, const char *name,
				      gfp_t gfp);
int fairwq_batch_check_attrs(const struct fairwq_pool *pool,
			     const struct fairwq_batch_attrs *attrs);
struct fairwq_batch *fairwq_pool_next_batch(struct fairwq_pool *pool,
					    struct fairwq_batch *last);
void fairwq_batch_retire(struct fairwq_batch *batch, bool drop);
void fairwq_batch_wait_grace(void);
struct fairwq_batch *fairwq_own_batch(void);
void fairwq_batch_lockdep_wait(struct fairwq_batch *batch, bool end);
void fairwq_batch_shutdown_look(struct fairwq_batch *owner, unsigned int how,
				fairwq_func_t dropped, bool first);
void fairwq_batch_shutdown_wait(struct fairwq_pool *pool, const unsigned int *left,
				struct fairwq_batch *owner, unsigned int how,
				fairwq_func_t dropped);
void fairwq_batch_wait(struct fairwq_batch *batch);
bool fairwq_batch_is_idle(struct fairwq_batch *batch);
void fairwq_pool_put(struct fairwq_pool *pool);

/* name.c */
char *fairwq_clean_name(char *name);
char *fairwq_make_name(const char *fmt, va_list args) __printf(1, 0);

/* work.c */
int fairwq_try_find(struct fairwq_work *work, long word, struct fairwq_waiter *waiter);

/* flows.c */
bool fairwq_flows_sweep(struct fairwq_flows *flows, unsigned long now);

/* debugfs.c */
void fairwq_dump_batch(struct seq_file *m, struct fairwq_batch *batch);
void fairwq_show_row(struct seq_file *m, struct fairwq_batch *batch);
int fairwq_debugfs_init(void);
void fairwq_debugfs_exit(void);
void fairwq_debugfs_add_pool(struct fairwq_pool *pool);
void fairwq_debugfs_del_pool(struct fairwq_pool *pool);

/*
 * Warn if the caller is an item, and would wait for itself: it is @inside of
 * what it waits for. That is asked only of a caller that is an item. Once at
 * each place.
 */
#define fairwq_waits_for_itself(inside, what)				\
({									\
	const struct fairwq_turn *__turn = fairwq_runner_own_turn();	\
									\
	WARN_ONCE(__turn && (inside),					\
		  "fairwq: item %ps of batch %s/%s would wait for itself in %s\n",	\
		  __turn->func, __turn->batch->pool->name, __turn->batch->name, what);	\
})

#endif /* FAIRWQ_DOORS_H */
