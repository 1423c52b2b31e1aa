# SPDX-License-Identifier: GPL-2.0
"""The programs of the guest and the plugin, built from the project's sources."""

import functools
import hashlib
from pathlib import Path

from iopath import __version__
from iopath.base import process
from iopath.base.arch import Arch, this_machine
from iopath.base.cache import Cache, cache_root, digest_file
from iopath.base.errors import IopathError
from iopath.base.sources import source_root


@functools.cache
def code_digest() -> str:
    """One digest of the code of this package. It is in the key of each entry of the cache that is
    made from what guests gave: the code that made an entry may be any part of the package."""
    state = hashlib.sha256()
    package = Path(__file__).parents[1]
    for path in sorted(package.rglob("*.py")):
        data = path.read_bytes()
        state.update(f"{path.relative_to(package)}\0{len(data)}\0".encode() + data)
    return state.hexdigest()


def guest_program(name: str, arch: Arch | None = None) -> Path:
    """A statically linked program for a guest of an architecture, by default this machine's, or the
    plugin of this machine's emulator: as `make userspace` or a package built it, or else built
    now."""
    arch = arch or this_machine()
    built = source_root() / "build" / "guest"
    path = (built if arch == this_machine() else built / arch.name) / name
    return path if path.is_file() else _programs(arch) / name


def cross_compiler(arch: Arch) -> Path:
    """The compiler of this machine for an architecture."""
    if arch == this_machine():
        return Path(process.need("gcc", "gcc"))
    name = f"{arch.triplet}-gcc"
    return Path(process.need(name, f"gcc-{arch.triplet} libc6-dev-{arch.debian}-cross"))


@functools.cache
def _programs(arch: Arch) -> Path:
    """The guest's programs, built from their sources."""
    root = source_root()
    parts = ("guest", "ioloop", "pathcount") if arch == this_machine() else ("guest", "ioloop")
    folders = [root / "userspace" / part for part in parts]
    if not folders[0].is_dir():
        raise IopathError(f"this iopath was built without the programs for guests of {arch.name}")
    sources = [
        path
        for folder in (*folders, root / "kernel" / "include")
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".c", ".h") or path.name == "Makefile"
    ]
    compiler = cross_compiler(arch).resolve()
    inputs = {
        "version": __version__,
        "compiler": [str(compiler), digest_file(compiler)],
        "sources": {str(path.relative_to(root)): digest_file(path) for path in sources},
    }

    def make(into: Path) -> None:
        log = into / "build.log"
        for folder in folders:
            command = [process.need("make", "make"), "-C", folder, f"O={into}", "STATIC=1"]
            command += [f"VERSION={__version__}", f"CC={compiler}"]
            if process.run(command, output=log):
                raise IopathError(f"cannot build {folder.name}: {process.last_line(log)}")

    return Cache(cache_root()).entry("programs", inputs, make)
