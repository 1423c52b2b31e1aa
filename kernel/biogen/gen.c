// SPDX-License-Identifier: GPL-2.0
/*
 * The generator: bios from kernel threads, one bound to each CPU asked for. It
 * hands them to the block layer where the character device does, without a
 * system call and without user memory, so that the difference is what those
 * cost.
 */
#include <linux/capability.h>
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/timex.h>
#include <linux/uaccess.h>

#include <iopath/marker.h>

#include "gen.h"
#include "stats.h"
#include "submit.h"

/* Unplugged I/Os between two looks at the clock and at whether to stop. */
#define BIOGEN_CHECK_IOS	64

/**
 * struct biogen_worker - a thread and what it does
 * @gen: the run it is part of
 * @task: the thread
 * @css: what a bio that needs no setting up is set up for
 * @io: the next to use, in a ring of as many as may be in flight: the oldest
 * @busy: how many of them are in flight
 * @buffer: what is read into and written from by all of them
 * @opf: of each I/O, unless reads and writes are mixed
 * @same: each I/O is like the one before
 * @until: when the round ends at the latest, or 0
 * @random: state of the random numbers
 * @pos: where the next I/O goes, unless at random
 * @step: from one I/O to the next
 * @start: start of the area
 * @end: end of the area
 * @stats: counts and times
 * @rounds: results of the rounds
 */
struct biogen_worker {
	struct biogen_gen *gen;
	struct task_struct *task;
	struct cgroup_subsys_state *css;
	struct biogen_io *io;
	unsigned int busy;
	struct page *buffer;
	blk_opf_t opf;
	bool same;
	u64 until;
	u64 random;
	loff_t pos;
	loff_t step;
	loff_t start;
	loff_t end;
	struct biogen_stats stats;
	struct biogen_round *rounds;
};

/**
 * struct biogen_gen - a run
 * @bg: the device
 * @run: what was asked for
 * @owner: who started it: a close by the same ends it
 * @stop: 0, or the state with which it ends early
 * @missing: workers that are not at the gate yet
 * @turn: how often the gate has opened
 * @running: workers that have not finished
 * @wait: where the starter waits for @running to become 0
 * @workers: run.nr_jobs of them
 */
struct biogen_gen {
	struct biogen_device *bg;
	struct biogen_run run;
	fl_owner_t owner;
	int stop;
	atomic_t missing;
	unsigned int turn;
	atomic_t running;
	wait_queue_head_t wait;
	struct biogen_worker workers[];
};

/* The first reason to end early is the one that is reported. */
static void biogen_gen_end_early(struct biogen_gen *gen, int state)
{
	cmpxchg(&gen->stop, 0, state);
}

/* Wait for all workers. Return: false if the run ends instead. */
static bool biogen_gate(struct biogen_gen *gen)
{
	unsigned int turn = READ_ONCE(gen->turn);

	if (atomic_dec_and_test(&gen->missing)) {
		atomic_set(&gen->missing, gen->run.nr_jobs);
		/* Pairs with the load below: the count first, then the turn. */
		smp_store_release(&gen->turn, turn + 1);
	} else {
		/* Awake, so that all go on at the same instant. */
		while (smp_load_acquire(&gen->turn) == turn &&
		       !READ_ONCE(gen->stop)) {
			cpu_relax();
			cond_resched();
		}
	}
	return !READ_ONCE(gen->stop);
}

static u64 biogen_next_random(struct biogen_worker *w)
{
	u64 x = w->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	w->random = x;
	return x * 0x2545f4914f6cdd1dULL;
}

