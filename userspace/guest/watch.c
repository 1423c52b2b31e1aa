// SPDX-License-Identifier: GPL-2.0
/*
 * What watches I/O: programs of BPF at tracepoints, filters of system calls, and
 * watches on files.
 */
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "steps.h"

static int bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

/* Attach a program that returns 0 to a tracepoint. */
const char *attach_bpf(const char *tracepoint)
{
	static const struct bpf_insn program[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
	attr.insns = (uintptr_t)program;
	attr.insn_cnt = sizeof(program) / sizeof(*program);
	attr.license = (uintptr_t)"GPL";
	fd = bpf(BPF_PROG_LOAD, &attr);
	if (fd < 0)
		return "BPF_PROG_LOAD";
	memset(&attr, 0, sizeof(attr));
	attr.raw_tracepoint.name = (uintptr_t)tracepoint;
	attr.raw_tracepoint.prog_fd = fd;
	if (bpf(BPF_RAW_TRACEPOINT_OPEN, &attr) < 0)
		return "BPF_RAW_TRACEPOINT_OPEN";
	return NULL;
}

/*
 * Filter the system calls of this program and of those that it starts; all are
 * allowed. The kernel caches the result of a filter that depends only on the
 * number of the call. It must run a filter that looks at an argument each time.
 */
const char *filter_syscalls(int by_argument)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 by_argument ? offsetof(struct seccomp_data, args) :
				       offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffff, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_LOG),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {
		.len = sizeof(filter) / sizeof(*filter),
		.filter = filter,
	};

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return "PR_SET_SECCOMP";
	return NULL;
}

/* Ask for events of reads and writes; nobody reads them. */
const char *watch_fanotify(const char *path)
{
	int fd = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC, O_RDONLY);

	if (fd < 0)
		return "fanotify_init";
	if (fanotify_mark(fd, FAN_MARK_ADD, FAN_ACCESS | FAN_MODIFY, AT_FDCWD,
			  path))
		return "fanotify_mark";
	return NULL;
}

const char *watch_inotify(const char *path)
{
	int fd = inotify_init1(IN_CLOEXEC);

	if (fd < 0)
		return "inotify_init";
	if (inotify_add_watch(fd, path, IN_ACCESS | IN_MODIFY) < 0)
		return "inotify_add_watch";
	return NULL;
}
