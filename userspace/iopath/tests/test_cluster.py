# SPDX-License-Identifier: GPL-2.0
"""Jobs on a cluster: a scheduler and two workers, each a process with a cache of its own, on this
machine. The figures are those of a local run, whatever dies meanwhile."""

import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import FAST_START, KERNEL, Command, write_index
from rich.console import Console
from test_git import kernel_repository
from test_planted import git, history

from iopath import cluster, gitrepo, kernelbuild, prepare
from iopath.apt import Package
from iopath.arch import X86_64
from iopath.build import build, headers_root
from iopath.cache import Cache
from iopath.cluster import Cluster, run_sealed
from iopath.errors import IopathError, Unreachable, UsageError
from iopath.guest import Image, Start
from iopath.jobs import Job, Recorded
from iopath.kernelbuild import GitKernel
from iopath.kernels import list_debian
from iopath.kernels import select as select_kernel
from iopath.machine import Machine, Qemu
from iopath.measure import Session
from iopath.plan import FLAT, Settings, make_image, make_runs
from iopath.prepare import Preparation, Prepared, Unprepared
from iopath.programs import guest_program
from iopath.progress import Reporter
from iopath.rungs import select

__all__ = ["history"]

guest = pytest.mark.guest

DASK = Path(sys.executable).with_name("dask")
WORKERS = ("one", "two")
FEW, MANY = 3, 20  # boots, each of which is a job
NOWHERE = "http://127.0.0.1:9/"


class Processes:
    """A scheduler and its workers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "scheduler.json"
        self._running: dict[str, subprocess.Popen] = {}

    def start(self, name: str, *words: str | Path, env: dict[str, str] | None = None) -> None:
        with (self._folder / f"{name}.log").open("w") as log:
            self._running[name] = subprocess.Popen(
                [DASK, *words, "--scheduler-file", self._file, "--no-dashboard"],
                env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True,
            )  # fmt: skip

    def address(self) -> str:
        for _ in range(600):
            if self._file.exists():
                return json.loads(self._file.read_text())["address"]
            time.sleep(0.1)
        raise AssertionError((self._folder / "scheduler.log").read_text())

    def kill(self, name: str) -> None:
        child = self._running.pop(name)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()

    def stop(self) -> None:
        for name in list(self._running):
            self.kill(name)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    found = Processes(tmp_path)
    found.start("scheduler", "scheduler", "--host", "127.0.0.1", "--port", "0")
    try:
        found.address()
        for name in WORKERS:
            found.start(
                name, "worker", "--nthreads", "1", "--no-nanny", "--local-directory",
                tmp_path / f"{name}-files", env={"IOPATH_CACHE": str(tmp_path / name)},
            )  # fmt: skip
        yield found
    finally:
        found.stop()


@pytest.fixture
def builders(processes: Processes, session: Session, tmp_path: Path) -> Processes:
    """The same with the compiler for KERNEL and the lists of packages in the workers' caches. Their
    files are links to those of the user's cache."""
    roots = session.cache.root
    compiler = headers_root(session.find(KERNEL), session.cache, session.apt, silent)
    for name in WORKERS:
        for path in (compiler, roots / "apt/lists"):
            to = tmp_path / name / path.relative_to(roots)
            shutil.copytree(path, to, symlinks=True, copy_function=link)
        shutil.copyfile(roots / "apt/index.json", tmp_path / name / "apt/index.json")
    return processes


def link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def silent(what: str, part: float) -> None:
    pass


def kernels(cache: Path) -> dict[str, bytes]:
    """The files of prepared kernels by their paths, but those that say when they were made."""
    return {
        str(path.relative_to(cache)): path.read_bytes()
        for kind in ("image", "kernel", "modules")
        for path in sorted((cache / kind).rglob("*"))
        if path.is_file() and path.name not in ("manifest.json", "size", "build.log")
    }


def measure(command: Command, boots: int, out: Path, *more: str) -> subprocess.Popen:
    return command.start(
        "measure", KERNEL, "--rung=dio.pread", "--op=read", "--boots", str(boots), "--json", out,
        *more,
    )  # fmt: skip


def figures_of(out: Path) -> list[tuple[str, str, list[float]]]:
    found = json.loads(out.read_text())["results"]
    return [(record["rung"], record["op"], record["boots"]) for record in found]


def results(command: Command) -> list[Path]:
    return list((command.cache / "result").glob("*/manifest.json"))


