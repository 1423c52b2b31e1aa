// SPDX-License-Identifier: GPL-2.0
/*
 * Registered memory: pin once, then read and write without pinning.
 *
 * BIOGEN_REGISTER pins the pages of a range of user memory and makes two tables
 * of them: the segments, which are the physically contiguous runs of pages, in
 * the form that a bio takes; and for each page the segment that it is in. Files
 * that have registrations look the buffers of their I/O up (rw.c). An I/O whose
 * buffer is in a registered range takes its segments from the table, and its bio
 * points into the table. Any other I/O pins its memory.
 *
 * The end of a registration
 * -------------------------
 *
 * A registration is *live* while it is in one of the file's slots. It leaves the
 * slot by BIOGEN_UNREGISTER, by the release of the file, or because an MMU
 * notifier says that the page tables of the range change. It ends as a whole. I/O
 * that begins later does not find it.
 *
 * Each I/O holds the registration's percpu_ref from the lookup until its bio has
 * ended. percpu_ref_kill() drops the first reference after a grace period of RCU,
 * in which lookups that found the registration in its slot have ended. Whoever
 * drops the last reference queues the work that removes the notifier, dirties
 * and unpins the pages and frees the registration. BIOGEN_UNREGISTER waits for
 * the RCU callback, and for that work. It does not wait for I/O in flight.
 *
 * The release of a file waits for nothing. No I/O is in flight and none begins,
 * so a registration that is live then is freed without its count.
 *
 * An I/O that looks a buffer up just before the range is unmapped uses the old
 * pages. So does the ordinary path if it pins the page just before. An I/O that
 * begins after munmap() returned sees the empty slot: the notifier emptied it
 * before munmap() changed the page tables.
 *
 * Which changes end it
 * --------------------
 *
 * All but these, after which the range still has the same pages and may still
 * be written:
 *
 * - MMU_NOTIFY_PROTECTION_PAGE: fork() write-protects the pages of the parent.
 *   It does not for pinned anonymous pages: they stay as they are, and the child
 *   gets copies. If a page is replaced nevertheless, by a fault in the parent,
 *   MMU_NOTIFY_CLEAR comes first.
 * - MMU_NOTIFY_SOFT_DIRTY: the same, for tracking what a program writes.
 * - MMU_NOTIFY_PROTECTION_VMA, if the mappings may still be written: mprotect()
 *   that adds a permission, and NUMA balancing, which scans all memory of a
 *   program again and again.
 *
 * A page that is pinned for long is not migrated, swapped or merged. But some
 * attempts to do so announce MMU_NOTIFY_CLEAR first; so does splitting the mapping
 * of a huge page. Then a registration ends without need, which costs time but is
 * correct.
 *
 * Dirty pages
 * -----------
 *
 * The pages are anonymous, of tmpfs or of hugetlbfs. Nothing but swap writes them
 * back, and a pinned page that was written to swap stays in memory. So it is
 * enough that it is dirty when it is unpinned: nobody reads the copy in swap
 * before. Pages of other files are written back at any time, and would have to be
 * dirtied after each I/O. They are refused.
 *
 * Locks
 * -----
 *
 * regs->mutex is held while a range is pinned and put into a slot. mmap_lock is
 * taken inside of it, while the mappings are checked; pinning takes it by itself
 * and drops it while it waits for a page. A mapping that is replaced between the
 * two changes the notifier's sequence number, and the range is pinned again.
 *
 * regs->lock protects the slots. The notifier takes it, from any function that
 * changes page tables, so nothing is allocated or woken inside of it.
 */
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/userfaultfd_k.h>
#include <xen/xen.h>

#include "compat/file.h"
#include "compat/pages.h"
#include "pin.h"
#include "reg.h"

/* Pages pinned by one call. */
#define BIOGEN_REG_BATCH	512
/* Attempts to pin a range that keeps changing. */
#define BIOGEN_REG_TRIES	10

/* Accounting, as io_uring does it for the buffers that are registered with it. */

/*
 * The number of pages that stay in memory: all of a compound page, even if only
 * a part of it is pinned.
 */
