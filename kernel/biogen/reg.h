/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Registered memory: find it for an I/O, hold it until the I/O has ended. reg.c
 * explains it.
 */
#ifndef BIOGEN_REG_H
#define BIOGEN_REG_H

#include <linux/bvec.h>
#include <linux/compiler.h>
#include <linux/limits.h>
#include <linux/mm_types.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/percpu-refcount.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <uapi/biogen.h>

#include "biogen.h"
#include "compat/lib.h"
#include "io.h"

/**
 * struct biogen_reg_page - where a page is in a registration's segments
 * @segment: the segment
 * @start: where the segment begins, in bytes from the registration's first page
 */
struct biogen_reg_page {
	struct bio_vec *segment;
	u32 start;
};

/**
 * struct biogen_reg - a registered range
 * @ref: held by each I/O that uses the pages
 * @start: its address
 * @length: its length
 * @mm: the memory that @start is an address of; has a reference
 * @base: the address of the first page
 * @pages: for each page its segment
 * @segments: physically contiguous runs of whole pages
 * @nr_segments: number of entries in @segments
 * @nr_pages: number of entries in @pages
 * @charged: pages counted in locked_vm and pinned_vm
 * @cred: has the user that is charged; NULL with CAP_IPC_LOCK
 * @regs: the file's registrations
 * @slot: number of the entry in @regs->slots, if @live
 * @live: in a slot
 * @notifier: tells of changes of the range
 * @work: frees it
 */
struct biogen_reg {
	struct percpu_ref ref;
	unsigned long start;
	unsigned long length;
	struct mm_struct *mm;
	unsigned long base;
	struct biogen_reg_page *pages;
	struct bio_vec *segments;
	u32 nr_segments;
	u32 nr_pages;
	unsigned long charged;
	const struct cred *cred;
	struct biogen_regs *regs;
	unsigned int slot;
	bool live;
#ifdef CONFIG_MMU_NOTIFIER
	struct mmu_interval_notifier notifier;
#endif
	struct work_struct work;
};

/**
 * struct biogen_regs - the registrations of an open file
 * @nr_slots: slots that were ever in use; only grows
 * @slots: the registrations
 * @mutex: held while a slot is filled
 * @lock: protects @slots and &biogen_reg.live
 * @count: the file, and each registration that is not freed yet
 */
struct biogen_regs {
	unsigned int nr_slots;
	struct biogen_reg __rcu *slots[BIOGEN_MAX_REGISTERED];
	struct mutex mutex; /* who fills a slot */
	spinlock_t lock; /* slots, live */
	refcount_t count;
};

/**
 * struct biogen_span - a buffer in registered memory, held for an I/O
 * @reg: the registration
 * @bv: the first segment
 * @skip: where the buffer begins in it
 * @nr_vecs: number of segments
 */
struct biogen_span {
	struct biogen_reg *reg;
	struct bio_vec *bv;
	unsigned int skip;
	unsigned int nr_vecs;
};

/**
 * struct biogen_gathered - the buffers of a vector in registered memory
 * @regs: registrations that are held, by their slots, or NULL
 * @nr_vecs: number of segments
 * @vecs: the segments
 */
struct biogen_gathered {
	struct biogen_reg *regs[BIOGEN_MAX_REGISTERED];
	unsigned int nr_vecs;
	struct bio_vec vecs[BIOGEN_LARGE_VECS];
};

/* True if the file has, or had, registrations. */
static __always_inline bool biogen_has_regs(const struct file *file)
{
	const struct biogen_file *bf = file->private_data;

	return IS_ENABLED(CONFIG_MMU_NOTIFIER) && READ_ONCE(bf->regs);
}

/* Let go of a registration. Context: any. */
static __always_inline void biogen_reg_put(struct biogen_reg *reg)
{
	percpu_ref_put(&reg->ref);
}

int biogen_register(struct file *file, struct biogen_register __user *uarg);
int biogen_unregister(struct file *file, struct biogen_register __user *uarg);
void biogen_regs_release(struct biogen_regs *regs);

#ifdef CONFIG_MMU_NOTIFIER
struct biogen_gathered *biogen_gather(struct biogen_regs *regs,
				      const struct iov_iter *iter);
void biogen_gathered_put(struct biogen_gathered *gathered);
#else
static inline struct biogen_gathered *
biogen_gather(struct biogen_regs *regs, const struct iov_iter *iter)
{
	return NULL;
}

static inline void biogen_gathered_put(struct biogen_gathered *gathered)
{
}
#endif

/* True if all of a buffer is in a registration, of this process. */
static __always_inline bool biogen_reg_has(const struct biogen_reg *reg,
					   unsigned long addr, size_t bytes)
{
	unsigned long offset = addr - reg->start;

	return likely(offset < reg->length) &&
	       likely(bytes <= reg->length - offset) &&
	       likely(reg->mm == current->mm);
}

/**
 * biogen_reg_get() - look a buffer up and hold it
 * @regs: the file's registrations, in a section of biogen_rcu_lock()
 * @addr: the buffer
 * @bytes: its size, not 0
 * @span: filled in, if it is found
 *
 * Return: true if all of the buffer is in one registration; then
 * biogen_reg_put() is called when the I/O has ended.
 */
static __always_inline bool biogen_reg_get(struct biogen_regs *regs,
					   unsigned long addr, size_t bytes,
					   struct biogen_span *span)
{
	const struct biogen_reg_page *page;
	struct biogen_reg *reg;
	unsigned long offset;
	unsigned int i;

	reg = rcu_dereference(regs->slots[0]);
	if (unlikely(!reg || !biogen_reg_has(reg, addr, bytes))) {
		const unsigned int nr = READ_ONCE(regs->nr_slots);

		for (i = 1; i < nr; i++) {
			reg = rcu_dereference(regs->slots[i]);
			if (reg && biogen_reg_has(reg, addr, bytes))
				break;
		}
		if (i >= nr)
			reg = NULL;
	}
	if (unlikely(!reg) ||
	    unlikely(!compat_percpu_ref_tryget_live_rcu(&reg->ref)))
		return false;

	offset = addr - reg->base;
	page = &reg->pages[offset >> PAGE_SHIFT];
	span->reg = reg;
	span->bv = page->segment;
	span->skip = offset - page->start;
	span->nr_vecs = 1;
	if (unlikely(span->skip + bytes > span->bv->bv_len)) {
		page = &reg->pages[(offset + bytes - 1) >> PAGE_SHIFT];
		/* A bio counts up to 65535, and goes on to the end of its size. */
		span->nr_vecs = min_t(unsigned long, USHRT_MAX,
				      page->segment - span->bv + 1);
	}
	return true;
}

#endif /* BIOGEN_REG_H */
