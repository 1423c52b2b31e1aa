# SPDX-License-Identifier: GPL-2.0
"""Kernels of git repositories: configurations and builds."""

import os
from pathlib import Path

import pytest

from helpers.planted import commit, git
from iopath.base.arch import AARCH64, X86_64, Arch
from iopath.base.cache import Cache
from iopath.base.errors import UsageError
from iopath.kernels import recipe as kernelbuild
from iopath.kernels.finder import Finder
from iopath.kernels.gitrepo import open_repository
from iopath.kernels.sources import git as git_kernels


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
    other = git_kernels.find(f"{history}@HEAD[suite=bookworm,B=y]", finder)
    assert other.recipe == kernelbuild.recipe("bookworm", None, ["A=y", "B=y"])
    with pytest.raises(UsageError, match="suite=gcc: must be one of bullseye, "):
        git_kernels.find(f"{history}@HEAD[suite=gcc]", finder)
    with pytest.raises(UsageError, match="invalid option 'B': must be like FOO=y, FOO=n or LL"):
        git_kernels.find(f"{history}@HEAD[B]", finder)
    with pytest.raises(UsageError, match="cannot read the configuration /none: No such file"):
        git_kernels.find(f"{history}@HEAD[config=/none]", finder)


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
