# SPDX-License-Identifier: GPL-2.0
"""Samples of time and of the processor's counters, and the figures made from them."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from iopath.results.result import COUNTERS
from iopath.rungs.report import Report
from iopath.rungs.runs import Run


def sample(run: Run, report: Report) -> tuple[dict[str, float], dict[str, str]]:
    """The nanoseconds and counts per I/O of ioloop's report, and why other counts are missing."""
    job = report.jobs[0]
    found = {"ns": statistics.median(part.ns / part.ios for part in job.rounds)}
    absent = {}
    for name, parts in COUNTERS.items():
        if not run.counted:
            absent[name] = "the counters do not see the kernel's threads"
            continue
        counts = [(job.pmu or {})[part] for part in parts]
        reasons = [count.reason for count in counts if count.value is None]
        if reasons:
            absent[name] = reasons[0]
        else:
            found[name] = sum(count.value or 0 for count in counts) / job.ios
    return found, absent


def interval(samples: Sequence[float]) -> tuple[float, float]:
    """The 95 % confidence interval of the median of *samples*, for any distribution."""
    count, rank, tail = len(samples), 0, 0.0
    while True:
        tail += math.comb(count, rank) / 2**count
        if 2 * tail > 0.05:
            break
        rank += 1
    if not rank:
        raise ValueError("too few samples")
    ordered = sorted(samples)
    return ordered[rank - 1], ordered[count - rank]


def _between_halves(samples: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The difference of the medians of even and odd samples: one measurement taken twice."""
    return {
        name: abs(
            statistics.median(sample[name] for sample in samples[0::2])
            - statistics.median(sample[name] for sample in samples[1::2])
        )
        for name in samples[0]
    }


def record(
    run: Run,
    first: Sequence[Mapping[str, float]],
    samples: Sequence[Mapping[str, float]],
    absent: Mapping[str, str],
) -> dict[str, Any]:
    """The figures of a run from its *samples*, and their noise from the *first* ones."""
    return _record(run, [first], [samples], absent, {})


def record_boots(
    run: Run,
    first: Sequence[Sequence[Mapping[str, float]]],
    samples: Sequence[Sequence[Mapping[str, float]]],
    absent: Mapping[str, str],
) -> dict[str, Any]:
    """The figures of a guest that was booted several times, with the median of each boot."""
    boots = {
        name: [round(statistics.median(one[name] for one in part), 4) for part in samples]
        for name in samples[0][0]
    }
    return _record(run, first, samples, absent, boots)


def _record(
    run: Run,
    first: Sequence[Sequence[Mapping[str, float]]],
    parts: Sequence[Sequence[Mapping[str, float]]],
    absent: Mapping[str, str],
    boots: Mapping[str, list[float]],
) -> dict[str, Any]:
    noises = [_between_halves(part) for part in first]
    samples = [sample for part in parts for sample in part]
    figures: dict[str, dict[str, Any]] = {}
    for name in samples[0]:
        values = [sample[name] for sample in samples]
        low, high = interval(values)
        figures[name] = {
            "median": round(statistics.median(values), 4),
            "low": round(low, 4),
            "high": round(high, 4),
            "noise": round(max(noise[name] for noise in noises), 4),
        }
        if boots:
            figures[name]["boots"] = boots[name]
    return {
        "rung": run.rung.name,
        "op": run.op,
        "block_size": run.block_size,
        "figures": figures,
        "absent": dict(absent),
        "samples": len(samples),
        "batch": run.rung.batch,
    }
