# SPDX-License-Identifier: GPL-2.0
"""The command track."""

from pathlib import Path

from rich.console import Console

from helpers.command import Command
from helpers.tracking import DEBIAN, a_tracker, keep, wanted, write_file
from iopath.base.cache import Cache
from iopath.base.progress import Reporter
from iopath.kernels.apt import Package
from iopath.measure.session import Session


def test_bad_command_lines(empty: Command, tmp_path: Path) -> None:
    file = write_file(tmp_path)
    assert "no-such.toml: No such file" in empty.fails("track", tmp_path / "no-such.toml", status=2)
    assert "git:linux: there is no such folder" in empty.fails("track", file, status=2)
    assert not file.with_suffix("").exists()
    assert "it is not a folder" in empty.fails("track", file, "--output", file, status=2)
    assert "no such folder" in empty.fails("track", file, "--csv", "/no/such/file", status=2)
    assert "no such folder" in empty.fails("track", file, "--mail", "/no/such/file", status=2)


def test_nothing_new_takes_no_network(
    listed: Command, recorded: list[Package], tmp_path: Path
) -> None:
    """If all kernels are known, or the mirror lacks one, the command only writes a site. A failed
    download is not recorded as a kernel's error."""
    session = Session(Cache(listed.cache), Reporter(Console(), quiet=True))
    text = DEBIAN + 'releases = "all"'
    tracker = a_tracker(session, tmp_path, text)
    every = wanted(tracker)
    missing = [one for one in every if one.asked["missing"]]
    usable = [one for one in every if not one.asked["missing"]]
    assert missing
    keep(tmp_path / "site", usable, planted=len(usable) - 1)
    file = write_file(tmp_path, text)
    done = listed.run("track", file, "--output", tmp_path / "site", "--quiet")
    assert done.returncode == 0
    assert "1 new step." in done.stdout
    assert done.stdout.count("Not measured: ") == len(missing)
    assert "is no longer on the mirror." in " ".join(done.stdout.split())
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "site").rglob("*.*")}
    again = listed.run("track", file, "--output", tmp_path / "site", "--quiet")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    changed = {path.name for path, when in kept.items() if path.stat().st_mtime_ns != when}
    assert changed <= {"steps.json", "index.sqlite"}
    listed.left_nothing()
    (tmp_path / "site" / usable[0].path).unlink()
    failed = listed.run("track", file, "--output", tmp_path / "site", "--quiet")
    assert failed.returncode == 125
    assert "iopath: nothing could be measured: " in failed.stderr
    assert f"{usable[0].title}: " in failed.stderr
    assert not (tmp_path / "site" / usable[0].path).exists()
