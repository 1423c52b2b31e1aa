# SPDX-License-Identifier: GPL-2.0
"""Kernels as distributions lay them out: where image, configuration, modules and headers are."""

import re
from collections.abc import Collection, Iterator
from pathlib import Path

from iopath.base.arch import ARCHES, X86_64, Arch
from iopath.base.errors import IopathError, UsageError
from iopath.kernels.kernel import NEEDED

_MODULES = ("usr/lib/modules", "lib/modules")
_UNSIGNED = "only modules that its builder signed can be loaded"

# Options with which a kernel does not load the project's modules, and why.
_REFUSED = {
    "MODULE_SIG_FORCE": _UNSIGNED,
    "LOCK_DOWN_KERNEL_FORCE_INTEGRITY": _UNSIGNED,
    "LOCK_DOWN_KERNEL_FORCE_CONFIDENTIALITY": _UNSIGNED,
}


def releases(root: Path) -> list[str]:
    """The releases (uname -r) whose images are below *root*."""
    found = {
        path.name.removeprefix("vmlinuz-"): None
        for path in sorted((root / "boot").glob("vmlinuz-*"))
    }
    for base in _MODULES:
        for path in sorted((root / base).glob("*/vmlinuz*")):
            found[path.parent.name] = None
    return list(found)


def image(root: Path, release: str) -> Path:
    """The file that a boot loader starts."""
    places = [root / "boot" / f"vmlinuz-{release}"]
    for base in _MODULES:
        places += [root / base / release / name for name in ("vmlinuz", "vmlinuz.unsigned")]
    return _first(places, f"{release} has no vmlinuz")


def config(root: Path, release: str, headers: Path | None) -> Path:
    """Its configuration; *headers* is the folder that modules are built in, which has it, too."""
    places = [root / "boot" / f"config-{release}"]
    places += [root / base / release / "config" for base in _MODULES]
    if headers:
        places.append(headers / ".config")
    return _first(places, f"{release} has no config-{release}")


def own_modules(root: Path, release: str) -> Path | None:
    """The folder of the kernel's own modules."""
    found = (root / base / release for base in _MODULES)
    return next((path for path in found if path.is_dir()), None)


def headers(root: Path, release: str) -> Path | None:
    """The folder in which modules are built; None if it is not there."""
    for base in _MODULES:
        link = root / base / release / "build"
        if link.is_symlink():
            target = link.readlink()
            inside = root / target.relative_to("/") if target.is_absolute() else link
            if (inside / "Makefile").is_file():
                return inside
        elif (link / "Makefile").is_file():
            return link
    for path in sorted(_release_files(root / "usr/src")):
        if path.read_text().strip() == release:
            return path.parents[2]
    return None


def _release_files(source: Path) -> Iterator[Path]:
    """SUSE has its headers two folders deeper than others."""
    for depth in ("*", "*/*", "*/*/*"):
        yield from source.glob(f"{depth}/include/config/kernel.release")


def arch_of(options: Collection[str]) -> Arch:
    """The architecture of the configuration that has the lines *options*."""
    return next((arch for arch in ARCHES if f"CONFIG_{arch.option}=y" in options), X86_64)


def check(name: str, options: Collection[str], arch: Arch) -> None:
    """Raise UsageError if a kernel with the lines *options* in its configuration cannot be
    measured."""
    for option, why in _REFUSED.items():
        if f"CONFIG_{option}=y" in options:
            raise UsageError(f"{name}: its kernel cannot be measured: CONFIG_{option}=y: {why}")
    absent = [
        f"CONFIG_{option}=y"
        for option in (arch.option, *arch.options, *NEEDED)
        if f"CONFIG_{option}=y" not in options
    ]
    if absent:
        raise UsageError(
            f"{name}: its kernel cannot be measured: build it with {', '.join(absent)}"
        )


def gcc_version(options: Collection[str]) -> int | None:
    """The major version of the GCC that built the kernel; None if another compiler did."""
    for line in options:
        match = re.match(r'CONFIG_CC_VERSION_TEXT="\S*gcc\S* \(.*?\) (\d+)\.', line)
        if match:
            return int(match.group(1))
    return None


def _first(places: list[Path], missing: str) -> Path:
    for place in places:
        if place.is_file():
            return place
    raise IopathError(missing)
