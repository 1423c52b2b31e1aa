# SPDX-License-Identifier: GPL-2.0
"""The JSON Schemas are made from the types that files are read into."""

import dataclasses
import json
import runpy
import sys
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import jsonschema
import pytest

from iopath.results import schemas
from iopath.results.result import SCHEMA, ExactResult
from iopath.results.schema import Natural, Several, schema


@dataclass(kw_only=True)
class Inner:
    """A part."""

    KEYWORDS: ClassVar = {"minProperties": 1}

    name: Annotated[str, "What it is called.", ("enum", ("a", "b"))]


@dataclass(kw_only=True)
class Whole(Inner):
    """All of
    it."""

    name: str = dataclasses.field()
    pairs: list[tuple[str, float]]
    counts: Annotated[
        dict[str, Several[Natural]] | None, ("propertyNames.pattern", "^x"), ("required", ("x",))
    ] = None
    inner: Inner | None = None


def test_a_type_becomes_a_schema() -> None:
    inner = {
        "description": "A part.",
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "description": "What it is called.", "enum": ["a", "b"]}
        },
        "minProperties": 1,
    }
    pair = [{"type": "string"}, {"type": "number"}]
    naturals = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}
    assert schema(Whole) == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "description": "All of it.",
        "type": "object",
        "required": ["name", "pairs"],
        "properties": {
            "name": {"type": "string", "description": "What it is called."},
            "pairs": {
                "type": "array",
                "items": {"type": "array", "prefixItems": pair, "minItems": 2, "maxItems": 2},
            },
            "counts": {
                "type": "object",
                "additionalProperties": naturals,
                "propertyNames": {"pattern": "^x"},
                "required": ["x"],
            },
            "inner": inner,
        },
        "minProperties": 1,
    }


@pytest.mark.parametrize("name", schemas.FILES)
def test_a_schema_is_printed(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is one, and has the number of the format."""
    monkeypatch.setattr(sys, "argv", ["schemas", name])
    monkeypatch.delitem(sys.modules, "iopath.results.schemas")
    runpy.run_module("iopath.results.schemas", run_name="__main__")
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(printed)
    assert printed["properties"]["schema"]["const"] == SCHEMA
    monkeypatch.setattr(sys, "argv", ["schemas", "other"])
    with pytest.raises(SystemExit, match="exact, hardware, bridge"):
        runpy.run_module("iopath.results.schemas", run_name="__main__")


def test_older_files_can_be_read() -> None:
    """What was added to a record has a default."""
    record = schema(ExactResult)["properties"]["results"]["items"]
    assert not {"layouts", "counts", "scenario", "calls"} & set(record["required"])
