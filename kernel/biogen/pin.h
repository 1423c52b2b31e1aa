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
			size_t count, blk_opf_t opf, unsigned int block,
			bool in_parts);
void biogen_io_unpin_vecs(struct biogen_io *io, bool dirty);

/* True if the I/O overwrites the pages of @io. */
static __always_inline bool biogen_io_dirties(const struct biogen_io *io)
{
	return bio_op(&io->bio) == REQ_OP_READ;
}

/* True if biogen pinned the pages of @io: then they are in @io's own table. */
static __always_inline bool biogen_io_pinned(const struct biogen_io *io)
{
	return io->bio.bi_io_vec == io->vecs;
}

/* Number of pages in a segment. */
static inline unsigned long biogen_bvec_pages(const struct bio_vec *bv)
{
	return DIV_ROUND_UP(bv->bv_offset + bv->bv_len, PAGE_SIZE);
}

/**
 * biogen_unpin_page() - dirty and unpin a page
 * @page: the page
 * @dirty: dirty the page; then it may sleep
 *
 * A page is dirtied after the I/O, and only if it is clean. If writeback cleans
 * it in between, it is written with the new data. If it is clean here, it may
 * have been written without the new data.
 */
static __always_inline void biogen_unpin_page(struct page *page, bool dirty)
{
	if (dirty && unlikely(!PageDirty(page)))
		set_page_dirty_lock(page);
	unpin_user_page(page);
}

/**
 * biogen_io_must_dirty() - check for pages to dirty, which needs to sleep
 * @io: ended
 *
 * Return: true if a page that the I/O overwrote is clean.
 */
static inline bool biogen_io_must_dirty(const struct biogen_io *io)
{
	const struct bio_vec *bv;
	unsigned long i;

	if (!biogen_io_pinned(io) || !biogen_io_dirties(io))
		return false;
	for (bv = io->vecs; bv < io->vecs + io->bio.bi_vcnt; bv++)
		for (i = 0; i < biogen_bvec_pages(bv); i++)
			if (!PageDirty(bv->bv_page + i))
				return true;
	return false;
}

#endif /* BIOGEN_PIN_H */
