# SPDX-License-Identifier: GPL-2.0
"""Shared cache lines that differ between kernels."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from iopath.compare import noise
from iopath.compare.changes import MetricChange, judged_change, undecided
from iopath.compare.noise import Deviation
from iopath.results.metrics import SHARED_WRITES
from iopath.results.result import ExactRecord, Result, Row
from iopath.results.shared import NEIGHBOURS, SharedLine, Sharing

_LEAST = 0.05  # accesses per I/O
# Smaller differences are noise: the instructions of a round depend on how CPUs wait for each other.
_RESOLUTION = {
    "instructions": 1.0,
    "instructions in calls": 5.0,
    "rounds left out": 0.5,
    "accesses": 0.5,
    "writes": 0.1,
    "writes of true sharing": 0.1,
    "locked writes": 0.1,
    "lines": 1.0,
}
_EACH = 1.0  # accesses per I/O of a line that each I/O touches

# If CPUs call each other, kernels must differ by _CALLED_SHARE of a line's counts, and by _NOISE
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
    Left out are lines that depend on the boot: small slab objects of different CPUs may share a
    line, and the other side may share a line in some boots only. If CPUs interrupt each other,
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
    """Whether each I/O touches a line, I/Os write it, and the other side shares no line of its
    structures."""
    known = {
        name for one in (*other.lines, *(other.in_some_boots or ())) for name in structures(one)
    }
    touched = _total(line) >= _EACH and line.per_io(line.writes) >= _LEAST
    return touched and not known & structures(line)


def structures(line: SharedLine) -> set[str]:
    """The structures that a line belongs to: "runqueues" of "runqueues of CPU 1{nr_running}"."""
    parts = re.sub(r"{[^}]*}", "", line.where).split(", ")
    return {re.split(r" of CPU |[.+\[]", part)[0] for part in parts}


def _total(line: SharedLine) -> float:
    return max(line.per_io(line.reads), line.per_io(line.writes))


def _renamed(before: _Lines, after: _Lines) -> dict[tuple[str, str], tuple[str, str]]:
    """The lines whose fields have other names after. Of a structure's lines in an arrangement one
    is gone and one is new, and both have the same number of locked accesses."""
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
    """Whether two lines are touched equally often, apart from *noise*, a part of either. If there
    is noise, lines that few I/Os touch are ignored."""
    most = max(_total(one), _total(other))
    if noise and most < _EACH:
        return True
    limit = max(_LEAST, noise * most)
    pairs = [(one.reads, other.reads), (one.writes, other.writes), (one.locked, other.locked)]
    return all(abs(one.per_io(a) - other.per_io(b)) < limit for a, b in pairs)


_Figures = dict[tuple[str, str, str], list[float]]  # by arrangement, structure and metric

_ALL = "all structures"


def judged(before: ExactRecord, after: ExactRecord, rows: int) -> dict[str, MetricChange] | None:
    """The figures of several CPUs that differ, or that cannot be judged with the reason, by their
    names; None if there are none. A figure varies as those of its row and metric do, and as its own
    boots do."""
    if not before.sharing and not after.sharing:
        return None
    if lack := _incomparable(before, after):
        return {"shared lines": undecided(lack)}
    sides = [_figures(record.sharing) for record in (before, after) if record.sharing]
    none = [[0.0] * len(next(iter(side.values()))) for side in sides]
    if min(map(len, none)) < noise.OFTEN:
        few = noise.judge_boots(*none, 0.0, 1, 0.0)
        return {"shared lines": judged_change(few, *none)}
    _drop_renamed(*sides)
    found = {}
    keys = {**sides[0], **sides[1]}
    both = {key: (sides[0].get(key, none[0]), sides[1].get(key, none[1])) for key in keys}
    known = {
        metric: Deviation.pooled(
            side for key, pair in both.items() if key[-1] == metric for side in pair
        ).sigma
        for metric in _RESOLUTION
    }
    for key, (one, other) in both.items():
        metric = key[-1]
        least, figures = _RESOLUTION[metric], rows * len(keys)
        verdict = noise.judge_boots(one, other, known[metric], figures, least)
        if verdict.verdict != noise.SAME:
            found[", ".join(key)] = judged_change(verdict, one, other)
    return found


def _incomparable(before: ExactRecord, after: ExactRecord) -> str:
    """Why what two kernels share cannot be compared; empty if it can."""
    names: list[set[str]] = []
    for record in (before, after):
        kernel, sharing = record.kernel.name, record.sharing
        if not sharing or not sharing.arrangements:
            return f"{kernel} has no figures of several CPUs"
        names.append({part.name for part in sharing.arrangements})
        having = {one.arrangement for one in sharing.figures or () if one.boots}
        if lacking := names[-1] - having:
            return f"{kernel} has no figures of several CPUs, {', '.join(sorted(lacking))}"
    if before.cpus != after.cpus:
        return f"{before.kernel.name} has {before.cpus} CPUs, {after.kernel.name} {after.cpus}"
    for record, own, other in ((before, *names), (after, *names[::-1])):
        if lacking := other - own:
            return f"{record.kernel.name} has no figures of several CPUs, {', '.join(lacking)}"
    return ""


def _figures(sharing: Sharing) -> _Figures:
    """The figures in each boot, with those of all structures together."""
    found = {(one.arrangement, one.of, one.metric): one.boots for one in sharing.figures or ()}
    for part in sharing.arrangements:
        for metric in ("accesses", *SHARED_WRITES, "lines"):
            if total := sharing.total(part.name, metric):
                found[part.name, _ALL, metric] = total
    return found


def _drop_renamed(before: _Figures, after: _Figures) -> None:
    """Leave out a structure that is gone where one with other names has all of its figures."""
    sides = []
    for own, other in ((before, after), (after, before)):
        known = {key[:2] for key in other}
        found: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(dict)
        for (arrangement, of, metric), boots in own.items():
            if (arrangement, of) not in known:
                found[arrangement, of][metric] = boots
        sides.append(found)
    for (arrangement, of), figures in sides[0].items():
        alike = [
            key for key, others in sides[1].items() if key[0] == arrangement and others == figures
        ]
        if alike:
            del sides[1][alike[0]]
            for metric in figures:
                del before[arrangement, of, metric], after[*alike[0], metric]
