// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/biogenN: files and their operations.
 *
 * read(2) and write(2) use ->read() and ->write(), which need no iterator and no
 * iocb. All other system calls use ->read_iter() and ->write_iter().
 */
#include <linux/compat.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "biogen.h"
#include "compat/file.h"
#include "reg.h"
#include "target.h"

static int biogen_open(struct inode *inode, struct file *file)
{
	struct biogen_device *bg = container_of(inode->i_cdev,
						struct biogen_device, cdev);
	struct biogen_file *bf;

	if ((file->f_mode & FMODE_WRITE) && !bg->target.holder)
		return -EACCES;

	bf = kzalloc(sizeof(*bf), GFP_KERNEL_ACCOUNT);
	if (!bf)
		return -ENOMEM;
	bf->bg = bg;
	bf->file = file;
	mutex_init(&bf->lock);
	file->private_data = bf;

	compat_file_allow_direct(file, bg->target.mapping);
	file->f_mode |= FMODE_NOWAIT;
	return 0;
}

static int biogen_release(struct inode *inode, struct file *file)
{
	struct biogen_file *bf = file->private_data;

	if (biogen_has_regs(file))
		biogen_regs_release(bf->regs);
	kfree(bf);
	return 0;
}

/*
 * For targets without REQ_NOWAIT, which may always wait. io_uring would leave
 * each request to a worker. If the submitting thread exits first, the worker
 * cancels the request, unless the file is regular or a block device. So
 * io_uring submits by itself, as io_submit() does. A program that asks not to
 * wait is refused as on the block device; in a request of io_uring, the two
 * cannot be told apart.
 */
static int biogen_allow_wait(struct kiocb *iocb)
{
	if (!(iocb->ki_flags & IOCB_NOWAIT))
		return 0;
	if (is_sync_kiocb(iocb) || compat_iocb_is_aio(iocb))
		return -EOPNOTSUPP;
	iocb->ki_flags &= ~IOCB_NOWAIT;
	return 0;
}

static ssize_t biogen_read_iter_wait(struct kiocb *iocb, struct iov_iter *to)
{
	return biogen_allow_wait(iocb) ?: biogen_read_iter(iocb, to);
}

static ssize_t biogen_write_iter_wait(struct kiocb *iocb, struct iov_iter *from)
{
	return biogen_allow_wait(iocb) ?: biogen_write_iter(iocb, from);
}

static loff_t biogen_llseek(struct file *file, loff_t offset, int whence)
{
	struct biogen_file *bf = file->private_data;

	return fixed_size_llseek(file, offset, whence,
				 compat_bdev_nr_bytes(bf->bg->target.bdev));
}

static int biogen_fsync(struct file *file, loff_t start, loff_t end,
			int datasync)
{
	struct biogen_file *bf = file->private_data;
	struct biogen_device *bg = bf->bg;
	int err;

	/* Also write back what others have written to the page cache. */
	if (bg->coherent) {
		err = filemap_write_and_wait_range(bg->target.mapping, start,
						   end);
		if (err)
			return err;
	}
	err = compat_blkdev_issue_flush(bg->target.bdev);
	/* A device without a write cache needs no flush. */
	return err == -EOPNOTSUPP ? 0 : err;
}

static int biogen_info(struct biogen_device *bg,
		       struct biogen_info __user *uinfo)
{
	struct block_device *bdev = bg->target.bdev;
	struct biogen_info info = {
		.flags		= (bg->target.holder ? BIOGEN_INFO_WRITE : 0) |
				  (bg->coherent ? BIOGEN_INFO_COHERENT : 0),
		.size		= compat_bdev_nr_bytes(bdev),
		.block_size	= bdev_logical_block_size(bdev),
		.dev		= new_encode_dev(bdev->bd_dev),
	};

	return copy_to_user(uinfo, &info, sizeof(info)) ? -EFAULT : 0;
}

