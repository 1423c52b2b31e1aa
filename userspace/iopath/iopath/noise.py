# SPDX-License-Identifier: GPL-2.0
"""When two kernels differ: the rule, and its error rate.

Each kernel is booted several times with other seeds. The rule is made so that of all ladders of two
kernels that are the same, fewer than 1 % have any row that is called different. It has to hold for
noise of three kinds (test_noise.py simulates them):

* Figures vary from boot to boot around a mean. Then the difference of two means, divided by its
  standard error, follows Student's distribution. The limit is the quantile that all rows together
  exceed with a probability of LADDER_ERROR.
* A figure has two values, by the layout of memory for instance. Then all boots of one kernel may
  show the one value and all of the other kernel the other value, by chance, and no row's own spread
  tells. With p = 1/2, the worst case, that happens to a row with a probability of 2 / 2^(boots of
  both). With FEWEST boots of each that is 0.8 %.
* Several rows have two values. Then some of them show a spread, nearly always. So, as long as the
  boots are too few to exclude chance for all rows, a row differs only if it differs by more than
  the largest spread that any row has.

With fewer boots there is no verdict.
"""

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from iopath.result import ExactRecord

FEWEST = 4  # boots of each kernel that a verdict takes
LADDER_ERROR = 0.002  # how often any row of a ladder may differ by the first kind of noise
_CHANCE = 0.005  # and by the second, where the rows' own spread must tell

# The figures of a record, and the differences in instructions per I/O that mean nothing, even if
# they repeat: the error of reading the clock; in a run of 12,000 I/Os, one or two task switches on
# the way back to user space; a few timer ticks that did more than others.
RESOLUTION = {"instructions_per_io": 0.05, "mean": 0.5, "with_deferred": 5.0}
BOOTS = {
    "instructions_per_io": "boots",
    "mean": "mean_boots",
    "with_deferred": "with_deferred_boots",
}

# The largest normal distance of mean and median, in instructions per I/O. The start of a round
# weighs more in the median.
_RARE = 2.0

# A mean, which is of the program's task alone, is below the median if interrupts or other tasks do
# a part of each I/O. Then what the mean lacks is the deferred work, within this part of it.
_OTHERS = 0.1

# The spread of rounds rose if it is more than _JUMP_TIMES the old one and _JUMP.
_JUMP, _JUMP_TIMES = 5.0, 3

Boots = Sequence[float]


@dataclass(frozen=True)
class Verdict:
    """The difference of two figures, its noise, and whether it exceeds noise and resolution:
    "same", "longer", "shorter" or "unknown"."""

    difference: float
    noise: float | None
    verdict: str


def judge(
    rows: Sequence[tuple[Boots, Boots]], resolution: float = RESOLUTION["instructions_per_io"]
) -> list[Verdict]:
    """The verdicts on all rows of a ladder: the figures of each boot before and after."""
    spreads = [max(map(_spread, row)) for row in rows]
    largest = max(spreads, default=0.0)
    found = []
    for before, after in rows:
        difference = _median(after) - _median(before)
        count = len(before) + len(after)
        if min(len(before), len(after)) < FEWEST:
            found.append(Verdict(difference, None, "unknown"))
            continue
        noise = _limit(count - 2, LADDER_ERROR / len(rows)) * _standard_error(before, after)
        if len(rows) * 2 * 0.5**count > _CHANCE:
            noise = max(noise, largest)
        verdict = "same"
        if abs(difference) > max(noise, resolution):
            verdict = "longer" if difference > 0 else "shorter"
        found.append(Verdict(difference, noise, verdict))
    return found


def findings(record: ExactRecord, before: ExactRecord | None = None) -> list[str]:
    """What the median of a record does not show, in words; with *before*, also whether the spread
    of its rounds rose."""
    found = []
    if before and record.spread > _JUMP_TIMES * before.spread + _JUMP:
        found.append(
            f"the spread of rounds rose from {before.spread:,.2f} to {record.spread:,.2f}"
            " instructions per I/O"
        )
    if record.mean is None or record.mean_boots is None:
        return found
    above = record.mean - record.instructions_per_io
    later = (record.with_deferred or record.mean) - record.mean
    if abs(above) <= max(_RARE, _spread(record.mean_boots)):
        pass
    elif above < 0 and abs(above + later) <= -_OTHERS * above:
        found.append(
            f"interrupts and other tasks execute {-above:,.2f} of the"
            f" {record.instructions_per_io:,.2f} instructions per I/O"
        )
    else:
        found.append(
            f"some work happens less often than once per round: the mean is {record.mean:,.2f}"
            f" instructions per I/O, the median {record.instructions_per_io:,.2f}"
        )
    return found


def _spread(boots: Boots) -> float:
    return max(boots) - min(boots)


def _median(boots: Boots) -> float:
    return statistics.median_low(boots)


def _standard_error(before: Boots, after: Boots) -> float:
    """Of the difference of two means, if both vary alike."""
    squares = 0.0
    for boots in (before, after):
        mean = math.fsum(boots) / len(boots)
        squares += math.fsum((figure - mean) ** 2 for figure in boots)
    degrees = len(before) + len(after) - 2
    return math.sqrt(squares / degrees * (1 / len(before) + 1 / len(after)))


@functools.cache
def _limit(degrees: int, wanted: float) -> float:
    """The limit that Student's t exceeds on either side with the probability *wanted*, widened
    because medians vary more than means."""
    low, high = 0.0, 1e6
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _both_tails(middle, degrees) > wanted else (low, middle)
    return high * math.sqrt(math.pi / 2)


def _both_tails(t: float, degrees: int) -> float:
    """The probability that Student's t of so many degrees of freedom is farther from 0 than *t*."""
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
