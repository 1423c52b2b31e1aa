/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fixture "device": a device of blknull in each mode, made in configfs by
 * turn_on().
 */
#ifndef SELFTEST_DEVICE_FIXTURE_H
#define SELFTEST_DEVICE_FIXTURE_H

#include <sys/mman.h>

#include "kselftest_harness.h"

#include "item.h"

#define SIZE		(4 * MIB)	/* the tested part of a device */

FIXTURE(device) {
	unsigned char *buf;
	unsigned char *shadow;
	int fd;
};

FIXTURE_VARIANT(device) {
	const char *mode;
};

FIXTURE_VARIANT_ADD(device, bio) { .mode = "mode=bio" };

FIXTURE_VARIANT_ADD(device, split) {
	.mode = "mode=bio max_sectors=page max_segments=4 virt_boundary=1",
};

FIXTURE_VARIANT_ADD(device, inline) { .mode = "mode=mq iostats=1" };
FIXTURE_VARIANT_ADD(device, softirq) { .mode = "mode=mq completion=softirq submit_queues=2" };
FIXTURE_VARIANT_ADD(device, timer) { .mode = "mode=mq completion=timer completion_nsec=50000" };
FIXTURE_VARIANT_ADD(device, poll) { .mode = "mode=mq poll_queues=2" };
FIXTURE_VARIANT_ADD(device, remote) { .mode = "mode=bio complete_cpu=next" };

FIXTURE_VARIANT_ADD(device, remote_softirq) {
	.mode = "mode=mq completion=softirq complete_cpu=next",
};

FIXTURE_SETUP(device)
{
	if (strstr(variant->mode, "queues=2") && sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "one CPU takes one queue");
	self->fd = -1;
	self->buf = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	self->shadow = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->buf);
	ASSERT_NE(MAP_FAILED, self->shadow);
	item_remove("a");
	item_remove("b");
	module_unload("blknull");
	ASSERT_EQ(0, items_begin());
}

FIXTURE_TEARDOWN(device)
{
	close(self->fd);
	EXPECT_EQ(0, item_remove("a"));
	item_remove("b");
	EXPECT_EQ(0, module_unload("blknull"));
}

/* Turn on "a", of this mode and with these attributes, and open it. */
static inline int turn_on(const char *mode, const char *attrs, int flags)
{
	char text[512];
	int err, fd;

	snprintf(text, sizeof(text), "%s %s", mode, attrs);
	err = item_on("a", text);
	if (err)
		return err;
	fd = open(item_disk("a"), O_RDWR | O_CLOEXEC | flags);
	return fd < 0 ? -errno : fd;
}

#endif /* SELFTEST_DEVICE_FIXTURE_H */
