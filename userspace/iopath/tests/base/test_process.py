# SPDX-License-Identifier: GPL-2.0
"""Programs that iopath starts end with it."""

import subprocess
from pathlib import Path

from iopath.base import process


def test_a_parent_that_is_gone(tmp_path: Path) -> None:
    """A program does not start if its parent died before the program could ask for a signal."""
    words = process._bound_to_us(["touch", str(tmp_path / "started")])
    other = ["sh", "-c", '"$@"; echo $?', "sh", *words]
    assert subprocess.run(other, capture_output=True, text=True, check=True).stdout == "1\n"
    assert list(tmp_path.iterdir()) == []
    assert subprocess.run(words, check=False).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["started"]
