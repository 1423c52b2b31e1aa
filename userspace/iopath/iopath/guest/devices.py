# SPDX-License-Identifier: GPL-2.0
"""Devices of the emulator that are plugged into a running guest.

A device is a driver of QEMU with its properties, as -device has them. One that says no bus has a
port of PCI Express of its own (Machine.ports). The property drive names its disk, which is made for
it: 1 GiB of zeroes that keep nothing and need no processor (null-co).

A disk answers LATENCY after it was asked, by the host's clock. This is longer than the kernel needs
until the task sleeps, so that each I/O ends by an interrupt of a guest that waits. Not even a busy
host makes it shorter. How long it is enters no figure: a guest that waits executes nothing.
"""

from collections.abc import Iterator, Sequence
from typing import Any

Value = str | int | bool
Device = tuple[tuple[str, Value], ...]  # properties, "driver" among them

PORTS = 4  # of a machine that devices are plugged into
LATENCY = 300_000  # ns

_SIZE = 1 << 30  # bytes of a disk


def commands(devices: Sequence[Device]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The commands of QMP, with their arguments, that plug the devices in."""
    ports = iter(range(PORTS))
    for device in devices:
        properties = dict(device)
        if "drive" in properties:
            disk = {"node-name": properties["drive"], "size": _SIZE, "latency-ns": LATENCY}
            yield "blockdev-add", {"driver": "null-co", "read-zeroes": True, **disk}
        if "bus" not in properties:
            properties["bus"] = f"port{next(ports)}"
        yield "device_add", properties
