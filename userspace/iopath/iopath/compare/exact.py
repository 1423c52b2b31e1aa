# SPDX-License-Identifier: GPL-2.0
"""Compare exact results: what differs beyond the noise, and what accounts for it."""

import math
import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from iopath.compare import attribution, labels, layouts, noise, sharing_changes
from iopath.compare.changes import (
    COUNT_WORDS,
    CallsChange,
    ExactChange,
    ExactComparison,
    ExactFigure,
    ExactRungChange,
    MetricChange,
    judged_change,
)
from iopath.compare.noise import Deviation, Verdict
from iopath.results.findings import findings
from iopath.results.layers import Layers
from iopath.results.metrics import (
    INSTRUCTIONS,
    INTERRUPTS,
    LONG_RUN,
    METRICS,
    REQUESTS,
    TOTAL,
    Metric,
)
from iopath.results.profiles import COSTLY
from iopath.results.result import (
    ExactKernel,
    ExactRecord,
    ExactResult,
    Key,
    Row,
    of_kernel,
    title,
)
from iopath.results.syscalls import JUDGED, known_deviation, sum_of

# Counts of a function that matter if they differ by one, even if the sum is the same.
_MOVED = ("instructions", "locked", "indirect", *COSTLY)

# What kernels were measured with, which must be the same.
SAME = ("qemu", "machine", "programs", "source", "device")

# What takes a hundred instructions or more each time.
_EVENTS = {"faults", "switches"}
_EVENT = 100

# Of the instructions by which two rounds differ, one of so many is of a given kind.
_OF_A_KIND = 10

# Fields of two records that must be equal.
_SCENARIO = "program, files, modules and steps"
_RUN = ("ios_per_round", "batch", "long_run_ios", "drain_ms")


def incomparable(whole: ExactResult) -> list[str]:
    """What differs besides the kernels, in words; none if they are comparable with the first."""
    first, *others = whole.kernels
    return [
        f"{text} ({first.name}, {other.name})"
        for other in others
        for text in _apart(whole, first, other)
    ]


def _apart(whole: ExactResult, first: ExactKernel, other: ExactKernel) -> Iterator[str]:
    if first.arch != other.arch:
        yield f"architecture: {first.arch} and {other.arch}"
    sides = [whole.instrument(kernel) for kernel in (first, other)]
    for field in SAME:
        one, two = (getattr(side, field) for side in sides)
        if one != two:
            yield f"{field}: {_differing(one, two)}"
    for field in ("zero_fill", "coherent"):
        if getattr(first, field) != getattr(other, field):
            yield field
    runs = [
        {record.key: _run(record) for record in of_kernel(whole.results, kernel.name)}
        for kernel in (first, other)
    ]
    for key, (one, words) in runs[0].items():
        two, others = runs[1].get(key, (one, words))
        if one == two and words == others:
            continue
        both = [word for word in words if word in others]
        for part, own in ((one, words), (two, others)):
            part["command"] = " ".join(word for word in own if word not in both)
        yield f"{title(*key[:2])} of {key[-1]} bytes: {_differing(one, two)}"


def _run(record: ExactRecord) -> tuple[dict[str, object], list[str]]:
    """How a record was measured, and its command. The number of a region depends on what else was
    measured, and changes nothing."""
    found: dict[str, object] = {name: getattr(record, name) for name in _RUN}
    found[_SCENARIO] = record.scenario
    found["rounds of each boot"] = record.rounds // len(record.boots)
    return found, [word for word in record.command if not word.startswith("--region=")]


def _differing(one: object, other: object) -> str:
    """What differs, field by field if there are fields."""
    first, second = (
        part if isinstance(part, dict) else getattr(part, "__dict__", None) for part in (one, other)
    )
    if first is None or second is None:
        return f"{str(one)[:40]!r} and {str(other)[:40]!r}"
    keys = [key for key in first | second if first.get(key) != second.get(key)]
    return ", ".join(
        f"{key} {str(first.get(key))[:40]!r} and {str(second.get(key))[:40]!r}" for key in keys
    )


