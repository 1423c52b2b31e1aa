# SPDX-License-Identifier: GPL-2.0
"""Compare exact results: what differs beyond the noise, and what accounts for it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iopath import attribution, labels, noise
from iopath.comparison import (
    COSTLY_SUM,
    LONG_RUN,
    ExactChange,
    ExactComparison,
    ExactFigure,
    ExactRungChange,
    Metric,
    percent,
)
from iopath.layers import Layers
from iopath.profiles import COSTLY, COSTLY_INSTRUCTIONS, ExactProfile
from iopath.result import ExactRecord, ExactResult, Key, Row

# Differences of instructions per I/O that mean nothing.
_RESOLUTION = noise.RESOLUTION["instructions_per_io"]

# Fields of two results that must be equal, if their kernels are to be compared.
_SAME = ("qemu", "machine", "programs", "source")

# Fields of two records that must be equal.
_RUN = ("rounds", "ios_per_round", "batch", "long_run_ios", "command")

# The metrics of a profile. Cache lines are sums of these parts.
METRICS: dict[str, tuple[str, ...]] = {
    "locked": (),
    "indirect": (),
    "reads": (),
    "writes": (),
    "calls": (),
    "branches": (),
    "faults": (),
    "switches": (),
    "code lines": ("code_user", "code_kernel"),
    "data lines": ("data_user", "data_kernel"),
}

# The metrics of what is costly, each with the counts that it adds up.
_COSTLY = {
    COSTLY_SUM: COSTLY_INSTRUCTIONS,
    **{name.replace("_", " "): (name,) for name in COSTLY},
}
METRICS |= dict.fromkeys(_COSTLY, ())

# Expensive instructions: one more is shown whatever the sum is.
_EXPENSIVE = ("instructions", "locked", "indirect", *COSTLY)


def incomparable(results: Sequence[tuple[str, ExactResult]]) -> list[str]:
    """The differences besides the kernels, in words; none if the results are comparable."""
    first_name, first = results[0]
    found = []
    for name, other in results[1:]:
        texts = []
        one, two = (" ".join(_arches(whole)) for whole in (first, other))
        if one != two:
            texts.append(f"architecture: {one} and {two}")
        for field in _SAME:
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
        found: dict[str, dict[str, Any]] = {}
        for record in whole.results:
            run = {name: getattr(record, name) for name in _RUN}
            # The number of a region depends on what else was measured, and changes nothing.
            run["command"] = [w for w in record.command if not w.startswith("--region=")]
            found[f"{record.title} of {record.block_size} bytes"] = run
        runs.append(found)
    for name, run in runs[0].items():
        if name in runs[1] and run != runs[1][name]:
            one, two = dict(run), dict(runs[1][name])
            both = [word for word in one["command"] if word in two["command"]]
            for part in (one, two):
                part["command"] = " ".join(word for word in part["command"] if word not in both)
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
    changes = {
        name: _changes(rows, base, name, layers.renamed(executed[base], executed[name]))
        for name in others
    }
    return ExactComparison(
        base=base,
        others=others,
        labels=list(labels.labels(whole.kernels)),
        options=labels.options(whole.kernels),
        rungs=[
            ExactRungChange(
                rung=row.rung,
                op=row.op,
                block_size=row.block_size,
                figures={
                    name: ExactFigure(
                        instructions=record.instructions_per_io, spread=record.boot_spread
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
    rows: Sequence[Row], base: str, other: str, renamed: attribution.Renamed
) -> dict[Key, ExactChange]:
    """The differences of the rungs that both kernels have. All rungs are judged together."""
    both = {
        row.key: (row.records[base], row.records[other])
        for row in rows
        if base in row.records and other in row.records
    }
    verdicts: dict[Key, dict[str, noise.Verdict]] = {key: {} for key in both}
    for figure, boots in noise.BOOTS.items():
        ladder = {
            key: (getattr(one, boots), getattr(two, boots))
            for key, (one, two) in both.items()
            if getattr(one, boots) is not None and getattr(two, boots) is not None
        }
        judged = noise.judge(list(ladder.values()), noise.RESOLUTION[figure])
        for key, verdict in zip(ladder, judged, strict=True):
            verdicts[key][figure] = verdict
    return {key: _change(*records, renamed, verdicts[key]) for key, records in both.items()}


def _change(
    before: ExactRecord,
    after: ExactRecord,
    renamed: attribution.Renamed,
    verdicts: Mapping[str, noise.Verdict],
) -> ExactChange:
    one, other = before.instructions_per_io, after.instructions_per_io
    judged = verdicts["instructions_per_io"]
    pairs = []
    metrics = _long_run(before, after, verdicts)
    if before.profile and after.profile:
        pairs = attribution.pair(before.profile, after.profile, renamed)
        metrics |= _metrics(before.profile, after.profile, judged.noise)
    least = max(1 - _RESOLUTION, judged.noise or 0)
    return ExactChange(
        difference=other - one,
        percent=percent(one, other),
        noise=judged.noise,
        verdict=judged.verdict,
        findings=noise.findings(after, before),
        metrics=metrics,
        moved=any(abs(part.changes[name]) > least for part in pairs for name in _EXPENSIVE),
        layers=attribution.by_layer(pairs),
        functions=attribution.by_function(pairs),
        unattributed=other - one - attribution.attributed(pairs),
    )


def _long_run(
    before: ExactRecord, after: ExactRecord, verdicts: Mapping[str, noise.Verdict]
) -> dict[str, Metric]:
    """How the long runs differ, and which functions differ there."""
    median = verdicts["instructions_per_io"].difference
    words = {"longer": "more", "shorter": "fewer"}
    found = {}
    for name, figure in LONG_RUN.items():
        judged = verdicts.get(figure)
        if judged is None:
            continue
        one, other = getattr(before, figure), getattr(after, figure)
        found[name] = Metric(
            before=one,
            after=other,
            difference=round(judged.difference, 4),
            percent=percent(one, other),
            noise=judged.noise,
            verdict=words.get(judged.verdict, judged.verdict),
            telling=judged.noise is not None
            and abs(judged.difference - median) > max(judged.noise, noise.RESOLUTION[figure]),
            functions=attribution.in_long_run(before, after, figure),
        )
    return found


def _metrics(
    before: ExactProfile, after: ExactProfile, instructions_noise: float | None
) -> dict[str, Metric]:
    """How two profiles differ besides instructions.

    Each event is counted with an instruction, so *instructions_noise* bounds the noise of events.
    Cache lines have a noise of their own: the layout of the code changes them, too.
    """
    found = {}
    for name, lines in METRICS.items():
        if name in _COSTLY and (before.costly is None or after.costly is None):
            continue
        one, other = (_metric(profile, name) for profile in (before, after))
        own = _line_noise((before, after), lines) if lines else instructions_noise
        difference = round(other - one, 4)
        if own is None or instructions_noise is None:
            verdict = "unknown"
        elif abs(difference) <= max(own, _RESOLUTION):
            verdict = "same"
        else:
            verdict = "more" if difference > 0 else "fewer"
        found[name] = Metric(
            before=one,
            after=other,
            difference=difference,
            percent=percent(one, other),
            noise=own,
            verdict=verdict,
        )
    return found


def _metric(profile: ExactProfile, name: str) -> float:
    lines = METRICS[name]
    if lines:
        return round(sum(profile.lines[part] for part in lines), 4)
    return round(sum(map(profile.count, _COSTLY.get(name, (name,)))), 4)


def _line_noise(profiles: Sequence[ExactProfile], lines: Sequence[str]) -> float | None:
    """The noise of a difference of cache lines; None if a file does not have it."""
    parts = [(profile.lines_noise or {}).get(part) for profile in profiles for part in lines]
    if None in parts:
        return None
    return round(math.hypot(*filter(None, parts)), 4)
