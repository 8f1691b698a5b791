// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/fairhash: write bytes, read their SHA-256 in hex.
 *
 * A real client of fairwq:
 *
 *   a write        is an item
 *   a descriptor   is a serializer, because a hash takes its blocks in order
 *   a process      is a batch: one that hashes over sixty-four descriptors at
 *                  once gets no more of the pool than one with a single one
 *   a user         is the owner of the batches of its processes, so it gains
 *                  nothing by starting many processes, or new ones
 *
 * With one_queue=1 all processes are one batch, as they are in a workqueue.
 *
 *   exec 3<>/dev/fairhash; cat file >&3; read -r digest <&3
 *
 * What a descriptor answers:
 *
 *   write        the number of bytes, all or nothing. It sleeps while
 *                max_backlog bytes or more of this descriptor are still to be
 *                hashed. A write of nothing is a write: it starts a hash
 *   read         waits until all that was written is hashed, then gives the
 *                digest and a newline, in as many pieces as the reader likes.
 *                With the last piece the descriptor starts anew
 *   poll         readable: a read would not sleep and give a digest;
 *                writable: a write would not sleep
 *   -EAGAIN      O_NONBLOCK, and it would have slept
 *   -EBUSY       a write while a digest is only partly read
 *   -EFAULT      a bad address; nothing was taken and nothing is lost
 *   -EMSGSIZE    a write of more than FAIRHASH_MAX_WRITE; nothing was taken
 *   -ENODATA     a read before any write
 *   -EINTR       a signal (or a restart) while it slept; nothing is lost
 *
 * An error that comes after a write was accepted is the answer of the next
 * read, once, and the descriptor starts anew.
 *
 * Lifetimes: an accepted block holds its file, the file holds its client, and
 * the client holds the batch. So a process may close, or die, with blocks
 * outstanding. They are hashed and freed. With the last of them the batch is
 * disposed. When the module goes, those that are left are dropped, user by
 * user: see fairhash_free_users(). A descriptor costs at most max_backlog +
 * FAIRHASH_MAX_WRITE bytes of kernel memory, charged to the writer's memory
 * cgroup.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <crypto/hash.h>
#include <crypto/sha2.h>
#include <linux/atomic.h>
#include <linux/ctype.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/poll.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>
#include <linux/wait.h>

#include "fairwq.h"

/* Longest write that is taken; a longer one is -EMSGSIZE. */
#define FAIRHASH_MAX_WRITE	SZ_1M
/* A digest in hex and its newline. */
#define FAIRHASH_HEX_LEN	(2 * SHA256_DIGEST_SIZE + 1)

static bool one_queue;
module_param(one_queue, bool, 0444);
MODULE_PARM_DESC(one_queue, "all processes are one client: first come, first served");

/*
 * The default hashes on every CPU. The demo uses 1, because then the turns can
 * be seen one by one, and the pool is the bottleneck.
 */
static unsigned int max_active;
module_param(max_active, uint, 0444);
MODULE_PARM_DESC(max_active, "blocks hashed at once; 0 (default): one for each CPU");

static unsigned int max_backlog = SZ_4M;
module_param(max_backlog, uint, 0444);
MODULE_PARM_DESC(max_backlog, "bytes a descriptor may have outstanding before its writer sleeps");

/*
 * Locking:
 *
 * C: fairhash_clients_lock
 * F: fairhash_file::lock
 * B: fairhash_file::blocks_lock; taken inside F
 * I: set at the start and never changed
 * H: the item that runs, or, while there are no blocks, a holder of F
 */

/*
 * A user that has had the device open: the owner of the batches of its
 * processes. It is kept until the module goes. Otherwise a user could shed its
 * debt by starting a new process.
 */
struct fairhash_user {
	struct list_head node;		/* C: in fairhash_users */
	kuid_t uid;			/* I */
	struct fairwq_batch *batch;	/* I */
};

/* A process that has the device open. */
struct fairhash_client {
	struct list_head node;		/* C: in fairhash_clients */
	unsigned int users;		/* C: files */
	struct pid *tgid;		/* I */
	struct fairwq_batch *batch;	/* I */
};

