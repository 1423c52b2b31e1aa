# SPDX-License-Identifier: GPL-2.0
"""Find the kernel package, or the commit, that changed a rung or a program."""

import argparse
from dataclasses import replace

from iopath.cli.building import Building
from iopath.cli.command import Command
from iopath.cli.measuring import Guest, Scenario, add_boots, add_cpus, add_scheduler
from iopath.cli.options import add_layers
from iopath.cli.output import Files, add_comparison, show_comparison
from iopath.cli.work import Work
from iopath.compare import sharing_changes
from iopath.results.layers import table
from iopath.show import sharing_tables
from iopath.show.reports import ProfileReport, report
from iopath.studies import bisection, boots

EXAMPLES = (
    "iopath bisect debian:6.1 debian:7.2 --rung dio.pread --op read",
    "iopath bisect git:linux@v6.12 git:linux@v6.13 --rung dio.pread --op read",
)
PROGRAM = True  # after --


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("good", metavar="GOOD", help="a kernel")
    parser.add_argument("bad", metavar="BAD", help="a kernel")
    Command.add(parser)
    Scenario.add(parser)
    Guest.add(parser)
    Building.add(parser)
    add_scheduler(parser)
    add_cpus(parser)
    parser.add_argument(
        "--metric", default="", metavar="NAME",
        help="follow this metric: instructions, all, locked, ..., with --cpus 'shared writes' or"
        " 'shared locked writes', or of a program a system call, such as read (default: that by"
        " which the ends differ)",
    )  # fmt: skip
    add_boots(parser)
    add_comparison(parser)
    add_layers(parser)
    Files.add(parser, ProfileReport)


def run(args: argparse.Namespace, work: Work) -> int:
    guest, building, files = Guest.read(args), Building.read(args), Files.read(args)
    command = Command.read(args)
    of_program = command.check(args)
    files.check()
    guest.need_counts()
    building.check([args.good])
    layers = table(args.layers)
    with work.session(args.scheduler) as session:
        session.recipe = building.recipe(session)
        settings = replace(
            command.settings(session, session.find(args.good).arch)
            if of_program
            else Scenario.read(args).settings(guest.added()),
            machine=guest.machine, layers=args.layers, cpus=args.cpus,
        )  # fmt: skip
        settings = boots.asked(settings, args.boots)
        looked = bisection.Search(session, settings, work.say, args.metric)
        good, bad = bisection.search(looked, session, args.good, args.bad, work.say)
        found = looked.compare(good, bad, layers)
        whole, comparison = found.whole, found.comparison
        files.write(report(whole, comparison, layers))
        work.say(f"first bad: {whole.names[1]}")
        show_comparison(comparison, whole, work.out, every=args.all, top=args.top)
        sharing_tables.show_changes(sharing_changes.changes(whole), work.out)
    return 0
