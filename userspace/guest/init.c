// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of a measuring guest.
 *
 * It mounts the kernel's file systems, carries out the commands in /start and
 * stops the machine, so that the guest can be saved before it has the modules and
 * programs to measure. Before the machine continues, the host puts files into
 * the channel, among them /plan. init unpacks them, carries out the commands in
 * /plan, passes the output of every command to the host and reboots, which ends
 * QEMU. /start and /plan are text files with one command per line, words
 * separated by single spaces:
 *
 *	insmod PATH [PARAMETERS...]	load a module
 *	rmmod NAME			unload a module
 *	quiet SECONDS			wait until background work has ended
 *	age PATH			set the file's times two seconds back
 *	mount TYPE PATH [DEVICE]	mount a file system
 *	umount PATH			unmount it
 *	mkdir PATH			make a folder
 *	rmdir PATH			remove it
 *	link TARGET PATH		make a symbolic link
 *	write PATH TEXT...		write into a file that is there; a word @DEVICE
 *					is replaced by the device's MAJOR:MINOR
 *	write-if PATH TEXT...		the same, or nothing if there is no such file
 *	expect PATH TEXT...		fail unless a file contains the text
 *	sync				write what is dirty
 *	wait PATH			until a device is there, for a minute at most
 *	dm NAME SECTORS TYPE PARAMS...	make a device of device mapper
 *	loop DEVICE FILE		put a loop device on a file
 *	tags DEVICE			search for tags from its queue's first on
 *	nbd DEVICE			serve a network block device
 *	ublk NUMBER [zero-copy]		serve a block device of ublk
 *	up INTERFACE			bring a network interface up
 *	partition DEVICE NUMBER START SECTORS	add a partition
 *	bpf TRACEPOINT			attach a program that does nothing
 *	seccomp nr|args			filter system calls by number, or by argument
 *	fanotify PATH			watch reads and writes of a file
 *	inotify PATH			the same
 *	env NAME VALUE			give programs an environment variable
 *	run NAME PROGRAM [ARGS...]	run a program; its stdout is the record
 *	try SECONDS NAME PROGRAM [ARGS...]	the same; it is killed after this time,
 *					and the plan goes on if it fails
 *	file PATH			a file's content is the record
 *
 * The first command that fails ends the plan.
 *
 * The channel is the memory of an ivshmem device, which is a file on the host. It
 * needs no driver and no console. The memory begins with struct channel; records
 * follow, each a line "NAME STATUS LENGTH" and LENGTH bytes. A record to the
 * guest is a file: its path, 0, and its content. A record from the guest is the
 * output of a command. The host reads the records when state says that they are
 * complete.
 *
 * The machine is stopped by the device pvpanic-pci: the instruction that writes
 * to it is the last one before the stop, so equal guests stop in equal states but
 * for the time, see stop_machine().
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "steps.h"

#define IVSHMEM_ID	"0x1af41110"	/* PCI vendor and device */
#ifdef __aarch64__
#define CHANNEL_BAR	"resource2_wc"	/* takes accesses of any alignment */
#else
#define CHANNEL_BAR	"resource2"	/* the other needs CONFIG_X86_PAT */
#endif
#define PVPANIC_ID	"0x1b360011"
#define PVPANIC_STOP	1
#define INTERRUPT	300000		/* more than a few of them take */
#define OUTPUT		"/output"	/* a running program's stdout */
#define MAX_ARGS	64

enum state {
	STATE_RUNNING = 1,
	STATE_DONE = 2,		/* the whole plan was carried out */
	STATE_FAILED = 3,	/* the last record says what failed */
	STATE_STOPPED = 4,	/* /start was carried out; files are wanted */
};

struct channel {
	char magic[8];		/* "iopath 1" */
	uint64_t length;	/* bytes of complete records behind this struct */
	uint32_t state;		/* enum state, written last */
	uint32_t records;	/* complete records */
};

