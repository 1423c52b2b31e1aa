// SPDX-License-Identifier: GPL-2.0
/*
 * Registered memory: pin once, then read and write without pinning.
 *
 * BIOGEN_REGISTER pins the pages of a range of user memory and makes two tables
 * of them: the segments, which are the physically contiguous runs of pages, in
 * the form that a bio takes; and for each page the segment that it is in. The
 * first registration of an open file gives it the file operations that look
 * buffers up (chardev.c); no other file pays for them. An I/O whose buffer is in
 * a registered range takes its segments from the table, and its bio points into
 * the table (reg_io.c). Any other I/O takes the ordinary path.
 *
 * The end of a registration
 * -------------------------
 *
 * A registration is *live* while it is in one of the file's slots. It leaves the
 * slot by BIOGEN_UNREGISTER, by the release of the file, or because an MMU
 * notifier says that the page tables of the range change. It ends as a whole. I/O
 * that begins later does not find it. What follows needs to sleep, so a work item
 * does it:
 *
 *	live --> ended --> notifier removed --> grace period of SRCU --> unused
 *
 * Each I/O is a reader of SRCU from the lookup until its bio has ended, so the
 * pages and the tables of an unused registration are in no bio, and it is freed:
 * the pages are dirtied and unpinned.
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
 * regs->mutex is held while a range is pinned and put into a slot. regs->lock
 * protects the slots and the lists. The notifier takes it, from any function that
 * changes page tables, so nothing is allocated or woken inside of it but the work
 * item. mmap_lock is taken inside regs->mutex. The work item takes neither.
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

/* Pin the pages of @reg. Return: 0 or an error; then nothing is pinned. */
static int biogen_reg_pin(struct biogen_reg *reg, struct page **pages)
{
	unsigned long addr, end = biogen_reg_limit(reg), done = 0;
	struct vm_area_struct *vma;
	long pinned = 0;

	if (mmap_read_lock_killable(reg->mm))
		return -EINTR;
	for (addr = reg->base; addr < end; addr = vma->vm_end) {
		vma = find_vma(reg->mm, addr);
		if (!vma || vma->vm_start > addr)
			pinned = -EFAULT;
		else if (!biogen_reg_may_pin(vma))
			pinned = -EOPNOTSUPP;
		if (pinned < 0)
			break;
	}
	while (pinned >= 0 && done < reg->nr_pages) {
		pinned = compat_pin_user_pages(reg->base + (done << PAGE_SHIFT),
					       min_t(unsigned long,
						     reg->nr_pages - done,
						     BIOGEN_REG_BATCH),
					       FOLL_WRITE | FOLL_LONGTERM,
					       pages + done);
		if (pinned > 0)
			done += pinned;
		else if (!pinned)
			pinned = -EFAULT;
	}
	mmap_read_unlock(reg->mm);
	if (pinned < 0) {
		unpin_user_pages(pages, done);
		return pinned;
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
		reg->pages[i].segment = bv - reg->segments;
		reg->pages[i].first = first;
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

static void biogen_reg_free(struct biogen_reg *reg)
{
	if (reg->cred)
		put_cred(reg->cred);
	mmdrop(reg->mm);
	kvfree(reg->pages);
	kfree(reg);
}

/* The end. */

/* Take a registration out of its slot. */
static void biogen_reg_end(struct biogen_reg *reg)
{
	struct biogen_regs *regs = reg->regs;

	lockdep_assert_held(&regs->lock);
	if (!reg->live)
		return;
	reg->live = false;
	RCU_INIT_POINTER(regs->slots[reg->slot], NULL);
	list_add_tail(&reg->list, &regs->ended);
	schedule_work(&regs->work);
}

/* SRCU: no I/O uses it any more. */
static void biogen_reg_unused(struct rcu_head *rcu)
{
	struct biogen_reg *reg = container_of(rcu, struct biogen_reg, rcu);
	struct biogen_regs *regs = reg->regs;
	unsigned long flags;

	spin_lock_irqsave(&regs->lock, flags);
	list_add_tail(&reg->list, &regs->unused);
	schedule_work(&regs->work);
	spin_unlock_irqrestore(&regs->lock, flags);
}

static void biogen_regs_work(struct work_struct *work)
{
	struct biogen_regs *regs = container_of(work, struct biogen_regs, work);
	struct biogen_reg *reg, *next;
	LIST_HEAD(ended);
	LIST_HEAD(unused);

	spin_lock_irq(&regs->lock);
	list_splice_init(&regs->ended, &ended);
	list_splice_init(&regs->unused, &unused);
	spin_unlock_irq(&regs->lock);

	list_for_each_entry_safe(reg, next, &ended, list) {
		mmu_interval_notifier_remove(&reg->notifier);
		call_srcu(&regs->srcu, &reg->rcu, biogen_reg_unused);
	}
	list_for_each_entry_safe(reg, next, &unused, list) {
		biogen_reg_unpin(reg, true);
		biogen_reg_free(reg);
	}
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
	if (ends)
		biogen_reg_end(reg);
	spin_unlock_irqrestore(&reg->regs->lock, flags);
	return true;
}

static const struct mmu_interval_notifier_ops biogen_reg_notifier_ops = {
	.invalidate = biogen_reg_invalidate,
};

/* The beginning. */

static struct biogen_regs *biogen_regs_create(void)
{
	struct biogen_regs *regs = kzalloc(sizeof(*regs), GFP_KERNEL);

	if (!regs)
		return NULL;
	if (init_srcu_struct(&regs->srcu)) {
		kfree(regs);
		return NULL;
	}
	mutex_init(&regs->mutex);
	spin_lock_init(&regs->lock);
	INIT_LIST_HEAD(&regs->ended);
	INIT_LIST_HEAD(&regs->unused);
	INIT_WORK(&regs->work, biogen_regs_work);
	return regs;
}

/**
 * biogen_regs_destroy() - end and free all registrations of a file
 * @regs: the registrations, of which no I/O is in flight; or NULL
 *
 * Context: Process context, sleeps.
 */
void biogen_regs_destroy(struct biogen_regs *regs)
{
	struct biogen_reg *reg;
	unsigned int i;

	if (!regs)
		return;
	spin_lock_irq(&regs->lock);
	for (i = 0; i < regs->nr_slots; i++) {
		reg = rcu_dereference_protected(regs->slots[i],
						lockdep_is_held(&regs->lock));
		if (reg)
			biogen_reg_end(reg);
	}
	spin_unlock_irq(&regs->lock);
	/* Removes the notifiers; makes them unused; frees them. */
	flush_work(&regs->work);
	srcu_barrier(&regs->srcu);
	flush_work(&regs->work);
	cleanup_srcu_struct(&regs->srcu);
	kfree(regs);
}

/*
 * The registrations of a file. Those of a file that has none yet are created,
 * and the file's operations are those that know them from now on. Both tables
 * have the same operations, so it does not matter which of them a system call
 * that is in progress reads; tty_io.c does the same for a terminal that is hung
 * up.
 */
static struct biogen_regs *
biogen_regs_of(struct file *file, const struct file_operations *fops)
{
	struct biogen_file *bf = file->private_data;
	struct biogen_regs *regs;

	mutex_lock(&bf->lock);
	regs = bf->regs;
	if (!regs) {
		regs = biogen_regs_create();
		if (regs) {
			WRITE_ONCE(bf->regs, regs);
			/* A reader of the new f_op must see these regs. */
			synchronize_rcu();
			WRITE_ONCE(file->f_op, fops);
		}
	}
	mutex_unlock(&bf->lock);
	return regs;
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
	struct biogen_reg *reg = kzalloc(sizeof(*reg), GFP_KERNEL);

	if (!reg)
		return NULL;
	reg->start = start;
	reg->length = length;
	reg->base = start & PAGE_MASK;
	reg->nr_pages = DIV_ROUND_UP(start - reg->base + length, PAGE_SIZE);
	reg->pages = kvmalloc_array(reg->nr_pages, sizeof(*reg->pages),
				    GFP_KERNEL_ACCOUNT);
	if (!reg->pages) {
		kfree(reg);
		return NULL;
	}
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
 * Return: the number of segments, -EAGAIN if they have, or an error.
 */
static long biogen_reg_try(struct biogen_reg *reg, struct page **pages)
{
	struct biogen_regs *regs = reg->regs;
	unsigned long seq;
	long segments;
	bool changed;
	int err;

	seq = mmu_interval_read_begin(&reg->notifier);
	err = biogen_reg_pin(reg, pages);
	if (err)
		return err;
	err = biogen_reg_charge(reg, biogen_reg_weight(pages, reg->nr_pages));
	if (err)
		goto unpin;
	err = biogen_reg_fill(reg, pages);
	if (err)
		goto uncharge;
	segments = reg->nr_segments;

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
		return segments;
	biogen_reg_unpin(reg, false);
	return -EAGAIN;

uncharge:
	biogen_reg_uncharge(reg);
unpin:
	unpin_user_pages(pages, reg->nr_pages);
	return err;
}

/* Register a range. Return: the number of its segments, or an error. */
static long biogen_reg_create(struct biogen_regs *regs, unsigned long start,
			      unsigned long length)
{
	struct biogen_reg *reg;
	struct page **pages;
	long ret = -ENOMEM;
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
	if (ret)
		goto free_pages;
	for (tries = 0; tries < BIOGEN_REG_TRIES; tries++) {
		ret = biogen_reg_try(reg, pages);
		if (ret != -EAGAIN)
			break;
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			break;
		}
	}
	if (ret < 0)
		goto remove_notifier;
	kvfree(pages);
	return ret;

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
 * @fops: its operations from the first registration on
 * @uarg: the range
 *
 * Context: Process context, sleeps.
 * Return: 0 or an error.
 */
int biogen_register(struct file *file, const struct file_operations *fops,
		    struct biogen_register __user *uarg)
{
	struct biogen_register arg;
	struct biogen_regs *regs;
	long segments;
	int err;

	/* Tiny SRCU cannot be left in an interrupt. */
	if (IS_ENABLED(CONFIG_TINY_SRCU))
		return -EOPNOTSUPP;
	err = biogen_reg_copy_arg(&arg, uarg);
	if (err)
		return err;
	regs = biogen_regs_of(file, fops);
	if (!regs)
		return -ENOMEM;
	if (mutex_lock_killable(&regs->mutex))
		return -EINTR;
	segments = biogen_reg_create(regs, arg.addr, arg.length);
	mutex_unlock(&regs->mutex);
	if (segments < 0)
		return segments;
	/* If the structure is gone, the registration stays all the same. */
	return put_user((u32)segments, &uarg->segments);
}

/**
 * biogen_unregister() - BIOGEN_UNREGISTER
 * @file: the open file
 * @uarg: the range
 *
 * The pages are unpinned when no I/O uses them any more, which this does not wait
 * for: an I/O that is polled ends only if the program goes on.
 *
 * Context: Process context, may sleep.
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
	return err;
}

/**
 * biogen_reg_release() - let go of the registered memory of a bio
 * @io: ended, asynchronous
 *
 * Context: Any. The file is still open.
 */
void biogen_reg_release(struct biogen_io *io)
{
	kfree(io->table);
	biogen_regs_put(io->regs, io->srcu_idx);
}
