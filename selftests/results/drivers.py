# SPDX-License-Identifier: GPL-2.0
"""Count a read from the system call to the doorbell of a device and back from its interrupt.

    build/venv/bin/python selftests/results/drivers.py [--output FILE] [KERNEL...]

One of the kernels is shown by parts, layers and functions.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence

from page import main, measure, sums, table

from iopath.measure.session import Session
from iopath.results.result import ExactRecord
from iopath.rungs.builtin import select
from iopath.rungs.runs import Settings

KERNELS = ("debian:6.1", "debian:6.12", "debian:7.2", "debian:7.3", "debian:6.12-arm64")
SHOWN = "debian:7.2"  # by parts, layers and functions
NULL = "dio.pread"
READS = (NULL, "nvme.pread", "virtio.pread", "scsi.pread", "ahci.pread")
WITHOUT = (
    "brd.pread", "zram.pread", "scsi_debug.pread", "tcm_loop.pread", "nvme-loop.pread",
    "nvme-tcp.pread", "nbd.pread", "ublk.pread", "ublk.zc.pread", "dm-multipath.pread",
)  # fmt: skip
BLOCK, BIO, COMMAND = "nvme.uring.fixed", "nvme.raw.uring.fixed", "nvme.cmd.fixed"
WAYS = ("nvme.uring", "nvme.raw.uring", "nvme.cmd", BLOCK, BIO, COMMAND)
POLLED = ("nvme.uring.polled", "nvme.cmd.polled")
PUBLISHED = (24, 30)  # per cent more I/Os per second by commands than by the block device

ABOUT = """\
# What a read costs on drivers of devices

Made by `selftests/results/drivers.py`: instructions per read of 4 KiB on devices that QEMU
emulates, with one queue and no scheduler, from the system call to the doorbell and from the
interrupt back to the program. The idle loop and the timer's ticks are left out. `dio.pread` is the
null device, which has neither interrupt nor sleep. A rung that a kernel or its machine has not is
left out: ublk came with 6.4, without copying with 6.16, and the machine of arm64 has no SATA
controller.
"""

Records = Mapping[str, ExactRecord]


def figures(kernels: Mapping[str, Records], rungs: Iterable[str]) -> str:
    rows = [
        [rung, *(f"{found[rung].path:,.0f}" if rung in found else "" for found in kernels.values())]
        for rung in rungs
    ]
    return table(["rung", *kernels], rows)


def by_part(records: Records) -> str:
    """Who executes a read: the parts of all, those of every rung first."""
    found = {rung: records[rung].all_parts or {} for rung in READS}
    names = dict.fromkeys(name for parts in found.values() for name in parts)
    rows = [
        [name, *(f"{parts[name]:,.0f}" if name in parts else "" for parts in found.values())]
        for name in names
        if max(parts.get(name, 0) for parts in found.values()) >= 50
    ]
    rows.append(["total", *(f"{records[rung].total:,.0f}" for rung in found)])
    return table(["part", *found], rows)


def by_layer(records: Records) -> str:
    found = {rung: sums(records[rung], "layer") for rung in READS}
    names = {name for layers in found.values() for name in layers}
    largest = sorted(names, key=lambda name: -max(layers[name] for layers in found.values()))
    rows = [
        [name, *(f"{layers[name]:,.0f}" if layers[name] else "" for layers in found.values())]
        for name in largest
    ]
    return table(["layer", *found], rows)


def only(records: Records, one: str, other: str) -> str:
    """The functions that the rung *one* has and *other* has not."""
    own, theirs = (sums(records[rung], "name") for rung in (one, other))
    rows = [[name, f"{count:,.2f}"] for name, count in own.most_common() if name not in theirs]
    rows.append([f"{len(rows)} functions", f"{sum(own[name] for name, _ in rows):,.2f}"])
    return table(["function", "instructions"], rows)


def ways(release: str, records: Records) -> str:
    block, bio, command = (records[rung].path for rung in (BLOCK, BIO, COMMAND))
    gain = 100 * (block / command - 1)
    low, high = PUBLISHED
    agree = "is in that range" if low <= gain <= high else "is outside of that range"
    return f"""\
## Block device, biogen and commands, {release}

`uring` reads from `/dev/nvme0n1`, `raw` from biogen's character device on it, `cmd` sends commands
to `/dev/ng0n1` (passthrough); `fixed` is with registered buffers and files. 32 are in flight. How
many of them an interrupt ends is up to the emulator.

A read takes {block:,.0f} instructions by the block device, {bio:,.0f} by biogen and {command:,.0f}
by a command. Published are {low} to {high} % more I/Os per second by commands. By instructions
alone a core could do {gain:.0f} % more, which {agree}: a core also waits for memory and for
the device.

### Only by the block device, not by a command

{only(records, BLOCK, COMMAND)}

### Only by a command

{only(records, COMMAND, BLOCK)}
"""


def document(session: Session, names: Sequence[str]) -> str:
    settings = Settings(
        select([*READS, *WITHOUT, *WAYS, *POLLED]), ops=("read",), boots=2, profile=True
    )
    found = {
        name: {record.rung: record for record in measure(session, name, settings)} for name in names
    }
    shown = found.get(SHOWN, found[names[0]])
    release = shown[NULL].kernel.release
    return "\n".join([
        ABOUT, figures(found, [*READS, *WAYS, *POLLED]), "",
        "## Drivers that need no device", "",
        "The target or the server is in the same kernel, so threads and soft interrupts do a part\n"
        "of the work (`Documentation/measuring.rst`).", "",
        figures(found, [NULL, *WITHOUT]), "",
        f"## Who executes it, {release}", "",
        "`interrupt irq_entries_start` is the way into an interrupt and out of it, `switches` the\n"
        "scheduler's work of going to the idle task and back.", "",
        by_part(shown), "",
        f"## By layers, {release}", "", by_layer(shown), "",
        ways(release, shown),
    ])  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(__file__, __doc__ or "", document, KERNELS))
