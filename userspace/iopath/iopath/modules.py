# SPDX-License-Identifier: GPL-2.0
"""Module files for a guest: the project's and the kernel's own, with what they depend on."""

import lzma
import subprocess
from pathlib import Path

from iopath import process
from iopath.build import Built
from iopath.errors import IopathError


def find(module: str, built: Built) -> Path | None:
    """The file of a module, the project's or the kernel's own."""
    path = built.modules.get(module)
    if path is None and built.own_modules:
        path = next(built.own_modules.rglob(f"{module}.ko*"), None)
    return path


def with_dependencies(module: str, built: Built) -> list[Path]:
    """The module files to load, in their order, to have *module*."""
    path = find(module, built)
    if path is None:
        raise IopathError(f"{built.release} has no module {module}")
    names = subprocess.run(
        [process.need("modinfo", "kmod"), "-F", "depends", path],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    needed = []
    for name in filter(None, names.split(",")):
        needed += with_dependencies(name, built)
    return [*needed, path]


def uncompressed(path: Path) -> bytes:
    """The content of a module file."""
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".zst":
        zstd = process.need("zstd", "zstd")
        return subprocess.run([zstd, "-dc", path], capture_output=True, check=True).stdout
    return data
