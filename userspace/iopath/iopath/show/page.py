# SPDX-License-Identifier: GPL-2.0
"""A result, and its comparison, as one web page.

The page needs no network and no server. The verdicts, the heat map of rungs by kernels and the
ladder are in the page itself. Its script sorts and filters, and draws tables of functions and flame
graphs from numbers that the page carries.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from iopath.compare import exact, labels
from iopath.compare.changes import Change, Comparison, ExactChange
from iopath.results.kernelinfo import matters
from iopath.results.layers import Layers, table
from iopath.results.result import ExactResult, MeasuredKernel, OfRung, Result, Row, only, size_text
from iopath.results.syscalls import IO_CALLS, START_EXIT, SUMS, WHOLE
from iopath.show import facts, pagedata, stream, texts
from iopath.show.palette import Palette, split

_TEMPLATES = Path(__file__).parent / "templates"
_FEW = 3  # functions below the verdict


def render(result: Result, comparison: Comparison | None, layers: Layers | None = None) -> str:
    """One self-contained page. *layers* is the table that the functions of the result are sorted
    by: without it, iopath's own."""
    layers = layers or table(None)
    palette = Palette(result)
    steps = _steps(result, comparison, layers)
    return (
        environment()
        .get_template("page.html")
        .render(
            title=", ".join(result.names),
            heading=result.heading,
            subject=result.subject,
            of_program=_is_of_program(result),
            profiled_by=result.profiled_by,
            names=result.names,
            groups=palette.groups,
            views=_views(result, steps, palette),
            heat=_heat(result, steps),
            strongest=STRONGEST,
            size=_size(result),
            facts=facts.facts(result),
            kernels=facts.of_kernels(result.kernels) + _builds(result.kernels),
            options=_options(result.kernels),
            labels=comparison.labels if comparison else [],
            unknown=any(step.has_unknown for step in steps.values()),
            streams=stream.streams(result) if isinstance(result, ExactResult) else [],
            data=pagedata.data(result, steps, layers, palette),
            css=source("page.css"),
            script=source("page.js"),
        )
    )


def _is_of_program(result: Result) -> bool:
    return isinstance(result, ExactResult) and result.device is not None


def _steps(result: Result, comparison: Comparison | None, layers: Layers) -> dict[str, Comparison]:
    """How each kernel differs from the one before it, by its name. Without a comparison there are
    no verdicts, and times have none either."""
    if not (comparison and isinstance(result, ExactResult)):
        return {}
    if len(result.names) == 2:
        return {result.names[1]: comparison}
    return {
        after: exact.compare(only(result, (before, after)), layers)
        for before, after in itertools.pairwise(result.names)
    }


def link(row: OfRung, kernel: str, before: str | None) -> str:
    """The address of a rung's functions, below the page's own."""
    words = {"rung": "/".join(map(str, row.key)), "kernel": kernel, "against": before or ""}
    return "#" + "&".join(f"{name}={quote(word, safe='/:')}" for name, word in words.items())


# The heat map: rungs by kernels.

STRONGEST = 25  # per cent of change, from which on the colour is the strongest
_COLOUR = (6, 40)  # the weakest and the strongest, in per cent


def strength(percent: float) -> int:
    """Of the colour of a change, in per cent."""
    weakest, strongest = _COLOUR
    part = math.sqrt(min(1.0, abs(percent) / STRONGEST))
    return round(weakest + (strongest - weakest) * part)


@dataclass
class HeatCell:
    """A kernel's figure on a rung, and how it differs from the kernel's before it."""

    kernel: str
    link: str
    cell: texts.Cell | None
    figure: str
    change: str  # as a text
    mover: str  # the layer that changed most, or of a part of a program the function
    percent: float  # which its colour follows

    @property
    def title(self) -> str:
        """What the cell does not have room for."""
        if not self.cell:
            return ""
        words = [self.cell.text, self.mover, f"spread {texts.count(self.cell.spread)}"]
        return "; ".join(filter(None, words))

    @property
    def strength(self) -> int:
        """Of its colour, in per cent; 0 without one."""
        change = self.cell.change if self.cell else None
        if change is None or change.verdict == "same" or not change.difference:
            return 0
        return strength(self.percent)


@dataclass
class HeatRow:
    row: Row
    title: str
    times: str  # how often a part of a program begins
    cells: list[HeatCell]

    @property
    def changes(self) -> list[Change]:
        return [found.cell.change for found in self.cells if found.cell and found.cell.change]

    @property
    def is_same(self) -> bool:
        return bool(self.changes) and not any(change.is_news for change in self.changes)

    @property
    def rank(self) -> tuple[bool, tuple[float, float]]:
        """The lower it is, the more its largest change matters. Rungs without I/O come last."""
        most = min((change.rank for change in self.changes), default=(3, 0.0))
        return not self.row.does_io, most


