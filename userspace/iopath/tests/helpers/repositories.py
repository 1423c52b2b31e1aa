# SPDX-License-Identifier: GPL-2.0
"""Repositories with the source of a kernel."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from helpers.linux_source import LinuxSource, left_out
from helpers.planted import NOPS, PLACE, commit, git, nops, plant, replace
from iopath.base.arch import AARCH64, X86_64, Arch
from iopath.measure.session import Session

# Real kernels.


@pytest.fixture(
    params=[X86_64, pytest.param(AARCH64, marks=pytest.mark.long)], ids=lambda arch: arch.debian
)
def arch(request: pytest.FixtureRequest) -> Arch:
    return request.param


# The branch SERIES, and the instructions per bio that its commits add: some nops, a count of bios
# with 3,000 nops for each 64th, and a callback that is deferred.
SERIES = "planted"
SEVEN, SIDE = 7, 11
SELDOM = 3 + 3000 / 64
DEFERRED = 50_000

_BIOS = "static unsigned long planted_bios;\n\n"
_SELDOM = """\
\tasm volatile("incq %0; testb $63, %0; jnz 1f\\n.rept 3000\\nnop\\n.endr\\n1:"
\t\t     : "+m" (planted_bios) : : "cc");
"""
_CALLBACK = f"""\
static void planted_callback(struct rcu_head *head)
{{
	unsigned long n = {DEFERRED // 2};

	asm volatile("1: dec %0; jnz 1b" : "+r" (n));
	kfree(head);
}}

static noinline void planted(void)
{{
	struct rcu_head *head = kmalloc(sizeof(*head), GFP_ATOMIC);

	if (head)
		call_rcu(head, planted_callback);
}}

"""


def plant_seldom(tree: Path, subject: str) -> None:
    plant(tree, _SELDOM, _BIOS, "submit_bio")
    commit(tree, PLACE, subject)


def plant_deferred(tree: Path, subject: str, function: str = "submit_bio_noacct_nocheck") -> None:
    plant(tree, "\tplanted();\n", _CALLBACK, function)
    commit(tree, PLACE, subject)


def plant_error(tree: Path, subject: str) -> None:
    with (tree / "block/bdev.c").open("a") as file:
        file.write("int broken(\n")
    commit(tree, "block/bdev.c", subject)


def _plant_series(tree: Path) -> None:
    """Make the branch SERIES of the commit that is checked out. Each function is planted in once,
    so that commits can be reverted and merged."""
    git(tree, "checkout", "--quiet", "-b", SERIES)
    plant(tree, nops(SEVEN))
    seven = commit(tree, PLACE, "seven nops")
    plant_error(tree, "a syntax error")
    git(tree, "revert", "--no-edit", "HEAD")
    plant_seldom(tree, "3,000 nops on each 64th bio")
    git(tree, "revert", "--no-edit", seven)
    git(tree, "checkout", "--quiet", "-b", "side", seven)
    plant(tree, nops(SIDE), function="bio_endio", place="block/bio.c")
    commit(tree, "block/bio.c", "a side branch")
    git(tree, "checkout", "--quiet", SERIES)
    git(tree, "merge", "--quiet", "--no-edit", "side")
    plant_deferred(tree, "call_rcu() for each bio")


def _commit_source(source: LinuxSource, tree: Path, excluded: Sequence[str], subject: str) -> None:
    """Make the repository *tree* of a kernel's source without the *excluded* files."""
    tree.mkdir()
    source.unpack(tree, *(f"--exclude={pattern}" for pattern in excluded))
    git(tree, "init", "--quiet")
    git(tree, "add", "--all", "--force")
    git(tree, "commit", "--quiet", "--message", subject)


def _kept(session: Session, inputs: Mapping[str, object], make: Callable[[Path], None]) -> Path:
    """A folder of the cache that *make* fills. It is no entry: Git gives objects of a repository
    another time if a clone that shares them would write the same ones, as a revert does."""
    with session.cache.workspace("repository", inputs) as folder:
        if not (folder / "whole").exists():
            for left in folder.glob("linux"):
                shutil.rmtree(left)
            make(folder)
            (folder / "whole").touch()
        return folder


def release_repository(session: Session, series: str) -> Path:
    """A repository with the source of a series for x86-64, in one commit."""
    source = LinuxSource(session, series)
    excluded = [pattern for pattern in left_out() if "/net/" not in pattern]

    def make(folder: Path) -> None:
        _commit_source(source, folder / "linux", excluded, f"the source of {series}")

    inputs = {"of": source.wanted, "left_out": excluded, "recipe": 1}
    return _kept(session, inputs, make) / "linux"


def changed_repository(
    session: Session, changes: Mapping[str, tuple[str, str, str]], series: str = "6.12"
) -> Path:
    """A repository with a kernel's source, tagged "before", and a tag for each of the *changes*: a
    text that a file has once is replaced."""
    source, excluded = LinuxSource(session, series), left_out()

    def make(folder: Path) -> None:
        tree = folder / "linux"
        _commit_source(source, tree, excluded, "the source")
        git(tree, "tag", "before")
        for name, (file, old, new) in changes.items():
            git(tree, "checkout", "--quiet", "before")
            replace(tree / file, old, new)
            commit(tree, file, name)
            git(tree, "tag", name)

    inputs = {"of": source.wanted, "left_out": excluded, "changes": list(changes.items())}
    return _kept(session, inputs, make) / "linux"


def kernel_repository(session: Session, arch: Arch) -> Path:
    """A repository with a kernel: the source, a commit that changes a comment, one that adds
    PLANTED instructions, and one that does not build; and the branch SERIES of the comment. It is
    the same each time."""
    excluded = left_out(arch)

    def make(folder: Path) -> None:
        tree = folder / "linux"
        _commit_source(LinuxSource(session), tree, excluded, "the source")
        with (tree / "block/bio.c").open("a") as file:
            file.write("/* a comment */\n")
        comment = commit(tree, "block/bio.c", "a comment")
        plant(tree, NOPS)
        commit(tree, PLACE, "five instructions more")
        plant_error(tree, "a syntax error")
        main = git(tree, "rev-parse", "--abbrev-ref", "HEAD")
        git(tree, "checkout", "--quiet", comment)
        _plant_series(tree)
        git(tree, "checkout", "--quiet", main)

    inputs = {"of": LinuxSource(session).wanted, "left_out": excluded, "recipe": 3}
    return _kept(session, inputs, make) / "linux"
