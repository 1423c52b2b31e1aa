// SPDX-License-Identifier: GPL-2.0
/*
 * Initialise a bio before its first use, and when the task's cgroup changed.
 */
#include <linux/bio.h>
#include <linux/rcupdate.h>

#include "submit.h"

/**
 * biogen_io_setup() - initialise the bio for the device and the current cgroup
 * @io: not in flight
 */
void biogen_io_setup(struct biogen_io *io)
{
	struct cgroup_subsys_state *css;

	biogen_io_put_css(io);
	bio_uninit(&io->bio);
	compat_bio_init(&io->bio, io->bg->target.bdev, io->vecs, io->max_vecs);
	io->bio.bi_end_io = biogen_end_io;

	rcu_read_lock();
	css = biogen_current_css();
#ifdef CONFIG_BLK_CGROUP
	/*
	 * The bio is charged to another cgroup if this one is being removed, or
	 * if a kthread works for another task: initialise again next time.
	 */
	if (compat_bio_css(&io->bio) != css || !css_tryget(css))
		css = NULL;
#endif
	io->css = css;
	rcu_read_unlock();
}
