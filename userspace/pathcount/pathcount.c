// SPDX-License-Identifier: GPL-2.0
/*
 * pathcount: a QEMU TCG plugin that counts every instruction a guest executes
 * between marker instructions.
 *
 * Until the first region only the markers themselves are instrumented, so
 * that a guest boots at its usual speed. When the number of the first region is
 * known, all code is translated again, with counting. The same happens at the
 * number of a region that is counted in the other way, full (flow.c) or flat
 * (flat.c). A block that holds a marker is always instrumented whole: the rest
 * of it runs before the switch takes effect.
 *
 * Counting is exact although faults leave blocks in the middle: the guest's own
 * code counts each instruction that begins, and when a block begins, flow.c
 * determines what was executed of the one before.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <iopath/marker.h>

#include "arch.h"
#include "calls.h"
#include "flat.h"
#include "flow.h"
#include "mainloop.h"
#include "plugin_api.h"
#include "report.h"
#include "shared.h"

#define BLOCK_BUCKETS	(1u << 16)
#define INSN_MAX	16

/**
 * struct marker - a marker instruction in the guest's code
 * @op:		what it asks for
 * @pc:		its address
 * @after:	the code behind it, up to the next marker or end of block
 * @next:	in the list of all markers
 */
struct marker {
	unsigned int op;
	uint64_t pc;
	struct block *after;
	struct marker *next;
};

int qemu_plugin_version = 1;

static qemu_plugin_id_t plugin_id;
static struct report_info info;

/* In how many rounds of a region lines are counted; 0 means @info.lines. */
static unsigned int lines_of[NR_REGIONS];
static struct {
	unsigned int region, bits;
} numbers[MAX_CPUS];	/* that markers have given */
static bool begun;
static bool waits_anywhere;	/* for a device, in some region */

/*
 * How code is instrumented: markers only, for flow.c, for flat.c, for flat.c
 * and shared.c (with several CPUs), or for calls.c. It changes when the number
 * of a region is known.
 */
static enum { MARKERS, FULL, FLAT, SHARED, CALLS } mode;
static struct block *blocks[BLOCK_BUCKETS];
static struct marker *markers;

/* What the guest's code counts into: own memory, or QEMU's from API 2 on. */
static uint64_t own_counter;
static uint64_t *insn_counter = &own_counter;
static struct qemu_plugin_scoreboard *scoreboard;

/*
 * QEMU accepts a plugin only if the version that it declares is between the
 * oldest that QEMU accepts and QEMU's own. The ranges of different QEMUs have
 * no version in common. QEMU checks the version after the plugin's constructors
 * have run; these recognise the QEMU by its functions.
 */
__attribute__((constructor)) static void declare_version(void)
{
	if (qemu_plugin_set_pc)
		qemu_plugin_version = 7;
	else if (qemu_plugin_read_memory_vaddr)
		qemu_plugin_version = 4;
	else if (qemu_plugin_scoreboard_new)
		qemu_plugin_version = 2;
}

static void count_insn(struct qemu_plugin_insn *insn)
{
	qemu_plugin_u64 entry = { scoreboard, 0 };

	if (scoreboard)
		qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn,
			QEMU_PLUGIN_INLINE_ADD_U64, entry, 1);
	else
		qemu_plugin_register_vcpu_insn_exec_inline(insn,
			QEMU_PLUGIN_INLINE_ADD_U64, &own_counter, 1);
}

/* Callbacks of the running guest. */

static void block_cb(unsigned int vcpu, void *udata)
{
	struct block *block = udata;

	if (flow_active)
		flow_step(block->addr, block);
	else if (flat_active[vcpu])
		flat_step(vcpu, block);
	else if (calls_active)
		calls_step(block->addr, block);
}

/*
 * Callbacks on memory accesses are registered for both reads and writes and
 * tell them apart themselves: QEMU 7.2 takes a filter for reads as one for
 * writes, and a filter for writes as one for both.
 */
static void access_cb(unsigned int vcpu, qemu_plugin_meminfo_t meminfo,
		      uint64_t addr, void *udata)
{
	if (flow_active)
		flow_access(addr, 1u << qemu_plugin_mem_size_shift(meminfo),
			    qemu_plugin_mem_is_store(meminfo));
}

