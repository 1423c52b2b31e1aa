# SPDX-License-Identifier: GPL-2.0
"""A bridge from instructions to time. It is made from the figures of a guest and of a machine for
the same kernel, and estimates the time of a difference on that machine.

The time of an I/O is a line over its instructions. Only differences are estimated, so the slope is
the one for which the absolute errors of the differences between all pairs of rungs have the
smallest sum. That is the median of the slopes of all pairs, each weighted by the number of
instructions by which the pair differs (L. A. Jaeckel, Annals of Mathematical Statistics 43 (1972),
1449-1458; F. W. Scholz, Annals of Statistics 6 (1978), 603-609). An outlier has little effect on
it.

The error of an estimate is found by leaving each rung out: the slope of the others predicts how it
differs from each of them. Few rungs determine the error less well, so the share of the errors that
is taken rises by (n + 1) / n (R. F. Barber et al., Predictive inference with the jackknife+, Annals
of Statistics 49 (2021), 486-507).
"""

import statistics
from collections.abc import Iterator, Sequence

from iopath import __version__
from iopath.base.errors import IopathError, UsageError
from iopath.compare.changes import ExactComparison, TimeEstimate
from iopath.results.bridgefile import MODE, Bridge, BridgedRung
from iopath.results.result import (
    SCHEMA,
    ExactKernel,
    ExactRecord,
    ExactResult,
    HardwareRecord,
    HardwareResult,
    Key,
    MeasuredKernel,
    Result,
    of_kernel,
)

FEWEST = 5  # rungs of different lengths, to make a bridge of
SHARE = 0.8  # of the differences, weighted by instructions, whose error is at most the bridge's

Point = tuple[float, float]  # instructions and ns


def make(host: tuple[str, Result], exact: tuple[str, Result]) -> Bridge:
    """The bridge of a machine's result and an exact one, each with the name of its file. Raises
    IopathError if they do not belong together, or if its error is too large."""
    (host_name, timed), (exact_name, counted) = host, exact
    if not isinstance(timed, HardwareResult) or not all(one.figures for one in timed.results):
        raise IopathError(f"{host_name} holds no times: must be a result of iopath measure host")
    if not isinstance(counted, ExactResult):
        raise IopathError(f"{exact_name} holds no instructions: must be a result of a guest")
    ran, kernel = _kernels((host_name, timed), (exact_name, counted))
    found = [*_both(timed.results, of_kernel(counted.results, kernel.name))]
    points = [(one.path, two.figures["ns"].median) for one, two in found]
    lengths = len({instructions for instructions, _ in points})
    if lengths < FEWEST:
        raise IopathError(
            f"{host_name} and {exact_name} have {lengths} rungs of different lengths in common:"
            f" must be {FEWEST} or more"
        )
    pairs = _pairs(points)
    slope = _slope(pairs)
    slopes = [_slope(pairs, without=number) for number in range(len(points))]
    bridge = Bridge(
        schema=SCHEMA,
        mode=MODE,
        program=f"iopath {__version__}",
        cpu_model=timed.machine.cpu_model,
        warnings=timed.machine.warnings,
        kernel=kernel.name,
        release=kernel.release,
        arch=ran.arch,
        fixed_ns=round(_fixed(points, slope), 4),
        ns_per_instruction=round(slope, 6),
        error=round(_error(points, slopes), 4),
        share=SHARE,
        rungs=[
            _rung(one, two, _predicted(points, number, slopes[number]))
            for number, (one, two) in enumerate(found)
        ],
    )
    bridge.check(f"{host_name} and {exact_name}")
    return bridge


def _kernels(
    host: tuple[str, HardwareResult], exact: tuple[str, ExactResult]
) -> tuple[MeasuredKernel, ExactKernel]:
    """The machine's kernel, and the one of the same release in the exact result."""
    (host_name, timed), (exact_name, counted) = host, exact
    if len(timed.kernels) > 1:
        raise IopathError(f"{host_name} has {len(timed.kernels)} kernels: must be of one")
    (ran,) = timed.kernels
    same = [kernel for kernel in counted.kernels if kernel.release == ran.release]
    for kernel in same:
        if kernel.arch == ran.arch:
            return ran, kernel
    if same:
        raise IopathError(
            f"{host_name} is of {ran.arch}, {same[0].name} in {exact_name} of {same[0].arch}: must"
            " be of one architecture"
        )
    have = ", ".join(kernel.release for kernel in counted.kernels)
    raise IopathError(
        f"{host_name} is of the kernel {ran.release}, {exact_name} has {have}: must have the same"
        " release"
    )


def _both(
    timed: Sequence[HardwareRecord], counted: Sequence[ExactRecord]
) -> Iterator[tuple[ExactRecord, HardwareRecord]]:
    """The rungs, operations and block sizes that both results have."""
    times = {record.key: record for record in timed if record.figures}
    return ((record, times[record.key]) for record in counted if record.key in times)


