# SPDX-License-Identifier: GPL-2.0
"""The two pools of all measurements of a call: one prepares kernels, one runs jobs.

Callbacks run in the thread that waits, one after the other. An interrupt is raised there, too:
raised anywhere, it could leave a lock of a future taken, for which a pool would wait for ever.
"""

import queue
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from iopath.base import process, temporary

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
        self._done: queue.SimpleQueue[Future | None] = queue.SimpleQueue()  # None: an interrupt
        self._interrupted: Callable[[], None] | None = None
        self._sent: dict[Path, tuple[Job, Future | None, Callable[[float], None]]] = {}

    def progress(self) -> Path:
        """The progress file of a new job."""
        return self._folder / str(next(self._numbers))

    def prepare(self, function: Callable[..., Any], *args: object, then: Then) -> None:
        """Have a thread prepare a kernel; *then* is called with the future when it is done."""
        self._submit(self._preparing, function, args, then)

    def job(self, function: Callable[..., Any], *args: object, then: Then) -> None:
        """Have a thread handle a job; *then* is called with the future when it is done."""
        self._submit(self._running, function, args, then)

    def _submit(
        self, pool: Executor, function: Callable[..., Any], args: Sequence[object], then: Then
    ) -> None:
        future = pool.submit(function, *args)
        self._waiting[future] = then
        future.add_done_callback(self._done.put)

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
            try:
                future = self._done.get(timeout=_POLL)
            except queue.Empty:
                future = None
            self.check_interrupted()
            if future:
                self._waiting.pop(future)(future)
            self._report()

    def interrupt(self, handler: Callable[[], None]) -> None:
        """Have the thread that waits call the *handler* of a signal."""
        self._interrupted = handler
        self._done.put(None)

    def check_interrupted(self) -> None:
        """Call the handler of a signal that came."""
        handler, self._interrupted = self._interrupted, None
        if handler:
            handler()

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
        temporary.folder() as folder,
        ThreadPoolExecutor(kernels) as preparing,
        ThreadPoolExecutor(jobs_) as running,
    ):
        found = Pools(preparing, running, executor, folder)
        try:
            with _interrupts(found):
                yield found
        except BaseException:
            found.stop()
            raise


@contextmanager
def _interrupts(found: Pools) -> Iterator[None]:
    """Have signals that interrupt the program handled where the main thread waits for the pools."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = {
        number: handler
        for number in (signal.SIGINT, signal.SIGTERM)
        if callable(handler := signal.getsignal(number))
    }

    def later(number: int, frame: FrameType | None) -> None:
        found.interrupt(partial(usual[signal.Signals(number)], number, frame))

    for number in usual:
        signal.signal(number, later)
    try:
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
    found.check_interrupted()
