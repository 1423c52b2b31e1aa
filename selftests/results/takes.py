# SPDX-License-Identifier: GPL-2.0
"""Measure what kernels, guests, pages and comparisons take, and simulate clusters that do as much.

    build/venv/bin/python selftests/results/takes.py [--comparisons] [--output FILE]

With --comparisons, only these are measured again, and their table in the file is replaced.

The durations are measured in a cache of its own, build/takes, one job at a time. Then jobs that
sleep for these durations are sent to clusters of 2 to 512 workers: the scheduler is dask's, and the
order of the jobs is that of iopath track. Commits are those of build/rt (rt.py).
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import distributed
from page import RESULTS, table
from rich.console import Console

from iopath.base.cache import Cache, cache_root
from iopath.base.errors import IopathError
from iopath.base.progress import Reporter
from iopath.base.sources import source_root
from iopath.guest.machine import Machine, Qemu
from iopath.guest.payload import Image, Start
from iopath.kernels import prepare
from iopath.measure import cluster
from iopath.measure.cluster import Cluster
from iopath.measure.jobs import Job, Recorded
from iopath.measure.pools import Pools, pools, results
from iopath.measure.session import TOGETHER, Session
from iopath.rungs.builtin import select
from iopath.rungs.runs import Settings

sys.path.append(str(source_root() / "userspace/iopath/tests"))

from helpers.workers import threads

CACHE = Path("build/takes")
RT = Path("build/rt")
COMMITS = (f"git:{RT}@rt~40", f"git:{RT}@rt~39")
DEBIAN = ("debian:6.1", "debian:7.2")
BOOTS = 2
WORKERS = (2, 16, 64, 512)
ONE = ("--rung", "dio.pread", "--op", "read")
# Comparisons: options, and the CPU seconds that they should take, booted and from saved states.
COMPARISONS = {"one rung": (ONE, (24, 8)), "the ladder": ((), (90, 60))}
RESULTS_OF_GUESTS = ("result", "measured", "failed")  # what the cache has of them
LONGEST = 30  # seconds that a replay should take: with few workers, jobs are shortened


@dataclass(frozen=True)
class Took:
    """A job: whether it ran a guest, and the seconds that it took on one CPU."""

    is_guest: bool
    seconds: float


class Timed(Executor):
    """Runs jobs one at a time, and notes what each took."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self.took: list[Took] = []

    def submit(self, function: Callable, /, *args: Any, **kwargs: Any) -> Future:  # noqa: ANN401
        return self._thread.submit(self._run, function, *args, **kwargs)

    def _run(self, function: Callable, job: Job | prepare.Preparation) -> object:
        before = time.monotonic()
        found = function(job)
        self.took.append(Took(isinstance(job, Job), time.monotonic() - before))
        return found

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._thread.shutdown(wait=wait, cancel_futures=cancel_futures)


@contextmanager
def on_one_cpu() -> Iterator[None]:
    """What is started here has one CPU. A sandbox does not tell what its processes took, so that
    the time on one idle CPU must do."""
    usual = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(usual)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, usual)


@dataclass(frozen=True)
class Costs:
    """What one kernel takes: the seconds of its preparation and of its guests, those of the command
    itself, and the bytes that the cache grew by."""

    prepare: float
    guests: Sequence[float]
    command: float
    size: int

    @property
    def whole(self) -> float:
        return self.prepare + sum(self.guests)

    @property
    def shortest(self) -> float:
        """The seconds with any number of workers."""
        return self.prepare + max(self.guests)


def measure(session: Session, timed: Timed, kernel: str, settings: Settings) -> Costs:
    """Measure a kernel that the cache does not have."""
    timed.took.clear()
    before, size = time.monotonic(), occupied()
    session.measure([kernel], settings)
    used = time.monotonic() - before
    guests = [one.seconds for one in timed.took if one.is_guest]
    made = sum(one.seconds for one in timed.took if not one.is_guest)
    return Costs(made, guests, used - made - sum(guests), occupied() - size)


def occupied() -> int:
    """Bytes of the cache."""
    done = subprocess.run(["du", "-sB1", CACHE], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[0])


