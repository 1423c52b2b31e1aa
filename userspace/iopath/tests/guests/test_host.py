# SPDX-License-Identifier: GPL-2.0
"""Measuring on the running machine, as far as any machine can: rungs without a device, the
statistics, and what perf prints. The rest is selftests/test_package.py's."""

from pathlib import Path

import pytest

from helpers.command import KERNEL, Command
from iopath.guest.machine import Machine
from iopath.measure.session import Session
from iopath.results import result
from iopath.results.result import HardwareResult
from iopath.rungs import builtin
from iopath.rungs.runs import Settings

# Guests on the processor itself.


@pytest.mark.guest
def test_kvm(ready: Command, tmp_path: Path) -> None:
    """With KVM there are times; without, the command says so soon, in one line."""
    path = tmp_path / "kvm.json"
    args = ("--accel", "kvm", "--rung", "syscall", "--passes", "6", "--json", path)
    done = ready.run("measure", KERNEL, *args, timeout=600)
    if done.returncode == 0:
        assert isinstance(result.load(path), HardwareResult)
    else:
        assert "iopath: --accel kvm: " in done.stderr.splitlines()[-1]
        assert not path.exists()
    ready.left_nothing()


@pytest.mark.guest
def test_time_in_a_guest(session: Session) -> None:
    """The work of KVM's guests in a guest whose clock is the host's. The figures are noisy, but
    complete."""
    machine = Machine(accel="tcg,thread=single")
    runs = builtin.select(["syscall", "gen.sync", "dio.pread"])
    settings = Settings(runs, ["read"], machine=machine, passes=6)
    measured = session.measure([KERNEL], settings)
    assert [record.samples for record in measured.results] == [6, 6, 6]
    assert [len(record.figures["ns"].boots) for record in measured.results] == [1, 1, 1]
    assert all(record.figures["ns"].median > 0 for record in measured.results)
