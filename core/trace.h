/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints: the events of fairwq, in the group "fairwq".
 *
 *   Field         Meaning
 *   pool, batch   their names
 *   work          address of the item; at its end the work may be gone
 *   fn            function of the item
 *   wait          ns from queueing to the start; 0: the item was queued before
 *                 the event was on, is in a burst behind its first, or is a task
 *   runner        number of the runner, as in the file "runners"
 *   run           ns in the function; 0: the item started before the event was on
 *
 * Documentation/operation.rst describes the events. trace.c instantiates them.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM fairwq

#if !defined(FAIRWQ_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define FAIRWQ_TRACE_H

#include <linux/tracepoint.h>

#include "compat.h"
#include "types.h"

/* A work is about to be queued to its batch, or starts in a burst. */
TRACE_EVENT(fairwq_queue,
	TP_PROTO(const struct fairwq_batch *batch, const struct fairwq_work *work),
	TP_ARGS(batch, work),
	TP_STRUCT__entry(
		__string(pool, batch->pool->name)
		__string(batch, batch->name)
		__field(const void *, work)
		__field(const void *, fn)
	),
	TP_fast_assign(
		fairwq_assign_str(pool, batch->pool->name);
		fairwq_assign_str(batch, batch->name);
		__entry->work = work;
		__entry->fn = fairwq_shown_func(work);
	),
	TP_printk("pool=%s batch=%s work=%p fn=%ps", __get_str(pool),
		  __get_str(batch), __entry->work, __entry->fn)
);

/* A runner is about to call the function of an item. */
TRACE_EVENT(fairwq_start,
	TP_PROTO(const struct fairwq_turn *turn, const void *work),
	TP_ARGS(turn, work),
	TP_STRUCT__entry(
		__string(pool, turn->batch->pool->name)
		__string(batch, turn->batch->name)
		__field(const void *, work)
		__field(const void *, fn)
		__field(u64, wait)
		__field(u32, runner)
	),
	TP_fast_assign(
		fairwq_assign_str(pool, turn->batch->pool->name);
		fairwq_assign_str(batch, turn->batch->name);
		__entry->work = work;
		__entry->fn = fairwq_shown_func(work);
		__entry->wait = turn->wait;
		__entry->runner = container_of(turn, struct fairwq_runner, turn)->id;
	),
	TP_printk("pool=%s batch=%s work=%p fn=%ps wait=%llu runner=%u",
		  __get_str(pool), __get_str(batch), __entry->work, __entry->fn,
		  __entry->wait, __entry->runner)
);

/* The function has returned; the work is only an address. */
TRACE_EVENT(fairwq_end,
	TP_PROTO(const struct fairwq_turn *turn, const void *work, u64 run),
	TP_ARGS(turn, work, run),
	TP_STRUCT__entry(
		__string(pool, turn->batch->pool->name)
		__string(batch, turn->batch->name)
		__field(const void *, work)
		__field(const void *, fn)
		__field(u64, run)
	),
	TP_fast_assign(
		fairwq_assign_str(pool, turn->batch->pool->name);
		fairwq_assign_str(batch, turn->batch->name);
		__entry->work = work;
		__entry->fn = turn->func;
		__entry->run = run;
	),
	TP_printk("pool=%s batch=%s work=%p fn=%ps run=%llu", __get_str(pool),
		  __get_str(batch), __entry->work, __entry->fn, __entry->run)
);

/* A batch was created or disposed, or has left its pool: create, dispose, release. */
TRACE_EVENT(fairwq_batch,
	TP_PROTO(const struct fairwq_batch *batch, const char *event),
	TP_ARGS(batch, event),
	TP_STRUCT__entry(
		__string(pool, batch->pool->name)
		__string(batch, batch->name)
		__string(event, event)
	),
	TP_fast_assign(
		fairwq_assign_str(pool, batch->pool->name);
		fairwq_assign_str(batch, batch->name);
		fairwq_assign_str(event, event);
	),
	TP_printk("pool=%s batch=%s %s", __get_str(pool), __get_str(batch), __get_str(event))
);

/* A runner that was idle has a seat, and will be queued, or goes idle: kick, idle. */
TRACE_EVENT(fairwq_runner,
	TP_PROTO(const struct fairwq_pool *pool, const struct fairwq_runner *runner,
		 const char *event),
	TP_ARGS(pool, runner, event),
	TP_STRUCT__entry(
		__string(pool, pool->name)
		__field(u32, runner)
		__string(event, event)
	),
	TP_fast_assign(
		fairwq_assign_str(pool, pool->name);
		__entry->runner = runner->id;
		fairwq_assign_str(event, event);
	),
	TP_printk("pool=%s runner=%u %s", __get_str(pool), __entry->runner, __get_str(event))
);

#endif /* FAIRWQ_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH core
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
