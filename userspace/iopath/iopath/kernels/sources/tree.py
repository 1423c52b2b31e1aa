# SPDX-License-Identifier: GPL-2.0
"""tree:PATH: a kernel built in the tree PATH, of the architecture that its configuration says."""

import hashlib
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from iopath.base import process, temporary
from iopath.base.arch import Arch
from iopath.base.cache import Cache, digest_file
from iopath.base.errors import IopathError, UsageError
from iopath.base.programs import cross_compiler
from iopath.kernels import installation, kbuild, own_modules
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
        for_image, for_modules = _image_inputs(self), _modules_inputs(self)
        changed = f"tree:{self.path} has changed meanwhile: wait until it is built"

        def make_image(folder: Path) -> None:
            # These copies are measured, even if the tree changes meanwhile.
            for name, kept in _kept(self).items():
                shutil.copyfile(self.path / name, folder / kept)
            own_modules.keep_own_modules(self.path, folder, self.arch)
            if _image_inputs(self) != for_image:
                raise IopathError(changed)

        def make_modules(folder: Path) -> None:
            step("building modules", 0.5)
            source = str(folder / "src")
            words = [
                *kbuild.make_words(self.arch),
                *kbuild.llvm_words((self.path / ".config").read_text()),
            ]
            command = [process.need("make", "make"), *words, "-C", self.path]
            kbuild.make_modules(folder, command, source, release)
            if (_image_inputs(self), _modules_inputs(self)) != (for_image, for_modules):
                raise IopathError(changed)

        image = cache.entry("kernel", {"tree": for_image}, make_image)
        modules = cache.entry(*kbuild.modules_entry({"tree": for_modules}), make_modules)
        return built(release, "", self.subject, image, modules, arch=self.arch)

    def debug_info(self, built: Built, cache: Cache, apt: Apt, step: Step) -> Path:
        if digest_file(self.image) != built.digests["vmlinuz"]:
            raise IopathError(f"tree:{self.path} has changed meanwhile: measure it again")
        return self.path / "vmlinux"


def find(spec: str, finder: Finder) -> Tree:
    """The tree *spec*, if a kernel was built there that can run in a guest."""
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


def _image_inputs(tree: Tree) -> dict[str, str]:
    """Digests of a tree's files that a guest runs: the image, its configuration and its modules."""
    files = [*map(tree.path.joinpath, _kept(tree)), *own_modules.own_modules(tree.path, tree.arch)]
    return {str(path.relative_to(tree.path)): digest_file(path) for path in files}


def _modules_inputs(tree: Tree) -> dict[str, object]:
    """What our modules are built from and with. If a commit changes none of it, the cached modules
    are used."""
    compiler = cross_compiler(tree.arch).resolve()
    tools = [tree.path / name for name in ("tools/objtool/objtool", "scripts/mod/modpost")]
    files = [tree.path / name for name in (".config", "Module.symvers")]
    if "CONFIG_DEBUG_INFO_BTF_MODULES=y" in files[0].read_text().splitlines():
        files.append(tree.image)  # a module's types refer to those of the kernel
    return {
        **{path.name: digest_file(path) for path in files},
        "compiler": [str(compiler), digest_file(compiler)],
        "tools": [_digest_of_code(path) for path in tools if path.is_file()],
        "source": _source_digest(tree),
    }


def _digest_of_code(program: Path) -> str:
    """A digest of a program without its debug information, which names the folder where it was
    built."""
    with temporary.folder() as folder:
        code = folder / program.name
        command = [process.need("objcopy", "binutils"), "--strip-all",
                   "--remove-section=.note.gnu.build-id", program, code]  # fmt: skip
        done = subprocess.run(command, capture_output=True, check=False)
        return digest_file(code if done.returncode == 0 else program)


def _source_digest(tree: Tree) -> str:
    """One digest of a tree's headers, makefiles and scripts, except for two headers that only
    contain the time of the build."""
    state = hashlib.sha256()
    arch = f"arch/{tree.arch.source}"
    for top in dict.fromkeys((tree.path, tree.source)):
        found = [
            path for part in ("include", f"{arch}/include") for path in (top / part).rglob("*.h")
        ]
        for pattern in ("Makefile", f"{arch}/Makefile*", "scripts/*"):
            found += (path for path in top.glob(pattern) if path.is_file())
        for path in sorted(found):
            if path.name not in ("compile.h", "utsversion.h"):
                state.update(f"{path.relative_to(top)}\0{path.stat().st_size}\0".encode())
                state.update(path.read_bytes())
    return state.hexdigest()
