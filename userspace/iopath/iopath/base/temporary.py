# SPDX-License-Identifier: GPL-2.0
"""Temporary folders that do not stay behind for ever if the program is killed."""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "iopath-tmp-"
_NEW = 60  # seconds after which a new folder must have been locked


@contextmanager
def folder() -> Iterator[Path]:
    """A temporary folder. Those of programs that were killed are removed first: the kernel has
    dropped the lock that each program holds on its own."""
    _remove_leftovers()
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as name:
        held = os.open(name, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield Path(name)
        finally:
            os.close(held)


def _remove_leftovers() -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # it is another user's, in use, or was just removed
            if time.time() - path.lstat().st_mtime < _NEW:
                continue
            held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path)
            finally:
                os.close(held)
