# SPDX-License-Identifier: GPL-2.0
"""Build the programs of guests and the plugin, in a root file system of one Debian suite.

    python -m iopath.kernels.guest_programs FOLDER [ARCHITECTURE...]

builds them for architectures (default: this machine's) and copies them to FOLDER/ARCHITECTURE.
"""

import shutil
import sys
from pathlib import Path

from iopath import __version__
from iopath.base import process
from iopath.base.arch import X86_64, Arch, named, this_machine
from iopath.base.cache import Cache, cache_root, digest_file
from iopath.base.errors import IopathError, Lacking
from iopath.base.programs import (
    COMPILER,
    SUITE,
    built_folder,
    cross_compiler,
    inputs,
    packages,
    parts,
)
from iopath.base.sources import source_root
from iopath.kernels.apt import Apt
from iopath.kernels.built import Step
from iopath.kernels.kbuild import keep_complaint
from iopath.kernels.root import root, sandbox


def are_built(arch: Arch) -> bool:
    """Whether `make userspace` or a package has built the programs of an architecture."""
    return (built_folder(arch) / "ioloop").is_file()


def build(arch: Arch, cache: Cache, apt: Apt, step: Step) -> Path:
    """The folder in the cache with the programs of an architecture."""
    if not parts(arch):
        raise IopathError(f"this iopath was built without the programs for guests of {arch.name}")

    def make(folder: Path) -> None:
        start, source, into, compiler = _place(arch, cache, apt, step, folder)
        step("building", 0.9)
        log = folder / "build.log"
        for part in parts(arch):
            command = [
                *start, "make", "-C", source / part.relative_to(source_root()), f"O={into}",
                "STATIC=1", f"VERSION={__version__}", f"CC={compiler}",
            ]  # fmt: skip
            if process.run(command, output=log):
                said = keep_complaint(log, folder.parent / f"failed-{part.name}.log")
                raise IopathError(f"cannot build {part.name}: {said}")
        shutil.rmtree(folder / "ioloop-objects")

    return cache.entry("programs", inputs(arch), make)


def _place(
    arch: Arch, cache: Cache, apt: Apt, step: Step, folder: Path
) -> tuple[list[str | Path], Path, Path, str]:
    """Where it is built: the words that commands start with, the sources and *folder* as they are
    called there, and the compiler."""
    if this_machine() != X86_64:  # it runs no guests: the loop only, for the machine itself
        return [], source_root(), folder, str(cross_compiler(arch))
    at = root("compiler", packages(arch), {"packages": packages(arch)}, SUITE, cache, apt, step)
    binds = ("--ro-bind", source_root(), "/src", "--bind", folder, "/build")
    compiler = COMPILER if arch == X86_64 else f"{arch.triplet}-{COMPILER}"
    return sandbox(at, *binds), Path("/src"), Path("/build"), compiler


# Libraries that are linked statically, with what these need.
_LIBBPF = ("libbpf-dev", "libelf-dev", "zlib1g-dev")


def attach(arch: Arch, cache: Cache, apt: Apt) -> Path:
    """The program that attaches objects of eBPF. It is built when it is first used. Raises Lacking
    on architectures whose libraries the compiler's root file system lacks."""
    if arch != X86_64:
        raise Lacking(f"objects of eBPF are attached in guests of {X86_64.name} only")
    folder = source_root() / "userspace" / "attach"

    def make(into: Path) -> None:
        at = root(
            "libbpf", [*packages(arch), *_LIBBPF], {"packages": _LIBBPF}, SUITE, cache, apt,
            lambda what, part: None,
        )  # fmt: skip
        words = sandbox(at, "--ro-bind", source_root(), "/src", "--bind", into, "/build")
        command = [*words, "make", "-C", "/src/userspace/attach", "O=/build", f"CC={COMPILER}"]
        if process.run(command, output=into / "build.log"):
            said = keep_complaint(into / "build.log", into.parent / "failed-attach.log")
            raise IopathError(f"cannot build attach: {said}")

    sources = {path.name: digest_file(path) for path in sorted(folder.iterdir())}
    inputs = {"attach": sources, "suite": SUITE, "packages": [*packages(arch), *_LIBBPF]}
    return cache.entry("programs", inputs, make) / "attach"


def main(words: list[str]) -> int:
    into, *names = words
    cache = Cache(cache_root())
    apt = Apt(cache, lambda text: print(text, file=sys.stderr))
    try:
        for arch in [named(name) for name in names] or [this_machine()]:
            _copy(build(arch, cache, apt, _sayer(arch)), Path(into) / arch.name)
    except IopathError as error:
        print(f"iopath: {error}", file=sys.stderr)
        return 1
    return 0


def _sayer(arch: Arch) -> Step:
    """Print each step once."""
    said = set()

    def step(what: str, part: float) -> None:
        if what not in said:
            print(f"programs for guests of {arch.name}: {what}", flush=True)
        said.add(what)

    return step


def _copy(entry: Path, folder: Path) -> None:
    """Copy the programs. One that is the same is left alone: it may be running."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("init", "ioloop", "pathcount.so", "runner"):
        source, target = entry / name, folder / name
        if not source.is_file():
            continue
        if not target.is_file() or digest_file(source) != digest_file(target):
            part = target.with_name(f"{name}.part")
            shutil.copy2(source, part)
            part.rename(target)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
