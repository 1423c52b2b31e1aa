# SPDX-License-Identifier: GPL-2.0
"""Count many rungs quickly: some twenty I/Os of each, flat, many to a guest.

A figure of this kind tells where to look. What is found is measured as all rungs are. A rung that a
kernel refuses, or that crashes or hangs the guest, is an outcome, too.
"""

import gzip
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from rich.console import Console

from iopath.base.arch import X86_64, Arch
from iopath.base.errors import IopathError
from iopath.base.programs import guest_program
from iopath.base.progress import Reporter
from iopath.counts import plugin_output
from iopath.counts.pathcount import BootProfile
from iopath.counts.plugin_output import MiscountError
from iopath.guest.guest import GuestError
from iopath.guest.machine import Machine, Qemu
from iopath.guest.payload import QUIET, Image, Start
from iopath.kernels import modules
from iopath.kernels.built import Built
from iopath.measure import assemble, packages
from iopath.measure.jobs import Job
from iopath.measure.measurement import Bench
from iopath.measure.plan import missing, modules_of, prepared, unmet
from iopath.measure.pools import Pools, pools
from iopath.measure.session import Session
from iopath.results.layers import Layers, table
from iopath.results.symbol import plain
from iopath.rungs.rung import Rung
from iopath.rungs.runs import FLAT, Run, Settings

FEW = 20  # I/Os in a round
ROUNDS = 2  # in each layout
SURE = 4  # layouts that decide whether a difference is chance
_MOST = 1 << 20  # bytes of a round, unless a batch has more
_PATIENCE = 60  # seconds of the guest's time until a program that hangs is killed
# Seconds of CPU time that a guest may take, and each of its runs: several times what they do.
_START, _EACH = 40, 0.5
_TASK = 0  # the plugin's context of the task that the run is of


@dataclass(frozen=True)
class Outcome:
    """What became of a rung: instructions per I/O, in all and by function (by its plain name). Or
    the *error* that the kernel answered with; or how the guest *died*, and where its console is."""

    figure: float = 0.0
    functions: Mapping[str, float] = field(default_factory=dict)
    error: str = ""
    died: str = ""

    @property
    def counted(self) -> bool:
        return not (self.error or self.died)


@dataclass(frozen=True)
class Ready:
    """A kernel that is ready; *equipped* gives a rung the programs that it needs."""

    name: str
    built: Built
    equipped: Callable[[Rung], Rung]


class Screening:
    """Screens rungs on the kernels *names*."""

    def __init__(
        self, session: Session, kernels: Sequence[Ready], settings: Settings, both: Pools,
        qemu: Qemu,
    ) -> None:  # fmt: skip
        self.kernels = kernels
        self._settings = settings
        self._session = session
        silent = Reporter(Console(stderr=True), silent=True)
        self._bench = Bench(qemu, both, session.cache, silent, session.reporter.warn, session.once)
        self._layers = table(None)

    def lacks(self, rung: Rung) -> str:
        """What any of the kernels lacks for a rung; empty if nothing."""
        for kernel in self.kernels:
            if lack := unmet(rung, kernel.built):
                return f"{kernel.name}: {lack}"
        return ""

    def missing(self, options: Collection[str]) -> set[str]:
        """Those of the kernel options that any of the kernels lacks."""
        return {one for kernel in self.kernels for one in missing(options, kernel.built)}

    def screen(
        self, groups: Sequence[Sequence[Run]], layouts: int = 1
    ) -> Mapping[str, list[list[Outcome]]]:
        """The outcomes of runs, by kernel, in their order. Those of a group have one target, and
        share a guest."""
        pool = self._bench.pools
        futures = {
            pool.job(self._screen, kernel, members, layouts): (kernel.name, number)
            for kernel in self.kernels
            for number, members in enumerate(groups)
        }
        found: dict[str, list[list[Outcome]]] = {
            kernel.name: [[] for _ in groups] for kernel in self.kernels
        }
        for future in pool.each(futures):
            name, number = futures[future]
            found[name][number] = future.result()
        return found

    def _screen(self, kernel: Ready, members: Sequence[Run], layouts: int) -> list[Outcome]:
        """The outcomes of one guest; where it dies, of another one without the run that ended
        it."""
        found: dict[int, Outcome] = {}
        left = [*enumerate(members)]
        while left:
            runs = [
                Run(number, kernel.equipped(run.rung), run.op, run.block_size)
                for number, (_, run) in enumerate(left, 1)
            ]
            try:
                outcomes = self._guest(kernel, runs, layouts)
            except MiscountError as error:
                if len(left) == 1:
                    outcomes = [Outcome(died=str(error))]
                else:  # any of them may be to blame
                    middle = len(left) // 2
                    outcomes = [
                        one
                        for half in (left[:middle], left[middle:])
                        for one in self._screen(kernel, [run for _, run in half], layouts)
                    ]
            except GuestError as error:
                done = sum(record.name.startswith("try.") for record in error.records)
                if not done and len(left) > 1 and _failed_early(error):
                    outcomes = [Outcome(error=f"set-up: {error}")] * len(left)
                else:
                    at = min(done, len(left) - 1)
                    found[left[at][0]] = Outcome(died=str(error))
                    del left[at]
                    continue
            found |= {number: one for (number, _), one in zip(left, outcomes, strict=True)}
            break
        return [found[number] for number in range(len(members))]

    def _guest(self, kernel: Ready, runs: Sequence[Run], layouts: int) -> list[Outcome]:
        image = _image(kernel.built, runs, self._settings, layouts)
        job = Job(
            qemu=self._bench.qemu,
            machine=replace(
                self._settings.machine.on(kernel.built.arch),
                cpu_limit=round(_START + _EACH * len(runs)),
            ),
            image=image,
            plugin=guest_program("pathcount.so"),
            options=f"flat={FLAT}",
            release=kernel.built.release,
            cache=self._bench.cache.root,
            progress=self._bench.pools.progress(),
        )
        entry = assemble.entry(job, f"{kernel.name}, {runs[0].rung.target}", self._bench)
        return _outcomes(entry, runs, image.files, self._layers)


