/* SPDX-License-Identifier: GPL-2.0 */
/*
 * User pages of a bio: pin them before the I/O, dirty and unpin them after it.
 */
#ifndef BIOGEN_PIN_H
#define BIOGEN_PIN_H

#include <linux/bio.h>
#include <linux/mm.h>
#include <linux/uio.h>

#include "io.h"

int biogen_pin_small(struct biogen_io *io, unsigned long addr,
		     unsigned int bytes, blk_opf_t opf);
ssize_t biogen_pin_iter(struct biogen_io *io, struct iov_iter *iter,
			size_t count, blk_opf_t opf);
void biogen_io_unpin(struct biogen_io *io, bool dirty);

/* True if the I/O overwrites the pages of @io. */
static __always_inline bool biogen_io_dirties(const struct biogen_io *io)
{
	return bio_op(&io->bio) == REQ_OP_READ;
}

/* Number of pages in a segment. */
static inline unsigned long biogen_bvec_pages(const struct bio_vec *bv)
{
	return DIV_ROUND_UP(bv->bv_offset + bv->bv_len, PAGE_SIZE);
}

/*
 * True if @page may join the segment of the page before it in the memory map. A
 * memory map in sections may have holes between the sections.
 */
static __always_inline bool biogen_may_continue(struct page *page)
{
	return (!IS_ENABLED(CONFIG_SPARSEMEM) ||
		IS_ENABLED(CONFIG_SPARSEMEM_VMEMMAP) ||
		page_to_pfn(page) == page_to_pfn(page - 1) + 1) &&
	       !is_zone_device_page(page) && !is_zone_device_page(page - 1);
}

/**
 * biogen_unpin_page() - dirty and unpin a page
 * @page: the page
 * @dirty: dirty the page; then it may sleep
 *
 * Pages are dirtied when the data have arrived. A page that is dirty then will be
 * written back with the new data. A clean page may have been written back
 * without them.
 */
static __always_inline void biogen_unpin_page(struct page *page, bool dirty)
{
	if (dirty && unlikely(!PageDirty(page)))
		set_page_dirty_lock(page);
	unpin_user_page(page);
}

/**
 * biogen_io_must_dirty() - check for pages to dirty, which needs to sleep
 * @io: ended, with pages that biogen pinned
 *
 * Return: true if a page that the I/O overwrote is clean.
 */
static inline bool biogen_io_must_dirty(const struct biogen_io *io)
{
	const struct bio_vec *bv;
	unsigned long i;

	if (!biogen_io_dirties(io))
		return false;
	for (bv = io->vecs; bv < io->vecs + io->nr_vecs; bv++)
		for (i = 0; i < biogen_bvec_pages(bv); i++)
			if (!PageDirty(bv->bv_page + i))
				return true;
	return false;
}

#endif /* BIOGEN_PIN_H */