static unsigned long biogen_reg_weight(struct page **pages, unsigned long nr)
{
	unsigned long i, weight = 0;
	struct page *last = NULL;

	for (i = 0; i < nr; i++) {
		struct page *head = compound_head(pages[i]);

		if (head != last)
			weight += compound_nr(head);
		last = head;
	}
	return weight;
}

static int biogen_reg_charge(struct biogen_reg *reg, unsigned long weight)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;

	if (reg->cred) {
		atomic_long_t *locked = &reg->cred->user->locked_vm;
		long old = atomic_long_read(locked);

		do {
			if (old + weight > limit)
				return -ENOMEM;
		} while (!atomic_long_try_cmpxchg(locked, &old, old + weight));
	}
	atomic64_add(weight, &reg->mm->pinned_vm);
	reg->charged = weight;
	return 0;
}

static void biogen_reg_uncharge(struct biogen_reg *reg)
{
	if (reg->cred)
		atomic_long_sub(reg->charged, &reg->cred->user->locked_vm);
	atomic64_sub(reg->charged, &reg->mm->pinned_vm);
	reg->charged = 0;
}

/* Pinning. */

/* True if the pages of a mapping may stay pinned: see "Dirty pages". */
static bool biogen_reg_may_pin(struct vm_area_struct *vma)
{
	struct inode *inode;

	if (vma_is_anonymous(vma))
		return true;
	if (!vma->vm_file)
		return false;
	inode = file_inode(vma->vm_file);
	/* tmpfs also has device nodes, whose drivers map what they like. */
	return S_ISREG(inode->i_mode) &&
	       (inode->i_sb->s_magic == TMPFS_MAGIC ||
		inode->i_sb->s_magic == HUGETLBFS_MAGIC);
}

/* The address behind the last page. */
static unsigned long biogen_reg_limit(const struct biogen_reg *reg)
{
	return reg->base + ((unsigned long)reg->nr_pages << PAGE_SHIFT);
}

/* Check the mappings of @reg. */
static int biogen_reg_check(struct biogen_reg *reg)
{
	unsigned long addr, end = biogen_reg_limit(reg);
	struct vm_area_struct *vma;
	int err = 0;

	if (mmap_read_lock_killable(reg->mm))
		return -EINTR;
	for (addr = reg->base; addr < end && !err; addr = vma->vm_end) {
		vma = find_vma(reg->mm, addr);
		if (!vma || vma->vm_start > addr) {
			err = -EFAULT;
			break;
		}
		if (!biogen_reg_may_pin(vma))
			err = -EOPNOTSUPP;
	}
	mmap_read_unlock(reg->mm);
	return err;
}

/* Pin the pages of @reg. Return: 0 or an error; then nothing is pinned. */
static int biogen_reg_pin(struct biogen_reg *reg, struct page **pages)
{
	u32 done;
	int pinned;

	for (done = 0; done < reg->nr_pages; done += pinned) {
		pinned = compat_pin_user_pages_longterm(reg->base +
				((unsigned long)done << PAGE_SHIFT),
				min_t(u32, reg->nr_pages - done,
				      BIOGEN_REG_BATCH), pages + done);
		if (pinned <= 0) {
			unpin_user_pages(pages, done);
			return pinned ?: -EFAULT;
		}
		cond_resched();
	}
	return 0;
}

/*
 * True if page @i joins the segment of the one before it. Adjacent pages are not
 * adjacent in the machine's memory under Xen.
 */
static bool biogen_reg_joins(struct page **pages, u32 i)
{
	return i && !xen_domain() && pages[i] == pages[i - 1] + 1 &&
	       biogen_may_continue(pages[i]);
}

/* Make the tables of the pinned pages. */
static int biogen_reg_fill(struct biogen_reg *reg, struct page **pages)
{
	struct bio_vec *bv = NULL;
	u32 i, first = 0;

	reg->nr_segments = 0;
	for (i = 0; i < reg->nr_pages; i++)
		if (!biogen_reg_joins(pages, i))
			reg->nr_segments++;
	reg->segments = kvmalloc_array(reg->nr_segments,
				       sizeof(*reg->segments),
				       GFP_KERNEL_ACCOUNT);
	if (!reg->segments)
		return -ENOMEM;
	for (i = 0; i < reg->nr_pages; i++) {
		if (!biogen_reg_joins(pages, i)) {
			bv = bv ? bv + 1 : reg->segments;
			bv->bv_page = pages[i];
			bv->bv_offset = 0;
			bv->bv_len = 0;
			first = i;
		}
		bv->bv_len += PAGE_SIZE;
		reg->pages[i].segment = bv;
		reg->pages[i].start = first << PAGE_SHIFT;
	}
	return 0;
}

