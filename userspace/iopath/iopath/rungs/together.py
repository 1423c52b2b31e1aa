# SPDX-License-Identifier: GPL-2.0
"""Several CPUs at the same time: the runs, in each arrangement.

A rung runs on all CPUs of a guest at once, in each of ARRANGEMENTS.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from iopath.rungs.builtin import on_each
from iopath.rungs.runs import Run, Settings

# What the CPUs share: nothing but the kernel; the device; the open file of it and the process.
DEVICES, FILES, THREADS = "devices", "files", "threads"
ARRANGEMENTS = (DEVICES, FILES, THREADS)

_ROUNDS = 12
_REGION = 12  # bits of a run's number; the number of its arrangement is above


@dataclass(frozen=True)
class Shared:
    """A run on several CPUs."""

    run: Run
    arrangement: str
    cpus: int
    targets: tuple[str, ...]

    @property
    def region(self) -> int:
        return self.run.region | ARRANGEMENTS.index(self.arrangement) << _REGION

    @property
    def name(self) -> str:
        """The name of its record."""
        return f"shared.{self.region}"

    def command(self) -> list[str]:
        """The command line of the program."""
        run, devices = self.run, self.arrangement == DEVICES
        target = ":".join(self.targets if devices else self.targets[:1]) or run.rung.target
        rung = replace(run.rung, cpus=f"0-{self.cpus - 1}", target=target)
        words = rung.command(run.op, run.block_size, self.region, rounds=_ROUNDS)
        if not devices:
            words.append(f"--numjobs={self.cpus}")
        if self.arrangement == THREADS:
            words.append("--thread")
            if target:
                words.append("--share_file")
        return words


def runs(members: Sequence[Run], settings: Settings) -> list[Shared]:
    """The runs on several CPUs of a guest that carries out *members*. biogen's generator runs once
    on a device at a time."""
    found = []
    for run in members:
        targets = on_each(run.rung, settings.cpus)[2]
        for arrangement in ARRANGEMENTS:
            if targets if arrangement == DEVICES else run.rung.own_threads:
                found.append(Shared(run, arrangement, settings.cpus, targets))
    return found


def able(members: Sequence[Run], settings: Settings) -> list[Run]:
    """Those of *members* that can be carried out on several CPUs, if any are asked for. A user's
    program cannot, nor a kernel thread that has one device, nor a rung that waits for a device of
    the emulator."""
    if settings.cpus == 1:
        return []
    return [
        run
        for run in members
        if run.rung.program is None and not run.rung.waits and runs([run], settings)
    ]


def regions_of(run: Run) -> list[str]:
    """The regions of a run's arrangements."""
    return [str(run.region | number << _REGION) for number in range(len(ARRANGEMENTS))]
