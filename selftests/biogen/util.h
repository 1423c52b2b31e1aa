/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Code that the tests of biogen share: modules, block devices that hold data,
 * the kernel's log and random numbers. Functions return a negative errno.
 */
#ifndef SELFTEST_UTIL_H
#define SELFTEST_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KIB		1024UL
#define MIB		(1024UL * 1024UL)
#define BIOGEN		"/dev/biogen0"
/* Seconds; the slowest kernel takes less on a busy machine. */
#define TIMEOUT		1200
#define LONG_TIMEOUT	3600

/*
 * Modules: files of the folder $MODULES, or else of /modules if there is one;
 * otherwise modprobe finds them. A program ends with status 4 (skipped) if it is
 * not run by root, or if one of MODULES_NEEDED does not exist.
 */
int module_load(const char *name, const char *params);
int module_unload(const char *name);
/* Without waiting for its last user. */
int module_unload_now(const char *name);

int write_text(const char *path, const char *text);
int read_text(const char *path, char *text, size_t size);

/* Whether each of @len bytes at @p is @byte. */
bool all(const unsigned char *p, size_t len, unsigned char byte);

/* Whether the kernel has said @text since log_begin(). */
int log_begin(void);
bool log_has(int log, const char *text);

/**
 * struct disk - a block device that holds data
 * @null_blk: of null_blk; otherwise of brd, unless @given
 * @given: there already: $DISKS has the paths, with a space between
 * @mib: capacity
 * @block: logical block size; brd has 512 only
 * @delay_ns: null_blk: time until an I/O ends, or 0: it ends at once
 * @badblocks: null_blk: sectors that fail, as "FIRST-LAST", or NULL
 * @zone_mib: null_blk: size of a zone, all conventional but the last; or 0
 * @read_only: refuse writes
 */
struct disk {
	bool null_blk;
	bool given;
	unsigned int mib;
	unsigned int block;
	unsigned long delay_ns;
	const char *badblocks;
	unsigned int zone_mib;
	bool read_only;
};

/* Make @nr of them, after removing all existing ones. */
int disks_create(const struct disk *disk, unsigned int nr);
int disks_destroy(void);
/* Fill it with @byte, past the page cache, which would be slower. */
int disk_fill(const struct disk *disk, unsigned int index, unsigned char byte);
const char *disk_path(const struct disk *disk, unsigned int index);
/* Bits that must be clear in the address of a buffer for O_DIRECT. */
unsigned int disk_dma_mask(const struct disk *disk);
bool disk_polls(const struct disk *disk);
int null_blk_power(unsigned int index, bool on);

/* Bind biogen0 to the disk @path with the parameters @params. */
int biogen_load(const char *path, const char *params);
int biogen_unload(void);

/* Random numbers that are the same in each run with the same $SEED. */
struct rng {
	uint64_t state;
};

void rng_init(struct rng *rng, uint64_t salt);
uint64_t rng_next(struct rng *rng);
uint64_t rng_below(struct rng *rng, uint64_t limit);
void rng_fill(struct rng *rng, void *buf, size_t len);

uint64_t now_ns(void);

#endif /* SELFTEST_UTIL_H */
