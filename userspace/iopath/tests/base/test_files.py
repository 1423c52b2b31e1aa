# SPDX-License-Identifier: GPL-2.0
"""Files are written whole, whatever is in their place."""

import json
import os
from pathlib import Path

from helpers.command import Command
from helpers.examples import a_record, a_result
from iopath.base import files
from iopath.results.result import parse
from iopath.show import charts


def test_a_link_is_followed(listed: Command, tmp_path: Path) -> None:
    target, link = tmp_path / "folder/target.json", tmp_path / "link.json"
    target.parent.mkdir()
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    assert listed.run("kernels", "--json", link).returncode == 0
    assert link.is_symlink()
    assert json.loads(target.read_text())
    assert target.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.glob("*/.*")) + list(tmp_path.glob(".*")) == []


def test_a_link_to_nothing_makes_its_target(listed: Command, tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to("new.json")
    assert listed.run("kernels", "--json", tmp_path / "link.json").returncode == 0
    assert json.loads((tmp_path / "new.json").read_text())


def test_a_device_stays_a_device() -> None:
    """As root, a rename would put a file in the place of /dev/null."""
    files.write(Path("/dev/null"), b"x")
    assert Path("/dev/null").is_char_device()


def test_what_is_not_a_regular_file_is_written_in_place(listed: Command, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    process = listed.start("kernels", "--json", fifo)
    assert json.loads(fifo.read_text())
    assert process.communicate(timeout=600)[1] == ""
    assert fifo.is_fifo()
    done = listed.run("kernels", "--json", "/dev/stdout")
    text = done.stdout[: done.stdout.rindex("]") + 1]
    assert json.loads(text)
    assert done.returncode == 0


def test_a_chart_is_written_like_any_other_file(tmp_path: Path) -> None:
    figure = charts.ladder(parse(a_result([a_record("a", "x", "read", 512)])))
    for suffix in (".svg", ".png"):
        (tmp_path / f"link{suffix}").symlink_to(f"target{suffix}")
        charts.save(figure, tmp_path / f"link{suffix}")
        assert (tmp_path / f"link{suffix}").is_symlink()
        assert (tmp_path / f"target{suffix}").stat().st_size > 1000
