# SPDX-License-Identifier: GPL-2.0
"""Measure rungs on kernels: prepare each kernel, run its jobs, and assemble the result."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial

from iopath import __version__
from iopath.base.arch import X86_64, Arch
from iopath.base.cache import Cache
from iopath.base.errors import IopathError, Lacking, Unreachable, UsageError
from iopath.base.once import Once
from iopath.base.progress import Reporter
from iopath.base.sources import source_digest
from iopath.counts import paging
from iopath.guest.machine import Qemu
from iopath.kernels import emulators, guest_programs, prepare
from iopath.kernels.built import Built, Step
from iopath.kernels.finder import Finder
from iopath.kernels.kernel import Kernel
from iopath.measure import known, packages
from iopath.measure.measurement import Bench, Measurement, Prepared
from iopath.measure.plan import unmet
from iopath.measure.pools import pools
from iopath.results import result
from iopath.results.checks import contradiction
from iopath.results.findings import findings
from iopath.results.result import ExactRecord, ExactResult, GuestMachine, Key, Result
from iopath.rungs import together
from iopath.rungs.runs import Run, Settings, make_runs

TOGETHER = 4  # kernels that one machine prepares at a time


class Session(Finder):
    """One run of the command: finds kernels, and measures them."""

    def __init__(self, cache: Cache, reporter: Reporter) -> None:
        super().__init__(cache, reporter.warn)
        self.reporter = reporter
        # Runs jobs and prepares kernels. Without one, threads run jobs, and build() builds.
        self.executor: Executor | None = None
        self.places = len(os.sched_getaffinity(0))  # how many jobs run at a time
        self.together = TOGETHER  # how many of many kernels are measured at a time
        self._asked = prepare.Asked(cache, self.apt)
        self._warned: set[tuple[str, Key]] = set()
        self.printed: dict[str, bytes] = {}  # by a program in its first boot, by kernel

    def build(self, kernel: Kernel, step: Step) -> Built:
        """Prepare a kernel: on a worker if there is one that can, or here."""
        if self.executor:
            self._asked.fetch(self.executor, kernel, step, self.reporter.note)
        return kernel.prepare(self.cache, self.apt, step)

    def build_ahead(self, names: Sequence[str]) -> None:
        """Have workers prepare kernels that are built later, if there are any."""
        for name in names if self.executor else ():
            self._asked.ask(self.executor, self.find(name), lambda what, part: None)

    def measure(self, names: Sequence[str], settings: Settings) -> Result:
        """The result of the kernels *names*. If any fails, the others' measurements are finished
        (and cached) before the first failure is raised."""
        return result.join([*self.results(names, settings).values()])

    def results(self, names: Sequence[str], settings: Settings) -> dict[str, Result]:
        """The same for each kernel, by its name."""
        repeated = [name for name in names if list(names).count(name) > 1]
        if repeated:
            raise UsageError(f"{repeated[0]}: a kernel may be named once")
        warn = self.reporter.warn
        if not settings.machine.exact:
            kernels = {name: self.find(name) for name in names}
            _check(settings, kernels, warn)
            return self._measure_times(kernels, settings)
        wanted = [Measurement(name, settings) for name in names]
        found = {one.name: whole for one, whole in self.measure_each(wanted, warn, names)}
        failures = [
            (Unreachable if isinstance(one, Unreachable) else IopathError)(f"{name}: {one}")
            for name in names
            if isinstance(one := found[name], IopathError)
        ]
        for failure in failures[1:]:
            warn(str(failure))
        if failures:
            raise failures[0]
        self.warn_of(record for name in names for record in found[name].results)
        return {name: found[name] for name in names}

    def warn_of(self, records: Iterable[ExactRecord]) -> None:
        """Warn of what the median of a record does not show: once, although the record of more
        boots may have another figure."""
        for record in records:
            name = record.kernel.name
            if (name, record.key) not in self._warned:
                for text in findings(record):
                    self.reporter.warn(f"{name}: {record.title}: {text}")
            self._warned.add((name, record.key))

    def measure_each(
        self,
        wanted: Sequence[Measurement],
        warn: Callable[[str], None] = lambda text: None,
        shown: Sequence[str] = (),
    ) -> Iterator[tuple[Measurement, ExactResult | IopathError]]:
        """Carry out all measurements *wanted*, in emulation, in one pair of pools: each with its
        result or its error when it is complete. Each kernel is built once. First figures of the
        kernels *shown* are shown."""
        kernels = {one.name: self.find(one.name) for one in wanted}
        for settings in {id(one.settings): one.settings for one in wanted}.values():
            names = [one.name for one in wanted if one.settings is settings]
            _check(settings, {name: kernels[name] for name in names}, warn)
        suites = {one: (one.settings.machine.emulator, kernels[one.name].arch) for one in wanted}
        qemus = {suite: self.emulator(*suite) for suite in dict.fromkeys(suites.values())}
        for arch in dict.fromkeys((X86_64, *(arch for _, arch in suites.values()))):
            self.programs(arch)
        builds = {name: Once(partial(self._build, name, one)) for name, one in kernels.items()}
        with (
            self.reporter.running(sum(one.guests for one in wanted), shown),
            pools(len(kernels), self.places, self.executor) as both,
        ):
            futures = {}
            for one in wanted:
                qemu = qemus[suites[one]]
                bench = Bench(qemu, both, self.cache, self.reporter, warn, self.once)
                kernel, build = kernels[one.name], builds[one.name]
                futures[both.measure(self._measure, one, kernel, build, bench)] = one
            for future in both.each(futures):
                try:
                    found: ExactResult | IopathError = future.result()
                except IopathError as error:
                    found = error
                yield futures.pop(future), found

    def _measure(
        self, wanted: Measurement, kernel: Kernel, build: Callable[[], Built], bench: Bench
    ) -> ExactResult:
        """Measure on a kernel, in a thread: prepare it; take what is known, or count it."""
        left = wanted.guests
        try:
            ready = self._prepare(wanted, kernel, build(), bench.warn)
            arch, of_program = ready.built.arch, bool(wanted.settings.program)
            programs = self.once(
                ("programs", arch, of_program), partial(known.digests, arch, wanted.settings)
            )
            inputs = known.inputs(wanted, ready, bench.qemu, programs)
            found = known.read(self.cache, inputs)
            if found:
                for record in found.records:
                    row, figure = wanted.row(record), record.instructions_per_io
                    self.reporter.figure(row, wanted.name, figure, known=True)
            else:
                # What runs guests takes long to import.
                from iopath.measure.counting import count

                left -= ready.guests
                found = count(wanted, ready, bench)
                # A cache that cannot be written is no reason to lose the result.
                with contextlib.suppress(IopathError):
                    known.keep(self.cache, inputs, found)
        finally:
            self.reporter.finished(guests=left)
        for note in found.notes:
            bench.warn(note)
        self.printed[wanted.name] = found.printed.encode(errors="surrogateescape")
        return _result(wanted.settings, ready.built.arch, bench.qemu, found, programs)

    def emulator(self, suite: str, arch: Arch) -> Qemu:
        """The emulator of an architecture: that of a suite, or the installed one."""
        if not suite:
            return Qemu.find(arch, self.cache)
        with self.reporter.running(1), self.reporter.task(f"QEMU of {suite}") as step:
            return emulators.emulator(suite, arch, self.cache, self.apt, step)

    def programs(self, arch: Arch) -> None:
        """Have the programs for guests of an architecture, or for this machine."""
        if guest_programs.are_built(arch):
            return
        with self.reporter.running(1), self.reporter.task("programs of guests") as step:
            guest_programs.build(arch, self.cache, self.apt, step)

    def _equipped(self, settings: Settings, arch: Arch) -> list[Run]:
        """The runs with the programs of packages that they need."""
        rungs = packages.equipped(settings.rungs, self.cache, self.apt.of(arch))
        return make_runs(replace(settings, rungs=rungs))[0]

    def _build(self, name: str, kernel: Kernel) -> Built:
        with self.reporter.task(name) as step:
            built = self.build(kernel, step)
        for text in built.notes:
            self.reporter.warn(text)
        return built

    def _prepare(
        self, wanted: Measurement, kernel: Kernel, built: Built, warn: Callable[[str], None]
    ) -> Prepared:
        """Prepare what is measured on a kernel that is built."""
        settings = wanted.settings
        lack = wanted.lacks(built) or (settings.program and unmet(settings.rungs[0], built))
        if lack:
            raise Lacking(lack)
        possible = self.possible(wanted.name, built, self._equipped(settings, built.arch), warn)
        debug = None
        if settings.profile and settings.inline:
            with self.reporter.task(wanted.name) as step:
                debug = kernel.debug_info(built, self.cache, self.apt, step)
        return Prepared.of(settings, built, possible, debug)

    def _measure_times(
        self, kernels: Mapping[str, Kernel], settings: Settings
    ) -> dict[str, Result]:
        """Measure time in guests that run on the processor itself, one after the other."""
        from iopath.guest import kvm  # nothing else needs these
        from iopath.host import survey, timing
        from iopath.measure import timed

        if foreign := next((one.arch for one in kernels.values() if one.arch != X86_64), None):
            raise UsageError(f"--accel kvm: this machine cannot run a kernel of {foreign.name}")
        qemu = self.emulator(settings.machine.emulator, X86_64)
        self.programs(X86_64)
        runs = self._equipped(settings, X86_64)
        if settings.machine.accel == "kvm":
            kvm.need()
        empty = timing.result_of(survey.choose_cpu(None), [])
        found = {}
        with self.reporter.running(len(kernels)):
            for name, kernel in kernels.items():
                built = self._build(name, kernel)
                log = self.cache.root / "logs" / f"{built.release}-kvm.log"
                possible = self.possible(name, built, runs, self.reporter.warn)
                with self.reporter.guest(name) as advance:
                    described, records = timed.measure(
                        name, built, possible, settings, qemu, log, advance
                    )
                found[name] = replace(empty, kernels=[described], results=records)
        return found

    def possible(
        self, name: str, built: Built, runs: Sequence[Run], warn: Callable[[str], None]
    ) -> list[Run]:
        """Those of *runs* whose preconditions a kernel meets; *warn* is told of the others."""
        missing: dict[str, list[str]] = {}
        for rung in dict.fromkeys(run.rung for run in runs):
            if lack := unmet(rung, built):
                missing.setdefault(lack, []).append(rung.name)
        for lack, rungs in missing.items():
            warn(f"{name}: left out: {', '.join(rungs)}: {lack}")
        left_out = {rung for rungs in missing.values() for rung in rungs}
        left = [run for run in runs if run.rung.name not in left_out]
        if not left:
            raise IopathError(f"nothing is left to measure: {'; '.join(missing)}")
        return left


def _result(
    settings: Settings, arch: Arch, qemu: Qemu, found: known.Known, programs: dict[str, str]
) -> ExactResult:
    """The result of a kernel. Raises IopathError where it contradicts itself."""
    for record in found.records:
        if text := contradiction(record):
            raise IopathError(f"{record.kernel.name}: {record.title}: {text}")
    machine = settings.machine.on(arch)
    on = {rung.name: rung.on for rung in settings.rungs}
    return ExactResult(
        schema=result.SCHEMA,
        program=f"iopath {__version__}",
        mode="exact",
        qemu=result.QemuVersion(version=qemu.version, digest=qemu.digest),
        machine=GuestMachine(
            cpu=machine.model,
            memory_mib=settings.machine.memory,
            cmdline=settings.machine.cmdline,
            seed=settings.machine.seed,
        ),
        programs=programs,
        source=source_digest(),
        kernels=[found.description],
        results=[replace(one, on=on.get(one.rung) or None) for one in found.records],
        device=settings.rungs[0].name if settings.program else None,
    )


def _check(settings: Settings, kernels: Mapping[str, Kernel], warn: Callable[[str], None]) -> None:
    """Raise UsageError if nothing can be measured, and warn of what cannot."""
    for name, kernel in kernels.items() if settings.program else ():
        if kernel.arch != settings.program.arch:
            raise UsageError(
                f"{name}: a kernel of {kernel.arch.name}: the program is of"
                f" {settings.program.arch.name}"
            )
    runs, left_out = make_runs(settings)
    if left_out:
        warn(f"left out, a batch takes longer than the timer's tick: {', '.join(left_out)}")
    if not runs:
        raise UsageError("nothing is left to measure: choose other rungs, sizes or operations")
    if shared := together.sharing_only(runs, settings):
        warn(f"CPUs share a device, since each cannot have its own: {', '.join(shared)}")
    if settings.cpus > 1:
        paging.check(kernel.arch for kernel in kernels.values())
