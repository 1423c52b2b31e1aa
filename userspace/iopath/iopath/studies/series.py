# SPDX-License-Identifier: GPL-2.0
"""What each commit of a series costs.

Each commit is compared with its first parent, by the rule of compare, or with the nearest of the
first parents before it that was measured: others may not build or boot, or be left out. What these
changed is then found in the next one. A merge is compared with the line that it was merged into.
"""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rich.console import Console

from iopath.base.errors import IopathError, NotMeasured, Unreachable, UsageError
from iopath.compare import compare, limits, shared_writes
from iopath.compare.changes import ExactChange, ExactComparison, ExactRungChange
from iopath.compare.shared_writes import SharedWrites
from iopath.kernels import kbuild
from iopath.kernels.gitrepo import Repository
from iopath.measure.session import Session
from iopath.results import result
from iopath.results.layers import Layers
from iopath.results.result import ExactResult, Key
from iopath.rungs.runs import Settings
from iopath.show import sharing_tables, tables, texts
from iopath.show.console import put, put_text, wrap
from iopath.show.reports import ProfileReport
from iopath.studies import boots

_FUNCTIONS = 3  # named in a row, and shared lines
_AHEAD = 8  # commits that workers build at a time


@dataclass(frozen=True)
class SeriesCommit:
    """A commit of a series. *error* says why it could not be measured, else *comparison* is with
    the commit *before*, both of which are in *whole*, and *shared* has what CPUs write more or less
    to lines that they share; the first has none."""

    commit: str
    subject: str
    error: str = ""
    before: str = ""
    result: ExactResult | None = None
    comparison: ExactComparison | None = None
    whole: ExactResult | None = None
    shared: Mapping[Key, Sequence[SharedWrites]] = field(default_factory=dict)
    kernel: str = ""  # as the command line names it

    def changes(self, *, every: bool = False) -> Iterator[tuple[ExactRungChange, ExactChange]]:
        """The rungs that differ, those that matter most first; or *every* rung in its order."""
        if self.comparison:
            (name,) = self.comparison.others
            rungs, ranked = self.comparison.rungs, self.comparison.ranked(name)
            others = [rung for rung in rungs if rung.key in self.shared and rung not in ranked]
            for rung in rungs if every else [*ranked, *others]:
                change = rung.differences.get(name)
                shown = every or rung.key in self.shared
                if change and (shown or (change.gated and _is_worth_a_row(change))):
                    yield rung, change

    @property
    def left_out(self) -> list[str]:
        """The rungs that this commit or the one before could not carry out."""
        if not self.comparison:
            return []
        lacking = (rung for rung in self.comparison.rungs if not rung.differences)
        return [self.comparison.title(rung) for rung in lacking]


def measure(
    session: Session,
    names: Sequence[str],
    settings: Settings,
    layers: Layers,
    say: Callable[[str], None],
    entries: list[SeriesCommit],
) -> None:
    """Measure the kernels *names*, commits from the oldest on, each against its parent. What is
    measured is kept, and *entries* has it if this is interrupted. Raises NotMeasured at the end if
    fewer than two were."""
    measured: dict[str, SeriesCommit] = {}
    errors = []
    for number, name in enumerate(names):
        commit_of = session.commit(name)
        if commit_of is None:
            raise UsageError(f"{name}: not a commit")
        repository, revision = commit_of
        full = repository.commit(revision)
        commit, subject = full[:12], repository.subject(full)
        say(f"{number + 1} of {len(names)}: {commit} {subject}")
        try:
            ahead = number + _AHEAD
            session.build_ahead(names[ahead - 1 if number else 0 : ahead])
            found = result.renamed(session.measure([name], settings), {name: commit})
        except (UsageError, Unreachable):
            raise
        except IopathError as error:
            text = str(error).removeprefix(f"{name}: ").removeprefix(f"{commit} ")
            errors.append(f"{commit}: {text}")
            entries.append(SeriesCommit(commit, subject, text))
            continue
        entry = SeriesCommit(commit, subject, result=found, kernel=name)
        if before := _before(repository, full, measured):
            both = (before, entry)
            compared = boots.compare(
                session, settings, {one.kernel: one.result for one in both if one.result},
                {one.kernel: one.commit for one in both}, layers,
            )  # fmt: skip
            entry = replace(
                entry, before=before.commit, comparison=compared.comparison, whole=compared.whole,
                shared=shared_writes.written(compared.whole),
            )  # fmt: skip
        measured[full] = entry
        entries.append(entry)
    if len(measured) < 2:
        raise NotMeasured(f"fewer than two commits could be measured: {'; '.join(errors)}")


