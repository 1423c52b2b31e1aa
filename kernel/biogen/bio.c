// SPDX-License-Identifier: GPL-2.0
/*
 * From user memory to bios and back: pin, build, submit, end.
 *
 * A request that fits one small bio takes biogen_rw_one(); a longer one is
 * streamed: each bio goes out as soon as it is full, and only so many are in
 * flight that the memory pinned at a time is bounded. Buffers registered with
 * io_uring arrive as pages and are not pinned again.
 */
#include <linux/iocontext.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <xen/xen.h>

#include "biogen.h"
#include "io.h"
#include "pages.h"

/* A small bio holds what most requests are made of. */
#define BIOGEN_SMALL_VECS	8
#define BIOGEN_LARGE_VECS	256
/* Pages pinned at a time: bounds the stack, and keeps them in the L1 cache. */
#define BIOGEN_PIN_BATCH	64
/* A bio of merged pages goes out at this size, however few its segments. */
#define BIOGEN_BIO_BYTES	(4U << 20)
/* Bios that a CPU keeps for the next time that so many are in flight. */
#define BIOGEN_MAX_SPARE	127
/* Bios of one request in flight. */
#define BIOGEN_MAX_INFLIGHT	16
/* How often a page that others keep using is tried to be dropped. */
#define BIOGEN_CACHE_TRIES	10

static struct kmem_cache *biogen_small_cache;
static struct kmem_cache *biogen_large_cache;
static struct workqueue_struct *biogen_wq;

static void biogen_request_work(struct work_struct *work);

/* Getting and putting a struct biogen_io. */

/**
 * biogen_io_alloc() - a new struct biogen_io, not set up
 * @bg: the device it is for
 * @large: for many pages
 *
 * Return: it, or NULL.
 */
struct biogen_io *biogen_io_alloc(struct biogen_device *bg, bool large)
{
	struct biogen_io *io;

	io = kmem_cache_alloc(large ? biogen_large_cache : biogen_small_cache,
			      GFP_KERNEL);
	if (!io)
		return NULL;
	memset(io, 0, sizeof(*io));
	io->bg = bg;
	io->max_vecs = large ? BIOGEN_LARGE_VECS : BIOGEN_SMALL_VECS;
	spin_lock_init(&io->own.lock);
	init_waitqueue_head(&io->own.wait);
	INIT_WORK(&io->own.work, biogen_request_work);
	return io;
}

/* Let go of the cgroup; the bio must be set up before it is used again. */
static void biogen_io_forget_css(struct biogen_io *io)
{
#ifdef CONFIG_BLK_CGROUP
	if (io->css)
		css_put(io->css);
#endif
	io->css = NULL;
}

/**
 * biogen_io_free() - free what biogen_io_alloc() made
 * @io: not in flight
 */
void biogen_io_free(struct biogen_io *io)
{
	biogen_io_forget_css(io);
	bio_uninit(&io->bio);
	kmem_cache_free(io->max_vecs == BIOGEN_LARGE_VECS ?
			biogen_large_cache : biogen_small_cache, io);
}

/**
 * biogen_io_setup() - set the bio up for the device and the current cgroup
 * @io: not in flight
 */
void biogen_io_setup(struct biogen_io *io)
{
	struct cgroup_subsys_state *css;

	biogen_io_forget_css(io);
	bio_uninit(&io->bio);
	compat_bio_init(&io->bio, io->bg->target.bdev, io->vecs, io->max_vecs);
	io->bio.bi_end_io = biogen_end_io;

	rcu_read_lock();
	css = biogen_current_css();
#ifdef CONFIG_BLK_CGROUP
	/*
	 * Charged to another one, because this one is going away, or because
	 * it is not the task that decides: do it again next time.
	 */
	if (compat_bio_css(&io->bio) != css || !css_tryget(css))
		css = NULL;
#endif
	io->css = css;
	rcu_read_unlock();
}

/**
 * biogen_io_leave() - drop the submitter's count
 * @io: submitted, and not ended by biogen_io_submit()
 *
 * biogen_end_io() is called once, now or later; @io is its own from here on.
 * A bio that ends that way loses what it was set up for.
 */
void biogen_io_leave(struct biogen_io *io)
{
	biogen_io_forget_css(io);
	bio_endio(&io->bio);
}

static noinline struct biogen_io *biogen_io_get_spare(struct biogen_device *bg)
{
	struct biogen_idle *idle;
	struct biogen_io *io;
	unsigned long flags;

	local_irq_save(flags);
	idle = this_cpu_ptr(bg->idle);
	io = idle->spare;
	if (io) {
		idle->spare = io->next;
		idle->nr_spare--;
	}
	local_irq_restore(flags);
	return io ?: biogen_io_alloc(bg, false);
}

static noinline void biogen_io_put_spare(struct biogen_device *bg,
					 struct biogen_io *io)
{
	struct biogen_idle *idle;
	unsigned long flags;

	local_irq_save(flags);
	idle = this_cpu_ptr(bg->idle);
	if (idle->nr_spare < BIOGEN_MAX_SPARE) {
		io->next = idle->spare;
		idle->spare = io;
		idle->nr_spare++;
		io = NULL;
	}
	local_irq_restore(flags);
	if (io)
		biogen_io_free(io);
}

static __always_inline struct biogen_io *biogen_io_get(struct biogen_device *bg)
{
	struct biogen_io *io = this_cpu_xchg(bg->idle->io, NULL);

	return likely(io) ? io : biogen_io_get_spare(bg);
}

static __always_inline void biogen_io_put(struct biogen_device *bg,
					  struct biogen_io *io)
{
	if (unlikely(this_cpu_cmpxchg(bg->idle->io, NULL, io)))
		biogen_io_put_spare(bg, io);
}

/* Give back a bio of either size. */
static void biogen_io_put_any(struct biogen_io *io)
{
	if (io->max_vecs == BIOGEN_SMALL_VECS)
		biogen_io_put(io->bg, io);
	else
		biogen_io_free(io);
}