/*
 * For an instruction that ends a block, QEMU 7.2 may also report the CPU's own
 * accesses when an interrupt follows and the CPU pushes its frame. The
 * instruction's accesses come first.
 */
static bool is_own_access(qemu_plugin_meminfo_t meminfo, bool store)
{
	static uint64_t last;

	if (qemu_plugin_mem_is_store(meminfo) != store ||
	    *insn_counter == last)
		return false;
	last = *insn_counter;
	return true;
}

static void call_cb(unsigned int vcpu, qemu_plugin_meminfo_t meminfo,
		    uint64_t addr, void *udata)
{
	access_cb(vcpu, meminfo, addr, udata);
	if (is_own_access(meminfo, true))
		flow_stack_slot(addr);
}

static void return_cb(unsigned int vcpu, qemu_plugin_meminfo_t meminfo,
		      uint64_t addr, void *udata)
{
	access_cb(vcpu, meminfo, addr, udata);
	if (is_own_access(meminfo, false))
		flow_stack_slot(addr);
}

static void string_cb(unsigned int vcpu, qemu_plugin_meminfo_t meminfo,
		      uint64_t addr, void *udata)
{
	access_cb(vcpu, meminfo, addr, udata);
	flow_string_access(1u << qemu_plugin_mem_size_shift(meminfo));
}

static void stack_saved_cb(unsigned int vcpu, qemu_plugin_meminfo_t meminfo,
			   uint64_t addr, void *udata)
{
	access_cb(vcpu, meminfo, addr, udata);
	if (is_own_access(meminfo, true))
		flow_stack_saved(addr);
	if (qemu_plugin_mem_is_store(meminfo)) {
		flat_stack_saved(vcpu, addr);
		calls_stack_saved(addr);
	}
}

static void stack_loaded_cb(unsigned int vcpu, qemu_plugin_meminfo_t meminfo,
			    uint64_t addr, void *udata)
{
	access_cb(vcpu, meminfo, addr, udata);
	if (is_own_access(meminfo, false))
		flow_stack_loaded(addr);
	if (!qemu_plugin_mem_is_store(meminfo)) {
		flat_stack_loaded(vcpu, addr);
		calls_stack_loaded(addr);
	}
}

/* Code may be translated before a region and executed in it. */
static void shared_cb(unsigned int vcpu, qemu_plugin_meminfo_t meminfo,
		      uint64_t addr, void *udata)
{
	bool store = qemu_plugin_mem_is_store(meminfo);
	struct qemu_plugin_hwaddr *where;

	if (!flat_active[vcpu])
		return;
	where = qemu_plugin_get_hwaddr(meminfo, addr);
	if (!where || qemu_plugin_hwaddr_is_io(where))
		return;
	shared_access(vcpu, udata, addr, qemu_plugin_hwaddr_phys_addr(where),
		      1u << qemu_plugin_mem_size_shift(meminfo), store);
}

static void shared_saved_cb(unsigned int vcpu, qemu_plugin_meminfo_t meminfo,
			    uint64_t addr, void *udata)
{
	shared_cb(vcpu, meminfo, addr, udata);
	if (qemu_plugin_mem_is_store(meminfo))
		flat_stack_saved(vcpu, addr);
}

static void shared_loaded_cb(unsigned int vcpu, qemu_plugin_meminfo_t meminfo,
			     uint64_t addr, void *udata)
{
	shared_cb(vcpu, meminfo, addr, udata);
	if (!qemu_plugin_mem_is_store(meminfo))
		flat_stack_loaded(vcpu, addr);
}

static void translate_cb(struct qemu_plugin_tb *tb, void *udata);
static void atexit_cb(void *udata);

static void translate_v1_cb(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	translate_cb(tb, NULL);
}

/* This function and atexit_cb() ignore their argument. */
static void register_cb(void *udata)
{
	qemu_plugin_tb_trans_v1_cb_t translate_v1 = translate_v1_cb;

	qemu_plugin_register_vcpu_tb_trans_cb(plugin_id,
		info.api_used >= 7 ?
			translate_cb :
			(qemu_plugin_tb_trans_cb_t)(void *)translate_v1,
		NULL);
	qemu_plugin_register_atexit_cb(plugin_id, atexit_cb, NULL);
}

static bool is_flat(unsigned int region)
{
	return region >= info.flat;
}

