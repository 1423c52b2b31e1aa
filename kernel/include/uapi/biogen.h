/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * biogen: what a program asks of /dev/biogenN beyond reading and writing.
 */
#ifndef _UAPI_BIOGEN_H
#define _UAPI_BIOGEN_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * No valid choice is zero: a forgotten field is an error, not a default. What is
 * added later is a flag, a choice or a reserved field: a module that does not know
 * it refuses it (EINVAL). A structure of another size has another ioctl number
 * (ENOTTY).
 */

/* Where the next I/O goes. */
enum biogen_pattern {
	BIOGEN_FIXED		= 1,	/* always to the start of the area */
	BIOGEN_SEQUENTIAL	= 2,	/* on through the area, and round again */
	BIOGEN_RANDOM		= 3,	/* to any block of the area */
};

/* How completions are waited for. */
enum biogen_wait {
	BIOGEN_ASYNC		= 1,	/* the oldest, when depth is reached */
	BIOGEN_POLLED		= 2,	/* the same, asking the device */
};

/* biogen_run.flags */
#define BIOGEN_LATENCY		0x01 /* fill the histograms; costs time */
#define BIOGEN_MARK		0x02 /* marker instructions round rounds */

#define BIOGEN_FLAGS		(BIOGEN_LATENCY | BIOGEN_MARK)

/* biogen_run.state */
#define BIOGEN_DONE		1	/* count or duration reached */
#define BIOGEN_STOPPED		2	/* ended by a signal or by close */
#define BIOGEN_FAILED		3	/* ended by an I/O error */

/* Limits, which biogen_run is checked against (-EINVAL). */
#define BIOGEN_MAX_DEPTH	4096
#define BIOGEN_MAX_BLOCK_SIZE	1048576
#define BIOGEN_MAX_ROUNDS	65536
#define BIOGEN_MAX_REGION	65535

/* Jobs of all runs on a device, for each possible CPU; more are -EBUSY. */
#define BIOGEN_MAX_CPU_JOBS	4

/* Bucket n of the histogram counts I/Os of 2^n to 2^(n+1) - 1 ns. */
#define BIOGEN_BUCKETS		40

/**
 * struct biogen_round - one timed round of one CPU
 * @ios: (out) I/Os completed
 * @ns: (out) nanoseconds from the first submission to the last completion
 * @cycles: (out) the same by the CPU's cycle counter, 0 where it has none
 * @ticks: (out) interrupts of the timer and of devices that fell into the
 *	round, on its CPU: not 0 means disturbed
 */
struct biogen_round {
	__u64 ios;
	__u64 ns;
	__u64 cycles;
	__u64 ticks;
};

/**
 * struct biogen_job - what one CPU is to do, and did
 * @cpu: (in) its number; no two jobs on the same one
 * @error: (out) errno of the first I/O that failed, or 0
 * @error_offset: (out) where that was, in bytes
 * @error_write: (out) 1 if it was a write
 * @reserved: (in) must be 0
 * @ios: (out) I/Os completed, failed ones included
 * @reads: (out) how many of them were reads
 * @errors: (out) how many of them failed
 * @bytes: (out) bytes moved without an error
 * @ns: (out) nanoseconds in the timed rounds
 * @cycles: (out) the same in cycles
 * @idle_ns: (out) the part of @ns in which the thread waited for completions
 * @latency: (out) histogram, if BIOGEN_LATENCY
 */
struct biogen_job {
	__u32 cpu;
	__s32 error;
	__u64 error_offset;
	__u32 error_write;
	__u32 reserved;
	__u64 ios;
	__u64 reads;
	__u64 errors;
	__u64 bytes;
	__u64 ns;
	__u64 cycles;
	__u64 idle_ns;
	__u64 latency[BIOGEN_BUCKETS];
};

/**
 * struct biogen_run - generate I/O from threads in the kernel
 * @flags: (in) BIOGEN_LATENCY and so on
 * @pattern: (in) enum biogen_pattern
 * @wait: (in) enum biogen_wait
 * @write_percent: (in) 0 to 100; other than 0 needs a file open for writing
 *	and a device that is not read-only
 * @block_size: (in) bytes per I/O, a multiple of the logical block size
 * @depth: (in) I/Os in flight per CPU, 1 to BIOGEN_MAX_DEPTH
 * @batch: (in) I/Os per plug, 1 (no plug) to @depth
 * @nr_jobs: (in) entries in @jobs
 * @rounds: (in) rounds per job, 1 to BIOGEN_MAX_ROUNDS
 * @region: (in) number of the region, if BIOGEN_MARK
 * @offset: (in) start of the area in bytes, a multiple of the logical block
 * @length: (in) length of the area, or 0: to the end of the device
 * @ios: (in) I/Os per round and job, or 0: as many as @duration_ns allows
 * @duration_ns: (in) when a round ends at the latest, or 0: only by @ios; above
 *	2^63 - 1, as that
 * @warmup_ios: (in) I/Os before the first round, not counted
 * @seed: (in) of the random numbers; job n uses @seed + n
 * @jobs: (in) address of an array of struct biogen_job
 * @round_results: (in) address of @nr_jobs times @rounds struct biogen_round,
 *	those of the first job first; or 0
 * @state: (out) BIOGEN_DONE and so on
 * @reserved: (in) must be 0
 *
 * All jobs begin each round together. A round ends with nothing in flight. The
 * results are written if the call returns 0, for any @state.
 */
