# SPDX-License-Identifier: GPL-2.0
"""Where things are: the project's sources, what is built from them, and the user's cache."""

import functools
import os
from pathlib import Path

from iopath import __version__, process
from iopath.cache import Cache, digest_file
from iopath.errors import IopathError


def source_root() -> Path:
    """The project's sources: IOPATH_SOURCE, the checkout that this package lies in, or the copy
    that an installed package has of what guests need."""
    given = os.environ.get("IOPATH_SOURCE")
    package = Path(__file__).resolve().parent
    places = [Path(given)] if given else [package.parents[2], package / "source"]
    for root in places:
        if (root / "kernel" / "blknull").is_dir():
            return root
    raise IopathError(
        f"{places[0]} is not iopath's source tree: set IOPATH_SOURCE to a checkout of the project"
    )


def guest_program(name: str) -> Path:
    """A statically linked program for the guest, or the plugin that counts what it executes: as
    `make userspace` or a package built it, or else built now."""
    path = source_root() / "build" / "guest" / name
    return path if path.is_file() else _programs() / name


@functools.cache
def _programs() -> Path:
    """The guest's programs, built from their sources."""
    root = source_root()
    folders = [root / "userspace" / part for part in ("guest", "ioloop", "pathcount")]
    sources = [
        path
        for folder in (*folders, root / "kernel" / "include")
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".c", ".h") or path.name == "Makefile"
    ]
    compiler = Path(process.need("gcc", "gcc")).resolve()
    inputs = {
        "version": __version__,
        "compiler": [str(compiler), digest_file(compiler)],
        "sources": {str(path.relative_to(root)): digest_file(path) for path in sources},
    }

    def make(into: Path) -> None:
        log = into / "build.log"
        for folder in folders:
            command = [process.need("make", "make"), "-C", folder, f"O={into}", "STATIC=1"]
            if process.run([*command, f"VERSION={__version__}"], output=log):
                raise IopathError(f"cannot build {folder.name}: {process.last_line(log)}")

    return Cache(cache_root()).entry("programs", inputs, make)


def cache_root() -> Path:
    """The user's cache: IOPATH_CACHE, or iopath below the XDG cache folder."""
    given = os.environ.get("IOPATH_CACHE")
    if given:
        return Path(given).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "iopath"
