# SPDX-License-Identifier: GPL-2.0
"""Show the path of one I/O on this machine."""

import argparse

from iopath.base.errors import UsageError
from iopath.cli import on_host
from iopath.cli.measuring import Scenario
from iopath.cli.work import Work
from iopath.host import devices, ftrace, survey

EXAMPLES = (
    "iopath trace host --rung dio.pread --op read",
    "iopath trace host --rung dio.pread --op write --bs 64k",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    on_host.add_kernel(parser)
    Scenario.add(parser)
    on_host.add_cpu(parser)


def run(args: argparse.Namespace, work: Work) -> int:
    scenario = Scenario.read(args)
    on_host.prepare(work)
    runs = on_host.runs(scenario, work.reporter.warn)
    cpu = survey.choose_cpu(args.on_cpu)
    if not scenario.rungs:
        raise UsageError("trace: give a rung, e.g. --rung dio.pread")
    devices.check(runs)
    for run in runs:
        title = f"{run.rung.name} {run.op}, microseconds, including ftrace's overhead:"
        work.out.print(title, style="bold")
        work.say("\n".join(ftrace.trace(run, cpu)))
    return 0
