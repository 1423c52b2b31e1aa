# SPDX-License-Identifier: GPL-2.0
"""Jobs are values, and any executor runs them: the figures are the same, and so is what happens to
jobs that are cancelled or take too long."""

import multiprocessing
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from helpers.command import FAST_START, KERNEL, Command
from iopath.base.cache import Cache
from iopath.base.errors import IopathError, Stopped
from iopath.base.programs import guest_program
from iopath.base.progress import Reporter
from iopath.guest.machine import Machine, Qemu
from iopath.measure import jobs
from iopath.measure.jobs import Job
from iopath.measure.plan import make_image
from iopath.measure.session import Session
from iopath.rungs.builtin import select
from iopath.rungs.runs import FLAT, Settings, make_runs

pytestmark = pytest.mark.guest

SETTINGS = Settings(select(["syscall"]), machine=Machine(cmdline=FAST_START), boots=2, profile=True)


def session_of(command: Command) -> Session:
    return Session(Cache(command.cache), Reporter(Console(stderr=True), quiet=True))


def pool() -> ProcessPoolExecutor:
    """Processes that share nothing with this one."""
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


def test_processes_as_threads(resumable: Command, tmp_path: Path) -> None:
    session = session_of(resumable)
    in_threads = session.measure([KERNEL], SETTINGS)
    for kind in ("measured", "result"):
        (resumable.cache / kind).rename(tmp_path / kind)
    session.cache.release()
    with pool() as session.executor:
        in_processes = session.measure([KERNEL], SETTINGS)
    session.cache.release()
    assert len(list((resumable.cache / "result").iterdir())) == 2
    assert in_processes == in_threads


@pytest.mark.parametrize(
    ("limit", "said"), [("time_limit", "within 1 s"), ("cpu_limit", "within 1 s of CPU time")]
)
def test_a_time_limit_in_a_process(ready: Command, limit: str, said: str) -> None:
    settings = replace(SETTINGS, machine=replace(Machine(cmdline=FAST_START), **{limit: 1}))
    session = session_of(ready)
    with (
        pool() as session.executor,
        pytest.raises(IopathError, match=f"did not end {said} ") as error,
    ):
        session.measure([KERNEL], settings)
    assert str(error.value).startswith(f"{KERNEL}: ")
    assert list((ready.cache / "result").glob("*")) == []
    assert ready.programs() == []


def test_a_job_is_a_value(ready: Command, tmp_path: Path) -> None:
    """It is the same after pickling. It is cancelled when its progress file is removed."""
    session = session_of(ready)
    built = session.find(KERNEL).prepare(session.cache, session.apt, lambda what, part: None)
    runs, _ = make_runs(SETTINGS)
    job = Job(
        Qemu.find(), SETTINGS.machine, make_image(built, runs, SETTINGS),
        guest_program("pathcount.so"), f"flat={FLAT}", built.release, ready.cache,
        tmp_path / "progress",
    )  # fmt: skip
    copy = pickle.loads(pickle.dumps(job))
    assert copy.inputs() == job.inputs()
    with pytest.raises(Stopped):
        jobs.run(job)
    assert ready.programs() == []


SCRIPT = """
import multiprocessing, signal, sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from rich.console import Console
from iopath.base.cache import Cache
from iopath.measure.session import Session
from iopath.rungs.runs import Settings
from iopath.base.progress import Reporter
from iopath.rungs.builtin import select

if __name__ == "__main__":
    session = Session(Cache(Path(sys.argv[1])), Reporter(Console(stderr=True), quiet=True))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as session.executor:
        try:
            session.measure([sys.argv[2]], Settings(select(["syscall"]), boots=3))
        except KeyboardInterrupt:
            print("interrupted", flush=True)
"""


def test_an_interrupt_ends_jobs_in_processes(ready: Command, tmp_path: Path) -> None:
    """Two jobs run and one waits. All of them end."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    running = subprocess.Popen(
        [sys.executable, script, ready.cache, KERNEL],
        env=ready.env, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    ends = time.monotonic() + 600
    try:
        while running.poll() is None and time.monotonic() < ends:
            if sum("qemu-system" in line for line in ready.programs()) >= 2:
                break
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=600)
    finally:
        running.kill()
    assert (running.returncode, out) == (0, "interrupted\n")
    assert ready.programs() == []
    assert list((ready.cache / "state").iterdir()) == []
