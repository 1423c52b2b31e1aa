# SPDX-License-Identifier: GPL-2.0
"""Kernels of git repositories: names, ranges, builds, and what each commit of a series costs."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from helpers.command import Command
from helpers.compiled import READS, compiled
from helpers.linux_source import build_command, make_command
from helpers.planted import FUNCTION, PLANTED, differences, git
from helpers.repositories import DEFERRED, SELDOM, SERIES, SEVEN, SIDE, kernel_repository
from iopath.base.arch import X86_64, Arch
from iopath.base.cache import Cache
from iopath.base.errors import IopathError
from iopath.kernels import recipe as kernelbuild
from iopath.measure.session import Session

guest = pytest.mark.guest


@guest
def test_series_of_a_kernel(session: Session, arch: Arch, tmp_path: Path) -> None:
    """One command leads from a repository to the commit and its function. The repository is
    unchanged."""
    linux = kernel_repository(session, arch)
    command = Command(session.cache.root, tmp_path)

    def state() -> tuple[str, str, bytes]:
        folder = linux / ".git"
        status = git(linux, "status", "--porcelain")
        return status, (folder / "HEAD").read_text(), (folder / "index").read_bytes()

    before = state()
    out = tmp_path / "series.json"
    done = command.run(
        "series", f"git:{linux}@HEAD~3..", "--rung", "dio.pread", "--op", "read", "--json", out,
        "--arch", arch.debian, timeout=3600,
    )  # fmt: skip
    assert done.returncode == 125, done.stderr
    assert done.stderr.splitlines()[-1].startswith("iopath: not measured: ")
    assert done.stdout.startswith("1 of 2 commits changes the path; 1 could not be measured.\n")
    commits = json.loads(out.read_text())["commits"]
    same, planted = (one["rungs"][0] for one in commits[1:3])
    assert (same["difference"], same["verdict"]) == (0.0, "same")
    assert (planted["difference"], planted["verdict"]) == (5.0, "longer")
    assert planted["functions"][0]["name"] == "submit_bio_noacct"
    assert planted["functions"][0]["difference"] == 5.0
    assert "does not build: " in commits[3]["error"]
    assert state() == before


@guest
@pytest.mark.long
def test_a_program_on_planted_commits(session: Session, tmp_path: Path) -> None:
    """Instructions in the path of a read are as many for each of a program's thousand reads. series
    and bisect find the commit."""
    linux = kernel_repository(session, X86_64)
    command = Command(session.cache.root, tmp_path)
    first, before, after = (f"git:{linux}@HEAD~{number}" for number in (3, 2, 1))
    out, words = tmp_path / "out.json", ("--", compiled(tmp_path, READS))

    def check(changes: list[dict[str, Any]]) -> None:
        (read,) = (one for one in changes if one["name"] == "pread64")
        assert read["times"] == [1000, 1000]
        assert read["functions"].pop(FUNCTION) == 1000 * PLANTED
        # Counters of CPUs that are seldom added up may be so once more, or less.
        assert read["functions"].keys() <= {"__mod_node_page_state"}
        assert read["each"][1] - read["each"][0] == pytest.approx(PLANTED, abs=0.01)

    done = command.run("run", before, after, "--json", out, *words)
    assert done.returncode == 0, done.stderr
    check(json.loads(out.read_text())["comparisons"][0]["changes"])

    done = command.run("series", f"git:{linux}@HEAD~3..", "--json", out, *words, timeout=3600)
    assert done.returncode == 125, done.stderr
    assert done.stdout.startswith("1 of 2 commits changes the count; 1 could not be measured.\n")
    _, same, planted, broken = json.loads(out.read_text())["commits"]
    assert same["changes"] == []
    check(planted["changes"])
    assert "does not build: " in broken["error"]

    done = command.run("bisect", first, after, "--json", out, *words, timeout=3600)
    assert done.returncode == 0, done.stderr
    assert "following: pread64\n" in done.stdout
    assert f"first bad: {planted['commit']}\n" in done.stdout
    check(json.loads(out.read_text())["comparisons"][0]["changes"])

    rung = ("--rung", "dio.pread", "--op", "read")
    done = command.run("bisect", first, after, "--json", out, *rung, timeout=3600)
    assert done.returncode == 0, done.stderr
    assert f"first bad: {planted['commit']}\n" in done.stdout
    change = differences(out)["dio.pread"]
    assert [row["name"] for row in change["functions"] if row["difference"]] == [FUNCTION]
    assert change["functions"][0]["difference"] == PLANTED


@guest
@pytest.mark.long
def test_series_of_planted_commits(session: Session, tmp_path: Path) -> None:
    """Each commit costs exactly what was planted: for each I/O, for each 64th, or later. A revert
    takes it back, and a merge costs what its branch does. The table, the cover letter, the JSON and
    the gate show this."""
    linux = kernel_repository(session, X86_64)
    command = Command(session.cache.root, tmp_path)
    out, letter = tmp_path / "series.json", tmp_path / "series.md"
    words = ("--rung", "dio.pread", "--op", "read")
    done = command.run(
        "series", f"git:{linux}@{SERIES}~8..{SERIES}", *words, "--json", out, "--markdown", letter,
        timeout=7200,
    )  # fmt: skip
    assert done.returncode == 125, done.stderr
    found = {one["subject"]: one for one in json.loads(out.read_text())["commits"]}
    broken = found.pop("a syntax error")
    assert done.stderr.splitlines()[-1] == f"iopath: not measured: {broken['commit']}"
    assert "does not build: " in broken["error"]
    planted = {
        "a comment": (0.0, found.pop("the source")),
        "seven nops": (SEVEN, found["a comment"]),
        'Revert "a syntax error"': (0.0, found["seven nops"]),
        "3,000 nops on each 64th bio": (SELDOM, found['Revert "a syntax error"']),
        'Revert "seven nops"': (-SEVEN, found["3,000 nops on each 64th bio"]),
        "a side branch": (SIDE, found["seven nops"]),
        f"Merge branch 'side' into {SERIES}": (SIDE, found['Revert "seven nops"']),
        "call_rcu() for each bio": (DEFERRED, found[f"Merge branch 'side' into {SERIES}"]),
    }
    assert found.keys() == planted.keys()
    for subject, (more, before) in planted.items():
        commit = found[subject]
        (rung,) = commit["rungs"]
        assert commit["before"] == before["commit"], subject
        seldom = more in (SELDOM, DEFERRED)
        assert rung["total"] == pytest.approx(more, rel=0.01, abs=0.01), subject
        if not seldom:
            assert rung["difference"] == pytest.approx(more, abs=0.01), subject
        assert rung["verdict"] == ("longer" if more > 0 else "shorter" if more else "same")
        # A change of the path alone has one figure.
        said = f"{rung['total' if seldom else 'difference']:+,.2f}"
        # The table has it in the commit's line, the letter in the line after that.
        for text, after in ((done.stdout, 0), (letter.read_text(), 1)):
            lines = text.partition(commit["commit"])[2].splitlines()
            assert (said in lines[after]) if more else not lines, subject
    assert done.stdout.startswith("6 of 8 commits change the path; 1 could not be measured.\n")
    for subject, (more, before) in planted.items():
        pair = [f"git:{linux}@{one['commit']}" for one in (before, found[subject])]
        gate = command.run("compare", *pair, *words, "--fail-above", "1", timeout=600)
        # Of some 2,000 instructions.
        fails = more in (SELDOM, DEFERRED)
        assert gate.returncode == fails, gate.stderr
        assert (f"{pair[1]} takes more than {pair[0]}: " in gate.stderr) == fails
        assert (", total " in gate.stderr) == fails


@guest
@pytest.mark.long
def test_clones_give_one_kernel(session: Session, arch: Arch, tmp_path: Path) -> None:
    """The same commit, built from a clone at another place and without anything kept from before,
    gives the same kernel to the last bit."""
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
        "measure", f"tree:{folder}", "--rung", "null", timeout=3600
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
