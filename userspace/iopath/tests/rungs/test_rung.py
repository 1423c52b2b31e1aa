# SPDX-License-Identifier: GPL-2.0
"""What a rung is known by."""

from dataclasses import replace
from pathlib import Path

import pytest

from iopath.rungs.builtin import RUNGS
from iopath.rungs.rung import Module, Rung


def test_a_rung_is_known_by_what_it_is_made_of(tmp_path: Path) -> None:
    program = tmp_path / "pipe"
    program.write_text("one")
    rung = Rung("pipe", "a pipe", program=program)
    known = rung.digest
    assert replace(rung, about="something else").digest == known
    assert replace(rung, setup=("mkdir /mnt",)).digest != known
    assert replace(rung, modules=(Module("blknull", (("nr_devices", "1"),)),)).digest != known
    program.write_text("other")
    assert rung.digest != known
    assert replace(rung, files=(("/bin/mkfs", program),)).digest != rung.digest


@pytest.mark.parametrize(
    ("name", "on"),
    [
        ("syscall", ""),
        ("dio.pread", "blknull, bio mode"),
        ("raw.pread", "blknull, bio mode"),
        ("mq.pread", "blknull, mq mode"),
        ("mq.uring.two", "blknull, mq mode"),
        ("dm-snapshot.pwrite", "/dev/dm-1 (dm-snapshot) on blknull, mq mode"),
        ("dm-multipath.pread", "/dev/dm-0 (dm-multipath, dm-round-robin) on blknull, mq mode"),
        ("ext4.pread", "/mnt/file (ext4) on blknull, bio mode"),
        ("ext4.append", "/mnt/file (ext4) on blknull, mq mode"),
        ("partition.pread", "/dev/nullb0p1 (null_blk)"),
        ("nvme.raw.pread", "/dev/biogen0 on nvme of the emulator"),
        ("rnull.pread", "/dev/rnullb0"),
    ],
)
def test_what_it_does_io_on(name: str, on: str) -> None:
    (rung,) = (one for one in RUNGS if one.name == name)
    assert rung.on == on
