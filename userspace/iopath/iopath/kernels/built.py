# SPDX-License-Identifier: GPL-2.0
"""What a prepared kernel is."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from iopath.base.arch import X86_64, Arch
from iopath.base.cache import digest_file

Step = Callable[[str, float], None]  # what is being done, and how much of it is (0 to 1)
Entry = tuple[str, dict[str, object]]  # the kind of a cache entry, and the inputs it is known by


@dataclass(frozen=True)
class Built:
    """A kernel of architecture *arch* ready to boot, with the project's modules for it.

    *modules* are ours, by name; *own_modules* is the folder of the kernel's own (lib/modules/...).
    *digests* identify every file that takes part in a measurement. *warnings* are the compiler's,
    *notes* are for the user.
    """

    release: str
    version: str
    origin: str
    vmlinuz: Path
    config: Path
    modules: dict[str, Path]
    own_modules: Path | None
    digests: dict[str, str]
    warnings: list[str]
    arch: Arch = X86_64
    notes: tuple[str, ...] = ()

    @property
    def series(self) -> tuple[int, ...]:
        """The series that its release belongs to, e.g. (6, 1); empty if it does not say."""
        match = re.match(r"(\d+)\.(\d+)", self.release)
        return (int(match[1]), int(match[2])) if match else ()


def built(
    release: str, version: str, origin: str, image: Path, entry: Path, config: Path | None = None,
    arch: Arch = X86_64,
) -> Built:  # fmt: skip
    """A kernel that is kept in the folder *image*, with the modules in *entry*."""
    vmlinuz, config = image / "vmlinuz", config or image / "config"
    own = image / "lib"
    modules = {path.stem: path for path in sorted(entry.glob("*.ko"))}
    digests = {"vmlinuz": digest_file(vmlinuz), "config": digest_file(config)}
    digests |= {path.name: digest_file(path) for path in modules.values()}
    log = (entry / "build.log").read_text(errors="replace")
    warnings = [line for line in log.splitlines() if re.search(r"\bwarning\b", line, re.IGNORECASE)]
    warnings = [line for line in warnings if not line.startswith("perl: ")]
    return Built(
        release, version, origin, vmlinuz, config, modules, own if own.is_dir() else None,
        digests, warnings, arch,
    )  # fmt: skip
