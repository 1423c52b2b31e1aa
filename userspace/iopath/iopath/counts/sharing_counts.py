# SPDX-License-Identifier: GPL-2.0
"""What the plugin counted in a guest with several CPUs."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from iopath.counts.plugin_output import Access, Flat, Output
from iopath.counts.symbols import KERNEL, Symbols

_TASK = 0  # the plugin's context of the task that does the I/O


@dataclass
class SharingRegion:
    """What the plugin counted in a region."""

    lengths: dict[int, list[int]]  # the task's instructions in each round, by CPU
    left_out: dict[int, int]
    called: dict[int, int]  # instructions in interrupts by which CPUs call each other, by CPU
    accesses: dict[int, list[Access]]  # by line


def regions(output: Output, symbols: Symbols) -> dict[int, SharingRegion]:
    """What the plugin counted, by region."""
    found = {}
    for number, flats in output.flats.items():
        region = found[number] = SharingRegion({}, {}, {}, defaultdict(list))
        own = {_TASK}
        for flat in flats:
            names = {
                context: symbols.find(entry.address).name for context, entry in flat.entries.items()
            }
            calls = _calls(flat, names, output, symbols)
            region.lengths[flat.cpu] = flat.lengths
            region.left_out[flat.cpu] = flat.left_out
            region.called[flat.cpu] = sum(
                part.instructions * part.times for part in flat.counts if part.context in calls
            )
            # An I/O that ends on another CPU ends in an interrupt there.
            own |= calls | {
                context
                for context, entry in flat.entries.items()
                if output.arch.is_exception(entry.address, names[context])
            }
        for use in output.uses.get(number, ()):
            # Accesses by the program's own code are not the kernel's. Accesses in few rounds are
            # not on the path: another task was scheduled, or an interrupt came.
            often = 2 * use.rounds >= len(region.lengths[use.access.cpu])
            if use.context in own and use.access.pc >= KERNEL and often:
                region.accesses[use.line].append(use.access)
    return found


def _calls(flat: Flat, names: Mapping[int, str], output: Output, symbols: Symbols) -> set[int]:
    """The contexts of the interrupts by which CPUs call each other. Where all interrupts enter by
    one vector, these are all interrupts, if such calls are a part of the path."""
    prefix = output.arch.calls
    if output.arch.exceptions:
        return {context for context, name in names.items() if name.startswith(prefix)}
    called: dict[int, int] = defaultdict(int)
    for part in flat.counts:
        address = output.blocks[part.block].address
        if part.context in names and symbols.find(address).name.startswith(prefix):
            called[part.context] += part.times
    return {context for context, times in called.items() if 2 * times >= flat.rounds}
