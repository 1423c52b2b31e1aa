# SPDX-License-Identifier: GPL-2.0
"""What features and layers cost, as a chart."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from iopath.show.charts import INK, STYLE
from iopath.studies import featuretable
from iopath.studies.features import Cost

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
_LEAST = 10.0  # instructions; less may be the search for a tag (Documentation/features.rst)
_TICKS = (-1000, -100, 0, 100, 1000, 10000, 100000)

# Inches.
_NAMES, _AXIS, _FIGURE = 1.7, 2.5, 0.6  # beside each other, the last one for each kernel
_ROW, _HEAD = 0.155, 0.3  # a feature, and the rung above its features
_TOP, _FOOT = 0.3, 0.45


@dataclass
class _Group:
    """A rung with the features that are drawn: the difference on each kernel that has it."""

    title: str
    rows: dict[str, dict[str, float]]


def chart(costs: Sequence[Cost]) -> Figure:
    """Instructions more per I/O, or of the parts of a program each time: a line for each feature
    with a point for each kernel, all on one axis that is logarithmic from 10 on, and the figures
    beside it. What runs in production is first, tracers are last."""
    kernels = list(dict.fromkeys(cost.kernel for cost in costs))
    drawn = list(_groups(costs))
    height = sum(_HEAD + _ROW * len(group.rows) for group in drawn) + _TOP + _FOOT
    width = _NAMES + _AXIS + _FIGURE * len(kernels) + 0.1
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height))
        what = f"instructions more {'per I/O' if any(cost.rung for cost in costs) else 'each time'}"
        figure.set_label(f"What features cost: {what}")
        axes = figure.add_axes(
            (_NAMES / width, _FOOT / height, _AXIS / width, 1 - (_TOP + _FOOT) / height)
        )
        axes.set_ylim(height - _TOP - _FOOT, 0)  # in inches from above
        axes.set_xscale("symlog", linthresh=_LEAST, linscale=0.4)
        lengths = [by for group in drawn for row in group.rows.values() for by in row.values()]
        low, high = min([0.0, *lengths]) * 1.5, max([100.0, *lengths]) * 1.5
        axes.set_xlim(low, high)
        ticks = [tick for tick in _TICKS if low <= tick <= high]
        axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks], fontsize=6.5)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x", color="#808080", alpha=0.3, linewidth=0.5)
        axes.set_axisbelow(True)
        axes.set_xlabel(what, fontsize=8, color=INK)
        for number, kernel in enumerate(kernels):
            _write(axes, number, -0.08, kernel.removeprefix("debian:"), bold=True)
            figure.add_artist(Line2D(
                [1 + _FIGURE * (number + 0.2) / _AXIS], [-0.08], marker="o", markersize=4,
                color=_COLOURS[number % len(_COLOURS)], transform=axes.get_yaxis_transform(),
            ))  # fmt: skip
        at = 0.0
        for group in drawn:
            axes.annotate(
                group.title, (0, at + _HEAD - 0.07), (-72 * _NAMES + 6, 0), fontsize=8.5,
                xycoords=("axes fraction", "data"), textcoords="offset points", fontweight="bold",
            )  # fmt: skip
            at += _HEAD
            for name, row in group.rows.items():
                _draw(axes, at + _ROW / 2, name, [row.get(kernel) for kernel in kernels])
                at += _ROW
    return figure


def _groups(costs: Sequence[Cost]) -> Iterator[_Group]:
    for title, _, rows in featuretable.groups(costs):
        known: dict[str, dict[str, float]] = {}
        for row in rows:
            by_kernel = {
                cost.kernel: cost.difference for cost in row if not cost.missing and not cost.error
            }
            if any(abs(by) >= _LEAST for by in by_kernel.values()):
                known[row[0].feature] = by_kernel
        if known:
            yield _Group(title, known)


def _draw(axes: Axes, y: float, name: str, lengths: Sequence[float | None]) -> None:
    """A feature: its name, its points and its figures."""
    axes.annotate(
        name, (0, y), (-72 * _NAMES + 14, 0), fontsize=7.5, va="center",
        xycoords=("axes fraction", "data"), textcoords="offset points",
    )  # fmt: skip
    known = [by for by in lengths if by is not None]
    axes.plot([min(known), max(known)], [y, y], color="#808080", linewidth=0.8, zorder=1)
    for number, by in enumerate(lengths):
        if by is not None:
            colour = _COLOURS[number % len(_COLOURS)]
            axes.plot([by], [y], marker="o", markersize=4, color=colour, linestyle="none")
        _write(axes, number, y, "-" if by is None else f"{by:+,.0f}")


def _write(axes: Axes, column: int, y: float, text: str, *, bold: bool = False) -> None:
    """A figure of a kernel, right of the axis."""
    axes.annotate(
        text, (1, y), (72 * _FIGURE * (column + 1), 0), fontsize=7.5, ha="right", va="center",
        xycoords=("axes fraction", "data"), textcoords="offset points", annotation_clip=False,
        color=INK, fontweight="bold" if bold else "normal",
    )  # fmt: skip
