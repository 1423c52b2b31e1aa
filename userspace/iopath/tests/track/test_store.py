# SPDX-License-Identifier: GPL-2.0
"""iopath track: what it keeps."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.examples import a_record, a_result
from helpers.tracking import ASKED, a_point, keep
from iopath.results import result
from iopath.track import store
from iopath.track.index import Index
from iopath.track.store import Point


def test_files_are_results(tmp_path: Path) -> None:
    """compare reads them; the same result gives the same bytes; each function has a line."""
    point = a_point(1)
    keep(tmp_path, [point])
    path = tmp_path / point.path
    text = path.read_text()
    keep(tmp_path, [point])
    assert path.read_text() == text
    whole = result.load(path)
    assert whole.names == [point.title]
    assert len(whole.results) == 3
    read, data = store.read(path)
    assert read == point
    assert list(data) == sorted(data)
    lines = text.splitlines()
    assert sum('"name": "vfs_read"' in line for line in lines) == 2
    assert len(text) < 3 * len(json.dumps(data))
    json.loads(text)


def test_a_debian_kernel_has_the_date_of_its_banner(tmp_path: Path) -> None:
    made = a_result([a_record("k", "syscall", "none", 0)])
    made["kernels"][0]["banner"] = "Linux version 6.1 #1 SMP Debian 6.1.192-2 (2026-11-15)"
    point = a_point(1, title="6.1.192-2", position="6.1.192-2", date="", commit="")
    store.write(tmp_path, point, result.make(made))
    assert store.read(tmp_path / point.path)[0].date == "2026-11-15"


def test_what_is_asked_again() -> None:
    known = a_point(1)

    def asked(**fields: Any) -> Point:  # noqa: ANN401
        return a_point(1, asked={**ASKED, **fields})

    assert known.is_answered_by(known)
    assert asked(rungs=["syscall"], boots=1, missing="gone").is_answered_by(known)
    several = ({"cpus": 2}, {"build": "x"}, {"block_sizes": [512]})
    for more in ({"rungs": ["null"]}, {"boots": 5}, *several):
        assert not asked(**more).is_answered_by(known)
    failed = a_point(1, error="does not boot")
    assert known.is_answered_by(failed)
    for other in ({"rungs": ["syscall"]}, {"missing": "headers"}):
        assert not asked(**other).is_answered_by(failed)


def test_a_foreign_file(tmp_path: Path) -> None:
    """A foreign file is named, and nothing is guessed."""
    keep(tmp_path, [a_point(1)])
    (tmp_path / "results/block/other.json").write_text("{}")
    index = Index(tmp_path)
    with pytest.raises(Exception, match=r"other\.json is not a file of iopath track: remove it"):
        index.refresh()
