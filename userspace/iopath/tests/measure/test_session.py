# SPDX-License-Identifier: GPL-2.0
"""Measurements side by side: one pool that prepares and one that runs jobs, however many there are.

No guest runs: the executor refuses each job, with an error that identifies it.
"""

import io
import threading
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from helpers.examples import a_record, a_result
from iopath.base.arch import X86_64, Arch
from iopath.base.cache import Cache
from iopath.base.errors import IopathError, Lacking
from iopath.base.progress import Reporter
from iopath.guest.machine import Machine
from iopath.kernels.apt import Apt
from iopath.kernels.built import Built, Step
from iopath.kernels.kernel import Kernel
from iopath.measure import counting, jobs, known
from iopath.measure.jobs import Job
from iopath.measure.measurement import Measurement
from iopath.measure.pools import Pools
from iopath.measure.session import Session
from iopath.results.result import ExactResult, Result, parse
from iopath.rungs.builtin import select
from iopath.rungs.runs import Settings

PLACES = 3


@dataclass
class Files(Kernel):
    """A kernel that is a few files."""

    title: str
    folder: Path
    arch: Arch = X86_64
    prepared: int = 0

    def prepare(self, cache: Cache, apt: Apt, step: Step) -> Built:
        self.prepared += 1
        if self.title == "broken":
            raise IopathError("it does not build")
        for name in ("vmlinuz", "config"):
            (self.folder / name).write_text(f"{self.title}\n")
        return Built(
            "6.1.0", "6.1.0", "", self.folder / "vmlinuz", self.folder / "config", {}, None, {}, []
        )


@dataclass
class Refusing(Executor):
    """Refuses each job, as soon as so many wait."""

    waiting: threading.Barrier
    threads: list[int] = field(default_factory=list)  # that live, at each job
    boots: list[tuple[str, int]] = field(default_factory=list)  # the kernel and the seed

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future:  # noqa: ANN401
        assert function is jobs.run
        job: Job
        (job,) = args
        self.threads.append(threading.active_count())
        self.boots.append((job.image.start.vmlinuz.parent.name, job.machine.seed))
        self.waiting.wait(600)
        future: Future = Future()
        future.set_exception(IopathError(f"{job.machine.cmdline} is refused"))
        return future


class Kernels(Session):
    """A session with kernels of files, whose executor refuses all jobs."""

    def __init__(self, folder: Path, places: int) -> None:
        self.said = io.StringIO()
        super().__init__(Cache(folder / "cache"), Reporter(Console(file=self.said, width=200)))
        self.executor = self.refusing = Refusing(threading.Barrier(places))
        self.places = places
        self.known: dict[str, Files] = {}
        self._folder = folder

    def find(self, name: str) -> Kernel:
        if name not in self.known:
            (self._folder / name).mkdir()
            self.known[name] = Files(name, self._folder / name)
        return self.known[name]


def a_measurement(kernel: str, cmdline: str, lack: str = "", *rungs: str) -> Measurement:
    settings = Settings(select([*(rungs or ["null"])]), machine=Machine(cmdline=cmdline))
    return Measurement(kernel, settings, f"{kernel}, {cmdline}", lambda built: lack)


def measured(session: Session, *wanted: Measurement) -> dict[str, Result | IopathError]:
    """The result of each, by its title."""
    found: dict[str, Result | IopathError] = {}
    for one, result in session.measure_each(wanted):
        assert one.title not in found
        found[one.title] = result
    return found


def test_guests_of_several_cpus_are_in_the_total() -> None:
    """They are in it from the beginning, so that it does not grow."""
    settings = Settings(select(["null", "dio.pread"]), boots=3)
    assert Measurement("one", settings).guests == 3
    assert Measurement("one", replace(settings, cpus=2)).guests == 6


def test_a_warning_is_printed_once(tmp_path: Path) -> None:
    """Also if the same rung is booted more often, and its mean is another then."""
    session = Kernels(tmp_path, PLACES)
    for more in (100.0, 100.02):
        record = a_record("one", "dio.pread", "read", 4096)
        record["mean"] += more
        record["with_deferred"] += more
        session.warn_of(parse(a_result([record])).results)
        session.reporter.warn("left out: x")
    said = session.said.getvalue().splitlines()
    assert [line.partition(": ")[2][:30] for line in said] == [
        "one: dio.pread read: some work", "left out: x",
    ]  # fmt: skip