def compare(whole: ExactResult, layers: Layers) -> ExactComparison:
    """Compare every kernel of a result with its first one."""
    base, *others = whole.names
    rows = whole.rows()
    executed = attribution.executed(whole)
    options = labels.options(whole.kernels)
    kernels = dict(zip(whole.names, whole.kernels, strict=True))
    changes = {
        name: _changes(
            rows,
            base,
            name,
            layers.renamed(executed[base], executed[name]),
            labels.built_by(kernels[base], kernels[name]),
        )
        for name in others
    }
    return ExactComparison(
        base=base,
        others=others,
        labels=list(labels.labels(whole.kernels, options)),
        brief=labels.brief(whole.kernels, options),
        alike=[name for name in others if _image(kernels[name]) == _image(kernels[base])],
        options=options,
        command=whole.command,
        rungs=[
            ExactRungChange(
                rung=row.rung,
                op=row.op,
                block_size=row.block_size,
                figures={
                    name: ExactFigure(
                        instructions=record.instructions_per_io,
                        spread=record.boot_spread,
                        of="layouts" if record.layouts else "boots",
                        levels=(found := noise.levels(record.samples, INSTRUCTIONS.resolution)),
                        decides=layouts.deciding(record, found),
                    )
                    for name, record in row.records.items()
                },
                differences={
                    name: changes[name][row.key] for name in others if row.key in changes[name]
                },
            )
            for row in rows
        ],
    )


def _image(kernel: ExactKernel) -> str:
    return kernel.digests["vmlinuz"]


def _changes(
    rows: Sequence[Row[ExactRecord]],
    base: str,
    other: str,
    renamed: attribution.Renamed,
    compilers: Sequence[str],
) -> dict[Key, ExactChange]:
    """The differences of the rungs that both kernels have."""
    both = {
        row.key: (row.records[base], row.records[other])
        for row in rows
        if base in row.records and other in row.records
    }
    rules = _Rules.of(both.values())
    return {key: _change(*records, renamed, compilers, rules) for key, records in both.items()}


@dataclass(frozen=True)
class _Rules:
    """What the rows of two kernels that are judged together have in common: their number, and the
    deviations of the metrics that vary, by name."""

    rows: int
    deviations: Mapping[str, Deviation]

    @classmethod
    def of(cls, both: Collection[tuple[ExactRecord, ExactRecord]]) -> "_Rules":
        records = [record for pair in both for record in pair]
        deviations = {
            metric.name: Deviation.pooled(filter(None, map(metric.value, records)), metric.sigma)
            for metric in METRICS
            if metric.sigma
        }
        judged = [one for one, _ in both if not one.calls or one.calls.kind in JUDGED]
        return cls(max(1, len(judged)), deviations)

    def judge(self, metric: Metric, before: ExactRecord, after: ExactRecord) -> Verdict | None:
        """The verdict on a metric of two records; None if either lacks it."""
        one, other = metric.value(before), metric.value(after)
        if not one or not other:
            return None
        share = metric.share * abs(min(one))
        least = max(metric.resolution, share, _layout(metric, before, after))
        if metric.sigma:
            # The mean and the total are those of one layout of one boot.
            if metric in LONG_RUN and before.layouts and after.layouts:
                least += _varies(before, after)
            figures = self.rows * len(self.deviations)
            return noise.judge_varying(one, other, self.deviations[metric.name], figures, least)
        if not before.layouts or not after.layouts:
            own = metric is INSTRUCTIONS
            known = max(_known(record) for record in (before, after)) if own else 0.0
            return noise.judge_boots(one, other, known, self.rows * len(METRICS), least)
        if metric is INSTRUCTIONS:
            phase = max(noise.phase(min(before.samples), before.batch), least)
            difference = after.path - before.path
            return noise.judge_exact(difference, before.samples, after.samples, least, phase)
        # A count of the path varies by no more than the path does. Requests are of the long run.
        varies = max(_varies(before, after), _lengths(before, after) / _OF_A_KIND)
        if metric.name in _EVENTS:
            varies /= _EVENT
        if metric in REQUESTS:
            varies = 0.0
        least = max(least, varies)
        difference = statistics.fmean(other) - statistics.fmean(one)
        return noise.judge_exact(difference, one, other, least, least)


def judge(metric: Metric, before: ExactRecord, after: ExactRecord) -> Verdict | None:
    """The verdict on one metric of two records, alone; None if either lacks it."""
    return _Rules.of([(before, after)]).judge(metric, before, after)


