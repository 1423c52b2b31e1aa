# SPDX-License-Identifier: GPL-2.0
"""Tables of what CPUs share, for the terminal."""

from collections.abc import Iterable, Sequence

from rich.console import Console, Group
from rich.text import Text

from iopath import texts
from iopath.result import ExactRecord, Result
from iopath.shared import LineAccess, SharedLine, Sharing
from iopath.sharing_changes import LineChange
from iopath.tables import Table


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
            parts.append(_lines(record.sharing))
        console.print(Group(*parts), crop=False, overflow="ignore")


def show_changes(changes: Sequence[LineChange], console: Console) -> None:
    """Print the shared lines that differ between kernels."""
    if not changes:
        return
    table = Table("rung", "kernel", "arrangement", "sharing", "written")
    for title in ("reads", "writes", "locked"):
        table.number_column(title)
    table.text_column("by")
    for change in changes:
        line = change.line
        table.row(
            change.row.title,
            f"{change.kernel}: {change.what}",
            line.arrangement,
            line.kind,
            line.where,
            *(f"{line.per_io(part):.2f}" for part in (line.reads, line.writes, line.locked)),
            _functions(line),
        )
    heading = Text("\nCache lines that CPUs share", "bold")
    console.print(Group(heading, table), crop=False, overflow="ignore")


def _arrangements(record: ExactRecord, sharing: Sharing) -> Table:
    """The instructions per I/O on each CPU, and how many lines are shared."""
    table = Table("arrangement")
    table.number_column("one CPU")
    for cpu in range(record.cpus or 0):
        table.number_column(f"CPU {cpu}")
    table.number_column("rounds left out")
    table.number_column("true sharing")
    table.number_column("false sharing")
    for part in sharing.arrangements:
        kinds = [
            sum(
                line.lines
                for line in sharing.lines
                if (line.arrangement, line.kind) == (part.name, kind)
            )
            for kind in ("true", "false")
        ]
        table.row(
            part.name,
            texts.count(record.instructions_per_io),
            *map(texts.count, part.instructions_per_io),
            f"{sum(part.rounds_left_out)} of {sum(part.rounds) + sum(part.rounds_left_out)}",
            *(f"{count} lines" for count in kinds),
        )
    return table


def _lines(sharing: Sharing) -> Table:
    """The shared lines, and what touches them."""
    table = Table("arrangement", "sharing", "written")
    for title in ("lines", "reads", "writes", "locked"):
        table.number_column(title)
    table.text_column("by")
    for line in sharing.lines:
        table.row(
            line.arrangement,
            line.kind,
            line.where,
            str(line.lines),
            *(f"{line.per_io(part):.2f}" for part in (line.reads, line.writes, line.locked)),
            _functions(line),
        )
    return table


def _functions(line: SharedLine) -> str:
    """The functions that write a line, and those that read it."""
    written = _names(line.writes)
    read = [name for name in _names(line.reads) if name not in written]
    return ", ".join(written) + (f"; read by {', '.join(read)}" if read else "")


def _names(accesses: Iterable[LineAccess]) -> list[str]:
    return list(dict.fromkeys(access.function for access in accesses))
