# SPDX-License-Identifier: GPL-2.0
"""Count what others published about the cost of an I/O, and write it beside what they measured.

    build/venv/bin/python selftests/results/claims.py [--output FILE] [KERNEL...]

Published figures are times or I/Os per second on machines of then; the counts are instructions per
I/O on Debian's kernels before and after the change, or with and without the feature. The read from
ext4 is counted on the first kernel.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from page import main, measure, sums, table

from iopath.measure.session import Session
from iopath.results.profiles import ExactFunction
from iopath.results.result import ExactRecord
from iopath.rungs.builtin import select
from iopath.rungs.rung import Module, Rung
from iopath.rungs.runs import Settings

KERNELS = ("debian:5.10", "debian:6.1", "debian:6.12", "debian:7.2")

# The loop of the records of I/Os per second, and the same with one thing changed.
(RECORD,) = select(["peak.mq"])
(EXT4,) = select(["ext4.pread"])


def options(*without: str) -> tuple[str, ...]:
    return tuple(word for word in RECORD.options if word not in without)


STATS = replace(
    RECORD,
    name="record.iostats",
    begin=tuple(step.replace("iostats 0", "iostats 1") for step in RECORD.begin),
)
INTERRUPTS = replace(RECORD, name="record.interrupts", options=options("--hipri"))
PLAIN = replace(RECORD, name="record.plain", options=options("--fixedbufs"))
PLAIN_INTERRUPTS = replace(
    RECORD, name="record.plain.interrupts", options=options("--hipri", "--fixedbufs")
)
# One read at a time, polled, and on a disk that interrupts the idle CPU.
ONE = ("--ioengine=io_uring", "--direct=1", "--iodepth=1")
POLLED = replace(RECORD, name="one.polled", options=(*ONE, "--hipri"), batch=1)
INTERRUPT = replace(
    RECORD, name="one.interrupt", options=ONE, batch=1, interrupts=1,
    modules=(Module("blknull", (
        ("nr_devices", "1"), ("mode", "mq"), ("completion", "timer"), ("hw_queue_depth", "10240"),
    )),),
)  # fmt: skip
RUNGS = (RECORD, STATS, INTERRUPTS, PLAIN, PLAIN_INTERRUPTS, POLLED, INTERRUPT)

ABOUT = """\
# What others published

Made by `selftests/results/claims.py`. Published figures are times and I/Os per second, on
machines of then and real drives. The counts are instructions per read of 512 bytes by the loop of
`peak.mq` where nothing else is said, on blknull, in user space and in the kernel. Ratios of
instructions and of time are comparable as far as all instructions take the same time.
"""

# By kernel, then by rung.
Counts = Mapping[str, Mapping[str, ExactRecord]]


SPLIT_SIZES = (4096, 8192)


def measured(session: Session, kernel: str, rungs: Sequence[Rung]) -> dict[str, ExactRecord]:
    """The rungs with reads of 512 bytes, by name, and the record with larger ones."""
    settings = Settings(rungs, block_sizes=(512,), ops=("read",), profile=True)
    large = replace(settings, rungs=[RECORD], block_sizes=SPLIT_SIZES)
    return {record.rung: record for record in measure(session, kernel, settings)} | {
        f"{record.rung} {record.block_size}": record for record in measure(session, kernel, large)
    }


def part(record: ExactRecord, belongs: Callable[[ExactFunction], bool]) -> float:
    """Instructions per I/O in the functions that belong to something."""
    return sum(one.instructions for one in record.profile.functions if belongs(one))


def more(before: float, after: float) -> str:
    return f"{100 * (after / before - 1):+.1f} %"


def release(counts: Counts, kernel: str) -> str:
    return next(iter(counts[kernel].values())).kernel.release


# The claims, each a section.


def plug(counts: Counts) -> str:
    rows = []
    for kernel in counts:
        record = counts[kernel]["record.iostats"]
        time = sums(record, "layer")["time"]
        rows.append([
            release(counts, kernel), f"{record.path:,.2f}", f"{time:,.2f}",
            f"{100 * time / record.path:.2f} %",
        ])  # fmt: skip
    head = ["kernel", "instructions per read", "of the clock", "share"]
    return f"""\
