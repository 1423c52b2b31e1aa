# SPDX-License-Identifier: GPL-2.0
"""The median and its interval."""

import random

import pytest

from iopath.host import samples
from iopath.rungs.ioloop_report import Device, LoopJob, LoopRound, Report


@pytest.mark.parametrize(("count", "ranks"), [(6, (0, 5)), (20, (5, 14)), (40, (13, 26))])
def test_interval_is_of_the_known_ranks(count: int, ranks: tuple[int, int]) -> None:
    assert samples.interval([float(value) for value in range(count)]) == ranks


def test_interval_of_too_few() -> None:
    with pytest.raises(ValueError, match="too few"):
        samples.interval([1.0] * 5)


def test_what_a_device_counts() -> None:
    """Requests per I/O of all rounds, if it is one of blknull that counts."""
    rounds = (LoopRound(4, 0, 0), LoopRound(4, 0, 0))
    names = ("reads", "read_sectors", "writes", "write_sectors", "flushes", "bios", "segments",
             "out_of_order", "fua")  # fmt: skip
    counters = dict.fromkeys(names, 0) | {"reads": 2, "read_sectors": 64, "bios": 8}
    jobs = (LoopJob(rounds, 8),)
    found = samples.requests(Report(jobs, None, (Device(counters),)))
    assert (found["device requests"], found["sectors"], found["merged bios"]) == (0.25, 32, 0.75)
    assert samples.requests(Report(jobs)) == {}


def test_interval_covers_the_median() -> None:
    """In 95 % of cases or more, though the values are far from normal."""
    source = random.Random(1)
    covered = 0
    for _ in range(400):
        low, high = samples.interval([source.expovariate(1) for _ in range(20)])
        covered += low <= 0.6931 <= high
    assert covered >= 375
