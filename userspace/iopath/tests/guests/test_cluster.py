# SPDX-License-Identifier: GPL-2.0
"""Jobs on a cluster: a scheduler and two workers, each a process with a cache of its own, on this
machine. The figures are those of a local run, even if a worker dies."""

import itertools
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from helpers.command import FAST_START, KERNEL, Command, copy_states, link
from helpers.repositories import kernel_repository
from helpers.waiting import wait_for
from helpers.workers import NOWHERE, WORKERS, Processes, silent
from iopath.base.arch import X86_64
from iopath.base.cache import Cache
from iopath.base.errors import IopathError
from iopath.base.programs import guest_program
from iopath.base.progress import Reporter
from iopath.guest.machine import Machine, Qemu
from iopath.kernels import prepare
from iopath.kernels.prepare import Preparation
from iopath.kernels.sources import git as git_kernels
from iopath.kernels.sources.debian import headers_root
from iopath.measure import cluster
from iopath.measure.cluster import Cluster, run_sealed
from iopath.measure.jobs import Job, Recorded
from iopath.measure.plan import make_image
from iopath.measure.session import Session
from iopath.rungs.builtin import select
from iopath.rungs.runs import FLAT, Settings, make_runs

guest = pytest.mark.guest
FEW, MANY = 2, 20  # boots, each of which is a job


@pytest.fixture
def resuming(processes: Processes, session: Session, tmp_path: Path) -> Processes:
    """The same workers, each of which resumes the guest of the first boot. Guests of other boots
    boot, which takes long enough for a test to end something meanwhile."""
    for name in WORKERS:
        copy_states(session, tmp_path / name, [1])
    return processes


@pytest.fixture
def builders(resuming: Processes, session: Session, tmp_path: Path) -> Processes:
    """The same with the compiler for KERNEL and the lists of packages in the workers' caches. Their
    files are links to those of the user's cache."""
    roots = session.cache.root
    compiler = headers_root(session.find(KERNEL), session.cache, session.apt, silent)
    for name in WORKERS:
        for path in (compiler, roots / "apt/lists"):
            to = tmp_path / name / path.relative_to(roots)
            shutil.copytree(path, to, symlinks=True, copy_function=link)
        shutil.copyfile(roots / "apt/index.json", tmp_path / name / "apt/index.json")
    return resuming


def kernels(cache: Path) -> dict[str, bytes]:
    """The files of prepared kernels by their paths, without those that say when they were made."""
    return {
        str(path.relative_to(cache)): path.read_bytes()
        for kind in ("image", "kernel", "modules")
        for path in sorted((cache / kind).rglob("*"))
        if path.is_file() and path.name not in ("manifest.json", "size", "build.log")
    }


def measure(command: Command, boots: int, out: Path, *more: str) -> subprocess.Popen:
    return command.start(
        "measure", KERNEL, "--rung=syscall", "--cmdline", FAST_START, "--boots", str(boots),
        "--json", out, *more,
    )  # fmt: skip


def figures_of(out: Path) -> list[tuple[str, str, list[float]]]:
    found = json.loads(out.read_text())["results"]
    return [(record["rung"], record["op"], record["boots"]) for record in found]


def results(command: Command) -> list[Path]:
    return list((command.cache / "result").glob("*/manifest.json"))


def jobs_of(worker: Path) -> list[Path]:
    """The kernels that a worker received with jobs."""
    return list((worker / "sent").glob("*/vmlinuz"))


