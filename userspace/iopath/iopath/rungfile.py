# SPDX-License-Identifier: GPL-2.0
"""Read rungs from a TOML file (Documentation/measuring.rst, "Rungs of your own")."""

import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from iopath.errors import UsageError
from iopath.rungs import OPS, RUNGS, Module, Rung

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*")


def load(path: Path) -> list[Rung]:
    """The rungs in the file *path*."""
    try:
        tables = tomllib.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path} is not TOML: {error}") from error
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


def _rung(table: object, path: Path) -> Rung:
    if not isinstance(table, dict) or not isinstance(table.get("name"), str):
        raise UsageError(f"{path}: a rung has no name: set name to a string")
    name = table["name"]
    if not _NAME.fullmatch(name):
        raise UsageError(f"{path}: invalid name {name!r}: use a-z, 0-9, '.', '-' and '_'")
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _FIELDS:
            raise UsageError(
                f"{path}: rung {name}: unknown key {key!r}: must be one of {', '.join(_FIELDS)}"
            )
        field, what, parse = _FIELDS[key]
        try:
            values[field] = parse(value)
        except ValueError:
            raise UsageError(f"{path}: rung {name}: {key} must be {what}") from None
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


# How a value is checked: each function raises ValueError.


def _is(kind: type) -> Callable[[Any], Any]:
    def parse(value: object) -> object:
        if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool) or value == "":
            raise ValueError
        return value

    return parse


def _positive(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError
    return value


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(part, str) and part for part in value):
        raise ValueError
    return tuple(value)


def _words(value: object) -> tuple[str, ...]:
    words = _strings(value)
    if any(re.search(r"\s", word) for word in words):
        raise ValueError
    return words


def _ops(value: object) -> Sequence[str]:
    ops = _strings(value)
    if not ops or not set(ops) <= set(OPS):
        raise ValueError
    return ops


def _options(value: object) -> tuple[str, ...]:
    options = _strings(value)
    if not all(re.fullmatch(r"CONFIG_\w+", option) for option in options):
        raise ValueError
    return options


def _modules(value: object) -> tuple[Module, ...]:
    if not isinstance(value, dict):
        raise ValueError
    found = []
    for name, parameters in value.items():
        if not isinstance(parameters, dict):
            raise ValueError
        words = [(key, str(part)) for key, part in parameters.items()]
        if any(isinstance(part, dict | list | bool) for part in parameters.values()):
            raise ValueError
        found.append(Module(name, tuple(words)))
    return tuple(found)


# Key in the file, field of Rung, what a value must be, how it is checked.
_FIELDS: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "name": ("name", "a string", _is(str)),
    "about": ("about", "a string", _is(str)),
    "program": ("program", "the path of a static program", _is(str)),
    "options": ("options", "a list of words", _words),
    "ios": ("round_ios", "a number, 1 or more", _positive),
    "batch": ("batch", "a number, 1 or more", _positive),
    "target": ("target", "a path", _is(str)),
    "ops": ("can", 'a list of "read" and "write"', _ops),
    "modules": ("modules", "a table of tables of parameters", _modules),
    "needs": ("needs", "a list of kernel options, CONFIG_...", _options),
    "setup": ("setup", "a list of steps", _strings),
    "cleanup": ("cleanup", "a list of steps", _strings),
    "cpus": ("cpus", "a string", _is(str)),
    "alone": ("alone", "true or false", _is(bool)),
}
