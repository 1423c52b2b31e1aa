# SPDX-License-Identifier: GPL-2.0
"""A kernel with what is measured on it, and the result."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from iopath.base.arch import Arch
from iopath.guest.machine import Qemu
from iopath.kernels.built import Built
from iopath.measure.plan import guests
from iopath.results.result import ExactKernel, ExactRecord
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
        settings = self.settings
        runs, _ = make_runs(settings)
        parts = len(guests(runs, settings)) + len(guests(together.able(runs, settings), settings))
        return settings.boots * parts


@dataclass(frozen=True)
class Measured:
    """What was measured on a kernel: its description and its records; and in which emulator."""

    arch: Arch
    qemu: Qemu
    description: ExactKernel
    records: list[ExactRecord]


@dataclass(frozen=True)
class Prepared:
    """A kernel that is ready to be measured: the runs that it can carry out, by guest, and the
    kernel's debug information if it is wanted."""

    built: Built
    possible: Sequence[Run]
    parts: Sequence[Sequence[Run]]
    debug: Path | None
