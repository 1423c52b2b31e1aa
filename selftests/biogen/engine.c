// SPDX-License-Identifier: GPL-2.0
/*
 * The ways in which a program does I/O, by direct system calls.
 */
#include <errno.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine.h"

static int ring_init(struct ring *r, unsigned int flags,
		     const struct iovec *buffers, unsigned int nr)
{
	struct io_uring_params p = { .flags = flags };
	size_t cq_size;

	r->fd = syscall(SYS_io_uring_setup, ENGINE_DEPTH, &p);
	if (r->fd < 0)
		return -errno;
	r->map_size = p.sq_off.array + p.sq_entries * sizeof(uint32_t);
	cq_size = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
	if (cq_size > r->map_size)
		r->map_size = cq_size;
	r->map = mmap(NULL, r->map_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		      r->fd, IORING_OFF_SQ_RING);
	r->sqes = mmap(NULL, p.sq_entries * sizeof(*r->sqes),
		       PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
		       IORING_OFF_SQES);
	if (r->map == MAP_FAILED || r->sqes == MAP_FAILED)
		return -errno;
	r->sq_tail = r->map + p.sq_off.tail;
	r->sq_array = r->map + p.sq_off.array;
	r->sq_mask = p.sq_entries - 1;
	r->cq_head = r->map + p.cq_off.head;
	r->cq_tail = r->map + p.cq_off.tail;
	r->cq_mask = p.cq_entries - 1;
	r->cqes = r->map + p.cq_off.cqes;
	if (nr && syscall(SYS_io_uring_register, r->fd, IORING_REGISTER_BUFFERS,
			  buffers, nr))
		return -errno;
	return 0;
}

int engine_init(struct engine *engine, enum engine_kind kind,
		const struct iovec *buffers, unsigned int nr)
{
	memset(engine, 0, sizeof(*engine));
	engine->kind = kind;
	engine->ring.fd = -1;
	switch (kind) {
	case ENGINE_AIO:
		if (syscall(SYS_io_setup, ENGINE_DEPTH, &engine->aio))
			return -errno;
		return 0;
	case ENGINE_URING:
		return ring_init(&engine->ring, 0, NULL, 0);
	case ENGINE_POLLED:
		return ring_init(&engine->ring, IORING_SETUP_IOPOLL, NULL, 0);
	case ENGINE_FIXED:
		return ring_init(&engine->ring, 0, buffers, nr);
	default:
		return 0;
	}
}

void engine_exit(struct engine *engine)
{
	if (engine->aio)
		syscall(SYS_io_destroy, engine->aio);
	if (engine->ring.fd < 0)
		return;
	munmap(engine->ring.map, engine->ring.map_size);
	munmap(engine->ring.sqes, ENGINE_DEPTH * sizeof(struct io_uring_sqe));
	close(engine->ring.fd);
}

bool engine_is_async(const struct engine *engine)
{
	return engine->kind != ENGINE_SYNC && engine->kind != ENGINE_VECTOR;
}

static void sync_run(struct op *op, bool vector)
{
	ssize_t ret;

	if (vector && op->write)
		ret = pwritev2(op->fd, op->iov, op->nr, op->offset, 0);
	else if (vector)
		ret = preadv2(op->fd, op->iov, op->nr, op->offset, 0);
	else if (op->write)
		ret = pwrite(op->fd, op->iov->iov_base, op->iov->iov_len,
			     op->offset);
	else
		ret = pread(op->fd, op->iov->iov_base, op->iov->iov_len,
			    op->offset);
	op->result = ret < 0 ? -errno : ret;
}

static void aio_start(struct engine *engine, struct op *op, unsigned int index)
{
	struct iocb iocb = {
		.aio_data	= index,
		.aio_fildes	= op->fd,
		.aio_lio_opcode	= op->write ? IOCB_CMD_PWRITEV :
					      IOCB_CMD_PREADV,
		.aio_buf	= (unsigned long)op->iov,
		.aio_nbytes	= op->nr,
		.aio_offset	= op->offset,
	};
	struct iocb *list = &iocb;

	if (op->nr == 1) {
		iocb.aio_lio_opcode = op->write ? IOCB_CMD_PWRITE :
						  IOCB_CMD_PREAD;
		iocb.aio_buf = (unsigned long)op->iov->iov_base;
		iocb.aio_nbytes = op->iov->iov_len;
	}
	op->result = -EINPROGRESS;
	if (syscall(SYS_io_submit, engine->aio, 1, &list) != 1)
		op->result = -errno;
}

