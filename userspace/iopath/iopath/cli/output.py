# SPDX-License-Identifier: GPL-2.0
"""The files that options name, and a comparison on the terminal."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from rich.console import Console

from iopath.base import files, stdout
from iopath.base.errors import UsageError
from iopath.cli.options import add_all, add_file, add_top
from iopath.compare.changes import Comparison
from iopath.results import result
from iopath.results.layers import Layers
from iopath.results.result import VIEWS, Result
from iopath.show import terminal

ABOUT = {
    "json": "the whole result, for compare and other programs",
    "html": "a page with charts, tables and flame graphs; it needs no network",
    "markdown": "the figures, for a mail or a commit message",
    "svg": "the ladder as a chart",
    "png": "the ladder as a chart",
    "history": "the figures over the kernels as a chart, .svg or .png",
    "folded": "call stacks, as flame graph tools read them",
}
_SUFFIXES = {"svg": (".svg",), "png": (".png",), "history": (".svg", ".png")}


def check(**paths: Path | None) -> None:
    """Refuse files that cannot be written, by the names of their options, before anything is
    measured."""
    piped = [f"--{name}" for name, path in paths.items() if path == stdout.NAME]
    if len(piped) > 1:
        raise UsageError(f"{' and '.join(piped)}: only one file can be the standard output")
    for name, path in paths.items():
        if not path:
            continue
        files.check(path)
        suffixes = _SUFFIXES.get(name)
        if suffixes and path.suffix not in suffixes and (path != stdout.NAME or len(suffixes) > 1):
            raise UsageError(
                f"--{name} {path}: the file's name must end in {' or '.join(suffixes)}"
            )


@dataclass(frozen=True)
class Files:
    """The files of a result, by the names of their options."""

    json: Path | None
    html: Path | None
    markdown: Path | None
    svg: Path | None
    png: Path | None
    history: Path | None
    folded: Path | None

    @staticmethod
    def add(parser: argparse.ArgumentParser) -> None:
        group = parser.add_argument_group("files to write")
        for name, about in ABOUT.items():
            add_file(group, name, about)

    @classmethod
    def read(cls, args: argparse.Namespace) -> Self:
        return cls(**{name: getattr(args, name) for name in ABOUT})

    def check(self) -> None:
        """Refuse files that cannot be written."""
        check(**vars(self))

    def check_views(self, views: Sequence[str]) -> None:
        """Refuse drawings of a result that has only these *views*."""
        for name in VIEWS:
            if vars(self)[name] and name not in views:
                raise UsageError(f"--{name}: only exact results can be drawn")

    def write(
        self, measured: Result, comparison: Comparison | None = None, layers: Layers | None = None
    ) -> None:
        self.check_views(measured.views)
        if self.json:
            data = result.dump(measured)
            if comparison:
                data["comparison"] = result.dump(comparison)
            files.write_text(self.json, json.dumps(data, indent=1) + "\n")
        if self.folded:
            files.write_text(self.folded, result.fold(measured.results))
        if self.html:
            from iopath.show import page

            files.write_text(self.html, page.render(measured, comparison, layers))
        if self.markdown:
            from iopath.show import markdown  # slow to load

            files.write_text(self.markdown, markdown.markdown(measured, comparison))
        if not (self.svg or self.png or self.history):
            return
        from iopath.show import charts  # slow to load

        for path, kind in ((self.svg, ".svg"), (self.png, ".png")):
            if path:
                charts.save(charts.ladder(measured), path, kind)
        if self.history:
            charts.save(charts.history(measured), self.history)


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
