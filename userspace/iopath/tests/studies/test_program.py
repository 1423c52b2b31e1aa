# SPDX-License-Identifier: GPL-2.0
"""A program in a search and in a series: what is followed, what is shown, what is judged."""

import io
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from helpers.counted import a_boot, a_program
from iopath.base.arch import X86_64
from iopath.base.errors import IopathError
from iopath.counts.calls import Started
from iopath.results.layers import Layers
from iopath.results.result import ExactResult
from iopath.results.syscalls import CALL, LATER
from iopath.rungs.builtin import DEVICES
from iopath.rungs.program import Program
from iopath.rungs.runs import Settings
from iopath.studies import bisection, series

PACKAGES = [f"debian:6.12.{number}" for number in range(9)]
PROGRAM = Program(X86_64, "/bin/dd", ["bs=4k"], {}, DEVICES["null"], False, 10)
SETTINGS = Settings([PROGRAM.rung], boots=7, program=PROGRAM)


def a_session(measure: Callable[[str], ExactResult], **more: object) -> Any:  # noqa: ANN401
    return SimpleNamespace(measure=lambda names, settings: measure(names[0]), **more)


def search(
    figure: Callable[[int], int | None], metric: str = "", boots: int = 7
) -> tuple[bisection.Search, list[str]]:
    """A program that takes what *figure* says in each read, or fails on a kernel."""
    said: list[str] = []

    def count(kernel: str) -> ExactResult:
        read = figure(int(kernel.rsplit(".", 1)[1]))
        if read is None:
            raise IopathError("program ended with status 1")
        return a_program({kernel: [a_boot(read)] * boots})

    settings = replace(SETTINGS, boots=boots)
    return bisection.Search(a_session(count), settings, said.append, metric), said


@pytest.mark.parametrize("by", [5, -5])
@pytest.mark.parametrize("metric", ["", "read", "the whole"])
def test_a_search(by: int, metric: str) -> None:
    """Also among kernels on which the program fails."""
    looked, said = search(
        lambda number: None if number == 4 else 100 + by * (number >= 6), metric
    )  # fmt: skip
    ends = bisection.packages(looked, PACKAGES, said.append)
    assert [end.names for end in ends] == [["debian:6.12.5"], ["debian:6.12.6"]]
    assert f"following: {metric or 'read'}" in said
    assert "debian:6.12.4: skipped: program ended with status 1" in said


def test_what_is_followed() -> None:
    """The call that changed most, unless something else changed by more than as much."""
    for more, followed in (
        ({(CALL, "open"): Started(1, 40, 0, {"do_open": 40})}, "read"),
        ({(LATER, "kworker"): Started(1, 60, 0, {"worker_thread": 60})}, "the whole"),
    ):
        found = {0: a_boot(100), 8: a_boot(105, more=more)}
        session = a_session(lambda name, found=found: a_program({name: [found[int(name[-1])]] * 7}))
        said: list[str] = []
        looked = bisection.Search(session, SETTINGS, said.append)
        bisection.packages(looked, [PACKAGES[0], PACKAGES[8]], print)
        assert f"following: {followed}" in said


def test_ends_that_agree() -> None:
    looked, _ = search(lambda number: 100)
    with pytest.raises(IopathError, match=r"^both ends take the same by the whole: 1,090\.00 and "):
        bisection.packages(looked, PACKAGES, print)
    looked, _ = search(lambda number: 100 + number, "read", boots=1)
    with pytest.raises(IopathError, match="1 boots of each end do not tell"):
        bisection.packages(looked, PACKAGES, print)


def test_a_call_that_is_not_made() -> None:
    looked, _ = search(lambda number: 100 + number, "raed")
    with pytest.raises(IopathError, match="no such system call: did you mean 'read'"):
        bisection.packages(looked, PACKAGES, print)


def a_series(*reads: int) -> list[series.Entry]:
    """Commits on which a read takes so much; they are named by their places."""
    names = [str(number) for number in range(len(reads))]
    session = a_session(
        lambda kernel: a_program({kernel: [a_boot(reads[int(kernel[-1])])] * 7}),
        commit=lambda name: (REPOSITORY, name[-1]), build_ahead=lambda names: None,
    )  # fmt: skip
    entries: list[series.Entry] = []
    kernels = [f"git:linux@{name}" for name in names]
    series.measure(session, kernels, SETTINGS, Layers(), lambda text: None, entries)
    return entries


REPOSITORY = SimpleNamespace(
    commit=lambda name: name, subject=lambda name: f"commit {name}",
    ancestors=lambda name, first: [str(number) for number in range(int(name))][::-1],
)  # fmt: skip


def test_a_series() -> None:
    """Of a commit the whole and its system calls are shown."""
    entries = a_series(100, 100, 105)
    console = Console(width=200, file=io.StringIO())
    series.show(entries, console, every=False)
    first, head, _, whole, read = console.file.getvalue().splitlines()
    assert first.rstrip() == "1 of 2 commits changes the path."
    assert head.split()[:5] == ["commit", "subject", "rung", "path", "%"]
    assert whole.split()[2:] == ["2", "the", "whole", "+50.00", "+4.59", "vfs_read", "+50.00"]
    assert read.split() == ["read", "+5.00", "+5.00", "vfs_read", "+5.00"]
    letter = series.markdown(entries, "iopath series A..B -- dd bs=4k", every=False)
    assert letter.splitlines()[0] == "Instructions of dd bs=4k 'a b', counted exactly by iopath:"
    assert "    read: +5.00 (+5.00 %)\n    vfs_read +5.00\n" in letter
    assert series.judged(entries, 5) == ([], [])
    (grown,), unknown = series.judged(entries, 4.7)
    assert grown.startswith("read: 2 takes more than 1: instructions 5.00 %")
    assert unknown == []