/**
 * biogen_idle_create() - make room for idle bios
 * @bg: the device
 *
 * Return: 0 or -ENOMEM.
 */
int biogen_idle_create(struct biogen_device *bg)
{
	bg->idle = alloc_percpu(struct biogen_idle);
	return bg->idle ? 0 : -ENOMEM;
}

/**
 * biogen_idle_destroy() - free the idle ones
 * @bg: the device; nothing is in flight on it
 */
void biogen_idle_destroy(struct biogen_device *bg)
{
	struct biogen_io *io, *next;
	int cpu;

	for_each_possible_cpu(cpu) {
		struct biogen_idle *idle = per_cpu_ptr(bg->idle, cpu);

		if (idle->io)
			biogen_io_free(idle->io);
		for (io = idle->spare; io; io = next) {
			next = io->next;
			biogen_io_free(io);
		}
	}
	free_percpu(bg->idle);
}

/* Pages. */

static unsigned long biogen_bvec_pages(const struct bio_vec *bv)
{
	return DIV_ROUND_UP(bv->bv_offset + bv->bv_len, PAGE_SIZE);
}

/*
 * Let go of the pages of an ended bio. A page is dirtied only if it is not
 * dirty already, and only afterwards: if it is cleaned in between, it is
 * written back later, with the data in it; if it is not dirty here, it was
 * cleaned before, maybe without the data. May sleep if @dirty.
 */
static void biogen_io_unpin_vecs(struct biogen_io *io, bool dirty)
{
	struct bio_vec *bv;

	for (bv = io->vecs; bv < io->vecs + io->bio.bi_vcnt; bv++) {
		struct page *page = bv->bv_page;

		if (bv->bv_offset + bv->bv_len > PAGE_SIZE) {
			compat_unpin_page_range(page, biogen_bvec_pages(bv),
						dirty);
			continue;
		}
		if (dirty && unlikely(!PageDirty(page)))
			set_page_dirty_lock(page);
		unpin_user_page(page);
	}
}

/* Whether what the pages of @io held was overwritten. */
static __always_inline bool biogen_io_dirties(const struct biogen_io *io)
{
	return bio_op(&io->bio) == REQ_OP_READ;
}

/* Whether the pages of @io are ours to unpin: then they are in its own table. */
static __always_inline bool biogen_io_pinned(const struct biogen_io *io)
{
	return io->bio.bi_io_vec == io->vecs;
}

static __always_inline void biogen_io_unpin_page(struct biogen_io *io,
						 bool dirty)
{
	struct page *page = io->vecs[0].bv_page;

	if (dirty && unlikely(!PageDirty(page)))
		set_page_dirty_lock(page);
	unpin_user_page(page);
}

/* Whether there are pages to be dirtied, for which one has to sleep. */
static bool biogen_io_must_dirty(const struct biogen_io *io)
{
	const struct bio_vec *bv;
	unsigned long i;

	if (!biogen_io_pinned(io) || !biogen_io_dirties(io))
		return false;
	for (bv = io->vecs; bv < io->vecs + io->bio.bi_vcnt; bv++)
		for (i = 0; i < biogen_bvec_pages(bv); i++)
			if (!PageDirty(bv->bv_page + i))
				return true;
	return false;
}

/*
 * Whether @page, which follows the one before it in the memory map, may be in one
 * segment with that. A memory map in sections may lack some between them.
 */
static __always_inline bool biogen_may_continue(struct page *page)
{
	return (!IS_ENABLED(CONFIG_SPARSEMEM) ||
		IS_ENABLED(CONFIG_SPARSEMEM_VMEMMAP) ||
		page_to_pfn(page) == page_to_pfn(page - 1) + 1) &&
	       !is_zone_device_page(page) && !is_zone_device_page(page - 1);
}

/* Add pinned pages that hold @len bytes from @offset of the first one on. */
static void biogen_io_add_pages(struct biogen_io *io, struct page **pages,
				unsigned int offset, unsigned int len)
{
	struct bio_vec *bv = io->vecs + io->bio.bi_vcnt - 1;
	/* Under Xen, the machine's pages are in another order. */
	const bool merge = !xen_domain();
	/* The page that continues the last segment. */
	struct page *next = NULL;
	unsigned int part;

	if (merge && io->bio.bi_vcnt && !offset &&
	    !offset_in_page(bv->bv_offset + bv->bv_len))
		next = bv->bv_page + biogen_bvec_pages(bv);
	for (; len; len -= part, offset = 0, pages++) {
		struct page *page = *pages;

		part = min_t(unsigned int, len, PAGE_SIZE - offset);
		if (page == next && biogen_may_continue(page)) {
			bv->bv_len += part;
		} else {
			bv++;
			bv->bv_page = page;
			bv->bv_offset = offset;
			bv->bv_len = part;
		}
		if (merge)
			next = page + 1;
	}
	io->bio.bi_vcnt = bv - io->vecs + 1;
}

/* Take @bytes off the end again. */
static void biogen_io_trim(struct biogen_io *io, unsigned int bytes)
{
	while (bytes) {
		struct bio_vec *bv = &io->vecs[io->bio.bi_vcnt - 1];
		unsigned int part = min(bytes, bv->bv_len);
		unsigned long had = biogen_bvec_pages(bv);
		unsigned long keep;

		bv->bv_len -= part;
		bytes -= part;
		keep = bv->bv_len ? biogen_bvec_pages(bv) : 0;
		compat_unpin_page_range(bv->bv_page + keep, had - keep, false);
		if (!bv->bv_len)
			io->bio.bi_vcnt--;
	}
}

/*
 * Pin what comes next in @iter, up to @count bytes, as far as it fits @io, and
 * advance @iter by that. @block is the logical block size, @in_parts says that
 * O_DIRECT would need more than one bio if no pages are merged.
 *
 * Return: the number of bytes, a multiple of @block; 0 if a part of a block was
 * all there was; or an error if there was nothing, or if it must not block and
 * one bio does not hold it.
 */
