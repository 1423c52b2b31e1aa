# SPDX-License-Identifier: GPL-2.0
"""The command rungs."""

import json
from pathlib import Path

from helpers.command import Command
from iopath.rungs import builtin


def test_rungs_are_listed_once(listed: Command, tmp_path: Path) -> None:
    """The list is the table, and no help repeats it."""
    listed.env["COLUMNS"] = "100"
    done = listed.run("rungs", "--json", tmp_path / "rungs.json")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("Rungs after mq.uring are "))
    rows = [line.split("  ")[0] for line in lines[2:at]]
    assert rows == [rung.name for rung in builtin.RUNGS]
    found = {rung["name"]: rung for rung in json.loads((tmp_path / "rungs.json").read_text())}
    assert found["splice"] == {
        "name": "splice", "about": "splice to a pipe and on to /dev/null, cached",
        "operations": ["read"], "needs": [], "ladder": True,
    }  # fmt: skip
    assert found["nullb.pread"]["needs"] == ["null_blk"]
    assert not found["nullb.pread"]["ladder"]
    assert "dio.aio.100" not in listed.run("measure", "--help").stdout
