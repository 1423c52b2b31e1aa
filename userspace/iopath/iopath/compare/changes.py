# SPDX-License-Identifier: GPL-2.0
"""The types of a comparison: how results differ from the first one, rung by rung."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

from iopath.compare import noise
from iopath.results.bridgefile import Bridge
from iopath.results.metrics import INSTRUCTIONS, METRICS, REQUESTS
from iopath.results.result import Key, OfRung, TimeFigure
from iopath.results.syscalls import EVERY, IO, IO_CALLS, JUDGED, START, WHOLE

PATH = INSTRUCTIONS.name
COUNT_WORDS = {noise.LONGER: "more", noise.SHORTER: "fewer"}  # what verdicts on counts are called
SHARING = "sharing"  # what a limit calls all figures of several CPUs (sharing_changes.py)


def percent(before: float, after: float) -> float | None:
    """By how many per cent a figure grew; None if it was 0 or less."""
    return 100 * (after - before) / before if before > 0 else None


@dataclass(kw_only=True)
class Change:
    """The difference of two figures. The noise is None where it is not known. *most* is the largest
    growth of a value, in per cent. *reason* says why there is no verdict, *wanted* how many boots
    would give one, if any do."""

    difference: float
    percent: float | None
    noise: float | None
    verdict: str  # "same", "longer", "shorter" or "unknown"; of a metric also "more", "fewer"
    most: float | None = None
    reason: str = ""
    wanted: int = 0
    shares: ClassVar[Mapping[str, "Change"] | None] = None  # of several CPUs, if it was run there
    limited: ClassVar[Sequence[str]] = ()  # metrics with a limit of their own: limits.py

    @property
    def grew(self) -> bool:
        return self.verdict in ("longer", "more")

    @property
    def decided(self) -> bool:
        """Whether it is known to differ."""
        return self.verdict not in ("same", "unknown")

    @property
    def differs(self) -> bool:
        """Whether the figure, or anything else that is judged, changed by more than the noise."""
        return self.verdict != "same"

    @property
    def verdict_text(self) -> str:
        return self.verdict

    @property
    def is_news(self) -> bool:
        """Whether it is worth showing: it is not just the same."""
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

    def metric(self, name: str) -> "Change | None":
        """The change of a metric; "instructions" is the figure itself."""
        return self if name == PATH else None

    @property
    def gated(self) -> Sequence[str]:
        """The metrics that a general limit judges."""
        return (PATH,)

    @property
    def judged(self) -> "dict[str, Change]":
        """The verdicts, by what they are on: whatever tells of a change reads this list."""
        names = (*self.gated, *self.limited)
        named = {name: part for name in names if (part := self.metric(name))}
        return named | dict(self.shares or {})

    @property
    def beside(self) -> "dict[str, Change]":
        """Those that differ otherwise than the figure itself: all, if that is the same; what grew,
        if it shrank."""
        others = {name: part for name, part in self.judged.items() if part is not self}
        if self.verdict == "shorter":
            return {name: part for name, part in others.items() if part.grew}
        same = self.verdict == "same"
        return {n: part for n, part in others.items() if same and part.decided}


@dataclass(kw_only=True)
class FunctionChange:
    """How a function differs, under its newer name."""

    name: str
    layer: str
    before: float
    after: float
    difference: float
    counts: dict[str, float]  # differences of other counts than instructions, if not 0
    # "new", "gone", "was OLD", "OLD before?" if only the counts say so, or "COMPILER inlines NAMES"
    note: str


@dataclass(kw_only=True)
class LayerChange:
    """How a layer differs."""

    layer: str
    before: float
    after: float
    difference: float


@dataclass(kw_only=True)
class LongRunChange:
    """How a function differs in the long run."""

    name: str
    difference: float


@dataclass(kw_only=True)
class MetricChange(Change):
    """The change of a metric. Only those of the long run have functions of their own; they are
    telling if they differ from the median's change by more than the noise."""

    before: float
    after: float
    telling: bool | None = None
    functions: list[LongRunChange] | None = None
    parts: dict[str, float] | None = None  # of the total: who executes more or less; they add up


