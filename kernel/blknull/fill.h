/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which reads have to be filled with zeroes.
 */
#ifndef BLKNULL_FILL_H
#define BLKNULL_FILL_H

#include <linux/bio.h>
#include <linux/mm.h>

#include "compat/pages.h"

/*
 * A read needs no filling if it goes into pages that a program owns already:
 * what the program finds there afterwards is what it had there before. After
 * any other read, what was in the pages would be taken for what is on the
 * device, so it is filled with zeroes.
 *
 * The pages say which it is: an anonymous page is mapped in some program's
 * memory as its own, and only pinning it there brings it into a bio. A page
 * becomes anonymous when it is mapped, that is after it was read in: neither
 * the page cache, nor a page on its way in from swap, nor a buffer of the
 * kernel's own, be it of pages or of the slab allocator, is anonymous.
 *
 * BIO_PAGE_PINNED does not say it. From 7.0 on, a direct read may go to a
 * buffer of the kernel's that is copied to the program afterwards. That bio has
 * the flag, for the program's pages, which are in its table behind the buffer.
 *
 * The first page stands for all of the bio. A bio's data goes either to user
 * memory or to the kernel's, and splitting and cloning, which stacked devices
 * do, share the array of pages, whose first entry is always in use. Whatever
 * else is pinned beside an anonymous page is mapped in the same program,
 * readable and up to date.
 *
 * Everything else counts as not owned. That includes direct reads into shared
 * memory and mapped files: safe, if slower than it had to be.
 */

/*
 * Whether it is seen at a glance that a bio that reads needs no filling. The
 * order is that of how common the answer is. A bio shorter than a sector is
 * empty.
 */
static __always_inline bool blknull_read_no_fill(const struct bio *bio)
{
	return bio->bi_iter.bi_size < SECTOR_SIZE ||
	       compat_head_page_anon(bio->bi_io_vec->bv_page);
}

/*
 * The same for any bio. An operation whose number is odd brings no data in:
 * every one but reading, as far as bios go.
 */
static __always_inline bool blknull_no_fill(const struct bio *bio)
{
	return op_is_write(bio->bi_opf) || blknull_read_no_fill(bio);
}

/* Fill a bio for which these did not know better: its page may be a tail. */
static inline void blknull_fill(struct bio *bio)
{
	if (!compat_head_page_anon(compound_head(bio->bi_io_vec->bv_page)))
		zero_fill_bio(bio);
}

#endif /* BLKNULL_FILL_H */
