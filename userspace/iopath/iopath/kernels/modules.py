# SPDX-License-Identifier: GPL-2.0
"""Module files for a guest: the project's and the kernel's own, with what they depend on."""

import lzma
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from iopath.base import process
from iopath.base.errors import IopathError
from iopath.kernels import elf
from iopath.kernels.built import Built
from iopath.kernels.elf import functions
from iopath.kernels.own_modules import BUILT_IN

# The options by which a kernel has the project's modules itself: see kernel/intree.
_OPTIONS = {"blknull": "CONFIG_BLK_DEV_BLKNULL", "biogen": "CONFIG_BIOGEN"}


def ours_built_in(module: str, built: Built) -> bool:
    """Whether a kernel has one of the project's modules built in."""
    return f"{_OPTIONS.get(module)}=y" in built.config.read_text().splitlines()


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
    names = elf.modinfo(uncompressed(path)).get("depends", "")
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