def _rung(counted: ExactRecord, timed: HardwareRecord, predicted: float) -> BridgedRung:
    figures = timed.figures or {}
    cycles, instructions = (figures.get(name) for name in ("cycles", "instructions"))
    return BridgedRung(
        rung=counted.rung,
        op=counted.op,
        block_size=counted.block_size,
        instructions=counted.path,
        ns=figures["ns"].median,
        predicted_ns=round(predicted, 4),
        cycles=cycles and cycles.median,
        pmu_instructions=instructions and instructions.median,
        absent="" if instructions else (timed.absent or {}).get("instructions", "not known"),
    )


# The line.


class _Pair:
    """Two points: the slope between them, and by how many instructions they differ."""

    __slots__ = ("ends", "slope", "weight")

    def __init__(self, one: int, other: int, points: Sequence[Point]) -> None:
        (x, y), (u, v) = points[one], points[other]
        self.ends = (one, other)
        self.slope = (v - y) / (u - x)
        self.weight = abs(u - x)


def _pairs(points: Sequence[Point]) -> list[_Pair]:
    """The pairs of points that differ in instructions, by slope."""
    found = [
        _Pair(one, other, points)
        for other in range(len(points))
        for one in range(other)
        if points[one][0] != points[other][0]
    ]
    return sorted(found, key=lambda pair: pair.slope)


def _slope(pairs: Sequence[_Pair], without: int | None = None) -> float:
    """The weighted median of the slopes of pairs, of those *without* a point."""
    return _quantile([(pair.slope, pair.weight) for pair in pairs if without not in pair.ends], 0.5)


def _quantile(values: Sequence[tuple[float, float]], share: float) -> float:
    """Of values in order, with weights: the one at which a *share* of the weight is reached."""
    wanted = share * sum(weight for _, weight in values)
    reached = 0.0
    for value, weight in values:
        reached += weight
        if reached >= wanted:
            return value
    return values[-1][0]


def _fixed(points: Sequence[Point], slope: float) -> float:
    """The constant of the line with this *slope*: the median of the residuals."""
    return statistics.median(ns - slope * instructions for instructions, ns in points)


def _predicted(points: Sequence[Point], number: int, slope: float) -> float:
    """The time of a point by the others, whose line has this *slope*."""
    others = [point for at, point in enumerate(points) if at != number]
    return _fixed(others, slope) + slope * points[number][0]


def _error(points: Sequence[Point], slopes: Sequence[float]) -> float:
    """The relative error that SHARE of the predicted differences do not exceed. Each point is left
    out in turn; *slopes* are those of the others, which predict how it differs from each of
    them."""
    errors = []
    for (x, y), slope in zip(points, slopes, strict=True):
        for u, v in points:
            if u != x:
                predicted = slope * (x - u)
                wrong = abs((y - v) - predicted)
                errors.append((wrong / abs(predicted) if predicted else 1.0, abs(x - u)))
    return _quantile(sorted(errors), min(SHARE * (len(points) + 1) / len(points), 1.0))


# Estimates.


def estimate(bridge: Bridge, key: Key, before: float, after: float) -> TimeEstimate:
    """The difference in time of a rung on the bridge's machine, if *before* and *after* are its
    instructions."""
    middle = bridge.ns_per_instruction * (after - before)
    half = abs(middle) * bridge.error
    found = TimeEstimate(low=round(middle - half, 4), high=round(middle + half, 4))
    measured = next((rung for rung in bridge.rungs if rung.key == key), None)
    if measured and measured.op != "none":
        ns = measured.ns + bridge.ns_per_instruction * (before - measured.instructions)
        if min(ns, ns + middle) > 0:
            found.iops_before, found.iops_after = round(1e9 / ns), round(1e9 / (ns + middle))
    return found


def estimates(bridge: Bridge, exact: ExactResult, kernel: str) -> dict[Key, TimeEstimate]:
    """The difference in time of each rung of the bridge on another *kernel* of the exact result."""
    counted = {record.key: record.path for record in of_kernel(exact.results, kernel)}
    return {
        rung.key: estimate(bridge, rung.key, rung.instructions, counted[rung.key])
        for rung in bridge.rungs
        if rung.key in counted
    }


def add_times(comparison: object, whole: Result, bridge: Bridge, file: str) -> None:
    """Estimate the time of each change that is not noise. Messages call the bridge *file*."""
    if not isinstance(comparison, ExactComparison):
        raise UsageError(f"--time {file}: the results hold times: must be results of guests")
    for kernel in whole.kernels:
        if kernel.arch != bridge.arch:
            raise IopathError(
                f"--time {file}: it is of {bridge.arch}, {kernel.name} of {kernel.arch}: must be of"
                " one architecture"
            )
    comparison.bridge = bridge
    for rung in comparison.rungs:
        for change in rung.differences.values():
            if change.verdict != "same":
                before = rung.figures[comparison.base].instructions
                change.time = estimate(bridge, rung.key, before, before + change.difference)
