# SPDX-License-Identifier: GPL-2.0
"""Repeat the experiments that ioloop descends from, in guests with today's kernels, and write
their tables with today's figures beside those of then.

    build/venv/bin/python selftests/results/ancestors.py [--output FILE] [KERNEL...]

Kernels are as for iopath, the default those of the other results. What was compared on one machine
alone is repeated on the last of them.
"""

import json
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from page import main, table

from iopath.base.errors import IopathError
from iopath.base.programs import guest_program
from iopath.guest.machine import Machine, Qemu
from iopath.guest.payload import QUIET, Image, Start
from iopath.guest.states import States
from iopath.kernels.built import Built
from iopath.kernels.modules import uncompressed, with_dependencies
from iopath.measure.session import Session
from iopath.rungs.builtin import select
from iopath.rungs.runs import Settings
from iopath.rungs.together import more_biogen

KERNELS = ("debian:5.10", "debian:6.1", "debian:6.12", "debian:7.2", "debian:7.3")

DEVICES = 8  # of each kind
CONFIG = "/sys/kernel/config"
LATENCY_NS = 100_000  # of a disk that has one


@dataclass(frozen=True)
class Disks:
    """A set of disks: their number's beginnings, as blknull's for the page cache and O_DIRECT, and
    as biogen's, which are bound to disks of their own."""

    blknull: int
    biogen: int

    def block(self) -> list[str]:
        return [f"/dev/blknull{self.blknull + number}" for number in range(DEVICES)]

    def raw(self) -> list[str]:
        return [f"/dev/biogen{self.biogen + number}" for number in range(DEVICES)]

    def bound(self) -> list[str]:
        return [f"/dev/blknull{self.blknull + DEVICES + number}" for number in range(DEVICES)]


NULL = Disks(0, 0)
LATE = Disks(100, DEVICES)
KINDS = {"null": NULL, "late": LATE}
PLACES = (("block", NULL.block()[0]), ("raw", NULL.raw()[0]))

MODES = {
    "basic": "--ioengine=buffered --invalidate",
    "nocopy": "--ioengine=splice --invalidate",
    "direct": "--ioengine=sync --direct=1",
    "raw": "--ioengine=sync --direct=1",
    "mmap": "--ioengine=mmap --invalidate",
}
SIZE_MB = 32
BLOCKS = SIZE_MB << 7  # of 8 KiB: all of a device
INSTANCES = (1, 100, 200, 400)
INSTANCES_MS = 50
DIRECTIONS = {"read": "sequential read", "randread": "random read", "randwrite": "random write"}
PIECES = (1, 2, 4, 8)

# Of the mails that are named in background: what was measured then.
CHEN = """\
| 2.4.21 based (2005) | 265,122 | 229,810 | |
| 2.6.9 (2005) | 218,565 | 206,917 | |
| 2.6.10 (2005) | 213,041 | 205,891 | |
| 2.6.11 (2005) | 212,284 | 201,124 | |
| 2.6.9, direct-to-bio (2005) | 323,016 | 268,484 | +47.8 %, +29.8 % |"""
DALE = {"basic": 156.25, "nocopy": 188.04, "direct": 190.62, "raw": 194.61, "mmap": 78.06}
SHAPIRO = {"harness": 467_893, "driver": 4_043_250}


@dataclass
class Run:
    """One run of ioloop, as it reported it."""

    report: dict[str, Any]

    @property
    def ios(self) -> int:
        return sum(job["ios"] for job in self.report["jobs"])

    @property
    def seconds(self) -> float:
        """From the first job's start to the last one's end."""
        jobs = self.report["jobs"]
        return (max(j["end_ns"] for j in jobs) - min(j["start_ns"] for j in jobs)) / 1e9

    @property
    def per_second(self) -> float:
        return self.ios / self.seconds

    @property
    def megabytes(self) -> float:
        return sum(job["bytes"] for job in self.report["jobs"]) / 1e6

    @property
    def unfair(self) -> float:
        """The share of the time in which some jobs had ended and others not, in percent."""
        ends = [job["end_ns"] for job in self.report["jobs"]]
        return (max(ends) - min(ends)) / 1e7 / self.seconds

    @property
    def instructions(self) -> float:
        """Per I/O, in the median round of those that no interrupt came into."""
        rounds = [part for job in self.report["jobs"] for part in job["rounds"]]
        calm = [part["tsc"] / part["ios"] for part in rounds if not part["interrupts"]]
        if not calm:
            raise IopathError("every round was interrupted")
        return statistics.median(calm)