def command(*words: str) -> float:
    """The seconds that a command takes."""
    before = time.monotonic()
    subprocess.run(["build/bin/iopath", *words], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - before


def prepared_cache() -> Path:
    """A cache with all that the user's has, except of guests. It has the same locks, so that
    neither removes what is used in the other."""
    folder = CACHE / "prepared"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in cache_root().iterdir():
        if path.name not in {*RESULTS_OF_GUESTS, "state", "logs"}:
            (folder / path.name).symlink_to(path)
    return folder


def comparisons() -> str:
    """The CPU seconds and guests of comparisons of two kernels that are prepared. Those that boot
    leave the states that the others resume."""
    folder = prepared_cache()
    # An installed command is compiled once.
    used = {**os.environ, "IOPATH_CACHE": str(folder), "PYTHONPYCACHEPREFIX": str(CACHE / "code")}
    used.pop("PYTHONDONTWRITEBYTECODE", None)
    session = Session(Cache(folder), Reporter(Console(stderr=True)))
    for kernel in DEBIAN:
        session.build(session.find(kernel), lambda what, part: None)
    rows = []
    for name, (words, wanted) in COMPARISONS.items():
        shutil.rmtree(folder / "state", ignore_errors=True)
        for how, most in zip(("booted", "from saved states"), wanted, strict=True):
            for kind in RESULTS_OF_GUESTS:
                shutil.rmtree(folder / kind, ignore_errors=True)
            child = subprocess.Popen(
                ["build/bin/iopath", "compare", *DEBIAN, *words],
                env=used,
                stdout=subprocess.DEVNULL,
            )
            _, status, usage = os.wait4(child.pid, 0)
            if status:
                raise IopathError(f"compare of {name} failed")
            guests = len(list((folder / "result").iterdir()))
            took = usage.ru_utime + usage.ru_stime
            rows.append([f"{name}, {how}", str(guests), f"{took:.1f}", str(most)])
            print(*rows[-1], sep=" | ", file=sys.stderr)
    return "\n".join([ABOUT_COMPARISONS, table(["", "guests", "CPU (s)", "aim (s)"], rows), ""])


# Simulation.


class _Kernel:
    """All kernels are of one repository."""

    place = "repository"


@dataclass(frozen=True)
class Sleep:
    """The preparation of a kernel, which is that of *number*."""

    number: str
    seconds: float
    release: str = "kernel"
    kernel: ClassVar[_Kernel] = _Kernel()

    def inputs(self) -> dict[str, Any]:
        return {"number": self.number, "vmlinuz": "one"}


@dataclass(frozen=True)
class SleepingGuest(Job):
    """A guest."""

    number: str = ""
    seconds: float = 0

    def inputs(self) -> dict[str, Any]:
        return {"number": self.number, "vmlinuz": "one"}


def slept(job: Sleep | SleepingGuest, *_: object) -> tuple[str, Recorded]:
    """What a worker does."""
    time.sleep(job.seconds)
    return distributed.get_worker().address, Recorded({}, b"", b"", ())


def replay(kernels: Sequence[Costs], number: int) -> float:
    """The seconds in which *number* workers measure *kernels*."""
    least = sum(one.whole for one in kernels) / number
    least = max(least, *(one.shortest for one in kernels))
    scale = min(1, LONGEST / least)
    with threads(number) as everyone, TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "vmlinuz").write_bytes(bytes(12 << 20))
        began = time.monotonic()
        together = max(TOGETHER, everyone.workers)
        for start in range(0, len(kernels), together):
            some = kernels[start : start + together]
            with pools(len(some), everyone.places, everyone) as both:
                futures = [
                    both.measure(_measure, both, everyone, folder, f"{number}.{at}", one, scale)
                    for at, one in enumerate(some, start)
                ]
                for future in both.each(futures):
                    future.result()
        return (time.monotonic() - began) / scale


def _measure(
    both: Pools, everyone: Cluster, folder: Path, name: str, costs: Costs, scale: float
) -> None:
    """Have a kernel prepared, and then its guests run."""
    everyone.submit(prepare.run, Sleep(name, costs.prepare * scale)).result()
    jobs = []
    for at, seconds in enumerate(costs.guests):
        guest = SleepingGuest(
            Qemu((), "", ""), Machine(), Image(Start(folder / "vmlinuz"), [], {}), folder,
            "", "", folder, both.progress(), number=f"{name}.{at}", seconds=seconds * scale,
        )  # fmt: skip
        jobs.append(both.job(both.run, guest, lambda _: None))
    results(jobs)


def duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


