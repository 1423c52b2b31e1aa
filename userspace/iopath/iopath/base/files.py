# SPDX-License-Identifier: GPL-2.0
"""Write the files that a user names. The name "-" is the standard output."""

import os
import sys
from pathlib import Path

from iopath.base import stdout
from iopath.base.cache import out_of_space
from iopath.base.errors import UsageError

# Names below these are open files or devices.
_OPENED = ("/dev/", "/proc/")


def check(path: Path) -> None:
    """Refuse a file that cannot be written, before anything is measured."""
    if path == stdout.NAME:
        return
    if not path.absolute().parent.is_dir():
        raise UsageError(f"cannot write {path}: there is no such folder")
    if path.is_dir():
        raise UsageError(f"cannot write {path}: it is a folder")
    if not path.resolve().parent.is_dir():
        raise UsageError(f"cannot write {path}: it is a link into a folder that does not exist")


def write(path: Path, data: bytes) -> None:
    """Write *data* to *path*. A regular file is replaced as a whole; symbolic links are followed.
    Devices and pipes are written in place."""
    if path == stdout.NAME:
        with stdout.writing():
            sys.stdout.buffer.write(data)
        return
    try:
        with out_of_space(f"cannot write {path}"):
            if _is_special(path):
                with path.open("wb") as file:
                    file.write(data)
            else:
                _replace(path.resolve(), data)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def write_text(path: Path, text: str) -> None:
    write(path, text.encode())


def _is_special(path: Path) -> bool:
    return str(path.absolute()).startswith(_OPENED) or (path.exists() and not path.is_file())


def _replace(path: Path, data: bytes) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_bytes(data)
        if path.exists():
            part.chmod(path.stat().st_mode & 0o7777)
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)
