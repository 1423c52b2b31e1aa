# SPDX-License-Identifier: GPL-2.0
"""What the tests share: the recorded package lists, the command, and caches of a test's own."""

import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

from helpers import kept
from helpers.command import KERNEL, Command, build_into, copy_cache, copy_states, write_index
from helpers.parsed import browser, chromium
from helpers.planted import branched, history
from helpers.repositories import arch
from helpers.tracking import site
from helpers.workers import processes
from iopath.base.cache import Cache, cache_root
from iopath.base.progress import Reporter
from iopath.guest.states import States
from iopath.kernels.apt import Package, read_index
from iopath.measure.session import Session

__all__ = ["arch", "branched", "browser", "chromium", "history", "processes", "site"]

# A package a line: architecture, suite, name, version, size and, if there are any, dependencies.
RECORDED = Path(__file__).parent / "helpers/packages.tsv"
PARAGRAPH = "Package: {}\nVersion: {}\nSize: {}\nDepends: {}\n\n"


def pytest_configure(config: pytest.Config) -> None:
    # A shell that runs the tests in the background may ignore SIGINT. The programs that they start
    # must not.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if kept.found:
        terminalreporter.write_line(f"guests not run again: {len(kept.found)}")


@pytest.fixture(scope="session")
def recorded() -> list[Package]:
    """Kernel packages as Debian's suites listed them in November 2026, a choice of versions."""
    return _read("amd64")


@pytest.fixture(scope="session")
def recorded_arm64() -> list[Package]:
    """The same of arm64."""
    return _read("arm64")


def _read(architecture: str) -> list[Package]:
    lists: dict[str, list[str]] = {}
    for line in RECORDED.read_text().splitlines():
        of, suite, *fields = line.split("\t")
        if of == architecture:
            text = PARAGRAPH.format(*fields, *[""] * (4 - len(fields)))
            lists.setdefault(suite, []).extend(text.splitlines(keepends=True))
    return [package for suite, lines in lists.items() for package in read_index(lines, suite)]


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


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
def iopath(session: Session, make_command: Callable[[Path], Command]) -> Command:
    """The command with the user's cache: states and results that it has are used, and what is
    measured stays there."""
    return make_command(session.cache.root)


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
    return Session(Cache(cache_root()), Reporter(Console(stderr=True), quiet=True))


@pytest.fixture(scope="session")
def states(session: Session) -> States:
    """The saved states in the user's own cache."""
    return States(session.cache, session.reporter.warn)


@pytest.fixture(scope="session")
def once(session: Session) -> kept.Once:
    """The same, for guests that are not run again."""
    return kept.Once(session.cache, session.reporter.warn)


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


@pytest.fixture(scope="session")
def started(prepared: Path, session: Session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same cache with states of its guests with FAST_START: of the first three boots."""
    root = tmp_path_factory.mktemp("started") / "cache"
    copy_cache(prepared, root)
    copy_states(session, root, (1, 2, 3))
    return root


@pytest.fixture
def resumable(started: Path, make_command: Callable[[Path], Command], tmp_path: Path) -> Command:
    """iopath with KERNEL, its modules and those states, for tests that are not about booting."""
    copy_cache(started, tmp_path / "cache")
    return make_command(tmp_path / "cache")
