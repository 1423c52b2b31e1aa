# SPDX-License-Identifier: GPL-2.0
"""The command iopath track: its files, and the text on what is new."""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from iopath import files, kcidb, output, texts, trackfile
from iopath.errors import UsageError
from iopath.measure import Session
from iopath.track import MakeRecipe, News, Tracker
from iopath.trackfile import Config
from iopath.trackindex import Step, opened
from iopath.trackstore import Point

_STEPS = 50  # in a text, the newest
_CHANGES = 5  # of a step
_WIDTH = 72


def run(session: Session, args: argparse.Namespace, out: Console, make_recipe: MakeRecipe) -> None:
    """Measure what is new, write the site, and say which steps are new."""
    for path in filter(None, (args.mail, args.kcidb, args.svg)):
        files.check(path)
    if args.svg and args.svg.suffix != ".svg":
        raise UsageError(f"--svg {args.svg}: the file's name must end in .svg")
    config = trackfile.load(args.file)
    folder = args.output or args.file.with_suffix("")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--output {folder}: it is not a folder")
    tracker = Tracker(session, config, folder, make_recipe)
    news = tracker.run(again=args.again)
    with opened(folder) as index:
        if args.kcidb:
            text = json.dumps(kcidb.export(config, index), indent=1, sort_keys=True)
            output.write_text(args.kcidb, f"{text}\n")
        if args.svg:
            from iopath import charts, trackchart  # slow to load

            charts.save(trackchart.chart(index, config), args.svg)
    text = "\n".join(_text(news, config, folder))
    if args.mail:
        output.write_text(args.mail, text)
    elif text:
        out.print(text, markup=False, highlight=False, soft_wrap=True, end="")
    tracker.told()


def _text(news: News, config: Config, folder: Path) -> Iterator[str]:
    """What is new, for a mail; nothing if nothing is."""
    if not (news.steps or news.failed):
        return
    yield f"{config.title}: {_number(len(news.steps), 'new step')}."
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
        yield from _wrapped(f"measured differently: {'; '.join(step.differing)}", "    ")
    for change in step.changes[:_CHANGES]:
        functions = f": {change.functions}" if change.functions else ""
        yield from _wrapped(f"{change.title}: {change.text}{functions}", "    ")
    if len(step.changes) > _CHANGES:
        yield f"    and {_number(len(step.changes) - _CHANGES, 'more rung')}"
    if step.labels and step.changes:
        yield from _wrapped(f"differs besides the code: {', '.join(step.labels)}", "    ")
    if step.changes:
        yield f"    {place.rstrip('/')}/{step.page}"


def _wrapped(text: str, indent: str = "") -> Iterator[str]:
    for number, line in enumerate(texts.wrap(text, _WIDTH - len(indent))):
        yield f"{indent}{'  ' * bool(number)}{line}"


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _names(points: Sequence[Point]) -> str:
    found = [f"{point.watch} {point.title}" for point in points[:_STEPS]]
    more = len(points) - len(found)
    return ", ".join([*found, f"{more} more"] if more else found)
