// SPDX-License-Identifier: GPL-2.0
/*
 * debugfs: what an operator sees in /sys/kernel/debug/fairwq.
 *
 *   version                    the module's version
 *   POOL/summary               policy, runners and counters
 *   POOL/batches               a row for each batch: show_table() has the
 *                              names of columns, fairwq_show_row() the values
 *   POOL/dump                  every item that is queued or runs
 *   POOL/histograms            of waits and run times; 1 and 0 turn it on and off
 *   POOL/runners               a row for each runner
 *   POOL/max_active, policy,   knobs
 *   slice_us, low_turns,
 *   hung_ms, reset
 *
 * fairwq_files has a row for each file of a pool.
 *
 * Locking: pool->lock for one row or chunk at a time; RCU for the runners;
 * fairwq_dir_mutex for the folders. A queue call into a busy batch takes none
 * of them.
 * Limits: this is no ABI, so names and columns may change with any version.
 * Root only, and no raw kernel addresses. A dump is of a queue in motion: an
 * item that runs between two chunks is not shown, and one that is put back is
 * shown twice. What waits for its own last run is not shown.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/rculist.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include "core/fifo.h"
#include "core/inbox.h"
#include "core/policy.h"
#include "core/runner.h"
#include "core/stats.h"
#include "core/testing.h"
#include "core/tree.h"
#include "core/watchdog.h"
#include "doors.h"

static struct dentry *fairwq_dir;
/* All pools, because some may be created before debugfs is there; under fairwq_dir_mutex. */
static LIST_HEAD(fairwq_dir_pools);

/* Held while a folder is made, so that a free name stays free. */
static DEFINE_MUTEX(fairwq_dir_mutex);

static const char * const fairwq_rank_name[FAIRWQ_NR_RANKS] = { "high", "normal", "low" };

static const char * const fairwq_counter_name[] = {
	[FAIRWQ_KICKS] = "kicks",
	[FAIRWQ_REQUEUES] = "requeues",
	[FAIRWQ_PARKED] = "parked",
	[FAIRWQ_CANCELED] = "canceled",
	[FAIRWQ_LEAKS] = "leaks",
	[FAIRWQ_HUNG] = "hung",
	[FAIRWQ_FAILURES] = "failures",
	[FAIRWQ_PROMOTED] = "promoted",
	[FAIRWQ_STOLEN] = "stolen",
};

static_assert(ARRAY_SIZE(fairwq_counter_name) == FAIRWQ_NR_COUNTERS);

/* ---- version ---------------------------------------------------------- */

