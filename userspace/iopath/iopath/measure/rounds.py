# SPDX-License-Identifier: GPL-2.0
"""From the rounds that guests recorded to the figures of a rung."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from iopath.base.errors import Interrupted, IopathError
from iopath.counts.longrun import LongRun
from iopath.counts.pathcount import CountedRound
from iopath.counts.plugin_output import FlatRound
from iopath.results.iorequests import Requests
from iopath.results.model import Model
from iopath.results.result import REST, ExactRecord, KernelName
from iopath.rungs.ioloop_report import Report
from iopath.rungs.rung import ROUNDS
from iopath.rungs.runs import CALM, DRAIN_MS, Run

_OVERHEAD = 64  # instructions between two readings of the counter outside the loop


@dataclass(frozen=True)
class RunCounts:
    """What the plugin counted of a run in one boot: each round; and, but for a boot that checks
    another one, its long run, the metrics, what a modelled CPU would have missed in a short round,
    and what became of the I/Os of the long run."""

    rounds: list[CountedRound]
    long: LongRun | None = None
    events: dict[str, float] = field(default_factory=dict)
    model: Model | None = None
    requests: Requests | None = None


def check_calibration(report: Report) -> None:
    """Check that the guest's clock counts instructions: a known loop must take its length."""
    expected = report.expected_instructions
    if expected is None:
        raise IopathError("ioloop's calibration does not say how many instructions it has")
    measured = [part.tsc for part in report.rounds if part.quiet]
    if not measured or not 0 <= min(measured) - expected <= max(measured) - expected <= _OVERHEAD:
        raise IopathError(
            f"the guest's clock does not count instructions: a loop of {expected} took"
            f" {', '.join(map(str, measured)) or 'too long'}"
        )


def check_rounds(run: Run, report: Report, counted: Sequence[CountedRound]) -> None:
    """Check that the guest's clock counts the instructions of each round and the iterations of
    string instructions as the plugin does, except those between the clock's readings and the
    markers, which are the same in all rounds. If another task runs, the guest may wait: then its
    clock goes on, and nothing is counted. An interrupt may also come between the clock's reading
    and the marker: the report has it, and the plugin has not."""
    if len(report.rounds) != len(counted):
        raise IopathError(
            f"{run.title}: {len(report.rounds)} rounds, but {len(counted)} were counted:"
            " ioloop and pathcount differ"
        )
    over = [
        (
            part.tsc - count.instructions - count.iterations,
            count.switches or (count.quiet and not part.quiet),
        )
        for part, count in zip(report.rounds, counted, strict=True)
    ]
    steady = {ticks for ticks, longer in over if not longer}
    least = min(steady, default=0)
    if len(steady) > 1 or not 0 <= least <= _OVERHEAD or min(over)[0] < least:
        raise IopathError(
            f"{run.title}: by the guest's clock the rounds took"
            f" {', '.join(str(ticks) for ticks in sorted({ticks for ticks, _ in over}))}"
            " instructions more than were counted: pathcount is wrong"
        )


