# SPDX-License-Identifier: GPL-2.0
"""What there is to do for one kernel: prepare it, run its jobs and assemble its records."""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from iopath.base.arch import Arch
from iopath.base.cache import Cache
from iopath.base.errors import IopathError
from iopath.base.programs import guest_program
from iopath.base.progress import Reporter
from iopath.counts import sharing
from iopath.guest.image import Image
from iopath.guest.machine import Machine, Qemu
from iopath.kernels.built import Built
from iopath.measure import assemble, description, several
from iopath.measure.assemble import Counted
from iopath.measure.jobs import Job
from iopath.measure.plan import guests, plugin_options
from iopath.measure.pools import Pools
from iopath.results.layers import Layers
from iopath.rungs import together
from iopath.rungs.runs import Run, Settings

Measured = tuple[dict[str, Any], list[dict[str, Any]]]  # a kernel's description, and its records


@dataclass(frozen=True)
class Prepared:
    """A kernel that is ready to be measured: the runs that it can carry out, by guest, what these
    guests are given, and the kernel's debug information if it is wanted."""

    built: Built
    possible: Sequence[Run]
    parts: Sequence[Sequence[Run]]
    images: Sequence[Image]
    debug: Path | None


class Work:
    """The work on the kernel *name*. Its methods are called by the thread that waits for the
    pools, but for _entry()."""

    def __init__(
        self, name: str, settings: Settings, cache: Cache, reporter: Reporter, pools: Pools,
        qemus: Mapping[Arch, Qemu],
    ) -> None:  # fmt: skip
        self._name = name
        self._settings = settings
        self._cache = cache
        self._reporter = reporter
        self._pools = pools
        self._qemus = qemus
        self._layers = Layers(settings.layers)
        self._left = 0  # jobs
        self._failed: dict[tuple[int, ...], IopathError] = {}
        self._boots: dict[tuple[int, int], Counted] = {}  # by guest and boot
        self._shared: dict[tuple[int, int], dict[str, Any]] = {}
        self.measured: Measured | IopathError = IopathError("it was not measured")

    def prepared(self, future: Future) -> None:
        """The kernel is prepared, or it failed: run its jobs."""
        try:
            self._ready: Prepared = future.result()
        except IopathError as error:
            self.measured = error
            return
        ready, settings = self._ready, self._settings
        for at in range(len(ready.parts)):
            for number in range(settings.boots):
                self._job(self._counted, at, number)
        if settings.cpus > 1:
            self._share()

    def _job(self, function: Any, *args: Any) -> None:  # noqa: ANN401
        self._left += 1
        self._pools.job(function, *args, then=partial(self._done, args[:2], function))

    def _done(self, key: tuple[int, int], function: Any, future: Future) -> None:  # noqa: ANN401
        """A job is done: after the last one, assemble what all gave."""
        alone = function == self._counted
        try:
            (self._boots if alone else self._shared)[key] = future.result()
        except IopathError as error:
            self._failed[not alone, *key] = error
        self._left -= 1
        if self._left:
            return
        try:
            self.measured = self._assemble()
        except IopathError as error:
            self.measured = error

    def _counted(self, at: int, number: int) -> Counted:
        """What guest *at* of boot *number* counted. Most profiles are of the first boot."""
        members = self._ready.parts[at]
        job = self._make(
            self._settings.machines()[number],
            self._ready.images[at],
            plugin_options(members),
        )
        rungs = dict.fromkeys(run.rung.name for run in (members[0], members[-1]))
        title = f"{self._name}, boot {number + 1}, {' to '.join(rungs)}"
        return Counted(
            self._entry(title, job), members, job.image.files, self._cache, self._layers,
            self._settings.profile and not number, self._ready.debug,
        )  # fmt: skip

    def _make(self, machine: Machine, image: Image, options: str, **more: Any) -> Job:  # noqa: ANN401
        built = self._ready.built
        return Job(
            qemu=self._qemus[built.arch],
            machine=machine.on(built.arch),
            image=image,
            plugin=guest_program("pathcount.so"),
            options=options,
            release=built.release,
            cache=self._cache.root,
            progress=self._pools.progress(),
            **more,
        )

    def _entry(self, name: str, job: Job) -> Path:
        """The cache entry with what *job* gives."""
        ran = False

        def make(folder: Path) -> None:
            nonlocal ran
            ran = True
            with self._reporter.guest(name) as advance:
                recorded = self._pools.run(job, advance)
            for text in recorded.warnings:
                self._reporter.warn(text)
            assemble.keep(recorded, folder)

        entry = self._cache.entry("result", job.inputs(), make)
        if not ran:
            self._reporter.finished()
        return entry

    # Several CPUs.

    def _share(self) -> None:
        """Run what several CPUs can at the same time."""
        settings, possible = self._settings, self._ready.possible
        able = [run for run in possible if together.can_run(run, settings)]
        if single := dict.fromkeys(run.rung.name for run in possible if run not in able):
            self._reporter.warn(
                f"{self._name}: measured on one CPU only: {', '.join(single)}:"
                " the program cannot use several"
            )
        self._sharing = guests(able, settings)
        for at in range(len(self._sharing)):
            for number in range(settings.boots):
                self._reporter.add()
                self._job(self._counted_together, at, number)

    def _counted_together(self, at: int, number: int) -> dict[str, Any]:
        """What several CPUs share in guest *at* of boot *number*."""
        settings, members = self._settings, self._sharing[at]
        job = self._make(
            replace(settings.machines()[number], cpus=settings.cpus),
            several.make_image(self._ready.built, members, settings),
            "",
            shared=tuple(together.runs(members, settings)),
        )
        entry = self._entry(f"{self._name}, {settings.cpus} CPUs", job)
        texts = json.loads((entry / "records.json").read_text())
        return json.loads(texts[sharing.RECORD])

    # The end.

    def _assemble(self) -> Measured:
        """The kernel's description and records."""
        if self._failed:
            raise self._failed[min(self._failed)]
        settings, ready, name = self._settings, self._ready, self._name
        records: dict[Run, dict[str, Any]] = {}
        for at, members in enumerate(ready.parts):
            boots = [self._boots[at, number] for number in range(settings.boots)]
            made = assemble.results(name, ready.built.release, boots, profile=settings.profile)
            records |= dict(zip(members, made, strict=True))
        for at, members in enumerate(self._sharing if settings.cpus > 1 else ()):
            found = [self._shared[key] for key in sorted(self._shared) if key[0] == at]
            for run in members:
                records[run] |= {"cpus": settings.cpus, "sharing": sharing.merged(found, run)}
                for text in sharing.failures(found, run):
                    self._reporter.warn(f"{name}: left out: {text}")
        texts = self._boots[0, 0].records()
        described = description.describe(name, ready.built, texts, settings)
        return described, [records[run] for run in ready.possible]
