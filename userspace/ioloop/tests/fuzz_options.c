// SPDX-License-Identifier: GPL-2.0
/*
 * Throws command lines at options_parse() and looks at what it makes of them.
 * To be built with the address and undefined behaviour sanitizers.
 *
 * fuzz_options COUNT SEED
 */
#include <stdlib.h>
#include <string.h>

#include "../engine.h"
#include "../options.h"
#include "../report_json.h"

#define MAX_ARGS	6
#define MAX_LENGTH	96

static const char *const pieces[] = {
	"--filename", "--ioengine", "--rw", "--bs", "--iodepth", "--direct",
	"--number_ios", "--runtime", "--rounds", "--numjobs", "--cpus_allowed",
	"--region", "--allow-mounted", "--calibrate", "--output-format",
	"--output", "--pattern", "--offset", "--size", "--invalidate",
	"--bsrange", "--bssplit", "--thread", "--split", "--lat", "--loops",
	"--name", "--time_based", "--eta", "--buffered", "--rwmixwrite",
	"--randrepeat", "--iodepth_batch_submit", "-rw", "--stonewall",
	"--hipri", "--optional", "--warmup_ios", "--rwmixread", "--help", "--",
	"=", "=0", "=1", "=sync", "=libaio", "=io_uring", "=null", "=read",
	"=randrw", "=readwrite", "=never", "=a/b:c",
	"=fixed", "=json", "=4k", "=1g", "=18446744073709551615",
	"=18446744073709551616", "=-1", "=0x10", "=1e3", "=9t", "=99999t",
	"=10s", "=5ms", "=/dev/null", ":", "\\:", ",", "-", "0-4095", "5-2",
	"0,1,2", "k", " ",
	"=4k-64k", "=4k/10:64k/50:32k", "=4k/:64k/", "/", "/100", "512-", "=4",
	"%s%n", "\xff\xfe", "\n", "\"",
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
	unsigned int i;

	if (!o->engine || !o->iodepth || !o->bs || !o->rounds || !o->numjobs)
		give_up("something is zero", argc, argv);
	if (o->direct > 1 || o->pattern > PATTERN_FIXED)
		give_up("something is not decided", argc, argv);
	if (!o->nr_files != !(o->engine->flags & ENGINE_FILE))
		give_up("the files do not fit the engine", argc, argv);
	for (i = 0; i < o->nr_sizes; i++)
		if (o->sizes[i] < o->min_bs || o->sizes[i] > o->bs)
			give_up("a size is out of its range", argc, argv);
	if (!o->min_bs || o->min_bs > o->bs ||
	    !o->nr_sizes != (!o->bsrange && !o->bssplit))
		give_up("the sizes are not decided", argc, argv);
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
		switch (options_parse(&o, nr, args, msg, sizeof(msg))) {
		case OPTIONS_RUN:
			check_taken(&o, nr, args);
			json_options(&o, null);
			taken++;
			break;
		case OPTIONS_BAD:
			if (!msg[0])
				give_up("refused without a word", nr, args);
			break;
		default:
			break;
		}
		options_free(&o);
	}
	fclose(null);
	if (!taken)
		give_up("not one command line was right", 0, NULL);
	return 0;
}
