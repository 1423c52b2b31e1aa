# SPDX-License-Identifier: GPL-2.0
"""Compare kernels or result files with the first, function by function."""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from iopath.base.errors import UsageError
from iopath.cli.building import Building
from iopath.cli.choice import Choice, is_file
from iopath.cli.command import Command
from iopath.cli.measuring import Guest, Scenario, add_boots, add_cpus, add_range, add_scheduler
from iopath.cli.options import add_file, add_layers, percent
from iopath.cli.output import Files, add_comparison, show_comparison
from iopath.cli.work import Work
from iopath.compare import bridge, compare, limits, sharing_changes
from iopath.results import bridgefile
from iopath.results.layers import table
from iopath.results.result import Result
from iopath.show import sharing_tables
from iopath.show.reports import ProfileReport, report
from iopath.studies import boots

EXAMPLES = (
    "iopath compare debian:6.1 debian:7.2",
    "iopath compare tree:linux tree:linux-patched --rung 'dio.*' --fail-above 1",
)
PROGRAM = True  # after --


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kernels", nargs="+", metavar="KERNEL|FILE.json")
    parser.add_argument(
        "--fail-above", type=percent, metavar="PERCENT",
        help="exit with 1 if any rung grows by more than PERCENT, with 125 if it cannot be judged",
    )  # fmt: skip
    add_file(parser, "limits", 'limits per rung and metric, TOML: "dio.pread read locked" = 0')
    parser.add_argument(
        "--anyway", action="store_true", help="compare results even if more than the kernel differs"
    )
    add_file(parser, "time", "also estimate the time of each change by this file of iopath bridge")
    Command.add(parser)
    Scenario.add(parser)
    Guest.add(parser)
    Building.add(parser)
    add_range(parser)
    add_scheduler(parser)
    add_cpus(parser)
    add_boots(parser)
    add_comparison(parser)
    add_layers(parser)
    Files.add(parser, ProfileReport)


def run(args: argparse.Namespace, work: Work) -> int:
    command = Command.read(args)
    of_program = command.check(args)
    scenario, guest = Scenario.read(args), Guest.read(args)
    guest.need_counts()
    added = guest.added()
    settings = scenario.settings(added)
    building = Building.read(args)
    building.check(args.kernels)
    files = Files.read(args)
    files.check()
    to_time = bridgefile.load(args.time) if args.time else None
    layers, names = table(args.layers), args.kernels
    if of_program and all(map(is_file, names)):
        raise UsageError("compare: files have their program: leave it out")
    choice = Choice(scenario.rungs, scenario.ops, scenario.block_sizes, added)
    limits_ = limits.read(args.limits, choice.known, choice.unknown) if args.limits else []
    loaded = choice.load(names)

    def judge(results: Mapping[str, Result]) -> compare.Compared:
        parts = [
            (Path(name).name if is_file(name) else "measured now", results[name]) for name in names
        ]
        return compare.compare_all(parts, layers, anyway=args.anyway)

    if loaded.keys() >= set(names):
        found = judge(loaded)
    else:
        with work.session(args.scheduler) as session:
            session.recipe = building.recipe(session)
            names = session.expand(names, every=args.every, merges=args.merges)
            if len(names) == 1:
                raise UsageError(compare.NOTHING)
            own = [name for name in names if name not in loaded]
            if of_program:
                settings = command.settings(session, session.find(own[0]).arch)
            settings = replace(
                settings, machine=guest.machine, profile=True, layers=args.layers, cpus=args.cpus
            )
            settings = boots.asked(settings, args.boots)
            measured = session.results(own, settings)
            found = boots.decide(
                session, settings, measured, lambda results: judge(loaded | results)
            )
    whole, comparison = found.whole, found.comparison
    grown, unknown = limits.regressions(comparison, args.fail_above, limits_)
    if to_time:
        bridge.add_times(comparison, whole, to_time, str(args.time))
    files.write(report(whole, comparison, layers))
    show_comparison(comparison, whole, work.out, every=args.all, top=args.top)
    sharing_tables.show_changes(sharing_changes.changes(whole), work.out)
    if args.fail_above is not None or limits_:
        limits.gate(grown, [*unknown, *choice.missing(whole)])
    return 0