def _before(
    repository: Repository, commit: str, measured: Mapping[str, SeriesCommit]
) -> SeriesCommit | None:
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


@dataclass(frozen=True, kw_only=True)
class _SeriesRow:
    """A row of the table: a rung, or *arrangements* of several CPUs that write more or less to
    shared lines. *what* has functions, lines or an error."""

    commit: str = ""
    subject: str = ""
    rung: str = ""
    path: str = ""
    total: str = ""
    percent: str = ""
    costly: str = ""
    arrangements: str = ""
    writes: str = ""
    locked: str = ""
    what: str = ""


def _rows(entries: Sequence[SeriesCommit], *, every: bool) -> Iterator[_SeriesRow]:
    for entry in entries:
        rows = list(_of_entry(entry, every=every))
        for number, row in enumerate(rows):
            head = {} if number else {"commit": entry.commit, "subject": entry.subject}
            yield replace(row, **head)


def _of_entry(entry: SeriesCommit, *, every: bool) -> Iterator[_SeriesRow]:
    """The rows of a commit."""
    if entry.error:
        yield _SeriesRow(what=f"not measured: {entry.error}")
        return
    changes = list(entry.changes(every=every))
    for rung, change in changes:
        yield _SeriesRow(
            rung=entry.comparison.title(rung) if entry.comparison else rung.title,
            path=texts.signed(change.difference) + ("?" if change.verdict == "unknown" else ""),
            total=texts.signed(change.total.difference) if change.total else "",
            percent="" if change.percent is None else f"{change.percent:+.2f}",
            costly=texts.costly(change),
            what=_functions(change),
        )
        for shared in entry.shared.get(rung.key, ()):
            writes, locked = sharing_tables.writes(shared)
            yield _SeriesRow(
                arrangements=", ".join(shared.arrangements), writes=writes, locked=locked,
                what=sharing_tables.changed_lines(shared, _FUNCTIONS),
            )  # fmt: skip
    if entry.left_out:
        names = ", ".join(entry.left_out)
        yield _SeriesRow(what=f"not on this commit or on {entry.before}: {names}")
    elif every and not changes:
        yield _SeriesRow(what="" if entry.comparison else "the first")


def _functions(change: ExactChange) -> str:
    """The functions that changed most, and what else changed if the figure did not."""
    if change.total and change.total.functions:
        parts = change.total.functions[:_FUNCTIONS]
        return ", ".join(f"{part.name} {texts.signed(part.difference)}" for part in parts)
    if not change.functions:
        return texts.top_mover(change) if change.is_news else ""
    return ", ".join(
        f"{part.name} {texts.signed(part.difference)}{f' ({part.note})' if part.note else ''}"
        for part in change.functions[:_FUNCTIONS]
    )


def _summary(entries: Sequence[SeriesCommit]) -> str:
    """How many commits changed something."""
    compared = [entry for entry in entries if entry.comparison]
    every = [[one for _, one in entry.changes(every=True)] for entry in compared]
    path = [any(one.decided or one.moved for one in changes) for changes in every]
    text = texts.commits(sum(path), len(compared), "the path")
    others = [any(one.beside for one in changes) for changes in every]
    if more := sum(not own and other for own, other in zip(path, others, strict=True)):
        text += f"; {more} {texts.changes(more)} other counts"
    if shared := sum(bool(entry.shared) for entry in compared):
        text += f"; {shared} {texts.changes(shared)} what CPUs share"
    if failed := sum(bool(entry.error) for entry in entries):
        text += f"; {failed} could not be measured"
    if any(entry.comparison.has_unknown for entry in compared if entry.comparison):
        text += f". {texts.UNKNOWN}"
    return text


# The columns of the table. Those of figures are left out if they are empty.
_COLUMNS = {
    "commit": "commit", "subject": "subject", "rung": "rung", "path": "path", "total": "total",
    "percent": "%", "costly": "costly", "arrangements": "CPUs share", "writes": "writes",
    "locked": "locked", "what": "functions",
}  # fmt: skip
_NUMBERS = ("path", "total", "percent", "writes", "locked")
_WRAPPED = ("subject", "costly", "arrangements", "what")


