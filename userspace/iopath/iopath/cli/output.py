# SPDX-License-Identifier: GPL-2.0
"""The files that options name, and a comparison on the terminal."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from rich.console import Console

from iopath.base import files, stdout
from iopath.base.errors import UsageError
from iopath.cli.options import add_all, add_file, add_top
from iopath.compare.changes import Comparison
from iopath.results.result import Result
from iopath.show import terminal, views


def check(**paths: Path | None) -> None:
    """Refuse files that cannot be written, by the names of their options, before anything is
    measured."""
    piped = [f"--{name}" for name, path in paths.items() if path == stdout.NAME]
    if len(piped) > 1:
        raise UsageError(f"{' and '.join(piped)}: only one file can be the standard output")
    known = {view.option: view.suffixes for view in views.VIEWS}
    for name, path in paths.items():
        if not path:
            continue
        files.check(path)
        suffixes = known.get(name, ())
        if suffixes and path.suffix not in suffixes and (path != stdout.NAME or len(suffixes) > 1):
            raise UsageError(
                f"--{name} {path}: the file's name must end in {' or '.join(suffixes)}"
            )


@dataclass(frozen=True)
class Files:
    """The files of a command, by their options: a view of what it finds is written to each."""

    paths: dict[str, Path]

    @staticmethod
    def add(parser: argparse.ArgumentParser, *kinds: type) -> None:
        """The views of reports of these *kinds*, which a command may find."""
        group = parser.add_argument_group("files to write")
        for view in views.fitting(*kinds):
            add_file(group, view.option, view.about)

    @classmethod
    def read(cls, args: argparse.Namespace) -> Self:
        given = {view.option: vars(args).get(view.dest) for view in views.VIEWS}
        return cls({option: path for option, path in given.items() if path})

    def check(self, **others: Path | None) -> None:
        """Refuse files that cannot be written, with those of *others*."""
        check(**self.paths, **others)

    def need(self, kind: type) -> None:
        """Refuse views that do not fit a *kind* of report."""
        for view in views.VIEWS:
            if view.option in self.paths:
                view.need(kind)

    def write(self, report: object) -> None:
        self.need(type(report))
        for view in views.VIEWS:
            if view.option in self.paths:
                view.write(report, self.paths[view.option])


def add_comparison(parser: argparse.ArgumentParser) -> None:
    """How much of a comparison is shown."""
    add_all(parser)
    add_top(
        parser,
        "functions to show: of the largest difference (default: 5 or more), or with --all of each"
        " (default: 15)",
    )


def show_comparison(
    comparison: Comparison, whole: Result, out: Console, *, every: bool, top: int | None
) -> None:
    """Print the largest differences or, if *every*, all."""
    if every:
        terminal.show_all(comparison, out, top)
        terminal.show_facts(whole, out)
    else:
        terminal.show_comparison(comparison, out, top)
