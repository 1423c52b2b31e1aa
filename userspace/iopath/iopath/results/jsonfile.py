# SPDX-License-Identifier: GPL-2.0
"""Read the JSON files that iopath writes."""

import json
from pathlib import Path

from iopath.base.errors import IopathError, UsageError
from iopath.results.schema import schema


def read(path: Path, kind: str) -> object:
    """What a file of a *kind*, "a result", holds. Raises an error if it cannot be read."""
    try:
        return json.loads(path.read_text(), parse_constant=_no_number)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except RecursionError as error:
        raise IopathError(f"{path} is not {kind} file: it is nested too deeply") from error
    except ValueError as error:
        raise IopathError(f"{path} is not {kind} file: {error}") from error


def _no_number(text: str) -> None:
    """Python reads NaN and Infinity, which JSON does not have."""
    raise ValueError(f"{text} is not a number")


def schema_of(data: object) -> int | None:
    """The number of the format that *data* is in; None if it has none."""
    version = data.get("schema") if isinstance(data, dict) else None
    return version if isinstance(version, int) else None


def validate(data: object, into: type, what: str, kind: str) -> None:
    """Raise IopathError if *data*, which messages call *what*, cannot be read *into* a type."""
    import jsonschema  # slow to load

    try:
        jsonschema.validate(data, schema(into))
    except jsonschema.ValidationError as error:
        place = "/".join(map(str, error.absolute_path)) or "the top"
        raise IopathError(f"{what} is not {kind} file: at {place}: {error.message}") from error
