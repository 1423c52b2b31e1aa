# SPDX-License-Identifier: GPL-2.0
"""Source lines and inlined functions, from a kernel of two functions."""

import subprocess
from pathlib import Path

import pytest

from iopath.base.errors import IopathError
from iopath.counts.inline import Lines, break_down
from iopath.counts.symbols import Symbols

SOURCE = """\
static inline __attribute__((always_inline)) void inlined(void)
{
	asm volatile("nop");
}

void outer(void)
{
	asm volatile("nop");
	inlined();
}
asm(".text; .globl _text; .set _text, outer");
"""
TEXT = 0xFFFFFFFF81000000
MOVED = 0x2000000  # by how much the guest moved its kernel


def kernel(folder: Path, *options: str) -> Path:
    (folder / "two.c").write_text(SOURCE)
    subprocess.run(
        [
            "gcc", "-O2", *options, "-fno-pie", "-no-pie", "-mcmodel=kernel", "-nostdlib",
            "-fcf-protection=none", "-fno-asynchronous-unwind-tables", "-static",
            f"-Wl,-Ttext={TEXT:#x},-e,outer,--build-id=none", "-o", "vmlinux", "two.c",
        ],
        cwd=folder, check=True,
    )  # fmt: skip
    return folder / "vmlinux"


@pytest.fixture
def symbols() -> Symbols:
    return Symbols(f"{TEXT + MOVED:x} T outer\n")


def test_inlined_lines_are_told_apart(tmp_path: Path, symbols: Symbols) -> None:
    lines = Lines(kernel(tmp_path, "-g"), symbols)
    # outer is nop, nop, ret; one byte each.
    start = TEXT + MOVED
    rows = break_down({start: 2.0, start + 1: 5.0, start + 2: 2.0}, lines, symbols)
    assert {(row.inlined, row.line.split("/")[-1]): row.instructions for row in rows} == {
        ("inlined", "two.c:3"): 5.0,
        ("", "two.c:8"): 2.0,
        ("", "two.c:10"): 2.0,
    }
    assert {row.function for row in rows} == {"outer"}


def test_without_debug_information(tmp_path: Path, symbols: Symbols) -> None:
    lines = Lines(kernel(tmp_path), symbols)
    with pytest.raises(IopathError, match="no debug information"):
        break_down({TEXT + MOVED: 1.0}, lines, symbols)
