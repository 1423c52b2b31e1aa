// SPDX-License-Identifier: GPL-2.0
/*
 * The processor's performance counters, for one job. The events are not in a
 * group, so that an event that the processor lacks does not prevent the others.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pmu.h"

#define PERF_TIMEOUT_MS	10000

const char *const pmu_names[NR_PMU_EVENTS] = {
	[PMU_INSTRUCTIONS_USER] = "instructions_user",
	[PMU_INSTRUCTIONS_KERNEL] = "instructions_kernel",
	[PMU_CYCLES_USER] = "cycles_user",
	[PMU_CYCLES_KERNEL] = "cycles_kernel",
	[PMU_CACHE_MISSES] = "cache_misses",
	[PMU_BRANCH_MISSES] = "branch_misses",
	[PMU_CONTEXT_SWITCHES] = "context_switches",
};

static const struct {
	uint32_t type;
	uint64_t config;
	bool no_user;
	bool no_kernel;
} events[NR_PMU_EVENTS] = {
	[PMU_INSTRUCTIONS_USER] = {
		PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, false, true
	},
	[PMU_INSTRUCTIONS_KERNEL] = {
		PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, true, false
	},
	[PMU_CYCLES_USER] = {
		PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false, true
	},
	[PMU_CYCLES_KERNEL] = {
		PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, true, false
	},
	[PMU_CACHE_MISSES] = {
		PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, false, false
	},
	[PMU_BRANCH_MISSES] = {
		PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, false, false
	},
	[PMU_CONTEXT_SWITCHES] = {
		PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, false, false
	},
};

/**
 * pmu_open() - prepare counting for the calling process
 * @fds: NR_PMU_EVENTS of them; -1 for what cannot be counted
 * @counts: NR_PMU_EVENTS of them; gets why an event cannot be counted
 */
void pmu_open(int *fds, struct pmu_count *counts)
{
	struct perf_event_attr attr;
	int i;

	for (i = 0; i < NR_PMU_EVENTS; i++) {
		memset(&attr, 0, sizeof(attr));
		attr.size = sizeof(attr);
		attr.type = events[i].type;
		attr.config = events[i].config;
		attr.disabled = 1;
		attr.exclude_user = events[i].no_user;
		attr.exclude_kernel = events[i].no_kernel;
		attr.exclude_hv = 1;
		attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
				   PERF_FORMAT_TOTAL_TIME_RUNNING;
		fds[i] = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1,
				      PERF_FLAG_FD_CLOEXEC);
		if (fds[i] < 0)
			counts[i].errnum = errno;
	}
}

/**
 * pmu_enable() - count from here
 */
void pmu_enable(void)
{
	prctl(PR_TASK_PERF_EVENTS_ENABLE);
}

/**
 * pmu_disable() - count to here
 */
void pmu_disable(void)
{
	prctl(PR_TASK_PERF_EVENTS_DISABLE);
}

/**
 * pmu_read() - fetch what was counted, and be done with counting
 * @fds: from pmu_open()
 * @counts: what was counted
 */
void pmu_read(int *fds, struct pmu_count *counts)
{
	struct {
		uint64_t value;
		uint64_t enabled;
		uint64_t running;
	} r;
	int i;

	for (i = 0; i < NR_PMU_EVENTS; i++) {
		if (fds[i] < 0)
			continue;
		if (read(fds[i], &r, sizeof(r)) != sizeof(r))
			counts[i].errnum = EIO;
		else if (!r.running)
			counts[i].errnum = EBUSY;
		else
			counts[i].percent = 100 * (double)r.running /
					    (double)r.enabled;
		if (!counts[i].errnum)
			counts[i].value = (uint64_t)((double)r.value * 100 /
						     counts[i].percent);
		close(fds[i]);
	}
}

/* perf says "ack" once what it was told has happened. */
static int perf_acknowledged(int fd)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	char said[16];

	if (poll(&wait, 1, PERF_TIMEOUT_MS) != 1)
		return -ETIMEDOUT;
	return read(fd, said, sizeof(said)) > 0 ? 0 : -EPIPE;
}

/**
 * perf_control() - have a waiting perf count, or stop counting
 * @fifos: "CTL,ACK", as perf record's --control=fifo: has them
 * @command: "enable" or "disable", with a line feed
 *
 * Return: 0 once perf has done so, or a negative errno.
 */
int perf_control(const char *fifos, const char *command)
{
	const char *ack_name = strchr(fifos, ',') + 1;
	const size_t len = strlen(command);
	char ctl_name[PATH_MAX];
	int ctl, ack, err;

	snprintf(ctl_name, sizeof(ctl_name), "%.*s",
		 (int)(ack_name - fifos - 1), fifos);
	/* Do not wait if no perf reads the pipe. */
	ctl = open(ctl_name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (ctl < 0)
		return -errno;
	ack = open(ack_name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (ack < 0) {
		err = -errno;
		goto close_ctl;
	}
	if (write(ctl, command, len) == (ssize_t)len)
		err = perf_acknowledged(ack);
	else
		err = -EPIPE;
	close(ack);
close_ctl:
	close(ctl);
	return err;
}
