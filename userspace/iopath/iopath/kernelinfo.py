# SPDX-License-Identifier: GPL-2.0
"""What is recorded of a kernel: its compiler, its configuration and the modules built for it."""

import re
import subprocess
from pathlib import Path
from typing import Any

from iopath import process
from iopath.build import Built
from iopath.plan import CLOCKSOURCE, Settings

# Config options that affect path length.
_MATTERS = re.compile(
    r"(?:PREEMPT\w*|HZ|NO_HZ\w*|CPU_MITIGATIONS|SPECULATION_MITIGATIONS|"
    r"RETPOLINE|RETHUNK|PAGE_TABLE_ISOLATION|CALL_DEPTH_TRACKING|SRSO|X86_KERNEL_IBT|CFI_CLANG|CFI"
    r"|BLK_CGROUP\w*|BLK_DEV_IO_TRACE|BLK_WBT|BUFFER_HEAD|FUNCTION_TRACER|HARDENED_USERCOPY"
    r"|INIT_ON_(?:ALLOC|FREE)_DEFAULT_ON|FORTIFY_SOURCE|RANDSTRUCT\w*|STACKPROTECTOR\w*|LSM"
    r"|DEBUG_LIST|LIST_HARDENED|SLUB_DEBUG|KASAN|LOCKDEP|PROVE_LOCKING|SECURITY|MEMCG"
    r"|CC_OPTIMIZE_FOR_\w+|LTO_\w+|AUTOFDO_CLANG|VIRT_CPU_ACCOUNTING_GEN|CONTEXT_TRACKING\w*)"
)
# Options that Kconfig sets by itself: properties of the tools and of the architecture, and the
# kernel's name.
_PROBES = re.compile(
    r"(?:CC|GCC|CLANG|AS|LLD|PAHOLE|RUSTC?|BINDGEN|TOOLS|HAS|HAVE|ARCH_HAS|ARCH_HAVE|ARCH_WANTS?"
    r"|ARCH_SUPPORTS|ARCH_USES?)_\w+|LD_(?!DEAD)\w+|\w+_VERSION|\w+_VERSION_TEXT|BUILD_SALT"
)
_OPTION = re.compile(r"(?:# )?CONFIG_(?:MITIGATION_)?(\w+)(?:=(.*)| is not set)")


def describe(
    name: str, built: Built, records: dict[str, str], settings: Settings
) -> dict[str, Any]:
    """Everything about the kernel and the guest that could explain a difference."""
    version = records["/proc/version"].strip()
    return {
        "name": name,
        "release": built.release,
        "arch": built.arch.name,
        "version": built.version,
        "origin": built.origin,
        "banner": version,
        "compiler": compiler(version),
        "cpu_model": cpu_model(records["/proc/cpuinfo"]),
        "cmdline": records["/proc/cmdline"].strip(),
        "clocksource": records[CLOCKSOURCE].strip(),
        "config": options(built.config.read_text()),
        "digests": built.digests,
        "modules": {key: _modinfo(path) for key, path in built.modules.items()},
        "zero_fill": settings.fill,
        "coherent": settings.coherent,
        "quiet_after_seconds": len(records["quiet"].splitlines()),
    }


def cpu_model(cpuinfo: str) -> str:
    """The CPU as the kernel names it, by numbers on arm64."""
    facts = dict(re.findall(r"^(\w[\w ]*?)\s*: (.*)$", cpuinfo, re.MULTILINE))
    if "CPU part" in facts:
        return f"implementer {facts['CPU implementer']}, part {facts['CPU part']}"
    return facts.get("model name", "unknown")


def compiler(banner: str) -> str:
    """The compiler of a kernel, from its /proc/version."""
    found = re.search(r"\(((?:\S*gcc|clang)[^()]*(?:\([^()]*\)[^(),]*)?)", banner)
    return found.group(1).strip() if found else "unknown"


def options(config: str) -> dict[str, str]:
    """A kernel's configuration, without options that describe the tools that compile it."""
    found = {}
    for match in filter(None, map(_OPTION.fullmatch, config.splitlines())):
        name, value = match.groups()
        if matters(name) or not _PROBES.fullmatch(name):
            found[name] = "n" if value is None else value.strip('"')
    return found


def matters(option: str) -> bool:
    """Whether an option affects path length."""
    return _MATTERS.fullmatch(option) is not None


def _modinfo(path: Path) -> dict[str, str]:
    """What modinfo says of a module's build."""
    output = subprocess.run(
        [process.need("modinfo", "kmod"), path], capture_output=True, text=True, check=False
    ).stdout
    facts = dict(line.split(":", 1) for line in output.splitlines() if ":" in line)
    kept = ("version", "srcversion", "vermagic", "iopath_shims")
    return {key: facts[key].strip() for key in kept if key in facts}
