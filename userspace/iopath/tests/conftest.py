# SPDX-License-Identifier: GPL-2.0
"""What the tests share: the recorded package lists, the command, and caches of a test's own."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from iopath.apt import SUITES, Package, read_index
from iopath.build import build
from iopath.cache import Cache, cache_root
from iopath.measure import Session
from iopath.progress import Reporter
from iopath.sources import source_root
from iopath.states import States

RECORDED = Path(__file__).parent / "packages"
IOPATH = source_root() / "build/bin/iopath"

# The kernel that serves where any one will do.
KERNEL = "debian:6.1"

# The command line where no figure of the kernel's is looked at. The local APIC's timer would be
# calibrated in a loop of 100 ms; without it, a guest that counts instructions starts in half the
# time.
FAST_START = "nokaslr mitigations=off noapictimer"


def pytest_configure(config: pytest.Config) -> None:
    # A shell that runs the tests in the background may ignore SIGINT. The programs that they start
    # must not.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def recorded() -> list[Package]:
    """Kernel packages as Debian's suites listed them in November 2026, a choice of versions."""
    return _read(RECORDED)


@pytest.fixture(scope="session")
def recorded_arm64() -> list[Package]:
    """The same of arm64."""
    return _read(RECORDED.with_name("packages-arm64"))


def _read(folder: Path) -> list[Package]:
    found: list[Package] = []
    for suite in SUITES:
        path = folder / suite
        if path.exists():
            with path.open() as lines:
                found += read_index(lines, suite)
    return found


def write_index(cache: Path, packages: Sequence[Package], folder: str = "apt") -> None:
    """Make *packages* the package lists that a cache knows; they are fresh."""
    index = cache / folder / "index.json"
    index.parent.mkdir(parents=True, exist_ok=True)
    index.write_text(json.dumps([asdict(package) for package in packages]))


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
        self, *args: str | Path, wrap: Sequence[str | Path] = (), timeout: float = 300
    ) -> subprocess.CompletedProcess:
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
        """Whether nothing half-made and no program is left."""
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


@pytest.fixture
def make_command(tmp_path: Path) -> Iterator[Callable[[Path], Command]]:
    made: list[Command] = []

    def make(cache: Path) -> Command:
        made.append(Command(cache, tmp_path))
        return made[-1]

    yield make
    for command in made:
        command.stop()


@pytest.fixture
def empty(make_command: Callable[[Path], Command], tmp_path: Path) -> Command:
    """iopath with nothing cached and no network, for which apt does not wait between its tries."""
    command = make_command(tmp_path / "cache")
    settings = tmp_path / "apt.conf"
    settings.write_text('Acquire::Retries::Delay "false";\n')
    command.env |= {
        "APT_CONFIG": str(settings),
        "IOPATH_MIRROR": "http://127.0.0.1:9/",
        "IOPATH_SECURITY_MIRROR": "http://127.0.0.1:9/",
    }
    return command


@pytest.fixture
def listed(empty: Command, recorded: list[Package], recorded_arm64: list[Package]) -> Command:
    """iopath with the recorded lists, nothing else cached and no network."""
    write_index(empty.cache, recorded)
    write_index(empty.cache, recorded_arm64, "apt-arm64")
    return empty


@pytest.fixture(scope="session")
def session() -> Session:
    """The user's own cache, in which kernels and builds are kept between runs of the tests."""
    from rich.console import Console

    return Session(Cache(cache_root()), Reporter(Console(stderr=True), quiet=True))


@pytest.fixture(scope="session")
def states(session: Session) -> States:
    """The saved states in the user's own cache."""
    return States(session.cache, session.reporter.warn)


def build_into(session: Session, name: str, root: Path) -> None:
    """Copy the image of a kernel and the modules for it into the cache *root*."""
    built = build(session.find(name), session.cache, session.apt, lambda what, part: None)
    for entry in (built.vmlinuz.parent, built.modules["blknull"].parent):
        shutil.copytree(entry, root / entry.relative_to(session.cache.root), symlinks=True)
    for folder in ("apt", "apt-arm64"):
        index = session.cache.root / folder / "index.json"
        if index.exists():
            (root / folder).mkdir(exist_ok=True)
            shutil.copyfile(index, root / folder / "index.json")


@pytest.fixture(scope="session")
def prepared(session: Session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the image of KERNEL and the modules for it, but no result."""
    root = tmp_path_factory.mktemp("prepared")
    build_into(session, KERNEL, root)
    return root


@pytest.fixture
def ready(prepared: Path, make_command: Callable[[Path], Command], tmp_path: Path) -> Command:
    """iopath with KERNEL and its modules in a cache of the test's own, and no result."""
    shutil.copytree(prepared, tmp_path / "cache", symlinks=True)
    return make_command(tmp_path / "cache")
