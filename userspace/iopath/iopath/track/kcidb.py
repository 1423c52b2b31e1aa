# SPDX-License-Identifier: GPL-2.0
"""The figures of iopath track as KCIDB takes them, the common database of kernel CI systems: its
I/O schema 5.3.

An object has the same id each time, so sending it twice adds nothing.
"""

from collections.abc import Iterator

from iopath.base.cache import digest_of
from iopath.results import result
from iopath.track.index import Index
from iopath.track.store import Point
from iopath.track.watches import Config, Watch

_VERSION = {"major": 5, "minor": 3}
_UNIT, _UNIT_OF_PROGRAM = "instructions per I/O", "instructions each time"


def export(config: Config, index: Index) -> dict[str, object]:
    """All kernels of the index: a checkout and a build of each, and a test for each figure."""
    watches = {watch.name: watch for watch in config.watches}
    points = [point for found in index.points().values() for point in found]
    return {
        "version": _VERSION,
        "checkouts": [_checkout(config, watches.get(p.watch), p) for p in points],
        "builds": [_build(config, point) for point in points],
        "tests": [test for point in points for test in _tests(config, index, point)],
    }


def _id(config: Config, *parts: str) -> str:
    return f"{config.origin}:{digest_of({'parts': parts})[:32]}"


def _checkout(config: Config, watch: Watch | None, point: Point) -> dict[str, object]:
    found: dict[str, object] = {
        "id": _id(config, point.watch, point.title),
        "origin": config.origin,
        "tree_name": point.watch,
        "comment": f"{point.title}: {point.detail}",
        "valid": True,
    }
    if point.commit:
        found["git_commit_hash"] = point.commit
    if watch and watch.branch:
        place, branch = watch.branch
        if place.startswith("https://"):
            found["git_repository_url"] = place
        found["git_repository_branch"] = branch
    return found


def _build(config: Config, point: Point) -> dict[str, object]:
    found = {
        "id": _id(config, point.watch, point.title, "build"),
        "checkout_id": _id(config, point.watch, point.title),
        "origin": config.origin,
        "architecture": point.arch,
        "status": "PASS",
    }
    if point.error:
        status = "MISS" if point.asked["missing"] else "ERROR"
        found |= {"status": status, "comment": point.error}
    return found


def _tests(config: Config, index: Index, point: Point) -> Iterator[dict[str, object]]:
    for key, (instructions, spread) in index.figures(point).items():
        rung, op, size = key
        own = [op] if op != "none" else []
        words = ["iopath", rung or "program", *own, *([str(size)] if size else [])]
        found: dict[str, object] = {
            "id": _id(config, point.watch, point.title, *map(str, key)),
            "build_id": _id(config, point.watch, point.title, "build"),
            "origin": config.origin,
            "path": ".".join(words).replace(" ", "_").replace("/", ""),
            "comment": result.title(rung, op),
            "status": "DONE",
            "number": {"value": instructions, "unit": _UNIT if rung else _UNIT_OF_PROGRAM},
            "misc": {"spread": spread},
        }
        if config.url:
            address = f"{config.url.rstrip('/')}/{point.path}"
            found["output_files"] = [{"name": point.path.name, "url": address}]
        yield found
