/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pages of a bio and of the page cache, as on Linux 7.3.
 */
#ifndef IOPATH_COMPAT_PAGES_H
#define IOPATH_COMPAT_PAGES_H

#include <linux/bio.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "compat/version.h"

/*
 * The flags of a page are a struct since 6.18, and the bit in the mapping of an
 * anonymous one is called FOLIO_MAPPING_ANON since 6.17 (the series that removed
 * the other uses of the bits). Goes with support for 6.17.
 */
static __always_inline unsigned long compat_page_flags(const struct page *page)
{
#if COMPAT_KERNEL_BEFORE(6, 18)
	return page->flags;
#else
	return page->flags.f;
#endif
}

#if COMPAT_KERNEL_BEFORE(6, 17)
#define FOLIO_MAPPING_ANON		PAGE_MAPPING_ANON
#endif

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

/*
 * Pinning for long waits for a page without mmap_lock, and so for the handler of
 * a userfaultfd, since 6.2 (53b2d09bdd12 "mm/gup: remove the restriction on locked
 * with FOLL_LONGTERM"). Before, the pages are brought in first, by pinning them
 * for a moment. Goes with support for 6.1.
 */
static inline int compat_pin_user_pages_longterm(unsigned long addr, int nr,
						 struct page **pages)
{
#if COMPAT_KERNEL_BEFORE(6, 2)
	nr = pin_user_pages_fast(addr, nr, FOLL_WRITE, pages);
	if (nr <= 0)
		return nr;
	unpin_user_pages(pages, nr);
#endif
	return pin_user_pages_fast(addr, nr, FOLL_WRITE | FOLL_LONGTERM, pages);
}

/*
 * Reading must write back what is dirty in the page cache, or wait for that, and
 * not for what is clean: O_DIRECT tells these apart since 5.13 (63135aa3866d "mm:
 * provide filemap_range_needs_writeback() helper"), and took any page for one to
 * wait for before. Goes with support for 5.12.
 */
static inline bool compat_range_needs_writeback(struct address_space *mapping,
						loff_t start, loff_t end)
{
#if COMPAT_KERNEL_BEFORE(5, 13)
	return filemap_range_has_page(mapping, start, end);
#else
	return filemap_range_needs_writeback(mapping, start, end);
#endif
}

#endif /* IOPATH_COMPAT_PAGES_H */
