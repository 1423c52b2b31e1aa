# SPDX-License-Identifier: GPL-2.0
"""Where things are: the project's sources, what `make` built, and the user's cache."""

import os
from pathlib import Path

from iopath.errors import IopathError


def source_root() -> Path:
    """The project's checkout: IOPATH_SOURCE, or the one this package lies in."""
    given = os.environ.get("IOPATH_SOURCE")
    root = Path(given) if given else Path(__file__).resolve().parents[3]
    if not (root / "kernel" / "blknull").is_dir():
        raise IopathError(
            f"{root} is not iopath's source tree: set IOPATH_SOURCE to a checkout of the project"
        )
    return root


def guest_program(name: str) -> Path:
    """A statically linked program for the guest, as `make userspace` builds it."""
    path = source_root() / "build" / "guest" / name
    if not path.is_file():
        raise IopathError(f"{path} is missing: run `make userspace` in {source_root()}")
    return path


def plugin_path() -> Path:
    """The plugin that counts a guest's instructions, as `make userspace` builds it."""
    path = source_root() / "build" / "guest" / "pathcount.so"
    if not path.is_file():
        raise IopathError(f"{path} is missing: run `make userspace` in {source_root()}")
    return path


def cache_root() -> Path:
    """The user's cache: IOPATH_CACHE, or iopath below the XDG cache folder."""
    given = os.environ.get("IOPATH_CACHE")
    if given:
        return Path(given).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "iopath"
