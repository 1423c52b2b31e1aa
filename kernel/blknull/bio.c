// SPDX-License-Identifier: GPL-2.0
/*
 * blknull's bio mode: every bio ends where it is submitted.
 *
 * What a device does with a bio is chosen when the device is made, by its
 * table of operations, so that no bio pays for a mode that is off.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/mm.h>
#include <linux/module.h>

#include "blknull.h"
#include "disk.h"
#include "pages.h"

/*
 * A read needs no filling if it goes into pages that a program owns already:
 * what the program finds there afterwards is what it had there before. After
 * any other read, what was in the pages would be taken for what is on the
 * device, so it is filled with zeroes. How to tell:
 *
 * BIO_PAGE_PINNED says it at once, but not on kernels before 6.5, and not of
 * buffers that were pinned beforehand (io_uring's fixed buffers). Then the
 * pages say it: an anonymous page is mapped in some program's memory as its
 * own, and only pinning it there brings it into a bio. A page becomes
 * anonymous when it is mapped, that is after it was read in: neither the page
 * cache, nor a page on its way in from swap, nor a buffer of the kernel's own
 * is anonymous.
 *
 * One page stands for all of the bio. A bio is filled with pages either from
 * user memory or from the kernel's, and splitting and cloning, which stacked
 * devices do, share the array of pages, whose first entry is always in use.
 * Whatever else is pinned beside an anonymous page is mapped in the same
 * program, readable and up to date.
 *
 * Everything else counts as not owned. That includes, before 6.5, direct reads
 * into shared memory and mapped files: safe, if slower than it had to be.
 */

/*
 * End a bio for which the short test was not enough: with tail pages, or with
 * pages of the kernel's, to be written or read. Out of line, so that the others
 * pay no stack frame.
 */
static noinline void blknull_end_slow(struct bio *bio)
{
	if (bio_op(bio) == REQ_OP_READ && !PageAnon(bio->bi_io_vec->bv_page))
		zero_fill_bio(bio);
	bio_endio(bio);
}

/* Whether the pages of a bio are known at a glance to belong to a program. */
static __always_inline bool blknull_user_owned(const struct bio *bio)
{
	struct page *page = bio->bi_io_vec->bv_page;

	return !PageTail(page) && compat_head_page_anon(page);
}

/*
 * All of blknull's own work for one bio. The flags are constants wherever this
 * is used: @split a bio that exceeds the limits first, @fill reads that are
 * not into pages a program owns, mind @dataless bios, which have a size but no
 * pages, as a discard has.
 */
static __always_inline void blknull_handle(struct bio *bio, const bool split,
					   const bool fill, const bool dataless)
{
	if (split) {
		/* What is split off comes back here on its own. */
		bio = compat_bio_split_to_limits(bio);
		if (!bio)
			return;
	}
	if (fill && !compat_bio_page_pinned(bio) &&
	    (dataless ? bio_has_data(bio) : bio->bi_iter.bi_size) &&
	    unlikely(!blknull_user_owned(bio)))
		blknull_end_slow(bio);
	else
		bio_endio(bio);
}

#define BLKNULL_BIO_MODE(name, split, fill, dataless)			\
	static __always_inline void name##_handle(struct bio *bio)	\
	{								\
		blknull_handle(bio, split, fill, dataless);		\
	}								\
	COMPAT_SUBMIT_BIO_OP(name##_submit, name##_handle)		\
	static const struct block_device_operations name##_ops = {	\
		.owner		= THIS_MODULE,				\
		.submit_bio	= name##_submit,			\
	}

BLKNULL_BIO_MODE(blknull_bio, false, false, false);
BLKNULL_BIO_MODE(blknull_bio_fill, false, true, false);
BLKNULL_BIO_MODE(blknull_bio_fill_discard, false, true, true);
BLKNULL_BIO_MODE(blknull_bio_split, true, false, false);
BLKNULL_BIO_MODE(blknull_bio_split_fill, true, true, false);
BLKNULL_BIO_MODE(blknull_bio_split_fill_discard, true, true, true);

/**
 * blknull_bio_mode() - the operations of a device in bio mode
 * @config: what the device is to be
 *
 * Return: the table that does what @config asks for and nothing else.
 */
const struct block_device_operations *
blknull_bio_mode(const struct blknull_config *config)
{
	if (config->max_sectors) {
		if (!config->zero_fill)
			return &blknull_bio_split_ops;
		return config->discard ? &blknull_bio_split_fill_discard_ops :
					 &blknull_bio_split_fill_ops;
	}
	if (!config->zero_fill)
		return &blknull_bio_ops;
	return config->discard ? &blknull_bio_fill_discard_ops :
				 &blknull_bio_fill_ops;
}