def judged_change(
    judged: noise.Verdict,
    before: noise.Boots,
    after: noise.Boots,
    layout: float = 0.0,
    words: Mapping[str, str] = COUNT_WORDS,
) -> MetricChange:
    """The change of a metric by the verdict on its boots, in these *words*; another *layout* of a
    build adds to the noise."""
    one, other = map(statistics.fmean, (before, after))
    return MetricChange(
        before=round(one, 4),
        after=round(other, 4),
        difference=round(judged.difference, 4),
        percent=percent(one, one + judged.difference),
        noise=None if judged.noise is None else round(max(judged.noise, layout), 4),
        verdict=words.get(judged.verdict, judged.verdict),
        wanted=judged.wanted,
        most=None if judged.most is None else percent(one, one + judged.most),
        reason=noise.reason(judged, before, after) if judged.verdict == noise.UNKNOWN else "",
    )


def undecided(reason: str) -> MetricChange:
    """What cannot be judged."""
    return MetricChange(
        before=0.0, after=0.0, difference=0.0, percent=None, noise=None, verdict="unknown",
        reason=reason,
    )  # fmt: skip


@dataclass(kw_only=True)
class TimeEstimate:
    """What a difference in instructions takes on a machine: from *low* to *high* ns per I/O. The
    rates are I/Os per second of one core, before and after it, by the middle of the range; None for
    a rung that was not measured there."""

    low: float
    high: float
    iops_before: float | None = None
    iops_after: float | None = None


@dataclass(kw_only=True)
class CallsChange:
    """How often a part of a program begins before and after, and its instructions in all: means of
    the boots. *part_of* is the sum that it belongs to beside the whole, if any."""

    kind: str
    part_of: str
    times: tuple[float, float]
    instructions: tuple[float, float]

    @property
    def more(self) -> float:
        return self.instructions[1] - self.instructions[0]

    @property
    def differs(self) -> bool:
        return self.times[0] != self.times[1] or self.more != 0

    @property
    def order(self) -> int:
        """Where it is listed: what does I/O, then the other parts, what starts and ends processes,
        and the whole."""
        first = {IO: 0, START: 3, EVERY: 5}
        return first.get(self.kind, {IO: 1, START: 4}.get(self.part_of, 2))


