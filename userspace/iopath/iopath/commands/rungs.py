# SPDX-License-Identifier: GPL-2.0
"""List the rungs: what each one measures."""

import argparse
import json

from rich.console import Console

from iopath.cli.options import add_file
from iopath.cli.work import Work
from iopath.results.ops import OPS
from iopath.rungs import builtin
from iopath.show.console import put, put_text
from iopath.show.table import Table

EXAMPLES = ("iopath rungs", "iopath rungs --json rungs.json")


def add_options(parser: argparse.ArgumentParser) -> None:
    add_file(parser, "json", "write the list to FILE")


def run(args: argparse.Namespace, work: Work) -> int:
    if args.json:
        from iopath.base import files  # slow to load

        listed = [
            {"name": rung.name, "about": rung.about, "operations": rung.ops(OPS),
             "needs": rung.requires, "ladder": rung in builtin.LADDER}
            for rung in builtin.RUNGS
        ]  # fmt: skip
        files.write_text(args.json, json.dumps(listed, indent=1) + "\n")
    _show(work.out)
    return 0


def _show(console: Console) -> None:
    """List rungs, and say which are measured only if they are named."""
    table = Table("rung")
    table.text_column("measures")
    for rung in builtin.RUNGS:
        only = " (read only)" if rung.ops(OPS) == ["read"] else ""
        table.row(rung.name, rung.about + only)
    put(console, table)
    last = builtin.LADDER[-1].name
    put_text(
        console,
        f"Rungs after {last} are measured only if --rung names them. --json lists their operations,"
        " and what they need of a kernel.",
    )
