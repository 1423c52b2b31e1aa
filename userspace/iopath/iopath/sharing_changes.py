# SPDX-License-Identifier: GPL-2.0
"""Shared cache lines that differ between kernels."""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iopath.errors import IopathError
from iopath.limits import SHARING, Limit
from iopath.result import Result, Row
from iopath.shared import NEIGHBOURS, SharedLine, Sharing

_LEAST = 0.05  # accesses per I/O
_EACH = 1.0  # accesses per I/O of a line that each I/O touches

# Where CPUs call each other, kernels must differ by this part of a line's counts, and by so many
# times the part by which boots of a kernel differ.
_CALLED_SHARE, _NOISE = 0.1, 3


@dataclass(frozen=True)
class LineChange:
    """A shared line that differs from the first kernel: one that is new, gone, changed or
    renamed."""

    row: Row
    kernel: str
    before: SharedLine | None
    after: SharedLine | None

    @property
    def line(self) -> SharedLine:
        found = self.after or self.before
        assert found
        return found

    @property
    def where(self) -> str:
        """What is written in it, before and after if that differs."""
        if self.before and self.after and self.before.where != self.after.where:
            return f"{self.before.where}, now {self.after.where}"
        return self.line.where

    @property
    def what(self) -> str:
        if self.before and self.after:
            return "changed" if self.before.where == self.after.where else "renamed"
        return "new" if self.after else "gone"


def changes(whole: Result) -> list[LineChange]:
    """The shared lines of each kernel that differ from those of the first, by what is written in
    them."""
    base, *others = whole.names
    found = []
    for row in whole.rows():
        for name in others:
            before, after = (_sharing(row, kernel) for kernel in (base, name))
            if before and after:
                found += [LineChange(row, name, *pair) for pair in differing(before, after)]
    return found


def _sharing(row: Row, kernel: str) -> Sharing | None:
    record = row.records.get(kernel)
    return getattr(record, "sharing", None)


def differing(
    before: Sharing, after: Sharing
) -> Iterator[tuple[SharedLine | None, SharedLine | None]]:
    """The lines that differ, each as it is before and after, in the arrangements that both have.
    Whether small objects of different CPUs lie in one line is a matter of the layout of memory, as
    is whether a line that the other side has in some boots is shared. Where CPUs call each other,
    their turns decide which lines of a structure they share, how, and how often."""
    names = [{part.name for part in side.arrangements} for side in (before, after)]
    sides = [
        {
            (line.arrangement, line.where): line
            for line in side.lines
            if line.arrangement in names[0] & names[1] and line.place != NEIGHBOURS
        }
        for side in (before, after)
    ]
    for side, other in zip(sides, (after, before), strict=True):
        for line in other.in_some_boots or ():
            key = line.arrangement, line.where
            if key in side and side[key].kind == line.kind:
                del side[key]
    calls = any(part.calls_cpus for side in (before, after) for part in side.arrangements)
    noise = _noise(*sides) if calls else 0.0
    renamed = {} if calls else _renamed(*sides)
    for key in {**sides[0], **sides[1]}:
        if key in renamed.values():
            continue
        one, other = sides[0].get(key), sides[1].get(renamed.get(key, key))
        if one and other:
            same = (calls or one.kind == other.kind) and _counts(one, other, noise)
        else:
            same = calls and not _is_new(one or other, before if other else after)
        if not same or key in renamed:
            yield one, other


_Lines = dict[tuple[str, str], SharedLine]


def _noise(*sides: _Lines) -> float:
    """Where CPUs call each other, what part of a line's counts kernels must differ by: more than
    the boots of a kernel do on any line that each I/O touches."""
    lines = [line for side in sides for line in side.values() if _total(line) >= _EACH]
    parts = [(line.spread or 0) / _total(line) for line in lines]
    return max(_CALLED_SHARE, _NOISE * max(parts, default=0))


def _is_new(line: SharedLine, other: Sharing) -> bool:
    """Whether each I/O touches a line, which I/Os write, and the other side shares no line of its
    structures."""
    known = {
        name for one in (*other.lines, *(other.in_some_boots or ())) for name in _structures(one)
    }
    touched = _total(line) >= _EACH and line.per_io(line.writes) >= _LEAST
    return touched and not known & _structures(line)