@dataclass(kw_only=True)
class ExactChange(Change):
    """How an exact figure differs, and the functions and layers that account for it. *time* is an
    estimate, if there is a bridge and the figure differs. *calls* is of a part of a program."""

    findings: list[str]
    metrics: dict[str, MetricChange]
    moved: bool  # whether any function changed by more than the noise
    layers: list[LayerChange]
    functions: list[FunctionChange]
    unattributed: float
    shares: dict[str, MetricChange] | None = None  # that are not the same
    time: TimeEstimate | None = None
    calls: CallsChange | None = None

    @property
    def differs(self) -> bool:
        return self.verdict != "same" or self.moved or bool(self.beside)

    @property
    def is_news(self) -> bool:
        if self.calls and not self.calls.differs:
            return self.moved
        return self.differs or bool(self.findings) or bool(self.telling) or bool(self.requests)

    @property
    def rank(self) -> tuple[int, float]:
        """Of the parts of a program, what changes the whole most matters most."""
        if self.calls:
            return self.calls.order, -abs(self.calls.more)
        return super().rank

    @property
    def telling(self) -> list[str]:
        """The metrics of the long run whose change the figure does not show."""
        return [name for name, part in self.metrics.items() if part.telling]

    @property
    def total(self) -> MetricChange | None:
        """The change of all instructions executed for an I/O, if the path does not show it."""
        found = self.metrics.get("total")
        return found if found and found.telling else None

    @property
    def expensive(self) -> dict[str, float]:
        """The changes of the metrics of expensive instructions, without those that are noise."""
        return {
            metric.name: self.metrics[metric.name].difference
            for metric in METRICS
            if metric.costly
            and metric.name in self.metrics
            and self.metrics[metric.name].verdict in ("more", "fewer")
        }

    @property
    def is_explained(self) -> bool:
        """Whether it is worth showing the functions: the sum changed, or they cancel each other."""
        return bool(self.functions) and (self.verdict in ("longer", "shorter") or self.moved)

    @property
    def verdict_text(self) -> str:
        """Counts are more or fewer; only times are longer or shorter."""
        if self.verdict == "same" and (self.moved or self.beside):
            return "same in sum" if self.moved else "same path"
        return COUNT_WORDS.get(self.verdict, self.verdict)

    @property
    def cause(self) -> str:
        """What the kernel does otherwise, in words, where no single function accounts for it."""
        found = []
        for name, what in _DONE.items():
            part = self.metrics.get(name)
            if part and part.verdict != "same" and abs(part.difference) >= _ONCE:
                found.append(_otherwise(part, what(self)))
        return ", ".join(found)

    @property
    def requests(self) -> str:
        """What became of the requests of an I/O, in words: "requests 1.00 to 8.00 per I/O"; or of
        those of a program, in all; without what the cause tells of tasks."""
        digits, per = (0, "") if self.calls else (2, " per I/O")
        changed = [
            f"{metric.name} {part.before:,.{digits}f} to {part.after:,.{digits}f}"
            for metric in REQUESTS
            if (part := self.metrics.get(metric.name)) and part.verdict in ("more", "fewer")
            if not (self.cause and metric.name in _OF_TASKS)
        ]
        first, *rest = changed[:_REQUESTS] or [""]
        return first and ", ".join([f"{first}{per}", *rest])

    @property
    def switching(self) -> LayerChange | None:
        """The instructions of the scheduler, if other tasks are switched to more or less often."""
        layers = [one for one in self.layers if one.layer == SCHEDULER]
        return layers[0] if layers and self.cause else None

    def metric(self, name: str) -> Change | None:
        return self if name == PATH else self.metrics.get(name)

    @property
    def gated(self) -> Sequence[str]:
        if self.calls:
            return (PATH,) if self.calls.kind in JUDGED else ()
        # What a kernel does not count has no row.
        every = [metric for metric in METRICS if metric.gated]
        return [one.name for one in every if one not in REQUESTS or one.name in self.metrics]


# What switching to another task for each I/O brings with it.
_OF_TASKS = {"queue runs", "requeues", "wake-ups", "context switches", "work items"}
_REQUESTS = 4  # metrics of requests in a text
_ONCE = 0.5  # of what happens to each I/O
SCHEDULER = "scheduling"  # the layer
_WORKER = "worker_thread"  # the function that a worker executes for each item


def _task(change: ExactChange) -> str:
    is_worker = any(row.name == _WORKER for row in change.functions)
    return "a worker" if is_worker else "another task"


# What a kernel does for an I/O, by its metric: the verb, and what it is done to.
_DONE: dict[str, Callable[[ExactChange], tuple[str, str]]] = {
    "switches": lambda change: ("switches to", _task(change)),
    "faults": lambda change: ("takes", "a fault"),
}


def _otherwise(part: MetricChange, done: tuple[str, str]) -> str:
    """In words: what is done for an I/O now, or no longer."""
    verb, what = done
    if part.after < _ONCE:
        return f"no longer {verb} {what}"
    if part.before < _ONCE:
        return f"{verb} {what}"
    how = "more" if part.difference > 0 else "less"
    return f"{verb} {what} {how} often"


@dataclass(kw_only=True)
class ExactFigure:
    """A figure, what its boots differ by, and its values with the number of layouts of each, or of
    boots. *decides* is what of a layout decides between two values, if anything."""

    instructions: float
    spread: float
    of: str = "boots"
    levels: list[tuple[float, int]] = field(default_factory=list)
    decides: str = ""


