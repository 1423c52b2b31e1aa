# SPDX-License-Identifier: GPL-2.0
"""A table for the terminal. Cells are never cut: a table may be wider than the terminal."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from iopath.show.console import wrap

_WORDS = re.compile(r"^ *\S+|\S+")  # the first one with what it is indented by


@dataclass
class _Column:
    title: str
    number: bool = False
    style: str = ""
    wraps: bool = False
    joined: bool = False  # in one part of a split table with the column before
    below: bool = False  # its cells may be lines below their rows
    cells: list[Text] = field(default_factory=list)

    @property
    def least(self) -> int:
        """The narrowest it may be: whole cells, or whole words if it wraps. A column that may begin
        a part of its own is not narrower than a legible text."""
        words = self.title.splitlines()
        for cell in self.cells:
            words += _WORDS.findall(cell.plain) if self.wraps else cell.plain.splitlines()
        least = max(map(cell_len, words), default=0)
        if not self.wraps or self.joined:
            return least
        return max(least, min(_BESIDE if self.below else _LEGIBLE, self.widest))

    @property
    def widest(self) -> int:
        """The width of its longest line."""
        lines = [line for cell in self.cells for line in cell.plain.splitlines()]
        return max(map(cell_len, (*lines, *self.title.splitlines())), default=0)

    def lines(self, text: str, width: int) -> list[str]:
        """The lines of a cell or a title in a column of this *width*."""
        parts = text.splitlines() or [""]
        if self.wraps:
            parts = [line for part in parts for line in wrap(part, max(width, 1)) or [""]]
        fill = str.rjust if self.number else str.ljust
        return [fill(part, width - cell_len(part) + len(part)) for part in parts]


_GAP, _NARROW = 2, 1  # columns between two columns of a table, and if that makes it fit
_LEGIBLE = 36  # columns of a text
_BESIDE = 28  # of one that is put below its row if it is narrower
_INDENT = "  "  # of lines below a row


class Table:
    """A table whose strings are text: brackets in names are not markup.

    No cell is cut. If a table is wider than the terminal, the cells of columns that may be *below*
    their rows go there, those of the last column first. If that is not enough, figures move
    together; if they still do not fit, the table is split into several. Each of them has the first
    columns, which have the *titles* and are wrapped if it *wraps*, and as many of the others as
    fit.
    """

    def __init__(self, *titles: str, wraps: bool = False) -> None:
        self._leading = len(titles)
        self._columns = [_Column(title, wraps=wraps, joined=wraps) for title in titles]
        self._styles: list[str] = []
        self._sections: set[int] = set()  # rows that begin a section

    def text_column(
        self, title: str, *, wraps: bool = False, joined: bool = False, below: bool = False
    ) -> None:
        self._columns.append(_Column(title, wraps=wraps, joined=joined, below=below))

    def number_column(
        self, title: str, style: str = "", *, joined: bool = False, below: bool = False
    ) -> None:
        self._columns.append(_Column(title, True, style, joined=joined, below=below))

    def row(self, *cells: str | Text, style: str = "") -> None:
        """Add a row. Cells that are left out are empty."""
        for column, cell in itertools.zip_longest(self._columns, cells, fillvalue=""):
            column.cells.append(Text(cell) if isinstance(cell, str) else cell)
        self._styles.append(style)

    def add_section(self) -> None:
        self._sections.add(len(self._styles))

    @property
    def least(self) -> int:
        """The width below which columns are moved, or it is split."""
        return _width(self._columns)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns, below = self._columns, list[_Column]()
        for column in [column for column in columns[::-1] if column.below]:
            if _width(columns) > options.max_width:
                columns = [other for other in columns if other is not column]
                below.insert(0, column)
        gap = _GAP
        if _width(columns) > options.max_width and not any(column.wraps for column in columns):
            gap = _NARROW if _width(columns, _NARROW) <= options.max_width else _GAP
        rule = "-" if options.ascii_only else "─"
        for number, part in enumerate(self._split(columns, options.max_width, gap)):
            if number:
                yield Text()
            for line in self._lines(part, [] if number else below, options.max_width, rule, gap):
                line.rstrip()
                line.no_wrap, line.overflow = True, "ignore"
                yield line

    def _split(self, columns: Sequence[_Column], width: int, gap: int) -> Iterator[list[_Column]]:
        """The columns of each part."""
        leading, others = columns[: self._leading], columns[self._leading :]
        groups: list[list[_Column]] = []
        for column in others:
            if column.joined and groups:
                groups[-1].append(column)
            else:
                groups.append([column])
        part = list(leading)
        for group in groups:
            if len(part) > len(leading) and _width([*part, *group], gap) > width:
                yield part
                part = list(leading)
            part += group
        yield part

    def _lines(
        self, columns: Sequence[_Column], below: Sequence[_Column], width: int, rule: str, gap: int
    ) -> Iterator[Text]:
        """The lines of a part."""
        widths = _widths(columns, width, gap)
        if any(column.title for column in columns):
            titles = [c.lines(c.title, w) for c, w in zip(columns, widths, strict=True)]
            height = max(map(len, titles))
            for at in range(height):
                cells = [
                    title[at - height] if at >= height - len(title) else " " * w
                    for title, w in zip(titles, widths, strict=True)
                ]
                yield Text((" " * gap).join(cells), "bold")
            if titled := "; ".join(c.title for c in below if c.title and not c.number):
                yield Text(_INDENT + titled, "bold")
            yield Text(rule * (sum(widths) + gap * (len(widths) - 1)))
        for at, style in enumerate(self._styles):
            if at and at in self._sections:
                yield Text()
            cells = [c.lines(c.cells[at].plain, w) for c, w in zip(columns, widths, strict=True)]
            for line in range(max(map(len, cells))):
                made = Text(style=style)
                for column, lines, w in zip(columns, cells, widths, strict=True):
                    text = lines[line] if line < len(lines) else " " * w
                    styles = [column.style, str(column.cells[at].style)]
                    made.append(text, " ".join(filter(None, styles)) or None)
                    made.append(" " * gap)
                yield made
            for text in _below(below, at):
                for line in wrap(text, max(width - len(_INDENT), 20), _INDENT):
                    yield Text(_INDENT + line, "dim")


def _below(columns: Sequence[_Column], at: int) -> Iterator[str]:
    """The cells of a row that are below it: on one line, if none of them has several."""
    said: list[str] = []
    for column in columns:
        text = column.cells[at].plain
        if text and column.number:
            text = f"{column.title} {text}".replace("\n", " ").lstrip()
        if "\n" in text:
            if said:
                yield "; ".join(said)
            said = []
            yield from text.splitlines()
        elif text:
            said.append(text)
    if said:
        yield "; ".join(said)


def _widths(columns: Sequence[_Column], width: int, gap: int) -> list[int]:
    """The width of each column. Those that wrap share the room that is left."""
    room = max(width - _width(columns, gap), 0)
    wanted = [max(c.widest - c.least, 0) if c.wraps else 0 for c in columns]
    every = max(sum(wanted), 1)
    return [
        column.least + want * min(room, every) // every
        for column, want in zip(columns, wanted, strict=True)
    ]


def _width(columns: Sequence[_Column], gap: int = _GAP) -> int:
    return sum(column.least for column in columns) + gap * (len(columns) - 1)
