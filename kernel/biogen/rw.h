/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reading and writing, by the shape of the caller's memory.
 */
#ifndef BIOGEN_RW_H
#define BIOGEN_RW_H

#include <linux/fs.h>
#include <linux/uio.h>

#include "biogen.h"

/* Operation and flags of a write. */
static __always_inline blk_opf_t biogen_write_opf(bool dsync)
{
	return REQ_OP_WRITE | REQ_SYNC | REQ_IDLE | (dsync ? REQ_FUA : 0);
}

/* rw.c */
ssize_t biogen_rw_buf(struct file *file, unsigned long addr, size_t count,
		      loff_t pos, blk_opf_t opf);
ssize_t biogen_read_iter(struct kiocb *iocb, struct iov_iter *to);
ssize_t biogen_write_iter(struct kiocb *iocb, struct iov_iter *from);

/* stream.c */
ssize_t biogen_rw_stream(struct biogen_device *bg, struct kiocb *iocb,
			 struct iov_iter *iter, loff_t pos, size_t count,
			 blk_opf_t opf);

#endif /* BIOGEN_RW_H */
