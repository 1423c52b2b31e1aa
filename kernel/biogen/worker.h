/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A run of the generator and its workers, one thread per CPU.
 */
#ifndef BIOGEN_WORKER_H
#define BIOGEN_WORKER_H

#include <linux/sched.h>
#include <linux/wait.h>

#include <uapi/biogen.h>

#include "io.h"

/**
 * struct biogen_slot - a bio of a worker
 * @ring: the next bio
 * @start: time of submission, if latencies are recorded
 * @pos: position of the I/O in flight
 * @busy: in flight
 * @io: the bio, with a table of one segment
 */
struct biogen_slot {
	struct biogen_io *ring;
	u64 start;
	loff_t pos;
	bool busy;
	struct biogen_io io;
};

static __always_inline struct biogen_slot *biogen_slot(struct biogen_io *io)
{
	return container_of(io, struct biogen_slot, io);
}

/**
 * struct biogen_worker - a thread and its I/O
 * @gen: the run
 * @task: the thread
 * @css: @ready of a bio that can be submitted as it is; never BIOGEN_NOT_READY
 * @io: the next bio to use, in a ring of run.depth bios: the oldest
 * @busy: number of bios in flight
 * @buffer: memory of all bios
 * @opf: operation and flags, unless reads and writes are mixed
 * @same: each I/O is like the one before
 * @until: latest end of the round, or 0
 * @random: state of the random number generator
 * @pos: position of the next I/O, unless at random
 * @step: distance to the next position
 * @start: start of the area
 * @end: end of the area
 * @job: counts and times of the rounds, as the program gets them
 * @writes: I/Os that were writes; counted only if they are mixed with reads
 * @irqs: device interrupts on the CPU before the current round
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
	struct biogen_job job;
	u64 writes;
	unsigned long irqs;
	struct biogen_round *rounds;
};

/**
 * struct biogen_gen - a run
 * @bg: the device
 * @run: the parameters
 * @owner: the files_struct that started it; its close() stops the run
 * @stop: 0, or the state in which the run ends early
 * @missing: workers that have not reached the barrier yet
 * @turn: number of times that the barrier was passed
 * @running: workers that have not finished
 * @wait: where the ioctl waits for @running to become 0
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

/**
 * biogen_gen_end_early() - end a run before all I/O is done
 * @gen: the run
 * @state: BIOGEN_STOPPED or BIOGEN_FAILED; the first one is reported
 */
static inline void biogen_gen_end_early(struct biogen_gen *gen, int state)
{
	cmpxchg(&gen->stop, 0, state);
}

int biogen_worker_create(struct biogen_worker *w, struct biogen_gen *gen,
			 unsigned int index, unsigned int cpu);
void biogen_worker_destroy(struct biogen_worker *w);

#endif /* BIOGEN_WORKER_H */
