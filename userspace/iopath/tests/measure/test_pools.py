# SPDX-License-Identifier: GPL-2.0
"""The two pools: where an interrupt is raised, and that it ends them."""

import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress

import pytest

from iopath.base import process
from iopath.base.errors import IopathError
from iopath.measure.pools import Pools, pools, results

NUMBERS = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture(autouse=True)
def stopping(monkeypatch: pytest.MonkeyPatch) -> None:
    """What these tests stop are not the programs of others."""
    monkeypatch.setattr(process, "_stopping", threading.Event())


@pytest.fixture
def handlers() -> Iterator[None]:
    """Both signals interrupt, as they do in the command."""

    def interrupted(number: int, frame: object) -> None:
        raise KeyboardInterrupt(number)

    usual = {number: signal.signal(number, interrupted) for number in NUMBERS}
    yield
    for number, handler in usual.items():
        signal.signal(number, handler)


def until_stopped() -> None:
    process.check_stopped(after=600)


@pytest.mark.parametrize("number", NUMBERS)
def test_an_interrupt_is_raised_where_the_pools_are_waited_for(number: int, handlers: None) -> None:
    """Elsewhere, the thread may have a lock of a future. A job that ends waits for that lock."""
    locked = False
    with pytest.raises(KeyboardInterrupt) as error, pools(1, 1, None) as both:
        future = both.job(until_stopped)
        with future._condition:
            signal.raise_signal(number)
            locked = True
        assert [*both.each([future])] == []
    assert locked
    assert error.value.args == (number,)
    assert isinstance(future.exception(0), process.Stopped)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)  # as before


def test_an_interrupt_wakes_the_thread_that_waits(handlers: None) -> None:
    started = threading.Event()

    def interrupt() -> None:
        started.wait()
        signal.raise_signal(signal.SIGINT)

    def work() -> None:
        started.set()
        until_stopped()

    with ThreadPoolExecutor(1) as another:
        another.submit(interrupt)
        with pytest.raises(KeyboardInterrupt), pools(1, 1, None) as both:
            for _ in both.each([both.job(work)]):
                pass


def test_an_interrupt_ends_a_measurement_that_waits_for_jobs(handlers: None) -> None:
    """One job is at work and others are waiting for a place. None of them starts."""
    started = threading.Event()
    ran: list[int] = []

    def job(number: int) -> None:
        ran.append(number)
        started.set()
        until_stopped()

    def measure(both: Pools) -> None:
        results([both.job(job, number) for number in range(4)])

    with pytest.raises(KeyboardInterrupt), pools(1, 1, None) as both:
        future = both.measure(measure, both)
        started.wait()
        signal.raise_signal(signal.SIGINT)
        for _ in both.each([future]):
            pass
    assert isinstance(future.exception(0), process.Stopped | CancelledError)
    assert ran == [0]


def test_no_job_starts_while_the_pools_stop(
    handlers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread of a job that ended would take the next one before the pools are shut down."""
    ran: list[int] = []
    stop_all = process.stop_all

    def stop_and_let_others_run() -> None:
        stop_all()
        with suppress(process.Stopped):
            first.result()
        time.sleep(0.1)

    def job(number: int) -> None:
        ran.append(number)
        until_stopped()

    monkeypatch.setattr(process, "stop_all", stop_and_let_others_run)
    with pytest.raises(KeyboardInterrupt), pools(1, 1, None) as both:
        first, second = both.job(job, 0), both.job(job, 1)
        signal.raise_signal(signal.SIGINT)
        for _ in both.each([first, second]):
            pass
    assert ran == [0]
    with pytest.raises(process.Stopped):
        both.job(job, 2)


def test_an_interrupt_after_all_work_is_raised(handlers: None) -> None:
    ended: list[Future] = []
    with pytest.raises(KeyboardInterrupt), pools(1, 1, None) as both:
        ended += both.each([both.measure(int)])
        signal.raise_signal(signal.SIGINT)
    assert [future.result() for future in ended] == [0]


def test_signals_that_are_ignored_stay_ignored() -> None:
    """So a shell starts programs in the background."""
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pools(1, 1, None):
            assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGINT, usual)


def test_pools_of_another_thread() -> None:
    """Only the main thread handles signals."""

    def measure() -> int:
        with pools(1, 2, None) as both:
            futures = [both.job(int, number) for number in range(5)]
            return sum(future.result() for future in both.each(futures))

    with ThreadPoolExecutor(1) as another:
        assert another.submit(measure).result() == 10


def test_all_jobs_end_before_an_error_is_raised() -> None:
    ended: list[int] = []
    failed = threading.Event()

    def job(number: int) -> None:
        if number == 0:
            failed.set()
            raise IopathError("it fails")
        failed.wait()
        ended.append(number)

    with pools(1, 2, None) as both:
        futures = [both.job(job, number) for number in range(5)]
        with pytest.raises(IopathError, match="it fails"):
            results(futures)
    assert sorted(ended) == [1, 2, 3, 4]


@pytest.mark.parametrize(("kernels", "waits"), [(1, 0), (2, 1)])
def test_a_kernel_gives_way_to_others(
    kernels: int, waits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it is alone, there is nothing to wait for."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    with pools(kernels, 1, None) as both:
        both.give_way()
    assert len(slept) == waits
