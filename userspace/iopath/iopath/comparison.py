# SPDX-License-Identifier: GPL-2.0
"""The types of a comparison: how results differ from the first one, rung by rung."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iopath.result import Figure, Key, OfRung

# Metrics of the long run, and the figure of a record that each one is. They are compared on their
# own: the median of short rounds does not show what they add.
LONG_RUN = {"mean": "mean", "with deferred work": "with_deferred"}


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
        return [name for name in LONG_RUN if name not in self.metrics or self.metrics[name].telling]


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


@dataclass(kw_only=True)
class ExactRungChange(RungChange):
    figures: dict[str, ExactFigure]
    differences: dict[str, ExactChange]


@dataclass(kw_only=True)
class TimeRungChange(RungChange):
    figures: dict[str, dict[str, Figure]]
    differences: dict[str, Change]
    counted: dict[str, dict[str, Change]]  # of the processor's counters


@dataclass(kw_only=True)
class Comparison:
    """How the kernels *others* differ from *base*."""

    base: str
    others: list[str]
    labels: list[str]
    rungs: list[Any]

    def of(self, key: Key) -> dict[str, Any]:
        """The differences of a rung, by kernel."""
        return next((rung.differences for rung in self.rungs if rung.key == key), {})

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
