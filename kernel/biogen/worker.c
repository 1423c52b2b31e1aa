// SPDX-License-Identifier: GPL-2.0
/*
 * A worker of the generator: a kernel thread bound to a CPU, its bios and the
 * loop that submits them. It enters the block layer where the character device
 * does, without a system call and without user memory, so the difference is the
 * cost of those.
 */
#include <linux/kernel_stat.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/timex.h>

#include <iopath/marker.h>

#include "submit.h"
#include "worker.h"

/* Number of I/Os between checks of the clock and of @stop, without a plug. */
#define BIOGEN_CHECK_IOS	64

/*
 * Barrier of all workers. Spins, so that all leave it at the same time.
 * Return: false if the run ends early.
 */
static bool biogen_barrier(struct biogen_gen *gen)
{
	unsigned int turn = READ_ONCE(gen->turn);

	if (atomic_dec_and_test(&gen->missing)) {
		atomic_set(&gen->missing, gen->run.nr_jobs);
		/* Pairs with the load below: @missing is set before @turn. */
		smp_store_release(&gen->turn, turn + 1);
	} else {
		/* Pairs with the store above. */
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

/* Choose position and direction of the next I/O. */
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
		w->writes++;
	}
	return opf;
}

static noinline void biogen_count_error(struct biogen_job *job, int err,
					loff_t pos, bool is_write)
{
	if (!job->errors++) {
		job->error = -err;
		job->error_offset = pos;
		job->error_write = is_write;
	}
}

static void biogen_io_failed(struct biogen_worker *w, struct biogen_io *io,
			     int err, loff_t pos)
{
	biogen_count_error(&w->job, err, pos, op_is_write(bio_op(&io->bio)));
	biogen_gen_end_early(w->gen, BIOGEN_FAILED);
}

/* Record the time from an I/O's submission until the worker saw its end. */
static noinline void biogen_count_latency(struct biogen_worker *w, u64 ns)
{
	unsigned int bucket = ns ? ilog2(ns) : 0;

	w->job.latency[min(bucket, BIOGEN_BUCKETS - 1U)]++;
}

/* Wait for an I/O in flight. */
static void biogen_reap(struct biogen_worker *w, struct biogen_io *io)
{
	struct biogen_slot *slot = biogen_slot(io);
	u64 begin = ktime_get_ns(), now;
	int err;

	biogen_io_wait(io);
	now = ktime_get_ns();
	slot->busy = false;
	w->busy--;
	w->job.idle_ns += now - begin;
	if (w->gen->run.flags & BIOGEN_LATENCY)
		biogen_count_latency(w, now - slot->start);
	err = biogen_io_error(io);
	if (err)
		biogen_io_failed(w, io, err, slot->pos);
}

/* True if the round must end now. */
static bool biogen_round_over(struct biogen_worker *w)
{
	return READ_ONCE(w->gen->stop) ||
	       (w->until && ktime_get_ns() >= w->until);
}

static void biogen_gen_make_ready(struct biogen_io *io)
{
	biogen_rcu_lock();
	biogen_io_make_ready(io, biogen_task_css());
	biogen_rcu_unlock();
	io->bio.bi_io_vec = io->vecs;
	io->bio.bi_vcnt = 1;
}

/*
 * Prepare the next bio if it is not ready: wait for it if it is in flight, then
 * make it ready. Return: false if the round is over.
 */
static noinline bool biogen_gen_renew(struct biogen_worker *w,
				      struct biogen_io *io)
{
	if (biogen_slot(io)->busy) {
		biogen_reap(w, io);
		if (biogen_round_over(w))
			return false;
	}
	biogen_gen_make_ready(io);
	return true;
}

/* The submitted bio ends later. */
static __always_inline void biogen_gen_late(struct biogen_worker *w,
					    struct biogen_io *io, loff_t pos)
{
	biogen_slot(io)->busy = true;
	biogen_slot(io)->pos = pos;
	w->busy++;
	biogen_io_start_wait(io);
}

