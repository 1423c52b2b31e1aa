# SPDX-License-Identifier: GPL-2.0
"""Measure on 1 to N CPUs of this machine."""

import argparse
import json
import os

from iopath.base import files
from iopath.cli import on_host, output
from iopath.cli.options import add_file, block_size
from iopath.cli.work import Work
from iopath.host import survey
from iopath.results.ops import OPS
from iopath.show import terminal

EXAMPLES = ("iopath scale host", "iopath scale host --op write --bs 64k --svg scale.svg")


def add_options(parser: argparse.ArgumentParser) -> None:
    on_host.add_kernel(parser)
    parser.add_argument("--op", choices=OPS, default="read", help="default: read")
    parser.add_argument(
        "--bs", type=block_size, default=4096, metavar="SIZE", help="bytes per I/O (default: 4k)"
    )
    add_file(parser, "json", output.ABOUT["json"])
    add_file(parser, "svg", "the figures as a chart")


def run(args: argparse.Namespace, work: Work) -> int:
    from iopath.host import scaling  # what draws is slow to load

    output.check(json=args.json, svg=args.svg)
    on_host.prepare(work)
    with work.reporter.running(1), work.reporter.task(survey.NAME) as step:
        records = scaling.measure(sorted(os.sched_getaffinity(0)), args.op, args.bs, step)
    if args.json:
        files.write_text(
            args.json, json.dumps([vars(record) for record in records], indent=1) + "\n"
        )
    if args.svg:
        from iopath.show import charts

        charts.save(scaling.chart(records), args.svg, ".svg")
    terminal.show_scaling(records, work.out)
    return 0
