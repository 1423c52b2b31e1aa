/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of QEMU's TCG plugin interface that pathcount uses.
 *
 * Distributions ship plugin-capable QEMUs without a header for plugins, so
 * the few functions needed are declared here. Functions that not every
 * supported QEMU has are weak: API 1 (QEMU 7.2) counts inline through plain
 * pointers, API 2 (QEMU 9.0) and later through scoreboards.
 */
#ifndef PATHCOUNT_PLUGIN_API_H
#define PATHCOUNT_PLUGIN_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLUGIN_EXPORT	__attribute__((visibility("default")))
#define PLUGIN_WEAK	__attribute__((weak))

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_scoreboard;
struct qemu_plugin_hwaddr;

/* What QEMU tells a plugin about itself and the guest. */
typedef struct {
	const char *target_name;
	struct {
		int min;
		int cur;
	} version;
	bool system_emulation;
	struct {
		int smp_vcpus;
		int max_vcpus;
	} system;
} qemu_info_t;

/* One 64-bit member of each vCPU's entry of a scoreboard (API 2). */
typedef struct {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
} qemu_plugin_u64;

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS = 0 };
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 = 0 };

enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_RW = 3 };

/*
 * Callbacks as of API 7. Before that, the first argument is the plugin's id, and
 * the ones of qemu_plugin_reset() and of translations have no udata.
 */
typedef void (*qemu_plugin_udata_cb_t)(void *udata);
typedef void (*qemu_plugin_tb_trans_cb_t)(struct qemu_plugin_tb *tb,
					  void *udata);
typedef void (*qemu_plugin_tb_trans_v1_cb_t)(qemu_plugin_id_t id,
					     struct qemu_plugin_tb *tb);
typedef void (*qemu_plugin_vcpu_udata_cb_t)(unsigned int vcpu, void *udata);
typedef void (*qemu_plugin_vcpu_mem_cb_t)(unsigned int vcpu,
					  qemu_plugin_meminfo_t info,
					  uint64_t vaddr, void *udata);

/* What QEMU looks for in a plugin. */
extern PLUGIN_EXPORT int qemu_plugin_version;
PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id,
				      const qemu_info_t *info,
				      int argc, char **argv);

/* All versions. The first and the third take no udata before API 7. */
void qemu_plugin_reset(qemu_plugin_id_t id, qemu_plugin_udata_cb_t cb,
		       void *udata);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id,
				    qemu_plugin_udata_cb_t cb, void *udata);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   qemu_plugin_tb_trans_cb_t cb,
					   void *udata);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb,
					  qemu_plugin_vcpu_udata_cb_t cb,
					  enum qemu_plugin_cb_flags flags,
					  void *udata);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    qemu_plugin_vcpu_udata_cb_t cb,
					    enum qemu_plugin_cb_flags flags,
					    void *udata);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
				      qemu_plugin_vcpu_mem_cb_t cb,
				      enum qemu_plugin_cb_flags flags,
				      enum qemu_plugin_mem_rw rw,
				      void *udata);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *
qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t idx);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
struct qemu_plugin_hwaddr *
qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *haddr);
uint64_t
qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *haddr);

/*
 * Copies the bytes of an instruction from API 3 on; before that it takes the
 * instruction alone and returns a pointer to them.
 */
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn,
			     void *dest, size_t len);
typedef const void *(*qemu_plugin_insn_data_v1_t)
	(const struct qemu_plugin_insn *insn);

/* API 1 only. */
PLUGIN_WEAK void
qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn,
					   enum qemu_plugin_op op,
					   void *ptr, uint64_t imm);

/* API 2 and later. */
PLUGIN_WEAK struct qemu_plugin_scoreboard *
qemu_plugin_scoreboard_new(size_t element_size);
PLUGIN_WEAK void *
qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score,
			    unsigned int vcpu);
PLUGIN_WEAK void
qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *i,
						    enum qemu_plugin_op op,
						    qemu_plugin_u64 entry,
						    uint64_t imm);

/* API 4 and later; never called, its presence shows the version. */
PLUGIN_WEAK bool qemu_plugin_read_memory_vaddr(uint64_t addr, void *data,
					       size_t len);

/* API 7 and later (QEMU 11), never called, either. */
PLUGIN_WEAK void qemu_plugin_set_pc(uint64_t vaddr);

#endif /* PATHCOUNT_PLUGIN_API_H */
