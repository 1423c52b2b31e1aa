# SPDX-License-Identifier: GPL-2.0
"""Which layer a function belongs to, and which functions were renamed between kernels."""

import functools
import hashlib
import re
import tomllib
from collections.abc import Sequence, Set
from fnmatch import translate
from pathlib import Path

from iopath.base.arch import ARCHES
from iopath.base.errors import UsageError
from iopath.results.symbol import Symbol, plain

OTHER = "other"  # the layer of what no pattern matches
EBPF = "eBPF program"  # the layer of what the kernel compiles

_BUILT_IN = Path(__file__).parent / "layers.toml"
_WILDCARD = re.compile(r"[*?[]")


class Layers:
    """A table of layers. A function belongs to the first layer with a pattern that matches."""

    def __init__(self, path: Path | None = None) -> None:
        path = path or _BUILT_IN
        text = _read(path)
        self.digest = _digest(text)
        try:
            table = tomllib.loads(text)
            layers = [(layer["name"], layer["functions"]) for layer in table["layer"]]
            self._aliases = [(new["name"], *new["formerly"]) for new in table.get("alias", [])]
            self._sort(layers)
        except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
            raise UsageError(f"{path} is not a table of layers: {error}") from error
        self.names = [*dict.fromkeys(self._layers)]
        self._known: dict[Symbol, str] = {}

    def _sort(self, layers: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Sort the patterns by kind, each with the number of its layer. Most are a name, or the
        beginning of names. These are looked up, because it takes long to compile so many."""
        self._names: dict[str, int] = {}
        self._begins: dict[str, int] = {}
        others: list[tuple[str, int]] = []
        for number, (_, patterns) in enumerate(layers):
            for pattern in patterns:
                wildcard = _WILDCARD.search(pattern)
                if not wildcard:
                    self._names.setdefault(pattern, number)
                elif wildcard.group() == "*" and wildcard.end() == len(pattern):
                    self._begins.setdefault(pattern[:-1], number)
                else:
                    others.append((pattern, number))
        either = "|".join(f"({translate(pattern)})" for pattern, _ in others)
        self._others = re.compile(either or "(?!)")
        self._other_numbers = [number for _, number in others]
        self._lengths = sorted({*map(len, self._begins)})
        self._layers = [*(name for name, _ in layers), OTHER]

    def of(self, symbol: Symbol) -> str:
        """The layer of a function; OTHER if no pattern matches."""
        if symbol not in self._known:
            text = f"{plain(symbol.name)} [{symbol.module}]".removesuffix(" []")
            none = len(self._layers) - 1
            found = [self._names.get(text, none)]
            found += [self._begins.get(text[:length], none) for length in self._lengths]
            if other := self._others.match(text):  # the first pattern, so the lowest number
                found.append(self._other_numbers[other.lastindex - 1])
            self._known[symbol] = self._layers[min(found)]
        return self._known[symbol]

    def renamed(self, before: Set[str], after: Set[str]) -> dict[str, str]:
        """Which functions of two kernels have another name in the other kernel, each with the newer
        name. *before* and *after* are the plain names that each kernel executes.

        An alias is applied only if each kernel executes exactly one of its names. If a kernel
        executes two of them, they are two functions. A system call has a name of its own on each
        architecture.
        """
        found = {}
        for names in self._aliases:
            old, new = (set(names) & kernel for kernel in (before, after))
            if len(old) == len(new) == 1 and old != new:
                newest = next(name for name in names if name in old | new)
                found |= dict.fromkeys(old | new, newest)
        calls = {call: name for name in after - before if (call := _system_call(name))}
        for name in before - after:
            if newer := calls.get(_system_call(name)):
                found |= dict.fromkeys((name, newer), newer)
        return found


@functools.cache
def table(path: Path | None) -> Layers:
    """The table in a file, or the built-in one. A file is read once."""
    return Layers(path)


def digest(path: Path | None) -> str:
    """The digest of the table in a file, or of the built-in one, which is not parsed."""
    return _digest(_read(path or _BUILT_IN))


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _system_call(function: str) -> str:
    """The system call that a function is, which is named differently on each architecture; or
    empty."""
    for arch in ARCHES:
        if function.startswith(arch.syscall_prefix):
            return function.removeprefix(arch.syscall_prefix)
    return ""
