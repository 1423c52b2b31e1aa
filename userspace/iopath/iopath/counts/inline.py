# SPDX-License-Identifier: GPL-2.0
"""Source lines and inlined functions of kernel addresses, from a kernel's debug information.

Compilers inline most small functions of a path, so a profile by symbol shows only their callers.
The debug information of the kernel that was measured tells them apart.
"""

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from iopath.base import process
from iopath.base.errors import IopathError
from iopath.counts.symbols import KERNEL, Symbols
from iopath.results.profiles import SourceLine

# The build directory of a distribution or a tree, which precedes the path in the kernel's source.
_PREFIX = re.compile(r"^(?:.*/linux-[^/]+/)?(?:debian/build/[^/]+/|\./)?")


class Lines:
    """The source of instructions of one kernel.

    *vmlinux* is the kernel with its debug information, *symbols* are those of a guest that ran it:
    if it was moved (KASLR), addresses are moved back.
    """

    def __init__(self, vmlinux: Path, symbols: Symbols) -> None:
        self._vmlinux = vmlinux
        names = subprocess.run(
            [process.need("nm", "binutils"), vmlinux], capture_output=True, text=True, check=False
        ).stdout
        text = re.search(r"^([0-9a-f]+) [tT] _text$", names, re.MULTILINE)
        if not text:
            raise IopathError(f"{vmlinux} is not a kernel with symbols")
        self._moved = symbols.text_start - int(text.group(1), 16)

    def find(self, addresses: Iterable[int]) -> dict[int, list[tuple[str, str]]]:
        """For each address the function it is in and "file:line", and then the functions that this
        one is inlined into; addresses without debug information are left out."""
        wanted = sorted({address for address in addresses if address >= KERNEL})
        text = "".join(f"{address - self._moved:#x}\n" for address in wanted)
        output = subprocess.run(
            [process.need("addr2line", "binutils"), "-a", "-i", "-f", "-e", self._vmlinux],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        found: dict[int, list[tuple[str, str]]] = {}
        chain: list[tuple[str, str]] = []
        lines = iter(output.splitlines())
        for line in lines:
            if line.startswith("0x"):
                chain = found.setdefault(int(line, 16) + self._moved, [])
                continue
            place = _PREFIX.sub("", next(lines, "??:0").split(" (")[0])
            if line != "??" and not place.endswith((":?", ":0")):
                chain.append((line, place))
        found = {address: chain for address, chain in found.items() if chain}
        if wanted and not found:
            raise IopathError(
                f"{self._vmlinux} has no debug information: build it with CONFIG_DEBUG_INFO_DWARF5"
            )
        return found


def break_down(counts: Mapping[int, float], lines: Lines, symbols: Symbols) -> list[SourceLine]:
    """Instructions by source line: those of each function, with the function that is inlined there.

    *counts* are instructions per I/O by address. Rows are ordered by the function's total, then by
    their own count; *inlined* is empty for the function's own lines.
    """
    where = lines.find(counts)
    rows: dict[tuple[str, str, str], float] = defaultdict(float)
    totals: dict[str, float] = defaultdict(float)
    for address, count in counts.items():
        if address not in where:
            continue
        function = symbols.find(address).text
        inlined, place = where[address][0]
        outer = where[address][-1][0]
        rows[function, "" if inlined == outer else inlined, place] += count
        totals[function] += count
    ordered = sorted(rows.items(), key=lambda row: (-totals[row[0][0]], row[0][0], -row[1], row[0]))
    return [
        SourceLine(function=function, inlined=inlined, line=place, instructions=round(count, 4))
        for (function, inlined, place), count in ordered
    ]
