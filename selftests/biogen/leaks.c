// SPDX-License-Identifier: GPL-2.0
/*
 * Check that the kernel's kmemleak finds no unreferenced memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "kselftest.h"

#include "util.h"

#define DEBUGFS		"/sys/kernel/debug"
#define KMEMLEAK	DEBUGFS "/kmemleak"

int main(void)
{
	char text[4096];
	int err;

	ksft_print_header();
	ksft_set_plan(1);
	if (mount("debugfs", DEBUGFS, "debugfs", 0, NULL) && errno != EBUSY)
		ksft_exit_fail_msg("debugfs: %s\n", strerror(errno));
	/*
	 * kmemleak reports an object that two scans find unreferenced and
	 * unchanged, if it was 5 seconds old when the second scan began.
	 */
	err = write_text(KMEMLEAK, "scan");
	sleep(6);
	err = err ?: write_text(KMEMLEAK, "scan");
	err = err ?: read_text(KMEMLEAK, text, sizeof(text));
	if (err)
		ksft_exit_fail_msg(KMEMLEAK ": %s\n", strerror(-err));
	if (*text)
		ksft_print_msg("%s\n", text);
	ksft_test_result(!*text, "leaks\n");
	ksft_finished();
}
