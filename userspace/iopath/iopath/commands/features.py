# SPDX-License-Identifier: GPL-2.0
"""What each feature of a kernel costs an I/O."""

import argparse
from pathlib import Path

from iopath.base.errors import IopathError, UsageError
from iopath.cli.building import Building
from iopath.cli.measuring import add_boots, add_cpus, add_scheduler, add_seed
from iopath.cli.output import Files
from iopath.cli.work import Work
from iopath.guest.machine import Machine
from iopath.results.layers import table
from iopath.results.ops import OPS
from iopath.rungs import feature
from iopath.rungs.runs import Settings
from iopath.show.console import put
from iopath.show.table import Table
from iopath.studies import boots, features, featuretable
from iopath.studies.featurereport import FeaturesReport

EXAMPLES = (
    "iopath features debian:7.2",
    "iopath features debian:6.1 debian:7.2 --feature 'trace.*' --with iostats,audit",
)


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
    parser.add_argument("--list", action="store_true", help="list the features instead")
    parser.add_argument(
        "--rung", action="append", default=[], metavar="NAME",
        help="measure all features on these rungs (default: those that suit each)",
    )  # fmt: skip
    parser.add_argument("--op", choices=OPS, action="append", help="only this operation")
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
    building = Building.read(args)
    building.check(args.kernels)
    base, known = feature.load(args.features)
    chosen = [feature.PLAIN, *feature.choose(known, args.feature)]
    for names in args.together:
        some = [feature.choose(known, [name]) for name in names.split(",")]
        chosen.append(feature.together([one for part in some for one in part]))
    if args.list:
        listed = Table("feature")
        listed.text_column("is", wraps=True, joined=True)
        for one in chosen:
            listed.row(one.name, one.about)
        put(work.out, listed)
        return 0
    machine = Machine(cmdline=base.cmdline, seed=args.seed)
    settings = Settings([], ops=args.op or (), machine=machine, profile=True, cpus=args.cpus)
    settings = boots.asked(settings, args.boots)
    with work.session(args.scheduler) as session:
        session.recipe = building.recipe(session)
        study = features.FeatureStudy(session, base, settings, table(None))
        costs = study.measure(args.kernels, chosen, args.rung)
    files.write(FeaturesReport(base, costs))
    featuretable.show(base, costs, work.out)
    failed = dict.fromkeys(cost.feature for cost in costs if cost.error)
    if failed:
        raise IopathError(f"not measured: {', '.join(failed)}")
    return 0
