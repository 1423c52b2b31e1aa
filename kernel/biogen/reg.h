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
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/workqueue.h>
#include <uapi/biogen.h>

#include "biogen.h"
#include "compat/srcu.h"

struct biogen_io;

/**
 * struct biogen_reg_page - where a page is in a registration's segments
 * @segment: the segment
 * @first: number of the page that the segment begins with
 */
struct biogen_reg_page {
	u32 segment;
	u32 first;
};

/**
 * struct biogen_reg - a registered range
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
 * @list: entry of @regs->ended or @regs->unused
 * @rcu: for the I/O in flight
 */
struct biogen_reg {
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
	struct list_head list;
	struct rcu_head rcu;
};

/**
 * struct biogen_regs - the registrations of an open file
 * @srcu: held by each I/O that uses a registration
 * @nr_slots: slots that were ever in use; only grows
 * @slots: the registrations
 * @mutex: held while a slot is filled
 * @lock: protects @slots, @ended, @unused, and &biogen_reg.live
 * @ended: registrations out of their slots
 * @unused: those of them that no I/O uses any more
 * @work: takes them from there
 */
struct biogen_regs {
	struct srcu_struct srcu;
	unsigned int nr_slots;
	struct biogen_reg __rcu *slots[BIOGEN_MAX_REGISTERED];
	struct mutex mutex; /* who fills a slot */
	spinlock_t lock; /* slots, ended, unused, live */
	struct list_head ended;
	struct list_head unused;
	struct work_struct work;
};

/**
 * struct biogen_reg_span - a buffer in registered memory, held for an I/O
 * @regs: the file's registrations
 * @srcu_idx: from entering @regs->srcu
 * @bv: the first segment
 * @skip: where the buffer begins in it
 * @nr_vecs: number of segments
 */
struct biogen_reg_span {
	struct biogen_regs *regs;
	int srcu_idx;
	struct bio_vec *bv;
	unsigned int skip;
	unsigned int nr_vecs;
};

#ifdef CONFIG_MMU_NOTIFIER
int biogen_register(struct file *file, const struct file_operations *fops,
		    struct biogen_register __user *uarg);
int biogen_unregister(struct file *file, struct biogen_register __user *uarg);
void biogen_regs_destroy(struct biogen_regs *regs);
void biogen_reg_release(struct biogen_io *io);
#else
static inline int biogen_register(struct file *file,
				  const struct file_operations *fops,
				  struct biogen_register __user *uarg)
{
	return -EOPNOTSUPP;
}

static inline int biogen_unregister(struct file *file,
				    struct biogen_register __user *uarg)
{
	return -ENOENT;
}

static inline void biogen_regs_destroy(struct biogen_regs *regs)
{
}

static inline void biogen_reg_release(struct biogen_io *io)
{
}
#endif

/* Allow registrations to be freed again. Context: any. */
static __always_inline void biogen_regs_put(struct biogen_regs *regs, int idx)
{
	compat_srcu_up_read(&regs->srcu, idx);
}

/* True if all of a buffer is in a registration, of this process. */
static __always_inline bool biogen_reg_has(const struct biogen_reg *reg,
					   unsigned long addr, size_t bytes)
{
	unsigned long offset = addr - reg->start;

	return likely(offset < reg->length) &&
	       likely(bytes <= reg->length - offset) &&
	       likely(reg->mm == current->mm);
}

/* One of the slots. @regs->srcu is held, of which lockdep is not told. */
static __always_inline const struct biogen_reg *
biogen_reg_slot(struct biogen_regs *regs, unsigned int slot)
{
	return rcu_dereference_raw(regs->slots[slot]);
}

/**
 * biogen_reg_find() - look a buffer up
 * @regs: the file's registrations, of which @regs->srcu is held
 * @addr: the buffer
 * @bytes: its size, not 0
 * @span: filled in, if it is found
 *
 * Return: true if all of the buffer is in one registration.
 */
static __always_inline bool biogen_reg_find(struct biogen_regs *regs,
					    unsigned long addr, size_t bytes,
					    struct biogen_reg_span *span)
{
	const struct biogen_reg *reg = biogen_reg_slot(regs, 0);
	const struct biogen_reg_page *page;
	unsigned long offset;
	unsigned int i;

	if (unlikely(!reg || !biogen_reg_has(reg, addr, bytes))) {
		const unsigned int nr = READ_ONCE(regs->nr_slots);

		for (i = 1; i < nr; i++) {
			reg = biogen_reg_slot(regs, i);
			if (reg && biogen_reg_has(reg, addr, bytes))
				break;
		}
		if (i >= nr)
			return false;
	}
	offset = addr - reg->base;
	page = &reg->pages[offset >> PAGE_SHIFT];
	span->bv = &reg->segments[page->segment];
	span->skip = offset - ((unsigned long)page->first << PAGE_SHIFT);
	span->nr_vecs = 1;
	if (unlikely(span->skip + bytes > span->bv->bv_len)) {
		page = &reg->pages[(offset + bytes - 1) >> PAGE_SHIFT];
		/* A bio counts up to 65535, and goes on to the end of its size. */
		span->nr_vecs = min_t(unsigned long, USHRT_MAX,
				      &reg->segments[page->segment] -
				      span->bv + 1);
	}
	return true;
}

/**
 * biogen_reg_get() - look a buffer up and hold it
 * @regs: the file's registrations
 * @addr: the buffer
 * @bytes: its size, not 0
 * @span: filled in, if it is found
 *
 * Return: true if all of the buffer is in one registration; then
 * biogen_regs_put() is called when the I/O has ended.
 */
static __always_inline bool biogen_reg_get(struct biogen_regs *regs,
					   unsigned long addr, size_t bytes,
					   struct biogen_reg_span *span)
{
	span->regs = regs;
	span->srcu_idx = compat_srcu_down_read(&regs->srcu);
	if (likely(biogen_reg_find(regs, addr, bytes, span)))
		return true;
	biogen_regs_put(regs, span->srcu_idx);
	return false;
}

#endif /* BIOGEN_REG_H */