/* The ioctls by which programs query a block device. */
static int biogen_size_info(struct block_device *bdev, unsigned int cmd,
			    void __user *to)
{
	u64 size = compat_bdev_nr_bytes(bdev);
	unsigned int value;

	switch (cmd) {
	case BLKGETSIZE64:
		return put_user(size, (u64 __user *)to);
	case BLKGETSIZE:
		return put_user((unsigned long)(size >> SECTOR_SHIFT),
				(unsigned long __user *)to);
	case BLKSSZGET:
		value = bdev_logical_block_size(bdev);
		break;
	case BLKPBSZGET:
		value = bdev_physical_block_size(bdev);
		break;
	case BLKIOMIN:
		value = bdev_io_min(bdev);
		break;
	case BLKIOOPT:
		value = bdev_io_opt(bdev);
		break;
	case BLKROGET:
		value = bdev_read_only(bdev);
		break;
	default:
		return -ENOTTY;
	}
	return put_user(value, (unsigned int __user *)to);
}

static long biogen_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct biogen_register __user *reg = (void __user *)arg;
	struct biogen_file *bf = file->private_data;

	switch (cmd) {
	case BIOGEN_INFO:
		return biogen_info(bf->bg, (struct biogen_info __user *)arg);
	case BIOGEN_RUN:
		return biogen_gen_run(file, (struct biogen_run __user *)arg);
	case BIOGEN_REGISTER:
	case BIOGEN_UNREGISTER:
		if (!IS_ENABLED(CONFIG_MMU_NOTIFIER))
			return -EOPNOTSUPP;
		return cmd == BIOGEN_REGISTER ? biogen_register(file, reg) :
						biogen_unregister(file, reg);
	default:
		return biogen_size_info(bf->bg->target.bdev, cmd,
					(void __user *)arg);
	}
}

#ifdef CONFIG_COMPAT
/* BLKGETSIZE64 of a program of 32 bits: its number contains a size_t. */
#define BIOGEN_BLKGETSIZE64_32	_IOR(0x12, 114, compat_size_t)

/* All other structures are the same for programs of 32 bits. */
static long biogen_compat_ioctl(struct file *file, unsigned int cmd,
				unsigned long arg)
{
	struct biogen_file *bf = file->private_data;
	u64 size = compat_bdev_nr_bytes(bf->bg->target.bdev);

	switch (cmd) {
	case BIOGEN_BLKGETSIZE64_32:
		return put_user(size, (u64 __user *)compat_ptr(arg));
	case BLKGETSIZE:
		size >>= SECTOR_SHIFT;
		if (size > ~(compat_ulong_t)0)
			return -EFBIG;
		return put_user(size, (compat_ulong_t __user *)compat_ptr(arg));
	default:
		return compat_ptr_ioctl(file, cmd, arg);
	}
}
#else
#define biogen_compat_ioctl	NULL
#endif

/* Called for each close(2): stops the run of the process that closes. */
static int biogen_flush(struct file *file, fl_owner_t owner)
{
	biogen_gen_stop(file->private_data, owner);
	return 0;
}

/* All but reading and writing. */
#define BIOGEN_FOPS						\
	.owner		= THIS_MODULE,				\
	.open		= biogen_open,				\
	.release	= biogen_release,			\
	.flush		= biogen_flush,				\
	.iopoll		= compat_iopoll,			\
	.llseek		= biogen_llseek,			\
	.fsync		= biogen_fsync,				\
	.unlocked_ioctl	= biogen_ioctl,				\
	.compat_ioctl	= biogen_compat_ioctl

static const struct file_operations biogen_nowait_fops = {
	BIOGEN_FOPS,
	.read		= biogen_read,
	.write		= biogen_write,
	.read_iter	= biogen_read_iter,
	.write_iter	= biogen_write_iter,
};

static const struct file_operations biogen_wait_fops = {
	BIOGEN_FOPS,
	.read		= biogen_read,
	.write		= biogen_write,
	.read_iter	= biogen_read_iter_wait,
	.write_iter	= biogen_write_iter_wait,
};

/**
 * biogen_fops() - choose the file operations of a device
 * @bg: the device; its target is open
 *
 * Return: those for a target with or without REQ_NOWAIT.
 */
const struct file_operations *biogen_fops(const struct biogen_device *bg)
{
	struct block_device *bdev = bg->target.bdev;

	return compat_bdev_nowait(bdev) && !compat_bdev_splits_page(bdev) ?
	       &biogen_nowait_fops : &biogen_wait_fops;
}
