// SPDX-License-Identifier: GPL-2.0
/*
 * Decode arm64 instructions, as the assembler encodes them, and print a line for
 * each that the decoder takes for another kind.
 */
#include <stdint.h>
#include <stdio.h>

#include "arch.h"

static const struct test_case {
	char kind;
	uint32_t word;
	const char *text;
} cases[] = {
	{ 'L', 0xf8200041, "ldadd x0,x1,[x2]" },
	{ 'L', 0xb8e00041, "ldaddal w0,w1,[x2]" },
	{ 'L', 0xf820005f, "stadd x0,[x2]" },
	{ 'L', 0xf8208041, "swp x0,x1,[x2]" },
	{ 'L', 0xb8e08041, "swpal w0,w1,[x2]" },
	{ 'L', 0xf8204041, "ldsmax x0,x1,[x2]" },
	{ '.', 0xf8bfc020, "ldapr x0,[x1]" },
	{ '.', 0xd9400020, "ldapur x0,[x1]" },
	{ 'L', 0xc8a07c41, "cas x0,x1,[x2]" },
	{ 'L', 0x08e0fc41, "casalb w0,w1,[x2]" },
	{ 'L', 0x48207c82, "casp x0,x1,x2,x3,[x4]" },
	{ '.', 0xc85f7c20, "ldxr x0,[x1]" },
	{ '.', 0x885ffc20, "ldaxr w0,[x1]" },
	{ 'L', 0xc8007c41, "stxr w0,x1,[x2]" },
	{ 'L', 0x8800fc41, "stlxr w0,w1,[x2]" },
	{ '.', 0xc87f0440, "ldxp x0,x1,[x2]" },
	{ 'L', 0xc8200861, "stxp w0,x1,x2,[x3]" },
	{ '.', 0xc8dffc20, "ldar x0,[x1]" },
	{ '.', 0xc89ffc20, "stlr x0,[x1]" },
	{ '.', 0xf9800000, "prfm pldl1keep,[x0]" },
	{ '.', 0xf8626820, "ldr x0,[x1,x2]" },
	{ '.', 0xa881251d, "stp x29, x9, [x8], #16" },
	{ '.', 0xa8c1251d, "ldp x29, x9, [x8], #16" },
	{ '.', 0x8b2063ff, "add sp,sp,x0" },
	{ 'T', 0xd53be040, "mrs x0,cntvct_el0" },
	{ 'T', 0xd53be020, "mrs x0,cntpct_el0" },
	{ 'T', 0xd53b9d00, "mrs x0,pmccntr_el0" },
	{ '.', 0xd5384100, "mrs x0,sp_el0" },
	{ '.', 0xd5184100, "msr sp_el0,x0" },
	{ '.', 0xd538d080, "mrs x0,tpidr_el1" },
	{ '.', 0xd518d080, "msr tpidr_el1,x0" },
	{ '.', 0xd50342df, "msr daifset,#2" },
	{ '.', 0xd50342ff, "msr daifclr,#2" },
	{ '.', 0xd53b4220, "mrs x0,daif" },
	{ '.', 0xd51b4220, "msr daif,x0" },
	{ '.', 0xd5184020, "msr elr_el1,x0" },
	{ '.', 0xd5184000, "msr spsr_el1,x0" },
	{ 'M', 0xd5182000, "msr ttbr0_el1,x0" },
	{ '.', 0xd5382000, "mrs x0,ttbr0_el1" },
	{ 'M', 0xd518cba0, "msr s3_0_c12_c11_5,x0" },
	{ 'M', 0xd538cc00, "mrs x0,s3_0_c12_c12_0" },
	{ 'M', 0xd5184600, "msr s3_0_c4_c6_0,x0" },
	{ 'M', 0xd51be340, "msr cntv_cval_el0,x0" },
	{ 'S', 0xd5033fdf, "isb" },
	{ 'F', 0xd5033f9f, "dsb sy" },
	{ 'F', 0xd5033bbf, "dmb ish" },
	{ 'S', 0xd50330ff, "sb" },
	{ '.', 0xd5033f5f, "clrex" },
	{ '.', 0xd503203f, "yield" },
	{ '.', 0xd503205f, "wfe" },
	{ '.', 0xd503207f, "wfi" },
	{ 'S', 0xd508831f, "tlbi vmalle1is" },
	{ 'S', 0xd508751f, "ic iallu" },
	{ '.', 0xd50b7420, "dc zva,x0" },
	{ '.', 0xd5087800, "at s1e1r,x0" },
	{ 's', 0xd4000001, "svc #0" },
	{ '.', 0xd4000002, "hvc #0" },
	{ '.', 0xd4000003, "smc #0" },
	{ 't', 0xd4200020, "brk #1" },
	{ 't', 0xd4400000, "hlt #0" },
	{ 't', 0x00000000, "udf #0" },
	{ 'J', 0xd61f0000, "br x0" },
	{ 'C', 0xd63f0000, "blr x0" },
	{ 'r', 0xd65f03c0, "ret" },
	{ 'r', 0xd65f0220, "ret x17" },
	{ 'i', 0xd69f03e0, "eret" },
	{ 'r', 0xd65f0bff, "retaa" },
	{ 'J', 0xd71f0801, "braa x0,x1" },
	{ 'C', 0xd73f0801, "blraa x0,x1" },
	{ 'j', 0x14000000, "b" },
	{ 'c', 0x97ffffff, "bl" },
	{ 'b', 0x54ffffc0, "b.eq" },
	{ 'b', 0xb4ffffa0, "cbz x0" },
	{ 'b', 0xb747ff80, "tbnz x0,#40" },
	{ '.', 0xd503233f, "paciasp" },
	{ '.', 0xd503245f, "bti c" },
};

/* Where branches go: the instruction, and how far. */
static const struct {
	uint32_t word;
	int64_t distance;
} branches[] = {
	{ 0x14000000, 0 },		/* b */
	{ 0x17fffffe, -8 },
	{ 0x94000004, 16 },		/* bl */
	{ 0x54ffffc0, -8 },		/* b.eq */
	{ 0xb4000060, 12 },		/* cbz */
	{ 0xb747ff80, -16 },		/* tbnz */
	{ 0x36000040, 8 },		/* tbz */
};

int main(void)
{
	bool failed = false;
	struct insn insn;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct test_case *test = &cases[i];

		arch_aarch64.decode((const uint8_t *)&test->word, 4, 0, &insn);
		if (insn.kind == (enum insn_kind)test->kind)
			continue;
		printf("%s: kind %c, should be %c\n", test->text, insn.kind,
		       test->kind);
		failed = true;
	}
	for (i = 0; i < sizeof(branches) / sizeof(*branches); i++) {
		const uint64_t pc = 0xffff800008000000;
		const uint32_t word = branches[i].word;

		arch_aarch64.decode((const uint8_t *)&word, 4, pc, &insn);
		if (insn.target == pc + (uint64_t)branches[i].distance)
			continue;
		printf("%08x: goes to %llx\n", word,
		       (unsigned long long)insn.target);
		failed = true;
	}
	return failed;
}