static ssize_t biogen_io_fill(struct biogen_io *io, struct iov_iter *iter,
			      size_t count, blk_opf_t opf, unsigned int block,
			      bool in_parts)
{
	unsigned int gup_flags = op_is_write(opf) ? 0 : FOLL_WRITE;
	struct page *pages[BIOGEN_PIN_BATCH];
	unsigned int bytes = 0, excess;
	int pinned = 0;

	io->bio.bi_vcnt = 0;
	/* Parts of it that went out could not be taken back. */
	if (!(opf & REQ_NOWAIT))
		count = min_t(size_t, count, BIOGEN_BIO_BYTES);
	while (bytes < count && io->bio.bi_vcnt < io->max_vecs) {
		unsigned long addr;
		unsigned int offset, npages;
		size_t len;

		if (compat_iter_is_ubuf(iter)) {
			addr = (unsigned long)compat_iter_ubuf(iter) +
			       iter->iov_offset;
			len = iov_iter_count(iter);
		} else {
			addr = (unsigned long)compat_iter_iov(iter)->iov_base +
			       iter->iov_offset;
			len = compat_iter_iov(iter)->iov_len - iter->iov_offset;
			if (!len) {
				/* Steps over the empty segment. */
				iov_iter_advance(iter, 0);
				continue;
			}
		}
		len = min_t(size_t, len, count - bytes);
		offset = offset_in_page(addr);
		npages = min3((unsigned int)BIOGEN_PIN_BATCH,
			      (unsigned int)io->max_vecs - io->bio.bi_vcnt,
			      (unsigned int)DIV_ROUND_UP(offset + len,
							 PAGE_SIZE));
		pinned = pin_user_pages_fast(addr - offset, npages, gup_flags,
					     pages);
		if (pinned <= 0)
			break;
		len = min_t(size_t, len, pinned * PAGE_SIZE - offset);
		biogen_io_add_pages(io, pages, offset, len);
		iov_iter_advance(iter, len);
		bytes += len;
	}

	if ((opf & REQ_NOWAIT) && bytes && bytes < count &&
	    (pinned > 0 || in_parts)) {
		biogen_io_unpin_vecs(io, false);
		return -EAGAIN;
	}
	excess = bytes & (block - 1);
	if (excess) {
		biogen_io_trim(io, excess);
		iov_iter_revert(iter, excess);
		bytes -= excess;
	}
	if (!bytes && pinned < 0)
		return pinned;
	return bytes;
}

/* The page cache of the target. */

/*
 * O_DIRECT asks the same question first: pages that are not in the cache need
 * no writing back. A buffered write or a store through a mapping that happened
 * before this I/O has left its page in the cache before it.
 */
static __always_inline bool biogen_cached(const struct biogen_device *bg)
{
	return unlikely(READ_ONCE(*bg->nr_cached));
}

/* Before the I/O. Write back what is dirty; a write also drops what it hits. */
static noinline int biogen_cache_prepare(struct biogen_device *bg, loff_t pos,
					 size_t bytes, blk_opf_t opf)
{
	struct address_space *mapping = bg->target.mapping;
	loff_t end = pos + bytes - 1;
	int tries, err;

	if (opf & REQ_NOWAIT) {
		if (op_is_write(opf) ?
		    filemap_range_has_page(mapping, pos, end) :
		    compat_range_needs_writeback(mapping, pos, end))
			return -EAGAIN;
		return 0;
	}
	err = filemap_write_and_wait_range(mapping, pos, end);
	if (err || !op_is_write(opf))
		return err;
	/* Fails for a page that has become dirty again, or is being read. */
	for (tries = 0; tries < BIOGEN_CACHE_TRIES; tries++) {
		err = invalidate_inode_pages2_range(mapping, pos >> PAGE_SHIFT,
						    end >> PAGE_SHIFT);
		if (err != -EBUSY)
			break;
		err = filemap_write_and_wait_range(mapping, pos, end);
		if (err)
			break;
		err = -EBUSY;
	}
	return err;
}

/* After a write. Drop what was read into the cache beside it. May sleep. */
static noinline void biogen_cache_drop(struct biogen_device *bg, loff_t pos,
				       size_t bytes)
{
	invalidate_inode_pages2_range(bg->target.mapping, pos >> PAGE_SHIFT,
				      (pos + bytes - 1) >> PAGE_SHIFT);
}

/* Requests that did not end at once. */

static long biogen_request_result(const struct biogen_request *req)
{
	return req->error ?: req->bytes;
}

/* Let go of bios that ended. Sleeps if @dirty: their pages may need it. */
static void biogen_put_ended(struct biogen_io *io, bool dirty)
{
	struct biogen_io *next;

	for (; io; io = next) {
		next = io->next;
		if (biogen_io_pinned(io))
			biogen_io_unpin_vecs(io, dirty && biogen_io_dirties(io));
		biogen_io_put_any(io);
	}
}

/*
 * The end of a request that nobody waits for. The request may be part of one
 * of the bios, and module and device stay only as long as the iocb holds the
 * file: nothing is touched after its completion. @sleep: in process context,
 * where pages can be dirtied and dropped.
 */
static void biogen_request_complete(struct biogen_request *req, bool sleep)
{
	/* One that is not part of a bio was allocated for a stream. */
	bool streamed = !req->ended || &req->ended->own != req;
	struct biogen_device *bg = req->bg;
	struct kiocb *iocb = req->iocb;
	long ret = biogen_request_result(req);

	if (sleep && req->is_write && biogen_cached(bg))
		biogen_cache_drop(bg, req->pos, req->bytes);
	biogen_put_ended(req->ended, sleep);
	if (streamed)
		kfree(req);
	WRITE_ONCE(iocb->private, NULL);
	if (ret > 0)
		iocb->ki_pos += ret;
	compat_ki_complete(iocb, ret);
}

static void biogen_request_work(struct work_struct *work)
{
	biogen_request_complete(container_of(work, struct biogen_request, work),
				true);
}

/*
 * The last count is dropped; any context. What is found clean or cached here,
 * after the data has arrived, is for process context. What is not need not be
 * looked at again: it would be so for another reason.
 */
