# SPDX-License-Identifier: GPL-2.0
"""When two kernels differ: the rules, and their error rates (Documentation/metrics.rst).

**The path** is counted in several layouts of memory and files (ioloop's --layouts) in each boot. A
boot is deterministic, so a figure that one kernel has in some layout, and the other in none, is a
difference: judge_layouts().

**A figure of the long run** varies around a mean by the work that goes on beside it. Its deviation
is the same for all rows of a ladder, so all of them tell it: judge_varying().

**Any other figure** is decided by two boots if the boots of each kernel agree: it is the same if
the kernels agree, too, and differs if the path does. Otherwise more boots decide, by this rule. It
differs if all of these hold:

* Each boot of one kernel is above each boot of the other. Noise of two values, each with a
  probability of a half in a boot, separates the boots with a probability of 2 / 2^(boots of both).
  needed() is how many boots keep that below _CHANCE for a ladder, by its number of rows.
* The means differ by more than the quantile of Student's distribution that any figure of the ladder
  exceeds with a probability of LADDER_ERROR.
* The means differ by more than the resolution of the metric.

It is the same if the boots of both kernels are not separated, there are FEWEST of each, and all lie
close together. A cost that some boots pay puts them apart, however often that is. Anything else has
no verdict.
"""

import functools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

BOOTS = 2  # of each kernel: the second shows whether a boot adds anything to the layouts
FEWEST = 5  # boots of each kernel for "same": 0.5^5 miss a cost that half of the boots pay
LADDER = 7  # boots of each kernel that decide a ladder of 37 rows
_PHASE, _PHASE_SHARE = 1.0, 0.0005  # instructions, or this part of a figure
_CLOSE = 0.002  # of a figure: boots of this distance are close
_KNOWN = 8  # rows of two boots that the known deviation of a figure is worth
_VARYING_ERROR = 0.005  # how often any figure of the long runs of a ladder differs by noise
LADDER_ERROR = 0.0005  # how often any figure of a ladder may differ by noise around a mean
_CHANCE = 0.0095  # and by noise of two values
_WAYS = 2  # values of a row that change independently: its path, and the layout of its memory
HIDDEN = 0.025  # boots that are this part of the figure apart may hide a cost of twice that

_LISTED = 3  # levels; more are a range

SAME, LONGER, SHORTER, UNKNOWN = "same", "longer", "shorter", "unknown"

Boots = Sequence[float]


@dataclass(frozen=True)
class Family:
    """What is judged together: the rows of two kernels, and the figures of each."""

    rows: int
    figures: int

    @property
    def needed(self) -> int:
        """The boots of each kernel that "longer" and "shorter" take."""
        count = FEWEST
        while self.rows * _WAYS * 2 * 0.5 ** (2 * count) > _CHANCE:
            count += 1
        return count


@dataclass(frozen=True)
class Verdict:
    """The difference of the means of two figures, its noise, and what that says. *most* is the
    largest growth from one boot to another; None if the boots are too few to know. If more boots
    would give a verdict, *wanted* is how many of each kernel."""

    difference: float
    noise: float | None
    verdict: str
    most: float | None
    wanted: int = 0


def _differs(difference: float, noise: float, most: float) -> Verdict:
    return Verdict(difference, noise, LONGER if difference > 0 else SHORTER, most)


def _difference(before: Boots, after: Boots) -> float:
    """That of the means."""
    return math.fsum(after) / len(after) - math.fsum(before) / len(before)


def _spread(before: Boots, after: Boots) -> float:
    """The larger distance between two values of one kernel."""
    return max(max(side) - min(side) for side in (before, after))


def judge(before: Boots, after: Boots, family: Family, resolution: float) -> Verdict:
    """The verdict on a figure: its boots before and after."""
    difference = _difference(before, after)
    most = max(after) - min(before)
    if min(len(before), len(after)) < FEWEST:
        return Verdict(difference, None, UNKNOWN, None, family.needed)
    limit = _limit(len(before) + len(after) - 2, LADDER_ERROR / (family.rows * family.figures))
    noise = limit * _standard_error(before, after)
    apart = max(min(after) - max(before), min(before) - max(after)) > 0
    if apart and abs(difference) > max(noise, resolution):
        if len(before) + len(after) < 2 * family.needed:
            return Verdict(difference, noise, UNKNOWN, most, family.needed)
        return _differs(difference, noise, most)
    size = abs(math.fsum(before) / len(before))
    if max(*before, *after) - min(*before, *after) > max(2 * resolution, HIDDEN * size):
        wanted = family.needed if len(before) + len(after) < 2 * family.needed else 0
        return Verdict(difference, noise, UNKNOWN, most, wanted)
    return Verdict(difference, noise, SAME, most)


