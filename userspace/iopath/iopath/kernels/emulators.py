# SPDX-License-Identifier: GPL-2.0
"""Emulators of Debian's suites, which run without being installed.

QEMU and its dependencies are unpacked into a root file system in the cache. Its own dynamic linker
starts it there, so this machine's libraries are not used.
"""

from pathlib import Path

from iopath.base import process
from iopath.base.arch import Arch
from iopath.base.cache import Cache
from iopath.base.errors import IopathError, UsageError, did_you_mean
from iopath.guest.machine import Qemu, check_host
from iopath.kernels.apt import SUITES, Apt
from iopath.kernels.built import Step
from iopath.kernels.unpack import new_root, unpack

_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_FIRMWARE = ("usr/share/qemu", "usr/share/seabios")


def emulator(suite: str, arch: Arch, cache: Cache, apt: Apt, step: Step) -> Qemu:
    """The emulator of an architecture in a Debian *suite*. *apt* is that of this machine's
    packages."""
    if suite not in SUITES:
        near = did_you_mean(suite, SUITES)
        raise UsageError(f"{suite}: not a suite of Debian{near or ': such as trixie'}")
    check_host()
    root = _root(suite, arch, cache, apt, step)
    program = root / "usr/bin" / arch.qemu
    if not program.exists():
        raise IopathError(f"{suite} has no {arch.qemu} in {arch.qemu_package}")
    return Qemu.started_by(_words(root, program), program, arch, cache)


def _root(suite: str, arch: Arch, cache: Cache, apt: Apt, step: Step) -> Path:
    # The older suites that a suite's packages depend on have an emulator, too.
    packages = ["--target-release", suite, arch.qemu_package, arch.firmware_package]
    what = f"QEMU of {suite}"

    def make(folder: Path) -> None:
        new_root(folder)
        apt.download(
            packages, suite, closure=True, progress=lambda p: step(f"downloading {what}", p)
        )
        for number, deb in enumerate(debs):
            step(f"unpacking {what}", number / len(debs))
            unpack(apt.deb(deb), folder)
        (folder / "packages").write_text("".join(f"{deb}\n" for deb in debs))

    debs = apt.closure(packages, suite)
    return cache.entry("emulator", {"packages": debs}, make)


def _words(root: Path, program: Path) -> tuple[str, ...]:
    """The words that start *program*, an emulator in *root*."""
    libraries = root / _LIBRARIES
    words = [
        process.need("env", "coreutils"), f"QEMU_MODULE_DIR={libraries / 'qemu'}",
        str(libraries / "ld-linux-x86-64.so.2"), "--library-path", str(libraries), str(program),
    ]  # fmt: skip
    for folder in _FIRMWARE:
        words += ["-L", str(root / folder)]
    return tuple(words)
