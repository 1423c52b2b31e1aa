# SPDX-License-Identifier: GPL-2.0
"""A program of this machine, or of a Debian package, with all that it needs in a guest."""

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from iopath.base.arch import ARCHES, X86_64, Arch
from iopath.base.cache import Cache
from iopath.base.errors import UsageError
from iopath.kernels import elf
from iopath.kernels.apt import Apt
from iopath.measure import packages, scripts

_PROGRAM, _SHARED = 2, 3
_MACHINES = {3: "i386", 40: "arm", **{arch.elf: arch.name for arch in ARCHES}}


Found = tuple[str, dict[str, bytes]]  # a program's path in the guest, and the files it needs there


def of_packages(cache: Cache, apt: Apt, names: Sequence[str], program: str) -> Found:
    """A program of the first of these packages that has it."""
    said = []
    for name in names:
        try:
            _, found = packages.files(cache, apt, name, program)
        except packages.NoProgram as error:
            said.append(str(error))
            continue
        return f"/bin/{Path(program).name}", {path: one.read_bytes() for path, one in found.items()}
    raise packages.NoProgram("; ".join(said))


def of_script(
    cache: Cache, apt: Apt, names: Sequence[str], script: str, warn: Callable[[str], None]
) -> Found:
    """The shell, which is busybox's, and the files of the commands that a *script* calls: of a
    package, in busybox, or of this machine. What is nowhere is warned of."""
    shell = scripts.busybox(cache, apt)
    files = {path: one.read_bytes() for path, one in shell.items()}
    own = scripts.of_busybox(shell[scripts.SHELL])
    for name in scripts.commands(script):
        found: Found = "", {}
        try:
            found = of_packages(cache, apt, names, name)
        except packages.NoProgram:
            if name not in own:
                try:
                    found = of_machine(name, apt.arch)
                except UsageError as error:
                    warn(f"the script calls {name}: {error}: give it by --package or --file")
        files |= found[1]
    return f"/{scripts.SHELL}", files


def of_machine(name: str, arch: Arch = X86_64) -> Found:
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


def script_of(words: Sequence[str]) -> tuple[str, list[str], dict[str, bytes]] | None:
    """The text of a script that is given as a command line, the words that its shell is given, and
    the file that it is in the guest; None if the command line is no script."""
    name, *others = words
    if scripts.is_shell(name):
        if others[:1] == ["-c"] and others[1:]:
            return others[1], ["sh", *others], {}
        if not others or others[0].startswith("-"):
            return "", ["sh", *others], {}
        name, *others = others
    elif "/" not in name:
        return None
    path = _find(name if "/" in name else f"./{name}")
    data = path.read_bytes()
    if not (scripts.is_script(data) or scripts.is_shell(words[0])):
        return None
    return data.decode(errors="replace"), ["sh", str(path), *others], {str(path).lstrip("/"): data}


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
        raise UsageError(
            f"{path}: a script of {interpreter}: must be one of sh, or an ELF program; run"
            f" {interpreter} with --file"
        )
    if len(data) < elf.HEADER.size or data[:4] != b"\x7fELF":
        raise UsageError(f"{path}: not executable: must be an ELF program")
    _, width, _, kind, machine, *_ = elf.HEADER.unpack_from(data)
    known = _MACHINES.get(machine, f"machine {machine}")
    if known != arch.name or width != 2:
        raise UsageError(f"{path}: a program of {known}: must be of {arch.name}")
    if kind not in (_PROGRAM, _SHARED):
        raise UsageError(f"{path}: an ELF file, but not a program")
    return elf.loader(data)
