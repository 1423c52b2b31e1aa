// SPDX-License-Identifier: GPL-2.0
/*
 * Decode riscv64 instructions, as the assembler encodes them, and print a line
 * for each that the decoder takes for another kind, or to go elsewhere.
 */
#include <stdint.h>
#include <stdio.h>

#include "arch.h"

#define KERNEL	0xffffffff80001000

static const struct test_case {
	char kind;
	uint32_t word;
	const char *text;
} cases[] = {
	{ 'r', 0x00008067, "ret" },
	{ 'r', 0x00028067, "jalr zero,0(t0)" },
	{ 'J', 0x00078067, "jalr zero,0(a5)" },
	{ 'C', 0x008500e7, "jalr ra,8(a0)" },
	{ 'C', 0x000302e7, "jalr t0,0(t1)" },
	{ 'r', 0x8082, "c.jr ra" },
	{ 'J', 0x8502, "c.jr a0" },
	{ 'r', 0x8282, "c.jr t0" },
	{ 'C', 0x9782, "c.jalr a5" },
	{ 't', 0x9002, "c.ebreak" },
	{ '.', 0x852e, "c.mv a0,a1" },
	{ '.', 0x952e, "c.add a0,a1" },
	{ '.', 0x0001, "c.nop" },
	{ 't', 0x0000, "c.unimp" },
	{ '.', 0x2505, "c.addiw a0,1" },
	{ '.', 0x60a2, "c.ldsp ra,8(sp)" },
	{ '.', 0x6188, "c.ld a0,0(a1)" },
	{ '.', 0xe188, "c.sd a0,0(a1)" },
	{ '.', 0x6505, "c.lui a0,1" },
	{ '.', 0x00001517, "auipc a0,1" },
	{ 's', 0x00000073, "ecall" },
	{ 't', 0x00100073, "ebreak" },
	{ 'i', 0x10200073, "sret" },
	{ 'i', 0x30200073, "mret" },
	{ '.', 0x10500073, "wfi" },
	{ 'S', 0x12000073, "sfence.vma" },
	{ 'S', 0x12b50073, "sfence.vma a0,a1" },
	{ 'F', 0x0330000f, "fence rw,rw" },
	{ 'F', 0x8330000f, "fence.tso" },
	{ 'S', 0x0000100f, "fence.i" },
	{ '.', 0x0100000f, "pause" },
	{ 'L', 0x00b6252f, "amoadd.w a0,a1,(a2)" },
	{ 'L', 0x0eb6352f, "amoswap.d.aqrl a0,a1,(a2)" },
	{ '.', 0x1005b52f, "lr.d a0,(a1)" },
	{ 'L', 0x18b6352f, "sc.d a0,a1,(a2)" },
	{ 'T', 0xc0102573, "rdtime a0" },
	{ 'T', 0xc0002573, "rdcycle a0" },
	{ 'T', 0xc0202573, "rdinstret a0" },
	{ '.', 0x10002573, "csrr a0,sstatus" },
	{ '.', 0x14021273, "csrrw tp,sscratch,tp" },
	{ '.', 0x14102573, "csrr a0,sepc" },
	{ '.', 0x00302573, "frcsr a0" },
	{ 'M', 0x10453073, "csrc sie,a0" },
	{ 'M', 0x18051073, "csrw satp,a0" },
	{ 'M', 0x14d51073, "csrw stimecmp,a0" },
	{ 'M', 0x14402573, "csrr a0,sip" },
	{ '.', 0x5e302013, "slti zero,zero,0x5e3" },
}, branches[] = {
	{ 'j', 0xff9ff06f, "j -8" },
	{ 'j', 0x7f80006f, "j 2040" },
	{ 'j', 0xff77f06f, "j -524298" },
	{ 'c', 0x004000ef, "jal 4" },
	{ 'c', 0xff1fe2ef, "jal t0,-4112" },
	{ 'b', 0xfeb502e3, "beq a0,a1,-28" },
	{ 'b', 0x2ab512e3, "bne a0,a1,2724" },
	{ 'b', 0x00b57463, "bgeu a0,a1,8" },
	{ 'j', 0xbfad, "c.j -134" },
	{ 'j', 0xa451, "c.j 644" },
	{ 'b', 0xdd39, "c.beqz a0,-162" },
	{ 'b', 0xe52d, "c.bnez a0,106" },
};

static const int64_t distances[] = {
	-8, 2040, -524298, 4, -4112, -28, 2724, 8, -134, 644, -162, 106,
};

static struct insn decode(uint32_t word, uint64_t pc)
{
	struct insn insn;

	arch_riscv64.decode((const uint8_t *)&word, (word & 3) == 3 ? 4 : 2, pc,
			    &insn);
	return insn;
}

static bool is_kind(const struct test_case *test, uint64_t pc, char kind)
{
	struct insn insn = decode(test->word, pc);

	if (insn.kind == (enum insn_kind)kind)
		return true;
	printf("%s: kind %c, should be %c\n", test->text, insn.kind, kind);
	return false;
}

int main(void)
{
	const struct test_case ecall = { '.', 0x00000073, "ecall of the kernel" };
	bool passed = is_kind(&ecall, KERNEL, ecall.kind);
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		passed &= is_kind(&cases[i], 0x10000, cases[i].kind);
	for (i = 0; i < sizeof(branches) / sizeof(*branches); i++) {
		const struct test_case *test = &branches[i];
		struct insn insn = decode(test->word, KERNEL);

		passed &= is_kind(test, KERNEL, test->kind);
		if (insn.target == KERNEL + (uint64_t)distances[i])
			continue;
		printf("%s: goes to %llx\n", test->text,
		       (unsigned long long)insn.target);
		passed = false;
	}
	return !passed;
}
