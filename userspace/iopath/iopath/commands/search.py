# SPDX-License-Identifier: GPL-2.0
"""Search for shapes of I/O that got worse."""

import argparse
import shlex
from pathlib import Path

from iopath.base.errors import IopathError, Stopped, UsageError
from iopath.cli.building import Building
from iopath.cli.measuring import Guest, add_boots, add_scheduler
from iopath.cli.options import in_units, number
from iopath.cli.output import Files
from iopath.cli.work import Work
from iopath.measure.screening import screening
from iopath.results.layers import table
from iopath.rungs import shapes
from iopath.rungs.rung import Rung
from iopath.rungs.runs import Settings
from iopath.rungs.shapes import Space
from iopath.studies import boots, searchreport
from iopath.studies.judges import Kernels, Monotonic
from iopath.studies.search import Budget, ShapeSearch
from iopath.studies.searchreport import SearchReport
from iopath.studies.shrink import Shrunk, shrink_all

EXAMPLES = (
    "iopath search tree:linux tree:linux-patched --rung 'dio.*' --toml found.toml",
    "iopath search debian:7.2 --expect monotonic",
)
_BUDGET = 30 * 60
_SHRUNK = 3  # times as many causes are shrunk as are shown: some become one


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kernels", nargs="+", metavar="KERNEL")
    parser.add_argument(
        "--expect", choices=("monotonic",),
        help="of one kernel: a larger I/O costs no more by byte, a deeper batch no more by I/O,"
        " biogen no more than the block device, and requests not much more than bios",
    )  # fmt: skip
    parser.add_argument(
        "--budget", type=in_units({"s": 1, "m": 60, "h": 3600}, "30m"), metavar="TIME",
        help="begin no further batch of shapes after this time (default: 30m)",
    )  # fmt: skip
    parser.add_argument(
        "--shapes", type=number(1, 1 << 30, "shapes"), default=0, metavar="N",
        help="try N shapes instead: with the same seed, always the same ones",
    )  # fmt: skip
    parser.add_argument(
        "--rung", action="append", default=[], metavar="NAME",
        help="only shapes of these targets and engines, such as dio.pread; wildcards allowed",
    )  # fmt: skip
    parser.add_argument(
        "--corpus", type=Path, metavar="FOLDER",
        help="begin with the shapes that are kept there, of any kernels, and keep what is new",
    )  # fmt: skip
    parser.add_argument(
        "--findings", type=number(1, 1000, "findings"), default=10, metavar="N",
        help="causes that are shrunk, measured and shown (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--unguided", action="store_true", help="try shapes by chance alone, to compare with"
    )
    Guest.add(parser)
    Building.add(parser)
    add_scheduler(parser)
    add_boots(parser)
    Files.add(parser, SearchReport)


def run(args: argparse.Namespace, work: Work) -> int:
    guest, building, files = Guest.read(args), Building.read(args), Files.read(args)
    files.check()
    guest.need_counts()
    building.check(args.kernels)
    if guest.rungs:
        raise UsageError("--rungs: search makes rungs of its own: choose some by --rung")
    if len(args.kernels) != (1 if args.expect else 2):
        raise UsageError("search: give two kernels, or one with --expect monotonic")
    space = shapes.space(tuple(args.rung))
    budget = Budget(args.shapes, 0 if args.shapes else args.budget or _BUDGET)
    command = shlex.join(["iopath", *work.argv])
    with work.session(args.scheduler) as session:
        session.recipe = building.recipe(session)
        found: list[Shrunk] = []
        with screening(session, args.kernels, guest.machine) as screens:
            space = space.without(screens.missing(space.needed))
            judge = Monotonic(args.kernels[0], space) if args.expect else Kernels(args.kernels)
            search = ShapeSearch(
                screens, judge, space, args.seed, corpus=args.corpus,
                guided=not args.unguided, note=session.reporter.note,
                usable=lambda target: not screens.lacks(_rung(space, target)),
            )  # fmt: skip
            try:
                search.run(budget)
                found = shrink_all(search, search.worst(_SHRUNK * args.findings))
            except (KeyboardInterrupt, Stopped, IopathError):
                found = [Shrunk(one, [name]) for name, one in search.worst(args.findings)]
                findings = searchreport.named(space, found)
                searchreport.show(space, args.kernels, findings, search.state, work.out)
                raise
        settings = Settings([], machine=guest.machine, profile=True)
        findings, whole = searchreport.measured(
            session, space, args.kernels, boots.asked(settings, args.boots),
            searchreport.named(space, found), table(None), args.findings,
        )  # fmt: skip
    report = SearchReport(space, args.kernels, findings, search.state, command, whole, table(None))
    searchreport.show(space, args.kernels, findings, search.state, work.out)
    files.write(report)
    return 0


def _rung(space: Space, target: str) -> Rung:
    """The rung of the simplest shape of a target."""
    shapes_ = (space.shape({"target": target, "engine": one}) for one in space.engines)
    return space.run(next(filter(None, shapes_)), "shape").rung
