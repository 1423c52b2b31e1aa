# SPDX-License-Identifier: GPL-2.0
"""The guests in which rungs run on several CPUs at the same time."""

from collections.abc import Sequence

from iopath.guest.payload import KALLSYMS, QUIET, Image, Start
from iopath.kernels.built import Built
from iopath.measure.plan import FACTS, prepared
from iopath.rungs.runs import Run, Settings
from iopath.rungs.together import on_each, runs


def make_image(built: Built, members: Sequence[Run], settings: Settings) -> Image:
    """What a guest with several CPUs is given to carry out *members*."""
    rungs = [on_each(run.rung, settings.cpus)[0] for run in members]
    image = prepared(built, rungs, settings, start(built, settings.cpus))
    plan = image.plan
    plan += dict.fromkeys(step for run in members for step in on_each(run.rung, settings.cpus)[1])
    plan += [f"file {path}" for path in (*FACTS, KALLSYMS)]
    plan.append(QUIET)
    for shared in runs(members, settings):
        rung = shared.run.rung
        plan += [
            *rung.setup,
            *(f"age {target}" for target in shared.targets or rung.paths),
            " ".join([f"run {shared.name}", *shared.command()]),
            *rung.cleanup,
        ]
    return image


def start(built: Built, cpus: int) -> Start:
    """The start of a guest with several CPUs: all go online."""
    online = [f"write /sys/devices/system/cpu/cpu{cpu}/online 1" for cpu in range(1, cpus)]
    return Start(built.vmlinuz, (*online, QUIET), arch=built.arch)
