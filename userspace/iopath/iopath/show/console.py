# SPDX-License-Identifier: GPL-2.0
"""Print on the standard output: a terminal, a pipe or a file."""

import io
import os
import re
import textwrap
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.text import Text

from iopath.base import stdout

_UNLIMITED = 10_000  # columns


class _Trimmed:
    """A file that removes blanks at the ends of lines, and says in a line why it cannot be written
    to."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        with stdout.writing():
            self._file.write(re.sub(r" +$", "", text, flags=re.MULTILINE))
        return len(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)


def output(file: TextIO) -> Console:
    """The standard output, or the standard error. A terminal has a width. A file or a pipe has
    none, unless COLUMNS gives it one, so no line is wrapped. Characters that its encoding lacks are
    question marks."""
    if isinstance(file, io.TextIOWrapper):
        file.reconfigure(errors="replace")
    width = None
    if not file.isatty():
        columns = os.environ.get("COLUMNS", "")
        width = int(columns) if columns.isdigit() and int(columns) else _UNLIMITED
    return Console(file=_Trimmed(file), width=width, highlight=False)  # type: ignore[arg-type]


def put(console: Console, *parts: RenderableType) -> None:
    """Print texts and tables as they are, even if they are wider than the terminal."""
    console.print(Group(*parts), crop=False, overflow="ignore")


def put_text(console: Console, text: str, style: str = "") -> None:
    """Print a text, wrapped between words."""
    put(console, Text("\n".join(wrap(text, console.width)), style))


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """The lines of a text. No word is cut, and a number stays with its per cent sign."""
    lines = textwrap.wrap(
        text.replace(" %", "\u00a0%"), width, subsequent_indent=indent, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return [line.replace("\u00a0", " ") for line in lines]
