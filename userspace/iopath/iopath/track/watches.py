# SPDX-License-Identifier: GPL-2.0
"""The file of iopath track: which kernels are watched, and what is measured on them
(Documentation/track.rst)."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from iopath.base.arch import BY_DEBIAN, X86_64
from iopath.base.errors import UsageError
from iopath.base.typed import JsonObject
from iopath.compare import noise
from iopath.kernels import recipe
from iopath.kernels.apt import SUITES
from iopath.kernels.watching import Watching, watched, watching
from iopath.measure.commandline import CommandLine
from iopath.results.ops import OPS
from iopath.rungs import builtin, tomlfile
from iopath.rungs.builtin import DEVICES, MOUNTS
from iopath.rungs.rung import Rung
from iopath.rungs.runs import MOST_CPUS

ALL, NEWEST = "all", "newest"  # which releases of a series of Debian's kernels


@dataclass(frozen=True)
class Watch:
    """Kernels in one chart: Debian's, or the commits of a branch."""

    name: str
    kernels: tuple[str, ...]
    releases: str = NEWEST
    every: int = 1
    merges: bool = False
    suite: str = recipe.SUITE
    config: str = recipe.MINIMAL
    kconfig: tuple[str, ...] = ()
    arch: str = X86_64.debian

    @property
    def asked(self) -> list[tuple[str, Watching]]:
        """The kernels without their sources, and how each is watched."""
        return [
            (name.partition(":")[2], found) for name in self.kernels if (found := watching(name))
        ]

    @property
    def branch(self) -> tuple[str, str] | None:
        """The repository and the branch, if it is one."""
        return next(found.branch(spec) for spec, found in self.asked)


@dataclass(frozen=True)
class Config:
    """What a file says."""

    watches: tuple[Watch, ...]
    rungs: tuple[Rung, ...]
    title: str = "What an I/O costs"
    url: str = ""  # where the site is published
    origin: str = "iopath"  # the name of the sender in KCIDB
    program: CommandLine | None = None  # what is measured instead of rungs
    ops: tuple[str, ...] = OPS
    block_sizes: tuple[int, ...] = (4096,)
    boots: int = noise.BOOTS
    cpus: int = 1


def _among(names: Collection[str]) -> tomlfile.Parse:
    def parse(value: object) -> str:
        if not isinstance(value, str) or value not in names:
            raise ValueError
        return value

    return parse


def _matching(pattern: str) -> tomlfile.Parse:
    def parse(value: object) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise ValueError
        return value

    return parse


def _sizes(value: object) -> tuple[int, ...]:
    sizes = [tomlfile.positive(part) for part in value] if isinstance(value, list) else []
    if not sizes or any(size % 512 or size > 1 << 20 for size in sizes):
        raise ValueError
    return tuple(sizes)


def _cpus(value: object) -> int:
    found = tomlfile.positive(value)
    if found > MOST_CPUS:
        raise ValueError
    return found


def _some_words(value: object) -> tuple[str, ...]:
    found = tomlfile.strings(value)
    if not found:
        raise ValueError
    return found


def _some(value: object) -> tuple[str, ...]:
    found = tomlfile.words(value)
    if not found or len(set(found)) < len(found):
        raise ValueError
    return found


_TOP: tomlfile.Fields = {
    "title": ("title", "a string", tomlfile.is_(str)),
    "url": ("url", "an address that begins with https:// or http://", _matching(r"https?://\S+")),
    "origin": ("origin", "letters a-z, digits and '_'", _matching(r"[a-z0-9_]+")),
    "rungs": ("rungs", "a list of names of rungs, each once", _some),
    "rung_file": ("rung_file", "the path of a file of rungs", tomlfile.is_(str)),
    "ops": ("ops", "a list of 'read' and 'write'", tomlfile.ops),
    "block_sizes": ("block_sizes", "a list of multiples of 512 up to 1048576", _sizes),
    "boots": ("boots", "a number from 1 on", tomlfile.positive),
    "cpus": ("cpus", "a number of CPUs from 1 to 8", _cpus),
    "program": ("program", "a table: write [program]", tomlfile.is_(dict)),
    "watch": ("watch", "tables: write [[watch]]", tomlfile.is_(list)),
}
_OF_RUNGS = ("rungs", "rung_file", "ops", "block_sizes", "cpus")


