# SPDX-License-Identifier: GPL-2.0
"""Kernels of git repositories: names, ranges, builds, and what each commit of a series costs."""

import io
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from examples import a_record, a_result
from planted import commit, found, git, history, search
from repositories import arch
from rich.console import Console

from iopath.base.arch import AARCH64, X86_64, Arch
from iopath.base.cache import Cache
from iopath.base.errors import IopathError, Unreachable, UsageError
from iopath.base.progress import Reporter
from iopath.compare import compare
from iopath.kernels import gitrepo
from iopath.kernels import recipe as kernelbuild
from iopath.kernels.finder import Finder
from iopath.kernels.gitrepo import open_repository
from iopath.kernels.sources import git as git_kernels
from iopath.measure.session import Session
from iopath.results import result
from iopath.results.layers import Layers
from iopath.results.result import Result
from iopath.rungs.runs import Settings
from iopath.studies import bisection, series

__all__ = ["arch", "history"]


def state_of(folder: Path) -> dict[str, bytes]:
    """All files of a repository except those that reading may refresh."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


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


def test_uncommitted_changes_are_not_measured(
    branched: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    """One warning says so if HEAD is measured. Nothing in the repository changes."""
    folder, names = branched
    told: list[str] = []
    finder = Finder(Cache(tmp_path / "cache", told.append), told.append)
    assert git_kernels.find(str(folder), finder).commit == names["gone"]
    assert told == []
    (folder / "figure").write_text("changed\n")
    before = (folder / ".git/index").read_bytes()
    for revision in ("", "@HEAD", f"@{names['seven']}"):
        git_kernels.find(f"{folder}{revision}", finder)
    assert told == [f"git:{folder}: measuring HEAD, without 1 changed file: commit to measure it"]
    assert (folder / ".git/index").read_bytes() == before


def test_progress_of_a_build(
    branched: tuple[Path, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress has the number of compiled objects and that of another workspace, but not the latter
    if older objects are reused."""
    monkeypatch.setattr(git_kernels, "_LOOK", 0.0)
    kernel = git_kernels.find(str(branched[0]), Finder(Cache(tmp_path / "cache"), print))
    said: list[str] = []
    for name, older in (("one", 0), ("two", 0), ("three", 2)):
        folder = tmp_path / name
        place = git_kernels._Workspace(
            folder, tmp_path, tmp_path, kernel, lambda what, part: said.append(what)
        )
        (place.build_folder / "block").mkdir(parents=True)
        for number in range(older):
            path = place.build_folder / f"block/old{number}.o"
            path.touch()
            os.utime(path, (0, 0))
        count = place._count_objects()
        for number in range(3):
            (place.build_folder / f"block/{number}.o").touch()
        count()
        log = folder / "build.log"
        assert said[-2:] == [
            f"compiling, log at {log}",
            f"compiling, 3{' of about 12' if name == 'two' else ''} objects, log at {log}",
        ]
        (folder / "objects").write_text(f"{place._recipe_key()} 12")


