# SPDX-License-Identifier: GPL-2.0
"""The files in which iopath track keeps what it measured: one for each kernel of a watch, and one
for each pair of neighbours whose own results cannot be compared.

A file is a result like others, so that compare reads it, with an additional field "track". For a
kernel that could not be measured it has only this field, with the error. A file depends on the
kernel and on what was measured, but not on when; its keys are sorted, and each function has a line.
So a repository of git keeps a history of them in little space.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeVar

from iopath.base import files
from iopath.base.arch import X86_64
from iopath.base.errors import IopathError
from iopath.base.typed import JsonObject
from iopath.base.versions import version_key
from iopath.results import result
from iopath.results.kernelinfo import matters
from iopath.results.result import ExactResult

RESULTS = "results"  # the folder, below that of the site
PAIRS = "pairs"  # the folder of pairs
_SCHEMA = 1
_LEAST = 0.01  # instructions per I/O of a function in the long run
_DATE = re.compile(r"\((\d{4}-\d\d-\d\d)\)")  # of a Debian kernel, in its banner


@dataclass(frozen=True)
class Point:
    """A kernel of a watch.

    Kernels on one *line* are compared with each other, in the order of *position*: a version of
    Debian, or the number of a commit. *title* is its name in charts and files. *asked* is what was
    to be measured, and *error* why it could not be.
    """

    watch: str
    line: str
    title: str
    position: str
    detail: str  # the suite, or the subject of the commit
    asked: JsonObject
    date: str = ""
    commit: str = ""
    arch: str = X86_64.name
    error: str = ""

    @property
    def path(self) -> Path:
        """Its file, in the folder of the site."""
        return Path(RESULTS, self.watch, f"{self.title}.json")

    @property
    def order(self) -> tuple:
        """What the points of a watch are sorted by."""
        return (int(self.position), self.title) if self.commit else version_key(self.position)

    def is_answered_by(self, known: "Point") -> bool:
        """Whether the measurement that is asked for was already tried."""
        if known.error:
            return known.asked == self.asked
        one, two = self.asked, known.asked
        return (
            all(set(one[name]) <= set(two[name]) for name in ("rungs", "ops", "block_sizes"))
            and one["boots"] <= two["boots"]
            and all(one.get(name) == two.get(name) for name in ("build", "program"))
            and one.get("cpus", 1) in (1, two.get("cpus", 1))
        )


@dataclass(frozen=True)
class MeasuredPair:
    """Two neighbours of a watch that were measured together, since their own results cannot be
    compared. *asked* and *error* are as those of a point."""

    watch: str
    before: str  # the titles
    after: str
    asked: JsonObject
    error: str = ""

    @property
    def path(self) -> Path:
        """Its file, in the folder of the site."""
        return Path(PAIRS, self.watch, f"{self.before}..{self.after}.json")

    def is_answered_by(self, known: "MeasuredPair") -> bool:
        """Whether it was already tried."""
        return not known.error or known.asked == self.asked


_Kept = TypeVar("_Kept", Point, MeasuredPair)


def pair(before: Point, after: Point, asked: JsonObject | None = None) -> MeasuredPair:
    """The pair of two points of a watch."""
    return MeasuredPair(after.watch, before.title, after.title, asked or {})


def write(folder: Path, point: Point, measured: ExactResult | None) -> None:
    """Keep a point: with its result, or with its error."""
    found = _DATE.search(measured.kernels[0].banner) if measured else None
    if found and not point.date:
        point = replace(point, date=found[1])
    _write(folder, point, measured, [point.title])


def write_pair(folder: Path, pair: MeasuredPair, measured: ExactResult | None) -> None:
    """Keep a pair: with the result of both kernels, or with its error."""
    _write(folder, pair, measured, [pair.before, pair.after])


def _write(
    folder: Path, kept: Point | MeasuredPair, measured: ExactResult | None, titles: Sequence[str]
) -> None:
    data = result.dump(_slim(measured, titles)) if measured else {}
    data["track"] = {"schema": _SCHEMA, **asdict(kept)}
    path = folder / kept.path
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(path, f"{''.join(_lines(data))}\n".encode())


def _slim(measured: ExactResult, titles: Sequence[str]) -> ExactResult:
    """A result whose kernels have the names *titles*, without options that change no path, and
    without the many functions that hardly run in the long run."""
    names = dict(zip(measured.names, titles, strict=True))
    kernels = []
    for kernel in measured.kernels:
        config = {name: value for name, value in kernel.config.items() if matters(name)}
        kernels.append(replace(kernel, name=names[kernel.name], config=config))
    records = []
    for record in measured.results:
        profile = record.profile
        if profile and profile.long_run:
            some = [row for row in profile.long_run if abs(row.mean) + abs(row.deferred) >= _LEAST]
            profile = replace(profile, long_run=some)
        named = replace(record.kernel, name=names[record.kernel.name])
        records.append(replace(record, kernel=named, profile=profile))
    return replace(measured, kernels=kernels, results=records)


def _lines(value: object, indent: str = "\n") -> Iterator[str]:
    """JSON with sorted keys. What holds only numbers and texts is one line."""
    if isinstance(value, dict):
        parts = [(f"{json.dumps(name)}: ", value[name]) for name in sorted(value)]
    elif isinstance(value, list | tuple):
        parts = [("", part) for part in value]
    else:
        parts = []
    if not any(isinstance(part, dict | list | tuple) for _, part in parts):
        yield json.dumps(value, sort_keys=True)
        return
    yield "{" if isinstance(value, dict) else "["
    for number, (name, part) in enumerate(parts):
        yield f"{',' * bool(number)}{indent} {name}"
        yield from _lines(part, f"{indent} ")
    yield f"{indent}{'}' if isinstance(value, dict) else ']'}"


def points(folder: Path) -> Iterator[Path]:
    """The files of points below *folder*."""
    yield from sorted((folder / RESULTS).glob("*/*.json"))


def pairs(folder: Path) -> Iterator[Path]:
    """The files of pairs below *folder*."""
    yield from sorted((folder / PAIRS).glob("*/*.json"))


def read(path: Path) -> tuple[Point, JsonObject]:
    """The point of a file, and the whole file. Raises IopathError for another file."""
    return _read(path, Point)


def read_pair(path: Path) -> tuple[MeasuredPair, JsonObject]:
    """The same of a pair."""
    return _read(path, MeasuredPair)


def _read(path: Path, kind: type[_Kept]) -> tuple[_Kept, JsonObject]:
    try:
        data = json.loads(path.read_text())
        track = dict(data["track"])
        schema = track.pop("schema")
        kept = kind(**track)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IopathError(f"{path} is not a file of iopath track: remove it") from error
    if schema != _SCHEMA or kept.path.parts != path.parts[-3:]:
        raise IopathError(
            f"{path} is not where iopath track writes it, or of another version: remove it"
        )
    return kept, data