def _names(value: object) -> tuple[str, ...]:
    return tomlfile.strings([value] if isinstance(value, str) else value)


_PROGRAM: tomlfile.Fields = {
    "command": ("words", "a list of words", _some_words),
    "device": ("device", f"one of {', '.join(DEVICES)}", _among(DEVICES)),
    "mount": ("mount", f"one of {', '.join(MOUNTS)}", _among(MOUNTS)),
    "package": ("package", "the name of a package, or a list of names", _names),
    "files": ("given", "a list of HOST or HOST:GUEST", tomlfile.strings),
    "drain": ("drain", "a number of seconds from 1 on", tomlfile.positive),
}
_WATCH: tomlfile.Fields = {
    "name": ("name", "a string", tomlfile.is_(str)),
    "kernels": ("kernels", "a list of kernels, each once", _some),
    "releases": ("releases", f"'{ALL}' or '{NEWEST}'", _among((ALL, NEWEST))),
    "every": ("every", "a number from 1 on", tomlfile.positive),
    "merges": ("merges", "true or false", tomlfile.is_(bool)),
    "suite": ("suite", f"one of {', '.join(SUITES)}", _among(SUITES)),
    "config": ("config", "'minimal', 'debian:SERIES', a target or a file", tomlfile.is_(str)),
    "kconfig": ("kconfig", "a list of options like 'FOO=y'", tomlfile.words),
    "arch": ("arch", f"one of {', '.join(BY_DEBIAN)}", _among(BY_DEBIAN)),
}


def load(path: Path) -> Config:
    """The content of a file. Raises UsageError for the first mistake in it."""
    table = tomlfile.load(path)
    found = tomlfile.values("the top", table, _TOP, path)
    if "program" in found:
        for name in (name for name in _OF_RUNGS if name in found):
            raise UsageError(f"{path}: {name} is for rungs: leave it out with [program]")
        found = {"boots": noise.OFTEN, **found, "program": _program(found["program"], path)}
    file = found.pop("rung_file", "")
    added = builtin.load(path.parent / file) if file else []
    try:
        chosen = builtin.select(found.pop("rungs", ()), added) if "program" not in found else []
    except UsageError as error:
        raise UsageError(f"{path}: rungs: {error}") from error
    watches = tuple(_watch(part, path) for part in found.pop("watch", ()))
    if not watches:
        raise UsageError(f"{path}: nothing to watch: add a table [[watch]] with name and kernels")
    names = [watch.name for watch in watches]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{path}: two tables [[watch]] have the name '{name}'")
    return Config(watches=watches, rungs=tuple(chosen), **found)


def _program(table: object, path: Path) -> CommandLine:
    found = tomlfile.values("program", table, _PROGRAM, path)
    if "words" not in found:
        raise UsageError(f"{path}: program: no command: e.g. command = ['ls', '/']")
    return CommandLine(**found)


def _watch(table: JsonObject, path: Path) -> Watch:
    what = f"watch '{tomlfile.named('watch', table, path)}'"
    watch = Watch(**{"kernels": (), **tomlfile.values(what, table, _WATCH, path)})
    where = f"{path}: {what}"
    if not watch.kernels:
        raise UsageError(f"{where}: no kernels: e.g. kernels = ['debian:6.1']")
    for kernel in watch.kernels:
        _check(kernel, f"{where}: kernel '{kernel}'")
    own = [found for _, found in watch.asked]
    if alone := next((one.alone for one in own if one.alone and len(own) > 1), ""):
        raise UsageError(f"{where}: {alone} is watched alone: give it a [[watch]] of its own")
    for other in watched():
        for name in other.settings if other not in own else ():
            if name in table:
                raise UsageError(f"{where}: {name} is for {other.what}")
    recipe.recipe(watch.suite, None, watch.kconfig)  # complains about an option
    return watch


def _check(kernel: str, where: str) -> None:
    found = watching(kernel)
    if not found:
        *names, last = (name for one in watched() for name in one.named)
        raise UsageError(f"{where}: cannot be watched: it must be {', '.join(names)} or {last}")
    if wrong := found.wrong(kernel.partition(":")[2]):
        raise UsageError(f"{where}: {wrong}")