@dataclass
class Outcome:
    """What a kernel's guest gave."""

    name: str
    release: str
    banner: str
    runs: dict[str, Run]
    verbatim: str  # what ioloop prints of the eight devices, for people


def commands(*, all_of_them: bool) -> list[str]:
    """The runs of ioloop in a guest, by names that say what they are."""
    runs: list[tuple[str, str]] = []

    def add(name: str, words: str) -> None:
        runs.append((name, words))

    fixed = "--direct=1 --pattern=fixed --cpus_allowed=0 --rounds=30"
    for place, device in PLACES:
        add(f"chen.sync.{place}", f"--filename={device} {fixed} --number_ios=100")
        add(
            f"chen.aio.{place}",
            f"--filename={device} {fixed} --number_ios=500 --ioengine=libaio --iodepth=100",
        )
    for kind, disks in KINDS.items():
        for mode, words in MODES.items():
            names = ":".join(disks.raw() if mode == "raw" else disks.block())
            add(f"dale.{kind}.{mode}", f"--filename={names} --bs=8k --number_ios={BLOCKS} {words}")
        for pieces in PIECES:
            words = f"--direct=1 --ioengine=libaio --bs=256k --split={pieces} --number_ios=100"
            words += f" --filename={disks.block()[0]} --cpus_allowed=0"
            add(f"lawson.{kind}.{pieces}", words)
            add(f"lawson.{kind}.fifo.{pieces}", f"{words} --rtprio=50")
    if all_of_them:
        add("shapiro.harness", "--ioengine=null --number_ios=10000 --rounds=30 --cpus_allowed=0")
        add("shapiro.syscall", "--ioengine=syscall --number_ios=1000 --rounds=30 --cpus_allowed=0")
        for place, device in PLACES:
            for rw in DIRECTIONS:
                for number in INSTANCES:
                    add(
                        f"shapiro.{place}.{rw}.{number}",
                        f"--filename={device} --direct=1 --rw={rw} --numjobs={number}"
                        f" --time_based --runtime={INSTANCES_MS}ms --warmup_ios=10",
                    )
    lines = []
    for name, words in runs:
        lines.append(f"run {name} /bin/ioloop {words} --output-format=json")
    names = ":".join(LATE.block())
    words = f"--filename={names} --bs=8k --number_ios={BLOCKS} --direct=1"
    return [*lines, f"run verbatim /bin/ioloop {words}"]


def configure(name: str, attributes: dict[str, object]) -> list[str]:
    """What makes the object *name* in configfs."""
    folder = f"{CONFIG}/{name}"
    writes = [f"write {folder}/{key} {value}" for key, value in attributes.items()]
    return [f"mkdir {folder}", *writes, f"write {folder}/power 1"]


def image(built: Built, plan: Sequence[str]) -> Image:
    """A guest with disks of all kinds."""
    files = {"bin/ioloop": guest_program("ioloop").read_bytes()}
    parameters = {"blknull": f" nr_devices={2 * DEVICES} size_mb={SIZE_MB}", "biogen": " write=1"}
    lines = []
    for module in ("blknull", "biogen"):
        for path in with_dependencies(module, built):
            name = path.name.split(".")[0]
            if f"modules/{name}.ko" not in files:
                files[f"modules/{name}.ko"] = uncompressed(path)
                lines.append(f"insmod /modules/{name}.ko{parameters.get(name, '')}")
    lines.append(f"mount configfs {CONFIG}")
    late = {"mode": "mq", "completion": "timer", "completion_nsec": LATENCY_NS, "size_mb": SIZE_MB}
    for number in range(LATE.blknull, LATE.blknull + 2 * DEVICES):
        lines += configure(f"blknull/{number}", late | {"index": number})
    for disks in KINDS.values():
        lines += more_biogen(disks.bound())
    return Image(Start(built.vmlinuz), [*lines, "file /proc/version", QUIET, *plan], files)


def carry_out(session: Session, name: str, *, all_of_them: bool) -> Outcome:
    """Boot the kernel *name* and carry out its runs."""
    built = session.find(name).prepare(session.cache, session.apt, lambda what, part: None)
    plan = commands(all_of_them=all_of_them)
    log = session.cache.root / "logs" / f"ancestors-{built.release}.log"
    machine = Machine(memory=2048, time_limit=3600)
    states = States(session.cache, session.reporter.warn)
    records, _ = states.run(Qemu.find(), machine, image(built, plan), log)
    texts = {record.name: record.data.decode(errors="replace") for record in records}
    runs = {
        line.split(" ")[1]: Run(json.loads(texts[line.split(" ")[1]]))
        for line in plan
        if line.endswith("json")
    }
    return Outcome(name, built.release, texts["/proc/version"], runs, texts["verbatim"])


