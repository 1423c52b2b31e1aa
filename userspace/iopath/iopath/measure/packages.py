# SPDX-License-Identifier: GPL-2.0
"""Programs of Debian packages for a guest, such as mkfs, with the libraries that they need."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from iopath.base import process
from iopath.base.arch import X86_64
from iopath.base.cache import Cache
from iopath.base.errors import IopathError
from iopath.kernels import guest_programs
from iopath.kernels.apt import Apt
from iopath.kernels.unpack import new_root, unpack
from iopath.rungs.rung import Rung

SUITE = "bookworm"  # the same programs on every kernel
OWN = "iopath"  # this package: its program for guests, attach, is built when it is used


class NoProgram(IopathError):
    """A package has no such program."""


def equipped(rungs: Sequence[Rung], cache: Cache, apt: Apt) -> list[Rung]:
    """*rungs* with the files of the packages that they need, of the architecture of *apt*."""
    wanted = dict.fromkeys(tool for rung in rungs for tool in rung.tools)
    found = {
        tool: {"bin/attach": guest_programs.attach(apt.arch, cache, apt)}
        if tool[0] == OWN
        else files(cache, apt, *tool)[1]
        for tool in wanted
    }

    def whole(rung: Rung) -> Rung:
        parts = [item for tool in rung.tools for item in found[tool].items()]
        return replace(rung, files=tuple(dict([*rung.files, *parts]).items()))

    return [whole(rung) for rung in rungs]


def files(cache: Cache, apt: Apt, name: str, *programs: str) -> tuple[str, dict[str, Path]]:
    """A package's version, and the files that its *programs* need in a guest, by their paths there:
    the programs are in bin."""

    def make(folder: Path) -> None:
        debs = apt.closure([name], SUITE)
        version = next(deb.split("_")[1] for deb in debs if deb.startswith(f"{name}_"))
        (folder / "version").write_text(version)
        apt.download([name], SUITE, closure=True, progress=lambda part: None)
        root = folder / "root"
        new_root(root)
        for deb in debs:
            unpack(apt.deb(deb), root)
        libraries = f"lib/{arch.triplet}"
        for part in (libraries, str(Path(arch.loader).parent), "bin"):
            (folder / "files" / part).mkdir(parents=True, exist_ok=True)
        loader = root / libraries / Path(arch.loader).name
        if loader.is_file():  # programs may be static
            shutil.copyfile(loader, folder / "files" / arch.loader)
        for program in programs:
            found = _find(root, name, program)
            shutil.copyfile(found, folder / "files/bin" / found.name)
            for library in _needed(root / libraries, found):
                shutil.copyfile(library, folder / "files" / libraries / library.name)
        shutil.rmtree(root)

    arch = apt.arch
    inputs: dict[str, object] = {"suite": SUITE, "package": name, "programs": programs}
    if arch != X86_64:
        inputs["arch"] = arch.name
    entry = cache.entry("programs", inputs, make)
    root = entry / "files"
    found = {str(path.relative_to(root)): path for path in sorted(root.rglob("*"))}
    version = (entry / "version").read_text()
    return version, {name: path for name, path in found.items() if path.is_file()}


def _find(root: Path, package: str, program: str) -> Path:
    """A program of an unpacked package: in a folder for programs, or else anywhere. A *program*
    with a folder is the file of that path."""
    usual = [root / "usr" / part / program for part in ("bin", "sbin")]
    places = [root / program.lstrip("/")] if "/" in program else usual
    for place in places:
        if place.is_file():
            return place
    found = [] if "/" in program else [*filter(_is_program, sorted(root.rglob(program)))]
    if not found:
        raise NoProgram(f"the package {package} has no program {program}")
    if len(found) > 1:
        paths = ", ".join(f"/{place.relative_to(root)}" for place in found)
        raise IopathError(
            f"the package {package} has several programs {program}: name one: {paths}"
        )
    return found[0]


def _is_program(path: Path) -> bool:
    if not path.is_file() or path.is_symlink() or not os.access(path, os.X_OK):
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _needed(libraries: Path, program: Path) -> list[Path]:
    """All libraries that *program* is linked with, and those that they need."""
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
            places = [libraries / name, *libraries.glob(f"*/{name}")]
            found = next((place for place in places if place.exists()), None)
            if found is None:
                raise IopathError(f"no package that {program.name} depends on has {name}")
            known[name] = found
            left.append(found)
    return list(known.values())
