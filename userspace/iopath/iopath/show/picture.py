# SPDX-License-Identifier: GPL-2.0
"""A small picture of a result, for a text: a bar for each kernel on a few rungs, with the largest
steps named."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iopath.compare import exact
from iopath.compare.changes import ExactChange
from iopath.results.layers import table
from iopath.results.result import ExactResult, only
from iopath.show.charts import INK, STYLE

RUNGS = ("gen.sync", "raw.pread", "dio.pread", "dio.uring", "buf.pread")

_BAR = "#8a9099"  # on white and in the dark
_GREW = "#d9542b"
_PITCH = 0.118  # inches of height for one bar
_GAP = 0.55  # of a bar, between two rungs


@dataclass
class Step:
    """How a rung differs from one kernel to the next, with the function that grew most."""

    rung: str
    before: str
    after: str
    change: ExactChange
    function: str
    by: float  # growth of the function, at most that of its layer

    @property
    def text(self) -> str:
        return f"{self.change.difference:+,.0f} ({self.function})"


def _steps(result: ExactResult, op: str) -> Iterator[Step]:
    """The steps by which the rungs grew. A function that replaces another one of its layer is not
    growth."""
    for before, after in itertools.pairwise(result.names):
        for rung in exact.compare(only(result, (before, after)), table(None)).rungs:
            change = rung.differences.get(after)
            if rung.op != op or rung.rung not in RUNGS or not change or change.difference <= 0:
                continue
            layers = {part.layer: part.difference for part in change.layers}
            by, part = max(
                ((min(part.difference, layers.get(part.layer, 0.0)), part)
                 for part in change.functions),
                key=lambda one: one[0],
            )  # fmt: skip
            function = f"{part.difference:+,.0f} {part.name}"
            yield Step(rung.rung, before, after, change, function, by)


def named(result: ExactResult, op: str = "read") -> list[Step]:
    """The steps that the picture names: the largest one, and the one with the largest function."""
    steps = list(_steps(result, op))
    if not steps:
        return []
    largest = max(steps, key=lambda step: step.change.difference)
    function = max(steps, key=lambda step: step.by)
    return [largest] if function is largest else [largest, function]


def _say(result: ExactResult, op: str, steps: Sequence[Step]) -> str:
    """What the picture shows, in a sentence."""
    found = [f"{step.rung} {step.text} from {step.before} to {step.after}" for step in steps]
    text = f"Instructions per {op} of 4 KiB on {', '.join(result.names)}."
    return f"{text} The largest steps: {'; '.join(found)}." if found else text


def draw(result: ExactResult, op: str = "read") -> Figure:
    """A bar for each kernel on each rung of *RUNGS*, with its figure. The figure's label says what
    it shows."""
    kernels = result.names
    rows = {row.rung: row for row in result.rows() if row.op == op and row.rung in RUNGS}
    pitch = len(kernels) + _GAP
    most = max(
        record.instructions_per_io for row in rows.values() for record in row.records.values()
    )
    largest = named(result, op)
    steps = {(step.rung, step.after): step for step in largest}
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(5.4, len(rows) * pitch * _PITCH + 0.32), layout="constrained")
        figure.set_label(_say(result, op, largest))
        axes = figure.subplots()
        for index, rung in enumerate(name for name in RUNGS if name in rows):
            before = None
            for at, kernel in enumerate(kernels):
                record = rows[rung].records.get(kernel)
                if record:
                    figure_ = record.instructions_per_io
                    _bar(axes, index * pitch + at, figure_, before, steps.get((rung, kernel)), most)
                before = record.instructions_per_io if record else None
        _names(axes, [name for name in RUNGS if name in rows], kernels, pitch)
        axes.set_xlim(0, most * 2.1)
        axes.set_ylim(len(rows) * pitch - _GAP - 0.5, -0.6)
        axes.set_xticks([])
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.set_title(
            f"instructions per {op} of 4 KiB; red: the largest steps", loc="left", fontsize=8
        )
    return figure


def _bar(
    axes: Axes, y: float, length: float, before: float | None, step: Step | None, most: float
) -> None:
    axes.barh(y, length, height=0.84, color=_BAR)
    if step and before is not None:
        axes.barh(y, length - before, left=before, height=0.84, color=_GREW)
    words = f"{length:,.0f}"
    axes.text(length + most / 100, y, words, va="center", fontsize=6.8)
    if step:
        axes.annotate(
            step.text, (length + most / 100, y), (4.6 * len(words) + 3, 0),
            textcoords="offset points", va="center", fontsize=7.2, fontweight="bold",
        )  # fmt: skip


def _names(axes: Axes, rungs: Sequence[str], kernels: Sequence[str], pitch: float) -> None:
    """Name each bar by its kernel, and each group of bars by its rung."""
    axes.set_yticks(
        [index * pitch + at for index in range(len(rungs)) for at in range(len(kernels))],
        [name.removeprefix("debian:") for name in kernels] * len(rungs),
        fontsize=6.8,
    )
    axes.tick_params(axis="y", length=0, pad=2)
    for index, rung in enumerate(rungs):
        axes.annotate(
            rung, (0, index * pitch + (len(kernels) - 1) / 2), (-30, 0),
            textcoords="offset points", ha="right", va="center", fontsize=8, fontweight="bold",
            color=INK,
        )  # fmt: skip