/* Undo pinning, charging and filling. */
static void biogen_reg_unpin(struct biogen_reg *reg, bool dirty)
{
	const struct bio_vec *bv;

	for (bv = reg->segments; bv < reg->segments + reg->nr_segments; bv++) {
		compat_unpin_page_range(bv->bv_page, bv->bv_len >> PAGE_SHIFT,
					dirty);
		cond_resched();
	}
	kvfree(reg->segments);
	reg->segments = NULL;
	reg->nr_segments = 0;
	biogen_reg_uncharge(reg);
}

static void biogen_regs_put(struct biogen_regs *regs)
{
	if (refcount_dec_and_test(&regs->count))
		kfree(regs);
}

static void biogen_reg_free(struct biogen_reg *reg)
{
	if (reg->cred)
		put_cred(reg->cred);
	mmdrop(reg->mm);
	percpu_ref_exit(&reg->ref);
	biogen_regs_put(reg->regs);
	kvfree(reg->pages);
	kfree(reg);
}

/* The end. */

/* No I/O uses @reg, and none will. */
static void biogen_reg_destroy(struct biogen_reg *reg)
{
	mmu_interval_notifier_remove(&reg->notifier);
	biogen_reg_unpin(reg, true);
	biogen_reg_free(reg);
}

static void biogen_reg_work(struct work_struct *work)
{
	biogen_reg_destroy(container_of(work, struct biogen_reg, work));
}

/* The last reference was dropped. Any context. */
static void biogen_reg_unused(struct percpu_ref *ref)
{
	struct biogen_reg *reg = container_of(ref, struct biogen_reg, ref);

	biogen_run_in_task(&reg->work, biogen_reg_work);
}

/* Take a registration out of its slot. */
static void biogen_reg_take_out(struct biogen_reg *reg)
{
	lockdep_assert_held(&reg->regs->lock);
	reg->live = false;
	RCU_INIT_POINTER(reg->regs->slots[reg->slot], NULL);
}

/* End a registration: it is freed when no I/O uses it. */
static void biogen_reg_end(struct biogen_reg *reg)
{
	biogen_reg_take_out(reg);
	percpu_ref_kill(&reg->ref);
}

/* True if the change of the page tables is one that ends a registration. */
static bool biogen_reg_ends(struct biogen_reg *reg,
			    const struct mmu_notifier_range *range)
{
	unsigned long addr, end;
	struct vm_area_struct *vma;

	switch (range->event) {
	case MMU_NOTIFY_PROTECTION_PAGE:
	case MMU_NOTIFY_SOFT_DIRTY:
		return false;
	case MMU_NOTIFY_PROTECTION_VMA:
		/* The caller holds mmap_lock, and has changed the mappings. */
		addr = max(range->start, reg->base);
		end = min(range->end, biogen_reg_limit(reg));
		for (; addr < end; addr = vma->vm_end) {
			vma = find_vma(reg->mm, addr);
			if (!vma || vma->vm_start > addr ||
			    !(vma->vm_flags & VM_WRITE) ||
			    userfaultfd_armed(vma))
				return true;
		}
		return false;
	default:
		return true;
	}
}

/* The page tables of a range change. Any context that may hold mmap_lock. */
static bool biogen_reg_invalidate(struct mmu_interval_notifier *notifier,
				  const struct mmu_notifier_range *range,
				  unsigned long seq)
{
	struct biogen_reg *reg = container_of(notifier, struct biogen_reg,
					      notifier);
	bool ends = biogen_reg_ends(reg, range);
	unsigned long flags;

	spin_lock_irqsave(&reg->regs->lock, flags);
	/* What is being pinned now is pinned again. */
	mmu_interval_set_seq(notifier, seq);
	if (ends && reg->live)
		biogen_reg_end(reg);
	spin_unlock_irqrestore(&reg->regs->lock, flags);
	return true;
}

