# SPDX-License-Identifier: GPL-2.0
"""A second opinion on a figure: another plugin, another loop and another init count one rung, and
must get the same figure as iopath."""

import statistics
import subprocess
from pathlib import Path

import pytest

from helpers.cases import cases
from iopath.base.sources import source_root
from iopath.guest import cpio
from iopath.guest.machine import Machine, Qemu
from iopath.kernels.modules import uncompressed, with_dependencies
from iopath.measure.session import Session
from iopath.rungs.builtin import select
from iopath.rungs.runs import Settings

HERE = Path(__file__).parent / "referee"
READS = 100  # in a round of referee/init.c
ROUNDS = 31


def compile_c(*words: str | Path) -> None:
    subprocess.run(["gcc", "-O2", "-Wall", "-Werror", *words], check=True)


def addresses(program: Path) -> dict[str, int]:
    lines = subprocess.check_output(["nm", program], text=True).splitlines()
    return {line.split()[2]: int(line.split()[0], 16) for line in lines if len(line.split()) == 3}


def count(session: Session, kernel: str, folder: Path) -> list[float]:
    """The kernel's instructions for a read, in each round, by the referee."""
    built = session.find(kernel).prepare(session.cache, session.apt, lambda what, part: None)
    compile_c("-static", "-o", folder / "init", HERE / "init.c")
    compile_c(
        "-shared", "-fPIC", f"-I{source_root()}/userspace/pathcount",
        "-o", folder / "plugin.so", HERE / "plugin.c",
    )  # fmt: skip
    *others, module = map(uncompressed, with_dependencies("blknull", built))
    files = {"init": (folder / "init").read_bytes(), "blknull.ko": module}
    files |= {f"{number}.ko": data for number, data in enumerate(others)}
    console = cpio.char_device("dev/console", 5, 1)
    entries = [cpio.file(name, data, 0o755) for name, data in files.items()]
    (folder / "initramfs").write_bytes(cpio.archive([console, *entries]))
    places = addresses(folder / "init")
    plugin = f"{folder}/plugin.so,begin={places['begin']},end={places['end']},out={folder}/counts"
    subprocess.run(
        [
            *Qemu.find().words, "-nodefaults", "-display", "none", "-no-reboot", "-machine", "q35",
            "-accel", "tcg", "-icount", "shift=0,sleep=off", "-cpu", Machine().qemu_cpu,
            "-m", "1024",
            "-seed", "1", "-rtc", "base=2026-01-01T00:00:00,clock=vm",
            "-serial", f"file:{folder}/console", "-kernel", built.vmlinuz,
            "-initrd", folder / "initramfs", "-plugin", plugin, "-append",
            "console=ttyS0 panic=-1 noreplace-smp nokaslr mitigations=off noapictimer",
        ],
        check=True,
        timeout=3600,
    )  # fmt: skip
    return [int(line) / READS for line in (folder / "counts").read_text().split()]


@pytest.mark.guest
@pytest.mark.parametrize("kernel", cases(["debian:6.1", "debian:7.2"], quick=["debian:7.2"]))
def test_the_referee_agrees(session: Session, tmp_path: Path, kernel: str) -> None:
    """They agree to the second decimal, for a read of 4 KiB."""
    counted = count(session, kernel, tmp_path)
    assert len(counted) == ROUNDS, (tmp_path / "console").read_text(errors="replace")[-1000:]
    settings = Settings(rungs=select(["dio.pread"]), ops=["read"], profile=True)
    (record,) = session.measure([kernel], settings).results
    assert record.profile.kernel == pytest.approx(statistics.median(counted), abs=0.01)