static struct channel *channel;
static size_t channel_size;

static void power_off(void)
{
	sync();
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

/* Report an error on the console, before the channel is mapped. */
static void die(const char *what)
{
	fprintf(stderr, "init: %s: %s\n", what, strerror(errno));
	power_off();
}

static void finish(enum state state)
{
	__atomic_store_n(&channel->state, state, __ATOMIC_RELEASE);
	power_off();
}

static void record(const char *name, int status, const void *data, size_t len)
{
	char *to = (char *)(channel + 1) + channel->length;
	size_t room = channel_size - sizeof(*channel) - channel->length;
	char head[256];
	int n;

	n = snprintf(head, sizeof(head), "%.200s %d %zu\n", name, status, len);
	if (n + len > room) {
		fprintf(stderr, "init: %s: %zu bytes do not fit\n", name, len);
		finish(STATE_FAILED);
	}
	memcpy(to, head, n);
	memcpy(to + n, data, len);
	channel->length += n + len;
	channel->records++;
}

/* The last record describes the error. */
static void fail(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "init: %s\n", text);
	record("error", 1, text, strlen(text));
	finish(STATE_FAILED);
}

/* Files in /proc and /sys report no size. */
static char *read_file(const char *path, size_t *len)
{
	size_t size = 1 << 16, n = 0;
	char *data = malloc(size);
	ssize_t got;
	int fd;

	fd = open(path, O_RDONLY);
	if (fd < 0)
		return NULL;
	while ((got = read(fd, data + n, size - n - 1)) > 0) {
		n += got;
		if (n == size - 1)
			data = realloc(data, size *= 2);
	}
	close(fd);
	if (got < 0)
		return NULL;
	data[n] = 0;
	*len = n;
	return data;
}

/* Where in its page a resource of a PCI device begins. */
static size_t page_offset(const char *device, int number)
{
	unsigned long long start;
	char path[600], *text, *line;
	size_t len;

	snprintf(path, sizeof(path), "%s/resource", device);
	text = read_file(path, &len);
	for (line = text; line && number--; line = strchr(line + 1, '\n'))
		;
	if (!line)
		die(path);
	start = strtoull(line, NULL, 16);
	free(text);
	return start % sysconf(_SC_PAGESIZE);
}

/* Map a resource of the PCI device with that vendor and device. */
static void *map_device(const char *id, const char *resource, size_t *size)
{
	const char *bus = "/sys/bus/pci/devices";
	struct dirent *entry;
	char path[512], found[32];
	struct stat st;
	size_t len;
	char *text;
	void *at;
	DIR *dir;
	int fd;

	dir = opendir(bus);
	if (!dir)
		die(bus);
	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s/vendor", bus, entry->d_name);
		text = read_file(path, &len);
		if (!text)
			continue;
		snprintf(found, sizeof(found), "%.6s", text);
		free(text);
		snprintf(path, sizeof(path), "%s/%s/device", bus, entry->d_name);
		text = read_file(path, &len);
		if (!text)
			continue;
		snprintf(found + 6, sizeof(found) - 6, "%.4s", text + 2);
		free(text);
		if (strcmp(found, id))
			continue;
		/* Memory of a device decodes only once it is enabled. */
		snprintf(path, sizeof(path), "%s/%s/enable", bus, entry->d_name);
		fd = open(path, O_WRONLY);
		if (fd < 0 || write(fd, "1", 1) != 1)
			die(path);
		close(fd);
		snprintf(path, sizeof(path), "%s/%s/%s", bus, entry->d_name,
			 resource);
		closedir(dir);
		fd = open(path, O_RDWR);
		if (fd < 0 || fstat(fd, &st))
			die(path);
		at = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED,
			  fd, 0);
		if (at == MAP_FAILED)
			die(path);
		close(fd);
		*size = st.st_size;
		*strrchr(path, '/') = 0;
		return (char *)at + page_offset(path, atoi(resource + strlen("resource")));
	}
	errno = ENODEV;
	die(id);
	return NULL;
}

