# SPDX-License-Identifier: GPL-2.0
"""List the kernels that can be measured."""

import argparse
import json
from collections.abc import Callable, Iterable, Sequence

from rich.console import Console

from iopath.base import files
from iopath.base.arch import BY_DEBIAN, Arch
from iopath.cli.options import add_arch, add_file
from iopath.cli.work import Work
from iopath.kernels.apt import Apt
from iopath.kernels.sources.debian import DebianKernel, by_series, list_debian
from iopath.show.console import put, put_text
from iopath.show.table import Table

EXAMPLES = ("iopath kernels", "iopath kernels --update --json kernels.json")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--all",
        action="store_true",
        help="list every release, also those with parts missing on the mirror",
    )
    add_arch(parser, "their architecture")
    parser.add_argument("--update", action="store_true", help="refresh the package lists")
    add_file(parser, "json", "write the list of releases to FILE")


def run(args: argparse.Namespace, work: Work) -> int:
    arch = BY_DEBIAN[args.arch]
    with work.cache() as cache:
        packages = Apt(cache, work.reporter.warn).of(arch)
        kernels = list_debian(packages.packages(update=args.update))
        cached = {k.release for k in kernels if k.is_kept(cache)}
    shown = [k for k in kernels if args.all or not k.missing]
    if args.json:
        listed = [vars(k) | {"cached": k.release in cached} for k in shown]
        files.write_text(args.json, json.dumps(listed, indent=1) + "\n")

    def state(kernel: DebianKernel) -> str:
        if kernel.release in cached:
            return "cached"
        if kernel.missing:
            return f"unavailable: {kernel.missing} is no longer on the mirror"
        return "available"

    if args.all:
        _show(shown, state, work.out)
    else:
        _show_series(shown, arch, state, work.out)
    return 0


_State = Callable[[DebianKernel], str]


def _show(kernels: Iterable[DebianKernel], state: _State, console: Console) -> None:
    """List every release, oldest first."""
    table = Table("kernel", "package version", "suite")
    table.text_column("state", below=True)
    for kernel in kernels:
        style = "dim" if kernel.missing else ""
        name = f"debian:{kernel.release}"
        table.row(name, kernel.version, kernel.suite, state(kernel), style=style)
    put(console, table)


def _show_series(
    kernels: Sequence[DebianKernel], arch: Arch, state: _State, console: Console
) -> None:
    """List the name of each series, and the release that it means today."""
    table = Table("kernel", "today", "suite", "state")
    for name, kernel in by_series(kernels, arch).items():
        table.row(f"debian:{name}", kernel.release, kernel.suite, state(kernel))
    put(console, table)
    put_text(console, f"--all lists all {len(kernels)} releases; debian:RELEASE names one", "dim")