def wait_for(command: Command, number: int) -> None:
    """Wait until there are so many results."""
    for _ in range(3000):
        if len(results(command)) >= number:
            return
        time.sleep(0.1)
    raise AssertionError(f"only {len(results(command))} of {number} results")


@guest
@pytest.mark.parametrize("boots", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
def test_a_worker_dies(ready: Command, builders: Processes, tmp_path: Path, boots: int) -> None:
    """All jobs arrive, with the figures of a local run; so does the kernel, which only workers can
    download."""
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    local = measure(ready, boots, here)
    assert local.wait(1800) == 0, local.stderr.read()
    assert len(results(ready)) == boots
    built = kernels(ready.cache)
    for kind in ("result", "image", "modules"):
        shutil.rmtree(ready.cache / kind)
    ready.env |= {"IOPATH_MIRROR": NOWHERE, "IOPATH_SECURITY_MIRROR": NOWHERE}
    remote = measure(ready, boots, there, "--scheduler", builders.address())
    wait_for(ready, 1)
    assert kernels(ready.cache) == built
    builders.kill(WORKERS[0])
    assert remote.wait(1800) == 0, remote.stderr.read()
    assert figures_of(there) == figures_of(here)
    assert len(results(ready)) == boots
    states = [list((tmp_path / name / "state").glob("*/state.zst")) for name in WORKERS]
    assert any(states), "no worker has run a guest"


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
    processes: Processes,
    make_command: Callable[[Path], Command],
    session: Session,
    tmp_path: Path,
) -> None:
    """Two workers build two commits, and what arrives is what is built here."""
    linux = kernel_repository(session, X86_64)
    names = [f"git:{linux}@{name}" for name in ("HEAD~2", "HEAD~1")]
    for name in names:
        session.build(session.find(name), silent)
    compiler = kernelbuild.compiler(session.find(names[0]), session.cache, session.apt, silent)
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
        timeout=1500,
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
    """The worker that builds modules, once there is one."""
    for _ in range(3000):
        for name in WORKERS:
            if list((folder / name / "modules").glob("*.part/src")):
                return name
        time.sleep(0.1)
    raise AssertionError("no worker builds modules")


@guest
@pytest.mark.long
def test_features(ready: Command, processes: Processes, tmp_path: Path) -> None:
    """What a feature costs is the same."""
    words = ["features", KERNEL, "--feature", "rotational", "--feature", "iostats", "--boots", "1"]
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    assert ready.run(*words, "--json", here).returncode == 0
    shutil.rmtree(ready.cache / "result")
    done = ready.run(*words, "--json", there, "--scheduler", processes.address())
    assert done.returncode == 0, done.stderr
    assert json.loads(here.read_text()) == json.loads(there.read_text())


@guest
def test_the_scheduler_dies(ready: Command, processes: Processes, tmp_path: Path) -> None:
    """One line says so. What has arrived is kept."""
    command = measure(
        ready, FEW, tmp_path / "out.json", "--scheduler", processes.address(), "--quiet"
    )
    wait_for(ready, 1)
    processes.kill("scheduler")
    _, said = command.communicate(timeout=300)
    assert command.returncode == 1
    (line,) = [line for line in said.splitlines() if line.startswith("iopath: ")]
    assert " is gone: finished jobs are kept, so run the command again" in line
    assert "Traceback" not in said
    assert not (tmp_path / "out.json").exists()
    kept = len(results(ready))
    assert kept >= 1
    again = measure(ready, FEW, tmp_path / "out.json")
    assert again.wait(600) == 0
    assert len(results(ready)) == FEW


def test_a_worker_without_iopath(tmp_path: Path) -> None:
    """It is refused before it is sent a job."""
    processes = Processes(tmp_path)
    processes.start("scheduler", "scheduler", "--host", "127.0.0.1", "--port", "0")
    try:
        address = processes.address()
        # What is found before the package: as if there were none.
        (tmp_path / "sitecustomize.py").write_text(
            "import importlib.util as util\n"
            "found = util.find_spec\n"
            "util.find_spec = lambda name: None if name == 'iopath' else found(name)\n"
        )
        processes.start(
            "one", "worker", "--nthreads", "1", "--no-nanny", "--local-directory",
            tmp_path / "one-files", env={"PYTHONPATH": str(tmp_path)},
        )  # fmt: skip
        with pytest.raises(IopathError, match="is refused: its Python does not find iopath"):
            Cluster(address)
    finally:
        processes.stop()


