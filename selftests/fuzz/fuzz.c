// SPDX-License-Identifier: GPL-2.0
/*
 * Random input to the modules: generator runs, attributes of configfs, module
 * parameters. An input that reaches new code (by KCOV) is kept, and changed
 * further.
 *
 *	SEED=N	the same inputs each time; default 1
 *	RUNS=N	inputs of each kind; default 500
 *
 * The kernel's log shows whether it survives. This program checks that each
 * call returns only documented errors and does not write beyond its memory.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "kselftest.h"

#include <linux/kcov.h>
#include <uapi/biogen.h>

#include "util.h"

#define DEBUGFS		"/sys/kernel/debug"
#define CONFIGFS	"/sys/kernel/config"
#define COVER_SIZE	(64 << 10)
#define SEEN_BITS	20
#define MAX_CORPUS	512
#define MAX_JOBS	4
#define MAX_STEPS	8
#define MAX_VALUE	48

static const struct disk brd = { .mib = 8, .block = 512 };

static struct rng rng;
static unsigned long runs = 500;

/* Coverage. */

static int kcov = -1;
static uint64_t *cover;
static unsigned char seen[1 << SEEN_BITS];
static unsigned int places;

static void kcov_open(void)
{
	kcov = open(DEBUGFS "/kcov", O_RDWR | O_CLOEXEC);
	if (kcov < 0 || ioctl(kcov, KCOV_INIT_TRACE, COVER_SIZE))
		ksft_exit_fail_msg("kcov: %s\n", strerror(errno));
	cover = mmap(NULL, COVER_SIZE * sizeof(*cover), PROT_READ | PROT_WRITE,
		     MAP_SHARED, kcov, 0);
	if (cover == MAP_FAILED || ioctl(kcov, KCOV_ENABLE, KCOV_TRACE_PC))
		ksft_exit_fail_msg("kcov: %s\n", strerror(errno));
}

static void cover_begin(void)
{
	__atomic_store_n(&cover[0], 0, __ATOMIC_RELAXED);
}

/* How many places were reached for the first time since cover_begin(). */
static unsigned int cover_end(void)
{
	uint64_t n = __atomic_load_n(&cover[0], __ATOMIC_RELAXED), i;
	unsigned int found = 0;

	for (i = 1; i <= n; i++) {
		/* Modules lie within a few MiB, so the low bits are enough. */
		uint64_t at = cover[i] & ((1 << SEEN_BITS) - 1);

		found += !seen[at];
		seen[at] = 1;
	}
	places += found;
	return found;
}

/* Inputs of one kind, of a fixed size. */

struct corpus {
	void *input[MAX_CORPUS];
	size_t size;
	unsigned int nr;
};

static void corpus_keep(struct corpus *corpus, const void *input)
{
	unsigned int i = corpus->nr < MAX_CORPUS ? corpus->nr++ :
						   rng_below(&rng, MAX_CORPUS);

	free(corpus->input[i]);
	corpus->input[i] = malloc(corpus->size);
	memcpy(corpus->input[i], input, corpus->size);
}

static void corpus_pick(struct corpus *corpus, void *input)
{
	memcpy(input, corpus->input[rng_below(&rng, corpus->nr)], corpus->size);
}

static uint64_t odd_number(void)
{
	static const uint64_t odd[] = {
		0, 1, 2, 3, 4, 100, 101, 511, 512, 513, 4095, 4096, 4097, 65535,
		65536, 1 << 20, (1 << 20) + 1, 8 << 20, INT32_MAX, UINT32_MAX,
		1ULL << 32, INT64_MAX, UINT64_MAX, UINT64_MAX - 511
	};

	switch (rng_below(&rng, 4)) {
	case 0:
		return rng_next(&rng) >> rng_below(&rng, 64);
	case 1:
		return rng_below(&rng, 16);
	default:
		return odd[rng_below(&rng, ARRAY_SIZE(odd))];
	}
}

/* Generator runs. */

struct run_input {
	struct biogen_run run;
	struct biogen_job job[MAX_JOBS];
	uint8_t jobs_at;	/* where @job lies: enum place */
	uint8_t rounds_at;
	uint8_t command;	/* which command, mostly the right one */
};

enum place {
	PLACE_GOOD, PLACE_GOOD_TOO, PLACE_END, PLACE_NULL, PLACE_KERNEL,
	PLACE_READ_ONLY, PLACES
};

static unsigned char *arena;	/* of 16 pages, behind which there is none */
#define ARENA		65536
#define CANARY		0xc7

