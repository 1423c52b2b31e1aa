// SPDX-License-Identifier: GPL-2.0
/*
 * A server of ublk: a process answers the requests of a block device, by
 * io_uring. It uses the encoded commands, which Linux has since 6.4.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/ublk_cmd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "steps.h"

#define DEPTH		64u		/* requests in flight */
#define SECTORS		(1ul << 21)	/* of the device, 1 GiB */
#define SECTOR_SHIFT	9
#define PAGE_SHIFT	12
#define MOST		(1u << 17)	/* bytes of a request */

#define ADD_DEV		_IOWR('u', UBLK_CMD_ADD_DEV, struct ublksrv_ctrl_cmd)
#define SET_PARAMS	_IOWR('u', UBLK_CMD_SET_PARAMS, struct ublksrv_ctrl_cmd)
#define START_DEV	_IOWR('u', UBLK_CMD_START_DEV, struct ublksrv_ctrl_cmd)
#define FETCH		_IOWR('u', UBLK_IO_FETCH_REQ, struct ublksrv_io_cmd)
#define COMMIT		_IOWR('u', UBLK_IO_COMMIT_AND_FETCH_REQ, struct ublksrv_io_cmd)

/* Since 6.16; not in the headers that this is built with. */
#define AUTO_BUF_REG	(1ull << 11)	/* UBLK_F_AUTO_BUF_REG */

/* A ring whose commands are all IORING_OP_URING_CMD, in SQEs of 128 bytes. */
struct ring {
	int fd;
	unsigned int *sq_tail, *sq_array, sq_mask, added;
	unsigned int *cq_head, *cq_tail, cq_mask;
	struct io_uring_cqe *cqes;
	struct io_uring_sqe *sqes;
};

static const char *open_ring(struct ring *ring, unsigned int entries)
{
	struct io_uring_params p = { .flags = IORING_SETUP_SQE128 };
	size_t sq, cq;
	char *at;

	memset(ring, 0, sizeof(*ring));
	ring->fd = syscall(SYS_io_uring_setup, entries, &p);
	if (ring->fd < 0)
		return "io_uring_setup";
	/* Since 5.4 one mapping has both rings. */
	sq = p.sq_off.array + p.sq_entries * sizeof(unsigned int);
	cq = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
	at = mmap(NULL, sq > cq ? sq : cq, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_POPULATE, ring->fd, IORING_OFF_SQ_RING);
	if (at == MAP_FAILED)
		return "mmap of a ring";
	ring->sqes = mmap(NULL, p.sq_entries * 2 * sizeof(struct io_uring_sqe),
			  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			  ring->fd, IORING_OFF_SQES);
	if (ring->sqes == MAP_FAILED)
		return "mmap of SQEs";
	ring->sq_tail = (unsigned int *)(at + p.sq_off.tail);
	ring->sq_array = (unsigned int *)(at + p.sq_off.array);
	ring->sq_mask = *(unsigned int *)(at + p.sq_off.ring_mask);
	ring->cq_head = (unsigned int *)(at + p.cq_off.head);
	ring->cq_tail = (unsigned int *)(at + p.cq_off.tail);
	ring->cq_mask = *(unsigned int *)(at + p.cq_off.ring_mask);
	ring->cqes = (struct io_uring_cqe *)(at + p.cq_off.cqes);
	return NULL;
}

/* Add the command @op of a file, with @len bytes of payload. */
static void add(struct ring *ring, int fd, unsigned int op, const void *payload,
		size_t len, uint64_t user_data)
{
	unsigned int tail = *ring->sq_tail, at = tail & ring->sq_mask;
	struct io_uring_sqe *sqe = &ring->sqes[2 * at];

	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = op;
	sqe->user_data = user_data;
	memcpy(sqe->cmd, payload, len);
	ring->sq_array[at] = at;
	__atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
	ring->added++;
}

/* Submit what was added, and wait for @nr completions. */
static int enter(struct ring *ring, unsigned int nr)
{
	int done;

	do {
		done = syscall(SYS_io_uring_enter, ring->fd, ring->added, nr,
			       nr ? IORING_ENTER_GETEVENTS : 0, NULL, 0);
		if (done > 0)
			ring->added -= done;
	} while (done < 0 && errno == EINTR);
	return done;
}

/* The next completion, or NULL. It is gone when the head is moved on. */
static struct io_uring_cqe *completion(struct ring *ring)
{
	unsigned int head = *ring->cq_head;

	if (head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE))
		return NULL;
	return &ring->cqes[head & ring->cq_mask];
}

/* Make a table of @nr registered buffers, which are empty. */
static int register_buffers(struct ring *ring, unsigned int nr)
{
	struct io_uring_rsrc_register table = {
		.nr = nr,
		.flags = IORING_RSRC_REGISTER_SPARSE,
	};

	return syscall(SYS_io_uring_register, ring->fd,
		       IORING_REGISTER_BUFFERS2, &table, sizeof(table));
}

static void move_on(struct ring *ring)
{
	__atomic_store_n(ring->cq_head, *ring->cq_head + 1, __ATOMIC_RELEASE);
}

/* Carry out a command of the control device. */
static int control(struct ring *ring, int fd, unsigned int op,
		   const struct ublksrv_ctrl_cmd *command)
{
	int res;

	add(ring, fd, op, command, sizeof(*command), 0);
	if (enter(ring, 1) < 0)
		return -1;
	res = completion(ring)->res;
	move_on(ring);
	if (res < 0) {
		errno = -res;
		return -1;
	}
	return 0;
}

/*
 * Add the command @op for a request. Without @buffers, the kernel registers
 * the request's own pages as the buffer of the request's number, until it ends.
 */
