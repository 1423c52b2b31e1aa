# SPDX-License-Identifier: GPL-2.0
"""What Debian packages for a guest: programs with their libraries, and a kernel's own modules. All
of it cached."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from iopath import process
from iopath.build import _deb_of, _unpack
from iopath.errors import IopathError
from iopath.kernels import DebianKernel
from iopath.measure import Session
from iopath.modules import uncompressed

SUITE = "bookworm"
_LIBRARIES = "lib/x86_64-linux-gnu"
_LOADER = "lib64/ld-linux-x86-64.so.2"


def package(session: Session, name: str, *programs: str) -> tuple[str, dict[str, bytes]]:
    """A package's version, and the files that its *programs* need in a guest, by their paths there:
    the programs are in bin."""
    apt = session.apt
    debs = apt.closure([name], SUITE)
    version = next(deb.split("_")[1] for deb in debs if deb.startswith(f"{name}_"))

    def make(folder: Path) -> None:
        apt.download([name], SUITE, closure=True, progress=lambda part: None)
        root = folder / "root"
        for link in ("bin", "lib", "lib64", "sbin"):
            (root / "usr" / link).mkdir(parents=True)
            (root / link).symlink_to(f"usr/{link}")
        for deb in debs:
            _unpack(apt.deb(deb), root)
        for part in (_LIBRARIES, "lib64", "bin"):
            (folder / "files" / part).mkdir(parents=True)
        shutil.copyfile(root / _LIBRARIES / "ld-linux-x86-64.so.2", folder / "files" / _LOADER)
        for program in programs:
            places = [root / "usr" / part / program for part in ("bin", "sbin")]
            found = next((place for place in places if place.exists()), None)
            if found is None:
                raise IopathError(f"the package {name} has no {program}")
            shutil.copyfile(found, folder / "files/bin" / program)
            for library in _needed(root, found):
                shutil.copyfile(library, folder / "files" / _LIBRARIES / library.name)
        shutil.rmtree(root)

    inputs = {"debs": debs, "programs": programs}
    entry = session.cache.entry("programs", inputs, make) / "files"
    files = {
        str(path.relative_to(entry)): path.read_bytes()
        for path in entry.rglob("*")
        if path.is_file()
    }
    return version, files


def _needed(root: Path, program: Path) -> list[Path]:
    """All libraries that *program* is linked with, those that they are included."""
    known: dict[str, Path] = {}
    left = [program]
    while left:
        text = subprocess.run(
            [process.need("readelf", "binutils"), "-d", left.pop()],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", text):
            if name in known:
                continue
            places = [root / _LIBRARIES / name, *(root / _LIBRARIES).glob(f"*/{name}")]
            found = next((place for place in places if place.exists()), None)
            if found is None:
                raise IopathError(f"no package that {program.name} depends on has {name}")
            known[name] = found
            left.append(found)
    return list(known.values())


# The parts of a kernel that have modules for stacked devices and for file systems.
_PARTS = ("drivers/md", "fs/ext4", "fs/jbd2", "fs/xfs", "fs/mbcache*", "lib", "crypto")


def modules(session: Session, kernel: DebianKernel, names: Sequence[str]) -> dict[str, bytes]:
    """The kernel's modules *names* and what they depend on, in the order in which they are loaded.
    What the kernel has built in, or does not have, is left out."""

    def make(folder: Path) -> None:
        session.apt.download(kernel.image, kernel.suite, closure=False, progress=lambda part: None)
        wanted = [f"*/kernel/{part}" + ("" if "*" in part else "/*") for part in _PARTS]
        for deb in kernel.image:
            _unpack(_deb_of(session.apt, deb), folder, only=wanted)

    entry = session.cache.entry("kernel-modules", {"of": kernel.image, "parts": _PARTS}, make)
    found: dict[str, bytes] = {}

    def add(name: str) -> None:
        path = next(entry.rglob(f"{name}.ko*"), None)
        if path is None or name in found:
            return
        needed = subprocess.run(
            [process.need("modinfo", "kmod"), "-F", "depends", path],
            capture_output=True, text=True, check=True,
        ).stdout.strip()  # fmt: skip
        for other in filter(None, needed.split(",")):
            add(other)
        found[name] = uncompressed(path)

    for name in names:
        add(name)
    return found