@guest
def test_who_counts(ready: Command, processes: Processes, tmp_path: Path) -> None:
    """A job is done a second time by the other worker; a worker that counts otherwise is named, and
    one that has another QEMU is refused."""
    session = Session(Cache(ready.cache), Reporter(Console(stderr=True), quiet=True))
    settings = Settings(select(["null"]), machine=Machine(cmdline=FAST_START))
    built = build(session.find(KERNEL), session.cache, session.apt, lambda what, part: None)
    runs, _ = make_runs(settings)
    job = Job(
        Qemu.find(), settings.machine, make_image(built, runs, settings),
        guest_program("pathcount.so"), f"lines=4,flat={FLAT}", built.release, ready.cache,
        tmp_path / "progress",
    )  # fmt: skip
    job.progress.touch()
    from iopath import jobs

    everyone = Cluster(processes.address(), checked=1)
    try:
        recorded = everyone.submit(jobs.run, job).result(300)
        assert cluster.figures(recorded).keys() == {"run.1"}
        for name in WORKERS:
            assert list((tmp_path / name / "state").glob("*/state.zst"))
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


QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "10s",
    "distributed.admin.system-monitor.interval": "60s",
}


@pytest.mark.parametrize(
    ("number", "workers", "seconds"),
    [(200, 10, 0.1), pytest.param(10000, 100, 1.0, marks=pytest.mark.long)],
)
def test_many_jobs(
    number: int, workers: int, seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs that only sleep, on workers that are threads: all arrive, in little more than the
    time that the workers need, and the kernel is sent once."""
    import dask
    import distributed

    from iopath import jobs

    def sleep(*_: object) -> tuple[str, Recorded]:
        time.sleep(seconds)
        return distributed.get_worker().address, Recorded({}, b"", b"", ())

    kernel, progress = tmp_path / "vmlinuz", tmp_path / "progress"
    kernel.write_bytes(bytes(12 << 20))
    progress.touch()

    class Sleeping(Job):
        """A job that is told from others by its number."""

        def inputs(self) -> dict[str, str]:
            return {"number": self.options, "vmlinuz": "one"}

    start = Start(kernel)
    made = [
        Sleeping(
            Qemu("", "", ""), Machine(), Image(start, [], {}), kernel, str(at), "", tmp_path,
            progress,
        )
        for at in range(number)
    ]  # fmt: skip
    monkeypatch.setattr(cluster, "run_sealed", sleep)
    with (
        dask.config.set(QUIET),
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=False, dashboard_address=":0",
            memory_limit=None, silence_logs=50,
        ) as local,
    ):  # fmt: skip
        everyone = Cluster(local.scheduler_address)
        try:
            begin = time.monotonic()
            waiting = [everyone.submit(jobs.run, job) for job in made]
            assert all(job.result(600).texts == {} for job in waiting)
            took = time.monotonic() - begin
            assert len(everyone._images) == 1
        finally:
            everyone.shutdown()
    ideal = number * (1 + 1 / cluster.CHECKED) * seconds / workers
    print(f"{number} jobs took {took:.1f} s, {ideal:.1f} if nothing but the workers took time")
    assert took < 1.5 * ideal + 10


@pytest.fixture
def threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A cluster whose only worker is a thread, with a cache of its own and without a network."""
    import dask
    import distributed

    settings = tmp_path / "apt.conf"
    settings.write_text('Acquire::Retries::Delay "false";\n')
    monkeypatch.setenv("APT_CONFIG", str(settings))
    for name in ("IOPATH_MIRROR", "IOPATH_SECURITY_MIRROR"):
        monkeypatch.setenv(name, NOWHERE)
    monkeypatch.setenv("IOPATH_CACHE", str(tmp_path / "worker"))
    with (
        dask.config.set(QUIET),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0",
            silence_logs=50,
        ) as local,
    ):  # fmt: skip
        found = Cluster(local.scheduler_address)
        try:
            yield found
        finally:
            found.shutdown()


