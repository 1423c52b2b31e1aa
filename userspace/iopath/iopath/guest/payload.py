# SPDX-License-Identifier: GPL-2.0
"""What a guest is given: what it boots from, then files and a plan."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from iopath.base.arch import X86_64, Arch
from iopath.base.cache import digest_file
from iopath.base.devices import Device
from iopath.base.programs import guest_program
from iopath.guest import cpio

_QUIET_LIMIT = 300  # seconds of the guest's time until background work must have ceased

KALLSYMS = "/proc/kallsyms"
QUIET = f"quiet {_QUIET_LIMIT}"  # the command that waits until background work has ceased


@dataclass(frozen=True)
class Start:
    """What a guest is booted from, and the commands that it carries out before it stops.

    *files*, by path, are those that an Image has no room for."""

    vmlinuz: Path
    # The kernel's own functions: reading them takes the guest longer than measuring a rung.
    commands: tuple[str, ...] = (f"file {KALLSYMS}", QUIET)
    files: dict[str, bytes] = field(default_factory=dict, hash=False)
    arch: Arch = X86_64

    @cached_property
    def digests(self) -> dict[str, str]:
        """What both are known by."""
        start = hashlib.sha256(self.initramfs()).hexdigest()
        return {"vmlinuz": digest_file(self.vmlinuz), "start": start}

    def initramfs(self) -> bytes:
        return cpio.archive(
            [
                cpio.char_device("dev/console", 5, 1),
                cpio.file("init", guest_program("init", self.arch).read_bytes(), 0o755),
                cpio.file("start", _lines(self.commands)),
                *(cpio.file(path, data, 0o755) for path, data in sorted(self.files.items())),
            ]
        )


@dataclass
class Image:
    """What a guest is given when it has started: files by path, the plan, and the emulator's
    devices (devices.py) that are plugged in, with the file *disk* if written data must be kept.
    """

    start: Start
    plan: list[str]
    files: dict[str, bytes] = field(default_factory=dict)
    devices: tuple[Device, ...] = ()
    disk: Path | None = None

    def payload(self) -> bytes:
        """All of it, as the guest reads it from the channel."""
        parts = [*sorted(self.files.items()), ("plan", _lines(self.plan))]
        return b"".join(b"/%s 0 %d\n%s" % (path.encode(), len(data), data) for path, data in parts)


def _lines(commands: Sequence[str]) -> bytes:
    return "".join(f"{command}\n" for command in commands).encode()