def test_two_pools_for_all(tmp_path: Path) -> None:
    """A thread for each kernel, one for each place, and two that wait for it; all places are used.
    A kernel is prepared once."""
    before = threading.active_count()
    session = Kernels(tmp_path, PLACES)
    wanted = [
        a_measurement(kernel, f"number={number}")
        for kernel in ("one", "two")
        for number in range(6 * PLACES)
    ]
    found = measured(session, *wanted)
    assert {title: str(error) for title, error in found.items()} == {
        one.title: f"{one.settings.machine.cmdline} is refused" for one in wanted
    }
    assert len(session.refusing.threads) == len(wanted)
    progress = 1  # says that it is still at work
    most = before + progress + len(session.known) + 3 * PLACES
    assert PLACES < max(session.refusing.threads) <= most
    assert threading.active_count() <= before  # those of other tests may end meanwhile
    assert [kernel.prepared for kernel in session.known.values()] == [1, 1]


def test_errors_are_handed_back(tmp_path: Path) -> None:
    """A kernel that lacks something, or cannot be prepared, does not stop other measurements."""
    session = Kernels(tmp_path, 1)
    found = measured(
        session,
        a_measurement("one", "a=1"),
        a_measurement("one", "a=2", "it has no CONFIG_X"),
        a_measurement("one", "a=3", "", "raw.pread"),
        a_measurement("broken", "a=4"),
        a_measurement("broken", "a=5"),
    )
    assert {title: (type(error), str(error)) for title, error in found.items()} == {
        "one, a=1": (IopathError, "a=1 is refused"),
        "one, a=2": (Lacking, "it has no CONFIG_X"),
        "one, a=3": (
            IopathError, "nothing is left to measure: the kernel has no module blknull",
        ),
        "broken, a=4": (IopathError, "it does not build"),
        "broken, a=5": (IopathError, "it does not build"),
    }  # fmt: skip
    assert len(session.refusing.threads) == 1
    assert session.known["broken"].prepared == 1
    assert session.said.getvalue() == ""


@pytest.mark.parametrize(("vary", "seeds"), [(True, [2, 2, 1, 1]), (False, [1, 1, 2, 2])])
def test_boots_with_first_figures_come_first(
    vary: bool, seeds: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of both kernels. They are the further boots, which count less. If the program cannot
    vary layouts, all boots count the same, and the first has the functions."""
    both = threading.Barrier(2)
    monkeypatch.setattr(Pools, "give_way", lambda self: both.wait(600))
    (rung,) = select(["null"])
    if not vary:
        rung = replace(rung, program=tmp_path / "program")
        rung.program.write_bytes(b"")
    session = Kernels(tmp_path, 1)
    settings = Settings([rung], machine=Machine(seed=1), boots=2)
    found = measured(session, *(Measurement(name, settings, name) for name in ("one", "two")))
    assert {str(error).endswith("is refused") for error in found.values()} == {True}
    kernels, order = zip(*session.refusing.boots, strict=True)
    assert [*order] == seeds
    assert sorted(kernels[:2]) == ["one", "two"]


def test_nothing_is_measured(tmp_path: Path) -> None:
    assert measured(Kernels(tmp_path, 1)) == {}


def test_the_first_error_of_some_kernels(tmp_path: Path) -> None:
    """All kernels are tried; the first one's error is raised, and the others are warned of."""
    session = Kernels(tmp_path, 1)
    settings = Settings(select(["null"]), machine=Machine(cmdline="a=1"))
    with pytest.raises(IopathError, match=r"^broken: it does not build$"):
        session.measure(["broken", "one", "two"], settings)
    assert session.said.getvalue().splitlines() == [
        "iopath: one: a=1 is refused", "iopath: two: a=1 is refused",
    ]  # fmt: skip


def test_a_cache_that_cannot_be_written_loses_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was counted is the result, although it is not kept."""

    def full(*args: object) -> None:
        raise IopathError("no space")

    counted = known.Known(None, [], ["a note"])  # type: ignore[arg-type]
    monkeypatch.setattr(known, "keep", full)
    monkeypatch.setattr(counting, "count", lambda *args: counted)
    session = Kernels(tmp_path, 1)
    wanted = a_measurement("one", "a=1")
    said: list[str] = []
    [(one, found)] = session.measure_each([wanted], said.append)
    assert one is wanted
    assert isinstance(found, ExactResult)
    assert said == ["a note"]
