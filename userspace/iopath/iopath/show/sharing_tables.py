# SPDX-License-Identifier: GPL-2.0
"""Tables of what CPUs share, for the terminal."""

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich.console import Console, Group
from rich.text import Text

from iopath.compare.shared_writes import SharedWrites
from iopath.compare.sharing_changes import LineChange, structures
from iopath.results.result import ExactRecord, Result
from iopath.results.shared import LineAccess, SharedLine, Sharing
from iopath.show import texts
from iopath.show.tables import Table

_EACH_CPU = 2  # up to so many CPUs have a column each
_FEW = 2  # fields and functions of a structure that are named
_EXTREMES = ("fewest", "most")


def show(result: Result, console: Console) -> None:
    """Print what rungs that ran on several CPUs took on each, and which lines they share."""
    for record in result.results:
        if not isinstance(record, ExactRecord) or record.sharing is None:
            continue
        size = f" {record.size}" if record.size else ""
        name = f"{record.kernel.name} {record.title}"
        heading = Text.assemble("\n", (name, "bold"), f"{size} on {record.cpus} CPUs")
        parts = [heading, _arrangements(record, record.sharing)]
        if record.sharing.lines:
            parts += [Text(), _lines(("", line) for line in record.sharing.lines)]
        if few := len(record.sharing.in_some_boots or ()):
            parts.append(Text(f"\nin some boots only, by the layout of memory: {few} more"))
        console.print(Group(*parts), crop=False, overflow="ignore")


def show_changes(changes: Sequence[LineChange], console: Console) -> None:
    """Print the shared lines that differ between kernels."""
    for (row, kernel), found in itertools.groupby(changes, lambda one: (one.row, one.kernel)):
        named = [(change.what, replace(change.line, where=change.where)) for change in found]
        named.sort(key=lambda one: one[1].arrangement)
        heading = Text.assemble("\n", (row.title, "bold"), f": cache lines shared on {kernel}")
        console.print(Group(heading, _lines(named)), crop=False, overflow="ignore")


def writes(change: SharedWrites) -> tuple[str, str]:
    """How many writes to shared lines there are more or fewer per I/O, and locked ones of them."""
    sure = "?" if change.unsure else ""
    return texts.signed(change.writes) + sure, texts.signed(change.locked) + sure


def changed_lines(change: SharedWrites, top: int) -> str:
    """The structures of the lines that account for a change, *top* of those that are written most,
    with the first functions that write to them."""
    groups: dict[tuple[str, ...], list[LineChange]] = {}
    for one in sorted(change.lines, key=lambda one: -one.line.per_io(one.line.writes)):
        groups.setdefault((one.what, *sorted(structures(one.line))), []).append(one)
    found = [_changed(what, names, lines) for (what, *names), lines in groups.items()]
    more = [f"{len(found) - top} more structures"] if len(found) > top else []
    return "; ".join([*found[:top], *more])


def _changed(what: str, names: Sequence[str], lines: Sequence[LineChange]) -> str:
    """The lines of a structure that are new, gone or changed alike."""
    where = f"{', '.join(names)} ({len(lines)} lines)" if len(lines) > 1 else lines[0].where
    where = re.sub("{([^}]*)}", lambda found: f"{{{_first(found[1].split(', '))}}}", where)
    written = dict.fromkeys(name for one in lines for name in _names(one.line.writes))
    return f"{what} {where}: {_first([*written])}"


def _first(names: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = len(names) - _FEW
    return ", ".join([*names[:_FEW], f"{more} more"] if more > 0 else names)


def _arrangements(record: ExactRecord, sharing: Sharing) -> Table:
    """The instructions per I/O on each CPU, or if they are many on those with the fewest and the
    most, and how many lines are shared."""
    table = Table("arrangement")
    table.number_column("one CPU")
    every = range(record.cpus or 0)
    for title in [f"CPU {cpu}" for cpu in every] if len(every) <= _EACH_CPU else _EXTREMES:
        table.number_column(title)
    for title in ("rounds\nleft out", "true\nsharing", "false\nsharing"):
        table.number_column(title)
    for part in sharing.arrangements:
        kinds = [
            sum(
                line.lines
                for line in sharing.lines
                if (line.arrangement, line.kind) == (part.name, kind)
            )
            for kind in ("true", "false")
        ]
        called = part.called_per_io or itertools.repeat(0.0)
        figures = list(zip(part.instructions_per_io, called, strict=False))
        if len(every) > _EACH_CPU:
            figures = [min(figures, key=sum), max(figures, key=sum)]
        table.row(
            part.name,
            texts.count(record.instructions_per_io),
            *itertools.starmap(_counts, figures),
            f"{sum(part.rounds_left_out)} of {sum(part.rounds) + sum(part.rounds_left_out)}",
            *(f"{count} lines" for count in kinds),
        )
    return table


def _counts(task: float, called: float) -> str:
    """What a CPU executes: for its task and, if there is any, in interrupts from other CPUs."""
    return texts.count(task) + (f" + {texts.count(called)}" if round(called, 2) else "")


def _lines(lines: Iterable[tuple[str, SharedLine]]) -> Table:
    """Shared lines, what touches them, and a word on each."""
    table = Table("", "sharing")
    for title in ("reads", "writes", "locked"):
        table.number_column(title, joined=True)
    table.text_column("written, and by which functions", wraps=True, joined=True)
    before = ""
    for word, line in lines:
        table.row(
            line.arrangement if line.arrangement != before else "",
            f"{word} {line.kind}".lstrip(),
            *(f"{line.per_io(part):.2f}" for part in (line.reads, line.writes, line.locked)),
            described(line),
        )
        before = line.arrangement
    return table


def described(line: SharedLine) -> str:
    """What is written in a line, and the functions that touch it."""
    several = f" ({line.lines} lines)" if line.lines > 1 else ""
    return f"{line.where}{several}: {functions(line)}"


def functions(line: SharedLine) -> str:
    """The functions that write a line, and those that read it."""
    written = _names(line.writes)
    read = [name for name in _names(line.reads) if name not in written]
    return ", ".join(written) + (f"; read by {', '.join(read)}" if read else "")


def _names(accesses: Iterable[LineAccess]) -> list[str]:
    return list(dict.fromkeys(access.function for access in accesses))
