# SPDX-License-Identifier: GPL-2.0
"""The rungs that are built in, which rungs.toml has, and how rungs are chosen by name."""

import fnmatch
from collections.abc import Iterable, Sequence
from pathlib import Path

from iopath.base.errors import UsageError, did_you_mean
from iopath.base.typed import JsonObject
from iopath.rungs import tomlfile
from iopath.rungs.rung import Overrides, Rung
from iopath.rungs.rungfile import KINDS, RungFile


def select(patterns: Sequence[str], added: Sequence[Rung] = ()) -> list[Rung]:
    """The rungs whose names match any of *patterns* (shell wildcards), in their order. Without a
    pattern these are the *added* ones, or the ladder if none were added."""
    if not patterns:
        return list(added or LADDER)
    every = (*RUNGS, *added)
    for pattern in patterns:
        if not matching([pattern], every):
            raise UsageError(unknown(pattern, [rung.name for rung in every]))
    return matching(patterns, every)


def matching(patterns: Sequence[str], rungs: Iterable[Rung]) -> list[Rung]:
    """Those of *rungs* whose names match any of *patterns*."""
    return [
        rung
        for rung in rungs
        if any(fnmatch.fnmatchcase(rung.name, pattern) for pattern in patterns)
    ]


def unknown(name: str, known: Sequence[str]) -> str:
    """A message that no rung has the *name*."""
    families = {f"{rung.partition('.')[0]}.*" for rung in known if "." in rung}
    near = f": did you mean '{name}.*'?" if f"{name}.*" in families else did_you_mean(name, known)
    return f"unknown rung '{name}'{near} (iopath rungs lists all)"


def overrides(*, fill: bool, coherent: bool) -> Overrides:
    """The parameters of modules that --no-fill and --incoherent change."""
    found: dict[str, dict[str, str]] = {}
    if not fill:
        found["blknull"] = {"zero_fill": "0"}
    if not coherent:
        found["biogen"] = {"coherent": "0"}
    return found


def load(path: Path) -> list[Rung]:
    """The rungs in a file of the user's, which may use the parts of those built in."""
    file = RungFile(path, tomlfile.load(path, *KINDS), _FILE)
    rungs = file.rungs(taken=[rung.name for rung in RUNGS])
    for key in (key for key, found in file.tables.items() if found):
        raise UsageError(
            f"{path}: unknown key {key!r}: rungs are tables [[rung]], parts are [part.NAME]"
        )
    return rungs


def made(table: JsonObject) -> Rung:
    """The rung of a table [[rung]], which may use the parts of those built in."""
    name = tomlfile.named("rung", table, _TABLES)
    own = tomlfile.values(f"rung {name}", table, KINDS[0]["rung"], _TABLES)
    (rung,) = RungFile(_TABLES, {"part": {}, "rung": [own]}, _FILE).rungs()
    return rung


BIOGEN = "/dev/biogen0"
MOUNTED_AT = "/mnt"

_TABLES = Path(__file__).parent / "rungs.toml"
_FILE = RungFile(_TABLES, tomlfile.load(_TABLES, *KINDS))
_RUNGS = {rung.name: rung for rung in _FILE.rungs()}
LADDER = tuple(_RUNGS.pop(name) for name in _FILE.tables["ladder"])
# Rungs that are not on the ladder are measured only by name.
RUNGS = (*LADDER, *_RUNGS.values())
# What a program runs on, by name: devices, and file systems that are mounted on MOUNTED_AT.
DEVICES = {rung.name: rung for rung in _FILE.rungs("device")}
MOUNTS = {rung.name: rung for rung in _FILE.rungs("mount")}
