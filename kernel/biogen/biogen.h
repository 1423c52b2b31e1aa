/* SPDX-License-Identifier: GPL-2.0 */
/*
 * biogen: a character device that goes direct-to-bio, and an I/O generator in
 * the kernel. The structures that most of its files share.
 */
#ifndef BIOGEN_H
#define BIOGEN_H

#include <linux/atomic.h>
#include <linux/blkdev.h>
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/types.h>
#include <linux/uio.h>

#include "compat/bdev.h"
#include "compat/bio.h"

struct biogen_gen;
struct biogen_idle;
struct biogen_regs;
struct biogen_run;
struct kernel_param;

/**
 * struct biogen_target - the block device that a biogen device is bound to
 * @handle: keeps the block device open
 * @bdev: the block device
 * @queue: its request queue
 * @mapping: its page cache
 * @holder: exclusive holder, or NULL if the target is open for reading only
 */
struct biogen_target {
	struct compat_bdev_handle *handle;
	struct block_device *bdev;
	struct request_queue *queue;
	struct address_space *mapping;
	void *holder;
};

/**
 * struct biogen_device - one /dev/biogenN
 * @target: the block device that is read and written
 * @coherent: keep reads and writes coherent with the target's page cache
 * @nr_cached: points to the number of pages in that cache if @coherent, and to 0
 *	otherwise
 * @idle: per-CPU lists of unused bios
 * @jobs: generator jobs in progress
 * @list: the next one, in the list of all that are published
 * @dev: freed when the node is gone and the last file is closed
 * @cdev: the node
 */
struct biogen_device {
	struct biogen_target target;
	bool coherent;
	const unsigned long *nr_cached;
	struct biogen_idle __percpu *idle;
	atomic_t jobs;
	struct list_head list;
	struct device dev;
	struct cdev cdev;
};

/**
 * struct biogen_file - one open file
 * @bg: the device
 * @file: the file
 * @lock: protects @gen, and making @regs
 * @gen: the generator's run in progress, or NULL
 * @regs: registered memory, or NULL if there never was any
 */
struct biogen_file {
	struct biogen_device *bg;
	struct file *file;
	struct mutex lock; /* gen, making regs */
	struct biogen_gen *gen;
	struct biogen_regs *regs;
};

/*
 * Enter a read-side section of RCU. Preemption that is off is one, in fewer
 * instructions. But with PREEMPT_RT, charging a bio to a cgroup may sleep, and
 * lockdep knows only of rcu_read_lock().
 */
static __always_inline void biogen_rcu_lock(void)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT) || IS_ENABLED(CONFIG_PROVE_RCU))
		rcu_read_lock();
	else
		preempt_disable();
}

static __always_inline void biogen_rcu_unlock(void)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT) || IS_ENABLED(CONFIG_PROVE_RCU))
		rcu_read_unlock();
	else
		preempt_enable();
}

/* device.c */
int biogen_create(const char *path, bool write, bool coherent);
int biogen_remove(const char *name);
int biogen_devices_show(char *page, const struct kernel_param *kp);
int biogen_devices_init(void);
void biogen_devices_exit(void);

/* chardev.c */
const struct file_operations *biogen_fops(const struct biogen_device *bg);

/* rw.c: file operations */
ssize_t biogen_read(struct file *file, char __user *buf, size_t count,
		    loff_t *pos);
ssize_t biogen_write(struct file *file, const char __user *buf, size_t count,
		     loff_t *pos);
ssize_t biogen_read_iter(struct kiocb *iocb, struct iov_iter *to);
ssize_t biogen_write_iter(struct kiocb *iocb, struct iov_iter *from);

/* stream.c */
ssize_t biogen_rw_stream(struct biogen_device *bg, struct kiocb *iocb,
			 struct iov_iter *iter, loff_t pos, size_t count,
			 blk_opf_t opf);

/* gen.c */
long biogen_gen_run(struct file *file, struct biogen_run __user *urun);
void biogen_gen_stop(struct biogen_file *bf, fl_owner_t owner);

#endif /* BIOGEN_H */