ABOUT = f"""\
# What it takes

Made by `selftests/results/takes.py`. The first table is measured in an empty cache, one row
after the other: seconds on a CPU that does nothing else, downloads included, and what the cache
grew by. Each kernel is booted {BOOTS} times, with a profile.
"""

ABOUT_COMPARISONS = f"""\
## Comparisons

`iopath compare {" ".join(DEBIAN)}` of kernels that are prepared: with `{" ".join(ONE)}`, and of the
whole ladder. CPU seconds are those of the command and of all that it starts, so on two CPUs the
answer takes half as long, if nothing else runs. `takes.py --comparisons` makes this table alone.

The seconds of one table are those of one machine at one time. The speed of a shared machine changes
by half between runs, and another processor took a third of the time for the same code.

From saved states, seven tenths of a ladder's time are the rounds in layouts and the long runs. A
tenth is what guests do before their first run, and a tenth is Python, which reads the output of the
plugin.
"""

ABOUT_SIMULATION = f"""\
## On clusters

Simulated: the durations of the first table are replayed on the workers of a dask scheduler, each of
one processor. The second column is their sum. As in `iopath track`, at most {TOGETHER} kernels are
measured at a time, or as many as there are workers. A worker's first build is not included.
"""


def costs_table(rows: dict[str, Costs]) -> str:
    lines = [
        [
            name, f"{one.prepare:.0f}", f"{len(one.guests)}", f"{sum(one.guests):.0f}",
            f"{one.command:.0f}", f"{one.size >> 20:,}",
        ]
        for name, one in rows.items()
    ]  # fmt: skip
    return table(["", "prepare (s)", "guests", "guests (s)", "command (s)", "storage (MiB)"], lines)


def simulated(plans: dict[str, Sequence[Costs]]) -> str:
    rows = []
    for name, kernels in plans.items():
        whole = sum(one.whole for one in kernels)
        rows.append(
            [name, duration(whole), *(duration(replay(kernels, number)) for number in WORKERS)]
        )
    return table(["", "1 worker", *(f"{number} workers" for number in WORKERS)], rows)


def document() -> str:
    os.environ["IOPATH_CACHE"] = str(CACHE)
    shutil.rmtree(CACHE, ignore_errors=True)
    CACHE.mkdir(parents=True)
    timed = Timed()
    reporter = Reporter(Console(stderr=True))
    session = Session(Cache(cache_root(), reporter.warn), reporter)
    session.executor, session.places = timed, 1
    some = Settings(select(["dio.*"]), ops=("read",), boots=BOOTS, profile=True)
    ladder = Settings(select([]), boots=BOOTS, profile=True)
    with on_one_cpu():
        first, further = [measure(session, timed, name, some) for name in COMMITS]
        packages = [measure(session, timed, name, ladder) for name in DEBIAN]
        page = CACHE / "page.html"
        compare = ("compare", *DEBIAN, "--boots", str(BOOTS), "--quiet")
        text, drawn = command(*compare), command(*compare, "--html", str(page))
    timed.shutdown()
    rungs = f"{len(some.rungs)} rungs `dio.*`, read"
    rows = {
        f"the first commit in an empty cache, {rungs}": first,
        f"a further commit, {rungs}": further,
        **{f"{name}, the whole ladder": one for name, one in zip(DEBIAN, packages, strict=True)},
    }
    cluster.run_sealed = slept
    plans = {
        "a person: a branch of 10 commits": [further] * 10,
        "a distribution: 25 packages, the whole ladder": [packages[-1]] * 25,
        "block, fs and mm of linux-next: 60 commits a day": [further] * 60,
    }
    return "\n".join([
        ABOUT, costs_table(rows), "",
        "Then `compare` of both packages from the cache takes"
        f" {text:.1f} s, and {drawn:.1f} s with\na page of"
        f" {page.stat().st_size / (1 << 20):.1f} MiB.", "",
        ABOUT_SIMULATION, simulated(plans), "",
        comparisons(),
    ])  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    default = RESULTS / "takes.md"
    parser.add_argument("--output", type=Path, default=default, metavar="FILE")
    parser.add_argument("--comparisons", action="store_true")
    args = parser.parse_args()
    try:
        if args.comparisons:
            kept, _, _ = args.output.read_text().partition(ABOUT_COMPARISONS.partition("\n")[0])
            args.output.write_text(kept.rstrip() + "\n\n" + comparisons())
        else:
            args.output.write_text(document())
    except IopathError as error:
        print(f"takes.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
