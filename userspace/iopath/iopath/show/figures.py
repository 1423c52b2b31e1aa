# SPDX-License-Identifier: GPL-2.0
"""The figures of a result, one by one, for views that other programs read."""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch

from iopath.results.metrics import INSTRUCTIONS, METRICS, SHARED_WRITES, shared
from iopath.results.result import (
    ExactRecord,
    ExactResult,
    HardwareRecord,
    Result,
    RungRecord,
    size_text,
    title,
)
from iopath.results.syscalls import CALL, IO, JUDGED


@dataclass(frozen=True)
class Figure:
    """A metric of what was measured on a kernel: a rung, or a program's command line. *low* and
    *high* are of the boots, or of a confidence interval. The gate judges it if it is *judged*."""

    kernel: str
    name: str
    metric: str
    unit: str
    value: float
    low: float
    high: float
    boots: int = 1
    op: str = ""
    block_size: int = 0
    judged: bool = True

    @property
    def title(self) -> str:
        """What was measured, e.g. "dio.pread read 4 KiB"."""
        what = title(self.name, self.op) if self.op else self.name
        return f"{what} {size_text(self.block_size)}" if self.block_size else what


def of_result(result: Result) -> Iterator[Figure]:
    if isinstance(result, ExactResult) and result.device is not None:
        yield from _of_program(result)
        return
    for record in result.results:
        yield from of_record(record)


_UNITS = {CALL: "instructions per call", IO: "instructions per I/O"}


def _of_program(result: ExactResult) -> Iterator[Figure]:
    """The whole, and the kernel's part of each system call."""
    for record in result.results:
        if record.calls and record.calls.kind in JUDGED:
            yield Figure(
                record.kernel.name, result.command, record.op,
                _UNITS.get(record.calls.kind, "instructions"),
                round(record.path, 4), round(min(record.boots), 4), round(max(record.boots), 4),
                len(record.boots),
            )  # fmt: skip


@singledispatch
def of_record(record: RungRecord) -> Iterator[Figure]:
    raise TypeError(record)


@of_record.register
def _(record: ExactRecord) -> Iterator[Figure]:
    arrangements = record.sharing.arrangements if record.sharing else ()
    sharing = [shared(part.name, kind) for part in arrangements for kind in SHARED_WRITES]
    for metric in (*METRICS, *sharing):
        if boots := metric.value(record):
            mean = record.path if metric is INSTRUCTIONS else round(statistics.fmean(boots), 4)
            yield Figure(
                record.kernel.name, record.rung, metric.name, metric.unit, mean, min(boots),
                max(boots), len(boots), record.op, record.block_size, metric.gated,
            )  # fmt: skip


@of_record.register
def _(record: HardwareRecord) -> Iterator[Figure]:
    if record.profile:
        ns = record.profile.ns
        yield Figure(
            record.kernel.name, record.rung, "ns", "ns", ns, ns, ns, 1, record.op, record.block_size
        )
    for name, figure in (record.figures or {}).items():
        yield Figure(
            record.kernel.name, record.rung, name, "ns" if name == "ns" else "events",
            figure.median, figure.low, figure.high, len(figure.boots or [0]), record.op,
            record.block_size,
        )  # fmt: skip
