# SPDX-License-Identifier: GPL-2.0
"""The rules by which two kernels differ: their error rates, and what they find."""

from collections.abc import Callable, Sequence
from statistics import median_low
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from helpers.examples import a_record, a_result
from iopath.compare.exact import _Rules
from iopath.compare.noise import (
    OFTEN,
    PHASE,
    PHASE_SHARE,
    Deviation,
    in_boots,
    judge_boots,
    judge_exact,
    judge_varying,
    levels,
)
from iopath.results.findings import findings
from iopath.results.metrics import COUNTED, METRICS, TOTAL
from iopath.results.result import ExactRecord, parse

ROWS, LADDERS, PLANTED = 37, 1000, 100
BOOTS, LAYOUTS = 2, 16
RESOLUTION = 0.05
GATED = [metric for metric in METRICS if metric.gated]
COUNTS = [name for name in COUNTED if any(name == metric.name for metric in GATED)]

Source = np.random.Generator


# Whole ladders. What differs between boots of one kernel is as it was seen in 21 boots of 6.1 and
# 7.2: some rows follow the phase of a cache, by up to 0.05 % of the path, and their counts with it;
# one switches to a worker. Any count may have two values in such a row.


def a_ladder(source: Source) -> list[Any]:
    """The records of a ladder of one kernel."""
    rows = []
    for number in range(ROWS):
        path = 1000.0 + 300 * number
        varies = (number % 3 == 0) * PHASE_SHARE * path * 0.9
        if number == ROWS - 1:
            varies = 3.0
        samples = path + varies * source.integers(0, 2, size=(BOOTS, LAYOUTS))
        # Each kernel has a layout with the lowest and one with the highest value.
        samples[:, :2] = path, path + varies
        counts = {
            name: (path / 3 + varies / 3 * source.integers(0, 2, size=BOOTS)).tolist()
            for name in COUNTS
        }
        counts["data lines"] = (100 + np.round(source.normal(0, 0.7, size=BOOTS))).tolist()
        rows.append(
            SimpleNamespace(
                boots=[path] * BOOTS, path=path, layouts=samples.tolist(),
                samples=samples.ravel().tolist(), counts=counts, calls=None, profile=None,
                sharing=None,
                mean_boots=source.normal(path, 0.05, size=BOOTS).tolist(),
                with_deferred_boots=source.normal(path, TOTAL.sigma, size=BOOTS).tolist(),
                mean_with_interrupts=source.normal(path + 3, 0.7), rounds=60, ios_per_round=100,
                batch=1, long_run_ios=6000,
            )
        )  # fmt: skip
    return rows


def found(before: Sequence[Any], after: Sequence[Any]) -> list[tuple[int, str, str]]:
    """The figures that differ: rows, metrics and verdicts."""
    both = list(zip(before, after, strict=True))
    rules = _Rules.of(both)
    judged = (
        (row, metric.name, verdict.verdict)
        for row, pair in enumerate(both)
        for metric in GATED
        if (verdict := rules.judge(metric, *pair))
    )
    return [one for one in judged if one[2] != "same"]


def test_false_verdicts() -> None:
    """At most five ladders in a thousand say that a kernel differs from itself, and none is
    undecided."""
    source = np.random.default_rng(23)
    wrong = [one for _ in range(LADDERS) if (one := found(a_ladder(source), a_ladder(source)))]
    assert len(wrong) <= 0.005 * LADDERS, wrong[:3]
    assert not any(verdict == "unknown" for one in wrong for _, _, verdict in one)


def every(record: Any, by: float) -> None:  # noqa: ANN401
    record.path += by
    record.samples = [one + by for one in record.samples]


def half(record: Any) -> None:  # noqa: ANN401
    record.samples[::2] = [1.05 * one for one in record.samples[::2]]


def longer(record: Any, name: str, by: float) -> None:  # noqa: ANN401
    setattr(record, name, [one + by for one in getattr(record, name)])


def interrupted(record: Any, by: float) -> None:  # noqa: ANN401
    record.mean_with_interrupts += by


def more(record: Any, name: str, by: float) -> None:  # noqa: ANN401
    record.counts[name] = [one + by for one in record.counts[name]]


