# SPDX-License-Identifier: GPL-2.0
"""Measure rungs on kernels: prepare each kernel, run its jobs, and assemble the result."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace

from iopath import __version__
from iopath.base.arch import X86_64, Arch
from iopath.base.cache import Cache, digest_file, digest_of
from iopath.base.errors import IopathError, Unreachable, UsageError
from iopath.base.programs import guest_program
from iopath.base.progress import Reporter
from iopath.base.sources import source_digest
from iopath.counts import paging
from iopath.guest import guest, kvm
from iopath.guest.machine import Qemu
from iopath.host import survey, timing
from iopath.kernels import emulators, prepare
from iopath.kernels.built import Built, Step
from iopath.kernels.finder import Finder
from iopath.kernels.gitrepo import Repository
from iopath.kernels.kernel import Kernel
from iopath.kernels.sources import debian, git
from iopath.kernels.sources.debian import DebianKernel
from iopath.measure import packages, timed
from iopath.measure.plan import guests, make_image, unmet
from iopath.measure.pools import pools
from iopath.measure.work import Measured, Prepared, Work
from iopath.results import result
from iopath.results.findings import contradiction, findings
from iopath.results.result import Result
from iopath.rungs.runs import Run, Settings, make_runs


class Session(Finder):
    """One run of the command: finds kernels, and measures them."""

    def __init__(self, cache: Cache, reporter: Reporter) -> None:
        super().__init__(cache, reporter.warn)
        self.reporter = reporter
        # Runs jobs and prepares kernels. Without one, threads run jobs, and build() builds.
        self.executor: Executor | None = None
        self._asked = prepare.Asked(cache, self.apt)

    def debian_kernels(self, arch: Arch = X86_64, *, update: bool = False) -> list[DebianKernel]:
        return debian.available(self, arch, update=update)

    def repository(self, place: str) -> Repository:
        """The repository at a path or an address."""
        return git.repository(self, place)

    def build(self, kernel: Kernel, step: Step) -> Built:
        """Prepare a kernel: on a worker if there is one that can, or here."""
        if self.executor:
            self._asked.fetch(self.executor, kernel, step, self.reporter.note)
        return kernel.prepare(self.cache, self.apt, step)

    def build_ahead(self, names: Sequence[str]) -> None:
        """Have workers prepare kernels that are built later, if there are any."""
        for name in names if self.executor else ():
            self._asked.ask(self.executor, self.find(name), lambda what, part: None)

    def measure(
        self, names: Sequence[str], settings: Settings, executor: Executor | None = None
    ) -> Result:
        """Measure the kernels *names*. Guests run in *executor*, which the caller shuts down, or
        else in threads, one per CPU. If any kernel fails, the others' measurements are finished
        (and cached) before the first failure is raised.
        """
        repeated = [name for name in names if list(names).count(name) > 1]
        if repeated:
            raise UsageError(f"{repeated[0]}: a kernel may be named once")
        runs, left_out = make_runs(settings)
        if left_out:
            self.reporter.warn(
                f"left out, a batch takes longer than the timer's tick: {', '.join(left_out)}"
            )
        if not runs:
            raise UsageError("nothing is left to measure: choose other rungs, sizes or operations")
        kernels = [self.find(name) for name in names]
        arches = dict.fromkeys(kernel.arch for kernel in kernels)
        qemus = {arch: self._emulator(settings.machine.emulator, arch) for arch in arches}
        equipped = {arch: self._equipped(settings, arch) for arch in arches}
        if settings.cpus > 1:
            paging.check(arches)
        if not settings.machine.exact:
            if foreign := next((arch for arch in arches if arch != X86_64), None):
                raise UsageError(f"--accel kvm: this machine cannot run a kernel of {foreign.name}")
            return self._measure_time(names, kernels, equipped[X86_64], settings, qemus)
        number = len(names) * settings.boots * len(guests(runs, settings))
        executor = executor or self.executor
        with (
            self.reporter.running(number),
            pools(len(names), 2 * number if executor else guest.cpu_count(), executor) as both,
        ):
            works = [Work(name, settings, self.cache, self.reporter, both, qemus) for name in names]
            for work, name, kernel in zip(works, names, kernels, strict=True):
                own = equipped[kernel.arch]
                both.prepare(self._prepare, name, kernel, own, settings, then=work.prepared)
            both.finish()
            measured = _finish(names, works, self.reporter)
        whole = result.make(
            {
                "schema": result.SCHEMA,
                "program": f"iopath {__version__}",
                "mode": "exact",
                "qemu": _emulators(list(qemus.values())),
                "machine": {
                    "cpu": ", ".join(settings.machine.on(arch).model for arch in arches),
                    "memory_mib": settings.machine.memory,
                    "cmdline": settings.machine.cmdline,
                    "seed": settings.machine.seed,
                },
                "programs": {
                    name: _digests(digest_file(guest_program(name, arch)) for arch in arches)
                    for name in ("init", "ioloop")
                }
                | {"pathcount": digest_file(guest_program("pathcount.so"))},
                "source": source_digest(),
                "kernels": [description for description, _ in measured],
                "results": [record for _, records in measured for record in records],
            }
        )
        for record in whole.results:
            if text := contradiction(record):
                raise IopathError(f"{record.kernel.name}: {record.title}: {text}")
            for text in findings(record):
                self.reporter.warn(f"{record.kernel.name}: {record.title}: {text}")
        return whole

    def _emulator(self, suite: str, arch: Arch) -> Qemu:
        """The emulator of an architecture: that of a suite, or the installed one."""
        if not suite:
            return Qemu.find(arch)
        with self.reporter.running(1), self.reporter.task(f"QEMU of {suite}") as step:
            return emulators.emulator(suite, arch, self.cache, self.apt, step)

    def _equipped(self, settings: Settings, arch: Arch) -> list[Run]:
        """The runs with the programs of packages that they need."""
        rungs = packages.equipped(settings.rungs, self.cache, self.apt.of(arch))
        return make_runs(replace(settings, rungs=rungs))[0]

    def _prepare(
        self, name: str, kernel: Kernel, runs: Sequence[Run], settings: Settings
    ) -> Prepared:
        """Prepare a kernel, and what its guests are given."""
        with self.reporter.task(name) as step:
            built = self.build(kernel, step)
            possible = self.possible(name, built, runs)
            debug = None
            if settings.profile and settings.inline:
                debug = kernel.debug_info(built, self.cache, self.apt, step)
        parts = guests(possible, settings)
        images = [make_image(built, members, settings) for members in parts]
        for _ in range(settings.boots * (len(guests(runs, settings)) - len(parts))):
            self.reporter.finished()
        return Prepared(built, possible, parts, images, debug)

    def _measure_time(
        self,
        names: Sequence[str],
        kernels: Sequence[Kernel],
        runs: Sequence[Run],
        settings: Settings,
        qemus: Mapping[Arch, Qemu],
    ) -> Result:
        """Measure time in guests that run on the processor itself, one after the other."""
        if settings.machine.accel == "kvm":
            kvm.need()
        whole = timing.result_of(survey.choose_cpu(None), [])
        whole["kernels"] = []
        with self.reporter.running(len(names)):
            for name, kernel in zip(names, kernels, strict=True):
                with self.reporter.task(name) as step:
                    built = self.build(kernel, step)
                log = self.cache.root / "logs" / f"{built.release}-kvm.log"
                possible = self.possible(name, built, runs)
                with self.reporter.guest(name) as advance:
                    described, records = timed.measure(
                        name, built, possible, settings, qemus[X86_64], log, advance
                    )
                whole["kernels"].append(described)
                whole["results"] += records
        return result.make(whole)

    def possible(self, name: str, built: Built, runs: Sequence[Run]) -> list[Run]:
        """Those of *runs* whose preconditions a kernel meets; the others are warned of."""
        missing: dict[str, list[str]] = {}
        for rung in dict.fromkeys(run.rung for run in runs):
            if lack := unmet(rung, built):
                missing.setdefault(lack, []).append(rung.name)
        for lack, rungs in missing.items():
            self.reporter.warn(f"{name}: left out: {', '.join(rungs)}: {lack}")
        left_out = {rung for rungs in missing.values() for rung in rungs}
        left = [run for run in runs if run.rung.name not in left_out]
        if not left:
            raise IopathError(f"nothing is left to measure: {'; '.join(missing)}")
        return left


def _emulators(qemus: Sequence[Qemu]) -> dict[str, str]:
    """The version of the emulators, which all come from one package's source, and what they are
    known by."""
    versions = dict.fromkeys(qemu.version for qemu in qemus)
    return {"version": ", ".join(versions), "digest": _digests(qemu.digest for qemu in qemus)}


def _digests(parts: Iterable[str]) -> str:
    """One digest for what several architectures have each its own of."""
    found = list(parts)
    return found[0] if len(found) == 1 else digest_of(found)


def _finish(names: Sequence[str], works: Sequence[Work], reporter: Reporter) -> list[Measured]:
    done, failures = [], []
    for name, work in zip(names, works, strict=True):
        if isinstance(work.measured, IopathError):
            kind = Unreachable if isinstance(work.measured, Unreachable) else IopathError
            failures.append(kind(f"{name}: {work.measured}"))
        else:
            done.append(work.measured)
    for failure in failures[1:]:
        reporter.warn(str(failure))
    if failures:
        raise failures[0]
    return done
