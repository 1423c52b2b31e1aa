# SPDX-License-Identifier: GPL-2.0
"""Run rungs on this machine, with ioloop's report."""

import argparse
import subprocess

from iopath.base.errors import IopathError
from iopath.cli import on_host
from iopath.cli.measuring import Scenario
from iopath.cli.options import number
from iopath.cli.work import Work
from iopath.host import devices, loop, survey

EXAMPLES = (
    "iopath run host --rung dio.pread",
    "iopath run host --rung 'raw.*' --op read --seconds 10",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    on_host.add_kernel(parser)
    parser.add_argument(
        "--seconds", type=number(1, 86400, "seconds"), default=3, metavar="N",
        help="how long each rung runs (default: 3)",
    )  # fmt: skip
    Scenario.add(parser)
    on_host.add_cpu(parser)


def run(args: argparse.Namespace, work: Work) -> int:
    on_host.prepare(work)
    runs = on_host.runs(Scenario.read(args), work.reporter.warn)
    cpu = survey.choose_cpu(args.on_cpu)
    devices.check(runs)
    for run in runs:
        words = loop.timed(run, cpu, args.seconds)
        work.say(f"$ {' '.join(words)}")
        status = subprocess.run(words, check=False).returncode
        if status:
            raise IopathError(f"{run.rung.name} {run.op}: ioloop ended with status {status}")
    return 0
