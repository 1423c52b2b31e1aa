# SPDX-License-Identifier: GPL-2.0
"""A kernel of riscv64, measured on a machine of another architecture."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from helpers.command import Command
from iopath.base.cache import cache_root
from iopath.base.sources import source_root

# By name only: the kernel and its compiler are a large download.
pytestmark = [pytest.mark.guest, pytest.mark.long]

KERNEL = "debian:7.2-riscv64"
RUNGS = ("null", "syscall", "raw.pread", "dio.pread")


def test_two_boots(tmp_path: Path) -> None:
    """They agree, functions add up to the total, and the path is followed with each call and
    return. There is only a result if the loop of a known number of instructions counts to that
    number."""
    for words in (["userspace/setup.sh", "riscv64"], ["make", "-s", "guest-programs"]):
        subprocess.run(words, cwd=source_root(), check=True)
    command, path = Command(cache_root(), tmp_path), tmp_path / "result.json"
    rungs = [word for rung in RUNGS for word in ("--rung", rung)]

    def records(*words: str) -> dict[str, dict[str, Any]]:
        done = command.run(*words, KERNEL, *rungs, "--op", "read", "--json", path)
        assert done.returncode == 0, done.stderr
        measured = json.loads(path.read_text())
        assert measured["kernels"][0]["arch"] == "riscv64"
        return {record["rung"]: record for record in measured["results"]}

    spreads = {
        rung: record["boot_spread"] for rung, record in records("measure", "--boots", "2").items()
    }
    assert tuple(spreads) == RUNGS
    assert {rung: spread for rung, spread in spreads.items() if spread > 0.05} == {}
    profiles = {}
    for rung, record in records("profile").items():
        profiles[rung] = profile = record["profile"]
        total = sum(function["instructions"] for function in profile["functions"])
        assert abs(total - profile["instructions"]) < 0.01
        assert 0 <= record["instructions_per_io"] - profile["instructions"] < 0.2
        assert profile["unmatched_returns"] == 0
    stacks = [stack.split(";") for stack, _ in profiles["dio.pread"]["stacks"]]
    driver = next(stack for stack in stacks if stack[-1] == "blknull_bio_fill_submit [blknull]")
    passed = ["handle_exception", "vfs_read", "blkdev_read_iter", "submit_bio_noacct"]
    at = [next(i for i, name in enumerate(driver) if name == part) for part in passed]
    assert at == sorted(at)
