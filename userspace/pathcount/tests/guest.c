// SPDX-License-Identifier: GPL-2.0
/*
 * The guest of pathcount's test: an init process that runs marked code whose
 * every instruction is known, and reports what the guest's clock says of each
 * round (under -icount shift=0 the time stamp counter counts instructions).
 *
 * One line per round on the second serial port: region, ticks.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iopath/marker.h>

#define PAGE	4096
#define ROUNDS	10

static FILE *results;

/*
 * Bodies: called with an argument in %rdi, all of their instructions are
 * here. The counts that test_pathcount.py expects are written beside them;
 * the call that enters a body adds one.
 */
asm(".text\n"
	/* 1 + 2 * 1000 + 1 = 2002 */
	"body_loop: mov $1000, %ecx\n"
	"1: dec %ecx; jnz 1b\n"
	"ret\n"
	/* 1 + 2 * 20,000,000 + 1 */
	"body_long: mov $20000000, %ecx\n"
	"1: dec %ecx; jnz 1b\n"
	"ret\n"
	/* 1 + 100 * (1 + leaf 2 + 1 + mid 3 + 2 leaf 4 + 2) + 1 = 1302 */
	"body_calls: mov $100, %ecx\n"
	"1: call leaf; call mid; dec %ecx; jnz 1b\n"
	"ret\n"
	"mid: call leaf; call leaf; ret\n"
	"leaf: nop; ret\n"
	/* 2 + 100 * 4 + 1 = 403, of them 200 locked */
	"body_locked: mov $100, %ecx; lea -16(%rsp), %rdx\n"
	"1: lock incl (%rdx); xchg %eax, (%rdx); dec %ecx; jnz 1b\n"
	"ret\n"
	/* 2 + 100 * (1 + leaf 2 + 2) + 1 = 503 */
	"body_indirect: mov $100, %ecx; lea leaf(%rip), %rdx\n"
	"1: call *%rdx; dec %ecx; jnz 1b\n"
	"ret\n"
	/* 1 + 64 * 4 + 1 = 258, 64 page faults */
	"body_fault: mov $64, %ecx\n"
	"1: movb $1, (%rdi); add $4096, %rdi; dec %ecx; jnz 1b\n"
	"ret\n"
	/* 1 + 64 * (3 + syscall 1 + 2) + 1 = 386: a fault before a system call */
	"body_fault_syscall: mov $64, %r8d\n"
	"1: mov $110, %eax; movb $1, (%rdi); add $4096, %rdi; syscall\n"
	"dec %r8d; jnz 1b\n"
	"ret\n"
	/*
	 * 1 + 4,000,000 * (1 + 2 * 3 + 2) + 1 = 36,000,002: ticks where a block
	 * leads into itself
	 */
	"body_long_loops: mov $4000000, %r8d\n"
	"1: mov $2, %ecx\n"
	"2: nop; dec %ecx; jnz 2b\n"
	"dec %r8d; jnz 1b\n"
	"ret\n"
	/* 3 + 64 * (1 + leaf 2 + 3) + 2 = 389: the call itself faults */
	"body_fault_call: mov $64, %ecx; mov %rsp, %rdx\n"
	"lea 4096(%rdi), %rsp\n"
	"1: call leaf; add $4096, %rsp; dec %ecx; jnz 1b\n"
	"mov %rdx, %rsp; ret\n"
	/* 3 + (65536 + 1) + 1 = 65541: faults inside of a repeated one */
	"body_fault_rep: mov $65536, %ecx; xor %eax, %eax; cld\n"
	"rep stosb\n"
	"ret\n"
	/* 4 + (5,000,000 + 1) + 1: interrupts inside of one */
	"body_rep: mov $5000000, %ecx; mov %rdi, %rsi; cld; nop\n"
	"rep lodsb\n"
	"ret\n"
	/* 1 + 100 * (1 + syscall 1 + 2) + 1 = 402 in user mode */
	"body_getppid: mov $100, %r8d\n"
	"1: mov $110, %eax; syscall; dec %r8d; jnz 1b\n"
	"ret\n"
	/* 2 + 100 * 12 + 1 = 1203 in user mode: a byte to a child and back */
	"body_pingpong: mov $100, %r8d; mov %rdi, %rsi\n"
	"1: mov $1, %eax; mov $100, %edi; mov $1, %edx; syscall\n"
	"xor %eax, %eax; mov $101, %edi; mov $1, %edx; syscall\n"
	"nop; nop; dec %r8d; jnz 1b\n"
	"ret\n"
	/* A retpoline: 2 + 100 * (1 + 3 + leaf 2 + 2) + 1 = 803 */
	"body_retpoline: mov $100, %ecx; lea leaf(%rip), %rdx\n"
	"1: call thunk; dec %ecx; jnz 1b\n"
	"ret\n"
	"thunk: call 1f\n"
	"2: pause; lfence; jmp 2b\n"
	"1: mov %rdx, (%rsp); ret\n"
	/* 2 + 4,000,000 * 5 + 1: interrupts after returns and calls */
	"body_long_indirect: mov $4000000, %ecx; lea leaf(%rip), %rdx\n"
	"1: call *%rdx; dec %ecx; jnz 1b\n"
	"ret\n"
	/* 3 + 100 * 11 + 2 + (64 + 1) + 2 + (7 + 1) + 2 = 1182, 64 + 56 bytes */
	"body_costly: mov $100, %r9d; mov %rbx, %r10; mov %rdi, %r8\n"
	"1: rdtsc; rdtscp; xor %eax, %eax; cpuid; lfence; mfence; sfence\n"
	"in $0x80, %al; out %al, $0x80; dec %r9d; jnz 1b\n"
	"xor %eax, %eax; mov $64, %ecx; rep stosb\n"
	"mov %r8, %rsi; mov $7, %ecx; rep movsq\n"
	"mov %r10, %rbx; ret\n"
	/* 8; 4 reads on 5 lines, 1 write, besides the return's read */
	"body_lines: xor %eax, %eax; xor %ecx, %ecx\n"
	"mov (%rdi), %eax; mov 64(%rdi), %eax; mov %eax, 128(%rdi)\n"
	"mov 132(%rdi), %eax; mov 254(%rdi), %eax\n"
	"ret\n");

