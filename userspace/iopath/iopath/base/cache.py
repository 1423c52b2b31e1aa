# SPDX-License-Identifier: GPL-2.0
"""A cache of folders, each named by the digest of what it was made from.

An entry appears whole or not at all: it is made in a folder beside its place and renamed. A lock
per entry lets two processes that want the same entry share the work. A manifest lists every file,
so that a damaged entry is noticed and made again.
"""

import contextlib
import errno
import fcntl
import functools
import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO

from iopath.base import process
from iopath.base.errors import Unreachable
from iopath.base.typed import JsonObject

# Up to this total an entry's contents are read again at each use; beyond it, only sizes and times.
_HASH_LIMIT = 8 << 20

MANIFEST = "manifest.json"  # its time is that of the last use of the entry
SIZE = "size"  # the bytes that the entry takes on the disk
DOWNLOADS = "downloads"  # the name under which downloaded packages are used

_TICK = 0.1  # seconds, at least, between two times that a file system tells apart
_RETRY = 0.1  # seconds until a lock that another holds is tried again

# Errors that say that a place cannot be written, not that the program is wrong.
_UNWRITABLE = {
    errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO,
    errno.ENOTDIR, errno.EEXIST,
}  # fmt: skip


def cache_root() -> Path:
    """The user's cache: IOPATH_CACHE, or iopath below the XDG cache folder."""
    given = os.environ.get("IOPATH_CACHE")
    if given:
        return Path(given).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "iopath"


def digest_file(path: Path) -> str:
    """The SHA-256 of a file. It is computed once in each program, unless the file has changed."""
    status = path.stat()
    if time.time() - status.st_ctime < _TICK:  # a change within the same tick would not show
        return _digest(path)
    return _digest_of(path, status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns)


@functools.cache
def _digest_of(path: Path, device: int, inode: int, size: int, changed: int) -> str:
    return _digest(path)


def _digest(path: Path) -> str:
    import hashlib  # it loads OpenSSL; commands that only print do without

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(inputs: Mapping[str, object]) -> str:
    """One digest of everything in *inputs* (JSON values)."""
    import hashlib

    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def entry_name(inputs: Mapping[str, object]) -> str:
    """The name of the folder of the entry for *inputs*."""
    return digest_of(inputs)[:32]


@contextmanager
def out_of_space(what: str) -> Iterator[None]:
    """Turn the errors of a full, read-only or unwritable disk into one line that names *what*."""
    try:
        yield
    except OSError as error:
        if error.errno in _UNWRITABLE:
            where = f": {error.filename}" if error.filename else ""
            raise Unreachable(f"{what}: {error.strerror}{where}") from error
        raise


