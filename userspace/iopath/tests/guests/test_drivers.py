# SPDX-License-Identifier: GPL-2.0
"""Drivers of the emulator's devices: what they cost, and that they keep data."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers import fio
from helpers.cases import cases
from helpers.command import KERNEL, Command
from helpers.repositories import release_repository
from helpers.selftests import TROUBLE
from iopath.guest.channel import Record
from iopath.guest.guest import GuestError, _Guest
from iopath.guest.machine import Machine, Qemu
from iopath.guest.payload import Image, Start
from iopath.guest.states import States
from iopath.measure.plan import load
from iopath.measure.session import Session
from iopath.rungs.builtin import select
from iopath.rungs.rung import Rung
from iopath.rungs.runs import Settings

pytestmark = pytest.mark.guest


def profiled(iopath: Command, out: Path, *words: str) -> list[dict[str, Any]]:
    """The records of what ``iopath profile`` takes with *words*. Each function has a layer."""
    done = iopath.run("profile", *words, "--quiet", "--json", out)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())["results"]
    for record in found:
        other = record["profile"]["layers"].get("other", 0)
        assert other < 0.03 * record["instructions_per_io"], record["rung"]
    return found


def test_a_read_from_the_system_call_to_the_interrupt(iopath: Command, tmp_path: Path) -> None:
    """Functions of the driver are exact. What others execute adds up, without the idle loop."""
    words = (KERNEL, "--rung", "nvme.pread", "--rung", "nvme.cmd", "--op", "read")
    records = profiled(iopath, tmp_path / "out.json", *words)
    found = {record["rung"]: record for record in records}
    read, command = found["nvme.pread"], found["nvme.cmd"]
    functions = {row["name"]: row["instructions"] for row in read["profile"]["functions"]}
    assert functions["nvme_queue_rq"] == 98
    assert functions["nvme_setup_cmd"] == 75
    assert functions["dma_map_page_attrs"] == 66
    assert not {"do_idle", "cpu_startup_entry", "default_idle"} & functions.keys()
    layers = read["profile"]["layers"]
    assert layers["NVMe"] > 300
    assert sum(layers.values()) == pytest.approx(read["instructions_per_io"], abs=0.01)
    parts = read["all_parts"]
    assert parts["task"] > 5000
    assert parts["interrupt nvme_irq"] > 1500
    assert not {"idle", "interrupt sysvec_apic_timer_interrupt"} & parts.keys()
    assert sum(parts.values()) == pytest.approx(read["with_deferred"], abs=0.01)
    # A command passes neither the block device's file nor its bio.
    names = {row["name"] for row in command["profile"]["functions"]}
    assert "nvme_ns_chr_uring_cmd" in names
    assert not [name for name in names if name.startswith(("blkdev_", "submit_bio"))]


@pytest.mark.parametrize("name", cases(["virtio", "nvme", "scsi", "ahci"], quick=["virtio"]))
def test_the_host_does_not_decide_when_a_device_answers(
    iopath: Command, tmp_path: Path, name: str
) -> None:
    """In two boots, the path and the total are the same within 0.1 %, and the total is not less.
    What differs between the totals is in the path."""
    out = tmp_path / "out.json"
    words = ("debian:7.2", "--rung", f"{name}.pread", "--op", "read", "--boots", "2")
    done = iopath.run("measure", *words, "--quiet", "--json", out)
    assert done.returncode == 0, done.stderr
    (record,) = json.loads(out.read_text())["results"]
    assert record["boots"][0] == pytest.approx(record["boots"][1], rel=0.001)
    one, other = record["with_deferred_boots"]
    assert one == pytest.approx(other, rel=0.001)
    assert one - other == pytest.approx(record["boots"][0] - record["boots"][1], abs=one * 0.0003)
    assert min(one, other) > 0.999 * record["instructions_per_io"]


@pytest.mark.parametrize("kernel", [KERNEL, "debian:6.12-arm64"])
def test_a_polled_queue(iopath: Command, tmp_path: Path, kernel: str) -> None:
    """No interrupt ends an I/O, and the task does not sleep. The kernel may return with a part of a
    batch; on arm64 it does."""
    words = (kernel, "--rung", "nvme.*.polled", "--op", "read")
    records = profiled(iopath, tmp_path / "out.json", *words)
    assert [record["rung"] for record in records] == ["nvme.uring.polled", "nvme.cmd.polled"]
    for record in records:
        parts = record["all_parts"]
        assert parts["task"] == pytest.approx(record["with_deferred"], rel=0.01)
        assert not [part for part in parts if part.startswith("interrupt nvme")]
        functions = {row["name"]: row for row in record["profile"]["functions"]}
        assert {"nvme_poll", "io_do_iopoll"} <= functions.keys()
        assert "schedule" not in functions


@pytest.mark.parametrize(
    ("name", "handler"),
    cases(
        [("nvme", "nvme_irq"), ("virtio", "vring_interrupt"), ("scsi", "vring_interrupt")],
        quick=[("nvme", "nvme_irq")],
    ),
)
def test_on_arm64(iopath: Command, tmp_path: Path, name: str, handler: str) -> None:
    """All interrupts enter by one vector, of which the ticks have a share that is left out."""
    words = ("debian:6.12-arm64", "--rung", f"{name}.pread", "--rung", "ahci.pread", "--op", "read")
    (record,) = profiled(iopath, tmp_path / "out.json", *words)
    assert record["rung"] == f"{name}.pread"
    parts = record["all_parts"]
    assert parts["task"] > 5000
    assert parts[f"interrupt {handler}"] > 1500
    assert 400 < parts["interrupt vectors"] < 1200
    assert not {"idle", "interrupt arch_timer_handler_virt"} & parts.keys()
    assert sum(parts.values()) == pytest.approx(record["with_deferred"], abs=0.01)
    assert sum(parts.values()) == pytest.approx(record["instructions_per_io"], rel=0.05)


PARTS = {
    "nvme-tcp.pread": ("kworker nvmet_tcp_io_work", "softirq net_rx_action"),
    "tcm_loop.pread": ("kworker target_complete_ok_work",),
    "nbd.pread": ("programs", "thread recv_work"),
    "dm-multipath.pread": (),
}


def test_a_read_that_other_tasks_do(iopath: Command, tmp_path: Path) -> None:
    """Drivers that need no device: what threads, soft interrupts and a server execute are parts."""
    rungs = [word for name in PARTS for word in ("--rung", name)]
    words = (KERNEL, *rungs, "--op", "read")
    records = profiled(iopath, tmp_path / "out.json", *words)
    found = {record["rung"]: record for record in records}
    assert found.keys() == PARTS.keys()
    for name, parts in PARTS.items():
        record = found[name]
        assert all(record["all_parts"][part] > 1000 for part in parts)
        assert record["with_deferred"] == pytest.approx(record["instructions_per_io"], rel=0.1)
    functions = {row["name"] for row in found["dm-multipath.pread"]["profile"]["functions"]}
    assert {"multipath_clone_and_map", "rr_select_path"} <= functions


@pytest.mark.parametrize("kernel", cases(["6.12", "7.2", "7.3"], quick=["7.2"]))
def test_a_block_device_of_user_space(iopath: Command, tmp_path: Path, kernel: str) -> None:
    """The server is a part. Reads and writes pass the driver and the server's ring. Without
    copying, the kernel gives the server the pages; older ones cannot."""
    words = (f"debian:{kernel}", "--rung", "ublk.*")
    records = profiled(iopath, tmp_path / "out.json", *words)
    rungs = ["ublk.pread", *([] if kernel == "6.12" else ["ublk.zc.pread"])]
    found = [(record["rung"], record["op"]) for record in records]
    assert found == [(rung, op) for rung in rungs for op in ("read", "write")]
    for record in records:
        assert record["profile"]["layers"]["driver"] > 400
        assert record["all_parts"]["programs"] > 3000
        functions = {row["name"] for row in record["profile"]["functions"]}
        assert {"ublk_queue_rq", "ublk_ch_uring_cmd", "io_uring_cmd"} <= functions
        shared = record["rung"] == "ublk.zc.pread"
        assert ({"io_buffer_register_bvec"} <= functions) == shared
        assert (record["profile"]["costly"]["string_bytes"] < 4096) == shared


@pytest.mark.parametrize("kernel", cases(["6.1", "6.12", "7.2", "7.3"], quick=["6.1"]))
def test_a_disk_of_the_machines_own_controller(
    iopath: Command, tmp_path: Path, kernel: str
) -> None:
    """SATA takes no plugging: the saved state has the disk. The driver has a layer and a part."""
    words = (f"debian:{kernel}", "--rung", "ahci.pread", "--op", "read")
    (record,) = profiled(iopath, tmp_path / "out.json", *words)
    assert record["profile"]["layers"]["ATA"] > 800
    assert record["all_parts"]["interrupt ahci_single_level_irq_intr"] > 1500
    functions = {row["name"] for row in record["profile"]["functions"]}
    assert {"ata_qc_issue", "ahci_qc_issue", "scsi_queue_rq"} <= functions


# The options of a kernel that has drivers which Debian's kernels lack.
RARE = (
    "RUST=y", "BLK_DEV_RUST_NULL=y", "BLK_DEV_NULL_BLK=m", "RUNTIME_TESTING_MENU=y",
    "VIRTIO_MENU=y", "VHOST_MENU=y", "NET=y", "VDPA=y", "VDPA_SIM=y", "VDPA_SIM_BLOCK=y",
    "VIRTIO_VDPA=y", "VIRTIO_BLK=y",
)  # fmt: skip


@pytest.mark.long
def test_drivers_that_debian_does_not_build(
    session: Session, iopath: Command, tmp_path: Path
) -> None:
    """A null device that is written in Rust, beside the one in C; and vDPA's simulator."""
    kernel = f"git:{release_repository(session, '7.2')}@HEAD[{','.join(RARE)}]"
    names = ("rnull.pread", "nullb.pread", "vdpa.pread")
    rungs = [word for name in names for word in ("--rung", name)]
    records = profiled(iopath, tmp_path / "out.json", kernel, *rungs, "--op", "read")
    found = {record["rung"]: record for record in records}
    rust, c, vdpa = (found[name] for name in names)
    assert 40 < rust["profile"]["layers"]["driver"] < 200
    assert rust["instructions_per_io"] == pytest.approx(c["instructions_per_io"], rel=0.05)
    assert any("5rnull" in row["name"] for row in rust["profile"]["functions"])
    assert vdpa["all_parts"]["thread vdpasim_work_fn"] > 4000


