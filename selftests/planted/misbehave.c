// SPDX-License-Identifier: GPL-2.0
/*
 * A program of tests that does not behave: "misbehave HOW".
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const char *how = argc == 2 ? argv[1] : "";

	setbuf(stdout, NULL);
	puts("TAP version 13");
	if (strcmp(how, "no_plan"))
		puts("1..2");
	puts("ok 1 first");
	if (!strcmp(how, "hang"))
		pause();
	else if (!strcmp(how, "die"))
		raise(SIGSEGV);
	else if (!strcmp(how, "stop"))
		return 0;
	else if (!strcmp(how, "status"))
		puts("ok 2 second");
	else if (!strcmp(how, "fail"))
		puts("not ok 2 second");
	else if (!strcmp(how, "skip"))
		puts("ok 2 second # SKIP not today");
	else
		puts("ok 2 second");
	return !strcmp(how, "status");
}