static void open_channel(void)
{
	channel = map_device(IVSHMEM_ID, CHANNEL_BAR, &channel_size);
	/* A fork would copy thousands of page table entries. */
	if (madvise(channel, channel_size, MADV_DONTFORK))
		die("the channel");
	memcpy(channel->magic, "iopath 1", 8);
	channel->state = STATE_RUNNING;
}

/* The guest's clock in ns. Where it counts instructions, each takes one. */
static uint64_t now(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
#endif
}

/* Write what stops a machine, then execute count instructions; not on x86, about as many. */
static __attribute__((noinline)) void write_and_spin(uint8_t *at, uint64_t count)
{
#ifdef __x86_64__
	/*
	 * The kernel's random numbers depend on which instruction is interrupted: the
	 * one after the write, also while it repeats itself.
	 */
	asm volatile("	movb	%1, (%2)\n"
		     "1:	loop	1b\n"
		     : "+c" (count) : "q" ((uint8_t)PVPANIC_STOP), "r" (at) : "memory");
#else
	__atomic_store_n(at, PVPANIC_STOP, __ATOMIC_SEQ_CST);
	for (count /= 2; count; count--)
		asm volatile("");
#endif
}

/*
 * Stop the machine, until the host lets it go on with files in the channel.
 *
 * QEMU's main loop advances the clock to the next timer when no CPU runs. As the
 * machine stops, it may do so or not: the CPU has stopped first, or the main loop
 * has noticed first, depending on the host. So wait until that timer, a tick at
 * the latest, has passed in either case, and end the wait at one instruction.
 * The coarse clock is as coarse as ticks are.
 */
static void stop_machine(void)
{
	struct timespec tick = { .tv_nsec = 10000000 };
	uint8_t *panic, memory;
	uint64_t end, at;
	size_t size;
	int i;

	panic = map_device(PVPANIC_ID, "resource0", &size);
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	__atomic_store_n(&channel->state, STATE_STOPPED, __ATOMIC_RELEASE);
	end = now() + tick.tv_nsec + tick.tv_nsec / 5;
	write_and_spin(panic, 1);
	/* Interrupts make the first wait longer; if one comes now, the second, too. */
	for (i = 0; i < 3; i++, end += INTERRUPT) {
		at = now();
		if (at < end)
			write_and_spin(&memory, end - at);
	}
	panic -= (uintptr_t)panic % sysconf(_SC_PAGESIZE);
	munmap(panic, size);
}

static void make_folders(char *path)
{
	char *slash = path;

	while ((slash = strchr(slash + 1, '/'))) {
		*slash = 0;
		if (mkdir(path, 0755) && errno != EEXIST)
			die(path);
		*slash = '/';
	}
}

/* Unpack the files that the host has put into the channel, and empty it. */
static void take_files(void)
{
	char *at = (char *)(channel + 1), *end = at + channel->length;
	char path[256];
	size_t len;
	int fd, n;

	while (at < end) {
		if (sscanf(at, "%255s 0 %zu%n", path, &len, &n) != 2)
			die("the files in the channel");
		at += n + 1;
		make_folders(path);
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
		if (fd < 0)
			die(path);
		for (; len; len -= n, at += n) {
			n = write(fd, at, len);
			if (n <= 0)
				die(path);
		}
		close(fd);
	}
	channel->length = 0;
	channel->records = 0;
	channel->state = STATE_RUNNING;
}

static void insmod(const char *path, char **args)
{
	char params[1024] = "";
	size_t used = 0;
	int fd, i;

	for (i = 0; args[i]; i++)
		used += snprintf(params + used, sizeof(params) - used, "%s%s",
				 i ? " " : "", args[i]);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || syscall(SYS_finit_module, fd, params, 0))
		fail("insmod %s %s: %s", path, params, strerror(errno));
	close(fd);
}

