# SPDX-License-Identifier: GPL-2.0
"""Relate instructions to the time of this machine, and estimate other kernels."""

import argparse
import json
from pathlib import Path

from iopath.base import files
from iopath.cli import output
from iopath.cli.options import add_file
from iopath.cli.work import Work
from iopath.compare import bridge
from iopath.results import checks, result
from iopath.show import bridgetable

EXAMPLES = (
    "iopath bridge host.json exact.json",
    "iopath bridge host.json exact.json --json bridge.json",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("host", type=Path, metavar="HOST.json", help="written by measure host")
    parser.add_argument(
        "exact", type=Path, metavar="EXACT.json",
        help="written by measure or compare, with a kernel of the same release",
    )  # fmt: skip
    add_file(parser, "json", "the bridge, for compare --time")


def run(args: argparse.Namespace, work: Work) -> int:
    output.check(json=args.json)
    exact = checks.load(args.exact)
    made = bridge.make((str(args.host), checks.load(args.host)), (str(args.exact), exact))
    if args.json:
        files.write_text(args.json, json.dumps(result.dump(made), indent=1) + "\n")
    bridgetable.show(made, exact, work.out)
    return 0
