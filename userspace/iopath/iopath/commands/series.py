# SPDX-License-Identifier: GPL-2.0
"""What each commit of a range costs."""

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import replace

from iopath.base.errors import NotMeasured, Unreachable, UsageError
from iopath.cli.building import Building
from iopath.cli.command import Command
from iopath.cli.measuring import Guest, Range, Scenario, add_boots, add_cpus, add_scheduler
from iopath.cli.options import add_all, add_layers, percent
from iopath.cli.output import Files
from iopath.cli.work import Work
from iopath.compare import limits
from iopath.kernels import finder
from iopath.results.layers import table
from iopath.show import views
from iopath.studies import boots, series

EXAMPLES = (
    "iopath series v6.12..my-branch --rung 'dio.*'",
    "iopath series git:linux@v6.12..v6.13 --every 100 --rung dio.pread --op read",
)
PROGRAM = True  # after --


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "range", metavar="A..B", help="the commits; of this folder's repository, or git:PATH@A..B"
    )
    Command.add(parser)
    Scenario.add(parser)
    Guest.add(parser)
    Building.add(parser)
    Range.add(parser)
    add_scheduler(parser)
    add_cpus(parser)
    parser.add_argument(
        "--fail-above", type=percent, metavar="PERCENT",
        help="exit with 1 if a commit makes any rung, the program or a system call grow by more"
        " than PERCENT, with 125 if one cannot be judged",
    )  # fmt: skip
    add_boots(parser)
    add_all(parser)
    add_layers(parser)
    Files.add(parser, series.SeriesReport)


def run(args: argparse.Namespace, work: Work) -> int:
    guest = Guest.read(args)
    files = Files.read(args)
    files.check()
    guest.need_counts()
    name = finder.commits(args.range)
    if ".." not in name:
        raise UsageError(f"{args.range}: not a range of commits: it must be like A..B")
    command = Command.read(args)
    of_program = command.check(args)
    layers = table(args.layers)
    with work.session(args.scheduler) as session:
        session.recipe = Building.read(args).recipe(session)
        names = Range.read(args).expand(session, [name])
        entries: list[series.SeriesCommit] = []
        settings = replace(
            command.settings(session, session.find(names[0]).arch)
            if of_program
            else Scenario.read(args).settings(guest.added()),
            machine=guest.machine, profile=True, layers=args.layers, cpus=args.cpus,
        )  # fmt: skip
        settings = boots.asked(settings, args.boots)
        try:
            series.measure(session, names, settings, layers, session.reporter.note, entries)
        except Unreachable as error:
            raise NotMeasured(str(error)) from error
        finally:
            # Also after an interruption.
            if entries:
                report = series.SeriesReport(entries, layers, _command(work), every=args.all)
                files.write(report)
                series.show(entries, work.out, every=args.all)
    if args.fail_above is not None:
        limits.gate(*series.judged(entries, args.fail_above))
    failed = [entry.commit for entry in entries if entry.error]
    if failed:
        raise NotMeasured(f"not measured: {', '.join(failed)}")
    return 0


def _command(work: Work) -> str:
    return shlex.join(["iopath", *_without_files(work.argv)])


def _without_files(argv: Sequence[str]) -> list[str]:
    """The words of a command without the files that it writes."""
    files = [f"--{view.option}" for view in views.VIEWS]
    found, words = [], iter(argv)
    for word in words:
        if word == "--":
            return [*found, word, *words]
        if word in files:
            next(words, None)
        elif word.partition("=")[0] not in files:
            found.append(word)
    return found
