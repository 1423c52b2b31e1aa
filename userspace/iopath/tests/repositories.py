# SPDX-License-Identifier: GPL-2.0
"""Repositories with the source of a kernel."""

from pathlib import Path

import pytest
from linux_source import LinuxSource, left_out
from planted import NOPS, commit, git, plant

from iopath.base.arch import AARCH64, X86_64, Arch
from iopath.measure.session import Session

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
