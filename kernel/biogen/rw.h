/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reading and writing, by the shape of the caller's memory.
 */
#ifndef BIOGEN_RW_H
#define BIOGEN_RW_H

#include <linux/fs.h>
#include <linux/uio.h>

#include "biogen.h"

/* rw.c */
ssize_t biogen_rw_buf(struct biogen_device *bg, unsigned long addr,
		      size_t count, loff_t pos, blk_opf_t opf);
ssize_t biogen_rw_iter(struct biogen_device *bg, struct kiocb *iocb,
		       struct iov_iter *iter, blk_opf_t opf);
ssize_t biogen_read_bvec(struct biogen_device *bg, struct kiocb *iocb,
			 struct iov_iter *iter);
ssize_t biogen_write_bvec(struct biogen_device *bg, struct kiocb *iocb,
			  struct iov_iter *iter, blk_opf_t opf);

/* stream.c */
ssize_t biogen_rw_stream(struct biogen_device *bg, struct kiocb *iocb,
			 struct iov_iter *iter, loff_t pos, size_t count,
			 blk_opf_t opf);

#endif /* BIOGEN_RW_H */
