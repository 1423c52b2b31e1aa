# SPDX-License-Identifier: GPL-2.0
"""The machine of a guest: its hardware, and the emulator that it runs in."""

import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from iopath.base import process
from iopath.base.arch import X86_64, Arch, this_machine
from iopath.base.cache import Cache, digest_file, digest_of
from iopath.base.devices import PORTS, Device, is_fixed, options
from iopath.base.errors import IopathError, Unreachable
from iopath.guest import cpus


@dataclass(frozen=True)
class Machine:
    """The guest's hardware: CPU model as QEMU names it (empty: the architecture's own), memory in
    MiB, kernel command line, and the seed of everything random in it."""

    cpu: str = ""
    memory: int = 1024
    cmdline: str = "nokaslr mitigations=off"
    seed: int = 1
    time_limit: int = 3600  # seconds of real time that a guest may take
    accel: str = "tcg"  # or kvm, where the clock is the host's
    cpus: int = 1
    arch: Arch = X86_64
    emulator: str = ""  # the Debian suite whose QEMU it runs in; empty: the installed one
    ports: int = 0  # of PCI Express, that devices can be plugged into while it runs
    devices: tuple[str, ...] = ()  # of QEMU that it has besides, as -device takes them
    disks: tuple[Device, ...] = ()  # of rungs, on controllers that it has
    real_time: bool = False  # while idle, its clock is the host's: for a device with a file's data
    shift: int = 0  # its clock advances by 2^N ns with each instruction
    cpu_limit: int = 0  # seconds of the emulator's CPU time that it may take; 0: any number

    @property
    def model(self) -> str:
        """The CPU model. With KVM, the processor's own features are used."""
        return self.cpu or (self.arch.cpu if self.exact else "max")

    @property
    def qemu_cpu(self) -> str:
        """The CPU model as QEMU takes it."""
        return f"{cpus.qemu_name(self.model, self.arch)}{self.arch.cpu_options}"

    def on(self, arch: Arch) -> "Machine":
        """The same for a kernel of an architecture."""
        return replace(self, arch=arch)

    def that_takes(self, devices: Sequence[Device]) -> "Machine":
        """The same with what the *devices* of a rung need: ports to plug them in, or themselves."""
        fixed = tuple(device for device in devices if is_fixed(device))
        return replace(self, ports=PORTS if devices else 0, disks=fixed)

    @property
    def exact(self) -> bool:
        """Whether the guest's clock counts instructions."""
        return self.accel == "tcg"

    def inputs(self) -> dict[str, object]:
        """The properties that a guest's figures and its state depend on."""
        left_out = {"time_limit", "cpu_limit", "arch", "emulator", "real_time", "shift"}
        left_out |= {
            name
            for name, usual in (("cpus", 1), ("ports", 0), ("devices", ()), ("disks", ()))
            if vars(self)[name] == usual
        }
        found = {name: value for name, value in vars(self).items() if name not in left_out}
        return found | {"cpu": self.model}

    def processors(self) -> list[str]:
        """QEMU's options for the CPUs: one, whose clock counts its instructions, or several that
        take turns and share the clock. Each has a socket: where a kernel has no ACPI, the firmware
        tells it of one CPU in each."""
        if not self.exact:
            return ["-accel", self.accel, "-smp", "1"]
        cpus = f"{self.cpus},sockets={self.cpus}" if self.cpus > 1 else "1"
        sleep = "on" if self.real_time else "off"
        return ["-accel", "tcg", "-icount", f"shift={self.shift},sleep={sleep}", "-smp", cpus]

    def besides(self) -> list[str]:
        """QEMU's options for its own devices: an IOMMU must be there before what it maps for."""
        own = [word for device in self.devices for word in ("-device", device)]
        return [*own, *options(self.disks)]

    def slots(self) -> list[str]:
        """QEMU's options for the ports, whose buses are port0, port1 and so on."""
        return [
            word
            for number in range(self.ports)
            for word in ("-device", f"pcie-root-port,id=port{number},chassis={number + 1}")
        ]

    def ram(self, file: Path, *, saved: bool) -> list[str]:
        """QEMU's options for the memory, which is *file*. What is written stays in QEMU, unless it
        is to be *saved*, or read at the end as that of several CPUs is."""
        share = "on" if saved or self.cpus > 1 else "off"
        backend = f"memory-backend-file,id=ram,size={self.memory}M,share={share},mem-path={file}"
        return ["-object", backend, "-machine", f"{self.arch.machine},memory-backend=ram"]

    @property
    def parameters(self) -> str:
        """The kernel's command line. The kernel boots on one CPU: while several start, it waits for
        them by the clock, which does not advance then. Slab caches are not merged, so a cache
        identifies the structure of its objects."""
        if self.cpus == 1:
            return self.cmdline
        words = (self.cmdline, "maxcpus=1", self.arch.cmdline_several, "slab_nomerge")
        return " ".join(filter(None, words))


