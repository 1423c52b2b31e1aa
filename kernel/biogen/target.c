// SPDX-License-Identifier: GPL-2.0
/*
 * The block device that a biogen device is bound to: open it, close it.
 */
#include "biogen.h"

/**
 * biogen_target_open() - open a block device
 * @target: filled in
 * @path: the block device's path
 * @write: open it for writing, and exclusively: a block device that is mounted
 *	or otherwise in use is refused
 *
 * Context: Process context, may sleep.
 * Return: 0, or the error from opening.
 */
int biogen_target_open(struct biogen_target *target, const char *path,
		       bool write)
{
	target->holder = write ? target : NULL;
	target->handle = compat_bdev_open(path, write, target->holder);
	if (IS_ERR(target->handle))
		return PTR_ERR(target->handle);
	target->bdev = compat_bdev(target->handle);
	target->queue = bdev_get_queue(target->bdev);
	target->mapping = compat_bdev_mapping(target->handle);
	return 0;
}

/**
 * biogen_target_close() - close the block device
 * @target: open, without I/O in flight
 *
 * Context: Process context, may sleep.
 */
void biogen_target_close(struct biogen_target *target)
{
	compat_bdev_close(target->handle, target->holder);
}