def _varies(*records: ExactRecord) -> float:
    """By how much the path of a record differs between its layouts and boots, at most."""
    return max(max(one.samples) - min(one.samples) for one in records)


def _lengths(*records: ExactRecord) -> float:
    """By how much the rounds of a layout differ. A count is that of one round."""
    return max(abs(figure - min(one.samples)) for one in records for figure in one.boots)


def _known(record: ExactRecord) -> float:
    """The known deviation of a figure of a program's part, in its instructions."""
    return record.path * known_deviation(record.op) if record.calls else 0.0


def _layout(metric: Metric, before: ExactRecord, after: ExactRecord) -> float:
    """By how much a metric may differ because of where another build put the code."""
    return math.hypot(metric.layout(before), metric.layout(after))


def _change(
    before: ExactRecord,
    after: ExactRecord,
    renamed: attribution.Renamed,
    compilers: Sequence[str],
    rules: _Rules,
) -> ExactChange:
    """How two records differ."""
    changes = {
        metric.name: change
        for metric in METRICS
        if (change := _metric(metric, before, after, rules)) is not None
    }
    own = changes.pop(INSTRUCTIONS.name)
    for metric in (*LONG_RUN, INTERRUPTS):
        if metric.name in changes:
            _explain(metric, changes[metric.name], own.difference, before, after)
    pairs = []
    if before.profile and after.profile:
        pairs = attribution.pair(before.profile, after.profile, renamed, compilers)
    least = max(1 - INSTRUCTIONS.resolution, own.noise or 0)
    return ExactChange(
        difference=own.difference,
        percent=own.percent,
        noise=own.noise,
        verdict=own.verdict,
        most=own.most,
        reason=own.reason,
        wanted=own.wanted,
        findings=[*_in_layouts(own, after), *findings(after, before)],
        metrics=changes,
        moved=any(abs(part.changes[name]) > least for part in pairs for name in _MOVED),
        layers=attribution.by_layer(pairs),
        functions=attribution.by_function(pairs),
        unattributed=own.difference - attribution.attributed(pairs),
        calls=_calls(before, after),
        shares=sharing_changes.judged(before, after, rules.rows),
    )


def _calls(before: ExactRecord, after: ExactRecord) -> CallsChange | None:
    one, two = before.calls, after.calls
    if not one or not two:
        return None
    return CallsChange(
        kind=one.kind,
        part_of=sum_of(one.kind, before.op),
        times=(statistics.fmean(one.times), statistics.fmean(two.times)),
        instructions=(statistics.fmean(one.instructions), statistics.fmean(two.instructions)),
    )


def _in_layouts(own: MetricChange, after: ExactRecord) -> Iterator[str]:
    """That only some layouts have the new figure, in words."""
    found = noise.levels(after.samples, INSTRUCTIONS.resolution)
    if after.layouts and own.verdict != noise.SAME and len(found) > 1:
        yield noise.in_boots(found, "layouts", layouts.deciding(after, found))


def _metric(
    metric: Metric, before: ExactRecord, after: ExactRecord, rules: _Rules
) -> MetricChange | None:
    """How a metric of two records differs; None if either lacks it."""
    judged = rules.judge(metric, before, after)
    if judged is None:
        return None
    values = metric.value(before), metric.value(after)
    words = {} if metric is INSTRUCTIONS else COUNT_WORDS
    return judged_change(judged, *values, layout=_layout(metric, before, after), words=words)


def _explain(
    metric: Metric,
    change: MetricChange,
    difference: float,
    before: ExactRecord,
    after: ExactRecord,
) -> None:
    """Set whether a metric of the long run differs by another amount than the median does, and
    which functions differ there."""
    change.telling = change.noise is not None and abs(change.difference - difference) > max(
        change.noise, metric.resolution
    )
    if metric in LONG_RUN:
        change.functions = attribution.in_long_run(before, after, deferred=metric is TOTAL)
    if metric is TOTAL and before.all_parts and after.all_parts:
        old, new = before.all_parts, after.all_parts
        change.parts = {
            name: round(new.get(name, 0) - old.get(name, 0), 4)
            for name in dict.fromkeys([*old, *new])
        }