/* Have code instrumented for the next region; this takes effect soon. */
static void prepare(unsigned int region)
{
	typeof(mode) wanted = calls_functions  ? CALLS :
			      flat_nr_cpus > 1 ? SHARED :
			      is_flat(region)  ? FLAT :
						 FULL;

	if (mode == wanted)
		return;
	mode = wanted;
	if (waits_anywhere)
		mainloop_hold();
	if (scoreboard)
		insn_counter = qemu_plugin_scoreboard_find(scoreboard, 0);
	qemu_plugin_reset(plugin_id, register_cb, NULL);
}

static void begin(unsigned int vcpu, struct marker *marker)
{
	unsigned int number = numbers[vcpu].region;

	begun = true;
	/* A region without a number has the last number, or 0. */
	prepare(number);
	if (calls_functions) {
		if (calls_region.nr_buckets)
			info.faults[FAULT_NESTED]++;
		else
			calls_begin(insn_counter, marker->after);
		return;
	}
	if (flat_nr_cpus > 1)
		shared_begin(number);
	if (flat_nr_cpus > 1 || is_flat(number))
		flat_begin(vcpu, number, marker->after);
	else
		flow_begin(number, insn_counter, marker->after,
			   lines_of[number] ? lines_of[number] : info.lines);
}

static void end(unsigned int vcpu)
{
	if (flow_active)
		flow_end();
	else if (flat_active[vcpu])
		shared_end(vcpu, flat_end(vcpu));
	else if (calls_active)
		calls_end();
	else
		info.faults[FAULT_NO_BEGIN]++;
}

static void marker_cb(unsigned int vcpu, void *udata)
{
	struct marker *marker = udata;

	if (flow_active)
		flow_step(marker->pc, NULL);
	else if (flat_active[vcpu])
		flat_marker(vcpu, marker->pc);
	else if (calls_active)
		calls_step(marker->pc, NULL);

	/* Markers of the program have no effect. */
	if (calls_active && (marker->op != IOPATH_MARK_END || calls_in_program())) {
		calls_resume(marker->after);
		return;
	}
	switch (marker->op) {
	case IOPATH_MARK_BIT0:
	case IOPATH_MARK_BIT1:
		numbers[vcpu].region = (numbers[vcpu].region << 1 |
					marker->op) & (NR_REGIONS - 1);
		if (++numbers[vcpu].bits == IOPATH_MARK_BITS)
			prepare(numbers[vcpu].region);
		break;
	case IOPATH_MARK_RESET:
		numbers[vcpu].region = 0;
		numbers[vcpu].bits = 0;
		break;
	case IOPATH_MARK_BEGIN:
		if (!flow_active && !flat_active[vcpu]) {
			begin(vcpu, marker);
			return;
		}
		info.faults[FAULT_NESTED]++;
		break;
	case IOPATH_MARK_END:
		end(vcpu);
		break;
	}
	if (flow_active)
		flow_resume(marker->after);
	else if (flat_active[vcpu])
		flat_resume(vcpu, marker->after);
}

/* Translation. */

static size_t insn_bytes(struct qemu_plugin_insn *insn, uint8_t *bytes)
{
	size_t size = qemu_plugin_insn_size(insn);
	qemu_plugin_insn_data_v1_t insn_data_v1 =
		(qemu_plugin_insn_data_v1_t)(void *)qemu_plugin_insn_data;

	if (size > INSN_MAX)
		size = INSN_MAX;
	if (info.api_cur >= 3)
		qemu_plugin_insn_data(insn, bytes, size);
	else
		memcpy(bytes, insn_data_v1(insn), size);
	return size;
}

static bool has_marker(struct qemu_plugin_tb *tb, size_t nr)
{
	uint8_t bytes[INSN_MAX];
	size_t i;

	for (i = 0; i < nr; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		if (arch->marker(bytes, insn_bytes(insn, bytes)) >= 0)
			return true;
	}
	return false;
}

/* Markers are few; the same one may be translated many times. */
static struct marker *find_marker(unsigned int op, uint64_t pc,
				  struct block *after)
{
	struct marker *marker;

	for (marker = markers; marker; marker = marker->next)
		if (marker->op == op && marker->pc == pc &&
		    marker->after == after)
			return marker;
	marker = flow_alloc(sizeof(*marker));
	*marker = (struct marker){ op, pc, after, markers };
	markers = marker;
	return marker;
}

