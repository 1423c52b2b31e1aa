# SPDX-License-Identifier: GPL-2.0
"""What a rung is known by."""

from dataclasses import replace
from pathlib import Path

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
