# SPDX-License-Identifier: GPL-2.0
"""The types of what CPUs share."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from iopath.results.schema import Natural, NotNegative, Positive, Several

_CALLED = 100  # instructions per I/O of a CPU that is called for I/Os

Byte = Annotated[int, ("minimum", 0), ("maximum", 63)]  # of a line

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

    name: Annotated[str, ("enum", ("devices", "files", "threads"))]
    instructions_per_io: Annotated[
        list[NotNegative],
        "By CPU: median of the rounds, of the task that does the I/O, without interrupts.",
    ]
    called_per_io: Annotated[
        list[NotNegative] | None,
        "By CPU: mean of the instructions in interrupts by which other CPUs call it, "
        "whatever they interrupt.",
    ] = None
    rounds: list[Positive]
    rounds_left_out: Annotated[list[Natural], "By CPU: rounds in which it waited for another CPU."]
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
    cpu: Natural
    at: Annotated[str, "What it touches first."]
    locked: bool
    per_io: Annotated[NotNegative, "Executed per I/O of this CPU."]
    bytes: Annotated[
        list[tuple[Byte, Byte]] | None,
        "The bytes of the line that it touches: the first and the last of each run.",
    ] = None


@dataclass(kw_only=True)
class SharedLine:
    """A cache line that a CPU writes and another touches. Its reads or writes per I/O differ by
    *spread* between boots."""

    arrangement: Annotated[str, ("enum", ("devices", "files", "threads"))]
    where: Annotated[str, "What is written in the line."]
    place: Annotated[
        str,
        "Of neighbours, each object of the slab is touched by one CPU.",
        ("enum", ("static", "per-CPU", "slab", "neighbours", "page", "vmalloc", "stack", "user")),
    ]
    kind: Annotated[
        str,
        "Whether CPUs touch the same bytes (true) or different ones (false).",
        ("enum", ("true", "false")),
    ]
    lines: Annotated[Positive, "How many lines have this name."]
    reads: list[LineAccess]
    writes: list[LineAccess]
    spread: Annotated[
        NotNegative | None, "By how much its reads or writes per I/O differ between boots."
    ] = None

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
    boots: Several[float]


@dataclass(kw_only=True)
class Sharing:
    """A rung on several CPUs at the same time, and the lines that they share: in all boots, or in
    some, as the layout of memory puts them together."""

    arrangements: Annotated[
        list[Arrangement],
        "Each CPU with its own device and file (devices), its own file of one device "
        "(files), or one file that threads share (threads).",
    ]
    lines: Annotated[
        list[SharedLine],
        "Cache lines of 64 bytes that the kernel writes on a CPU and touches on another. "
        "Those of the same name are one entry.",
    ]
    in_some_boots: Annotated[
        list[SharedLine] | None,
        "Lines that CPUs share in some boots only, since the layout of memory put them together.",
    ] = None
    figures: Annotated[
        list[SharedFigure] | None,
        "What is judged: of an arrangement, and of a structure or a CPU, a metric in each boot.",
    ] = None

    def total(self, arrangement: str, metric: str) -> list[float] | None:
        """A metric in each boot, of all structures together; None if there is no such arrangement
        or no boot."""
        own = [figure for figure in self.figures or () if figure.arrangement == arrangement]
        if not own:
            return None
        none = [0.0] * len(own[0].boots)
        of_metric = [figure.boots for figure in own if figure.metric == metric]
        return [math.fsum(boots) for boots in zip(none, *of_metric, strict=True)]
