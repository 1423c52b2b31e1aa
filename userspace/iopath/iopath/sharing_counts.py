# SPDX-License-Identifier: GPL-2.0
"""What the plugin counted in a guest with several CPUs."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iopath.arch import X86_64, Arch, named
from iopath.errors import IopathError
from iopath.symbols import KERNEL, Symbols

_TASK = 0  # the plugin's context of the task that does the I/O


@dataclass(frozen=True)
class Access:
    """What an instruction on a CPU does to a line: *at* is the address of the first byte."""

    cpu: int
    pc: int
    locked: bool
    store: bool
    bytes: int
    times: int
    at: int
    physical: int


@dataclass
class Region:
    """What the plugin counted in a region."""

    lengths: dict[int, list[int]]  # the task's instructions in each round, by CPU
    left_out: dict[int, int]
    called: dict[int, int]  # instructions in interrupts by which CPUs call each other, by CPU
    accesses: dict[int, list[Access]]  # by line


def regions(lines: Sequence[str], symbols: Symbols) -> dict[int, Region]:
    """What the plugin counted, by region."""
    found: dict[int, Region] = defaultdict(lambda: Region({}, {}, {}, defaultdict(list)))
    own: dict[int, set[int]] = defaultdict(lambda: {_TASK})
    blocks: dict[int, int] = {}
    arch = X86_64
    for line in lines:
        record = json.loads(line)
        if record["type"] == "block":
            blocks[record["block"]] = int(record["addr"], 16)
        if record["type"] == "pathcount":
            arch = named(record["target"])
        region = found[record["region"]] if "region" in record else None
        if record["type"] == "end" and record["errors"]:
            raise IopathError(f"pathcount: {'; '.join(record['errors'])}")
        if record["type"] == "flat" and region:
            region.lengths[record["cpu"]] = record["lengths"]
            region.left_out[record["cpu"]] = record["left_out"]
            entries = {
                context: (int(address, 16), symbols.find(int(address, 16)).name)
                for context, address, _ in record["entries"]
            }
            calls = _calls(record, entries, blocks, symbols, arch)
            region.called[record["cpu"]] = sum(
                executed * times
                for _, executed, context, times in record["counts"]
                if context in calls
            )
            # An I/O that ends on another CPU ends in an interrupt there.
            own[record["region"]] |= calls | {
                context for context, entry in entries.items() if arch.is_exception(*entry)
            }
        if record["type"] == "access" and region and record["context"] in own[record["region"]]:
            access = _access(record)
            # What the program's own code touches is not the kernel's doing. What happens in few
            # rounds is not the path: another task was scheduled, or an interrupt came.
            often = 2 * record["rounds"] >= len(region.lengths[access.cpu])
            if access.pc >= KERNEL and often:
                region.accesses[int(record["line"], 16)].append(access)
    return dict(found)


def _calls(
    record: Mapping[str, Any], entries: Mapping[int, tuple[int, str]], blocks: Mapping[int, int],
    symbols: Symbols, arch: Arch,
) -> set[int]:  # fmt: skip
    """The contexts of the interrupts by which CPUs call each other. Where all interrupts enter by
    one vector, these are all interrupts, if such calls are a part of the path."""
    if arch.exceptions:
        return {context for context, (_, name) in entries.items() if name.startswith(arch.calls)}
    called: dict[int, int] = defaultdict(int)
    for block, _, context, times in record["counts"]:
        if context in entries and symbols.find(blocks[block]).name.startswith(arch.calls):
            called[context] += times
    return {context for context, times in called.items() if 2 * times >= record["rounds"]}


def _access(record: dict[str, Any]) -> Access:
    touched = int(record["bytes"], 16)
    first = (touched & -touched).bit_length() - 1
    return Access(
        record["cpu"], int(record["pc"], 16), record["kind"] == "L", record["store"], touched,
        record["times"], int(record["virt"], 16) + first, int(record["line"], 16) + first,
    )  # fmt: skip
