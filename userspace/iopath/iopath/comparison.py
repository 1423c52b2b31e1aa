# SPDX-License-Identifier: GPL-2.0
"""The types of a comparison: how results differ from the first one, rung by rung."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iopath.profiles import COSTLY
from iopath.result import Figure, Key, OfRung

# Metrics of the long run, and the figure of a record that each one is. They are compared on their
# own: the median of short rounds does not show what they add.
LONG_RUN = {"mean": "mean", "with deferred work": "with_deferred"}

# The metric that adds up the instructions that cost far more than others.
COSTLY_SUM = "costly"

# Metrics that are shown even if the number of instructions is the same.
EXPENSIVE = ("locked", "indirect", *(name.replace("_", " ") for name in COSTLY))


def percent(before: float, after: float) -> float | None:
    return 100 * (after - before) / before if before else None


@dataclass(kw_only=True)
class Change:
    """The difference of two figures. The noise is None where it is not known."""

    difference: float
    percent: float | None
    noise: float | None
    verdict: str  # "same", "longer", "shorter" or "unknown"; of a metric also "more", "fewer"

    @property
    def grew(self) -> bool:
        return self.verdict in ("longer", "more")

    @property
    def differs(self) -> bool:
        """Whether the figure, or one of its functions, changed by more than the noise."""
        return self.verdict != "same"

    @property
    def verdict_text(self) -> str:
        return self.verdict

    @property
    def is_news(self) -> bool:
        """Whether there is more to say than that it is the same."""
        return self.differs

    @property
    def rank(self) -> tuple[int, float]:
        """The lower it is, the more the change matters."""
        unknown = self.verdict == "unknown"
        if self.grew or (unknown and self.difference > 0):
            group = 0
        elif self.verdict == "shorter" or (unknown and self.difference < 0):
            group = 1
        else:
            group = 2
        # A figure that was 0 has no percentage.
        size = math.inf if self.percent is None else abs(self.percent)
        return group, -size

    def metric(self, name: str) -> "Metric | None":
        """The change of a metric besides the figure itself."""
        return None

    @property
    def judged_too(self) -> Sequence[str]:
        """The metrics that a general limit judges, besides the figure."""
        return ()


@dataclass(kw_only=True)
class FunctionChange:
    """What a function has more or less, by its newer name."""

    name: str
    layer: str
    before: float
    after: float
    difference: float
    counts: dict[str, float]  # differences of other counts than instructions, if not 0
    note: str  # "new", "gone", "was OLD", or "OLD before?" if only the counts say so


@dataclass(kw_only=True)
class LayerChange:
    """What a layer has more or less."""

    layer: str
    before: float
    after: float
    difference: float


@dataclass(kw_only=True)
class LongRunChange:
    """What a function has more or less in the long run."""

    name: str
    difference: float


@dataclass(kw_only=True)
class Metric(Change):
    """The change of a metric. Only those of the long run have functions of their own; they are
    telling if they differ from the median's change by more than the noise."""

    before: float
    after: float
    telling: bool | None = None
    functions: list[LongRunChange] | None = None


@dataclass(kw_only=True)
class ExactChange(Change):
    """How an exact figure differs, and the functions and layers that account for it."""

    findings: list[str]
    metrics: dict[str, Metric]
    moved: bool  # whether any function changed by more than the noise
    layers: list[LayerChange]
    functions: list[FunctionChange]
    unattributed: float

    @property
    def differs(self) -> bool:
        return self.verdict != "same" or self.moved

    @property
    def is_news(self) -> bool:
        return self.differs or bool(self.findings) or bool(self.telling)

    @property
    def telling(self) -> list[str]:
        """The metrics of the long run that the figure does not show."""
        return [name for name, part in self.metrics.items() if part.telling]

    @property
    def expensive(self) -> dict[str, float]:
        """The changes of the metrics of expensive instructions, without those that are noise."""
        return {
            name: self.metrics[name].difference
            for name in EXPENSIVE
            if name in self.metrics and self.metrics[name].verdict in ("more", "fewer")
        }

    @property
    def is_explained(self) -> bool:
        """Whether it is worth showing the functions: the sum changed, or they cancel each other."""
        return bool(self.functions) and (self.verdict in ("longer", "shorter") or self.moved)

    @property
    def verdict_text(self) -> str:
        return "same in sum" if self.verdict == "same" and self.moved else self.verdict

    def metric(self, name: str) -> Metric | None:
        return self.metrics.get(name)

    @property
    def judged_too(self) -> Sequence[str]:
        long_run = [
            name for name in LONG_RUN if name not in self.metrics or self.metrics[name].telling
        ]
        return [*long_run, *([COSTLY_SUM] if COSTLY_SUM in self.metrics else [])]


@dataclass(kw_only=True)
class ExactFigure:
    instructions: float
    spread: float


@dataclass(kw_only=True)
class RungChange(OfRung):
    """How a rung differs on each kernel that has it."""

    rung: str
    op: str
    block_size: int
    figures: dict[str, Any]
    differences: dict[str, Any]

    def figure(self, kernel: str) -> float | None:
        """The figure that is judged, instructions or ns; None if the kernel has none."""
        raise NotImplementedError


@dataclass(kw_only=True)
class ExactRungChange(RungChange):
    figures: dict[str, ExactFigure]
    differences: dict[str, ExactChange]

    def figure(self, kernel: str) -> float | None:
        return self.figures[kernel].instructions if kernel in self.figures else None


@dataclass(kw_only=True)
class TimeRungChange(RungChange):
    figures: dict[str, dict[str, Figure]]
    differences: dict[str, Change]
    counted: dict[str, dict[str, Change]]  # of the processor's counters

    def figure(self, kernel: str) -> float | None:
        return self.figures[kernel]["ns"].median if kernel in self.figures else None


@dataclass(kw_only=True)
class Comparison:
    """How the kernels *others* differ from *base*."""

    base: str
    others: list[str]
    labels: list[str]
    rungs: list[Any]

    @property
    def names(self) -> list[str]:
        return [self.base, *self.others]

    @property
    def sizes(self) -> set[int]:
        """The block sizes of its rungs."""
        return {rung.block_size for rung in self.rungs if rung.block_size}

    def of(self, key: Key) -> dict[str, Any]:
        """The differences of a rung, by kernel."""
        return next((rung.differences for rung in self.rungs if rung.key == key), {})

    def ranked(self, name: str) -> list[Any]:
        """The rungs that differ on kernel *name*, those that matter most first: the longer ones by
        per cent, the shorter ones by per cent, then those that are the same only in sum."""
        found = [
            (rung.differences[name].rank, rung)
            for rung in self.rungs
            if name in rung.differences and rung.differences[name].is_news
        ]
        return [rung for _, rung in sorted(found, key=lambda one: one[0])]

    @property
    def has_unknown(self) -> bool:
        """Whether the noise of any change is not known."""
        return any(
            change.verdict == "unknown"
            for rung in self.rungs
            for change in rung.differences.values()
        )


@dataclass(kw_only=True)
class ExactComparison(Comparison):
    options: dict[str, list[str]]
    rungs: list[ExactRungChange]


@dataclass(kw_only=True)
class TimeComparison(Comparison):
    rungs: list[TimeRungChange]
