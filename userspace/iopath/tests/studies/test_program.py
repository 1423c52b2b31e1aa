# SPDX-License-Identifier: GPL-2.0
"""A program in a search and in a series: what is followed, what is shown, what is judged."""

import io
import json
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from counted import a_boot, a_run
from rich.console import Console

from iopath.base.errors import IopathError, NotMeasured
from iopath.results.layers import Layers
from iopath.results.program import Ran
from iopath.studies import bisection, program

PACKAGES = [f"debian:6.12.{number}" for number in range(9)]


def search(
    figure: Callable[[int], int | None], metric: str = "", boots: int = 1
) -> tuple[program.Search, list[str]]:
    """A program that takes what *figure* says in each read, or fails on a kernel."""
    said: list[str] = []

    def count(kernel: str, name: str) -> Ran:
        read = figure(int(kernel.rsplit(".", 1)[1]))
        if read is None:
            raise IopathError("program ended with status 1")
        return a_run(name, *(a_boot(read + seed, seed=seed) for seed in range(boots)))

    return program.Search(count, said.append, metric), said


@pytest.mark.parametrize("by", [5, -5])
@pytest.mark.parametrize("metric", ["", "read", "the whole"])
def test_a_search(by: int, metric: str) -> None:
    """Also among kernels on which the program fails."""
    looked, said = search(
        lambda number: None if number == 4 else 100 + by * (number >= 6), metric
    )  # fmt: skip
    ends = bisection.packages(looked, PACKAGES, said.append)
    assert [end.name for end in ends] == ["debian:6.12.5", "debian:6.12.6"]
    assert f"following: {metric or 'read'}" in said
    assert "debian:6.12.4: skipped: program ended with status 1" in said


def test_a_kernel_in_between_belongs_to_the_nearer_end() -> None:
    looked, _ = search(lambda number: 100 + 10 * (number >= 3) + 2 * (number in (2, 5)))
    ends = bisection.packages(looked, PACKAGES, print)
    assert [end.name for end in ends] == ["debian:6.12.2", "debian:6.12.3"]


def test_ends_that_agree() -> None:
    looked, _ = search(lambda number: 100)
    with pytest.raises(IopathError, match=r"^both ends take the same by the whole: 1,090\.00 and "):
        bisection.packages(looked, PACKAGES, print)
    looked, _ = search(lambda number: 100 + number, "read", boots=20)
    with pytest.raises(IopathError, match=r"100\.00 and 108\.00, of which 20 boots differ by more"):
        bisection.packages(looked, PACKAGES, print)


def test_a_call_that_is_not_made() -> None:
    looked, _ = search(lambda number: 100 + number, "raed")
    with pytest.raises(IopathError, match="no such system call: did you mean 'read'"):
        bisection.packages(looked, PACKAGES, print)


class Repository:
    """Commits in a line; each subject is what a read takes, or why there is no figure."""

    def __init__(self, *subjects: str) -> None:
        self.commits = [f"{number:040x}"[::-1] for number in range(1, 1 + len(subjects))]
        self.subjects = dict(zip(self.commits, subjects, strict=True))

    def commit(self, name: str) -> str:
        return name

    def subject(self, name: str) -> str:
        return self.subjects[name]

    def ancestors(self, name: str, first: str) -> list[str]:
        return self.commits[: self.commits.index(name)][::-1]


def a_series(*subjects: str) -> list[program.Entry]:
    repository = Repository(*subjects)
    session = SimpleNamespace(
        commit=lambda name: (repository, name.partition("@")[2]), build_ahead=lambda names: None
    )  # fmt: skip

    def count(kernel: str, name: str) -> Ran:
        subject = repository.subject(kernel.partition("@")[2])
        if not subject.isdigit():
            raise IopathError(f"{kernel}: {subject}")
        return a_run(name, a_boot(int(subject)))

    entries: list[program.Entry] = []
    names = [f"git:linux@{name}" for name in repository.commits]
    program.measure(session, names, count, Layers(None), lambda text: None, entries)  # type: ignore[arg-type]
    return entries


def test_a_series() -> None:
    """Each commit is compared with the nearest before it that was counted."""
    entries = a_series("100", "100", "it does not build (log: x)", "105")
    console = Console(width=200, record=True, file=io.StringIO())
    program.show_table(entries, console, every=False)
    first, head, _, failed, whole, read = console.export_text().rstrip().splitlines()
    assert first == "1 of 2 commits changes the count; 1 could not be measured."
    assert head.split()[:4] == ["commit", "subject", "before", "after"]
    assert failed.endswith("not measured: it does not build (log: x)")
    assert whole.split()[1:] == ["105", "the", "whole", "1,090", "1,140", "+50", "+4.6", "%"]
    assert read.split() == [
        "read", "100.00", "105.00", "+5.00", "+5.0", "%", "vfs_read", "+5.00",
    ]  # fmt: skip
    letter = program.markdown(entries, "dd bs=4k", "iopath series A..B -- dd bs=4k", every=False)
    assert letter.splitlines()[0] == "Instructions of dd bs=4k, counted exactly by iopath:"
    assert "    read: 100.00 to 105.00, +5.00 (+5.0 %)\n        vfs_read +5.00\n" in letter
    assert "not measured: it does not build\n" in letter
    (_, same, broken, more) = json.loads(program.dump(entries, ["dd"]))["commits"]
    assert (same["whole"], same["changes"]) == (1090, [])
    assert (broken["whole"], broken["error"]) == (None, "it does not build (log: x)")
    assert (more["before"], more["changes"][0]["functions"]) == (same["commit"], {"vfs_read": 50})


def test_a_series_is_judged() -> None:
    entries = a_series("100", "x", "105")
    last, failed = entries[2].commit, entries[1].commit
    assert program.judged(entries, 5) == ([], [f"{failed}: not measured"])
    assert program.judged(entries, 4.7)[0] == [f"{last}: read +5.0 %"]


def test_a_series_of_one() -> None:
    with pytest.raises(NotMeasured, match=r"^fewer than two commits could be measured: 2000\w+: x"):
        a_series("100", "x")
