# SPDX-License-Identifier: GPL-2.0
"""Charts of a result: the ladder, stacked by layer, and the history over kernels.

Drawn without a display. Text stays text in an SVG, and the same result gives the same bytes.
"""

import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from iopath.base import files
from iopath.base.errors import UsageError
from iopath.results.result import ExactRecord, ExactResult, Row, size_text
from iopath.results.syscalls import SUMS, WHOLE
from iopath.show.palette import Palette

# The colours of text and axes, and of the background; dark mode has other ones. All other colours
# are visible on both.
INK = "#1b1b1c"
_GROUND = "#ffffff"
_DARK = {INK: "#e4e6e8", _GROUND: "#0d1117"}

_UNPROFILED = "#5b8db8"
_OP_COLOURS = {"read": "#0072b2", "write": "#d55e00", "none": INK}

STYLE = {
    "axes.edgecolor": INK,
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlesize": 10,
    "font.family": "sans-serif",
    "font.size": 8,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "svg.fonttype": "none",
    "svg.hashsalt": "iopath",
    "text.color": INK,
    "text.parse_math": False,  # a "$" in a name is a "$"
    "xtick.color": INK,
    "ytick.color": INK,
}

# Parts of a program that take less than this part of it are not drawn.
_SMALL = 0.005

_LEAST = 8.25  # points of the smallest text in an SVG: 11 pixels
_BAR = 0.17  # inches of height for one bar


def ladder(result: ExactResult) -> Figure:
    """What an I/O costs on every rung: a bar for each kernel, stacked by group of layers.

    Operations are side by side; block sizes are below each other, each with a scale of its own. Of
    a program, a bar is what a part of it executes in all.
    """
    table, palette = _drawn(result, in_all=True), Palette(result)
    kernels = result.names
    sizes = list(dict.fromkeys(row.block_size for row in table if row.block_size)) or [0]
    ops = list(dict.fromkeys(row.op for row in table if row.op != "none")) or ["none"]
    # Rungs without I/O are drawn with the first size and operation.
    cells: dict[tuple[int, str], dict[str, Row]] = {}
    groups: dict[int, dict[str, None]] = {size: {} for size in sizes}
    for row in table:
        size, op = row.block_size or sizes[0], ops[0] if row.op == "none" else row.op
        cells.setdefault((size, op), {})[row.rung] = row
        groups[size][row.rung] = None
    pitch = len(kernels) + 0.8
    heights = [len(rungs) * pitch * _BAR for rungs in groups.values()]
    with matplotlib.rc_context(STYLE):
        figure = Figure(
            figsize=(3.2 + 4.2 * len(ops), sum(heights) + 0.75 * len(sizes) + 0.9),
            layout="constrained",
        )
        grid = figure.subplots(
            len(sizes), len(ops), squeeze=False, sharex="row", sharey="row", height_ratios=heights
        )
        for (size, rungs), axes_row in zip(groups.items(), grid, strict=True):
            for op, axes in zip(ops, axes_row, strict=True):
                found = cells.get((size, op), {})
                most = max(
                    (_length(record) for other in ops
                     for row in cells.get((size, other), {}).values()
                     for record in row.records.values()),
                    default=1,
                )  # fmt: skip
                _bars(axes, list(rungs), found, kernels, palette, most)
                words = ["" if op == "none" else op, size_text(size) if size else ""]
                axes.set_title(" ".join(filter(None, words)), loc="left", fontweight="bold")
            _rung_names(axes_row[0], list(rungs), kernels)
        per = f" of {result.command}" if result.command else " per I/O"
        figure.supxlabel(f"instructions{per}", fontsize=9, color=INK)
        if palette.groups:
            handles = [
                Patch(facecolor=group.colour, edgecolor="#ffffff", label=group.name)
                for group in palette.groups
            ]
            figure.legend(
                handles=handles, loc="outside upper center", ncols=min(len(handles), 4 * len(ops))
            )
    return figure


def _drawn(result: ExactResult, *, in_all: bool) -> list[Row[ExactRecord]]:
    """The rows of a result. Those of a program are the parts that matter, as rungs: each with what
    it executes each time, or *in_all*."""
    rows = result.rows()
    if not result.command:
        return rows
    whole = max(record.path for row in rows if row.op == WHOLE for record in row.records.values())
    found = []
    for row in rows:
        calls = [record.calls for record in row.records.values() if record.calls]
        sums = any(one.kind in SUMS for one in calls)
        most = max((one.instructions[0] for one in calls), default=0)
        if most > _SMALL * whole and not (in_all and sums):
            records = {name: _in_all(one) if in_all else one for name, one in row.records.items()}
            found.append(Row(row.op, "none", 0, records))
    return found


