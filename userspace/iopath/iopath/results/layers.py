# SPDX-License-Identifier: GPL-2.0
"""Which layer a function belongs to, and which functions were renamed between kernels."""

import fnmatch
import hashlib
import re
import tomllib
from collections.abc import Set
from functools import cached_property
from pathlib import Path

from iopath.base.arch import ARCHES
from iopath.base.errors import UsageError
from iopath.results.symbol import Symbol, plain


class Layers:
    """A table of layers. A function belongs to the first layer with a pattern that matches."""

    def __init__(self, path: Path | None = None) -> None:
        path = path or Path(__file__).parent / "layers.toml"
        try:
            text = path.read_text()
            self.digest = hashlib.sha256(text.encode()).hexdigest()
            table = tomllib.loads(text)
            layers = [(layer["name"], layer["functions"]) for layer in table["layer"]]
            self._aliases = [(new["name"], *new["formerly"]) for new in table.get("alias", [])]
            self._layers = [
                (name, "|".join(map(fnmatch.translate, patterns))) for name, patterns in layers
            ]
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
            raise UsageError(f"{path} is not a table of layers: {error}") from error
        self.names = [*dict.fromkeys(name for name, _ in layers), "other"]
        self._known: dict[Symbol, str] = {}

    @cached_property
    def _patterns(self) -> list[tuple[str, re.Pattern[str]]]:
        """The patterns, compiled when the first function is looked up, because that is slow."""
        return [(name, re.compile(pattern)) for name, pattern in self._layers]

    def of(self, symbol: Symbol) -> str:
        """The layer of a function; "other" if no pattern matches."""
        if symbol not in self._known:
            text = f"{plain(symbol.name)} [{symbol.module}]".removesuffix(" []")
            self._known[symbol] = next(
                (name for name, pattern in self._patterns if pattern.match(text)), "other"
            )
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


def _system_call(function: str) -> str:
    """The system call that a function is, which is named differently on each architecture; or
    empty."""
    for arch in ARCHES:
        if function.startswith(arch.syscall_prefix):
            return function.removeprefix(arch.syscall_prefix)
    return ""
