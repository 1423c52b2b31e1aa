# SPDX-License-Identifier: GPL-2.0
"""The kernels that are available, and how to name one.

debian:6.1                    the newest available 6.1, of a released suite if there is one
debian:7.2-rt                 the same, of the flavour rt (or cloud)
debian:7.2-arm64              the same of another architecture; also 7.2-rt-arm64, 7.2-arm64-16k
debian:7.2.12+deb13-amd64     exactly this one, as uname -r prints it
tree:PATH                     a kernel built in the tree PATH, of the architecture that its
                              configuration says
host                          the running kernel, for commands that measure time
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from debian.debian_support import Version

from iopath.apt import KERNEL_PACKAGE, SUITES, UNRELEASED, Package
from iopath.arch import ARCHES, X86_64, Arch
from iopath.errors import IopathError, UsageError, did_you_mean

_FLAVOUR = "(?:-(rt|cloud))?"
_ARCH = f"-({'|'.join(arch.debian for arch in ARCHES)})(?:-(16k))?"  # with the size of pages
_IMAGE = re.compile(rf"linux-(?:image|binary(?:-unsigned)?)-(\d.*{_ARCH})(?:-unsigned)?$")
_RELEASE = re.compile(rf"(.*?){_FLAVOUR}{_ARCH}$")
_SERIES = re.compile(rf"(\d+\.\d+(?:\.\d+)?){_FLAVOUR}(?:{_ARCH})?$")
# What a kernel from a tree must have built in: to run programs from an initramfs, to hand out their
# results, to load the project's modules and to name functions.
NEEDED = (
    "MODULES", "BINFMT_ELF", "BLK_DEV_INITRD", "DEVTMPFS", "PROC_FS", "SYSFS", "PCI", "BLOCK",
    "KALLSYMS",
)  # fmt: skip
_RELATION = re.compile(r"(\S+?)(?::\w+)?(?:\s*\(\s*(\S+)\s+(\S+)\s*\))?$")


@dataclass(frozen=True)
class DebianKernel:
    """A packaged kernel. *release* is what uname -r will print, *image* the packages that hold the
    kernel and its modules, *headers* what modules are built against, each "name=version". *depends*
    are the packages that these depend on. *missing* says what the mirror lacks; empty if the kernel
    is available."""

    release: str
    version: str
    suite: str
    image: tuple[str, ...]
    headers: str
    depends: str
    missing: str

    @property
    def debug(self) -> str:
        """The package that holds the kernel's debug information, "name=version"."""
        return f"linux-image-{self.release}-dbg={self.version}"

    @property
    def flavour(self) -> str:
        return _release(self.release)[1]

    @property
    def arch(self) -> Arch:
        return _release(self.release)[2]

    @property
    def upstream(self) -> str:
        """The upstream version, e.g. "6.1.192" or "7.3~rc7"."""
        return self.version.rsplit("-", 1)[0]


@dataclass(frozen=True)
class Tree:
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
        options = set(config.read_text().splitlines()) if config.is_file() else set()
        return next((arch for arch in ARCHES if f"CONFIG_{arch.option}=y" in options), X86_64)

    @property
    def image(self) -> Path:
        return self.path / self.arch.image


class _Suite:
    """The newest version of each package in the suites that one suite's packages depend on."""

    def __init__(self, packages: Iterable[Package]) -> None:
        self._versions: dict[str, list[Package]] = {}
        for package in packages:
            self._versions.setdefault(package.name, []).append(package)

    def find(self, name: str, version: str | None = None) -> Package | None:
        for package in self._versions.get(name, ()):
            if version is None or package.version == version:
                return package
        return None

    def unmet(self, package: Package) -> str:
        """The first dependency on a kernel package that nothing here satisfies."""
        for clause in package.depends.split(","):
            choices = [choice.strip() for choice in clause.split("|")]
            if not all(choice.startswith("linux-") for choice in choices):
                continue
            if not any(self._meets(choice) for choice in choices):
                return choices[0]
        return ""

    def _meets(self, relation: str) -> bool:
        match = _RELATION.match(relation)
        if not match:
            return False
        name, operator, wanted = match.groups()
        if not KERNEL_PACKAGE.match(name):
            return True  # not a package that the index keeps: apt will tell
        found = self._versions.get(name, ())
        if not operator:
            return bool(found)
        if operator == "=":
            return any(package.version == wanted for package in found)
        return any(Version(package.version) >= Version(wanted) for package in found)


def list_debian(packages: Sequence[Package]) -> list[DebianKernel]:
    """Every kernel that *packages* hold, oldest first; a release once, in its newest version.

    A kernel with a missing part is listed, too, with the name of that part.
    """
    by_suite: dict[str, list[Package]] = {}
    for package in packages:
        by_suite.setdefault(package.suite, []).append(package)
    found: dict[str, DebianKernel] = {}
    for suite, parts in SUITES.items():
        around = _Suite(package for part in parts for package in by_suite.get(part, ()))
        for package in by_suite.get(suite, ()):
            match = _IMAGE.match(package.name)
            if not match or _is_meta(package):
                continue
            kernel = _describe(match.group(1), package.version, suite, around)
            known = found.get(kernel.release)
            if known is None or _rank(kernel) > _rank(known):
                found[kernel.release] = kernel
    return sorted(found.values(), key=_rank)


def _is_meta(package: Package) -> bool:
    """Whether it only points at the kernel package of the day."""
    return any(
        other != package.name and other.startswith("linux-image-")
        for other in re.findall(r"linux-image-\S+", package.depends)
    )


def _rank(kernel: DebianKernel) -> tuple[Version, bool, str]:
    return Version(kernel.version), not kernel.missing, kernel.release


