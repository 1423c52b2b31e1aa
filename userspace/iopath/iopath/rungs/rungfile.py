# SPDX-License-Identifier: GPL-2.0
"""Read rungs from a TOML file (Documentation/rungs.rst, "Rungs of your own")."""

from pathlib import Path
from typing import Any

from iopath.base.errors import UsageError
from iopath.rungs import tomlfile
from iopath.rungs.builtin import RUNGS
from iopath.rungs.rung import Rung


def load(path: Path) -> list[Rung]:
    """The rungs in the file *path*."""
    tables = tomlfile.load(path)
    found = tables.pop("rung", [])
    if tables:
        raise UsageError(f"{path}: unknown key {next(iter(tables))!r}: rungs are tables [[rung]]")
    if not isinstance(found, list) or not found:
        raise UsageError(f"{path}: no rung: each must be a table [[rung]]")
    rungs = [_rung(table, path) for table in found]
    names = [rung.name for rung in (*RUNGS, *rungs)]
    for rung in rungs:
        if names.count(rung.name) > 1:
            raise UsageError(f"{path}: rung {rung.name}: the name is in use: choose another")
    return rungs


def _rung(table: dict[str, Any], path: Path) -> Rung:
    name = tomlfile.named("rung", table, path)
    values = tomlfile.values(f"rung {name}", table, _FIELDS, path)
    if "program" in values:
        values["program"] = _program(path.parent / values["program"], name)
    if "can" in values and "target" not in values:
        raise UsageError(f"{path}: rung {name}: ops needs a target")
    return Rung(**{"about": name, **values})


def _program(path: Path, name: str) -> Path:
    try:
        with path.open("rb") as file:
            is_elf = file.read(4) == b"\x7fELF"
    except OSError as error:
        raise UsageError(f"rung {name}: {path}: {error.strerror}") from error
    if not is_elf:
        raise UsageError(f"rung {name}: {path} is not a program: build it with gcc -static")
    return path.absolute()


_FIELDS: tomlfile.Fields = {
    "name": ("name", "a string", tomlfile.is_(str)),
    "about": ("about", "a string", tomlfile.is_(str)),
    "program": ("program", "the path of a static program", tomlfile.is_(str)),
    "options": ("options", "a list of words", tomlfile.words),
    "ios": ("round_ios", "a number, 1 or more", tomlfile.positive),
    "batch": ("batch", "a number, 1 or more", tomlfile.positive),
    "target": ("target", "a path", tomlfile.is_(str)),
    "ops": ("can", 'a list of "read" and "write"', tomlfile.ops),
    "modules": ("modules", "a table of tables of parameters", tomlfile.modules),
    "devices": (
        "devices",
        'a list of tables of properties, each with a "driver"',
        tomlfile.devices,
    ),
    "needs": ("needs", "a list of kernel options, CONFIG_...", tomlfile.options),
    "setup": ("setup", "a list of steps", tomlfile.strings),
    "cleanup": ("cleanup", "a list of steps", tomlfile.strings),
    "cpus": ("cpus", "a string", tomlfile.is_(str)),
    "alone": ("alone", "true or false", tomlfile.is_(bool)),
}
