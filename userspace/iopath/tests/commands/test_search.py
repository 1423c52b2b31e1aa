# SPDX-License-Identifier: GPL-2.0
"""The command search, on kernels that are functions."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from helpers.command import Command
from helpers.screens import Functions, plain, planted
from iopath.base.errors import IopathError
from iopath.cli import parser
from iopath.commands import search
from iopath.rungs import shapes
from iopath.rungs.runs import Run
from iopath.studies.search import ShapeSearch


class Screens(Functions):
    def lacks(self, rung: object) -> str:
        return ""

    def missing(self, options: set[str]) -> set[str]:
        return options


class Work:
    """A command whose session measures nothing."""

    def __init__(self) -> None:
        self.text = StringIO()
        self.out = Console(file=self.text, width=100)
        self.argv = ["search", "a", "b"]
        self.said: list[str] = []

    @contextmanager
    def session(self, scheduler: str | None) -> Iterator[SimpleNamespace]:
        reporter = SimpleNamespace(note=self.said.append, warn=self.said.append)
        yield SimpleNamespace(reporter=reporter, results=self._results)

    @staticmethod
    def _results(names: Sequence[str], settings: object) -> None:
        raise IopathError("there is no kernel")


def carry_out(monkeypatch: pytest.MonkeyPatch, *words: str, asked: list[Run] | None = None) -> Work:
    screens = Screens({"a": plain, "b": planted}, asked if asked is not None else [])

    @contextmanager
    def screening(*given: object) -> Iterator[Screens]:
        yield screens

    monkeypatch.setattr(search, "screening", screening)
    monkeypatch.setattr(search.Building, "recipe", lambda self, session: None)
    monkeypatch.setattr(search.Building, "check", lambda self, kernels: None)
    args: argparse.Namespace = parser.parser().parse_args(["search", "a", "b", *words])
    work = Work()
    assert search.run(args, work) == 0  # type: ignore[arg-type]
    return work


def test_what_it_shows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The worst causes, each shrunk; --rung and the number of shapes are heeded."""
    asked: list[Run] = []
    rungs = tmp_path / "found.toml"
    words = ("--shapes", "1500", "--rung", "dio.*", "--findings", "2", "--toml", str(rungs))
    work = carry_out(monkeypatch, *words, asked=asked)
    text = work.text.getvalue()
    assert text.startswith("a to b: 1,500 shapes, 2 causes.\n")
    assert "from size 65,536 on" in text or "from segments" in text
    assert {run.rung.target for run in asked} == {"/dev/blknull0"}
    assert work.said[-1] == "search.2: not measured: there is no kernel"
    assert rungs.read_text().count("[[rung]]") == 2


@pytest.mark.parametrize("end", [KeyboardInterrupt(), IopathError("the disk is full")])
def test_an_end_leaves_what_was_found(monkeypatch: pytest.MonkeyPatch, end: BaseException) -> None:
    """It is shown, not shrunk and not measured."""
    whole = ShapeSearch._save

    def save(self: ShapeSearch) -> None:
        whole(self)
        if self.state.shapes >= 1024:
            raise end

    monkeypatch.setattr(ShapeSearch, "_save", save)
    shown: list[str] = []

    def show(*given: object) -> None:
        shown.append(f"{len(given[2])} causes of {given[3].shapes} shapes")  # type: ignore[arg-type, attr-defined]

    monkeypatch.setattr(search.searchreport, "show", show)
    with pytest.raises(type(end)):
        carry_out(monkeypatch, "--rung", "dio.*")
    (text,) = shown
    causes, tried = (int(word) for word in text.split() if word.isdigit())
    assert tried >= 1024
    assert causes >= 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["debian:6.1"], "give two kernels, or one with --expect monotonic"),
        (["debian:6.1", "debian:7.2", "--expect", "monotonic"], "give two kernels, or one"),
        (["debian:6.1", "debian:7.2", "--rung", "nothing"], "--rung nothing: no shape is of such"),
        (["debian:6.1", "debian:7.2", "--rungs", "x.toml"], "--rungs"),
        (["debian:6.1", "debian:7.2", "--accel", "kvm"], "--accel kvm: only measure"),
    ],
)
def test_what_it_refuses(empty: Command, words: list[str], said: str) -> None:
    assert said in empty.fails("search", *words, status=2)


def test_values_that_a_kernel_lacks_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Run] = []
    carry_out(monkeypatch, "--shapes", "512", asked=asked)
    assert asked
    assert not [run for run in asked if "--hugepages" in run.rung.options or run.rung.needs]
    assert shapes.space().needed == {"CONFIG_HUGETLBFS", "CONFIG_BLK_CGROUP"}
