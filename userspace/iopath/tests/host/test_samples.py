# SPDX-License-Identifier: GPL-2.0
"""The median and its interval."""

import random

import pytest

from iopath.host import samples


@pytest.mark.parametrize(("count", "ranks"), [(6, (0, 5)), (20, (5, 14)), (40, (13, 26))])
def test_interval_is_of_the_known_ranks(count: int, ranks: tuple[int, int]) -> None:
    assert samples.interval([float(value) for value in range(count)]) == ranks


def test_interval_of_too_few() -> None:
    with pytest.raises(ValueError, match="too few"):
        samples.interval([1.0] * 5)


def test_interval_covers_the_median() -> None:
    """In 95 % of cases or more, though the values are far from normal."""
    source = random.Random(1)
    covered = 0
    for _ in range(400):
        low, high = samples.interval([source.expovariate(1) for _ in range(20)])
        covered += low <= 0.6931 <= high
    assert covered >= 375
