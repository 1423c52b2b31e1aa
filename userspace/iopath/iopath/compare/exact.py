# SPDX-License-Identifier: GPL-2.0
"""Compare exact results: what differs beyond the noise, and what accounts for it."""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from iopath.compare import attribution, labels, noise
from iopath.compare.changes import (
    CallsChange,
    ExactChange,
    ExactComparison,
    ExactFigure,
    ExactRungChange,
    MetricChange,
    percent,
)
from iopath.compare.noise import Deviation, Family, Verdict
from iopath.results.findings import contradiction, findings
from iopath.results.layers import Layers
from iopath.results.metrics import INSTRUCTIONS, LONG_RUN, METRICS, TOTAL, Metric
from iopath.results.profiles import COSTLY
from iopath.results.result import ExactRecord, ExactResult, Key, Row
from iopath.results.syscalls import JUDGED

# Counts of a function that matter if they differ by one, even if the sum is the same.
_MOVED = ("instructions", "locked", "indirect", *COSTLY)

# Fields of two results that must be equal before their kernels can be compared.
SAME = ("qemu", "machine", "programs", "source", "device")

# Fields of two records that must be equal.
_SCENARIO = "program, files, modules and steps"
_RUN = ("ios_per_round", "batch", "long_run_ios", "drain_ms", "command")


def incomparable(results: Sequence[tuple[str, ExactResult]]) -> list[str]:
    """The differences besides the kernels, in words; none if the results are comparable."""
    first_name, first = results[0]
    found = [
        f"{record.title}: {text} ({name})"
        for name, whole in results
        for record in whole.results
        if (text := contradiction(record))
    ]
    for name, other in results[1:]:
        texts = []
        one, two = (" ".join(_arches(whole)) for whole in (first, other))
        if one != two:
            texts.append(f"architecture: {one} and {two}")
        for field in SAME:
            one, two = getattr(first, field), getattr(other, field)
            if one != two:
                texts.append(f"{field}: {_differing(one, two)}")
        for field in ("zero_fill", "coherent"):
            if getattr(first.kernels[0], field) != getattr(other.kernels[0], field):
                texts.append(field)
        texts += _run_differently(first, other)
        found += [f"{text} ({first_name}, {name})" for text in texts]
    return found


def _arches(whole: ExactResult) -> list[str]:
    return sorted({kernel.arch for kernel in whole.kernels})


def _run_differently(first: ExactResult, other: ExactResult) -> Iterator[str]:
    """The rungs that were run in different ways, and how."""
    runs = []
    for whole in (first, other):
        found: dict[str, dict[str, object]] = {}
        for record in whole.results:
            run = {name: getattr(record, name) for name in _RUN}
            run[_SCENARIO] = record.scenario
            run["rounds of each boot"] = record.rounds // len(record.boots)
            # The number of a region depends on what else was measured, and changes nothing.
            run["command"] = [w for w in record.command if not w.startswith("--region=")]
            found[f"{record.title} of {record.block_size} bytes"] = run
        runs.append(found)
    for name, run in runs[0].items():
        if name in runs[1] and run != runs[1][name]:
            one, two = dict(run), dict(runs[1][name])
            if None in (one[_SCENARIO], two[_SCENARIO]):
                two[_SCENARIO] = one[_SCENARIO]  # an older file lacks it
            both = [word for word in one["command"] if word in two["command"]]
            for part in (one, two):
                part["command"] = " ".join(word for word in part["command"] if word not in both)
            if one != two:
                yield f"{name}: {_differing(one, two)}"


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
                        levels=noise.levels(record.samples, INSTRUCTIONS.resolution),
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


