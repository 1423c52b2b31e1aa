# SPDX-License-Identifier: GPL-2.0
"""Kernels that have the drivers built in: make intree."""

import json
from pathlib import Path

import pytest
from command import Command
from exported import BRANCH, exported
from planted import differences

from iopath.measure.session import Session


@pytest.mark.guest
@pytest.mark.long
@pytest.mark.parametrize("series", ["7.2", "7.3"])
def test_built_in(session: Session, tmp_path: Path, series: str) -> None:
    """A kernel boots with both drivers built in, and every rung of the ladder has the figures of
    the modules."""
    linux = tmp_path / "linux"
    exported(session, series, linux)
    command = Command(session.cache.root, tmp_path)
    names = [f"git:{linux}@{BRANCH}[BLK_DEV_BLKNULL={how},BIOGEN={how}]" for how in ("m", "y")]
    out = tmp_path / "out.json"
    done = command.run("measure", *names, "--json", out, timeout=7200)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(out.read_text())["kernels"]) == 2
    found = differences(out)
    assert len(found) > 15
    assert {rung: one for rung, one in found.items() if abs(one["difference"]) > 0.01} == {}