def figure(
    name: str,
    release: str,
    run: Run,
    reports: Sequence[Report],
    counts: Sequence[RunCounts],
) -> ExactRecord:
    """The record of one rung, from ioloop's report and the figures of the long run of each boot.

    The figure of a boot is the median of the rounds without an interrupt: if their number is even,
    the lower of the middle two, as in the plugin, so that the profile adds up to it. Its spread is
    their largest less their smallest. The figure of the rung is the mean of the boots. The profile
    and the model are of the first boot, and where a run has layouts, so is its long run.

    The guest's clock counts instructions and iterations of string instructions. The iterations are
    subtracted. The clock also runs while the guest waits for an interrupt. If I/Os end by an
    interrupt, the plugin's count is used instead, without the instructions of the idle loop.
    """
    figures, layouts, spreads, interrupted, whole = [], [], [], 0, []
    for report, counted in zip(reports, counts, strict=True):
        if run.rung.interrupts or run.rung.waits:
            rounds = [
                ((part.instructions - part.idle) / run.ios, part.quiet) for part in counted.rounds
            ]
        else:
            rounds = _by_clock(report, counted.rounds)
        calm = [figure for figure, quiet in rounds if quiet]
        if len(calm) < len(rounds) * CALM:
            raise Interrupted(
                f"only {len(calm)} of {len(rounds)} rounds had no interrupt: {run.ios} I/Os, with"
                " what they defer, take longer than the timer's tick, or wait for it"
            )
        figures.append(statistics.median_low(calm))
        layouts.append(_by_layout(rounds, ROUNDS // run.layouts))
        spreads.append(max(calm) - min(calm))
        interrupted += len(rounds) - len(calm)
        whole += [figure for figure, _ in rounds]
    longs = [counted.long for counted in counts if counted.long]
    means = [long.mean for long in longs]
    deferred = [long.with_deferred for long in longs]
    return ExactRecord(
        kernel=KernelName(name=name, release=release),
        rung=run.rung.name,
        op=run.op,
        block_size=run.block_size,
        instructions_per_io=_mean(figures),
        spread=round(max(spreads), 4),
        boots=[round(figure, 4) for figure in figures],
        boot_spread=round(max(figures) - min(figures), 4),
        layouts=layouts if run.layouts > 1 else None,
        mean=_mean(means),
        mean_boots=means,
        with_deferred=_mean(deferred),
        with_deferred_boots=deferred,
        all_parts=_mean_parts([long.parts for long in longs], _mean(deferred)),
        long_run_ios=run.long_ios,
        drain_ms=DRAIN_MS,
        counts={
            name: [part.events[name] for part in counts if name in part.events]
            for name in counts[0].events
        },
        mean_with_interrupts=round(statistics.fmean(whole), 4),
        rounds=len(whole),
        rounds_with_interrupts=interrupted,
        ios_per_round=run.ios,
        batch=run.rung.batch,
        command=run.command,
        scenario=run.rung.digest,
        model=counts[0].model,
        requests=counts[0].requests,
    )


def first_figure(report: Report, counted: Sequence[FlatRound]) -> float | None:
    """The median of the rounds in which ioloop saw no interrupt; None if each had one."""
    calm = [figure for figure, quiet in _by_clock(report, counted) if quiet]
    return statistics.median_low(calm) if calm else None


def _by_clock(
    report: Report, counted: Sequence[CountedRound] | Sequence[FlatRound]
) -> list[tuple[float, bool]]:
    """The instructions per I/O of each round by the guest's clock, and whether ioloop saw no
    interrupt."""
    return [
        ((part.tsc - count.iterations) / part.ios, part.quiet)
        for part, count in zip(report.rounds, counted, strict=True)
    ]


def _by_layout(rounds: Sequence[tuple[float, bool]], each: int) -> list[float]:
    """The lowest of the rounds of each layout, which has *each* so many: what a layout costs is in
    all its rounds, and rare work, which the mean has, in few. Rounds with an interrupt do not
    count. A layout needs two other rounds. If fewer than half of the layouts have two, all rounds
    that count are returned instead: they show how much the figure varies. A layout with both kinds
    of rounds is left out if those that count differ, because the lowest may be missing. It is kept
    if more than half of the layouts would be left out."""
    parts = [rounds[at : at + each] for at in range(0, len(rounds), each)]
    calm = [[figure for figure, quiet in part if quiet] for part in parts]
    found = [part for part in calm if len(part) > 1]
    if 2 * len(found) < len(parts):
        return [round(figure, 4) for part in calm for figure in part]
    known = [part for part in found if len(part) == each or len({*part}) == 1]
    if 2 * len(known) >= len(parts):
        found = known
    return [round(min(part), 4) for part in found]


def _mean_parts(boots: Sequence[Mapping[str, float]], whole: float) -> dict[str, float]:
    """The means of the parts over several boots. With the rest, they add up to the *whole*."""
    names = dict.fromkeys(name for boot in boots for name in boot if name != REST)
    found = {name: _mean([boot.get(name, 0) for boot in boots]) for name in names}
    return {**found, REST: round(whole - sum(found.values()), 4)}


def _mean(boots: Sequence[float]) -> float:
    return round(statistics.fmean(boots), 4)