/*
 * The block of @nr instructions of @tb from @first on. If the same code is
 * translated again, it gets the same struct block.
 */
static struct block *find_block(struct qemu_plugin_tb *tb, size_t first,
				size_t nr, uint64_t addr)
{
	uint8_t bytes[nr * INSN_MAX + 1], lens[nr + 1];
	struct block *block, **bucket;
	struct insn insn = { .kind = INSN_PLAIN };
	size_t i, size = 0;
	uint64_t pc = addr;

	for (i = 0; i < nr; i++) {
		lens[i] = insn_bytes(qemu_plugin_tb_get_insn(tb, first + i),
				     bytes + size);
		size += lens[i];
	}
	bucket = &blocks[(addr ^ addr >> 16 ^ nr << 12) % BLOCK_BUCKETS];
	for (block = *bucket; block; block = block->next)
		if (block->addr == addr && block->nr == nr &&
		    block->end == addr + size &&
		    !memcmp(block->bytes, bytes, size))
			return block;

	block = flow_alloc_block();
	block->addr = addr;
	block->end = addr + size;
	block->nr = nr;
	block->id = -1;
	/* Code behind a call may look like an entry: clac or a NOP, then a call. */
	block->entry_shape = arch->is_entry(bytes, size, addr) &&
			     !flat_is_return(addr);
	block->lens = flow_alloc(nr + 1);
	memcpy(block->lens, lens, nr);
	block->bytes = flow_alloc(size + 1);
	memcpy(block->bytes, bytes, size);
	block->kinds = flow_alloc(nr + 1);
	for (i = 0; i < nr; i++) {
		arch->decode(block->bytes + (pc - addr), lens[i], pc, &insn);
		block->kinds[i] = insn.kind;
		block->pauses |= arch->pauses(block->bytes + (pc - addr),
					      lens[i]);
		block->last_pc = pc;
		pc += lens[i];
	}
	block->last_kind = insn.kind;
	if (insn.kind == INSN_CALL || insn.kind == INSN_CALL_IND)
		flat_note_call(pc);
	block->target = insn.target;
	block->falls_through = falls_through(insn.kind);
	block->accesses = insn.accesses;
	block->next = *bucket;
	*bucket = block;
	return block;
}

/* One callback for each access, even for several purposes. */
static qemu_plugin_vcpu_mem_cb_t memory_cb(struct qemu_plugin_insn *insn,
					   enum insn_kind kind)
{
	uint8_t bytes[INSN_MAX];
	size_t size = insn_bytes(insn, bytes);
	bool kernel = qemu_plugin_insn_vaddr(insn) >> 63;

	switch (kind) {
	case INSN_REP:
		return string_cb;
	case INSN_CALL:
	case INSN_CALL_IND:
		return call_cb;
	case INSN_RET:
		return return_cb;
	default:
		if (kernel && arch->saves_stack(bytes, size))
			return stack_saved_cb;
		if (kernel && arch->loads_stack(bytes, size))
			return stack_loaded_cb;
		return access_cb;
	}
}

static void instrument_shared(struct qemu_plugin_insn *insn,
			      enum insn_kind kind, qemu_plugin_vcpu_mem_cb_t cb)
{
	cb = cb == stack_saved_cb  ? shared_saved_cb :
	     cb == stack_loaded_cb ? shared_loaded_cb :
				     shared_cb;
	qemu_plugin_register_vcpu_mem_cb(insn, cb, QEMU_PLUGIN_CB_NO_REGS,
		QEMU_PLUGIN_MEM_RW,
		shared_site(qemu_plugin_insn_vaddr(insn), kind));
}

static void instrument_insn(struct qemu_plugin_insn *insn, enum insn_kind kind)
{
	qemu_plugin_vcpu_mem_cb_t cb = memory_cb(insn, kind);

	if (mode == SHARED) {
		instrument_shared(insn, kind, cb);
		return;
	}
	if (mode == FLAT && cb != stack_saved_cb && cb != stack_loaded_cb)
		return;
	count_insn(insn);
	/*
	 * QEMU 7.2 continues to use the callbacks of an instruction that ended
	 * a block after all code was translated again. So only instructions
	 * that need them have callbacks at any time.
	 */
	if (calls_functions && cb != stack_saved_cb && cb != stack_loaded_cb)
		return;
	qemu_plugin_register_vcpu_mem_cb(insn, cb, QEMU_PLUGIN_CB_NO_REGS,
					 QEMU_PLUGIN_MEM_RW, NULL);
}

