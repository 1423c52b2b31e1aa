# SPDX-License-Identifier: GPL-2.0
"""iopath reads ioloop's report as its JSON schema describes it."""

import dataclasses
import json
import types
import typing
from typing import Any

import pytest

from iopath.base.errors import IopathError
from iopath.base.sources import source_root
from iopath.rungs.ioloop_report import Event, LoopJob, LoopRound, Report, read

SCHEMA = json.loads((source_root() / "userspace/ioloop/report.schema.json").read_text())
SCALARS = {int: "integer", str: "string"}

ROUNDS = [
    {"ios": 100, "ns": 5000, "tsc": 7000, "interrupts": 0},
    {"ios": 100, "ns": 6000, "tsc": 9000, "interrupts": None},
]


def disagreements(kind: Any, schema: dict[str, Any], place: str = "") -> list[str]:  # noqa: ANN401
    """Places where the schema does not promise what is read."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    said = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        (kind,) = (part for part in args if part is not types.NoneType)
        return disagreements(kind, schema | {"type": [t for t in said if t != "null"]}, place)
    if kind in SCALARS:
        return [] if said == [SCALARS[kind]] else [f"{place}: {said} is read as {kind.__name__}"]
    if origin is tuple:
        return disagreements(args[0], schema["items"], f"{place}/*")
    if origin is dict:
        return disagreements(args[1], schema["additionalProperties"], f"{place}/*")
    hints, found = typing.get_type_hints(kind), []
    for field in dataclasses.fields(kind):
        at = f"{place}/{field.name}"
        if field.name not in schema["properties"]:
            found.append(f"{at}: not reported")
        elif field.default is dataclasses.MISSING and field.name not in schema["required"]:
            found.append(f"{at}: not always reported")
        else:
            found += disagreements(hints[field.name], schema["properties"][field.name], at)
    return found


def test_what_is_read_is_reported() -> None:
    assert disagreements(Report, SCHEMA) == []


def test_disagreements_are_found() -> None:
    @dataclasses.dataclass
    class Other:
        ok: int
        version: str | None
        expected_instructions: int
        idle_percent: int
        unknown: int = 0

    assert disagreements(Other, SCHEMA) == [
        "/ok: ['boolean'] is read as int",
        "/expected_instructions: not always reported",
        "/idle_percent: ['number', 'null'] is read as int",
        "/unknown: not reported",
    ]


def test_read() -> None:
    pmu = {"cycles_user": {"value": 5, "counted_percent": 100},
           "cache_misses": {"value": None, "reason": "no counter"}}  # fmt: skip
    jobs = [{"ios": 200, "rounds": ROUNDS, "pmu": pmu}, {"ios": 100, "rounds": ROUNDS[:1]}]
    found = read(json.dumps({"jobs": jobs, "expected_instructions": 6000, "ok": True}))
    first, second = LoopRound(100, 7000, 0, 5000), LoopRound(100, 9000, None, 6000)
    assert found == Report(
        (
            LoopJob(
                (first, second),
                200,
                {"cycles_user": Event(5), "cache_misses": Event(None, "no counter")},
            ),
            LoopJob((first,), 100),
        ),
        6000,
    )
    assert found.rounds == [first, second, first]
    assert found.tsc == 23000
    assert found.jobs[0].ns == 11000
    assert [part.quiet for part in found.jobs[0].rounds] == [True, False]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "Expecting value"),
        ("{}", "it lacks 'jobs'"),
        ('{"jobs": [{"ios": 1}]}', "it lacks 'rounds'"),
        ('{"jobs": [{"ios": "many", "rounds": []}]}', "invalid literal"),
    ],
)
def test_what_is_no_report(text: str, complaint: str) -> None:
    with pytest.raises(IopathError, match=f"^cannot read ioloop's report: {complaint}"):
        read(text)


def test_program_of_a_user_reports_less() -> None:
    """What rounds.h prints."""
    text = '{"jobs": [{"rounds": [{"ios": 100, "tsc": 7000, "interrupts": -1}]}]}'
    assert read(text).tsc == 7000
