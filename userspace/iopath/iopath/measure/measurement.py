# SPDX-License-Identifier: GPL-2.0
"""What is measured on a kernel, what that takes, and the result."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self, TypeVar

from iopath.base.cache import Cache
from iopath.base.progress import Reporter
from iopath.guest.machine import Qemu
from iopath.kernels.built import Built
from iopath.measure.plan import guests
from iopath.measure.pools import Pools
from iopath.results.result import ExactRecord, size_text
from iopath.rungs import together
from iopath.rungs.runs import Run, Settings, make_runs


@dataclass(frozen=True, eq=False)
class Measurement:
    """What is measured on the kernel *name*. Progress calls its guests *title*, or by their kernel,
    boot and rungs. *lacks* says what a kernel lacks for the measurement; empty if nothing."""

    name: str
    settings: Settings
    title: str = ""
    lacks: Callable[[Built], str] = lambda built: ""

    @property
    def guests(self) -> int:
        """The guests of a kernel that lacks nothing."""
        runs, _ = make_runs(self.settings)
        return _number(_alone(runs, self.settings), _shared(runs, self.settings), self.settings)

    def row(self, one: Run | ExactRecord) -> str:
        """The name of a row among those that are measured."""
        size = size_text(one.block_size) if len(self.settings.block_sizes) > 1 else ""
        return " ".join(filter(None, [one.title, size]))


T = TypeVar("T")

Parts = Sequence[Sequence[Run]]  # runs by guest


@dataclass(frozen=True)
class Prepared:
    """A kernel that is ready to be measured: the runs that it can carry out; the same by guest,
    *alone* on one CPU, and *shared* by several; and its debug information if it is wanted."""

    built: Built
    possible: Sequence[Run]
    alone: Parts
    shared: Parts
    guests: int
    debug: Path | None

    @classmethod
    def of(
        cls, settings: Settings, built: Built, possible: Sequence[Run], debug: Path | None
    ) -> Self:
        alone, shared = _alone(possible, settings), _shared(possible, settings)
        number = _number(alone, shared, settings)
        return cls(built, possible, alone, shared, number, debug)


def _number(alone: Parts, shared: Parts, settings: Settings) -> int:
    return settings.boots * len(alone) + settings.most_boots * len(shared)


def _alone(runs: Sequence[Run], settings: Settings) -> list[list[Run]]:
    return guests(runs, settings)


def _shared(runs: Sequence[Run], settings: Settings) -> list[list[Run]]:
    return guests(together.able(runs, settings), settings)


class KeepOnce(Protocol):
    """Finder.once()."""

    def __call__(self, key: object, make: Callable[[], T]) -> T: ...


@dataclass(frozen=True)
class Bench:
    """What guests run on: an emulator, and the pools of all measurements. *cache* keeps what they
    give. *warn* gets warnings of this time. once(key, make) keeps what is made, until the end."""

    qemu: Qemu
    pools: Pools
    cache: Cache
    reporter: Reporter
    warn: Callable[[str], None]
    once: KeepOnce
