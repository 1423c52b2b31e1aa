# SPDX-License-Identifier: GPL-2.0
"""The last requests of a round as a picture: the sector over the order, one picture a kernel."""

from collections.abc import Sequence
from dataclasses import dataclass

from iopath.results.iorequests import Seen
from iopath.results.result import ExactRecord, ExactResult, Row, size_text

KINDS = {"R": "read", "W": "write", "F": "flush"}
_SECTOR = 512
_LEAST = 1.0  # per cent of the height that a request has, at least


@dataclass(frozen=True)
class Mark:
    """A request: where it is, in per cent of the picture's width and height from the top left."""

    kind: str  # as its class is called
    x: float
    width: float
    y: float
    height: float


@dataclass(frozen=True)
class Picture:
    """The requests of a kernel, and what it shows, in words."""

    kernel: str
    marks: list[Mark]
    text: str


@dataclass(frozen=True)
class Stream:
    """The pictures of a rung, which have one scale: so many bytes, and so many requests."""

    title: str
    height: str
    number: int
    pictures: list[Picture]


def streams(result: ExactResult) -> list[Stream]:
    """The rungs whose device counts."""
    return [stream for row in result.rows() if (stream := _stream(row, result.names))]


def _stream(row: Row[ExactRecord], names: Sequence[str]) -> Stream | None:
    found = {
        name: record.requests.stream
        for name in names
        if (record := row.records.get(name)) and record.requests and record.requests.seen
    }
    placed = [one for seen in found.values() for one in seen if one.sectors]
    if not placed:
        return None
    low = min(one.sector for one in placed)
    high = max(one.sector + one.sectors for one in placed)
    number = max(map(len, found.values()))
    pictures = [
        Picture(name, _marks(seen, low, high, number), _text(seen)) for name, seen in found.items()
    ]
    return Stream(row.title, size_text((high - low) * _SECTOR), number, pictures)


def _marks(seen: Sequence[Seen], low: int, high: int, number: int) -> list[Mark]:
    """Flushes are as high as the picture."""
    scale, width = 100 / (high - low), 100 / number
    marks = []
    for at, one in enumerate(seen):
        height = max(scale * one.sectors, _LEAST) if one.sectors else 100.0
        y = max(0.0, 100 - scale * (one.sector - low) - height) if one.sectors else 0.0
        marks.append(Mark(KINDS[one.kind], *(round(v, 2) for v in (at * width, width, y, height))))
    return marks


def _text(seen: Sequence[Seen]) -> str:
    """The requests by kind and size, and how many are out of order."""
    sizes = [one.sectors for one in seen if one.sectors]
    behind, back = 0, 0
    for one in seen:
        if one.sectors:
            back += one.sector < behind
            behind = one.sector + one.sectors
    counts = ", ".join(
        f"{count} {name}{'' if count == 1 else 'es' if kind == 'F' else 's'}"
        for kind, name in KINDS.items()
        if (count := sum(one.kind == kind for one in seen))
    )
    return f"{counts} of {size_text(sum(sizes) // len(sizes) * _SECTOR)} each, {back} out of order"
