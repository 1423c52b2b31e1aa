# SPDX-License-Identifier: GPL-2.0
"""What a result records of a kernel that was measured in a guest."""

from pathlib import Path

from iopath.kernels import elf
from iopath.kernels.built import Built
from iopath.measure.plan import CLOCKSOURCE
from iopath.results import kernelinfo
from iopath.results.result import ExactKernel
from iopath.rungs.runs import Settings


def describe(name: str, built: Built, records: dict[str, str], settings: Settings) -> ExactKernel:
    """Everything about the kernel and the guest that could explain a difference."""
    version = records["/proc/version"].strip()
    return ExactKernel(
        name=name,
        release=built.release,
        arch=built.arch.name,
        version=built.version,
        origin=built.origin,
        banner=version,
        compiler=kernelinfo.compiler(version),
        cpu_model=kernelinfo.cpu_model(records["/proc/cpuinfo"]),
        cmdline=records["/proc/cmdline"].strip(),
        clocksource=records[CLOCKSOURCE].strip(),
        config=kernelinfo.options(built.config.read_text()),
        digests=built.digests,
        modules={key: _modinfo(path) for key, path in built.modules.items()},
        zero_fill=settings.fill,
        coherent=settings.coherent,
        quiet_after_seconds=len(records["quiet"].splitlines()),
    )


def _modinfo(path: Path) -> dict[str, str]:
    """What modinfo reports about a module's build."""
    facts = elf.modinfo(path.read_bytes())
    kept = ("version", "srcversion", "vermagic", "iopath_shims")
    return {key: facts[key].strip() for key in kept if key in facts}
