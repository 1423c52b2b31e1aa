# SPDX-License-Identifier: GPL-2.0
"""A watch, and points that were measured for it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from helpers.examples import DIGEST, STACKS, Stack, a_record, a_result
from iopath.base.arch import BY_DEBIAN
from iopath.base.cache import Cache
from iopath.base.errors import IopathError
from iopath.base.progress import Reporter
from iopath.kernels import recipe as kernelbuild
from iopath.measure.measurement import Measurement
from iopath.measure.session import Session
from iopath.results import result
from iopath.results.layers import Layers
from iopath.results.result import ExactResult
from iopath.track import site as tracksite
from iopath.track import store, watches
from iopath.track.index import Index
from iopath.track.store import Point
from iopath.track.tracker import Tracker
from iopath.track.watches import Config

ASKED = {
    "rungs": ["syscall", "dio.pread"], "ops": ["read", "write"], "block_sizes": [4096], "boots": 4,
    "build": "", "missing": "",
}  # fmt: skip

FILE = """
title = "The path"
rungs = ["syscall", "dio.pread"]
[[watch]]
name = "block"
kernels = ["git:linux@v6.12..for-next"]
"""


def write_file(folder: Path, text: str = FILE) -> Path:
    path = folder / "watch.toml"
    path.write_text(text)
    return path


def config(folder: Path, text: str = FILE) -> Config:
    return watches.load(write_file(folder, text))


# What is kept.

LONGER: tuple[Stack, ...] = (
    *STACKS[:2],
    (("loop [user]", "do_syscall_64", "vfs_read"), "VFS", 127.0),
    *STACKS[3:],
)


def a_point(number: int, watch: str = "block", **fields: Any) -> Point:  # noqa: ANN401
    name = f"{number:012x}"
    made = {
        "line": watch, "title": name, "position": str(100 + number), "date": "2026-11-01",
        "detail": f"subject {number}", "asked": ASKED, "commit": name * 3 + "0000",
    }  # fmt: skip
    return Point(watch, **{**made, **fields})


def keep(
    folder: Path,
    points: Sequence[Point],
    planted: int = -1,
    stacks: Sequence[Stack] | None = STACKS,
) -> None:
    """Write the files of points. From number *planted* on, dio.pread read is longer by five."""
    for number, point in enumerate(points):
        if point.error:
            store.write(folder, point, None)
            continue
        longer = 0 <= planted <= number
        records = [
            a_record("k", "syscall", "none", 0, stacks and STACKS[:2]),
            a_record("k", "dio.pread", "read", 4096, stacks and (LONGER if longer else STACKS)),
            a_record("k", "dio.pread", "write", 4096, stacks),
        ]
        if longer and not stacks:
            shift(records[1], 5.0)
        store.write(folder, point, result.make(a_result(records)))


def shift(record: dict[str, Any], by: float) -> None:
    """Make a record's figure longer."""
    for name in ("instructions_per_io", "mean", "with_deferred"):
        record[name] += by
    for name in ("boots", "mean_boots", "with_deferred_boots"):
        record[name] = [boot + by for boot in record[name]]


def debian_points(versions: Sequence[tuple[str, str]]) -> list[Point]:
    return [
        a_point(at, "debian", line=line, title=version, position=version, commit="")
        for at, (line, version) in enumerate(versions)
    ]


def index_of(folder: Path) -> Index:
    index = Index(folder)
    index.refresh()
    index.compare(Layers(), lambda text: None)
    return index


# What is measured.


class Planted(Session):
    """A session with planted figures in place of guests. The commits of *longer* take five
    instructions more in vfs_read; those of *broken* cannot be measured. With another QEMU or
    another source of modules, three instructions more are counted."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Cache(folder / "cache"), Reporter(Console(), quiet=True))
        self.longer: set[str] = set()
        self.broken: dict[str, BaseException] = {}
        self.qemu = "7.2"
        self.source = DIGEST
        self.calls: list[list[str]] = []

    def measure_each(
        self, wanted: Sequence[Measurement], *_: object
    ) -> Iterator[tuple[Measurement, ExactResult | IopathError]]:
        self.calls.append([one.name.rpartition("@")[2] for one in wanted])
        for one, commit in zip(wanted, self.calls[-1], strict=True):
            error = self.broken.get(commit)
            if error and not isinstance(error, IopathError):
                raise error
            yield one, error or self.measured(one, commit)

    def measured(self, one: Measurement, commit: str) -> ExactResult:
        more = 3.0 * ((self.qemu, self.source) != ("7.2", DIGEST))
        *stacks, (path, layer, count) = LONGER if commit in self.longer else STACKS
        counted = [*stacks, (path, layer, count + more)]
        made = a_result([a_record(one.name, "dio.pread", "read", 4096, counted)])
        made["qemu"]["version"] = self.qemu
        made["source"] = self.source
        return result.make(made)


# Which kernels.


def wanted(tracker: Tracker) -> list[Point]:
    """The points of the only watch."""
    (watch,) = tracker._config.watches
    return [one.point for one in tracker._wanted(watch, tracker._recipe(watch))]


def a_tracker(session: Session, folder: Path, text: str) -> Tracker:
    def recipe(suite: str, base: str, options: Sequence[str], arch: str) -> kernelbuild.Recipe:
        return kernelbuild.recipe(suite, None, options, BY_DEBIAN[arch])

    return Tracker(session, config(folder, text), folder / "site", recipe)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A branch, one of whose commits is longer, and Debian's kernels of two releases."""
    folder = tmp_path_factory.mktemp("site")
    keep(folder, [a_point(number) for number in range(8)], planted=5)
    versions = [("bookworm", "6.1.190-1"), ("bookworm", "6.1.192-2"), ("trixie", "6.12.117-1")]
    keep(folder, debian_points(versions), planted=2)
    store.write(folder, a_point(9, error="does not boot"), None)
    tracksite.write(folder, config(folder), index_of(folder))
    return folder


DEBIAN = """
rungs = ["syscall", "dio.pread"]
[[watch]]
name = "debian"
kernels = ["debian:5.10", "debian:6.1", "debian:7.2-rt"]
"""
