# SPDX-License-Identifier: GPL-2.0
"""From the rounds that a guest recorded to figures."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.rounds import RUN, counted, record, run_counts
from iopath.base.errors import IopathError
from iopath.counts.longrun import LongRun
from iopath.counts.pathcount import CountedRound
from iopath.counts.plugin_output import FlatRound
from iopath.measure.rounds import RunCounts, check_calibration, check_rounds, first_figure
from iopath.measure.rounds import figure as make_figure
from iopath.results.result import ExactRecord
from iopath.rungs.builtin import select
from iopath.rungs.ioloop_report import LoopJob, LoopRound, Report
from iopath.rungs.runs import FLAT_ROUNDS, Run, Settings, make_runs


def figure(*rounds: tuple[int, int | None], iterations: int = 0) -> ExactRecord:
    report = record(*rounds)
    counts = run_counts(report, iterations=iterations)
    return make_figure("debian:6.1", "6.1.0-56-amd64", RUN, [report], [counts])


def test_median_of_calm_rounds() -> None:
    found = figure((1000, 0), (1004, 0), (1010, 0), (9000, 1), (100, 2))
    assert found.instructions_per_io == 10.04
    assert found.spread == 0.1
    assert (found.rounds, found.rounds_with_interrupts) == (5, 2)
    assert found.mean_with_interrupts == pytest.approx(12114 / 500)


def test_first_figure() -> None:
    """The first figure needs no functions of the kernel: ioloop's report says which rounds had no
    interrupt."""
    report = record((1005, 0), (1009, 0), (1015, 0), (9000, 1), (100, None))
    each = [FlatRound(part.tsc, 5, 0, []) for part in report.rounds]
    assert first_figure(report, each) == 10.04
    report = record((9000, 1))
    assert first_figure(report, each[:1]) is None


def test_a_round_of_unknown_interrupts_is_not_calm() -> None:
    found = figure((1000, 0), (9000, None), (9000, None))
    assert found.instructions_per_io == 10
    assert found.rounds_with_interrupts == 2


def test_median_of_an_even_number_is_the_lower_of_the_middle_two() -> None:
    """It is the figure of a round, the one that the plugin has the profile of."""
    assert figure((1000, 0), (1001, 0), (1003, 0), (1004, 0)).instructions_per_io == 10.01


def test_rounds_of_all_jobs_count() -> None:
    both = Report(record((1000, 0)).jobs + record((3000, 0)).jobs)
    assert make_figure("a", "b", RUN, [both], [run_counts(both)]).instructions_per_io == 10


def test_mean_of_boots() -> None:
    boots = [record((1000, 0), (1002, 0)), record((1500, 0)), record((1100, 0), (1, 1))]
    longs = [(12.5, 1.0), (11.5, 3.0), (13.5, 0.0)]
    counts = [run_counts(boot, *long) for boot, long in zip(boots, longs, strict=True)]
    found = make_figure("a", "b", RUN, boots, counts)
    assert found.instructions_per_io == 12
    assert found.boots == [10, 15, 11]
    assert (found.mean, found.with_deferred) == (12.5, 13.8333)
    assert found.mean_boots == [12.5, 11.5, 13.5]
    assert found.with_deferred_boots == [13.5, 14.5, 13.5]
    assert found.long_run_ios == 6000
    assert (found.boot_spread, found.spread) == (5, 0.02)
    assert (found.rounds, found.rounds_with_interrupts) == (5, 1)


def test_the_figure_is_the_mean_of_the_boots() -> None:
    boots = [record((count, 0)) for count in (1300, 1000, 1100, 1200)]
    found = make_figure("a", "b", RUN, boots, [run_counts(boot) for boot in boots])
    assert found.instructions_per_io == 11.5


def test_a_boot_that_checks_has_rounds_alone() -> None:
    """The counts of short rounds and the long run are the first boot's."""
    boots = [record((1000, 0)), record((1010, 0))]
    first, second = [run_counts(boot, 12.5, 1.0) for boot in boots]
    first = replace(first, events={"locked": 3.0, "bios": 1.0})
    second = RunCounts(second.rounds)
    found = make_figure("a", "b", RUN, boots, [first, second])
    assert found.boots == [10, 10.1]
    assert found.counts == {"locked": [3.0], "bios": [1.0]}
    assert (found.mean, found.with_deferred) == (12.5, 13.5)
    assert (found.mean_boots, found.with_deferred_boots) == ([12.5], [13.5])


