# SPDX-License-Identifier: GPL-2.0
"""The commands that a script calls."""

import shutil
from pathlib import Path

import pytest

from iopath.measure import scripts

SCRIPT = """\
#!/bin/sh -e
# a comment with tool
run() { one "$1"; }
for i in 1 2 3; do
  dd if=/dev/zero of=x \\
    bs=4k | two && X=$(three db "select 1") ; run a
done
if ! four -q x y; then echo "no such; thing"; fi
case $x in
a) five;;
b|c) six.ext4 /dev/x ;;
esac
cat <<EOF
hello there
EOF
A=1 B=2 /usr/bin/seven foo > out 2>&1 &
wait
$CMD x
"""


def test_commands() -> None:
    assert scripts.commands(SCRIPT) == [
        "one", "dd", "two", "three", "four", "five", "six.ext4", "cat", "/usr/bin/seven",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "expected"),
    [("#!/bin/sh", True), ("#! /usr/bin/env sh", True), ("#!/bin/bash", False), ("\x7fELF", False)],
)
def test_which_are_scripts(first: str, expected: bool) -> None:
    assert scripts.is_script(f"{first}\nls\n".encode()) is expected


def test_of_busybox() -> None:
    busybox = shutil.which("busybox")
    assert busybox
    own = scripts.of_busybox(Path(busybox))
    assert {"dd", "seq", "sh", "wc"} <= own
    assert not {"fio", "sqlite3", ""} & own
