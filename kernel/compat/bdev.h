/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Opening a block device by its path, and its properties, as on Linux 7.3.
 */
#ifndef IOPATH_COMPAT_BDEV_H
#define IOPATH_COMPAT_BDEV_H

#include <linux/blkdev.h>
#include <linux/err.h>
#include <linux/fs.h>

#include "compat/version.h"

/*
 * A block device is held by a file since 6.9 (f3a608827d1f "bdev: open block
 * device as files"), by itself up to 6.6; what was between is not supported
 * (version.h). The mode is a type of its own and says by a holder that it is
 * exclusive since 6.5 (05bdb9965305 "block: replace fmode_t with a block-specific
 * type for block open flags", 2736e8eeb0cc "block: use the holder as indication
 * for exclusive opens"). The branches go with support for 6.6 and 6.4.
 */
#if COMPAT_KERNEL_BEFORE(6, 9)
#define compat_bdev_handle		block_device
#define COMPAT_SHIM_BDEV_OPEN		"blkdev_get_by_path "
#else
#define compat_bdev_handle		file
#define COMPAT_SHIM_BDEV_OPEN		""
#endif

static inline struct compat_bdev_handle *
compat_bdev_open(const char *path, bool write, void *holder)
{
#if COMPAT_KERNEL_BEFORE(6, 5)
	return blkdev_get_by_path(path, FMODE_READ |
				  (write ? FMODE_WRITE : 0) |
				  (holder ? FMODE_EXCL : 0), holder);
#elif COMPAT_KERNEL_BEFORE(6, 9)
	return blkdev_get_by_path(path, BLK_OPEN_READ |
				  (write ? BLK_OPEN_WRITE : 0), holder, NULL);
#else
	return bdev_file_open_by_path(path, BLK_OPEN_READ |
				      (write ? BLK_OPEN_WRITE : 0), holder,
				      NULL);
#endif
}

static inline struct block_device *
compat_bdev(struct compat_bdev_handle *handle)
{
#if COMPAT_KERNEL_BEFORE(6, 9)
	return handle;
#else
	return file_bdev(handle);
#endif
}

/* It was open for writing if it has a holder: see target.c. */
static inline void compat_bdev_close(struct compat_bdev_handle *handle,
				     void *holder)
{
#if COMPAT_KERNEL_BEFORE(6, 5)
	blkdev_put(handle, FMODE_READ |
		   (holder ? FMODE_WRITE | FMODE_EXCL : 0));
#elif COMPAT_KERNEL_BEFORE(6, 9)
	blkdev_put(handle, holder);
#else
	bdev_fput(handle);
#endif
}

/*
 * The page cache of a block device is its file's mapping since 6.9; the inode
 * that has it left struct block_device with 6.10 (203c1ce0bb06 "RIP ->bd_inode").
 * Goes with support for 6.8.
 */
static inline struct address_space *
compat_bdev_mapping(struct compat_bdev_handle *handle)
{
#if !COMPAT_KERNEL_BEFORE(6, 9)
	return handle->f_mapping;
#else
	return compat_bdev(handle)->bd_inode->i_mapping;
#endif
}

/*
 * bdev_nr_bytes() came with 5.16 (6436bd90f76e "block: add a bdev_nr_bytes
 * helper"). Goes with support for 5.15.
 */
static inline loff_t compat_bdev_nr_bytes(struct block_device *bdev)
{
#if COMPAT_KERNEL_BEFORE(5, 16)
	return i_size_read(bdev->bd_inode);
#else
	return bdev_nr_bytes(bdev);
#endif
}

/*
 * bdev_nowait() came with 5.19 (568ec936bf13 "block: replace
 * blk_queue_nowait with bdev_nowait"); what it asks of the queue changed in
 * 6.11 along with the other features. Until 6.1 every request-based queue had
 * the flag set for it. Goes with support for 5.18.
 */
static inline bool compat_bdev_nowait(struct block_device *bdev)
{
#if COMPAT_KERNEL_BEFORE(5, 19)
	return blk_queue_nowait(bdev_get_queue(bdev));
#else
	return bdev_nowait(bdev);
#endif
}

/*
 * blkdev_issue_flush() lost its gfp_mask in 5.12 (c6bf3f0e25f4 "block: use an
 * on-stack bio in blkdev_issue_flush"). Goes with support for 5.11.
 */
static inline int compat_blkdev_issue_flush(struct block_device *bdev)
{
#if COMPAT_KERNEL_BEFORE(5, 12)
	return blkdev_issue_flush(bdev, GFP_KERNEL);
#else
	return blkdev_issue_flush(bdev);
#endif
}

#endif /* IOPATH_COMPAT_BDEV_H */