static void wait_cb(unsigned int vcpu, void *udata)
{
	mainloop_run();
}

/* Devices answer where the kernel waits. */
static void instrument_waits(struct qemu_plugin_tb *tb, size_t nr)
{
	uint8_t bytes[INSN_MAX];
	size_t i, size;

	for (i = 0; i < nr; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		size = insn_bytes(insn, bytes);
		if (is_kernel(qemu_plugin_insn_vaddr(insn)) &&
		    (arch->idles(bytes, size) || arch->pauses(bytes, size)))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, wait_cb,
				QEMU_PLUGIN_CB_NO_REGS, NULL);
	}
}

/* Instrument the instructions of @tb from @first up to the next marker. */
static struct block *instrument(struct qemu_plugin_tb *tb, size_t first,
				size_t nr_insns, uint64_t addr)
{
	uint8_t bytes[INSN_MAX];
	struct block *block;
	size_t i, nr;

	for (nr = 0; first + nr < nr_insns; nr++) {
		struct qemu_plugin_insn *insn =
			qemu_plugin_tb_get_insn(tb, first + nr);

		if (arch->marker(bytes, insn_bytes(insn, bytes)) >= 0)
			break;
	}
	block = find_block(tb, first, nr, addr);
	for (i = 0; i < nr; i++)
		instrument_insn(qemu_plugin_tb_get_insn(tb, first + i),
				block->kinds[i]);
	return block;
}

static void translate_cb(struct qemu_plugin_tb *tb, void *udata)
{
	size_t nr = qemu_plugin_tb_n_insns(tb), i;
	struct block *block;
	uint64_t addr;

	if (waits_anywhere)
		instrument_waits(tb, nr);
	if (mode == MARKERS && !has_marker(tb, nr))
		return;
	addr = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0));
	block = instrument(tb, 0, nr, addr);
	if (block->nr)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, block_cb,
						     QEMU_PLUGIN_CB_NO_REGS,
						     block);
	for (i = block->nr; i < nr; i += 1 + block->nr) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t bytes[INSN_MAX];
		size_t size = insn_bytes(insn, bytes);
		uint64_t pc = qemu_plugin_insn_vaddr(insn);

		block = instrument(tb, i + 1, nr, pc + size);
		qemu_plugin_register_vcpu_insn_exec_cb(insn, marker_cb,
			QEMU_PLUGIN_CB_NO_REGS,
			find_marker(arch->marker(bytes, size), pc, block));
	}
}

/* Start and end. */

static void atexit_cb(void *udata)
{
	unsigned int cpu;

	if (flow_active) {
		info.faults[FAULT_NO_END]++;
		flow_abandon();
	}
	info.faults[FAULT_NO_END] += calls_active;
	for (cpu = 0; cpu < flat_nr_cpus; cpu++) {
		if (!flat_active[cpu])
			continue;
		info.faults[FAULT_NO_END]++;
		flat_abandon(cpu);
		shared_end(cpu, false);
	}
	shared_finish();
	info.faults[FAULT_LOST] = flat_lost + calls_lost;
	if (!begun)
		info.faults[FAULT_NO_MARKER]++;
	/* A guest that was not counted must not look like one that was. */
	if (!report_write(&info))
		_exit(1);
}