static void biogen_request_end(struct biogen_request *req)
{
	struct biogen_io *io;
	bool sleep = req->is_write && biogen_cached(req->bg);

	for (io = req->ended; io && !sleep; io = io->next)
		sleep = biogen_io_must_dirty(io);
	if (sleep)
		queue_work(biogen_wq, &req->work);
	else
		biogen_request_complete(req, false);
}

/**
 * biogen_end_io() - the end of a bio that did not end while it was submitted
 * @bio: of a struct biogen_io that has a request
 *
 * Context: Any.
 */
void biogen_end_io(struct bio *bio)
{
	struct biogen_io *io = container_of(bio, struct biogen_io, bio);
	struct biogen_request *req = io->req;
	unsigned long flags;
	bool last;
	int err;

	err = biogen_io_error(io);
	spin_lock_irqsave(&req->lock, flags);
	if (!req->error)
		req->error = err;
	io->next = req->ended;
	req->ended = io;
	last = !--req->inflight;
	/* Under the lock that the waiter looks under before it sleeps. */
	if (waitqueue_active(&req->wait))
		wake_up(&req->wait);
	spin_unlock_irqrestore(&req->lock, flags);

	/* Otherwise whoever has the last count may have freed the request. */
	if (last)
		biogen_request_end(req);
}

static void biogen_request_start(struct biogen_request *req,
				 struct biogen_device *bg, struct kiocb *iocb,
				 loff_t pos, bool is_write)
{
	req->inflight = 1;
	req->error = 0;
	req->ended = NULL;
	req->iocb = iocb;
	req->bg = bg;
	req->pos = pos;
	req->bytes = 0;
	req->is_write = is_write;
}

/* Count a submitted bio, of @bytes, to the request, and let go of it. */
static void biogen_request_add(struct biogen_request *req, struct biogen_io *io,
			       unsigned int bytes)
{
	spin_lock_irq(&req->lock);
	req->inflight++;
	req->bytes += bytes;
	spin_unlock_irq(&req->lock);
	io->req = req;
	biogen_io_leave(io);
}

/*
 * Wait until @inflight is no more than @most, as O_DIRECT does: the time counts as
 * waiting for I/O, and the task wakes up now and then, so that it is not reported
 * as hung if the device is slow. The lock is held, and dropped during sleep.
 */
static void biogen_request_wait_inflight(struct biogen_request *req,
					 unsigned int most)
{
	lockdep_assert_held(&req->lock);
	if (req->inflight <= most)
		return;
	___wait_event(req->wait, req->inflight <= most, TASK_UNINTERRUPTIBLE,
		      0, 0,
		      spin_unlock_irq(&req->lock);
		      io_schedule_timeout(HZ / 2);
		      spin_lock_irq(&req->lock));
}

/* Wait until no more than @bios are in flight, and let go of the others. */
static void biogen_request_wait(struct biogen_request *req, unsigned int bios)
{
	struct biogen_io *ended;

	spin_lock_irq(&req->lock);
	biogen_request_wait_inflight(req, bios + 1);
	ended = req->ended;
	req->ended = NULL;
	spin_unlock_irq(&req->lock);
	biogen_put_ended(ended, true);
}

/*
 * The submitter of an asynchronous request has no more to submit.
 * Return: -EIOCBQUEUED if it goes on without it, or its result.
 */
static ssize_t biogen_request_detach(struct biogen_request *req)
{
	bool last;

	spin_lock_irq(&req->lock);
	last = req->inflight == 1;
	if (!last)
		req->inflight--;
	spin_unlock_irq(&req->lock);
	if (!last)
		return -EIOCBQUEUED;
	biogen_request_wait(req, 0);
	return biogen_request_result(req);
}

/**
 * biogen_io_detach() - let a bio go on without its submitter
 * @io: submitted, and not ended by biogen_io_submit()
 * @pos: where it is on the device
 * @bytes: how much it moves
 *
 * biogen_io_wait() must be called for it.
 */
void biogen_io_detach(struct biogen_io *io, loff_t pos, unsigned int bytes)
{
	struct biogen_request *req = &io->own;

	biogen_request_start(req, io->bg, NULL, pos,
			     op_is_write(bio_op(&io->bio)));
	biogen_request_add(req, io, bytes);
}

/**
 * biogen_io_wait() - wait for the end of a bio
 * @io: given to biogen_io_detach(); the caller's again afterwards
 *
 * Context: Process context, may sleep.
 * Return: 0 or the bio's error.
 */
int biogen_io_wait(struct biogen_io *io)
{
	struct biogen_request *req = &io->own;
	int err;

	spin_lock_irq(&req->lock);
	if (io->bio.bi_opf & REQ_POLLED) {
		while (req->inflight > 1) {
			spin_unlock_irq(&req->lock);
			compat_bio_poll(&io->bio);
			cond_resched();
			spin_lock_irq(&req->lock);
		}
	} else {
		biogen_request_wait_inflight(req, 1);
	}
	err = req->error;
	spin_unlock_irq(&req->lock);
	return err;
}

/* Whether the caller does not wait for the result; read(2) has no iocb. */
static __always_inline bool biogen_is_async(struct kiocb *iocb)
{
	return iocb && !is_sync_kiocb(iocb);
}

