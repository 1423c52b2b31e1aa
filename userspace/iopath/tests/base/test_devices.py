# SPDX-License-Identifier: GPL-2.0
"""The commands that plug devices into a guest."""

from iopath.base.devices import commands, options
from iopath.guest.machine import Machine


def test_each_device_has_a_port_and_each_drive_a_disk() -> None:
    controller = (("driver", "virtio-scsi-pci"), ("id", "scsi"))
    disk = (("driver", "scsi-hd"), ("bus", "scsi.0"), ("drive", "one"))
    other = (("driver", "nvme"), ("serial", "1"), ("drive", "two"))
    found = list(commands([controller, disk, other]))
    assert [(name, words.get("bus") or words["node-name"]) for name, words in found] == [
        ("device_add", "port0"),
        ("blockdev-add", "one"),
        ("device_add", "scsi.0"),
        ("blockdev-add", "two"),
        ("device_add", "port1"),
    ]
    assert found[1][1] == {
        "driver": "null-co", "node-name": "one", "size": 1 << 30, "read-zeroes": True,
    }  # fmt: skip
    assert found[4][1] == {"driver": "nvme", "serial": "1", "drive": "two", "bus": "port1"}


def test_a_disk_on_a_bus_that_takes_no_plugging_is_there_from_the_start() -> None:
    disk = (("driver", "ide-hd"), ("bus", "ide.0"), ("drive", "one"))
    other = (("driver", "nvme"), ("serial", "1"), ("drive", "two"))
    assert [words["driver"] for _, words in commands([disk, other])] == ["null-co", "nvme"]
    zeroes = f"driver=null-co,size={1 << 30},read-zeroes=on"
    assert list(options([disk])) == [
        "-blockdev", f"node-name=one,{zeroes}", "-device", "driver=ide-hd,bus=ide.0,drive=one",
    ]  # fmt: skip
    machine = Machine().that_takes([disk, other])
    assert machine.disks == (disk,)
    assert machine.inputs()["disks"] == (disk,)
    assert "disks" not in Machine().that_takes([other]).inputs()