def check_host() -> None:
    """Refuse a machine that guests do not run on: the tools that build for them need x86_64."""
    if (machine := this_machine()) != X86_64:
        raise IopathError(
            f"this machine is {machine.name}: guests need x86_64; host can be measured here"
        )


@dataclass(frozen=True)
class Qemu:
    """The emulator: the words that start it, its version ("7.2.22"), and a digest of its program,
    accelerator and firmware.

    *sandbox* are its options that forbid it system calls, if it was built with them.
    """

    words: tuple[str, ...]
    version: str
    digest: str
    sandbox: tuple[str, ...] = ()

    @classmethod
    def find(cls, arch: Arch = X86_64, cache: Cache | None = None) -> "Qemu":
        """The installed emulator of an architecture; see started_by() for the *cache*."""
        check_host()
        path = Path(process.need(arch.qemu, arch.qemu_package))
        return cls.started_by((str(path),), path, arch, cache)

    @classmethod
    def started_by(
        cls, words: tuple[str, ...], path: Path, arch: Arch, cache: Cache | None = None
    ) -> "Qemu":
        """The emulator of an architecture whose program is *path* and which *words* start.

        The *cache* keeps what it says of itself, and the digest of its program. A command that
        finds its answer in the cache takes a tenth longer if it starts the emulator, and another
        tenth if it reads it."""
        said = _remember(words, path, cache) if cache else _ask(words, path)
        digest = _digest(said, path, arch)
        return cls(words, said.version, digest, tuple(said.sandbox))


# It has the machines that guests run on.
_OLDEST = (7, 2)

# A guest's kernel is not trusted. QEMU starts no program and changes no user or scheduler.
_SANDBOX = ("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny")

_ACCELERATORS = ("lib/qemu", "lib64/qemu", "lib/*/qemu")
_SAID = "said.json"


@dataclass(frozen=True)
class _Said:
    """What an emulator says: its version, the options of its sandbox, and the folders of its
    firmware; and the digest of its program."""

    version: str
    sandbox: Sequence[str]
    folders: list[str]
    program: str


def _ask(words: tuple[str, ...], path: Path) -> _Said:
    """Start the emulator, so that it says that."""
    text = subprocess.run([*words, "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"version (\d+(?:\.\d+)+)", text.stdout)
    if not match:
        complaint = (text.stderr or text.stdout).strip().splitlines()
        raise IopathError(f"{path} does not run: {complaint[0] if complaint else 'no output'}")
    if tuple(map(int, match.group(1).split(".")[:2])) < _OLDEST:
        raise IopathError(f"{path} is version {match.group(1)}: 7.2 or newer is needed")
    sandbox = _SANDBOX
    found = _data_folders(*words, *sandbox)
    if found.returncode:
        sandbox = ()
        found = _data_folders(*words)
    folders = found.stdout.splitlines()
    return _Said(match.group(1), sandbox, folders, digest_file(path.resolve()))


def _remember(words: tuple[str, ...], path: Path, cache: Cache) -> _Said:
    """What the emulator says, or said while its program was the same file."""
    program = path.resolve()
    status = program.stat()
    state = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
    inputs = {"words": words, "program": [str(program), *state]}

    def make(folder: Path) -> None:
        (folder / _SAID).write_text(json.dumps(asdict(_ask(words, path))))

    try:
        entry = cache.entry("qemu", inputs, make)
    except Unreachable:
        return _ask(words, path)  # the cache cannot be written
    return _Said(**json.loads((entry / _SAID).read_text()))


def _data_folders(*words: str) -> subprocess.CompletedProcess[str]:
    """Have QEMU print the folders of its firmware."""
    return subprocess.run([*words, "-L", "help"], capture_output=True, text=True, check=False)


def _digest(said: _Said, path: Path, arch: Arch) -> str:
    """One digest of QEMU's program, its accelerator (a separate library on some distributions) and
    its firmware, which is in the first of the folders that has it."""
    program = path.resolve()
    parts = {"program": said.program}
    for folder in map(Path, reversed(said.folders)):
        for name in arch.firmware:
            if (folder / name).is_file():
                parts[name] = digest_file(folder / name)
    for pattern in _ACCELERATORS:
        for library in program.parent.parent.glob(f"{pattern}/accel-tcg-{arch.name}.so"):
            parts[library.name] = digest_file(library)
    return digest_of(parts)
