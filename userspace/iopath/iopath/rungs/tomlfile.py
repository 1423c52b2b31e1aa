# SPDX-License-Identifier: GPL-2.0
"""Tables in TOML files: which keys they may have, and what the values must be."""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from iopath.base.devices import PORTS, Device
from iopath.base.errors import UsageError
from iopath.base.typed import JsonObject
from iopath.results.ops import OPS
from iopath.rungs.rung import Module

# Key in the file: field of the type, what a value must be, how it is checked.
Parse = Callable[[object], object]
Fields = Mapping[str, tuple[str, str, Parse]]
Values = JsonObject  # of a table, by field

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*")


def load(
    path: Path,
    arrays: Mapping[str, Fields] | None = None,
    parts: Mapping[str, Fields] | None = None,
) -> JsonObject:
    """The tables of a TOML file. The values of the tables [[KIND]] of *arrays*, and of the tables
    [KIND.NAME] of *parts*, are checked, and are by field."""
    try:
        tables = tomllib.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path} is not TOML: {error}") from error
    for kind, fields in (parts or {}).items():
        own = tables.get(kind, {})
        if not isinstance(own, dict) or not all(isinstance(one, dict) for one in own.values()):
            raise UsageError(f"{path}: {kind}s must be tables [{kind}.NAME]")
        tables[kind] = {
            name: values(f"{kind} {name}", table, fields, path) for name, table in own.items()
        }
    for kind, fields in (arrays or {}).items():
        own = tables.get(kind, [])
        if not isinstance(own, list):
            raise UsageError(f"{path}: no {kind}: each must be a table [[{kind}]]")
        tables[kind] = [
            values(f"{kind} {named(kind, table, path)}", table, fields, path) for table in own
        ]
    return tables


def named(kind: str, table: object, path: Path) -> str:
    """The name of a table, which is a *kind* of thing."""
    if not isinstance(table, dict) or not isinstance(table.get("name"), str):
        raise UsageError(f"{path}: a {kind} has no name: set name to a string")
    name = table["name"]
    if not _NAME.fullmatch(name.replace("*", "x") if "each" in table else name):
        raise UsageError(f"{path}: invalid name {name!r}: use a-z, 0-9, '.', '-' and '_'")
    return name


def values(what: str, table: JsonObject, fields: Fields, path: Path) -> Values:
    """The values of a table by field. *what* is the table in messages."""
    found: Values = {}
    for key, value in table.items():
        if key not in fields:
            raise UsageError(
                f"{path}: {what}: unknown key {key!r}: must be one of {', '.join(fields)}"
            )
        field, must, parse = fields[key]
        try:
            found[field] = parse(value)
        except ValueError:
            raise UsageError(f"{path}: {what}: {key} must be {must}") from None
    return found


# How a value is checked: each function raises ValueError.


def is_(kind: type) -> Parse:
    def parse(value: object) -> object:
        if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool) or value == "":
            raise ValueError
        return value

    return parse


def positive(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError
    return value


def sectors(value: object) -> int:
    found = positive(value)
    if found % 512:
        raise ValueError
    return found


def strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(part, str) and part for part in value):
        raise ValueError
    return tuple(value)


def words(value: object) -> tuple[str, ...]:
    found = strings(value)
    if any(re.search(r"\s", word) for word in found):
        raise ValueError
    return found


def ops(value: object) -> Sequence[str]:
    found = strings(value)
    if not found or not set(found) <= set(OPS):
        raise ValueError
    return found


def options(value: object) -> tuple[str, ...]:
    found = strings(value)
    if not all(re.fullmatch(r"CONFIG_\w+", option) for option in found):
        raise ValueError
    return found


def modules(value: object) -> tuple[Module, ...]:
    """Modules by name; one whose name ends with "?" is optional."""
    if not isinstance(value, dict):
        raise ValueError
    found = []
    for name, parameters in value.items():
        if not isinstance(parameters, dict):
            raise ValueError
        if any(isinstance(part, dict | list | bool) for part in parameters.values()):
            raise ValueError
        own = tuple((key, str(part)) for key, part in parameters.items())
        found.append(Module(name.removesuffix("?"), own, optional=name.endswith("?")))
    return tuple(found)


def devices(value: object) -> tuple[Device, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError
    for table in value:
        if not isinstance(table, dict) or not isinstance(table.get("driver"), str):
            raise ValueError
        if not all(isinstance(part, str | int) for part in table.values()):
            raise ValueError
    if sum("bus" not in table for table in value) > PORTS:
        raise ValueError
    return tuple(tuple(table.items()) for table in value)


def pairs(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict) or not all(isinstance(part, str) for part in value.values()):
        raise ValueError
    return tuple(value.items())


def version(value: object) -> tuple[int, ...]:
    if not isinstance(value, str) or not re.fullmatch(r"\d+\.\d+", value):
        raise ValueError
    return tuple(map(int, value.split(".")))
