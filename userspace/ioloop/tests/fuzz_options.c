// SPDX-License-Identifier: GPL-2.0
/*
 * Throws command lines at command_line_read() and looks at what it makes of them.
 * To be built with the address and undefined behaviour sanitizers.
 *
 * fuzz_options COUNT SEED
 */
#include <stdlib.h>
#include <string.h>

#include "../command_line.h"
#include "../engine.h"
#include "../report_json.h"

#define MAX_ARGS	6
#define MAX_LENGTH	96

static const char *const pieces[] = {
	"--filename", "--ioengine", "--rw", "--bs", "--iodepth", "--direct",
	"--number_ios", "--runtime", "--rounds", "--numjobs", "--cpus_allowed",
	"--region", "--calibrate", "--output-format", "--output", "--pattern",
	"--offset", "--size", "--invalidate", "--thread", "--split",
	"--time_based", "--hipri", "--warmup_ios", "--help", "--name", "-rw",
	"--", "=", "=0", "=1", "=sync", "=libaio", "=io_uring", "=null", "=read",
	"=randwrite", "=fixed", "=json", "=4k", "=1g", "=18446744073709551615",
	"=18446744073709551616", "=-1", "=0x10", "=1e3", "=9t", "=99999t",
	"=10s", "=5ms", "=/dev/null", ":", "\\:", ",", "-", "0-4095", "5-2",
	"0,1,2", "k", " ", "=4", "%s%n", "\xff\xfe", "\n", "\"",
};

static uint64_t state;

static unsigned int draw(unsigned int below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned int)(state >> 33) % below;
}

static void make_argument(char *arg)
{
	unsigned int n = 1 + draw(4);
	size_t len = 0;

	arg[0] = '\0';
	while (n--) {
		const char *piece = pieces[draw(ARRAY_SIZE(pieces))];

		if (!draw(8)) {
			arg[len++] = (char)(1 + draw(255));
			arg[len] = '\0';
			continue;
		}
		if (len + strlen(piece) >= MAX_LENGTH - 4)
			break;
		memcpy(arg + len, piece, strlen(piece) + 1);
		len += strlen(piece);
	}
}

static void give_up(const char *why, int argc, char **argv)
{
	int i;

	printf("Bail out! %s:", why);
	for (i = 0; i < argc; i++)
		printf(" '%s'", argv[i]);
	putchar('\n');
	exit(1);
}

/* What holds for every command line that is taken. */
static void check_taken(const struct options *o, int argc, char **argv)
{
	if (!o->engine || !o->iodepth || !o->bs || !o->rounds || !o->numjobs)
		give_up("something is zero", argc, argv);
	if (o->direct > 1 || o->pattern > PATTERN_FIXED)
		give_up("something is not decided", argc, argv);
	if (!o->nr_files != !(o->engine->flags & ENGINE_FILE))
		give_up("the files do not fit the engine", argc, argv);
	if (o->iodepth > o->engine->max_iodepth)
		give_up("the depth does not fit the engine", argc, argv);
}

int main(int argc, char **argv)
{
	static char text[MAX_ARGS][MAX_LENGTH];
	char *args[MAX_ARGS + 1];
	struct options o;
	unsigned long n, taken = 0;
	char msg[512];
	FILE *null;
	int i, nr;

	null = fopen("/dev/null", "w");
	if (argc != 3 || !null)
		return 2;
	n = strtoul(argv[1], NULL, 10);
	state = strtoull(argv[2], NULL, 10);
	while (n--) {
		args[0] = argv[0];
		nr = 1 + (int)draw(MAX_ARGS);
		for (i = 1; i < nr; i++) {
			make_argument(text[i]);
			args[i] = text[i];
		}
		args[nr] = NULL;
		msg[0] = '\0';
		switch (command_line_read(&o, nr, args, msg, sizeof(msg))) {
		case COMMAND_RUN:
			check_taken(&o, nr, args);
			json_options(&o, null);
			taken++;
			break;
		case COMMAND_BAD:
			if (!msg[0])
				give_up("refused without a word", nr, args);
			break;
		default:
			break;
		}
		command_line_free(&o);
	}
	fclose(null);
	if (!taken)
		give_up("not one command line was right", 0, NULL);
	return 0;
}
