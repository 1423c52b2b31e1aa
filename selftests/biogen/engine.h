/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ways in which a program does I/O, with one interface.
 */
#ifndef SELFTEST_ENGINE_H
#define SELFTEST_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define ENGINE_DEPTH	64

enum engine_kind {
	ENGINE_SYNC,		/* pread(2), and preadv(2) for more buffers */
	ENGINE_VECTOR,		/* preadv2(2) */
	ENGINE_AIO,
	ENGINE_URING,
	ENGINE_FIXED,		/* io_uring with registered buffers */
	ENGINE_POLLED,		/* io_uring with IORING_SETUP_IOPOLL */
};

struct ring {
	int fd;
	void *map;
	size_t map_size;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
	uint32_t *sq_tail, *sq_array, sq_mask;
	uint32_t *cq_head, *cq_tail, cq_mask;
};

struct engine {
	enum engine_kind kind;
	unsigned long aio;
	struct ring ring;
};

/**
 * struct op - an I/O
 * @fd: the file
 * @write: direction
 * @iov: the buffers
 * @nr: how many of them there are
 * @buffer: number of the registered buffer that @iov lies in
 * @offset: position
 * @result: bytes, or a negative errno
 */
struct op {
	int fd;
	bool write;
	struct iovec *iov;
	int nr;
	int buffer;
	off_t offset;
	long result;
};

int engine_init(struct engine *engine, enum engine_kind kind,
		const struct iovec *buffers, unsigned int nr);
void engine_exit(struct engine *engine);

/* Whether an I/O may be in flight with others. */
bool engine_is_async(const struct engine *engine);

/* Start @nr I/Os, at most ENGINE_DEPTH of them, without waiting for any. */
int engine_start(struct engine *engine, struct op *ops, unsigned int nr);
/* Wait until they have ended. Return: 0 or a negative errno. */
int engine_finish(struct engine *engine, struct op *ops, unsigned int nr);
int engine_run(struct engine *engine, struct op *ops, unsigned int nr);

#endif /* SELFTEST_ENGINE_H */
