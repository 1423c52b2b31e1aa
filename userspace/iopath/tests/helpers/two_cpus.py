# SPDX-License-Identifier: GPL-2.0
"""Guests of two CPUs that run in parallel, with a clock that does not count instructions.

QEMU before 8.1 may go on with an instruction that is no longer in memory, if one CPU changed it
while the other CPU translated it ("accel/tcg: Always lock pages before translation"). While a
kernel changes an instruction, it has an int3 there. If QEMU continues with that int3, the kernel
crashes or, with kprobes, repeats it for ever. A kernel changes most of its code while it starts. So
it starts with one CPU, and START puts the other CPU online.
"""

from dataclasses import dataclass, replace

from iopath.base.arch import X86_64, Arch
from iopath.guest.machine import Machine

START = "write /sys/devices/system/cpu/cpu1/online 1"


@dataclass(frozen=True)
class TwoCpus(Machine):
    """The hardware of such a guest."""

    # With page tables of five levels, KASAN takes an interrupt for a wild access if it comes while
    # a starting kernel counts its CPU's features again. Byte by byte, QEMU is slow to clear memory.
    cpu: str = "max,-la57,-erms,-fsrm"
    # In MiB: kmemleak searches KASAN's shadow of it, too.
    memory: int = 512
    # Freed pages are poisoned, so a program that reads one sees no zeroes. If the host is busy, the
    # timer's interrupts may come too late for the kernel's test of them, which ends in a panic.
    cmdline: str = "mitigations=off oops=panic page_poison=1 maxcpus=1 tsc=unstable no_timer_check"
    time_limit: int = 3600

    def on(self, arch: Arch) -> "TwoCpus":
        """The same for a kernel of an architecture, with a CPU of that architecture."""
        if arch == X86_64:
            return self
        cmdline = self.cmdline.replace(" tsc=unstable no_timer_check", "")
        return replace(self, arch=arch, cpu="", cmdline=cmdline)

    def processors(self) -> list[str]:
        return ["-accel", "tcg,thread=multi", "-smp", "2,sockets=2"]
