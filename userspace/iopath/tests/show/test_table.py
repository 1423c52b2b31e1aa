# SPDX-License-Identifier: GPL-2.0
"""The table for the terminal: how it is split."""

import io

from rich.console import Console

from iopath.show.table import Table

TEXT = "block core +601.00: __blk_throtl_bio +109.00, throtl_trim_slice +108.00"


def shown(width: int, text: str, *, joined: bool = False) -> list[str]:
    table = Table("feature")
    table.number_column("instructions of the whole")
    table.text_column("functions", wraps=True, joined=joined)
    table.row("io.max", "+770.80", text)
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_a_text_is_not_squeezed_into_what_is_left() -> None:
    """Its column is 36 wide or wider, if need be in a part of its own; a short text stays."""
    beside = len("feature  instructions of the whole  ")
    assert len(shown(beside + 36, TEXT)) == 4
    apart = shown(beside + 35, TEXT)
    assert apart[4] == "feature  functions"
    assert apart[6] == f"io.max   {TEXT[:62].rpartition(' ')[0]}"
    assert len(shown(beside + 35, "block core +601.00")) == 3


def test_a_text_that_belongs_to_the_column_before_stays_there() -> None:
    assert "functions" in shown(60, TEXT, joined=True)[0]


def test_figures_move_together_before_the_table_is_split() -> None:
    def widths(width: int) -> list[int]:
        table = Table("rung")
        for _ in range(3):
            table.number_column("debian:7.2")
        table.row("dio.pread", *["2,883.23"] * 3)
        console = Console(file=io.StringIO(), width=width)
        console.print(table)
        return [len(line) for line in console.file.getvalue().splitlines() if "─" in line]

    apart = len("dio.pread") + 3 * (2 + len("debian:7.2"))
    assert widths(apart) == [apart]
    assert widths(apart - 3) == [apart - 3]
    assert len(widths(apart - 4)) == 2
