# SPDX-License-Identifier: GPL-2.0
"""The I/Os that programs say they did."""

import subprocess
from pathlib import Path

import pytest

from iopath.base.programs import guest_program
from iopath.measure import own_count


@pytest.mark.parametrize("layout", ["normal", "json"])
def test_fio(layout: str, tmp_path: Path) -> None:
    """What fio itself prints, of two jobs that read and write."""
    done = subprocess.run(
        ["fio", "--thread", "--ioengine=null", "--size=1m", "--number_ios=100", "--numjobs=2",
         "--rw=randrw", f"--output-format={layout}", "--name=one"],
        capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    assert own_count.ios("/usr/bin/fio", done.stdout + done.stderr) == 200


def test_dd() -> None:
    done = subprocess.run(
        ["dd", "if=/dev/zero", "of=/dev/null", "bs=3000", "count=7"],
        capture_output=True, text=True, check=True, env={"LC_ALL": "C"},
    )  # fmt: skip
    assert own_count.ios("dd", done.stdout + done.stderr) == 7


@pytest.mark.parametrize("layout", ["normal", "json"])
def test_ioloop(layout: str) -> None:
    done = subprocess.run(
        [guest_program("ioloop"), "--ioengine=null", "--number_ios=100", "--rounds=3",
         "--numjobs=2", f"--output-format={layout}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert own_count.ios("/bin/ioloop", done.stdout) == 600


def test_another_program() -> None:
    assert own_count.ios("/bin/true", "7+0 records in\n") == 0
