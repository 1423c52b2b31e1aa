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
 * Otherwise the bio ends later: it has not ended yet, bio_endio() has more to
 * do, or a driver changed bi_bdev or bi_end_io. The submitter sets the callback
 * and drops its count by bio_endio(). The last count to be dropped
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
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <trace/events/block.h>

#include "io.h"

void biogen_end_io(struct bio *bio);
void biogen_io_setup(struct biogen_io *io);
void biogen_io_enter_other(struct biogen_io *io,
			   struct cgroup_subsys_state *css);

/*
 * Keep the cgroups of the current task from being freed. Preemption that is off is
 * enough for RCU, and takes fewer instructions; but with PREEMPT_RT, charging a
 * bio to a cgroup may sleep.
 */
static __always_inline void biogen_lock_css(void)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		rcu_read_lock();
	else
		preempt_disable();
}

static __always_inline void biogen_unlock_css(void)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		rcu_read_unlock();
	else
		preempt_enable();
}

/* The cgroup that bios of this task are charged to; see biogen_lock_css(). */
static __always_inline struct cgroup_subsys_state *biogen_current_css(void)
{
#ifdef CONFIG_BLK_CGROUP
	return task_css_check(current, io_cgrp_id, true);
#else
	return ERR_PTR(-ENODEV);
#endif
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
					     unsigned int bytes, loff_t pos,
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
 * @css: biogen_current_css(), kept by biogen_lock_css()
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

/**
 * biogen_io_prepare() - make the bio ready for submission
 * @io: filled with pages
 * @table: the pages, usually @io's own
 * @nr_vecs: number of entries in @table
 * @offset: where the data begins in the first one
 * @bytes: length of the data
 * @pos: position on the device
 * @opf: operation and flags
 * @flags: BIO_* of the pages
 *
 * The caller sets the priority.
 *
 * The bio is not ready if the task's cgroup is another one than last time, or if
 * the bio did not end by biogen_io_submit() and so has no cgroup.
 */
static __always_inline void
biogen_io_prepare(struct biogen_io *io, struct bio_vec *table,
		  unsigned short nr_vecs, unsigned int offset,
		  unsigned int bytes, loff_t pos, blk_opf_t opf,
		  unsigned short flags)
{
	struct cgroup_subsys_state *css;
	struct bio *bio = &io->bio;

	biogen_io_rewind(io, bytes, pos, opf, flags);
	compat_bio_set_offset(bio, offset);
	bio->bi_io_vec = table;
	bio->bi_vcnt = nr_vecs;

	biogen_lock_css();
	css = biogen_current_css();
	if (unlikely(io->ready != css))
		biogen_io_make_ready(io, css);
	biogen_unlock_css();
}

/*
 * True if bio_endio() only had to drop the count. A driver may
 * redirect the bio to another device or set an end_io() of its own.
 */
static __always_inline bool
biogen_endio_only_counted(const struct biogen_io *io)
{
	const struct bio *bio = &io->bio;

	/* The low limits of blk-throttle measure latency in bio_endio(). */
	if (IS_ENABLED(CONFIG_BLK_DEV_THROTTLING_LOW))
		return false;
	return !(bio->bi_flags & ~COMPAT_BIO_IDLE_FLAGS) &&
	       !(bio->bi_opf & (REQ_INTEGRITY | REQ_POLLED)) &&
	       bio->bi_end_io == biogen_end_io &&
	       compat_bio_is_on(bio, io->bg->target.bdev) &&
	       !trace_block_bio_complete_enabled();
}

/**
 * biogen_io_submit() - submit a bio; the only place that does
 * @io: prepared
 * @account: by submit_bio(), otherwise by submit_bio_noacct(); a constant
 *
 * Return: true if the bio has ended. It is the caller's again, and
 * biogen_io_error() has its result. Otherwise the caller still holds its count
 * and calls biogen_io_end_later().
 */
static __always_inline bool biogen_io_submit(struct biogen_io *io,
					     const bool account)
{
	struct bio *bio = &io->bio;

	if (account)
		submit_bio(bio);
	else
		submit_bio_noacct(bio);
	/* Pairs with the barrier of the driver's drop of its count. */
	return likely(atomic_read_acquire(&bio->__bi_remaining) == 1) &&
	       likely(biogen_endio_only_counted(io));
}

/**
 * biogen_io_end_later() - drop the submitter's count on a bio
 * @io: submitted, and not ended by biogen_io_submit()
 * @end: called once, now or later, in any context; it owns @io from then on
 */
static __always_inline void
biogen_io_end_later(struct biogen_io *io, void (*end)(struct biogen_io *))
{
	io->end = end;
	io->ready = BIOGEN_NOT_READY;
	/* bio_endio() does the same, and is only needed for the last count. */
	if (unlikely(atomic_dec_and_test(&io->bio.__bi_remaining))) {
		atomic_set(&io->bio.__bi_remaining, 1);
		bio_endio(&io->bio);
	}
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

/* Flags of the bio for the flags of the iocb. */
static __always_inline blk_opf_t biogen_iocb_opf(struct kiocb *iocb)
{
	blk_opf_t opf = 0;

	if (iocb->ki_flags & IOCB_NOWAIT)
		opf |= REQ_NOWAIT;
	if (unlikely(iocb->ki_flags & IOCB_HIPRI) && !is_sync_kiocb(iocb))
		opf |= REQ_POLLED;
	return opf;
}

#endif /* BIOGEN_SUBMIT_H */
