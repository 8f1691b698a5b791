// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/fairscan: write an image, read the SHA-256 of the digests of its pieces.
 *
 * It shows where fork and join helps. The cost of a piece depends on its
 * content: a piece of zeros is only looked at, because its digest is known. So
 * half of an image is seldom half of the work. The same image is scanned in
 * three ways:
 *
 *   one_item       all of it is one plain item
 *   static_split   as many plain items as runners, each with an equal part
 *   parallel_for   fairwq_parallel_for(): idle runners take a part of the rest
 *
 *   exec 3<>/dev/fairscan; cat image >&3; cat <&3
 *
 * A read gives one fact a line. Times are the least of FAIRSCAN_ROUNDS rounds:
 *
 *   root DIGEST    in hex, the same for every way
 *   runners N      how many items run at a time
 *   pieces N       of FAIRSCAN_PIECE bytes; the last one may be shorter
 *   zeros N        those that were only looked at
 *   WAY NS         for each way, how long a scan took
 *
 * Results of calls:
 *
 *   write        the number of bytes, all or nothing
 *   read         scans if no read has done so, and gives the lines
 *   -EBUSY       a write after a scan. A descriptor has one image
 *   -EFAULT      a bad address; nothing was taken and nothing is lost
 *   -EFBIG       the image would have more than FAIRSCAN_MAX bytes
 *   -EIO         two scans gave different digests; that is logged
 *   -ENODATA     a read before any write
 *
 * Locking: fairscan_file::lock for all of a file. The items take no lock: each
 * piece has a digest of its own, and only one item or task writes it.
 *
 * Limits: an image lies in kernel memory, FAIRSCAN_MAX bytes for each open
 * descriptor, charged to the writer's memory cgroup. No signal ends a scan.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <crypto/hash.h>
#include <crypto/sha2.h>
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "fairwq.h"

#define FAIRSCAN_MAX	SZ_32M
#define FAIRSCAN_PIECE	SZ_4K
#define FAIRSCAN_PIECES	(FAIRSCAN_MAX / FAIRSCAN_PIECE)
#define FAIRSCAN_ROUNDS	9

static unsigned int max_active;
module_param(max_active, uint, 0444);
MODULE_PARM_DESC(max_active, "items that run at a time; 0 (default): one for each CPU");

struct fairscan_digest {
	u8 bytes[SHA256_DIGEST_SIZE];
};

/* An open descriptor. */
struct fairscan_file {
	struct mutex lock;		/* of all that follows, but for what items write */
	struct fairwq_batch *batch;
	u8 *image;
	size_t len;			/* of @image */
	struct fairscan_digest *digests; /* of the pieces */
	atomic_t zeros;			/* pieces that were only looked at */
	int error;			/* of a digest, or 0; any writes it, none clears it */
	size_t text_len, text_pos;	/* of @text: how long it is, and what was read */
	char text[512];			/* the lines of a read */
};

/* A part of an image: an item. */
struct fairscan_part {
	struct fairwq_work work;
	struct fairscan_file *file;
	unsigned long from, to;
};

static struct fairwq_pool *fairscan_pool;
static struct crypto_shash *fairscan_sha256;
static struct fairscan_digest fairscan_zero_digest;	/* of a piece of zeros */

static int digest_of(const u8 *data, size_t len, struct fairscan_digest *digest)
{
	return crypto_shash_tfm_digest(fairscan_sha256, data, len, digest->bytes);
}

static unsigned long nr_pieces(const struct fairscan_file *file)
{
	return DIV_ROUND_UP(file->len, FAIRSCAN_PIECE);
}

/* ---- what items and tasks do -------------------------------------------- */

static void scan_piece(struct fairscan_file *file, unsigned long nr)
{
	const u8 *data = file->image + nr * FAIRSCAN_PIECE;
	size_t len = min_t(size_t, file->len - nr * FAIRSCAN_PIECE, FAIRSCAN_PIECE);
	int err;

	if (len == FAIRSCAN_PIECE && !memchr_inv(data, 0, len)) {
		file->digests[nr] = fairscan_zero_digest;
		atomic_inc(&file->zeros);
		return;
	}
	err = digest_of(data, len, &file->digests[nr]);
	if (err)
		WRITE_ONCE(file->error, err);
}

/* The body of the loop. */
static int scan_pieces(unsigned long from, unsigned long to, void *arg)
{
	for (; from < to; from++) {
		scan_piece(arg, from);
		cond_resched();
	}
	return 0;
}

