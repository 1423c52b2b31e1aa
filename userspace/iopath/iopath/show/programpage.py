# SPDX-License-Identifier: GPL-2.0
"""What a program costs, as one web page that needs no network and no script."""

from collections.abc import Sequence
from dataclasses import dataclass

from iopath.compare.program import WHOLE, Comparison
from iopath.results.program import CALL, FAULT, LATER, OWN, Boot, Part, Result
from iopath.show import program
from iopath.show.page import STRONGEST, environment, source, strength

_FUNCTIONS = 30  # of a call; others are in one row
_MOST = 3  # functions in a row of differences


@dataclass
class Cell:
    """What a kernel takes each time, and how it differs from the first one."""

    figure: str
    change: str
    percent: float
    title: str

    @property
    def more(self) -> bool:
        return self.percent > 0

    @property
    def strength(self) -> int:
        return strength(self.percent) if self.change else 0


@dataclass
class Row:
    """A part by kernels, and its functions with their figures and, of two kernels, the change."""

    name: str
    cells: list[Cell | None]
    functions: list[tuple[str, list[str]]]


def render(result: Result, comparisons: Sequence[Comparison]) -> str:
    """One self-contained page. *comparisons* are of the first kernel with each other."""
    amount = {"every": True, "top": _MOST}
    views = [
        *((" to ".join(one.names), program.changed(result, one, **amount)) for one in comparisons),
        *((ran.name, program.counted(result, ran, **amount)) for ran in result.kernels),
    ]
    rows = [_whole(result), *(_row(result, *key) for key in _keys(result))]
    return (
        environment()
        .get_template("program.html")
        .render(
            title=program.command(result),
            names=[ran.name for ran in result.kernels],
            verdicts=[program.verdict(one) for one in comparisons],
            rows=rows,
            strongest=STRONGEST,
            views=views,
            facts=[
                ("device", result.device or f"a new {result.mount}"),
                *((f"release of {ran.name}", ran.release) for ran in result.kernels),
                ("QEMU", result.qemu), ("CPU", result.cpu), ("command line", result.cmdline),
            ],
            css=source("page.css"),
        )
    )  # fmt: skip


def _boots(result: Result) -> list[Boot]:
    return [ran.boots[0] for ran in result.kernels]


def _keys(result: Result) -> list[tuple[str, str]]:
    """All parts, by kind; the largest of a kind first."""
    sizes: dict[tuple[str, str], int] = {}
    for boot in _boots(result):
        for part in boot.parts:
            if part.kind in (CALL, OWN, FAULT, LATER):
                key = (part.kind, part.name)
                sizes[key] = max(sizes.get(key, 0), part.instructions)
    order = (CALL, OWN, FAULT, LATER)
    return sorted(sizes, key=lambda key: (order.index(key[0]), -sizes[key], key[1]))


def _whole(result: Result) -> Row:
    values = [float(boot.whole) for boot in _boots(result)]
    cells = [_cell(value, values[0], f"{value:,.0f}", "") for value in values]
    return Row(WHOLE, [*cells], [])


def _row(result: Result, kind: str, name: str) -> Row:
    parts = [boot.find(kind, name) for boot in _boots(result)]
    values = [_each(part, part.instructions) for part in parts]
    cells = [
        _cell(
            value, values[0], program.figure(value),
            f"{part.times:,} times, {part.instructions:,} in all" if part.times else "",
        ) if part.instructions else None
        for part, value in zip(parts, values, strict=True)
    ]  # fmt: skip
    return Row(name, cells, _functions(parts))


def _cell(value: float, first: float, figure: str, title: str) -> Cell:
    percent = 100 * (value / first - 1) if first else 0.0
    change = f"{percent:+.1f} %" if first and value != first else ""
    return Cell(figure, change, percent, title)


def _each(part: Part, instructions: int) -> float:
    return instructions / max(part.times, 1)


def _functions(parts: Sequence[Part]) -> list[tuple[str, list[str]]]:
    """The functions that execute most on any kernel, and the others in one row."""
    names = dict.fromkeys(name for part in parts for name in part.functions)
    figures = {
        name: [_each(part, part.functions.get(name, 0)) for part in parts] for name in names
    }  # fmt: skip
    order = sorted(names, key=lambda name: (-max(figures[name]), name))
    shown = [(name, figures[name]) for name in order[:_FUNCTIONS]]
    if rest := [figures[name] for name in order[_FUNCTIONS:]]:
        shown.append((f"{len(rest)} more", [sum(values) for values in zip(*rest, strict=True)]))
    return [(name, _texts(values)) for name, values in shown]


def _texts(values: Sequence[float]) -> list[str]:
    texts = [program.figure(value) if value else "-" for value in values]
    if len(values) == 2:
        texts.append(program.figure(values[1] - values[0], "+"))
    return texts
