# SPDX-License-Identifier: GPL-2.0
"""The guests of a measurement on one kernel: run their jobs, and assemble its records."""

import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from iopath.base.cache import Cache
from iopath.base.errors import IopathError
from iopath.base.programs import guest_program
from iopath.base.progress import Reporter
from iopath.counts import sharing
from iopath.guest.image import Image
from iopath.guest.machine import Machine, Qemu
from iopath.measure import assemble, description, several
from iopath.measure.assemble import Counted
from iopath.measure.jobs import Job
from iopath.measure.measurement import Measured, Measurement, Prepared
from iopath.measure.plan import guests, make_image, plugin_options
from iopath.measure.pools import Pools
from iopath.results import layers
from iopath.results.result import ExactRecord
from iopath.rungs import together
from iopath.rungs.runs import Run


class Guests:
    """The guests of a measurement, whose kernel is *ready*. *then* is called with what was
    measured, or with the error. *note* gets the warnings that belong to the result, and *warn*
    those of this time. _counted() and _counted_together() run in the threads of the pool of jobs.
    The thread that waits for the pools calls the other methods."""

    def __init__(
        self, wanted: Measurement, ready: Prepared, qemu: Qemu, cache: Cache, reporter: Reporter,
        warn: Callable[[str], None], note: Callable[[str], None], pools: Pools,
        then: Callable[[Measured | IopathError], None],
    ) -> None:  # fmt: skip
        self._wanted = wanted
        self._ready = ready
        self._name = wanted.name
        self._settings = wanted.settings
        self._qemu = qemu
        self._cache = cache
        self._reporter = reporter
        self._warn = warn
        self._note = note
        self._pools = pools
        self._then = then
        self._layers = layers.table(wanted.settings.layers)
        self._left = 0  # jobs
        self._failed: dict[tuple[int, ...], IopathError] = {}
        self._boots: dict[tuple[int, int], Counted] = {}  # by guest and boot
        self._images: dict[tuple[object, int], Image] = {}  # by what makes them, and guest
        self._making = threading.Lock()  # protects _images
        self._sharing = guests(together.able(ready.possible, self._settings), self._settings)
        self._shared: dict[tuple[int, int], sharing.Boot] = {}

    def run(self) -> int:
        """Have the pools run all jobs; returns how many there are."""
        for at in range(len(self._ready.parts)):
            for number in range(self._settings.boots):
                self._job(self._counted, at, number)
        if self._settings.cpus > 1:
            self._share()
        return self._left

    def _job(self, function: Any, *args: Any) -> None:  # noqa: ANN401
        self._left += 1
        self._pools.job(function, *args, then=partial(self._done, args[:2], function))

    def _done(self, key: tuple[int, int], function: Any, future: Future) -> None:  # noqa: ANN401
        """A job is done: after the last one, assemble the results of all."""
        alone = function == self._counted
        try:
            (self._boots if alone else self._shared)[key] = future.result()
        except IopathError as error:
            self._failed[not alone, *key] = error
        self._left -= 1
        if self._left:
            return
        measured: Measured | IopathError
        try:
            measured = self._assemble()
        except IopathError as error:
            measured = error
        self._boots.clear()  # they have the guests' files
        self._images.clear()
        self._then(measured)

    def _counted(self, at: int, number: int) -> Counted:
        """What guest *at* of boot *number* counted. Most profiles are of the first boot."""
        settings, members = self._settings, self._ready.parts[at]
        job = self._make(
            settings.machines()[number],
            self._image(make_image, at, members),
            plugin_options(members, settings),
        )
        counted = Counted(
            self._entry(self._title(members, number), job), members, job.image.files, self._cache,
            self._layers, settings.profile and not number, self._ready.debug,
        )  # fmt: skip
        counted.compute()  # while other guests run
        return counted

    def _image(self, make: Callable[..., Image], at: int, members: Sequence[Run]) -> Image:
        """What guest *at* is given, which is the same in each boot."""
        with self._making:
            if (make, at) not in self._images:
                self._images[make, at] = make(self._ready.built, members, self._settings)
            return self._images[make, at]

    def _title(self, members: Sequence[Run], number: int) -> str:
        """What progress calls a guest of boot *number*."""
        boot = f"boot {number + 1}"
        if title := self._wanted.title:
            return f"{title}, {boot}" if self._settings.boots > 1 else title
        rungs = dict.fromkeys(run.rung.name for run in (members[0], members[-1]))
        return f"{self._name}, {boot}, {' to '.join(rungs)}"

    def _make(self, machine: Machine, image: Image, options: str, **more: Any) -> Job:  # noqa: ANN401
        built = self._ready.built
        return Job(
            qemu=self._qemu,
            machine=machine.on(built.arch).that_takes(image.devices),
            image=image,
            plugin=guest_program("pathcount.so"),
            options=options,
            release=built.release,
            cache=self._cache.root,
            progress=self._pools.progress(),
            **more,
        )

    def _entry(self, name: str, job: Job) -> Path:
        return assemble.entry(job, name, self._pools, self._cache, self._reporter, self._warn)

    # Several CPUs.

    def _share(self) -> None:
        """Run what can run on several CPUs at the same time."""
        settings, possible = self._settings, self._ready.possible
        able = together.able(possible, settings)
        if single := dict.fromkeys(run.rung.name for run in possible if run not in able):
            self._note(
                f"{self._name}: measured on one CPU only: {', '.join(single)}:"
                " the program cannot use several"
            )
        for at in range(len(self._sharing)):
            for number in range(settings.boots):
                self._job(self._counted_together, at, number)

    def _counted_together(self, at: int, number: int) -> sharing.Boot:
        """What several CPUs share in guest *at* of boot *number*."""
        settings, members = self._settings, self._sharing[at]
        job = self._make(
            replace(settings.machines()[number], cpus=settings.cpus),
            self._image(several.make_image, at, members),
            "",
            shared=tuple(together.runs(members, settings)),
        )
        entry = self._entry(f"{self._title(members, number)}, {settings.cpus} CPUs", job)
        texts = json.loads((entry / "records.json").read_text())
        return sharing.read(json.loads(texts[sharing.RECORD]))

    # The end.

    def _assemble(self) -> Measured:
        """The kernel's description and records."""
        if self._failed:
            raise self._failed[min(self._failed)]
        settings, ready, name = self._settings, self._ready, self._name
        records: dict[Run, ExactRecord] = {}
        for at, members in enumerate(ready.parts):
            boots = [self._boots[at, number] for number in range(settings.boots)]
            made = assemble.results(name, ready.built.release, boots, profile=settings.profile)
            records |= dict(zip(members, made, strict=True))
        for at, members in enumerate(self._sharing):
            found = [self._shared[key] for key in sorted(self._shared) if key[0] == at]
            for run in members:
                records[run].cpus = settings.cpus
                records[run].sharing = sharing.merged(found, run)
                for text in sharing.failures(found, run):
                    self._note(f"{name}: left out: {text}")
        texts = self._boots[0, 0].records()
        described = description.describe(name, ready.built, texts, settings)
        found = [records[run] for run in ready.possible]
        return Measured(ready.built.arch, self._qemu, described, found)
