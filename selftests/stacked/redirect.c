// SPDX-License-Identifier: GPL-2.0
/*
 * Block devices that pass a bio itself on to another device: they make no clone
 * but change the caller's own bio. nvme multipath changes its device; md from
 * 5.9 to 5.13, and a bcache without a cache, also set their own bi_end_io.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "compat/bdev.h"
#include "compat/disk.h"

#define REDIRECT_MAX	4
/* Data is this far from where the caller says, in sectors. */
#define REDIRECT_SHIFT	2048

static char *lower[REDIRECT_MAX];
static int nr_lower;
module_param_array(lower, charp, &nr_lower, 0444);
MODULE_PARM_DESC(lower, "Paths of the devices that bios are handed on to");

static bool hook;
module_param(hook, bool, 0444);
MODULE_PARM_DESC(hook, "Replace bi_end_io of each bio");

/**
 * struct redirect - a device
 * @handle: holds the lower device
 * @bdev: the lower device
 * @disk: the device that is offered
 */
struct redirect {
	struct compat_bdev_handle *handle;
	struct block_device *bdev;
	struct gendisk *disk;
};

static struct redirect redirects[REDIRECT_MAX];

/**
 * struct redirect_hook - the bi_end_io and bi_private that a bio had before
 * @end_io: the caller's
 * @private: the caller's
 */
struct redirect_hook {
	bio_end_io_t *end_io;
	void *private;
};

static void redirect_end_io(struct bio *bio)
{
	struct redirect_hook *saved = bio->bi_private;

	bio->bi_end_io = saved->end_io;
	bio->bi_private = saved->private;
	kfree(saved);
	if (bio->bi_end_io)
		bio->bi_end_io(bio);
}

static compat_submit_bio_t redirect_submit_bio(struct bio *bio)
{
	struct redirect *redirect = compat_bio_disk(bio)->private_data;

	if (hook) {
		struct redirect_hook *saved;

		saved = kmalloc(sizeof(*saved), GFP_NOIO | __GFP_NOFAIL);
		saved->end_io = bio->bi_end_io;
		saved->private = bio->bi_private;
		bio->bi_end_io = redirect_end_io;
		bio->bi_private = saved;
	}
	bio_set_dev(bio, redirect->bdev);
	if (bio_sectors(bio))
		bio->bi_iter.bi_sector += REDIRECT_SHIFT;
	submit_bio_noacct(bio);
	return COMPAT_SUBMIT_BIO_DONE;
}

static const struct block_device_operations redirect_fops = {
	.owner		= THIS_MODULE,
	.submit_bio	= redirect_submit_bio,
};

static int redirect_create(struct redirect *redirect, int index)
{
	struct queue_limits lim = {
		.logical_block_size	= 512,
		.physical_block_size	= 512,
		.max_hw_sectors		= UINT_MAX,
		.max_segments		= USHRT_MAX,
		.max_segment_size	= UINT_MAX,
		COMPAT_LIMITS(511, 0)
	};
	struct gendisk *disk;
	sector_t sectors;
	int err;

	redirect->handle = compat_bdev_open(lower[index], true, redirect);
	if (IS_ERR(redirect->handle))
		return PTR_ERR(redirect->handle);
	redirect->bdev = compat_bdev(redirect->handle);
	sectors = compat_bdev_nr_bytes(redirect->bdev) >> SECTOR_SHIFT;
	if (sectors <= REDIRECT_SHIFT) {
		err = -EINVAL;
		goto close;
	}
	disk = compat_alloc_disk(NULL, &lim, 511, 0, NUMA_NO_NODE, NULL);
	if (IS_ERR(disk)) {
		err = PTR_ERR(disk);
		goto close;
	}
	disk->flags |= GENHD_FL_NO_PART;
	disk->fops = &redirect_fops;
	disk->private_data = redirect;
	snprintf(disk->disk_name, sizeof(disk->disk_name), "redirect%d", index);
	set_capacity(disk, sectors - REDIRECT_SHIFT);
	err = compat_add_disk(disk, NULL);
	if (err)
		goto put_disk;
	redirect->disk = disk;
	return 0;

put_disk:
	compat_end_queue(disk);
	put_disk(disk);
close:
	compat_bdev_close(redirect->handle, redirect);
	return err;
}

static void redirect_destroy(struct redirect *redirect)
{
	del_gendisk(redirect->disk);
	compat_end_queue(redirect->disk);
	put_disk(redirect->disk);
	compat_bdev_close(redirect->handle, redirect);
}

static int __init redirect_init(void)
{
	int err, i;

	for (i = 0; i < nr_lower; i++) {
		err = redirect_create(&redirects[i], i);
		if (err)
			goto destroy;
	}
	return nr_lower ? 0 : -EINVAL;

destroy:
	while (i--)
		redirect_destroy(&redirects[i]);
	return err;
}

static void __exit redirect_exit(void)
{
	int i;

	for (i = 0; i < nr_lower; i++)
		redirect_destroy(&redirects[i]);
}

module_init(redirect_init);
module_exit(redirect_exit);

MODULE_DESCRIPTION("Block devices that hand a caller's bio on, for the selftests");
MODULE_LICENSE("GPL");
