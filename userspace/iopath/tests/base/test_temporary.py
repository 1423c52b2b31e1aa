# SPDX-License-Identifier: GPL-2.0
"""A temporary folder of a program that was killed is removed by the next one."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import iopath
from iopath.base import temporary

# Makes a folder with a file, prints its name, and waits.
PROGRAM = """
import sys
from iopath.base import temporary
with temporary.folder() as folder:
    (folder / "memory").write_bytes(b"x" * 1000)
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_of_a_killed_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as program:  # fmt: skip
        assert program.stdout
        kept = Path(program.stdout.readline().strip())
        assert kept.parent == tmp_path
        os.utime(kept, (0, 0))
        with temporary.folder() as own:
            assert {*tmp_path.iterdir()} == {kept, own}  # the program uses it
        program.kill()
        program.wait()
    other = tmp_path / "iopath-tmp-new"
    other.mkdir()
    with temporary.folder() as own:
        assert {*tmp_path.iterdir()} == {other, own}  # it may be about to be used
    assert [*tmp_path.iterdir()] == [other]


def test_no_other_folders() -> None:
    """Folders that the package makes in another way would stay behind."""
    package = Path(iopath.__file__).parent
    others = re.compile(r"TemporaryDirectory|NamedTemporaryFile|mkdtemp|mkstemp")
    found = [path.name for path in package.rglob("*.py") if others.search(path.read_text())]
    assert found == ["temporary.py"]
