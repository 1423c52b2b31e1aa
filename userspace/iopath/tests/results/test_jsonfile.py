# SPDX-License-Identifier: GPL-2.0
"""The JSON Schemas describe result files as the types do that they are read into."""

import dataclasses
import json
import types
import typing
from pathlib import Path
from typing import Any

import pytest

from iopath.results import result
from iopath.results.bridgefile import Bridge
from iopath.results.result import SCHEMA, ExactResult, HardwareResult

SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}


def disagreements(kind: Any, schema: dict[str, Any], root: dict[str, Any], place: str) -> list[str]:  # noqa: ANN401
    """Where a type and a schema differ."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        (kind,) = (part for part in typing.get_args(kind) if part is not types.NoneType)
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rsplit("/", 1)[1]] | schema
    for part in schema.get("allOf", ()):
        more = root["$defs"][part["$ref"].rsplit("/", 1)[1]]
        schema = {
            **schema,
            "type": more["type"],
            "properties": more["properties"] | schema["properties"],
            "required": [*more["required"], *schema["required"]],
        }
    if kind in SCALARS:
        if "const" in schema or "enum" in schema:
            values = schema.get("enum", [schema.get("const")])
            return [f"{place}: {value!r}" for value in values if not isinstance(value, kind)]
        return [] if schema.get("type") == SCALARS[kind] else [f"{place}: not {SCALARS[kind]}"]
    if dataclasses.is_dataclass(kind):
        return _of_fields(kind, schema, root, place)
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        return disagreements(args[0], schema["items"], root, f"{place}/*")
    if origin is dict:
        return disagreements(args[1], schema["additionalProperties"], root, f"{place}/*")
    assert origin is tuple
    return [
        text
        for at, (arg, part) in enumerate(zip(args, schema["prefixItems"], strict=True))
        for text in disagreements(arg, part, root, f"{place}/{at}")
    ]


def _of_fields(kind: Any, schema: dict[str, Any], root: dict[str, Any], place: str) -> list[str]:  # noqa: ANN401
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    needed = {name for name, field in fields.items() if field.default is dataclasses.MISSING}
    # A comparison is written beside a result, and not read.
    described = set(schema["properties"]) - {"comparison"}
    found = [f"{place}/{name}: only one of them has it" for name in described ^ set(fields)]
    found += [f"{place}/{name}: required by one" for name in needed ^ set(schema["required"])]
    for name in described & set(fields):
        found += disagreements(hints[name], schema["properties"][name], root, f"{place}/{name}")
    return found


KINDS = [
    (ExactResult, "result.schema.json"),
    (HardwareResult, "hardware.schema.json"),
    (Bridge, "bridge.schema.json"),
]


def schema_of(name: str) -> dict[str, Any]:
    return json.loads((Path(result.__file__).with_name(name)).read_text())


@pytest.mark.parametrize(("kind", "name"), KINDS)
def test_types_and_schemas_agree(kind: type, name: str) -> None:
    schema = schema_of(name)
    assert disagreements(kind, schema, schema, "") == []
    assert schema["properties"]["schema"]["const"] == SCHEMA


def test_disagreements_are_found() -> None:
    schema = schema_of("result.schema.json")
    record = schema["properties"]["results"]["items"]
    record["required"].append("mean")
    record["properties"]["rounds"]["type"] = "number"
    del record["properties"]["spread"]
    schema["$defs"]["counts"]["properties"]["extra"] = {"type": "number"}
    found = disagreements(ExactResult, schema, schema, "")
    assert set(found) == {
        "/results/*/mean: required by one",
        "/results/*/rounds: not integer",
        "/results/*/spread: only one of them has it",
        "/results/*/profile/extra: only one of them has it",
        "/results/*/profile/functions/*/extra: only one of them has it",
    }
