# SPDX-License-Identifier: GPL-2.0
"""A table for the terminal. Cells are never cut: a table may be wider than the terminal."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich import box
from rich import table as rich_table
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.text import Text


@dataclass
class _Column:
    title: str
    justify: JustifyMethod = "left"
    style: str = ""
    wraps: bool = False
    joined: bool = False  # in one part of a split table with the column before
    cells: list[Text] = field(default_factory=list)

    @property
    def least(self) -> int:
        """The narrowest it may be: whole cells, or whole words if it wraps. A column that may begin
        a part of its own is not narrower than a legible text."""
        words = self.title.splitlines()
        for cell in self.cells:
            words += cell.plain.split() if self.wraps else [cell.plain]
        least = max(map(cell_len, words), default=0)
        if not self.wraps or self.joined:
            return least
        lines = [line for cell in self.cells for line in cell.plain.splitlines()]
        return max(least, min(_LEGIBLE, max(map(cell_len, lines), default=0)))


_GAP = 2  # columns between two columns of a table
_LEGIBLE = 36  # columns of a text


class Table:
    """A table whose strings are text: brackets in names are not markup.

    No cell is cut. If a table is wider than the terminal, it is split into several. Each of them
    has the first columns, which have the *titles*, and as many of the others as fit.
    """

    def __init__(self, *titles: str) -> None:
        self._leading = len(titles)
        self._columns = [_Column(title) for title in titles]
        self._styles: list[str] = []
        self._sections: set[int] = set()  # rows that begin a section

    def text_column(self, title: str, *, wraps: bool = False, joined: bool = False) -> None:
        self._columns.append(_Column(title, wraps=wraps, joined=joined))

    def number_column(self, title: str, style: str = "", *, joined: bool = False) -> None:
        self._columns.append(_Column(title, "right", style, joined=joined))

    def row(self, *cells: str | Text, style: str = "") -> None:
        """Add a row. Cells that are left out are empty."""
        for column, cell in itertools.zip_longest(self._columns, cells, fillvalue=""):
            column.cells.append(Text(cell) if isinstance(cell, str) else cell)
        self._styles.append(style)

    def add_section(self) -> None:
        self._sections.add(len(self._styles))

    @property
    def least(self) -> int:
        """The width below which it is split."""
        return _width(self._columns)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, columns in enumerate(self._split(options.max_width)):
            if number:
                yield Text()
            width = max(_width(columns), options.max_width)
            yield from console.render(self._part(columns), options.update(width=width))

    def _split(self, width: int) -> Iterator[list[_Column]]:
        """The columns of each part."""
        leading, others = self._columns[: self._leading], self._columns[self._leading :]
        groups: list[list[_Column]] = []
        for column in others:
            if column.joined and groups:
                groups[-1].append(column)
            else:
                groups.append([column])
        part = list(leading)
        for group in groups:
            if len(part) > len(leading) and _width([*part, *group]) > width:
                yield part
                part = list(leading)
            part += group
        yield part

    def _part(self, columns: Sequence[_Column]) -> rich_table.Table:
        made = rich_table.Table(
            box=box.SIMPLE_HEAD,
            header_style="bold",
            pad_edge=False,
            show_edge=False,
            padding=(0, _GAP - 1, 0, 0),
            show_header=any(column.title for column in columns),
        )
        for column in columns:
            made.add_column(
                Text(column.title),
                justify=column.justify,
                style=column.style,
                no_wrap=not column.wraps,
                min_width=column.least,
            )
        for at, style in enumerate(self._styles):
            if at in self._sections:
                made.add_section()
            made.add_row(*(column.cells[at] for column in columns), style=style)
        return made


def _width(columns: Sequence[_Column]) -> int:
    return sum(column.least for column in columns) + _GAP * (len(columns) - 1)
