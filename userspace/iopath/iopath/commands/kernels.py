# SPDX-License-Identifier: GPL-2.0
"""List the kernels that can be measured."""

import argparse
import json
from collections.abc import Iterable

from rich.console import Console

from iopath.base import files
from iopath.base.arch import BY_DEBIAN
from iopath.cli.options import add_arch, add_file
from iopath.cli.work import Work
from iopath.kernels.apt import Apt
from iopath.kernels.sources.debian import DebianKernel, list_debian
from iopath.show.console import put
from iopath.show.table import Table

EXAMPLES = ("iopath kernels", "iopath kernels --update --json kernels.json")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="also those with parts missing there")
    add_arch(parser, "their architecture")
    parser.add_argument("--update", action="store_true", help="refresh the package lists")
    add_file(parser, "json", "write the list to FILE")


def run(args: argparse.Namespace, work: Work) -> int:
    with work.cache() as cache:
        packages = Apt(cache, work.reporter.warn).of(BY_DEBIAN[args.arch])
        kernels = list_debian(packages.packages(update=args.update))
        cached = {k.release for k in kernels if k.is_kept(cache)}
        shown = [k for k in kernels if args.all or not k.missing]
        if args.json:
            listed = [vars(k) | {"cached": k.release in cached} for k in shown]
            files.write_text(args.json, json.dumps(listed, indent=1) + "\n")
        _show(shown, cached, work.out)
    return 0


def _show(kernels: Iterable[DebianKernel], cached: set[str], console: Console) -> None:
    """List the kernels there are, oldest first."""
    table = Table("kernel", "package version", "suite", "state")
    for kernel in kernels:
        if kernel.release in cached:
            state = "cached"
        elif kernel.missing:
            state = f"unavailable: {kernel.missing} is no longer on the mirror"
        else:
            state = "available"
        style = "dim" if kernel.missing else ""
        table.row(f"debian:{kernel.release}", kernel.version, kernel.suite, state, style=style)
    put(console, table)
