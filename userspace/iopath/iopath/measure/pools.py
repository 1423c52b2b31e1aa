# SPDX-License-Identifier: GPL-2.0
"""The two pools of all measurements of a call: in one, each thread measures on a kernel from its
preparation to its result; in the other, threads run the jobs that measurements wait for.

An interrupt is raised in the thread that waits for all. Raised anywhere, it could leave a lock of a
future taken, for which a pool would wait for ever.
"""

import queue
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from iopath.base import process, temporary

if TYPE_CHECKING:
    from iopath.measure.jobs import Job, Recorded

_POLL = 0.25  # seconds between two looks at the progress of jobs
_GIVE_WAY = 0.1  # seconds in which kernels that are ready have handed in their jobs

T = TypeVar("T")
P = ParamSpec("P")


class Pools:
    """Measures *several* kernels or one in threads, and runs jobs in others or, if there is an
    *executor*, in that. The progress of jobs is in *folder*."""

    def __init__(
        self,
        measuring: Executor,
        running: Executor,
        executor: Executor | None,
        folder: Path,
        *,
        several: bool = False,
    ) -> None:
        self._measuring = measuring
        self._running = running
        self._executor = executor
        self._folder = folder
        self._several = several
        self._numbers = count(1)
        self._done: queue.SimpleQueue[Future | None] = queue.SimpleQueue()  # None: an interrupt
        self._interrupted: Callable[[], None] | None = None
        self._sent: dict[Path, tuple[Job, Future | None, Callable[[float], None]]] = {}

    def progress(self) -> Path:
        """The progress file of a new job."""
        return self._folder / str(next(self._numbers))

    def give_way(self) -> None:
        """Let the measurements of other kernels, if there are any, hand in the jobs that they are
        about to. What is handed in later waits for these."""
        if self._several:
            time.sleep(_GIVE_WAY)

    def measure(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have a thread measure. It may wait for jobs."""
        return self._submit(self._measuring, partial(function, *args, **kwargs))

    def job(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have a thread handle a job."""
        return self._submit(self._running, partial(function, *args, **kwargs))

    def _submit(self, pool: Executor, function: Callable[[], T]) -> Future[T]:
        """Have a thread of the *pool* call the function. Raises Stopped after stop()."""

        def call() -> T:
            process.check_stopped()
            return function()

        try:
            return pool.submit(call)
        except RuntimeError:  # the pool takes nothing after its shutdown
            process.check_stopped()
            raise

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

    def each(self, wanted: Iterable[Future[T]]) -> Iterator[Future[T]]:
        """The futures *wanted*, each when it is done. Meanwhile progress is said, and an interrupt
        is raised here."""
        waiting = set(wanted)
        for future in waiting:
            future.add_done_callback(self._done.put)
        while waiting:
            try:
                done = self._done.get(timeout=_POLL)
            except queue.Empty:
                done = None
            self.check_interrupted()
            if done:
                waiting.remove(done)
                yield done
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
        for pool in (self._measuring, self._running):
            pool.shutdown(wait=False, cancel_futures=True)
        for job, sent, _ in [*self._sent.values()]:
            if sent:
                sent.cancel()
            job.progress.unlink(missing_ok=True)


def results(wanted: Sequence[Future[T]]) -> list[T]:
    """The results of all futures *wanted*. The first error is raised when all are done, so that
    what the others computed is kept. Raises CancelledError if one was cancelled."""
    for future in wanted:
        future.exception()
    return [future.result() for future in wanted]


@contextmanager
def pools(kernels: int, places: int, executor: Executor | None) -> Iterator[Pools]:
    """The pools that prepare this number of *kernels* and run jobs in so many *places* at a time,
    for each of which two measurements can wait. An exception in the block stops them."""
    with (
        temporary.folder() as folder,
        ThreadPoolExecutor(kernels + 2 * places) as measuring,
        ThreadPoolExecutor(places) as running,
    ):
        found = Pools(measuring, running, executor, folder, several=kernels > 1)
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
