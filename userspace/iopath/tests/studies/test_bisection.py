# SPDX-License-Identifier: GPL-2.0
"""A change that was planted in a kernel is found: by compare, and by bisect among commits.

The kernels are built from the source of one of Debian's with iopath's minimal.config, once: they
stay in the user's cache, as do the results of measuring them.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.command import IOPATH, Command
from helpers.counted import SETTINGS, a_program, a_session
from helpers.counted import a_boot as a_count
from helpers.examples import a_record, a_result
from helpers.planted import IMAGE, commit, found, git, search
from iopath.base.arch import X86_64
from iopath.base.cache import Cache
from iopath.base.errors import IopathError, UsageError
from iopath.counts.calls import Started
from iopath.kernels import gitrepo
from iopath.kernels.gitrepo import open_repository
from iopath.kernels.kernel import NEEDED
from iopath.results.result import ExactResult
from iopath.results.syscalls import CALL, LATER
from iopath.studies import bisection


def make_tree(folder: Path) -> Path:
    """The files by which a built tree is recognised."""
    options = [f"CONFIG_{name}=y" for name in (X86_64.option, *X86_64.options, *NEEDED)]
    for name, text in {
        IMAGE: "",
        "include/config/kernel.release": "6.12.0\n",
        ".config": "\n".join(options),
        "Module.symvers": "",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("lacks", "complaint"),
    [
        (IMAGE, "/arch/x86/boot/bzImage is missing: build the kernel there first"),
        (".config", "/.config is missing: build the kernel there first"),
        ("Module.symvers", "Module.symvers is missing: run `make modules` there"),
    ],
)
def test_tree_that_is_not_built(
    listed: Command, tmp_path: Path, lacks: str, complaint: str
) -> None:
    tree = make_tree(tmp_path / "tree")
    (tree / lacks).unlink()
    said = listed.fails("measure", f"tree:{tree}", status=2)
    assert said.startswith(f"iopath: tree:{tree}: ")
    assert said.endswith(complaint)
    judged = listed.run("compare", f"tree:{tree}", "debian:6.1", "--fail-above", "1")
    assert judged.returncode == 125


def test_tree_without_what_a_guest_needs(listed: Command, tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree")
    config = (tree / ".config").read_text()
    (tree / ".config").write_text(
        config.replace("CONFIG_MODULES=y\n", "").replace("CONFIG_PCI=y", "CONFIG_PCI=n")
    )
    assert listed.fails("measure", f"tree:{tree}", status=2) == (
        f"iopath: tree:{tree}: its kernel cannot be measured: build it with CONFIG_MODULES=y,"
        " CONFIG_PCI=y"
    )


def test_git_bisect_run_with_results(history: Path, listed: Command, tmp_path: Path) -> None:
    """The exit status of compare is what git expects: good, bad, or not to be judged."""
    for name, by in {"2000": 0.0, "2007": 7.0}.items():
        record = a_record("k", "dio.pread", "read", 4096, stacks=None)
        for figure in ("instructions_per_io", "mean", "with_deferred"):
            record[figure] += by
        for boots in ("boots", "mean_boots", "with_deferred_boots"):
            record[boots] = [figure + by for figure in record[boots]]
        (tmp_path / name).write_text(json.dumps(a_result([record])))
    (tmp_path / "broken").write_text("{}")
    shutil.copy(tmp_path / "2000", tmp_path / "good.json")
    step = (
        "cp ../$(cut -d' ' -f1 figure) ../now.json;"
        f" {IOPATH} compare ../good.json ../now.json --rung dio.pread --op read --fail-above 0.1"
    )
    git(history, "bisect", "start", "HEAD", "HEAD~6")
    done = subprocess.run(
        ["git", "bisect", "run", "sh", "-c", step], cwd=history, env=listed.env,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "commit 5" in git(history, "show", "--no-patch", "refs/bisect/bad")
    assert re.search(r"^git bisect skip \w+", git(history, "bisect", "log"), re.MULTILINE)


PACKAGES = [f"debian:6.12.{number}" for number in range(9)]


@pytest.mark.parametrize("first_bad", range(1, 9))
@pytest.mark.parametrize("by", [+7.0, -7.0])
def test_bisect_packages(first_bad: int, by: float) -> None:
    """Each position is found with few measured kernels, whether the path grew or shrank."""
    looked, session, _ = search(lambda name: 2000 + by * (int(name.rsplit(".", 1)[1]) >= first_bad))
    ends = bisection.packages(looked, PACKAGES, print)
    assert found(ends) == [f"debian:6.12.{number}" for number in (first_bad - 1, first_bad)]
    assert len(session.measured) <= 2 + 3
    assert len(set(session.measured)) == len(session.measured)


def test_bisect_packages_backwards() -> None:
    looked, _, _ = search(lambda name: 2007.0 if name >= "debian:6.12.3" else 2000.0)
    ends = bisection.packages(looked, PACKAGES[::-1], print)
    assert found(ends) == ["debian:6.12.3", "debian:6.12.2"]


@pytest.mark.parametrize(
    ("skipped", "ends", "left"),
    [
        ({4}, (5, 6), ""),
        ({3, 4}, (5, 6), ""),
        ({5}, (4, 6), "or one of the skipped kernels: debian:6.12.5"),
        (set(range(1, 8)), (0, 8), "or one of the skipped kernels: debian:6.12.1, "),
    ],
)
def test_bisect_packages_skips(skipped: set[int], ends: tuple[int, int], left: str) -> None:
    def figure(name: str) -> float | None:
        number = int(name.rsplit(".", 1)[1])
        return None if number in skipped else 2000.0 + 7 * (number >= 6)

    looked, session, said = search(figure)
    assert found(bisection.packages(looked, PACKAGES, said.append)) == [
        f"debian:6.12.{number}" for number in ends
    ]
    for number in skipped & {int(name.rsplit(".", 1)[1]) for name in session.measured}:
        assert f"debian:6.12.{number}: skipped: it crashed" in said
    assert [line for line in said if line.startswith("or one of")] == [
        line for line in said if left and line.startswith(left)
    ]
    assert bool(left) == any(line.startswith("or one of") for line in said)


@pytest.mark.parametrize(("by", "found_in"), [(0.3, None), (4.0, (3, 4))])
def test_bisect_judges_as_compare_does(by: float, found_in: tuple[int, int] | None) -> None:
    """A difference within the noise of the boots is ignored; kernels in between may vary, too."""
    looked, _, _ = search(
        lambda name: 2000 + by * (int(name.rsplit(".", 1)[1]) >= 4), noise=(0.0, 0.2, 0.1, 0.4, 0.2)
    )
    if found_in is None:
        with pytest.raises(IopathError, match="both ends take the same"):
            bisection.packages(looked, PACKAGES, print)
    else:
        ends = found(bisection.packages(looked, PACKAGES, print))
        assert ends == [f"debian:6.12.{number}" for number in found_in]


def test_bisect_sees_what_the_median_does_not_show() -> None:
    """The median is the same; from the fifth kernel on, there is rare work."""
    looked, session, _ = search(lambda name: 2000.0)
    session.mean = lambda name: 2000.0 + 50 * (int(name.rsplit(".", 1)[1]) >= 5)
    ends = found(bisection.packages(looked, PACKAGES, print))
    assert ends == ["debian:6.12.4", "debian:6.12.5"]


def test_bisect_follows_what_differs_most() -> None:
    """The path is longer by 0.1 from the second kernel on, the mean by 50 from the fifth on."""
    looked, session, said = search(lambda name: 2000 + 0.1 * (int(name.rsplit(".", 1)[1]) >= 2))
    session.mean = lambda name: 2000.0 + 50 * (int(name.rsplit(".", 1)[1]) >= 5)
    ends = found(bisection.packages(looked, PACKAGES, print))
    assert ends == ["debian:6.12.4", "debian:6.12.5"]
    assert "following: mean" in said


def test_bisect_follows_any_metric_that_is_judged() -> None:
    """The path is the same; from the fifth kernel on, one more of its instructions is locked."""
    looked, session, said = search(lambda name: 2000.0)
    session.locked = lambda name: 20.0 + (int(name.rsplit(".", 1)[1]) >= 5)
    ends = found(bisection.packages(looked, PACKAGES, said.append))
    assert ends == ["debian:6.12.4", "debian:6.12.5"]
    assert "following: locked" in said


def test_bisect_takes_as_many_boots_as_a_verdict() -> None:
    looked, _, _ = search(lambda name: 2000.0 + 0.4 * name.endswith("8"), noise=(0.0, 0.0))
    with pytest.raises(IopathError, match=r"2 boots of each end .*: measure with --boots 5"):
        bisection.packages(looked, PACKAGES, print)


def test_bisect_ends_that_agree() -> None:
    looked, session, _ = search(lambda name: 2000.0)
    with pytest.raises(IopathError, match=r"both ends take the same: 2,000.00 and 2,000.00"):
        bisection.packages(looked, PACKAGES, print)
    assert len(session.measured) == 2


def bisect_commits(folder: Path, good: str, bad: str, cache: Path) -> tuple[list[str], list[str]]:
    def figure(name: str) -> float | None:
        text = git(folder, "show", f"{name.rpartition('@')[2]}:figure")
        return None if "broken" in text else float(text.split()[0])

    looked, _, said = search(figure)
    kept = Cache(cache)
    repository = gitrepo.open_repository(str(folder), kept)
    ends = bisection.commits(looked, "git", repository, good, bad, kept, said.append)
    subjects = [git(folder, "log", "-1", "--format=%s", name) for name in found(ends)]
    return subjects, said


def test_bisect_commits(history: Path, tmp_path: Path) -> None:
    """Names are any that git knows, also relative ones."""
    subjects, said = bisect_commits(history, "HEAD~6", "HEAD", tmp_path / "cache")
    assert subjects == ["commit 4", "commit 5"]
    assert any("first bad commit: " in line and "commit 5 (iopath, " in line for line in said)
    assert len([line for line in said if line.startswith("skipped: ")]) == 1


def test_bisect_cannot_decide(history: Path, tmp_path: Path) -> None:
    """If skipped commits come just before a bad one, any of them may be the first bad one."""
    (history / "figure").write_text("broken\n")
    commit(history, "figure", "commit 7")
    (history / "figure").write_text("2020\n")
    commit(history, "figure", "commit 8")
    with pytest.raises(IopathError, match=r"it is one of \w+ \(commit 7\), \w+ \(commit 8\)$"):
        bisect_commits(history, "HEAD~2", "HEAD", tmp_path / "cache")


def test_bisect_ends_that_cannot_be_searched(history: Path, tmp_path: Path) -> None:
    """They are refused before anything is built."""
    with pytest.raises(UsageError, match=r"no-such: there is no such commit"):
        bisect_commits(history, "no-such", "HEAD", tmp_path / "cache")
    with pytest.raises(UsageError, match=r"GOOD and BAD are one commit, [0-9a-f]{12}: "):
        bisect_commits(history, "HEAD", "HEAD", tmp_path / "cache")
    with pytest.raises(UsageError, match=r"BAD \([0-9a-f]{12}\) comes before GOOD "):
        bisect_commits(history, "HEAD", "HEAD~6", tmp_path / "cache")
    assert not (tmp_path / "cache/logs").exists()


def test_bisect_with_a_bad_merge_base(history: Path, tmp_path: Path) -> None:
    """The good end is not an ancestor of the bad one, and their merge base is bad, too: git
    explains that."""
    git(history, "checkout", "--quiet", "-b", "fixed", "HEAD~1")
    (history / "figure").write_text("2000 fixed\n")
    good = commit(history, "figure", "what mends it")
    git(history, "checkout", "--quiet", "-b", "other", "HEAD~1")
    (history / "figure").write_text("2007 other\n")
    commit(history, "figure", "one more bad one")
    with pytest.raises(IopathError) as told:
        bisect_commits(history, good, "HEAD", tmp_path / "cache")
    said = str(told.value)
    assert re.match(r"git bisect bad: The merge base [0-9a-f]{40} is bad\. This means", said)
    assert "\n" not in said


def state_of(folder: Path) -> dict[str, bytes]:
    """All files of a repository except those that reading may refresh."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_bisect_leaves_a_repository_alone(history: Path, cache: Cache) -> None:
    """Commits are found in a repository of the cache. The user's repository may be in any state."""
    git(history, "bisect", "start")
    (history / "figure").write_text("changed, and not committed\n")
    before = state_of(history)

    def figure(name: str) -> float | None:
        text = git(history, "show", f"{name.rpartition('@')[2]}:figure")
        return None if "broken" in text else float(text.split()[0])

    looked, _, said = search(figure)
    repository = open_repository(str(history), cache)
    ends = bisection.commits(looked, "git", repository, "HEAD~6", "HEAD", cache, said.append)
    subjects = [git(history, "log", "-1", "--format=%s", name) for name in found(ends)]
    assert subjects == ["commit 4", "commit 5"]
    assert len([line for line in said if line.startswith("skipped: ")]) == 1
    assert state_of(history) == before