def test_who_prepares(
    threads: Cluster, recorded: list[Package], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker with other sources is refused, and one whose mirror has another package of the same
    version. One that lacks the package looks for newer lists."""
    for name in ("sender", "worker"):
        write_index(tmp_path / name, [replace(one, sha256="1") for one in recorded])
    session = Session(Cache(tmp_path / "sender"), Reporter(Console(stderr=True), quiet=True))
    kernel = session.find(KERNEL)
    job = Preparation.of(kernel, session.cache, session.apt, silent)
    assert set(job.packages) == {*kernel.image, kernel.headers}

    write_index(tmp_path / "worker", [replace(one, sha256="2") for one in recorded])
    wrong = r"^worker \S+ is refused: its mirror has other packages of the same versions$"
    with pytest.raises(Unreachable, match=wrong):
        threads.submit(prepare.run, job).result(60)
    write_index(tmp_path / "worker", [one for one in recorded if one.name not in kernel.headers])
    with pytest.raises(Unprepared, match=r"^worker \S+: cannot fetch the lists of kernel packages"):
        threads.submit(prepare.run, job).result(60)
    monkeypatch.setattr(cluster, "source_digest", lambda: "another")
    wrong = r"^worker \S+ is refused: its iopath differs \(the modules' source\)$"
    with pytest.raises(Unreachable, match=wrong):
        threads.submit(prepare.run, job).result(60)


def test_prepared_here(threads: Cluster, recorded: list[Package], tmp_path: Path) -> None:
    """What no worker can prepare is prepared by the command, which says so in a line."""
    for name in ("sender", "worker"):
        write_index(tmp_path / name, recorded)
    said = io.StringIO()
    session = Session(Cache(tmp_path / "sender"), Reporter(Console(file=said, width=300)))
    session.executor = threads
    kernel = session.find(KERNEL)
    with pytest.raises(IopathError, match=r"^cannot download linux-image-"):
        session.build(kernel, silent)
    assert not list((tmp_path / "worker" / "image").glob("*"))
    (line,) = said.getvalue().splitlines()
    assert line.startswith(f"{kernel.release} is prepared here: worker inproc://")
    assert ": cannot download linux-image-" in line


def test_a_repository_elsewhere(threads: Cluster, history: Path, tmp_path: Path) -> None:
    """A worker that does not have the folder of a repository, or not the commit, says so."""
    repository = gitrepo.open_repository(str(history), Cache(tmp_path / "sender"))
    commit_ = repository.commit("HEAD")
    kernel = GitKernel(repository, commit_, kernelbuild.Recipe.default())
    (tmp_path / "packages").write_text("")
    job = Preparation(kernel, kernelbuild.entries(kernel, tmp_path), {})
    git(history, "reset", "--quiet", "--hard", "HEAD~1")
    git(history, "reflog", "expire", "--expire=now", "--all")
    git(history, "gc", "--quiet", "--prune=now")
    with pytest.raises(Unprepared, match=f": {commit_}: .* has no such commit$"):
        threads.submit(prepare.run, job).result(60)
    history.rename(tmp_path / "elsewhere")
    with pytest.raises(Unprepared, match=r": git:.*: there is no such folder$"):
        threads.submit(prepare.run, job).result(60)


def test_what_arrives(recorded: list[Package], tmp_path: Path) -> None:
    """Files whose digests are not those that the worker named are not kept."""
    kernel, _ = select_kernel("6.1", list_debian(recorded))
    job = Preparation(kernel, (("image", {"a": 1}), ("modules", {"a": 2})), {})
    cache = Cache(tmp_path / "cache")
    digest = hashlib.sha256(b"kernel").hexdigest()
    named = ({"vmlinuz": digest}, {})
    job.keep(Prepared(({"vmlinuz": b"kernel"}, {}), named), cache)
    assert (cache.path("image", {"a": 1}) / "vmlinuz").read_bytes() == b"kernel"
    wrong = "arrived with another digest: run the command again"
    for files in ({"vmlinuz": b"other"}, {}, {"vmlinuz": b"kernel", "more": b""}):
        with pytest.raises(IopathError, match=wrong):
            job.keep(Prepared((files, {}), named), cache)
    outside = {"../vmlinuz": b"kernel"}
    job = replace(job, entries=(("image", {"a": 3}), ("modules", {"a": 4})))
    with pytest.raises(IopathError, match=r"with the invalid name '\.\./vmlinuz'"):
        job.keep(Prepared((outside, {}), ({"../vmlinuz": digest}, {})), cache)
    assert not job.is_kept(cache)


def test_bad_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_WAIT", 1)
    with pytest.raises(IopathError, match=r"--scheduler tcp://127.0.0.1:9: no scheduler answers"):
        Cluster("tcp://127.0.0.1:9")
    with pytest.raises(IopathError, match=r"--scheduler no-such://x: no scheduler answers there"):
        Cluster("no-such://x")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"needs dask.distributed: pip install 'iopath\[cluster\]"):
        Cluster("tcp://127.0.0.1:9")
