# SPDX-License-Identifier: GPL-2.0
"""What is recorded of a kernel: its compiler, its configuration and the modules built for it."""

import re

# Config options that affect path length.
_MATTERS = re.compile(
    r"(?:PREEMPT\w*|HZ|NO_HZ\w*|CPU_MITIGATIONS|SPECULATION_MITIGATIONS|"
    r"RETPOLINE|RETHUNK|PAGE_TABLE_ISOLATION|CALL_DEPTH_TRACKING|SRSO|X86_KERNEL_IBT|CFI_CLANG|CFI"
    r"|BLK_CGROUP\w*|BLK_DEV_IO_TRACE|BLK_WBT|BUFFER_HEAD|FUNCTION_TRACER|HARDENED_USERCOPY"
    r"|INIT_ON_(?:ALLOC|FREE)_DEFAULT_ON|FORTIFY_SOURCE|RANDSTRUCT\w*|STACKPROTECTOR\w*|LSM"
    r"|DEBUG_LIST|LIST_HARDENED|SLUB_DEBUG|KASAN|LOCKDEP|PROVE_LOCKING|SECURITY|MEMCG"
    r"|CC_OPTIMIZE_FOR_\w+|LTO_\w+|AUTOFDO_CLANG|VIRT_CPU_ACCOUNTING_GEN|CONTEXT_TRACKING\w*)"
)
# Options that Kconfig sets itself: properties of the tools and of the architecture, and the
# kernel's name.
_PROBES = re.compile(
    r"(?:CC|GCC|CLANG|AS|LLD|PAHOLE|RUSTC?|BINDGEN|TOOLS|HAS|HAVE|ARCH_HAS|ARCH_HAVE|ARCH_WANTS?"
    r"|ARCH_SUPPORTS|ARCH_USES?)_\w+|LD_(?!DEAD)\w+|\w+_VERSION|\w+_VERSION_TEXT|BUILD_SALT"
)
_OPTION = re.compile(r"^(?:# )?CONFIG_(?:MITIGATION_)?(\w+)(=.*| is not set)$", re.MULTILINE)


def is_probe(option: str) -> bool:
    """Whether Kconfig sets an option itself, by the tools or the architecture."""
    return bool(_PROBES.fullmatch(option)) and not matters(option)


def cpu_model(cpuinfo: str) -> str:
    """The CPU as the kernel names it, by numbers on arm64."""
    facts = dict(re.findall(r"^(\w[\w ]*?)\s*: (.*)$", cpuinfo, re.MULTILINE))
    if "CPU part" in facts:
        return f"implementer {facts['CPU implementer']}, part {facts['CPU part']}"
    return facts.get("model name", "unknown")


def compiler(banner: str) -> str:
    """The compiler of a kernel, from its /proc/version."""
    found = re.search(r"\(((?:\S*gcc|(?:\w+ )?clang)[^(),]*(?:\([^()]*\)[^(),]*)?)", banner)
    return found.group(1).strip() if found else "unknown"


def options(config: str) -> dict[str, str]:
    """A kernel's configuration, without options that describe the tools that compile it."""
    found = {}
    for name, value in _OPTION.findall(config):
        if not is_probe(name):
            found[name] = value[1:].strip('"') if value[0] == "=" else "n"
    return found


def matters(option: str) -> bool:
    """Whether an option affects path length."""
    return _MATTERS.fullmatch(option) is not None
