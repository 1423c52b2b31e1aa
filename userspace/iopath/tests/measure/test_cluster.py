# SPDX-License-Identifier: GPL-2.0
"""Jobs on a cluster: a scheduler and two workers, each a process with a cache of its own, on this
machine. The figures are those of a local run, even if a worker dies."""

import hashlib
import io
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from helpers.command import KERNEL, write_index
from helpers.planted import git
from helpers.workers import NOWHERE, Processes, silent
from helpers.workers import threads as threads_of
from iopath.base.cache import Cache
from iopath.base.errors import IopathError, Unreachable, UsageError
from iopath.base.progress import Reporter
from iopath.guest.machine import Machine, Qemu
from iopath.guest.payload import Image, Start
from iopath.kernels import gitrepo, prepare, recipe
from iopath.kernels.apt import Package
from iopath.kernels.prepare import Preparation, PreparedFiles, Unprepared
from iopath.kernels.sources import git as git_kernels
from iopath.kernels.sources.debian import list_debian
from iopath.kernels.sources.debian import select as select_kernel
from iopath.kernels.sources.git import GitKernel
from iopath.measure import cluster
from iopath.measure.cluster import Cluster
from iopath.measure.jobs import Job, Recorded
from iopath.measure.session import Session


def test_a_worker_without_iopath(tmp_path: Path) -> None:
    """It is refused before it gets a job."""
    processes = Processes(tmp_path)
    processes.start("scheduler", "scheduler", "--host", "127.0.0.1", "--port", "0")
    try:
        address = processes.address()
        # This is found before the package, as if there were no package.
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


@pytest.mark.parametrize(
    ("number", "workers", "seconds"),
    [(200, 10, 0.1), pytest.param(10000, 100, 1.0, marks=pytest.mark.long)],
)
def test_many_jobs(
    number: int, workers: int, seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs that only sleep, on workers that are threads: all arrive, each worker has some,
    and the kernel is sent once."""
    import distributed

    from iopath.measure import jobs

    def sleep(*_: object) -> tuple[str, Recorded]:
        time.sleep(seconds)
        address = distributed.get_worker().address
        return address, Recorded({"worker": address}, b"", b"", ())

    kernel, progress = tmp_path / "vmlinuz", tmp_path / "progress"
    kernel.write_bytes(bytes(12 << 20))
    progress.touch()

    class Sleeping(Job):
        """A job that is identified by its number."""

        def inputs(self) -> dict[str, str]:
            return {"number": self.options, "vmlinuz": "one"}

    start = Start(kernel)
    made = [
        Sleeping(
            Qemu((), "", ""), Machine(), Image(start, [], {}), kernel, str(at), "", tmp_path,
            progress,
        )
        for at in range(number)
    ]  # fmt: skip
    monkeypatch.setattr(cluster, "run_sealed", sleep)
    with threads_of(workers) as everyone:
        waiting = [everyone.submit(jobs.run, job) for job in made]
        used = {job.result(3600).texts["worker"] for job in waiting}
        assert len(everyone._images) == 1
    assert len(used) == workers


@pytest.fixture
def threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A cluster whose only worker is a thread, with a cache of its own and without a network."""
    settings = tmp_path / "apt.conf"
    settings.write_text('Acquire::Retries::Delay "false";\n')
    monkeypatch.setenv("APT_CONFIG", str(settings))
    for name in ("IOPATH_MIRROR", "IOPATH_SECURITY_MIRROR"):
        monkeypatch.setenv(name, NOWHERE)
    monkeypatch.setenv("IOPATH_CACHE", str(tmp_path / "worker"))
    with threads_of(1) as found:
        yield found


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
    """The command prepares kernels that no worker can prepare, and says so in a line."""
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
    kernel = GitKernel(repository, commit_, recipe.Recipe.default())
    (tmp_path / "packages").write_text("")
    job = Preparation(kernel, git_kernels.entries(kernel, tmp_path), {})
    git(history, "reset", "--quiet", "--hard", "HEAD~1")
    git(history, "reflog", "expire", "--expire=now", "--all")
    git(history, "gc", "--quiet", "--prune=now")
    with pytest.raises(Unprepared, match=f"@{commit_}: there is no such commit$"):
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
    job.keep(PreparedFiles(({"vmlinuz": b"kernel"}, {}), named), cache)
    assert (cache.path("image", {"a": 1}) / "vmlinuz").read_bytes() == b"kernel"
    wrong = "arrived with another digest: run the command again"
    for files in ({"vmlinuz": b"other"}, {}, {"vmlinuz": b"kernel", "more": b""}):
        with pytest.raises(IopathError, match=wrong):
            job.keep(PreparedFiles((files, {}), named), cache)
    outside = {"../vmlinuz": b"kernel"}
    job = replace(job, entries=(("image", {"a": 3}), ("modules", {"a": 4})))
    with pytest.raises(IopathError, match=r"with the invalid name '\.\./vmlinuz'"):
        job.keep(PreparedFiles((outside, {}), ({"../vmlinuz": digest}, {})), cache)
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
