# SPDX-License-Identifier: GPL-2.0
"""Which kernel changed what a program costs, and what each commit of a series costs it."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from rich.console import Console

from iopath.base import typed
from iopath.base.errors import IopathError, did_you_mean
from iopath.compare import program as changes
from iopath.compare.program import WHOLE, Comparison
from iopath.guest.machine import Machine, Qemu
from iopath.measure import program
from iopath.measure.program import Program
from iopath.measure.session import Session
from iopath.results.layers import Layers, table
from iopath.results.program import MODE, SCHEMA, Ran
from iopath.show import program as show
from iopath.show import texts
from iopath.show.console import wrap
from iopath.studies import series


@dataclass
class Counting:
    """Runs a *program* on kernels, one after the other. *qemu* is what they ran in."""

    session: Session
    program: Program
    machine: Machine
    boots: int
    qemu: Qemu | None = None

    def measure(self, kernel: str, name: str) -> Ran:
        """What the program costs on *kernel*, under *name*."""
        (ran,), _, self.qemu = program.run(
            self.session, [kernel], self.program, self.machine, self.boots
        )
        return replace(ran, name=name)


class Search:
    """The runs of a program in one search. It follows the *metric* of that name, which is a system
    call or the whole; without one, that by which the ends differ most."""

    def __init__(
        self, measure: Callable[[str, str], Ran], say: Callable[[str], None], metric: str = ""
    ) -> None:
        self._measure = measure
        self._say = say
        self._metric = metric

    def measure(self, kernel: str, name: str) -> Ran:
        ran = self._measure(kernel, name)
        found = changes.figures(ran)
        text = f"{name}: {found[WHOLE].value:,.0f} instructions"
        if self._metric in found and self._metric != WHOLE:
            text += f"; {self._metric}: {found[self._metric].value:,.2f}"
        self._say(text)
        return ran

    def judge(self, good: Ran, bad: Ran) -> Callable[[Ran], bool]:
        """A function that tells whether a kernel is bad: whether it is nearer to the bad end.
        Raises IopathError if the ends agree."""
        metric = self._metric or changes.followed(changes.compare(good, bad, table(None)))
        before, after = changes.figures(good), changes.figures(bad)
        known = [name for name in before if name in after]
        if metric not in known:
            near = did_you_mean(metric, known) or f": it must be one of {', '.join(known)}"
            raise IopathError(f"--metric {metric}: the program has no such system call{near}")
        x, y = before[metric], after[metric]
        if x.least <= y.most and y.least <= x.most:
            boots = len(good.boots)
            noise = f", of which {boots} boots differ by more" if boots > 1 and x != y else ""
            raise IopathError(
                f"both ends take the same by {metric}: {x.value:,.2f} and {y.value:,.2f}{noise}"
            )
        self._metric = metric
        self._say(f"following: {metric}")

        def is_bad(ran: Ran) -> bool:
            found = changes.figures(ran).get(metric)
            value = found.value if found else 0.0
            return abs(value - y.value) < abs(value - x.value)

        return is_bad


# A series.


@dataclass(frozen=True)
class Entry:
    """A commit of a series. *error* says why it could not be counted; else *ran* has the counts,
    and *comparison* is with those of *before*, which the first has not."""

    commit: str
    subject: str
    error: str = ""
    ran: Ran | None = None
    before: Ran | None = None
    comparison: Comparison | None = None


def measure(
    session: Session,
    names: Sequence[str],
    count: Callable[[str, str], Ran],
    layers: Layers,
    say: Callable[[str], None],
    entries: list[Entry],
) -> None:
    """Count on the kernels *names*, commits from the oldest on, each against its parent. *entries*
    has what was counted if this is interrupted."""
    for one in series.walk(session, names, count, say):
        entry = Entry(one.name, one.subject, one.error, one.result)
        if one.result and one.before and one.before.result:
            before = one.before.result
            comparison = changes.compare(before, one.result, layers)
            entry = replace(entry, before=before, comparison=comparison)
        entries.append(entry)


_COLUMNS = {
    "commit": "commit", "subject": "subject", "part": "", "before": "before", "after": "after",
    "change": "change", "percent": "%", "what": "functions, each time",
}  # fmt: skip


def _steps(entry: Entry, *, every: bool) -> list[show.Step]:
    """The rows of a commit: none if nothing changed and not *every* one is shown."""
    comparison = entry.comparison
    if comparison is None or not (every or comparison.changes):
        return []
    return show.steps(comparison, every=every)


def _rows(entries: Sequence[Entry], *, every: bool) -> Iterator[dict[str, str]]:
    for entry in entries:
        rows = [vars(step) for step in _steps(entry, every=every)]
        if not rows and (entry.error or every):
            rows = [{"what": f"not measured: {entry.error}" if entry.error else "the first"}]
        for number, row in enumerate(rows):
            head = {} if number else {"commit": entry.commit, "subject": entry.subject}
            yield dict.fromkeys(_COLUMNS, "") | head | row


def _summary(entries: Sequence[Entry]) -> str:
    compared = [entry.comparison for entry in entries if entry.comparison]
    changed = sum(bool(one.changes) for one in compared)
    text = texts.commits(changed, len(compared), "the count")
    if failed := sum(bool(entry.error) for entry in entries):
        text += f"; {failed} could not be measured"
    return f"{text}."


def show_table(entries: Sequence[Entry], console: Console, *, every: bool) -> None:
    """Print the commits that change something, or *every* commit and part."""
    rows = list(_rows(entries, every=every))
    series.show_rows(rows, _summary(entries), _COLUMNS, console)


def markdown(entries: Sequence[Entry], what: str, command: str, *, every: bool) -> str:
    """The same as text for a mail or a cover letter; *what* was run."""
    blocks = _blocks(entries, every=every)
    return series.letter(f"Instructions of {what}", blocks, _summary(entries), command)


def _blocks(entries: Sequence[Entry], *, every: bool) -> Iterator[list[str]]:
    for entry in entries:
        lines = []
        if entry.error:
            # A mail does not name a log of this machine.
            lines = wrap(f"not measured: {entry.error.partition(' (log: ')[0]}", 68)
        for step in _steps(entry, every=every):
            figures = f"{step.before} to {step.after}, {step.change} ({step.percent})"
            lines.append(f"{step.part}: {figures}" if step.before else step.part)
            lines += [f"    {line}" for line in wrap(step.what, 64) if step.before]
        if lines:
            yield [f"{entry.commit} {entry.subject}", *(f"    {line}" for line in lines), ""]


def dump(entries: Sequence[Entry], command: Sequence[str]) -> str:
    """The same as JSON (Documentation/run.rst)."""
    commits = [
        {
            "commit": entry.commit,
            "subject": entry.subject,
            "error": entry.error or None,
            "before": entry.before.name if entry.before else None,
            "whole": entry.ran.boots[0].whole if entry.ran else None,
            "changes": [
                typed.unstructure(one) for one in entry.comparison.changes
            ] if entry.comparison else [],
        }
        for entry in entries
    ]  # fmt: skip
    whole = {"schema": SCHEMA, "mode": MODE, "command": [*command], "commits": commits}
    return json.dumps(whole, indent=1) + "\n"


def judged(entries: Sequence[Entry], fail_above: float) -> tuple[list[str], list[str]]:
    """What grew by more than *fail_above* per cent by a commit, and what cannot be judged."""
    grown: list[str] = []
    unknown = [f"{entry.commit}: not measured" for entry in entries if entry.error]
    for entry in entries:
        if entry.before and entry.ran:
            more, untold = changes.regressions(entry.before, entry.ran, fail_above)
            grown += more
            unknown += untold
    return grown, unknown