def test_parts_of_the_rounds() -> None:
    """Some layouts are counted with functions and memory accesses, the others without. In a boot
    that checks, all are without. All rounds of all boots are counted fully where layouts do not
    tell how much they vary, and where instructions are left out by function."""
    for name in ("dio.pread", "dio.aio.100"):
        run = run_of(name)
        first, second = run.parts(checks=False)
        assert (first.region, first.flat, second.region, second.flat) == (
            1, False, FLAT_ROUNDS | 1, True
        )  # fmt: skip
        assert words(run.command_of(first)) == ("--layouts=4", "--rounds=12")
        assert words(run.command_of(second)) == (
            "--layouts=12", "--first_layout=4", "--rounds=36"
        )  # fmt: skip
        (checking,) = run.parts(checks=True)
        assert (checking.region, checking.flat) == (FLAT_ROUNDS | 1, True)
        assert words(run.command_of(checking)) == ("--layouts=4", "--rounds=12")
        assert words(run.command) == ("--layouts=16", "--rounds=48")
        others = [
            {word for word in one if word not in words(one) and not word.startswith("--region=")}
            for one in (run.command, *map(run.command_of, (first, second, checking)))
        ]
        assert others[1:] == others[:1] * 3
    run = run_of("nvme.pread")
    assert run.parts(checks=False) == run.parts(checks=True)
    assert [part.flat for part in run.parts(checks=True)] == [False]


def test_iterations_of_string_instructions_are_no_instructions() -> None:
    """The clock counts them."""
    found = figure((1000, 0), (1004, 0), iterations=400)
    assert found.instructions_per_io == 6
    assert found.mean_with_interrupts == pytest.approx(6.02)
    check_rounds(RUN, CALM, counted(CALM, iterations=400))
    short = [replace(part, iterations=399) for part in counted(CALM, iterations=400)]
    short[1] = replace(short[1], iterations=400)
    with pytest.raises(IopathError, match="pathcount is wrong"):
        check_rounds(RUN, CALM, short)


@pytest.mark.parametrize("calm", [0, 1])
def test_too_few_calm_rounds_are_no_figure(calm: int) -> None:
    rounds = [(1000, 0)] * calm + [(1000, 1)] * 7
    with pytest.raises(IopathError, match=f"only {calm} of {calm + 7} rounds had no"):
        figure(*rounds)


@pytest.mark.parametrize("counts", [[6000], [6000, 6064], [6003, 6003]])
def test_calibration(counts: list[int]) -> None:
    check_calibration(record(*((n, 0) for n in counts), expected=6000))


@pytest.mark.parametrize(
    "rounds", [[(5999, 0)], [(6000, 0), (6065, 0)], [(12000, 0)], [(6000, 1)], []]
)
def test_calibration_that_fails(rounds: list[tuple[int, int]]) -> None:
    with pytest.raises(IopathError, match="the guest's clock does not count instructions"):
        check_calibration(record(*rounds, expected=6000))


CALM = record((1000, 0), (1004, 0), (9000, 1))


def test_clock_and_plugin_agree() -> None:
    check_rounds(RUN, CALM, counted(CALM))


def test_a_guest_that_waits_may_take_longer() -> None:
    counts = counted(CALM)
    counts[1] = replace(counts[1], instructions=500, switches=2)
    check_rounds(RUN, CALM, counts)
    check_rounds(RUN, CALM, counted(CALM, over=500, switches=1))
    counts[1] = replace(counts[1], instructions=998)
    with pytest.raises(IopathError, match="the rounds took 6, 7 instructions more than"):
        check_rounds(RUN, CALM, counts)


def test_an_interrupt_before_the_marker_is_not_counted() -> None:
    """The clock counts it, and the round is not calm."""
    report = record((1000, 0), (3552, 1), (1000, 0))
    counts = counted(report)
    counts[1] = replace(counts[0], quiet=True)
    check_rounds(RUN, report, counts)
    with pytest.raises(IopathError, match="the rounds took 7, 2559 instructions more than"):
        check_rounds(RUN, record((1000, 0), (3552, 0), (1000, 0)), counts)


