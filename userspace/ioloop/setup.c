// SPDX-License-Identifier: GPL-2.0
/*
 * What a job needs before its first I/O: a processor, a priority, the open
 * device, buffers, and what its engine sets up.
 */
#include <fcntl.h>
#include <linux/ioprio.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../kernel/include/uapi/biogen.h"
#include "engine.h"
#include "machine.h"
#include "memory.h"
#include "scatter.h"
#include "setup.h"

static bool bind_to_cpu(struct job *job)
{
	cpu_set_t *set;
	int ret;

	if (job->cpu < 0)
		return true;
	set = CPU_ALLOC(MAX_CPUS);
	if (!set) {
		job_error(job, "CPU_ALLOC", 0, 0, -ENOMEM);
		return false;
	}
	CPU_ZERO_S(CPU_ALLOC_SIZE(MAX_CPUS), set);
	CPU_SET_S((size_t)job->cpu, CPU_ALLOC_SIZE(MAX_CPUS), set);
	ret = sched_setaffinity(0, CPU_ALLOC_SIZE(MAX_CPUS), set);
	CPU_FREE(set);
	if (ret)
		job_error(job, "sched_setaffinity", 0, 0, -errno);
	return !ret;
}

static bool set_priority(struct job *job)
{
	const struct sched_param param = {
		.sched_priority = (int)job->o->rtprio,
	};

	if (!job->o->rtprio)
		return true;
	if (sched_setscheduler(0, SCHED_FIFO, &param)) {
		job_error(job, "sched_setscheduler", 0, 0, -errno);
		return false;
	}
	return true;
}

static bool set_io_priority(struct job *job)
{
	const uint64_t level = job->o->prio;
	const uint64_t class = job->o->prioclass;

	if (!class && !level)
		return true;
	if (syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
		    class << IOPRIO_CLASS_SHIFT | level)) {
		job_error(job, "ioprio_set", 0, 0, -errno);
		return false;
	}
	return true;
}

static int open_file(const struct job *job)
{
	int flags = options_write(job->o) ? O_RDWR : O_RDONLY;

	/* Commands do not use the page cache. */
	if (job->o->direct && !(job->o->engine->flags & ENGINE_COMMANDS))
		flags |= O_DIRECT;
	return open(job->dev->name, flags | O_CLOEXEC);
}

/* The open file that all jobs of a device share. It is closed at the end. */
static int open_once(const struct job *job)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static int fds[MAX_DEVICES];	/* 0: not open yet */
	int *fd = &fds[job->index / job->o->numjobs];

	pthread_mutex_lock(&lock);
	if (*fd <= 0)
		*fd = open_file(job);
	pthread_mutex_unlock(&lock);
	return *fd;
}

static bool open_device(struct job *job)
{
	job->fd = job->o->share_file ? open_once(job) : open_file(job);
	if (job->fd < 0)
		job_error(job, "open", 0, 0, -errno);
	return job->fd >= 0;
}

static bool make_buffers(struct job *job)
{
	const int huge = job->o->hugepages ? MAP_HUGETLB : 0;
	size_t size, at;
	int err;

	job->stride = machine_stride(job->o);
	size = machine_buffer_bytes(job->o);
	job->buffers = map_in_few_tables(size, huge);
	if (job->buffers == MAP_FAILED) {
		job->buffers = NULL;
		job_error(job, "mmap", 0, size, -errno);
		return false;
	}
	err = job->o->scatter ? scatter(job->buffers, size) : 0;
	if (err) {
		job_error(job, "scatter", 0, size, err);
		return false;
	}
	for (at = 0; at < size; at += PAGE)
		job->buffers[at] = 0x5a;
	job->res->locked = !mlock(job->buffers, size);
	job->buffers += job->o->mem_offset;
	return true;
}

/*
 * Register the buffers with biogen, or end the registration. It must last to
 * the end: otherwise I/O would continue by another path.
 */
static bool register_memory(struct job *job, bool begin)
{
	struct biogen_register range = {
		.addr = (uintptr_t)job->buffers,
		.length = machine_buffer_bytes(job->o),
	};

	if (ioctl(job->fd, begin ? BIOGEN_REGISTER : BIOGEN_UNREGISTER,
		  &range)) {
		job_error(job, begin ? "BIOGEN_REGISTER" : "BIOGEN_UNREGISTER",
			  0, range.length, -errno);
		return false;
	}
	job->registered = begin;
	return true;
}

/**
 * setup_job() - get a job all that it needs
 * @job: the job
 *
 * Return: true, or false after job_error(). setup_undo() is for either case.
 */
bool setup_job(struct job *job)
{
	const struct engine *e = job->o->engine;

	job->stat_fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	if (!bind_to_cpu(job) || !set_priority(job) || !set_io_priority(job))
		return false;
	if (job->dev && (!open_device(job) || !make_buffers(job)))
		return false;
	if (e->setup && !e->setup(job))
		return false;
	if (job->o->registermem && !register_memory(job, true))
		return false;
	return true;
}

/**
 * setup_undo() - undo setup_job(), as far as it came
 * @job: the job
 */
void setup_undo(struct job *job)
{
	const struct engine *e = job->o->engine;

	if (job->registered)
		register_memory(job, false);
	if (e->cleanup)
		e->cleanup(job);
	if (job->buffers)
		munmap((void *)((uintptr_t)job->buffers & ~(PAGE - 1)),
		       machine_buffer_bytes(job->o));
	if (job->fd >= 0 && !job->o->share_file)
		close(job->fd);
	if (job->stat_fd >= 0)
		close(job->stat_fd);
}
