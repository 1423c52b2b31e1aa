# SPDX-License-Identifier: GPL-2.0
"""The figures of iopath track as a chart: rungs over kernels, with a line for each release of
Debian or branch."""

from collections.abc import Mapping, Sequence

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from iopath.base.errors import IopathError
from iopath.show.charts import INK, STYLE, short
from iopath.track.index import Index, ordered, rung_title
from iopath.track.store import Point
from iopath.track.watches import Config

# Okabe and Ito's, without those that are light.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", INK)
_ACROSS = 3
_MARKED = 60  # points up to which each is marked
_TICKS = 9  # names of kernels below a chart


def chart(index: Index, config: Config) -> Figure:
    """A small chart for each rung and block size of a watch. The scales do not begin at zero; each
    spans at least 5 % of its figures."""
    drawn = []
    for name, points in index.points().items():
        measured = [point for point in points if not point.error]
        figures = [index.figures(point) for point in measured]
        panels: dict[tuple[str, int], dict[str, list[float | None]]] = {}
        for key in ordered({key for row in figures for key in row}, config):
            rung, op, size = key
            values = [row[key][0] if key in row else None for row in figures]
            panels.setdefault((rung, size), {})[op] = values
        drawn += [(name, measured, *panel) for panel in panels.items()]
    if not drawn:
        raise IopathError("--svg: no kernel was measured, so there is nothing to draw")
    several = len({name for name, *_ in drawn}) > 1
    down = -(-len(drawn) // _ACROSS)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4 * _ACROSS, 2.3 * down + 0.6), layout="constrained")
        grid = figure.subplots(down, _ACROSS, squeeze=False).flatten()
        lines = list(dict.fromkeys(point.line for _, points, *_ in drawn for point in points))
        colours = {line: _COLOURS[at % len(_COLOURS)] for at, line in enumerate(lines)}
        for axes, (name, points, (rung, size), ops) in zip(grid, drawn, strict=False):
            _draw(axes, points, ops, colours)
            words = [name] if several else []
            axes.set_title(": ".join([*words, rung_title((rung, "none", size))]), loc="left")
        for axes in grid[len(drawn) :]:
            axes.set_axis_off()
        figure.supylabel("instructions per I/O", fontsize=9, color=INK)
        handles = [
            Line2D([], [], color=colour, linewidth=1.2, label=line)
            for line, colour in colours.items()
        ]
        if any(len(ops) > 1 for *_, ops in drawn):
            handles += [
                Line2D([], [], color=INK, linewidth=1.2, linestyle=style, label=op)
                for op, style in (("read", "-"), ("write", ":"))
            ]
        figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    return figure


def _draw(
    axes: Axes,
    points: Sequence[Point],
    ops: Mapping[str, Sequence[float | None]],
    colours: Mapping[str, str],
) -> None:
    for op, values in ops.items():
        for line, colour in colours.items():
            found = {
                at: value
                for at, (point, value) in enumerate(zip(points, values, strict=True))
                if point.line == line and value is not None
            }
            axes.plot(
                list(found), list(found.values()), color=colour, linewidth=1.2,
                linestyle=":" if op == "write" else "-",
                marker="o" if len(points) <= _MARKED else None, markersize=2,
            )  # fmt: skip
    known = [value for values in ops.values() for value in values if value is not None]
    middle = (min(known) + max(known)) / 2
    half = max((max(known) - min(known)) * 0.55, middle * 0.025)
    axes.set_ylim(middle - half, middle + half)
    step = -(-len(points) // _TICKS)
    axes.set_xticks(
        range(0, len(points), step), [_brief(point) for point in points[::step]],
        fontsize=6.5, rotation=20, ha="right", rotation_mode="anchor",
    )  # fmt: skip
    axes.yaxis.set_major_formatter(lambda value, _: short(value))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.grid(axis="y", color="#808080", alpha=0.3, linewidth=0.5)


def _brief(point: Point) -> str:
    """The upstream version of a Debian kernel, or a commit."""
    return point.title if point.commit else point.title.partition("-")[0]
