# SPDX-License-Identifier: GPL-2.0
"""Kernels of git repositories: names, ranges, builds, and what each commit of a series costs."""

import io
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Command
from linux_source import LinuxSource, build_command, left_out, make_command
from rich.console import Console
from test_charts import a_record, a_result
from test_planted import NOPS, commit, found, git, history, plant, search

from iopath import bisection, compare, gitrepo, kernelbuild, result, series
from iopath.arch import AARCH64, X86_64, Arch
from iopath.cache import Cache
from iopath.errors import IopathError, UsageError
from iopath.gitrepo import open_repository
from iopath.layers import Layers
from iopath.measure import Session
from iopath.progress import Reporter

__all__ = ["history"]

guest = pytest.mark.guest


def state_of(folder: Path) -> dict[str, bytes]:
    """Every file of a repository, but those that reading may refresh."""
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
    """Each commit of a range behind the one that it begins after; thinned out from the last on."""
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
    with pytest.raises(UsageError, match=r"HEAD\.\.HEAD: .* has no commit in this range"):
        session.expand([f"git:{history}@HEAD..HEAD"])
    with pytest.raises(UsageError, match=r"not a range of commits: it must be like A\.\.B"):
        session.expand([f"git:{history}@HEAD~1...HEAD"])
    with pytest.raises(UsageError, match=r"no-such: .* has no such commit"):
        session.expand([f"git:{history}@no-such..HEAD"])


def test_merges(history: Path, cache: Cache) -> None:
    main = git(history, "rev-parse", "--abbrev-ref", "HEAD")
    git(history, "checkout", "--quiet", "-b", "topic", "HEAD~2")
    (history / "other").write_text("x")
    commit(history, "other", "on the branch")
    git(history, "checkout", "--quiet", main)
    git(history, "merge", "--quiet", "--no-ff", "-m", "the merge", "topic")
    found = open_repository(str(history), cache).between("HEAD~3", "HEAD", merges=True)
    assert [git(history, "log", "-1", "--format=%s", one) for one in found] == ["the merge"]


def test_bad_repositories(history: Path, cache: Cache, tmp_path: Path) -> None:
    (history / "drivers").mkdir()
    with pytest.raises(UsageError, match="not the top of a git repository: that is "):
        open_repository(str(history / "drivers"), cache)
    with pytest.raises(UsageError, match="this is no git repository"):
        open_repository(str(tmp_path), cache)
    with pytest.raises(UsageError, match="there is no such folder"):
        open_repository(str(tmp_path / "no-such"), cache)
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    (other / "a").touch()
    commit(other, "a", "no kernel")
    with pytest.raises(UsageError, match="has no kernel at HEAD: it lacks Kbuild, Kconfig or Make"):
        open_repository(str(other), cache).commit("HEAD")
    with pytest.raises(IopathError, match=r"git:file:///no-such: .*'/no-such' does not "):
        open_repository("file:///no-such", cache)


def test_address(history: Path, cache: Cache) -> None:
    """A repository at an address is as new as that, with its branches and its HEAD."""
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
    """Commits are found in a repository of the cache, whatever is under way in the user's."""
    git(history, "bisect", "start")
    (history / "figure").write_text("changed, and not committed\n")
    before = state_of(history)

    def figure(name: str) -> float | None:
        text = git(history, "show", f"{name.rpartition('@')[2]}:figure")
        return None if "broken" in text else float(text.split()[0])

    looked, _, said = search(figure)
    repository = open_repository(str(history), cache)
    ends = bisection.commits(looked, repository, "HEAD~6", "HEAD", cache, said.append)
    subjects = [git(history, "log", "-1", "--format=%s", name) for name in found(ends)]
    assert subjects == ["commit 4", "commit 5"]
    assert len([line for line in said if line.startswith("skipped: ")]) == 1
    assert state_of(history) == before


def test_recipe() -> None:
    made = kernelbuild.recipe("trixie", None, ["FOO=y", "CONFIG_BAR=m", "BAZ=n"])
    lines = made.fragment.splitlines()
    assert lines[-3:] == ["CONFIG_FOO=y", "CONFIG_BAR=m", "# CONFIG_BAZ is not set"]
    assert {"CONFIG_FOO=y", "# CONFIG_BAZ is not set", "CONFIG_MODULES=y"} <= set(made.options)
    with pytest.raises(UsageError, match="invalid option 'FOO': must be like FOO=y or FOO=n"):
        kernelbuild.recipe("trixie", None, ["FOO"])


def test_recipe_of_another_architecture() -> None:
    """It has its own options in place of this machine's, and takes no other's configuration."""
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
    """A commit is configured anew if it changes what a configuration is made from."""
    before = git(history, "rev-parse", "HEAD")
    path = history / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("changed")
    commit(history, file, "a change")
    repository = open_repository(str(history), cache)
    assert kernelbuild.keeps_configuration(repository, before, "HEAD") == keeps
    assert not kernelbuild.keeps_configuration(repository, "0" * 40, "HEAD")


# A series.


def entries(boots: int = 4) -> list[series.Entry]:
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
        whole = compare.merge([(before, results[before]), (name, results[name])])
        comparison = compare.compare(whole, Layers())
        return series.Entry(name, f"commit {name}", "", before, results[name], comparison)

    failed = series.Entry("three", "commit three", error="does not build: x.c:1 (log: /tmp/log)")
    first = series.Entry("one", "commit one", result=results["one"])
    return [first, entry("two", "one"), failed, entry("four", "two")]


