# SPDX-License-Identifier: GPL-2.0
"""Keep the cache in bounds: list what is in it, and remove what has long been unused.

An entry is known to be used as long as a program holds the lock that Cache takes when it finds or
makes one. Its manifest's time is the time of its last use.
"""

import contextlib
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from iopath.base.cache import DOWNLOADS, MANIFEST, SIZE, disk_use, each_file, locked

LIMIT = 20 << 30  # bytes that the cache may take after each run of the command


@dataclass(frozen=True)
class Stored:
    """An entry of the cache, or another folder in it: its kind and place, its size in bytes, and
    when it was last used."""

    kind: str
    path: Path
    size: int
    used: float

    @property
    def is_entry(self) -> bool:
        return self.path.name != self.kind


def stored(root: Path) -> list[Stored]:
    """Everything in the cache at *root*, the longest unused first."""
    found = []
    for folder in sorted(root.glob("*")):
        if not folder.is_dir() or folder.name == "locks":
            continue
        manifests = list(folder.glob(f"*/{MANIFEST}"))
        for manifest in manifests:
            with contextlib.suppress(FileNotFoundError):  # another program has just removed it
                found.append(
                    Stored(
                        folder.name,
                        manifest.parent,
                        _size(manifest.parent),
                        manifest.stat().st_mtime,
                    )
                )
        if not manifests:
            found.append(Stored(folder.name, folder, _size(folder), folder.stat().st_mtime))
    return sorted(found, key=lambda entry: entry.used)


def prune(root: Path, *, size: int | None = None, age: float | None = None) -> list[Stored]:
    """Remove entries, the longest unused first, until the cache takes at most *size* bytes, and all
    entries that were not used for *age* seconds. Returns the removed entries. An entry that a
    running command uses stays."""
    entries = stored(root)
    total = sum(entry.size for entry in entries)
    removed = []
    for entry in entries:
        if not entry.is_entry:
            continue
        old = age is not None and time.time() - entry.used > age
        if (old or (size is not None and total > size)) and _remove(root, entry):
            total -= entry.size
            removed.append(entry)
    return removed


def _remove(root: Path, entry: Stored) -> bool:
    """Remove an entry that no running command uses."""
    with (root / "locks" / f"{entry.kind}-{entry.path.name}.use").open("w") as file:
        if not locked(file):
            return False
        # The entry is renamed first, so that a program that is killed here leaves no part of it.
        gone = entry.path.with_name(f"{entry.path.name}.part")
        shutil.rmtree(gone, ignore_errors=True)
        entry.path.rename(gone)
        shutil.rmtree(gone)
    return True


def _size(folder: Path) -> int:
    """The bytes that a folder takes on the disk. An entry has a file with its size. One that lacks
    it, because a program that worked there was killed, gets it."""
    with contextlib.suppress(FileNotFoundError):
        return int((folder / SIZE).read_text())
    size = sum(disk_use(path) for path in each_file(folder))
    if (folder / MANIFEST).exists():
        with contextlib.suppress(OSError):
            (folder / SIZE).write_text(str(size))
    return size


def keep_in_bounds(root: Path, limit: int = LIMIT) -> None:
    """Remove what is over the limit, and downloaded packages that are unpacked.

    It is called at the end of a command, which does not fail if this does."""
    if not root.is_dir():
        return
    with contextlib.suppress(OSError):
        (root / "locks").mkdir(exist_ok=True)
        with (root / "locks" / f"{DOWNLOADS}.use").open("w") as file:
            if locked(file):
                for path in root.glob("apt*/archives/*.deb"):
                    path.unlink(missing_ok=True)
        prune(root, size=limit)