/*
 * Submit @ios I/Os. The generator's own instructions are those of this loop:
 * the flags are constants, and rare cases are out of line.
 * Return: the number of I/Os not submitted because the round is over.
 */
static __always_inline u64 biogen_submit_some(struct biogen_worker *w, u64 ios,
					      const bool same)
{
	const struct biogen_device *bg = w->gen->bg;
	const bool latency = !same && (w->gen->run.flags & BIOGEN_LATENCY);
	const struct cgroup_subsys_state *css = w->css;
	const unsigned int bytes = w->gen->run.block_size;
	struct biogen_io *io = w->io;
	blk_opf_t opf = w->opf;
	loff_t pos = w->pos;
	int err;

	for (; ios; ios--, io = biogen_slot(io)->ring) {
		if (unlikely(io->ready != css) && !biogen_gen_renew(w, io))
			break;
		if (!same)
			opf = biogen_choose(w, &pos);
		if (latency)
			biogen_slot(io)->start = ktime_get_ns();

		biogen_io_rewind(io, bytes, pos, opf, 0);
		submit_bio(&io->bio);
		if (unlikely(!biogen_io_ended(io, bg))) {
			biogen_gen_late(w, io, same ? w->pos : pos);
			continue;
		}
		if (latency)
			biogen_count_latency(w, ktime_get_ns() -
						biogen_slot(io)->start);
		err = biogen_io_error(io);
		if (unlikely(err))
			biogen_io_failed(w, io, err, pos);
	}
	w->io = io;
	return ios;
}

/*
 * One function per loop: in a single function, the loops would keep each
 * other's variables out of registers.
 */
static noinline u64 biogen_submit_same(struct biogen_worker *w, u64 ios)
{
	return biogen_submit_some(w, ios, true);
}

static noinline u64 biogen_submit_other(struct biogen_worker *w, u64 ios)
{
	return biogen_submit_some(w, ios, false);
}

