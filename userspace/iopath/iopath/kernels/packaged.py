# SPDX-License-Identifier: GPL-2.0
"""Kernels of package files, of Debian's kind or RPM's, whichever distribution built them.

Their image, configuration and modules are unpacked. The project's modules are built with their
headers, in a root file system of Debian that has the GCC nearest to the kernel's own and a libc
that the build tools among the headers can use.
"""

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from iopath.base.arch import ARCHES, Arch, this_machine
from iopath.base.cache import Cache, digest_file
from iopath.base.errors import IopathError, UsageError
from iopath.kernels import installation, kbuild, own_modules
from iopath.kernels.apt import Apt
from iopath.kernels.built import Built, Step, built
from iopath.kernels.kernel import Kernel
from iopath.kernels.root import root, sandbox
from iopath.kernels.unpack import unpack

# Increase this if this file makes other entries than before from the same inputs.
_RECIPE = 1


@dataclass(frozen=True)
class _Suite:
    """A suite of Debian: the GCCs that it has, the minor version of its libc, and the packages with
    the library that objtool needs and with pahole, which makes a module's BTF if the headers have a
    vmlinux."""

    name: str
    gcc: tuple[int, ...]
    libc: int
    libelf: str
    pahole: str = "pahole"


_SUITES = (
    _Suite("bullseye", (9, 10), 31, "libelf1", "dwarves"),
    _Suite("bookworm", (11, 12), 36, "libelf1"),
    _Suite("trixie", (12, 13, 14), 41, "libelf1t64"),
    _Suite("sid", (13, 14, 15), 42, "libelf1t64"),
)

# The programs among the headers that run when modules are built.
_TOOLS = ("*/scripts/mod/modpost", "*/tools/objtool/objtool", "*/scripts/basic/fixdep")

# Packages that come with a kernel and are not needed.
_OTHERS = re.compile(r"(?:-dbg(?:sym)?_|linux-libc-dev_|linux-tools|kernel-(?:\w+-)?debug|-doc)")

# The architectures by their names in Debian's and RPM's packages.
_ARCHES = {name: arch for arch in ARCHES for name in (arch.debian, arch.name)}


@dataclass(frozen=True)
class Packaged(Kernel):
    """The kernel in package *files*; *name* is how it was asked for."""

    name: str
    files: tuple[Path, ...]
    arch: Arch

    @property
    def title(self) -> str:
        return self.name

    @property
    def subject(self) -> str:
        return ", ".join(path.name for path in self.files)

    def prepare(self, cache: Cache, apt: Apt, step: Step) -> Built:
        step("reading the packages", 0.0)
        packages = [digest_file(path) for path in self.files]
        inputs = {
            "packages": packages, "modules": own_modules.module_parts(self.arch), "recipe": _RECIPE,
        }  # fmt: skip
        image = cache.entry("image", inputs, lambda folder: self._keep_image(folder, step))
        release = (image / "release").read_text()
        options = (image / "config").read_text().splitlines()
        installation.check(self.name, options, self.arch)
        wanted = installation.gcc_version(options)
        suite, gcc = compiler(wanted, int((image / "libc").read_text()))

        def make(folder: Path) -> None:
            at = self._root(packages, suite, gcc, cache, apt, step)
            headers = installation.headers(at, release)
            if headers is None:
                raise UsageError(
                    f"{self.name}: no headers of {release}: name the package with them, too"
                    " (linux-headers-..., kernel-devel, kernel-default-devel)"
                )
            step("building modules", 0.5)
            make = ["make", *_words(self.arch, gcc), "-C", f"/{headers.relative_to(at)}"]
            command = [*sandbox(at, "--bind", folder / "src", "/src", "--chdir", "/src"), *make]
            kbuild.make_modules(folder, command, "/src", release)

        made_for = {"packages": packages, "suite": suite.name, "gcc": gcc}
        modules = cache.entry(*kbuild.modules_entry(made_for), make)
        found = built(release, "", self.subject, image, modules, arch=self.arch)
        if wanted == gcc:
            return found
        own = f"gcc {wanted}" if wanted else "another compiler"
        text = f"{release} was built by {own}, the modules by gcc {gcc} of Debian {suite.name}"
        return replace(found, warnings=[text, *found.warnings])

    def _keep_image(self, folder: Path, step: Step) -> None:
        unpacked = folder / "unpacked"
        patterns = [
            "./boot/vmlinu*", "./boot/config-*", "*/modules/*/vmlinu*", "*/modules/*/config",
            "./usr/src/*/.config", f"*/modules/*/{own_modules.BUILT_IN}", *_TOOLS,
            *(f"*/modules/*/kernel/{part}{end}"
              for part in own_modules.module_parts(self.arch) for end in ("/*", ".ko*")),
        ]  # fmt: skip
        for number, path in enumerate(self.files):
            step("unpacking", number / len(self.files))
            unpack(path, unpacked, only=patterns)
        found = installation.releases(unpacked)
        if not found:
            raise UsageError(f"{self.name}: no kernel is in {self.subject}")
        if len(found) > 1:
            raise UsageError(f"{self.name}: several kernels ({', '.join(found)}): name one's files")
        (release,) = found
        configs = sorted(unpacked.glob("usr/src/**/.config"))
        headers = configs[0].parent if configs else None
        shutil.move(installation.image(unpacked, release), folder / "vmlinuz")
        shutil.copyfile(installation.config(unpacked, release, headers), folder / "config")
        own = installation.own_modules(unpacked, release)
        if own:
            (folder / "lib/modules").mkdir(parents=True)
            shutil.move(own, folder / "lib/modules")
        (folder / "release").write_text(release)
        (folder / "libc").write_text(str(_needed_libc(unpacked)))
        shutil.rmtree(unpacked)

    def _root(
        self, packages: Sequence[str], suite: _Suite, gcc: int, cache: Cache, apt: Apt, step: Step
    ) -> Path:
        """A root file system with a compiler and the kernel's headers."""
        wanted = [_gcc(self.arch, gcc), suite.libelf, "zlib1g", suite.pahole]
        return root(
            "compiler", wanted, {"compiler": wanted, "packages": packages}, suite.name, cache, apt,
            step, lambda: list(self.files),
        )  # fmt: skip


