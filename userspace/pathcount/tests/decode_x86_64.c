// SPDX-License-Identifier: GPL-2.0
/*
 * Decode instructions of each kind, as the assembler encodes them. Prints a
 * line for each that the decoder takes for another kind.
 */
#include <stdint.h>
#include <stdio.h>

#include "arch.h"

/* An instruction in the section "cases": its bytes, the kind, the text. */
struct test_case {
	uint8_t len;
	char kind;
	char bytes[15];
	char text[47];
};

#define DECODES(kind, text)						\
	asm(".pushsection cases, \"a\"\n"				\
	    ".byte 772f - 771f, " #kind "\n"				\
	    "771: " text "\n"						\
	    "772: .org 771b + 15\n"					\
	    "773: .ascii \"" text "\"\n"				\
	    ".org 773b + 47\n"						\
	    ".popsection\n")

DECODES('T', "rdtsc");
DECODES('T', "rdtscp");
DECODES('T', "rdpmc");
DECODES('S', "cpuid");
DECODES('S', "mov %rax, %cr3");
DECODES('S', "mov %r11, %cr4");
DECODES('S', "mov %rax, %dr7");
DECODES('S', "invlpg (%rdi)");
DECODES('S', "invlpg 8(%r8, %rax)");
DECODES('S', "invpcid (%rdi), %rax");
DECODES('S', "lgdt (%rdi)");
DECODES('S', "lidt 16(%rsp)");
DECODES('S', "lldt %ax");
DECODES('S', "ltr %ax");
DECODES('S', "invd");
DECODES('S', "wbinvd");
DECODES('S', ".byte 0x0f, 0x01, 0xe8");	/* serialize */
DECODES('i', "iretq");
DECODES('M', "rdmsr");
DECODES('M', "wrmsr");
DECODES('M', ".byte 0x0f, 0x01, 0xc6");	/* wrmsrns */
DECODES('P', "in $0x80, %al");
DECODES('P', "in %dx, %eax");
DECODES('P', "out %al, $0x80");
DECODES('P', "out %ax, %dx");
DECODES('P', "insb");
DECODES('P', "outsl");
DECODES('F', "lfence");
DECODES('F', "mfence");
DECODES('F', "sfence");
DECODES('R', "rep movsb");
DECODES('R', "rep stosq");
DECODES('R', "repne scasb");
DECODES('R', "rep insb");
DECODES('L', "lock addl $0, -4(%rsp)");
DECODES('L', "xchg %eax, (%rdi)");
/* What looks like them. */
DECODES('.', "mov %cr3, %rax");
DECODES('.', "mov %dr7, %rax");
DECODES('.', "sgdt (%rdi)");
DECODES('.', "lmsw %ax");
DECODES('.', "verw 8(%rsp)");
DECODES('.', "swapgs");
DECODES('.', "stac");
DECODES('.', "xgetbv");
DECODES('.', ".byte 0x0f, 0x01, 0xd8");	/* vmrun */
DECODES('.', "clflush (%rdi)");
DECODES('.', "clflushopt (%rdi)");
DECODES('.', "xsave (%rdi)");
DECODES('.', "fxrstor (%rdi)");
DECODES('.', ".byte 0xf3, 0x48, 0x0f, 0xae, 0xe8");	/* incsspq %rax */
DECODES('.', ".byte 0x66, 0x0f, 0xae, 0xf1");	/* tpause %ecx */
DECODES('.', "rdgsbase %rax");
DECODES('.', "movsb");
DECODES('.', "stosq");
DECODES('.', "movbe (%rdi), %eax");
DECODES('.', "nopl 0x0(%rax)");
DECODES('.', "endbr64");

/* Blocks as QEMU ends them, by what they begin. */
static const struct {
	const char *text;
	uint8_t len, bytes[8];
	bool entry;
} blocks[] = {
	{ "clac", 3, { 0x0f, 0x01, 0xca }, true },
	{ "endbr64; clac", 7,
	  { 0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x01, 0xca }, true },
	{ "clac; cld", 4, { 0x0f, 0x01, 0xca, 0xfc }, true },
	{ "nopl (%rax); push $-1", 5, { 0x0f, 0x1f, 0x00, 0x6a, 0xff }, true },
	{ "push $33; jmp", 4, { 0x6a, 0x21, 0xeb, 0x10 }, true },
	{ "stac", 3, { 0x0f, 0x01, 0xcb }, false },
	{ "clac; ret", 4, { 0x0f, 0x01, 0xca, 0xc3 }, false },
	{ "nopl (%rax); ret", 4, { 0x0f, 0x1f, 0x00, 0xc3 }, false },
	{ "endbr64", 4, { 0xf3, 0x0f, 0x1e, 0xfa }, false },
};

static bool entries_are_found(void)
{
	bool found = true;
	unsigned int i;

	for (i = 0; i < sizeof(blocks) / sizeof(*blocks); i++) {
		if (arch_x86_64.is_entry(blocks[i].bytes, blocks[i].len, 0) ==
		    blocks[i].entry)
			continue;
		printf("%s: should %sbe an entry\n", blocks[i].text,
		       blocks[i].entry ? "" : "not ");
		found = false;
	}
	return found;
}

int main(void)
{
	const struct test_case *test, *end;
	bool failed;
	struct insn insn;

	/* The linker defines where a section begins and ends. */
	asm("lea __start_cases(%%rip), %0\n\t"
	    "lea __stop_cases(%%rip), %1" : "=&r" (test), "=r" (end));
	failed = test == end || !entries_are_found();
	for (; test < end; test++) {
		arch_x86_64.decode((const uint8_t *)test->bytes, test->len, 0,
				   &insn);
		if (insn.kind == (enum insn_kind)test->kind)
			continue;
		printf("%s: kind %c, should be %c\n", test->text, insn.kind,
		       test->kind);
		failed = true;
	}
	return failed;
}
