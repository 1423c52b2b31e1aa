# SPDX-License-Identifier: GPL-2.0
"""What each feature of a kernel costs an I/O, or a program."""

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from iopath.base.errors import IopathError, UsageError
from iopath.cli.building import Building
from iopath.cli.command import Command
from iopath.cli.measuring import add_boots, add_cpus, add_scheduler, add_seed
from iopath.cli.output import Files
from iopath.cli.work import Work
from iopath.guest.machine import Machine
from iopath.results.layers import table
from iopath.results.ops import OPS
from iopath.rungs import feature
from iopath.rungs.feature import Base, Feature
from iopath.rungs.rung import Rung
from iopath.rungs.runs import Settings
from iopath.show.console import put
from iopath.show.table import Table
from iopath.studies import boots, bpf, features, featuretable
from iopath.studies.featurereport import FeaturesReport

EXAMPLES = (
    "iopath features debian:7.2",
    "iopath features debian:6.1 debian:7.2 --feature 'trace.*' --with iostats,audit",
)
PROGRAM = True  # after --


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kernels", nargs="*", metavar="KERNEL")
    parser.add_argument(
        "--feature", action="append", default=[], metavar="NAME",
        help="only these features, wildcards allowed (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--with", dest="together", action="append", default=[], metavar="A,B",
        help="also measure these features together",
    )  # fmt: skip
    parser.add_argument(
        "--features", type=Path, metavar="FILE", help="add the features in this TOML file"
    )
    parser.add_argument(
        "--bpf", type=Path, action="append", default=[], metavar="FILE.o",
        help="attach the programs of this object of eBPF: a feature of the file's name",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="list the features instead")
    parser.add_argument(
        "--rung", action="append", default=[], metavar="NAME",
        help="measure all features on these rungs (default: those that suit each)",
    )  # fmt: skip
    parser.add_argument("--op", choices=OPS, action="append", help="only this operation")
    Command.add(parser)
    add_cpus(parser)
    add_boots(parser)
    add_seed(parser)
    Building.add(parser)
    add_scheduler(parser)
    Files.add(parser, FeaturesReport)


def run(args: argparse.Namespace, work: Work) -> int:
    files = Files.read(args)
    files.check()
    if not args.kernels and not args.list:
        raise UsageError("no kernel is given: e.g. iopath features debian:6.12")
    command = Command.read(args)
    of_program = command.check(args)
    building = Building.read(args)
    building.check(args.kernels)
    base, known = feature.load(args.features)
    objects = [bpf.feature(path) for path in args.bpf]
    feature.distinct(known := [*known, *objects], "--bpf")
    asked = [*args.feature, *(one.name for one in objects)]
    alone, together = feature.choose(known, asked), []
    for names in args.together:
        some = [feature.choose(known, [name]) for name in names.split(",")]
        together.append(feature.together([one for part in some for one in part]))
    chosen = [feature.PLAIN, *alone, *together]
    if args.list:
        listed = Table("feature")
        listed.text_column("is", wraps=True, joined=True)
        for one in chosen:
            listed.row(one.name, one.about)
        put(work.out, listed)
        return 0
    machine = Machine(cmdline=base.cmdline, seed=args.seed)
    with work.session(args.scheduler) as session:
        session.recipe = building.recipe(session)
        settings = Settings([], ops=args.op or (), cpus=args.cpus)
        if of_program:
            settings = command.settings(session, session.find(args.kernels[0]).arch)
            named = [*(alone if asked else ()), *together]
            chosen = _suiting(chosen, base, settings.rungs[0], named)
        settings = replace(settings, machine=machine, profile=True)
        settings = boots.asked(settings, args.boots)
        study = features.FeatureStudy(session, base, settings, table(None))
        costs = study.measure(args.kernels, chosen, args.rung)
    said = shlex.join(command.words)
    files.write(FeaturesReport(base, costs, said))
    featuretable.show(base, costs, work.out, said)
    failed = dict.fromkeys(cost.feature for cost in costs if cost.error)
    if failed:
        raise IopathError(f"not measured: {', '.join(failed)}")
    return 0


def _suiting(
    chosen: Sequence[Feature], base: Base, device: Rung, named: Sequence[Feature]
) -> list[Feature]:
    """Those of the *chosen* features that a program on a *device* can have. It is an error if
    another was *named*."""
    suiting = [one for one in chosen if one.suits(device, base)]
    for one in named:
        if one not in suiting:
            rungs = ", ".join(one.rungs or base.rungs)
            raise UsageError(f"feature {one.name}: is for rungs such as {rungs}")
    return suiting
