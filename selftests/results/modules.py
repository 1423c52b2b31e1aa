# SPDX-License-Identifier: GPL-2.0
"""Count what blknull and biogen themselves cost: beside null_blk, and beside O_DIRECT.

    build/venv/bin/python selftests/results/modules.py [--output FILE] [KERNEL...]

Kernels are as for iopath. The last one is also measured with blknull's timer.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from page import main, measure, sums, table

from iopath.measure.session import Session
from iopath.results.result import ExactRecord
from iopath.rungs.builtin import select
from iopath.rungs.rung import Module, Rung
from iopath.rungs.runs import Settings

KERNELS = ("debian:5.10", "debian:6.1", "debian:6.12", "debian:7.2", "debian:7.3")
REQUESTS = ("debian:6.1", "debian:6.12", "debian:7.2")  # of them, with requests of blk-mq

SHAPES = {
    "pread": "pread", "preadv": "preadv", "aio.1": "libaio, 1", "aio.100": "libaio, 100",
    "uring": "io_uring, 32", "uring.fixed": "registered, 32",
}  # fmt: skip
OF_REQUESTS = ("pread", "aio.1", "aio.100", "uring", "uring.fixed")
OF_TIMER = ("pread", "aio.1")
REGISTERED = ("pread", "aio.1", "aio.100", "uring")
BESIDE = ("pread", "aio.1", "aio.100", "uring", "uring.fixed", "uring.polled")
ENDS = {"inline": "`queue_rq()`", "softirq": "softirq", "timer": "timer"}

# Generated bios on a device that fills what is read, and on one that does not.
GENERATED = tuple(
    replace(
        select(["gen.sync"])[0], name=f"gen.fill{fill}",
        modules=(
            Module("blknull", (("nr_devices", "2"), ("zero_fill", f"1,{fill}"))),
            Module("biogen", (("device", "/dev/blknull1"), ("write", "1"))),
        ),
    )
    for fill in (0, 1)
)  # fmt: skip

Records = Mapping[tuple[str, str], ExactRecord]  # by rung and operation


def requests(end: str, shapes: Sequence[str]) -> list[Rung]:
    """The loops of O_DIRECT and of biogen on blknull in mode mq, in one guest."""
    modules = (
        Module("blknull", (
            ("nr_devices", "2"), ("mode", "mq"), ("completion", end), ("hw_queue_depth", "10240"),
        )),
        Module("biogen", (("device", "/dev/blknull1"), ("write", "1"))),
    )  # fmt: skip
    return [
        replace(
            rung, name=f"{end}.{rung.name}", modules=modules, interrupts=int(end == "timer"),
            round_ios=None if rung.batch == 100 else 128,
        )
        for family, device in (("dio", "/dev/blknull0"), ("raw", "/dev/biogen0"))
        for rung in (replace(one, target=device) for one in select([f"{family}.*"]))
        if rung.name.partition(".")[2] in shapes
    ]  # fmt: skip


def measured(
    session: Session, kernel: str, rungs: Sequence[Rung], size: int = 4096
) -> dict[tuple[str, str], ExactRecord]:
    settings = Settings(rungs, block_sizes=(size,), profile=True)
    return {(record.rung, record.op): record for record in measure(session, kernel, settings)}


def own(record: ExactRecord, module: str) -> float:
    return sums(record, "module")[module]


def ratios(
    counts: Mapping[str, Records], shapes: Iterable[str], op: str, one: str, other: str
) -> list[list[str]]:
    """The path of *one* divided by that of *other*, names of rungs without the shape."""
    return [
        [
            SHAPES[shape],
            *(
                f"{records[one.format(shape), op].path / records[other.format(shape), op].path:.2f}"
                for records in counts.values()
            ),
        ]
        for shape in shapes
    ]


def driver(ladder: Mapping[str, Records]) -> str:
    rows = [
        [name, *(f"{own(records[key], 'blknull'):.2f}" for records in ladder.values())]
        for name, key in (
            ("direct read", ("dio.pread", "read")),
            ("direct write", ("dio.pread", "write")),
            ("read into the kernel's own pages", ("gen.fill1", "read")),
            ("write from them", ("gen.fill1", "write")),
            ("read with `zero_fill=0`", ("gen.fill0", "read")),
            ("write with `zero_fill=0`", ("gen.fill0", "write")),
        )
    ]
    return table(["4 KiB", *ladder], rows)


def beside(counts: Mapping[str, Records]) -> str:
    rows = []
    for shape in BESIDE:
        for op in ("read", "write"):
            row = [f"{shape} {op}"]
            for records in counts.values():
                ours, theirs = records[f"mq.{shape}", op], records[f"nullb.{shape}", op]
                row += [
                    f"{own(ours, 'blknull'):.2f}", f"{own(theirs, 'null_blk'):.2f}",
                    f"{ours.path:,.2f}", f"{theirs.path:,.2f}",
                ]  # fmt: skip
            rows.append(row)
    columns = ("own", "null_blk's", "whole", "with null_blk")
    return table(["", *(f"{kernel}: {name}" for kernel in counts for name in columns)], rows)


def ends(counts: Mapping[str, Records], last: Records) -> str:
    head = [f"{ENDS[end]}, {kernel}" for end in ("inline", "softirq") for kernel in counts]
    rows = []
    for one, other in zip(
        ratios(counts, OF_REQUESTS, "read", "inline.dio.{}", "inline.raw.{}"),
        ratios(counts, OF_REQUESTS, "read", "softirq.dio.{}", "softirq.raw.{}"),
        strict=True,
    ):
        rows.append([*one, *other[1:]])
    late = []
    for shape in OF_TIMER:
        dio, raw = (last[f"timer.{family}.{shape}", "read"].path for family in ("dio", "raw"))
        late.append([SHAPES[shape], f"{dio:,.2f}", f"{raw:,.2f}", f"{dio / raw:.2f}"])
    return "\n\n".join([table(["", *head], rows), "By a timer's interrupt, on the last of them:",
                        table(["", "O_DIRECT", "biogen", "ratio"], late)])  # fmt: skip


def registered(ladder: Mapping[str, Records]) -> str:
    rows = []
    for op in ("read", "write"):
        for shape in REGISTERED:
            row = [f"{SHAPES[shape]}, {op}"]
            for records in ladder.values():
                mine = records[f"raw.{shape}.reg", op].path
                dio, raw = records[f"dio.{shape}", op].path, records[f"raw.{shape}", op].path
                row += [f"{mine:,.2f}", f"{dio / mine:.2f}", f"{raw / mine:.2f}"]
            rows.append(row)
    columns = ("instructions", "O_DIRECT's", "unregistered")
    return table(["", *(f"{kernel}: {name}" for kernel in ladder for name in columns)], rows)


def layers(records: Records) -> str:
    """Where the instructions of pread are, with and without registered memory."""
    plain, mine = (sums(records[rung, "read"], "layer") for rung in ("raw.pread", "raw.pread.reg"))
    rows = [
        [layer, f"{before:,.2f}", f"{mine[layer]:,.2f}", f"{mine[layer] - before:+,.2f}"]
        for layer, before in plain.most_common()
    ]
    return table(["layer", "raw.pread", "raw.pread.reg", "difference"], rows)


def large(counts: Mapping[str, Mapping[str, Records]]) -> str:
    rows = [
        [
            mode,
            *(
                f"{records[one, 'read'].path / records[other, 'read'].path:.2f}"
                for records in found.values()
            ),
        ]
        for mode, found, one, other in (
            ("bio", counts["bio"], "dio.pread", "raw.pread"),
            ("mq", counts["mq"], "inline.dio.pread", "inline.raw.pread"),
        )
    ]
    return table(["mode", *REQUESTS], rows)


def document(session: Session, kernels: Sequence[str]) -> str:
    some = [kernel for kernel in REQUESTS if kernel in kernels]
    # The ladder in full is what the other results measure, too.
    ladder = {
        kernel: measured(session, kernel, select(()))
        | measured(session, kernel, [*GENERATED, *select(["raw.*.reg"])])
        for kernel in kernels
    }
    null_blk = {kernel: measured(session, kernel, select(["mq.*", "nullb.*"])) for kernel in some}
    both = [*requests("inline", OF_REQUESTS), *requests("softirq", OF_REQUESTS)]
    by_requests = {kernel: measured(session, kernel, both) for kernel in some}
    late = measured(session, some[-1], requests("timer", OF_TIMER))
    big = {
        "bio": {
            kernel: measured(session, kernel, select(["dio.pread", "raw.pread"]), 1 << 20)
            for kernel in some
        },
        "mq": {
            kernel: measured(
                session, kernel,
                [replace(rung, round_ios=None) for rung in requests("inline", ["pread"])], 1 << 20,
            )
            for kernel in some
        },
    }  # fmt: skip
    reads, writes = (ratios(ladder, SHAPES, op, "dio.{}", "raw.{}") for op in ("read", "write"))
    return f"""\