@pytest.mark.parametrize(
    ("metric", "plant"),
    [
        ("instructions", lambda record: every(record, 1.0)),
        ("instructions", half),
        ("locked", lambda record: more(record, "locked", 1.0)),
        ("mean", lambda record: longer(record, "mean_boots", 0.1 * 0.02 * record.path)),
        ("total", lambda record: longer(record, "with_deferred_boots", 12.0)),
        ("total", lambda record: longer(record, "with_deferred_boots", 20.0)),
        ("data lines", lambda record: more(record, "data lines", 9.0)),
        ("with interrupts", lambda record: interrupted(record, 30.0)),
    ],
)
def test_missed_verdicts(metric: str, plant: Callable[[Any], None]) -> None:
    """A planted cost in one row is missed in at most one ladder in a hundred."""
    source = np.random.default_rng(21)
    missed = 0
    for number in range(PLANTED):
        before, after = a_ladder(source), a_ladder(source)
        row = 3 * (number % 12) + 1
        for one in (before, after):
            one[row].counts["locked"] = [30.0, 30.0]
        plant(after[row])
        rules = _Rules.of(list(zip(before, after, strict=True)))
        (judged,) = (one for one in GATED if one.name == metric)
        missed += rules.judge(judged, before[row], after[row]).verdict != "longer"
    assert missed <= 0.01 * PLANTED


def test_one_more_tick_or_switch_in_few_ios() -> None:
    """Rounds of 1 MiB have ten I/Os. Whether one of them has a tick is chance, and so is a switch
    in a long run of 600."""
    before, after = (a_ladder(np.random.default_rng(21))[1] for _ in range(2))
    interrupted(after, 12_000 / 600)
    longer(after, "with_deferred_boots", 2_500 / 600)
    assert [name for _, name, _ in found([before], [after])] == ["total", "with interrupts"]
    for one in (before, after):
        one.ios_per_round, one.long_run_ios = 10, 600
    assert found([before], [after]) == []


@pytest.mark.parametrize(
    ("name", "instructions", "differs"),
    [
        ("mean_boots", 4_800, 0),
        ("mean_boots", 8_400, 1),
        ("with_deferred_boots", 8_400, 0),
        ("with_deferred_boots", 9_600, 1),
    ],
)
def test_one_more_turn_of_a_worker_in_few_ios(name: str, instructions: int, differs: int) -> None:
    """The writeback of 120 MiB took 8,366 more on 7.2: two switches, and the worker's loop. A task
    is switched out for less."""
    before, after = (a_ladder(np.random.default_rng(21))[1] for _ in range(2))
    for one in (before, after):
        one.ios_per_round, one.long_run_ios = 1, 120
    longer(after, name, instructions / 120)
    assert len(found([before], [after])) == differs


@pytest.mark.parametrize(("batch", "by", "differs"), [(32, 34.0, 0), (32, 60.0, 1), (1, 34.0, 1)])
def test_slow_frees_of_a_batch(batch: int, by: float, differs: int) -> None:
    """How many there are depends on the slabs of the objects: in one layout there are fewer."""
    before, after = (a_ladder(np.random.default_rng(21))[1] for _ in range(2))
    before.batch = after.batch = batch
    after.samples[3] -= by
    assert len(found([before], [after])) == differs


@pytest.mark.parametrize(("name", "by", "differs"), [("returns", 0.06, 0), ("locked", 1.0, 1)])
def test_rounds_of_several_lengths(name: str, by: float, differs: int) -> None:
    """Those of 100 I/Os by io_submit differ by 2.34. Counts are of one of them."""
    before, after = (a_ladder(np.random.default_rng(21))[1] for _ in range(2))
    for one in (before, after):
        one.boots = [figure + 2.34 for figure in one.boots]
        one.counts[name] = [50.41] * BOOTS
    more(after, name, by)
    assert len(found([before], [after])) == differs


def test_an_object_in_the_first_page_of_its_slab() -> None:
    """It takes two instructions less of 110,000. Those of 4 KiB have 2 of 2,000: a difference."""
    for path, differs in ((110_608.0, False), (2_000.0, True)):
        before, after = (a_ladder(np.random.default_rng(21))[1] for _ in range(2))
        every(before, path - before.path)
        every(after, path + 2.0 - after.path)
        for one in (before, after):
            one.boots = one.mean_boots = one.with_deferred_boots = [one.path] * BOOTS
        assert bool(found([before], [after])) == differs


# Figures that have no layouts.


def same(figure: float, boots: int = OFTEN) -> list[float]:
    return [figure] * boots


def verdict(before: list[float], after: list[float], known: float = 0.0) -> str:
    return judge_boots(before, after, known, len(METRICS), RESOLUTION).verdict


def test_a_kernel_against_itself() -> None:
    """Of figures of two values, and of such that vary around a mean, five boots differ in at most
    one of two hundred comparisons."""
    source = np.random.default_rng(22)
    for sample in (
        lambda: (3000 + 30 * source.integers(0, 2, size=OFTEN)).tolist(),
        lambda: source.normal(3000, 30, size=OFTEN).tolist(),
    ):
        wrong = sum(verdict(sample(), sample()) != "same" for _ in range(LADDERS))
        assert wrong <= 0.005 * LADDERS


def test_one_instruction_is_found() -> None:
    assert verdict(same(2694.47), same(2695.47)) == "longer"
    assert verdict(same(2694.47), same(2694.36)) == "shorter"
    assert verdict(same(2694.47), same(2694.51)) == "same"
    noisy = [100.0, 100.02, 100.0, 100.04, 100.0]
    assert verdict(noisy, noisy[::-1]) == "same"


