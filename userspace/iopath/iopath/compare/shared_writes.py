# SPDX-License-Identifier: GPL-2.0
"""How much two kernels differ in what they write to cache lines that CPUs share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from iopath.compare import noise
from iopath.compare.sharing_changes import LineChange, changes
from iopath.results.metrics import SHARED_WRITES, shared
from iopath.results.result import ExactRecord, ExactResult, Key


@dataclass(frozen=True)
class SharedWrites:
    """By how much the writes per I/O to shared lines differ in *arrangements*, and those of them
    with a lock prefix; and the *lines* that differ. *unsure*: it may be noise."""

    arrangements: tuple[str, ...]
    writes: float
    locked: float
    unsure: bool
    lines: tuple[LineChange, ...]

    @property
    def record(self) -> dict[str, object]:
        """The same for a JSON file."""
        return {
            "arrangements": [*self.arrangements],
            "writes": round(self.writes, 4),
            "locked": round(self.locked, 4),
            "lines": [f"{line.what} {line.where}" for line in self.lines],
        }

    def is_like(self, other: "SharedWrites") -> bool:
        """Whether another arrangement differs in the same way."""
        one, two = (
            (
                round(found.writes, 1), round(found.locked, 1), found.unsure,
                {(line.what, line.where) for line in found.lines},
            )
            for found in (self, other)
        )  # fmt: skip
        return one == two


def written(whole: ExactResult) -> dict[Key, list[SharedWrites]]:
    """How the second kernel of a result differs from the first, by rung. Arrangements that differ
    in the same way are merged."""
    base, name = whole.names
    rows, lines = whole.rows(), changes(whole)
    found: dict[Key, list[SharedWrites]] = {}
    for row in rows:
        before, after = row.records.get(base), row.records.get(name)
        if not (before and after):
            continue
        own = [one for one in lines if one.row.key == row.key]
        for change in _each(before, after, own, len(rows)):
            alike = found.setdefault(row.key, [])
            for at, other in enumerate(alike):
                if other.is_like(change):
                    names = (*other.arrangements, *change.arrangements)
                    alike[at] = replace(other, arrangements=names)
                    break
            else:
                alike.append(change)
    return found


def _each(
    before: ExactRecord, after: ExactRecord, lines: Sequence[LineChange], rows: int
) -> Iterator[SharedWrites]:
    """The arrangements of a rung that differ."""
    arrangements = before.sharing.arrangements if before.sharing else ()
    figures = rows * len(SHARED_WRITES) * len(arrangements)
    for part in arrangements:
        sizes, unsure = [], False
        for kind in SHARED_WRITES:
            metric = shared(part.name, kind)
            one, other = metric.value(before), metric.value(after)
            if one and other:
                judged = noise.judge_boots(one, other, 0.0, figures, metric.resolution)
                size = judged.difference if judged.verdict != noise.SAME else 0.0
                sizes.append(size if abs(size) > metric.resolution else 0.0)
                unsure = unsure or (judged.verdict == noise.UNKNOWN and sizes[-1] != 0)
        own = tuple(one for one in lines if one.line.arrangement == part.name)
        if any(sizes) or own:
            writes, locked = sizes or (0.0, 0.0)
            yield SharedWrites((part.name,), writes, locked, unsure, own)