def test_progress_of_a_build_that_removes_folders(
    branched: tuple[Path, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kbuild tries compilers in folders that it removes again."""
    kernel = git_kernels.find(str(branched[0]), Finder(Cache(tmp_path / "cache"), print))
    place = git_kernels._Workspace(tmp_path, tmp_path, tmp_path, kernel, lambda what, part: None)
    gone = place.build_folder / ".tmp_1"
    gone.mkdir(parents=True)
    kept = place.build_folder / "kept.o"
    kept.touch()
    scandir = os.scandir

    def late(path: Path | str) -> object:
        if Path(path) == gone:
            gone.rmdir()
        return scandir(path)

    monkeypatch.setattr(os, "scandir", late)
    assert place._objects() == [kept]
    assert not gone.exists()


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


def test_recipe() -> None:
    made = kernelbuild.recipe("trixie", None, ["FOO=y", "CONFIG_BAR=m", "BAZ=n"])
    lines = made.fragment.splitlines()
    assert lines[-3:] == ["CONFIG_FOO=y", "CONFIG_BAR=m", "# CONFIG_BAZ is not set"]
    assert {"CONFIG_FOO=y", "# CONFIG_BAZ is not set", "CONFIG_MODULES=y"} <= set(made.options)
    with pytest.raises(UsageError, match="invalid option 'FOO': must be like FOO=y, FOO=n or L"):
        kernelbuild.recipe("trixie", None, ["FOO"])


def test_recipe_of_clang() -> None:
    """LLVM=1 is no option of Kconfig. What other kernels are known by does not change."""
    usual, made = (kernelbuild.recipe("trixie", None, words) for words in ([], ["LLVM=1"]))
    assert made.fragment == usual.fragment
    assert set(made.options) - set(usual.options) == {"CONFIG_CC_IS_CLANG=y"}
    assert "llvm" not in usual.inputs()
    assert made.inputs()["llvm"] is True
    named = kernelbuild.recipe("trixie", None, made.asked)
    assert named == made


@pytest.mark.parametrize("arch", [X86_64, AARCH64], ids=lambda arch: arch.name)
def test_variables_of_clang(arch: Arch) -> None:
    """Clang needs no prefix for another architecture."""
    gcc, clang = (
        git_kernels._variables(kernelbuild.recipe("trixie", None, words, arch))
        for words in ([], ["LLVM=1"])
    )
    assert {"LLVM=1", "CC=ccache clang", f"ARCH={arch.source}"} <= set(clang)
    assert not [word for word in clang if "gcc" in word or word.startswith("CROSS_COMPILE")]
    same = {"KBUILD_BUILD_VERSION=1", "KBUILD_BUILD_TIMESTAMP=2026-01-01", "LOCALVERSION="}
    assert same <= set(gcc) & set(clang)


def test_a_configuration_for_one_kernel(history: Path, cache: Cache, tmp_path: Path) -> None:
    """Settings behind a revision add to those of all kernels, which a range keeps."""
    finder = Finder(cache, lambda text: None)
    finder.recipe = kernelbuild.recipe("trixie", None, ["A=y"])
    usual = git_kernels.find(f"{history}@HEAD", finder)
    other = git_kernels.find(f"{history}@HEAD[B=y,C=n]", finder)
    assert usual.commit == other.commit
    assert usual.recipe == finder.recipe
    assert other.recipe == kernelbuild.recipe("trixie", None, ["A=y", "B=y", "C=n"])
    own = tmp_path / ".config"
    own.write_text("CONFIG_D=y\n")
    found = git_kernels.find(f"{history}@HEAD[config={own},B=y]", finder).recipe
    assert (found.base, found.options[-2:]) == ("CONFIG_D=y\n", ("CONFIG_A=y", "CONFIG_B=y"))
    names = git_kernels.expand(f"{history}@HEAD~2..HEAD[B=y]", finder)
    assert names is not None
    assert len(names) == 3
    assert all(name.endswith("[B=y]") for name in names)
    own.write_text("CONFIG_E=y\n# CONFIG_F is not set\n\n# a comment\n")
    found = git_kernels.find(f"{history}@HEAD[config=defconfig+{own},B=y]", finder).recipe
    assert (found.target, found.asked) == ("defconfig", ("A=y", "E=y", "F=n", "B=y"))
    assert kernelbuild.recipe("trixie", None, []).target == "tinyconfig"
    with pytest.raises(UsageError, match="invalid option 'B': must be like FOO=y, FOO=n or LL"):
        git_kernels.find(f"{history}@HEAD[B]", finder)
    with pytest.raises(UsageError, match="cannot read the configuration /none: No such file"):
        git_kernels.find(f"{history}@HEAD[config=/none]", finder)


def test_dropped_options_are_named() -> None:
    """Not those that another value, the project's fragment or a tool decides."""
    base = "CONFIG_A=y\nCONFIG_B=m\nCONFIG_C=7\n# CONFIG_D is not set\nCONFIG_CC_HAS_E=y\n"
    found = kernelbuild.recipe("trixie", base, ["B=n"])
    assert found.dropped("# CONFIG_A is not set\n") == ["CONFIG_C=7"]
    assert kernelbuild.recipe("trixie", "make defconfig", []).dropped("") == []


def test_recipe_of_another_architecture() -> None:
    """It has its own options instead of this machine's, and refuses another architecture's
    configuration."""
    lines = [
        set(kernelbuild.recipe("trixie", base, [], arch).fragment.splitlines())
        for arch in (X86_64, AARCH64)
        for base in (None, "")
    ]
    assert ["CONFIG_SERIAL_AMBA_PL011=y" in one for one in lines] == [False] * 2 + [True] * 2
    assert ["CONFIG_X86_64=y" in one for one in lines] == [False, True, False, False]
    assert ["# CONFIG_EFI is not set" in one for one in lines] == [False] * 2 + [
        True,
        False,
    ]
    with pytest.raises(UsageError, match="the configuration is one of amd64: it must be one of ar"):
        kernelbuild.recipe("trixie", "CONFIG_X86_64=y\n", [], AARCH64)


def test_cut_down() -> None:
    config = "CONFIG_A=y\nCONFIG_B=m\nCONFIG_DEBUG_INFO_BTF=y\n# CONFIG_C is not set\n"
    assert kernelbuild.cut_down(config).splitlines() == [
        "CONFIG_A=y", "# CONFIG_B is not set", "# CONFIG_C is not set",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("file", "keeps"),
    [
        ("block/bio.c", True),
        ("block/Makefile", True),
        ("block/Kconfig", False),
        ("Kconfig", False),
        ("lib/Kconfig.debug", False),
        ("Makefile", False),
        ("arch/x86/Makefile", False),
        ("arch/x86/configs/tiny.config", False),
        ("kernel/configs/tiny.config", False),
        ("scripts/cc-version.sh", False),
    ],
)
def test_kept_configuration(history: Path, cache: Cache, file: str, keeps: bool) -> None:
    """A commit is configured again if it changes a file that the configuration depends on."""
    before = git(history, "rev-parse", "HEAD")
    path = history / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("changed")
    commit(history, file, "a change")
    repository = open_repository(str(history), cache)
    assert git_kernels.keeps_configuration(repository, before, "HEAD") == keeps
    assert not git_kernels.keeps_configuration(repository, "0" * 40, "HEAD")


# A series.


def entries(boots: int = 7) -> list[series.Entry]:
    """Four commits: the first, one that changes nothing, one that does not build, and one that
    adds 5 instructions."""
    results = {}
    for name, more in (("one", 0), ("two", 0), ("four", 5)):
        record = a_record(name, "dio.pread", "read", 4096)
        record["instructions_per_io"] += more
        record["boots"] = [record["instructions_per_io"]] * boots
        record["profile"]["functions"][0]["instructions"] += more
        results[name] = result.parse(a_result([record]))

    def entry(name: str, before: str) -> series.Entry:
        whole = compare.join([(before, results[before]), (name, results[name])])
        comparison = compare.compare(whole, Layers())
        return series.Entry(name, f"commit {name}", "", before, results[name], comparison)

    failed = series.Entry("three", "commit three", error="does not build: x.c:1 (log: /tmp/log)")
    first = series.Entry("one", "commit one", result=results["one"])
    return [first, entry("two", "one"), failed, entry("four", "two")]


def test_series_table() -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    series.show(entries(), console, every=False)
    said = console.export_text()
    assert said.startswith("1 of 2 commits changes the path; 1 could not be measured.\n")
    rows = [line.split() for line in said.splitlines()[3:]]
    assert [row[0] for row in rows] == ["three", "four"]
    assert "+5.00" in rows[1]
    console = Console(width=200, record=True, file=io.StringIO())
    series.show(entries(), console, every=True)
    rows = [line.split()[0] for line in console.export_text().splitlines()[3:]]
    assert rows == ["one", "two", "three", "four"]


def test_series_of_unknown_noise() -> None:
    """A commit that changes nothing is in no row because there is one boot only."""
    console = Console(width=200, record=True, file=io.StringIO())
    series.show(entries(boots=1), console, every=False)
    said = console.export_text()
    assert said.startswith(
        "1 of 2 commits changes the path; 1 could not be measured. ? may be noise"
    )
    rows = [line.split() for line in said.splitlines()[3:]]
    assert [row[0] for row in rows] == ["three", "four"]
    assert "+5.00?" in rows[1]


def test_series_mail() -> None:
    """Nothing of this machine is in a mail."""
    text = series.markdown(entries(), "iopath series A..B", every=False)
    assert "four commit four\n    dio.pread read: +5.00 (" in text
    assert "    not measured: does not build: x.c:1\n" in text
    assert "/tmp/log" not in text
    assert text.endswith("Repeat it with:\n\n    iopath series A..B\n")
    assert max(map(len, text.splitlines())) <= 78


def test_series_json() -> None:
    commits = json.loads(series.dump(entries()))["commits"]
    assert [one["commit"] for one in commits] == ["one", "two", "three", "four"]
    assert [one["before"] for one in commits] == [None, "one", None, "two"]
    (rung,) = commits[3]["rungs"]
    assert (rung["rung"], rung["difference"], rung["verdict"]) == ("dio.pread", 5.0, "longer")
    assert commits[2]["error"].startswith("does not build")


class Commits:
    """A stand-in for a session: the file "figure" of a commit has the cost of its kernel, or
    "broken", and then the deferred cost. The kernel *lacks* cannot run the rung."""

    def __init__(self, folder: Path, cache: Cache, lacks: str = "") -> None:
        self.repositories = open_repository(str(folder), cache)
        self._lacks = lacks
        self.gone = ""

    def commit(self, name: str) -> tuple[gitrepo.Repository, str]:
        return self.repositories, name.partition("@")[2]

    def build_ahead(self, names: Sequence[str]) -> None:
        pass

    def measure(self, names: Sequence[str], settings: Settings) -> Result:
        name = names[0].partition("@")[2]
        if self.gone and name.startswith(self.gone):
            raise Unreachable("the scheduler is gone")
        figure, _, deferred = git(self.repositories.path, "show", f"{name}:figure").split()
        if figure == "broken":
            raise IopathError(f"{name[:12]} does not build")
        records = []
        for rung in ("dio.pread", "dio.aio.1"):
            if rung != "dio.pread" and name.startswith(self._lacks or "-"):
                continue
            record = a_record(name, rung, "read", 4096)
            for field, by in (("", 0), ("mean", 0), ("with_deferred", int(deferred))):
                record[field or "instructions_per_io"] = int(figure) + by
                record[f"{field}_boots".lstrip("_")] = [int(figure) + by] * 7
            records.append(record)
        return result.parse(a_result(records))


@pytest.fixture
def branched(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A line on which "seven" adds 7, and a branch on which "side" adds 100 and "later" defers 900.
    It is merged after "seven", then "gone" takes the branch's part back."""
    folder = tmp_path / "linux"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=line")
    for name in ("Kbuild", "Kconfig", "Makefile"):
        (folder / name).touch()
        git(folder, "add", name)
    names = {}

    def one(subject: str, figure: str, deferred: int = 0) -> None:
        (folder / "figure").write_text(f"{figure} {subject} {deferred}\n")
        names[subject] = commit(folder, "figure", subject)

    one("first", "2000")
    git(folder, "branch", "side")
    one("seven", "2007")
    one("broken", "broken")
    git(folder, "checkout", "--quiet", "side")
    one("side", "2100")
    one("later", "2100", 900)
    git(folder, "checkout", "--quiet", "line")
    git(folder, "merge", "--quiet", "--no-commit", "--strategy=ours", "side")
    one("merge", "2107", 900)
    one("gone", "2007")
    return folder, names


def measured(folder: Path, session: Commits) -> list[series.Entry]:
    found = session.repositories
    commits = found.between("HEAD~4", "HEAD")
    wanted = [f"git:{folder}@{name[:12]}" for name in commits]
    entries: list[series.Entry] = []
    try:
        series.measure(session, wanted, Settings([]), Layers(), lambda text: None, entries)  # type: ignore[arg-type]
    except Unreachable:
        assert session.gone
    return entries


def test_series_with_a_merge(branched: tuple[Path, dict[str, str]], cache: Cache) -> None:
    """Each commit is compared with its parent, or the nearest ancestor that was measured: a branch
    with the commit where it begins, the merge with the line. *all* is shown beside the path."""
    folder, names = branched
    entries = measured(folder, Commits(folder, cache))
    subjects = {name[:12]: subject for subject, name in names.items()}
    rows = {}
    for entry in entries:
        change = next((change for rung, change in entry.changes(every=True)), None)
        whole = change.metrics["total"].difference if change else None
        difference = change.difference if change else None
        rows[entry.subject] = (subjects.get(entry.before, ""), difference, whole)
    assert rows == {
        "first": ("", None, None),
        "seven": ("first", 7, 7),
        "broken": ("", None, None),
        "side": ("first", 100, 100),
        "later": ("side", 0, 900),
        "merge": ("seven", 100, 1000),
        "gone": ("merge", -100, -1000),
    }
    text = series.markdown(entries, "iopath series A..B", every=False)
    assert "dio.pread read: +900.00 in total; path +0.00 (+0.00 %)" in text
    assert "dio.pread read: +1,000.00 in total; path +100.00 (+4.98 %)" in text
    assert "dio.pread read: +7.00 (+0.35 %)" in text
    commits = json.loads(series.dump(entries))["commits"]
    by_subject = {one["subject"]: one["rungs"] for one in commits}
    assert [row["total"] for row in by_subject["later"]] == [900, 900]
    console = Console(width=200, record=True, file=io.StringIO())
    series.show(entries, console, every=False)
    assert "+900.00" in console.export_text()


def test_series_without_a_rung(branched: tuple[Path, dict[str, str]], cache: Cache) -> None:
    """If the kernel of a commit cannot run a rung, it has no figure, and the text says so."""
    folder, names = branched
    entries = measured(folder, Commits(folder, cache, lacks=names["seven"][:12]))
    (seven,) = [entry for entry in entries if entry.subject == "seven"]
    assert [rung.rung for rung, _ in seven.changes(every=True)] == ["dio.pread"]
    assert seven.left_out == ["dio.aio.1 read"]
    assert "or on " in series.markdown(entries, "", every=False)
    commits = json.loads(series.dump(entries))["commits"]
    left_out = {one["subject"]: one["left_out"] for one in commits}
    assert left_out["seven"] == ["dio.aio.1 read"]


def test_series_that_is_cut_short(branched: tuple[Path, dict[str, str]], cache: Cache) -> None:
    """Commits that were measured before the scheduler died are shown."""
    folder, names = branched
    session = Commits(folder, cache)
    session.gone = names["merge"][:12]
    subjects = {entry.subject for entry in measured(folder, session)}
    assert subjects == {"first", "seven", "broken", "side", "later"}
