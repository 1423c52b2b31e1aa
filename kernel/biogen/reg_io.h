/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reading and writing registered memory.
 */
#ifndef BIOGEN_REG_IO_H
#define BIOGEN_REG_IO_H

#include <linux/fs.h>

ssize_t biogen_reg_read(struct file *file, char __user *buf, size_t count,
			loff_t *pos);
ssize_t biogen_reg_write(struct file *file, const char __user *buf,
			 size_t count, loff_t *pos);
ssize_t biogen_reg_read_iter(struct kiocb *iocb, struct iov_iter *to);
ssize_t biogen_reg_write_iter(struct kiocb *iocb, struct iov_iter *from);

#endif /* BIOGEN_REG_IO_H */
