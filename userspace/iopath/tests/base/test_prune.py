# SPDX-License-Identifier: GPL-2.0
"""The cache is kept in bounds, and used entries stay."""

import multiprocessing
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from helpers.command import Command
from iopath.base.cache import Cache
from iopath.base.prune import Stored, keep_in_bounds, prune, stored

MIB = 1 << 20


def make(cache: Cache, name: str, *, days: int = 0) -> Path:
    """An entry of a MiB that was last used *days* ago."""
    data = os.urandom(MIB)
    entry = cache.entry("kind", {"name": name}, lambda to: bool((to / "data").write_bytes(data)))
    then = time.time() - days * 86400
    os.utime(entry / "manifest.json", (then, then))
    return entry


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    """Entries of a cache that nothing uses, the longest unused first."""
    cache = Cache(tmp_path / "cache")
    entries = [make(cache, str(days), days=days) for days in (30, 20, 10)]
    cache.release()
    return entries


def names(removed: Sequence[Stored]) -> list[str]:
    return [entry.path.name for entry in removed]


def test_stored(three: list[Path]) -> None:
    found = stored(three[0].parents[1])
    assert [entry.path for entry in found] == three
    assert all(MIB <= entry.size < 1.1 * MIB for entry in found)


@pytest.mark.parametrize(("size", "gone"), [(3, 0), (2, 1), (1, 2), (0, 3)])
def test_size(three: list[Path], size: int, gone: int) -> None:
    """The longest unused entries are removed first, and no more than necessary."""
    removed = prune(three[0].parents[1], size=size * MIB)
    assert names(removed) == [path.name for path in three[:gone]]
    assert [path.exists() for path in three] == [False] * gone + [True] * (3 - gone)


def test_age(three: list[Path]) -> None:
    assert names(prune(three[0].parents[1], age=15 * 86400)) == [path.name for path in three[:2]]


def test_use_makes_young(three: list[Path]) -> None:
    cache = Cache(three[0].parents[1])
    cache.entry("kind", {"name": "30"}, lambda to: pytest.fail("made again"))
    cache.release()
    assert [entry.path for entry in stored(cache.root)] == [three[1], three[2], three[0]]


def hold(root: Path, name: str, ready: "multiprocessing.Queue[bool]") -> None:
    cache = Cache(root)
    cache.entry("kind", {"name": name}, lambda to: None)
    ready.put(True)
    time.sleep(3600)


def test_what_is_used_stays(three: list[Path]) -> None:
    """An entry that another program uses is not removed until that program ends."""
    root = three[0].parents[1]
    ready: multiprocessing.Queue[bool] = multiprocessing.Queue()
    holder = multiprocessing.Process(target=hold, args=(root, "30", ready))
    holder.start()
    try:
        assert ready.get(timeout=600)
        assert names(prune(root, size=0)) == [path.name for path in three[1:]]
    finally:
        holder.kill()
        holder.join()
    assert names(prune(root, size=0)) == [three[0].name]


def test_a_removed_entry_is_made_again(three: list[Path]) -> None:
    cache = Cache(three[0].parents[1])
    cache.entry("kind", {"name": "30"}, lambda to: pytest.fail("made again"))
    cache.release()
    prune(cache.root, size=0)
    assert make(cache, "30") == three[0]
    assert (three[0] / "data").stat().st_size == MIB


def test_end_of_a_command(three: list[Path]) -> None:
    """Entries over the limit and downloaded packages are removed."""
    root = three[0].parents[1]
    archives = root / "apt/archives"
    archives.mkdir(parents=True)
    (archives / "linux-image_1_amd64.deb").write_bytes(b"deb")
    user = Cache(root)
    assert user.use("downloads")
    keep_in_bounds(root, 2 * MIB)
    assert len(list(archives.iterdir())) == 1, "another program was to unpack it"
    assert [path.exists() for path in three] == [False, False, True]
    user.release()
    keep_in_bounds(root)
    assert list(archives.iterdir()) == []
    assert three[2].exists()


def test_a_killed_program_leaves_no_folder_without_size(tmp_path: Path) -> None:
    """A folder in which a program was killed is scanned once."""
    cache = Cache(tmp_path)
    with cache.workspace("tree", {}) as folder:
        (folder / "data").write_bytes(os.urandom(MIB))
    (folder / "size").unlink()
    sizes = [[entry.size for entry in stored(tmp_path)] for _ in range(2)]
    assert sizes[0] == sizes[1] == [int((folder / "size").read_text())]
    assert sizes[0][0] >= MIB
    cache.release()


def test_only_what_is_added_needs_bounds(tmp_path: Path) -> None:
    """A command whose answer was in the cache does not scan the cache."""
    cache = Cache(tmp_path)
    assert not cache.grew
    make(cache, "30")
    assert cache.grew
    again = Cache(tmp_path)
    make(again, "30")
    assert not again.grew
    with again.workspace("tree", {}):
        assert again.grew
    for user in (cache, again):
        user.release()


def test_command(empty: Command) -> None:
    cache = Cache(empty.cache)
    for days in (40, 20):
        make(cache, str(days), days=days)
    done = empty.run("cache")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["kind", "2", "2.1", "MB", "20", "days", "ago"] in rows
    assert empty.run("cache", "--prune", "--older", "30d").stdout == "removed 0 entries, 0 bytes\n"
    cache.release()
    assert empty.run("cache", "--prune", "--older", "30d").stdout.startswith(
        "removed 1 entries, 1.0 MB"
    )
    assert empty.run("cache", "--prune", "--size", "0M").stdout.startswith(
        "removed 1 entries, 1.0 MB"
    )
    assert empty.run("cache", "--prune").stdout == "removed 0 entries, 0 bytes\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--size", "1G"], "--size and --older need --prune"),
        (["--prune", "--size", "10"], "argument --size: invalid value '10': must be like 500M"),
        (["--prune", "--older", "x"], "argument --older: invalid value 'x': must be like 12h"),
    ],
)
def test_bad_options(empty: Command, words: list[str], said: str) -> None:
    done = empty.run("cache", *words)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert said in done.stderr
