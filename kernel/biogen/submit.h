/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Submission: from a bio with pages to the block layer. Inline, because both
 * the character device and the generator count instructions.
 *
 * The submitter holds a count of its own on the bio, like the parent of a chain
 * of bios. A driver that ends the bio during submission only drops its count:
 * the submitter sees that its own count is the last one and owns the bio again.
 * Nothing is woken or called back, and the bio keeps its cgroup, so the next
 * I/O finds it initialised.
 *
 * Otherwise the bio ends later (late.c): it has not ended yet, bio_endio() has
 * more to do, or a driver changed bi_bdev or bi_end_io. The submitter sets the
 * callback and drops its count by bio_endio(). The last count to be dropped
 * calls biogen_end_io() like any other end_io(). bio_endio() drops the reference
 * to the cgroup, so biogen_io_make_ready() takes another one for the next I/O.
 */
#ifndef BIOGEN_SUBMIT_H
#define BIOGEN_SUBMIT_H

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/blk-cgroup.h>
#include <linux/cgroup.h>
#include <linux/iocontext.h>
#include <linux/sched.h>
#include <linux/task_io_accounting_ops.h>
#include <trace/events/block.h>

#include "io.h"

/* late.c: bios that end later than their submission */
void biogen_end_io(struct bio *bio);
void biogen_io_end_later(struct biogen_io *io, void (*end)(struct biogen_io *));
void biogen_io_start_wait(struct biogen_io *io);
void biogen_io_wait(struct biogen_io *io);
bool biogen_io_late(struct biogen_io *io, struct kiocb *iocb,
		    size_t bytes);

/* The cgroup that bios of this task are charged to; see biogen_rcu_lock(). */
static __always_inline struct cgroup_subsys_state *biogen_task_css(void)
{
#ifdef CONFIG_BLK_CGROUP
	return task_css_check(current, io_cgrp_id, true);
#else
	return ERR_PTR(-ENODEV);
#endif
}

/* The same, only to be compared: it may be freed. */
static __always_inline struct cgroup_subsys_state *biogen_current_css(void)
{
	struct cgroup_subsys_state *css;

	biogen_rcu_lock();
	css = biogen_task_css();
	biogen_rcu_unlock();
	return css;
}

/**
 * biogen_io_rewind() - restore the fields that an I/O has changed
 * @io: initialised, with its pages in place
 * @bytes: length of the data
 * @pos: position on the device
 * @opf: operation and flags
 * @flags: BIO_* of the pages
 */
static __always_inline void biogen_io_rewind(struct biogen_io *io,
					     size_t bytes, loff_t pos,
					     blk_opf_t opf,
					     unsigned short flags)
{
	struct bio *bio = &io->bio;

	bio->bi_next = NULL;
	compat_bio_rewind_dev(bio, io->bg->target.bdev);
	bio->bi_opf = opf;
	bio->bi_flags = flags | BIT(BIO_CHAIN);
	bio->bi_iter.bi_sector = pos >> SECTOR_SHIFT;
	bio->bi_iter.bi_size = bytes;
	bio->bi_iter.bi_idx = 0;
	compat_bio_set_offset(bio, 0);
	compat_bio_forget_gaps(bio);
	/* The submitter's count, as bio_inc_remaining() would add it. */
	atomic_set(&bio->__bi_remaining, 2);
}

/**
 * biogen_io_make_ready() - make a bio ready for the current task
 * @io: not in flight
 * @css: biogen_task_css(), kept by biogen_rcu_lock()
 *
 * The bio is new, or another cgroup's, or ended later: then bio_endio() has
 * dropped its cgroup, and a driver may have changed its device and end_io().
 */
static __always_inline void
biogen_io_make_ready(struct biogen_io *io, struct cgroup_subsys_state *css)
{
	struct bio *bio = &io->bio;

	bio->bi_end_io = biogen_end_io;
	compat_bio_restore_dev(bio, io->bg->target.bdev);
	compat_bio_forget_cookie(bio);
#ifdef CONFIG_BLK_CGROUP_IOCOST
	bio->bi_iocost_cost = 0;
#endif
	io->ready = css;
#ifdef CONFIG_BLK_CGROUP
	/* The root cgroup is never removed. */
	if (css->parent || unlikely(current->flags & PF_KTHREAD))
		biogen_io_enter_other(io, css);
	else
		bio_associate_blkg_from_css(bio, css);
#endif
}