static const struct mmu_interval_notifier_ops biogen_reg_notifier_ops = {
	.invalidate = biogen_reg_invalidate,
};

/* The beginning. */

/* The registrations of a file, which are created if it had none yet, or NULL. */
static struct biogen_regs *biogen_regs_of(struct biogen_file *bf)
{
	struct biogen_regs *regs;

	mutex_lock(&bf->lock);
	regs = bf->regs;
	if (!regs) {
		regs = kzalloc(sizeof(*regs), GFP_KERNEL_ACCOUNT);
		if (regs) {
			mutex_init(&regs->mutex);
			spin_lock_init(&regs->lock);
			refcount_set(&regs->count, 1);
			/* Pairs with the READ_ONCE() of who uses it. */
			smp_store_release(&bf->regs, regs);
		}
	}
	mutex_unlock(&bf->lock);
	return regs;
}

/**
 * biogen_regs_release() - end and free all registrations of a file
 * @regs: the registrations, of which no I/O is in flight
 *
 * Context: Process context, may sleep.
 */
void biogen_regs_release(struct biogen_regs *regs)
{
	struct biogen_reg *reg;
	unsigned int i;

	for (i = 0; i < regs->nr_slots; i++) {
		spin_lock_irq(&regs->lock);
		reg = rcu_dereference_protected(regs->slots[i],
						lockdep_is_held(&regs->lock));
		if (reg)
			biogen_reg_take_out(reg);
		spin_unlock_irq(&regs->lock);
		if (reg)
			biogen_reg_destroy(reg);
	}
	biogen_regs_put(regs);
}

/* The first registration of this process that overlaps a range, or NULL. */
static struct biogen_reg *biogen_reg_overlapping(struct biogen_regs *regs,
						 unsigned long start,
						 unsigned long length)
{
	struct biogen_reg *reg;
	unsigned int i;

	lockdep_assert_held(&regs->lock);
	for (i = 0; i < regs->nr_slots; i++) {
		reg = rcu_dereference_protected(regs->slots[i],
						lockdep_is_held(&regs->lock));
		if (reg && reg->mm == current->mm &&
		    start < reg->start + reg->length &&
		    reg->start < start + length)
			return reg;
	}
	return NULL;
}

/* Whether there is room for a range. Only @regs->mutex lets that get worse. */
static int biogen_regs_room(struct biogen_regs *regs, unsigned long start,
			    unsigned long length, unsigned int *slot)
{
	unsigned int i;
	int err = -ENOSPC;

	lockdep_assert_held(&regs->mutex);
	spin_lock_irq(&regs->lock);
	for (i = 0; i < BIOGEN_MAX_REGISTERED; i++) {
		if (!rcu_access_pointer(regs->slots[i])) {
			*slot = i;
			err = 0;
			break;
		}
	}
	if (biogen_reg_overlapping(regs, start, length))
		err = -EEXIST;
	spin_unlock_irq(&regs->lock);
	return err;
}

static struct biogen_reg *biogen_reg_alloc(struct biogen_regs *regs,
					   unsigned long start,
					   unsigned long length)
{
	struct biogen_reg *reg = kzalloc(sizeof(*reg), GFP_KERNEL_ACCOUNT);

	if (!reg)
		return NULL;
	reg->start = start;
	reg->length = length;
	reg->base = start & PAGE_MASK;
	reg->nr_pages = DIV_ROUND_UP(start - reg->base + length, PAGE_SIZE);
	reg->pages = kvmalloc_array(reg->nr_pages, sizeof(*reg->pages),
				    GFP_KERNEL_ACCOUNT);
	if (!reg->pages || percpu_ref_init(&reg->ref, biogen_reg_unused, 0,
					   GFP_KERNEL_ACCOUNT)) {
		kvfree(reg->pages);
		kfree(reg);
		return NULL;
	}
	refcount_inc(&regs->count);
	reg->regs = regs;
	reg->mm = current->mm;
	mmgrab(reg->mm);
	if (!capable(CAP_IPC_LOCK))
		reg->cred = get_current_cred();
	return reg;
}

/*
 * Pin, charge and fill @reg, and put it into its slot, unless its page tables
 * have changed meanwhile. Another thread may end it as soon as it is there.
 * Return: 0, -EAGAIN if they have, or an error.
 */