# What blknull and biogen cost

Made by `selftests/results/modules.py`: instructions per I/O of 4 KiB, with `mitigations=off`.

## blknull's own instructions

Per bio, with the call of `bio_endio()`, without what fills pages, in mode bio:

{driver(ladder)}

## blknull in mode mq, and null_blk

Both have one queue, another one to poll, 10,240 tags, and statistics. *own* and *null_blk's* are
the instructions of the drivers' functions, the others are those of the whole path:

{beside(null_blk)}

## biogen and O_DIRECT

The path of O_DIRECT divided by that of biogen, in one guest, on blknull in mode bio. Reads:

{table(["", *ladder], reads)}

Writes:

{table(["", *ladder], writes)}

## biogen and O_DIRECT, with requests

The same, reads, on blknull in mode mq. A request ends inside `->queue_rq()`, or in the block
softirq:

{ends(by_requests, late)}

## Registered memory

biogen with memory that is registered with the open file: its instructions, and how many times as
many are those of O_DIRECT and of biogen without registered memory:

{registered(ladder)}

`pread` by layers on {some[-1]}:

{layers(ladder[some[-1]])}

## Reads of 1 MiB

The path of O_DIRECT divided by that of biogen, `pread`:

{large(big)}
"""


if __name__ == "__main__":
    sys.exit(main(__file__, __doc__ or "", document, KERNELS))
