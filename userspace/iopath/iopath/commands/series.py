# SPDX-License-Identifier: GPL-2.0
"""What each commit of a range costs."""

import argparse
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from iopath.base.errors import NotMeasured, Unreachable, UsageError
from iopath.cli.building import Building
from iopath.cli.measuring import Guest, Range, Scenario, add_boots, add_cpus, add_scheduler
from iopath.cli.options import add_all, add_layers, percent
from iopath.cli.output import Files
from iopath.cli.program import Command
from iopath.cli.work import Work
from iopath.compare import limits, noise
from iopath.compare import program as changes
from iopath.compare.program import Comparison
from iopath.kernels import finder
from iopath.results.layers import table
from iopath.results.program import Ran, Result
from iopath.show import views
from iopath.show.programreport import ProgramReport
from iopath.studies import program as studies
from iopath.studies import series

EXAMPLES = (
    "iopath series v6.12..my-branch --rung 'dio.*'",
    "iopath series git:linux@v6.12..v6.13 --every 100 --rung dio.pread --op read",
)
PROGRAM = True  # behind --


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
    add_boots(parser, noise.LADDER, program=True)
    add_all(parser)
    add_layers(parser)
    Files.add(parser, series.SeriesReport, ProgramReport)


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
        entries: list[Any] = []
        say = session.reporter.note
        try:
            if of_program:
                arch = session.find(names[0]).arch
                wanted, boots = command.program(session, arch), args.boots or 1
                counting = studies.Counting(session, wanted, guest.machine, boots)
                studies.measure(session, names, counting.measure, layers, say, entries)
            else:
                settings = replace(
                    Scenario.read(args).settings(guest.added()),
                    machine=guest.machine, boots=args.boots or noise.LADDER, profile=True,
                    layers=args.layers, cpus=args.cpus,
                )  # fmt: skip
                series.measure(session, names, settings, layers, say, entries)
        except Unreachable as error:
            raise NotMeasured(str(error)) from error
        finally:
            # Also after an interruption.
            if entries and of_program:
                files.write(_ProgramReport(entries, lambda ran: command.result(
                    ran, wanted, guest.machine, counting.qemu
                ), args.program, _command(work), every=args.all))  # fmt: skip
                studies.show_table(entries, work.out, every=args.all)
            elif entries:
                report = series.SeriesReport(entries, layers, _command(work), every=args.all)
                files.write(report)
                series.show(entries, work.out, every=args.all)
    if args.fail_above is not None:
        judged = (studies if of_program else series).judged
        limits.gate(*judged(entries, args.fail_above))
    failed = [entry.commit for entry in entries if entry.error]
    if failed:
        raise NotMeasured(f"not measured: {', '.join(failed)}")
    return 0


class _ProgramReport(ProgramReport):
    """What views show of the commits that a program, of these *words*, was counted on."""

    def __init__(
        self, entries: Sequence[studies.Entry], made: Callable[[list[Ran]], Result],
        words: Sequence[str], command: str, *, every: bool,
    ) -> None:  # fmt: skip
        self._entries = entries
        self._made = made
        self._words = words
        self._command = command
        self.every = every

    @property
    def result(self) -> Result:
        ran = [entry.ran for entry in self._entries if entry.ran]
        if not ran:
            raise NotMeasured("no commit could be measured")
        return self._made(ran)

    @property
    def comparisons(self) -> list[Comparison]:
        first, *others = self.result.kernels
        return [changes.compare(first, other, table(None)) for other in others]

    def json(self) -> str:
        return studies.dump(self._entries, self._words)

    def markdown(self) -> str:
        words = shlex.join(self._words)
        return studies.markdown(self._entries, words, self._command, every=self.every)


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
