# SPDX-License-Identifier: GPL-2.0
"""Measure time in guests that run on the processor itself, by KVM."""

from collections.abc import Callable, Sequence
from pathlib import Path

from iopath.guest import guest
from iopath.guest.machine import Qemu
from iopath.host import samples
from iopath.host.samples import Sampled
from iopath.kernels.built import Built
from iopath.measure import description
from iopath.measure.plan import groups, make_image
from iopath.results.result import HardwareRecord, KernelName, MeasuredKernel
from iopath.rungs import ioloop_report
from iopath.rungs.runs import NOISE_PASSES, TIMED, TIMED_ROUNDS, Run, Settings


def measure(
    name: str,
    built: Built,
    runs: Sequence[Run],
    settings: Settings,
    qemu: Qemu,
    log: Path,
    progress: Callable[[float], None],
) -> tuple[MeasuredKernel, list[HardwareRecord]]:
    """Measure a kernel, one guest after the other: its description, and a record for each run."""
    boots: list[dict[str, str]] = []
    images = [make_image(built, members, settings) for members in groups(runs, settings)]
    for machine in settings.machines():
        texts: dict[str, str] = {}
        for image in images:
            commands = len(image.plan)
            recorded, _ = guest.run(
                qemu, machine, image, log, lambda done, all_=commands: progress(done / all_)
            )
            texts |= {part.name: part.data.decode(errors="replace") for part in recorded}
        boots.append(texts)
    records = []
    for run in runs:
        found = [
            [
                samples.sample(run, ioloop_report.read(texts[f"run.{run.region}.{number}"]))
                for number in range(NOISE_PASSES + settings.passes)
            ]
            for texts in boots
        ]
        taken = [[one for one, _ in boot] for boot in found]
        first = [boot[:NOISE_PASSES] for boot in taken]
        own = [boot[NOISE_PASSES:] for boot in taken]
        of = Sampled(
            KernelName(name=name, release=built.release), run, found[0][0][1], TIMED_ROUNDS,
            TIMED * run.ios, run.rung.command(run.op, run.block_size, run.region),
        )  # fmt: skip
        records.append(samples.record_boots(of, first, own))
    return description.describe(name, built, boots[0], settings), records