class Cache:
    """The entries below *root*, one folder per kind. *warn* is told of damaged entries."""

    def __init__(self, root: Path, warn: Callable[[str], None] = lambda text: None) -> None:
        self.root = root
        self._warn = warn
        self.grew = False  # whether this program added to it
        self._verified: set[Path] = set()
        self._held: dict[str, IO[str]] = {}

    @contextmanager
    def lock(self, name: str, waits: Callable[[], None] | None = None) -> Iterator[None]:
        """Hold the lock *name* against other processes and threads; *waits* is called if another
        holds it.

        Raises process.Stopped if the program is ended while it waits. (A thread that waits in the
        kernel could not be stopped.)
        """
        with out_of_space(f"cannot write the cache {self.root}"):
            (self.root / "locks").mkdir(parents=True, exist_ok=True)
            file = (self.root / "locks" / name).open("w")
        with file:
            if waits and not locked(file):
                waits()
            while not locked(file):
                process.check_stopped(after=_RETRY)
            yield

    def release(self) -> None:
        """Stop holding entries, so that they can be removed."""
        while self._held:
            self._held.popitem()[1].close()
        self._verified.clear()

    def use(self, name: str) -> bool:
        """Hold *name* against prune.prune() until release() or the program's end; False if it is
        being removed now."""
        if name in self._held:
            return True
        try:
            (self.root / "locks").mkdir(parents=True, exist_ok=True)
            file = (self.root / "locks" / f"{name}.use").open("w")
        except OSError:
            return True  # where no lock can be written, nothing can be removed either
        if not locked(file, fcntl.LOCK_SH):
            file.close()
            return False
        self._held[name] = file
        return True

    def path(self, kind: str, inputs: Mapping[str, object]) -> Path:
        """Where the entry for *inputs* is, or would be."""
        return self.root / kind / entry_name(inputs)

    def find(self, kind: str, inputs: Mapping[str, object], *, warn: bool = False) -> Path | None:
        """The whole and undamaged entry for *inputs*, if there is one; a warning says that it is
        damaged, if wanted."""
        path = self.path(kind, inputs)
        if path in self._verified:
            return path
        if not path.exists():
            return None
        if not self.use(f"{kind}-{path.name}"):
            return None
        fault = _fault(path)
        if fault:
            if warn:
                self._warn(f"cache entry {path} is damaged ({fault}): making it again")
            return None
        self._verified.add(path)
        with contextlib.suppress(OSError):  # a read-only cache keeps no time of last use
            os.utime(path / MANIFEST)
        return path

    def entry(
        self, kind: str, inputs: Mapping[str, object], make: Callable[[Path], None],
        waits: Callable[[], None] | None = None,
    ) -> Path:  # fmt: skip
        """The entry for *inputs*; *make* fills an empty folder with it if it is missing. *waits* is
        called if another program or thread is making it."""
        found = self.find(kind, inputs, warn=False)
        if found:
            return found
        path = self.path(kind, inputs)
        name = f"{kind}-{path.name}"
        with self.lock(name, waits):
            found = self.find(kind, inputs, warn=True)
            if found:
                return found
            while not self.use(name):
                process.check_stopped(after=_RETRY)
            with out_of_space(f"cannot write the cache {self.root}"):
                for leftover in path.parent.glob(f"{path.name}*"):
                    shutil.rmtree(leftover)
                part = path.with_name(f"{path.name}.part")
                part.mkdir(parents=True)
            try:
                with out_of_space(f"cannot write the cache {self.root}"):
                    make(part)
                    _write_manifest(part, inputs)
                    part.rename(path)
            except BaseException:
                shutil.rmtree(part, ignore_errors=True)
                raise
            self._verified.add(path)
            self.grew = True
            return path

    @contextmanager
    def workspace(
        self,
        kind: str,
        inputs: Mapping[str, object],
        *,
        shared: bool = False,
        waits: Callable[[], None] | None = None,
    ) -> Iterator[Path]:
        """A folder that stays and may change. It belongs to one thread of one program at a time,
        unless it is *shared*; *waits* is called if another uses it. It is listed and removed like
        an entry."""
        path = self.path(kind, inputs)
        name = f"{kind}-{path.name}"
        with nullcontext() if shared else self.lock(name, waits):
            while not self.use(name):
                process.check_stopped(after=_RETRY)
            with out_of_space(f"cannot write the cache {self.root}"):
                path.mkdir(parents=True, exist_ok=True)
                self.grew = True
                if not (path / MANIFEST).exists():
                    (path / MANIFEST).write_text(json.dumps({"inputs": inputs}))
                yield path
                (path / SIZE).write_text(str(sum(map(disk_use, each_file(path)))))

    def entries(self, kind: str) -> Iterator[tuple[Path, JsonObject]]:
        """Every entry of a kind, with the inputs it was made from."""
        for path in sorted((self.root / kind).glob("*")):
            manifest = _read_manifest(path)
            if manifest:
                yield path, manifest["inputs"]


def locked(file: IO[str], how: int = fcntl.LOCK_EX) -> bool:
    """Lock a file if no one else holds it."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def each_file(folder: Path) -> Iterator[Path]:
    """Every file and every symbolic link."""
    for base, folders, names in os.walk(folder):
        for name in names:
            yield Path(base, name)
        for name in folders:
            if Path(base, name).is_symlink():
                yield Path(base, name)


def disk_use(path: Path) -> int:
    """The bytes that a file takes; 0 if another program has removed it."""
    try:
        return path.lstat().st_blocks * 512
    except FileNotFoundError:
        return 0


def _mark(path: Path, *, hashed: bool) -> list[int | str]:
    """What identifies a file later: its size, and its digest or its time; a link's target."""
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return [0, str(path.readlink())]
    return [status.st_size, digest_file(path) if hashed else str(status.st_mtime_ns)]


def _write_manifest(folder: Path, inputs: Mapping[str, object]) -> None:
    paths = list(each_file(folder))
    hashed = sum(path.lstat().st_size for path in paths) <= _HASH_LIMIT
    files = {str(path.relative_to(folder)): _mark(path, hashed=hashed) for path in paths}
    manifest = {"inputs": inputs, "made": int(time.time()), "hashed": hashed, "files": files}
    (folder / SIZE).write_text(str(sum(path.lstat().st_blocks * 512 for path in paths)))
    (folder / MANIFEST).write_text(json.dumps(manifest))


def _read_manifest(folder: Path) -> JsonObject | None:
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError):
        return None
    whole = isinstance(manifest, dict) and {"inputs", "hashed", "files"} <= manifest.keys()
    return manifest if whole else None


def _fault(folder: Path) -> str | None:
    """What is wrong with an entry, if anything."""
    manifest = _read_manifest(folder)
    if manifest is None:
        return "no manifest"
    for name, known in manifest["files"].items():
        path = folder / name
        try:
            if path.lstat().st_size != known[0] and not path.is_symlink():
                return f"{name} has another size"
            if _mark(path, hashed=manifest["hashed"]) != known:
                return f"{name} has changed"
        except OSError:
            return f"{name} is missing"
    return None
