# SPDX-License-Identifier: GPL-2.0
"""Devices of the emulator that are plugged into a running guest.

A device is a driver of QEMU with its properties, as -device has them. A device without a bus gets a
PCI Express port of its own (Machine.ports). The property drive names its disk: 1 GiB of zeroes that
stores nothing and takes no CPU time (null-co), or a file of the host.

A disk of zeroes answers LATENCY after it was asked, by the host's clock. This is longer than the
kernel needs until the task sleeps, so that each I/O ends by an interrupt of a waiting guest. The
latency is in no figure: a waiting guest executes only its idle loop.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

Value = str | int | bool
Device = tuple[tuple[str, Value], ...]  # properties, "driver" among them

PORTS = 4  # of a machine that devices are plugged into
LATENCY = 300_000  # ns

_SIZE = 1 << 30  # bytes of a disk


def commands(
    devices: Sequence[Device], disk: Path | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The commands of QMP, with their arguments, that plug the devices in. Their disk keeps what is
    written in the file *disk*, if there is one."""
    ports = iter(range(PORTS))
    for device in devices:
        properties = dict(device)
        if "drive" in properties:
            zeroes = {"size": _SIZE, "latency-ns": LATENCY, "read-zeroes": True}
            kept = {"filename": str(disk)}
            driver = {"driver": "file", **kept} if disk else {"driver": "null-co", **zeroes}
            yield "blockdev-add", {"node-name": properties["drive"], **driver}
        if "bus" not in properties:
            properties["bus"] = f"port{next(ports)}"
        yield "device_add", properties
