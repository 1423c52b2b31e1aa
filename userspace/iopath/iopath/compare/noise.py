# SPDX-License-Identifier: GPL-2.0
"""When two kernels differ: the rules, and their error rates (Documentation/metrics.rst).

**An exact figure** is counted in several layouts of memory and files in each boot (ioloop's
--layouts), and in each boot. A boot is deterministic, so a value that one kernel has in some
layout, and the other in none, is a difference: judge_exact().

**A figure that varies** differs between boots around a mean, with a standard deviation that many
boots tell: judge_varying().
"""

import functools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

BOOTS = 2  # of each kernel: the second shows whether a boot adds anything to the layouts
OFTEN = 5  # of what has no layouts: 2 / 2^10 that a figure of two values differs by chance
PHASE, PHASE_SHARE = 1.0, 0.0005  # instructions, or this part of the path
SLABS = 1200  # instructions of a batch
_KNOWN = 8  # rows of two boots that the known deviation of a figure is worth
_ERROR = 0.005  # how often any varying figure of a ladder differs by chance

_LISTED = 3  # levels; more are a range

SAME, LONGER, SHORTER, UNKNOWN = "same", "longer", "shorter", "unknown"

Boots = Sequence[float]


@dataclass(frozen=True)
class Verdict:
    """The difference of two figures, its noise, and what that says. *most* is the largest growth of
    a value; None if it is not known. If more boots would give a verdict, *wanted* is how many of
    each kernel."""

    difference: float
    noise: float | None
    verdict: str
    most: float | None
    wanted: int = 0


def judge_exact(
    difference: float, before: Boots, after: Boots, least: float, phase: float
) -> Verdict:
    """The verdict on figures with a *difference*, by their values in all layouts and boots.

    The typical values differ by more than *least* and by more than the values of either kernel; or
    the highest or the lowest ones do by more than *phase*, see phase(). What grew anywhere has
    grown."""
    noise = max(least, *(max(side) - min(side) for side in (before, after)))
    shift = statistics.median_low(after) - statistics.median_low(before)
    moved = [difference if difference * shift > 0 else shift] if abs(shift) > noise else []
    ends = max(after) - max(before), min(after) - min(before)
    moved += [end for end in ends if abs(end) > phase]
    if not moved:
        return Verdict(difference, noise, SAME, 0.0)
    return _differs((*(end for end in moved if end > 0), *moved)[0], noise, max(moved))


def phase(path: float, batch: int) -> float:
    """By how many instructions per I/O the layouts of a *path* may differ. A per-CPU cache is
    filled again in some of them. The objects of a *batch* lie in several slabs. The kernel frees
    an object faster if it lies in the CPU's own slab. The number of such objects depends on
    earlier allocations. For 32 bios of 64 KiB it changes up to 1,120 instructions on 6.1."""
    return max(PHASE, PHASE_SHARE * path, SLABS / batch if batch > 1 else 0.0)


def _differs(difference: float, noise: float, most: float) -> Verdict:
    return Verdict(difference, noise, LONGER if difference > 0 else SHORTER, max(0.0, most))


@dataclass(frozen=True)
class Deviation:
    """The standard deviation of a figure between boots. *degrees* are those of freedom."""

    sigma: float
    degrees: int

    @classmethod
    def pooled(cls, rows: Iterable[Boots], known: float = 0.0) -> "Deviation":
        """That of *rows*; what is *known* of it, if anything is, weighs as much as _KNOWN rows."""
        degrees = _KNOWN if known else 0
        squares = degrees * known**2
        for boots in rows:
            mean = math.fsum(boots) / len(boots)
            squares += math.fsum((figure - mean) ** 2 for figure in boots)
            degrees += len(boots) - 1
        return cls(math.sqrt(squares / degrees) if degrees else 0.0, degrees)


def judge_varying(
    before: Boots, after: Boots, deviation: Deviation, figures: int, least: float
) -> Verdict:
    """The verdict on one of *figures* that vary around their means, which are judged together:
    these differ by more than *least*, and by more than the quantile of Student's distribution that
    any of the figures exceeds with a probability of _ERROR."""
    difference = statistics.fmean(after) - statistics.fmean(before)
    noise = deviation.sigma * math.sqrt(1 / len(before) + 1 / len(after))
    if noise:
        noise *= _limit(deviation.degrees, _ERROR / figures)
    if abs(difference) <= max(noise, least):
        return Verdict(difference, noise, SAME, 0.0)
    return _differs(difference, noise, difference)


def judge_boots(before: Boots, after: Boots, known: float, figures: int, least: float) -> Verdict:
    """The verdict on a figure that has no layouts: it varies as much as its own boots do, and as is
    *known*. OFTEN boots tell."""
    if min(len(before), len(after)) < OFTEN:
        difference = statistics.fmean(after) - statistics.fmean(before)
        return Verdict(difference, None, UNKNOWN, None, OFTEN)
    deviation = Deviation.pooled((before, after), known)
    return judge_varying(before, after, deviation, figures, least)


def levels(boots: Boots, resolution: float) -> list[tuple[float, int]]:
    """The values of a figure, and in how many boots it has each; those that most boots have first.
    Boots within the resolution have the same value."""
    found: list[list[float]] = []
    for value in sorted(boots):
        if found and value - found[-1][0] <= resolution:
            found[-1].append(value)
        else:
            found.append([value])
    return Counter({math.fsum(part) / len(part): len(part) for part in found}).most_common()


def in_boots(found: Sequence[tuple[float, int]], what: str = "boots", why: str = "") -> str:
    """Levels in words: "2,694.47 in 6 of 8 boots, 2,708.53 in 2", and *why*, if it is known."""
    count = sum(count for _, count in found)
    if len(found) > _LISTED:
        values = [value for value, _ in found]
        return f"{min(values):,.2f} to {max(values):,.2f} in {count} {what}"
    (first, most), *rest = found
    of = f"{most} of " if rest else ""
    texts = [f"{first:,.2f} in {of}{count} {what}"]
    said = ", ".join([*texts, *(f"{value:,.2f} in {count}" for value, count in rest)])
    return f"{said}: {why}" if why else said


def reason(judged: Verdict, before: Boots, after: Boots) -> str:
    """Why there is no verdict."""
    count = min(len(before), len(after))
    return f"{count} {'boot is' if count == 1 else 'boots are'} too few: {judged.wanted} needed"


@functools.cache
def _limit(degrees: int, wanted: float) -> float:
    """The limit that Student's t exceeds on either side with the probability *wanted*."""
    low, high = 0.0, 1e6
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _both_tails(middle, degrees) > wanted else (low, middle)
    return high


def _both_tails(t: float, degrees: int) -> float:
    """The probability that Student's t with *degrees* of freedom is farther from 0 than *t*."""
    angle = math.atan(t / math.sqrt(degrees))
    cosine = math.cos(angle)
    term = cosine if degrees % 2 else 1.0
    inside = 0.0
    for number in range(1 if degrees % 2 else 0, degrees - 1, 2):
        inside += term
        term *= cosine**2 * (number + 1) / (number + 2)
    inside *= math.sin(angle)
    if degrees % 2:
        inside = (inside + angle) * 2 / math.pi
    return 1 - inside
