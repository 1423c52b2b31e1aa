/* SPDX-License-Identifier: GPL-2.0 */
/*
 * biogen: user memory to bio by the shortest path, and bios from the kernel.
 * What its files share.
 */
#ifndef BIOGEN_H
#define BIOGEN_H

#include <linux/atomic.h>
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "bdev.h"
#include "bio.h"
#include "file.h"

struct biogen_gen;
struct biogen_io;

/**
 * struct biogen_target - the block device that a biogen device is bound to
 * @handle: keeps the block device open
 * @bdev: the block device
 * @queue: its queue
 * @mapping: its page cache
 * @holder: whom it is held by exclusively, or NULL if only for reading
 */
struct biogen_target {
	struct compat_bdev_handle *handle;
	struct block_device *bdev;
	struct request_queue *queue;
	struct address_space *mapping;
	void *holder;
};

/**
 * struct biogen_idle - what a CPU has of bios that are not in use
 * @io: one, or NULL; taken and put back in one instruction
 * @spare: more of them, if there were more in flight
 * @nr_spare: how many those are
 *
 * Interrupts are off while @spare and @nr_spare are used.
 */
struct biogen_idle {
	struct biogen_io *io;
	struct biogen_io *spare;
	unsigned int nr_spare;
};

/**
 * struct biogen_device - one /dev/biogenN
 * @target: what is read and written
 * @coherent: keep reads and writes coherent with the target's page cache
 * @nr_cached: how many pages are in that; if not @coherent, it is always 0
 * @idle: bios that are not in use
 * @jobs: jobs of the generator's runs under way
 * @dev: lives as long as a file is open, or the node is there
 * @cdev: the node
 */
struct biogen_device {
	struct biogen_target target;
	bool coherent;
	const unsigned long *nr_cached;
	struct biogen_idle __percpu *idle;
	atomic_t jobs;
	struct device dev;
	struct cdev cdev;
};

/**
 * struct biogen_file - one open file
 * @bg: the device
 * @lock: protects @gen
 * @gen: the generator's run in progress, or NULL
 */
struct biogen_file {
	struct biogen_device *bg;
	struct mutex lock; /* gen */
	struct biogen_gen *gen;
};

/**
 * struct biogen_request - what a read or write that did not end at once needs
 * @lock: protects @inflight, @error, @ended
 * @wait: where the submitter waits, for room or for the end
 * @inflight: bios that have not ended, and one for the submitter
 * @error: the first error of a bio, or 0
 * @ended: bios that ended and whose pages are still pinned
 * @iocb: whose completion is to be called at the end; NULL: someone waits
 * @bg: the device
 * @pos: where it begins on the device
 * @bytes: how much was submitted
 * @is_write: its direction
 * @work: ends it in process context
 */
struct biogen_request {
	spinlock_t lock; /* inflight, error, ended */
	wait_queue_head_t wait;
	unsigned int inflight;
	int error;
	struct biogen_io *ended;
	struct kiocb *iocb;
	struct biogen_device *bg;
	loff_t pos;
	size_t bytes;
	bool is_write;
	struct work_struct work;
};

/**
 * struct biogen_io - a bio and what belongs to it, used again and again
 * @bio: the bio; its end_io is biogen_end_io()
 * @bg: the device, which @bio is set up for
 * @css: the cgroup that @bio is set up for, with a reference; NULL: not set up
 * @req: the request it is part of, if it did not end at once
 * @next: in the list @ended of a request, or of spare ones
 * @bytes: how much it moves
 * @max_vecs: entries in @vecs
 * @busy: submitted by the generator, and not waited for
 * @ring: the next one of the generator's
 * @start: when the generator submitted it, if latencies are wanted
 * @own: a request for those that need no more than this bio
 * @vecs: the pages
 */
struct biogen_io {
	struct bio bio;
	struct biogen_device *bg;
	struct cgroup_subsys_state *css;
	struct biogen_request *req;
	struct biogen_io *next;
	unsigned int bytes;
	unsigned short max_vecs;
	bool busy;
	struct biogen_io *ring;
	u64 start;
	struct biogen_request own;
	struct bio_vec vecs[];
};

/* main.c */
struct biogen_device *biogen_create(const char *path, bool write,
				    bool coherent);
void biogen_destroy(struct biogen_device *bg);

/* configfs.c */
int biogen_configfs_init(void);
void biogen_configfs_exit(void);

/* target.c */
int biogen_target_open(struct biogen_target *target, const char *path,
		       bool write);
void biogen_target_close(struct biogen_target *target);

/* chardev.c */
extern const struct file_operations biogen_fops;

/* bio.c */
int biogen_bio_init(void);
void biogen_bio_exit(void);
int biogen_idle_create(struct biogen_device *bg);
void biogen_idle_destroy(struct biogen_device *bg);
ssize_t biogen_rw_buf(struct biogen_device *bg, unsigned long addr,
		      size_t count, loff_t pos, blk_opf_t opf);
ssize_t biogen_rw_iter(struct biogen_device *bg, struct kiocb *iocb,
		       struct iov_iter *iter, blk_opf_t opf);
ssize_t biogen_read_bvec(struct biogen_device *bg, struct kiocb *iocb,
			 struct iov_iter *iter);
ssize_t biogen_write_bvec(struct biogen_device *bg, struct kiocb *iocb,
			  struct iov_iter *iter, blk_opf_t opf);

#endif /* BIOGEN_H */
