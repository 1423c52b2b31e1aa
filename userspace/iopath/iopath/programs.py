# SPDX-License-Identifier: GPL-2.0
"""The programs of the guest and the plugin, built from the project's sources."""

import functools
from pathlib import Path

from iopath import __version__, process
from iopath.cache import Cache, cache_root, digest_file
from iopath.errors import IopathError
from iopath.sources import source_root


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