JOBS = {
    "libaio": "--rw=randwrite --ioengine=libaio --iodepth=16 --bsrange=4k-64k",
    "uring": "--rw=randrw --ioengine=io_uring --iodepth=8 --bs=4k",
}
KERNELS = ("6.1", "6.12", "7.2")
EACH = [(kernel, name) for kernel in KERNELS for name in ("nvme", "virtio", "scsi")]


def run_on_a_file(
    session: Session, kernel: str, rung: Rung, jobs: Sequence[str], folder: Path
) -> tuple[list[Record], str]:
    """The records and the console of a guest that runs *jobs* of fio on a device whose disk is a
    file of the host, in *folder*."""
    disk = folder / "disk"
    with disk.open("wb") as file:
        file.truncate(64 << 20)
    built = session.find(f"debian:{kernel}").prepare(
        session.cache, session.apt, lambda what, part: None
    )
    files, plan = load(built, [rung], Settings([rung]))
    plan += [*rung.begin, *jobs]
    log = folder / "console.log"
    start = Start(built.vmlinuz, files=fio.program(session)[1])
    image = replace(Image(start, plan, files), devices=rung.devices, disk=disk)
    machine = Machine(memory=2048, real_time=True).that_takes(rung.devices)
    records, _ = States(session.cache).run(Qemu.find(), machine, image, log)
    return records, log.read_text(errors="replace")


