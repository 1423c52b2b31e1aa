# SPDX-License-Identifier: GPL-2.0
"""A program of this machine, or of a Debian package, with all that it needs in a guest."""

import re
import shutil
import subprocess
from pathlib import Path

from iopath.base.arch import ARCHES, X86_64, Arch
from iopath.base.cache import Cache
from iopath.base.errors import UsageError
from iopath.kernels import elf
from iopath.kernels.apt import Apt
from iopath.measure import packages

_PROGRAM, _SHARED = 2, 3
_MACHINES = {3: "i386", 40: "arm", **{arch.elf: arch.name for arch in ARCHES}}


def of_package(cache: Cache, apt: Apt, package: str, name: str) -> tuple[str, dict[str, bytes]]:
    """A program's path in the guest, and the files that it needs there."""
    _, found = packages.files(cache, apt, package, name)
    return f"/bin/{Path(name).name}", {path: file.read_bytes() for path, file in found.items()}


def of_machine(name: str, arch: Arch = X86_64) -> tuple[str, dict[str, bytes]]:
    """A program of this machine: its path in the guest, and the files that it needs there. The
    loader of this machine finds its libraries; none of its code is executed. One of another *arch*
    must be static."""
    path = _find(name)
    data = path.read_bytes()
    loader = _loader(path, data, arch)
    if loader and arch != X86_64:
        raise UsageError(f"{name}: of {arch.name}, a program must be static, or of a --package")
    files = {str(path).lstrip("/"): data}
    if loader:
        if not Path(loader).exists():
            raise UsageError(f"{name}: its loader {loader} is missing on this machine")
        listed = subprocess.run(
            [loader, "--list", path], capture_output=True, text=True, check=False
        )
        missing = re.search(r"^\s*(\S+) => not found", listed.stdout, re.MULTILINE)
        missing = missing or re.search(
            r"(?:libraries: |library )(\S+?):", listed.stderr + listed.stdout
        )
        if missing:
            raise UsageError(f"{name}: the library {missing[1]} is missing on this machine")
        if listed.returncode:
            raise UsageError(f"{name}: {(listed.stderr or listed.stdout).strip()}")
        found = re.findall(r"(?:=> |^\s*)(/\S+) \(0x", listed.stdout, re.MULTILINE)
        for library in dict.fromkeys([loader, *found]):
            files[library.lstrip("/")] = Path(library).read_bytes()
    return str(path), files


def _find(name: str) -> Path:
    found = name if "/" in name else shutil.which(name)
    if found is None:
        raise UsageError(f"{name}: no such program in PATH")
    path = Path(found)
    if not path.exists():
        raise UsageError(f"{name}: no such file")
    if not path.is_file():
        raise UsageError(f"{name}: not a file")
    return Path.cwd() / path


def _loader(path: Path, data: bytes, arch: Arch) -> str:
    """The loader that a program asks for; none if it is static."""
    if data[:2] == b"#!":
        interpreter = data[2:].split(b"\n")[0].decode(errors="replace").strip()
        raise UsageError(f"{path}: a script: must be an ELF program; run {interpreter} with --file")
    if len(data) < elf.HEADER.size or data[:4] != b"\x7fELF":
        raise UsageError(f"{path}: not executable: must be an ELF program")
    _, width, _, kind, machine, *_ = elf.HEADER.unpack_from(data)
    known = _MACHINES.get(machine, f"machine {machine}")
    if known != arch.name or width != 2:
        raise UsageError(f"{path}: a program of {known}: must be of {arch.name}")
    if kind not in (_PROGRAM, _SHARED):
        raise UsageError(f"{path}: an ELF file, but not a program")
    return elf.loader(data)
