// SPDX-License-Identifier: GPL-2.0
/*
 * The help, which fits a screen.
 */
#include "help.h"

/**
 * help_print() - print the help
 * @out: where to
 */
void help_print(FILE *out)
{
	static const char help[] =
"  ioloop --filename=/dev/sdb --direct=1 --rw=randread --runtime=10 --time_based\n"
"  ioloop --filename=/dev/blknull0 --direct=1 --number_ios=200 --rounds=50\n"
"Times one kind of I/O in a short loop. Options are fio's. Writes destroy data!\n"
"  --ioengine=    psync pvsync2 libaio io_uring io_uring_cmd mmap buffered splice\n"
"                 biogen null syscall; --name=JOB: names it, and files otherwise\n"
"  --rw=          read write rw randread randwrite randrw; --rwmixread=50 (%)\n"
"  --pattern=fixed  always at --offset; --randseed=1 --randrepeat=1: random ones\n"
"  --bs=4k        block size; or any of --bsrange=4k-64k, --bssplit=4k/90:64k/10\n"
"  --offset=SIZE --size=SIZE   part of the device; --iodepth=1: I/Os per batch\n"
"  --direct=0|1   bypass the page cache; --invalidate=0|1: empty it, each round\n"
"  --time_based --runtime=TIME   for a time; --loops=N: passes; default is one\n"
"  --number_ios=N --rounds=N --warmup_ios=N   I/Os per round; rounds; before it\n"
"  --numjobs=N --thread --share_file --cpus_allowed=LIST --rate_iops=N   jobs\n"
"  --rtprio=N --numa_node=N --hugepages   FIFO scheduling; where buffers lie\n"
"  --hipri --nowait --dsync --fixedbufs --registerfiles --registermem\n"
"  --sqthread_poll --single_issuer --defer_taskrun --userspace_reap --split=N\n"
"  --iodepth_batch=N --optional   see ioloop(1)\n"
"  --lat --pmu    latencies; performance counters; --live=0|1: a line per second\n"
"  --region=N --perf_control=CTL,ACK   markers' number; FIFOs of perf record\n"
"  --drain=TIME   sleep before and after the rounds, until deferred work is done\n"
"  --allow-mounted   write even to a device that is in use\n"
"  --calibrate    no I/O: --number_ios loops of known length\n"
"  --output-format=normal|json --output=FILE --group_reporting   the report\n"
"Exit status: 1 if an I/O failed, 2 if the command line is wrong; see ioloop(1)\n";

	fputs(help, out);
}
