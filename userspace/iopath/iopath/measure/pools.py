# SPDX-License-Identifier: GPL-2.0
"""The two pools of all measurements of a call: one prepares kernels, one runs jobs.

Callbacks run in the thread that waits, one after the other.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from iopath.base import process

if TYPE_CHECKING:
    from iopath.measure.jobs import Job, Recorded

_POLL = 0.25  # seconds between two looks at the progress of jobs

Then = Callable[[Future], None]


class Pools:
    """Prepares kernels in threads, and runs jobs in others or, if there is an *executor*, in that.
    The progress of jobs is in *folder*."""

    def __init__(
        self, preparing: Executor, running: Executor, executor: Executor | None, folder: Path
    ) -> None:
        self._preparing = preparing
        self._running = running
        self._executor = executor
        self._folder = folder
        self._numbers = count(1)
        self._waiting: dict[Future, Then] = {}
        self._sent: dict[Path, tuple[Job, Future | None, Callable[[float], None]]] = {}

    def progress(self) -> Path:
        """The progress file of a new job."""
        return self._folder / str(next(self._numbers))

    def prepare(self, function: Callable[..., Any], *args: object, then: Then) -> None:
        """Have a thread prepare a kernel; *then* is called with the future when it is done."""
        self._waiting[self._preparing.submit(function, *args)] = then

    def job(self, function: Callable[..., Any], *args: object, then: Then) -> None:
        """Have a thread handle a job; *then* is called with the future when it is done."""
        self._waiting[self._running.submit(function, *args)] = then

    def run(self, job: "Job", advance: Callable[[float], None]) -> "Recorded":
        """Run a job, in one of the threads of job(). *advance* is told how much of it is done."""
        from iopath.measure import jobs  # it takes long to import, and often nothing runs

        job.progress.touch()
        future = self._executor.submit(jobs.run, job) if self._executor else None
        self._sent[job.progress] = job, future, advance
        try:
            process.check_stopped()
            return future.result() if future else jobs.run(job)
        finally:
            del self._sent[job.progress]

    def finish(self) -> None:
        """Wait until all work is done, including work that is added meanwhile."""
        while self._waiting:
            done, _ = wait(self._waiting, _POLL, FIRST_COMPLETED)
            for future in done:
                self._waiting.pop(future)(future)
            self._report()

    def _report(self) -> None:
        """Say how much of each job is done."""
        for job, _, advance in [*self._sent.values()]:
            advance(job.done())

    def stop(self) -> None:
        """End all jobs, and start no further one."""
        process.stop_all()
        for future in self._waiting:
            future.cancel()
        for job, sent, _ in [*self._sent.values()]:
            if sent:
                sent.cancel()
            job.progress.unlink(missing_ok=True)


@contextmanager
def pools(kernels: int, jobs_: int, executor: Executor | None) -> Iterator[Pools]:
    """The pools for this number of *kernels* and *jobs_* at a time. An exception in the block stops
    them; so errors of kernels and jobs are kept until it ends."""
    with (
        TemporaryDirectory(prefix="iopath-jobs-") as folder,
        ThreadPoolExecutor(kernels) as preparing,
        ThreadPoolExecutor(jobs_) as running,
    ):
        found = Pools(preparing, running, executor, Path(folder))
        try:
            yield found
        except BaseException:
            found.stop()
            raise
