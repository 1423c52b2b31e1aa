# SPDX-License-Identifier: GPL-2.0
"""ioloop's report is as its JSON schema says."""

import dataclasses
import json
import subprocess
from pathlib import Path

import jsonschema
import pytest

from iopath.base.programs import guest_program
from iopath.base.sources import source_root
from iopath.rungs.ioloop_report import read

SCHEMA = json.loads((source_root() / "userspace/ioloop/report.schema.json").read_text())


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
