# SPDX-License-Identifier: GPL-2.0
"""What a program costs, on the terminal and in Markdown."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.text import Text

from iopath.compare import program as changes
from iopath.compare.program import Change, Comparison
from iopath.results.program import BESIDE, CALL, FAULT, LATER, OWN, Ran, Result
from iopath.show.console import put, put_text
from iopath.show.table import Table

_FUNCTIONS = 1  # of a row
_LARGE = 10_000
_ROWS = 12  # of a table, if not all are shown
_CALLS, _MOST = 3, 3  # of a commit, and functions of each
_COSTLIEST = "costliest function, each time"
_MOST_OF_IT = "most of it, each time"


@dataclass
class View:
    """A title, a table of text, figures and text, and lines below it. The rows are in parts."""

    title: str
    columns: Sequence[str]
    parts: list[list[Sequence[str]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def show(self, out: Console) -> None:
        """Print it."""
        first, *figures, last = self.columns
        table = Table(first)
        for name in figures:
            table.number_column(name)
        table.text_column(last, wraps=True, below=True)
        for rows in self.parts:
            table.add_section()
            for row in rows:
                table.row(*row)
        put_text(out, self.title)
        put(out, Text(), table)
        if self.notes:
            put(out, Text())
        for note in self.notes:
            put_text(out, note)

    @property
    def markdown(self) -> str:
        titles = [title.replace("\n", " ") for title in self.columns]
        lines = [f"### {self.title}", "", _line(titles)]
        lines.append(_line(["---", *["---:"] * (len(self.columns) - 2), "---"]))
        for rows in self.parts:
            lines += [_line([*row, *[""] * (len(self.columns) - len(row))]) for row in rows]
        return "\n".join([*lines, *(f"\n{note}" for note in self.notes)]) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def counted(result: Result, ran: Ran, *, every: bool, top: int | None) -> View:
    """What a kernel counted."""
    boot, most = ran.boots[0], top or _FUNCTIONS
    view = View(
        f"{ran.name}: {command(result)}: {boot.whole:,} instructions",
        ("", "times", "program,\nbefore\nthe call", "kernel,\neach time", "in all", _COSTLIEST),
    )
    calls = sorted(boot.of(CALL), key=lambda part: -(part.instructions + part.before))
    shown = calls if every or len(calls) <= _ROWS + 1 else calls[:_ROWS]
    rows: list[Sequence[str]] = [
        (
            part.name, f"{part.times:,}", figure(part.before / part.times), figure(part.each),
            f"{part.before + part.instructions:,}", _functions(part.functions, part.times, most),
        )
        for part in shown
    ]  # fmt: skip
    if rest := calls[len(shown) :]:
        times = sum(part.times for part in rest)
        instructions = sum(part.before + part.instructions for part in rest)
        rows.append((_others(rest), f"{times:,}", "", "", f"{instructions:,}"))
    last = boot.find(OWN, "its own code").instructions - sum(part.before for part in calls)
    if last:
        rows.append(("after its last call", "", "", "", f"{last:,}"))
    view.parts.append(rows)
    for kind in (FAULT, LATER):
        rows = [
            (
                part.name, f"{part.times:,}", "", figure(part.each), f"{part.instructions:,}",
                _functions(part.functions, part.times, most),
            )
            for part in boot.of(kind)
        ]  # fmt: skip
        if rows:
            view.parts.append(rows)
    view.parts.append([("in all", "", "", "", f"{boot.whole:,}")])
    beside = ", ".join(f"{part.name} {part.instructions:,}" for part in boot.of(BESIDE))
    view.notes = [f"not in it: {beside or 'nothing'}", *_noise(ran)]
    return view


def changed(result: Result, comparison: Comparison, *, every: bool, top: int | None) -> View:
    """What differs between two kernels."""
    a, b = comparison.names
    x, y = comparison.whole
    view = View(
        f"{a} to {b}: {command(result)}: {x:,} to {y:,} instructions, {_percent(x, y)}",
        ("", "times", f"on {a}", "change", "in all", _MOST_OF_IT),
    )
    found = comparison.changes
    shown = found if every or len(found) <= _ROWS + 1 else found[:_ROWS]
    rows: list[Sequence[str]] = []
    for one in shown:
        before, after = one.each
        each = (figure(before), figure(after - before, "+")) if any(one.times) else ("", "")
        rows.append((one.name, _times(one), *each, f"{one.more:+,}", _most(one, top or _FUNCTIONS)))
    if rest := found[len(shown) :]:
        more = sum(one.more for one in rest)
        rows.append((_others(rest), "", "", "", f"{more:+,}"))
    view.parts = [rows, [("in all", "", "", "", f"{comparison.more:+,}")]]
    for ran in result.kernels:
        if ran.name in comparison.names:
            view.notes += [f"{ran.name}: {text}" for text in _noise(ran)]
    return view


def verdict(comparison: Comparison) -> str:
    """The whole on two kernels, in a sentence."""
    x, y = comparison.whole
    return f"{' to '.join(comparison.names)}: {x:,} to {y:,} instructions, {_percent(x, y)}"


@dataclass(frozen=True)
class Step:
    """A row of what a commit changes: the whole, or the kernel's instructions in a system call or
    another part. *what* has the functions."""

    part: str
    before: str
    after: str
    change: str
    percent: str
    what: str


def steps(comparison: Comparison, *, every: bool) -> list[Step]:
    """The whole and the system calls that changed; or *every* part that did."""
    x, y = comparison.whole
    rows = [Step(changes.WHOLE, f"{x:,}", f"{y:,}", f"{y - x:+,}", _percent(x, y), "")]
    changed = [one for one in comparison.changes if every or one.is_of_call]
    shown = changed if every else changed[:_CALLS]
    for one in shown:
        before, after = one.each
        rows.append(
            Step(
                one.name, figure(before), figure(after), figure(after - before, "+"),
                _percent(before, after), _most(one, _MOST),
            )
        )  # fmt: skip
    if more := len(changed) - len(shown):
        rows.append(Step(f"{more} more", "", "", "", "", "(--all)"))
    return rows


def command(result: Result) -> str:
    """The command line, as a shell takes it."""
    return shlex.join([result.program, *result.command])


def _noise(ran: Ran) -> list[str]:
    """By how much boots differ, if there are several."""
    if len(ran.boots) == 1:
        return []
    varying = changes.varying(ran)
    if not varying:
        return [f"{len(ran.boots)} boots: the same count"]
    whole = changes.figures(ran)[changes.WHOLE]
    parts = ", ".join(f"{name} by {one.width:,.0f}" for name, one in varying.items())
    return [f"{len(ran.boots)} boots differ by {whole.width:,.0f}: {parts}"]


def _functions(functions: Mapping[str, int], times: int, top: int) -> str:
    some = [*functions.items()][:top]
    return ", ".join(f"{name} {_number(count / max(times, 1))}" for name, count in some)


def figure(value: float, sign: str = "") -> str:
    """A figure of two decimals, if it is not so large that they do not matter."""
    return f"{value:{sign},.2f}" if abs(value) < _LARGE else f"{value:{sign},.0f}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else figure(value)


def _times(one: Change) -> str:
    x, y = one.times
    if not x and not y:
        return ""
    return f"{x:,}" if x == y else f"{x:,} to {y:,}"


def _most(one: Change, top: int) -> str:
    some = [*one.functions.items()][:top]
    times = max(*one.times, 1)
    return ", ".join(f"{name} {figure(count / times, '+')}" for name, count in some)


def _percent(x: float, y: float) -> str:
    return f"{100 * (y / x - 1):+.1f} %" if x else "new"


def _others(rest: Sequence[object]) -> str:
    return f"{len(rest)} others (--all)"