struct biogen_run {
	__u32 flags;
	__u32 pattern;
	__u32 wait;
	__u32 write_percent;
	__u32 block_size;
	__u32 depth;
	__u32 batch;
	__u32 nr_jobs;
	__u32 rounds;
	__u32 region;
	__u64 offset;
	__u64 length;
	__u64 ios;
	__u64 duration_ns;
	__u64 warmup_ios;
	__u64 seed;
	__u64 jobs;
	__u64 round_results;
	__u32 state;
	__u32 reserved[7];
};

/* struct biogen_info.flags */
#define BIOGEN_INFO_WRITE	0x01 /* the target may be written */
#define BIOGEN_INFO_COHERENT	0x02 /* coherent with its page cache */

/**
 * struct biogen_info - what the file is bound to
 * @size: (out) bytes on the target
 * @flags: (out) BIOGEN_INFO_WRITE and so on
 * @block_size: (out) logical block size of the target
 * @dev: (out) device number of the target, as makedev() makes it
 * @reserved: (out) 0
 */
struct biogen_info {
	__u64 size;
	__u32 flags;
	__u32 block_size;
	__u32 dev;
	__u32 reserved[5];
};

/* Registered ranges of an open file, of all processes; more are -ENOSPC. */
#define BIOGEN_MAX_REGISTERED	16
/* Bytes of a registered range; more are -EINVAL. */
#define BIOGEN_MAX_REGISTER	(1ULL << 30)

/**
 * struct biogen_register - memory that is pinned once, for many reads and writes
 * @addr: (in) its address
 * @length: (in) its length in bytes, 1 to BIOGEN_MAX_REGISTER
 * @segments: (out) BIOGEN_REGISTER: number of segments of physically contiguous
 *	memory that it consists of
 * @reserved: (in) must be 0
 *
 * BIOGEN_REGISTER pins the pages and keeps them pinned. From then on, reads and
 * writes through this open file whose buffer, or each of whose buffers, lies
 * inside a registered range use these pages. Nothing else changes for the
 * program. Only the process that registered uses the range, and the threads and
 * children that share its memory (CLONE_VM); the reads and writes of other
 * processes pin their memory as before.
 *
 * A registration ends by BIOGEN_UNREGISTER, when the last file descriptor is
 * closed, and when any part of the range is unmapped, remapped or replaced
 * (munmap, mremap, MADV_DONTNEED, a hole punched into its file, execve and so
 * on) or loses the permission to be written. All of the registration ends then;
 * reads and writes pin their memory again, as before BIOGEN_REGISTER. Those in
 * flight finish on the pages that they began with.
 *
 * If none of them is in flight, the pages are unpinned and the charge to
 * RLIMIT_MEMLOCK is back when BIOGEN_UNREGISTER or the last close returns.
 * Otherwise that happens soon after the last of them has ended; and soon after a
 * registration has ended in another way.
 *
 * A signal does not make BIOGEN_REGISTER fail: after the handler, it begins again.
 *
 * Errors of BIOGEN_REGISTER:
 *
 * * EINVAL: a reserved field is not 0, or the length is out of range
 * * EFAULT: the range is not all mapped, or not all of it may be written
 * * EEXIST: it overlaps a range that the process has registered with this file
 * * ENOSPC: the file has BIOGEN_MAX_REGISTERED ranges
 * * ENOMEM: RLIMIT_MEMLOCK would be exceeded (CAP_IPC_LOCK exempts), or there is
 *   no memory
 * * EOPNOTSUPP: it has a mapping of a file that is not on tmpfs or hugetlbfs, or
 *   the kernel has no MMU notifiers
 * * EAGAIN: the range kept changing while it was pinned
 *
 * Errors of BIOGEN_UNREGISTER, which takes the same address and length:
 *
 * * EINVAL: a reserved field or @segments is not 0
 * * ENOENT: there is no such registration, or it has ended
 */
struct biogen_register {
	__u64 addr;
	__u64 length;
	__u32 segments;
	__u32 reserved[3];
};

/* BIOGEN_RUN needs CAP_SYS_ADMIN. */
#define BIOGEN_RUN		_IOWR(0xbf, 0x01, struct biogen_run)
#define BIOGEN_INFO		_IOR(0xbf, 0x02, struct biogen_info)
#define BIOGEN_REGISTER		_IOWR(0xbf, 0x03, struct biogen_register)
#define BIOGEN_UNREGISTER	_IOW(0xbf, 0x04, struct biogen_register)

#endif /* _UAPI_BIOGEN_H */
