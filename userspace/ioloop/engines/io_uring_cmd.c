// SPDX-License-Identifier: GPL-2.0
/*
 * io_uring_cmd: commands of NVMe, past the block device, to a namespace's
 * character device, /dev/ngXnY.
 *
 * Each entry of the submission queue holds a command, which is filled once and
 * keeps its buffer; an I/O only sets its block. A batch is submitted as with
 * io_uring.
 */
#include <linux/nvme_ioctl.h>
#include <stdlib.h>
#include <string.h>

#include "ring.h"

/* Opcodes of the NVM command set. */
#define NVME_WRITE	0x01
#define NVME_READ	0x02

struct commands {
	struct ring ring;
	unsigned int block_shift;
};

static __always_inline
struct nvme_uring_cmd *command(const struct ring *r, uint32_t i)
{
	return (struct nvme_uring_cmd *)r->sqes[2 * i].cmd;
}

static void fill_entries(const struct job *job, const struct commands *c)
{
	const struct ring *r = &c->ring;
	struct nvme_uring_cmd *cmd;
	struct io_uring_sqe *sqe;
	uint32_t i;

	memset(r->sqes, 0, r->sqes_size);
	for (i = 0; i < job->o->iodepth; i++) {
		sqe = &r->sqes[2 * i];
		sqe->opcode = IORING_OP_URING_CMD;
		sqe->cmd_op = NVME_URING_CMD_IO;
		ring_fill_entry(job, r, sqe, i);
		if (job->o->fixedbufs)
			sqe->rw_flags = IORING_URING_CMD_FIXED;
		cmd = command(r, i);
		cmd->opcode = job->cursor.write ? NVME_WRITE : NVME_READ;
		cmd->nsid = job->dev->nvme_namespace;
		cmd->addr = (uint64_t)(job->buffers + i * job->stride);
		cmd->data_len = (uint32_t)job->o->bs;
		/* A command has its number of blocks less one. */
		cmd->cdw12 = (uint32_t)(job->o->bs >> c->block_shift) - 1;
	}
}

static void commands_cleanup(struct job *job)
{
	struct commands *c = job->data;

	if (c)
		ring_close(&c->ring);
	free(c);
}

static bool commands_setup(struct job *job)
{
	struct commands *c = calloc(1, sizeof(*c));
	const char *failed = "calloc";
	long ret = -ENOMEM;

	job->data = c;
	if (c) {
		c->ring.fd = -1;
		c->block_shift = (unsigned int)
			__builtin_ctzll(job->dev->logical_block_size);
		ret = ring_open(job, &c->ring, true, &failed);
	}
	if (ret < 0)
		job_error(job, failed, 0, 0, ret);
	else
		fill_entries(job, c);
	return !ret;
}

/* Report failed I/Os of a batch; returns how many there are. */
static __attribute_noinline__
uint64_t bad_events(struct job *job, uint32_t nr)
{
	const struct commands *c = job->data;
	const struct ring *r = &c->ring;
	const struct io_uring_cqe *cqe;
	const struct nvme_uring_cmd *cmd;
	uint64_t bad = 0, block;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		cqe = &r->cqes[2 * ((*r->cq_head + i) & r->cq_mask)];
		if (!cqe->res)
			continue;
		cmd = command(r, (uint32_t)cqe->user_data);
		block = cmd->cdw10 | (uint64_t)cmd->cdw11 << 32;
		/* A status of NVMe is positive. */
		job_io_error(job, cmd->opcode == NVME_WRITE,
			     block << c->block_shift, cmd->data_len,
			     cqe->res < 0 ? cqe->res : -EIO);
		bad++;
	}
	return bad;
}

static __always_inline
uint64_t commands_loop(struct job *job, uint64_t nr, const bool random)
{
	struct commands *const commands = job->data;
	const unsigned int shift = commands->block_shift;
	struct ring *const r = &commands->ring;
	const struct io_uring_cqe *const cqes = r->cqes;
	const uint32_t cq_mask = r->cq_mask;
	const uint64_t depth = job->o->iodepth;
	const int *const stop = job->stop;
	const struct area a = job->area;
	struct cursor c = job->cursor;
	struct nvme_uring_cmd *cmd;
	uint32_t batch, slot, i;
	uint64_t left = nr, block;
	int32_t bad;

	do {
		batch = (uint32_t)(left < depth ? left : depth);
		slot = *r->sq_tail;
		for (i = 0; i < batch; i++) {
			cmd = command(r, i);
			block = cursor_next(&c, &a, random) >> shift;
			cmd->cdw10 = (uint32_t)block;
			cmd->cdw11 = (uint32_t)(block >> 32);
			ring_put(r, slot + i, i);
		}

		if (unlikely(!ring_do_batch(job, r, batch)))
			break;
		slot = *r->cq_head;
		bad = 0;
		for (i = 0; i < batch; i++)
			bad |= cqes[2 * ((slot + i) & cq_mask)].res;
		left -= batch;
		if (unlikely(bad))
			left += bad_events(job, batch);
		__atomic_store_n(r->cq_head, slot + batch, __ATOMIC_RELEASE);
	} while (left && !stopped(stop));
	cursor_save(job, &c);
	return nr - left;
}

ENGINE_DEFINE_RUN(commands_loop)

const struct engine engine_io_uring_cmd = {
	.name = "io_uring_cmd",
	.flags = ENGINE_FILE | ENGINE_COMMANDS | ENGINE_WARM,
	.max_iodepth = 32768,
	.setup = commands_setup,
	.run = ENGINE_RUN(commands_loop),
	.cleanup = commands_cleanup,
};
