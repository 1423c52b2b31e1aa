# SPDX-License-Identifier: GPL-2.0
"""Devices of the emulator that are plugged into a running guest.

A device is a driver of QEMU with its properties, as -device has them. A device without a bus gets a
PCI Express port of its own (Machine.ports). The property drive names its disk: 1 GiB of zeroes that
stores nothing and takes no CPU time (null-co), or a file of the host. A disk on the machine's own
SATA controller cannot be plugged in, so it is there from the start (Machine.disks), with zeroes.

A disk of zeroes answers at once, by the emulator's main loop. Where the plugin counts, this runs
when the guest's CPU waits (userspace/pathcount/mainloop.c), but for rungs that poll.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

Value = str | int | bool
Device = tuple[tuple[str, Value], ...]  # properties, "driver" among them

PORTS = 4  # of a machine that devices are plugged into

_SIZE = 1 << 30  # bytes of a disk


_ZEROES: Mapping[str, Value] = {"driver": "null-co", "size": _SIZE, "read-zeroes": True}


def is_fixed(device: Device) -> bool:
    """Whether it cannot be plugged in: QEMU's buses of IDE and SATA do not take that."""
    return str(dict(device).get("bus", "")).startswith("ide.")


def options(devices: Sequence[Device]) -> Iterator[str]:
    """QEMU's options for devices that are there from the start."""
    for device in devices:
        properties = dict(device)
        if "drive" in properties:
            yield from ("-blockdev", _words({"node-name": properties["drive"], **_ZEROES}))
        yield from ("-device", _words(properties))


def _words(properties: Mapping[str, Value]) -> str:
    said = {True: "on", False: "off"}
    return ",".join(
        f"{name}={said[value] if isinstance(value, bool) else value}"
        for name, value in properties.items()
    )


def commands(
    devices: Sequence[Device], disk: Path | None = None
) -> Iterator[tuple[str, dict[str, object]]]:
    """The commands of QMP, with their arguments, that plug in the devices that can be. Their disk
    keeps what is written in the file *disk*, if there is one."""
    ports = iter(range(PORTS))
    for device in devices:
        if is_fixed(device):
            continue
        properties = dict(device)
        if "drive" in properties:
            driver = {"driver": "file", "filename": str(disk)} if disk else _ZEROES
            yield "blockdev-add", {"node-name": properties["drive"], **driver}
        if "bus" not in properties:
            properties["bus"] = f"port{next(ports)}"
        yield "device_add", properties
