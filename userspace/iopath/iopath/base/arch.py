# SPDX-License-Identifier: GPL-2.0
"""Everything in the package that depends on an architecture, as a table.

Outside of the package, the system calls and the cycle counter are in userspace/ioloop/arch, the
marker in kernel/include/iopath/marker.h and the plugin's decoders in userspace/pathcount/arch, a
file each.
"""

import platform
from dataclasses import dataclass

from iopath.base.errors import IopathError

OWN_CPU = "iopath-1"  # guest/cpus.py has what it is of x86-64; elsewhere it is the usual model


@dataclass(frozen=True)
class Arch:
    """An architecture, by the name that QEMU has for it."""

    name: str

    # The emulator.
    qemu: str  # its program
    qemu_package: str  # the Debian package that has it
    firmware_package: str  # and the one that has its firmware
    machine: str  # its machine type, with options
    cpu: str  # its CPU model, unless --cpu says otherwise; OWN_CPU if that is one of our own
    cpu_options: str  # added to every CPU model
    firmware: tuple[str, ...]  # files that QEMU loads for our guests besides its program
    resumes: bool  # whether a saved state has all that a guest needs
    boot_shift: int  # a guest that is saved boots with a clock of 2^N ns for each instruction
    cmdline: str  # what the kernel's command line begins with
    cmdline_several: str  # and what is added on a machine with several CPUs

    # The kernel.
    source: str  # its folder below arch/ in the source tree, which is the Makefile's ARCH
    modules: tuple[str, ...]  # folders in it with modules that a guest may need
    image: str  # the file that boots, in a built tree
    magic: tuple[int, bytes]  # where its header has a magic number, and that
    target: str  # the make target that builds it
    option: str  # the configuration option of its kernels
    options: tuple[str, ...]  # other options that must be built in
    console: tuple[str, ...]  # the option of the console's driver, and that of its console
    syscall_prefix: str  # what the functions of system calls begin with
    exceptions: tuple[str, ...]  # prefixes of the functions that exceptions enter; none if they
    # enter a table of vectors
    calls: tuple[str, ...]  # the same for interrupts of CPUs that call each other; if all
    # interrupts enter by one vector, prefixes of functions that only such interrupts execute
    paging: str  # the format of its page tables (counts/paging.py); empty if that is not known, so
    # that a guest has one CPU only
    programs: bool  # whether the plugin follows its system calls, so that programs are counted
    sata: bool  # whether its machine has a SATA controller
    tick: str  # the function of the timer's interrupt; empty: no device can be waited for
    clock: str  # the clock source that programs read without a system call

    # Programs and packages.
    debian: str  # Debian's name of it
    elf: int  # its number in ELF files
    hosts: bool  # whether iopath runs on such a machine, and not in its guests only
    triplet: str  # the name of its libraries and compilers
    loader: str  # the dynamic linker, as programs ask for it

    def is_exception(self, address: int, function: str) -> bool:
        """Whether what enters the kernel at *address* in *function* is an exception and not an
        interrupt. In a table of vectors, the first of each four is for exceptions."""
        if self.exceptions:
            return function.startswith(self.exceptions)
        return address % _VECTORS == 0


_VECTORS = 4 * 128

X86_64 = Arch(
    name="x86_64",
    qemu="qemu-system-x86_64",
    qemu_package="qemu-system-x86",
    firmware_package="seabios",
    machine="pc-q35-7.2,usb=off,vmport=off",
    cpu=OWN_CPU,
    cpu_options="",
    firmware=("bios-256k.bin", "kvmvapic.bin", "linuxboot_dma.bin", "pvh.bin"),
    resumes=True,
    # The kernel calibrates its timer in a loop of 100 ms. With more ns for each instruction, the
    # loop has fewer instructions, but the timer's ticks take more of the boot.
    boot_shift=3,
    # With a single CPU the kernel would turn locked instructions into plain ones. Tests of ciphers
    # take a quarter of a boot of 7.2.
    cmdline="console=ttyS0 panic=-1 noreplace-smp cryptomgr.notests",
    cmdline_several="tsc=reliable",  # the CPUs have one time stamp counter
    source="x86",
    modules=("crypto",),
    image="arch/x86/boot/bzImage",
    magic=(0x202, b"HdrS"),  # of the boot protocol 2.00 and later
    target="bzImage",
    option="X86_64",
    options=("SERIAL_8250_CONSOLE",),
    console=("SERIAL_8250", "SERIAL_8250_CONSOLE"),
    syscall_prefix="__x64_sys_",
    exceptions=("asm_exc_", "exc_"),
    calls=("asm_sysvec_call_function",),
    paging="x86",
    programs=True,
    sata=True,
    tick="sysvec_apic_timer_interrupt",
    clock="tsc",
    debian="amd64",
    elf=62,
    hosts=True,
    triplet="x86_64-linux-gnu",
    loader="lib64/ld-linux-x86-64.so.2",
)

