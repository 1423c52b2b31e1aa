// SPDX-License-Identifier: GPL-2.0
/*
 * How many I/Os the warm-up has on a device of 1 GiB, by the options.
 */
#include <inttypes.h>
#include <stdio.h>

#include "../command_line.h"
#include "../engine.h"
#include "../plan.h"

static const struct {
	char *engine, *how;
	uint64_t warmup_ios;
} cases[] = {
	{ "--ioengine=sync", "--direct=1", 32 },
	{ "--ioengine=sync", "--direct=0", 32 },
	{ "--ioengine=sync", "--invalidate=0", 262144 },
	{ "--ioengine=splice", "--direct=0", 262144 },
	{ "--ioengine=io_uring_cmd", "--direct=0", 32 },
	{ "--ioengine=biogen", "--direct=1", 32 },
};

int main(int argc, char **argv)
{
	const struct device device = { .end = 1ull << 30 };
	char *args[7] = { argv[0] };
	struct options o;
	char msg[512];
	unsigned int i;
	int bad = 0;

	args[3] = "--filename=/dev/null";
	args[4] = "--bs=4k";
	args[5] = "--number_ios=32";
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		args[1] = cases[i].engine;
		args[2] = cases[i].how;
		if (command_line_read(&o, 6, args, msg, sizeof(msg)) !=
		    COMMAND_RUN) {
			printf("%s: %s\n", cases[i].engine, msg);
			return 1;
		}
		plan_counts(&o, &device);
		if (o.warmup_ios != cases[i].warmup_ios) {
			printf("%s %s: %" PRIu64 " I/Os, not %" PRIu64 "\n",
			       cases[i].engine, cases[i].how, o.warmup_ios,
			       cases[i].warmup_ios);
			bad = 1;
		}
		command_line_free(&o);
	}
	return bad;
}
