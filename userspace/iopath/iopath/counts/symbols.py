# SPDX-License-Identifier: GPL-2.0
"""Functions by address, and their names."""

import bisect
import re
from collections.abc import Sequence, Set
from functools import lru_cache
from operator import itemgetter

from iopath.base.errors import IopathError
from iopath.results.symbol import Symbol, plain

KERNEL = 1 << 63  # kernel addresses start here

# Address, kind, name and module. Modules of riscv64 also list labels of the assembler (".L").
_FUNCTION = re.compile(r"^([0-9a-f]+) ([tTwW]) (?!\.L)(\S+)[ \t]*(\S*)$", re.MULTILINE)

# Names that mark a place rather than a function.
_NO_FUNCTION = re.compile(r"_?_?(s?text|stext|text_start|entry_text_start|irqentry_text_start)$")


_Named = tuple[int, Sequence[str]]  # an address with the kind, the name and the module

_KERNELS = 4  # whose functions are remembered: all guests of a kernel have the same


def _listed(kallsyms: str) -> list[_Named]:
    return [(int(address, 16), fields) for address, *fields in _FUNCTION.findall(kallsyms)]


of_kernel = lru_cache(_KERNELS)(_listed)


class Symbols:
    """The functions of a guest, by address."""

    def __init__(self, kallsyms: str, program: str = "", modules: str = "") -> None:
        """*kallsyms* is the guest's /proc/kallsyms. *program* and *modules* have lines of the same
        form: the functions of the program, and of the modules."""
        named = [*of_kernel(kallsyms), *_listed(modules)]
        if not any(address >= KERNEL for address, _ in named):
            raise IopathError(
                "the guest's /proc/kallsyms has no function: its kernel needs CONFIG_KALLSYMS_ALL"
                " and kptr_restrict=0"
            )
        named += [
            (int(fields[0], 16), [*fields[1:], "user"])
            for fields in map(str.split, program.splitlines())
            if len(fields) == 3 and fields[1] in "tTwWi" and not fields[2].startswith("$")
        ]
        named.sort(key=itemgetter(0))
        self._addresses = [address for address, _ in named]
        self._names = [fields for _, fields in named]
        self._known: dict[int, Symbol] = {}
        self._starts: dict[Set[str], dict[int, str]] = {}

    @property
    def text_start(self) -> int:
        """The start of the kernel's code in this guest."""
        return next(address for address in self._addresses if address >= KERNEL)

    def starts(self, wanted: Set[str]) -> dict[int, str]:
        """The kernel's functions *wanted* that are entered at one address, by that address. A
        function that the compiler divided (.part) may be entered in another place, too."""
        key = frozenset(wanted)
        if key not in self._starts:
            self._starts[key] = self._find_starts(key)
        return self._starts[key]

    def _find_starts(self, wanted: Set[str]) -> dict[int, str]:
        found: dict[int, str] = {}
        divided = set()
        for address, (_, name, module) in zip(self._addresses, self._names, strict=True):
            known = plain(name) if "." in name else name
            if known not in wanted or module or ".cold" in name:
                continue
            if ".part" in name:
                divided.add(known)
            else:
                found[address] = known
        return {address: name for address, name in found.items() if name not in divided}

    def find(self, address: int) -> Symbol:
        """The function that *address* lies in."""
        at = bisect.bisect_right(self._addresses, address) - 1
        if at < 0 or (self._addresses[at] >= KERNEL) != (address >= KERNEL):
            return Symbol(f"{address:#x}", "user" if address < KERNEL else "unknown")
        if at not in self._known:
            first = bisect.bisect_left(self._addresses, self._addresses[at])
            _, name, module = min(self._names[first : at + 1], key=_rank)
            self._known[at] = Symbol(name, module.strip("[]"))
        return self._known[at]

    def find_each(self, addresses: Sequence[int]) -> list[Symbol]:
        """The functions that ascending *addresses* lie in."""
        first, last = (bisect.bisect_right(self._addresses, addresses[at]) for at in (0, -1))
        if first == last:
            return [self.find(addresses[0])] * len(addresses)
        return [self.find(address) for address in addresses]


def _rank(named: Sequence[str]) -> tuple[bool, bool, bool, int, int, str]:
    """The order of several names of one address: the best-known is the least. A name is the kind of
    a symbol, its name, and its module if it is in one."""
    kind, name, *_ = named
    return (
        _NO_FUNCTION.match(name) is not None,
        name.startswith(("__pfx_", "__cfi_", "__pi_")),
        kind not in "TWi",
        len(name) - len(name.lstrip("_")),
        len(name),
        name,
    )