/* Not a blob, which root could write to from 6.12 on. */
static int version_show(struct seq_file *m, void *v)
{
	seq_puts(m, FAIRWQ_VERSION "\n");
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(version);

/* ---- summary ---------------------------------------------------------- */

/* Return what the turns of @node have cost: turns, us, or as the client says. */
static u64 service_of(const struct fairwq_pool *pool, const struct fairwq_node *node)
{
	return div_u64(node->service, fairwq_policy_of(pool)->shown);
}

static void show_summary(struct seq_file *m, struct fairwq_pool *pool)
{
	const struct fairwq_crew *crew = &pool->crew;
	unsigned int i;

	guard(raw_spinlock_irq)(&pool->lock);
	seq_printf(m, "name: %s\n", pool->name);
	seq_printf(m, "policy: %s\n", fairwq_policy_of(pool)->name);
	seq_printf(m, "runners_active: %u\n", crew->nr_active);
	seq_printf(m, "max_active: %u\n", crew->max_active);
	seq_printf(m, "runners_asleep: %u\n", crew->nr_asleep);
	seq_printf(m, "max_in_flight: %u\n", crew->max_in_flight);
	seq_printf(m, "async: %u\n", crew->nr_async);
	seq_printf(m, "max_async: %u\n", crew->max_async == UINT_MAX ? 0 : crew->max_async);
	seq_printf(m, "full_ms: %u\n", fairwq_full_ms_locked(pool));
	seq_printf(m, "batches: %u\n", pool->registry.nr_batches);
	for (i = 0; i < FAIRWQ_NR_RANKS; i++)
		seq_printf(m, "service_%s: %llu\n", fairwq_rank_name[i],
			   service_of(pool, &pool->tree.rank[i]));
	seq_printf(m, "turns: %llu\n", crew->nr_taken);
	seq_printf(m, "flow_fallbacks: %llu\n", atomic64_read(&pool->tally.flow_fallbacks));
	for (i = 0; i < FAIRWQ_NR_COUNTERS; i++)
		seq_printf(m, "%s: %llu\n", fairwq_counter_name[i], pool->tally.counter[i]);
}

/* ---- batches ---------------------------------------------------------- */

static const char *batch_state_locked(const struct fairwq_batch *batch)
{
	if (fairwq_batch_is_disposed(batch))
		return "disposed";
	if (batch->paused)
		return "paused";
	if (fairwq_node_eligible(&batch->node))
		return "eligible";
	return fairwq_inbox_nr_queued(batch) ? "limited" : "idle";
}

/* Print a percentile in us, or "-" where no histograms are kept. */
static void show_quantile(struct seq_file *m, const struct fairwq_hist *hist,
			  unsigned int permille)
{
	if (hist)
		seq_printf(m, " %9llu", div_u64(fairwq_hist_quantile(hist, permille),
						NSEC_PER_USEC));
	else
		seq_printf(m, " %9s", "-");
}

/* Print the row of a batch, below the names in show_table(). */
void fairwq_show_row(struct seq_file *m, struct fairwq_batch *batch)
{
	const struct fairwq_batch_stats *stats = batch->stats;
	const struct fairwq_node *node;
	const struct fairwq_hists *hists;
	u64 oldest, longest, total = 0;
	unsigned int share, i;

	guard(raw_spinlock_irq)(&batch->pool->lock);
	node = batch->group ?: &batch->node;
	hists = stats->hists;
	for (i = 0; i < FAIRWQ_NR_RANKS; i++)
		total += batch->pool->tree.rank[i].service;
	/* In thousandths of what the policy counts. It is all at most, so this cannot trap. */
	share = mul_u64_u64_div_u64(min(batch->node.service, total), 1000, max(total, 1ULL));
	oldest = fairwq_fifo_oldest_locked(batch);
	/* The most that a turn has cost, as service_of(); at least 1. */
	longest = DIV_ROUND_UP_ULL(stats->max_cost, fairwq_policy_of(batch->pool)->shown);
	seq_printf(m, " %5llu %-24s %-8s %-6s %6u %8u %7u %10llu %10llu %8llu %4u.%u %8u %9llu",
		   batch->seq, batch->name, batch_state_locked(batch),
		   fairwq_rank_name[fairwq_prio_rank(batch->prio)], node->weight,
		   fairwq_inbox_nr_queued(batch), batch->in_flight[0] + batch->in_flight[1],
		   batch->done,
		   service_of(batch->pool, node), max(longest, 1ULL), share / 10, share % 10,
		   fairwq_node_eligible(node) ? node->stay : 0,
		   oldest ? fairwq_age_us(oldest) : 0);
	show_quantile(m, hists ? &hists->wait : NULL, 500);
	show_quantile(m, hists ? &hists->wait : NULL, 990);
	seq_printf(m, " %9llu", div_u64(stats->wait_max, NSEC_PER_USEC));
	show_quantile(m, hists ? &hists->run : NULL, 500);
	show_quantile(m, hists ? &hists->run : NULL, 990);
	seq_printf(m, " %6llu ", stats->failures);
	if (batch->parent)
		seq_printf(m, "%llu\n", batch->parent->seq);
	else
		seq_puts(m, "-\n");
}

FAIRWQ_TEST_EXPORT(fairwq_show_row);

/*
 * Show each batch of a pool by @show. Walk by references and not under RCU,
 * because it may take long. What does not fit is shown again from the
 * beginning, in a larger buffer.
 */
static void show_batches(struct seq_file *m,
			 void (*show)(struct seq_file *m, struct fairwq_batch *batch))
{
	struct fairwq_batch *batch = NULL;

	while (!seq_has_overflowed(m) &&
	       (batch = fairwq_pool_next_batch(m->private, batch))) {
		show(m, batch);
		cond_resched();
	}
	fairwq_batch_put(batch);
}

static void show_table(struct seq_file *m, struct fairwq_pool *pool)
{
	seq_printf(m, " %5s %-24s %-8s %-6s %6s %8s %7s %10s %10s %8s %6s %8s %9s %9s %9s %9s %9s %9s %6s %s\n",
		   "number", "name", "state", "prio", "weight", "queued", "running", "done",
		   "service", "longest", "share%", "stay", "oldestus", "wait50us", "wait99us",
		   "waitmaxus", "run50us", "run99us", "failed", "owner");
	show_batches(m, fairwq_show_row);
}

/* ---- histograms ------------------------------------------------------- */

/* Octaves of a histogram: two buckets each. */
#define NR_OCTAVES	(FAIRWQ_HIST_BUCKETS / 2)
#define BAR		"@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@"

static u64 octave(const struct fairwq_hist *hist, unsigned int i)
{
	return hist->bucket[2 * i] + hist->bucket[2 * i + 1];
}

/*
 * Print one line for each octave from the first to the last with a sample.
 * Print a copy, so that the lock is not held meanwhile.
 */
static void show_hist(struct seq_file *m, const struct fairwq_batch *batch, bool run)
{
	unsigned int i, width = sizeof(BAR) - 1;
	u64 nr, shown = 0, most = 0;
	struct fairwq_hist hist = { };

	scoped_guard(raw_spinlock_irq, &batch->pool->lock)
		if (batch->stats->hists)
			hist = run ? batch->stats->hists->run : batch->stats->hists->wait;
	if (!hist.count)
		return;
	for (i = 0; i < NR_OCTAVES; i++)
		most = max(most, octave(&hist, i));
	seq_printf(m, "%s %s, ns: %llu samples\n", batch->name, run ? "run" : "wait", hist.count);
	for (i = 0; i < NR_OCTAVES && shown < hist.count; i++) {
		nr = octave(&hist, i);
		shown += nr;
		if (shown)
			seq_printf(m, "%15llu .. %-15llu %10llu |%-*.*s|\n", i ? 1ULL << i : 0,
				   (2ULL << i) - 1, nr, width,
				   (int)mul_u64_u64_div_u64(nr, width, most), BAR);
	}
}

static void show_hists(struct seq_file *m, struct fairwq_batch *batch)
{
	show_hist(m, batch, false);
	show_hist(m, batch, true);
}

static void show_histograms(struct seq_file *m, struct fairwq_pool *pool)
{
	seq_puts(m, READ_ONCE(pool->histograms) ?
		 "histograms are kept; write 0 to forget them\n" :
		 "write 1 to keep histograms\n");
	show_batches(m, show_hists);
}

/* ---- dump ------------------------------------------------------------- */

static void dump_item(struct seq_file *m, const struct fairwq_batch *batch,
		      const char *where, fairwq_func_t func, u64 stamp)
{
	seq_printf(m, "%-24s %-8s ", batch->name, where);
	/* Parts of items have no stamp, and most that run. */
	if (stamp)
		seq_printf(m, "%9llu", fairwq_age_us(stamp));
	else
		seq_printf(m, "%9s", "-");
	seq_printf(m, " %ps\n", func);
}

/*
 * Show a chunk, because a backlog can be long and a lock section must be short:
 * from the cursor on, which keeps the place between two chunks; from the head,
 * if the cursor was overtaken. Return whether there is more.
 */
static bool dump_fifo(struct seq_file *m, struct fairwq_batch *batch,
		      struct fairwq_work *cursor)
{
	struct list_head *pos = &batch->fifo;
	struct fairwq_work *work;
	unsigned int nr = 0;

	guard(raw_spinlock_irq)(&batch->pool->lock);
	if (!list_empty(&cursor->node)) {
		pos = cursor->node.prev;
		list_del_init(&cursor->node);
	}
	work = list_entry(pos, struct fairwq_work, node);
	list_for_each_entry_continue(work, &batch->fifo, node) {
		if (work->flags & FAIRWQ_WORK_BARRIER)
			continue;
		dump_item(m, batch, "queued", fairwq_shown_func(work), work->stamp);
		if (++nr < FAIRWQ_DUMP_CHUNK)
			continue;
		list_add(&cursor->node, &work->node);
		return true;
	}
	return false;
}

/* Show the items of a batch in start order. */
void fairwq_dump_batch(struct seq_file *m, struct fairwq_batch *batch)
{
	struct fairwq_work cursor = {
		.flags = FAIRWQ_WORK_BARRIER, .node = LIST_HEAD_INIT(cursor.node),
	};
	struct fairwq_pool *pool = batch->pool;
	const struct fairwq_turn *turn;
	struct fairwq_runner *runner;
	bool more;
	u64 stamp;

	if (fairwq_batch_is_idle(batch))
		return;
	scoped_guard(raw_spinlock_irq, &pool->lock) {
		fairwq_fifo_take_over_locked(batch, NULL);
		fairwq_fifo_update_locked(batch);
	}
	rcu_read_lock();
	list_for_each_entry_rcu(runner, &pool->crew.runners, node) {
		guard(raw_spinlock_irq)(&pool->lock);
		turn = &runner->turn;
		if (turn->batch != batch)
			continue;
		stamp = READ_ONCE(turn->stamp);
		dump_item(m, batch, "running", READ_ONCE(turn->func),
			  stamp ? FAIRWQ_STAMP_NS(stamp) : 0);
	}
	rcu_read_unlock();
	do {
		more = dump_fifo(m, batch, &cursor);
		fairwq_test_point(FAIRWQ_POINT_DUMP_CHUNK, batch);
	} while (more);
}

FAIRWQ_TEST_EXPORT(fairwq_dump_batch);

static void show_dump(struct seq_file *m, struct fairwq_pool *pool)
{
	seq_printf(m, "%-24s %-8s %9s %s\n", "batch", "where", "ageus", "function");
	show_batches(m, fairwq_dump_batch);
}

/* ---- runners ---------------------------------------------------------- */

static void show_runners(struct seq_file *m, struct fairwq_pool *pool)
{
	const struct fairwq_turn *turn;
	struct fairwq_runner *runner;

	seq_printf(m, "%6s %-8s %7s %-24s %s\n", "runner", "state", "sincems", "batch",
		   "function");
	guard(rcu)();
	list_for_each_entry_rcu(runner, &pool->crew.runners, node) {
		guard(raw_spinlock_irq)(&pool->lock);
		turn = &runner->turn;
		if (turn->batch)
			seq_printf(m, "%6u %-8s %7u %-24s %ps\n", runner->id,
				   runner->seated ? "running" : "asleep",
				   jiffies_to_msecs(jiffies - READ_ONCE(runner->started)),
				   turn->batch->name, READ_ONCE(turn->func));
		else
			seq_printf(m, "%6u %-8s %7s %-24s -\n", runner->id,
				   list_empty(&runner->idle_node) ? "kicked" : "idle", "-", "-");
	}
}

/* ---- knobs ------------------------------------------------------------ */

static int set_slice_us(struct fairwq_pool *pool, unsigned int value)
{
	guard(raw_spinlock_irq)(&pool->lock);
	WRITE_ONCE(pool->slice_us, value);
	fairwq_policy_set_unit_locked(pool);
	return 0;
}

/* Show that one turn in so many is of a lower priority; 0: never. */
static void show_low_turns(struct seq_file *m, struct fairwq_pool *pool)
{
	unsigned int starve_limit = READ_ONCE(pool->tree.starve_limit);

	seq_printf(m, "%u\n", starve_limit ? starve_limit + 1 : 0);
}

static int set_low_turns(struct fairwq_pool *pool, unsigned int value)
{
	unsigned int starve_limit = value ? value - 1 : 0;

	if (value == 1)
		return -EINVAL;
	guard(raw_spinlock_irq)(&pool->lock);
	fairwq_tree_set_starve_limit(&pool->tree, starve_limit);
	return 0;
}

static void show_reset(struct seq_file *m, struct fairwq_pool *pool)
{
	seq_puts(m, "write 1 to set the counters and histograms to 0\n");
}

/* ---- files ------------------------------------------------------------ */

/*
 * A file of a pool. One with @set is a knob: a number, or a word, from @least
 * to @most. Other text gives -EINVAL, and nothing is changed.
 */
struct fairwq_file {
	const char *name;
	int (*set)(struct fairwq_pool *pool, unsigned int value);
	size_t at;			/* in the pool: an unsigned int, which the file shows */
	unsigned int least, most;
	const char *(*word)(unsigned int value); /* for 0 to @most, or NULL */
	void (*show)(struct seq_file *m, struct fairwq_pool *pool); /* or NULL: see @at */
};

#define AT(field)	offsetof(struct fairwq_pool, field)

static const char *policy_word(unsigned int value)
{
	return fairwq_policies[value].name;
}

static const char *reset_word(unsigned int value)
{
	return "1";
}

static const struct fairwq_file fairwq_files[] = {
	{ "summary", .show = show_summary },
	{ "batches", .show = show_table },
	{ "runners", .show = show_runners },
	{ "dump", .show = show_dump },
	{ "max_active", fairwq_pool_set_max_active, AT(crew.max_active), 1, FAIRWQ_MAX_ACTIVE },
	{ "policy", fairwq_pool_set_policy, AT(policy), 0, FAIRWQ_NR_POLICIES - 1, policy_word },
	{ "slice_us", set_slice_us, AT(slice_us), 0, FAIRWQ_MAX_SLICE_US },
	{ "low_turns", set_low_turns, 0, 0, FAIRWQ_MAX_STARVE_LIMIT + 1, NULL, show_low_turns },
	{ "hung_ms", fairwq_set_hung_ms, AT(watch.hung_ms), 0, UINT_MAX },
	{ "reset", fairwq_pool_reset_stats, 0, 0, 0, reset_word, show_reset },
	{ "histograms", fairwq_pool_set_histograms, 0, 0, 1, NULL, show_histograms },
};

/* Return the row of an open file. */
static const struct fairwq_file *row_of(const struct file *file)
{
	const struct fairwq_file *row = fairwq_files;

	while (strcmp(row->name, file->f_path.dentry->d_name.name))
		row++;
	return row;
}

static int file_show(struct seq_file *m, void *v)
{
	const struct fairwq_file *row = row_of(m->file);
	unsigned int value = READ_ONCE(*(unsigned int *)((char *)m->private + row->at));

	if (row->show)
		row->show(m, m->private);
	else if (row->word)
		seq_printf(m, "%s\n", row->word(value));
	else
		seq_printf(m, "%u\n", value);
	return 0;
}

static int file_open(struct inode *inode, struct file *file)
{
	return single_open(file, file_show, inode->i_private);
}

static ssize_t file_write(struct file *file, const char __user *buf, size_t len,
			  loff_t *pos)
{
	struct fairwq_pool *pool = ((struct seq_file *)file->private_data)->private;
	const struct fairwq_file *row = row_of(file);
	char text[32];			/* longer than any that is right */
	unsigned int value;
	char *word;

	if (!row->set || !len || len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, buf, len))
		return -EFAULT;
	text[len] = '\0';
	if (strlen(text) != len)
		return -EINVAL;
	word = strim(text);
	if (row->word)
		for (value = 0; value <= row->most && strcmp(word, row->word(value)); value++)
			;
	else if (kstrtouint(word, 0, &value))
		return -EINVAL;
	if (value < row->least || value > row->most)
		return -EINVAL;
	return row->set(pool, value) ?: len;
}