POINT_RELEASES = [f"debian:6.12.{number}" for number in range(9)]


def of_program(
    figure: Callable[[int], int | None], metric: str = "", boots: int = 7
) -> tuple[bisection.Search, list[str]]:
    """A program that takes what *figure* says in each read, or fails on a kernel."""
    said: list[str] = []

    def count(kernel: str) -> ExactResult:
        read = figure(int(kernel.rsplit(".", 1)[1]))
        if read is None:
            raise IopathError("program ended with status 1")
        return a_program({kernel: [a_count(read)] * boots})

    settings = replace(SETTINGS, boots=boots)
    return bisection.Search(a_session(count), settings, said.append, metric), said


@pytest.mark.parametrize("by", [5, -5])
@pytest.mark.parametrize("metric", ["", "read", "the whole"])
def test_a_search(by: int, metric: str) -> None:
    """Also among kernels on which the program fails."""
    looked, said = of_program(
        lambda number: None if number == 4 else 100 + by * (number >= 6), metric
    )
    ends = bisection.packages(looked, POINT_RELEASES, said.append)
    assert [end.names for end in ends] == [["debian:6.12.5"], ["debian:6.12.6"]]
    assert f"following: {metric or 'read'}" in said
    assert "debian:6.12.4: skipped: program ended with status 1" in said