def driver_alone(session: Session, name: str) -> tuple[float, float]:
    """Instructions of a generated bio: in the driver, and in all."""
    settings = Settings(select(["gen.sync"]), ops=("read",), profile=True)
    (record,) = session.measure([name], settings).results
    own = [part for part in record.profile.functions if part.module == "blknull"]
    return sum(part.instructions for part in own), record.instructions_per_io


# The tables.


def chen(outcomes: Sequence[Outcome]) -> str:
    rows = []
    for outcome in outcomes:
        cost = {
            (way, place): outcome.runs[f"chen.{way}.{place}"].instructions
            for way in ("sync", "aio")
            for place in ("block", "raw")
        }
        gains = ", ".join(
            f"{100 * (cost[way, 'block'] / cost[way, 'raw'] - 1):+.1f} %" for way in ("sync", "aio")
        )
        for place, label, gain in (("block", "", ""), ("raw", ", direct-to-bio", gains)):
            cells = [
                f"{1e9 / cost[way, place]:,.0f} ({cost[way, place]:,.0f})"
                for way in ("sync", "aio")
            ]
            rows.append([outcome.release + label, *cells, gain])
    today = table(["kernel", "sync: pread", "AIO: io_submit", "gain, sync and AIO"], rows)
    head, line, *body = today.splitlines()
    return "\n".join([head, line, CHEN, *body])


def dale(outcomes: Sequence[Outcome]) -> str:
    rows = []
    for mode, then in DALE.items():
        cells = []
        for outcome in outcomes:
            run = outcome.runs[f"dale.null.{mode}"]
            cells.append(f"{run.megabytes / run.seconds:,.0f}")
        rows.append([mode, f"{then:.2f}", *cells])
    return table(["mode", "then (2002)", *(o.release for o in outcomes)], rows)


def dale_devices(outcome: Outcome) -> str:
    rows = []
    for mode in MODES:
        run = outcome.runs[f"dale.late.{mode}"]
        jobs = run.report["jobs"]
        each = [job["ns"] / job["ios"] / 1e3 for job in jobs]
        idle = run.report["idle_percent"]
        user, system = (
            sum(job[key] for job in jobs) / run.ios / 1e3 for key in ("user_ns", "system_ns")
        )
        rows.append([
            mode,
            f"{run.megabytes:.0f}", f"{run.seconds:.3f}", f"{run.ios:,}",
            f"{run.megabytes / run.seconds:,.0f}",
            f"{min(each):.2f} to {max(each):.2f}",
            f"{run.unfair:.1f} %",
            f"{user:.2f}, {system:.2f}",
            "n/a" if idle is None else f"{idle:.0f} %",
        ])  # fmt: skip
    head = ["mode", "MB", "seconds", "reads of 8 KiB", "MB/s", "us per block, by device",
            "first to last end", "CPU us per block, by timer ticks: user, system",
            "idle"]  # fmt: skip
    return table(head, rows)


def shapiro_baselines(session: Session, outcome: Outcome) -> str:
    harness = outcome.runs["shapiro.harness"].instructions
    call = outcome.runs["shapiro.syscall"].instructions
    driver, generated = driver_alone(session, outcome.name)
    rows = [
        ["harness alone", "/dev/zero", f"{SHAPIRO['harness']:,}", "`null`", harness],
        ["", "", "", "`syscall`", call],
        ["driver alone", "I2O, nothing touched", f"{SHAPIRO['driver']:,}", "blknull", driver],
        ["", "", "", "`biogen`: block layer and driver", generated],
    ]
    cells = [[*row[:4], f"{1e9 / row[4]:,.0f}", f"{row[4]:,.2f}"] for row in rows]
    head = ["", "then (1999)", "ops/s", "today", "ops/s", "instructions"]
    return table(head, cells)


def shapiro_instances(outcome: Outcome) -> str:
    columns = [(place, rw) for place in ("raw", "block") for rw in DIRECTIONS]
    rows = [
        [
            str(number),
            *(
                f"{outcome.runs[f'shapiro.{place}.{rw}.{number}'].per_second:,.0f}"
                for place, rw in columns
            ),
        ]
        for number in INSTANCES
    ]
    return table(["instances", *(f"{place}, {DIRECTIONS[rw]}" for place, rw in columns)], rows)


