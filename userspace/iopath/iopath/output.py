# SPDX-License-Identifier: GPL-2.0
"""Write the files that options ask for."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from iopath import files, markdown, result
from iopath.comparison import Comparison
from iopath.errors import UsageError
from iopath.layers import Layers
from iopath.options import FILES
from iopath.result import VIEWS, Result


def write_text(path: Path, text: str) -> None:
    files.write(path, text.encode())


def check(args: argparse.Namespace) -> None:
    """Refuse files that cannot be written, before anything is measured."""
    for name in FILES:
        path = getattr(args, name)
        if path:
            files.check(path)
        if path and name in ("svg", "png") and path.suffix != f".{name}":
            raise UsageError(f"--{name} {path}: the file's name must end in .{name}")
    if args.history and args.history.suffix not in (".svg", ".png"):
        raise UsageError(f"--history {args.history}: the file's name must end in .svg or .png")


def check_views(args: argparse.Namespace, views: Sequence[str]) -> None:
    """Refuse drawings of a result that has only these *views*."""
    for name in VIEWS:
        if getattr(args, name) and name not in views:
            raise UsageError(f"--{name}: only exact results can be drawn")


def write(
    args: argparse.Namespace,
    measured: Result,
    comparison: Comparison | None,
    layers: Layers | None = None,
) -> None:
    """Write the files that the options name."""
    check_views(args, measured.views)
    if args.json:
        data = result.dump(measured)
        if comparison:
            data["comparison"] = result.dump(comparison)
        write_text(args.json, json.dumps(data, indent=1) + "\n")
    if args.folded:
        write_text(args.folded, result.fold(measured.results))
    if args.html:
        from iopath import webpage

        write_text(args.html, webpage.render(measured, comparison, layers))
    if args.markdown:
        write_text(args.markdown, markdown.markdown(measured, comparison))
    if not (args.svg or args.png or args.history):
        return
    from iopath import charts  # slow to load

    for path in filter(None, (args.svg, args.png)):
        charts.save(charts.ladder(measured), path)
    if args.history:
        charts.save(charts.history(measured), args.history)
