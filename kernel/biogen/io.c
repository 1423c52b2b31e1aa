// SPDX-License-Identifier: GPL-2.0
/*
 * The life of a struct biogen_io: allocate, keep for the next I/O, free.
 */
#include <linux/bio.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "io.h"

static struct kmem_cache *biogen_small_cache;
static struct kmem_cache *biogen_large_cache;
static struct workqueue_struct *biogen_workqueue;

/**
 * biogen_io_init() - initialise a struct biogen_io
 * @io: new memory
 * @bg: the device
 * @max_vecs: number of segments that there is memory for
 *
 * biogen_io_make_ready() does the rest when a task uses the bio.
 */
void biogen_io_init(struct biogen_io *io, struct biogen_device *bg,
		    unsigned short max_vecs)
{
	memset(io, 0, sizeof(*io));
	io->bg = bg;
	io->max_vecs = max_vecs;
	compat_bio_init(&io->bio, bg->target.bdev, io->vecs, max_vecs);
}

#ifdef CONFIG_BLK_CGROUP
/**
 * biogen_io_enter_other() - charge a bio to a cgroup that may be another one
 * @io: not in flight
 * @css: the cgroup of the current task, kept by biogen_rcu_lock()
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

/**
 * biogen_io_alloc() - allocate a struct biogen_io
 * @bg: the device
 * @large: with BIOGEN_LARGE_VECS segments
 *
 * Return: a bio that is not ready, or NULL.
 */
noinline struct biogen_io *biogen_io_alloc(struct biogen_device *bg, bool large)
{
	struct biogen_io *io;

	io = kmem_cache_alloc(large ? biogen_large_cache : biogen_small_cache,
			      GFP_KERNEL);
	if (io)
		biogen_io_init(io, bg, large ? BIOGEN_LARGE_VECS :
					       BIOGEN_SMALL_VECS);
	return io;
}

/**
 * biogen_io_free() - free a struct biogen_io
 * @io: from biogen_io_alloc(); not in flight, without pages
 */
void biogen_io_free(struct biogen_io *io)
{
	biogen_io_leave_cgroup(io);
	kmem_cache_free(io->max_vecs == BIOGEN_LARGE_VECS ?
			biogen_large_cache : biogen_small_cache, io);
}

/**
 * biogen_io_put_spare() - return a small bio when the CPU already has one
 * @bg: the device
 * @io: the bio
 *
 * Only the CPU's first bio keeps its cgroup, so that an idle device keeps no
 * more than one for each CPU from being freed.
 */
void biogen_io_put_spare(struct biogen_device *bg, struct biogen_io *io)
{
	biogen_io_leave_cgroup(io);
	if (!biogen_io_keep(bg, io))
		biogen_io_free(io);
}

/**
 * biogen_idle_destroy() - free the lists and the bios on them
 * @bg: the device; has no bio in flight
 */
void biogen_idle_destroy(struct biogen_device *bg)
{
	struct biogen_io *io, *next;
	int cpu;

	for_each_possible_cpu(cpu) {
		struct biogen_idle *idle = per_cpu_ptr(bg->idle, cpu);

		if (idle->io)
			biogen_io_free(idle->io);
		for (io = idle->spare; io; io = next) {
			next = io->next;
			biogen_io_free(io);
		}
	}
	free_percpu(bg->idle);
}

/* RCU-safe by type: a bio may be polled while it ends. */
static struct kmem_cache *biogen_io_cache_create(const char *name,
						 unsigned int vecs)
{
	return kmem_cache_create(name, sizeof(struct biogen_io) +
				 vecs * sizeof(struct bio_vec), 0,
				 SLAB_HWCACHE_ALIGN | SLAB_TYPESAFE_BY_RCU,
				 NULL);
}

/**
 * biogen_run_in_task() - run a function in process context
 * @work: its argument
 * @func: the function
 *
 * Context: Any.
 */
void biogen_run_in_task(struct work_struct *work, work_func_t func)
{
	INIT_WORK(work, func);
	queue_work(biogen_workqueue, work);
}

/**
 * biogen_finish_work() - wait for what biogen_run_in_task() was given before
 *
 * Context: Process context, sleeps.
 */
void biogen_finish_work(void)
{
	flush_workqueue(biogen_workqueue);
}

/**
 * biogen_ios_init() - create what all devices share
 *
 * Return: 0 or -ENOMEM.
 */
int biogen_ios_init(void)
{
	biogen_small_cache = biogen_io_cache_create("biogen_small",
						    BIOGEN_SMALL_VECS);
	if (!biogen_small_cache)
		return -ENOMEM;
	biogen_large_cache = biogen_io_cache_create("biogen_large",
						    BIOGEN_LARGE_VECS);
	if (!biogen_large_cache)
		goto destroy_small;
	biogen_workqueue = alloc_workqueue("biogen",
					   WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!biogen_workqueue)
		goto destroy_large;
	return 0;

destroy_large:
	kmem_cache_destroy(biogen_large_cache);
destroy_small:
	kmem_cache_destroy(biogen_small_cache);
	return -ENOMEM;
}

/**
 * biogen_ios_exit() - destroy it; no device is left
 *
 * RCU callbacks queue the work that frees registrations. A task that has
 * completed an iocb may still be in the module's code when the last file is
 * closed.
 */
void biogen_ios_exit(void)
{
	rcu_barrier();
	destroy_workqueue(biogen_workqueue);
	kmem_cache_destroy(biogen_large_cache);
	kmem_cache_destroy(biogen_small_cache);
	synchronize_rcu_tasks();
}
