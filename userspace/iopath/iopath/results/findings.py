# SPDX-License-Identifier: GPL-2.0
"""What the median of a record does not show."""

from iopath.results.result import ExactRecord

# The largest normal distance of mean and median: in instructions per I/O, because the start of a
# round weighs more in the median, and as a part of the path.
_RARE, _RARE_SHARE = 2.0, 1e-4

# A mean, which has only the program's task, is below the median if interrupts or other tasks do a
# part of each I/O. The deferred work then is what the mean lacks, within this part of it.
_OTHERS = 0.1

# The spread of rounds rose if it is more than _JUMP_TIMES the old one plus _JUMP.
_JUMP, _JUMP_TIMES = 5.0, 3


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
    between = max(record.mean_boots) - min(record.mean_boots)
    if abs(above) <= max(_RARE, between, _RARE_SHARE * record.instructions_per_io):
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
