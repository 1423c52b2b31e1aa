# SPDX-License-Identifier: GPL-2.0
"""Find the kernel package, or the commit, that changed a rung."""

import argparse
import os
from dataclasses import replace
from pathlib import Path

from iopath.base.arch import X86_64
from iopath.base.errors import UsageError
from iopath.cli.building import Building
from iopath.cli.measuring import Guest, Scenario, add_boots, add_cpus, add_scheduler
from iopath.cli.options import add_layers
from iopath.cli.output import Files, add_comparison, show_comparison
from iopath.cli.work import Work
from iopath.compare import compare, noise
from iopath.compare import sharing as sharing_changes
from iopath.kernels import gitrepo
from iopath.kernels.sources.debian import arch_of
from iopath.results.layers import Layers
from iopath.show import sharing
from iopath.studies import bisection

EXAMPLES = (
    "iopath bisect debian:6.1 debian:7.2 --rung dio.pread --op read",
    "iopath bisect --tree linux v6.12 v6.13 --rung dio.pread --op read",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("good", metavar="GOOD", help="a kernel, or with --tree a commit")
    parser.add_argument("bad", metavar="BAD", help="a kernel, or with --tree a commit")
    parser.add_argument(
        "--tree", metavar="PATH", type=Path, help="search the commits of this git tree of a kernel"
    )
    parser.add_argument(
        "--build",
        default=f"make -s olddefconfig && make -s -j{os.cpu_count()} {X86_64.target} modules",
        metavar="COMMAND", help="command that builds the tree (default: %(default)s)",
    )  # fmt: skip
    Scenario.add(parser)
    Guest.add(parser)
    Building.add(parser)
    add_scheduler(parser)
    add_cpus(parser)
    parser.add_argument(
        "--metric", choices=bisection.FOLLOWED, default="", metavar="NAME",
        help="follow this metric: instructions, all, locked, ..., or with --cpus 'shared writes' or"
        " 'shared locked writes' (default: that by which the ends differ)",
    )  # fmt: skip
    add_boots(parser, noise.FEWEST)
    add_comparison(parser)
    add_layers(parser)
    Files.add(parser)


def run(args: argparse.Namespace, work: Work) -> int:
    guest, building, files = Guest.read(args), Building.read(args), Files.read(args)
    files.check()
    guest.need_counts()
    building.check([args.good])
    layers = Layers(args.layers)
    with work.session(args.scheduler) as session:
        session.recipe = building.recipe(session)
        settings = replace(
            Scenario.read(args).settings(guest.added()),
            machine=guest.machine, boots=args.boots, layers=args.layers, cpus=args.cpus,
        )  # fmt: skip
        search = bisection.Search(session, settings, work.say, args.metric)
        if args.tree:
            tree = args.tree.absolute()
            ends = bisection.tree(
                search, tree, args.good, args.bad, args.build, session.cache, work.say
            )
        elif args.good.startswith("git:"):
            for name in (args.good, args.bad):
                if gitrepo.SETTINGS.search(name):
                    raise UsageError(
                        f"{name}: all commits have one configuration: use --config and --kconfig"
                    )
            place, good = gitrepo.split(args.good.removeprefix("git:"))
            other, bad = gitrepo.split(args.bad.removeprefix("git:"))
            if not args.bad.startswith("git:") or place != other:
                raise UsageError(
                    f"{args.bad}: not a commit of {place}: it must be git:{place}@REVISION"
                )
            repository = session.repository(place)
            ends = bisection.commits(search, repository, good, bad, session.cache, work.say)
        else:
            specs = [_debian_spec(name) for name in (args.good, args.bad)]
            known = session.debian_kernels(arch_of(specs[0]))
            kernels = bisection.between(*specs, known)
            work.say(bisection.describe(kernels, known))
            ends = bisection.packages(search, kernels, work.say)
    whole = compare.merge([("good", ends[0]), ("bad", ends[1])])
    comparison = compare.compare(whole, layers)
    files.write(whole, comparison, layers)
    work.say(f"first bad: {whole.names[1]}")
    show_comparison(comparison, whole, work.out, every=args.all, top=args.top)
    sharing.show_changes(sharing_changes.changes(whole), work.out)
    return 0


def _debian_spec(name: str) -> str:
    if not name.startswith("debian:"):
        raise UsageError(
            f"{name}: bisect takes debian:... kernels, git:PATH@REVISION, or commits with --tree"
        )
    return name.removeprefix("debian:")
