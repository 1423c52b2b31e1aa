# SPDX-License-Identifier: GPL-2.0
"""The types of profiles: exact counts by function, and times by function."""

from dataclasses import dataclass

from iopath.results.metrics import METRICS
from iopath.results.symbol import Symbol

# The counts of a function in an exact profile.
COUNTS = ("instructions", "reads", "writes", "locked", "calls", "indirect", "branches")

# What costs far more than other instructions, as far as it is not among these. Profiles and
# functions have only those of them that are not 0. What memory accesses cost comes last.
COSTLY = tuple(
    metric.key
    for metric in sorted(METRICS, key=lambda metric: bool(metric.source.tally))
    if metric.costly and metric.key not in COUNTS
)


@dataclass(kw_only=True)
class Function:
    """A function in a profile."""

    name: str
    module: str
    layer: str

    @property
    def symbol(self) -> Symbol:
        return Symbol(self.name, self.module)

    def count(self, name: str) -> float:
        return getattr(self, name)


@dataclass(kw_only=True)
class ExactFunction(Function):
    """What a function executed per I/O."""

    instructions: float
    reads: float
    writes: float
    locked: float
    calls: float
    indirect: float
    branches: float
    costly: dict[str, float] | None = None

    def count(self, name: str) -> float:
        return _count(self, name)


@dataclass(kw_only=True)
class SampledFunction(Function):
    """The time that a function took per I/O."""

    ns: float
    samples: int


@dataclass(kw_only=True)
class LongRunFunction(Function):
    """What a function executed per I/O in the long run: for the I/O, and later."""

    mean: float
    deferred: float


@dataclass(kw_only=True)
class SourceLine:
    """A source line, and the function that was inlined there."""

    function: str
    inlined: str
    line: str
    instructions: float


@dataclass(kw_only=True)
class ExactProfile:
    """Counts per I/O by function."""

    unmatched_returns: int
    faults: float
    switches: float
    user: float
    kernel: float
    instructions: float
    reads: float
    writes: float
    locked: float
    calls: float
    indirect: float
    branches: float
    layers: dict[str, float]
    functions: list[ExactFunction]
    stacks: list[tuple[str, float]]
    lines: dict[str, float]
    costly: dict[str, float] | None = None  # not counted, if there are none
    source: list[SourceLine] | None = None
    long_run: list[LongRunFunction] | None = None
    lines_noise: dict[str, float] | None = None

    @property
    def total(self) -> float:
        return self.instructions

    def count(self, name: str) -> float:
        return _count(self, name)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the counts that a table has."""
        return (*COUNTS, *(name for name in COSTLY if self.count(name)))

    @property
    def beside(self) -> dict[str, object]:
        """What is known besides instructions."""
        return {
            "lines": self.lines,
            "faults": self.faults,
            "switches": self.switches,
            "unmatched": self.unmatched_returns,
            "costly": self.costly or {},
        }


@dataclass(kw_only=True)
class SampledProfile:
    """Time per I/O by function, from perf's samples."""

    event: str
    data: str
    ns: float
    samples: int
    layers: dict[str, float]
    functions: list[SampledFunction]
    stacks: list[tuple[str, float]]

    @property
    def total(self) -> float:
        return self.ns

    @property
    def kernel(self) -> float:
        return sum(part.ns for part in self.functions if part.module != "user")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the counts that a table has."""
        return ("ns", "samples")

    @property
    def beside(self) -> dict[str, object]:
        """What is known besides time: nothing."""
        return {}


Profile = ExactProfile | SampledProfile


def _count(counted: ExactFunction | ExactProfile, name: str) -> float:
    return (counted.costly or {}).get(name, 0.0) if name in COSTLY else getattr(counted, name)
