# SPDX-License-Identifier: GPL-2.0
"""What a kernel is, wherever it comes from."""

from pathlib import Path
from typing import Protocol, Self

from iopath.base.arch import Arch
from iopath.base.cache import Cache
from iopath.base.errors import UsageError
from iopath.kernels.apt import Apt
from iopath.kernels.built import Built, Entry, Step

# What a kernel must have built in: to run programs from an initramfs, to hand out their
# results, to load the project's modules and to name functions.
NEEDED = (
    "MODULES", "BINFMT_ELF", "BLK_DEV_INITRD", "DEVTMPFS", "PROC_FS", "SYSFS", "PCI", "BLOCK",
    "KALLSYMS",
)  # fmt: skip

# The cache entries that a prepared kernel consists of, and the digests of the packages that they
# are made from ("name=version").
Parts = tuple[tuple[Entry, ...], dict[str, str]]


class Kernel(Protocol):
    """A kernel that was found and can be prepared. It is a value that can be pickled.

    *title* is its name in messages."""

    arch: Arch
    title: str

    @property
    def subject(self) -> str:
        """More about it, in one line."""
        return ""

    def prepare(self, cache: Cache, apt: Apt, step: Step) -> Built:
        """Get or build the kernel on this machine, and build the project's modules for it."""
        ...

    def debug_info(self, built: Built, cache: Cache, apt: Apt, step: Step) -> Path:
        """The kernel that was *built* as an ELF file with its debug information."""
        raise UsageError(f"--inline: {self.title} has no debug information")

    # A worker of a cluster can prepare a kernel that has parts.

    def parts(self, cache: Cache, apt: Apt, step: Step) -> Parts | None:
        """What it consists of; None if only this machine can prepare it."""
        return None

    @property
    def place(self) -> str:
        """What a worker keeps for the next preparation: a repository, or a kernel's packages."""
        return self.title

    def here(self, cache: Cache) -> Self:
        """The same kernel, named by another machine, with the files of this one."""
        return self