def _in_all(record: ExactRecord) -> ExactRecord:
    """A part of a program with what it executed in all, in the first boot."""
    times = max(record.calls.times[0], 1)
    profile = record.profile and replace(
        record.profile, layers={name: n * times for name, n in record.profile.layers.items()}
    )
    return replace(record, instructions_per_io=record.calls.instructions[0], profile=profile)


def _figure(record: ExactRecord) -> str:
    """The label of a bar. Instructions of a program are a sum, which has no decimals. Those per I/O
    are a mean."""
    return f"{record.instructions_per_io:,.{0 if record.calls else 2}f}"


def _length(record: ExactRecord) -> float:
    return max(record.instructions_per_io, sum(_layers(record).values()))


def _layers(record: ExactRecord) -> dict[str, float]:
    return record.profile.layers if record.profile else {}


def _bars(
    axes: Axes,
    rungs: Sequence[str],
    found: dict[str, Row],
    kernels: Sequence[str],
    palette: Palette,
    most: float,
) -> None:
    """The bars of one operation and block size; *most* is the longest of its scale."""
    pitch = len(kernels) + 0.8
    for index, rung in enumerate(rungs):
        for at, kernel in enumerate(kernels):
            record = found[rung].records.get(kernel) if rung in found else None
            if record is None:
                continue
            y = index * pitch + at
            sums = palette.sums(_layers(record))
            if not sums:
                axes.barh(y, record.instructions_per_io, height=0.86, color=_UNPROFILED)
            left = 0.0
            for group in palette.groups:
                count = sums.get(group.name, 0)
                if not count:
                    continue
                axes.barh(
                    y, count, left=left, height=0.86,
                    color=group.colour, edgecolor="#ffffff", linewidth=0.4,
                )  # fmt: skip
                if count > 0.1 * most:
                    axes.text(
                        left + count / 2, y, f"{count:,.0f}",
                        ha="center", va="center", fontsize=6, color=group.ink,
                    )  # fmt: skip
                left += count
            axes.text(
                _length(record) + most / 100, y, _figure(record),
                va="center", fontsize=7,
            )  # fmt: skip
    axes.set_xlim(0, most * 1.2)
    axes.set_ylim(len(rungs) * pitch - 0.9, -0.9)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.tick_params(axis="y", length=0)
    axes.set_axisbelow(True)
    axes.grid(axis="x", color="#808080", alpha=0.3, linewidth=0.5)


def _rung_names(axes: Axes, rungs: Sequence[str], kernels: Sequence[str]) -> None:
    """Name each bar by its kernel, and each group of bars by its rung."""
    pitch = len(kernels) + 0.8
    axes.set_yticks(
        [index * pitch + at for index in range(len(rungs)) for at in range(len(kernels))],
        list(kernels) * len(rungs),
        fontsize=7,
    )
    second = axes.secondary_yaxis(-0.02, transform=axes.get_yaxis_transform())
    second.set_yticks(
        [index * pitch + (len(kernels) - 1) / 2 for index in range(len(rungs))],
        list(rungs),
        fontsize=8,
        fontweight="bold",
    )
    # Far enough out to leave room for the longest kernel's name.
    second.tick_params(axis="y", length=0, pad=8 + 4.4 * max(map(len, kernels)))
    second.spines["left"].set_visible(False)


def history(result: ExactResult) -> Figure:
    """What an I/O costs from kernel to kernel: a small chart for each rung and block size.

    The scales do not begin at zero; each spans at least 5 % of its figures, so that noise does
    not look like a difference.
    """
    kernels = result.names
    charts: dict[tuple[str, int], list[Row]] = {}
    for row in _drawn(result, in_all=False):
        charts.setdefault((row.rung, row.block_size), []).append(row)
    across = min(3, len(charts))
    down = -(-len(charts) // across)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4 * across, 2.1 * down + 0.5), layout="constrained")
        grid = figure.subplots(down, across, squeeze=False).flatten()
        for axes, ((rung, size), group) in zip(grid, charts.items(), strict=False):
            points = {
                row.op: {
                    at: row.records[kernel].instructions_per_io
                    for at, kernel in enumerate(kernels)
                    if kernel in row.records
                }
                for row in group
            }
            values = [value for line in points.values() for value in line.values()]
            labelled: set[tuple[int, float]] = set()
            for op, line in points.items():
                axes.plot(
                    list(line), list(line.values()),
                    marker="o", markersize=3, linewidth=1.2, color=_OP_COLOURS[op],
                )  # fmt: skip
                for at, value in line.items():
                    # Points at the same place have one label.
                    if (at, value) in labelled:
                        continue
                    labelled.add((at, value))
                    # The uppermost point is labelled above itself, those below it below.
                    top = value == max(other.get(at, 0) for other in points.values())
                    axes.annotate(
                        short(value), (at, value), (0, 4 if top else -4),
                        textcoords="offset points", ha="center", va="bottom" if top else "top",
                        fontsize=6, color=INK,
                    )  # fmt: skip
            middle = (min(values) + max(values)) / 2
            half = max((max(values) - min(values)) * 0.62, middle * 0.025)
            axes.set_ylim(middle - half * 1.15, middle + half * 1.15)
            axes.set_xlim(-0.4, len(kernels) - 0.6)
            axes.set_xticks(
                range(len(kernels)),
                kernels,
                fontsize=6.5,
                rotation=20,
                ha="right",
                rotation_mode="anchor",
            )
            axes.yaxis.set_major_formatter(lambda value, _: short(value))
            axes.yaxis.set_major_locator(MaxNLocator(4))
            axes.grid(axis="y", color="#808080", alpha=0.3, linewidth=0.5)
            axes.set_title(
                " ".join(filter(None, [rung, size_text(size) if size else ""])),
                loc="left",
                fontsize=9,
            )
        for axes in grid[len(charts) :]:
            axes.set_axis_off()
        figure.supylabel(f"instructions {result.per}", fontsize=9, color=INK)
        ops = {row.op for group in charts.values() for row in group}
        handles = [
            Patch(facecolor=colour, label=op)
            for op, colour in _OP_COLOURS.items()
            if op in ops and op != "none"
        ]
        if handles:
            figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    return figure


def short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.2f}"


