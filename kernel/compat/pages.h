/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the pages of a bio are, asked as on Linux 7.3.
 */
#ifndef IOPATH_COMPAT_PAGES_H
#define IOPATH_COMPAT_PAGES_H

#include <linux/bio.h>
#include <linux/highmem.h>
#include <linux/mm.h>

#include "version.h"

/*
 * A bio says whether its pages are pinned since 6.5 (a7e689dd1c06 "block:
 * Convert bio_iov_iter_get_pages to use iov_iter_extract_pages"); before, user
 * pages were referenced like any others. Goes with support for 6.4.
 */
static __always_inline bool compat_bio_page_pinned(const struct bio *bio)
{
#if COMPAT_KERNEL_BEFORE(6, 5)
	return false;
#else
	return bio_flagged((struct bio *)bio, BIO_PAGE_PINNED);
#endif
}

/*
 * What the first word of a tail page is called, with bit 0 set; compound_info
 * since 7.1. Goes with support for 7.0.
 */
#if COMPAT_KERNEL_BEFORE(7, 1)
#define compat_compound			compound_head
#else
#define compat_compound			compound_info
#endif

/*
 * Whether a page is anonymous and no tail page, in the fewest instructions:
 * PageTail() always loads into a register, and on some kernels asks for pages of
 * hugetlbfs, too, which give the right answer here without. The bit's name is
 * FOLIO_MAPPING_ANON since 6.17 (the series that removed the other uses of the
 * bits). Goes with support for 6.16.
 */
static __always_inline bool compat_head_page_anon(const struct page *page)
{
	if (page->compat_compound & 1)
		return false;
#if COMPAT_KERNEL_BEFORE(6, 17)
	return (unsigned long)page->mapping & PAGE_MAPPING_ANON;
#else
	return (unsigned long)page->mapping & FOLIO_MAPPING_ANON;
#endif
}

/*
 * A segment is mapped by one function since 5.15 (e6e7471706dc "bvec: add a
 * bvec_kmap_local helper"), and unmapping is not atomic since 5.11.
 * Goes with support for 5.14.
 */
static inline void *compat_bvec_kmap_local(struct bio_vec *bv)
{
#if COMPAT_KERNEL_BEFORE(5, 15)
	return kmap_atomic(bv->bv_page) + bv->bv_offset;
#else
	return bvec_kmap_local(bv);
#endif
}

static inline void compat_kunmap_local(void *mapped)
{
#if COMPAT_KERNEL_BEFORE(5, 15)
	kunmap_atomic(mapped);
#else
	kunmap_local(mapped);
#endif
}

/*
 * A run of pages is unpinned by one function since 5.14 (458a4f788f86 "mm/gup:
 * add a range variant of unpin_user_pages_dirty_lock()"). Goes with support for
 * 5.13.
 */
static inline void compat_unpin_page_range(struct page *page,
					   unsigned long npages, bool dirty)
{
#if COMPAT_KERNEL_BEFORE(5, 14)
	for (; npages; npages--, page++) {
		if (dirty && !PageDirty(page))
			set_page_dirty_lock(page);
		unpin_user_page(page);
	}
#else
	unpin_user_page_range_dirty_lock(page, npages, dirty);
#endif
}

#endif /* IOPATH_COMPAT_PAGES_H */