def judge_layouts(difference: float, before: Boots, after: Boots, resolution: float) -> Verdict:
    """The verdict on figures with a *difference*, by their values in all layouts of all boots.

    The values differ by more than the layouts of either, or the highest or the lowest of them do by
    more than _PHASE: layouts may differ by what a per-CPU cache takes to be filled again."""
    highest, lowest = max(after) - max(before), min(after) - min(before)
    spread = _spread(before, after)
    most = max(after) - min(before)
    phase = max(resolution, _PHASE, _PHASE_SHARE * min(before))
    shift = statistics.median_low(after) - statistics.median_low(before)
    if abs(shift) > max(resolution, spread):
        moved = difference if difference * shift > 0 else shift
    else:
        moved = next((end for end in (highest, lowest) if abs(end) > phase), 0.0)
    if not moved:
        return Verdict(difference, spread, SAME, most)
    return _differs(moved, spread, most)


@dataclass(frozen=True)
class Deviation:
    """The standard deviation of a figure between boots, by its own boots in many rows and by what
    is known of it. *degrees* are those of freedom."""

    sigma: float
    degrees: int

    @classmethod
    def pooled(cls, rows: Iterable[Boots], known: float) -> "Deviation":
        """That of *rows*; *known* weighs as much as _KNOWN of them."""
        squares, degrees = _KNOWN * known**2, _KNOWN
        for boots in rows:
            mean = math.fsum(boots) / len(boots)
            squares += math.fsum((figure - mean) ** 2 for figure in boots)
            degrees += len(boots) - 1
        return cls(math.sqrt(squares / degrees), degrees)


def judge_varying(
    before: Boots, after: Boots, deviation: Deviation, figures: int, resolution: float
) -> Verdict:
    """The verdict on one of *figures* that vary around their means, which are judged together."""
    difference = _difference(before, after)
    most = max(after) - min(before)
    if min(len(before), len(after)) < BOOTS:
        return Verdict(difference, None, UNKNOWN, None, BOOTS)
    limit = _limit(deviation.degrees, _VARYING_ERROR / figures)
    noise = limit * deviation.sigma * math.sqrt(1 / len(before) + 1 / len(after))
    if abs(difference) <= max(noise, resolution):
        return Verdict(difference, noise, SAME, most)
    return _differs(difference, noise, most)


def judge_agreeing(
    before: Boots, after: Boots, family: Family, resolution: float, *, expected: bool
) -> Verdict:
    """The verdict of judge(), but by two boots if the boots of each kernel are _CLOSE, and either
    the kernels are, too, or a difference is *expected*."""
    found = judge(before, after, family, resolution)
    spread = _spread(before, after)
    close = spread <= max(resolution, _CLOSE * abs(min(before)))
    if found.verdict != UNKNOWN or not close or min(len(before), len(after)) < BOOTS:
        return found
    noise = resolution if spread <= resolution else 2 * spread
    most = max(after) - min(before)
    if abs(found.difference) <= noise:
        return Verdict(found.difference, noise, SAME, most)
    if not expected:
        return found
    return _differs(found.difference, noise, most)


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


def in_boots(found: Sequence[tuple[float, int]], what: str = "boots") -> str:
    """Levels in words: "2,694.47 in 6 of 8 boots, 2,708.53 in 2"."""
    count = sum(count for _, count in found)
    if len(found) > _LISTED:
        values = [value for value, _ in found]
        return f"{min(values):,.2f} to {max(values):,.2f} in {count} {what}"
    (first, most), *rest = found
    of = f"{most} of " if rest else ""
    texts = [f"{first:,.2f} in {of}{count} {what}"]
    return ", ".join([*texts, *(f"{value:,.2f} in {count}" for value, count in rest)])


def reason(judged: Verdict, before: Boots, after: Boots, least: float) -> str:
    """Why there is no verdict."""
    if judged.wanted:
        count = min(len(before), len(after))
        return f"{count} {'boot is' if count == 1 else 'boots are'} too few: {judged.wanted} needed"
    before_, after_ = (in_boots(levels(boots, least)) for boots in (before, after))
    return f"boots differ: {before_}; then {after_}"


def _standard_error(before: Boots, after: Boots) -> float:
    """The standard error of the difference of two means, if both have the same variance."""
    squares = 0.0
    for boots in (before, after):
        mean = math.fsum(boots) / len(boots)
        squares += math.fsum((figure - mean) ** 2 for figure in boots)
    degrees = len(before) + len(after) - 2
    return math.sqrt(squares / degrees * (1 / len(before) + 1 / len(after)))


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