/* The rest of a request of one bio that did not end while it was submitted. */
static noinline ssize_t biogen_one_unfinished(struct biogen_io *io,
					      struct kiocb *iocb, loff_t pos,
					      unsigned int bytes)
{
	struct biogen_request *req = &io->own;
	struct biogen_device *bg = io->bg;
	bool is_write = op_is_write(bio_op(&io->bio));
	bool again;
	int err;

	/*
	 * Refused, because it would have had to wait, for a free request, say.
	 * io_uring does it again and waits if it is told so now; of a completed
	 * request it does so only if the file is a block device.
	 */
	again = atomic_read_acquire(&io->bio.__bi_remaining) == 1 &&
		io->bio.bi_status == BLK_STS_AGAIN;
	if (biogen_is_async(iocb) && !again) {
		/* No count for the submitter, who does not look back. */
		biogen_request_start(req, bg, iocb, pos, is_write);
		req->bytes = bytes;
		io->req = req;
		if (io->bio.bi_opf & REQ_POLLED)
			WRITE_ONCE(iocb->private, &io->bio);
		biogen_io_leave(io);
		return -EIOCBQUEUED;
	}

	biogen_io_detach(io, pos, bytes);
	err = biogen_io_wait(io);
	if (biogen_io_pinned(io))
		biogen_io_unpin_vecs(io, biogen_io_dirties(io));
	biogen_io_put_any(io);
	if (is_write && biogen_cached(bg))
		biogen_cache_drop(bg, pos, bytes);
	/* The type of err ?: bytes has no sign. */
	return err ? err : (ssize_t)bytes;
}

/* Whose pages a bio has. */
enum biogen_pages {
	BIOGEN_PINNED_PAGE,	/* pinned by us, one */
	BIOGEN_PINNED_PAGES,	/* pinned by us */
	BIOGEN_CALLERS_PAGES,
};

/*
 * Submit a filled bio that is all of a request, and give its result. @is_write
 * is its direction; @pages is a constant.
 */
static __always_inline ssize_t
biogen_submit_one(struct biogen_device *bg, struct biogen_io *io,
		  struct kiocb *iocb, loff_t pos, unsigned int bytes,
		  bool is_write, const enum biogen_pages pages)
{
	int err;

	if (is_write)
		task_io_account_write(bytes);
	if (unlikely(!biogen_io_submit(io, true)))
		return biogen_one_unfinished(io, iocb, pos, bytes);

	err = biogen_io_error(io);
	if (pages == BIOGEN_PINNED_PAGE)
		biogen_io_unpin_page(io, !is_write);
	else if (pages == BIOGEN_PINNED_PAGES)
		biogen_io_unpin_vecs(io, !is_write);
	biogen_io_put(bg, io);
	if (is_write && biogen_cached(bg))
		biogen_cache_drop(bg, pos, bytes);
	return err ? err : (ssize_t)bytes;
}

/* Checks. */

static __always_inline unsigned int biogen_block_mask(struct biogen_device *bg)
{
	return bg->target.queue->limits.logical_block_size - 1;
}

static __always_inline unsigned int biogen_dma_mask(struct biogen_device *bg)
{
	return compat_queue_dma_mask(bg->target.queue);
}

/*
 * Whether a request may be done, and how much of it, as a block device says.
 * Return: how many bytes, 0 for none, or an error.
 */
static __always_inline ssize_t biogen_check_range(struct biogen_device *bg,
						  loff_t pos, size_t count,
						  blk_opf_t opf)
{
	loff_t size = compat_bdev_nr_bytes(bg->target.bdev);

	if (op_is_write(opf)) {
		if (unlikely(bdev_read_only(bg->target.bdev)))
			return -EPERM;
		if (unlikely(!count))
			return 0;
	}
	if (unlikely(pos + count > size)) {
		if (pos >= size)
			return op_is_write(opf) ? -ENOSPC : 0;
		count = size - pos;
	}
	return count;
}

/*
 * Whether the block layer may split a bio of @bytes that begins at @skip of the
 * segment @bv. A part of a bio that must not block can fail when others are
 * under way already. io_uring does such a request again if it is on a block
 * device, and reports it if it is on anything else: so it must fail before,
 * when that can be told.
 */
static bool biogen_may_split(struct biogen_device *bg, const struct bio_vec *bv,
			     unsigned int skip, loff_t pos, unsigned int bytes)
{
	struct request_queue *q = bg->target.queue;
	unsigned long gaps = queue_virt_boundary(q);
	unsigned long window = queue_segment_boundary(q);
	unsigned int chunk = q->limits.chunk_sectors;
	unsigned int len, segments = 0;

	if (bytes >> SECTOR_SHIFT > queue_max_sectors(q))
		return true;
	if (chunk && (pos >> SECTOR_SHIFT) % chunk +
		     (bytes >> SECTOR_SHIFT) > chunk)
		return true;
	for (; bytes; bytes -= len, bv++, skip = 0) {
		len = min(bytes, bv->bv_len - skip);
		if (segments && ((bv->bv_offset + skip) & gaps))
			return true;
		if (len < bytes && ((bv->bv_offset + skip + len) & gaps))
			return true;
		/* The size may be UINT_MAX: nothing is to be added to it. */
		segments += 1 + (len - 1) / queue_max_segment_size(q);
		/* A segment does not cross a multiple of @window + 1. */
		if (window != ULONG_MAX) {
			phys_addr_t start = page_to_phys(bv->bv_page) +
					    bv->bv_offset + skip;

			segments += ((start & window) + len - 1) >>
				    fls_long(window);
		}
	}
	return segments > queue_max_segments(q);
}

/* One small bio from user memory. */

/*
 * The priority that was set for the task, or none: then the block layer makes
 * one from its nice value, as it would for the value that it gives itself.
 */
static __always_inline u16 biogen_task_ioprio(void)
{
	struct io_context *ioc = current->io_context;

	return ioc ? ioc->ioprio : 0;
}

/*
 * Pin a buffer of up to BIOGEN_SMALL_VECS pages.
 * Return: how many bytes of it, a multiple of the logical block size.
 */
static noinline int biogen_pin_small(struct biogen_io *io, unsigned long addr,
				     unsigned int bytes, blk_opf_t opf)
{
	unsigned int offset = offset_in_page(addr), excess;
	struct page *pages[BIOGEN_SMALL_VECS];
	int pinned;

	pinned = pin_user_pages_fast(addr - offset,
				     DIV_ROUND_UP(offset + bytes, PAGE_SIZE),
				     op_is_write(opf) ? 0 : FOLL_WRITE, pages);
	if (pinned <= 0)
		return pinned ?: -EFAULT;
	bytes = min_t(unsigned int, bytes, pinned * PAGE_SIZE - offset);
	io->bio.bi_vcnt = 0;
	biogen_io_add_pages(io, pages, offset, bytes);
	excess = bytes & biogen_block_mask(io->bg);
	if (excess)
		biogen_io_trim(io, excess);
	return bytes - excess ?: -EFAULT;
}

