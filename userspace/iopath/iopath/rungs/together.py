# SPDX-License-Identifier: GPL-2.0
"""Several CPUs at the same time: the runs, in each arrangement.

A rung runs on all CPUs of a guest at once, in each of ARRANGEMENTS.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from iopath.rungs.rung import Module, Rung
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


def sharing_only(members: Sequence[Run], settings: Settings) -> list[str]:
    """The rungs whose device exists once, so that several CPUs cannot have one each."""
    found = dict.fromkeys(run.rung for run in able(members, settings) if run.rung.target)
    return [rung.name for rung in found if not on_each(rung, settings.cpus)[2]]


def regions_of(run: Run) -> list[str]:
    """The regions of a run's arrangements."""
    return [str(run.region | number << _REGION) for number in range(len(ARRANGEMENTS))]


def on_each(rung: Rung, cpus: int) -> tuple[Rung, tuple[str, ...], tuple[str, ...]]:
    """A rung for *cpus* CPUs, the steps that make a target for each CPU, and these targets. The
    rung's modules and first steps are those for all targets. If it can have one target only, the
    rung is the same, and there are no steps and no targets."""
    if not rung.has_target_each_cpu:
        return rung, (), ()
    first, *others = rung.modules
    parameters = {name: _each(cpus, value) for name, value in first.parameters}
    for name in rung.each_cpu:
        parameters[name] = str(cpus * int(parameters[name]))
    modules = [Module(first.name, tuple(parameters.items()))]
    steps: tuple[str, ...] = ()
    for module in others:
        own = dict(module.parameters)
        if module.name == "biogen":
            device, *more = _nodes(own["device"], cpus)
            own["device"], steps = device, more_biogen(more)
        modules.append(Module(module.name, tuple(own.items())))
    targets = _nodes(rung.target or "", cpus)
    begin = tuple(
        step.replace(rung.disk, disk)
        for disk in (target.removeprefix("/dev/") for target in targets)
        for step in rung.begin
    )
    return replace(rung, modules=tuple(modules), begin=begin), steps, targets


def _each(cpus: int, value: str) -> str:
    """A parameter that has each of its values for so many devices. A single one is for all."""
    values = value.split(",")
    return ",".join(one for one in values for _ in range(cpus)) if len(values) > 1 else value


def _nodes(path: str, cpus: int) -> tuple[str, ...]:
    """A device for each CPU, instead of the device *path* with a number at its end."""
    stem = path.rstrip("0123456789")
    begin = cpus * int(path[len(stem) :])
    return tuple(f"{stem}{begin + number}" for number in range(cpus))


def more_biogen(devices: Sequence[str]) -> tuple[str, ...]:
    """The steps that make a node of biogen for each of *devices*."""
    folder = "/sys/module/biogen/parameters"
    return tuple(f"write {folder}/device {device}" for device in devices)
