/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Files, their iocbs and iterators, as on Linux 7.3.
 */
#ifndef IOPATH_COMPAT_FILE_H
#define IOPATH_COMPAT_FILE_H

#include <linux/blkdev.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/uio.h>

#include "compat/version.h"

/*
 * open(2) checks FMODE_CAN_ODIRECT for O_DIRECT since 6.0
 * (a2ad63daa88b "VFS: add FMODE_CAN_ODIRECT file flag"), before, the
 * mapping's operations: those of the block device have a ->direct_IO().
 * Goes with support for 5.19.
 */
static inline void compat_file_allow_direct(struct file *file,
					    struct address_space *mapping)
{
#if COMPAT_KERNEL_BEFORE(6, 0)
	file->f_mapping = mapping;
#else
	file->f_mode |= FMODE_CAN_ODIRECT;
#endif
}

/*
 * ki_complete() lost its second result in 5.16 (6b19b766e8f0 "fs: get rid of
 * the res2 iocb->ki_complete argument"). Goes with support for 5.15.
 */
static inline void compat_ki_complete(struct kiocb *iocb, long ret)
{
#if COMPAT_KERNEL_BEFORE(5, 16)
	iocb->ki_complete(iocb, ret, 0);
#else
	iocb->ki_complete(iocb, ret);
#endif
}

/*
 * An iocb of io_submit() says so since 6.9 and in stable kernels (b820de741ae4
 * "fs/aio: Restrict kiocb_set_cancel_fn() to I/O submitted via libaio").
 * Goes with support for 6.8.
 */
static inline bool compat_iocb_is_aio(const struct kiocb *iocb)
{
#ifdef IOCB_AIO_RW
	return iocb->ki_flags & IOCB_AIO_RW;
#else
	return false;
#endif
}

/*
 * A single user buffer has an iterator type of its own since 6.0 (fcb14cb1bdac
 * "new iov_iter flavour - ITER_UBUF"), and the vector is called __iov since 6.4
 * (de4f5fed3f23 "iov_iter: add iter_iovec() helper" and the renaming with it).
 * Goes with support for 5.19 and 6.3.
 */
static __always_inline bool compat_iter_is_ubuf(const struct iov_iter *iter)
{
#if COMPAT_KERNEL_BEFORE(6, 0)
	return false;
#else
	return iter_is_ubuf(iter);
#endif
}

static __always_inline const void __user *
compat_iter_ubuf(const struct iov_iter *iter)
{
#if COMPAT_KERNEL_BEFORE(6, 0)
	return NULL;
#else
	return iter->ubuf;
#endif
}

static __always_inline const struct iovec *
compat_iter_iov(const struct iov_iter *iter)
{
#if COMPAT_KERNEL_BEFORE(6, 4)
	return iter->iov;
#else
	return iter_iov(iter);
#endif
}

/*
 * class_create() lost its first argument in 6.4 (1aaba11da9aa "driver core:
 * class: remove module * from class_create()"). Goes with support for 6.3.
 */
static inline struct class *compat_class_create(const char *name)
{
#if COMPAT_KERNEL_BEFORE(6, 4)
	return class_create(THIS_MODULE, name);
#else
	return class_create(name);
#endif
}

/*
 * ->iopoll() polls a bio since 5.16 (3e08773c3841 "block: switch polling to be
 * bio based"); before, it polled a queue for the cookie of a request. Polling
 * is not offered there. Goes with support for 5.15.
 */
#if COMPAT_KERNEL_BEFORE(5, 16)
#define compat_iopoll			NULL
#define COMPAT_SHIM_FILE		"ki_complete_res2 no_iopoll "
#else
#define compat_iopoll			iocb_bio_iopoll
#define COMPAT_SHIM_FILE		""
#endif

#if COMPAT_KERNEL_BEFORE(6, 0)
#define COMPAT_SHIM_ITER		"no_ubuf "
#else
#define COMPAT_SHIM_ITER		""
#endif

#endif /* IOPATH_COMPAT_FILE_H */