/* An open descriptor. Lives until it is closed and its last block is done. */
struct fairhash_file {
	refcount_t users;		/* the descriptor, and every block */
	struct fairhash_client *client;	/* I */
	struct mutex lock;		/* F: order of reads and writes */
	bool started;			/* F: written to since the last digest */
	unsigned int hex_pos;		/* F: how much of @hex was read */
	unsigned int hex_len;		/* F: 0, or the digest is in @hex */
	char hex[FAIRHASH_HEX_LEN + 1];	/* F */
	spinlock_t blocks_lock;		/* B: what the blocks add up to */
	size_t backlog;			/* B: bytes of blocks; grows only under F as well */
	int error;			/* B: of a block that was accepted */
	wait_queue_head_t wait;		/* for @backlog to shrink */
	struct shash_desc *desc;	/* H */
	struct fairwq_serializer serial; /* one block at a time, in order */
};

/* One write. */
struct fairhash_block {
	struct fairwq_work work;
	struct fairhash_file *file;
	size_t len;
	u8 data[];
};

static struct fairwq_pool *fairhash_pool;
static struct crypto_shash *fairhash_sha256;
static DEFINE_MUTEX(fairhash_clients_lock);
static LIST_HEAD(fairhash_clients);	/* C */
static LIST_HEAD(fairhash_users);	/* C */

/* ------------------------------------------------------------- clients -- */

/* Make a name that is one word in a table, whatever the name of the process. */
static void fairhash_client_name(char *name, size_t size)
{
	char comm[TASK_COMM_LEN];

	get_task_comm(comm, current->group_leader);
	snprintf(name, size, "%s-%d", comm, task_tgid_nr(current));
	for (; *name; name++) {
		if (!isalnum(*name) && !strchr("-_.", *name))
			*name = '_';
	}
}

/*
 * Find the user that runs the calling process, or create it. Return: the user,
 * or ERR_PTR().
 */
static struct fairhash_user *fairhash_user_get(void)
{
	struct fairhash_user *user;
	void *err;

	lockdep_assert_held(&fairhash_clients_lock);

	list_for_each_entry(user, &fairhash_users, node)
		if (uid_eq(user->uid, current_uid()))
			return user;
	user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
	if (!user)
		return ERR_PTR(-ENOMEM);
	user->uid = current_uid();
	user->batch = fairwq_batch_create(fairhash_pool, NULL, "user-%u",
					  from_kuid(&init_user_ns, user->uid));
	if (IS_ERR(user->batch)) {
		err = user->batch;
		kfree(user);
		return err;
	}
	list_add(&user->node, &fairhash_users);
	return user;
}

static struct fairhash_client *fairhash_client_create(const struct fairhash_user *user)
{
	struct fairhash_client *client = kzalloc(sizeof(*client), GFP_KERNEL_ACCOUNT);
	const struct fairwq_batch_attrs attrs = { .parent = user->batch };
	char name[TASK_COMM_LEN + 16];

	if (!client)
		return ERR_PTR(-ENOMEM);
	fairhash_client_name(name, sizeof(name));
	client->batch = fairwq_batch_create(fairhash_pool, &attrs, "%s", one_queue ? "all" : name);
	if (IS_ERR(client->batch)) {
		void *err = client->batch;

		kfree(client);
		return err;
	}
	client->tgid = get_pid(task_tgid(current));
	return client;
}

/*
 * Find the client that is the calling process, or create it. Return: the
 * client, or ERR_PTR().
 */
static struct fairhash_client *fairhash_client_get(void)
{
	struct fairhash_client *client;
	struct fairhash_user *user;

	mutex_lock(&fairhash_clients_lock);
	list_for_each_entry(client, &fairhash_clients, node) {
		if (one_queue || client->tgid == task_tgid(current))
			goto found;
	}
	user = fairhash_user_get();
	client = IS_ERR(user) ? ERR_CAST(user) : fairhash_client_create(user);
	if (IS_ERR(client))
		goto out;
	list_add(&client->node, &fairhash_clients);
found:
	client->users++;
out:
	mutex_unlock(&fairhash_clients_lock);
	return client;
}