@dataclass(kw_only=True)
class RungChange(OfRung):
    """How a rung differs on each kernel that has it."""

    rung: str
    op: str
    block_size: int
    figures: Mapping[str, ExactFigure | dict[str, TimeFigure]]
    differences: Mapping[str, Change]

    @property
    def unit(self) -> str:
        """What its figures are, in words."""
        if self.op == IO_CALLS:
            counted = all(one.calls.times[0] for one in self.differences.values())
            return "instructions per I/O" if counted else "instructions in all"
        return "instructions per I/O" if self.rung else "instructions each time"

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
    figures: dict[str, dict[str, TimeFigure]]
    differences: dict[str, Change]
    counted: dict[str, dict[str, Change]]  # of the processor's counters

    def figure(self, kernel: str) -> float | None:
        return self.figures[kernel]["ns"].median if kernel in self.figures else None


Of = TypeVar("Of", bound=RungChange)


@dataclass(kw_only=True)
class Comparison(Generic[Of]):
    """How the kernels *others* differ from *base*. *labels* say what differs besides their code,
    *brief* says it in a few words. *alike* are those whose image is that of *base*."""

    base: str
    others: list[str]
    labels: list[str]
    brief: list[str] = field(default_factory=list)
    alike: list[str] = field(default_factory=list)
    rungs: Sequence[Of]

    @property
    def names(self) -> list[str]:
        return [self.base, *self.others]

    @property
    def whole(self) -> Of | None:
        """The whole of a program."""
        return next((rung for rung in self.rungs if rung.op == WHOLE), None)

    @property
    def sizes(self) -> set[int]:
        """The block sizes of its rungs."""
        return {rung.block_size for rung in self.rungs if rung.block_size}

    def title(self, rung: RungChange) -> str:
        """A rung and its operation; and its block size, if there are several."""
        return " ".join(filter(None, (rung.title, rung.size if len(self.sizes) > 1 else "")))

    def of(self, key: Key) -> Mapping[str, Change]:
        """The differences of a rung, by kernel."""
        return next((rung.differences for rung in self.rungs if rung.key == key), {})

    def ranked(self, name: str) -> list[Of]:
        """The rungs that differ on kernel *name*, those that matter most first: the longer ones by
        per cent, the shorter ones by per cent, then those that are the same only in sum. Rungs that
        do no I/O come last."""
        found = [
            ((not rung.does_io, *rung.differences[name].rank), rung)
            for rung in self.rungs
            if name in rung.differences and rung.differences[name].is_news
        ]
        return [rung for _, rung in sorted(found, key=lambda one: one[0])]

    def extremes(self, name: str) -> dict[str, Of]:
        """The rungs that grew and shrank most by per cent on kernel *name*, and the one that
        changed most of all. A rung without I/O is not among them if another has I/O."""
        every = any(rung.does_io for rung in self.rungs)
        decided = [
            rung
            for rung in self.ranked(name)
            if rung.differences[name].verdict in ("longer", "shorter")
            and (rung.does_io or not every)
            and rung.differences[name].gated
            and rung.op not in (WHOLE, IO_CALLS)
        ]
        grown = [rung for rung in decided if rung.differences[name].grew]
        shrunk = [rung for rung in decided if not rung.differences[name].grew]
        decided.sort(key=lambda rung: -abs(rung.differences[name].difference))
        lists = {"worst": grown, "best": shrunk, "largest": decided}
        return {label: rungs[0] for label, rungs in lists.items() if rungs}

    @property
    def wanted(self) -> dict[str, int]:
        """The undecided rungs, and how many boots would decide each."""
        found: dict[str, int] = {}
        for rung in self.rungs:
            for change in rung.differences.values():
                most = max((part.wanted for part in change.judged.values()), default=0)
                if most:
                    found[rung.rung] = max(most, found.get(rung.rung, 0))
        return found

    @property
    def has_unknown(self) -> bool:
        """Whether the noise of any change is not known."""
        return any(
            change.verdict == "unknown"
            for rung in self.rungs
            for change in rung.differences.values()
        )


@dataclass(kw_only=True)
class ExactComparison(Comparison[ExactRungChange]):
    """*bridge* is used to estimate times, if there is one. *command* is the program that it is of,
    if it is not of rungs."""

    bridge: Bridge | None = None
    command: str = ""
    options: dict[str, list[str]]
    rungs: list[ExactRungChange]


@dataclass(kw_only=True)
class TimeComparison(Comparison[TimeRungChange]):
    rungs: list[TimeRungChange]
