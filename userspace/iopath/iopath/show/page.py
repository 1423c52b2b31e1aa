# SPDX-License-Identifier: GPL-2.0
"""A result, and its comparison, as one web page.

The page needs no network and no server. The verdict, the summary, the ladder and the history are in
the page itself. Its script sorts and filters, and draws tables of functions and flame graphs from
numbers that the page carries.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from iopath.compare import labels
from iopath.compare.changes import Comparison, ExactChange
from iopath.results.kernelinfo import matters
from iopath.results.layers import Layers
from iopath.results.result import ExactResult, Kernel, OfRung, Result, Row, size_text
from iopath.show import facts, pagedata, texts
from iopath.show.palette import Palette, split

_TEMPLATES = Path(__file__).parent / "templates"
_FEW = 3  # functions below the verdict


def render(result: Result, comparison: Comparison | None, layers: Layers | None = None) -> str:
    """One self-contained page. *layers* is the table that the functions of the result are sorted
    by: without it, iopath's own."""
    base = comparison.base if comparison else result.names[0]
    palette = Palette(result)
    return (
        environment()
        .get_template("page.html")
        .render(
            heading=result.heading,
            profiled_by=result.profiled_by,
            names=result.names,
            base=base,
            groups=palette.groups,
            views=_views(result, comparison, palette),
            history=_history(result),
            facts=facts.facts(result),
            kernels=facts.of_kernels(result.kernels) + _builds(result.kernels),
            options=_options(result.kernels),
            labels=comparison.labels if comparison else [],
            unknown=comparison.has_unknown if comparison else False,
            data=pagedata.data(result, comparison, layers or Layers(), palette),
            css=source("page.css"),
            script=source("page.js"),
        )
    )


@dataclass
class SummaryRow:
    """A rung in the summary of one kernel."""

    row: Row
    link: str  # to the functions that account for it
    before: float | None
    cell: texts.Cell | None
    left: float = 0.0  # where its bar begins, and how wide it is, in per cent
    width: float = 0.0
    mover: str = ""  # the layer that changed most

    @property
    def percent(self) -> float:
        change = self.cell.change if self.cell else None
        return (change.percent or 0.0) if change else 0.0

    @property
    def is_same(self) -> bool:
        change = self.cell.change if self.cell else None
        return change is not None and not change.is_news


@dataclass
class View:
    """What the page shows of one kernel against the base; of the base itself, if it is alone."""

    kernel: str
    verdict: str
    functions: str  # that changed most on the rung that the verdict names
    rows: list[SummaryRow]
    ladder: list["Panel"]


def link(row: OfRung, kernel: str, base: str) -> str:
    """The address of a rung's functions, below the page's own."""
    words = {"rung": "/".join(map(str, row.key)), "kernel": kernel}
    if kernel != base:
        words["against"] = base
    return "#" + "&".join(f"{name}={quote(word, safe='/:')}" for name, word in words.items())


@singledispatch
def _views(result: Result, comparison: Comparison | None, palette: Palette) -> list[View]:
    """A view for each kernel that is compared. Times have none."""
    return []


@_views.register
def _(result: ExactResult, comparison: Comparison | None, palette: Palette) -> list[View]:
    base = comparison.base if comparison else result.names[0]
    others = [name for name in result.names if name != base]
    return [_view(result, comparison, palette, base, name) for name in others or [base]]


def _view(
    result: ExactResult, comparison: Comparison | None, palette: Palette, base: str, name: str
) -> View:
    rows = []
    for row in result.rows():
        first = row.records.get(base)
        made = SummaryRow(
            row,
            link(row, name, base),
            first.instructions_per_io if first else None,
            texts.cell(row, name, base, comparison),
        )
        change = made.cell.change if made.cell else None
        made.mover = texts.top_mover(change) if change and change.is_news else ""
        rows.append(made)
    most = max((abs(row.percent) for row in rows), default=0) or 1
    for made in rows:
        made.width = 50 * abs(made.percent) / most
        made.left = 50 - made.width * (made.percent < 0)
    ranked = comparison.ranked(name) if comparison else []
    place = {rung.key: at for at, rung in enumerate(ranked)}
    change = ranked[0].differences[name] if ranked else None
    functions = ""
    if isinstance(change, ExactChange) and change.verdict in ("longer", "shorter"):
        functions = "; ".join(
            f"{part.name} {part.difference:+,.0f}{f' ({part.note})' if part.note else ''}"
            for part in change.functions[:_FEW]
        )
    return View(
        name,
        texts.verdict(comparison, name) if comparison and name != base else "",
        functions,
        sorted(rows, key=lambda row: place.get(row.row.key, len(place))),
        _ladder(result, palette, base, name),
    )


# The ladder: what an I/O costs on each rung, by group of layers.


@dataclass
class Bar:
    """A stacked bar: the colour's number, the name and the length of each part."""

    parts: list[tuple[int, str, float]]
    total: float
    scale: float  # what 100 per cent are

    def width(self, count: float) -> str:
        return f"{100 * count / self.scale:.2f}"

    @property
    def text(self) -> str:
        return f"{texts.count(self.total)}: " + ", ".join(
            f"{name} {count:,.0f}" for _, name, count in self.parts
        )


@dataclass
class Rungs:
    """A rung of the ladder: its bars, and by how much each group differs."""

    title: str
    link: str
    bars: list[Bar]
    fewer: list[tuple[int, str, float]]
    more: list[tuple[int, str, float]]
    change: float | None

    @property
    def text(self) -> str:
        parts = sorted([*self.fewer, *self.more], key=lambda part: -abs(part[2]))
        found = ", ".join(f"{name} {count:+,.0f}" for _, name, count in parts)
        return f"{texts.signed(self.change or 0)}: {found}"