static int biogen_reg_try(struct biogen_reg *reg, struct page **pages,
			  u32 __user *usegments)
{
	struct biogen_regs *regs = reg->regs;
	unsigned long seq;
	bool changed;
	int err;

	seq = mmu_interval_read_begin(&reg->notifier);
	err = biogen_reg_check(reg);
	if (err)
		return err;
	err = biogen_reg_pin(reg, pages);
	if (err)
		return err;
	err = biogen_reg_charge(reg, biogen_reg_weight(pages, reg->nr_pages));
	if (err)
		goto unpin;
	err = biogen_reg_fill(reg, pages);
	if (err)
		goto uncharge;
	if (put_user(reg->nr_segments, usegments)) {
		biogen_reg_unpin(reg, false);
		return -EFAULT;
	}

	spin_lock_irq(&regs->lock);
	changed = mmu_interval_read_retry(&reg->notifier, seq);
	if (!changed) {
		reg->live = true;
		rcu_assign_pointer(regs->slots[reg->slot], reg);
		if (reg->slot == regs->nr_slots)
			WRITE_ONCE(regs->nr_slots, reg->slot + 1);
	}
	spin_unlock_irq(&regs->lock);
	if (!changed)
		return 0;
	biogen_reg_unpin(reg, false);
	return -EAGAIN;

uncharge:
	biogen_reg_uncharge(reg);
unpin:
	unpin_user_pages(pages, reg->nr_pages);
	return err;
}

/* Register a range. Return: 0 or an error. */
static int biogen_reg_create(struct biogen_regs *regs, unsigned long start,
			     unsigned long length, u32 __user *usegments)
{
	struct biogen_reg *reg;
	struct page **pages;
	int ret = -ENOMEM;
	int tries;

	reg = biogen_reg_alloc(regs, start, length);
	if (!reg)
		return -ENOMEM;
	pages = kvmalloc_array(reg->nr_pages, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		goto free_reg;
	ret = biogen_regs_room(regs, start, length, &reg->slot);
	if (ret)
		goto free_pages;
	ret = mmu_interval_notifier_insert(&reg->notifier, reg->mm, reg->base,
					   biogen_reg_limit(reg) - reg->base,
					   &biogen_reg_notifier_ops);
	/*
	 * The first notifier of a process is refused while a signal is pending,
	 * also one that only makes the task run task_work for io_uring. Nothing
	 * has been done, so begin again when it is handled.
	 */
	if (ret == -EINTR)
		ret = -ERESTARTNOINTR;
	if (ret)
		goto free_pages;
	for (tries = 0; tries < BIOGEN_REG_TRIES; tries++) {
		ret = biogen_reg_try(reg, pages, usegments);
		if (ret != -EAGAIN)
			break;
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			break;
		}
	}
	if (ret)
		goto remove_notifier;
	kvfree(pages);
	return 0;

remove_notifier:
	mmu_interval_notifier_remove(&reg->notifier);
free_pages:
	kvfree(pages);
free_reg:
	biogen_reg_free(reg);
	return ret;
}

/* Read and check what a program asks for. */
static int biogen_reg_copy_arg(struct biogen_register *arg,
			       const struct biogen_register __user *uarg)
{
	if (copy_from_user(arg, uarg, sizeof(*arg)))
		return -EFAULT;
	if (arg->reserved[0] || arg->reserved[1] || arg->reserved[2])
		return -EINVAL;
	if (!arg->length || arg->length > BIOGEN_MAX_REGISTER)
		return -EINVAL;
	/* An address with a tag is none that a notifier knows. */
	if (arg->addr > TASK_SIZE || arg->length > TASK_SIZE - arg->addr)
		return -EFAULT;
	return 0;
}

/**
 * biogen_register() - BIOGEN_REGISTER
 * @file: the open file
 * @uarg: the range
 *
 * Context: Process context, sleeps.
 * Return: 0 or an error.
 */
int biogen_register(struct file *file, struct biogen_register __user *uarg)
{
	struct biogen_register arg;
	struct biogen_regs *regs;
	int err;

	err = biogen_reg_copy_arg(&arg, uarg);
	if (err)
		return err;
	regs = biogen_regs_of(file->private_data);
	if (!regs)
		return -ENOMEM;
	if (mutex_lock_killable(&regs->mutex))
		return -EINTR;
	err = biogen_reg_create(regs, arg.addr, arg.length, &uarg->segments);
	mutex_unlock(&regs->mutex);
	return err;
}