@pytest.mark.parametrize("instructions", [500, 996, 998])
def test_a_round_that_the_plugin_counts_otherwise_is_refused(instructions: int) -> None:
    counts = counted(CALM)
    counts[1] = replace(counts[1], instructions=instructions)
    with pytest.raises(IopathError, match="more than were counted: pathcount is wrong"):
        check_rounds(RUN, CALM, counts)


@pytest.mark.parametrize("over", [-1, 65])
def test_what_lies_between_clock_and_marker_is_little(over: int) -> None:
    with pytest.raises(IopathError, match=f"the rounds took {over} instructions more than"):
        check_rounds(RUN, CALM, counted(CALM, over=over))


def test_rounds_that_were_not_counted_are_refused() -> None:
    with pytest.raises(IopathError, match="3 rounds, but 2 were counted"):
        check_rounds(RUN, CALM, counted(CALM)[:2])


def run_of(name: str) -> Run:
    return make_runs(Settings(select([name]), ops=["read"]))[0][0]


def words(command: Sequence[str]) -> tuple[str, ...]:
    options = ("--rounds=", "--layouts=", "--first_layout=")
    return tuple(word for word in command if word.startswith(options))


def test_without_layouts_all_boots_are_alike() -> None:
    run = run_of("dio.pread")
    run = replace(run, rung=replace(run.rung, program=Path("/bin/true")))
    (part,) = run.parts(checks=False)
    assert run.parts(checks=True) == [part]
    assert run.command_of(part) == run.command
    assert words(run.command) == ("--rounds=48",)


@pytest.mark.parametrize(
    ("interrupted", "found"), [((), [4.0, 4.0, 4.0, 9.0]), ((9, 10), [4.0] * 3)]
)
def test_layouts_of_a_further_boot(interrupted: Sequence[int], found: list[float]) -> None:
    """Each layout has three rounds. One with fewer than two undisturbed ones has no figure."""
    run = run_of("dio.pread")
    costs = [400] * 9 + [900] * 3
    rounds = [LoopRound(100, cost, int(at in interrupted)) for at, cost in enumerate(costs)]
    report = Report((LoopJob(tuple(rounds)),))
    counts = RunCounts([CountedRound(cost, 0, True, 0) for cost in costs], LongRun(0.0, 0.0, []))
    assert make_figure("", "", run, [report], [counts]).layouts == [found]


@pytest.mark.parametrize(
    ("interrupted", "found"),
    [
        ((), [4.0] * 4), ((2,), [4.0] * 3), ((0, 4), [4.0] * 2), ((2, 5, 8), [6.14] * 3 + [4.0]),
        ((2, 5, 8, 11), [6.14] * 4), ((0, 3, 4, 6, 7, 9, 10), [6.16, 4.0, 4.0, 4.0, 4.0]),
    ],
)  # fmt: skip
def test_an_interrupt_may_hide_the_lowest_round(
    interrupted: Sequence[int], found: list[float]
) -> None:
    """The rounds of a layout differ: those of io_submit end at other places of the ring."""
    run = run_of("dio.aio.100")
    rounds = [
        LoopRound(100, cost, int(at in interrupted)) for at, cost in enumerate([614, 616, 400] * 4)
    ]
    counts = RunCounts(
        [CountedRound(part.tsc, 0, True, 0) for part in rounds], LongRun(0.0, 0.0, [])
    )
    report = Report((LoopJob(tuple(rounds)),))
    assert make_figure("", "", run, [report], [counts]).layouts == [found]


def test_all_layouts_are_interrupted() -> None:
    """Of each layout's three rounds, one is calm, as where a round takes as long as two thirds of a
    tick. What a further boot shows is compared with what the first one does: all calm rounds."""
    reports, counts = [], []
    for _ in range(2):
        rounds = [LoopRound(100, 400, int(at % 3 > 0)) for at in range(12)]
        reports.append(Report((LoopJob(tuple(rounds)),)))
        ran = [CountedRound(400, 0, True, 0) for _ in rounds]
        counts.append(RunCounts(ran, LongRun(0.0, 0.0, [])))
    record = make_figure("", "", run_of("dio.pread"), reports, counts)
    assert record.layouts == [[4.0] * 4] * 2