def _describe(release: str, version: str, suite: str, around: _Suite) -> DebianKernel:
    """The kernel *release* with the packages it takes. A signed kernel goes before an unsigned one;
    since 6.19 the image package is empty, and kernel and modules have packages of their own."""
    split = (f"linux-modules-{release}",)
    choices = (
        (f"linux-image-{release}",),
        (f"linux-binary-{release}", *split),
        (f"linux-image-{release}-unsigned",),
        (f"linux-binary-unsigned-{release}", *split),
    )
    image: tuple[str, ...] = ()
    missing = ""
    for choice in choices:
        first = around.find(choice[0], version)
        if first is None or "linux-binary-" in first.depends:
            continue
        absent = [name for name in choice if around.find(name, version) is None]
        if not absent:
            image = tuple(f"{name}={version}" for name in choice)
            missing = ""
            break
        missing = missing or f"{absent[0]} (= {version})"
    headers = f"linux-headers-{release}"
    package = around.find(headers, version)
    if not image:
        missing = missing or f"linux-binary-{release} (= {version})"
    elif package is None:
        missing = f"{headers} (= {version})"
    else:
        missing = around.unmet(package)
        common = _release(release)[0]
        for name in (f"linux-headers-{common}", f"linux-kbuild-{common}"):
            found = around.find(name)
            if not missing and found:
                missing = around.unmet(found)
    depends = package.depends if package else ""
    return DebianKernel(release, version, suite, image, f"{headers}={version}", depends, missing)


def _release(release: str) -> tuple[str, str, Arch]:
    """The parts of a release: what all kernels of its version have in common, the flavour, and the
    architecture."""
    match = _RELEASE.match(release)
    if match is None:
        return release, "", X86_64
    common, kind, name, pages = match.groups()
    arch = next(arch for arch in ARCHES if arch.debian == name)
    return common, "-".join(filter(None, (kind, pages))), arch


def arch_of(spec: str) -> Arch:
    """The architecture of the kernel that "debian:*spec*" asks for."""
    return _release(spec)[2]


def select(spec: str, kernels: Sequence[DebianKernel]) -> tuple[DebianKernel, list[DebianKernel]]:
    """The kernel that "debian:*spec*" asks for, and the newer ones skipped because the mirror
    lacks a part of them.

    Of a series the newest is chosen, but one from a release of Debian goes before one from testing,
    unstable or experimental: those are built by another compiler, whose difference would be taken
    for the kernel's. Raises UsageError if there is no such kernel, IopathError if
    the mirror lacks a part of it."""
    matching = select_all(spec, kernels)
    usable = [kernel for kernel in matching if not kernel.missing]
    if not usable:
        newest = matching[-1]
        raise IopathError(
            f"debian:{spec}: {newest.release} is unavailable: {newest.missing} is no longer on the"
            f" mirror; there are {', '.join(series_of(kernels))} (iopath kernels lists each)"
        )
    released = [kernel for kernel in usable if kernel.suite not in UNRELEASED]
    chosen = (released or usable)[-1]
    passed_over = [
        kernel
        for kernel in matching
        if kernel.missing and kernel.suite not in UNRELEASED and _rank(kernel) > _rank(chosen)
    ]
    return chosen, passed_over


def select_all(spec: str, kernels: Sequence[DebianKernel]) -> list[DebianKernel]:
    """Every kernel that "debian:*spec*" may stand for, oldest first, also those of which the mirror
    lacks a part. Raises UsageError if there is none."""
    # The release 7.3-amd64 is also how the series 7.3 of this architecture may be named.
    exact = [kernel for kernel in kernels if kernel.release == spec]
    series = _SERIES.match(spec)
    if exact:
        matching = exact
    elif series:
        number = series.group(1)
        flavour = "-".join(filter(None, series.group(2, 4)))
        prefix = re.compile(re.escape(number) + r"(?![0-9])")
        matching = [k for k in kernels if prefix.match(k.upstream) and k.flavour == flavour]
    else:
        matching = [k for k in kernels if k.release in (spec, f"{spec}-{X86_64.debian}")]
    if not matching:
        releases = () if series else [k.release for k in kernels if not k.missing]
        near = did_you_mean(spec, releases) or ";"
        raise UsageError(
            f"debian:{spec}: no such kernel{near} there are {', '.join(series_of(kernels))}"
            " (iopath kernels lists each)"
        )
    return matching


def series_of(kernels: Iterable[DebianKernel]) -> list[str]:
    """The available series, oldest first, e.g. ["5.10", "6.1"]."""
    found = {
        ".".join(re.split(r"[.~]", kernel.upstream)[:2]): None
        for kernel in kernels
        if not kernel.missing
    }
    return list(found)


def parse_tree(spec: str) -> Tree:
    """The tree that "tree:*spec*" names, once it is sure that a kernel was built there which can
    run in a guest."""
    tree = Tree(Path(spec).expanduser().absolute())
    for part in (tree.image, tree.path / "include/config/kernel.release", tree.path / ".config"):
        if not part.is_file():
            raise UsageError(f"tree:{spec}: {part} is missing: build the kernel there first")
    options = (tree.path / ".config").read_text().splitlines()
    needed = (tree.arch.option, *tree.arch.options, *NEEDED)
    absent = [option for option in needed if f"CONFIG_{option}=y" not in options]
    if absent:
        wanted = ", ".join(f"CONFIG_{option}=y" for option in absent)
        raise UsageError(f"tree:{spec}: its kernel cannot be measured: build it with {wanted}")
    if not (tree.path / "Module.symvers").is_file():
        raise UsageError(f"tree:{spec}: Module.symvers is missing: run `make modules` there")
    return tree
