# SPDX-License-Identifier: GPL-2.0
"""The cache: an entry exists as a whole or not at all, and is made once."""

import errno
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from helpers.waiting import wait_for
from iopath.base import cache as cache_module
from iopath.base.cache import Cache, digest_file, digest_of, out_of_space
from iopath.base.errors import IopathError

INPUTS = {"name": "x", "number": 1}


def fill(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub/data").write_bytes(b"0123456789")
    (folder / "link").symlink_to("sub/data")


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def cache(tmp_path: Path, said: list[str]) -> Cache:
    return Cache(tmp_path / "cache", said.append)


def fresh(cache: Cache) -> Cache:
    """The cache as another run of the program sees it."""
    return Cache(cache.root, cache._warn)


def parts(cache: Cache) -> list[Path]:
    return list(cache.root.rglob("*.part"))


def never(folder: Path) -> None:
    raise AssertionError(f"made {folder} again")


def test_a_file_is_digested_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_TICK", 0)
    read: list[Path] = []
    monkeypatch.setattr(cache_module, "_digest", lambda path: str(read.append(path)))
    file = tmp_path / "file"
    file.write_bytes(b"text")
    for _ in range(2):
        digest_file(file)
    assert read == [file]
    file.write_bytes(b"changed")
    digest_file(file)
    assert read == [file, file]


def test_a_file_that_was_just_written_is_digested_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "_TICK", float("inf"))
    file = tmp_path / "file"
    file.write_bytes(b"one")
    first = digest_file(file)
    file.write_bytes(b"two")
    assert digest_file(file) != first


def test_digest_depends_on_values_not_on_order() -> None:
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    assert digest_of({"a": 1}) != digest_of({"a": 2})


def test_made_once(cache: Cache) -> None:
    path = cache.entry("kind", INPUTS, fill)
    assert (path / "link").read_bytes() == b"0123456789"
    assert cache.entry("kind", INPUTS, never) == path
    assert fresh(cache).entry("kind", INPUTS, never) == path
    assert [inputs for _, inputs in cache.entries("kind")] == [INPUTS]
    assert not parts(cache)


@pytest.mark.parametrize("fault", [KeyboardInterrupt, IopathError("no"), ValueError])
def test_interrupted_make_leaves_nothing(cache: Cache, fault: BaseException) -> None:
    def half(folder: Path) -> None:
        fill(folder)
        raise fault

    with pytest.raises(type(fault) if isinstance(fault, BaseException) else fault):
        cache.entry("kind", INPUTS, half)
    assert list((cache.root / "kind").iterdir()) == []
    assert cache.entry("kind", INPUTS, fill).is_dir()


def test_what_a_killed_make_left_is_swept_away(cache: Cache) -> None:
    path = cache.path("kind", INPUTS)
    part = path.with_name(f"{path.name}.part")
    part.mkdir(parents=True)
    (part / "stale").touch()
    assert sorted(p.name for p in cache.entry("kind", INPUTS, fill).iterdir()) == [
        "link", "manifest.json", "size", "sub",
    ]  # fmt: skip
    assert not parts(cache)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[5] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda e: flip(e / "sub/data"), "sub/data has changed"),
        (lambda e: (e / "sub/data").write_bytes(b"012"), "sub/data has another size"),
        (lambda e: (e / "sub/data").unlink(), "sub/data is missing"),
        (lambda e: (e / "link").unlink(), "link is missing"),
        (lambda e: (e / "manifest.json").unlink(), "no manifest"),
        (lambda e: (e / "manifest.json").write_text("{"), "no manifest"),
        (lambda e: (e / "manifest.json").write_text("[]"), "no manifest"),
        (lambda e: (e / "manifest.json").write_text('{"files": {}}'), "no manifest"),
        (lambda e: (e / "manifest.json").write_bytes(b"\xff\xfe{"), "no manifest"),
    ],
)
def test_damage_is_noticed_and_made_good(
    cache: Cache, said: list[str], damage: object, reason: str
) -> None:
    path = cache.entry("kind", INPUTS, fill)
    damage(path)
    assert fresh(cache).entry("kind", INPUTS, fill) == path
    assert (path / "link").read_bytes() == b"0123456789"
    assert said == [f"cache entry {path} is damaged ({reason}): making it again"]


