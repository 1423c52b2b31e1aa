# SPDX-License-Identifier: GPL-2.0
"""Shared cache lines that differ between kernels."""

import re
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iopath.compare import noise
from iopath.compare.changes import percent
from iopath.compare.limits import SHARING, Limit, some
from iopath.results.result import Result, Row
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


def judged(
    whole: Result, limits: Sequence[Limit], fail_above: float | None
) -> tuple[list[str], list[str]]:
    """The figures of several CPUs that grew by more than their limit, and what cannot be judged, in
    words. A rung that no kernel ran on several CPUs needs a limit of its own to be judged."""
    base, *others = whole.names
    grown: list[str] = []
    unknown: list[str] = []
    rows: dict[str, tuple[dict[str, None], dict[str, None]]] = {}  # and figures, by the reason
    for row in whole.rows():
        own = [limit for limit in limits if limit.metric == SHARING and _applies(limit, row)]
        own.sort(key=lambda limit: bool(limit.op))
        allowed = own[-1].percent if own else fail_above
        for name in others if allowed is not None else ():
            sides = [_sharing(row, kernel) for kernel in (base, name)]
            if not any(sides) and not own:
                continue
            if lack := _incomparable(row, base, name):
                unknown.append(f"{row.title}: {lack}")
                continue
            more, untold = _exceeding(*filter(None, sides), len(whole.rows()), allowed or 0.0)
            if more:
                grown.append(f"{row.title}: {name} shares more than {base}: {', '.join(more)}")
            for reason, figures in untold.items():
                titles, names = rows.setdefault(reason, ({}, {}))
                titles[row.title] = None
                names |= dict.fromkeys(figures)
    unknown += [
        f"{some([*titles])}: {some([*names], '; ')}: {reason}"
        for reason, (titles, names) in rows.items()
    ]
    return grown, unknown


def _incomparable(row: Row, base: str, name: str) -> str:
    """Why what two kernels share cannot be compared; empty if it can."""
    parts = []
    for kernel in (base, name):
        sharing = _sharing(row, kernel)
        if sharing is None:
            return f"{kernel} has no figures of several CPUs: measure with --cpus 2 or more"
        if not sharing.arrangements:
            return f"{kernel} has no figures of several CPUs, in no arrangement"
        if sharing.figures is None:
            return f"{kernel} has no figures of each boot: measure again"
        parts.append((kernel, sharing, row.records[kernel].cpus))
    (_, one, cpus), (_, other, others) = parts
    if cpus != others:
        return f"{base} has figures of {cpus} CPUs, {name} of {others}"
    for (kernel, lacking, _), having in zip(parts, (other, one), strict=True):
        own = {part.name for part in lacking.arrangements}
        for part in having.arrangements:
            if part.name not in own:
                return f"{kernel} has no figures of several CPUs, {part.name}"
    return ""


def _exceeding(
    before: Sharing, after: Sharing, rows: int, allowed: float
) -> tuple[list[str], dict[str, list[str]]]:
    """The figures that grew by more than *allowed* per cent, and those that are undecided, by the
    reason."""
    sides = [
        {(part.arrangement, part.of, part.metric): part.boots for part in side.figures or ()}
        for side in (before, after)
    ]
    boots = [len(next(iter(side.values()), ())) for side in sides]
    keys = {**sides[0], **sides[1]}
    grown: list[str] = []
    unknown: dict[str, list[str]] = {}
    for key in keys:
        one, other = (
            side.get(key, [0.0] * count) for side, count in zip(sides, boots, strict=True)
        )
        if not one or not other:
            unknown.setdefault("a kernel has no boots", []).append(", ".join(key))
            continue
        metric = key[-1]
        found = noise.judge(one, other, noise.Family(rows, len(keys)), _RESOLUTION[metric])
        size = statistics.fmean(one)
        share = percent(size, size + found.difference)
        if found.verdict == noise.LONGER and (share is None or share > allowed):
            by = f"{found.difference:,.2f}" if share is None else f"{share:.2f} %"
            grown.append(f"{', '.join(key)} {by} ({allowed:g} % allowed)")
        elif found.verdict == noise.UNKNOWN:
            most = None if found.most is None else percent(size, size + found.most)
            if most is None or most > allowed:
                reason = noise.reason(found, one, other, _RESOLUTION[metric])
                unknown.setdefault(reason, []).append(", ".join(key))
    return grown, unknown


def _applies(limit: Limit, row: Row) -> bool:
    return row.rung == limit.rung and limit.op in ("", row.op)
