/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Decide which reads are filled with zeroes.
 */
#ifndef BLKNULL_FILL_H
#define BLKNULL_FILL_H

#include <linux/bio.h>
#include <linux/mm.h>

#include "compat/pages.h"

/*
 * A read into pages that a program already owns is not filled: the program finds
 * its own old data there. After any other read, the old content of the pages
 * would be mistaken for data of the device, so it is filled with zeroes.
 *
 * Anonymous pages are owned by a program. Such a page is mapped in the program's
 * memory, and gets into a bio only by being pinned there. A page becomes
 * anonymous when it is mapped, which is after it was read in. Pages of the page
 * cache, pages being swapped in, and buffers of the kernel are not anonymous.
 *
 * BIO_PAGE_PINNED cannot be used for this. From 7.0 on, a direct read may use a
 * kernel buffer that is copied to the program afterwards. That bio has the flag
 * because of the program's pages, which follow the buffer in its table.
 *
 * The first page decides for the whole bio. A bio reads either into user memory
 * or into kernel memory. Splitting and cloning share the table of pages, whose
 * first entry is always in use. Other pages pinned along with an anonymous page
 * are mapped in the same program, readable and up to date.
 *
 * All other pages count as not owned, including shared memory and mapped files
 * in direct reads: that is safe, but slower than necessary.
 */

/*
 * True if a page is anonymous memory, in the fewest instructions. The bit of
 * its mapping is not enough: slab pages use that field for something else.
 * PG_swapbacked is set for all anonymous memory except hugetlbfs, and not for
 * slab pages or tail pages. Pages of hugetlbfs do not count as anonymous here.
 */
static __always_inline bool blknull_is_anon(const struct page *page)
{
	return compat_page_flags(page) & BIT(PG_swapbacked) &&
	       (unsigned long)page->mapping & FOLIO_MAPPING_ANON;
}

/*
 * Quick test: true if a bio that reads needs no filling. A bio shorter than a
 * sector is empty.
 */
static __always_inline bool blknull_read_no_fill(const struct bio *bio)
{
	return bio->bi_iter.bi_size < SECTOR_SIZE ||
	       blknull_is_anon(bio->bi_io_vec->bv_page);
}

/*
 * The same for any bio. Operations with odd numbers do not read data.
 */
static __always_inline bool blknull_no_fill(const struct bio *bio)
{
	return op_is_write(bio->bi_opf) || blknull_read_no_fill(bio);
}

/* Fill a bio after the quick test failed: its first page may be a tail page. */
static inline void blknull_fill(struct bio *bio)
{
	if (!blknull_is_anon(compound_head(bio->bi_io_vec->bv_page)))
		zero_fill_bio(bio);
}

#endif /* BLKNULL_FILL_H */
