# SPDX-License-Identifier: GPL-2.0
"""Run ioloop on the running machine."""

from collections.abc import Sequence

from iopath.base import process, temporary
from iopath.base.errors import IopathError
from iopath.base.programs import guest_program
from iopath.rungs import ioloop_report
from iopath.rungs.ioloop_report import Report
from iopath.rungs.runs import Run

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


def run(words: Sequence[str], title: str) -> Report:
    """What ioloop reports of a run."""
    with temporary.folder() as folder:
        log, output = folder / "log", folder / "report"
        status = process.run([*words, f"--output={output}"], output=log)
        if status:
            complaint = process.last_line(log, f"it ended with status {status}")
            raise IopathError(f"{title}: {complaint.removeprefix('ioloop: ')}")
        return ioloop_report.read(output.read_text())
