# SPDX-License-Identifier: GPL-2.0
"""What each commit of a series costs.

Each commit is compared with its first parent, by the rule of compare, or with the nearest of the
first parents before it that was measured: others may not build or boot, or be left out. What these
changed is then found in the next one. A merge is compared with the line that it was merged into.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from iopath.base.errors import IopathError, NotMeasured, Unreachable, UsageError
from iopath.compare import compare
from iopath.compare.changes import ExactChange, ExactComparison, ExactRungChange
from iopath.kernels import gitrepo
from iopath.kernels.gitrepo import Repository
from iopath.measure.session import Session
from iopath.results.layers import Layers
from iopath.results.result import ExactResult
from iopath.rungs.runs import Settings
from iopath.show import tables, texts
from iopath.show.console import wrap

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
                change = rung.differences.get(name)
                if change and (every or _is_worth_a_row(change)):
                    yield rung, change

    @property
    def left_out(self) -> list[str]:
        """The rungs that this commit or the one before could not carry out."""
        rungs = self.comparison.rungs if self.comparison else ()
        return [rung.title for rung in rungs if not rung.differences]


def measure(
    session: Session,
    names: Sequence[str],
    settings: Settings,
    layers: Layers,
    say: Callable[[str], None],
    entries: list[Entry],
) -> None:
    """Measure the kernels *names*, commits from the oldest on, each against its parent. What is
    measured is kept, and *entries* has it if this is interrupted."""
    measured: dict[str, Entry] = {}
    for number, name in enumerate(names):
        place, revision = gitrepo.split(name.removeprefix("git:"))
        repository = session.repository(place)
        full = repository.commit(revision)
        commit, subject = full[:12], repository.subject(full)
        say(f"{number + 1} of {len(names)}: {commit} {subject}")
        try:
            ahead = number + _AHEAD
            session.build_ahead(names[ahead - 1 if number else 0 : ahead])
            found = session.measure([name], settings)
        except (UsageError, Unreachable):
            raise
        except IopathError as error:
            text = str(error).removeprefix(f"{name}: ").removeprefix(f"{commit} ")
            entries.append(Entry(commit, subject, error=text))
            continue
        before = _before(repository, full, measured)
        entry = Entry(commit, subject, result=found)
        if before and before.result:
            whole = compare.merge([(before.commit, before.result), (commit, found)])
            comparison = compare.compare(whole, layers)
            entry = Entry(commit, subject, "", before.commit, found, comparison)
        measured[full] = entry
        entries.append(entry)
    if len(measured) < 2:
        raise NotMeasured(f"fewer than two commits could be measured: {_reasons(entries)}")


def _before(repository: Repository, commit: str, measured: Mapping[str, Entry]) -> Entry | None:
    """The nearest of the first parents of a commit that was *measured*. Where it was branched off
    before all of these, it is compared with the first of them."""
    if not measured:
        return None
    first = next(iter(measured))
    for parent in repository.ancestors(commit, first):
        if parent in measured:
            return measured[parent]
    return measured[first]


def _is_worth_a_row(change: ExactChange) -> bool:
    """Whether it changes something; of unknown noise, if more than 0.00."""
    return change.verdict != "unknown" or bool(change.functions) or round(change.difference, 2) != 0


def _reasons(entries: Sequence[Entry]) -> str:
    return "; ".join(f"{entry.commit}: {entry.error}" for entry in entries if entry.error)


def _rows(entries: Sequence[Entry], *, every: bool) -> Iterator[list[str]]:
    """The table: commit, subject, rung, instructions more of the path, and of all if that is
    something else, per cent of the path, functions."""
    for entry in entries:
        head = [entry.commit, entry.subject]
        if entry.error:
            yield [*head, "", "", "", "", f"not measured: {entry.error}"]
            continue
        rows = [
            [
                rung.title,
                texts.signed(change.difference) + ("?" if change.verdict == "unknown" else ""),
                texts.signed(change.all.difference) if change.all else "",
                "" if change.percent is None else f"{change.percent:+.2f}",
                _functions(change),
            ]
            for rung, change in entry.changes(every=every)
        ]
        for row in rows:
            yield [*head, *row]
            head = ["", ""]
        if entry.left_out:
            text = f"not on this commit or on {entry.before}: {', '.join(entry.left_out)}"
            yield [*head, "", "", "", "", text]
        elif not rows and every:
            yield [*head, "", "", "", "", "the first" if not entry.comparison else ""]


def _functions(change: ExactChange) -> str:
    """The functions that changed most, and what else changed if the figure did not."""
    if change.all and change.all.functions:
        parts = change.all.functions[:_FUNCTIONS]
        return ", ".join(f"{part.name} {texts.signed(part.difference)}" for part in parts)
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


_HEAD = ("commit", "subject", "rung", "path", "all", "%", "functions")


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
    table.number_column(_HEAD[5])
    table.text_column(_HEAD[6], wraps=True)
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
        # A mail does not name a log of this machine.
        rows = [[*row[:-1], row[-1].partition(" (log: ")[0]] for row in rows]
        for _, _, rung, path, whole, percent, functions in rows:
            figure = f"{rung}: {path} ({percent} %)" if rung else ""
            if whole:
                figure = f"{rung}: {whole} in all; path {path} ({percent} %)"
            lines += [f"    {part}" for part in (figure, *wrap(functions, 68)) if part]
        yield [*lines, ""]


def _all(change: ExactChange) -> float | None:
    found = change.metrics.get("all")
    return found.difference if found else None


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
                "all": _all(change),
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
                "left_out": entry.left_out,
            }
        )
    return json.dumps({"schema": 1, "commits": found}, indent=1) + "\n"
