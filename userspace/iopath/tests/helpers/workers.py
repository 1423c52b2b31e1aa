# SPDX-License-Identifier: GPL-2.0
"""A Dask scheduler and its workers, as processes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from helpers.waiting import wait_for
from iopath.measure.cluster import Cluster

DASK = Path(sys.executable).with_name("dask")
WORKERS = ("one", "two")
NOWHERE = "http://127.0.0.1:9/"

QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "10s",
    "distributed.admin.system-monitor.interval": "60s",
}


@contextmanager
def threads(number: int) -> Iterator[Cluster]:
    """A cluster whose workers are threads."""
    import dask
    import distributed

    with (
        dask.config.set(QUIET),
        distributed.LocalCluster(
            n_workers=number, threads_per_worker=1, processes=False, dashboard_address=":0",
            memory_limit=None, silence_logs=50,
        ) as local,
    ):  # fmt: skip
        found = Cluster(local.scheduler_address)
        try:
            yield found
        finally:
            found.shutdown()


class Processes:
    """A scheduler and its workers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "scheduler.json"
        self._running: dict[str, subprocess.Popen] = {}

    def start(self, name: str, *words: str | Path, env: dict[str, str] | None = None) -> None:
        with (self._folder / f"{name}.log").open("w") as log:
            self._running[name] = subprocess.Popen(
                [DASK, *words, "--scheduler-file", self._file, "--no-dashboard"],
                env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True,
            )  # fmt: skip

    def address(self) -> str:
        def written() -> str:
            # The file exists before its content.
            return self._file.read_text() if self._file.exists() else ""

        return json.loads(wait_for(written, "the scheduler"))["address"]

    def kill(self, name: str) -> None:
        child = self._running.pop(name)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()

    def stop(self) -> None:
        for name in list(self._running):
            self.kill(name)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    found = Processes(tmp_path)
    found.start("scheduler", "scheduler", "--host", "127.0.0.1", "--port", "0")
    try:
        found.address()
        for name in WORKERS:
            found.start(
                name, "worker", "--nthreads", "1", "--no-nanny", "--local-directory",
                tmp_path / f"{name}-files", env={"IOPATH_CACHE": str(tmp_path / name)},
            )  # fmt: skip
        yield found
    finally:
        found.stop()


def silent(what: str, part: float) -> None:
    pass
