# SPDX-License-Identifier: GPL-2.0
"""What a program costs, as one web page that needs no network and no script."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from iopath.compare.program import WHOLE, Comparison
from iopath.results.program import CALL, FAULT, LATER, OWN, Boot, Part, Result
from iopath.show import program
from iopath.show.page import STRONGEST, environment, source, strength

_FUNCTIONS = 30  # of a call; others are in one row
_MOST = 2  # functions in a row of the table
_ROWS = 12  # of the table, if not all are shown


@dataclass
class Cell:
    """A figure, and by how much it differs from the first kernel's. *share* is that of the largest
    such difference, from -1 to 1."""

    figure: str
    change: str = ""
    share: float = 0.0
    title: str = ""

    @property
    def more(self) -> bool:
        return self.share > 0

    @property
    def strength(self) -> int:
        return strength(STRONGEST * self.share) if self.share else 0


@dataclass
class Row:
    """A part by kernels, what most of it is, and its functions with their figures and, of two
    kernels, the change."""

    name: str
    times: str
    cells: list[Cell]
    most: str = ""
    functions: list[tuple[str, list[str]]] = field(default_factory=list)


def render(result: Result, comparisons: Sequence[Comparison]) -> str:
    """One self-contained page. *comparisons* are of the first kernel with each other."""
    rows = list(_rows(result))
    names = [ran.name for ran in result.kernels]
    pair = len(names) == 2
    amount = {"every": True, "top": _MOST}
    return (
        environment()
        .get_template("program.html")
        .render(
            title=program.command(result),
            names=names,
            verdicts=[program.verdict(one) for one in comparisons],
            columns=[*names, *["change in all"] * pair, *["in all"] * (len(names) == 1)],
            most=len(names) < 3,
            shown=rows[: _ROWS + 1],
            rest=rows[_ROWS + 1 :],
            rows=rows,
            views=[(ran.name, program.counted(result, ran, **amount)) for ran in result.kernels],
            facts=[
                ("device", result.device or f"a new {result.mount}"),
                *((f"release of {ran.name}", ran.release) for ran in result.kernels),
                ("QEMU", result.qemu), ("CPU", result.cpu), ("command line", result.cmdline),
            ],
            css=source("page.css"),
        )
    )  # fmt: skip


def _rows(result: Result) -> Iterator[Row]:
    """The whole, then the parts: those first that differ most, or that are largest."""
    boots = [ran.boots[0] for ran in result.kernels]
    keys = dict.fromkeys(
        (part.kind, part.name)
        for boot in boots
        for part in boot.parts
        if part.kind in (CALL, OWN, FAULT, LATER) and part.instructions
    )
    parts = {key: [boot.find(*key) for boot in boots] for key in keys}
    changes = {key: [one.instructions - found[0].instructions for one in found]
               for key, found in parts.items()}  # fmt: skip
    largest = max((abs(by) for found in changes.values() for by in found), default=0)
    yield _whole(boots)
    for key in sorted(keys, key=lambda key: (-_most(changes[key]), -_size(parts[key]), key[1])):
        yield _row(key[1], parts[key], changes[key], largest)


def _most(changes: Sequence[int]) -> int:
    return max(map(abs, changes))


def _size(parts: Sequence[Part]) -> int:
    return max(part.instructions for part in parts)


def _whole(boots: Sequence[Boot]) -> Row:
    values = [boot.whole for boot in boots]
    cells = [Cell(f"{values[0]:,}")]
    for value in values[1:]:
        change = f"{value - values[0]:+,} ({100 * (value / values[0] - 1):+.1f} %)"
        cells += [Cell(f"{value:,}"), Cell(change)] if len(values) == 2 else [
            Cell(f"{value:,}", change)]  # fmt: skip
    return Row(WHOLE, "", cells if len(values) > 1 else [Cell(""), *cells])


def _row(name: str, parts: Sequence[Part], changes: Sequence[int], largest: int) -> Row:
    first, *others = parts
    every = dict.fromkeys(f"{part.times:,}" for part in parts if part.times)
    times = " to ".join(every) if len(every) < 3 else ""
    cells = [_figure(first)]
    for part, change in zip(others, changes[1:], strict=True):
        found = _figure(part)
        percent = f" ({100 * (_each(part) / _each(first) - 1):+.1f} %)" if _each(first) else ""
        text = f"{change:+,}{percent}" if change else "same"
        share = change / largest if largest else 0.0
        if len(parts) == 2:
            cells += [found, Cell(text, "", share, found.title)]
        else:
            cells.append(Cell(found.figure, text if change else "", share, found.title))
    if not others:
        cells.append(Cell(f"{first.instructions:,}"))
    return Row(name, times, cells, _functions_of(parts), _functions(parts))


def _figure(part: Part) -> Cell:
    if not part.instructions:
        return Cell("-")
    title = f"{part.times:,} times, {part.instructions:,} in all" if part.times else ""
    return Cell(program.figure(_each(part)), title=title)


def _each(part: Part) -> float:
    return part.instructions / max(part.times, 1)


def _functions_of(parts: Sequence[Part]) -> str:
    """The functions that differ most, each time; of one kernel, those that execute most."""
    if len(parts) > 2:
        return ""
    before, after = (parts[0], parts[1]) if len(parts) == 2 else (Part("", "", 0, 0), parts[0])
    names = dict.fromkeys([*before.functions, *after.functions])
    found = {
        name: sum(
            sign * part.functions.get(name, 0) / max(part.times, 1)
            for part, sign in ((before, -1), (after, 1))
        )
        for name in names
    }
    largest = sorted(found, key=lambda name: (-abs(found[name]), name))[:_MOST]
    sign = "+" if len(parts) == 2 else ""
    return ", ".join(
        f"{name} {program.figure(found[name], sign)}" for name in largest if found[name]
    )


def _functions(parts: Sequence[Part]) -> list[tuple[str, list[str]]]:
    """The functions that execute most on any kernel, and the others in one row."""
    names = dict.fromkeys(name for part in parts for name in part.functions)
    figures = {
        name: [part.functions.get(name, 0) / max(part.times, 1) for part in parts] for name in names
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