## The time in the plug

Linux 6.9 keeps the time of submission in the plug, so that the clock is read once for a batch and
not for each request (da4c8c3d0975). Published, with statistics of the disk: 108.4 to 118.7 million
I/Os per second on many cores ({more(108.4, 118.7)}), and `read_tsc` and `ktime_get` from 11.86 % of
the cycles to 0.76 %. Counted with `iostats` on:

{table(head, rows)}

They agree about where: the clock vanishes from the submission. They do not agree about how much:
`rdtsc` is one instruction, and takes twenty cycles or more. `compare` therefore counts the
instructions that take long in columns of their own.
"""


def iostats(counts: Counts) -> str:
    rows = []
    for kernel in counts:
        without, with_ = (counts[kernel][rung].path for rung in ("peak.mq", "record.iostats"))
        rows.append(
            [release(counts, kernel), f"{without:,.2f}", f"{with_:,.2f}", more(without, with_)]
        )
    head = ["kernel", "without", "with iostats", "difference"]
    return f"""\
## Statistics of the disk

Published: 10.09 million I/Os per second on a core without statistics, and 9.84 and 9.48 with them,
with and without savings in how the time is read: {more(9.84, 10.09)} and {more(9.48, 10.09)} of
time for an I/O. Counted:

{table(head, rows)}

They agree about statistics with one reading of the clock for each I/O (6.1). What the plug saves
is less in instructions than in time, as above.
"""


def fixed(counts: Counts) -> str:
    rows = []
    for kernel in counts:
        cells = []
        for plain, registered in (
            ("record.plain.interrupts", "record.interrupts"), ("record.plain", "peak.mq"),
        ):  # fmt: skip
            one, other = counts[kernel][plain].path, counts[kernel][registered].path
            cells += [f"{one:,.2f}", f"{other:,.2f}", more(other, one)]
        rows.append([release(counts, kernel), *cells])
    head = [
        "kernel", "without", "registered", "gain", "polled, without", "polled, registered", "gain",
    ]  # fmt: skip
    return f"""\
## Registered buffers

Published, for commands that are passed through to an NVMe drive (Linux 6.1): 1.65 to 2.04 million
I/Os per second ({more(1.65, 2.04)}), and polled 1.85 to 2.17 ({more(1.85, 2.17)}). Counted, for
reads of the block device, which pins the pages of a buffer in the same way:

{table(head, rows)}

They agree that registered buffers gain much. The gain is larger here: a drive adds its interrupt,
doorbell and mapping for DMA to either column.
"""


BIO = ("bio_alloc", "bio_free", "bio_put", "bio_init", "bio_uninit", "bvec_free", "mempool_",
       "kmem_cache_", "slab_", "__slab_", "bio_chain", "__bio_put", "bio_reset")  # fmt: skip


def is_bio(function: ExactFunction) -> bool:
    return function.name.startswith(BIO)


def cache(counts: Counts) -> str:
    rows = []
    for kernel in counts:
        cells = []
        for rung in ("record.interrupts", "peak.mq"):
            record = counts[kernel][rung]
            cells += [f"{record.path:,.2f}", f"{part(record, is_bio):,.2f}"]
        rows.append([release(counts, kernel), *cells])
    head = [
        "kernel", "instructions per read", "of them for the bio", "polled", "of them for the bio",
    ]  # fmt: skip
    first, second, third = list(counts)[:3]

    def saved(rung: str, before: str, after: str) -> str:
        one, other = (part(counts[kernel][rung], is_bio) for kernel in (before, after))
        return f"{100 * (one - other) / counts[before][rung].path:.1f} %"

    return f"""\
## A cache of bios

Linux 5.15 keeps the bios of polled I/O in a cache of each CPU, 6.2 those of other I/O by io_uring.
Published: 3.1 to 3.4 million I/Os per second on a core, polled ({more(3.1, 3.4)}), and 59.5 to 64
million on many cores that are interrupted ({more(59.5, 64)}). Counted, with the functions that
allocate, prepare and free a bio:

{table(head, rows)}

