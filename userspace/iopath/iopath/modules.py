# SPDX-License-Identifier: GPL-2.0
"""Module files for a guest: the project's and the kernel's own, with what they depend on."""

import functools
import lzma
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from iopath import process
from iopath.build import BUILT_IN, Built
from iopath.errors import IopathError


def find(module: str, built: Built) -> Path | None:
    """The file of a module, the project's or the kernel's own."""
    path = built.modules.get(module)
    if path is None and built.own_modules:
        pattern = re.sub("[-_]", "[-_]", module)
        path = next(built.own_modules.rglob(f"{pattern}.ko*"), None)
    return path


def exists(module: str, built: Built) -> bool:
    """Whether a kernel has a module, as a file or built in."""
    return find(module, built) is not None or _is_built_in(module, built)


def _is_built_in(module: str, built: Built) -> bool:
    lists = built.own_modules.rglob(BUILT_IN) if built.own_modules else ()
    wanted = module.replace("-", "_")
    return any(
        Path(line).stem.replace("-", "_") == wanted
        for path in lists
        for line in path.read_text().splitlines()
    )


def with_dependencies(module: str, built: Built) -> list[Path]:
    """The module files to load, in their order, to have *module*."""
    path = find(module, built)
    if path is None and _is_built_in(module, built):
        return []
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


@dataclass(frozen=True)
class Function:
    """A function of a module file: its section, the offset there, and its name."""

    section: str
    offset: int
    name: str


@functools.lru_cache(maxsize=16)
def functions(module: bytes) -> tuple[Function, ...]:
    """The functions of a module that stay when it has been loaded."""
    with tempfile.NamedTemporaryFile(prefix="iopath-", suffix=".ko") as file:
        file.write(module)
        file.flush()
        lines = subprocess.run(
            [process.need("nm", "binutils"), "--format=sysv", "--defined-only", file.name],
            capture_output=True, text=True, check=True,
        ).stdout.splitlines()  # fmt: skip
    found = []
    for line in lines:
        fields = [field.strip() for field in line.split("|")]
        if len(fields) != 7 or fields[2] not in tuple("tTwW") or fields[6].startswith(".init"):
            continue
        # Some architectures mark where code begins by symbols like $x.
        if not fields[0].startswith("$"):
            found.append(Function(fields[6], int(fields[1], 16), fields[0]))
    return tuple(found)


def section_files(name: str, module: bytes) -> list[str]:
    """The files of sysfs that say where the code of a loaded module is; it is called *name*."""
    names = dict.fromkeys(function.section for function in functions(module))
    folder = f"/sys/module/{name.replace('-', '_')}/sections"
    return [f"{folder}/{section}" for section in names]


def kallsyms(name: str, module: bytes, texts: Mapping[str, str]) -> list[str]:
    """The lines of /proc/kallsyms that are about the functions of a loaded module, made from the
    *texts* of its section_files()."""
    files = section_files(name, module)
    begins = {path.rpartition("/")[2]: int(texts[path], 16) for path in files}
    shown = name.replace("-", "_")
    return [
        f"{begins[function.section] + function.offset:x} t {function.name}\t[{shown}]\n"
        for function in functions(module)
    ]
