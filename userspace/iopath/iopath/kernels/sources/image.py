# SPDX-License-Identifier: GPL-2.0
"""image:VMLINUZ[,MODULES]: a kernel without headers.

VMLINUZ is the file that a boot loader starts, MODULES the folder with the kernel's own modules
(lib/modules/RELEASE). The project's modules cannot be built, so only rungs that need none of them
can be measured.
"""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from iopath.base.arch import ARCHES, X86_64, Arch
from iopath.base.cache import Cache, digest_file
from iopath.base.errors import UsageError
from iopath.kernels import own_modules
from iopath.kernels.apt import Apt
from iopath.kernels.built import Built, Step, built
from iopath.kernels.finder import Finder
from iopath.kernels.kernel import Kernel

NAMES = ("image:VMLINUZ[,MODULES]",)

# Increase this if this file makes other entries than before from the same inputs.
_RECIPE = 1

_VERSION_AT = 0x20E  # of x86, which alone has it: where the version is, less 0x200


@dataclass(frozen=True)
class ImageOnly(Kernel):
    """The kernel in the file *vmlinuz*, with the folder of its own *modules*."""

    vmlinuz: Path
    modules: Path | None
    arch: Arch

    @property
    def title(self) -> str:
        return self.vmlinuz.name

    @property
    def subject(self) -> str:
        return f"image {self.vmlinuz}"

    def prepare(self, cache: Cache, apt: Apt, step: Step) -> Built:
        step("reading the image", 0.0)
        own = self._own_modules()
        config = self._config()
        files = {"vmlinuz": self.vmlinuz, **own, **({"config": config} if config else {})}
        release = _release(self.vmlinuz) or (self.modules.name if self.modules else self.title)
        inputs = {
            "release": release, "recipe": _RECIPE,
            **{name: digest_file(path) for name, path in files.items()},
        }  # fmt: skip

        def make(folder: Path) -> None:
            (folder / "config").write_text("# unknown\n")
            for name, path in files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, folder / name)
            (folder / "build.log").write_text("")

        kept = cache.entry("image", inputs, make)
        return built(release, "", self.subject, kept, kept, arch=self.arch)

    def _own_modules(self) -> dict[str, Path]:
        base = self.modules
        if base is None:
            return {}
        found = [path for path in sorted(base.rglob("*.ko*")) if _is_wanted(path, base, self.arch)]
        found += [base / own_modules.BUILT_IN] if (base / own_modules.BUILT_IN).is_file() else []
        return {f"lib/modules/{path.relative_to(base)}": path for path in found}

    def _config(self) -> Path | None:
        """The configuration, if it lies beside the image or the modules."""
        release = _release(self.vmlinuz)
        places = [self.vmlinuz.with_name(name) for name in (f"config-{release}", "config")]
        places += [self.modules / "config"] if self.modules else []
        return next((path for path in places if path.is_file()), None)


def find(spec: str, finder: Finder) -> ImageOnly:
    name, _, folder = spec.partition(",")
    vmlinuz = Path(name).expanduser().absolute()
    modules = Path(folder).expanduser().absolute() if folder else None
    if not vmlinuz.is_file():
        raise UsageError(f"image:{spec}: {name}: no such file")
    if modules and not modules.is_dir():
        raise UsageError(f"image:{spec}: {folder}: no such folder")
    if modules and not any(modules.rglob("*.ko*")):
        raise UsageError(f"image:{spec}: {folder} has no modules (*.ko)")
    arch = _arch(vmlinuz)
    if arch is None:
        known = ", ".join(arch.name for arch in ARCHES)
        raise UsageError(
            f"image:{spec}: {name} is not a bootable kernel: must be a bzImage or an Image of"
            f" {known}"
        )
    return ImageOnly(vmlinuz, modules, arch)


def _is_wanted(path: Path, base: Path, arch: Arch) -> bool:
    """Whether a guest may need a module: one of the folders that are kept of every kernel, or one
    that does not lie as kernels install them."""
    inside = str(path.relative_to(base))
    if not inside.startswith("kernel/"):
        return True
    return any(
        inside.startswith((f"kernel/{part}/", f"kernel/{part}.ko"))
        for part in own_modules.module_parts(arch)
    )


def _arch(vmlinuz: Path) -> Arch | None:
    with vmlinuz.open("rb") as file:
        head = file.read(0x400)
    return next((arch for arch in ARCHES if _is_image(head, arch)), None)


def _is_image(head: bytes, arch: Arch) -> bool:
    """Whether a file that begins with *head* is a kernel of *arch*."""
    at, magic = arch.magic
    return head[at:].startswith(magic)


def _release(vmlinuz: Path) -> str:
    """The release in the header of a bzImage; empty if it has none."""
    with vmlinuz.open("rb") as file:
        head = file.read(0x10000)
    if not _is_image(head, X86_64):
        return ""
    at = int.from_bytes(head[_VERSION_AT : _VERSION_AT + 2], "little") + 0x200
    match = re.match(rb"[\w.+~-]+", head[at : at + 100])
    return match.group().decode() if match else ""
