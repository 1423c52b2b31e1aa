# SPDX-License-Identifier: GPL-2.0
"""The rule by which two kernels differ: its error rate, and what it finds."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from test_charts import a_record, a_result

from iopath.noise import FEWEST, findings, judge
from iopath.result import ExactRecord, parse

ROWS = 33  # of the ladder
LADDERS = 2000

Boot = list[float]  # the figures of all rows in one boot
Source = random.Random


def gaussian(source: Source) -> Boot:
    """Each row has a noise of its own, from hundredths to tens of instructions."""
    return [source.gauss(3000, 0.01 * 1.25**row) for row in range(ROWS)]


def two_valued(rows: int, chance: float) -> Callable[[Source], Boot]:
    """Some rows have another value in some boots, each for itself."""

    def boot(source: Source) -> Boot:
        return [
            3000 + (2.0 if row < rows and source.random() < chance else 0.0) for row in range(ROWS)
        ]

    return boot


def layout(chance: float) -> Callable[[Source], Boot]:
    """The layout of memory decides, in each boot, for a group of rows together."""

    def boot(source: Source) -> Boot:
        moved = source.random() < chance
        return [3000 + (2.0 if moved and row % 5 == 0 else 0.0) for row in range(ROWS)]

    return boot


def mixed(source: Source) -> Boot:
    """All at once."""
    boots = (gaussian(source), layout(0.3)(source), two_valued(4, 0.5)(source))
    return [sum(figures) for figures in zip(*boots, strict=True)]


def differ(boot: Callable[[Source], Boot], boots: int) -> float:
    """The share of ladders of a kernel against itself in which any row differs."""
    source = random.Random(20)
    wrong = 0
    for _ in range(LADDERS):
        sides = [list(zip(*(boot(source) for _ in range(boots)), strict=True)) for _ in range(2)]
        verdicts = judge(list(zip(*sides, strict=True)))
        wrong += any(row.verdict != "same" for row in verdicts)
    return wrong / LADDERS


@pytest.mark.parametrize("boots", [FEWEST, 7])
@pytest.mark.parametrize(
    "boot",
    [
        pytest.param(gaussian, id="gaussian"),
        pytest.param(two_valued(1, 0.5), id="one-row"),
        pytest.param(two_valued(1, 0.2), id="one-row-seldom"),
        pytest.param(two_valued(2, 0.5), id="two-rows"),
        pytest.param(two_valued(6, 0.3), id="six-rows"),
        pytest.param(two_valued(ROWS, 0.5), id="all-rows"),
        pytest.param(two_valued(ROWS, 0.02), id="all-rows-seldom"),
        pytest.param(layout(0.5), id="layout"),
        pytest.param(layout(0.1), id="layout-seldom"),
        pytest.param(mixed, id="mixed"),
    ],
)
def test_false_verdicts(boot: Callable[[Source], Boot], boots: int) -> None:
    """Fewer than one ladder in a hundred says that a kernel differs from itself."""
    assert differ(boot, boots) < 0.01


def test_the_simulation_finds_a_bad_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """With fewer boots, and no look at the other rows, there would be too many."""
    monkeypatch.setattr("iopath.noise.FEWEST", 2)
    assert differ(two_valued(1, 0.5), 3) > 0.02
    monkeypatch.setattr("iopath.noise._CHANCE", 1)
    assert differ(two_valued(ROWS, 0.5), FEWEST) > 0.1
    monkeypatch.setattr("iopath.noise.LADDER_ERROR", 1)
    assert differ(gaussian, 7) > 0.1


def same(figure: float) -> list[float]:
    return [figure] * FEWEST


def test_one_instruction_is_found() -> None:
    """Where boots agree, in the midst of a ladder whose other rows vary a little."""
    rows = [(same(3000.0 + row), same(3000.0 + row)) for row in range(ROWS)]
    rows[7] = (same(2694.47), same(2695.47))
    rows[8] = (same(2694.47), same(2694.36))
    rows[9] = ([100.0, 100.02, 100.0, 100.04], [100.0, 100.0, 100.02, 100.0])
    verdicts = [row.verdict for row in judge(rows)]
    assert verdicts[7:10] == ["longer", "shorter", "same"]
    assert {*verdicts[:7], *verdicts[10:]} == {"same"}
    assert judge(rows)[7].difference == pytest.approx(1)


def test_a_noisy_row_hides_little_of_the_others() -> None:
    """Of the others, what differs by more than that row varies is seen; with more boots, all."""
    noisy = ([50.0, 52.0] * 2, [52.0, 50.0] * 2)
    rows = [noisy, (same(10.0), same(13.0)), (same(10.0), same(11.0))]
    rows += [(same(1.0), same(1.0))] * (ROWS - 3)
    assert [row.verdict for row in judge(rows)][:3] == ["same", "longer", "same"]
    more = [(before * 2, after * 2) for before, after in rows]
    assert [row.verdict for row in judge(more)][:3] == ["same", "longer", "longer"]


@pytest.mark.parametrize("boots", [1, 3])
def test_too_few_boots_are_no_verdict(boots: int) -> None:
    (verdict,) = judge([([10.0] * boots, same(20.0))])
    assert (verdict.verdict, verdict.noise, verdict.difference) == ("unknown", None, 10)


@pytest.mark.parametrize(("by", "verdict"), [(0.04, "same"), (0.06, "longer"), (-0.06, "shorter")])
def test_the_resolution_is_a_twentieth_of_an_instruction(by: float, verdict: str) -> None:
    (found,) = judge([(same(20.0), same(20.0 + by))])
    assert found.verdict == verdict


def test_a_ladder_without_rows() -> None:
    assert judge([]) == []


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
    """The mean is that of the program's task; all that others did is among the deferred work."""
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