They agree: the cache saves {saved("peak.mq", first, second)} of a polled read, and
{saved("record.interrupts", second, third)} of a read that ends by an interrupt.
"""


def is_split(function: ExactFunction) -> bool:
    return "split" in function.name


def split(counts: Counts) -> str:
    rows = []
    for kernel in counts:
        small, large = (counts[kernel][f"peak.mq {size}"] for size in SPLIT_SIZES)
        rows.append([
            release(counts, kernel), f"{small.path:,.2f}", f"{large.path:,.2f}",
            more(small.path, large.path), f"{part(large, is_split):,.2f}",
        ])  # fmt: skip
    head = ["kernel", *(f"{size // 1024} KiB" for size in SPLIT_SIZES), "difference",
            "in functions that split"]  # fmt: skip
    return f"""\
## Whether a bio must be split

Published: 1,620 to 1,535 thousand I/Os per second where each bio is examined for that, {
        more(1535, 1620)
    } of
time for an I/O. A bio of one page is not examined. Counted, with reads of one and of two adjoining
pages of a registered buffer:

{table(head, rows)}

They agree about its size.
"""


# What XRP calls so, of our layers; all others are the file system's, which calls them.
XRP = {
    "kernel crossing": (351, ("system call entry", "user")),
    "system call": (199, ("VFS", "security")),
    "ext4": (2006, ()),
    "bio": (379, ("block core", "completion")),
    "driver": (113, ("driver",)),
}


def xrp(counts: Counts) -> str:
    record = next(iter(counts.values()))["ext4.pread"]
    named = {layer for _, layers in XRP.values() for layer in layers}
    nanoseconds = sum(published for published, _ in XRP.values())
    found = sums(record, "layer")
    others = tuple(found.keys() - named)
    rows = []
    for name, (published, layers) in XRP.items():
        count = sum(found[layer] for layer in layers or others)
        rows.append([
            name, f"{published:,}", f"{100 * published / nanoseconds:.1f} %",
            f"{count:,.2f}", f"{100 * count / record.path:.1f} %",
            ", ".join(layers) or "all others",
        ])  # fmt: skip
    head = ["part", "published, ns", "share", "instructions", "share", "layers"]
    return f"""\
## The parts of a read from ext4

XRP (OSDI 2022) measured a read of 512 bytes by O_DIRECT from ext4, in nanoseconds without the
device. Counted on {record.kernel.release}, `ext4.pread`, in all {record.path:,.2f} instructions:

{table(head, rows)}

They agree about the file system, which takes most with what it calls, and about the driver, which
takes least. Entering the kernel takes a larger share of the time than of the instructions: some of
them, such as `syscall` and `sysret`, take long.
"""


def polling(counts: Counts) -> str:
    rows = []
    for kernel in counts:
        polled, interrupt = (counts[kernel][rung].path for rung in ("one.polled", "one.interrupt"))
        rows.append([
            release(counts, kernel), f"{interrupt:,.2f}", f"{polled:,.2f}",
            f"{interrupt / polled:.2f}", f"{2.3 * interrupt - polled:,.0f}",
        ])  # fmt: skip
    head = ["kernel", "interrupt", "polled, no waiting", "ratio", "polling that makes 2.3"]
    return f"""\
## Polling

At a low load, polling made an I/O 1.7 times as fast on Intel Optane, and took 2.3 times the
instructions (CHEOPS 2023). Counted, one read at a time by io_uring: with an interrupt that wakes
the idle CPU, and polled on a disk where the first poll finds the end:

{table(head, rows)}

Polling itself takes fewer instructions than an interrupt with its switches of tasks. So what is
published must be the waiting: the last column is how many instructions of it make that ratio. It
cannot be counted on a disk that takes no time.
"""


def document(session: Session, kernels: Sequence[str]) -> str:
    counts = {
        kernel: measured(session, kernel, [*RUNGS, EXT4] if kernel == kernels[0] else RUNGS)
        for kernel in kernels
    }
    sections = (plug, iostats, fixed, cache, split, xrp, polling)
    return "\n".join([ABOUT, *(section(counts) for section in sections)])


if __name__ == "__main__":
    sys.exit(main(__file__, __doc__ or "", document, KERNELS))