def _structures(line: SharedLine) -> set[str]:
    """The structures that a line belongs to: "runqueues" of "runqueues of CPU 1{nr_running}"."""
    parts = re.sub(r"{[^}]*}", "", line.where).split(", ")
    return {re.split(r" of CPU |[.+\[]", part)[0] for part in parts}


def _total(line: SharedLine) -> float:
    return max(line.per_io(line.reads), line.per_io(line.writes))


def _renamed(before: _Lines, after: _Lines) -> dict[tuple[str, str], tuple[str, str]]:
    """The lines whose fields have other names after. Of a structure's lines in an arrangement one
    is gone and one is new, and both have as many locked accesses."""
    gone = _by_structure({key: line for key, line in before.items() if key not in after})
    new = _by_structure({key: line for key, line in after.items() if key not in before})
    found = {}
    for structure, keys in gone.items():
        others = new.get(structure, [])
        if len(keys) == len(others) == 1:
            one, other = before[keys[0]], after[others[0]]
            if abs(one.per_io(one.locked) - other.per_io(other.locked)) < _LEAST:
                found[keys[0]] = others[0]
    return found


def _by_structure(lines: _Lines) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """The lines whose fields are known, by arrangement and structure."""
    found = defaultdict(list)
    for arrangement, where in lines:
        structure = re.match(r"[^.{+]+(?=[.{])", where)
        if structure:
            found[arrangement, structure[0]].append((arrangement, where))
    return found


def _counts(one: SharedLine, other: SharedLine, noise: float) -> bool:
    """Whether two lines are touched equally often, but for *noise*, a part of either. Where there
    is noise, lines that few I/Os touch say nothing."""
    most = max(_total(one), _total(other))
    if noise and most < _EACH:
        return True
    limit = max(_LEAST, noise * most)
    pairs = [(one.reads, other.reads), (one.writes, other.writes), (one.locked, other.locked)]
    return all(abs(one.per_io(a) - other.per_io(b)) < limit for a, b in pairs)


def regressions(whole: Result, limits: Sequence[Limit], fail_above: float | None) -> list[str]:
    """The rungs with more new shared lines than their limit, in words. With *fail_above*, rungs
    without a limit may have no new line that each I/O touches. Raises IopathError where a limit
    cannot be judged."""
    base, *others = whole.names
    limited = [limit for limit in limits if limit.metric == SHARING]
    for row in whole.rows():
        if fail_above is not None or any(_applies(limit, row) for limit in limited):
            for name in others:
                _check_arrangements(row, base, name)
    changed = changes(whole)
    found = []
    if fail_above is not None:
        found += [
            f"{change.row.title}: {change.kernel} has a shared line that {base} has not:"
            f" {change.line.where}"
            for change in changed
            if change.what == "new"
            and change.line.per_io([*change.line.reads, *change.line.writes]) >= _EACH
            and not any(_applies(limit, change.row) for limit in limited)
        ]
    for limit in limited:
        for row in (row for row in whole.rows() if _applies(limit, row)):
            for name in others:
                if not all(_sharing(row, kernel) for kernel in (base, name)):
                    raise IopathError(f"cannot judge {limit.text}: measure with --cpus 2 or more")
                new = [
                    change
                    for change in changed
                    if (change.row.key, change.kernel, change.what) == (row.key, name, "new")
                ]
                if len(new) > limit.percent:
                    found.append(
                        f"{row.title}: {name} has {len(new)} shared lines that {base} has not,"
                        f" {limit.percent:g} are allowed: {new[0].line.where}"
                    )
    return found


def _applies(limit: Limit, row: Row) -> bool:
    return row.rung == limit.rung and limit.op in ("", row.op)


def _check_arrangements(row: Row, *kernels: str) -> None:
    """Raise IopathError if a kernel lacks an arrangement that another one has."""
    found = {name: part for name in kernels if (part := _sharing(row, name))}
    for name, other in itertools.permutations(found, 2):
        own = {part.name for part in found[name].arrangements}
        for part in found[other].arrangements:
            if part.name not in own:
                raise IopathError(
                    f"cannot judge {row.title}: {name} has no figures of several CPUs, {part.name}"
                )
