# SPDX-License-Identifier: GPL-2.0
"""A program of this machine is found with its libraries, or one line says what it lacks."""

import shutil
import subprocess
from pathlib import Path

import pytest

from iopath.base.arch import AARCH64
from iopath.base.errors import UsageError
from iopath.measure import executable


def test_a_dynamic_program() -> None:
    path, files = executable.of_machine("cat")
    assert path == shutil.which("cat")
    assert files[path.lstrip("/")] == Path(path).read_bytes()
    names = {Path(name).name for name in files}
    assert {"libc.so.6", "ld-linux-x86-64.so.2"} <= names


def test_a_static_program(tmp_path: Path) -> None:
    source, program = tmp_path / "a.c", tmp_path / "a"
    source.write_text("int main(void) { return 0; }")
    subprocess.run(["gcc", "-static", "-o", program, source], check=True)
    assert executable.of_machine(str(program))[1].keys() == {str(program).lstrip("/")}


def test_a_missing_library(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int f(void) { return 0; }")
    (tmp_path / "b.c").write_text("int f(void); int main(void) { return f(); }")
    library, program = tmp_path / "libgone.so", tmp_path / "b"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, tmp_path / "a.c"], check=True)
    subprocess.run(["gcc", "-o", program, tmp_path / "b.c", library], check=True)
    library.unlink()
    with pytest.raises(UsageError, match=r"the library .*libgone\.so is missing"):
        executable.of_machine(str(program))


def changed(tmp_path: Path, at: int, data: bytes) -> str:
    """A program with some other bytes."""
    program = bytearray(Path("/bin/true").resolve().read_bytes())
    program[at : at + len(data)] = data
    path = tmp_path / "changed"
    path.write_bytes(program)
    return str(path)


def test_another_architecture(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a program of aarch64: must be of x86_64"):
        executable.of_machine(changed(tmp_path, 18, (183).to_bytes(2, "little")))


def test_of_another_architecture_only_static_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a program of x86_64: must be of aarch64"):
        executable.of_machine("cat", AARCH64)
    dynamic = changed(tmp_path, 18, (183).to_bytes(2, "little"))
    with pytest.raises(UsageError, match="of aarch64, a program must be static, or of a --package"):
        executable.of_machine(dynamic, AARCH64)


def test_no_program(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not executable: must be an ELF program"):
        executable.of_machine(changed(tmp_path, 0, b"MZ"))
    script = tmp_path / "script"
    script.write_text("#!/usr/bin/perl\n")
    with pytest.raises(
        UsageError, match=r"a script of /usr/bin/perl: must be one of sh, or an ELF"
    ):
        executable.of_machine(str(script))
    with pytest.raises(UsageError, match=r"gone: no such file"):
        executable.of_machine(str(tmp_path / "gone"))
    with pytest.raises(UsageError, match="no such program in PATH"):
        executable.of_machine("no-such-program")
    with pytest.raises(UsageError, match="not a file"):
        executable.of_machine(str(tmp_path))


def test_a_script(tmp_path: Path) -> None:
    """It is given as a file, or as a text; a name without a slash is a program."""
    script = tmp_path / "work.sh"
    script.write_text("#!/bin/sh\nsync\n")
    text, words, files = executable.script_of([str(script), "a"])
    assert (text, words) == ("#!/bin/sh\nsync\n", ["sh", str(script), "a"])
    assert files == {str(script).lstrip("/"): b"#!/bin/sh\nsync\n"}
    assert executable.script_of(["sh", str(script)])[1] == ["sh", str(script)]
    assert executable.script_of(["sh", "-c", "ls; dd"]) == ("ls; dd", ["sh", "-c", "ls; dd"], {})
    assert executable.script_of(["cat", str(script)]) is None
    assert executable.script_of(["/bin/true"]) is None
