# SPDX-License-Identifier: GPL-2.0
"""What a modelled CPU would have missed (Documentation/model.rst)."""

from dataclasses import dataclass
from typing import Annotated

from iopath.results.schema import NotNegative


@dataclass(kw_only=True)
class Misses:
    """Misses of the caches and TLBs per I/O, and mispredictions of conditional branches, of
    indirect jumps and calls, and of returns."""

    l1i: Annotated[NotNegative, "Executed per I/O."]
    l1d: Annotated[NotNegative, "Executed per I/O."]
    l2: Annotated[NotNegative, "Executed per I/O."]
    itlb: Annotated[NotNegative, "Executed per I/O."]
    dtlb: Annotated[NotNegative, "Executed per I/O."]
    conditional: Annotated[NotNegative, "Executed per I/O."]
    indirect: Annotated[NotNegative, "Executed per I/O."]
    returns: Annotated[NotNegative, "Executed per I/O."]


@dataclass(kw_only=True)
class Model:
    """A CPU as the rounds before left it, and one whose L1 caches and TLBs other work has taken."""

    warm: Annotated[
        Misses,
        "Per I/O: lines missed in the caches, pages missed in the TLBs, and mispredicted "
        "branches by kind.",
    ]
    cold: Annotated[
        Misses,
        "Per I/O: lines missed in the caches, pages missed in the TLBs, and mispredicted "
        "branches by kind.",
    ]
