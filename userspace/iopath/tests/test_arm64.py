# SPDX-License-Identifier: GPL-2.0
"""A kernel of arm64, measured on a machine of another architecture."""

import json
from typing import Any

import pytest
from conftest import Command, build_into

from iopath.measure import Session

pytestmark = pytest.mark.guest

KERNEL = "debian:6.12-arm64"
RUNGS = ("--rung", "null", "--rung", "syscall", "--rung", "gen.sync", "--rung", "dio.pread")


@pytest.fixture(scope="module")
def command(session: Session, tmp_path_factory: pytest.TempPathFactory) -> Command:
    folder = tmp_path_factory.mktemp("measured")
    build_into(session, KERNEL, folder / "cache")
    return Command(folder / "cache", folder)


def run(command: Command, *words: str) -> dict[str, Any]:
    """The result of a command. The loop of a known number of instructions counts to that number in
    each boot, or there would be none."""
    path = command.temporary.parent / "json"
    done = command.run(*words, KERNEL, *RUNGS, "--op", "read", "--json", path)
    assert done.returncode == 0, done.stderr
    command.left_nothing()
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def measured(command: Command) -> dict[str, Any]:
    return run(command, "profile")


def test_the_result_names_its_architecture(measured: dict[str, Any]) -> None:
    (kernel,) = measured["kernels"]
    assert kernel["arch"] == "aarch64"
    assert kernel["release"].endswith("-arm64")
    assert measured["machine"]["cpu"] == "neoverse-n1"


def test_boots_agree(command: Command) -> None:
    records = run(command, "measure", "--boots", "2")["results"]
    spreads = {record["rung"]: record["boot_spread"] for record in records}
    assert len(spreads) == 4
    assert {rung: spread for rung, spread in spreads.items() if spread > 0.05} == {}


def test_functions_add_up(measured: dict[str, Any]) -> None:
    """To what the plugin counted, which is what the guest's clock says but for its own reading."""
    for record in measured["results"]:
        profile = record["profile"]
        total = sum(function["instructions"] for function in profile["functions"])
        assert abs(total - profile["instructions"]) < 0.01
        assert 0 <= record["instructions_per_io"] - profile["instructions"] < 0.2


def test_the_path_is_followed(measured: dict[str, Any]) -> None:
    """From the vector of the system call to the driver and back, with each call and return."""
    profiles = {record["rung"]: record["profile"] for record in measured["results"]}
    names = {function["name"] for function in profiles["dio.pread"]["functions"]}
    assert {"vectors", "el0_svc", "vfs_read", "submit_bio_noacct", "bio_endio"} <= names
    stacks = [stack.split(";") for stack, _ in profiles["dio.pread"]["stacks"]]
    driver = next(stack for stack in stacks if stack[-1] == "blknull_bio_fill_submit [blknull]")
    path = ["vectors", "vfs_read", "blkdev_read_iter", "submit_bio_noacct"]
    at = [next(i for i, name in enumerate(driver) if name == part) for part in path]
    assert at == sorted(at)
    for rung, profile in profiles.items():
        assert profile["unmatched_returns"] == 0, rung