/* Choose place and direction of the next I/O. */
static blk_opf_t biogen_choose(struct biogen_worker *w, loff_t *pos)
{
	const struct biogen_run *run = &w->gen->run;
	blk_opf_t opf = w->opf;

	if (run->pattern == BIOGEN_RANDOM) {
		u64 blocks = w->end - w->start;

		do_div(blocks, run->block_size);
		*pos = w->start + run->block_size *
		       mul_u64_u64_shr(biogen_next_random(w), blocks, 64);
	} else {
		*pos = w->pos;
		w->pos += w->step;
		if (w->pos >= w->end)
			w->pos = w->start;
	}
	if (run->write_percent && run->write_percent < 100 &&
	    mul_u64_u64_shr(biogen_next_random(w), 100, 64) <
	    run->write_percent) {
		opf = (opf & ~REQ_OP_MASK) | REQ_OP_WRITE | REQ_SYNC | REQ_IDLE;
		w->stats.writes++;
	}
	return opf;
}

static void biogen_io_failed(struct biogen_worker *w, struct biogen_io *io,
			     int err, loff_t pos)
{
	biogen_stats_error(&w->stats, err, pos,
			   op_is_write(bio_op(&io->bio)));
	biogen_gen_end_early(w->gen, BIOGEN_FAILED);
}

/* Wait for an I/O in flight. */
static void biogen_reap(struct biogen_worker *w, struct biogen_io *io)
{
	u64 begin = ktime_get_ns();
	int err = biogen_io_wait(io);
	u64 now = ktime_get_ns();

	io->busy = false;
	w->busy--;
	w->stats.idle_ns += now - begin;
	if (w->gen->run.flags & BIOGEN_LATENCY)
		biogen_stats_latency(&w->stats, now - io->start);
	if (err)
		biogen_io_failed(w, io, err, io->own.pos);
}

/* It is time to end the round. */
static bool biogen_round_over(struct biogen_worker *w)
{
	return READ_ONCE(w->gen->stop) ||
	       (w->until && ktime_get_ns() >= w->until);
}

static void biogen_gen_setup(struct biogen_io *io)
{
	biogen_io_setup(io);
	io->bio.bi_vcnt = 1;
}

/*
 * A bio that is not set up: it is in flight, or ended by itself since it was,
 * or is to be set up for each I/O. Return: false if the round is over.
 */
static noinline bool biogen_gen_renew(struct biogen_worker *w,
				      struct biogen_io *io)
{
	if (io->busy) {
		biogen_reap(w, io);
		if (biogen_round_over(w))
			return false;
	}
	biogen_gen_setup(io);
	return true;
}

/*
 * Submit @ios of them, as many at a time as there are bios. This is the loop
 * that the generator's own instructions are counted in: the flags are
 * constants, and what is rare goes another way.
 * Return: how many were not submitted, because the round is over.
 */
static __always_inline u64 biogen_submit_some(struct biogen_worker *w, u64 ios,
					      const bool account,
					      const bool same)
{
	const bool latency = !same && (w->gen->run.flags & BIOGEN_LATENCY);
	const struct cgroup_subsys_state *css = w->css;
	const unsigned int bytes = w->gen->run.block_size;
	struct biogen_io *io = w->io;
	blk_opf_t opf = w->opf;
	loff_t pos = w->pos;
	int err;

	for (; ios; ios--, io = io->ring) {
		if (unlikely(io->css != css) && !biogen_gen_renew(w, io))
			break;
		if (!same)
			opf = biogen_choose(w, &pos);
		if (latency)
			io->start = ktime_get_ns();

		biogen_io_rewind(io, bytes, pos, opf, 0);
		if (unlikely(!biogen_io_submit(io, account))) {
			io->busy = true;
			w->busy++;
			biogen_io_detach(io, pos, bytes);
			continue;
		}
		if (latency)
			biogen_stats_latency(&w->stats,
					     ktime_get_ns() - io->start);
		err = biogen_io_error(io);
		if (unlikely(err))
			biogen_io_failed(w, io, err, pos);
	}
	w->io = io;
	return ios;
}

/*
 * The loops, each a function of its own: beside each other they would keep each
 * other's variables from staying in registers.
 */
static noinline u64 biogen_submit_same(struct biogen_worker *w, u64 ios)
{
	return biogen_submit_some(w, ios, true, true);
}

