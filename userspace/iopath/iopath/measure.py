# SPDX-License-Identifier: GPL-2.0
"""Measure rungs on kernels: prepare each kernel, run its jobs, and assemble the result."""

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from iopath import (
    __version__,
    assemble,
    gitrepo,
    guest,
    host,
    jobs,
    kernelinfo,
    kvm,
    noise,
    packages,
    prepare,
    process,
    result,
    sharing,
    survey,
    timed,
)
from iopath.apt import Apt
from iopath.arch import RISCV64, X86_64, Arch
from iopath.assemble import Counted
from iopath.build import Built, Step, debug_info
from iopath.cache import Cache, digest_file, digest_of
from iopath.errors import IopathError, Unreachable, UsageError, did_you_mean
from iopath.gitrepo import Repository, open_repository
from iopath.jobs import Job, Recorded
from iopath.kernelbuild import GitKernel, Recipe
from iopath.kernels import DebianKernel, arch_of, list_debian, parse_tree, select
from iopath.layers import Layers
from iopath.machine import Qemu
from iopath.plan import (
    Run,
    Settings,
    guests,
    make_image,
    make_runs,
    plugin_options,
    unmet,
)
from iopath.prepare import Kernel
from iopath.programs import guest_program
from iopath.progress import Reporter
from iopath.result import Result
from iopath.sources import source_digest

_SHARING_BOOTS = 2  # guests with several CPUs, if there are as many boots
_POLL = 0.25  # seconds between two looks at a job's progress

_Measured = tuple[dict[str, Any], list[dict[str, Any]]]  # a kernel's description, and its records


class Session:
    """One run of the command: the cache, the packages and the settings."""

    def __init__(self, cache: Cache, reporter: Reporter) -> None:
        self.cache = cache
        self.reporter = reporter
        self.apt = Apt(cache, reporter.warn)
        self.recipe = Recipe.default()
        # Runs jobs and prepares kernels. Without one, threads run jobs, and build() builds.
        self.executor: Executor | None = None
        self._asked = prepare.Asked(cache, self.apt)
        self._kernels: dict[Arch, list[DebianKernel]] = {}
        self._repositories: dict[str, Repository] = {}

    def debian_kernels(self, arch: Arch = X86_64, *, update: bool = False) -> list[DebianKernel]:
        if arch not in self._kernels or update:
            self._kernels[arch] = list_debian(self.apt.of(arch).packages(update=update))
        return self._kernels[arch]

    def repository(self, place: str) -> Repository:
        """The repository at a path or an address."""
        if place not in self._repositories:
            self._repositories[place] = open_repository(place, self.cache)
        return self._repositories[place]

    def expand(self, names: Sequence[str], *, every: int = 1, merges: bool = False) -> list[str]:
        """*names* with each range of commits, git:PATH@A..B, as its commits, oldest first, behind
        the commit that it is compared with."""
        found = []
        for name in names:
            place, revision = gitrepo.split(name.removeprefix("git:"))
            if not name.startswith("git:") or ".." not in revision:
                found.append(name)
                continue
            repository = self.repository(place)
            first, last = revision.split("..", 1)
            if "..." in revision or not first:
                raise UsageError(f"{name}: not a range of commits: it must be like A..B")
            commits = repository.between(first, last or "HEAD", every=every, merges=merges)
            found += [
                f"git:{place}@{commit[:12]}" for commit in (repository.commit(first), *commits)
            ]
        return found

    def build(self, kernel: Kernel, step: Step) -> Built:
        """Prepare a kernel: on a worker if there is one that can, or here."""
        if self.executor:
            self._asked.fetch(self.executor, kernel, step, self.reporter.note)
        return prepare.build(kernel, self.cache, self.apt, step)

    def build_ahead(self, names: Sequence[str]) -> None:
        """Have workers prepare kernels that are built later, if there are any."""
        for name in names if self.executor else ():
            self._asked.ask(self.executor, self.find(name), lambda what, part: None)

    def debug_info(self, kernel: Kernel, built: Built, step: Step) -> Path:
        """The kernel that was *built* as an ELF file with its debug information."""
        if isinstance(kernel, GitKernel):
            raise UsageError(
                "--inline: kernels of a git repository are built without debug information"
            )
        return debug_info(kernel, built, self.cache, self.apt, step)

    def find(self, name: str) -> Kernel:
        """The kernel that *name* asks for."""
        kind, _, spec = name.partition(":")
        if kind == "debian" and spec:
            kernel, passed_over = select(spec, self.debian_kernels(arch_of(spec)))
            for newer in passed_over:
                self.reporter.warn(
                    f"{name}: skipping {newer.release}: {newer.missing} is no longer on the mirror"
                )
            return kernel
        if kind == "tree" and spec:
            return parse_tree(spec)
        if kind == "git" and spec:
            place, revision = gitrepo.split(spec)
            if ".." in revision:
                raise UsageError(f"{name}: a range is for measure, compare and series")
            repository = self.repository(place)
            return GitKernel(repository, repository.commit(revision), self.recipe)
        if name == "host":
            raise UsageError(
                "host: measured by itself: iopath measure host --json FILE; compare the files"
            )
        near = did_you_mean(kind, ("debian", "tree", "git")) if spec else ""
        raise UsageError(
            f"{name}: not a kernel{near or ';'} ask for debian:SERIES, debian:RELEASE, tree:PATH or"
            " git:PATH@REVISION, e.g. debian:6.1"
        )

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
        qemus = {arch: Qemu.find(arch) for arch in arches}
        equipped = {arch: self._equipped(settings, arch) for arch in arches}
        if settings.cpus > 1 and RISCV64 in arches:
            raise UsageError("--cpus: kernels of riscv64 are measured on one CPU: leave it out")
        if not settings.machine.exact:
            if foreign := next((arch for arch in arches if arch != X86_64), None):
                raise UsageError(f"--accel kvm: this machine cannot run a kernel of {foreign.name}")
            return self._measure_time(names, kernels, equipped[X86_64], settings, qemus)
        with (
            self.reporter.running(len(names) * settings.boots * len(guests(runs, settings))),
            tempfile.TemporaryDirectory(prefix="iopath-jobs-") as folder,
            ThreadPoolExecutor(len(names)) as pool,
            ThreadPoolExecutor(guest.cpu_count()) as local,
        ):
            work = _Work(self, settings, qemus, executor or self.executor or local, Path(folder))
            measuring = [
                pool.submit(work.measure, name, kernel, equipped[kernel.arch])
                for name, kernel in zip(names, kernels, strict=True)
            ]
            try:
                measured = _finish(names, measuring, self.reporter)
            except IopathError:
                raise  # nothing runs any more, and a search goes on with other kernels
            except BaseException:
                process.stop_all()
                pool.shutdown(cancel_futures=True)
                raise
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
                },
                "source": source_digest(),
                "kernels": [description for description, _ in measured],
                "results": [record for _, records in measured for record in records],
            }
        )
        for record in whole.results:
            for text in noise.findings(record):
                self.reporter.warn(f"{record.kernel.name}: {record.title}: {text}")
        return whole

    def _equipped(self, settings: Settings, arch: Arch) -> list[Run]:
        """The runs with the programs of packages that they need."""
        rungs = packages.equipped(settings.rungs, self.cache, self.apt.of(arch))
        return make_runs(replace(settings, rungs=rungs))[0]

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
        whole = host.result_of(survey.choose_cpu(None), [])
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


