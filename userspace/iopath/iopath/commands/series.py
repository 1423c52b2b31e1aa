# SPDX-License-Identifier: GPL-2.0
"""What each commit of a range, or each patch in mails, costs."""

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import replace

from iopath.base.errors import NotMeasured, Unreachable, UsageError
from iopath.cli.building import Building
from iopath.cli.command import Command
from iopath.cli.measuring import Guest, Scenario, add_boots, add_cpus, add_range, add_scheduler
from iopath.cli.options import add_all, add_layers, percent
from iopath.cli.output import Files
from iopath.cli.work import Work
from iopath.compare import limits
from iopath.kernels import finder, gitrepo, mail
from iopath.kernels.mail import Series
from iopath.measure.session import Session
from iopath.results.layers import table
from iopath.show import views
from iopath.studies import boots, mailed, series
from iopath.studies.reply import MailReport

EXAMPLES = (
    "iopath series v6.12..my-branch --rung 'dio.*'",
    "iopath series git:linux@v6.12..v6.13 --every 100 --rung dio.pread --op read",
)
PROGRAM = True  # after --


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "range", metavar="A..B", nargs="?",
        help="the commits; of this folder's repository, or git:PATH@A..B",
    )  # fmt: skip
    group = parser.add_argument_group("instead of a range, patches that came by mail")
    group.add_argument(
        "--from-mail", metavar="FILE|ID",
        help="a file with the mails of a series, or a message id, whose thread b4 fetches",
    )  # fmt: skip
    group.add_argument(
        "--onto", metavar="COMMIT",
        help="apply the patches to this commit of this folder's repository, or to git:PATH@COMMIT",
    )  # fmt: skip
    group.add_argument(
        "--always", action="store_true", help="write a reply even if no patch changes anything"
    )
    Command.add(parser)
    Scenario.add(parser)
    Guest.add(parser)
    Building.add(parser)
    add_range(parser)
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
    Files.add(parser, series.SeriesReport, MailReport)


def run(args: argparse.Namespace, work: Work) -> int:
    guest = Guest.read(args)
    files = Files.read(args)
    files.check()
    guest.need_counts()
    _check_mail(args)
    thread = mail.read(args.from_mail) if args.from_mail else None
    name = finder.commits(args.onto if thread else args.range)
    if not thread and ".." not in name:
        raise UsageError(f"{args.range}: not a range of commits: it must be like A..B")
    files.need(MailReport if thread else series.SeriesReport)
    command = Command.read(args)
    of_program = command.check(args)
    layers = table(args.layers)
    with work.session(args.scheduler) as session:
        session.recipe = Building.read(args).recipe(session)
        names = [name] if thread else session.expand([name], every=args.every, merges=args.merges)
        entries: list[series.SeriesCommit] = []
        patches: mailed.Patches = {}
        settings = replace(
            command.settings(session, session.find(names[0]).arch)
            if of_program
            else Scenario.read(args).settings(guest.added()),
            machine=guest.machine, profile=True, layers=args.layers, cpus=args.cpus,
        )  # fmt: skip
        settings = boots.asked(settings, args.boots)
        command_, note = _command(work), session.reporter.note
        repeat = _repeat(work, thread, session, name) if thread else ""
        try:
            if thread:
                mailed.measure(session, thread, name, settings, layers, note, patches)
            else:
                series.measure(session, names, settings, layers, note, entries)
        except Unreachable as error:
            raise NotMeasured(str(error)) from error
        finally:
            # Also after an interruption.
            report = (
                MailReport(
                    thread, patches, layers, command_, repeat, every=args.all, always=args.always
                )
                if thread
                else series.SeriesReport(entries, layers, command_, every=args.all)
            )
            if report.entries:
                files.write(report)
                series.show(report.entries, work.out, every=args.all)
    if args.fail_above is not None:
        limits.gate(*series.judged(report.entries, args.fail_above))
    failed = [entry.commit or entry.subject for entry in report.entries if entry.error]
    if failed:
        raise NotMeasured(f"not measured: {', '.join(failed)}")
    return 0


def _check_mail(args: argparse.Namespace) -> None:
    """Refuse options of mails without them, and those of a range with them."""
    if not args.from_mail:
        for name in ("onto", "always"):
            if vars(args)[name]:
                raise UsageError(f"--{name}: is for mails: give them by --from-mail")
        if not args.range:
            raise UsageError("series: no commits: give a range A..B, or mails by --from-mail")
        return
    if args.range:
        raise UsageError(f"{args.range}: a range: leave it out with --from-mail")
    if args.every != 1 or args.merges:
        raise UsageError("--every and --merges are for a range: leave them out with --from-mail")
    if not args.onto:
        raise UsageError("--from-mail: needs --onto: the commit that the patches are applied to")


def _repeat(work: Work, thread: Series, session: Session, onto: str) -> str:
    """The command for those who have the mails and the repository elsewhere."""
    own = ["--from-mail", "--onto"]
    words = _without([one for one in work.argv if one not in ("--always", "--quiet")], own)
    if not (commit := session.commit(onto)):
        return ""  # mailed.measure() refuses it
    repository, revision = commit
    name = repository.place if "://" in repository.place else repository.path.resolve().name
    base = gitrepo.name(name, repository.commit(revision), onto)
    mails = ["--from-mail", thread.first.message_id.strip("<>") or "FILE", "--onto", base]
    return shlex.join(["iopath", "series", *mails, *_without_files(words)[1:]])


def _command(work: Work) -> str:
    return shlex.join(["iopath", *_without_files(work.argv)])


def _without_files(argv: Sequence[str]) -> list[str]:
    """The words of a command without the files that it writes."""
    return _without(argv, [f"--{view.option}" for view in views.VIEWS])


def _without(argv: Sequence[str], options: Sequence[str]) -> list[str]:
    """The words of a command without these *options*, each of which has a value."""
    found, words = [], iter(argv)
    for word in words:
        if word == "--":
            return [*found, word, *words]
        if word in options:
            next(words, None)
        elif word.partition("=")[0] not in options:
            found.append(word)
    return found