def test_what_is_followed() -> None:
    """The call that changed most, unless something else changed by more than as much."""
    for more, followed in (
        ({(CALL, "open"): Started(1, 40, 0, {"do_open": 40})}, "read"),
        ({(LATER, "kworker"): Started(1, 60, 0, {"worker_thread": 60})}, "the whole"),
    ):
        found = {0: a_count(100), 8: a_count(105, more=more)}
        session = a_session(lambda name, found=found: a_program({name: [found[int(name[-1])]] * 7}))
        said: list[str] = []
        looked = bisection.Search(session, SETTINGS, said.append)
        bisection.packages(looked, [POINT_RELEASES[0], POINT_RELEASES[8]], print)
        assert f"following: {followed}" in said


def test_ends_that_agree() -> None:
    looked, _ = of_program(lambda number: 100)
    with pytest.raises(IopathError, match=r"^both ends take the same by the whole: 1,090\.00 and "):
        bisection.packages(looked, POINT_RELEASES, print)
    looked, _ = of_program(lambda number: 100 + number, "read", boots=1)
    with pytest.raises(IopathError, match="1 boots of each end do not tell"):
        bisection.packages(looked, POINT_RELEASES, print)


def test_a_call_that_is_not_made() -> None:
    looked, _ = of_program(lambda number: 100 + number, "raed")
    with pytest.raises(IopathError, match="no such system call: did you mean 'read'"):
        bisection.packages(looked, POINT_RELEASES, print)
