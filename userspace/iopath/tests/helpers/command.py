# SPDX-License-Identifier: GPL-2.0
"""The command iopath with surroundings of a test's own."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from helpers import preloaded
from iopath.base.sources import source_root
from iopath.guest.guest import RAM
from iopath.guest.machine import Machine, Qemu
from iopath.guest.payload import Start
from iopath.guest.states import States
from iopath.kernels.apt import Package
from iopath.measure.session import Session

IOPATH = source_root() / "build/bin/iopath"

# The kernel for tests that work with any kernel.
KERNEL = "debian:6.1"

# The rungs that stand for the ladder: one of each kind of work.
FEW = ("syscall", "raw.pread", "dio.aio.100", "dio.uring.fixed", "buf.pread", "mq.pread", "splice")

# The command line of tests that use no figure of the kernel. The local APIC's timer would be
# calibrated in a loop of 100 ms; without it, a guest that counts instructions starts in half the
# time.
FAST_START = "nokaslr mitigations=off noapictimer"


def write_index(cache: Path, packages: Sequence[Package], folder: str = "apt") -> None:
    """Make *packages* the package lists that a cache knows; they are fresh."""
    index = cache / folder / "index.json"
    index.parent.mkdir(parents=True, exist_ok=True)
    index.write_text(json.dumps([asdict(package) for package in packages]))


def link(source: str, target: str) -> None:
    """Give a file another name, or copy it to another file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def copy_cache(source: Path, target: Path) -> None:
    """Copy a cache. The saved states in it are large: they get other names."""

    def copy(one: str, other: str) -> None:
        (link if Path(one).name == RAM else shutil.copy2)(one, other)

    shutil.copytree(source, target, symlinks=True, copy_function=copy, dirs_exist_ok=True)


def copy_states(
    session: Session, root: Path, seeds: Sequence[int], cmdline: str = FAST_START,
    kernel: str = KERNEL,
) -> None:  # fmt: skip
    """Have guests of a kernel with a command line and these seeds resume in the cache *root*. The
    user's cache keeps their states."""
    built = session.find(kernel).prepare(session.cache, session.apt, lambda what, part: None)
    states = States(session.cache)
    for seed in seeds:
        machine = Machine(cmdline=cmdline, seed=seed)
        log = root.parent / "console.log"
        state = states.prepare(Qemu.find(), machine, Start(built.vmlinuz), log)
        assert state
        copy_cache(state.parent, root / state.parent.relative_to(session.cache.root))


class Command:
    """The command iopath with a cache and surroundings of its own."""

    def __init__(self, cache: Path, folder: Path) -> None:
        self.cache = cache
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.env = {
            **os.environ,
            "IOPATH_CACHE": str(cache),
            "TMPDIR": str(self.temporary),
            "COLUMNS": "300",
        }
        self._started: list[subprocess.Popen] = []

    def forget(self) -> None:
        """Have guests run again."""
        for kind in ("measured", "result"):
            shutil.rmtree(self.cache / kind, ignore_errors=True)

    def start(self, *args: str | Path, wrap: Sequence[str | Path] = ()) -> subprocess.Popen:
        process = subprocess.Popen(
            [*wrap, IOPATH, *args],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def run(
        self, *args: str | Path, wrap: Sequence[str | Path] = (), timeout: float = 3600
    ) -> subprocess.CompletedProcess:
        if not wrap and preloaded.serves(self.env):
            done = preloaded.run([str(word) for word in args], self.env, timeout)
            return subprocess.CompletedProcess(args, *done)
        process = self.start(*args, wrap=wrap)
        out, err = process.communicate(timeout=timeout)
        return subprocess.CompletedProcess(args, process.returncode, out, err)

    def fails(self, *args: str | Path, status: int = 1, wrap: Sequence[str | Path] = ()) -> str:
        """The one line that iopath fails with; it leaves nothing behind."""
        done = self.run(*args, "--quiet", wrap=wrap)
        said = done.stderr.strip().splitlines()
        assert (done.returncode, len(said)) == (status, 1), done.stderr + done.stdout
        assert done.stdout == ""
        assert said[0].startswith("iopath: ")
        self.left_nothing()
        return said[0]

    def left_nothing(self) -> None:
        """Whether no incomplete entry and no program is left."""
        assert [str(path) for path in self.cache.rglob("*.part")] == []
        assert list(self.temporary.iterdir()) == []
        assert self.programs() == []

    def programs(self) -> list[str]:
        """The programs that run on this test's cache or temporary files, but for iopath itself."""
        mine = {process.pid for process in self._started}
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            here = str(self.cache) in line or str(self.temporary) in line
            if here and int(path.parent.name) not in mine | {os.getpid()}:
                found.append(line)
        return found

    def stop(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.communicate()


def build_into(session: Session, name: str, root: Path) -> None:
    """Copy the image of a kernel and the modules for it into the cache *root*."""
    built = session.find(name).prepare(session.cache, session.apt, lambda what, part: None)
    for entry in (built.vmlinuz.parent, built.modules["blknull"].parent):
        shutil.copytree(entry, root / entry.relative_to(session.cache.root), symlinks=True)
    for folder in ("apt", "apt-arm64"):
        index = session.cache.root / folder / "index.json"
        if index.exists():
            (root / folder).mkdir(exist_ok=True)
            shutil.copyfile(index, root / folder / "index.json")
