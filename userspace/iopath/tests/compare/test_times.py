# SPDX-License-Identifier: GPL-2.0
"""When times differ."""

import pytest

from iopath.compare import times
from iopath.host import samples
from iopath.results.result import KernelName, TimeFigure
from iopath.rungs import builtin
from iopath.rungs.runs import Run


def figure(median: float, half: float, noise: float = 0.0) -> dict[str, float]:
    return {"median": median, "low": median - half, "high": median + half, "noise": noise}


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (figure(100, 1), figure(103, 1), "longer"),
        (figure(103, 1), figure(100, 1), "shorter"),
        (figure(100, 2), figure(103, 2), "same"),  # the intervals overlap
        (figure(100, 1, 2), figure(103, 1, 2), "same"),  # A and A differ by more
    ],
)
def test_verdict(before: dict[str, float], after: dict[str, float], verdict: str) -> None:
    found = times.difference(TimeFigure(**before), TimeFigure(**after))
    assert found.verdict == verdict
    assert found.difference == after["median"] - before["median"]


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ([100.0], [103.0], "unknown"),
        ([100.0, 100.0], [103.0], "unknown"),
        ([100.0, 100.5], [103.0, 103.5], "longer"),
        ([100.0, 102.0], [103.0, 105.0], "same"),  # boots of each differ by as much
    ],
)
def test_boots_of_guests_are_noise(before: list[float], after: list[float], verdict: str) -> None:
    figures = (figure(100, 0.1) | {"boots": before}, figure(103, 0.1) | {"boots": after})
    found = times.difference(*(TimeFigure(**part) for part in figures))  # type: ignore[arg-type]
    assert found.verdict == verdict


def test_the_noise_is_of_samples_of_its_own() -> None:
    """The noise is that of the noisiest boot; the samples of the figures do not enter it."""
    run = Run(1, builtin.select(["syscall"])[0], "none", 0)
    steady = [{"ns": 50.0}] * 12
    noisy = [{"ns": 50.0}, {"ns": 53.0}] * 6
    low, high = ([{"ns": ns}] * 6 for ns in (100.0, 102.0))
    of = samples.Sampled(KernelName(name="k", release="1"), run, {}, 3, 100, [])
    found = samples.record_boots(of, [steady, noisy], [low, high])
    ns = found.figures["ns"]
    assert (ns.boots, ns.noise, ns.median) == ([100.0, 102.0], 3.0, 101.0)
    assert found.samples == 12
