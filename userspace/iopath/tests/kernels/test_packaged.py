# SPDX-License-Identifier: GPL-2.0
"""Which package files make a kernel, and which compiler of Debian is nearest to its own."""

from pathlib import Path

import pytest

from iopath.base.arch import AARCH64, X86_64
from iopath.base.errors import IopathError, UsageError
from iopath.kernels import packaged

IMAGE = "linux-image-unsigned-6.8.0-50-generic_6.8.0-50.51_amd64.deb"
HEADERS = "linux-headers-6.8.0-50_6.8.0-50.51_all.deb"


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).touch()
    return folder


def test_folder_and_files(tmp_path: Path) -> None:
    """Packages with debug information, tools and headers of user space are passed over."""
    touch(
        tmp_path, IMAGE, HEADERS, "linux-libc-dev_6.8_amd64.deb", "linux-image-6.8-dbg_1_amd64.deb"
    )
    kernel = packaged.find("deb", str(tmp_path))
    assert [path.name for path in kernel.files] == [HEADERS, IMAGE]
    assert kernel.arch == X86_64
    kernel = packaged.find("deb", f"{tmp_path}/{IMAGE},{tmp_path}/{HEADERS}")
    assert [path.name for path in kernel.files] == [IMAGE, HEADERS]
    touch(tmp_path, "kernel-core-6.11.4-301.fc41.aarch64.rpm", "kernel-debuginfo-1.aarch64.rpm")
    kernel = packaged.find("rpm", str(tmp_path))
    assert [path.name for path in kernel.files] == ["kernel-core-6.11.4-301.fc41.aarch64.rpm"]
    assert kernel.arch == AARCH64


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("{}/none.deb", "no such file or folder"),
        ("{}", "there is no package of a kernel"),
        ("{}/notes.txt", r"its name must end in \.deb"),
        ("{0}/a_1_amd64.deb,{0}/b_1_arm64.deb", "of aarch64 and x86_64: they must be of one"),
        ("{}/a_1_all.deb", "of no known architecture"),
        ("{}/a_1_amd64.deb,", "an empty name: must be files"),
    ],
)
def test_what_is_no_kernel(tmp_path: Path, spec: str, text: str) -> None:
    if spec != "{}":
        touch(tmp_path, "notes.txt", "a_1_amd64.deb", "b_1_arm64.deb", "a_1_all.deb")
    with pytest.raises(UsageError, match=f"^deb:.*{text}"):
        packaged.find("deb", spec.format(tmp_path))


@pytest.mark.parametrize(
    ("wanted", "libc", "suite", "gcc"),
    [
        (12, 34, "bookworm", 12),
        (12, 38, "trixie", 12),
        (13, 39, "trixie", 13),
        (15, 42, "sid", 15),
        (7, 0, "bullseye", 9),
        (16, 0, "sid", 15),
        (None, 0, "sid", 15),
    ],
)
def test_nearest_compiler(wanted: int | None, libc: int, suite: str, gcc: int) -> None:
    found, version = packaged.compiler(wanted, libc)
    assert (found.name, version) == (suite, gcc)


def test_libc_that_debian_lacks() -> None:
    with pytest.raises(IopathError, match=r"^the headers' programs need glibc 2\.99: Debian has"):
        packaged.compiler(12, 99)


@pytest.mark.parametrize("suite", packaged._SUITES, ids=lambda suite: suite.name)
def test_the_root_has_pahole(suite: packaged._Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers with a vmlinux, as Debian's of 6.12 and newer, make BTF of a module by it."""
    wanted: list[str] = []
    monkeypatch.setattr(packaged, "root", lambda kind, names, *rest: wanted.extend(names))
    packaged.Packaged("deb:x", (), X86_64)._root([], suite, 12, None, None, None)  # type: ignore[arg-type]
    assert ("dwarves" if suite.name == "bullseye" else "pahole") in wanted
