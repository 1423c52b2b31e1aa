# SPDX-License-Identifier: GPL-2.0
"""The rule by which two kernels differ: its error rates, and what it finds."""

from collections.abc import Callable, Sequence
from statistics import median_low
from typing import Any

import numpy as np
import pytest

from helpers.examples import a_record, a_result
from iopath.compare.noise import (
    FEWEST,
    LADDER,
    Deviation,
    Family,
    Verdict,
    in_boots,
    judge,
    judge_agreeing,
    judge_layouts,
    judge_varying,
    levels,
)
from iopath.results.findings import findings
from iopath.results.metrics import LONG_RUN, METRICS, TOTAL, Metric
from iopath.results.result import ExactRecord, parse

ROWS, LADDERS = 37, 1000
WHOLE = Family(ROWS, len(METRICS))
ALONE = Family(1, len(METRICS))
RESOLUTION = 0.05

# The boots of the figures of many ladders: by ladder, boot, row and figure of the row. Some figures
# of a row vary around a mean; others follow its path or the layout of memory.
Figures = np.ndarray
Source = np.random.Generator
VARYING = 4


def figures(source: Source, boots: int, path: Figures, layout: Figures) -> Figures:
    """Figures around 3,000, which vary by hundredths to tens, depending on the row. *path* and
    *layout* say in which boots a row has another path or layout."""
    scale = (0.01 * 1.25 ** np.arange(ROWS))[:, None]
    varying = source.normal(size=(LADDERS, boots, ROWS, VARYING)) * scale
    return 3000 + np.concatenate([varying, path[..., None], layout[..., None]], axis=-1)


def each_row(chance: float, rows: int = ROWS) -> Callable[[Source, int], Figures]:
    """Some rows have another path in some boots, and every fifth row another layout."""

    def boots(source: Source, count: int) -> Figures:
        path, layout = source.random((2, LADDERS, count, ROWS)) < chance
        row = np.arange(ROWS)
        return figures(source, count, path & (row < rows), layout & (row < rows) & (row % 5 == 0))

    return boots


def together(chance: float) -> Callable[[Source, int], Figures]:
    """In each boot, one layout of memory decides for a fifth of the rows together."""

    def boots(source: Source, count: int) -> Figures:
        moved = source.random((LADDERS, count, 1)) < chance
        rows = moved & (np.arange(ROWS) % 5 == 0)
        return figures(source, count, rows, rows)

    return boots


def wrong(boots: Callable[[Source, int], Figures], count: int) -> float:
    """The share of ladders of a kernel against itself in which any figure differs. Figures whose
    boots overlap are judged in the first ladders only, where they must not differ."""
    source = np.random.default_rng(20)
    before, after = boots(source, count), boots(source, count)
    apart = (before.min(1) > after.max(1)) | (after.min(1) > before.max(1))
    apart[:3] = True
    found = set()
    for ladder, row, figure in np.argwhere(apart):
        sides = (side[ladder, :, row, figure].tolist() for side in (before, after))
        if judge(*sides, WHOLE, RESOLUTION).verdict in ("longer", "shorter"):
            found.add(ladder)
    return len(found) / LADDERS


NOISES = [
    pytest.param(each_row(0.5), id="each-row"),
    pytest.param(each_row(0.2), id="each-row-seldom"),
    pytest.param(each_row(0.02), id="each-row-very-seldom"),
    pytest.param(each_row(0.5, 4), id="four-rows"),
    pytest.param(each_row(0.0), id="around-a-mean-only"),
    pytest.param(together(0.5), id="layout"),
    pytest.param(together(0.1), id="layout-seldom"),
]


@pytest.mark.parametrize("boots", NOISES)
def test_false_verdicts(boots: Callable[[Source, int], Figures]) -> None:
    """At most one ladder in a hundred says that a kernel differs from itself. Fewer boots never say
    so (test_more_rows_take_more_boots), so adding boots does not add errors."""
    assert wrong(boots, LADDER) <= 0.01


def test_the_simulation_finds_a_bad_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """With fewer boots, or without Student's distribution, there would be too many."""
    monkeypatch.setattr("iopath.compare.noise._CHANCE", 1)
    assert wrong(each_row(0.5), FEWEST) > 0.05
    monkeypatch.setattr("iopath.compare.noise.LADDER_ERROR", 100)
    assert wrong(each_row(0.0), LADDER) > 0.02


@pytest.mark.parametrize("count", [FEWEST, LADDER])
@pytest.mark.parametrize("noise", [0.0, 0.002])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_missed_verdicts(share: float, noise: float, count: int) -> None:
    """A cost of 5 % that half of the boots pay is missed in at most 5 % of comparisons. If fewer
    pay it, it is missed with the probability that none does. Otherwise it is a difference, or
    undecided."""
    source = np.random.default_rng(21)
    missed = 0
    for _ in range(LADDERS):
        before, after = 3000 * (1 + noise * source.normal(size=(2, count)))
        after = after + 150 * (source.random(count) < share)
        verdict = judge(before.tolist(), after.tolist(), WHOLE, RESOLUTION).verdict
        missed += verdict in ("same", "shorter")
    assert missed / LADDERS <= max(0.05, 1.2 * (1 - share) ** count)


