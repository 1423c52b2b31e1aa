// SPDX-License-Identifier: GPL-2.0
/*
 * The generator: a run, from the ioctl to its results. worker.c has the threads
 * that submit the bios.
 */
#include <linux/capability.h>
#include <linux/cpumask.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "biogen.h"
#include "worker.h"

/* Check the parameters and fill in defaults. Return: 0 or an error. */
static int biogen_check_run(struct file *file, struct biogen_run *run)
{
	struct biogen_file *bf = file->private_data;
	struct block_device *bdev = bf->bg->target.bdev;
	unsigned int block_mask = bdev_logical_block_size(bdev) - 1;
	loff_t size = compat_bdev_nr_bytes(bdev);
	u32 rest;

	if (run->flags & ~BIOGEN_FLAGS || run->state ||
	    memchr_inv(run->reserved, 0, sizeof(run->reserved)))
		return -EINVAL;
	if (run->pattern < BIOGEN_FIXED || run->pattern > BIOGEN_RANDOM ||
	    run->wait < BIOGEN_ASYNC || run->wait > BIOGEN_POLLED ||
	    run->write_percent > 100)
		return -EINVAL;
	if (!run->block_size || run->block_size > BIOGEN_MAX_BLOCK_SIZE ||
	    run->block_size & block_mask)
		return -EINVAL;
	if (!run->depth || run->depth > BIOGEN_MAX_DEPTH || !run->batch ||
	    run->batch > run->depth)
		return -EINVAL;
	if (!run->nr_jobs || run->nr_jobs > num_online_cpus() ||
	    !run->rounds || run->rounds > BIOGEN_MAX_ROUNDS ||
	    run->region > BIOGEN_MAX_REGION ||
	    (run->region && !(run->flags & BIOGEN_MARK)))
		return -EINVAL;
	if (!run->ios && !run->duration_ns)
		return -EINVAL;
	/* The sum with a monotonic time must not overflow. */
	run->duration_ns = min_t(u64, run->duration_ns, S64_MAX);
	if (run->offset >= size || run->offset & block_mask)
		return -EINVAL;
	if (!run->length)
		run->length = size - run->offset;
	div_u64_rem(run->length, run->block_size, &rest);
	run->length -= rest;
	if (!run->length || run->length > size - run->offset)
		return -EINVAL;
	if (run->write_percent && !(file->f_mode & FMODE_WRITE))
		return -EBADF;
	if (run->write_percent && bdev_read_only(bdev))
		return -EPERM;
	if (run->wait == BIOGEN_POLLED && !compat_bdev_can_poll(bdev))
		return -EOPNOTSUPP;
	return 0;
}

/*
 * Drop the pages of the area from the page cache, if it is written; first write
 * them back, if @write_back. Return: 0, or -EBUSY if a page keeps getting redirtied,
 * or another error.
 */
static int biogen_gen_drop(struct biogen_gen *gen, bool write_back)
{
	struct address_space *mapping = gen->bg->target.mapping;
	u64 start = gen->run.offset, end = start + gen->run.length - 1;
	int err = 0;

	if (!gen->bg->coherent || !mapping->nrpages)
		return 0;
	if (write_back)
		err = filemap_write_and_wait_range(mapping, start, end);
	if (err || !gen->run.write_percent)
		return err;
	return invalidate_inode_pages2_range(mapping, start >> PAGE_SHIFT,
					     end >> PAGE_SHIFT);
}

static void biogen_gen_go(struct biogen_gen *gen)
{
	unsigned int i;

	atomic_set(&gen->missing, gen->run.nr_jobs);
	atomic_set(&gen->running, gen->run.nr_jobs);
	for (i = 0; i < gen->run.nr_jobs; i++)
		wake_up_process(gen->workers[i].task);
	/* Pairs with the threads' atomic_dec_and_test(), after their results. */
	if (wait_event_interruptible(gen->wait,
				     !atomic_read_acquire(&gen->running))) {
		biogen_gen_end_early(gen, BIOGEN_STOPPED);
		wait_event(gen->wait, !atomic_read_acquire(&gen->running));
	}
	gen->run.state = gen->stop ?: BIOGEN_DONE;
}

/* Copy what the workers have counted to the program. Return: 0 or -EFAULT. */
static int biogen_gen_results(struct biogen_gen *gen,
			      struct biogen_run __user *urun)
{
	struct biogen_run *run = &gen->run;
	struct biogen_round __user *urounds = u64_to_user_ptr(run->round_results);
	struct biogen_job __user *ujobs = u64_to_user_ptr(run->jobs);
	unsigned int i;

