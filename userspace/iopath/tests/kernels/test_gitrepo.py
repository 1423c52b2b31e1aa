# SPDX-License-Identifier: GPL-2.0
"""Git repositories: names, ranges, and copies of those at an address."""

from pathlib import Path

import pytest
from rich.console import Console

from helpers.planted import commit, git
from iopath.base.cache import Cache
from iopath.base.errors import IopathError, UsageError
from iopath.base.progress import Reporter
from iopath.kernels import gitrepo
from iopath.kernels.finder import Finder
from iopath.kernels.gitrepo import open_repository
from iopath.measure.session import Session


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ("linux@v6.12", ("linux", "v6.12")),
        ("linux", ("linux", "HEAD")),
        ("~/a@b/linux@HEAD~3", ("~/a@b/linux", "HEAD~3")),
        ("linux@HEAD@{1}", ("linux", "HEAD@{1}")),
        ("linux@v6.12..my-branch", ("linux", "v6.12..my-branch")),
        ("https://host/linux.git@v6.12", ("https://host/linux.git", "v6.12")),
        ("git@host:linux.git", ("git@host:linux.git", "HEAD")),
        ("git@host:team/linux.git", ("git@host:team/linux.git", "HEAD")),
        ("git@host:linux.git@master", ("git@host:linux.git", "master")),
        ("ssh://git@host/linux@master", ("ssh://git@host/linux", "master")),
        ("ssh://git@host:22/linux", ("ssh://git@host:22/linux", "HEAD")),
    ],
)
def test_split(spec: str, parts: tuple[str, str]) -> None:
    assert gitrepo.split(spec) == parts


def test_range(history: Path, cache: Cache, tmp_path: Path) -> None:
    """The commits of a range follow the commit that it begins after. --every counts from the
    last."""
    session = Session(cache, Reporter(Console(), quiet=True))
    commits = git(history, "rev-list", "--reverse", "HEAD").splitlines()
    name = f"git:{history}@{commits[0]}..HEAD"

    def expanded(every: int) -> list[int]:
        names = session.expand(["debian:6.1", name], every=every)
        assert names[0] == "debian:6.1"
        hashes = [name.rpartition("@")[2] for name in names[1:]]
        return [[c[:12] for c in commits].index(short) for short in hashes]

    assert expanded(1) == [0, 1, 2, 3, 4, 5, 6]
    assert expanded(4) == [0, 2, 6]
    assert expanded(100) == [0, 6]
    for range_, message in (
        ("HEAD..HEAD", "no commit is in this range"),
        ("HEAD..HEAD~2", "HEAD~2 is behind HEAD: exchange them"),
    ):
        with pytest.raises(UsageError, match=f"^git:{history}@{range_}: {message}$"):
            session.expand([f"git:{history}@{range_}"])
    with pytest.raises(UsageError, match=f"^git:{history}@HEAD~2..HEAD: no merge is in this range"):
        session.expand([f"git:{history}@HEAD~2..HEAD"], merges=True)
    with pytest.raises(UsageError, match=r"not a range of commits: it must be like A\.\.B"):
        session.expand([f"git:{history}@HEAD~1...HEAD"])
    with pytest.raises(UsageError, match=f"^git:{history}@no-such: there is no such commit$"):
        session.expand([f"git:{history}@no-such..HEAD"])


def test_range_of_a_branch_behind_its_base(
    branched: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    """It is compared with the commit where it was branched off. One warning says so, another that
    changes are not measured."""
    folder, names = branched
    told: list[str] = []
    finder = Finder(Cache(tmp_path / "cache", told.append), told.append)
    found = finder.expand([f"git:{folder}@{names['seven']}..side"])
    commits = [names[subject][:12] for subject in ("first", "side", "later")]
    assert found == [f"git:{folder}@{commit}" for commit in commits]
    said = f"side does not have {names['seven']}: comparing with {commits[0]}, which both have"
    assert told.pop() == f"git:{folder}@{names['seven']}..side: {said}"
    (folder / "figure").write_text("changed\n")
    for range_ in ("side..", "side..line"):
        finder.expand([f"git:{folder}@{range_}"])
    said = "measuring HEAD, without 1 changed file: commit to measure it"
    assert told == [f"git:{folder}@side..: {said}"]
    git(folder, "checkout", "--quiet", "--force", "--orphan", "other")
    git(folder, "commit", "--quiet", "--message", "other")
    with pytest.raises(
        UsageError, match=r"@line\.\.other: line and other have no commit in common"
    ):
        finder.expand([f"git:{folder}@line..other"])


def test_merges(history: Path, cache: Cache) -> None:
    main = git(history, "rev-parse", "--abbrev-ref", "HEAD")
    git(history, "checkout", "--quiet", "-b", "topic", "HEAD~2")
    (history / "other").write_text("x")
    commit(history, "other", "on the branch")
    git(history, "checkout", "--quiet", main)
    git(history, "merge", "--quiet", "--no-ff", "-m", "the merge", "topic")
    found = open_repository(str(history), cache).between("HEAD~3", "HEAD", merges=True)[1:]
    assert [git(history, "log", "-1", "--format=%s", one) for one in found] == ["the merge"]


def test_bad_repositories(history: Path, cache: Cache, tmp_path: Path) -> None:
    (history / "drivers").mkdir()
    with pytest.raises(UsageError, match="not the top of a git repository: that is "):
        open_repository(str(history / "drivers"), cache)
    with pytest.raises(UsageError, match="this is not a git repository"):
        open_repository(str(tmp_path), cache)
    with pytest.raises(UsageError, match="there is no such folder"):
        open_repository(str(tmp_path / "no-such"), cache)
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    (other / "a").touch()
    commit(other, "a", "no kernel")
    with pytest.raises(UsageError, match="@HEAD: this is not a kernel: it lacks Kbuild, Kconfig"):
        open_repository(str(other), cache).commit("HEAD")
    with pytest.raises(IopathError, match=r"git:file:///no-such: .*'/no-such' does not "):
        open_repository("file:///no-such", cache)


def test_address(history: Path, cache: Cache) -> None:
    """The copy of a repository at an address is up to date, with its branches and its HEAD."""
    address = f"file://{history}"
    first = open_repository(address, cache)
    assert first.subject(first.commit("HEAD")) == "commit 6"
    (history / "figure").write_text("9\n")
    commit(history, "figure", "commit 7")
    git(history, "branch", "topic", "HEAD~1")
    again = open_repository(address, cache)
    assert again.subject(again.commit("HEAD")) == "commit 7"
    assert again.subject(again.commit("topic")) == "commit 6"
