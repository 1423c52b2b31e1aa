# SPDX-License-Identifier: GPL-2.0
"""What is printed on a terminal."""

import io
from collections.abc import Callable

from rich.console import Console


def printed(
    show: Callable[..., None], what: object, *more: object, width: int = 200, **named: object
) -> str:  # fmt: skip
    """What a function shows of something in so many columns, with *more* arguments."""
    console = Console(file=io.StringIO(), width=width, highlight=False)
    show(what, console, *more, **named)
    return console.file.getvalue()


def words(text: str) -> list[str]:
    """The lines of a text, a single space between words."""
    return [" ".join(line.split()) for line in text.splitlines()]
