# SPDX-License-Identifier: GPL-2.0
"""tree:PATH: a kernel built in the tree PATH, of the architecture that its configuration says."""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from iopath.base import process
from iopath.base.arch import Arch
from iopath.base.cache import Cache, digest_file
from iopath.base.errors import IopathError, UsageError
from iopath.base.programs import cross_compiler
from iopath.kernels import installation, kbuild, parts
from iopath.kernels.apt import Apt
from iopath.kernels.built import Built, Step, built
from iopath.kernels.finder import Finder
from iopath.kernels.kernel import Kernel

NAMES = ("tree:PATH",)


@dataclass(frozen=True)
class Tree(Kernel):
    """A kernel built from source in the folder *path*: its source, or the folder that make was told
    with O=."""

    path: Path

    @property
    def source(self) -> Path:
        """The folder with its source."""
        link = self.path / "source"  # make O=... makes it
        return link.resolve() if link.is_symlink() else self.path

    @property
    def release(self) -> str:
        return (self.path / "include/config/kernel.release").read_text().strip()

    @property
    def arch(self) -> Arch:
        """The architecture that it is configured for."""
        config = self.path / ".config"
        return installation.arch_of(config.read_text().splitlines() if config.is_file() else ())

    @property
    def image(self) -> Path:
        return self.path / self.arch.image

    @property
    def title(self) -> str:
        return self.release

    @property
    def subject(self) -> str:
        return f"tree {self.path}"

    def prepare(self, cache: Cache, apt: Apt, step: Step) -> Built:
        step("reading the tree", 0.0)
        release = self.release
        inputs = _tree_inputs(self)

        def make(folder: Path) -> None:
            step("building modules", 0.5)
            source = str(folder / "src")
            command = [process.need("make", "make"), *kbuild.make_words(self.arch), "-C", self.path]
            kbuild.make_modules(folder, command, source, release)
            # These copies are measured, even if the tree changes meanwhile.
            for name, kept in _kept(self).items():
                shutil.copyfile(self.path / name, folder / kept)
            parts.keep_own_modules(self.path, folder, self.arch)
            if _tree_inputs(self) != inputs:
                raise IopathError(f"tree:{self.path} has changed meanwhile: wait until it is built")

        modules = cache.entry(*kbuild.modules_entry({"tree": inputs}), make)
        return built(release, "", self.subject, modules, modules, arch=self.arch)

    def debug_info(self, built: Built, cache: Cache, apt: Apt, step: Step) -> Path:
        if digest_file(self.image) != built.digests["vmlinuz"]:
            raise IopathError(f"tree:{self.path} has changed meanwhile: measure it again")
        return self.path / "vmlinux"


def find(spec: str, finder: Finder) -> Tree:
    """The tree *spec*, once it is sure that a kernel was built there which can run in a guest."""
    tree = Tree(Path(spec).expanduser().absolute())
    for part in (tree.image, tree.path / "include/config/kernel.release", tree.path / ".config"):
        if not part.is_file():
            raise UsageError(f"tree:{spec}: {part} is missing: build the kernel there first")
    options = (tree.path / ".config").read_text().splitlines()
    installation.check(f"tree:{spec}", options, tree.arch)
    if not (tree.path / "Module.symvers").is_file():
        raise UsageError(f"tree:{spec}: Module.symvers is missing: run `make modules` there")
    return tree


def _kept(tree: Tree) -> dict[str, str]:
    """Where a tree's image and configuration are in its cache entry."""
    return {tree.arch.image: "vmlinuz", ".config": "config"}


def _tree_inputs(tree: Tree) -> dict[str, object]:
    """All of a tree that takes part in a measurement: what runs, and what our modules are built
    with and against."""
    files = [
        *map(tree.path.joinpath, (*_kept(tree), "Module.symvers")),
        *parts.own_modules(tree.path, tree.arch),
    ]
    compiler = cross_compiler(tree.arch).resolve()
    tools = [tree.path / name for name in ("tools/objtool/objtool", "scripts/mod/modpost")]
    return {
        **{str(path.relative_to(tree.path)): digest_file(path) for path in files},
        "compiler": [str(compiler), digest_file(compiler)],
        "tools": [digest_file(path) for path in tools if path.is_file()],
        "headers": _headers_digest(tree),
    }


def _headers_digest(tree: Tree) -> str:
    """One digest of the headers of a tree, without the two that only say when it was built."""
    state = hashlib.sha256()
    for top in dict.fromkeys((tree.path, tree.source)):
        for part in ("include", f"arch/{tree.arch.source}/include"):
            for path in sorted((top / part).rglob("*.h")):
                if path.name not in ("compile.h", "utsversion.h"):
                    state.update(f"{path.relative_to(top)}\0{path.stat().st_size}\0".encode())
                    state.update(path.read_bytes())
    return state.hexdigest()