static void ring_start(struct engine *engine, struct op *op, unsigned int index)
{
	struct ring *r = &engine->ring;
	uint32_t tail = *r->sq_tail;
	struct io_uring_sqe *sqe = &r->sqes[tail & r->sq_mask];

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = op->write ? IORING_OP_WRITEV : IORING_OP_READV;
	sqe->addr = (unsigned long)op->iov;
	sqe->len = op->nr;
	if (engine->kind == ENGINE_FIXED) {
		sqe->opcode = op->write ? IORING_OP_WRITE_FIXED :
					  IORING_OP_READ_FIXED;
		sqe->buf_index = op->buffer;
	} else if (op->nr == 1) {
		sqe->opcode = op->write ? IORING_OP_WRITE : IORING_OP_READ;
	}
	if (op->nr == 1) {
		sqe->addr = (unsigned long)op->iov->iov_base;
		sqe->len = op->iov->iov_len;
	}
	sqe->fd = op->fd;
	sqe->off = op->offset;
	sqe->user_data = index;
	op->result = -EINPROGRESS;
	r->sq_array[tail & r->sq_mask] = tail & r->sq_mask;
	__atomic_store_n(r->sq_tail, tail + 1, __ATOMIC_RELEASE);
}

static int ring_enter(struct ring *r, unsigned int submit, unsigned int wait)
{
	int ret;

	do {
		ret = syscall(SYS_io_uring_enter, r->fd, submit, wait,
			      wait ? IORING_ENTER_GETEVENTS : 0, NULL, 0);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : ret;
}

int engine_start(struct engine *engine, struct op *ops, unsigned int nr)
{
	unsigned int i;
	int ret;

	for (i = 0; i < nr; i++) {
		if (engine->kind == ENGINE_AIO)
			aio_start(engine, &ops[i], i);
		else if (engine_is_async(engine))
			ring_start(engine, &ops[i], i);
		else
			sync_run(&ops[i], ops[i].nr > 1 ||
				 engine->kind == ENGINE_VECTOR);
	}
	if (engine->ring.fd < 0)
		return 0;
	for (i = 0; i < nr; i += ret) {
		ret = ring_enter(&engine->ring, nr - i, 0);
		if (ret <= 0)
			return ret ? ret : -EIO;
	}
	return 0;
}

static int aio_reap(struct engine *engine, struct op *ops)
{
	struct io_event event;
	int ret = syscall(SYS_io_getevents, engine->aio, 1, 1, &event, NULL);

	if (ret != 1)
		return ret < 0 ? -errno : -EIO;
	ops[event.data].result = event.res;
	return 0;
}

static int ring_reap(struct engine *engine, struct op *ops)
{
	struct ring *r = &engine->ring;
	uint32_t head = *r->cq_head;
	struct io_uring_cqe *cqe;
	int ret;

	while (__atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE) == head) {
		ret = ring_enter(r, 0, 1);
		if (ret < 0)
			return ret;
	}
	cqe = &r->cqes[head & r->cq_mask];
	ops[cqe->user_data].result = cqe->res;
	__atomic_store_n(r->cq_head, head + 1, __ATOMIC_RELEASE);
	return 0;
}

int engine_finish(struct engine *engine, struct op *ops, unsigned int nr)
{
	unsigned int i;
	int err = 0;

	if (!engine_is_async(engine))
		return 0;
	for (i = 0; !err && i < nr; i++) {
		while (!err && ops[i].result == -EINPROGRESS)
			err = engine->kind == ENGINE_AIO ?
			      aio_reap(engine, ops) : ring_reap(engine, ops);
	}
	return err;
}

int engine_run(struct engine *engine, struct op *ops, unsigned int nr)
{
	int err = engine_start(engine, ops, nr);

	return err ? err : engine_finish(engine, ops, nr);
}