static void fairhash_client_put(struct fairhash_client *client)
{
	bool last;

	mutex_lock(&fairhash_clients_lock);
	last = --client->users == 0;
	if (last)
		list_del(&client->node);
	mutex_unlock(&fairhash_clients_lock);
	if (!last)
		return;
	fairwq_batch_dispose(client->batch);
	put_pid(client->tgid);
	kfree(client);
}

/* --------------------------------------------------------------- files -- */

static struct shash_desc *fairhash_desc_create(void)
{
	struct shash_desc *desc;

	desc = kzalloc(sizeof(*desc) + crypto_shash_descsize(fairhash_sha256),
		       GFP_KERNEL_ACCOUNT);
	if (!desc)
		return NULL;
	desc->tfm = fairhash_sha256;
	return desc;
}

static void fairhash_file_free(struct fairhash_file *file)
{
	kfree_sensitive(file->desc);
	kfree_sensitive(file);
}

static struct fairhash_file *fairhash_file_create(void)
{
	struct fairhash_file *file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);

	if (!file)
		return NULL;
	refcount_set(&file->users, 1);
	mutex_init(&file->lock);
	spin_lock_init(&file->blocks_lock);
	fairwq_serializer_init(&file->serial);
	init_waitqueue_head(&file->wait);
	file->desc = fairhash_desc_create();
	if (!file->desc) {
		fairhash_file_free(file);
		return NULL;
	}
	return file;
}

/*
 * Take the file down. Nothing uses it. The caller is the last block, which the
 * serializer lets go; or that may be about to return, and is waited for.
 */
static void fairhash_file_end(struct fairhash_file *file)
{
	fairwq_serializer_destroy(&file->serial);
	fairhash_client_put(file->client);
	fairhash_file_free(file);
}

/* -------------------------------------------------------------- blocks -- */

static void fairhash_hash_block(struct fairwq_work *work);

static struct fairhash_block *fairhash_block_create(const char __user *data, size_t len)
{
	struct fairhash_block *block;

	block = kvmalloc(struct_size(block, data, len), GFP_KERNEL_ACCOUNT);
	if (!block)
		return ERR_PTR(-ENOMEM);
	if (copy_from_user(block->data, data, len)) {
		kvfree(block);
		return ERR_PTR(-EFAULT);
	}
	block->len = len;
	fairwq_work_init(&block->work, fairhash_hash_block);
	return block;
}

static void fairhash_block_add(struct fairhash_file *file, struct fairhash_block *block)
{
	refcount_inc(&file->users);
	block->file = file;
	spin_lock(&file->blocks_lock);
	file->backlog += block->len;
	spin_unlock(&file->blocks_lock);
}

/* Take @block out of its file, and free it. That may be the end of the file. */
static void fairhash_block_done(struct fairhash_block *block, int err)
{
	struct fairhash_file *file = block->file;

	spin_lock(&file->blocks_lock);
	file->backlog -= block->len;
	if (err && !file->error)
		file->error = err;
	spin_unlock(&file->blocks_lock);
	kvfree(block);
	wake_up_interruptible(&file->wait);
	if (refcount_dec_and_test(&file->users))
		fairhash_file_end(file);
}

/* Queue a block. The serializer keeps the order. Return: 0 or an error. */
static int fairhash_serial_queue(struct fairhash_file *file, struct fairhash_block *block)
{
	int ret;

	fairhash_block_add(file, block);
	ret = fairwq_serializer_queue(&file->serial, file->client->batch, &block->work);
	if (ret > 0)
		return 0;	/* do not touch block after this point */
	fairhash_block_done(block, 0);
	return ret ? ret : -EIO;
}

/* The function of an item. */
static void fairhash_hash_block(struct fairwq_work *work)
{
	struct fairhash_block *block = container_of(work, struct fairhash_block, work);
	int err = crypto_shash_update(block->file->desc, block->data, block->len);

	fairhash_block_done(block, err);
}

/* A block that will not be hashed: its descriptor is closed, and the module goes. */
static void fairhash_drop_block(struct fairwq_work *work)
{
	fairhash_block_done(container_of(work, struct fairhash_block, work), -ESHUTDOWN);
}

/* End all users, with the batches of their processes. Nothing is hashed after it. */
static void fairhash_free_users(void)
{
	struct fairhash_user *user, *next;

	list_for_each_entry_safe(user, next, &fairhash_users, node) {
		fairwq_batch_shutdown(user->batch, FAIRWQ_DROP_REST | FAIRWQ_AND_OWNED,
				      fairhash_drop_block);
		kfree(user);
	}
}

