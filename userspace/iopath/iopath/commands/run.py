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
from iopath.cli.measuring import Guest, Scenario, add_range
from iopath.cli.options import add_all, add_file, add_layers, add_top, number, percent
from iopath.cli.output import Files, show_comparison
from iopath.cli.work import Work
from iopath.compare import limits, noise
from iopath.host import loop, survey, targets
from iopath.measure.commandline import settings_of
from iopath.results import checks
from iopath.results.layers import table
from iopath.results.result import Result
from iopath.show import terminal
from iopath.show.reports import ProfileReport, report
from iopath.studies import boots, onekernel

EXAMPLES = (
    "iopath run debian:6.1 debian:7.2 --package fio -- fio job.fio",
    "iopath run debian:7.2 --before old/prog --after new/prog -- /dev/blknull0",
)
PROGRAM = True  # after --

_SECONDS = 3
_ONLY_COUNTED = ("output", "all", "top", "boots", "before", "after", "baseline")  # not of the host


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kernels", nargs="+", metavar="KERNEL")
    group = parser.add_argument_group("compare programs on one kernel")
    group.add_argument(
        "--before", metavar="PROGRAM", help="one build of a program, whose arguments are after --"
    )
    group.add_argument("--after", metavar="PROGRAM", help="the build that is compared with it")
    add_file(group, "baseline", "compare with this file, which --update-baseline wrote")
    group.add_argument(
        "--update-baseline", action="store_true", help="write what is measured to the baseline"
    )
    add_file(parser, "output", "file for what the program prints on the first kernel")
    parser.add_argument(
        "--fail-above", type=percent, metavar="PERCENT",
        help="exit with 1 if the whole, its I/O or a system call grows by more than PERCENT, with"
        " 125 if it cannot be judged",
    )  # fmt: skip
    add_all(parser)
    add_top(parser, "functions to show of each system call (default: 1)")
    parser.add_argument(
        "--boots", type=number(1, 100, "boots"), metavar="N",
        help="boot each kernel N times, with different seeds (default: 1, or with --fail-above"
        f" {noise.OFTEN})",
    )  # fmt: skip
    add_layers(parser)
    Files.add(parser, ProfileReport)
    parser.add_argument(
        "--seconds", type=number(1, 86400, "seconds"), metavar="N",
        help=f"host: how long each rung runs (default: {_SECONDS})",
    )  # fmt: skip
    Command.add(parser)
    Scenario.add(parser)
    on_host.add_cpu(parser)
    Guest.add(parser)
    Building.add(parser)
    add_range(parser)


def run(args: argparse.Namespace, work: Work) -> int:
    scenario, guest, building = Scenario.read(args), Guest.read(args), Building.read(args)
    command = Command.read(args)
    written = Files.read(args)
    others = command.used | dict.fromkeys(written.paths, True)
    others |= {name: bool(vars(args)[name]) for name in _ONLY_COUNTED}
    others |= {"fail-above": args.fail_above is not None}
    if on_host.is_asked(args.kernels, scenario, guest, building.arch, others):
        if command.words:
            raise UsageError("host: runs rungs; a program is counted on another KERNEL")
        return _on_host(scenario, args, work)
    two = _two_builds(args)
    if not (command.words or two):
        raise UsageError("run: no program: give it after --, as in iopath run debian:6.1 -- ls")
    if two:
        replace(command, words=[args.before]).check(args)
    else:
        command.check(args)
    guest.need_counts()
    building.check(args.kernels)
    written.check(output=args.output)
    baseline = _baseline(args)
    with work.session() as session:
        session.recipe = building.recipe(session)
        names = session.expand(args.kernels, every=args.every, merges=args.merges)
        if (two or args.baseline) and len(names) > 1:
            raise UsageError("--before and --baseline: compare programs: give one kernel")
        if args.fail_above is not None and len(names) == 1 and not (two or baseline):
            raise UsageError("--fail-above: needs two kernels, two builds or a baseline")
        arch = session.find(names[0]).arch
        builds = command.builds(session, arch, args.before, args.after) if two else {}
        measures: boots.Measures = onekernel.Builds(session, names[0], builds) if two else session
        settings = replace(
            settings_of(builds[args.before]) if two else command.settings(session, arch),
            machine=guest.machine, layers=args.layers,
        )  # fmt: skip
        names = [*builds] or names
        # A gate judges, also later by a baseline, so it takes as many boots as decide.
        judges = args.fail_above is not None or args.update_baseline
        settings = boots.asked(settings, args.boots or (None if judges else 1))
        measured = measures.results(names, settings)
        printed = measures.printed[names[0]]
        layers = table(args.layers)
        if len(names) > 1:
            same = {name: name for name in names}
            found = boots.compare(measures, settings, measured, same, layers)
        elif baseline:
            found = boots.decide(
                session, settings, measured,
                lambda results: onekernel.with_baseline(
                    str(args.baseline), baseline, results[names[0]], layers
                ),
            )  # fmt: skip
            measured = {names[0]: found.measured}
    if args.update_baseline:
        files.write_text(args.baseline, report(measured[names[0]]).json())
    if args.output:
        files.write(args.output, printed)
    if len(names) == 1 and not baseline:
        written.write(report(measured[names[0]]))
        terminal.show(measured[names[0]], work.out, every=args.all, top=args.top)
        return 0
    written.write(report(found.whole, found.comparison, layers))
    show_comparison(found.comparison, found.whole, work.out, every=args.all, top=args.top)
    if args.fail_above is not None:
        limits.gate(*limits.regressions(found.comparison, args.fail_above, []))
    return 0


def _two_builds(args: argparse.Namespace) -> bool:
    """Whether two builds of a program are compared."""
    if not (args.before or args.after):
        return False
    if not (args.before and args.after):
        raise UsageError("--before and --after: give both, one build of the program each")
    if args.package or args.baseline:
        other = "--package" if args.package else "--baseline"
        raise UsageError(f"--before: two files are compared: leave {other} out")
    if args.before == args.after:
        raise UsageError(f"--after {args.after}: the same file as --before")
    return True


def _baseline(args: argparse.Namespace) -> Result | None:
    """The baseline, if there is one."""
    if not args.baseline:
        if args.update_baseline:
            raise UsageError("--update-baseline: name the file by --baseline")
        return None
    if args.baseline.exists():
        return checks.load(args.baseline)
    if not args.update_baseline:
        raise UsageError(f"--baseline {args.baseline}: no such file: --update-baseline writes it")
    files.check(args.baseline)
    return None


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
