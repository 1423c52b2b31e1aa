# SPDX-License-Identifier: GPL-2.0
"""Rounds that a guest might have recorded."""

from iopath.counts.longrun import LongRun
from iopath.counts.pathcount import CountedRound
from iopath.measure.rounds import RunCounts
from iopath.rungs.builtin import select
from iopath.rungs.ioloop_report import LoopJob, LoopRound, Report
from iopath.rungs.runs import Run

PREAD = select(["dio.pread"])[0]

RUN = Run(1, PREAD, "read", 4096)


def record(*rounds: tuple[int, int | None], expected: int | None = None) -> Report:
    """ioloop's report of rounds of (instructions, interrupts)."""
    parts = tuple(LoopRound(ios=100, ns=0, tsc=tsc, interrupts=number) for tsc, number in rounds)
    return Report((LoopJob(parts),), expected)


def counted(
    report: Report, over: int = 7, switches: int = 0, iterations: int = 0
) -> list[CountedRound]:
    """What the plugin counts of the rounds of *report*: all but the last *over* instructions, and
    the *iterations* of string instructions."""
    return [
        CountedRound(part.tsc - over - iterations, iterations, part.quiet, switches)
        for part in report.rounds
    ]


def run_counts(
    report: Report, mean: float = 10.0, later: float = 0.0, iterations: int = 0
) -> RunCounts:
    """What the plugin counts of a run in a boot."""
    rounds = counted(report, iterations=iterations)
    return RunCounts(rounds, LongRun(mean, mean + later, []))