def _failed_early(error: GuestError) -> bool:
    """Whether a step before the first run failed."""
    return any(record.name == "error" for record in error.records)


def ios(run: Run) -> int:
    """How many I/Os a round has: whole batches."""
    batch = run.rung.batch
    few = max(1, min(FEW, run.ios, _MOST // run.block_size))
    return -(-few // batch) * batch


def command(run: Run, layouts: int) -> list[str]:
    """The command line of a run."""
    words = run.rung.command(
        run.op, run.block_size, FLAT | run.region, ios=ios(run), rounds=ROUNDS * layouts,
        layouts=layouts,
    )  # fmt: skip
    return [*words, f"--warmup_ios={max(2, run.rung.batch)}"]


def _image(built: Built, runs: Sequence[Run], settings: Settings, layouts: int) -> Image:
    """What a guest is given to carry out *runs*."""
    image = prepared(
        built, [run.rung for run in runs], settings, Start(built.vmlinuz, arch=built.arch)
    )
    image.plan += [
        f"file {path}"
        for name, data in modules_of(image.files).items()
        for path in modules.section_files(name, data)
    ]
    # Once for all: the first access after it is in a warm-up.
    image.plan += [*(f"age {path}" for path in runs[0].rung.paths), QUIET]
    for run in runs:
        rung = run.rung
        image.plan += [
            *rung.setup,
            " ".join([f"try {_PATIENCE} try.{run.region}", *command(run, layouts)]),
            *rung.cleanup,
        ]
    return image


def _outcomes(
    entry: Path, runs: Sequence[Run], files: Mapping[str, bytes], layers: Layers
) -> list[Outcome]:
    """What the guest of a cache *entry* gave."""
    texts = json.loads((entry / "records.json").read_text())
    errors = [_error(texts[f"try.{run.region}"]) for run in runs]
    if all(errors):
        return [Outcome(error=error) for error in errors]  # there is nothing to count
    counts = gzip.decompress((entry / "counts.gz").read_bytes()).decode(errors="replace")
    output = plugin_output.read(counts.splitlines())
    symbols = assemble.symbols_of(
        (entry / "kallsyms.gz").read_bytes(), texts, files, files["bin/ioloop"]
    )
    found = BootProfile(output, symbols, layers)
    return [_outcome(run, error, found) for run, error in zip(runs, errors, strict=True)]


def _outcome(run: Run, error: str, found: BootProfile) -> Outcome:
    flat = found.flats.get(FLAT | run.region)
    if error or flat is None or not flat.rounds:
        return Outcome(error=error or "refused")
    own = {_TASK} | {at for at in flat.entries if found.is_exception(at, flat)}
    functions: dict[str, float] = {}
    scale = 1 / (flat.rounds * ios(run))
    for context, counts in found.flat_counts(flat).items():
        if context in own:
            for symbol, count in counts.items():
                name = plain(symbol.name)
                functions[name] = functions.get(name, 0.0) + count * scale
    functions = {name: round(count, 4) for name, count in functions.items() if count}
    return Outcome(round(sum(functions.values()), 4), functions)


def _error(text: str) -> str:
    """What ioloop's report says that the kernel refused."""
    try:
        report = json.loads(text)
    except ValueError:
        return "refused"
    for job in report.get("jobs", ()):
        if error := job.get("first_error"):
            what = error.get("strerror") or f"only {error['result']} bytes"
            return f"{error['op']}: {what}"
    return "" if report.get("ok") else "refused"


@contextmanager
def screening(session: Session, names: Sequence[str], machine: Machine) -> Iterator[Screening]:
    """What screens on the kernels *names*, which are prepared."""
    settings = Settings([], machine=machine)
    kernels = {name: session.find(name) for name in names}
    for arch in dict.fromkeys((X86_64, *(kernel.arch for kernel in kernels.values()))):
        session.programs(arch)
    if len({kernel.arch for kernel in kernels.values()}) > 1:
        raise IopathError("search: kernels of several architectures cannot be compared")
    arch = next(iter(kernels.values())).arch
    qemu = session.emulator(machine.emulator, arch)
    ready = []
    for name, kernel in kernels.items():
        with session.reporter.task(name) as step:
            built = session.build(kernel, step)
        ready.append(Ready(name, built, partial(_equipped, session, built.arch)))
    with pools(len(ready), session.places, session.executor) as both:
        yield Screening(session, ready, settings, both, qemu)


def _equipped(session: Session, arch: Arch, rung: Rung) -> Rung:
    """A rung with the programs of packages that it needs."""
    make = partial(packages.equipped, [rung], session.cache, session.apt.of(arch))
    return replace(rung, files=session.once(("tools", arch, rung.tools), make)[0].files)