	for (i = 0; i < run->nr_jobs; i++) {
		struct biogen_worker *w = &gen->workers[i];
		struct biogen_job *job = &w->job;

		if (run->write_percent < 100)
			job->reads = job->ios - w->writes;
		/* Errors of the warm-up count, but its I/Os do not. */
		if (job->ios > job->errors)
			job->bytes = (job->ios - job->errors) * run->block_size;
		if (copy_to_user(&ujobs[i], job, sizeof(*job)))
			return -EFAULT;
		if (urounds &&
		    copy_to_user(&urounds[(size_t)i * run->rounds], w->rounds,
				 run->rounds * sizeof(*w->rounds)))
			return -EFAULT;
	}
	return put_user(run->state, &urun->state);
}

/*
 * Register the run. A file has at most one, because close() stops it, and the
 * number of jobs per device is limited.
 */
static int biogen_gen_enter(struct biogen_file *bf, struct biogen_gen *gen)
{
	unsigned int limit = BIOGEN_MAX_CPU_JOBS * num_possible_cpus();
	int err = -EBUSY;

	mutex_lock(&bf->lock);
	if (bf->gen)
		goto unlock;
	if (atomic_add_return(gen->run.nr_jobs, &gen->bg->jobs) > limit) {
		atomic_sub(gen->run.nr_jobs, &gen->bg->jobs);
		goto unlock;
	}
	bf->gen = gen;
	err = 0;
unlock:
	mutex_unlock(&bf->lock);
	return err;
}

static void biogen_gen_leave(struct biogen_file *bf, struct biogen_gen *gen)
{
	mutex_lock(&bf->lock);
	bf->gen = NULL;
	mutex_unlock(&bf->lock);
	atomic_sub(gen->run.nr_jobs, &gen->bg->jobs);
}

/**
 * biogen_gen_run() - ioctl BIOGEN_RUN
 * @file: open biogen device
 * @urun: parameters and results
 *
 * Context: Process context, sleeps until the run has ended.
 * Return: 0 or an error.
 */
long biogen_gen_run(struct file *file, struct biogen_run __user *urun)
{
	struct biogen_file *bf = file->private_data;
	struct biogen_job __user *ujobs;
	struct biogen_gen *gen;
	struct biogen_run run;
	unsigned int i, j;
	int err;

	/* The threads run on any CPU and outside the caller's cgroup. */
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (copy_from_user(&run, urun, sizeof(run)))
		return -EFAULT;
	err = biogen_check_run(file, &run);
	if (err)
		return err;
	gen = kvzalloc(struct_size(gen, workers, run.nr_jobs), GFP_KERNEL);
	if (!gen)
		return -ENOMEM;
	gen->bg = bf->bg;
	gen->run = run;
	gen->owner = (fl_owner_t)current->files;
	init_waitqueue_head(&gen->wait);
	err = biogen_gen_enter(bf, gen);
	if (err)
		goto free_gen;

	ujobs = u64_to_user_ptr(run.jobs);
	for (i = 0; i < run.nr_jobs; i++) {
		struct biogen_job job;

		err = -EFAULT;
		if (copy_from_user(&job, &ujobs[i], sizeof(job)))
			goto destroy_workers;
		err = -EINVAL;
		if (job.reserved || job.cpu >= nr_cpu_ids ||
		    !cpu_online(job.cpu))
			goto destroy_workers;
		for (j = 0; j < i; j++)
			if (gen->workers[j].job.cpu == job.cpu)
				goto destroy_workers;
		err = biogen_worker_create(&gen->workers[i], gen, i, job.cpu);
		if (err)
			goto destroy_workers;
	}

	err = biogen_gen_drop(gen, true);
	if (err)
		goto destroy_workers;
	biogen_gen_go(gen);
	/* A page that cannot be dropped was dirtied during the run, and stays. */
	biogen_gen_drop(gen, false);
	err = biogen_gen_results(gen, urun);

destroy_workers:
	for (i = 0; i < run.nr_jobs; i++)
		if (gen->workers[i].gen)
			biogen_worker_destroy(&gen->workers[i]);
	biogen_gen_leave(bf, gen);
free_gen:
	kvfree(gen);
	return err;
}

/**
 * biogen_gen_stop() - stop the run of a file when its owner closes the file
 * @bf: the file
 * @owner: the files_struct that closes it
 */
void biogen_gen_stop(struct biogen_file *bf, fl_owner_t owner)
{
	mutex_lock(&bf->lock);
	if (bf->gen && bf->gen->owner == owner)
		biogen_gen_end_early(bf->gen, BIOGEN_STOPPED);
	mutex_unlock(&bf->lock);
}