struct activity {
	unsigned long long interrupts, switches;
};

/* What the kernel has done so far besides running this program. */
static struct activity activity(void)
{
	struct activity a = { 0, 0 };
	char *text, *line;
	size_t len;

	text = read_file("/proc/stat", &len);
	if (!text)
		fail("/proc/stat: %s", strerror(errno));
	line = strstr(text, "\nintr ");
	if (line)
		a.interrupts = strtoull(line + 6, NULL, 10);
	line = strstr(text, "\nctxt ");
	if (line)
		a.switches = strtoull(line + 6, NULL, 10);
	free(text);
	return a;
}

/*
 * Sleep a second at a time until three in a row saw almost nothing happen. Some
 * kernels are never calm: PREEMPT_RT with two CPUs may wake ksoftirqd at each
 * tick. So after a minute it is enough if three seconds see as much as the one
 * before each of them.
 * A sleeping guest's clock jumps ahead, so this costs the host next to nothing.
 */
static void wait_quiet(int limit)
{
	const unsigned int calm = 24, wanted = 3;
	const int patience = 60;
	struct activity before, after;
	unsigned long long last = 0;
	unsigned int quiet = 0;
	char text[4096];
	size_t used = 0;
	int second;

	for (second = 0; second < limit && quiet < wanted; second++) {
		before = activity();
		nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
		after = activity();
		after.interrupts -= before.interrupts;
		after.switches -= before.switches;
		if (after.switches <= calm ||
		    (second >= patience && after.switches <= last + calm &&
		     last <= after.switches + calm))
			quiet++;
		else
			quiet = 0;
		last = after.switches;
		if (used < sizeof(text) - 64)
			used += snprintf(text + used, sizeof(text) - used,
					 "%d %llu %llu\n", second,
					 after.interrupts, after.switches);
	}
	record("quiet", quiet < wanted, text, used);
	if (quiet < wanted)
		fail("not quiet within %d s: %llu context switches a second, more than %u",
		     limit, last, calm);
}

/*
 * Whether a read has to update the time of access is found by comparing times,
 * and equal seconds take longer than others. So that no run's path depends on
 * when the one before touched the device's node, all times are made the same,
 * and then old: the next access is in another second.
 */
static void age(const char *path)
{
	if (utimensat(AT_FDCWD, path, NULL, 0))
		fail("%s: %s", path, strerror(errno));
	nanosleep(&(struct timespec){ .tv_sec = 2 }, NULL);
}

/* The words of a text, joined; @DEVICE becomes the MAJOR:MINOR of a device. */
static const char *join(char **words)
{
	static char text[1024];
	struct stat st;
	size_t used = 0;

	for (; *words; words++) {
		const char *gap = used ? " " : "";

		if ((*words)[0] != '@')
			used += snprintf(text + used, sizeof(text) - used, "%s%s", gap, *words);
		else if (stat(*words + 1, &st) || !S_ISBLK(st.st_mode))
			fail("%s: no block device", *words + 1);
		else
			used += snprintf(text + used, sizeof(text) - used, "%s%u:%u", gap,
					 major(st.st_rdev), minor(st.st_rdev));
		if (used >= sizeof(text))
			fail("a text of more than %zu bytes", sizeof(text) - 1);
	}
	return text;
}

