# SPDX-License-Identifier: GPL-2.0
"""A rung is a row: a copy of the package with one more row has one more rung."""

from pathlib import Path

import pytest
from copied import Copied

from iopath.rungs.builtin import LADDER, RUNGS

NEW = """
[[rung]]
name = "dio.pread.twice"
about = "two at a time"
parts = ["dio", "pread"]
options = ["--hipri"]
ops = ["read"]
"""

PLANNED = """
from iopath.measure import plan
from iopath.rungs.builtin import select
from iopath.rungs.runs import Settings, make_runs
settings = Settings(select(["dio.pread*"]))
runs, _ = make_runs(settings)
for guest in plan.guests(runs, settings):
    print(*(run.rung.name for run in guest))
for run in runs:
    print(run.rung.name, run.op, *run.rung.options)
"""


@pytest.fixture
def copied(tmp_path: Path) -> Copied:
    found = Copied(tmp_path)
    with (found.package / "rungs/rungs.toml").open("a") as file:
        file.write(NEW)
    return found


def test_a_new_rung_is_a_row(copied: Copied) -> None:
    """It is listed, suggested and planned with its options, in the guest of those that load the
    same modules."""
    (row,) = (line for line in copied.run("rungs").stdout.splitlines() if "twice" in line)
    assert row.split() == ["dio.pread.twice", "read", "two", "at", "a", "time"]
    near = copied.run("measure", "debian:6.1", "--rung", "dio.pread.twic").stderr
    assert near == (
        "iopath: unknown rung 'dio.pread.twic': did you mean 'dio.pread.twice'?"
        " (iopath rungs lists all)\n"
    )
    planned = copied.lines(PLANNED)
    assert "dio.pread.twice" in planned[0].split()
    assert "dio.pread" in planned[0].split()
    assert [line for line in planned[1:] if "twice" in line] == [
        "dio.pread.twice read --ioengine=sync --direct=1 --hipri"
    ]


def test_each_rung_is_there_once() -> None:
    names = [rung.name for rung in RUNGS]
    assert len(set(names)) == len(names)
    assert set(LADDER) <= set(RUNGS)
