# SPDX-License-Identifier: GPL-2.0
"""The programs of guests and the plugin, and the code that reads what they say.

A figure includes the loop's instructions, so the loop must be the same on every machine. On x86-64,
which runs guests, everything is built with the compiler and the C library of one Debian suite
(kernels/guest_programs.py): by `make userspace`, for a package, or by a session.
"""

import functools
import hashlib
from pathlib import Path

from iopath import __version__
from iopath.base import process
from iopath.base.arch import X86_64, Arch, this_machine
from iopath.base.cache import Cache, cache_root, digest_file
from iopath.base.errors import IopathError
from iopath.base.sources import source_root

# Its point releases have ended, so its compiler and C library change no more.
SUITE = "bookworm"
COMPILER = "gcc-12"

# Increase this if the same inputs give other programs than before.
_RECIPE = 1


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
    plugin of this machine's emulator. Raises IopathError if it was not built."""
    arch = arch or this_machine()
    for find in (built_folder, _entry):  # the second one reads all sources
        folder = find(arch)
        if folder and (folder / name).is_file():
            return folder / name
    raise IopathError(f"the programs for guests of {arch.name} are missing: run make userspace")


def built_folder(arch: Arch) -> Path:
    """Where `make userspace` and packages have the programs of an architecture."""
    return source_root() / "build" / "guest" / arch.name


def parts(arch: Arch) -> list[Path]:
    """The folders with the sources of what is built for an architecture; none if a package has the
    programs only. The plugin is for this machine, which runs the emulator."""
    names = ("guest", "runner", "ioloop", *(["pathcount"] if arch == this_machine() else []))
    folders = [source_root() / "userspace" / name for name in names]
    return folders if folders[0].is_dir() else []


@functools.cache
def _entry(arch: Arch) -> Path | None:
    """Where the cache has the programs of an architecture, if it has them."""
    return Cache(cache_root()).path("programs", inputs(arch)) if parts(arch) else None


@functools.cache
def inputs(arch: Arch) -> dict[str, object]:
    """All that the programs of an architecture are made from."""
    root = source_root()
    sources = [
        path
        for folder in (*parts(arch), root / "kernel" / "include")
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".c", ".h") or path.name == "Makefile"
    ]
    found: dict[str, object] = {
        "version": __version__,
        "arch": arch.name,
        "sources": {str(path.relative_to(root)): digest_file(path) for path in sources},
        "recipe": _RECIPE,
    }
    if this_machine() == X86_64:
        return found | {"suite": SUITE, "packages": packages(arch)}
    compiler = cross_compiler(arch).resolve()
    return found | {"compiler": [str(compiler), digest_file(compiler)]}


def packages(arch: Arch) -> list[str]:
    """The compiler that runs on x86-64 and the C library, as Debian calls them."""
    if arch == X86_64:
        return [COMPILER, "libc6-dev"]
    return [f"{COMPILER}-{arch.triplet}", f"libc6-dev-{arch.debian}-cross"]


def cross_compiler(arch: Arch) -> Path:
    """The compiler of this machine for an architecture."""
    if arch == this_machine():
        return Path(process.need("gcc", "gcc"))
    name = f"{arch.triplet}-gcc"
    return Path(process.need(name, f"gcc-{arch.triplet} libc6-dev-{arch.debian}-cross"))