def _heat(result: Result, steps: Mapping[str, Comparison]) -> list[HeatRow]:
    """The rows of the heat map, those that changed most first. Times have none."""
    if not isinstance(result, ExactResult):
        return []
    made = []
    size = _size(result)
    largest = _largest(steps)
    for row in result.rows():
        cells = []
        for before, kernel in itertools.pairwise([None, *result.names]):
            found = texts.cell(row, kernel, before or kernel, steps.get(kernel))
            if found and before is None:
                found.change = None
            change = found.change if found else None
            text, percent, mover = "", 0.0, ""
            if found and change:
                text = _pair_text(found, change) if len(result.names) == 2 else texts.share(change)
                percent = change.percent or 0.0
                mover = texts.top_mover(change) if change.is_news else ""
            if isinstance(change, ExactChange) and change.calls:
                text = texts.in_all(change) if change.is_news else "same"
                percent = STRONGEST * change.calls.more / largest
            figure = ""
            if found:
                write = texts.large if not row.rung else texts.count
                figure = write(found.instructions)
            address = link(row, kernel, before)
            cells.append(HeatCell(kernel, address, found, figure, text, mover, percent))
        title = row.title.removesuffix(f" {size}") if size else row.title
        made.append(HeatRow(row, title, _times(row), cells))
    return sorted(made, key=lambda row: row.rank) if len(result.names) > 1 else made


def _largest(steps: Mapping[str, Comparison]) -> float:
    """By how much a part of a program changes most."""
    changes = [
        change.calls.more
        for step in steps.values()
        for rung in step.rungs
        for change in rung.differences.values()
        if isinstance(change, ExactChange) and change.calls and change.calls.kind not in SUMS
    ]
    return max(map(abs, changes), default=0.0) or 1.0


def _times(row: Row) -> str:
    """How often a part of a program begins, in words; nothing of a rung. Of one kernel, also its
    instructions in all."""
    calls = [one.calls for one in row.records.values() if one.calls]
    every = dict.fromkeys(f"{one.times[0]:,}" for one in calls if one.times[0])
    if not every or row.op in (WHOLE, START_EXIT) or len(every) > 2:
        return ""
    what = "I/Os" if row.op == IO_CALLS else "times"
    text = "once" if [*every] == ["1"] else f"{' to '.join(every)} {what}"
    if len(calls) == 1:
        text += f", {calls[0].instructions[0] + calls[0].before[0]:,} in all"
    return text


def _pair_text(cell: texts.Cell, change: Change) -> str:
    """The only change of a row."""
    return texts.brief(change) if change.differs else cell.text


def _size(result: Result) -> str:
    """The block size, if there is only one."""
    sizes = {record.block_size for record in result.results if record.block_size}
    return size_text(sizes.pop()) if len(sizes) == 1 else ""


# What is shown of one step.


@dataclass
class KernelView:
    """What the page shows of one kernel against the one before it, or of a single kernel."""

    kernel: str
    before: str | None
    verdict: str
    functions: str  # that changed most on the rung that the verdict names
    ladder: list["Panel"]


@singledispatch
def _views(result: Result, steps: Mapping[str, Comparison], palette: Palette) -> list[KernelView]:
    """A view of each step. Times have none."""
    return []


@_views.register
def _(result: ExactResult, steps: Mapping[str, Comparison], palette: Palette) -> list[KernelView]:
    pairs = list(itertools.pairwise(result.names)) or [(None, result.names[0])]
    return [_view(result, steps.get(name), palette, before, name) for before, name in pairs]


def _view(
    result: ExactResult, step: Comparison | None, palette: Palette, before: str | None, name: str
) -> KernelView:
    ranked = step.ranked(name) if step else []
    change = ranked[0].differences[name] if ranked and ranked[0].does_io else None
    functions = ""
    if isinstance(change, ExactChange) and change.verdict in ("longer", "shorter"):
        named = "; ".join(
            f"{part.name} {part.difference:+,.0f}{f' ({part.note})' if part.note else ''}"
            for part in change.functions[:_FEW]
        )
        functions = f"Functions of {ranked[0].title}: {named}." if named else ""
    return KernelView(
        name,
        before,
        texts.verdict(step, name) if step else "",
        functions,
        [] if result.command else _ladder(result, palette, before, name),
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


def _ladder(result: ExactResult, palette: Palette, before: str | None, name: str) -> list[Panel]:
    """Block sizes have scales of their own; so have rungs that are much longer than the others."""
    kernels = [before, name] if before else [name]
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
                link=link(row, kernels[-1], kernels[0] if len(kernels) > 1 else None),
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
    words = [
        size_text(size) if size else "",
        "rungs that take much more, with a scale of their own" * long,
    ]
    return Panel(", ".join(filter(None, words)), drawn, scale, max(changes, default=0) or 1)


# What was measured.


def _builds(kernels: list[MeasuredKernel]) -> list[tuple[str, list[str]]]:
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


def _options(kernels: list[MeasuredKernel]) -> list[tuple[str, list[str]]]:
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
    made.filters["unbroken"] = lambda text: text.replace(" %", "\u00a0%")
    return made


def source(name: str) -> Markup:
    """A style sheet or a script, to be included unchanged."""
    return Markup((_TEMPLATES / name).read_text())