@guest
@pytest.mark.parametrize("boots", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
def test_a_worker_dies(resumable: Command, builders: Processes, tmp_path: Path, boots: int) -> None:
    """All jobs arrive, with the figures of a local run; so does the kernel, which only workers can
    download."""
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    local = measure(resumable, boots, here)
    assert local.wait(3600) == 0, local.stderr.read()
    assert len(results(resumable)) == boots
    built = kernels(resumable.cache)
    resumable.forget()
    for kind in ("image", "modules"):
        shutil.rmtree(resumable.cache / kind)
    resumable.env |= {"IOPATH_MIRROR": NOWHERE, "IOPATH_SECURITY_MIRROR": NOWHERE}
    remote = measure(resumable, boots, there, "--scheduler", builders.address())
    wait_for(lambda: results(resumable), "a result")
    assert kernels(resumable.cache) == built
    builders.kill(WORKERS[0])
    assert remote.wait(3600) == 0, remote.stderr.read()
    assert figures_of(there) == figures_of(here)
    assert len(results(resumable)) == boots
    assert any(jobs_of(tmp_path / name) for name in WORKERS), "no worker has run a guest"


@guest
@pytest.mark.long
def test_a_builder_dies(
    builders: Processes, prepared: Path, session: Session, tmp_path: Path
) -> None:
    """The kernel is prepared by another worker, and is that of a local build."""
    kernel = session.find(KERNEL)
    job = Preparation.of(kernel, session.cache, session.apt, silent)
    everyone = Cluster(builders.address())
    try:
        waiting = everyone.submit(prepare.run, job)
        dead = builder(tmp_path)
        builders.kill(dead)
        arrived = waiting.result(600)
    finally:
        everyone.shutdown()
    (other,) = set(WORKERS) - {dead}
    cache = Cache(tmp_path / "cache")
    job.keep(arrived, cache)
    assert kernels(cache.root) == kernels(prepared)
    assert all(Cache(tmp_path / other).path(*entry).exists() for entry in job.entries)
    assert not any((tmp_path / other).glob("apt/archives/*.deb"))


@guest
@pytest.mark.long
def test_commits(
    processes: Processes, make_command: Callable[[Path], Command], session: Session, tmp_path: Path
) -> None:
    """Two workers build two commits, and what arrives is what is built here."""
    linux = kernel_repository(session, X86_64)
    names = [f"git:{linux}@{name}" for name in ("HEAD~2", "HEAD~1")]
    for name in names:
        session.build(session.find(name), silent)
    compiler = git_kernels.compiler(session.find(names[0]), session.cache, session.apt, silent)
    compiled = session.cache.path("ccache", {"size": "5G"})
    for name in (*WORKERS, "cache"):
        for path in (compiler, compiled):
            to = tmp_path / name / path.relative_to(session.cache.root)
            how = link if path == compiler else shutil.copy2
            shutil.copytree(path, to, symlinks=True, copy_function=how)
    command = make_command(tmp_path / "cache")
    done = command.run(
        "series", f"git:{linux}@HEAD~2..HEAD~1", "--rung", "null", "--boots", "1",
        "--scheduler", processes.address(),
        timeout=3600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("0 of 1 commits change the path.")
    assert " is prepared here: " not in done.stderr
    assert not (command.cache / "workspace").exists()
    assert all((tmp_path / name / "workspace").exists() for name in WORKERS)
    found = kernels(command.cache)
    assert len([name for name in found if name.endswith("/vmlinuz")]) == len(names)
    assert {name: (session.cache.root / name).read_bytes() for name in found} == found


def builder(folder: Path) -> str:
    """The worker that builds modules, as soon as one does."""

    def found() -> list[str]:
        return [name for name in WORKERS if [*folder.glob(f"{name}/modules/*.part/src")]]

    return wait_for(found, "a worker that builds modules")[0]


@guest
@pytest.mark.long
def test_features(ready: Command, processes: Processes, tmp_path: Path) -> None:
    """The cost of a feature on the path is the same. Other figures depend on where ticks come."""
    words = ["features", KERNEL, "--feature", "rotational", "--feature", "iostats", "--boots", "1"]
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    assert ready.run(*words, "--json", here).returncode == 0
    ready.forget()
    done = ready.run(*words, "--json", there, "--scheduler", processes.address())
    assert done.returncode == 0, done.stderr
    costs = [json.loads(out.read_text())["features"] for out in (here, there)]
    for cost in itertools.chain(*costs):
        del cost["mean"], cost["total"]
    assert costs[0] == costs[1] != []


@guest
@pytest.mark.long
def test_the_scheduler_dies(resumable: Command, resuming: Processes, tmp_path: Path) -> None:
    """One line says so. Results that have arrived are kept."""
    command = measure(
        resumable, FEW, tmp_path / "out.json", "--scheduler", resuming.address(), "--quiet"
    )
    wait_for(lambda: results(resumable), "a result")
    resuming.kill("scheduler")
    _, said = command.communicate(timeout=3600)
    assert command.returncode == 1
    (line,) = [line for line in said.splitlines() if line.startswith("iopath: ")]
    assert " is gone: finished jobs are kept, so run the command again" in line
    assert "Traceback" not in said
    assert not (tmp_path / "out.json").exists()
    kept = len(results(resumable))
    assert kept >= 1
    again = measure(resumable, FEW, tmp_path / "out.json")
    assert again.wait(3600) == 0
    assert len(results(resumable)) == FEW


@guest
def test_who_counts(ready: Command, resuming: Processes, tmp_path: Path) -> None:
    """The other worker does a job a second time. A worker with other counts is named, and one with
    another QEMU is refused."""
    session = Session(Cache(ready.cache), Reporter(Console(stderr=True), quiet=True))
    settings = Settings(select(["null"]), machine=Machine(cmdline=FAST_START))
    built = session.find(KERNEL).prepare(session.cache, session.apt, lambda what, part: None)
    runs, _ = make_runs(settings)
    job = Job(
        Qemu.find(), settings.machine, make_image(built, runs, settings),
        guest_program("pathcount.so"), f"lines=4,flat={FLAT}", built.release, ready.cache,
        tmp_path / "progress",
    )  # fmt: skip
    job.progress.touch()
    from iopath.measure import jobs

    everyone = Cluster(resuming.address(), checked=1)
    try:
        recorded = everyone.submit(jobs.run, job).result(300)
        assert cluster.figures(recorded).keys() == {"run.1"}
        for name in WORKERS:
            assert jobs_of(tmp_path / name)
        other = {**job.inputs(), "qemu": "another"}
        refused = everyone._client.submit(
            run_sealed, job, other, job.image.start.vmlinuz.read_bytes()
        )
        with pytest.raises(IopathError, match=r"^worker tcp://.* is refused: its QEMU differs$"):
            refused.result(60)
        assert everyone._on_any(job, job.inputs())[1].texts.keys() == recorded.texts.keys()

        def lying(*args: object) -> tuple[str, Recorded]:
            address, found = run_sealed(*args)
            one = json.loads(found.texts["run.1"])
            for part in one["jobs"][0]["rounds"]:
                part["tsc"] += len(address) + int(address.rpartition(":")[2])
            found.texts["run.1"] = json.dumps(one)
            return address, found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cluster, "run_sealed", lying)
            with pytest.raises(IopathError, match=r"do not count the same for .*: check both"):
                everyone.submit(jobs.run, job).result(300)
    finally:
        everyone.shutdown()
        session.cache.release()
