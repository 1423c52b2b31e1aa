# SPDX-License-Identifier: GPL-2.0
"""Run ioloop on the running machine."""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from iopath import process
from iopath.errors import IopathError
from iopath.plan import Run
from iopath.programs import guest_program

ROUNDS = 20  # of each sample


def command(run: Run, cpu: int, *, ios: int, rounds: int = ROUNDS) -> list[str]:
    """ioloop's command line for one run on this machine."""
    words = run.rung.command(run.op, run.block_size, run.region, ios=ios, rounds=rounds)
    words = [f"--cpus_allowed={cpu}" if w.startswith("--cpus_allowed") else w for w in words[1:]]
    return [str(guest_program("ioloop")), *words]


def timed(run: Run, cpu: int, seconds: int) -> list[str]:
    """The command line of a run of some seconds that prints a readable report."""
    words = command(run, cpu, ios=0, rounds=1)
    counted = ("--number_ios=", "--output-format=")
    return [word for word in words if not word.startswith(counted)] + [
        "--time_based",
        f"--runtime={seconds}",
    ]


def run(words: Sequence[str], title: str) -> dict[str, Any]:
    """ioloop's report, read from JSON."""
    with tempfile.TemporaryDirectory(prefix="iopath-") as folder:
        log, report = Path(folder, "log"), Path(folder, "report")
        status = process.run([*words, f"--output={report}"], output=log)
        if status:
            complaint = process.last_line(log, f"it ended with status {status}")
            raise IopathError(f"{title}: {complaint.removeprefix('ioloop: ')}")
        return read_report(report)


def read_report(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise IopathError(f"cannot read ioloop's report: {error}") from error
