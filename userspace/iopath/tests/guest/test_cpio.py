# SPDX-License-Identifier: GPL-2.0
"""The initramfs archives, read back by the program cpio."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from iopath.guest import cpio

ENTRIES = [
    cpio.char_device("dev/console", 5, 1),
    cpio.file("init", b"#!/bin/sh\n", 0o755),
    cpio.file("a/b/c", b"x" * 4097),
    cpio.file("empty", b""),
    *(cpio.file(f"pad/{'n' * length}", b"y" * length) for length in range(1, 9)),
]


def read_back(archive: bytes, *options: str, cwd: Path) -> list[str]:
    done = subprocess.run(
        ["cpio", "--quiet", *options],
        input=archive, capture_output=True, cwd=cwd, check=True,
        env={**os.environ, "TZ": "UTC", "LC_ALL": "C"},
    )  # fmt: skip
    assert done.stderr == b""
    return done.stdout.decode().splitlines()


def test_listing(tmp_path: Path) -> None:
    lines = [line.split() for line in read_back(cpio.archive(ENTRIES), "-itvn", cwd=tmp_path)]
    modes = {line[-1]: line[0] for line in lines}
    assert modes["dev/console"] == "crw-------"
    assert modes["init"] == "-rwxr-xr-x"
    assert modes["a/b/c"] == "-rw-r--r--"
    assert modes["a/b"] == modes["dev"] == "drwxr-xr-x"
    console = next(line for line in lines if line[-1] == "dev/console")
    assert "".join(console[4:6]) == "5,1"
    assert {line[2] for line in lines} == {line[3] for line in lines} == {"0"}
    names = [line[-1] for line in lines]
    assert len(set(names)) == len(names)
    assert names.index("a") < names.index("a/b") < names.index("a/b/c")


def test_contents(tmp_path: Path) -> None:
    regular = [entry for entry in ENTRIES if stat.S_ISREG(entry.mode)]
    read_back(cpio.archive(regular), "-id", "--no-preserve-owner", cwd=tmp_path)
    for entry in regular:
        path = tmp_path / entry.name
        assert path.read_bytes() == entry.data
        assert path.stat().st_mode == entry.mode


def test_same_files_same_bytes() -> None:
    assert cpio.archive(ENTRIES) == cpio.archive(list(ENTRIES))
    assert cpio.archive(ENTRIES) != cpio.archive(ENTRIES[:-1])
    assert len(cpio.archive(ENTRIES)) % 4 == 0


@pytest.mark.parametrize("name", ["/init", "", "a//b", "../x", "a/../b", "a/"])
def test_bad_names(name: str) -> None:
    with pytest.raises(ValueError, match="not a name relative to the root"):
        cpio.archive([cpio.file(name, b"")])


@pytest.mark.parametrize(("first", "second"), [("a", "a"), ("a", "a/b"), ("a/b", "a")])
def test_given_twice(first: str, second: str) -> None:
    """A name is a file or a directory, and is given once."""
    with pytest.raises(ValueError, match="given twice"):
        cpio.archive([cpio.file(first, b""), cpio.file(second, b"")])
