# SPDX-License-Identifier: GPL-2.0
"""The types of profiles: exact counts by function, and times by function."""

from dataclasses import dataclass
from typing import Annotated

from iopath.results.metrics import METRICS
from iopath.results.schema import Natural, NotNegative, Positive
from iopath.results.symbol import Symbol

Executed = Annotated[NotNegative, "Executed per I/O."]
Costly = Annotated[
    dict[str, NotNegative],
    "What costs far more than other instructions, per I/O, if not 0: reads of a time "
    "stamp, serialising instructions, accesses to MSRs and to ports, fences; and the "
    "bytes of repeated string instructions. A profile without it does not count them.",
    ("propertyNames.pattern", "^[a-z_]+$"),
]

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
    module: Annotated[str, "Empty for the kernel, user for the program."]
    layer: str

    @property
    def symbol(self) -> Symbol:
        return Symbol(self.name, self.module)

    def count(self, name: str) -> float:
        return getattr(self, name)


@dataclass(kw_only=True)
class ExactFunction(Function):
    """What a function executed per I/O."""

    instructions: Executed
    reads: Executed
    writes: Executed
    locked: Executed
    calls: Executed
    indirect: Executed
    branches: Executed
    costly: Costly | None = None

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

    mean: Executed
    deferred: float


@dataclass(kw_only=True)
class SourceLine:
    """A source line, and the function that was inlined there."""

    function: str
    inlined: str
    line: Annotated[str, "FILE:LINE in the kernel's source."]
    instructions: Executed


@dataclass(kw_only=True)
class ExactProfile:
    """Counts per I/O by function."""

    unmatched_returns: Annotated[
        Natural,
        "Returns in the round without a matching call. If there are any, stacks may be wrong.",
    ]
    faults: Annotated[float, "Exceptions, such as page faults, per I/O."]
    switches: Annotated[float, "Switches to another task per I/O."]
    user: Annotated[NotNegative, "Instructions in the program."]
    kernel: Annotated[NotNegative, "Instructions in the kernel."]
    instructions: Executed
    reads: Executed
    writes: Executed
    locked: Executed
    calls: Executed
    indirect: Executed
    branches: Executed
    layers: Annotated[dict[str, NotNegative], "Instructions by layer."]
    functions: list[ExactFunction]
    stacks: Annotated[
        list[tuple[str, NotNegative]],
        "The call tree, folded: functions from the outermost in, and the instructions of "
        "the last one.",
    ]
    lines: Annotated[
        dict[str, NotNegative],
        "Distinct 64-byte lines touched, of code and data, by program and kernel: in a "
        "round of one I/O, or one batch, divided by its I/Os.",
        ("required", ("code_user", "code_kernel", "data_user", "data_kernel")),
    ]
    costly: Costly | None = None
    source: Annotated[
        list[SourceLine] | None,
        "Instructions by source line, of functions with debug information. inlined is the "
        "function of the line if it was inlined.",
    ] = None
    long_run: Annotated[
        list[LongRunFunction] | None,
        "Instructions per I/O of the long run by function. Their sums are mean, and with "
        "deferred added with_deferred, except for functions below 0.0005. deferred is a "
        "difference and may be negative.",
    ] = None
    lines_noise: Annotated[
        dict[str, NotNegative] | None,
        "Noise of the lines of code, by the places in a line where functions may begin.",
        ("required", ("code_kernel",)),
    ] = None

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

    event: Annotated[str, "The sampled event.", ("enum", ("cycles", "cpu-clock"))]
    data: Annotated[str, "The file with perf's record."]
    ns: Annotated[NotNegative, "Per I/O, while perf sampled."]
    samples: Positive
    layers: dict[str, float]
    functions: list[SampledFunction]
    stacks: Annotated[
        list[tuple[str, float]],
        "The call tree, folded: functions from the outermost in, and the time of the last one.",
    ]

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
