# SPDX-License-Identifier: GPL-2.0
"""A small picture of a result, for a text: a bar for each kernel on a few rungs, with the largest
steps named."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import blended_transform_factory

from iopath.compare import exact
from iopath.compare.changes import ExactChange
from iopath.results.layers import table
from iopath.results.result import ExactResult, only
from iopath.show.charts import INK, STYLE

RUNGS = ("gen.sync", "raw.pread", "dio.pread", "dio.uring", "buf.pread")

BAR = "#8a9099"  # on white and in the dark
GREW = "#d9542b"
_WIDTH = 3.4  # inches: as wide as a text on a phone, so that it is not made smaller
_PITCH = 0.15  # inches of height for one bar
_GAP = 1.5  # of a bar, above a rung's bars, for its name
_HEAD = 0.3  # inches
_TEXT = 8.25  # points: 11 pixels


@dataclass
class RungStep:
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


def _steps(result: ExactResult, op: str) -> Iterator[RungStep]:
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
            yield RungStep(rung.rung, before, after, change, function, by)


def named(result: ExactResult, op: str = "read") -> list[RungStep]:
    """The steps that the picture names: the largest one, and the one with the largest function."""
    steps = list(_steps(result, op))
    if not steps:
        return []
    largest = max(steps, key=lambda step: step.change.difference)
    function = max(steps, key=lambda step: step.by)
    return [largest] if function is largest else [largest, function]


def _say(result: ExactResult, op: str, steps: Sequence[RungStep]) -> str:
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
    height = len(rows) * pitch * _PITCH
    most = max(
        record.instructions_per_io for row in rows.values() for record in row.records.values()
    )
    largest = named(result, op)
    steps = {(step.rung, step.after): step for step in largest}
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(_WIDTH, height + _HEAD))
        figure.set_label(_say(result, op, largest))
        axes = figure.add_axes((0.12, 0, 0.88, height / (height + _HEAD)))
        for index, rung in enumerate(name for name in RUNGS if name in rows):
            before = None
            for at, kernel in enumerate(kernels):
                record = rows[rung].records.get(kernel)
                if record:
                    figure_ = record.instructions_per_io
                    _bar(axes, index * pitch + at, figure_, before, steps.get((rung, kernel)), most)
                before = record.instructions_per_io if record else None
        _names(axes, [name for name in RUNGS if name in rows], kernels, pitch, largest)
        axes.set_xlim(0, most * 1.25)
        axes.set_ylim(len(rows) * pitch - _GAP, -_GAP)
        axes.set_xticks([])
        for spine in axes.spines.values():
            spine.set_visible(False)
        figure.text(
            0.01, 1 - 0.2 / (height + _HEAD),
            f"instructions per {op} of 4 KiB; red: the largest steps", fontsize=_TEXT,
        )  # fmt: skip
    return figure


def _bar(
    axes: Axes, y: float, length: float, before: float | None, step: RungStep | None, most: float
) -> None:
    axes.barh(y, length, height=0.84, color=BAR)
    if step and before is not None:
        axes.barh(y, length - before, left=before, height=0.84, color=GREW)
    axes.text(length + most / 100, y, f"{length:,.0f}", va="center", fontsize=_TEXT)


def _names(
    axes: Axes,
    rungs: Sequence[str],
    kernels: Sequence[str],
    pitch: float,
    steps: Sequence[RungStep],
) -> None:
    """Name each bar by its kernel, and each group of bars by its rung, with its step."""
    axes.set_yticks(
        [index * pitch + at for index in range(len(rungs)) for at in range(len(kernels))],
        [name.removeprefix("debian:") for name in kernels] * len(rungs),
        fontsize=_TEXT,
    )
    axes.tick_params(axis="y", length=0, pad=2)
    said = {step.rung: step.text for step in steps}
    for index, rung in enumerate(rungs):
        for words, weight, place in ((rung, "bold", 0.01), (said.get(rung, ""), "normal", 0.24)):
            axes.figure.text(
                place, index * pitch - 0.95, words, fontsize=_TEXT, fontweight=weight, color=INK,
                va="center",
                transform=blended_transform_factory(axes.figure.transFigure, axes.transData),
            )  # fmt: skip
