# SPDX-License-Identifier: GPL-2.0
"""CPUs of our own: the same set of features in every version of QEMU.

QEMU's "max" has what its version can emulate, so it grows, and the kernel chooses other
instructions for it. The number in a CPU's name rises when its features change.
"""

from dataclasses import dataclass

from iopath.base.arch import OWN_CPU, Arch


@dataclass(frozen=True)
class CpuFeatures:
    """Features of x86-64 as QEMU names them, whether our CPU has them, and why."""

    names: str
    on: bool
    why: str


# Documentation/machine.rst has the same table.
FEATURES = (
    CpuFeatures(
        "fpu de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse"
        " sse2 syscall nx lm",
        True, "x86-64 itself",
    ),
    CpuFeatures(
        "pni ssse3 fma cx16 sse4-1 sse4-2 movbe popcnt xsave avx f16c bmi1 avx2 bmi2 lahf-lm abm",
        True, "x86-64-v3: servers since 2013, and what distributions build for",
    ),
    CpuFeatures(
        "smep smap umip pku",
        True, "protect the kernel and are in today's servers; smap has two instructions around"
        " each access to user memory",
    ),
    CpuFeatures("erms", True, "copies and fills are one string instruction"),
    CpuFeatures(
        "fsgsbase xsaveopt xgetbv1 rdtscp pdpe1gb arat clflushopt clwb",
        True, "shorten the kernel's entry, task switch, time and memory; in today's servers",
    ),
    CpuFeatures("pclmulqdq aes vaes adx rdrand", True, "checksums, encryption and random numbers"),
    CpuFeatures("hypervisor", True, "the kernel does not look for a real machine's devices"),
    CpuFeatures(
        "fsrm fsrs fzrm rdseed rdpid x2apic sha-ni wbnoinvd xsaveerptr",
        False, "QEMU 7.2 does not emulate them, QEMU 10 does",
    ),
    CpuFeatures(
        "pcid invpcid xsaves xsavec tsc-deadline gfni vpclmulqdq", False, "no QEMU emulates them",
    ),
    CpuFeatures("la57", False, "page tables have four levels, as on most servers"),
    CpuFeatures(
        "monitor svm npt vgif 3dnow 3dnowext mmxext sse4a mpx pks",
        False, "no path of an I/O uses them",
    ),
)  # fmt: skip

_X86_64 = ",".join(
    (
        "base,vendor=AuthenticAMD,family=26,model=2,stepping=1,model-id=iopath",
        "level=0xd,xlevel=0x80000008,phys-bits=46",
        *(f"{name}=on" for row in FEATURES if row.on for name in row.names.split()),
        "enforce=on",  # refuse to start if QEMU lacks one of them
    )
)


def qemu_name(model: str, arch: Arch) -> str:
    """What QEMU calls a CPU *model*: our own, or one of QEMU's."""
    if model != OWN_CPU:
        return model
    return _X86_64 if arch.cpu == OWN_CPU else arch.cpu


def table() -> str:
    """The features as a table of Documentation/machine.rst."""
    lines = [".. list-table::", "   :widths: 40 10 50", ""]
    for row in FEATURES:
        names = ", ".join(f"``{name}``" for name in row.names.split())
        lines += [f"   * - {names}", f"     - {'in' if row.on else 'out'}", f"     - {row.why}"]
    return "\n".join(lines)