static noinline u64 biogen_submit_same_noacct(struct biogen_worker *w, u64 ios)
{
	return biogen_submit_some(w, ios, false, true);
}

static noinline u64 biogen_submit_other(struct biogen_worker *w, u64 ios,
					const bool account)
{
	return biogen_submit_some(w, ios, account, false);
}

/* Submit @ios and wait for all. Return: how many it were when it ended. */
static u64 biogen_submit_all(struct biogen_worker *w, u64 ios)
{
	const struct biogen_run *run = &w->gen->run;
	const bool account = run->inject == BIOGEN_SUBMIT_BIO;
	struct blk_plug plug;
	u64 left = ios, some, rest;

	do {
		some = min_t(u64, left, run->batch > 1 ? run->batch :
							 BIOGEN_CHECK_IOS);
		if (run->batch > 1)
			blk_start_plug(&plug);
		if (w->same && account)
			rest = biogen_submit_same(w, some);
		else if (w->same)
			rest = biogen_submit_same_noacct(w, some);
		else
			rest = biogen_submit_other(w, some, account);
		if (run->batch > 1)
			blk_finish_plug(&plug);
		left -= some - rest;
		cond_resched();
	} while (left && !rest && !biogen_round_over(w));

	for (; w->busy; w->io = w->io->ring)
		if (w->io->busy)
			biogen_reap(w, w->io);
	return ios - left;
}

static void biogen_do_round(struct biogen_worker *w, struct biogen_round *round)
{
	const struct biogen_run *run = &w->gen->run;
	u64 begin, cycles, ios = run->ios ?: U64_MAX;
	bool mark = run->flags & BIOGEN_MARK;
	unsigned long ticks;

	if (mark)
		iopath_mark_region(run->region);
	ticks = jiffies;
	begin = ktime_get_ns();
	w->until = run->duration_ns ? begin + run->duration_ns : 0;
	cycles = get_cycles();
	if (mark)
		iopath_mark_begin();
	ios = biogen_submit_all(w, ios);
	if (mark)
		iopath_mark_end();
	round->cycles = get_cycles() - cycles;
	round->ns = ktime_get_ns() - begin;
	round->ticks = jiffies - ticks;
	round->ios = ios;
}