def show(entries: Sequence[SeriesCommit], console: Console, *, every: bool) -> None:
    """Print the table: the commits that change something, or *every* commit and rung."""
    put_text(console, f"{_summary(entries)}.")
    rows = [vars(row) for row in _rows(entries, every=every)]
    if not rows:
        return
    names = [name for name in _COLUMNS if any(row[name] for row in rows)]
    table = tables.Table(_COLUMNS[names[0]])
    for name in names[1:]:
        if name in _NUMBERS:
            table.number_column(_COLUMNS[name])
        else:
            wraps = name in _WRAPPED
            table.text_column(_COLUMNS[name], wraps=wraps, below=wraps)
    for row in rows:
        # A subject has a line of its own where it is below its row.
        table.row(*(row[name] + "\n" * (name == "subject") for name in names))
    put(console, table)


def markdown(entries: Sequence[SeriesCommit], command: str, *, every: bool) -> str:
    """The same as text for a mail or a cover letter: a block for each commit, and the command that
    repeats it."""
    commands = dict.fromkeys(one.comparison.command for one in entries if one.comparison)
    what = next(filter(None, commands), "")
    lines = [f"Instructions {f'of {what}' if what else 'per I/O'}, counted exactly by iopath:", ""]
    lines += itertools.chain.from_iterable(_blocks(entries, every=every))
    return "\n".join(
        [*lines, f"{_summary(entries)}.", "", "Repeat it with:", "", f"    {command}", ""]
    )


def _blocks(entries: Sequence[SeriesCommit], *, every: bool) -> Iterator[list[str]]:
    """The lines of each commit that has any."""
    for entry in entries:
        rows = list(_rows([entry], every=every))
        if not rows:
            continue
        lines = [f"{entry.commit} {entry.subject}"]
        for row in rows:
            what = kbuild.without_log(row.what)
            figure = ""
            if row.rung:
                figure = f"{row.rung}: {row.path} ({row.percent} %)"
                if row.total:
                    figure = f"{row.rung}: {row.total} in total; path {row.path} ({row.percent} %)"
                figure += f"; {row.costly}" if row.costly else ""
            elif row.arrangements:
                figure = f"CPUs share {row.arrangements}: writes {row.writes}, locked {row.locked}"
            lines += [f"    {part}" for part in (figure, *wrap(what, 68)) if part]
        yield [*lines, ""]


class SeriesReport(ProfileReport):
    """What views show of a series: a table or a letter of its commits, and the result of all."""

    def __init__(
        self, entries: Sequence[SeriesCommit], layers: Layers, command: str, *, every: bool
    ) -> None:
        self.entries = entries
        self.layers = layers
        self.command = command
        self.every = every

    @property
    def result(self) -> ExactResult:
        measured = [entry.result for entry in self.entries if entry.result]
        if not measured:
            raise NotMeasured("no commit could be measured")
        return result.join(measured)

    @property
    def comparison(self) -> ExactComparison | None:
        whole = self.result
        return compare.compare(whole, self.layers) if len(whole.kernels) > 1 else None

    def json(self) -> str:
        return dump(self.entries)

    def markdown(self) -> str:
        return markdown(self.entries, self.command, every=self.every)


def _total(change: ExactChange) -> float | None:
    found = change.metrics.get("total")
    return found.difference if found else None


def dump(entries: Sequence[SeriesCommit]) -> str:
    """The same as JSON (Documentation/git.rst)."""
    found: list[dict[str, object]] = []
    for entry in entries:
        rows = [
            {
                "rung": rung.rung,
                "op": rung.op,
                "block_size": rung.block_size,
                "before": rung.figure(entry.before),
                "after": rung.figure(entry.commit),
                "difference": change.difference,
                "total": _total(change),
                "percent": change.percent,
                "verdict": change.verdict,
                "costly": change.expensive,
                "functions": [
                    {"name": part.name, "difference": part.difference, "note": part.note}
                    for part in change.functions
                ],
                "shared": [one.record for one in entry.shared.get(rung.key, ())],
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


def judged(entries: Sequence[SeriesCommit], fail_above: float) -> tuple[list[str], list[str]]:
    """The rungs that a commit made longer by more than *fail_above* per cent, or that share more by
    that, and what cannot be judged, in words."""
    grown: list[str] = []
    unknown = [f"{entry.commit}: not measured" for entry in entries if entry.error]
    for entry in entries:
        if entry.comparison:
            more, untold = limits.regressions(entry.comparison, fail_above, [])
            grown += more
            unknown += untold
    return grown, unknown