def _changes(
    rows: Sequence[Row],
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
    judged = [one for one, _ in both.values() if not one.calls or one.calls.kind in JUDGED]
    rules = _Rules(Family(len(judged), len(METRICS)), _deviations(both.values()))
    return {key: _change(*records, renamed, compilers, rules) for key, records in both.items()}


@dataclass(frozen=True)
class _Rules:
    """What the rows of two kernels that are judged together have in common: the *family*, and the
    deviations of figures of the long run, by metric."""

    family: Family
    deviations: Mapping[str, Deviation]

    def judge(
        self, metric: Metric, one: noise.Boots, other: noise.Boots, least: float,
        path: Verdict | None,
    ) -> Verdict:  # fmt: skip
        """The verdict on the boots of a metric. Up to *least*, they are the same; *path* is the
        verdict on the path by its layouts, if it has any."""
        if path is None or metric not in METRICS:
            return noise.judge(one, other, self.family, least)
        if metric is INSTRUCTIONS:
            return path
        if metric.name in self.deviations:
            figures = self.family.rows * len(self.deviations)
            return noise.judge_varying(one, other, self.deviations[metric.name], figures, least)
        expected = path.verdict != noise.SAME
        return noise.judge_agreeing(one, other, self.family, least, expected=expected)


def judge(metric: Metric, before: ExactRecord, after: ExactRecord) -> Verdict | None:
    """The verdict on one metric of two records, alone; None if either lacks it."""
    one, other = metric.value(before), metric.value(after)
    if not one or not other:
        return None
    rules = _Rules(Family(1, 1), _deviations([(before, after)]))
    least = max(metric.resolution, _layout(metric, before, after))
    return rules.judge(metric, one, other, least, _judge_layouts(before, after))


def _judge_layouts(before: ExactRecord, after: ExactRecord) -> Verdict | None:
    """The verdict on the path of two records that have several layouts."""
    if not before.layouts or not after.layouts:
        return None
    return noise.judge_layouts(
        after.path - before.path, before.samples, after.samples, INSTRUCTIONS.resolution
    )


def _deviations(both: Iterable[tuple[ExactRecord, ExactRecord]]) -> dict[str, Deviation]:
    """The deviations of the metrics that vary around a mean, by all rows that have them."""
    records = [record for pair in both for record in pair]
    return {
        metric.name: Deviation.pooled(filter(None, map(metric.value, records)), metric.sigma)
        for metric in METRICS
        if metric.sigma
    }


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
    path = _judge_layouts(before, after)
    changes = {
        metric.name: change
        for metric in METRICS
        if (change := _metric(metric, before, after, path, rules)) is not None
    }
    own = changes.pop(INSTRUCTIONS.name)
    for metric in LONG_RUN:
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
    )


def _calls(before: ExactRecord, after: ExactRecord) -> CallsChange | None:
    one, two = before.calls, after.calls
    if not one or not two:
        return None
    return CallsChange(
        kind=one.kind,
        times=(statistics.fmean(one.times), statistics.fmean(two.times)),
        instructions=(statistics.fmean(one.instructions), statistics.fmean(two.instructions)),
    )


def _in_layouts(own: MetricChange, after: ExactRecord) -> Iterator[str]:
    """That only some layouts have the new figure, in words."""
    found = noise.levels(after.samples, INSTRUCTIONS.resolution)
    if after.layouts and own.verdict != noise.SAME and len(found) > 1:
        yield noise.in_boots(found, "layouts")


def _metric(
    metric: Metric, before: ExactRecord, after: ExactRecord, path: Verdict | None, rules: _Rules
) -> MetricChange | None:
    """How a metric of two records differs; None if either lacks it."""
    sides = metric.value(before), metric.value(after)
    if not sides[0] or not sides[1]:
        return None
    layout = _layout(metric, before, after)
    least = max(metric.resolution, layout)
    judged = rules.judge(metric, *sides, least, path)
    one, other = map(statistics.fmean, sides)
    words = {} if metric is INSTRUCTIONS else {noise.LONGER: "more", noise.SHORTER: "fewer"}
    return MetricChange(
        before=round(one, 4),
        after=round(other, 4),
        difference=round(judged.difference, 4),
        percent=percent(one, one + judged.difference),
        noise=None if judged.noise is None else round(max(judged.noise, layout), 4),
        verdict=words.get(judged.verdict, judged.verdict),
        wanted=judged.wanted,
        most=None if judged.most is None else percent(one, one + judged.most),
        reason=noise.reason(judged, *sides, least) if judged.verdict == noise.UNKNOWN else "",
    )


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
    change.functions = attribution.in_long_run(before, after, deferred=metric is TOTAL)
    if metric is TOTAL and before.all_parts and after.all_parts:
        old, new = before.all_parts, after.all_parts
        change.parts = {
            name: round(new.get(name, 0) - old.get(name, 0), 4)
            for name in dict.fromkeys([*old, *new])
        }
