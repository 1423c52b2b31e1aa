# SPDX-License-Identifier: GPL-2.0
"""iopath track: its steps for KCIDB."""

import copy
from pathlib import Path

import kcidb_io.schema

from helpers.tracking import FILE, a_point, config, index_of, keep
from iopath.track import kcidb


def test_kcidb(tmp_path: Path) -> None:
    """KCIDB's own library accepts it, and it has each figure."""
    keep(tmp_path, [a_point(0), a_point(1, error="does not build")])
    text = 'url = "https://example.org/io"\n' + FILE.replace("git:linux", "git:https://h/linux.git")
    index = index_of(tmp_path)
    found = kcidb.export(config(tmp_path, text), index)
    kcidb_io.schema.V5_3.validate(found)
    assert kcidb_io.schema.V5_3.is_valid(found)
    broken = copy.deepcopy(found)
    broken["tests"][0]["number"]["value"] = "many"
    assert not kcidb_io.schema.V5_3.is_valid(broken)
    assert [build["status"] for build in found["builds"]] == ["PASS", "ERROR"]
    paths = {test["path"]: test["number"]["value"] for test in found["tests"]}
    assert sorted(paths) == [
        "iopath.dio.pread.read.4096", "iopath.dio.pread.write.4096", "iopath.syscall",
    ]  # fmt: skip
    figures = index.figures(a_point(0))
    assert paths["iopath.dio.pread.read.4096"] == figures["dio.pread", "read", 4096][0]
    builds = {build["id"]: build["checkout_id"] for build in found["builds"]}
    assert {test["build_id"] for test in found["tests"]} < set(builds)
    assert set(builds.values()) == {one["id"] for one in found["checkouts"]}
    assert found["checkouts"][0]["git_repository_branch"] == "for-next"