static const struct file_operations file_fops = {
	.owner = THIS_MODULE,
	.open = file_open,
	.read = seq_read,
	.write = file_write,
	.llseek = seq_lseek,
	.release = single_release,
};

/* ---- folders ---------------------------------------------------------- */

/*
 * Make a folder. A pool may have any name, and the folder has one like it: '!'
 * stands for '/', and is in front of "", "." and "..". Names need not be
 * unique: the second of a name gets a number.
 */
static struct dentry *make_dir(const char *name)
{
	const char *prefix = !*name || !strcmp(name, ".") || !strcmp(name, "..") ? "!" : "";
	struct dentry *taken;
	unsigned int n = 1;
	char numbered[64];

	snprintf(numbered, sizeof(numbered), "%s%s", prefix, name);
	for (;;) {
		strreplace(numbered, '/', '!');
		taken = debugfs_lookup(numbered, fairwq_dir);
		if (!taken)
			return debugfs_create_dir(numbered, fairwq_dir);
		dput(taken);
		snprintf(numbered, sizeof(numbered), "%s%.48s-%u", prefix, name, ++n);
	}
}

static void show_pool_locked(struct fairwq_pool *pool)
{
	const struct fairwq_file *row = fairwq_files;

	lockdep_assert_held(&fairwq_dir_mutex);

	pool->debugfs.dir = make_dir(pool->name);
	for (; row < fairwq_files + ARRAY_SIZE(fairwq_files); row++)
		debugfs_create_file(row->name, row->set ? 0600 : 0400, pool->debugfs.dir, pool,
				    &file_fops);
}

/* Show a pool. One that is created before debugfs is there is shown later. */
void fairwq_debugfs_add_pool(struct fairwq_pool *pool)
{
	guard(mutex)(&fairwq_dir_mutex);
	list_add_tail(&pool->debugfs.link, &fairwq_dir_pools);
	if (fairwq_dir)
		show_pool_locked(pool);
}

/* Remove a pool's folder, and wait for readers that are inside a file. */
void fairwq_debugfs_del_pool(struct fairwq_pool *pool)
{
	scoped_guard(mutex, &fairwq_dir_mutex)
		list_del(&pool->debugfs.link);
	debugfs_remove_recursive(pool->debugfs.dir);
}

int __init fairwq_debugfs_init(void)
{
	struct fairwq_pool *pool;

	guard(mutex)(&fairwq_dir_mutex);
	fairwq_dir = debugfs_create_dir("fairwq", NULL);
	debugfs_create_file("version", 0400, fairwq_dir, NULL, &version_fops);
	list_for_each_entry(pool, &fairwq_dir_pools, debugfs.link)
		show_pool_locked(pool);
	return 0;
}

void fairwq_debugfs_exit(void)
{
	debugfs_remove_recursive(fairwq_dir);
}
