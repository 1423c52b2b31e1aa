# SPDX-License-Identifier: GPL-2.0
"""The command kernels."""

import json
import os
from pathlib import Path

from helpers.command import Command


def test_lists_of_an_earlier_day_serve_without_network(listed: Command) -> None:
    os.utime(listed.cache / "apt/index.json", (0, 0))
    done = listed.run("kernels")
    assert done.returncode == 0
    assert "6.1.0-56-amd64" in done.stdout
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.strip().endswith("using the package lists of an earlier day")


def test_asked_for_new_lists_old_ones_do_not_serve(listed: Command) -> None:
    assert "cannot fetch the lists" in listed.fails("kernels", "--update")
    assert listed.run("kernels").returncode == 0


def test_damaged_lists_are_fetched_anew(listed: Command) -> None:
    (listed.cache / "apt/index.json").write_text('[{"name": 1}]')
    assert "cannot fetch the lists" in listed.fails("kernels")


def test_kernels_by_series(listed: Command) -> None:
    """A line for each name of a series, with the release that it means; --all lists releases."""
    rows = [line.split() for line in listed.run("kernels").stdout.splitlines()]
    shown = {row[0]: row[1] for row in rows if row and row[0].startswith("debian:")}
    assert shown["debian:6.1"] == "6.1.0-56-amd64"
    assert shown["debian:6.1-rt"] == "6.1.0-56-rt-amd64"
    every = listed.run("kernels", "--all").stdout
    assert len(shown) < 20 < every.count("debian:")
    assert "debian:6.1.0-56-rt-amd64" in every


def test_kernels_as_json(listed: Command, tmp_path: Path) -> None:
    done = listed.run("kernels", "--json", tmp_path / "kernels.json")
    assert (done.returncode, done.stderr) == (0, "")
    kernels = {k["release"]: k for k in json.loads((tmp_path / "kernels.json").read_text())}
    assert kernels["6.1.0-56-amd64"]["suite"] == "bookworm-security"
    assert not any(k["missing"] or k["cached"] for k in kernels.values())
    listed.run("kernels", "--all", "--json", tmp_path / "all.json")
    everything = json.loads((tmp_path / "all.json").read_text())
    assert any(k["missing"] for k in everything)


def test_kernels_cannot_write_json(listed: Command) -> None:
    assert "cannot write /nonexistent/x: " in listed.fails(
        "kernels", "--json", "/nonexistent/x", status=2
    )
