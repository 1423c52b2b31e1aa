// SPDX-License-Identifier: GPL-2.0
/* blknull's zoned devices: rules of zones, limits, reset beside writes, removal. */
#include <linux/blkzoned.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "item_fixture.h"

static int manage(int fd, unsigned long cmd, unsigned int zone)
{
	struct blk_zone_range range = {
		.sector = zone * 2048,
		.nr_sectors = 2048,
	};

	return ioctl(fd, cmd, &range) ? -errno : 0;
}

/* The condition and the sectors written of a zone. */
static int zone_state(int fd, unsigned int zone, unsigned int *written)
{
	struct {
		struct blk_zone_report head;
		struct blk_zone zone[1];
	} report = { .head = { .sector = zone * 2048, .nr_zones = 1 } };

	if (ioctl(fd, BLKREPORTZONE, &report) || report.head.nr_zones != 1)
		return -1;
	*written = report.zone[0].wp - report.zone[0].start;
	return report.zone[0].cond;
}

/* Zones of a MiB, 16 of them, the first conventional, half to be written. */
TEST_F_TIMEOUT(item, zones, TIMEOUT)
{
	struct blk_zone_range whole = { .nr_sectors = 16 * 2048 };
	int log = log_begin(), err, fd, i;
	unsigned char *buf, *back;
	unsigned int written;

	ASSERT_LE(0, log);
	buf = aligned_alloc(4096, MIB);
	back = aligned_alloc(4096, MIB);
	memset(buf, 7, MIB);
	err = item_on("a", "mode=mq size_mb=16 zoned=1 zone_size_mb=1"
		      " zone_nr_conv=1 memory_backed=1 zone_max_open=2"
		      " zone_max_active=3");
	if (err) {
		EXPECT_EQ(-EINVAL, err);
		EXPECT_TRUE(log_has(log, "zoned=1 is not supported"));
		return;
	}
	fd = open(item_disk("a"), O_RDWR | O_DIRECT | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(BLK_ZONE_COND_NOT_WP, zone_state(fd, 0, &written));
	EXPECT_EQ(4096, pwrite(fd, buf, 4096, 65536));

	/* In sequence, and nowhere else. */
	EXPECT_EQ(BLK_ZONE_COND_EMPTY, zone_state(fd, 1, &written));
	EXPECT_EQ(-1, pwrite(fd, buf, 4096, MIB + 4096));
	/* The block layer needs a new report of the write pointer. */
	EXPECT_EQ(BLK_ZONE_COND_EMPTY, zone_state(fd, 1, &written));
	EXPECT_EQ(4096, pwrite(fd, buf, 4096, MIB));
	EXPECT_EQ(-1, pwrite(fd, buf, 4096, MIB));
	EXPECT_EQ(BLK_ZONE_COND_IMP_OPEN, zone_state(fd, 1, &written));
	EXPECT_EQ(8, written);
	EXPECT_EQ(MIB, pread(fd, back, MIB, MIB));
	EXPECT_TRUE(all(back, 4096, 7) && all(back + 4096, MIB - 4096, 0));
	EXPECT_EQ(0, manage(fd, BLKCLOSEZONE, 1));
	EXPECT_EQ(BLK_ZONE_COND_CLOSED, zone_state(fd, 1, &written));
	EXPECT_EQ(0, manage(fd, BLKRESETZONE, 1));
	EXPECT_EQ(BLK_ZONE_COND_EMPTY, zone_state(fd, 1, &written));
	EXPECT_EQ(MIB, pread(fd, back, MIB, MIB));
	EXPECT_TRUE(all(back, MIB, 0));
	EXPECT_EQ(MIB, pwrite(fd, buf, MIB, MIB));
	EXPECT_EQ(BLK_ZONE_COND_FULL, zone_state(fd, 1, &written));
	EXPECT_EQ(0, manage(fd, BLKFINISHZONE, 2));
	EXPECT_EQ(BLK_ZONE_COND_FULL, zone_state(fd, 2, &written));

	/* Two open, three active. */
	for (i = 3; i < 6; i++)
		EXPECT_EQ(4096, pwrite(fd, buf, 4096, i * MIB));
	EXPECT_EQ(-1, pwrite(fd, buf, 4096, 6 * MIB));
	EXPECT_EQ(BLK_ZONE_COND_CLOSED, zone_state(fd, 3, &written));
	EXPECT_EQ(0, manage(fd, BLKOPENZONE, 4));
	EXPECT_EQ(0, manage(fd, BLKOPENZONE, 5));
	EXPECT_NE(0, manage(fd, BLKOPENZONE, 3));
	EXPECT_EQ(0, manage(fd, BLKRESETZONE, 4));
	EXPECT_EQ(0, manage(fd, BLKOPENZONE, 3));
	EXPECT_EQ(BLK_ZONE_COND_EXP_OPEN, zone_state(fd, 3, &written));

	/* Reset all zones; conventional zones keep their data. */
	EXPECT_EQ(0, ioctl(fd, BLKRESETZONE, &whole));
	for (i = 1; i < 16; i++)
		EXPECT_EQ(BLK_ZONE_COND_EMPTY, zone_state(fd, i, &written));
	EXPECT_EQ(MIB, pread(fd, back, MIB, 3 * MIB));
	EXPECT_TRUE(all(back, MIB, 0));
	EXPECT_EQ(4096, pread(fd, back, 4096, 65536));
	EXPECT_TRUE(all(back, 4096, 7));
	close(fd);
	close(log);

	ASSERT_EQ(0, item_set("a", "power", "0"));
	ASSERT_EQ(0, item_set("a", "zone_nr_conv", "16"));
	EXPECT_EQ(-EINVAL, item_set("a", "power", "1"));
	ASSERT_EQ(0, item_configure("a", "zone_nr_conv=0 discard=1"));
	EXPECT_EQ(-EINVAL, item_set("a", "power", "1"));
	free(buf);
	free(back);
}

struct zone_writer {
	pthread_barrier_t barrier;
	unsigned char *buf;
	int fd;
};

#define ZONE_RACES	1000

/* Write to the start of zone 1 after each reset by the other thread. */
static void *write_zone(void *arg)
{
	struct zone_writer *writer = arg;
	int i;

	for (i = 0; i < ZONE_RACES; i++) {
		pthread_barrier_wait(&writer->barrier);
		pwrite(writer->fd, writer->buf, 65536, MIB);
		pthread_barrier_wait(&writer->barrier);
	}
	return NULL;
}

/* An empty zone has no data, even if a reset ran beside a write. */
TEST_F_TIMEOUT(item, reset_while_writing, TIMEOUT)
{
	int log = log_begin(), err, i, empty = 0, kept = 0;
	struct zone_writer writer;
	unsigned int written;
	unsigned char *back;
	pthread_t thread;

	ASSERT_LE(0, log);
	err = item_on("a", "mode=mq size_mb=16 zoned=1 zone_size_mb=1"
		      " memory_backed=1");
	if (err) {
		EXPECT_EQ(-EINVAL, err);
		EXPECT_TRUE(log_has(log, "zoned=1 is not supported"));
		return;
	}
	writer.fd = open(item_disk("a"), O_RDWR | O_DIRECT | O_CLOEXEC);
	ASSERT_LE(0, writer.fd);
	writer.buf = aligned_alloc(4096, 65536);
	back = aligned_alloc(4096, 65536);
	memset(writer.buf, 7, 65536);
	ASSERT_EQ(0, pthread_barrier_init(&writer.barrier, NULL, 2));
	ASSERT_EQ(0, pthread_create(&thread, NULL, write_zone, &writer));
	for (i = 0; i < ZONE_RACES; i++) {
		pthread_barrier_wait(&writer.barrier);
		EXPECT_EQ(0, manage(writer.fd, BLKRESETZONE, 1));
		pthread_barrier_wait(&writer.barrier);
		if (zone_state(writer.fd, 1, &written) == BLK_ZONE_COND_EMPTY) {
			empty++;
			EXPECT_EQ(65536, pread(writer.fd, back, 65536, MIB));
			kept += !all(back, 65536, 0);
		}
		EXPECT_EQ(0, manage(writer.fd, BLKRESETZONE, 1));
		zone_state(writer.fd, 1, &written);
	}
	pthread_join(thread, NULL);
	TH_LOG("%d of %d ended with an empty zone", empty, ZONE_RACES);
	EXPECT_EQ(0, kept);
	close(writer.fd);
	close(log);
	free(writer.buf);
	free(back);
}

struct reporter {
	struct blk_zone_report *report;
	int fd;
	int ret;
};

static void *report_zones(void *arg)
{
	struct reporter *reporter = arg;

	reporter->ret = ioctl(reporter->fd, BLKREPORTZONE, reporter->report) ?
			-errno : 0;
	return NULL;
}

/*
 * A device is removed while its zones are reported: the data that the report
 * uses stay. The report waits for a page of its buffer, which is a page of
 * another, slow device.
 */
TEST_F_TIMEOUT(item, removed_while_reporting, TIMEOUT)
{
	const unsigned int nr = 64, first = 8;
	const size_t page = sysconf(_SC_PAGESIZE);
	int log = log_begin(), err, slow, i;
	struct reporter reporter;
	pthread_t thread;
	long delayed;
	char *place;

	ASSERT_LE(0, log);
	err = item_on("a", "mode=mq size_mb=64 zoned=1 zone_size_mb=1");
	if (err) {
		EXPECT_EQ(-EINVAL, err);
		EXPECT_TRUE(log_has(log, "zoned=1 is not supported"));
		return;
	}
	ASSERT_EQ(0, item_on("b", "faults=1 delay_every=1"
			     " delay_nsec=1000000000"));
	reporter.fd = open(item_disk("a"), O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, reporter.fd);
	slow = open(item_disk("b"), O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, slow);
	place = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, place);
	ASSERT_NE(MAP_FAILED, mmap(place + page, page, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_FIXED, slow, 0));
	/* The head and some zones are on the page before. */
	reporter.report = (void *)(place + page - first * sizeof(struct blk_zone) -
				   sizeof(*reporter.report));
	reporter.report->nr_zones = nr;
	delayed = item_counter("b", "delayed");
	ASSERT_EQ(0, pthread_create(&thread, NULL, report_zones, &reporter));
	while (item_counter("b", "delayed") == delayed)
		usleep(1000);
	EXPECT_EQ(0, item_set("a", "power", "0"));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, reporter.ret);
	EXPECT_EQ(nr, reporter.report->nr_zones);
	for (i = 0; i < nr; i++) {
		EXPECT_EQ(i * 2048, reporter.report->zones[i].start);
		EXPECT_EQ(BLK_ZONE_COND_EMPTY, reporter.report->zones[i].cond);
	}
	/* Another device exists by the time that this one is closed. */
	EXPECT_EQ(0, item_set("a", "power", "1"));
	munmap(place, 2 * page);
	close(reporter.fd);
	close(slow);
	close(log);
}