def test_a_cost_that_most_boots_pay() -> None:
    assert verdict(same(2700.0, 7), [2700.0, *same(2760.0, 6)]) == "longer"
    before = [2700.0, 2710.0, 2720.0, 2730.0, 2715.0, 2705.0, 2725.0]
    assert verdict(before, [one + 65 for one in before]) == "longer"


def test_what_is_known_to_vary() -> None:
    """execve takes 0.5 % more in another build, in each boot."""
    assert verdict(same(100_000.0), same(100_500.0)) == "longer"
    assert verdict(same(100_000.0), same(100_500.0), 300.0) == "same"
    assert verdict(same(100_000.0), same(102_000.0), 300.0) == "longer"


@pytest.mark.parametrize("boots", range(1, OFTEN))
def test_few_boots_do_not_tell(boots: int) -> None:
    found = judge_boots(same(10.0, boots), same(10.0), 0.0, 1, RESOLUTION)
    assert (found.verdict, found.wanted, found.most) == ("unknown", OFTEN, None)


def test_the_deviation_is_of_all_rows_and_of_what_is_known() -> None:
    assert Deviation.pooled([]) == Deviation(0.0, 0)
    assert Deviation.pooled([[1.0, 3.0], [5.0, 5.0]]) == Deviation(1.0, 2)
    assert Deviation.pooled([[1.0, 3.0], [5.0, 5.0]], 2.0) == Deviation(34**0.5 / 10**0.5, 10)
    found = judge_varying([3000.0], [3100.0], Deviation(1.8, 8), 1, 5.0)
    assert (found.verdict, found.difference) == ("longer", 100.0)


# Values in words, and what the median does not show.


def test_levels_in_words() -> None:
    two = [2694.47, 2708.53, 2694.47, 2694.47, 2694.48, 2694.47, 2708.53, 2694.47]
    assert in_boots(levels(two, RESOLUTION)) == "2,694.47 in 6 of 8 boots, 2,708.53 in 2"
    assert in_boots(levels(same(20.0), RESOLUTION)) == "20.00 in 5 boots"
    many = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert in_boots(levels(many, RESOLUTION)) == "1.00 to 5.00 in 5 boots"


def recorded(**figures: Any) -> ExactRecord:  # noqa: ANN401
    """A record with these figures."""
    record = a_record("a", "dio.pread", "read", 4096, stacks=None) | {"spread": 0.0} | figures
    return parse(a_result([record])).results[0]


@pytest.mark.parametrize(
    ("mean", "found"),
    [(2694.0, 0), (2695.4, 0), (2696.9, 1), (2746.5, 1), (2693.4, 0), (2300.0, 1)],
)
@pytest.mark.parametrize("boots", [1, 2])
def test_a_mean_off_the_median_is_a_finding(mean: float, found: int, boots: int) -> None:
    means = [mean, mean + 0.1][:boots]
    texts = findings(recorded(instructions_per_io=2694.47, mean=mean, mean_boots=means))
    assert len(texts) == found
    assert all("happens less often than once per round" in text for text in texts)


@pytest.mark.parametrize(("mean", "found"), [(125670.36, 0), (125680.0, 1)])
def test_of_a_long_path_a_part_is_normal(mean: float, found: int) -> None:
    path = {"instructions_per_io": 125666.1, "mean": mean, "mean_boots": [mean]}
    assert len(findings(recorded(**path))) == found


def test_work_of_other_tasks_is_a_finding() -> None:
    """The mean is that of the program's task; the work of others is deferred work."""
    figures = {"instructions_per_io": 13307.3, "mean": 8190.4, "mean_boots": [8190.4]}
    (text,) = findings(recorded(**figures, with_deferred=13311.6))
    assert (
        text == "interrupts and other tasks execute 5,116.90 of the 13,307.30 instructions per I/O"
    )
    for deferred in (8200.0, 18000.0):
        (text,) = findings(recorded(**figures, with_deferred=deferred))
        assert "happens less often than once per round" in text


@pytest.mark.parametrize(
    ("before", "after", "found"), [(0.0, 4.9, 0), (0.0, 500.0, 1), (2.2, 3.5, 0), (20.0, 66.0, 1)]
)
def test_a_spread_that_jumps_is_a_finding(before: float, after: float, found: int) -> None:
    records = [
        recorded(instructions_per_io=10.0, mean=10.0, mean_boots=[10.0], spread=spread)
        for spread in (before, after)
    ]
    assert len(findings(records[1], records[0])) == found