@dataclass
class Panel:
    """Rungs that share a scale."""

    title: str
    rungs: list[Rungs]
    scale: float
    change_scale: float


def _ladder(result: ExactResult, palette: Palette, base: str, name: str) -> list[Panel]:
    """Block sizes have scales of their own; so have rungs that are much longer than the others."""
    kernels = [base, name] if name != base else [base]
    panels: dict[tuple[int, bool], list[Row]] = {}
    rows = result.rows()
    first = next((row.block_size for row in rows if row.block_size), 0)
    for size in dict.fromkeys(row.block_size or first for row in rows):
        among = [row for row in rows if (row.block_size or first) == size]
        longest = {
            row.key: max(record.instructions_per_io for record in row.records.values())
            for row in among
        }
        limit = split(longest.values())
        for row in among:
            panels.setdefault((size, longest[row.key] >= limit), []).append(row)
    return [_panel(palette, kernels, found, size, long) for (size, long), found in panels.items()]


def _panel(
    palette: Palette, kernels: Sequence[str], rows: Sequence[Row], size: int, long: bool
) -> Panel:
    numbers = {name: number for number, name in enumerate(palette.names())}
    drawn = []
    for row in rows:
        records = [row.records.get(name) for name in kernels]
        sums = [
            palette.sums(record.profile.layers) if record and record.profile else {}
            for record in records
        ]
        bars = []
        for record, parts in zip(records, sums, strict=True):
            total = record.instructions_per_io if record else 0.0
            found = parts or ({"all": total} if record else {})
            named = [(numbers.get(part, 0), part, count) for part, count in found.items()]
            bars.append(Bar(named, total, 1))
        change = None
        differences: list[tuple[int, str, float]] = []
        if len(records) == 2 and records[0] and records[1]:
            change = bars[1].total - bars[0].total
            names = dict.fromkeys([*sums[0], *sums[1]])
            differences = [
                (numbers[name], name, sums[1].get(name, 0) - sums[0].get(name, 0)) for name in names
            ] or [(0, "all", change)]
        drawn.append(
            Rungs(
                title=f"{row.rung} {row.op}" if row.op != "none" else row.rung,
                link=link(row, kernels[-1], kernels[0]),
                bars=bars,
                fewer=[part for part in differences if part[2] <= -0.5],
                more=[part for part in differences if part[2] >= 0.5],
                change=change,
            )
        )
    scale = max((bar.total for rung in drawn for bar in rung.bars), default=0) or 1
    for rung in drawn:
        for bar in rung.bars:
            bar.scale = scale
    changes = [
        abs(sum(part[2] for part in side)) for rung in drawn for side in (rung.fewer, rung.more)
    ]
    words = [size_text(size) if size else "", "longer rungs, with a scale of their own" * long]
    return Panel(", ".join(filter(None, words)), drawn, scale, max(changes, default=0) or 1)


# The history: figures of several kernels in per cent of the first one.


@dataclass
class Line:
    """A rung's figures in per cent; None for a kernel that does not have it."""

    title: str
    percents: list[float | None]
    points: list[tuple[float, float]]


@dataclass
class History:
    low: int
    high: int
    middle: float  # where 100 per cent are, from the top
    lines: list[Line]


_WIDTH, _HEIGHT = 120, 36  # of a line's chart


def _history(result: Result) -> History | None:
    """The figures of three or more kernels. All rungs have the same axis, which reaches at least
    from 80 to 120 per cent, so that small changes look small."""
    if not isinstance(result, ExactResult) or len(result.names) < 3:
        return None
    lines = []
    for row in result.rows():
        first = row.records.get(result.names[0])
        if first and first.instructions_per_io:
            records = [row.records.get(name) for name in result.names]
            percents = [
                100 * record.instructions_per_io / first.instructions_per_io if record else None
                for record in records
            ]
            lines.append(Line(row.title, percents, []))
    every = [percent for line in lines for percent in line.percents if percent is not None]
    low = min(80, *(math.floor(percent / 10) * 10 for percent in every))
    high = max(120, *(math.ceil(percent / 10) * 10 for percent in every))

    def height(percent: float) -> float:
        return round(3 + (_HEIGHT - 6) * (high - percent) / (high - low), 1)

    step = (_WIDTH - 8) / (len(result.names) - 1)
    for line in lines:
        line.points = [
            (round(4 + at * step, 1), height(percent))
            for at, percent in enumerate(line.percents)
            if percent is not None
        ]
    return History(low, high, height(100), lines)


# What was measured.


def _builds(kernels: list[Kernel]) -> list[tuple[str, list[str]]]:
    """The digests of kernels and modules, and the shims. Kernels of a machine have none."""
    if kernels[0].digests is None:
        return []
    shims = [
        "; ".join(
            f"{name}: {facts.get('iopath_shims') or 'none'}"
            for name, facts in kernel.modules.items()
        )
        for kernel in kernels
    ]
    return [
        ("compatibility shims", shims),
        *(
            (f"SHA-256 of {name}", [(k.digests or {}).get(name, "")[:12] for k in kernels])
            for name in kernels[0].digests
        ),
    ]


def _options(kernels: list[Kernel]) -> list[tuple[str, list[str]]]:
    """The options that matter or differ, with their value in each kernel."""
    names = {name for kernel in kernels for name in kernel.config if matters(name)}
    names |= labels.options(kernels).keys()
    return [(name, [kernel.config.get(name, "") for kernel in kernels]) for name in sorted(names)]


def environment() -> Environment:
    """What templates are rendered in."""
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    made.filters["count"] = texts.count
    return made


def source(name: str) -> Markup:
    """A style sheet or a script, to be included unchanged."""
    return Markup((_TEMPLATES / name).read_text())