/* Submit @ios I/Os and wait for all. Return: the number of I/Os done. */
static u64 biogen_submit_all(struct biogen_worker *w, u64 ios)
{
	const struct biogen_run *run = &w->gen->run;
	struct blk_plug plug;
	u64 left = ios, some, rest;

	do {
		some = min_t(u64, left, run->batch > 1 ? run->batch :
							 BIOGEN_CHECK_IOS);
		if (run->batch > 1)
			blk_start_plug(&plug);
		rest = w->same ? biogen_submit_same(w, some) :
				 biogen_submit_other(w, some);
		if (run->batch > 1)
			blk_finish_plug(&plug);
		left -= some - rest;
		cond_resched();
	} while (left && !rest && !biogen_round_over(w));

	for (; w->busy; w->io = biogen_slot(w->io)->ring)
		if (biogen_slot(w->io)->busy)
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

/*
 * Add a round that has ended, and the device interrupts to its ticks. The round
 * itself does not count them, which saves an instruction there.
 */
static void biogen_add_round(struct biogen_worker *w,
			     struct biogen_round *round)
{
	unsigned long irqs = kstat_cpu_irqs_sum(w->job.cpu);

	round->ticks += irqs - w->irqs;
	w->irqs = irqs;
	w->job.ios += round->ios;
	w->job.ns += round->ns;
	w->job.cycles += round->cycles;
}

/* Forget the warm-up, but for its errors. */
static void biogen_restart(struct biogen_worker *w)
{
	w->writes = 0;
	w->job.idle_ns = 0;
	memset(w->job.latency, 0, sizeof(w->job.latency));
	w->irqs = kstat_cpu_irqs_sum(w->job.cpu);
}

static int biogen_thread(void *data)
{
	struct biogen_worker *w = data;
	struct biogen_gen *gen = w->gen;
	struct biogen_io *first = w->io;
	unsigned int i;

	/* Here, because the bios are charged to the thread's cgroup. */
	do {
		biogen_gen_make_ready(w->io);
		w->io = biogen_slot(w->io)->ring;
	} while (w->io != first);
	/*
	 * ERR_PTR(-ESTALE) is no bio's, so each is made ready for each I/O.
	 * BIOGEN_NOT_READY is that of a bio in flight.
	 */
	w->css = first->ready == BIOGEN_NOT_READY ? ERR_PTR(-ESTALE) :
						    first->ready;

	if (gen->run.warmup_ios && biogen_barrier(gen)) {
		biogen_submit_all(w, gen->run.warmup_ios);
		biogen_restart(w);
	}
	for (i = 0; i < gen->run.rounds && biogen_barrier(gen); i++) {
		biogen_do_round(w, &w->rounds[i]);
		biogen_add_round(w, &w->rounds[i]);
	}

	if (atomic_dec_and_test(&gen->running))
		wake_up(&gen->wait);
	/* Wait for kthread_stop(), so that no thread outlives the run. */
	set_current_state(TASK_INTERRUPTIBLE);
	while (!kthread_should_stop()) {
		schedule();
		set_current_state(TASK_INTERRUPTIBLE);
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

/**
 * biogen_worker_destroy() - stop the thread and free the worker's memory
 * @w: from biogen_worker_create(), which may have failed
 */
void biogen_worker_destroy(struct biogen_worker *w)
{
	struct biogen_io *io, *next;

	if (w->task) {
		kthread_stop(w->task);
		put_task_struct(w->task);
	}
	if (w->io) {
		next = biogen_slot(w->io)->ring;
		biogen_slot(w->io)->ring = NULL;
		for (io = next; io; io = next) {
			next = biogen_slot(io)->ring;
			biogen_io_leave_cgroup(io);
			kfree(biogen_slot(io));
		}
	}
	kvfree(w->rounds);
	if (w->buffer)
		__free_pages(w->buffer, get_order(w->gen->run.block_size));
}

/**
 * biogen_worker_create() - create a worker, whose thread does not run yet
 * @w: zeroed
 * @gen: the run
 * @index: number of the job
 * @cpu: its CPU
 *
 * On an error, biogen_worker_destroy() frees what was allocated.
 *
 * Return: 0 or an error.
 */
int biogen_worker_create(struct biogen_worker *w, struct biogen_gen *gen,
			 unsigned int index, unsigned int cpu)
{
	const struct biogen_run *run = &gen->run;
	int node = cpu_to_node(cpu);
	struct task_struct *task;
	unsigned int i;

	w->gen = gen;
	w->job.cpu = cpu;
	w->irqs = kstat_cpu_irqs_sum(cpu);
	w->rounds = kvcalloc(run->rounds, sizeof(*w->rounds), GFP_KERNEL);
	w->buffer = alloc_pages_node(node, GFP_KERNEL | __GFP_ZERO |
				     __GFP_COMP | __GFP_NOWARN,
				     get_order(run->block_size));
	if (!w->rounds || !w->buffer)
		return -ENOMEM;

	for (i = 0; i < run->depth; i++) {
		struct biogen_slot *slot;

		slot = kmalloc_node(struct_size(slot, io.vecs, 1), GFP_KERNEL,
				    node);
		if (!slot)
			return -ENOMEM;
		biogen_io_init(&slot->io, gen->bg, 1);
		slot->io.vecs[0].bv_page = w->buffer;
		slot->io.vecs[0].bv_len = run->block_size;
		slot->io.vecs[0].bv_offset = 0;
		slot->busy = false;
		/* Insert into the ring behind the previous one. */
		slot->ring = w->io ? biogen_slot(w->io)->ring : &slot->io;
		if (w->io)
			biogen_slot(w->io)->ring = &slot->io;
		w->io = &slot->io;
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
	/* xorshift must not start at 0. */
	w->random = (run->seed + index + 1) * 0x9e3779b97f4a7c15ULL ?: 1;

	task = kthread_create_on_node(biogen_thread, w, node, "biogen/%u", cpu);
	if (IS_ERR(task))
		return PTR_ERR(task);
	get_task_struct(task);
	w->task = task;
	kthread_bind(task, cpu);
	return 0;
}