static int biogen_thread(void *data)
{
	struct biogen_worker *w = data;
	struct biogen_gen *gen = w->gen;
	struct biogen_io *first = w->io;
	unsigned int i;

	/* In this thread, because it is its cgroup that they are set up for. */
	do {
		biogen_gen_setup(w->io);
		w->io = w->io->ring;
	} while (w->io != first);
	/* A cgroup that no bio is set up for has each be set up anew. */
	w->css = gen->run.flags & BIOGEN_FRESH ? ERR_PTR(-ESTALE) : first->css;

	if (gen->run.warmup_ios && biogen_gate(gen)) {
		biogen_submit_all(w, gen->run.warmup_ios);
		biogen_stats_restart(&w->stats);
	}
	for (i = 0; i < gen->run.rounds && biogen_gate(gen); i++) {
		biogen_do_round(w, &w->rounds[i]);
		biogen_stats_add_round(&w->stats, &w->rounds[i]);
	}

	if (atomic_dec_and_test(&gen->running))
		wake_up(&gen->wait);
	/* The starter collects its threads, so that none outlives the run. */
	set_current_state(TASK_INTERRUPTIBLE);
	while (!kthread_should_stop()) {
		schedule();
		set_current_state(TASK_INTERRUPTIBLE);
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static void biogen_worker_destroy(struct biogen_worker *w)
{
	struct biogen_io *io, *next;

	if (w->task) {
		kthread_stop(w->task);
		put_task_struct(w->task);
	}
	if (w->io) {
		next = w->io->ring;
		w->io->ring = NULL;
		for (io = next; io; io = next) {
			next = io->ring;
			biogen_io_free(io);
		}
	}
	kvfree(w->rounds);
	if (w->buffer)
		__free_pages(w->buffer, get_order(w->gen->run.block_size));
}

/* On an error, biogen_worker_destroy() frees what is there. */
static int biogen_worker_create(struct biogen_worker *w, struct biogen_gen *gen,
				unsigned int index, unsigned int cpu)
{
	const struct biogen_run *run = &gen->run;
	int node = cpu_to_node(cpu);
	struct task_struct *task;
	unsigned int i;

	w->gen = gen;
	w->rounds = kvcalloc(run->rounds, sizeof(*w->rounds), GFP_KERNEL);
	w->buffer = alloc_pages_node(node, GFP_KERNEL | __GFP_ZERO |
				     __GFP_COMP | __GFP_NOWARN,
				     get_order(run->block_size));
	if (!w->rounds || !w->buffer)
		return -ENOMEM;

	for (i = 0; i < run->depth; i++) {
		struct biogen_io *io = biogen_io_alloc(gen->bg, false);

		if (!io)
			return -ENOMEM;
		io->vecs[0].bv_page = w->buffer;
		io->vecs[0].bv_len = run->block_size;
		io->vecs[0].bv_offset = 0;
		/* Into the ring, behind the one before. */
		io->ring = w->io ? w->io->ring : io;
		if (w->io)
			w->io->ring = io;
		w->io = io;
	}

	w->start = run->offset;
	w->end = run->offset + run->length;
	w->pos = w->start;
	w->step = run->pattern == BIOGEN_SEQUENTIAL ? run->block_size : 0;
	w->opf = run->write_percent == 100 ?
		 REQ_OP_WRITE | REQ_SYNC | REQ_IDLE : REQ_OP_READ;
	if (run->wait == BIOGEN_POLLED)
		w->opf |= REQ_POLLED;
	w->same = run->pattern == BIOGEN_FIXED &&
		  !(run->write_percent && run->write_percent < 100) &&
		  !(run->flags & BIOGEN_LATENCY);
	/* The generator must not begin with 0. */
	w->random = (run->seed + index + 1) * 0x9e3779b97f4a7c15ULL ?: 1;

	task = kthread_create_on_node(biogen_thread, w, node, "biogen/%u", cpu);
	if (IS_ERR(task))
		return PTR_ERR(task);
	get_task_struct(task);
	w->task = task;
	kthread_bind(task, cpu);
	return 0;
}

/* Fill in what was left to the module. Return: 0 or -EINVAL and the like. */
static int biogen_check_run(struct file *file, struct biogen_run *run)
{
	struct biogen_file *bf = file->private_data;
	struct block_device *bdev = bf->bg->target.bdev;
	unsigned int block_mask = bdev_logical_block_size(bdev) - 1;
	loff_t size = compat_bdev_nr_bytes(bdev);
	u32 rest;

	if (run->version != BIOGEN_VERSION)
		return -EPROTONOSUPPORT;
	if (run->flags & ~BIOGEN_FLAGS || run->state ||
	    memchr_inv(run->reserved, 0, sizeof(run->reserved)))
		return -EINVAL;
	if (run->pattern < BIOGEN_FIXED || run->pattern > BIOGEN_RANDOM ||
	    run->inject < BIOGEN_SUBMIT_BIO ||
	    run->inject > BIOGEN_SUBMIT_BIO_NOACCT ||
	    run->wait < BIOGEN_SYNC || run->wait > BIOGEN_POLLED ||
	    run->write_percent > 100)
		return -EINVAL;
	if (!run->block_size || run->block_size > BIOGEN_MAX_BLOCK_SIZE ||
	    run->block_size & block_mask)
		return -EINVAL;
	if (!run->depth || run->depth > BIOGEN_MAX_DEPTH || !run->batch ||
	    run->batch > run->depth ||
	    (run->wait == BIOGEN_SYNC && run->depth != 1))
		return -EINVAL;
	if (!run->nr_jobs || run->nr_jobs > num_online_cpus() ||
	    !run->rounds || run->rounds > BIOGEN_MAX_ROUNDS ||
	    run->region > BIOGEN_MAX_REGION ||
	    (run->region && !(run->flags & BIOGEN_MARK)))
		return -EINVAL;
	if (!run->ios && !run->duration_ns)
		return -EINVAL;
	/* Added to a time of the monotonic clock, it does not wrap. */
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
 * Drop what the page cache holds of the area. Return: 0, or -EBUSY if there is
 * a page that others keep dirtying.
 */
static int biogen_gen_drop(struct biogen_gen *gen)
{
	struct address_space *mapping = gen->bg->target.mapping;
	u64 end = gen->run.offset + gen->run.length - 1;

	if (!gen->bg->coherent || !mapping->nrpages || !gen->run.write_percent)
		return 0;
	return invalidate_inode_pages2_range(mapping,
					     gen->run.offset >> PAGE_SHIFT,
					     end >> PAGE_SHIFT);
}

/* Before a run, what a read or write does each time. */
static int biogen_gen_prepare(struct biogen_gen *gen)
{
	struct address_space *mapping = gen->bg->target.mapping;
	u64 end = gen->run.offset + gen->run.length - 1;
	int err;

	if (!gen->bg->coherent || !mapping->nrpages)
		return 0;
	err = filemap_write_and_wait_range(mapping, gen->run.offset, end);
	return err ?: biogen_gen_drop(gen);
}

static void biogen_gen_go(struct biogen_gen *gen)
{
	unsigned int i;

	atomic_set(&gen->missing, gen->run.nr_jobs);
	atomic_set(&gen->running, gen->run.nr_jobs);
	for (i = 0; i < gen->run.nr_jobs; i++)
		wake_up_process(gen->workers[i].task);
	if (wait_event_interruptible(gen->wait, !atomic_read(&gen->running))) {
		biogen_gen_end_early(gen, BIOGEN_STOPPED);
		wait_event(gen->wait, !atomic_read(&gen->running));
	}
	gen->run.state = gen->stop ?: BIOGEN_DONE;
}

static int biogen_gen_results(struct biogen_gen *gen,
			      struct biogen_run __user *urun)
{
	struct biogen_run *run = &gen->run;
	struct biogen_round __user *urounds = u64_to_user_ptr(run->round_results);
	struct biogen_job __user *ujobs = u64_to_user_ptr(run->jobs);
	unsigned int i;

	for (i = 0; i < run->nr_jobs; i++) {
		struct biogen_worker *w = &gen->workers[i];

		if (biogen_stats_copy(&w->stats, run, &ujobs[i]))
			return -EFAULT;
		if (urounds &&
		    copy_to_user(&urounds[(size_t)i * run->rounds], w->rounds,
				 run->rounds * sizeof(*w->rounds)))
			return -EFAULT;
	}
	return put_user(run->state, &urun->state);
}

/*
 * Only one run per file: its owner is who can stop it. And only so many jobs
 * per device, whatever the number of files.
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
 * @urun: what to do, and the results
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

	/* Its threads run on every CPU, in no cgroup of the caller's. */
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
			if (gen->workers[j].stats.cpu == job.cpu)
				goto destroy_workers;
		biogen_stats_init(&gen->workers[i].stats, job.cpu);
		err = biogen_worker_create(&gen->workers[i], gen, i, job.cpu);
		if (err)
			goto destroy_workers;
	}

	err = biogen_gen_prepare(gen);
	if (err)
		goto destroy_workers;
	biogen_gen_go(gen);
	/* As after any write: a page that cannot be dropped was dirtied since. */
	biogen_gen_drop(gen);
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
 * biogen_gen_stop() - end the run on a file, if it has the owner given
 * @bf: the file
 * @owner: who closes it
 */
void biogen_gen_stop(struct biogen_file *bf, fl_owner_t owner)
{
	mutex_lock(&bf->lock);
	if (bf->gen && bf->gen->owner == owner)
		biogen_gen_end_early(bf->gen, BIOGEN_STOPPED);
	mutex_unlock(&bf->lock);
}
