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
 * The submitter drops its count by bio_endio() if the bio has not ended yet, if
 * bio_endio() has more to do, or if a driver changed bi_bdev or bi_end_io. The
 * last count to be dropped then calls biogen_end_io() like any other end_io(),
 * and the bio is initialised again for the next I/O.
 */
#ifndef BIOGEN_SUBMIT_H
#define BIOGEN_SUBMIT_H

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/blk-cgroup.h>
#include <linux/cgroup.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/task_io_accounting_ops.h>
#include <linux/vmstat.h>
#include <trace/events/block.h>

#include "io.h"
#include "request.h"

void biogen_io_setup(struct biogen_io *io);

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
 * The bio is initialised only if the task's cgroup is another one than last
 * time, or if the bio did not end by biogen_io_submit() and so has no cgroup.
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

/*
 * True if bio_endio() would only drop the count. A driver may redirect the bio
 * to another device or set an end_io() of its own.
 */
static __always_inline bool biogen_ends_plainly(const struct biogen_io *io)
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
 * and calls biogen_io_put_submitter() when @io->req is set.
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
	       likely(biogen_ends_plainly(io));
}

#endif /* BIOGEN_SUBMIT_H */