def lawson(outcome: Outcome) -> str:
    rows = []
    for kind, disk in (("null", "none"), ("late", f"{LATENCY_NS // 1000} us")):
        for more, priority in (("", ""), (".fifo", "real-time")):
            for pieces in PIECES:
                (job,) = outcome.runs[f"lawson.{kind}{more}.{pieces}"].report["jobs"]
                times = [piece["mean_ns"] / 1e3 for piece in job["pieces"]]
                rows.append([
                    f"{pieces} x {256 // pieces} KiB", disk, priority,
                    " ".join(f"{time:.1f}" for time in times),
                    f"{statistics.fmean(times[1:]):.1f}" if times[1:] else "",
                ])  # fmt: skip
    head = ["read", "the disk's latency", "scheduler", "completions, us",
            "average of the later ones"]  # fmt: skip
    return table(head, rows)


def lawson_kernels(outcomes: Sequence[Outcome]) -> str:
    rows = []
    for outcome in outcomes:
        cells = [outcome.runs[f"lawson.null.{pieces}"].report["jobs"][0] for pieces in PIECES]
        rows.append([outcome.release, *(f"{job['latency']['mean_ns'] / 1e3:.1f}" for job in cells)])
    head = ["kernel", *(f"{pieces} x {256 // pieces} KiB" for pieces in PIECES)]
    return table(head, rows)


def document(session: Session, kernels: Sequence[str]) -> str:
    with ThreadPoolExecutor(session.places) as pool:
        jobs = [
            pool.submit(carry_out, session, name, all_of_them=name == kernels[-1])
            for name in kernels
        ]
        outcomes = [job.result() for job in jobs]
    last = outcomes[-1]
    banners = "\n".join(f"    {outcome.banner.strip()}" for outcome in outcomes)
    verbatim = "\n".join(f"    {line}".rstrip() for line in last.verbatim.splitlines())
    return f"""\
# The ancestors' experiments on today's kernels

Made by `selftests/results/ancestors.py`. Each experiment ran in a guest of one emulated CPU
whose clock advances one nanosecond per instruction, on blknull, a disk of no latency. So a second
here is 10^9 instructions, of user and kernel together, and figures of then, of other machines and
mostly real disks, are beside them for the shape of the tables: compare within a column, and how
rows of a column relate. The clock also counts each iteration of a repeated string instruction
(`Documentation/measuring.rst`).

The guest: QEMU {Qemu.find().version}, CPU {Machine().model}, 1 CPU, `{Machine().cmdline}`.

{banners}

## 2005, Kenneth Chen: sync against AIO, kernel by kernel

4 KiB reads at offset 0 with O_DIRECT, one at a time by pread and 100 at a time by io_submit; I/Os
per second, and today's instructions per I/O. Direct-to-bio is a dedicated path for block devices:
then a patch of the raw device, today `/dev/biogen0`.

{chen(outcomes)}

## 2002, Lincoln Dale: five ways to read eight disks at once

`bs=8k`, one job per disk, total MB/s. *basic* is the page cache, cold; *nocopy* the same without
the copy to user space (splice to /dev/null); *direct* O_DIRECT; *raw* biogen; *mmap* one load from
each page. On disks of no latency:

{dale(outcomes)}

On {last.release}, with all that the program printed, and idle CPU, on disks on which each request
takes {LATENCY_NS // 1000} us. Reading ahead makes larger requests of *basic*, *nocopy* and *mmap*,
so that these wait less often:

{dale_devices(last)}

What ioloop prints of *direct*, a line for each disk:

{verbatim}

## 1999, Simon Shapiro: the harness, the driver, the stack

First the harness alone, then a driver that completes everything at once, then the stack. On
{last.release}:

{shapiro_baselines(session, last)}

4 KiB, by one instance and by hundreds of processes on the one CPU, operations per second in all.
What the hundreds add is the kernel's switching between them:

{shapiro_instances(last)}

## 2002, Nate Lawson: one read of 256 KiB in pieces

When each of 1, 2, 4, 8 parallel pieces of one O_DIRECT read by libaio completes, counted from the
submission of all: then 5-7 ms for the whole in one piece and 15-17 ms for four of 64 KiB. A disk of
no latency ends each piece while it is submitted, so all of them are found together when io_submit
returns; what more pieces cost is the path alone. On {last.release}, with the default scheduler and
with real-time priority:

{lawson(last)}

Until all of it was there, in microseconds, on a disk of no latency, kernel by kernel:

{lawson_kernels(outcomes)}
"""


if __name__ == "__main__":
    sys.exit(main(__file__, __doc__ or "", document, KERNELS))
