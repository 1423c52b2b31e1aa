# SPDX-License-Identifier: GPL-2.0
"""Functions by address, and their names."""

import bisect
import re
from dataclasses import dataclass

from iopath.errors import IopathError

KERNEL = 1 << 63  # kernel addresses start here

# Names that mark a place rather than a function.
_NO_FUNCTION = re.compile(r"_?_?(s?text|stext|text_start|entry_text_start|irqentry_text_start)$")
_SUFFIX = re.compile(r"\.(isra|part|constprop|cold|llvm|lto_priv)(\.\d+)*")


def plain(name: str) -> str:
    """The name of a function without the suffixes that compilers add."""
    return _SUFFIX.sub("", name)


_Named = tuple[str, str, str]  # the kind of a symbol, its name and its module


@dataclass(frozen=True)
class Symbol:
    """A function: its name, and the module it is in ("" for the kernel, "user" for the program)."""

    name: str
    module: str = ""

    @property
    def text(self) -> str:
        return f"{self.name} [{self.module}]" if self.module else self.name


class Symbols:
    """The functions of a guest, by address."""

    def __init__(self, kallsyms: str, program: str = "") -> None:
        """*kallsyms* is the guest's /proc/kallsyms, *program* the output of nm for the program."""
        found: dict[int, _Named] = {}
        for line in kallsyms.splitlines():
            fields = line.split()
            if len(fields) < 3 or fields[1] not in "tTwW":
                continue
            module = fields[3].strip("[]") if len(fields) > 3 else ""
            _offer(found, int(fields[0], 16), (fields[1], fields[2], module))
        for line in program.splitlines():
            fields = line.split()
            if len(fields) == 3 and fields[1] in "tTwWi":
                _offer(found, int(fields[0], 16), (fields[1], fields[2], "user"))
        if not any(address >= KERNEL for address in found):
            raise IopathError(
                "the guest's /proc/kallsyms has no function: its kernel needs CONFIG_KALLSYMS_ALL"
                " and kptr_restrict=0"
            )
        self._addresses = sorted(found)
        self._named = [found[address] for address in self._addresses]

    @property
    def text_start(self) -> int:
        """The start of the kernel's code in this guest."""
        return next(address for address in self._addresses if address >= KERNEL)

    def find(self, address: int) -> Symbol:
        """The function that *address* lies in."""
        at = bisect.bisect_right(self._addresses, address) - 1
        if at >= 0 and (self._addresses[at] >= KERNEL) == (address >= KERNEL):
            _, name, module = self._named[at]
            return Symbol(name, module)
        return Symbol(f"{address:#x}", "user" if address < KERNEL else "unknown")


def _offer(found: dict[int, _Named], address: int, named: _Named) -> None:
    """Keep the best-known of several names of one address."""
    other = found.setdefault(address, named)
    if other is not named and _rank(named) < _rank(other):
        found[address] = named


def _rank(named: _Named) -> tuple[bool, bool, bool, int, int, str]:
    kind, name, _ = named
    return (
        _NO_FUNCTION.match(name) is not None,
        name.startswith(("__pfx_", "__cfi_", "__pi_")),
        kind not in "TWi",
        len(name) - len(name.lstrip("_")),
        len(name),
        name,
    )
