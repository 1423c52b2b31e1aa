/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Coherence with the target's page cache.
 */
#ifndef BIOGEN_CACHE_H
#define BIOGEN_CACHE_H

#include <linux/compiler.h>

#include "biogen.h"

int biogen_cache_prepare(struct biogen_device *bg, loff_t pos, size_t bytes,
			 blk_opf_t opf);
void biogen_cache_drop(struct biogen_device *bg, loff_t pos, size_t bytes);

/*
 * True if the target's page cache has any page. O_DIRECT does the same test
 * first. A buffered write or a store through a mapping that happened before
 * this I/O added its page to the cache before this test.
 */
static __always_inline bool biogen_cached(const struct biogen_device *bg)
{
	return unlikely(READ_ONCE(*bg->nr_cached));
}

#endif /* BIOGEN_CACHE_H */
