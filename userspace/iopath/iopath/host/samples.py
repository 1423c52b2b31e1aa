# SPDX-License-Identifier: GPL-2.0
"""Samples of time and of the processor's counters, and the figures made from them."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from iopath.results.metrics import of_device
from iopath.results.result import COUNTERS, HardwareRecord, KernelName, TimeFigure
from iopath.rungs.ioloop_report import Report
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


def requests(report: Report) -> dict[str, float]:
    """The metrics of requests that the device of ioloop's report counts; none if it does not."""
    return of_device(report.counted.counters or {}, sum(job.ios for job in report.jobs))


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


@dataclass(frozen=True)
class Sampled:
    """What was sampled of a run on a kernel, and how: rounds, I/Os of a round, and the command."""

    kernel: KernelName
    run: Run
    absent: Mapping[str, str]
    rounds: int
    ios_per_round: int
    command: list[str]
    requests: Mapping[str, float] = field(default_factory=dict)  # what the device counted


_Samples = Sequence[Mapping[str, float]]


def record(of: Sampled, first: _Samples, samples: _Samples) -> HardwareRecord:
    """The figures of a run from its *samples*, and their noise from the *first* ones."""
    return _record(of, [first], [samples], {})


def record_boots(
    of: Sampled, first: Sequence[_Samples], samples: Sequence[_Samples]
) -> HardwareRecord:
    """The figures of a guest that was booted several times, with the median of each boot."""
    boots = {
        name: [round(statistics.median(one[name] for one in part), 4) for part in samples]
        for name in samples[0][0]
    }
    return _record(of, first, samples, boots)


def _record(
    of: Sampled,
    first: Sequence[_Samples],
    parts: Sequence[_Samples],
    boots: Mapping[str, list[float]],
) -> HardwareRecord:
    noises = [_between_halves(part) for part in first]
    samples = [sample for part in parts for sample in part]
    figures: dict[str, TimeFigure] = {}
    for name in samples[0]:
        values = [sample[name] for sample in samples]
        low, high = interval(values)
        figures[name] = TimeFigure(
            median=round(statistics.median(values), 4),
            low=round(low, 4),
            high=round(high, 4),
            noise=round(max(noise[name] for noise in noises), 4),
            boots=boots.get(name),
        )
    return HardwareRecord(
        kernel=of.kernel,
        rung=of.run.rung.name,
        op=of.run.op,
        block_size=of.run.block_size,
        command=of.command,
        figures=figures,
        absent=dict(of.absent),
        requests=dict(of.requests) or None,
        samples=len(samples),
        rounds=of.rounds,
        ios_per_round=of.ios_per_round,
        batch=of.run.rung.batch,
    )