/* The maximum number of zones, and one more. */
TEST_F_TIMEOUT(item, most_zones, TIMEOUT)
{
	struct blk_zone_range whole = { .nr_sectors = 1048576 * 2048ULL };
	int log = log_begin(), err, fd;
	unsigned int written;
	void *buf = aligned_alloc(4096, 4096);

	ASSERT_LE(0, log);
	ASSERT_EQ(0, item_make("a"));
	ASSERT_EQ(0, item_configure("a", "mode=mq zoned=1 zone_size_mb=1"
				    " zone_max_open=1 size_mb=1048577"));
	EXPECT_EQ(-EINVAL, item_set("a", "power", "1"));
	if (log_has(log, "zoned=1 is not supported"))
		return;
	ASSERT_EQ(0, item_set("a", "size_mb", "8796093022207"));
	EXPECT_EQ(-EINVAL, item_set("a", "power", "1"));
	ASSERT_EQ(0, item_set("a", "size_mb", "1048576"));
	err = item_set("a", "power", "1");
	ASSERT_EQ(0, err);
	fd = open(item_disk("a"), O_RDWR | O_DIRECT | O_CLOEXEC);
	ASSERT_LE(0, fd);
	memset(buf, 7, 4096);
	EXPECT_EQ(4096, pwrite(fd, buf, 4096, 1048575 * MIB));
	EXPECT_EQ(4096, pwrite(fd, buf, 4096, 1048574 * MIB));
	EXPECT_EQ(BLK_ZONE_COND_CLOSED, zone_state(fd, 1048575, &written));
	EXPECT_EQ(0, ioctl(fd, BLKRESETZONE, &whole));
	EXPECT_EQ(BLK_ZONE_COND_EMPTY, zone_state(fd, 1048575, &written));
	EXPECT_EQ(BLK_ZONE_COND_EMPTY, zone_state(fd, 1048574, &written));
	close(fd);
	close(log);
	free(buf);
}

TEST_HARNESS_MAIN