/*
 * True if a submitted bio has ended, and bio_endio() only had to drop the count. A
 * driver may redirect the bio to another device or set an end_io() of its own.
 */
static __always_inline bool biogen_io_ended(const struct biogen_io *io,
					    const struct biogen_device *bg)
{
	const struct bio *bio = &io->bio;

	/* Pairs with the barrier of the driver's drop of its count. */
	if (unlikely(atomic_read_acquire(&bio->__bi_remaining) != 1))
		return false;
	/* The low limits of blk-throttle measure latency in bio_endio(). */
	if (IS_ENABLED(CONFIG_BLK_DEV_THROTTLING_LOW))
		return false;
	return likely(!(bio->bi_flags & ~COMPAT_BIO_IDLE_FLAGS) &&
		      !(bio->bi_opf & (REQ_INTEGRITY | REQ_POLLED)) &&
		      bio->bi_end_io == biogen_end_io &&
		      compat_bio_is_on(bio, bg->target.bdev) &&
		      !trace_block_bio_complete_enabled());
}

/**
 * biogen_io_submit() - fill a bio in and submit it
 * @io: not in flight
 * @bg: its device
 * @table: the pages, usually @io's own
 * @nr_vecs: number of entries in @table
 * @offset: where the data begins in the first one
 * @bytes: length of the data
 * @pos: position on the device
 * @opf: operation and flags
 * @flags: BIO_* of the pages
 * @ioprio: priority
 * @css: biogen_current_css()
 *
 * The bio is not ready if the task's cgroup is another one than last time, or if
 * the bio did not end here last time and so has no cgroup.
 *
 * Return: true if the bio has ended. It is the caller's again, and
 * biogen_io_error() has its result. Otherwise the caller still holds its count,
 * and calls a function of late.c.
 */
static __always_inline bool
biogen_io_submit(struct biogen_io *io, const struct biogen_device *bg,
		 const struct bio_vec *table, unsigned short nr_vecs,
		 unsigned int offset, size_t bytes, loff_t pos, blk_opf_t opf,
		 unsigned short flags, u16 ioprio,
		 struct cgroup_subsys_state *css)
{
	struct bio *bio = &io->bio;

	biogen_io_rewind(io, bytes, pos, opf, flags);
	compat_bio_set_offset(bio, offset);
	bio->bi_io_vec = (struct bio_vec *)table;
	bio->bi_vcnt = nr_vecs;
	bio->bi_ioprio = ioprio;
	if (unlikely(io->ready != css)) {
		biogen_rcu_lock();
		biogen_io_make_ready(io, biogen_task_css());
		biogen_rcu_unlock();
	}
	if (op_is_write(opf))
		task_io_account_write(bytes);
	submit_bio(bio);
	return likely(biogen_io_ended(io, bg));
}

/*
 * The priority that was set for the task, or 0: then the block layer derives
 * one from the nice value, as it does for its own bios.
 */
static __always_inline u16 biogen_task_ioprio(void)
{
	struct io_context *ioc = current->io_context;

	return ioc ? ioc->ioprio : 0;
}

/* Operation and flags of a write. */
static __always_inline blk_opf_t biogen_write_opf(bool dsync)
{
	return REQ_OP_WRITE | REQ_SYNC | REQ_IDLE | (dsync ? REQ_FUA : 0);
}

/* Flags of the bio for the flags of the iocb. */
static __always_inline blk_opf_t biogen_iocb_opf(struct kiocb *iocb,
						 bool is_write)
{
	blk_opf_t opf = 0;

	if (likely(!(iocb->ki_flags &
		     (IOCB_NOWAIT | IOCB_HIPRI | IOCB_DSYNC))))
		return 0;
	if (iocb->ki_flags & IOCB_NOWAIT)
		opf |= REQ_NOWAIT;
	if (unlikely(iocb->ki_flags & IOCB_HIPRI) && !is_sync_kiocb(iocb))
		opf |= REQ_POLLED;
	if (is_write && (iocb->ki_flags & IOCB_DSYNC))
		opf |= REQ_FUA;
	return opf;
}

#endif /* BIOGEN_SUBMIT_H */
