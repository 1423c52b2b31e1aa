# SPDX-License-Identifier: GPL-2.0
"""The bar that shows progress on a terminal."""

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text


class _Doing(ProgressColumn):
    """What takes longest now, and how long it has taken."""

    def __init__(self, doing: Callable[[], Sequence[str]]) -> None:
        super().__init__()
        self._doing = doing

    def render(self, task: Task) -> Text:
        return Text(next(iter(self._doing()), task.description))


def bar(console: Console, doing: Callable[[], Sequence[str]]) -> Progress:
    """A bar that says what is *doing*, longest first. Its tasks have fields: *done* of *guests*."""
    columns = (
        _Doing(doing),
        BarColumn(30),
        TextColumn("{task.fields[done]} of {task.fields[guests]}"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, transient=True)