class _Work:
    """The jobs of one measurement. Their progress is in *folder*; they are cancelled when it is
    removed."""

    def __init__(
        self, session: Session, settings: Settings, qemus: Mapping[Arch, Qemu], executor: Executor,
        folder: Path,
    ) -> None:  # fmt: skip
        self._session = session
        self._settings = settings
        self._qemus = qemus
        self._executor = executor
        self._folder = folder
        self._numbers = count(1)

    def measure(self, name: str, kernel: Kernel, runs: Sequence[Run]) -> _Measured:
        """Prepare a kernel, run its jobs and assemble its records."""
        settings, session = self._settings, self._session
        with session.reporter.task(name) as step:
            built = session.build(kernel, step)
            possible = session.possible(name, built, runs)
            debug = None
            if settings.profile and settings.inline:
                debug = session.debug_info(kernel, built, step)
        machines = [machine.on(built.arch) for machine in settings.machines()]
        parts = guests(possible, settings)
        images = [make_image(built, members, settings) for members in parts]
        for _ in range(settings.boots * (len(guests(runs, settings)) - len(parts))):
            session.reporter.finished()
        layers = Layers(settings.layers)
        several = []
        if settings.cpus > 1:
            several = [run for run in possible if sharing.can_run(run, settings)]
            if single := dict.fromkeys(run.rung.name for run in possible if run not in several):
                session.reporter.warn(
                    f"{name}: measured on one CPU only: {', '.join(single)}:"
                    " the program cannot use several"
                )

        def boot(number: int, at: int, *, full: bool) -> Counted:
            """What guest *at* of boot *number* counted; with what a profile takes if *full*, which
            changes no figure."""
            job = Job(
                qemu=self._qemus[built.arch],
                machine=machines[number],
                image=images[at],
                plugin=guest_program("pathcount.so"),
                options=plugin_options(parts[at], full=full),
                release=built.release,
                cache=session.cache.root,
                progress=self._folder / str(next(self._numbers)),
            )
            rungs = dict.fromkeys(run.rung.name for run in (parts[at][0], parts[at][-1]))
            title = f"{name}, boot {number + 1}, {' to '.join(rungs)}"
            return Counted(self._entry(title, job), parts[at], session.cache, layers)

        def profiled(number: int, at: int) -> Counted:
            """The same, where a profile is needed."""
            if not number:
                return found[at][0]
            session.reporter.add()
            return boot(number, at, full=True)

        with ThreadPoolExecutor(settings.boots * len(parts) + 1) as pool:
            shared = pool.submit(self._shared, name, built, several)
            waiting = [
                [
                    pool.submit(boot, number, at, full=settings.profile and not number)
                    for number in range(settings.boots)
                ]
                for at in range(len(parts))
            ]
            found = [[future.result() for future in boots] for boots in waiting]
        records = {}
        for at, boots in enumerate(found):
            again = partial(profiled, at=at) if settings.profile else None
            made = assemble.results(name, built.release, boots, again, debug)
            records |= dict(zip(parts[at], made, strict=True))
        for run, part in shared.result().items():
            records[run] |= {"cpus": settings.cpus, "sharing": part}
        described = kernelinfo.describe(name, built, found[0][0].records(), settings)
        return described, [records[run] for run in possible]

    def _shared(self, name: str, built: Built, runs: Sequence[Run]) -> dict[Run, dict[str, Any]]:
        """What several CPUs share in each of *runs*."""
        settings = self._settings
        found = {}
        for members in guests(runs, settings):
            image = sharing.make_image(built, members, settings)
            boots = []
            for machine in settings.machines()[:_SHARING_BOOTS]:
                self._session.reporter.add()
                job = Job(
                    qemu=self._qemus[built.arch],
                    machine=replace(machine.on(built.arch), cpus=settings.cpus),
                    image=image,
                    plugin=guest_program("pathcount.so"),
                    options="",
                    release=built.release,
                    cache=self._session.cache.root,
                    progress=self._folder / str(next(self._numbers)),
                    shared=tuple(sharing.runs(members, settings)),
                )
                entry = self._entry(f"{name}, {settings.cpus} CPUs", job)
                texts = json.loads((entry / "records.json").read_text())
                boots.append(json.loads(texts[sharing.RECORD]))
            for run in members:
                found[run] = sharing.merged(boots, run)
                for text in sharing.failures(boots, run):
                    self._session.reporter.warn(f"{name}: left out: {text}")
        return found

    def _entry(self, name: str, job: Job) -> Path:
        """The cache entry with what *job* gives."""
        reporter = self._session.reporter
        ran = False

        def make(folder: Path) -> None:
            nonlocal ran
            ran = True
            with reporter.guest(name) as advance:
                recorded = self._run(job, advance)
            for text in recorded.warnings:
                reporter.warn(text)
            assemble.keep(recorded, folder)

        entry = self._session.cache.entry("result", job.inputs(), make)
        if not ran:
            reporter.finished()
        return entry

    def _run(self, job: Job, advance: Callable[[float], None]) -> Recorded:
        """Have the executor run a job, and follow its progress."""
        job.progress.touch()
        future = self._executor.submit(jobs.run, job)
        try:
            while True:
                try:
                    return future.result(_POLL)
                except TimeoutError:
                    if future.done():
                        raise
                process.check_stopped()
                advance(job.done())
        except BaseException:
            future.cancel()
            job.progress.unlink(missing_ok=True)
            raise


def _emulators(qemus: Sequence[Qemu]) -> dict[str, str]:
    """The version of the emulators, which all come from one package's source, and what they are
    known by."""
    versions = dict.fromkeys(qemu.version for qemu in qemus)
    return {"version": ", ".join(versions), "digest": _digests(qemu.digest for qemu in qemus)}


def _digests(parts: Iterable[str]) -> str:
    """One digest for what several architectures have each its own of."""
    found = list(parts)
    return found[0] if len(found) == 1 else digest_of(found)


def _finish(names: Sequence[str], jobs: Sequence[Future], reporter: Reporter) -> list[_Measured]:
    done, failures = [], []
    for name, job in zip(names, jobs, strict=True):
        try:
            done.append(job.result())
        except IopathError as error:
            kind = Unreachable if isinstance(error, Unreachable) else IopathError
            failures.append(kind(f"{name}: {error}"))
    for failure in failures[1:]:
        reporter.warn(str(failure))
    if failures:
        raise failures[0]
    return done
