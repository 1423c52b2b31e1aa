# SPDX-License-Identifier: GPL-2.0
"""installed:RELEASE: a kernel that is installed on this machine; "installed" is the running one.

The project's modules are built here with the kernel's headers, as DKMS builds modules.
"""

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from iopath.base import process
from iopath.base.arch import Arch
from iopath.base.cache import Cache, digest_file
from iopath.base.errors import IopathError, UsageError, did_you_mean
from iopath.kernels import installation, kbuild, own_modules
from iopath.kernels.apt import Apt
from iopath.kernels.built import Built, Step, built
from iopath.kernels.finder import Finder
from iopath.kernels.kernel import Kernel

NAMES = ("installed[:RELEASE]",)
ROOT = Path("/")  # of the file system that kernels are installed in


@dataclass(frozen=True)
class Installed(Kernel):
    """The kernel *release* of this machine."""

    release: str

    @property
    def title(self) -> str:
        return self.release

    @property
    def subject(self) -> str:
        return f"installed on {platform.node()}"

    @property
    def config(self) -> Path:
        return installation.config(ROOT, self.release, installation.headers(ROOT, self.release))

    @property
    def arch(self) -> Arch:
        return installation.arch_of(self.config.read_text().splitlines())

    def prepare(self, cache: Cache, apt: Apt, step: Step) -> Built:
        step("reading the kernel", 0.0)
        release, arch = self.release, self.arch
        headers = installation.headers(ROOT, release)
        if headers is None:
            raise UsageError(
                f"installed:{release}: its headers are missing: install linux-headers-{release}"
                " or kernel-devel"
            )
        gcc = _compiler(release, installation.gcc_version(self.config.read_text().splitlines()))
        files = {"vmlinuz": installation.image(ROOT, release), "config": self.config}
        own = _own_modules(release, arch)
        inputs = {
            "release": release,
            "compiler": [gcc.name, digest_file(gcc)],
            "symvers": digest_file(headers / "Module.symvers"),
            **{name: digest_file(path) for name, path in {**files, **own}.items()},
        }

        def make(folder: Path) -> None:
            step("building modules", 0.5)
            command = [process.need("make", "make"), f"CC={gcc}", "-C", headers]
            kbuild.make_modules(folder, command, str(folder / "src"), release)
            for name, path in {**files, **own}.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, folder / name)

        kept = cache.entry(*kbuild.modules_entry({"installed": inputs}), make)
        return built(release, "", self.subject, kept, kept, arch=arch)


def find(spec: str, finder: Finder) -> Installed:
    release = spec or platform.release()
    known = installation.releases(ROOT)
    if release not in known:
        near = did_you_mean(release, known)
        there = f"there are {', '.join(known)}" if known else "there is none in /boot"
        running = "" if spec else " (the running kernel)"
        raise UsageError(f"installed:{release}{running}: no such kernel{near or f'; {there}'}")
    path = installation.image(ROOT, release)
    if not os.access(path, os.R_OK):
        raise UsageError(f"installed:{release}: {path} is not readable: run iopath as root")
    kernel = Installed(release)
    installation.check(f"installed:{release}", kernel.config.read_text().splitlines(), kernel.arch)
    return kernel


def _compiler(release: str, wanted: int | None) -> Path:
    """The GCC of this machine that built the kernel *release*."""
    if wanted is None:
        raise UsageError(f"installed:{release}: it was not built by GCC, as modules must be")
    path = shutil.which(f"gcc-{wanted}")
    if path is None:
        plain = Path(process.need("gcc", f"gcc-{wanted}"))
        version = subprocess.check_output([plain, "-dumpversion"], text=True).strip()
        if version.split(".")[0] != str(wanted):
            raise IopathError(
                f"installed:{release}: it was built by gcc {wanted}, gcc here is {version}:"
                f" install gcc-{wanted}"
            )
        path = str(plain)
    return Path(path).resolve()


def _own_modules(release: str, arch: Arch) -> dict[str, Path]:
    """The kernel's own modules that a guest may need, by where they are kept."""
    base = installation.own_modules(ROOT, release)
    if base is None:
        return {}
    found = [base / own_modules.BUILT_IN] if (base / own_modules.BUILT_IN).is_file() else []
    for part in own_modules.module_parts(arch):
        found += (base / "kernel" / part).rglob("*.ko*")
        found += base.glob(f"kernel/{part}.ko*")
    return {f"lib/modules/{release}/{path.relative_to(base)}": path for path in sorted(found)}
