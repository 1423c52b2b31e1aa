/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The one way from a bio that is filled to the block layer and back. Inline,
 * because both the character device and the generator count instructions.
 *
 * The submitter keeps a count of its own on the bio, as the parent in a chain
 * of bios has one. A driver that ends the bio while it is being submitted then
 * drops its count and no more: the submitter sees that only its own is left,
 * has the bio to itself again, and need neither be woken nor called back, nor
 * does the bio lose its cgroup, so that the next I/O finds it set up. If the
 * bio did not end yet, if something has still to be done at its end, or if a
 * driver has changed where it goes or how it ends, the submitter drops its count
 * by bio_endio(). Then the last count to be dropped calls biogen_end_io() like
 * any other end_io(), and the bio is set up anew for the next I/O.
 */
#ifndef BIOGEN_IO_H
#define BIOGEN_IO_H

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/blk-cgroup.h>
#include <linux/cgroup.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/task_io_accounting_ops.h>
#include <linux/vmstat.h>
#include <trace/events/block.h>

#include "biogen.h"

struct biogen_io *biogen_io_alloc(struct biogen_device *bg, bool large);
void biogen_io_free(struct biogen_io *io);
void biogen_io_setup(struct biogen_io *io);
void biogen_end_io(struct bio *bio);
void biogen_io_leave(struct biogen_io *io);
void biogen_io_detach(struct biogen_io *io, loff_t pos, unsigned int bytes);
int biogen_io_wait(struct biogen_io *io);

/* The cgroup that bios of this task are charged to. Preemption is off. */
static __always_inline struct cgroup_subsys_state *biogen_current_css(void)
{
#ifdef CONFIG_BLK_CGROUP
	return task_css_check(current, io_cgrp_id, true);
#else
	return ERR_PTR(-ENODEV);
#endif
}

/**
 * biogen_io_rewind() - make the bio as it was before it was submitted
 * @io: set up, with its pages in place
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
	/* The submitter's count, as by bio_inc_remaining() on a bio of one. */
	atomic_set(&bio->__bi_remaining, 2);
}

/**
 * biogen_io_prepare() - make the bio ready for submission
 * @io: filled with pages
 * @table: the pages, usually @io's own
 * @nr_vecs: how many entries of @table there are
 * @offset: where the data begins in the first one
 * @bytes: length of the data
 * @pos: position on the device
 * @opf: operation and flags
 * @flags: BIO_* of the pages
 *
 * The priority is left for the caller to set.
 *
 * What bio_init() would do again for every I/O is done only when the cgroup of
 * the task is not the one of the last time, or when the bio has ended otherwise
 * than by biogen_io_submit(): then it has no cgroup.
 */
static __always_inline void
biogen_io_prepare(struct biogen_io *io, struct bio_vec *table,
		  unsigned short nr_vecs, unsigned int offset,
		  unsigned int bytes, loff_t pos, blk_opf_t opf,
		  unsigned short flags)
{
	struct bio *bio = &io->bio;
	bool same;

	/* Keeps the cgroups of current from being freed. */
	preempt_disable();
	same = io->css == biogen_current_css();
	preempt_enable();
	if (unlikely(!same))
		biogen_io_setup(io);

	biogen_io_rewind(io, bytes, pos, opf, flags);
	compat_bio_set_offset(bio, offset);
	bio->bi_io_vec = table;
	bio->bi_vcnt = nr_vecs;
}

/**
 * biogen_io_error() - the result of a bio that has ended
 * @io: ended
 *
 * A bio at rest has no status, so that none need be taken away from each.
 * Return: 0 or an error.
 */
static __always_inline int biogen_io_error(struct biogen_io *io)
{
	int err;

	if (likely(!io->bio.bi_status))
		return 0;
	err = blk_status_to_errno(io->bio.bi_status);
	io->bio.bi_status = BLK_STS_OK;
	return err;
}

/*
 * Whether the bio is as it was submitted, and bio_endio() would do no more than
 * drop the count. A driver may hand the caller's bio on to another device, or
 * put an end_io() of its own into it.
 */
static __always_inline bool biogen_ends_plainly(const struct biogen_io *io)
{
	const struct bio *bio = &io->bio;

	/* The low limits of blk-throttle measure latency at the end. */
	if (IS_ENABLED(CONFIG_BLK_DEV_THROTTLING_LOW))
		return false;
	return !(bio->bi_flags & ~COMPAT_BIO_IDLE_FLAGS) &&
	       !(bio->bi_opf & (REQ_INTEGRITY | REQ_POLLED)) &&
	       bio->bi_end_io == biogen_end_io &&
	       compat_bio_is_on(bio, io->bg->target.bdev) &&
	       !trace_block_bio_complete_enabled();
}

/**
 * biogen_io_submit() - the one submit point
 * @io: prepared
 * @account: by submit_bio(); a constant
 *
 * Return: true if the bio has ended and is the caller's again, with its result
 * from biogen_io_error(). Otherwise the caller still has its count on the bio, and must
 * say what is to be done at the end and then call biogen_io_leave().
 */
static __always_inline bool biogen_io_submit(struct biogen_io *io,
					     const bool account)
{
	struct bio *bio = &io->bio;

	if (account)
		submit_bio(bio);
	else
		submit_bio_noacct(bio);
	/* Pairs with the barrier in the dropping of the last but one count. */
	return likely(atomic_read_acquire(&bio->__bi_remaining) == 1) &&
	       likely(biogen_ends_plainly(io));
}

#endif /* BIOGEN_IO_H */