/* The function of an item. */
static void scan_part(struct fairwq_work *work)
{
	struct fairscan_part *part = container_of(work, struct fairscan_part, work);

	scan_pieces(part->from, part->to, part->file);
}

/* ---- three ways to scan ------------------------------------------------- */

/* Queue @nr items, each with an equal part, and wait for them. Return: 0, or an error. */
static int scan_by_items(struct fairscan_file *file, unsigned int nr)
{
	struct fairscan_part *parts = kcalloc(nr, sizeof(*parts), GFP_KERNEL);
	unsigned long pieces = nr_pieces(file);
	unsigned int i;
	int ret = 0;

	if (!parts)
		return -ENOMEM;
	for (i = 0; i < nr && ret >= 0; i++) {
		parts[i].file = file;
		parts[i].from = pieces * i / nr;
		parts[i].to = pieces * (i + 1) / nr;
		fairwq_work_init(&parts[i].work, scan_part);
		ret = fairwq_queue(file->batch, &parts[i].work);
	}
	fairwq_batch_flush(file->batch);
	kfree(parts);
	return min(ret, 0);
}

static int one_item(struct fairscan_file *file)
{
	return scan_by_items(file, 1);
}

static int static_split(struct fairscan_file *file)
{
	return scan_by_items(file, max_active);
}

/* No larger grain is needed: where no runner is idle, a piece costs one load more. */
static int parallel_for(struct fairscan_file *file)
{
	return fairwq_parallel_for(file->batch, 0, nr_pieces(file), 1, scan_pieces, file);
}

static const struct {
	const char *name;
	int (*scan)(struct fairscan_file *file);
} fairscan_ways[] = {
	{ "one_item", one_item },
	{ "static_split", static_split },
	{ "parallel_for", parallel_for },
};

/* ---- one scan after the other ------------------------------------------- */

/* Scan in one way. No digest of a scan before stays. Return: 0, or an error. */
static int scan_once(struct fairscan_file *file, unsigned int way,
		     struct fairscan_digest *root, u64 *ns)
{
	size_t size = nr_pieces(file) * sizeof(*file->digests);
	ktime_t start;
	int err;

	memset(file->digests, 0, size);
	atomic_set(&file->zeros, 0);
	start = ktime_get();
	err = fairscan_ways[way].scan(file);
	*ns = ktime_to_ns(ktime_sub(ktime_get(), start));
	return err ?: file->error ?: digest_of((u8 *)file->digests, size, root);
}

/*
 * Scan in every way, in turn, FAIRSCAN_ROUNDS times. Keep the least time of
 * each way.
 *
 * Return: 0, or an error: -EIO if not all digests are the same.
 */
static int scan_rounds(struct fairscan_file *file, struct fairscan_digest *root, u64 *best)
{
	struct fairscan_digest found;
	unsigned int i, way;
	u64 ns;
	int err;

	for (i = 0; i < FAIRSCAN_ROUNDS * ARRAY_SIZE(fairscan_ways); i++) {
		way = i % ARRAY_SIZE(fairscan_ways);
		err = scan_once(file, way, i ? &found : root, &ns);
		if (err)
			return err;
		if (i && memcmp(&found, root, sizeof(found))) {
			pr_err("%s gives another digest\n", fairscan_ways[way].name);
			return -EIO;
		}
		best[way] = min(best[way], ns);
	}
	return 0;
}

/* Scan, and write the lines of a read. Return: 0, or an error. */
static int scan_locked(struct fairscan_file *file)
{
	u64 best[ARRAY_SIZE(fairscan_ways)] = { U64_MAX, U64_MAX, U64_MAX };
	size_t size = sizeof(file->text), len;
	struct fairscan_digest root;
	unsigned int way;
	int err;

	lockdep_assert_held(&file->lock);
	if (!file->len)
		return -ENODATA;
	err = scan_rounds(file, &root, best);
	if (err)
		return err;
	len = scnprintf(file->text, size, "root %*phN\nrunners %u\npieces %lu\nzeros %d\n",
			SHA256_DIGEST_SIZE, root.bytes, max_active, nr_pieces(file),
			atomic_read(&file->zeros));
	for (way = 0; way < ARRAY_SIZE(fairscan_ways); way++)
		len += scnprintf(file->text + len, size - len, "%s %llu\n",
				 fairscan_ways[way].name, best[way]);
	file->text_len = len;
	return 0;
}

/* ---- the device --------------------------------------------------------- */

