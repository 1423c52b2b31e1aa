/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The list of attributes. Define BLKNULL_ATTR(name, type, default, min, max, flags,
 * choices, description) and include this file: the macro is expanded for each
 * attribute. There is no include guard. Module parameters, the fields of struct
 * blknull_config and the files in configfs have these names.
 */
#define BLKNULL_NUMBER(name, def, min, max, flags, about) \
	BLKNULL_ATTR(name, int, def, min, max, flags, NULL, about)
#define BLKNULL_LONG(name, def, min, max, flags, about) \
	BLKNULL_ATTR(name, long long, def, min, max, flags, NULL, about)
#define BLKNULL_BOOL(name, def, flags, about) \
	BLKNULL_ATTR(name, bool, def, 0, 1, flags, NULL, about)
#define BLKNULL_CHOICE(name, def, flags, about) \
	BLKNULL_ATTR(name, int, def, 0, 0, flags, blknull_choices_##name, about)

BLKNULL_NUMBER(index, "-1", -1, BLKNULL_MAX_INDEX, 0,
	       "Number in the name, 0 to 65535 (default -1: the first free one)")
BLKNULL_CHOICE(mode, "bio", 0,
	       "How I/O is handled: bio, or mq for requests of blk-mq (default bio)")
BLKNULL_LONG(size_mb, "1024", 1, BLKNULL_MAX_SIZE_MB, 0,
	     "Size of a device in MiB, at least 1 (default 1024)")
BLKNULL_NUMBER(block_size, "512", SECTOR_SIZE, PAGE_SIZE, BLKNULL_POWER_OF_2,
	       "Logical block size in bytes, a power of 2, 512 to the page size (default 512)")
BLKNULL_NUMBER(home_node, "-1", -1, MAX_NUMNODES - 1, 0,
	       "NUMA node of the device's memory (default -1: any)")

BLKNULL_NUMBER(max_sectors, "0", PAGE_SIZE >> SECTOR_SHIFT, INT_MAX,
	       BLKNULL_OR_0,
	       "Largest I/O in 512-byte sectors, at least a page (default 0: no limit)")
BLKNULL_NUMBER(max_segments, "0", 1, USHRT_MAX, BLKNULL_OR_0,
	       "Maximum number of segments, 1 to 65535 (default 0: no limit)")
BLKNULL_BOOL(virt_boundary, "0", 0,
	     "Split I/O whose segments begin or end within a page (default N)")
BLKNULL_NUMBER(dma_alignment, "512", 4, PAGE_SIZE, BLKNULL_POWER_OF_2,
	       "Alignment of memory for direct I/O, a power of 2, 4 to the page size (default 512)")

BLKNULL_BOOL(rotational, "0", 0, "Claim to be a rotating disk (default N)")
BLKNULL_BOOL(read_only, "0", 0, "Refuse writes (default N)")
BLKNULL_BOOL(discard, "0", 0, "Accept discards (default N)")
BLKNULL_BOOL(write_zeroes, "0", 0, "Accept write-zeroes (default N)")
BLKNULL_BOOL(write_cache, "0", 0,
	     "Claim a volatile write cache and accept flushes (default N)")
BLKNULL_BOOL(fua, "0", BLKNULL_NEEDS_CACHE,
	     "Accept FUA writes (default N); for write_cache=1")
BLKNULL_BOOL(iostats, "0", 0,
	     "Account I/O in /proc/diskstats (default N)")

BLKNULL_BOOL(zero_fill, "1", 0,
	     "Zero reads, except into a program's own memory (default Y; N leaks old data)")
BLKNULL_BOOL(memory_backed, "0", 0,
	     "Store written data in memory (default N)")
BLKNULL_BOOL(bypass, "0",
	     BLKNULL_NEEDS_BIO | BLKNULL_NEEDS_MEMORY | BLKNULL_LIVE,
	     "Pass data by, keep what is stored (default N); for mode=bio, memory_backed=1")
BLKNULL_BOOL(stats, "0", 0,
	     "Count I/O in the disk's counters directory in sysfs (default N)")

BLKNULL_NUMBER(complete_cpu, "local", 0, INT_MAX, BLKNULL_CPU,
	       "CPU on which I/O ends: local, next (the next online) or a number (default local)")

BLKNULL_CHOICE(completion, "inline", BLKNULL_NEEDS_MQ,
	       "How requests end: inline, softirq or timer (default inline); for mode=mq")
BLKNULL_LONG(completion_nsec, "10000", 1, NSEC_PER_SEC * 60, BLKNULL_NEEDS_MQ,
	     "Nanoseconds until completion=timer, 1 to 60000000000 (default 10000)")
BLKNULL_NUMBER(submit_queues, "1", 1, BLKNULL_MAX_QUEUES, BLKNULL_NEEDS_MQ,
	       "Hardware queues, 1 to as many as CPUs (default 1); for mode=mq")
BLKNULL_NUMBER(poll_queues, "0", 0, BLKNULL_MAX_QUEUES, BLKNULL_NEEDS_MQ,
	       "Additional queues that are polled, 0 to as many as CPUs (default 0); for mode=mq")
BLKNULL_NUMBER(hw_queue_depth, "64", 1, BLK_MQ_MAX_DEPTH, BLKNULL_NEEDS_MQ,
	       "Requests in flight in a queue, 1 to 10240 (default 64); for mode=mq")

BLKNULL_BOOL(faults, "0", 0,
	     "Inject faults by the attributes below (default N)")
BLKNULL_NUMBER(fail_every, "0", 0, INT_MAX, BLKNULL_NEEDS_FAULTS | BLKNULL_LIVE,
	       "Fail every Nth I/O (default 0: none); for faults=1")
BLKNULL_NUMBER(fail_nth, "0", 0, INT_MAX, BLKNULL_NEEDS_FAULTS | BLKNULL_LIVE,
	       "Fail the Nth I/O from now on (default 0: none); for faults=1")
BLKNULL_CHOICE(fail_status, "io", BLKNULL_NEEDS_FAULTS | BLKNULL_LIVE,
	       "Status: io, medium, nospc, timeout, transport, target ... (default io)")
BLKNULL_NUMBER(delay_every, "0", 0, INT_MAX, BLKNULL_NEEDS_FAULTS | BLKNULL_LIVE,
	       "Delay every Nth I/O (default 0: none); for faults=1")
BLKNULL_LONG(delay_nsec, "1000000", 1, NSEC_PER_SEC * 60,
	     BLKNULL_NEEDS_FAULTS | BLKNULL_LIVE,
	     "Length of the delay in nanoseconds, 1 to 60000000000 (default 1000000)")

#undef BLKNULL_NUMBER
#undef BLKNULL_LONG
#undef BLKNULL_BOOL
#undef BLKNULL_CHOICE
#undef BLKNULL_ATTR