@pytest.mark.parametrize(("kernel", "name"), cases(EACH, quick=()))
def test_fio_verifies(session: Session, kernel: str, name: str, tmp_path: Path) -> None:
    (rung,) = select([f"{name}.pread"])
    jobs = fio.verifying(JOBS, rung.target)
    fio.check_verified(JOBS, *run_on_a_file(session, kernel, rung, jobs, tmp_path))
    assert (tmp_path / "disk").read_bytes().count(0) < 60 << 20  # it holds what was written


@pytest.mark.parametrize("kernel", cases(KERNELS, quick=()))
def test_biogen_on_nvme(session: Session, kernel: str, tmp_path: Path) -> None:
    """It and the block device return the same bytes."""
    (rung,) = select(["nvme.raw.pread"])
    jobs = fio.crossing(rung.target, "/dev/nvme0n1")
    fio.check_crossed(*run_on_a_file(session, kernel, rung, jobs, tmp_path))
    assert (tmp_path / "disk").read_bytes().strip(b"\0")


@pytest.mark.long
@pytest.mark.parametrize("name", ["nvme", "virtio", "scsi"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_removal_under_io(session: Session, kernel: str, name: str, tmp_path: Path) -> None:
    """A controller is unplugged while 32 I/Os are in flight: the program gets an error, nothing
    hangs, and the kernel does not complain."""
    built = session.find(f"debian:{kernel}").prepare(
        session.cache, session.apt, lambda what, part: None
    )
    (rung,) = select([f"{name}.uring"])
    controller = {"id": "controller", **dict(rung.devices[0])}
    devices = (tuple(controller.items()), *rung.devices[1:])
    files, plan = load(built, [rung], Settings([rung]))
    endless = rung.command("read", 4096, 1, ios=1 << 30, rounds=1)
    plan += [*rung.begin, "file /proc/version", " ".join(["run endless", *endless])]
    image = replace(Image(Start(built.vmlinuz), plan, files), devices=devices)
    machine = Machine(time_limit=600).that_takes(devices)
    calls = 0

    def remove(records: int) -> None:
        """Some seconds after the program has begun."""
        nonlocal calls
        calls += bool(records)
        if records and calls == 20:
            guest._qmp.execute("device_del", id=controller["id"])

    log = tmp_path / "console.log"
    with _Guest(Qemu.find(), machine, image.start, log, remove) as guest:
        guest.wait_started()
        guest.hand_over(image)
        with pytest.raises(GuestError, match="ioloop ended with status 1") as failed:
            guest.wait_done()
    assert calls >= 20, failed.value
    assert not TROUBLE.search(log.read_text(errors="replace"))