/**
 * biogen_unregister() - BIOGEN_UNREGISTER
 * @file: the open file
 * @uarg: the range
 *
 * If no I/O uses the pages, they are unpinned and the charge is back at the end.
 * This does not wait for I/O: one that is polled ends only if the program goes on.
 *
 * Context: Process context, sleeps.
 * Return: 0 or an error.
 */
int biogen_unregister(struct file *file, struct biogen_register __user *uarg)
{
	struct biogen_file *bf = file->private_data;
	struct biogen_regs *regs = READ_ONCE(bf->regs);
	struct biogen_register arg;
	struct biogen_reg *reg;
	int err;

	err = biogen_reg_copy_arg(&arg, uarg);
	if (err)
		return err;
	if (arg.segments)
		return -EINVAL;
	if (!regs)
		return -ENOENT;
	spin_lock_irq(&regs->lock);
	reg = biogen_reg_overlapping(regs, arg.addr, arg.length);
	if (reg && reg->start == arg.addr && reg->length == arg.length)
		biogen_reg_end(reg);
	else
		err = -ENOENT;
	spin_unlock_irq(&regs->lock);
	if (err)
		return err;
	/* The callback of percpu_ref_kill(), and what it queues. */
	rcu_barrier();
	biogen_finish_work();
	return 0;
}

/* Vectors. */

/**
 * biogen_gathered_put() - let go of the registrations of a vector
 * @gathered: from biogen_gather(); is freed
 *
 * Context: Any.
 */
void biogen_gathered_put(struct biogen_gathered *gathered)
{
	unsigned int i;

	for (i = 0; i < BIOGEN_MAX_REGISTERED; i++)
		if (gathered->regs[i])
			biogen_reg_put(gathered->regs[i]);
	kfree(gathered);
}

/* Hold @reg once. Return: false if another one had its slot. */
static bool biogen_gather_reg(struct biogen_gathered *gathered,
			      struct biogen_reg *reg)
{
	struct biogen_reg *held = gathered->regs[reg->slot];

	if (held)
		biogen_reg_put(reg);
	else
		gathered->regs[reg->slot] = reg;
	return !held || held == reg;
}

/**
 * biogen_gather() - look the buffers of a vector up and hold them
 * @regs: the file's registrations
 * @iter: the vector
 *
 * Return: a table of their segments, to be given to biogen_gathered_put(); or
 * NULL if they are not all registered or are more than a bio holds.
 */
struct biogen_gathered *biogen_gather(struct biogen_regs *regs,
				      const struct iov_iter *iter)
{
	const struct iovec *iov = compat_iter_iov(iter);
	size_t left = iov_iter_count(iter), skip = iter->iov_offset;
	struct biogen_gathered *gathered;
	struct bio_vec *to;

	gathered = kmalloc(sizeof(*gathered), GFP_KERNEL);
	if (!gathered)
		return NULL;
	memset(gathered->regs, 0, sizeof(gathered->regs));
	to = gathered->vecs;
	for (; left; iov++, skip = 0) {
		size_t len = min_t(size_t, left, iov->iov_len - skip);
		struct biogen_span span;
		bool found;

		if (!len)
			continue;
		biogen_rcu_lock();
		found = biogen_reg_get(regs, (unsigned long)iov->iov_base + skip,
				       len, &span);
		biogen_rcu_unlock();
		if (!found)
			goto put;
		if (!biogen_gather_reg(gathered, span.reg) ||
		    span.nr_vecs > gathered->vecs + BIOGEN_LARGE_VECS - to)
			goto put;
		left -= len;
		for (; len; len -= to->bv_len, span.bv++, span.skip = 0, to++) {
			to->bv_page = span.bv->bv_page;
			to->bv_offset = span.bv->bv_offset + span.skip;
			to->bv_len = min_t(size_t, len,
					   span.bv->bv_len - span.skip);
		}
	}
	gathered->nr_vecs = to - gathered->vecs;
	return gathered;

put:
	biogen_gathered_put(gathered);
	return NULL;
}
