# SPDX-License-Identifier: GPL-2.0
"""What is printed to a terminal, a pipe or a file is whole."""

import io
import json
import re
from pathlib import Path

import pytest
from conftest import Command
from rich.console import Console
from test_compare import LOCKED, PLAIN, Row, compared, profiled, row, two

from iopath import terminal
from iopath.result import parse

LONG = "a_function_with_a_very_long_name_of_its_own"


@pytest.mark.parametrize("width", [20, 60, 100, 400])
def test_nothing_is_cut(width: int) -> None:
    """However narrow the terminal is, each word and each figure is whole."""
    whole = two([*LOCKED[:2], row(LONG, 1234567.25, "iov_iter and copying", indirect=7.0)])
    whole["kernels"][0]["compiler"] = "gcc-" + "1" * 90
    texts = []
    for columns in (width, 1000):
        console = Console(file=io.StringIO(), width=columns, highlight=False)
        terminal.show(parse(whole), console)
        terminal.show_comparison(compared(whole), 15, console)
        terminal.show_profile(parse(whole), 15, console)
        texts.append(console.file.getvalue())
    assert "…" not in texts[0]
    words = [set(re.findall(r"[^\s─]+", text)) for text in texts]
    assert words[0] == words[1]
    assert {LONG, "1,234,567.25", "gcc-" + "1" * 90 + ";"} <= words[0]


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([*PLAIN, row("four", 60.0, "VFS")],
         "1 rung: 1 longer. Worst: dio.pread read +60.00 (+4.3 %): VFS +60."),
        ([row("one", 400.0, locked=2.0), *PLAIN[1:]],
         "1 rung: 1 shorter. Best: dio.pread read -100.00 (-7.1 %): block core -100."),
        (PLAIN, "1 rung: 1 the same."),
        ([row("one", 600.0, locked=2.0), row("two", 500.0, reads=30.0), PLAIN[2]],
         "1 rung: 1 the same in sum."),
    ],
)  # fmt: skip
def test_the_verdict_comes_first(rows: list[Row], text: str) -> None:
    console = Console(file=io.StringIO(), width=200, highlight=False)
    terminal.show_comparison(compared(two(rows)), 15, console)
    assert console.file.getvalue().splitlines()[0].rstrip() == f"old to new: {text}"


def test_source_lines_of_a_profile() -> None:
    """Inlined functions below the function they are in, and the lines that execute most."""
    whole = two(PLAIN)
    whole["results"][1]["profile"]["source"] = [
        {
            "function": "one",
            "inlined": inlined,
            "line": f"bio.c:{line}",
            "instructions": count,
        }
        for inlined, line, count in (("", 10, 100.0), ("helper", 20, 390.0), ("helper", 21, 10.0))
    ]
    console = Console(file=io.StringIO(), width=100, highlight=False)
    terminal.show_profile(parse(whole), 15, console)
    lines = [" ".join(line.split()) for line in console.file.getvalue().splitlines()]
    at = lines.index("one 500.00")
    assert lines[at + 1 : at + 3] == ["helper 400.00", "(its own) 100.00"]
    assert lines.index("bio.c:20 helper 390.00") < lines.index("bio.c:10 one 100.00")


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = []
    for name, rows in (("old", PLAIN), ("new", LOCKED)):
        whole = two(rows)
        whole["kernels"] = whole["kernels"][:1]
        whole["kernels"][0] |= {"name": name, "compiler": f"gcc {'of some distribution ' * 9}"}
        whole["results"] = [profiled(name, rows)]
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(json.dumps(whole))
    return paths


def test_a_pipe_gets_whole_lines_without_padding(listed: Command, files: list[Path]) -> None:
    del listed.env["COLUMNS"]
    lines = listed.run("compare", *files, "--anyway").stdout.splitlines()
    assert [line for line in lines if line != line.rstrip()] == []
    assert max(map(len, lines)) > 160
    assert sum("gcc of some" in line for line in lines) == 2


def test_columns_are_heeded(listed: Command, files: list[Path]) -> None:
    listed.env["COLUMNS"] = "90"
    lines = listed.run("compare", *files, "--anyway").stdout.splitlines()
    texts = [line for line in lines if "gcc" in line or "some distribution" in line]
    assert len(texts) > 3
    assert max(map(len, texts)) <= 90
