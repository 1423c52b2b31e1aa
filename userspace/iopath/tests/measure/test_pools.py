# SPDX-License-Identifier: GPL-2.0
"""The two pools: where an interrupt is raised, and that it ends them."""

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from iopath.base import process
from iopath.measure.pools import pools

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
    ended: list[Future] = []
    locked = False
    with pytest.raises(KeyboardInterrupt) as error, pools(1, 1, None) as both:
        both.job(until_stopped, then=ended.append)
        (future,) = both._waiting
        with future._condition:
            signal.raise_signal(number)
            locked = True
        both.finish()
    assert locked
    assert error.value.args == (number,)
    assert isinstance(future.exception(0), process.Stopped)
    assert ended == []
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
            both.job(work, then=lambda future: None)
            both.finish()


def test_an_interrupt_after_all_work_is_raised(handlers: None) -> None:
    ended: list[Future] = []
    with pytest.raises(KeyboardInterrupt), pools(1, 1, None) as both:
        both.prepare(int, then=ended.append)
        both.finish()
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
        ended: list[Future] = []
        with pools(1, 2, None) as both:
            for number in range(5):
                both.job(int, number, then=ended.append)
            both.finish()
        return sum(future.result() for future in ended)

    with ThreadPoolExecutor(1) as another:
        assert another.submit(measure).result() == 10
