# SPDX-License-Identifier: GPL-2.0
"""Measure new kernels and commits, as a web site."""

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from iopath.base import files
from iopath.base.errors import NotMeasured, UsageError
from iopath.cli.building import recipe
from iopath.cli.measuring import add_scheduler
from iopath.cli.options import add_file
from iopath.cli.output import Files
from iopath.cli.work import Work
from iopath.show import texts
from iopath.show.console import wrap
from iopath.track import watches
from iopath.track.index import Step, opened
from iopath.track.report import SiteReport
from iopath.track.store import Point
from iopath.track.tracker import News, Tracker
from iopath.track.watches import Config

EXAMPLES = ("iopath track watch.toml", "iopath track watch.toml --output /srv/www/iopath")

_STEPS = 50  # in a text, the newest
_CHANGES = 5  # of a step
_WIDTH = 72


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="TOML: what is watched")
    parser.add_argument(
        "--output", metavar="DIR", type=Path, help="the site (default: FILE without its suffix)"
    )
    parser.add_argument("--again", action="store_true", help="also try what failed before")
    add_file(parser, "mail", "write the text on new steps here, not to stdout")
    add_scheduler(parser)
    Files.add(parser, SiteReport)


def run(args: argparse.Namespace, work: Work) -> int:
    """Measure what is new, write the site, and say which steps are new."""
    views = Files.read(args)
    views.check(mail=args.mail)
    config = watches.load(args.file)
    folder = args.output or args.file.with_suffix("")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--output {folder}: it is not a folder")
    with work.session(args.scheduler) as session:
        tracker = Tracker(session, config, folder, partial(recipe, session))
        news = tracker.run(again=args.again)
        with opened(folder) as index:
            views.write(SiteReport(folder, config, index))
        text = "\n".join(_text(news, config, folder))
        if args.mail:
            files.write_text(args.mail, text)
        elif text:
            work.out.print(text, markup=False, highlight=False, soft_wrap=True, end="")
        tracker.told()
    tried = [one for one in (*news.failed, *news.unreached) if not one.asked["missing"]]
    if tried and not news.measured:
        raise NotMeasured(f"nothing could be measured: {_names(tried)}")
    if news.unjudged:
        raise NotMeasured(f"not judged: {_listed([_title(step) for step in news.unjudged])}")
    return 0


def _text(news: News, config: Config, folder: Path) -> Iterator[str]:
    """What is new, for a mail; nothing if nothing is."""
    if not (news.steps or news.failed):
        return
    unjudged = len(news.unjudged)
    new = _number(len(news.steps) - unjudged, "new step")
    yield f"{config.title}: {new}{f', {unjudged} not judged' if unjudged else ''}."
    if len(news.steps) > _STEPS:
        yield f"The newest {_STEPS}:"
    for step in news.steps[: -_STEPS - 1 : -1]:
        yield ""
        yield from _step(step, config.url or str(folder))
    if news.measured:
        yield ""
        yield from _wrapped(f"Measured: {_names(news.measured)}.")
    for point in news.failed[:_STEPS]:
        yield ""
        yield from _wrapped(f"Not measured: {point.watch} {point.title}: {point.error}.")
    if len(news.failed) > _STEPS:
        yield ""
        yield f"Not measured: {len(news.failed) - _STEPS} more."
    yield ""


def _step(step: Step, place: str) -> Iterator[str]:
    after = step.after
    yield from _wrapped(
        f"{after.watch}: {step.before.title} to {after.title}"
        + (f" ({after.date})" if after.date else "")
    )
    yield from _wrapped(after.detail, "    ")
    if step.differing:
        yield from _wrapped(f"not judged: {'; '.join(step.differing)}", "    ")
    for change in step.changes[:_CHANGES]:
        functions = f": {change.functions}" if change.functions else ""
        yield from _wrapped(f"{change.title}: {change.text}{functions}", "    ")
    if len(step.changes) > _CHANGES:
        yield f"    and {_number(len(step.changes) - _CHANGES, 'more rung')}"
    if step.labels and step.changes:
        yield from _wrapped(texts.besides(step.labels), "    ")
    if step.changes:
        yield f"    {place.rstrip('/')}/{step.page}"


def _wrapped(text: str, indent: str = "") -> Iterator[str]:
    for number, line in enumerate(wrap(text, _WIDTH - len(indent))):
        yield f"{indent}{'  ' * bool(number)}{line}"


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _names(points: Sequence[Point]) -> str:
    return _listed([f"{point.watch} {point.title}" for point in points])


def _title(step: Step) -> str:
    return f"{step.after.watch} {step.before.title} to {step.after.title}"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _STEPS
    return ", ".join([*names[:_STEPS], f"{more} more"] if more > 0 else names)
