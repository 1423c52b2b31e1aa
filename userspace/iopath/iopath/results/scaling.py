# SPDX-License-Identifier: GPL-2.0
"""What iopath scale measures on this machine."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ScalingRecord:
    """One way of doing I/O on a number of CPUs."""

    how: str
    devices: str  # "shared", or "one each"
    cpus: int
    ios_per_second: float  # of all CPUs together, the median of the rounds
    spread: float  # of the rounds: the largest rate less the smallest
    ns_per_io: float  # on each CPU
    command: list[str]
