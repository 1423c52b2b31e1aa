// SPDX-License-Identifier: GPL-2.0
/*
 * The slow parts of submission: make a bio ready if it is not, and let it go if
 * it ends later.
 */
#include <linux/bio.h>
#include <linux/sched.h>

#include "submit.h"

/**
 * biogen_end_io() - end_io() of a bio that did not end during submission
 * @bio: of a struct biogen_io
 *
 * Context: Any.
 */
void biogen_end_io(struct bio *bio)
{
	struct biogen_io *io = container_of(bio, struct biogen_io, bio);

	io->end(io);
}

/**
 * biogen_io_setup() - initialise the bio
 * @io: not in flight; afterwards, it is not ready
 */
void biogen_io_setup(struct biogen_io *io)
{
	biogen_io_leave_cgroup(io);
	compat_bio_init(&io->bio, io->bg->target.bdev, io->vecs, io->max_vecs);
	io->bio.bi_end_io = biogen_end_io;
}

#ifdef CONFIG_BLK_CGROUP
/**
 * biogen_io_enter_other() - charge a bio to a cgroup that may be another one
 * @io: not in flight
 * @css: biogen_current_css(), kept by biogen_lock_css()
 *
 * A kthread may work for a task of another cgroup, and a cgroup that is being
 * removed has its parent's blkg. A bio that is charged to another cgroup than @css
 * must be seen again next time.
 */
void biogen_io_enter_other(struct biogen_io *io,
			   struct cgroup_subsys_state *css)
{
	struct bio *bio = &io->bio;

	if (current->flags & PF_KTHREAD)
		bio_associate_blkg(bio);
	else
		bio_associate_blkg_from_css(bio, css);
	io->ready = compat_bio_css(bio) == css ? css : BIOGEN_NOT_READY;
}
#endif