/* A device that was plugged in is found a moment later. */
static void wait_for(const char *path)
{
	int tries;

	for (tries = 0; access(path, F_OK); tries++) {
		if (tries == 6000)
			fail("%s: not there after a minute", path);
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
}

static void expect(const char *path, const char *text)
{
	char *data;
	size_t len;

	data = read_file(path, &len);
	if (!data)
		fail("%s: %s", path, strerror(errno));
	if (!strstr(data, text))
		fail("%s has %.200s instead of %s", path, data, text);
	free(data);
}

static void write_file(const char *path, const char *text)
{
	ssize_t n = -1;
	int fd;

	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		n = write(fd, text, strlen(text));
	if (n != (ssize_t)strlen(text))
		fail("%s: cannot write %s: %s", path, text, strerror(errno));
	close(fd);
}

static pid_t child;

static void kill_child(int sig)
{
	(void)sig;
	kill(child, SIGKILL);
}

/* Returns the program's status, as a shell does. */
static int run(const char *name, char **args)
{
	size_t len;
	char *data;
	int status;
	int fd;

	child = fork();
	if (child < 0)
		fail("fork: %s", strerror(errno));
	if (!child) {
		fd = open(OUTPUT, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		if (fd < 0 || dup2(fd, 1) < 0)
			die(OUTPUT);
		close(fd);
		execv(args[0], args);
		die(args[0]);
	}
	/* Orphans of earlier programs are ours to reap, too. */
	while (wait(&status) != child)
		;
	data = read_file(OUTPUT, &len);
	if (!data)
		fail("%s: %s", OUTPUT, strerror(errno));
	if (WIFSIGNALED(status))
		status = 128 + WTERMSIG(status);
	else
		status = WEXITSTATUS(status);
	record(name, status, data, len);
	free(data);
	return status;
}

/* A step of steps.h with @n words; false if it is none. */
static int carry_out_step(char **args, int n)
{
	const char *failed;

	if (n >= 5 && !strcmp(args[0], "dm"))
		failed = make_dm(args[1], strtoull(args[2], NULL, 10), args[3],
				 join(args + 4));
	else if (n == 3 && !strcmp(args[0], "loop"))
		failed = make_loop(args[1], args[2]);
	else if (n == 2 && !strcmp(args[0], "tags"))
		failed = begin_tags(args[1]);
	else if (n == 2 && !strcmp(args[0], "nbd"))
		failed = serve_nbd(args[1]);
	else if ((n == 2 || (n == 3 && !strcmp(args[2], "zero-copy"))) &&
		 !strcmp(args[0], "ublk"))
		failed = serve_ublk(strtoul(args[1], NULL, 10), n == 3);
	else if (n == 2 && !strcmp(args[0], "up"))
		failed = bring_up(args[1]);
	else if (n == 5 && !strcmp(args[0], "partition"))
		failed = make_partition(args[1], atoi(args[2]),
					strtoull(args[3], NULL, 10),
					strtoull(args[4], NULL, 10));
	else if (n == 2 && !strcmp(args[0], "bpf"))
		failed = attach_bpf(args[1]);
	else if (n == 2 && !strcmp(args[0], "seccomp"))
		failed = filter_syscalls(!strcmp(args[1], "args"));
	else if (n == 2 && !strcmp(args[0], "fanotify"))
		failed = watch_fanotify(args[1]);
	else if (n == 2 && !strcmp(args[0], "inotify"))
		failed = watch_inotify(args[1]);
	else
		return 0;
	if (failed)
		fail("%s %s: %s: %s", args[0], args[1], failed, strerror(errno));
	return 1;
}

static void carry_out(char *line)
{
	char *args[MAX_ARGS + 1] = { NULL };
	char *data, *rest = line;
	size_t len;
	int n = 0;

	while (n < MAX_ARGS && (args[n] = strsep(&rest, " ")))
		n++;
	if (rest)
		fail("a command of more than %d words", MAX_ARGS);
	if (n >= 2 && !strcmp(args[0], "insmod")) {
		insmod(args[1], args + 2);
	} else if (n == 2 && !strcmp(args[0], "rmmod")) {
		if (syscall(SYS_delete_module, args[1], 0))
			fail("rmmod %s: %s", args[1], strerror(errno));
	} else if (n == 2 && !strcmp(args[0], "quiet")) {
		wait_quiet(atoi(args[1]));
	} else if (n == 2 && !strcmp(args[0], "age")) {
		age(args[1]);
	} else if ((n == 3 || n == 4) && !strcmp(args[0], "mount")) {
		if (mount(args[n == 4 ? 3 : 1], args[2], args[1], 0, NULL))
			fail("mount %s: %s", args[2], strerror(errno));
	} else if (n == 1 && !strcmp(args[0], "sync")) {
		sync();
	} else if (n == 2 && !strcmp(args[0], "wait")) {
		wait_for(args[1]);
	} else if (n == 2 && !strcmp(args[0], "umount")) {
		if (umount(args[1]))
			fail("umount %s: %s", args[1], strerror(errno));
	} else if (n == 2 && !strcmp(args[0], "mkdir")) {
		if (mkdir(args[1], 0755))
			fail("mkdir %s: %s", args[1], strerror(errno));
	} else if (n == 2 && !strcmp(args[0], "rmdir")) {
		if (rmdir(args[1]))
			fail("rmdir %s: %s", args[1], strerror(errno));
	} else if (n == 3 && !strcmp(args[0], "link")) {
		if (symlink(args[1], args[2]))
			fail("link %s: %s", args[2], strerror(errno));
	} else if (n >= 3 && !strcmp(args[0], "write")) {
		write_file(args[1], join(args + 2));
	} else if (n >= 3 && !strcmp(args[0], "write-if")) {
		if (!access(args[1], F_OK))
			write_file(args[1], join(args + 2));
	} else if (n >= 3 && !strcmp(args[0], "expect")) {
		expect(args[1], join(args + 2));
	} else if (n == 3 && !strcmp(args[0], "env")) {
		setenv(args[1], args[2], 1);
	} else if (n == 2 && !strcmp(args[0], "file")) {
		data = read_file(args[1], &len);
		if (!data)
			fail("%s: %s", args[1], strerror(errno));
		record(args[1], 0, data, len);
		free(data);
	} else if (n >= 3 && !strcmp(args[0], "run")) {
		n = run(args[1], args + 2);
		if (n)
			fail("%s: %s ended with status %d", args[1], args[2], n);
	} else if (n >= 4 && !strcmp(args[0], "try")) {
		signal(SIGALRM, kill_child);
		alarm(strtoul(args[1], NULL, 10));
		run(args[2], args + 3);
		alarm(0);
	} else if (!carry_out_step(args, n)) {
		fail("unknown command: %s", args[0]);
	}
}

static void carry_out_all(const char *path)
{
	char *plan, *line;
	size_t len;

	plan = read_file(path, &len);
	if (!plan)
		fail("%s: %s", path, strerror(errno));
	while ((line = strsep(&plan, "\n")))
		if (*line)
			carry_out(line);
}

/*
 * On riscv64, the kernel stops the counter of instructions and forbids programs
 * to read it. An event of the CPU has it count. What the kernel then allows
 * programs, it would not let an event have: so the event is first.
 */
static void start_counter(void)
{
#ifdef __riscv
	const char *path = "/proc/sys/kernel/perf_user_access";
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
	};

	if (syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC) < 0)
		die("the counter of instructions");
	if (!access(path, F_OK))	/* Linux before 6.6 allows it */
		write_file(path, "2");
#endif
}

int main(void)
{
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/dev", 0755);
	if (mount("proc", "/proc", "proc", 0, NULL) ||
	    mount("sysfs", "/sys", "sysfs", 0, NULL) ||
	    (mount("devtmpfs", "/dev", "devtmpfs", 0, NULL) && errno != EBUSY))
		die("mount");
	/* Kernels without debugfs have no folder for it. */
	if (mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL) &&
	    errno != ENOENT)
		die("mount debugfs");
	open_channel();
	start_counter();
	carry_out_all("/start");
	stop_machine();
	take_files();
	carry_out_all("/plan");
	finish(STATE_DONE);
}
