# SPDX-License-Identifier: GPL-2.0
"""Versions have the order that dpkg gives them."""

import itertools
import subprocess

import pytest

from iopath.base.versions import version_key
from iopath.kernels.apt import Package

HARD = (
    "1", "1.", "1.0", "1.0-0", "1.0-1", "1.0~rc1-1", "1.0~", "1.0~~", "1.0a", "1.0+b", "1.0.1",
    "1.10", "1.9", "1:0.1", "1.0-1~bpo12+1", "1.0-1+deb12u1", "1.00", "a1", "1-2-3",
    "7.3~rc7-1~exp1",
)  # fmt: skip


def dpkg(one: str, relation: str, other: str) -> bool:
    return not subprocess.run(
        ["dpkg", "--compare-versions", one, relation, other], check=False, capture_output=True
    ).returncode


@pytest.mark.parametrize("one", HARD)
def test_hard_ones(one: str) -> None:
    for other in HARD:
        assert (version_key(one) < version_key(other)) == dpkg(one, "lt", other), other
        assert (version_key(one) == version_key(other)) == dpkg(one, "eq", other), other


def test_those_of_kernels(recorded: list[Package]) -> None:
    versions = sorted({package.version for package in recorded}, key=version_key)
    assert len(versions) > 15
    for one, other in itertools.pairwise(versions):
        assert dpkg(one, "lt", other), (one, other)