static const struct biogen_run good_run = {
	.pattern	= BIOGEN_RANDOM,
	.wait		= BIOGEN_ASYNC,
	.write_percent	= 30,
	.block_size	= 4096,
	.depth		= 8,
	.batch		= 4,
	.nr_jobs	= 1,
	.rounds		= 2,
	.ios		= 20,
};

static void run_mutate(struct run_input *in)
{
	static const uint8_t wide[] = {
		offsetof(struct biogen_run, offset),
		offsetof(struct biogen_run, length),
		offsetof(struct biogen_run, ios),
		offsetof(struct biogen_run, duration_ns),
		offsetof(struct biogen_run, warmup_ios),
		offsetof(struct biogen_run, seed),
	};
	unsigned int n = 1 + rng_below(&rng, 4);
	uint32_t *word = (uint32_t *)&in->run;
	uint64_t value;

	while (n--) {
		switch (rng_below(&rng, 8)) {
		case 0:
			value = odd_number();
			memcpy((char *)&in->run +
			       wide[rng_below(&rng, ARRAY_SIZE(wide))], &value,
			       sizeof(value));
			break;
		case 1:
			in->job[rng_below(&rng, MAX_JOBS)].cpu =
				rng_below(&rng, 4) ? rng_below(&rng, 3) :
						     odd_number();
			break;
		case 2:
			in->job[rng_below(&rng, MAX_JOBS)].reserved =
				rng_below(&rng, 8) ? 0 : odd_number();
			break;
		case 3:
			in->jobs_at = rng_below(&rng, PLACES);
			in->rounds_at = rng_below(&rng, PLACES);
			break;
		case 4:
			in->command = rng_below(&rng, 32);
			break;
		case 5:
			in->run.nr_jobs = rng_below(&rng, MAX_JOBS + 2);
			break;
		default:
			/* The fields of 32 bits come first. */
			word[rng_below(&rng, 12)] = odd_number();
		}
	}
}

static uint64_t place(enum place at, size_t size)
{
	switch (at) {
	case PLACE_END:
		return (uint64_t)arena + ARENA - size;
	case PLACE_NULL:
		return 0;
	case PLACE_KERNEL:
		return 0xffffffff81000000;
	case PLACE_READ_ONLY:
		return (uint64_t)arena + ARENA + 4096;
	default:
		return (uint64_t)arena + (at == PLACE_GOOD ? 0 : ARENA / 2);
	}
}

static void on_alarm(int sig)
{
}

/* The errors that the documentation allows. */
static bool run_answer_known(int err)
{
	static const int known[] = {
		0, EINVAL, EFAULT, EOPNOTSUPP, EBADF, ENOMEM,
		ENOTTY
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(known); i++)
		if (err == known[i])
			return true;
	return false;
}

static const char *run_try(int fd, struct run_input *in)
{
	struct itimerval soon = { .it_value.tv_usec = 20000 }, never = { 0 };
	size_t jobs = in->run.nr_jobs * sizeof(in->job[0]);
	size_t rounds = in->run.nr_jobs * (size_t)in->run.rounds *
			sizeof(struct biogen_round);
	unsigned long command = BIOGEN_RUN;
	static char why[128];
	size_t i;
	int err;

	if (jobs > sizeof(in->job))
		jobs = sizeof(in->job);
	memset(arena, CANARY, ARENA);
	in->run.jobs = place(in->jobs_at, jobs);
	in->run.round_results = in->rounds_at == in->jobs_at ? 0 :
		place(in->rounds_at, rounds < ARENA / 2 ? rounds : ARENA / 2);
	if (in->jobs_at <= PLACE_END)
		memcpy((void *)(unsigned long)in->run.jobs, in->job, jobs);
	if (in->command == 1)
		command = BIOGEN_INFO;
	else if (in->command == 2)
		command = rng_next(&rng);
	else if (in->command == 3)
		command = _IOC(_IOC_READ | _IOC_WRITE, _IOC_TYPE(BIOGEN_RUN),
			       rng_below(&rng, 4), rng_below(&rng, 512));

	/* End a run that would not end by itself. */
	setitimer(ITIMER_REAL, &soon, NULL);
	err = ioctl(fd, command, &in->run) ? errno : 0;
	setitimer(ITIMER_REAL, &never, NULL);
	if (!run_answer_known(err)) {
		snprintf(why, sizeof(why), "ioctl %#lx: %s", command,
			 strerror(err));
		return why;
	}
	if (command != BIOGEN_RUN || in->jobs_at != PLACE_GOOD ||
	    in->rounds_at != PLACE_GOOD)
		return NULL;
	for (i = jobs; i < ARENA; i++)
		if (arena[i] != CANARY)
			return "written behind the jobs";
	return NULL;
}