/* Several pages. */
static noinline ssize_t biogen_rw_few(struct biogen_device *bg,
				      struct kiocb *iocb, unsigned long addr,
				      unsigned int bytes, loff_t pos,
				      blk_opf_t opf, u16 ioprio)
{
	struct biogen_io *io = biogen_io_get(bg);
	int pinned;

	if (unlikely(!io))
		return -ENOMEM;
	pinned = biogen_pin_small(io, addr, bytes, opf);
	if (unlikely(pinned < 0))
		goto put_io;
	bytes = pinned;
	if (biogen_is_async(iocb) && (opf & REQ_NOWAIT) &&
	    biogen_may_split(bg, io->vecs, 0, pos, bytes)) {
		biogen_io_unpin_vecs(io, false);
		pinned = -EAGAIN;
		goto put_io;
	}
	biogen_io_prepare(io, io->vecs, io->bio.bi_vcnt, 0, bytes, pos, opf,
			  COMPAT_BIO_PINNED);
	io->bio.bi_ioprio = ioprio;
	return biogen_submit_one(bg, io, iocb, pos, bytes, op_is_write(opf),
				 BIOGEN_PINNED_PAGES);

put_io:
	biogen_io_put(bg, io);
	return pinned;
}

static __always_inline ssize_t
biogen_rw_one(struct biogen_device *bg, struct kiocb *iocb, unsigned long addr,
	      unsigned int bytes, loff_t pos, blk_opf_t opf, u16 ioprio)
{
	unsigned int offset = offset_in_page(addr);
	struct biogen_io *io;
	int pinned;

	if (biogen_cached(bg)) {
		int err = biogen_cache_prepare(bg, pos, bytes, opf);

		if (err)
			return err;
	}
	if (unlikely(offset + bytes > PAGE_SIZE))
		return biogen_rw_few(bg, iocb, addr, bytes, pos, opf, ioprio);

	io = biogen_io_get(bg);
	if (unlikely(!io))
		return -ENOMEM;
	/* A single page is pinned straight into the table. */
	pinned = pin_user_pages_fast(addr - offset, 1,
				     op_is_write(opf) ? 0 : FOLL_WRITE,
				     &io->vecs[0].bv_page);
	if (unlikely(pinned != 1)) {
		biogen_io_put(bg, io);
		return pinned ?: -EFAULT;
	}
	io->vecs[0].bv_offset = offset;
	io->vecs[0].bv_len = bytes;
	biogen_io_prepare(io, io->vecs, 1, 0, bytes, pos, opf,
			  COMPAT_BIO_PINNED);
	io->bio.bi_ioprio = ioprio;
	return biogen_submit_one(bg, io, iocb, pos, bytes, op_is_write(opf),
				 BIOGEN_PINNED_PAGE);
}

/* Pages that the caller has pinned: they go into the bio as they are. */

/* Whether each segment begins and ends where the device can. */
static bool biogen_bvecs_aligned(struct biogen_device *bg,
				 const struct bio_vec *bv, size_t skip,
				 size_t left)
{
	unsigned int dma = biogen_dma_mask(bg), block = biogen_block_mask(bg);
	size_t len;

	for (; left; left -= len, bv++, skip = 0) {
		len = min_t(size_t, left, bv->bv_len - skip);
		if (((bv->bv_offset + skip) & dma) || (len & block))
			return false;
	}
	return true;
}

/* Flags of the bio that the caller of a file's operation wants. */
static __always_inline blk_opf_t biogen_iocb_opf(struct kiocb *iocb)
{
	blk_opf_t opf = 0;

	if (iocb->ki_flags & IOCB_NOWAIT)
		opf |= REQ_NOWAIT;
	if (unlikely(iocb->ki_flags & IOCB_HIPRI) && !is_sync_kiocb(iocb))
		opf |= REQ_POLLED;
	return opf;
}

/* Submit what is in the @nr_vecs of @bv from @skip on; it is checked. */
static __always_inline ssize_t
biogen_submit_bvecs(struct biogen_device *bg, struct kiocb *iocb,
		    const struct bio_vec *bv, unsigned short nr_vecs,
		    unsigned int skip, unsigned int bytes, loff_t pos,
		    blk_opf_t opf)
{
	struct biogen_io *io;

	opf |= biogen_iocb_opf(iocb);
	if (biogen_cached(bg)) {
		int err = biogen_cache_prepare(bg, pos, bytes, opf);

		if (err)
			return err;
	}
	if (unlikely(bytes > PAGE_SIZE) && (opf & REQ_NOWAIT) &&
	    !is_sync_kiocb(iocb) && biogen_may_split(bg, bv, skip, pos, bytes))
		return -EAGAIN;
	io = biogen_io_get(bg);
	if (unlikely(!io))
		return -ENOMEM;
	/* The table is the caller's, as that of a clone is. */
	biogen_io_prepare(io, (struct bio_vec *)bv, nr_vecs, skip, bytes, pos,
			  opf, BIT(BIO_CLONED));
	io->bio.bi_ioprio = iocb->ki_ioprio;
	return biogen_submit_one(bg, io, iocb, pos, bytes, op_is_write(opf),
				 BIOGEN_CALLERS_PAGES);
}

/* Several segments. */
static noinline ssize_t biogen_rw_bvecs(struct biogen_device *bg,
					struct kiocb *iocb,
					struct iov_iter *iter, size_t bytes,
					blk_opf_t opf)
{
	const struct bio_vec *bv = iter->bvec;
	size_t skip = iter->iov_offset;
	loff_t pos = iocb->ki_pos;
	ssize_t ret;

	if (!biogen_bvecs_aligned(bg, bv, skip, bytes))
		return -EINVAL;
	ret = biogen_submit_bvecs(bg, iocb, bv, iter->nr_segs, skip, bytes,
				  pos, opf);
	if (ret > 0) {
		iocb->ki_pos = pos + ret;
		iov_iter_advance(iter, ret);
	}
	return ret;
}

