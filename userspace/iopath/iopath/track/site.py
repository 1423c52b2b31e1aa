# SPDX-License-Identifier: GPL-2.0
"""The site of iopath track: one page with all figures, whose script draws charts.

It needs no network and no server. The pages of steps and the result files lie beside it.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from iopath.base import files
from iopath.show import page, texts
from iopath.track import store
from iopath.track.index import Index, Step, ordered, rung_title
from iopath.track.store import Point
from iopath.track.watches import Config

NAME = "index.html"
POINTS = "points.json"  # what the page shows


def write(folder: Path, config: Config, index: Index) -> None:
    """Write the page and its points, if they change."""
    shown = points(config, index)
    for name, text in ((NAME, render(shown)), (POINTS, dump(shown))):
        path = folder / name
        if not path.exists() or path.read_text() != text:
            files.write(path, text.encode())


def render(shown: dict[str, object]) -> str:
    """The page that shows this."""
    return page.environment().get_template("track.html").render(
        title=shown["title"],
        data={"watches": shown["watches"]},
        unknown=texts.UNKNOWN,
        css=page.source("page.css") + page.source("track.css"),
        script=page.source("track.js"),
    )  # fmt: skip


def dump(shown: dict[str, object]) -> str:
    """The points as JSON."""
    return json.dumps(shown, indent=1, sort_keys=True) + "\n"


def alone(shown: dict[str, object]) -> str:
    """The page of points, without links to what does not lie beside it."""
    for watch in shown["watches"]:
        for part in (*watch["points"], *watch["links"]):
            part["file"] = ""
        for step in watch["steps"]:
            step["page"] = ""
    return render(shown)


def points(config: Config, index: Index) -> dict[str, object]:
    """What the page shows. Watches are in the order of the file; those that are no longer in it
    follow."""
    kernels, links = index.points(), index.links()
    names = [watch.name for watch in config.watches]
    names = [*(name for name in names if name in kernels), *sorted(kernels.keys() - set(names))]
    return {
        "title": config.title,
        "watches": [
            _watch(
                name, kernels[name], index,
                [link for link in links if link.after.watch == name], config,
            )
            for name in names
        ],
    }  # fmt: skip


def _watch(
    name: str, points: Sequence[Point], index: Index, links: Sequence[Step], config: Config
) -> dict[str, object]:
    """Points are identified by number. Figures are by rung, one for each point. A link leads from a
    point to the one that it is compared with; its file, if there is one, holds both kernels, whose
    own figures cannot be compared."""
    measured = [point for point in points if not point.error]
    numbers = {point.path: number for number, point in enumerate(measured)}
    lines = list(dict.fromkeys(point.line for point in measured))
    figures = [index.figures(point) for point in measured]
    keys = ordered({key for row in figures for key in row}, config)
    rungs = {key: number for number, key in enumerate(keys)}
    instruments = index.instruments()
    known = list(dict.fromkeys(instruments[point.path] for point in measured))
    return {
        "name": name,
        "git": any(point.commit for point in points),
        "lines": lines,
        "points": [
            {
                "line": lines.index(point.line),
                "title": point.title,
                "detail": point.detail,
                "date": point.date,
                "file": str(point.path),
                "instrument": known.index(instruments[point.path]),
            }
            for point in measured
        ],
        "rungs": [
            {
                "key": "/".join(map(str, key)),
                "title": rung_title(key),
                "values": [row[key][0] if key in row else None for row in figures],
            }
            for key in keys
        ],
        "steps": [
            {
                "before": numbers[step.before.path],
                "after": numbers[step.after.path],
                "page": str(step.page),
                "labels": step.labels,
                "differing": step.differing,
                "changes": [
                    {
                        "rung": rungs[change.key],
                        "difference": change.difference,
                        "percent": change.percent,
                        "text": change.text,
                        "mover": change.mover,
                        "functions": change.functions,
                    }
                    for change in step.changes
                ],
            }
            for step in links
            if step.changes or step.differing
        ],
        "links": [
            {
                "before": numbers[link.before.path],
                "after": numbers[link.after.path],
                "breaks": link.breaks,
                "file": str(store.pair(link.before, link.after).path)
                if link.apart and not link.differing
                else "",
            }
            for link in links
        ],
        "failed": [
            {"title": point.title, "detail": point.detail, "error": point.error}
            for point in points
            if point.error
        ],
    }


def steps(found: Sequence[Step]) -> dict[str, object]:
    """Steps as JSON (Documentation/track.rst)."""
    return {
        "schema": 1,
        "steps": [
            {
                "name": step.name,
                "watch": step.after.watch,
                "before": step.before.title,
                "after": step.after.title,
                "detail": step.after.detail,
                "date": step.after.date,
                "commit": step.after.commit,
                "labels": step.labels,
                "differing": step.differing,
                "changes": [
                    {
                        "rung": change.key[0],
                        "op": change.key[1],
                        "block_size": change.key[2],
                        "difference": change.difference,
                        "percent": change.percent,
                        "verdict": change.verdict,
                        "functions": change.functions,
                    }
                    for change in step.changes
                ],
            }
            for step in found
        ],
    }