static void add_io(struct ring *ring, int fd, unsigned int op,
		   struct ublksrv_io_cmd *command, const char *buffers)
{
	const unsigned int at = *ring->sq_tail & ring->sq_mask;

	if (buffers)
		command->addr = (uintptr_t)(buffers +
					    (size_t)command->tag * MOST);
	add(ring, fd, op, command, sizeof(*command), command->tag);
	if (!buffers)
		ring->sqes[2 * at].addr = command->tag;
}

/*
 * Tell @ready that requests are awaited, and answer them until the device is
 * stopped: zeroes are read, what is written is dropped. With @zero_copy the
 * data is left as it is. Return the call that failed before.
 */
static const char *answer(const char *device, int ready, bool zero_copy)
{
	struct ublksrv_io_cmd command = { 0 };
	const struct ublksrv_io_desc *requests, *request;
	char written[DEPTH] = { 0 };
	struct io_uring_cqe *cqe;
	struct ring ring;
	const char *failed;
	char *buffers = NULL;
	size_t bytes;
	int fd, op;

	fd = open(device, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return device;
	bytes = sysconf(_SC_PAGESIZE);	/* it holds DEPTH requests */
	requests = mmap(NULL, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd,
			UBLKSRV_CMD_BUF_OFFSET);
	if (requests == MAP_FAILED)
		return "mmap of requests";
	if (!zero_copy)
		buffers = mmap(NULL, (size_t)DEPTH * MOST,
			       PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (buffers == MAP_FAILED)
		return "mmap of buffers";
	failed = open_ring(&ring, DEPTH);
	if (failed)
		return failed;
	if (zero_copy && register_buffers(&ring, DEPTH))
		return "IORING_REGISTER_BUFFERS2";
	for (command.tag = 0; command.tag < DEPTH; command.tag++)
		add_io(&ring, fd, FETCH, &command, buffers);
	if (enter(&ring, 0) < 0)
		return "io_uring_enter";
	cqe = completion(&ring);
	if (cqe) {
		errno = -cqe->res;
		return "UBLK_IO_FETCH_REQ";
	}
	close(ready);
	while (enter(&ring, 1) >= 0) {
		while ((cqe = completion(&ring))) {
			if (cqe->res != UBLK_IO_RES_OK)
				return NULL;
			command.tag = cqe->user_data;
			move_on(&ring);
			request = &requests[command.tag];
			op = ublksrv_get_op(request);
			bytes = (size_t)request->nr_sectors << SECTOR_SHIFT;
			if (op == UBLK_IO_OP_READ && written[command.tag])
				memset(buffers + (size_t)command.tag * MOST, 0, MOST);
			written[command.tag] = buffers && op == UBLK_IO_OP_WRITE;
			command.result = op == UBLK_IO_OP_READ ||
					 op == UBLK_IO_OP_WRITE ? bytes : 0;
			add_io(&ring, fd, COMMIT, &command, buffers);
		}
	}
	return NULL;
}

/*
 * Have a process of its own serve the block device /dev/ublkb@number. With
 * @zero_copy, the kernel gives it the pages of each request, and copies nothing.
 */
const char *serve_ublk(unsigned int number, bool zero_copy)
{
	struct ublksrv_ctrl_dev_info info = {
		.nr_hw_queues = 1,
		.queue_depth = DEPTH,
		.max_io_buf_bytes = MOST,
		.dev_id = number,
		.flags = zero_copy ? AUTO_BUF_REG : 0,
	};
	struct ublk_params params = {
		.len = sizeof(params),
		.types = UBLK_PARAM_TYPE_BASIC,
		.basic = {
			.logical_bs_shift = SECTOR_SHIFT,
			.physical_bs_shift = PAGE_SHIFT,
			.io_opt_shift = PAGE_SHIFT,
			.io_min_shift = SECTOR_SHIFT,
			.max_sectors = MOST >> SECTOR_SHIFT,
			.dev_sectors = SECTORS,
		},
	};
	struct ublksrv_ctrl_cmd command = { .dev_id = number, .queue_id = -1 };
	struct {
		const char *failed;
		int error;
	} answered;
	struct ring ring;
	const char *failed;
	static char device[32];
	int fd, ends[2];
	pid_t child;

	fd = open("/dev/ublk-control", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return "/dev/ublk-control";
	failed = open_ring(&ring, 1);
	if (failed)
		return failed;
	command.addr = (uintptr_t)&info;
	command.len = sizeof(info);
	if (control(&ring, fd, ADD_DEV, &command))
		return "UBLK_CMD_ADD_DEV";
	command.addr = (uintptr_t)&params;
	command.len = sizeof(params);
	if (control(&ring, fd, SET_PARAMS, &command))
		return "UBLK_CMD_SET_PARAMS";
	if (pipe2(ends, O_CLOEXEC))
		return "pipe2";
	snprintf(device, sizeof(device), "/dev/ublkc%u", number);
	child = fork();
	switch (child) {
	case -1:
		return "fork";
	case 0:
		close(ends[0]);
		answered.failed = answer(device, ends[1], zero_copy);
		answered.error = errno;
		if (answered.failed &&
		    write(ends[1], &answered, sizeof(answered)) < 0)
			_exit(1);
		_exit(0);
	}
	close(ends[1]);
	if (read(ends[0], &answered, sizeof(answered)) == sizeof(answered)) {
		errno = answered.error;
		return answered.failed;	/* static, so at the same place in both processes */
	}
	close(ends[0]);
	memset(&command, 0, sizeof(command));
	command.dev_id = number;
	command.queue_id = -1;
	command.data[0] = child;
	if (control(&ring, fd, START_DEV, &command))
		return "UBLK_CMD_START_DEV";
	close(ring.fd);
	close(fd);
	return NULL;
}