static __always_inline ssize_t biogen_rw_bvec(struct biogen_device *bg,
					      struct kiocb *iocb,
					      struct iov_iter *iter,
					      blk_opf_t opf)
{
	const struct bio_vec *bv = iter->bvec;
	size_t skip = iter->iov_offset;
	loff_t pos = iocb->ki_pos;
	ssize_t bytes, ret;

	bytes = biogen_check_range(bg, pos, iov_iter_count(iter), opf);
	if (unlikely(bytes <= 0))
		return bytes;
	if (unlikely((pos | bytes) & biogen_block_mask(bg)))
		return -EINVAL;
	if (unlikely(skip + bytes > bv->bv_len))
		return biogen_rw_bvecs(bg, iocb, iter, bytes, opf);
	if (unlikely((bv->bv_offset + skip) & biogen_dma_mask(bg)))
		return -EINVAL;
	ret = biogen_submit_bvecs(bg, iocb, bv, 1, skip, bytes, pos, opf);
	if (likely(ret > 0)) {
		iocb->ki_pos += ret;
		/* Of a single segment, something may be left. */
		iter->iov_offset += ret;
		iter->count -= ret;
	}
	return ret;
}

/**
 * biogen_read_bvec() - read into pages that are pinned
 * @bg: the device
 * @iocb: the request
 * @iter: an ITER_BVEC
 *
 * Return: the number of bytes, an error, or -EIOCBQUEUED.
 */
ssize_t biogen_read_bvec(struct biogen_device *bg, struct kiocb *iocb,
			 struct iov_iter *iter)
{
	return biogen_rw_bvec(bg, iocb, iter, REQ_OP_READ);
}

/**
 * biogen_write_bvec() - write from pages that are pinned
 * @bg: the device
 * @iocb: the request
 * @iter: an ITER_BVEC
 * @opf: REQ_OP_WRITE, with flags
 *
 * Return: the number of bytes, an error, or -EIOCBQUEUED.
 */
ssize_t biogen_write_bvec(struct biogen_device *bg, struct kiocb *iocb,
			  struct iov_iter *iter, blk_opf_t opf)
{
	return biogen_rw_bvec(bg, iocb, iter, opf | REQ_OP_WRITE);
}

/* Anything else from user memory. */

static ssize_t biogen_rw_stream(struct biogen_device *bg, struct kiocb *iocb,
				struct iov_iter *iter, loff_t pos, size_t count,
				blk_opf_t opf)
{
	unsigned int block = biogen_block_mask(bg) + 1;
	/*
	 * A longer one is sent in parts by O_DIRECT, and fails as a whole: with
	 * -EIO if it is asynchronous, because then bios give its result.
	 */
	bool in_parts = iov_iter_npages(iter, BIOGEN_LARGE_VECS + 1) >
			BIOGEN_LARGE_VECS;
	struct biogen_request on_stack, *req = &on_stack;
	bool sync = is_sync_kiocb(iocb);
	struct biogen_io *io = NULL;
	struct blk_plug plug;
	ssize_t ret = 0;

	if (biogen_cached(bg)) {
		ret = biogen_cache_prepare(bg, pos, count, opf);
		if (ret)
			return ret;
	}
	if (!sync) {
		req = kmalloc(sizeof(*req), GFP_KERNEL);
		if (!req)
			return -ENOMEM;
	}
	spin_lock_init(&req->lock);
	init_waitqueue_head(&req->wait);
	if (!sync)
		INIT_WORK(&req->work, biogen_request_work);
	biogen_request_start(req, bg, sync ? NULL : iocb, pos,
			     op_is_write(opf));

	blk_start_plug(&plug);
	while (count) {
		if (!io)
			io = biogen_io_alloc(bg, true);
		if (!io) {
			ret = -ENOMEM;
			break;
		}
		ret = biogen_io_fill(io, iter, count, opf, block,
				     in_parts);
		if (ret <= 0)
			break;
		if (!sync && (opf & REQ_NOWAIT) &&
		    biogen_may_split(bg, io->vecs, 0, pos, ret)) {
			biogen_io_unpin_vecs(io, false);
			ret = -EAGAIN;
			break;
		}
		biogen_io_prepare(io, io->vecs, io->bio.bi_vcnt, 0, ret, pos,
				  opf & ~REQ_POLLED, COMPAT_BIO_PINNED);
		io->bio.bi_ioprio = iocb->ki_ioprio;
		pos += ret;
		count -= ret;
		if (op_is_write(opf))
			task_io_account_write(ret);
		if (biogen_io_submit(io, true)) {
			int err = biogen_io_error(io);

			spin_lock_irq(&req->lock);
			req->bytes += ret;
			if (!req->error)
				req->error = err;
			spin_unlock_irq(&req->lock);
			biogen_io_unpin_vecs(io, biogen_io_dirties(io));
		} else {
			biogen_request_add(req, io, ret);
			io = NULL;
			biogen_request_wait(req, BIOGEN_MAX_INFLIGHT);
		}
		if (READ_ONCE(req->error))
			break;
	}
	blk_finish_plug(&plug);
	if (io)
		biogen_io_free(io);

	if (ret <= 0 && (!req->bytes || in_parts)) {
		spin_lock_irq(&req->lock);
		if (!req->error && in_parts && !sync && ret != -EAGAIN)
			req->error = -EIO;
		else if (!req->error)
			req->error = ret ?: -EFAULT;
		spin_unlock_irq(&req->lock);
	}
	if (!sync) {
		ret = biogen_request_detach(req);
		if (ret == -EIOCBQUEUED)
			return ret;
	} else {
		biogen_request_wait(req, 0);
		ret = biogen_request_result(req);
	}
	if (op_is_write(opf) && biogen_cached(bg) && req->bytes)
		biogen_cache_drop(bg, req->pos, req->bytes);
	if (!sync)
		kfree(req);
	return ret;
}