typedef void body_fn(void *arg);
body_fn body_loop, body_long, body_calls, body_locked, body_indirect,
	body_fault, body_fault_syscall, body_fault_call, body_fault_rep,
	body_rep, body_getppid, body_pingpong, body_retpoline,
	body_long_indirect, body_long_loops, body_costly, body_lines;

/* Ticks from the first rdtsc to the second: the region's and four more. */
static uint32_t timed(body_fn *body, void *arg)
{
	uint32_t ticks;

	asm volatile("mov %%rsp, %%r13; sub $128, %%rsp; and $-16, %%rsp\n\t"
		     "rdtsc; mov %%eax, %%r12d\n\t"
		     ".byte 0x0f, 0x1f, 0x84, 0x00; .long %c[begin]\n\t"
		     "call *%%rbx\n\t"
		     ".byte 0x0f, 0x1f, 0x84, 0x00; .long %c[end]\n\t"
		     "rdtsc; sub %%r12d, %%eax; mov %%r13, %%rsp"
		     : "=&a" (ticks), "+D" (arg)
		     : "b" (body),
		       [begin] "i" (IOPATH_MARK_MAGIC | IOPATH_MARK_BEGIN),
		       [end] "i" (IOPATH_MARK_MAGIC | IOPATH_MARK_END)
		     : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12",
		       "r13", "cc", "memory");
	return ticks;
}

static void run(unsigned int region, unsigned int rounds, body_fn *body,
		void *arg, size_t step)
{
	uint32_t ticks[ROUNDS];
	unsigned int i;

	iopath_mark_region(region);
	memset(ticks, 0, sizeof(ticks));
	for (i = 0; i < rounds; i++)
		ticks[i] = timed(body, (char *)arg + i * step);
	for (i = 0; i < rounds; i++)
		fprintf(results, "%u %u\n", region, ticks[i]);
}

static void *pages(size_t nr)
{
	char *p = mmap(NULL, (nr + 1) * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	madvise(p, nr * PAGE, MADV_NOHUGEPAGE);
	return p;
}

/* Blocks in every read, so that the scheduler has to switch. */
static void pingpong(unsigned int region, char *buf)
{
	int there[2], back[2];
	pid_t child;

	if (pipe(there) || pipe(back))
		exit(1);
	child = fork();
	if (!child)
		while (read(there[0], buf, 1) == 1)
			if (write(back[1], buf, 1) != 1)
				break;
	dup2(there[1], 100);
	dup2(back[0], 101);
	run(region, ROUNDS, body_pingpong, buf, 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	/* Environment of init: what the kernel does not know of its options. */
	const char *faults = getenv("faults");
	char *p = pages(16);

	(void)argc;
	(void)argv;
	results = fopen("/dev/ttyS1", "w");
	if (!results)
		return 1;
	memset(p, 1, 16 * PAGE);
	if (getenv("unmarked"))
		goto out;
	run(1, ROUNDS, body_loop, NULL, 0);
	run(2, ROUNDS, body_calls, NULL, 0);
	run(3, ROUNDS, body_locked, NULL, 0);
	run(4, ROUNDS, body_indirect, NULL, 0);
	run(5, 2, body_long, NULL, 0);
	run(6, 4, body_fault, pages(4 * 64), 64 * PAGE);
	run(7, 4, body_fault_call, pages(4 * 64), 64 * PAGE);
	run(8, 4, body_fault_rep, pages(4 * 16), 16 * PAGE);
	run(9, 2, body_rep, mmap(NULL, 5000000, PROT_READ, MAP_PRIVATE |
				 MAP_ANONYMOUS | MAP_POPULATE, -1, 0), 0);
	run(10, ROUNDS, body_getppid, NULL, 0);
	pingpong(11, p);
	run(12, ROUNDS, body_retpoline, NULL, 0);
	run(13, 2, body_long_indirect, NULL, 0);
	if (ioperm(0x80, 1, 1))
		goto out;
	run(14, ROUNDS, body_costly, p, 0);
	run(15, 4, body_fault_syscall, pages(4 * 64), 64 * PAGE);
	run(16, 2, body_long_loops, NULL, 0);
	run(65535, 4, body_lines, p, 0);
	if (faults) {
		iopath_mark_end();
		iopath_mark_begin();
		iopath_mark_begin();
		iopath_mark_end();
		iopath_mark_begin();
	}
out:
	fputs("done\n", results);
	fclose(results);
	sync();
	reboot(RB_AUTOBOOT);
	return 1;
}