/* ------------------------------------------------------------- waiting -- */

static size_t fairhash_backlog(struct fairhash_file *file)
{
	size_t backlog;

	spin_lock(&file->blocks_lock);
	backlog = file->backlog;
	spin_unlock(&file->blocks_lock);
	return backlog;
}

static bool fairhash_idle(struct fairhash_file *file)
{
	return fairhash_backlog(file) == 0;
}

static bool fairhash_has_room(struct fairhash_file *file)
{
	return fairhash_backlog(file) < max_backlog;
}

/*
 * Take the file's lock at a moment when @ready is true. It stays true while the
 * lock is held, because only the holder adds to the backlog. The wait itself is
 * without the lock, so that a reader and a writer do not block each other.
 * Return: 0 with the lock held, -EAGAIN or -ERESTARTSYS without it.
 */
static int fairhash_lock_when(struct fairhash_file *file,
			      bool (*ready)(struct fairhash_file *), bool nonblock)
{
	for (;;) {
		if (mutex_lock_interruptible(&file->lock))
			return -ERESTARTSYS;
		if (ready(file))
			return 0;
		mutex_unlock(&file->lock);
		if (nonblock)
			return -EAGAIN;
		if (wait_event_interruptible(file->wait, ready(file)))
			return -ERESTARTSYS;
	}
}

/* -------------------------------------------------------- read and write -- */

/* Begin a new hash with the next write. */
static void fairhash_restart_locked(struct fairhash_file *file)
{
	lockdep_assert_held(&file->lock);
	WRITE_ONCE(file->started, false);
	WRITE_ONCE(file->hex_len, 0);
	file->hex_pos = 0;
	wake_up_interruptible(&file->wait);
}

static int fairhash_take_error(struct fairhash_file *file)
{
	int err;

	spin_lock(&file->blocks_lock);
	err = file->error;
	file->error = 0;
	spin_unlock(&file->blocks_lock);
	return err;
}

/* Make the digest, unless it is there. All blocks are hashed. Return: 0 or an error. */
static int fairhash_finish_locked(struct fairhash_file *file)
{
	u8 digest[SHA256_DIGEST_SIZE];
	int err;

	lockdep_assert_held(&file->lock);
	if (file->hex_len)
		return 0;
	if (!file->started)
		return -ENODATA;
	err = fairhash_take_error(file);
	if (!err)
		err = crypto_shash_final(file->desc, digest);
	if (err) {
		fairhash_restart_locked(file);
		return err;
	}
	snprintf(file->hex, sizeof(file->hex), "%*phN\n", SHA256_DIGEST_SIZE, digest);
	WRITE_ONCE(file->hex_len, FAIRHASH_HEX_LEN);
	return 0;
}

static ssize_t fairhash_read_locked(struct fairhash_file *file, char __user *buf, size_t len)
{
	int err = fairhash_finish_locked(file);

	if (err)
		return err;
	len = min_t(size_t, len, file->hex_len - file->hex_pos);
	if (copy_to_user(buf, file->hex + file->hex_pos, len))
		return -EFAULT;
	file->hex_pos += len;
	if (file->hex_pos == file->hex_len)
		fairhash_restart_locked(file);
	return len;
}

static ssize_t fairhash_read(struct file *filp, char __user *buf, size_t len, loff_t *pos)
{
	struct fairhash_file *file = filp->private_data;
	ssize_t ret;

	ret = fairhash_lock_when(file, fairhash_idle, filp->f_flags & O_NONBLOCK);
	if (ret)
		return ret;
	ret = fairhash_read_locked(file, buf, len);
	mutex_unlock(&file->lock);
	return ret;
}

static int fairhash_queue_write_locked(struct fairhash_file *file,
				       const char __user *buf, size_t len)
{
	struct fairhash_block *block;

	if (!len)
		return 0;
	block = fairhash_block_create(buf, len);
	if (IS_ERR(block))
		return PTR_ERR(block);
	return fairhash_serial_queue(file, block);
}

