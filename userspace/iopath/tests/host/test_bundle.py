# SPDX-License-Identifier: GPL-2.0
"""One file measures a machine where nothing is installed, and its result is one of measure host."""

import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from helpers.command import Command
from iopath.host import survey

RUNGS = ("--rung", "null", "--rung", "syscall", "--rung", "dio.pread")


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the file prints here, in an empty environment; it leaves nothing behind."""
    folder = tmp_path_factory.mktemp("bundle")
    command = Command(folder / "cache", folder)
    bundle, out = folder / "host.sh", folder / "host.tar"
    words = ("measure", "host", *RUNGS, "--passes", "7", "--bundle", bundle)
    done = command.run(*words)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    own = folder / "own"
    own.mkdir()
    with out.open("wb") as file:
        done = subprocess.run(
            ["/bin/sh", bundle], stdout=file, stderr=subprocess.PIPE, text=True, check=False,
            cwd="/", env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": str(own)},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "iopath-host: measuring: 7 samples of each rung\n" in done.stderr
    assert list(own.iterdir()) == []
    return out


def test_result(listed: Command, printed: Path, tmp_path: Path) -> None:
    out = tmp_path / "host.json"
    done = listed.run("measure", "host", "--from", printed, "--json", out)
    assert done.returncode == 0, done.stderr
    assert "syscall" in done.stdout
    found = json.loads(out.read_text())
    null, syscall = found["results"][:2]
    assert (null["rung"], syscall["rung"]) == ("null", "syscall")
    assert 0 < null["figures"]["ns"]["median"] < syscall["figures"]["ns"]["median"]
    assert (syscall["samples"], syscall["rounds"]) == (7, 20)
    # Rounds take about 5 ms, if the machine is not busy.
    assert 1e5 < syscall["ios_per_round"] * syscall["figures"]["ns"]["median"] < 1e8
    here = survey.survey(found["machine"]["cpu"])
    assert found["machine"]["cpu_model"] == here.cpu_model
    assert found["machine"]["cpus"] == len(os.sched_getaffinity(0))
    assert found["machine"]["mitigations"] == here.mitigations
    assert found["kernels"][0]["release"] == os.uname().release
    # A device that is not there is not measured.
    assert len(found["results"]) == 2 + Path("/dev/blknull0").exists() * 2


def test_it_is_compared_with_a_result_of_the_machine_itself(
    listed: Command, printed: Path, tmp_path: Path
) -> None:
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    assert listed.run("measure", "host", "--from", printed, "--json", one).returncode == 0
    words = ("measure", "host", *RUNGS[:4], "--passes", "6", "--json", other)
    assert listed.run(*words).returncode == 0
    done = listed.run("compare", one, other)
    assert done.returncode == 0, done.stderr
    assert ": 2 rungs: " in done.stdout
    assert "also differ" not in done.stdout


def test_refused(listed: Command, printed: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.tar"
    wrong.write_text("text")
    said = listed.fails("measure", "host", "--from", wrong, status=2)
    assert said == f"iopath: --from {wrong}: must be what a file of --bundle has printed"
    said = listed.fails("measure", "debian:6.1", "--from", printed, status=2)
    assert said == "iopath: --from: is for host"
    other = tmp_path / "other.tar"
    with tarfile.open(printed) as tar:
        tar.extractall(tmp_path / "files", filter="data")
    (tmp_path / "files/version").write_text("0.0.1\n")
    with tarfile.open(other, "w") as tar:
        tar.add(tmp_path / "files", ".")
    said = listed.fails("measure", "host", "--from", other, status=2)
    assert said.startswith(f"iopath: --from {other}: is of iopath 0.0.1, this is ")


def test_a_cpu_that_is_not_there(printed: Path) -> None:
    """It says which run failed, and leaves nothing behind."""
    bundle = printed.with_name("host.sh")
    own = printed.with_name("own")
    with printed.with_name("none.tar").open("wb") as file:
        done = subprocess.run(
            ["/bin/sh", bundle, "9999"], stdout=file, stderr=subprocess.PIPE, text=True,
            check=False, env={"PATH": "/usr/bin:/bin", "TMPDIR": str(own)},
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "iopath-host: no rung can be measured"
    assert "ioloop: " in done.stderr
    assert list(own.iterdir()) == []