# Single rows.


def same(figure: float, boots: int = LADDER) -> list[float]:
    return [figure] * boots


def verdict(before: list[float], after: list[float], family: Family = WHOLE) -> str:
    return judge(before, after, family, RESOLUTION).verdict


def test_one_instruction_is_found() -> None:
    assert verdict(same(2694.47), same(2695.47)) == "longer"
    assert verdict(same(2694.47), same(2694.36)) == "shorter"
    assert judge(same(2694.47), same(2695.47), WHOLE, RESOLUTION).difference == pytest.approx(1)
    noisy = [100.0, 100.02, 100.0, 100.04, 100.0, 100.02, 100.0]
    assert verdict(noisy, noisy[::-1]) == "same"


def test_a_cost_that_some_boots_pay_is_seen() -> None:
    found = judge(same(2700.0), [2700.0, *same(5400.0, 6)], WHOLE, RESOLUTION)
    assert (found.verdict, found.wanted, found.most) == ("unknown", 0, 2700)
    assert found.difference == pytest.approx(2700 * 6 / 7)
    assert verdict(same(5400.0), [2700.0, *same(5400.0, 6)]) == "unknown"


def test_boots_that_overlap_are_no_difference() -> None:
    """This holds however far apart the means are."""
    before, after = [*same(100.0, 13), 120.0], same(120.0, 14)
    found = judge(before, after, WHOLE, RESOLUTION)
    assert found.difference > 1.9 * (found.noise or 0)
    assert found.verdict == "unknown"


def test_boots_that_differ_little_hide_little() -> None:
    """The spread is 13.4 of 5,000 instructions, as with dm-crypt."""
    noisy = [5000.0, 5013.4, 5000.0, 5013.4, 5013.4, 5000.0, 5013.4]
    assert verdict(noisy, noisy[::-1]) == "same"
    assert verdict(noisy, [boot + 140 for boot in noisy]) == "longer"


@pytest.mark.parametrize(
    ("rows", "needed"), [(1, 5), (2, 5), (5, 6), (20, 7), (ROWS, LADDER), (109, 8)]
)
def test_more_rows_take_more_boots(rows: int, needed: int) -> None:
    family = Family(rows, len(METRICS))
    assert family.needed == needed
    for boots in range(1, needed):
        found = judge(same(10.0, boots), same(20.0, boots), family, RESOLUTION)
        assert (found.verdict, found.wanted, found.difference) == ("unknown", needed, 10)
        assert (found.noise is None) == (found.most is None) == (boots < FEWEST)
    assert verdict(same(10.0, needed), same(20.0, needed), family) == "longer"


@pytest.mark.parametrize("boots", range(1, LADDER))
def test_few_boots_that_agree_are_the_same(boots: int) -> None:
    assert verdict(same(10.0, boots), same(10.0)) == ("unknown" if boots < 5 else "same")


@pytest.mark.parametrize(("by", "found"), [(0.04, "same"), (0.06, "longer"), (-0.06, "shorter")])
def test_the_resolution_is_a_twentieth_of_an_instruction(by: float, found: str) -> None:
    assert verdict(same(20.0), same(20.0 + by)) == found


def test_levels_in_words() -> None:
    two = [2694.47, 2708.53, 2694.47, 2694.47, 2694.48, 2694.47, 2708.53, 2694.47]
    assert in_boots(levels(two, RESOLUTION)) == "2,694.47 in 6 of 8 boots, 2,708.53 in 2"
    assert in_boots(levels(same(20.0), RESOLUTION)) == "20.00 in 7 boots"
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
def test_a_mean_off_the_median_is_a_finding(mean: float, found: int) -> None:
    record = recorded(instructions_per_io=2694.47, mean=mean, mean_boots=[mean, mean + 0.1])
    texts = findings(record)
    assert len(texts) == found
    assert all("happens less often than once per round" in text for text in texts)


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


# The path, in layouts.

LAYOUTS = 2 * 16  # of two boots


def in_layouts(
    before: Sequence[float], after: Sequence[float], difference: float | None = None
) -> tuple[str, float]:
    """The verdict on the path by its values in layouts; the figures are their medians."""
    if difference is None:
        difference = median_low(after) - median_low(before)
    found = judge_layouts(difference, before, after, RESOLUTION)
    return found.verdict, round(found.difference, 2)