def find(kind: str, spec: str) -> Packaged:
    """The kernel "*kind*:*spec*": package files, or the folder that holds them."""
    name = f"{kind}:{spec}"
    found: list[Path] = []
    for word in spec.split(","):
        path = Path(word).expanduser().absolute()
        if not word:
            raise UsageError(f"{name}: an empty name: must be files separated by commas")
        if path.is_dir():
            found += sorted(path.glob(f"*.{kind}"))
        elif not path.is_file():
            raise UsageError(f"{name}: {word}: no such file or folder")
        elif path.suffix != f".{kind}":
            raise UsageError(f"{name}: {word} is not a package: its name must end in .{kind}")
        else:
            found.append(path)
    files = [path for path in found if not _OTHERS.search(path.name)]
    if not files:
        raise UsageError(f"{name}: there is no package of a kernel (*.{kind})")
    arches = {arch.name: arch for path in files if (arch := _arch(path))}
    if len(arches) != 1:
        several = " and ".join(sorted(arches)) or "no known architecture"
        raise UsageError(f"{name}: the packages are of {several}: they must be of one")
    return Packaged(name, tuple(files), next(iter(arches.values())))


def _arch(path: Path) -> Arch | None:
    """The architecture in the name of a package; None if it is for all."""
    return _ARCHES.get(re.split(r"[_.]", path.stem)[-1]) or _ARCHES.get(path.stem.rsplit(".")[-1])


def compiler(wanted: int | None, libc: int) -> tuple[_Suite, int]:
    """The suite and the GCC nearest to the version *wanted* (None: the newest), where the libc is
    at least 2.*libc*. Of two equally near ones it is the newer compiler, of the oldest suite."""
    usable = [(suite, gcc) for suite in _SUITES if suite.libc >= libc for gcc in suite.gcc]
    if not usable:
        raise IopathError(
            f"the headers' programs need glibc 2.{libc}: Debian has 2.{_SUITES[-1].libc}"
        )
    aim = wanted or _SUITES[-1].gcc[-1]
    return min(usable, key=lambda one: (abs(one[1] - aim), -one[1]))


def _needed_libc(folder: Path) -> int:
    """The newest minor version of glibc 2 that the build tools in a folder need."""
    tools = {Path(pattern).name for pattern in _TOOLS}
    texts = [
        path.read_bytes()
        for path in folder.rglob("*")
        if path.name in tools and path.is_file() and not path.is_symlink()
    ]
    return max((int(v) for text in texts for v in re.findall(rb"GLIBC_2\.(\d+)", text)), default=0)


def _gcc(arch: Arch, version: int) -> str:
    own = arch == this_machine()
    return f"gcc-{version}" if own else f"gcc-{version}-{arch.triplet.replace('_', '-')}"


def _words(arch: Arch, gcc: int) -> list[str]:
    """The arguments of make: the architecture if it is not this machine's, and the compiler."""
    if arch == this_machine():
        return [f"CC=gcc-{gcc}"]
    cross = f"{arch.triplet}-"
    return [f"ARCH={arch.source}", f"CROSS_COMPILE={cross}", f"CC={cross}gcc-{gcc}"]
