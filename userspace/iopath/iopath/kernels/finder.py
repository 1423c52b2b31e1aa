# SPDX-License-Identifier: GPL-2.0
"""Find kernels by their names.

A name is PREFIX:SPEC, and the file sources/PREFIX.py knows what such names stand for. It has

NAMES               how its kernels are named, for messages; PREFIX[:SPEC] if ":SPEC" may be left
                    out, and SPEC is empty then
find(spec, finder)  the kernel that "PREFIX:SPEC" asks for
expand(...)         the names that such a name stands for, if it can stand for several
commit(spec, finder)  the repository and the revision, if its kernels are commits of one
between(good, bad, finder)  the names of the kernels from one SPEC to another, in that order, and a
                    line about them, if it has a list of kernels

WATCH                       how its kernels are watched (watching.py), if they can be
HERE                        what stands for a range of commits without a source, if it has commits

bisect takes kernels of sources with between() or commit(), series those with commit().

"host" is the running kernel, for commands that measure time.
"""

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TypeVar

from iopath.base.cache import Cache
from iopath.base.errors import UsageError, did_you_mean
from iopath.kernels import sources
from iopath.kernels.apt import Apt
from iopath.kernels.gitrepo import Repository
from iopath.kernels.kernel import Kernel
from iopath.kernels.recipe import Recipe

T = TypeVar("T")


class Finder:
    """Finds kernels with this machine's cache and package lists. Kernels of a repository are built
    by the *recipe*. *warn* is told what was skipped."""

    def __init__(self, cache: Cache, warn: Callable[[str], None]) -> None:
        self.cache = cache
        self.apt = Apt(cache, warn)
        self.warn = warn
        self.recipe = Recipe.default()
        self._known: dict[object, object] = {}

    def once(self, key: object, make: Callable[[], T], *, again: bool = False) -> T:
        """What *make* gives; it is kept under *key* for the next call."""
        if again or key not in self._known:
            self._known[key] = make()
        return self._known[key]  # type: ignore[return-value]

    def find(self, name: str) -> Kernel:
        """The kernel that *name* asks for."""
        prefix, _, spec = name.partition(":")
        known = prefixes()
        if prefix in known and (spec or _stands_alone(name)):
            return source(prefix).find(spec, self)
        if name == "host":
            raise UsageError(
                "host: measured by itself: iopath measure host --json FILE; compare the files"
            )
        near = did_you_mean(prefix, known) if spec else ""
        *names, last = (one for prefix in known for one in source(prefix).NAMES)
        raise UsageError(
            f"{name}: not a kernel{near or ';'} ask for {', '.join(names)} or {last}, e.g."
            " debian:6.1"
        )

    def commit(self, name: str) -> tuple[Repository, str] | None:
        """The repository and the revision that a kernel is; None if it is no commit."""
        prefix, _, spec = name.partition(":")
        return source(prefix).commit(spec, self) if has(name, "commit") else None

    def between(self, good: str, bad: str) -> tuple[list[str], str]:
        """The names of the kernels from *good* to *bad*, and a line about them."""
        for name in (good, bad):
            if not has(name, "between") or name.partition(":")[0] != good.partition(":")[0]:
                searched = [
                    one
                    for prefix in prefixes()
                    if has(f"{prefix}:x", "between") or has(f"{prefix}:x", "commit")
                    for one in source(prefix).NAMES
                ]
                raise UsageError(
                    f"{name}: cannot be searched: must be {' or '.join(searched)}, both ends alike"
                )
        specs = [name.partition(":")[2] for name in (good, bad)]
        return source(good.partition(":")[0]).between(*specs, self)

    def expand(self, names: Sequence[str], *, every: int = 1, merges: bool = False) -> list[str]:
        """*names*, each of which may stand for several: a range of commits stands for the commit
        that it is compared with and its own commits, oldest first."""
        found = []
        for name in names:
            prefix, _, spec = name.partition(":")
            several = None
            if has(name, "expand"):
                several = source(prefix).expand(spec, self, every=every, merges=merges)
            found += [name] if several is None else several
        return found


def has(name: str, function: str) -> bool:
    """Whether the source of a kernel has a *function* besides those that all have."""
    prefix, _, spec = name.partition(":")
    return bool(spec) and prefix in prefixes() and hasattr(source(prefix), function)


def commits(text: str) -> str:
    """The name of a range of commits: without a source, of the repository in this folder."""
    if text.partition(":")[0] in prefixes():
        return text
    return next(source(name).HERE for name in prefixes() if has(f"{name}:x", "HERE")).format(text)


def prefixes() -> list[str]:
    """The prefixes of the names of kernels."""
    return sorted(module.name for module in pkgutil.iter_modules(sources.__path__))


def _stands_alone(name: str) -> bool:
    """Whether *name* is a prefix that means a kernel by itself: NAMES say "PREFIX[:..."."""
    return ":" not in name and any(one.startswith(f"{name}[:") for one in source(name).NAMES)


def source(prefix: str) -> ModuleType:
    """The file that knows the kernels with a prefix."""
    return importlib.import_module(f"{sources.__name__}.{prefix}")