@pytest.mark.parametrize("by", [1.0, 0.06, -1.0, 60.0])
def test_a_cost_in_all_layouts(by: float) -> None:
    before = same(2883.23, LAYOUTS)
    found = "longer" if by > 0 else "shorter"
    assert in_layouts(before, [one + by for one in before]) == (found, round(by, 2))


@pytest.mark.parametrize("layouts", [1, 2, 16, 31])
def test_a_cost_in_some_layouts(layouts: int) -> None:
    """The median does not show it."""
    before = same(3000.0, LAYOUTS)
    after = [*same(3150.0, layouts), *same(3000.0, LAYOUTS - layouts)]
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
    assert in_layouts(before, same(2883.23, LAYOUTS))[0] == "same"
    assert in_layouts(before, same(2884.23, LAYOUTS)) == ("longer", 1.0)
    scheduled = [13215.52 + at % 13 * 0.15 for at in range(LAYOUTS)]
    assert in_layouts(scheduled, [one + 1.5 for one in scheduled], 0.9)[0] == "same"


@pytest.mark.parametrize(("share", "layouts"), [(0.5, 16), (0.2, LAYOUTS), (0.13, LAYOUTS)])
def test_missed_layouts(share: float, layouts: int) -> None:
    """A cost that a share of the layouts pays is missed with the probability that none does."""
    source = np.random.default_rng(22)
    missed = 0
    for _ in range(LADDERS):
        after = 3000 + 150 * (source.random(layouts) < share)
        missed += in_layouts(same(3000.0, layouts), after.tolist())[0] == "same"
    assert missed / LADDERS <= 0.012


# Figures of the long run.


def ladders(source: Source, sigma: float) -> tuple[Figures, Figures]:
    """Two boots of the rows of many ladders, twice."""
    before, after = source.normal(3000, sigma, size=(2, LADDERS, ROWS, 2))
    return before, after


def judged(before: Figures, after: Figures, known: float, resolution: float) -> list[Verdict]:
    """The verdicts on the rows of a ladder."""
    deviation = Deviation.pooled([*before.tolist(), *after.tolist()], known)
    return [
        judge_varying(one.tolist(), other.tolist(), deviation, len(LONG_RUN) * ROWS, resolution)
        for one, other in zip(before, after, strict=True)
    ]


@pytest.mark.parametrize("metric", LONG_RUN, ids=lambda metric: metric.name)
@pytest.mark.parametrize("more", [0.3, 1, 3])
def test_false_verdicts_of_the_long_run(metric: Metric, more: float) -> None:
    """At most five ladders in a thousand differ from themselves, also where the deviation is not
    what is known of it."""
    source = np.random.default_rng(23)
    before, after = ladders(source, metric.sigma * more)
    found = [
        any(one.verdict != "same" for one in judged(*sides, metric.sigma, 0.0))
        for sides in zip(before, after, strict=True)
    ]
    assert sum(found) / LADDERS <= 0.006


def test_missed_verdicts_of_the_long_run() -> None:
    """Deferred work of 12 instructions an I/O is missed in at most one ladder in a hundred."""
    source = np.random.default_rng(24)
    before, after = ladders(source, TOTAL.sigma)
    after[:, 0] += 12
    missed = [
        judged(*sides, TOTAL.sigma, TOTAL.resolution)[0].verdict != "longer"
        for sides in zip(before, after, strict=True)
    ]
    assert sum(missed) / LADDERS <= 0.01


def test_one_boot_does_not_tell() -> None:
    deviation = Deviation.pooled([[3000.0]], 1.8)
    found = judge_varying([3000.0], [3100.0], deviation, 1, 5.0)
    assert (found.verdict, found.wanted) == ("unknown", 2)


# Other figures.


@pytest.mark.parametrize(
    ("before", "after", "expected", "found"),
    [
        ([7.0, 7.0], [7.0, 7.0], False, "same"),
        ([7.0, 7.0], [8.0, 8.0], True, "longer"),
        ([7.0, 7.0], [6.0, 6.0], True, "shorter"),
        ([7.0, 7.0], [8.0, 8.0], False, "unknown"),
        ([7.0, 8.0], [8.0, 8.0], True, "unknown"),
        ([689.06, 689.46], [705.06, 705.06], True, "longer"),
        ([689.06, 689.46], [690.0, 689.6], True, "same"),
        ([689.06, 692.46], [705.06, 705.06], True, "unknown"),
        ([7.0], [8.0], True, "unknown"),
        ([7.0] * 7, [8.0] * 7, False, "longer"),
    ],
)
def test_two_boots_that_agree(
    before: list[float], after: list[float], expected: bool, found: str
) -> None:
    """They decide what the path says, too. Otherwise more boots are wanted."""
    judged = judge_agreeing(before, after, WHOLE, RESOLUTION, expected=expected)
    assert judged.verdict == found
    assert bool(judged.wanted) == (found == "unknown")
