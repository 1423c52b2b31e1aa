# SPDX-License-Identifier: GPL-2.0
"""Count what any program costs, by its system calls; or run rungs on this machine."""

import argparse
import subprocess
from collections.abc import Sequence

from iopath.base import files
from iopath.base.errors import IopathError, UsageError
from iopath.cli import on_host
from iopath.cli.building import Building
from iopath.cli.measuring import Guest, Range, Scenario, add_boots
from iopath.cli.options import add_all, add_file, add_top, number, percent
from iopath.cli.output import Files
from iopath.cli.program import Command, report
from iopath.cli.work import Work
from iopath.compare import limits
from iopath.compare import program as changes
from iopath.host import devices, loop, survey
from iopath.measure import program
from iopath.results.program import Ran
from iopath.show.programreport import ProgramReport

EXAMPLES = (
    "iopath run debian:6.1 debian:7.2 --package fio -- fio job.fio",
    "iopath run host --rung dio.pread",
)
PROGRAM = True  # behind --

_SECONDS = 3


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kernels", nargs="+", metavar="KERNEL")
    add_file(parser, "output", "file for what the program prints on the first kernel")
    parser.add_argument(
        "--fail-above", type=percent, metavar="PERCENT",
        help="exit with 1 if the whole or a system call grows by more than PERCENT, with 125 if it"
        " cannot be judged",
    )  # fmt: skip
    add_all(parser)
    add_top(parser, "functions to show of each system call (default: 1)")
    add_boots(parser, 1)
    parser.add_argument(
        "--seconds", type=number(1, 86400, "seconds"), metavar="N",
        help=f"host: how long each rung runs (default: {_SECONDS})",
    )  # fmt: skip
    Command.add(parser)
    Scenario.add(parser)
    on_host.add_cpu(parser)
    Guest.add(parser)
    Building.add(parser)
    Range.add(parser)
    Files.add(parser, ProgramReport)


def run(args: argparse.Namespace, work: Work) -> int:
    scenario, guest, building = Scenario.read(args), Guest.read(args), Building.read(args)
    command, views = Command.read(args), Files.read(args)
    shown = ("output", "all", "top")
    others = command.used | {name: bool(vars(args)[name]) for name in shown}
    others |= dict.fromkeys(views.paths, True)
    others |= {"fail-above": args.fail_above is not None, "boots": args.boots != 1}
    if on_host.is_asked(args.kernels, scenario, guest, building.arch, others):
        if command.words:
            raise UsageError("host: runs rungs; a program is counted on another KERNEL")
        return _on_host(scenario, args, work)
    if not command.words:
        raise UsageError("run: no program: name it behind --, as in iopath run debian:6.1 -- ls")
    command.check(args)
    guest.need_counts()
    building.check(args.kernels)
    views.check(output=args.output)
    return _count(args, command, guest, building, work)


def _count(
    args: argparse.Namespace, command: Command, guest: Guest, building: Building, work: Work
) -> int:
    with work.session() as session:
        session.recipe = building.recipe(session)
        names = Range.read(args).expand(session, args.kernels)
        if repeated := [name for name in names if names.count(name) > 1]:
            raise UsageError(f"{repeated[0]}: a kernel may be named once")
        wanted = command.program(session, session.find(names[0]).arch)
        ran, printed, qemu = program.run(session, names, wanted, guest.machine, args.boots)
    if args.output:
        files.write(args.output, printed[names[0]])
    report(args, work, command.result(ran, wanted, guest.machine, qemu))
    if args.fail_above is not None:
        _judge(ran, args.fail_above)
    return 0


def _judge(ran: Sequence[Ran], limit: float) -> None:
    if len(ran) == 1:
        raise UsageError("--fail-above: needs two kernels")
    grown, unknown = [], []
    for other in ran[1:]:
        more, untold = changes.regressions(ran[0], other, limit)
        grown += more
        unknown += untold
    limits.gate(grown, unknown)


def _on_host(scenario: Scenario, args: argparse.Namespace, work: Work) -> int:
    on_host.prepare(work)
    runs = on_host.runs(scenario, work.reporter.warn)
    cpu = survey.choose_cpu(args.on_cpu)
    devices.check(runs)
    for run in runs:
        words = loop.timed(run, cpu, args.seconds or _SECONDS)
        work.say(f"$ {' '.join(words)}")
        status = subprocess.run(words, check=False).returncode
        if status:
            raise IopathError(f"{run.rung.name} {run.op}: ioloop ended with status {status}")
    return 0