static const char *fuzz_runs(void)
{
	struct corpus corpus = { .size = sizeof(struct run_input) };
	struct sigaction act = { .sa_handler = on_alarm };
	struct run_input in = { .run = good_run };
	const char *why = NULL;
	unsigned long i;
	int fd;

	sigaction(SIGALRM, &act, NULL);
	arena = mmap(NULL, ARENA + 8192, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(arena + ARENA, 4096, PROT_NONE);
	mprotect(arena + ARENA + 4096, 4096, PROT_READ);
	if (biogen_load("/dev/ram0", "write=1"))
		return "biogen does not load";
	fd = open(BIOGEN, O_RDWR | O_CLOEXEC);
	in.rounds_at = PLACE_GOOD_TOO;
	corpus_keep(&corpus, &in);
	for (i = 0; i < runs && !why; i++) {
		corpus_pick(&corpus, &in);
		if (i)
			run_mutate(&in);
		cover_begin();
		why = run_try(fd, &in);
		if (cover_end())
			corpus_keep(&corpus, &in);
	}
	close(fd);
	return biogen_unload() ? "biogen does not unload" : why;
}

/* Attributes and parameters: names, and text that might be a value. */

struct step {
	uint8_t what;		/* enum what */
	uint8_t name;		/* which attribute */
	uint8_t length;		/* of @value */
	char value[MAX_VALUE];
};

enum what { WRITE, READ, POWER_ON, POWER_OFF, MAKE, REMOVE, WHATS };

struct text_input {
	struct step step[MAX_STEPS];
	uint8_t nr;
};

#define MAX_NAMES	64
static char names[MAX_NAMES][32];
static unsigned int nr_names;

/* All files of a folder, so that new attributes are included. */
static bool find_names(const char *folder)
{
	struct dirent *entry;
	DIR *dir = opendir(folder);

	nr_names = 0;
	if (!dir)
		return false;
	while ((entry = readdir(dir)) && nr_names < MAX_NAMES)
		if (entry->d_name[0] != '.')
			snprintf(names[nr_names++], sizeof(names[0]), "%.31s",
				 entry->d_name);
	closedir(dir);
	return nr_names;
}

static void random_text(struct step *step)
{
	static const char *const words[] = {
		"", "0", "1", "Y", "N", "y", "on", "-1", "/dev/ram0",
		"-biogen0", "-biogen1", "/dev/null", "/dev", "bio", "mq",
		"inline", "timer", "softirq", "none", "512", "4096", "0x1000",
		"1 2", "1-2", "+1-2", "1,2", " 1", "1 ", "\n", "1\n2", "%s%n",
		"999999999999999999999"
	};
	int n;

	switch (rng_below(&rng, 5)) {
	case 0:
		step->length = rng_below(&rng, MAX_VALUE);
		rng_fill(&rng, step->value, step->length);
		break;
	case 1:
		n = snprintf(step->value, MAX_VALUE, "%llu",
			     (unsigned long long)odd_number());
		step->length = n;
		break;
	case 2:
		memset(step->value, 'a' + rng_below(&rng, 26), MAX_VALUE);
		step->length = MAX_VALUE;
		break;
	default:
		n = snprintf(step->value, MAX_VALUE, "%s",
			     words[rng_below(&rng, ARRAY_SIZE(words))]);
		step->length = n;
	}
}

static void text_mutate(struct text_input *in)
{
	unsigned int n = 1 + rng_below(&rng, 3);
	struct step *step;

	while (n--) {
		step = &in->step[rng_below(&rng, MAX_STEPS)];
		if (!rng_below(&rng, 4))
			in->nr = 1 + rng_below(&rng, MAX_STEPS);
		if (!rng_below(&rng, 2))
			step->what = rng_below(&rng, 3) ? WRITE :
							  rng_below(&rng, WHATS);
		if (rng_below(&rng, 2))
			step->name = rng_next(&rng);
		if (rng_below(&rng, 2))
			random_text(step);
	}
}

static const char *group;	/* folder of files that are written */

static void attribute_write(const char *name, const char *value, size_t len)
{
	char path[160];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", group, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	/* Any errno is an answer. */
	if (write(fd, value, len) < 0)
		errno = 0;
	close(fd);
}

static void take_step(const struct step *step)
{
	const char *name = names[step->name % nr_names];
	char path[160], text[4096];

	switch (step->what) {
	case WRITE:
		attribute_write(name, step->value, step->length);
		break;
	case READ:
		snprintf(path, sizeof(path), "%s/%s", group, name);
		read_text(path, text, sizeof(text));
		break;
	case POWER_ON:
		attribute_write("power", "1", 1);
		break;
	case POWER_OFF:
		attribute_write("power", "0", 1);
		break;
	case MAKE:
		mkdir(group, 0755);
		break;
	case REMOVE:
		rmdir(group);
		break;
	}
}

/* Files of @folder, which is made and removed if there is none. */
static const char *fuzz_files(const char *module, const char *params,
			      const char *folder)
{
	struct corpus corpus = { .size = sizeof(struct text_input) };
	struct text_input in = { .nr = 2, .step[1].what = POWER_ON };
	unsigned long i;
	unsigned int s;

	group = folder;
	if (module_load(module, params))
		return "the module does not load";
	mkdir(folder, 0755);
	if (!find_names(folder))
		return "there are no files";
	rmdir(folder);
	corpus_keep(&corpus, &in);
	for (i = 0; i < runs; i++) {
		corpus_pick(&corpus, &in);
		if (i)
			text_mutate(&in);
		cover_begin();
		mkdir(folder, 0755);
		for (s = 0; s < in.nr; s++)
			take_step(&in.step[s]);
		rmdir(folder);
		if (cover_end())
			corpus_keep(&corpus, &in);
	}
	return module_unload(module) ? "the module does not unload" : NULL;
}

static const char *fuzz_parameters(const char *module)
{
	struct corpus corpus = { .size = sizeof(struct text_input) };
	struct text_input in = { .nr = 1 };
	char params[MAX_STEPS * (MAX_VALUE + 40)], folder[64];
	unsigned long i;
	unsigned int s;
	size_t used;

	snprintf(folder, sizeof(folder), "/sys/module/%s/parameters", module);
	if (module_load(module, ""))
		return "the module does not load";
	if (!find_names(folder))
		return "there are no parameters";
	if (module_unload(module))
		return "the module does not unload";
	corpus_keep(&corpus, &in);
	/* Loading takes long. */
	for (i = 0; i < runs / 5; i++) {
		corpus_pick(&corpus, &in);
		text_mutate(&in);
		for (s = 0, used = 0; s < in.nr; s++)
			used += snprintf(params + used, sizeof(params) - used,
					 "%s=%.*s ",
					 names[in.step[s].name % nr_names],
					 in.step[s].length, in.step[s].value);
		cover_begin();
		if (!module_load(module, params) && module_unload(module))
			return "the module does not unload";
		if (cover_end())
			corpus_keep(&corpus, &in);
	}
	return NULL;
}

static void report(const char *name, const char *why)
{
	ksft_print_msg("%s: %u places reached\n", name, places);
	if (why)
		ksft_print_msg("%s: %s\n", name, why);
	/* Without coverage nothing was tested. */
	ksft_test_result(!why && places, "%s\n", name);
	places = 0;
}

int main(void)
{
	const char *seed = getenv("SEED"), *count = getenv("RUNS");

	if (count)
		runs = strtoul(count, NULL, 0);
	ksft_print_header();
	ksft_set_plan(5);
	ksft_print_msg("SEED=%s RUNS=%lu\n", seed ? seed : "1", runs);
	rng_init(&rng, 2);
	if (mount("debugfs", DEBUGFS, "debugfs", 0, NULL) && errno != EBUSY)
		ksft_exit_fail_msg("debugfs: %s\n", strerror(errno));
	if (mount("configfs", CONFIGFS, "configfs", 0, NULL) && errno != EBUSY)
		ksft_exit_fail_msg("configfs: %s\n", strerror(errno));
	if (disks_create(&brd, 1))
		ksft_exit_fail_msg("no brd\n");
	kcov_open();
	report("BIOGEN_RUN", fuzz_runs());
	report("biogen_nodes", fuzz_files("biogen", "",
					  "/sys/module/biogen/parameters"));
	report("blknull_configfs", fuzz_files("blknull", "nr_devices=0",
					      CONFIGFS "/blknull/fuzz"));
	report("biogen_parameters", fuzz_parameters("biogen"));
	report("blknull_parameters", fuzz_parameters("blknull"));
	disks_destroy();
	ksft_finished();
}
