# SPDX-License-Identifier: GPL-2.0
"""How the kernels of a source are watched from day to day (iopath track)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from iopath.base.arch import X86_64
from iopath.kernels.finder import Finder, has, prefixes, source


@dataclass(frozen=True)
class State:
    """What a source had at a time: the kernel that the command line calls *name*. Those on one
    *line* are compared, in the order of *position*, a version or the number of a *commit*; without
    a line, all are on one. *missing* says what is no longer there of it."""

    name: str
    title: str
    position: str
    detail: str
    line: str = ""
    date: str = ""
    commit: str = ""
    arch: str = X86_64.name
    missing: str = ""


class FindStates(Protocol):
    """The states that a SPEC stands for: with *newest*, one of each series; of commits each
    *every*th, or only *merges*."""

    def __call__(
        self, spec: str, finder: Finder, *, newest: bool, every: int, merges: bool
    ) -> Iterable[State]: ...


@dataclass(frozen=True)
class Watching:
    """*what* is watched, and the *settings* that only a watch of it has; how it is *named*, and in
    what a SPEC is wrong, in words. *alone* names what needs a watch of its own. *kept* are the
    states that were seen before, as far as they still exist, and maybe others. *branch* is the
    repository and the branch of a SPEC."""

    what: str
    settings: Sequence[str]
    named: Sequence[str]
    states: FindStates
    kept: Callable[[str, Finder, Sequence[State]], Iterable[State]]
    wrong: Callable[[str], str] = lambda spec: ""
    alone: str = ""
    branch: Callable[[str], tuple[str, str] | None] = lambda spec: None


def watching(name: str) -> Watching | None:
    """How the kernel that *name* asks for is watched; None if it cannot be."""
    return source(name.partition(":")[0]).WATCH if has(name, "WATCH") else None


def watched() -> list[Watching]:
    """All that can be watched."""
    return [found for prefix in prefixes() if (found := watching(f"{prefix}:x"))]
