# SPDX-License-Identifier: GPL-2.0
"""Root file systems of a Debian suite, and commands that run in one of them."""

from collections.abc import Callable, Sequence
from pathlib import Path

from iopath.base import process
from iopath.base.cache import Cache
from iopath.kernels.apt import Apt
from iopath.kernels.built import Step
from iopath.kernels.unpack import new_root, unpack

# What a kernel's build system runs, besides the compiler that the headers depend on.
_TOOLS = (
    "bash", "binutils", "coreutils", "dash", "findutils", "gawk", "grep", "make", "perl",
    "python3", "sed",
)  # fmt: skip

# Increase this if this file makes other entries than before from the same inputs.
_RECIPE = 1


def root(
    what: str, packages: Sequence[str], inputs: dict[str, object],
    suite: str, cache: Cache, apt: Apt, step: Step, others: Callable[[], list[Path]] = list,
) -> Path:  # fmt: skip
    """A root file system of a suite that holds *packages*, which are *what*, _TOOLS, and the
    packages that *others* fetches. The file "packages" in it lists all by their full names."""

    def make(folder: Path) -> None:
        wanted = [*packages, *_TOOLS]
        debs = apt.closure(wanted, suite)
        apt.download(wanted, suite, closure=True, progress=lambda p: step(f"downloading {what}", p))
        new_root(folder)
        for number, deb in enumerate([*map(apt.deb, debs), *others()]):
            process.check_stopped()
            step(f"unpacking {what}", number / len(debs))
            unpack(deb, folder)
        # The package's scripts, which are not run, make this link otherwise.
        (folder / "usr/bin/awk").symlink_to("gawk")
        for name in ("proc", "dev", "tmp", "src", "build", "ccache", "modules"):
            (folder / name).mkdir(exist_ok=True)
        (folder / "packages").write_text("".join(f"{deb}\n" for deb in debs))

    inputs = {**inputs, "suite": suite, "tools": _TOOLS, "recipe": _RECIPE}
    return cache.entry("root", inputs, make)


def sandbox(at: Path, *words: str | Path) -> list[str | Path]:
    """The beginning of a command that runs in the root file system *at*, which it cannot change,
    without a network; *words* are further options of bwrap."""
    return [
        process.need("bwrap", "bubblewrap"),
        "--ro-bind", at, "/",
        "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", *words,
        "--unshare-all", "--die-with-parent", "--clearenv",
        "--setenv", "PATH", "/usr/bin:/usr/sbin", "--setenv", "LC_ALL", "C",
        "--setenv", "KBUILD_BUILD_USER", "iopath", "--setenv", "KBUILD_BUILD_HOST", "iopath",
    ]  # fmt: skip
