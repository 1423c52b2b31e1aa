// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/biogenN: files and their operations.
 *
 * read(2) and write(2) use ->read() and ->write(), which need no iterator and no
 * iocb. All other system calls use ->read_iter() and ->write_iter().
 */
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "biogen.h"
#include "compat/file.h"
#include "gen.h"
#include "rw.h"

static int biogen_open(struct inode *inode, struct file *file)
{
	struct biogen_device *bg = container_of(inode->i_cdev,
						struct biogen_device, cdev);
	struct biogen_file *bf;

	if ((file->f_mode & FMODE_WRITE) && !bg->target.holder)
		return -EACCES;

	bf = kzalloc(sizeof(*bf), GFP_KERNEL);
	if (!bf)
		return -ENOMEM;
	bf->bg = bg;
	mutex_init(&bf->lock);
	file->private_data = bf;

	compat_file_allow_direct(file, bg->target.mapping);
	if (compat_bdev_nowait(bg->target.bdev))
		file->f_mode |= FMODE_NOWAIT;
	return 0;
}

static int biogen_release(struct inode *inode, struct file *file)
{
	kfree(file->private_data);
	return 0;
}

static __always_inline blk_opf_t biogen_write_opf(bool dsync)
{
	return REQ_OP_WRITE | REQ_SYNC | REQ_IDLE | (dsync ? REQ_FUA : 0);
}

/* A buffer that does not fit one small bio needs an iterator and an iocb. */
static noinline ssize_t biogen_rw_long(struct file *file, char __user *buf,
				       size_t count, loff_t *pos, blk_opf_t opf)
{
	struct biogen_file *bf = file->private_data;
	struct iovec iov = { .iov_base = buf, .iov_len = count };
	struct iov_iter iter;
	struct kiocb iocb;
	ssize_t ret;

	init_sync_kiocb(&iocb, file);
	iocb.ki_pos = *pos;
	iov_iter_init(&iter, op_is_write(opf) ? WRITE : READ, &iov, 1, count);
	ret = biogen_rw_iter(bf->bg, &iocb, &iter, opf);
	if (ret > 0)
		*pos += ret;
	return ret;
}

static ssize_t biogen_read(struct file *file, char __user *buf, size_t count,
			   loff_t *pos)
{
	struct biogen_file *bf = file->private_data;
	ssize_t ret = biogen_rw_buf(bf->bg, (unsigned long)buf, count, *pos,
				    REQ_OP_READ);

	if (likely(ret > 0))
		*pos += ret;
	else if (ret == -EMSGSIZE)
		ret = biogen_rw_long(file, buf, count, pos, REQ_OP_READ);
	return ret;
}

static ssize_t biogen_write(struct file *file, const char __user *buf,
			    size_t count, loff_t *pos)
{
	struct biogen_file *bf = file->private_data;
	blk_opf_t opf = biogen_write_opf(file->f_flags & O_DSYNC);
	ssize_t ret = biogen_rw_buf(bf->bg, (unsigned long)buf, count, *pos,
				    opf);

	if (likely(ret > 0))
		*pos += ret;
	else if (ret == -EMSGSIZE)
		ret = biogen_rw_long(file, (char __user *)buf, count, pos, opf);
	return ret;
}

static ssize_t biogen_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct biogen_file *bf = iocb->ki_filp->private_data;

	/* A buffer registered with io_uring is already pinned. */
	if (iov_iter_is_bvec(to))
		return biogen_read_bvec(bf->bg, iocb, to);
	return biogen_rw_iter(bf->bg, iocb, to, REQ_OP_READ);
}

static ssize_t biogen_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	struct biogen_file *bf = iocb->ki_filp->private_data;
	blk_opf_t opf = biogen_write_opf(iocb->ki_flags & IOCB_DSYNC);

	if (iov_iter_is_bvec(from))
		return biogen_write_bvec(bf->bg, iocb, from, opf);
	return biogen_rw_iter(bf->bg, iocb, from, opf);
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
		.version	= BIOGEN_VERSION,
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
	struct biogen_file *bf = file->private_data;

	switch (cmd) {
	case BIOGEN_INFO:
		return biogen_info(bf->bg, (struct biogen_info __user *)arg);
	case BIOGEN_RUN:
		return biogen_gen_run(file, (struct biogen_run __user *)arg);
	default:
		return biogen_size_info(bf->bg->target.bdev, cmd,
					(void __user *)arg);
	}
}

/* Called for each close(2): stops the run of the process that closes. */
static int biogen_flush(struct file *file, fl_owner_t owner)
{
	biogen_gen_stop(file->private_data, owner);
	return 0;
}

const struct file_operations biogen_fops = {
	.owner		= THIS_MODULE,
	.open		= biogen_open,
	.release	= biogen_release,
	.flush		= biogen_flush,
	.read		= biogen_read,
	.write		= biogen_write,
	.read_iter	= biogen_read_iter,
	.write_iter	= biogen_write_iter,
	.iopoll		= compat_iopoll,
	.llseek		= biogen_llseek,
	.fsync		= biogen_fsync,
	.unlocked_ioctl	= biogen_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
};
