# SPDX-License-Identifier: GPL-2.0
"""What became of I/Os besides the metrics of requests: their sizes and order, and who did what."""

from dataclasses import dataclass, field
from typing import Annotated

BY_WHOM = ("bios", "requests", "completions")  # metrics that tell who did it

# Who does something for an I/O.
TASK, OTHERS, INTERRUPTS, LATER = "task", "other tasks", "interrupts", "later"


@dataclass(frozen=True)
class Seen:
    """A request as the device was given it: "R", "W" or "F", which has no sectors."""

    kind: str
    sector: int
    sectors: int


@dataclass(kw_only=True)
class Requests:
    """The requests of a long run, in the boot that was profiled."""

    who: Annotated[
        dict[str, dict[str, float]],
        "How many bios are submitted, requests started and completions done per I/O by whom: the "
        "task, other tasks, interrupts, or anybody after the run (later).",
    ]
    sizes: Annotated[
        list[int],
        "The reads and writes that the device was given, by size: of up to 1, 2, 4 ... 16384 "
        "sectors, and of more. Empty if it does not count.",
    ] = field(default_factory=list)
    seen: Annotated[
        list[str],
        "The last of them and of its flushes, the oldest first: R, W or F, the first sector, "
        "the number of sectors.",
    ] = field(default_factory=list)

    @property
    def stream(self) -> list[Seen]:
        """What the device was given last."""
        rows = map(str.split, self.seen)
        return [Seen(kind, int(sector), int(sectors)) for kind, sector, sectors in rows]