static bool parse_option(const char *arg, const char **out)
{
	char *end;

	if (!strncmp(arg, "out=", 4) && arg[4]) {
		*out = arg + 4;
		return true;
	}
	if (!strncmp(arg, "lines=", 6) && arg[6] >= '0' && arg[6] <= '9') {
		unsigned long region, lines = strtoul(arg + 6, &end, 10);

		if (!*end && lines <= 1000000) {
			info.lines = lines;
			return true;
		}
		region = lines;
		if (*end == ':' && region < NR_REGIONS && end[1] >= '1' &&
		    end[1] <= '9') {
			lines = strtoul(end + 1, &end, 10);
			if (!*end && lines <= 1000000) {
				lines_of[region] = lines;
				return true;
			}
		}
	}
	if (!strcmp(arg, "model=0") || !strcmp(arg, "model=1")) {
		flow_model = arg[6] == '1';
		return true;
	}
	if (!strncmp(arg, "flat=", 5) && arg[5] >= '0' && arg[5] <= '9') {
		unsigned long flat = strtoul(arg + 5, &end, 10);

		if (!*end && flat < NR_REGIONS) {
			info.flat = flat;
			return true;
		}
	}
	if (!strncmp(arg, "calls=", 6) && arg[6]) {
		calls_functions = arg + 6;
		return true;
	}
	if (!strncmp(arg, "limit=", 6) && arg[6] >= '1' && arg[6] <= '9') {
		calls_limit = strtoull(arg + 6, &end, 10);
		if (!*end)
			return true;
	}
	if (!strncmp(arg, "interrupts=", 11) && arg[11] >= '0' &&
	    arg[11] <= '9') {
		unsigned long region = strtoul(arg + 11, &end, 10);

		if (*end == ':' && region < NR_REGIONS &&
		    !strcmp(end + 1, "any")) {
			flow_expected[region] = ANY_INTERRUPTS;
			return true;
		}
		if (*end == ':' && region < NR_REGIONS && end[1] >= '0' &&
		    end[1] <= '9') {
			unsigned long nr = strtoul(end + 1, &end, 10);

			if (!*end && nr <= 1000000) {
				flow_expected[region] = nr;
				return true;
			}
		}
	}
	if (!strncmp(arg, "waits=", 6) && arg[6] >= '0' && arg[6] <= '9') {
		unsigned long region = strtoul(arg + 6, &end, 10);

		if (!*end && region < NR_REGIONS) {
			flow_waits[region] = true;
			waits_anywhere = true;
			return true;
		}
	}
	fprintf(stderr,
		"pathcount: bad option '%s': takes out=PATH, lines=ROUNDS (0 to 1000000) or REGION:ROUNDS, model=0 or 1, flat=REGION (0 to %d), interrupts=REGION:N or REGION:any, waits=REGION, calls=PATH and limit=INSTRUCTIONS\n",
		arg, NR_REGIONS - 1);
	return false;
}

/**
 * qemu_plugin_install() - QEMU loads the plugin
 * @id: names the plugin to QEMU
 * @qemu: about QEMU and the guest
 * @argc: number of options
 * @argv: options, name=value
 *
 * Return: 0, or -1 after a message if pathcount cannot work here.
 */
int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *qemu,
			int argc, char **argv)
{
	const char *out = NULL;
	int i;

	plugin_id = id;
	info.api_min = qemu->version.min;
	info.api_cur = qemu->version.cur;
	info.api_used = qemu_plugin_version;
	info.flat = NR_REGIONS;
	if (!qemu_plugin_scoreboard_new &&
	    !qemu_plugin_register_vcpu_insn_exec_inline) {
		fprintf(stderr,
			"pathcount: this QEMU has plugin API %d, which cannot count inline: use QEMU 7.2 or newer\n",
			info.api_cur);
		return -1;
	}
	if (!qemu->system_emulation || !arch_choose(qemu->target_name)) {
		fprintf(stderr,
			"pathcount: counts whole guests of x86_64, aarch64 and riscv64 only: use qemu-system-x86_64, qemu-system-aarch64 or qemu-system-riscv64, not %s emulation of %s\n",
			qemu->system_emulation ? "system" : "user",
			qemu->target_name);
		return -1;
	}
	if (qemu->system.max_vcpus > MAX_CPUS) {
		fprintf(stderr,
			"pathcount: the guest may have up to %d CPUs: at most %d can be counted\n",
			qemu->system.max_vcpus, MAX_CPUS);
		return -1;
	}
	flat_nr_cpus = qemu->system.max_vcpus;
	for (i = 0; i < argc; i++)
		if (!parse_option(argv[i], &out))
			return -1;
	if (!out) {
		fputs("pathcount: no output file: give out=PATH\n", stderr);
		return -1;
	}
	if (calls_functions && flat_nr_cpus > 1) {
		fputs("pathcount: calls= counts a guest of one CPU\n", stderr);
		return -1;
	}
	if (!report_open(out))
		return -1;
	if (waits_anywhere)
		mainloop_install();
	if (qemu_plugin_scoreboard_new)
		scoreboard = qemu_plugin_scoreboard_new(sizeof(uint64_t));
	register_cb(NULL);
	return 0;
}
