# SPDX-License-Identifier: GPL-2.0
"""Boot a kernel in a sealed guest, let it carry out a plan, and fetch what it recorded.

The guest is QEMU's software emulation of one CPU with -icount: its clock advances one nanosecond
per instruction, so a duration measured inside is a number of instructions. It sees nothing of the
host: no network, no disk, a fixed date and a fixed seed for its random numbers.

The plan's commands and the layout of the result channel are described in userspace/guest/init.c.
"""

import errno
import mmap
import os
import re
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from iopath import cpio, process
from iopath.cache import digest_file, out_of_space
from iopath.errors import IopathError

_CHANNEL = struct.Struct("<8sQII")  # magic, length, state, records
_MAGIC = b"iopath 1"
_CHANNEL_SIZE = 64 << 20
_DONE = 2
_NO_KVM = "--accel kvm: /dev/kvm is there, but no guest starts in it"
_KVM_START = 15  # seconds until the guest must have said something

_TROUBLE = re.compile(
    r"Kernel panic[^\n]*|(?:BUG|Oops|WARNING): [^\n]*|Out of memory[^\n]*|^init: [^\n]*",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Machine:
    """The guest's hardware: CPU model as QEMU names it, memory in MiB, kernel command line, and the
    seed of all that is random in it."""

    cpu: str = "max"
    memory: int = 1024
    cmdline: str = "nokaslr mitigations=off"
    seed: int = 1
    time_limit: int = 600  # seconds of real time that a boot may take
    accel: str = "tcg"  # or kvm, where the clock is the host's

    @property
    def exact(self) -> bool:
        """Whether the guest's clock counts instructions."""
        return self.accel == "tcg"

    def processors(self) -> list[str]:
        """QEMU's options for the CPUs: one, whose clock counts its instructions."""
        if not self.exact:
            return ["-accel", self.accel, "-smp", "1"]
        return ["-accel", "tcg", "-icount", "shift=0,sleep=off", "-smp", "1"]


class GuestError(IopathError):
    """A guest did not carry out its plan; *records* is what it recorded before."""

    def __init__(self, text: str, records: "list[Record]") -> None:
        super().__init__(text)
        self.records = records


@dataclass
class Record:
    """What one command of the plan left: its name, exit status and output."""

    name: str
    status: int
    data: bytes


@dataclass
class Image:
    """What the guest is booted from: the kernel, and the files of its initramfs by path."""

    vmlinuz: Path
    plan: list[str]
    files: dict[str, bytes] = field(default_factory=dict)

    def initramfs(self) -> bytes:
        entries = [
            cpio.char_device("dev/console", 5, 1),
            cpio.file("plan", "\n".join(self.plan).encode() + b"\n"),
            *(cpio.file(name, data, 0o755) for name, data in sorted(self.files.items())),
        ]
        return cpio.archive(entries)


@dataclass(frozen=True)
class Qemu:
    """The emulator, its version ("7.2.22") and the digest of its program."""

    path: str
    version: str
    digest: str

    @classmethod
    def find(cls) -> "Qemu":
        path = process.need("qemu-system-x86_64", "qemu-system-x86")
        text = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        match = re.search(r"version (\d+(?:\.\d+)+)", text.stdout)
        if not match:
            complaint = (text.stderr or text.stdout).strip().splitlines()
            raise IopathError(f"{path} does not run: {complaint[0] if complaint else 'no output'}")
        if int(match.group(1).split(".")[0]) < 7:
            raise IopathError(f"{path} is version {match.group(1)}: 7.2 or newer is needed")
        return cls(path, match.group(1), digest_file(Path(path).resolve()))


def command(
    qemu: Qemu,
    machine: Machine,
    vmlinuz: Path,
    folder: Path,
    plugin: Path | None = None,
    lines: int = 0,
) -> list[str]:
    """The QEMU command line; *folder* holds the initramfs, the channel and the console's log, and
    gets the counts of *plugin*."""
    counting = ["-plugin", f"{plugin},out={folder}/counts,lines={lines}"] if plugin else []
    return [
        qemu.path,
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-machine", "q35,usb=off,vmport=off",
        *machine.processors(),
        "-cpu", machine.cpu, "-m", f"{machine.memory}M",
        "-seed", str(machine.seed), "-rtc", "base=2026-01-01T00:00:00,clock=vm",
        "-serial", f"file:{folder}/console.log",
        "-object", f"memory-backend-file,id=channel,size={_CHANNEL_SIZE},share=on,"
                   f"mem-path={folder}/channel",
        "-device", "ivshmem-plain,memdev=channel",
        "-kernel", str(vmlinuz), "-initrd", f"{folder}/initramfs",
        # With a single CPU the kernel would turn locked instructions into plain ones.
        "-append", f"console=ttyS0 panic=-1 noreplace-smp {machine.cmdline}",
        *counting,
    ]  # fmt: skip


def boot(
    qemu: Qemu,
    machine: Machine,
    image: Image,
    log: Path,
    progress: Callable[[int], None] = lambda records: None,
    plugin: Path | None = None,
    lines: int = 0,
) -> tuple[list[Record], bytes]:
    """Boot and wait for the end of the plan: its records, and what *plugin* counted,
    cache lines in the first *lines* rounds of each region.

    *log* gets the console; *progress* is told how many records there are. Raises GuestError that
    names the log if the plan was not carried out."""
    with (
        out_of_space(f"cannot run a guest in {tempfile.gettempdir()}"),
        tempfile.TemporaryDirectory(prefix="iopath-") as name,
    ):
        folder = Path(name)
        (folder / "initramfs").write_bytes(image.initramfs())
        with (folder / "channel").open("wb") as channel:
            # Not a hole: where there is no room for one, writing to mapped memory is deadly.
            os.posix_fallocate(channel.fileno(), 0, _CHANNEL_SIZE)

        def watch(memory: mmap.mmap, began: float) -> None:
            magic, _, _, count = _CHANNEL.unpack_from(memory)
            if machine.accel == "kvm" and magic != _MAGIC:
                _check_kvm(folder / "qemu.log", time.monotonic() - began)
            progress(count)

        try:
            with (
                (folder / "channel").open("rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory,
            ):
                status: int | None = None
                began = time.monotonic()
                try:
                    status = process.run(
                        command(qemu, machine, image.vmlinuz, folder, plugin, lines),
                        output=folder / "qemu.log",
                        timeout=machine.time_limit,
                        poll=lambda: watch(memory, began),
                    )
                except subprocess.TimeoutExpired:
                    status = None
                state, records = _read_channel(memory)
        finally:
            log.parent.mkdir(parents=True, exist_ok=True)
            console = folder / "console.log"
            if console.exists():
                shutil.copyfile(console, log)
            else:
                log.write_bytes(b"")
        complaint = process.last_line(folder / "qemu.log", "")
        if state == _DONE:
            counts = folder / "counts"
            if plugin and not counts.exists():
                raise IopathError(f"pathcount wrote nothing: {complaint or 'no complaint'}")
            return records, counts.read_bytes() if plugin else b""
    what = _diagnose(status, complaint, records, log, machine)
    raise GuestError(f"{what} (console: {log})", records)


def need_kvm() -> None:
    """Complain if there is no KVM; whether it runs guests, only a guest can tell."""
    try:
        os.close(os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        what = {
            errno.ENOENT: "there is no /dev/kvm: no virtualisation, or not switched on",
            errno.EACCES: "/dev/kvm may not be used: be root, or of the group kvm",
        }.get(error.errno or 0, f"/dev/kvm: {error.strerror}")
        raise IopathError(f"--accel kvm: {what}; without it, guests run in emulation") from error


def _check_kvm(log: Path, seconds: float) -> None:
    """Complain if a guest that has not said anything yet never will."""
    said = log.read_text(errors="replace") if log.exists() else ""
    if "KVM internal error" in said or seconds > _KVM_START:
        errors = [line for line in said.splitlines() if "error" in line]
        raise IopathError(f"{_NO_KVM}: {(errors or [f'it is silent for {_KVM_START} s'])[0]}")


def _read_channel(memory: mmap.mmap) -> tuple[int, list[Record]]:
    magic, length, state, _ = _CHANNEL.unpack_from(memory)
    if magic != _MAGIC:
        return 0, []
    records = []
    at, end = _CHANNEL.size, _CHANNEL.size + length
    while at < end:
        head = memory.find(b"\n", at, end)
        name, status, size = memory[at:head].decode(errors="replace").rsplit(" ", 2)
        at = head + 1 + int(size)
        records.append(Record(name, int(status), memory[head + 1 : at]))
    return state, records


def _diagnose(
    status: int | None, complaint: str, records: list[Record], log: Path, machine: Machine
) -> str:
    """Why a guest did not finish, on one line."""
    if records and records[-1].name == "error":
        what = records[-1].data.decode(errors="replace")
        if len(records) > 1 and records[-2].status:
            output = records[-2].data.decode(errors="replace")
            what += _first_error(output) or _last_complaint(log)
        return f"the guest failed: {what}"
    if status is None:
        return f"the guest did not end within {machine.time_limit} s"
    if status:
        if machine.accel == "kvm" and not records:
            return f"{_NO_KVM}: {complaint}"
        return f"QEMU ended with status {status}: {complaint or 'it said nothing'}"
    trouble = _TROUBLE.search(log.read_text(errors="replace"))
    if trouble:
        return f"the guest crashed: {trouble.group(0).strip()}"
    return "the guest ended before its plan did"


def _first_error(output: str) -> str:
    match = re.search(r'"message":\s*"([^"]*)"', output)
    return f": {match.group(1)}" if match else ""


def _last_complaint(log: Path) -> str:
    """What ioloop had to say on the console."""
    found = re.findall(r"^ioloop: (.*)$", log.read_text(errors="replace"), re.MULTILINE)
    return f": {found[-1].strip()}" if found else ""


def cpu_count() -> int:
    """How many guests may run side by side: one per CPU that we may use."""
    return len(os.sched_getaffinity(0))