/* Whether each segment of @iter begins and ends where the device can. */
static bool biogen_iter_aligned(struct biogen_device *bg,
				const struct iov_iter *iter)
{
	unsigned int dma = biogen_dma_mask(bg), block = biogen_block_mask(bg);
	size_t left = iov_iter_count(iter), skip = iter->iov_offset;
	const struct iovec *iov;
	size_t len;

	if (compat_iter_is_ubuf(iter))
		return !(((unsigned long)compat_iter_ubuf(iter) + skip) & dma);
	for (iov = compat_iter_iov(iter); left; left -= len, iov++, skip = 0) {
		len = min_t(size_t, left, iov->iov_len - skip);
		if ((((unsigned long)iov->iov_base + skip) & dma) ||
		    (len & block))
			return false;
	}
	return true;
}

/**
 * biogen_rw_iter() - read or write what an iterator describes
 * @bg: the device
 * @iocb: the request
 * @iter: user memory
 * @opf: REQ_OP_READ or REQ_OP_WRITE, with flags
 *
 * Return: the number of bytes, an error, or -EIOCBQUEUED.
 */
ssize_t biogen_rw_iter(struct biogen_device *bg, struct kiocb *iocb,
		       struct iov_iter *iter, blk_opf_t opf)
{
	size_t had = iov_iter_count(iter);
	loff_t pos = iocb->ki_pos;
	unsigned long addr;
	ssize_t count, ret;
	size_t len;

	count = biogen_check_range(bg, pos, had, opf);
	if (unlikely(count <= 0))
		return count;
	if (unlikely(count < had)) {
		iov_iter_truncate(iter, count);
		ret = biogen_rw_iter(bg, iocb, iter, opf);
		iov_iter_reexpand(iter, iov_iter_count(iter) + had - count);
		return ret;
	}
	if (unlikely((pos | count) & biogen_block_mask(bg)))
		return -EINVAL;
	opf |= biogen_iocb_opf(iocb);

	if (compat_iter_is_ubuf(iter)) {
		addr = (unsigned long)compat_iter_ubuf(iter) + iter->iov_offset;
		len = count;
	} else if (iter_is_iovec(iter)) {
		addr = (unsigned long)compat_iter_iov(iter)->iov_base +
		       iter->iov_offset;
		len = compat_iter_iov(iter)->iov_len - iter->iov_offset;
	} else {
		return -EINVAL;
	}

	if (likely(count <= len) &&
	    likely(offset_in_page(addr) + count <=
		   BIOGEN_SMALL_VECS * PAGE_SIZE)) {
		if (unlikely(addr & biogen_dma_mask(bg)))
			return -EINVAL;
		ret = biogen_rw_one(bg, iocb, addr, count, pos, opf,
				    iocb->ki_ioprio);
		/* It is a single segment of which something may be left. */
		if (likely(ret > 0)) {
			iter->iov_offset += ret;
			iter->count -= ret;
		}
	} else if (biogen_iter_aligned(bg, iter)) {
		ret = biogen_rw_stream(bg, iocb, iter, pos, count, opf);
	} else {
		ret = -EINVAL;
	}
	if (likely(ret > 0))
		iocb->ki_pos = pos + ret;
	return ret;
}

/**
 * biogen_rw_buf() - read or write one buffer and wait
 * @bg: the device
 * @addr: the buffer in user memory
 * @count: its size
 * @pos: position on the device
 * @opf: REQ_OP_READ or REQ_OP_WRITE, with flags
 *
 * Return: the number of bytes, -EMSGSIZE if the buffer is too large for one
 * bio and biogen_rw_iter() has to do it, or another error.
 */
ssize_t biogen_rw_buf(struct biogen_device *bg, unsigned long addr,
		      size_t count, loff_t pos, blk_opf_t opf)
{
	ssize_t bytes = biogen_check_range(bg, pos, count, opf);

	if (unlikely(bytes <= 0))
		return bytes;
	if (unlikely((pos | bytes) & biogen_block_mask(bg)) ||
	    unlikely(addr & biogen_dma_mask(bg)))
		return -EINVAL;
	if (unlikely(offset_in_page(addr) + bytes >
		     BIOGEN_SMALL_VECS * PAGE_SIZE))
		return -EMSGSIZE;
	return biogen_rw_one(bg, NULL, addr, bytes, pos, opf,
			     biogen_task_ioprio());
}

/**
 * biogen_bio_init() - what all devices need
 *
 * Return: 0 or -ENOMEM.
 */
int biogen_bio_init(void)
{
	/* Type-safe by RCU: a bio may be polled while it ends. */
	biogen_small_cache =
		kmem_cache_create("biogen_small",
				  sizeof(struct biogen_io) +
				  BIOGEN_SMALL_VECS * sizeof(struct bio_vec), 0,
				  SLAB_HWCACHE_ALIGN | SLAB_TYPESAFE_BY_RCU,
				  NULL);
	if (!biogen_small_cache)
		return -ENOMEM;
	biogen_large_cache =
		kmem_cache_create("biogen_large",
				  sizeof(struct biogen_io) +
				  BIOGEN_LARGE_VECS * sizeof(struct bio_vec), 0,
				  SLAB_HWCACHE_ALIGN | SLAB_TYPESAFE_BY_RCU,
				  NULL);
	if (!biogen_large_cache)
		goto destroy_small_cache;
	biogen_wq = alloc_workqueue("biogen", WQ_MEM_RECLAIM | WQ_UNBOUND,
				    0);
	if (!biogen_wq)
		goto destroy_large_cache;
	return 0;

destroy_large_cache:
	kmem_cache_destroy(biogen_large_cache);
destroy_small_cache:
	kmem_cache_destroy(biogen_small_cache);
	return -ENOMEM;
}

/**
 * biogen_bio_exit() - undo biogen_bio_init(); no device is left
 */
void biogen_bio_exit(void)
{
	destroy_workqueue(biogen_wq);
	kmem_cache_destroy(biogen_large_cache);
	kmem_cache_destroy(biogen_small_cache);
}
