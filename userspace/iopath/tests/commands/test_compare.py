# SPDX-License-Identifier: GPL-2.0
"""The command compare, on files."""

import json
from pathlib import Path

import pytest

from helpers import machines
from helpers.command import Command
from helpers.examples import a_result
from helpers.pairs import LOCKED, PLAIN, profiled
from iopath.compare.compare import NOTHING


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("ios_per_round", 200, "ios_per_round '100' and '200'"),
        ("batch", 32, "batch '1' and '32'"),
        ("long_run_ios", 1200, "long_run_ios '12000' and '1200'"),
        ("drain_ms", 100, "drain_ms '12000' and '100'"),
        ("command", ["/bin/ioloop", "--hipri"], "command '' and '--hipri'"),
    ],
)
def test_rungs_that_were_run_differently_are_not_compared(
    listed: Command, tmp_path: Path, field: str, value: object, said: str
) -> None:
    paths = [tmp_path / "old.json", tmp_path / "new.json"]
    for path in paths:
        whole = a_result([profiled(path.stem, PLAIN)])
        if path.stem == "new":
            whole["results"][0][field] = value
        path.write_text(json.dumps(whole))
    assert listed.fails("compare", *paths) == (
        "iopath: more than the kernel differs: dio.pread read of 4096 bytes:"
        f" {said} (old, new) (--anyway compares them regardless)"
    )
    assert listed.run("compare", *paths, "--anyway").returncode == 0


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Results of one kernel each: old, and new, which takes more."""
    paths = {}
    for name, rows in (("old", PLAIN), ("new", LOCKED)):
        records = [
            profiled(name, rows),
            {**profiled(name, rows), "op": "write"},
            {**profiled(name, PLAIN), "rung": "raw.pread"},
        ]
        paths[name] = tmp_path / f"{name}.json"
        paths[name].write_text(json.dumps(a_result(records)))
    return paths


def test_a_file_that_is_named_twice(listed: Command, files: dict[str, Path]) -> None:
    said = listed.fails("compare", files["old"], files["old"], status=2)
    assert said == "iopath: old.json: old is also in another file of the same name"


def test_the_first_named_is_the_base(listed: Command, files: dict[str, Path]) -> None:
    assert listed.run("compare", files["old"], files["new"], "--fail-above", "0").returncode == 1
    done = listed.run("compare", files["new"], files["old"], "--fail-above", "0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "new to old: 3 rungs: 2 take fewer, 1 the same. Best and largest: "
    )


def test_json_has_the_verdicts(listed: Command, files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert listed.run("compare", files["old"], files["new"], "--json", out).returncode == 0
    found = json.loads(out.read_text())["comparison"]
    differences = [rung["differences"]["new"] for rung in found["rungs"]]
    assert [part["verdict"] for part in differences] == ["longer", "longer", "same"]
    assert [part["metrics"]["locked"]["verdict"] for part in differences] == [
        "more",
        "more",
        "same",
    ]
    # It is a result file like any other.
    again = listed.run("compare", out, "--json", out, "--quiet")
    assert (again.returncode, json.loads(out.read_text())["comparison"]) == (0, found)


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (["--fail-above", "50"], 0),
        (["--fail-above", "1"], 1),
        (["--fail-above", "0"], 1),
        (["--fail-above", "0", "--rung", "raw.*"], 0),
        (["--fail-above", "x"], 125),
        (["--fail-above=-1"], 125),
        (["--fail-above", "1", "--bs", "x"], 125),
        (["--fail-ab", "1", "--bs", "x"], 125),
        (["--limits", "/nonexistent"], 125),
        (["--limits", "/nonexistent", "--top", "x"], 125),
        (["--fail-above", "1", "--nonsense"], 125),
        (["--fail-above", "1", "--html", "/nonexistent/x"], 125),
        (["--fail-above", "1", "--rung", "syscall"], 125),
        (["--fail-above", "50", "--rung", "raw.pread", "--rung", "syscall"], 125),
        (["--fail-above", "1", "--rung", "raw"], 125),
        (["--fail-above", "1", "/nonexistent.json"], 125),
        (["--top", "x"], 2),
    ],
)
def test_exit_status(listed: Command, files: dict[str, Path], args: list[str], status: int) -> None:
    done = listed.run("compare", files["old"], files["new"], *args, "--quiet")
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("asked", "missing"),
    [
        (["--bs", "4k", "--bs", "64k"], "dio.pread 64 KiB: no result is of it"),
        (["--rung", "raw.pread", "--op", "read", "--op", "write"], "raw.pread write: no result"),
    ],
)
def test_what_was_asked_for_and_is_in_no_file(
    listed: Command, files: dict[str, Path], asked: list[str], missing: str
) -> None:
    done = listed.run("compare", *files.values(), *asked, "--fail-above", "50", "--quiet")
    assert (done.returncode, missing in done.stderr) == (125, True), done.stderr
    assert listed.run("compare", *files.values(), *asked, "--quiet").returncode == 0


@pytest.mark.parametrize("end", ["old", "new"])
def test_half_of_the_records(listed: Command, files: dict[str, Path], end: str) -> None:
    whole = json.loads(files[end].read_text())
    del whole["results"][1:]
    files[end].write_text(json.dumps(whole))
    done = listed.run("compare", files["old"], files["new"], "--fail-above", "50", "--quiet")
    assert done.returncode == 125
    assert f"iopath: cannot judge dio.pread write: {end} has no result of it" in done.stderr


def test_a_regression_is_said_whatever_else_cannot_be_judged(
    listed: Command, files: dict[str, Path]
) -> None:
    whole = json.loads(files["new"].read_text())
    del whole["results"][1:]
    files["new"].write_text(json.dumps(whole))
    assert listed.run("compare", *files.values(), "--fail-above", "1", "--quiet").returncode == 1


def test_rungs_that_have_nothing_in_common(listed: Command, files: dict[str, Path]) -> None:
    whole = json.loads(files["new"].read_text())
    for record in whole["results"]:
        record["rung"] = record["rung"].replace("pread", "preadv")
    files["new"].write_text(json.dumps(whole))
    done = listed.run("compare", files["old"], files["new"], "--fail-above", "10", "--quiet")
    assert (done.returncode, "cannot judge dio.pread read" in done.stderr) == (125, True)


def test_a_limit_for_what_is_not_there(
    listed: Command, files: dict[str, Path], tmp_path: Path
) -> None:
    for text in ('"dio.aio.1 read" = 1', '"dio.praed" = 1'):
        (tmp_path / "limits.toml").write_text(text)
        done = listed.run(
            "compare", files["old"], files["new"], "--limits", tmp_path / "limits.toml", "--quiet"
        )
        assert done.returncode == 125, done.stderr


def test_one_kernel_is_refused_before_it_is_measured(empty: Command) -> None:
    said = empty.fails("compare", "debian:6.1", status=2)
    assert said == f"iopath: {NOTHING}"


def test_files_that_were_joined_anyway(
    listed: Command, files: dict[str, Path], tmp_path: Path
) -> None:
    """Each kernel in the file says what it was measured with."""
    whole = json.loads(files["old"].read_text())
    whole["machine"]["cpu"], whole["qemu"]["version"] = "Haswell", "10.0"
    files["old"].write_text(json.dumps(whole))
    both = tmp_path / "both.json"
    assert listed.run("compare", *files.values(), "--anyway", "--json", both).returncode == 0
    for args in (files.values(), [both]):
        said = listed.fails("compare", *args, "--fail-above", "0", status=125)
        assert "qemu: version '10.0' and '7.2'" in said
        assert "machine: cpu 'Haswell' and 'max'" in said


def test_profiles_of_machines_have_no_times(listed: Command, tmp_path: Path) -> None:
    whole = machines.profile(machines.on(0))
    paths = machines.write(tmp_path, one=whole, two=whole)
    assert listed.fails("compare", *paths).endswith(
        ": a profile has no times to compare: must be a result of iopath measure host"
    )