def save(figure: Figure, path: Path, kind: str = "") -> None:
    """Write a chart to a file, as *kind* or its suffix says: .svg or .png. The background is white;
    an SVG is dark where the reader's screen is. Without a date, the same chart gives the same
    bytes. The figure's label is the title of an SVG."""
    drawn = io.BytesIO()
    match kind or path.suffix.lower():
        case ".svg":
            with matplotlib.rc_context(STYLE):
                metadata = {"Date": None, "Creator": None}
                if title := figure.get_label():
                    metadata["Title"] = str(title)
                figure.savefig(drawn, format="svg", facecolor=_GROUND, metadata=metadata)
            drawn = io.BytesIO(_dark(_compact(_readable(drawn.getvalue().decode()))).encode())
        case ".png":
            with matplotlib.rc_context(STYLE):
                figure.savefig(
                    drawn, format="png", dpi=150, facecolor=_GROUND, metadata={"Software": None}
                )
        case _:
            raise UsageError(f"{path}: charts are written as .svg or .png")
    files.write(path, drawn.getvalue())


def _readable(svg: str) -> str:
    """The same drawing, so large that its smallest text can be read."""
    sizes = re.findall(r"font(?:-size)?: (?:\w+ )*([\d.]+)px", svg)
    smallest = min(map(float, sizes), default=_LEAST)
    factor = max(1.0, _LEAST / smallest)
    return re.sub(
        r' (width|height)="([\d.]+)pt"',
        lambda found: f' {found[1]}="{float(found[2]) * factor:.2f}pt"',
        svg,
        count=2,
    )


def _compact(svg: str) -> str:
    """The same drawing in a third of the bytes: lengths have two decimals."""
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Only in tags: in a text "6.12.118" is a version.
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"-?\d+\.\d{3,}", _short_number, tag[0]), svg)
    # The style of many elements is given once.
    styles = Counter(re.findall(r'(?<= style=")[^"]*', svg))
    names = {
        style: f"s{at}"
        for at, style in enumerate(styles)
        if styles[style] > 1 or _in_the_dark(style)
    }
    svg = re.sub(
        r' style="([^"]*)"',
        lambda found: f' class="{names[found[1]]}"' if found[1] in names else found[0],
        svg,
    )
    rules = "".join(f".{name}{{{style}}}" for style, name in names.items())
    svg = svg.replace("</style>", f"{rules}</style>", 1)
    svg = svg.replace("rotate(-0 ", "rotate(0 ")
    svg = re.sub(r' transform="rotate\(0 [^)]*\)"', "", svg)
    svg = re.sub(r'(?<= d=")[^"]*', lambda path: " ".join(path[0].split()), svg)
    return re.sub(r"\n\s*", "\n", svg)


def _dark(svg: str) -> str:
    """The same drawing with the rules of its colours in the dark."""
    rules = re.findall(r"(\.s\d+)\{([^}]*)\}", svg)
    dark = "".join(f"{name}{{{text}}}" for name, style in rules if (text := _in_the_dark(style)))
    return svg.replace("</style>", f"@media (prefers-color-scheme: dark){{{dark}}}</style>", 1)


def _in_the_dark(style: str) -> str:
    """The declarations of a style whose colours are others in the dark. White text is on a coloured
    ground and stays white."""
    found = []
    for part in style.split(";"):
        name, _, value = (word.strip() for word in part.partition(":"))
        if value in _DARK and not ("font" in style and value == _GROUND):
            found.append(f"{name}: {_DARK[value]}")
    return "; ".join(found)


def _short_number(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