def test_large_entries_are_known_by_size_and_time(
    cache: Cache, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iopath.base.cache._HASH_LIMIT", 4)
    path = cache.entry("kind", INPUTS, fill)
    assert fresh(cache).entry("kind", INPUTS, never) == path
    os.utime(path / "sub/data", (1, 1))
    fresh(cache).entry("kind", INPUTS, fill)
    assert "sub/data has changed" in said[0]


def test_two_threads_make_once(cache: Cache) -> None:
    made = []

    def slow(folder: Path) -> None:
        made.append(folder)
        threading.Event().wait(0.2)
        fill(folder)

    threads = [
        threading.Thread(target=lambda: fresh(cache).entry("kind", INPUTS, slow)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


_CHILD = """
import json, os, sys, time
from pathlib import Path
from iopath.base.cache import Cache
def make(folder):
    with open(sys.argv[2], "a") as log:
        log.write("made\\n")
    time.sleep(0.5)
    (folder / "pid").write_text(str(os.getpid()))
path = Cache(Path(sys.argv[1])).entry("kind", {"a": 1}, make)
print((path / "pid").read_text())
"""


def test_two_processes_make_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _CHILD, str(tmp_path / "cache"), str(tmp_path / "log")]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = {child.communicate(timeout=600)[0] for child in children}
    assert [child.returncode for child in children] == [0, 0]
    assert len(outputs) == 1
    assert (tmp_path / "log").read_text() == "made\n"


def test_killed_process_leaves_no_entry_and_no_lock(tmp_path: Path) -> None:
    """The next process neither waits for the lock nor uses the remains as an entry."""
    root = tmp_path / "cache"
    slow = _CHILD.replace("time.sleep(0.5)", "(folder / 'half').touch(); time.sleep(600)")
    child = subprocess.Popen([sys.executable, "-c", slow, str(root), str(tmp_path / "log")])
    half = Cache(root).path("kind", {"a": 1}).with_suffix(".part") / "half"
    wait_for(half.exists, "the child")
    child.kill()
    child.wait()
    path = Cache(root).entry("kind", {"a": 1}, fill)
    assert not (path / "half").exists()


def test_no_space(cache: Cache) -> None:
    """The disk fills up midway. (test_faults.py does it with a real one.)"""

    def large(folder: Path) -> None:
        (folder / "first").write_bytes(b"x" * 100)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder / "data"))

    with pytest.raises(IopathError, match=r"cannot write the cache .*: No space left on device"):
        cache.entry("kind", INPUTS, large)
    assert list((cache.root / "kind").iterdir()) == []


def test_unwritable_root(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(IopathError, match="cannot write the cache"):
        Cache(tmp_path / "file/cache").entry("kind", INPUTS, fill)


def test_other_errors_are_not_called_lack_of_space() -> None:
    with pytest.raises(FileNotFoundError), out_of_space("x"):
        Path("/nonexistent").read_bytes()


def test_manifest_names_the_inputs(cache: Cache) -> None:
    path = cache.entry("kind", INPUTS, fill)
    assert json.loads((path / "manifest.json").read_text())["inputs"] == INPUTS


def test_who_waits_for_an_entry_is_told(cache: Cache) -> None:
    told = threading.Event()

    def wait() -> None:
        fresh(cache).entry("kernel", INPUTS, lambda folder: pytest.fail("it is there"), told.set)

    waiting = threading.Thread(target=wait)

    def make(folder: Path) -> None:
        waiting.start()
        assert told.wait(60)

    cache.entry("kernel", INPUTS, make, lambda: pytest.fail("nobody makes it"))
    waiting.join()


def test_who_waits_for_a_workspace_is_told(cache: Cache) -> None:
    told = threading.Event()

    def enter() -> None:
        with fresh(cache).workspace("workspace", INPUTS, waits=told.set):
            pass

    other = threading.Thread(target=enter)
    with cache.workspace("workspace", INPUTS, waits=lambda: pytest.fail("nobody holds it")):
        other.start()
        assert told.wait(600)
    other.join()


def test_workspaces(cache: Cache) -> None:
    """One belongs to one thread at a time. Two builds share the compiler's cache: neither waits for
    the other."""
    entered = threading.Event()

    def enter(kind: str, *, shared: bool) -> None:
        with fresh(cache).workspace(kind, INPUTS, shared=shared) as folder:
            (folder / "made").write_text("x")
            entered.set()

    for kind, shared in (("ccache", True), ("workspace", False)):
        entered.clear()
        other = threading.Thread(target=enter, args=(kind,), kwargs={"shared": shared})
        with cache.workspace(kind, INPUTS, shared=shared) as folder:
            other.start()
            assert entered.wait(600 if shared else 1) == shared
        other.join()
        assert (folder / "made").read_text() == "x"
        assert int((folder / "size").read_text()) > 0
        assert json.loads((folder / "manifest.json").read_text()) == {"inputs": INPUTS}
