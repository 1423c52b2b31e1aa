# SPDX-License-Identifier: GPL-2.0
"""Packages are unpacked completely, or there is an error."""

import os
import resource
import subprocess
from pathlib import Path

import pytest

from iopath.base.errors import IopathError
from iopath.kernels.unpack import unpack

SIZE = 1 << 20


@pytest.fixture
def deb(tmp_path: Path) -> Path:
    """A package with two large files."""
    root = tmp_path / "root"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text(
        "Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@localhost>\nDescription: x\n"
    )
    for name in ("boot/vmlinuz-1", "usr/lib/one", "usr/lib/two"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(os.urandom(SIZE))
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-b", root, tmp_path / "x.deb"],
        check=True, capture_output=True,
    )  # fmt: skip
    return tmp_path / "x.deb"


def test_unpacked_whole(deb: Path, tmp_path: Path) -> None:
    unpack(deb, tmp_path / "all")
    assert (tmp_path / "all/usr/lib/two").stat().st_size == SIZE
    assert list((tmp_path / "all/boot").iterdir()) == []
    unpack(deb, tmp_path / "some", only=["./boot/vmlinuz*", "*/none/*"])
    files = [path.name for path in (tmp_path / "some").rglob("*") if path.is_file()]
    assert files == ["vmlinuz-1"]


@pytest.mark.parametrize("only", [None, ["*/lib/*", "*/none/*"]])
def test_tar_that_is_killed_is_no_success(
    deb: Path, tmp_path: Path, only: list[str] | None
) -> None:
    """A limit of the file size kills tar, which prints nothing."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SIZE // 2, limits[1]))
    try:
        with pytest.raises(IopathError, match=r"cannot unpack x\.deb: tar ended with status -25"):
            unpack(deb, tmp_path / "all", only=only)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("only", [None, ["*/lib/*"]])
def test_a_truncated_package_is_refused(deb: Path, tmp_path: Path, only: list[str] | None) -> None:
    os.truncate(deb, deb.stat().st_size - SIZE)
    with pytest.raises(IopathError, match=r"cannot unpack x\.deb: "):
        unpack(deb, tmp_path / "all", only=only)
