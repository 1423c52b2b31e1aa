# SPDX-License-Identifier: GPL-2.0
"""iopath reads ioloop's report as its JSON schema describes it."""

import dataclasses
import json
import subprocess
import types
import typing
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from iopath.base.errors import IopathError
from iopath.base.programs import guest_program
from iopath.base.sources import source_root
from iopath.rungs.ioloop_report import Device, Event, LoopJob, LoopRound, Report, read

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


def test_counters_of_devices() -> None:
    """Those of blknull, if it counts: the sum, and the requests of the first."""
    one = '{"filename": "a", "size": 1, "logical_block_size": 512%s}'
    more = ', "counters": {"reads": 5}, "sizes": [0, 5], "seen": "R 0 8\\nR 8 8\\n"'
    for devices, found in (
        ([one % ""], Device({})),
        ([one % "", one % more], Device({"reads": 5}, (0, 5), "R 0 8\nR 8 8\n")),
        ([one % more] * 2, Device({"reads": 10}, (0, 10), "R 0 8\nR 8 8\n")),
    ):
        assert read(f'{{"jobs": [], "devices": [{", ".join(devices)}]}}').counted == found


def report(*args: str) -> dict:
    """What ioloop reports, checked by the schema, and as iopath reads it."""
    command = [guest_program("ioloop"), *args, "--output-format=json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    result = json.loads(done.stdout)
    jsonschema.validate(result, SCHEMA)
    assert (done.returncode == 0) == result["ok"]
    rounds = [part for job in result["jobs"] for part in job["rounds"]]
    assert [dataclasses.asdict(part) for part in read(done.stdout).rounds] == rounds
    return result


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "file"
    path.write_bytes(bytes(1 << 20))
    return f"--filename={path}"


@pytest.mark.parametrize("engine", ["sync", "vsync", "libaio", "io_uring", "mmap", "splice"])
@pytest.mark.parametrize("more", ["", "--pmu", "--thread"])
def test_engines(file: str, engine: str, more: str) -> None:
    words = [f"--ioengine={engine}", "--direct=0", "--number_ios=50", "--rounds=2", "--numjobs=2"]
    result = report(file, *words, *filter(None, [more]))
    assert [job["ios"] for job in result["jobs"]] == [100, 100]


def test_pieces(file: str) -> None:
    words = ["--ioengine=libaio", "--direct=0", "--number_ios=5", "--split=4", "--bs=16k"]
    (job,) = report(file, *words)["jobs"]
    assert [piece["count"] for piece in job["pieces"]] == [5, 5, 5, 5]


def test_error(tmp_path: Path) -> None:
    """Two pipes from perf without a reader."""
    words = ["--ioengine=null", "--number_ios=1", f"--perf_control={tmp_path}/a,{tmp_path}/b"]
    result = report(*words)
    assert not result["ok"]
    assert result["jobs"][0]["first_error"]["errno"]


@pytest.mark.parametrize("word", ["--ioengine=null", "--ioengine=syscall", "--calibrate"])
def test_no_device(word: str) -> None:
    assert report(word, "--number_ios=5")["jobs"][0]["bytes"] == 0