def test_series_table() -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    series.show(entries(), console, every=False)
    said = console.export_text()
    assert said.startswith("1 of 2 commits change the path; 1 could not be measured.\n")
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
        "1 of 2 commits change the path; 1 could not be measured. ? may be noise"
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


# Real kernels.


@pytest.fixture(
    params=[X86_64, pytest.param(AARCH64, marks=pytest.mark.long)], ids=lambda arch: arch.debian
)
def arch(request: pytest.FixtureRequest) -> Arch:
    return request.param


def kernel_repository(session: Session, arch: Arch) -> Path:
    """A repository with a kernel: the source, a commit that changes a comment, one that adds
    PLANTED instructions, and one that does not build. It is the same each time."""
    excluded = left_out(arch)

    def make(folder: Path) -> None:
        tree = folder / "linux"
        tree.mkdir()
        LinuxSource(session).unpack(tree, *(f"--exclude={pattern}" for pattern in excluded))
        git(tree, "init", "--quiet")
        git(tree, "add", "--all", "--force")
        git(tree, "commit", "--quiet", "--message", "the source")
        with (tree / "block/bio.c").open("a") as file:
            file.write("/* a comment */\n")
        commit(tree, "block/bio.c", "a comment")
        plant(tree, NOPS)
        commit(tree, "block/blk-core.c", "five instructions more")
        with (tree / "block/bdev.c").open("a") as file:
            file.write("int broken(\n")
        commit(tree, "block/bdev.c", "a syntax error")

    inputs = {"of": LinuxSource(session).wanted, "left_out": excluded, "recipe": 1}
    return session.cache.entry("history", inputs, make) / "linux"


@guest
def test_series_of_a_kernel(session: Session, arch: Arch, tmp_path: Path) -> None:
    """One command, from a repository to the commit and its function; nothing in it changes."""
    linux = kernel_repository(session, arch)
    command = Command(session.cache.root, tmp_path)
    before = git(linux, "status", "--porcelain"), (linux / ".git/HEAD").read_text()
    out = tmp_path / "series.json"
    done = command.run(
        "series", f"git:{linux}@HEAD~3..", "--rung", "dio.pread", "--op", "read", "--json", out,
        "--arch", arch.debian, timeout=1500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 of 2 commits change the path; 1 could not be measured.\n")
    commits = json.loads(out.read_text())["commits"]
    same, planted = (one["rungs"][0] for one in commits[1:3])
    assert (same["difference"], same["verdict"]) == (0.0, "same")
    assert (planted["difference"], planted["verdict"]) == (5.0, "longer")
    assert planted["functions"][0]["name"] == "submit_bio_noacct"
    assert planted["functions"][0]["difference"] == 5.0
    assert "does not build: " in commits[3]["error"]
    after = git(linux, "status", "--porcelain"), (linux / ".git/HEAD").read_text()
    assert after == before


@guest
@pytest.mark.long
def test_clones_give_one_kernel(session: Session, arch: Arch, tmp_path: Path) -> None:
    """The same commit, built from a clone at another place and with nothing that is kept from
    before, is the same to the last bit."""
    linux = kernel_repository(session, arch)
    clone = tmp_path / "a clone"
    subprocess.run(["git", "clone", "--quiet", linux, clone], check=True)
    cache = Cache(tmp_path / "cache")
    shutil.copytree(session.cache.root / "apt", cache.root / "apt", symlinks=True)
    ends = []
    for kept, folder in ((session.cache, linux), (cache, clone)):
        one = Session(kept, session.reporter)
        one.recipe = kernelbuild.recipe("trixie", None, (), arch)
        kernel = one.find(f"git:{folder}@HEAD~1")
        ends.append(one.build(kernel, lambda what, part: None).digests)
    assert ends[0] == ends[1]


@guest
@pytest.mark.long
def test_tree_with_a_build_folder(session: Session, arch: Arch, tmp_path: Path) -> None:
    """tree: takes the folder of make O=, whose source is elsewhere."""
    linux = kernel_repository(session, arch)
    source, folder = tmp_path / "source", tmp_path / "build"
    subprocess.run(["git", "clone", "--quiet", linux, source], check=True)
    git(source, "checkout", "--quiet", "HEAD~1")
    configs = " ".join(map(str, kernelbuild.minimal_configs(arch)))
    make = make_command(arch)
    command = (
        f"{make} O={folder} tinyconfig && cd {folder} &&"
        f" {source}/scripts/kconfig/merge_config.sh -m .config {configs} &&"
        f" {make} olddefconfig && {build_command(arch)}"
    )
    subprocess.run(["sh", "-ec", command], cwd=source, check=True, capture_output=True)
    done = Command(session.cache.root, tmp_path).run(
        "measure", f"tree:{folder}", "--rung", "null", timeout=600
    )
    assert done.returncode == 0, done.stderr


@guest
@pytest.mark.long
def test_other_options(session: Session) -> None:
    """An option that Kconfig drops is an error that names it."""
    linux = kernel_repository(session, X86_64)
    session.recipe = kernelbuild.recipe("trixie", None, ["NO_SUCH_OPTION=y"])
    with pytest.raises(IopathError, match="the option CONFIG_NO_SUCH_OPTION=y did not take effect"):
        session.build(session.find(f"git:{linux}@HEAD~3"), lambda what, part: None)
    session.recipe = kernelbuild.Recipe.default()