def test_a_part_of_a_figure_means_nothing() -> None:
    """Each write is written back by a worker. Its switches depend on when periods of the scheduler
    end, so the totals of a kernel in two sets of boots do not meet."""
    both = [
        (
            SimpleNamespace(with_deferred_boots=[one, other], calls=None, layouts=[[1.0]]),
            SimpleNamespace(with_deferred_boots=after, calls=None, layouts=[[1.0]]),
        )
        for one, other, after in [
            (6657.3768, 6657.4907, [6656.81, 6657.0462]),
            *[(one, one, [one, one + 0.02]) for one in range(2000, 3000, 30)],
            (2500.0, 2500.0, [2500.6, 2500.6]),
        ]
    ]  # fmt: skip
    for pair in both:
        for one in pair:
            one.mean_boots, one.counts, one.mean_with_interrupts = None, {}, 0.0
            one.samples, one.long_run_ios = one.layouts[0], 6000
            one.rounds, one.ios_per_round = 60, 100
    rules = _Rules.of(both)
    verdicts = [rules.judge(TOTAL, *pair).verdict for pair in both]
    assert {*verdicts[:-1]} == {"same"}
    assert verdicts[-1] == "longer"


# The path, in layouts.

VALUES = BOOTS * LAYOUTS


def in_layouts(
    before: Sequence[float], after: Sequence[float], difference: float | None = None
) -> tuple[str, float]:
    """The verdict on the path by its values in layouts; the figures are their medians."""
    if difference is None:
        difference = median_low(after) - median_low(before)
    phase = max(PHASE, PHASE_SHARE * min(before))
    found = judge_exact(difference, before, after, RESOLUTION, phase)
    return found.verdict, round(found.difference, 2)


@pytest.mark.parametrize("by", [1.0, 0.06, -1.0, 60.0])
def test_a_cost_in_all_layouts(by: float) -> None:
    before = same(2883.23, VALUES)
    found = "longer" if by > 0 else "shorter"
    assert in_layouts(before, [one + by for one in before]) == (found, round(by, 2))


@pytest.mark.parametrize("layouts", [1, 2, 16, 31])
def test_a_cost_in_some_layouts(layouts: int) -> None:
    """The median does not show it."""
    before = same(3000.0, VALUES)
    after = [*same(3150.0, layouts), *same(3000.0, VALUES - layouts)]
    verdict, difference = in_layouts(before, after)
    assert (verdict, difference) == ("longer", 150)
    assert in_layouts(after, before)[0] == "shorter"


def test_a_layout_that_costs_more_than_before() -> None:
    """Half of the layouts cost 465 more on both kernels, and 60 more than that on the second."""
    before = [*same(7579.71, 16), *same(8044.71, 16)]
    assert in_layouts(before, before) == ("same", 0)
    assert in_layouts(before, [*same(7579.71, 20), *same(8044.71, 12)])[0] == "same"
    assert in_layouts(before, [*same(7579.71, 16), *same(8104.71, 16)]) == ("longer", 60)
    assert in_layouts(before, [*same(7639.71, 16), *same(8044.71, 16)]) == ("longer", 60)


def test_the_phase_of_a_cache_is_no_difference() -> None:
    """Sixteen instructions in one of some rounds of a hundred I/Os, where one falls or not."""
    before = [*same(2883.23, 31), 2883.39]
    assert in_layouts(before, same(2883.23, VALUES))[0] == "same"
    assert in_layouts(before, same(2884.23, VALUES)) == ("longer", 1.0)
    scheduled = [13215.52 + at % 13 * 0.15 for at in range(VALUES)]
    assert in_layouts(scheduled, [one + 1.5 for one in scheduled], 0.9)[0] == "same"


@pytest.mark.parametrize(("share", "layouts"), [(0.5, 16), (0.2, VALUES), (0.13, VALUES)])
def test_missed_layouts(share: float, layouts: int) -> None:
    """A cost that a share of the layouts pays is missed with the probability that none does."""
    source = np.random.default_rng(22)
    missed = 0
    for _ in range(LADDERS):
        after = 3000 + 150 * (source.random(layouts) < share)
        missed += in_layouts(same(3000.0, layouts), after.tolist())[0] == "same"
    assert missed / LADDERS <= 0.012


def test_what_grew_anywhere_has_grown() -> None:
    """Most layouts take less, and one takes more. The gate judges the largest growth."""
    after = [*same(2900.0, VALUES - 1), 3300.0]
    assert in_layouts(same(3000.0, VALUES), after) == ("longer", 300)
    # The highest value is gone, and so is the lowest.
    before = [2900.0, *same(3000.0, VALUES - 2), 3300.0]
    assert in_layouts(before, same(3000.0, VALUES)) == ("longer", 100)
    found = judge_exact(100.0, same(3000.0, 32), [*same(3100.0, 31), 3450.0], RESOLUTION, 1.5)
    assert (found.verdict, found.difference, found.most) == ("longer", 450.0, 450.0)
