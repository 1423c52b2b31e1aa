# SPDX-License-Identifier: GPL-2.0
"""Rungs from a file: what is refused, and the documented example."""

import json
import subprocess
from pathlib import Path

import pytest

from helpers.command import FAST_START, KERNEL, Command
from iopath.base.sources import source_root

EXAMPLES = source_root() / "Documentation/examples"


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.guest
def test_example(resumable: Command, tmp_path: Path) -> None:
    """The example in rungs.rst. Its steps and preconditions do what they say."""
    program = tmp_path / "pipe"
    build = ["gcc", "-O2", "-static", "-Wall", "-Werror", "-o", program, EXAMPLES / "pipe.c"]
    subprocess.run(build, check=True)
    text = (EXAMPLES / "pipe.toml").read_text()
    text += """
[[rung]]
name = "pipe.steps"
program = "pipe"
setup = ["mkdir /rung", "mount tmpfs /rung"]
cleanup = ["umount /rung", "rmdir /rung"]
needs = ["CONFIG_TMPFS"]

[[rung]]
name = "pipe.never"
program = "pipe"
needs = ["CONFIG_NO_SUCH"]

[[rung]]
name = "pipe.module"
program = "pipe"
modules = { no_such = {} }
"""
    path = write(tmp_path / "pipe.toml", text)
    out = tmp_path / "out.json"
    words = ("--cmdline", FAST_START, "--quiet", "--json", out)
    done = resumable.run("profile", KERNEL, "--rungs", path, *words)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        f"iopath: {KERNEL}: left out: pipe.never: the kernel has no CONFIG_NO_SUCH",
        f"iopath: {KERNEL}: left out: pipe.module: the kernel has no module no_such",
    ]
    found = {record["rung"]: record for record in json.loads(out.read_text())["results"]}
    assert list(found) == ["pipe.write", "pipe.steps"]
    names = {row["name"] for row in found["pipe.write"]["profile"]["functions"]}
    assert {"pipe_write", "vfs_write", "main"} <= names
    # An empty write is more than an empty system call (327 on 6.1) and less than an I/O.
    figures = [record["instructions_per_io"] for record in found.values()]
    assert 350 < figures[0] < 1000
    assert abs(figures[1] - figures[0]) <= 0.01


@pytest.mark.guest
def test_tags(resumable: Command, tmp_path: Path) -> None:
    """Each of eight queues with two words of tags searches in the first one. By chance, half would
    search in the last, which takes more instructions."""
    devices = range(8)
    text = "".join(
        f"""
[[rung]]
name = "tags.{number}"
target = "/dev/blknull{number}"
ops = ["read"]
options = ["--ioengine=sync", "--direct=1"]
ios = 32
modules = {{ blknull = {{ nr_devices = {len(devices)}, mode = "mq", hw_queue_depth = 128 }} }}
begin = ["tags /dev/blknull{number}"]
"""
        for number in devices
    )
    out = tmp_path / "out.json"
    words = ("--rungs", write(tmp_path / "tags.toml", text), "--op=read", "--boots=1")
    done = resumable.run("measure", KERNEL, *words, "--cmdline", FAST_START, "--json", out)
    assert done.returncode == 0, done.stderr
    records = json.loads(out.read_text())["results"]
    assert len(records) == len(devices)
    assert len({record["instructions_per_io"] for record in records}) == 1
