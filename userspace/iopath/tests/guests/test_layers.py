# SPDX-License-Identifier: GPL-2.0
"""Layers above the device keep data: fio writes and verifies on each, in guests, with memory below.

The layers are those that "iopath features" measures, made by the same steps.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from helpers import fio, kept
from helpers.cases import cases
from helpers.linux_source import LinuxSource
from iopath.guest.channel import Record
from iopath.guest.machine import Machine, Qemu
from iopath.guest.payload import Image, Start
from iopath.measure.packages import equipped
from iopath.measure.plan import load
from iopath.measure.session import Session
from iopath.rungs.builtin import BIOGEN, RUNGS, select
from iopath.rungs.rung import Module, Rung
from iopath.rungs.runs import Settings
from iopath.rungs.together import more_biogen

pytestmark = pytest.mark.guest

LAYERS = {rung.name: rung for rung in RUNGS if rung.base and rung.name.endswith(".pread")}
KERNELS = ("5.10", "6.1", "6.12", "7.2", "7.3", "debug")  # the last with KASAN and lockdep
DEBUG = ("minimal.config", "distribution.config", "debug.config", "layers.config")
EACH = [(kernel, name) for kernel in KERNELS for name in LAYERS]
QUICK = [("7.2", "raid1.pread"), ("7.2", "dm-crypt.pread"), ("6.1", "loop.pread")]

JOBS = {
    "libaio": "--rw=randwrite --ioengine=libaio --iodepth=16 --bsrange=4k-64k",
    "psync": "--rw=randrw --ioengine=psync --bs=4k",
    "uring": "--rw=randwrite --ioengine=io_uring --iodepth=8 --bs=4k",
}


# In 5.10, memory_backed is not a parameter of null_blk's module.
NODE = "/sys/kernel/config/nullb/nullb0"
NULL_BLK = (
    "mount configfs /sys/kernel/config", f"mkdir {NODE}", f"write {NODE}/size 512",
    f"write {NODE}/memory_backed 1", f"write {NODE}/power 1",
)  # fmt: skip


def with_memory(rung: Rung) -> Rung:
    """*rung* on devices that store what is written."""
    begin = [step for step in rung.begin if not step.endswith("/bypass 1")]
    modules = []
    for module in rung.modules:
        parameters = module.parameters
        if module.name == "blknull":
            parameters = (*parameters, ("memory_backed", "1"))
        elif module.name == "null_blk":
            parameters = (("nr_devices", "0"),)
            begin = [*NULL_BLK, *begin]
        modules.append(replace(module, parameters=parameters))
    return replace(rung, modules=tuple(modules), begin=tuple(begin))


def run(session: Session, kernel: str, rung: Rung, jobs: Sequence[str], log: Path) -> list[Record]:
    """The records of a guest that makes what *rung* needs and runs *jobs* of fio."""
    tree = kernel == "debug"
    found = session.find(
        f"tree:{LinuxSource(session).tree(*DEBUG)}" if tree else f"debian:{kernel}"
    )
    built = found.prepare(session.cache, session.apt, lambda what, part: None)
    (rung,) = equipped([with_memory(rung)], session.cache, session.apt)
    files, plan = load(built, [rung], Settings([rung]))
    files |= {path: file.read_bytes() for path, file in rung.files}
    plan += [*rung.start, *rung.begin, *jobs]
    machine = Machine(memory=2048)
    start = Start(built.vmlinuz, files=fio.program(session)[1])
    return kept.Once(session.cache).run(Qemu.find(), machine, Image(start, plan, files), log)[0]


@pytest.mark.parametrize(("kernel", "name"), cases(EACH, quick=QUICK))
def test_fio_verifies(session: Session, kernel: str, name: str, tmp_path: Path) -> None:
    rung, log = LAYERS[name], tmp_path / "console.log"
    target = "/mnt/fio" if rung.start else rung.target
    records = run(session, kernel, rung, fio.verifying(JOBS, target), log)
    fio.check_verified(JOBS, records, log.read_text(errors="replace"))


HEADS = [
    *((kernel, "dm-multipath.pread") for kernel in ("6.1", "6.12", "7.2")),
    *((kernel, "nvme-loop.pread") for kernel in ("6.12", "7.2")),  # Debian's 6.1 lacks it
]


@pytest.mark.parametrize(("kernel", "name"), cases(HEADS, quick=()))
def test_biogen_on_a_multipath_head(
    session: Session, kernel: str, name: str, tmp_path: Path
) -> None:
    """It and the block device return the same bytes."""
    (head,) = select([name])
    rung = replace(head, modules=(*head.modules, Module("biogen", (("write", "1"),))))
    steps = [*more_biogen([head.target]), *fio.crossing(BIOGEN, head.target)]
    log = tmp_path / "console.log"
    records = run(session, kernel, rung, steps, log)
    fio.check_crossed(records, log.read_text(errors="replace"))
