# SPDX-License-Identifier: GPL-2.0
"""Run tests in processes in which pytest is loaded and the package is not. They are forked from a
process that has loaded pytest, because loading it takes as long as most of these tests."""

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Job:
    """The arguments of pytest, the folder that has the package, and a file for the output."""

    words: list[str]
    package: str
    log: str


@dataclass(frozen=True)
class Done:
    """How pytest ended, and its output."""

    status: int
    said: str


def run(jobs: Sequence[tuple[list[str], Path]]) -> list[Done]:
    """Run pytest with each of these words and packages, as many at a time as there are CPUs."""
    with tempfile.TemporaryDirectory() as folder:
        made = [
            Job(words, str(package), f"{folder}/{number}")
            for number, (words, package) in enumerate(jobs)
        ]
        text = json.dumps([asdict(job) for job in made])
        done = subprocess.run(
            [sys.executable, __file__], input=text, stdout=subprocess.PIPE, text=True, check=True
        )
        statuses = json.loads(done.stdout)
        return [
            Done(status, Path(job.log).read_text())
            for status, job in zip(statuses, made, strict=True)
        ]


def _become(job: Job) -> None:
    """Run a job in this process."""
    import pytest

    assert "iopath" not in sys.modules
    log = os.open(job.log, os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.path[0] = job.package
    os.environ["PYTHONPATH"] = job.package
    status = int(pytest.main(job.words))
    sys.stdout.flush()
    os._exit(status)


def _serve(jobs: Sequence[Job]) -> list[int]:
    """The exit status of each job."""
    running: dict[int, int] = {}
    statuses = [-1] * len(jobs)

    def wait() -> None:
        child, status = os.wait()
        statuses[running.pop(child)] = os.waitstatus_to_exitcode(status)

    for number, job in enumerate(jobs):
        if len(running) == (os.cpu_count() or 1):
            wait()
        child = os.fork()
        if not child:
            _become(job)
        running[child] = number
    while running:
        wait()
    return statuses


LOADED = ("pytest", "_pytest.assertion.rewrite", "_pytest.terminal", "rich.console")

if __name__ == "__main__":
    for module in LOADED:
        importlib.import_module(module)
    json.dump(_serve([Job(**job) for job in json.load(sys.stdin)]), sys.stdout)
