// SPDX-License-Identifier: GPL-2.0
/*
 * attach OBJECT CGROUP: load an object of eBPF in a measuring guest, and attach
 * its programs to what their sections name; those of control groups to CGROUP.
 *
 * They stay attached while a child of this program sleeps. Lines of
 * /proc/kallsyms on stdout name what the kernel has compiled for them. Errors,
 * libbpf's among them, go to stderr.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void die(const char *what, const char *name)
{
	fprintf(stderr, "attach: %s %s: %s\n", what, name, strerror(errno));
	exit(1);
}

static void attach(struct bpf_program *program, int cgroup)
{
	struct bpf_link *link;

	if (!strncmp(bpf_program__section_name(program), "cgroup", strlen("cgroup")))
		link = bpf_program__attach_cgroup(program, cgroup);
	else
		link = bpf_program__attach(program);
	if (!link)
		die("cannot attach", bpf_program__name(program));
}

static void print_functions(void)
{
	const char *name = "/proc/kallsyms";
	FILE *file = fopen(name, "r");
	char line[1024];

	if (!file)
		die("cannot read", name);
	while (fgets(line, sizeof(line), file))
		if (strstr(line, "[bpf]"))
			fputs(line, stdout);
	fclose(file);
	if (fflush(stdout))
		die("cannot write", "stdout");
}

int main(int argc, char **argv)
{
	struct bpf_program *program;
	struct bpf_object *object;
	int cgroup;

	if (argc != 3) {
		fputs("usage: attach OBJECT CGROUP\n", stderr);
		return 2;
	}
	cgroup = open(argv[2], O_RDONLY | O_DIRECTORY);
	if (cgroup < 0)
		die("cannot open", argv[2]);
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	object = bpf_object__open(argv[1]);
	if (!object || bpf_object__load(object))
		die("cannot load", argv[1]);
	bpf_object__for_each_program(program, object)
		if (bpf_program__autoload(program))
			attach(program, cgroup);
	print_functions();
	switch (fork()) {
	case -1:
		die("cannot fork for", argv[1]);
		break;
	case 0:
		for (;;)
			pause();
	}
	return 0;
}
