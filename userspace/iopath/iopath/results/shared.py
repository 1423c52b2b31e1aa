# SPDX-License-Identifier: GPL-2.0
"""The types of what CPUs share."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

_CALLED = 100  # instructions per I/O of a CPU that is called for I/Os

NEIGHBOURS = "neighbours"  # the place of a line that has objects of different CPUs


def most(accesses: Iterable[tuple[int, float]]) -> float:
    """The sum of the accesses of the CPU that has most."""
    counts: dict[int, float] = {}
    for cpu, times in accesses:
        counts[cpu] = counts.get(cpu, 0.0) + times
    return max(counts.values(), default=0.0)


@dataclass(kw_only=True)
class Arrangement:
    """A rung on several CPUs: what they have in common, and the instructions per I/O on each: of
    the task, and in interrupts by which another CPU called this one."""

    name: str
    instructions_per_io: list[float]
    called_per_io: list[float] | None = None
    rounds: list[int]
    rounds_left_out: list[int]
    command: list[str]

    @property
    def calls_cpus(self) -> bool:
        """Whether I/Os end by a call from another CPU. Occasional wake-ups do not count."""
        return any(called >= _CALLED for called in self.called_per_io or ())


@dataclass(kw_only=True)
class LineAccess:
    """What a function on a CPU does to a shared line, per I/O of that CPU."""

    function: str
    module: str
    cpu: int
    at: str
    locked: bool
    per_io: float
    bytes: list[tuple[int, int]] | None = None  # of the line: the first and the last of each run


@dataclass(kw_only=True)
class SharedLine:
    """A cache line that a CPU writes and another touches. Its reads or writes per I/O differ by
    *spread* between boots."""

    arrangement: str
    where: str
    place: str
    kind: str
    lines: int
    reads: list[LineAccess]
    writes: list[LineAccess]
    spread: float | None = None

    def per_io(self, accesses: list[LineAccess]) -> float:
        """How often *accesses* happen per I/O, on the CPU that has most of them."""
        return most((access.cpu, access.per_io) for access in accesses)

    @property
    def locked(self) -> list[LineAccess]:
        """The writes with a lock prefix."""
        return [access for access in self.writes if access.locked]


@dataclass(kw_only=True)
class SharedFigure:
    """A figure of an arrangement, in each boot. For a structure: per I/O, the mean of the CPUs, the
    accesses to lines that CPUs share, the writes, those with a lock prefix and those of true
    sharing, and the number of these lines. For a CPU: its instructions per I/O, those in interrupts
    from other CPUs, and the part of its rounds that was left out."""

    arrangement: str
    of: str
    metric: str
    boots: list[float]


@dataclass(kw_only=True)
class Sharing:
    """A rung on several CPUs at the same time, and the lines that they share: in all boots, or in
    some, as the layout of memory puts them together."""

    arrangements: list[Arrangement]
    lines: list[SharedLine]
    in_some_boots: list[SharedLine] | None = None
    figures: list[SharedFigure] | None = None

    def total(self, arrangement: str, metric: str) -> list[float] | None:
        """A metric in each boot, of all structures together; None if there is no such arrangement
        or no boot."""
        own = [figure for figure in self.figures or () if figure.arrangement == arrangement]
        if not own:
            return None
        none = [0.0] * len(own[0].boots)
        of_metric = [figure.boots for figure in own if figure.metric == metric]
        return [math.fsum(boots) for boots in zip(none, *of_metric, strict=True)]
