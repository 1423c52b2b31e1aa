// SPDX-License-Identifier: GPL-2.0
/*
 * User pages of a bio: pin them before the I/O, dirty and unpin them after it.
 */
#include <linux/mm.h>
#include <xen/xen.h>

#include "compat/file.h"
#include "compat/pages.h"
#include "pin.h"
#include "target.h"

/* Pages pinned at a time: bounds the stack, and keeps them in the L1 cache. */
#define BIOGEN_PIN_BATCH	64
/* Maximum size of a bio, even if few segments hold more. */
#define BIOGEN_BIO_BYTES	(4U << 20)

/**
 * biogen_io_unpin() - unpin the pages of a bio that has ended
 * @io: its pages are pinned
 * @dirty: dirty the pages; then it may sleep
 */
void biogen_io_unpin(struct biogen_io *io, bool dirty)
{
	struct bio_vec *bv;

	for (bv = io->vecs; bv < io->vecs + io->nr_vecs; bv++) {
		struct page *page = bv->bv_page;

		if (bv->bv_offset + bv->bv_len > PAGE_SIZE) {
			compat_unpin_page_range(page, biogen_bvec_pages(bv),
						dirty);
			continue;
		}
		biogen_unpin_page(page, dirty);
	}
}

/* Add @len bytes of pinned pages, from @offset of the first page on. */
static void biogen_io_add_pages(struct biogen_io *io, struct page **pages,
				unsigned int offset, unsigned int len)
{
	struct bio_vec *bv = io->vecs + io->nr_vecs - 1;
	/* Adjacent pages are not adjacent in the machine's memory under Xen. */
	const bool merge = !xen_domain();
	/* The page that continues the last segment. */
	struct page *next = NULL;
	unsigned int part;

	if (merge && io->nr_vecs && !offset &&
	    !offset_in_page(bv->bv_offset + bv->bv_len))
		next = bv->bv_page + biogen_bvec_pages(bv);
	for (; len; len -= part, offset = 0, pages++) {
		struct page *page = *pages;

		part = min_t(unsigned int, len, PAGE_SIZE - offset);
		if (page == next && biogen_may_continue(page)) {
			bv->bv_len += part;
		} else {
			bv++;
			bv->bv_page = page;
			bv->bv_offset = offset;
			bv->bv_len = part;
		}
		if (merge)
			next = page + 1;
	}
	io->nr_vecs = bv - io->vecs + 1;
}

/* Unpin and remove the last @bytes. */
static void biogen_io_trim(struct biogen_io *io, unsigned int bytes)
{
	while (bytes) {
		struct bio_vec *bv = &io->vecs[io->nr_vecs - 1];
		unsigned int part = min(bytes, bv->bv_len);
		unsigned long had = biogen_bvec_pages(bv);
		unsigned long keep;

		bv->bv_len -= part;
		bytes -= part;
		keep = bv->bv_len ? biogen_bvec_pages(bv) : 0;
		compat_unpin_page_range(bv->bv_page + keep, had - keep, false);
		if (!bv->bv_len)
			io->nr_vecs--;
	}
}

/**
 * biogen_pin_small() - pin a buffer of up to BIOGEN_SMALL_VECS pages
 * @io: without pages
 * @addr: the buffer
 * @bytes: its size
 * @opf: REQ_OP_READ or REQ_OP_WRITE, with flags
 *
 * Return: the number of bytes pinned, a multiple of the logical block size, or
 * an error.
 */
int biogen_pin_small(struct biogen_io *io, unsigned long addr,
		     unsigned int bytes, blk_opf_t opf)
{
	unsigned int offset = offset_in_page(addr), excess;
	struct page *pages[BIOGEN_SMALL_VECS];
	int pinned;

	pinned = pin_user_pages_fast(addr - offset,
				     DIV_ROUND_UP(offset + bytes,
						  (unsigned int)PAGE_SIZE),
				     op_is_write(opf) ? 0 : FOLL_WRITE, pages);
	if (pinned <= 0)
		return pinned ?: -EFAULT;
	bytes = min_t(unsigned int, bytes, pinned * PAGE_SIZE - offset);
	io->nr_vecs = 0;
	biogen_io_add_pages(io, pages, offset, bytes);
	excess = bytes & biogen_block_mask(io->bg);
	if (excess)
		biogen_io_trim(io, excess);
	return bytes - excess ?: -EFAULT;
}

/**
 * biogen_pin_iter() - pin as much of an iterator as a bio holds
 * @io: without pages
 * @iter: user memory; advanced by the bytes pinned
 * @count: maximum number of bytes
 * @opf: REQ_OP_READ or REQ_OP_WRITE, with flags
 *
 * Return: the number of bytes pinned, a multiple of the logical block size; 0 if
 * less than a block was left; -EAGAIN if REQ_NOWAIT is set and one bio does not
 * hold @count; or another error if nothing could be pinned.
 */
ssize_t biogen_pin_iter(struct biogen_io *io, struct iov_iter *iter,
			size_t count, blk_opf_t opf)
{
	unsigned int gup_flags = op_is_write(opf) ? 0 : FOLL_WRITE;
	struct page *pages[BIOGEN_PIN_BATCH];
	unsigned int bytes = 0, excess;
	int pinned = 0;

	io->nr_vecs = 0;
	/* A part that was submitted could not be taken back. */
	if (!(opf & REQ_NOWAIT))
		count = min_t(size_t, count, BIOGEN_BIO_BYTES);
	while (bytes < count && io->nr_vecs < io->max_vecs) {
		unsigned long addr;
		unsigned int offset, npages;
		size_t len;

		if (compat_iter_is_ubuf(iter)) {
			addr = (unsigned long)compat_iter_ubuf(iter) +
			       iter->iov_offset;
			len = iov_iter_count(iter);
		} else {
			addr = (unsigned long)compat_iter_iov(iter)->iov_base +
			       iter->iov_offset;
			len = compat_iter_iov(iter)->iov_len - iter->iov_offset;
			if (!len) {
				/* Skips the empty segment. */
				iov_iter_advance(iter, 0);
				continue;
			}
		}
		len = min_t(size_t, len, count - bytes);
		offset = offset_in_page(addr);
		npages = min3((unsigned int)BIOGEN_PIN_BATCH,
			      (unsigned int)io->max_vecs - io->nr_vecs,
			      (unsigned int)DIV_ROUND_UP(offset + len,
							 PAGE_SIZE));
		pinned = pin_user_pages_fast(addr - offset, npages, gup_flags,
					     pages);
		if (pinned <= 0)
			break;
		len = min_t(size_t, len, pinned * PAGE_SIZE - offset);
		biogen_io_add_pages(io, pages, offset, len);
		iov_iter_advance(iter, len);
		bytes += len;
	}

	if ((opf & REQ_NOWAIT) && bytes && bytes < count && pinned > 0) {
		biogen_io_unpin(io, false);
		return -EAGAIN;
	}
	excess = bytes & biogen_block_mask(io->bg);
	if (excess) {
		biogen_io_trim(io, excess);
		iov_iter_revert(iter, excess);
		bytes -= excess;
	}
	if (!bytes && pinned < 0)
		return pinned;
	return bytes;
}
