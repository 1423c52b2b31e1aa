# SPDX-License-Identifier: GPL-2.0
"""Prepare a kernel: get or build it, and build the project's modules for it.

A worker of a cluster can do it, too. A Preparation is a job like those of jobs.py: its result
depends only on its inputs(). The result is the content of the cache entries that this machine would
make.
"""

import hashlib
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from pathlib import Path

from iopath.base.cache import MANIFEST, SIZE, Cache, cache_root, digest_file, digest_of
from iopath.base.errors import IopathError, Unreachable
from iopath.kernels.apt import Apt
from iopath.kernels.built import Entry, Step
from iopath.kernels.kernel import Kernel


class Unprepared(IopathError):
    """A worker cannot prepare a kernel; another machine may be able to."""


@dataclass(frozen=True)
class PreparedFiles:
    """The result of a preparation: for each entry its files by their paths, and their digests."""

    files: tuple[dict[str, bytes], ...]
    digests: tuple[dict[str, str], ...]

    def compared(self) -> list[dict[str, str]]:
        """The digests that are the same wherever a kernel is prepared: not those of logs."""
        return [
            {name: digest for name, digest in entry.items() if not name.endswith(".log")}
            for entry in self.digests
        ]


@dataclass(frozen=True)
class Preparation:
    """A kernel, the cache entries that it consists of once it is prepared, and the digests of its
    packages."""

    kernel: Kernel
    entries: tuple[Entry, ...]
    packages: dict[str, str]

    @classmethod
    def of(cls, kernel: Kernel, cache: Cache, apt: Apt, step: Step) -> "Preparation | None":
        """The preparation of a kernel with this machine's packages and sources; None if only this
        machine can prepare it."""
        parts = kernel.parts(cache, apt, step)
        return cls(kernel, *parts) if parts else None

    def inputs(self) -> dict[str, object]:
        """Everything that the entries depend on."""
        found = {
            f"{kind}.{name}": value
            for kind, inputs in self.entries
            for name, value in inputs.items()
        }
        return {**found, "digests": self.packages}

    @property
    def key(self) -> str:
        """What identifies it."""
        return digest_of(self.inputs())

    @property
    def release(self) -> str:
        """The kernel's name in messages."""
        return self.kernel.title

    def here(self, cache: Cache, apt: Apt) -> "Preparation":
        """The same with the packages, the sources and the repository of this machine. Raises
        IopathError if it lacks any."""
        kernel = self.kernel.here(cache)
        local = Preparation.of(kernel, cache, apt, _silent)
        assert local
        if set(self.packages) - set(local.packages):  # its lists may be older than the sender's
            apt.of(kernel.arch).packages(update=True)
            local = Preparation.of(kernel, cache, apt, _silent)
            assert local
        if absent := set(self.packages) - set(local.packages):
            raise IopathError(f"its mirror lacks {min(absent)}")
        compiler = "kernel.packages"
        if local.inputs().get(compiler) != self.inputs().get(compiler):
            raise IopathError("its compiler comes from other packages")
        known = {name for name, digest in self.packages.items() if digest and local.packages[name]}
        return replace(local, packages={**self.packages, **{n: local.packages[n] for n in known}})

    def is_kept(self, cache: Cache) -> bool:
        """Whether the cache has the kernel."""
        return all(cache.path(*entry).exists() for entry in self.entries)

    def keep(self, prepared: PreparedFiles, cache: Cache) -> None:
        """Keep what a worker prepared as if it had been made here."""
        for entry, files, digests in zip(
            self.entries, prepared.files, prepared.digests, strict=True
        ):
            found = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
            if wrong := {name for name, _ in found.items() ^ digests.items()}:
                raise Unreachable(
                    f"{self.release}: a worker prepared it, and {min(wrong)} arrived with another"
                    " digest: run the command again"
                )
            cache.entry(*entry, lambda folder, files=files: _write(folder, files))


class Asked:
    """What workers were asked to prepare, each kernel once; *cache* gets it."""

    def __init__(self, cache: Cache, apt: Apt) -> None:
        self._cache = cache
        self._apt = apt
        self._lock = threading.Lock()
        self._asked: dict[str, Future[PreparedFiles]] = {}

    def ask(
        self, executor: Executor, kernel: Kernel, step: Step
    ) -> tuple[Preparation, Future[PreparedFiles]] | None:
        """Have a worker prepare a kernel, unless the cache has it or only this machine can."""
        job = Preparation.of(kernel, self._cache, self._apt, step)
        if job is None:
            return None
        with self._lock:
            if job.is_kept(self._cache):
                return None
            if job.key not in self._asked:
                self._asked[job.key] = executor.submit(run, job)
            return job, self._asked[job.key]

    def fetch(
        self, executor: Executor, kernel: Kernel, step: Step, note: Callable[[str], None]
    ) -> None:
        """Have a worker prepare a kernel, and keep it. If none can, *note* is told why."""
        asked = self.ask(executor, kernel, step)
        if not asked:
            return
        job, future = asked
        step("waiting for a worker that prepares it", 0.2)
        try:
            job.keep(future.result(), self._cache)
        except Unprepared as error:
            note(f"{job.release} is prepared here: {error}")
            return
        with self._lock:
            self._asked.pop(job.key, None)  # it is large


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        path = folder / name
        if folder.resolve() not in path.resolve().parents:
            raise Unreachable(f"a worker sent a file with the invalid name {name!r}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _silent(what: str, part: float) -> None:
    pass


def run(job: Preparation) -> PreparedFiles:
    """Prepare a kernel with the cache and the mirror of this machine, and its repository."""
    cache = Cache(cache_root())
    try:
        job.kernel.prepare(cache, Apt(cache, lambda text: None), _silent)
        found = [_files(cache.path(*entry)) for entry in job.entries]
        return PreparedFiles(
            tuple({name: path.read_bytes() for name, path in paths.items()} for paths in found),
            tuple({name: digest_file(path) for name, path in paths.items()} for paths in found),
        )
    finally:
        cache.release()


def _files(folder: Path) -> dict[str, Path]:
    """The files of a cache entry, without those in which the cache describes it."""
    found = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*"))}
    for name in (MANIFEST, SIZE):
        del found[name]
    return {name: path for name, path in found.items() if path.is_file()}
