# SPDX-License-Identifier: GPL-2.0
"""iopath track: its file, what it keeps, the steps that it finds, and its site."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from helpers.planted import git
from helpers.tracking import FILE, a_tracker, write_file
from iopath.measure.session import Session
from iopath.results import result
from iopath.track import store
from iopath.track.index import opened
from iopath.track.store import Point

# With real builds and guests.

TWO = """
rungs = ["dio.pread"]
ops = ["read"]
boots = 1
[[watch]]
name = "debian"
kernels = ["debian:6.1", "debian:7.2"]
"""


@pytest.mark.guest
def test_commits_that_do_not_build(session: Session, history: Path, tmp_path: Path) -> None:
    """Each is kept with the reason and skipped; it is tried again with --again."""
    start = git(history, "rev-list", "--max-parents=0", "HEAD")
    text = FILE.replace("linux@v6.12..for-next", f"{history}@{start}..HEAD") + "every = 3\n"

    def failed(*, again: bool = False) -> list[Point]:
        tracker = a_tracker(session, tmp_path, text)
        return tracker.run(again=again).failed

    found = failed()
    assert [point.detail for point in found] == ["commit 6", "commit 3", "commit 0"]
    assert all("cannot be configured" in point.error for point in found)
    assert [read_error(tmp_path / "site", point) for point in found] == [p.error for p in found]
    assert failed() == []
    assert failed(again=True) == found


def read_error(folder: Path, point: Point) -> str:
    return store.read(folder / point.path)[0].error


@pytest.mark.guest
def test_two_kernels(session: Session, tmp_path: Path, make_command: Any) -> None:  # noqa: ANN401
    """Two kernels are measured and compared. A killed run is continued. A second run starts nothing
    and prints nothing."""
    file = write_file(tmp_path, TWO)
    command = make_command(session.cache.root)
    killed = command.start("track", file)
    time.sleep(2)
    killed.kill()
    said, _ = killed.communicate()  # with cached figures, it may have been done
    site = tmp_path / "watch"
    assert [path for path in site.rglob("*.json") if not path.read_text().endswith("}\n")] == []
    done = command.run("track", file)
    assert done.returncode == 0, done.stderr
    assert "1 new step." in said + done.stdout
    with opened(site) as index:
        (step,) = index.steps()
        one, two = (index.figures(point) for point in (step.before, step.after))
    change = next(iter(step.changes))
    key = ("dio.pread", "read", 4096)
    assert change.difference == pytest.approx(two[key][0] - one[key][0], abs=0.01)
    assert (site / step.page).is_file()
    again = command.run("track", file)
    assert (again.returncode, again.stdout) == (0, "")
    assert again.stderr == "debian: 0 kernels to measure\n"
    # Mark the older one as measured by another QEMU: both are measured together, and the step is
    # the same.
    path = site / step.before.path
    data = json.loads(path.read_text())
    data["qemu"]["version"] = "1.0"
    path.write_text(json.dumps(data))
    beside = command.run("track", file)
    assert (beside.returncode, beside.stdout) == (0, ""), beside.stderr
    assert f"measuring {step.before.title} and {step.after.title} together\n" in beside.stderr
    pair = store.pair(step.before, step.after).path
    assert result.load(site / pair).names == [step.before.title, step.after.title]
    with opened(site) as index:
        assert [(one.changes, one.apart) for one in index.steps()] == [(step.changes, True)]
    assert command.run("track", file).stderr == "debian: 0 kernels to measure\n"
