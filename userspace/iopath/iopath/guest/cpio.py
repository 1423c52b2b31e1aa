# SPDX-License-Identifier: GPL-2.0
"""Write initramfs archives: "newc" cpio, as Linux's init/initramfs.c reads it.

The archive depends on names, modes and contents alone: times, owners and inode numbers are fixed,
so that the same files make the same bytes on every host. Device nodes need no root.
"""

import stat
from dataclasses import dataclass

_MAGIC = b"070701"
_TRAILER = "TRAILER!!!"


@dataclass(frozen=True)
class CpioFile:
    """One file: name without a leading slash, mode with the file type (stat.S_IF*), content,
    and for a device its major and minor number."""

    name: str
    mode: int
    data: bytes = b""
    rdev: tuple[int, int] = (0, 0)


def directory(name: str) -> CpioFile:
    return CpioFile(name, stat.S_IFDIR | 0o755)


def file(name: str, data: bytes, mode: int = 0o644) -> CpioFile:
    return CpioFile(name, stat.S_IFREG | mode, data)


def char_device(name: str, major: int, minor: int) -> CpioFile:
    return CpioFile(name, stat.S_IFCHR | 0o600, rdev=(major, minor))


def _record(inode: int, entry: CpioFile) -> bytes:
    name = entry.name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    major, minor = entry.rdev
    # inode, mode, uid, gid, nlink, mtime, size, device (2), rdev (2), name's length, checksum
    fields = (inode, entry.mode, 0, 0, links, 0, len(entry.data), 0, 0, major, minor, len(name), 0)
    head = _MAGIC + b"".join(b"%08X" % field for field in fields) + name
    head += b"\0" * (-len(head) % 4)
    return head + entry.data + b"\0" * (-len(entry.data) % 4)


def archive(entries: list[CpioFile]) -> bytes:
    """The archive of *entries*, in their order; the directories that hold them are added.

    Raises ValueError for a name that is absolute, empty or given twice.
    """
    complete: dict[str, CpioFile] = {}
    for entry in entries:
        parts = entry.name.split("/")
        if not all(parts) or ".." in parts:
            raise ValueError(f"not a name relative to the root: {entry.name!r}")
        for depth in range(1, len(parts)):
            parent = "/".join(parts[:depth])
            if not stat.S_ISDIR(complete.setdefault(parent, directory(parent)).mode):
                raise ValueError(f"given twice: {parent}")
        if entry.name in complete and not stat.S_ISDIR(entry.mode):
            raise ValueError(f"given twice: {entry.name}")
        complete[entry.name] = entry
    records = [_record(number, entry) for number, entry in enumerate(complete.values(), 1)]
    records.append(_record(0, CpioFile(_TRAILER, 0)))
    return b"".join(records)
