# SPDX-License-Identifier: GPL-2.0
"""Groups of layers and their colours, for charts and for the page.

There are at most eight, so that they can be told apart. The colours are Okabe and Ito's, which
differ for the colour-blind, too.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from iopath.results.result import Result

OTHER = "other"

# Groups of the layers of iopath's own table, in the order of an I/O. Layers that are not listed are
# in the group "other".
_GROUPS: Mapping[str, tuple[str, ...]] = {
    "system call": ("user", "system call entry"),
    "aio and io_uring": ("aio", "io_uring"),
    "VFS": ("VFS", "block device file", "security", "ext4", "XFS", "Btrfs", "iomap"),
    "pinning and copying": ("page pinning", "iov_iter and copying"),
    "page cache and memory": ("page cache", "page faults", "memory allocation"),
    "block core": ("block core", "completion", "device mapper", "MD"),
    "drivers": (
        "driver",
        "NVMe",
        "virtio",
        "ATA",
        "SCSI",
        "network",
        "DMA mapping",
        "interrupt",
        "crypto",
    ),
    "scheduling": ("scheduling",),
    OTHER: ("biogen", "tracing", "locks and RCU", "time", "data structures", OTHER),
}
# In the order of the groups: neighbours differ in lightness.
_COLOURS = ("#0072b2", "#e69f00", "#56b4e9", "#d55e00", "#f0e442", "#cc79a7", "#009e73", "#882255")
_OTHER_COLOUR = "#9a9a9a"


@dataclass(frozen=True)
class Group:
    """Some layers that are drawn as one."""

    name: str
    colour: str

    @property
    def ink(self) -> str:
        """The colour of text on it."""
        red, green, blue = (int(self.colour[at : at + 2], 16) for at in (1, 3, 5))
        return "#ffffff" if 0.3 * red + 0.59 * green + 0.11 * blue < 105 else "#000000"


class Palette:
    """The groups of the layers that a result has.

    Layers of a user's table that iopath's own lacks take the place of groups that are not used, the
    largest first. When there is no place left, they are in "other".
    """

    def __init__(self, result: Result) -> None:
        sums: Counter[str] = Counter()
        for record in result.results:
            if record.profile:
                sums.update(record.profile.layers)
        sums = +sums  # without those that are 0
        known = {layer: name for name, layers in _GROUPS.items() for layer in layers}
        used = {known[layer] for layer in sums if layer in known}
        free = [name for name in _GROUPS if name not in used and name != OTHER]
        colours = dict(zip(_GROUPS, (*_COLOURS, _OTHER_COLOUR), strict=True))
        self._group_of: dict[str, str] = {}
        places = {name: name for name in used}
        for layer, _ in sums.most_common():
            if layer in known:
                self._group_of[layer] = known[layer]
            elif free:
                place = free.pop(0)
                places[place] = self._group_of[layer] = layer
            else:
                self._group_of[layer] = OTHER
                places[OTHER] = OTHER
        self.groups = [Group(places[place], colours[place]) for place in _GROUPS if place in places]

    def group(self, layer: str) -> str:
        """The name of the group that a layer is in."""
        return self._group_of.get(layer, OTHER)

    def sums(self, layers: Mapping[str, float]) -> dict[str, float]:
        """The sums of *layers* by group, in the groups' order."""
        found = dict.fromkeys((group.name for group in self.groups), 0.0)
        for layer, count in layers.items():
            if count:
                found[self.group(layer)] += count
        return {name: count for name, count in found.items() if count}

    def number(self, layer: str) -> int:
        """The place of a layer's group among the groups; 0 if the result does not have it."""
        names = self.names()
        return names.index(self.group(layer)) if self.group(layer) in names else 0

    def names(self) -> list[str]:
        return [group.name for group in self.groups]


def split(lengths: Iterable[float], gap: float = 2) -> float:
    """The length from which on bars belong on a scale of their own, so that they do not squeeze the
    others; infinity if all fit on one scale."""
    ordered = sorted(lengths)
    steps = [
        (after / before, after)
        for before, after in itertools.pairwise(ordered)
        if before >= ordered[-1] / 100 and after >= 2 * ordered[len(ordered) // 2]
    ]
    ratio, length = max(steps, default=(1.0, 0.0))
    return length if ratio >= gap else float("inf")
