# SPDX-License-Identifier: GPL-2.0
"""Say what is going on: bars on a terminal, plain lines elsewhere. All of it on standard error."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

Step = Callable[[str, float], None]


class Reporter:
    """One line of progress for each job at work; *quiet* leaves warnings only."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self.console = console
        self._quiet = quiet
        self._lock = threading.Lock()
        self._bars: Progress | None = None

    def warn(self, text: str) -> None:
        with self._lock:
            self.console.print(
                f"iopath: {text}", style="yellow", markup=False, highlight=False, soft_wrap=True
            )

    @contextmanager
    def running(self) -> Iterator[None]:
        """Show progress while the block runs."""
        if self._quiet or not self.console.is_terminal:
            yield
            return
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(30),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self.console, transient=True) as bars:
            self._bars = bars
            try:
                yield
            finally:
                self._bars = None

    @contextmanager
    def job(self, name: str) -> Iterator[Step]:
        """A function that is told what the job *name* does and how far it is (0 to 1)."""
        if self._quiet:
            yield lambda what, part: None
        elif self._bars is not None:
            bars = self._bars
            task = bars.add_task(name, total=1.0)
            try:
                yield lambda what, part: bars.update(
                    task, description=f"{name}: {what}", completed=part
                )
            finally:
                bars.remove_task(task)
        else:
            said: set[str] = set()

            def step(what: str, part: float) -> None:
                with self._lock:
                    if what not in said:
                        said.add(what)
                        self.console.print(
                            f"{name}: {what}", markup=False, highlight=False, soft_wrap=True
                        )

            yield step
