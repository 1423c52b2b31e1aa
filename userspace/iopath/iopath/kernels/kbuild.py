# SPDX-License-Identifier: GPL-2.0
"""Build the project's modules with the build system of a kernel."""

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from iopath.base import process
from iopath.base.arch import X86_64, Arch
from iopath.base.errors import IopathError
from iopath.base.programs import cross_compiler
from iopath.base.sources import copy_sources, source_digest
from iopath.kernels.built import Entry

# Increase this if this file makes other entries than before from the same inputs.
_RECIPE = 1


def make_words(arch: Arch) -> list[str]:
    """The arguments of make for a kernel of another architecture than this machine's."""
    if arch == X86_64:
        return []
    cross_compiler(arch)
    return [f"ARCH={arch.source}", f"CROSS_COMPILE={arch.triplet}-"]


def llvm_words(config: str) -> list[str]:
    """The arguments of make for modules of a kernel with this configuration: they are built by the
    compiler that built the kernel."""
    return ["LLVM=1"] if "CONFIG_CC_IS_CLANG=y" in config.splitlines() else []


def modules_entry(inputs: dict[str, object]) -> Entry:
    """The cache entry of the modules that are built for *inputs*."""
    return "modules", {**inputs, "source": source_digest(), "recipe": _RECIPE}


def make_modules(folder: Path, command: Sequence[str | Path], source: str, release: str) -> None:
    """Copy the modules' sources to folder/src, unless it has others, and build them with *command*
    (make of a kernel, perhaps in a sandbox); keep the modules and the log. *source* is where
    folder/src is for that command."""
    if not (folder / "src").exists():
        copy_sources(folder / "src")
    log = folder / "build.log"
    jobs = f"-j{os.cpu_count() or 1}"
    if process.run([*command, jobs, f"M={source}", "W=1", "modules"], output=log):
        said = keep_complaint(log, folder.parent / f"failed-{release}.log")
        raise IopathError(f"the modules do not build for {release}: {said}")
    for module in (folder / "src").rglob("*.ko"):
        shutil.move(module, folder / module.name)
    shutil.rmtree(folder / "src")


def keep_complaint(log: Path, kept: Path) -> str:
    """Copy the log of a failed build out of the cache entry, which is removed, to *kept*. Return
    the first error in it, and its name."""
    shutil.copyfile(log, kept)
    return complaint(kept)


def complaint(log: Path) -> str:
    """The first error in the log of a build, and the log's name."""
    text = log.read_text(errors="replace")
    error = re.search(
        r"^.*\berror\b.*$|^bwrap: .*$|^make.*\*\*\*.*$", text, re.MULTILINE | re.IGNORECASE
    )
    what = error.group(0).strip() if error else process.last_line(log)
    return f"{what} (log: {log})"


def without_log(text: str) -> str:
    """A complaint without the name of a log, which only this machine has."""
    return text.partition(" (log: ")[0]
