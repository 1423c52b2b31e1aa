# SPDX-License-Identifier: GPL-2.0
"""What each commit of a series costs.

Each commit is compared with the nearest one before it that could be measured, by the rule of
compare. A commit that does not build or boot is said and passed over; what it changed is then found
in the next one.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from iopath import compare, tables, texts
from iopath.comparison import ExactChange, ExactComparison, ExactRungChange
from iopath.errors import IopathError, UsageError
from iopath.kernelbuild import GitKernel
from iopath.layers import Layers
from iopath.measure import Session
from iopath.plan import Settings
from iopath.result import ExactResult

_FUNCTIONS = 3  # named in a row
_AHEAD = 8  # commits that workers build at a time


@dataclass(frozen=True)
class Entry:
    """A commit of a series. *error* says why it could not be measured, else *comparison* is with
    the commit *before*; the first has none."""

    commit: str
    subject: str
    error: str = ""
    before: str = ""
    result: ExactResult | None = None
    comparison: ExactComparison | None = None

    def changes(self, *, every: bool = False) -> Iterator[tuple[ExactRungChange, ExactChange]]:
        """The rungs that differ, those that matter most first; or *every* rung in its order."""
        if self.comparison:
            (name,) = self.comparison.others
            ranked = self.comparison.rungs if every else self.comparison.ranked(name)
            for rung in ranked:
                change = rung.differences[name]
                if every or _is_worth_a_row(change):
                    yield rung, change


def measure(
    session: Session,
    names: Sequence[str],
    settings: Settings,
    layers: Layers,
    say: Callable[[str], None],
) -> list[Entry]:
    """Measure the kernels *names*, commits from the oldest on, each against the one before."""
    entries: list[Entry] = []
    last: Entry | None = None
    for number, name in enumerate(names):
        kernel = session.find(name)
        if not isinstance(kernel, GitKernel):
            raise UsageError(f"{name}: series takes commits: git:PATH@A..B")
        commit, subject = kernel.short, kernel.repository.subject(kernel.commit)
        say(f"{number + 1} of {len(names)}: {commit} {subject}")
        try:
            ahead = number + _AHEAD
            session.build_ahead(names[ahead - 1 if number else 0 : ahead])
            found = session.measure([name], settings)
        except UsageError:
            raise
        except IopathError as error:
            text = str(error).removeprefix(f"{name}: ").removeprefix(f"{commit} ")
            entries.append(Entry(commit, subject, error=text))
            continue
        if last and last.result:
            whole = compare.merge([(last.commit, last.result), (commit, found)])
            comparison = compare.compare(whole, layers)
            last = Entry(commit, subject, "", last.commit, found, comparison)
        else:
            last = Entry(commit, subject, result=found)
        entries.append(last)
    if sum(entry.result is not None for entry in entries) < 2:
        raise IopathError(f"fewer than two commits could be measured: {_reasons(entries)}")
    return entries


def _is_worth_a_row(change: ExactChange) -> bool:
    """Whether it changes something; of unknown noise, if more than 0.00."""
    return change.verdict != "unknown" or bool(change.functions) or round(change.difference, 2) != 0


def _reasons(entries: Sequence[Entry]) -> str:
    return "; ".join(f"{entry.commit}: {entry.error}" for entry in entries if entry.error)


def _rows(entries: Sequence[Entry], *, every: bool) -> Iterator[list[str]]:
    """The table: commit, subject, rung, instructions and per cent more, functions."""
    for entry in entries:
        head = [entry.commit, entry.subject]
        if entry.error:
            yield [*head, "", "", "", f"not measured: {entry.error}"]
            continue
        rows = [
            [
                rung.title,
                texts.signed(change.difference) + ("?" if change.verdict == "unknown" else ""),
                "" if change.percent is None else f"{change.percent:+.2f}",
                _functions(change),
            ]
            for rung, change in entry.changes(every=every)
        ]
        for row in rows:
            yield [*head, *row]
            head = ["", ""]
        if not rows and every:
            yield [*head, "", "", "", "the first" if not entry.comparison else ""]


def _functions(change: ExactChange) -> str:
    """The functions that changed most, and what else changed if the figure did not."""
    if not change.functions:
        return texts.top_mover(change) if change.is_news else ""
    return ", ".join(
        f"{part.name} {texts.signed(part.difference)}{f' ({part.note})' if part.note else ''}"
        for part in change.functions[:_FUNCTIONS]
    )


def _summary(entries: Sequence[Entry]) -> str:
    """How many commits changed something."""
    compared = [entry for entry in entries if entry.comparison]
    changed = sum(any(True for _ in entry.changes()) for entry in compared)
    failed = sum(bool(entry.error) for entry in entries)
    text = f"{changed} of {len(compared)} commits change the path"
    if failed:
        text += f"; {failed} could not be measured"
    if any(entry.comparison.has_unknown for entry in compared if entry.comparison):
        text += f". {texts.UNKNOWN}"
    return text


_HEAD = ("commit", "subject", "rung", "instructions", "%", "functions")


def show(entries: Sequence[Entry], console: Console, *, every: bool) -> None:
    """Print the table: the commits that change something, or *every* commit and rung."""
    console.print(f"{_summary(entries)}.", markup=False, highlight=False)
    rows = list(_rows(entries, every=every))
    if not rows:
        return
    table = tables.Table(_HEAD[0])
    table.text_column(_HEAD[1], wraps=True)
    table.text_column(_HEAD[2])
    table.number_column(_HEAD[3])
    table.number_column(_HEAD[4])
    table.text_column(_HEAD[5], wraps=True)
    for row in rows:
        table.row(*row)
    console.print(table)


def markdown(entries: Sequence[Entry], command: str, *, every: bool) -> str:
    """The same as text for a mail or a cover letter: a block for each commit, and the command that
    repeats it."""
    lines = ["Instructions per I/O, counted exactly by iopath:", ""]
    for found in _blocks(entries, every=every):
        lines += found
    lines += [f"{_summary(entries)}.", "", "Repeat it with:", "", f"    {command}", ""]
    return "\n".join(lines)


def _blocks(entries: Sequence[Entry], *, every: bool) -> Iterator[list[str]]:
    """The lines of each commit that has any."""
    for entry in entries:
        rows = list(_rows([entry], every=every))
        if not rows:
            continue
        lines = [f"{entry.commit} {entry.subject}"]
        # The name of a log on this machine is of no use in a mail.
        rows = [[*row[:-1], row[-1].partition(" (log: ")[0]] for row in rows]
        for _, _, rung, instructions, percent, functions in rows:
            figure = f"{rung}: {instructions} ({percent} %)" if rung else ""
            lines += [f"    {part}" for part in (figure, *texts.wrap(functions, 68)) if part]
        yield [*lines, ""]


def dump(entries: Sequence[Entry]) -> str:
    """The same as JSON (Documentation/git.rst)."""
    found: list[dict[str, Any]] = []
    for entry in entries:
        rows = [
            {
                "rung": rung.rung,
                "op": rung.op,
                "block_size": rung.block_size,
                "before": rung.figure(entry.before),
                "after": rung.figure(entry.commit),
                "difference": change.difference,
                "percent": change.percent,
                "verdict": change.verdict,
                "functions": [
                    {"name": part.name, "difference": part.difference, "note": part.note}
                    for part in change.functions
                ],
            }
            for rung, change in entry.changes(every=True)
        ]
        found.append(
            {
                "commit": entry.commit,
                "subject": entry.subject,
                "error": entry.error or None,
                "before": entry.before or None,
                "rungs": rows,
            }
        )
    return json.dumps({"schema": 1, "commits": found}, indent=1) + "\n"
