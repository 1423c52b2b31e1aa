# SPDX-License-Identifier: GPL-2.0
"""What a guest needs besides the tested code: programs of packages, and a kernel's own modules."""

from collections.abc import Sequence

from iopath.base.arch import X86_64, Arch
from iopath.kernels.modules import exists, uncompressed, with_dependencies
from iopath.kernels.sources.debian import DebianKernel
from iopath.measure import packages
from iopath.measure.session import Session


def package(
    session: Session, name: str, *programs: str, arch: Arch = X86_64
) -> tuple[str, dict[str, bytes]]:
    """A package's version, and the files that its *programs* need in a guest."""
    version, files = packages.files(session.cache, session.apt.of(arch), name, *programs)
    return version, {path: file.read_bytes() for path, file in files.items()}


def modules(session: Session, kernel: DebianKernel, names: Sequence[str]) -> dict[str, bytes]:
    """The kernel's modules *names* and what they depend on, in the order in which they are loaded.
    What the kernel has built in, or does not have, is left out."""
    built = kernel.prepare(session.cache, session.apt, lambda what, part: None)
    return {
        path.name.split(".")[0]: uncompressed(path)
        for name in names
        if exists(name, built)
        for path in with_dependencies(name, built)
    }