static int fairhash_write_locked(struct fairhash_file *file, const char __user *buf, size_t len)
{
	int err = 0;

	lockdep_assert_held(&file->lock);
	if (file->hex_len)
		return -EBUSY;
	if (!file->started)
		err = crypto_shash_init(file->desc);
	if (!err)
		err = fairhash_queue_write_locked(file, buf, len);
	if (err)
		return err;
	WRITE_ONCE(file->started, true);
	if (!len)
		wake_up_interruptible(&file->wait);	/* a digest can be read */
	return 0;
}

static ssize_t fairhash_write(struct file *filp, const char __user *buf, size_t len, loff_t *pos)
{
	struct fairhash_file *file = filp->private_data;
	int err;

	if (len > FAIRHASH_MAX_WRITE)
		return -EMSGSIZE;
	err = fairhash_lock_when(file, fairhash_has_room, filp->f_flags & O_NONBLOCK);
	if (err)
		return err;
	err = fairhash_write_locked(file, buf, len);
	mutex_unlock(&file->lock);
	return err ? err : len;
}

/* No lock: the answer may be out of date before the caller reads it anyway. */
static __poll_t fairhash_poll(struct file *filp, poll_table *wait)
{
	struct fairhash_file *file = filp->private_data;
	__poll_t mask = 0;

	poll_wait(filp, &file->wait, wait);
	if (fairhash_idle(file) && READ_ONCE(file->started))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (fairhash_has_room(file) && !READ_ONCE(file->hex_len))
		mask |= EPOLLOUT | EPOLLWRNORM;
	return mask;
}

static int fairhash_open(struct inode *inode, struct file *filp)
{
	struct fairhash_file *file = fairhash_file_create();

	if (!file)
		return -ENOMEM;
	file->client = fairhash_client_get();
	if (IS_ERR(file->client)) {
		int err = PTR_ERR(file->client);

		fairhash_file_free(file);
		return err;
	}
	filp->private_data = file;
	return stream_open(inode, filp);
}

/* Close without waiting: outstanding blocks hold the file. */
static int fairhash_release(struct inode *inode, struct file *filp)
{
	struct fairhash_file *file = filp->private_data;

	if (refcount_dec_and_test(&file->users))
		fairhash_file_end(file);
	return 0;
}

static const struct file_operations fairhash_fops = {
	.owner		= THIS_MODULE,
	.open		= fairhash_open,
	.release	= fairhash_release,
	.read		= fairhash_read,
	.write		= fairhash_write,
	.poll		= fairhash_poll,
};

static struct miscdevice fairhash_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "fairhash",
	.fops	= &fairhash_fops,
};

/* -------------------------------------------------------------- module -- */

static int fairhash_create_pool(void)
{
	struct fairwq_pool_attrs attrs = { .max_active = max_active };

	if (!max_backlog) {
		pr_err("max_backlog is 1 or more\n");
		return -EINVAL;
	}
	fairhash_pool = fairwq_pool_create(&attrs, "fairhash");
	return PTR_ERR_OR_ZERO(fairhash_pool);
}

static int __init fairhash_init(void)
{
	int err;

	fairhash_sha256 = crypto_alloc_shash("sha256", 0, 0);
	if (IS_ERR(fairhash_sha256))
		return PTR_ERR(fairhash_sha256);
	err = fairhash_create_pool();
	if (err)
		goto free_sha256;
	err = misc_register(&fairhash_device);
	if (err)
		goto destroy_pool;
	return 0;

destroy_pool:
	fairwq_pool_destroy(fairhash_pool);
free_sha256:
	crypto_free_shash(fairhash_sha256);
	return err;
}

/*
 * No descriptor is open, because an open one keeps the module. But blocks of
 * closed descriptors may be left. The last block of a file ends the file, which
 * ends its client, also if it is dropped.
 */
static void __exit fairhash_exit(void)
{
	misc_deregister(&fairhash_device);
	fairhash_free_users();
	fairwq_pool_destroy(fairhash_pool);
	crypto_free_shash(fairhash_sha256);
}

module_init(fairhash_init);
module_exit(fairhash_exit);
MODULE_DESCRIPTION("SHA-256 of what is written, in fair shares between processes");
MODULE_LICENSE("GPL");
MODULE_SOFTDEP("pre: sha256");
