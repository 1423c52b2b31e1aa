# SPDX-License-Identifier: GPL-2.0
"""Count what is measured on a kernel: run the guests' jobs, and assemble the records."""

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from iopath.base.errors import IopathError
from iopath.base.once import Once
from iopath.base.programs import guest_program
from iopath.counts import sharing
from iopath.guest.machine import Machine
from iopath.guest.payload import Image
from iopath.kernels.built import Built
from iopath.measure import assemble, bycalls, description, several
from iopath.measure.assemble import Counted
from iopath.measure.jobs import Job
from iopath.measure.known import Known
from iopath.measure.measurement import Bench, Measurement, Prepared
from iopath.measure.plan import make_image, plugin_options
from iopath.measure.pools import results
from iopath.results import layers
from iopath.results.result import ExactRecord
from iopath.rungs import together
from iopath.rungs.runs import Run, Settings
from iopath.rungs.together import Shared

T = TypeVar("T")

Members = Sequence[Run]  # the runs of a guest
Make = Callable[[Built, Members, Settings], Image]


def count(wanted: Measurement, ready: Prepared, bench: Bench) -> Known:
    """What is *wanted* of a kernel that is *ready*. All guests end before an error is raised."""
    settings, built = wanted.settings, ready.built
    if settings.program:
        return bycalls.count(wanted, settings.program, ready, bench)
    here = _Here(wanted, ready, bench)
    makes = make_image, partial(make_image, checks=True)
    alone = _boots(here, _count, settings.boots, ready.alone, *makes)
    shared = _boots(here, _share, settings.most_boots, ready.shared, several.make_image)
    results([future for boots in (*alone, *shared) for future in boots])
    records: dict[Run, ExactRecord] = {}
    notes = _left_out(wanted, ready)
    interrupted: list[str] = []
    for boots in map(results, alone):
        made, missing = assemble.results(
            wanted.name, built.release, boots, profile=settings.profile
        )
        records |= made
        interrupted += missing
    if not records:
        raise IopathError("; ".join(interrupted))
    notes += [f"{wanted.name}: left out: {text}" for text in interrupted]
    for members, found in zip(ready.shared, map(results, shared), strict=True):
        for run in filter(records.__contains__, members):
            records[run].cpus = settings.cpus
            records[run].sharing = sharing.merged(found, run)
            failed = sharing.failures(found, run)
            notes += [f"{wanted.name}: left out: {text}" for text in failed]
    texts = alone[0][0].result().records()
    described = description.describe(wanted.name, built, texts, settings)
    return Known(described, [records[run] for run in ready.possible if run in records], notes)


def _left_out(wanted: Measurement, ready: Prepared) -> list[str]:
    """What is measured on one CPU although several were asked for."""
    if wanted.settings.cpus == 1:
        return []
    able = {run.rung.name for members in ready.shared for run in members}
    single = dict.fromkeys(run.rung.name for run in ready.possible if run.rung.name not in able)
    text = f"measured on one CPU only: {', '.join(single)}: the program cannot use several"
    return [f"{wanted.name}: {text}"] if single else []


@dataclass(frozen=True)
class _Here:
    """What all guests of a measurement have in common."""

    wanted: Measurement
    ready: Prepared
    bench: Bench

    def run(
        self, machine: Machine, image: Image, options: str, title: str, **more: Sequence[Shared]
    ) -> Path:
        """The cache entry with what a guest gave."""
        built, bench = self.ready.built, self.bench
        job = Job(
            qemu=bench.qemu,
            machine=machine.on(built.arch).that_takes(image.devices),
            image=image,
            plugin=guest_program("pathcount.so"),
            options=options,
            release=built.release,
            cache=bench.cache.root,
            progress=bench.pools.progress(),
            **more,
        )
        return assemble.entry(job, title, bench)

    def title(self, members: Members, number: int) -> str:
        """What progress calls a guest of boot *number*."""
        boot = f"boot {number + 1}"
        if title := self.wanted.title:
            return f"{title}, {boot}" if self.wanted.settings.most_boots > 1 else title
        rungs = dict.fromkeys(run.rung.name for run in (members[0], members[-1]))
        return f"{self.wanted.name}, {boot}, {' to '.join(rungs)}"


def _boots(
    here: _Here,
    function: Callable[[_Here, Members, Callable[[], Image], int, Mapping[int, Future[T]]], T],
    often: int,
    parts: Sequence[Members],
    make: Make,
    *further: Make,
) -> list[list[Future[T]]]:
    """What *function* returns for each of *often* boots of the guests that carry out *parts*. It
    gets the boots of its guest that are submitted, by number. Those that have first figures soon
    are submitted first, also those of other kernels. *make* makes the image of a first boot.
    *further* makes those of further boots; without it, *make* does."""
    built, settings = here.ready.built, here.wanted.settings
    images = [
        [Once(partial(one, built, members, settings)) for one in (make, *further)]
        for members in parts
    ]
    found: list[dict[int, Future[T]]] = [{} for _ in parts]
    for soon in (True, False):
        for number in range(often):
            for members, image, boots in zip(parts, images, found, strict=True):
                if _has_figures_soon(members, number) == soon:
                    of_boot = image[-1] if number else image[0]
                    boots[number] = here.bench.pools.job(
                        function, here, members, of_boot, number, boots
                    )
        if soon and parts and often > 1:
            here.bench.pools.give_way()
    return [[boots[number] for number in range(often)] for boots in found]


def _has_figures_soon(members: Members, number: int) -> bool:
    """Whether boot *number* of a guest gives first figures of any of its runs. The first boot takes
    longest, so another boot gives them, but not of a run that all boots count fully: its figure
    needs the functions, which the first boot has."""
    return any((number == 0) == run.counted_fully for run in members)


def _count(
    here: _Here,
    members: Members,
    image: Callable[[], Image],
    number: int,
    boots: Mapping[int, Future[Counted]],
) -> Counted:
    """What a guest counted in boot *number* of its *boots*. Profiles are of the first one."""
    settings = here.wanted.settings
    entry = here.run(
        settings.machines()[number], image(), plugin_options(members, settings),
        here.title(members, number),
    )  # fmt: skip
    full = settings.profile and not number
    layers_, debug = layers.table(settings.layers), here.ready.debug

    def counted() -> Counted:
        named = (lambda: boots[0].result()) if number else None
        return Counted(entry, members, image().files, layers_, full, debug, named)

    key = (entry, tuple((run.region, run.rung.digest, run.op, run.block_size) for run in members))
    found = here.bench.once((*key, layers_.digest, full, debug), counted)
    reporter = here.bench.reporter
    shows = settings.boots > 1 and reporter.shows_figures
    if shows and _has_figures_soon(members, number):
        for run, figure in assemble.first_figures(found).items():
            reporter.figure(here.wanted.row(run), here.wanted.name, figure)
    if not number:
        _ = found.run_counts  # while other guests run
    return found


def _share(
    here: _Here,
    members: Members,
    image: Callable[[], Image],
    number: int,
    _: Mapping[int, Future[sharing.Boot]],
) -> sharing.Boot:
    """What several CPUs share in a guest in boot *number*."""
    settings = here.wanted.settings
    entry = here.run(
        replace(settings.machines()[number], cpus=settings.cpus), image(), "",
        f"{here.title(members, number)}, {settings.cpus} CPUs",
        shared=tuple(together.runs(members, settings)),
    )  # fmt: skip
    texts = json.loads((entry / "records.json").read_text())
    return sharing.read(json.loads(texts[sharing.RECORD]))
