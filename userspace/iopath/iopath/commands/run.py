# SPDX-License-Identifier: GPL-2.0
"""Count what any program costs, by its system calls; or run rungs on this machine."""

import argparse
import subprocess
from dataclasses import replace

from iopath.base import files
from iopath.base.errors import IopathError, UsageError
from iopath.cli import on_host
from iopath.cli.building import Building
from iopath.cli.command import Command
from iopath.cli.measuring import Guest, Range, Scenario
from iopath.cli.options import add_all, add_file, add_layers, add_top, number, percent
from iopath.cli.output import Files, show_comparison
from iopath.cli.work import Work
from iopath.compare import limits, noise
from iopath.host import loop, survey, targets
from iopath.results.layers import table
from iopath.show import terminal
from iopath.show.reports import ProgramReport, report
from iopath.studies import boots

EXAMPLES = (
    "iopath run debian:6.1 debian:7.2 --package fio -- fio job.fio",
    "iopath run host --rung dio.pread",
)
PROGRAM = True  # after --

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
    parser.add_argument(
        "--boots", type=number(1, 100, "boots"), metavar="N",
        help="boot each kernel N times, with different seeds (default: 1, or with --fail-above"
        f" {noise.OFTEN})",
    )  # fmt: skip
    add_layers(parser)
    Files.add(parser, ProgramReport)
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


def run(args: argparse.Namespace, work: Work) -> int:
    scenario, guest, building = Scenario.read(args), Guest.read(args), Building.read(args)
    command = Command.read(args)
    written = Files.read(args)
    others = command.used | dict.fromkeys(written.paths, True)
    others |= {name: bool(vars(args)[name]) for name in ("output", "all", "top", "boots")}
    others |= {"fail-above": args.fail_above is not None}
    if on_host.is_asked(args.kernels, scenario, guest, building.arch, others):
        if command.words:
            raise UsageError("host: runs rungs; a program is counted on another KERNEL")
        return _on_host(scenario, args, work)
    if not command.words:
        raise UsageError("run: no program: give it after --, as in iopath run debian:6.1 -- ls")
    command.check(args)
    guest.need_counts()
    building.check(args.kernels)
    written.check(output=args.output)
    with work.session() as session:
        session.recipe = building.recipe(session)
        names = Range.read(args).expand(session, args.kernels)
        if args.fail_above is not None and len(names) == 1:
            raise UsageError("--fail-above: needs two kernels")
        settings = command.settings(session, session.find(names[0]).arch)
        settings = replace(settings, machine=guest.machine, layers=args.layers)
        # A gate judges, so it takes as many boots as decide.
        settings = boots.asked(settings, args.boots or (1 if args.fail_above is None else None))
        measured = session.results(names, settings)
        printed = session.printed[names[0]]
        layers = table(args.layers)
        if len(names) > 1:
            same = {name: name for name in names}
            found = boots.compare(session, settings, measured, same, layers)
    if args.output:
        files.write(args.output, printed)
    if len(names) == 1:
        written.write(report(measured[names[0]]))
        terminal.show(measured[names[0]], work.out, every=args.all, top=args.top)
        return 0
    written.write(report(found.whole, found.comparison, layers))
    show_comparison(found.comparison, found.whole, work.out, every=args.all, top=args.top)
    if args.fail_above is not None:
        limits.gate(*limits.regressions(found.comparison, args.fail_above, []))
    return 0


def _on_host(scenario: Scenario, args: argparse.Namespace, work: Work) -> int:
    on_host.prepare(work)
    runs = on_host.runs(scenario, work.reporter.warn)
    cpu = survey.choose_cpu(args.on_cpu)
    targets.check(runs)
    for run in runs:
        words = loop.timed(run, cpu, args.seconds or _SECONDS)
        work.say(f"$ {' '.join(words)}")
        status = subprocess.run(words, check=False).returncode
        if status:
            raise IopathError(f"{run.rung.name} {run.op}: ioloop ended with status {status}")
    return 0
