# SPDX-License-Identifier: GPL-2.0
"""iopath track: its file, what it keeps, the steps that it finds, and its site."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from helpers import counted
from helpers.command import Command, write_index
from helpers.examples import a_record, a_result
from helpers.planted import commit, git
from helpers.tracking import (
    DEBIAN,
    FILE,
    LONGER,
    Planted,
    a_tracker,
    config,
    debian_points,
    index_of,
    keep,
    wanted,
    write_file,
)
from iopath.base.cache import Cache
from iopath.base.errors import IopathError, Unreachable
from iopath.base.progress import Reporter
from iopath.kernels.apt import Package
from iopath.measure.session import TOGETHER, Session
from iopath.results import result
from iopath.results.result import Result
from iopath.rungs.runs import Settings
from iopath.track import kcidb, store
from iopath.track import site as tracksite
from iopath.track.tracker import News


def test_commits_of_a_branch(history: Path, tmp_path: Path) -> None:
    """The first parents from START on: chosen commits stay chosen when the branch grows."""
    session = Session(Cache(tmp_path / "cache"), Reporter(Console(), quiet=True))
    main = git(history, "rev-parse", "--abbrev-ref", "HEAD")
    start = git(history, "rev-list", "--max-parents=0", "HEAD")
    text = FILE.replace("linux@v6.12..for-next", f"{history}@{start}..{main}")

    def subjects(more: str = "") -> list[str]:
        return [one.detail for one in wanted(a_tracker(session, tmp_path, text + more))]

    assert subjects() == [f"commit {number}" for number in range(7)]
    assert subjects("every = 4") == ["commit 0", "commit 4"]
    other = wanted(a_tracker(session, tmp_path, text + 'arch = "arm64"'))
    assert {one.arch for one in other} == {"aarch64"}
    git(history, "checkout", "--quiet", "-b", "topic", "HEAD~2")
    (history / "other").write_text("x")
    commit(history, "other", "on the branch")
    git(history, "checkout", "--quiet", main)
    git(history, "merge", "--quiet", "--no-ff", "-m", "the merge", "topic")
    assert subjects("every = 4") == ["commit 0", "commit 4"]
    assert subjects()[-2:] == ["commit 6", "the merge"]
    assert subjects("merges = true") == ["commit 0", "the merge"]
    positions = [int(one.position) for one in wanted(a_tracker(session, tmp_path, text))]
    assert positions == list(range(positions[0], positions[0] + 8))


RUNGS = 'rungs = ["syscall", "dio.pread"]'
PROGRAM = FILE.replace(RUNGS, 'program = { command = ["dd", "bs=4k"], device = "mq" }')


class Reads(Planted):
    """A session in which a program's read takes five instructions more on the commits of
    *longer*."""

    def results(self, names: Sequence[str], settings: Settings) -> dict[str, Result]:
        assert settings.program
        assert settings.program.command == ["dd", "bs=4k"]
        self.calls.append([name.rpartition("@")[2] for name in names])
        found: dict[str, Result] = {}
        for name in names:
            read = 105 if name.rpartition("@")[2] in self.longer else 100
            found[name] = counted.a_program({name: [counted.a_boot(read)] * settings.boots})
        return found


def test_a_program_is_tracked(history: Path, tmp_path: Path) -> None:
    """Its whole and its system calls have charts, steps and objects of KCIDB; the idle task has
    none. Another command line is measured again."""
    main = git(history, "rev-parse", "--abbrev-ref", "HEAD")
    start = git(history, "rev-list", "--max-parents=0", "HEAD")
    text = PROGRAM.replace("linux@v6.12..for-next", f"{history}@{start}..{main}")
    session = Reads(tmp_path)
    tracker = a_tracker(session, tmp_path, text)
    points = wanted(tracker)
    session.longer = {point.commit for point in points[4:]}
    (step,) = tracker.run().steps
    assert (step.before.detail, step.after.detail) == ("commit 3", "commit 4")
    assert {change.title: change.difference for change in step.changes}["read"] == 5.0
    shown = json.loads((tmp_path / "site/points.json").read_text())["watches"][0]
    assert {rung["title"] for rung in shown["rungs"]} == {"the whole", "I/O calls", "read"}
    session.calls.clear()
    assert a_tracker(session, tmp_path, text).run().measured == []
    other = wanted(a_tracker(session, tmp_path, text.replace("bs=4k", "bs=8k")))
    assert other[0].is_answered_by(other[0])
    assert not other[0].is_answered_by(points[0])
    tests = kcidb.export(config(tmp_path, text), index_of(tmp_path / "site"))["tests"]
    parts = ("the_whole", "IO_calls", "read")
    assert {test["path"] for test in tests} == {f"iopath.program.{part}" for part in parts}
    assert {test["number"]["unit"] for test in tests} == {"instructions each time"}


def test_releases_of_debian(recorded: list[Package], tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    write_index(cache.root, recorded)
    session = Session(cache, Reporter(Console(), quiet=True))
    newest = wanted(a_tracker(session, tmp_path, DEBIAN))
    assert [one.line for one in newest] == ["bullseye", "bookworm", "trixie-rt"]
    every = wanted(a_tracker(session, tmp_path, DEBIAN + 'releases = "all"'))
    assert {one.title for one in every} > {one.title for one in newest}
    assert len({one.path for one in every}) == len(every)
    assert every == sorted(every, key=lambda one: one.order)


class Branch:
    """A branch that grows, and the site that follows it. Commits 5 and 6 are longer."""

    def __init__(self, history: Path, folder: Path) -> None:
        self._history = history
        self._folder = folder
        self.commits = git(history, "rev-list", "--reverse", "HEAD").splitlines()
        self.session = Planted(folder)
        self.session.longer = set(self.commits[5:])
        self.site = folder / "site"
        self.text = FILE.replace("linux@v6.12..for-next", f"{history}@{self.commits[0]}..next")

    def run(self, newest: int, *, again: bool = False) -> News:
        """The steps that a run reports when the branch has grown to a commit."""
        git(self._history, "branch", "--force", "next", self.commits[newest])
        self.session.calls.clear()
        tracker = a_tracker(self.session, self._folder, self.text)
        news = tracker.run(again=again)
        tracker.told()
        return news

    def name(self, before: int, after: int) -> str:
        """The name of a step."""
        return f"block/{self.commits[before][:12]}..{self.commits[after][:12]}"

    def steps(self) -> list[tuple]:
        """The steps that a new index finds in the files."""
        (self.site / "index.sqlite").unlink()
        return [(step.name, step.differing, step.changes) for step in index_of(self.site).steps()]


@pytest.fixture
def branch(history: Path, tmp_path: Path) -> Branch:
    return Branch(history, tmp_path)


@pytest.mark.parametrize(("together", "sizes"), [(TOGETHER, [4, 2]), (512, [6])])
def test_kernels_together(branch: Branch, together: int, sizes: list[int]) -> None:
    """A cluster measures more kernels at a time."""
    assert branch.session.together == TOGETHER
    branch.session.together = together
    branch.run(5)
    assert [len(calls) for calls in branch.session.calls] == sizes


@pytest.mark.parametrize(("what", "value"), [("qemu", "8.0"), ("source", "f" * 64)])
def test_a_step_beside_a_change(branch: Branch, what: str, value: str) -> None:
    """The two kernels beside the change are measured together, and no other one again."""
    commits = branch.commits
    assert branch.run(4).steps == []
    kept = {path: path.read_bytes() for path in (branch.site / "results").rglob("*.json")}
    assert len(kept) == 5
    setattr(branch.session, what, value)
    (step,) = branch.run(5).steps
    assert (step.name, step.differing) == (branch.name(4, 5), [])
    (change,) = step.changes
    assert (change.difference, change.functions) == (5.0, "vfs_read +5.00")
    assert branch.session.calls == [[commits[5]], [commits[4], commits[5]]]
    assert {path: path.read_bytes() for path in kept} == kept
    assert (branch.site / step.page).is_file()
    # compare reads the file of both.
    pair = result.load(branch.site / "pairs" / f"{step.name}.json")
    assert pair.names == [commits[4][:12], commits[5][:12]]
    # An index that is made again finds the same, and a second run measures nothing.
    assert branch.steps() == [(step.name, [], step.changes)]
    assert (branch.run(5).steps, branch.session.calls) == ([], [])
    assert (branch.run(6).steps, branch.session.calls) == ([], [[commits[6]]])


def test_no_step_beside_a_change(branch: Branch) -> None:
    """Another count of another QEMU is not a step, but a dashed line on the site."""
    branch.run(2)
    branch.session.qemu = "8.0"
    news = branch.run(3)
    assert (len(news.measured), news.steps, news.unjudged) == (1, [], [])
    index = index_of(branch.site)
    assert index.steps() == []
    shown = tracksite.points(config(branch.site.parent), index)["watches"][0]
    pair = f"pairs/{branch.name(2, 3)}.json"
    assert shown["links"] == [
        {"before": 0, "after": 1, "breaks": [], "file": ""},
        {"before": 1, "after": 2, "breaks": [], "file": ""},
        {"before": 2, "after": 3, "breaks": ["QEMU 7.2 to 8.0"], "file": pair},
    ]
    assert [point["instrument"] for point in shown["points"]] == [0, 0, 0, 1]
    (rung,) = shown["rungs"]
    first = rung["values"][0]
    assert [value - first for value in rung["values"]] == pytest.approx([0, 0, 0, 3])


def test_a_change_in_the_past(branch: Branch) -> None:
    """A step between results of two versions is found even if neither is the current one."""
    branch.run(4)
    branch.session.qemu = "8.0"
    branch.run(6)
    (branch.site / "pairs" / f"{branch.name(4, 5)}.json").unlink()
    (branch.site / "steps.json").unlink()
    branch.session.qemu = "9.0"
    (step,) = branch.run(6).steps
    assert (step.name, step.changes[0].difference) == (branch.name(4, 5), 5.0)
    assert branch.session.calls == [branch.commits[4:6]]


def test_a_commit_between(branch: Branch) -> None:
    """A new kernel between two known ones is compared with both."""
    commits, text = branch.commits, branch.text
    branch.text = f"{text}every = 6\n"
    branch.run(6)
    branch.text = f"{text}every = 3\n"
    branch.session.qemu = "8.0"
    (step,) = branch.run(6).steps
    assert (step.name, step.changes[0].difference) == (branch.name(3, 6), 5.0)
    assert branch.session.calls == [
        [commits[3]], [commits[0], commits[3]], [commits[3], commits[6]],
    ]  # fmt: skip


def test_a_run_that_is_ended(branch: Branch) -> None:
    """The next run measures what is left: the two kernels together."""
    branch.run(4)
    branch.session.qemu = "8.0"
    branch.session.broken = {branch.commits[4]: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        branch.run(5)
    branch.session.broken = {}
    (step,) = branch.run(5).steps
    assert (step.name, len(step.changes)) == (branch.name(4, 5), 1)
    assert branch.session.calls == [branch.commits[4:6]]


def test_an_older_kernel_that_fails(branch: Branch) -> None:
    """The step says why it is not judged. It is tried again with --again, and is new once it is
    judged."""
    branch.run(4)
    branch.session.qemu = "8.0"
    branch.session.broken = {branch.commits[4]: IopathError("it crashed")}
    news = branch.run(5)
    (step,) = news.unjudged
    assert (news.steps, step.changes) == ([step], [])
    assert step.differing[0] == f"{step.before.title} cannot be measured again: it crashed"
    assert "qemu: version '7.2' and '8.0'" in step.differing[1]
    assert branch.steps() == [(step.name, step.differing, [])]
    assert (branch.run(5).steps, branch.session.calls) == ([], [])
    assert [one.name for one in branch.run(5, again=True).unjudged] == [step.name]
    branch.session.broken = {}
    assert (branch.run(5).steps, branch.session.calls) == ([], [])
    news = branch.run(5, again=True)
    assert (news.unjudged, [one.name for one in news.steps]) == ([], [step.name])
    assert news.steps[0].changes[0].difference == 5.0


def test_a_mirror_that_does_not_answer(branch: Branch) -> None:
    """Each run tries again, and says that the step is not judged."""
    branch.run(4)
    branch.session.qemu = "8.0"
    branch.session.broken = {branch.commits[4]: Unreachable("no answer")}
    for _ in range(2):
        assert [step.name for step in branch.run(5).unjudged] == [branch.name(4, 5)]
        assert not (branch.site / "pairs").exists()
    branch.session.broken = {}
    (step,) = branch.run(5).steps
    assert (step.differing, len(step.changes)) == ([], 1)


def test_an_older_kernel_that_is_gone(listed: Command, tmp_path: Path) -> None:
    """The step is named, and the exit status is 125. The next run has nothing new to say."""
    text = 'rungs = ["dio.pread"]\n[[watch]]\nname = "debian"\nkernels = ["debian:6.1"]\n'
    session = Session(Cache(listed.cache), Reporter(Console(), quiet=True))
    (newest,) = wanted(a_tracker(session, tmp_path, text))
    site = tmp_path / "site"
    keep(site, [replace(newest, title="6.1.1-1", position="6.1.1-1")])
    made = a_result([a_record("k", "dio.pread", "read", 4096, LONGER)])
    made["qemu"]["version"] = "8.0"
    store.write(site, newest, result.make(made))
    file = write_file(tmp_path, text)
    done = listed.run("track", file, "--output", site, "--quiet")
    assert done.returncode == 125
    names = f"debian 6.1.1-1 to {newest.title}"
    assert done.stderr.splitlines() == [
        "iopath: 6.1.1-1 cannot be measured again: it is no longer on the mirror",
        f"iopath: not judged: {names}",
    ]
    said = " ".join(done.stdout.split())
    assert "0 new steps, 1 not judged. debian: 6.1.1-1 to " in said
    why = "not judged: 6.1.1-1 cannot be measured again: it is no longer on the mirror; qemu: "
    assert why in said
    again = listed.run("track", file, "--output", site, "--quiet")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


def test_the_first_kernel_of_a_line(tmp_path: Path) -> None:
    """It is compared with one kernel of the other line, also when newer ones follow there. Kernels
    of two architectures are not compared."""
    versions = [("bookworm", "6.1.190-1"), ("bookworm", "6.1.192-2"), ("trixie", "6.12.117-1")]
    points = debian_points(versions)
    arm64 = replace(points[2], line="trixie-arm64", title="6.12.117-1-arm64", arch="aarch64")
    keep(tmp_path, [points[0], points[2], arm64], planted=1)
    made = a_result([a_record("k", "dio.pread", "read", 4096)])
    made["qemu"]["version"] = "8.0"
    store.write(tmp_path, points[1], result.make(made))
    steps = [step.name for step in index_of(tmp_path).steps()]
    assert steps == ["debian/6.1.190-1..6.1.192-2", "debian/6.1.190-1..6.12.117-1"]


class Booted(Planted):
    """A session that boots as often as it is asked to, and has a row for each of four sizes."""

    def results(self, names: Sequence[str], settings: Settings) -> dict[str, Result]:
        found = {}
        for name, one in super().results(names, settings).items():
            records = []
            for size, record in itertools.product((512, 1024, 2048, 4096), one.results):
                boots = {
                    name: getattr(record, name)[: settings.boots]
                    for name in ("boots", "mean_boots", "with_deferred_boots")
                }
                counts = {name: part[: settings.boots] for name, part in record.counts.items()}
                boots |= {"counts": counts, "rounds": 10 * settings.boots}
                records.append(replace(record, block_size=size, **boots))
            found[name] = replace(one, results=records)
        return found


def test_undecided_neighbours_are_booted_more_often(history: Path, tmp_path: Path) -> None:
    """Five boots decide what has no layouts. Later runs measure nothing again."""
    commits = git(history, "rev-list", "--reverse", "HEAD").splitlines()
    session = Booted(tmp_path)
    session.longer = set(commits[5:])
    place = f"{history}@{commits[0]}..HEAD"
    text = FILE.replace("linux@v6.12..for-next", place).replace("title", "boots = 2\ntitle", 1)
    news = a_tracker(session, tmp_path, text).run()
    (step,) = news.steps
    assert [change.verdict for change in step.changes] == ["longer"] * 4
    boots = {
        path.stem: store.read(path)[0].asked["boots"] for path in store.points(tmp_path / "site")
    }
    assert boots == {commit[:12]: 5 for commit in commits}
    session.calls.clear()
    a_tracker(session, tmp_path, text).run()
    assert session.calls == []
