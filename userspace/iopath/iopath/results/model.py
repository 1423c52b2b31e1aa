# SPDX-License-Identifier: GPL-2.0
"""What a modelled CPU would have missed (Documentation/model.rst)."""

from dataclasses import dataclass


@dataclass(kw_only=True)
class Misses:
    """Misses of the caches and TLBs per I/O, and mispredictions of conditional branches, of
    indirect jumps and calls, and of returns."""

    l1i: float
    l1d: float
    l2: float
    itlb: float
    dtlb: float
    conditional: float
    indirect: float
    returns: float


@dataclass(kw_only=True)
class Model:
    """A CPU as the rounds before left it, and one whose L1 caches and TLBs other work has taken."""

    warm: Misses
    cold: Misses