AARCH64 = Arch(
    name="aarch64",
    qemu="qemu-system-aarch64",
    qemu_package="qemu-system-arm",
    firmware_package="qemu-system-data",
    machine="virt-7.2,gic-version=3",
    # It has atomic instructions, as today's servers do, and no pointer authentication, which is
    # slow to emulate.
    cpu="neoverse-n1",
    cpu_options=",cntfrq=1000000000",  # the counter ticks once per nanosecond, so per instruction
    firmware=(),
    resumes=True,
    boot_shift=0,
    # With a random offset of the stack, memset() takes more or fewer instructions to align.
    cmdline="console=ttyAMA0 panic=-1 randomize_kstack_offset=off cryptomgr.notests",
    cmdline_several="",
    source="arm64",
    modules=("crypto", "lib"),  # btrfs of 6.1 and 6.12 needs xor-neon
    image="arch/arm64/boot/Image",
    magic=(0x38, b"ARM\x64"),
    target="Image",
    option="ARM64",
    options=("SERIAL_AMBA_PL011_CONSOLE", "PCI_HOST_GENERIC"),
    console=("SERIAL_AMBA_PL011", "SERIAL_AMBA_PL011_CONSOLE"),
    syscall_prefix="__arm64_sys_",
    exceptions=(),
    calls=("generic_smp_call_function_",),
    paging="arm64",
    programs=True,
    sata=False,
    tick="arch_timer_handler_virt",
    clock="arch_sys_counter",
    debian="arm64",
    elf=183,
    hosts=True,
    triplet="aarch64-linux-gnu",
    loader="lib/ld-linux-aarch64.so.1",
)

RISCV64 = Arch(
    name="riscv64",
    qemu="qemu-system-riscv64",
    qemu_package="qemu-system-misc",
    firmware_package="opensbi",
    machine="virt",
    cpu="rv64",
    cpu_options="",
    firmware=("opensbi-riscv64-generic-fw_dynamic.bin",),
    resumes=False,  # QEMU 7.2 does not save when the CPU's timer fires
    boot_shift=0,
    cmdline="console=ttyS0 panic=-1 cryptomgr.notests",
    cmdline_several="",
    source="riscv",
    modules=("crypto", "lib"),
    image="arch/riscv/boot/Image",
    magic=(0x38, b"RSC\x05"),
    target="Image",
    option="RISCV",
    options=("SERIAL_8250_CONSOLE", "SERIAL_OF_PLATFORM", "PCI_HOST_GENERIC", "RISCV_PMU_SBI"),
    console=("SERIAL_8250", "SERIAL_8250_CONSOLE"),
    syscall_prefix="__riscv_sys_",
    exceptions=("do_trap_", "do_page_fault"),  # all enter by handle_exception
    calls=("generic_smp_call_function_",),
    paging="",
    programs=False,
    sata=False,
    tick="",
    clock="riscv_clocksource",
    debian="riscv64",
    elf=243,
    hosts=False,
    triplet="riscv64-linux-gnu",
    loader="lib/ld-linux-riscv64-lp64d.so.1",
)

ARCHES = (X86_64, AARCH64, RISCV64)
ARCH_NAMES = tuple(arch.name for arch in ARCHES)
BY_DEBIAN = {arch.debian: arch for arch in ARCHES}


def named(name: str) -> Arch:
    """The architecture of that name."""
    return next(arch for arch in ARCHES if arch.name == name)


def this_machine() -> Arch:
    """The architecture of this machine."""
    name = platform.machine()
    known = [arch.name for arch in ARCHES if arch.hosts]
    if name not in known:
        raise IopathError(f"this machine is {name}: must be {' or '.join(known)}")
    return named(name)