static ssize_t read_locked(struct fairscan_file *file, char __user *buf, size_t len)
{
	int err = file->text_len ? 0 : scan_locked(file);

	if (err)
		return err;
	len = min(len, file->text_len - file->text_pos);
	if (copy_to_user(buf, file->text + file->text_pos, len))
		return -EFAULT;
	file->text_pos += len;
	return len;
}

static ssize_t write_locked(struct fairscan_file *file, const char __user *buf, size_t len)
{
	if (file->text_len)
		return -EBUSY;
	if (len > FAIRSCAN_MAX - file->len)
		return -EFBIG;
	if (copy_from_user(file->image + file->len, buf, len))
		return -EFAULT;
	file->len += len;
	return len;
}

static ssize_t fairscan_read(struct file *filp, char __user *buf, size_t len, loff_t *pos)
{
	struct fairscan_file *file = filp->private_data;
	ssize_t ret;

	if (mutex_lock_interruptible(&file->lock))
		return -ERESTARTSYS;
	ret = read_locked(file, buf, len);
	mutex_unlock(&file->lock);
	return ret;
}

static ssize_t fairscan_write(struct file *filp, const char __user *buf, size_t len, loff_t *pos)
{
	struct fairscan_file *file = filp->private_data;
	ssize_t ret;

	if (mutex_lock_interruptible(&file->lock))
		return -ERESTARTSYS;
	ret = write_locked(file, buf, len);
	mutex_unlock(&file->lock);
	return ret;
}

static void file_free(struct fairscan_file *file)
{
	kvfree(file->digests);
	kvfree(file->image);
	kfree(file);
}

static int fairscan_open(struct inode *inode, struct file *filp)
{
	struct fairscan_file *file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;

	if (!file)
		return err;
	mutex_init(&file->lock);
	file->image = kvmalloc(FAIRSCAN_MAX, GFP_KERNEL_ACCOUNT);
	file->digests = kvmalloc_array(FAIRSCAN_PIECES, sizeof(*file->digests),
				       GFP_KERNEL_ACCOUNT);
	if (!file->image || !file->digests)
		goto free;
	file->batch = fairwq_batch_create(fairscan_pool, NULL, "scan-%d", task_tgid_nr(current));
	if (IS_ERR(file->batch)) {
		err = PTR_ERR(file->batch);
		goto free;
	}
	filp->private_data = file;
	return stream_open(inode, filp);
free:
	file_free(file);
	return err;
}

/* No item is left, because a scan waits for its own. */
static int fairscan_release(struct inode *inode, struct file *filp)
{
	struct fairscan_file *file = filp->private_data;

	fairwq_batch_dispose(file->batch);
	file_free(file);
	return 0;
}

static const struct file_operations fairscan_fops = {
	.owner		= THIS_MODULE,
	.open		= fairscan_open,
	.release	= fairscan_release,
	.read		= fairscan_read,
	.write		= fairscan_write,
};

static struct miscdevice fairscan_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "fairscan",
	.fops	= &fairscan_fops,
};

static int __init make_zero_digest(void)
{
	u8 *zeros = kzalloc(FAIRSCAN_PIECE, GFP_KERNEL);
	int err;

	if (!zeros)
		return -ENOMEM;
	err = digest_of(zeros, FAIRSCAN_PIECE, &fairscan_zero_digest);
	kfree(zeros);
	return err;
}

static int __init make_pool(void)
{
	struct fairwq_pool_attrs attrs = { };

	if (!max_active)
		max_active = num_online_cpus();
	attrs.max_active = max_active;
	fairscan_pool = fairwq_pool_create(&attrs, "fairscan");
	return PTR_ERR_OR_ZERO(fairscan_pool);
}

static int __init fairscan_init(void)
{
	int err;

	fairscan_sha256 = crypto_alloc_shash("sha256", 0, 0);
	if (IS_ERR(fairscan_sha256))
		return PTR_ERR(fairscan_sha256);
	err = make_zero_digest() ?: make_pool();
	if (err)
		goto free_sha256;
	err = misc_register(&fairscan_device);
	if (err)
		goto destroy_pool;
	return 0;

destroy_pool:
	fairwq_pool_destroy(fairscan_pool);
free_sha256:
	crypto_free_shash(fairscan_sha256);
	return err;
}

static void __exit fairscan_exit(void)
{
	misc_deregister(&fairscan_device);
	fairwq_pool_destroy(fairscan_pool);
	crypto_free_shash(fairscan_sha256);
}

module_init(fairscan_init);
module_exit(fairscan_exit);
MODULE_DESCRIPTION("SHA-256 of an image with holes, by fork and join");
MODULE_LICENSE("GPL");
MODULE_SOFTDEP("pre: sha256");
