// SPDX-License-Identifier: GPL-2.0
/*
 * A second opinion: a QEMU plugin that counts the kernel's instructions between
 * two addresses of a program, one by one. QEMU executes a string instruction
 * with a repeat prefix again and again: it counts only if another instruction
 * came before. It shares only the declarations of QEMU's functions with
 * pathcount. Options: begin=ADDRESS, end=ADDRESS, out=PATH. It writes a count
 * per line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin_api.h"

PLUGIN_EXPORT int qemu_plugin_version = 1;

static uint64_t begin, end, count, last, self;
static int api, counting;
static FILE *out;

/* QEMU checks the version after this. */
__attribute__((constructor)) static void choose_version(void)
{
	if (qemu_plugin_set_pc)
		qemu_plugin_version = 7;
	else if (qemu_plugin_read_memory_vaddr)
		qemu_plugin_version = 4;
	else if (qemu_plugin_scoreboard_new)
		qemu_plugin_version = 2;
}

static void translate(struct qemu_plugin_tb *tb);

static void translate_v1(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	translate(tb);
}

static void translate_cb(struct qemu_plugin_tb *tb, void *data)
{
	translate(tb);
}

/* QEMU passes an id before version 7, and data since; neither is needed. */
static void again(void *data)
{
	qemu_plugin_tb_trans_v1_cb_t v1 = translate_v1;

	qemu_plugin_register_vcpu_tb_trans_cb(self,
		qemu_plugin_version >= 7 ?
			translate_cb :
			(qemu_plugin_tb_trans_cb_t)(void *)v1,
		NULL);
}

static void add(unsigned int vcpu, void *pc)
{
	last = (uint64_t)pc;
	count++;
}

static void add_string(unsigned int vcpu, void *pc)
{
	if (last != (uint64_t)pc)
		add(vcpu, pc);
}

/* rep or repne, a prefix for 64 bits or none, then movs, cmps, stos, lods, scas. */
static int is_string(struct qemu_plugin_insn *insn)
{
	unsigned char copy[3] = { 0 };
	const unsigned char *bytes = copy;
	size_t size = qemu_plugin_insn_size(insn);
	qemu_plugin_insn_data_v1_t insn_data_v1 =
		(qemu_plugin_insn_data_v1_t)(void *)qemu_plugin_insn_data;
	unsigned char code;

	if (api < 3)
		bytes = insn_data_v1(insn);
	else
		qemu_plugin_insn_data(insn, copy, size < 3 ? size : 3);
	if (size < 2 || (bytes[0] & 0xfe) != 0xf2)
		return 0;
	code = size > 2 && (bytes[1] & 0xf0) == 0x40 ? bytes[2] : bytes[1];
	return (code >= 0xa4 && code <= 0xa7) || (code >= 0xaa && code <= 0xaf);
}

static void on_begin(unsigned int vcpu, void *data)
{
	if (!counting)
		qemu_plugin_reset(self, again, NULL);
	counting = 1;
	count = 0;
}

static void on_end(unsigned int vcpu, void *data)
{
	fprintf(out, "%llu\n", (unsigned long long)count);
	fflush(out);
}

static void translate(struct qemu_plugin_tb *tb)
{
	size_t i;

	for (i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t pc = qemu_plugin_insn_vaddr(insn);

		if (pc == begin)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_begin, 0, NULL);
		else if (pc == end)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_end, 0, NULL);
		else if (counting && pc >> 63 && is_string(insn))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, add_string, 0, (void *)pc);
		else if (counting && pc >> 63)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, add, 0, (void *)pc);
	}
}

PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
				      int argc, char **argv)
{
	int i;

	for (i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "begin=", 6))
			begin = strtoull(argv[i] + 6, NULL, 0);
		else if (!strncmp(argv[i], "end=", 4))
			end = strtoull(argv[i] + 4, NULL, 0);
		else if (!strncmp(argv[i], "out=", 4))
			out = fopen(argv[i] + 4, "w");
	}
	self = id;
	api = info->version.cur;
	again(NULL);
	return begin && end && out ? 0 : -1;
}
