# SPDX-License-Identifier: GPL-2.0
"""Show progress on standard error: one bar on a terminal, lines elsewhere."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_NAMED = 3  # names in a line of progress
SILENCE = 30.0  # seconds without a line, where there is no bar

Step = Callable[[str, float], None]  # what is being done, and how much of it is done (0 to 1)


class Reporter:
    """The progress of the whole. *quiet* leaves warnings only, *silent* nothing."""

    def __init__(self, console: Console, *, quiet: bool = False, silent: bool = False) -> None:
        self.console = console
        self._quiet = quiet or silent
        self._silent = silent
        self._lock = threading.Lock()
        self._total = 0  # guests
        self._done = 0  # guests that are finished
        self._parts: dict[str, float] = {}  # of guests at work
        self._doing: dict[str, tuple[str, float]] = {}  # what each name is doing, and since when
        self._bar: tuple[Progress, TaskID] | None = None
        self._kernels: Sequence[str] = ()  # whose first figures are shown
        self._figures: dict[str, dict[str, float]] = {}  # these, by row and kernel
        self._said = 0.0  # when the last line was printed
        self._warnings: set[str] = set()

    def warn(self, text: str) -> None:
        """Print a warning, once."""
        if self._silent:
            return
        with self._lock:
            if text in self._warnings:
                return
            self._warnings.add(text)
            self.console.print(
                f"iopath: {text}", style="yellow", markup=False, highlight=False, soft_wrap=True
            )

    @contextmanager
    def running(self, total: int, kernels: Sequence[str] = ()) -> Iterator[None]:
        """Show progress while the block runs *total* guests, and first figures of several
        *kernels*."""
        self._total, self._done = total, 0
        self._kernels, self._figures = kernels, {}
        if self._quiet:
            yield
            return
        if not self.console.is_terminal:
            with self._lines():
                yield
            return
        from iopath.base.bar import bar as shown  # slow to load

        with shown(self.console, self.doing) as bar:
            self._bar = bar, bar.add_task("", total=total, done=0, guests=total)
            try:
                yield
            finally:
                self._bar = None

    @contextmanager
    def _lines(self) -> Iterator[None]:
        """While the block runs, say what is being done if nothing was said for a while."""
        ended = threading.Event()

        def run() -> None:
            while not ended.wait(SILENCE / 10):
                with self._lock:
                    if time.monotonic() - self._said >= SILENCE:
                        self._say(self._state())

        self._said = time.monotonic()
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    @contextmanager
    def task(self, name: str) -> Iterator[Step]:
        """A function that is told what the task *name* does. The task is not part of the total:
        it prepares a kernel, or measures the running machine."""
        said: set[str] = set()

        def step(what: str, part: float) -> None:
            with self._lock:
                # The words before a comma say what is done, those after it how far it is.
                kind = what.partition(",")[0]
                if kind not in said and not self._bar:
                    self._say(f"{name}: {what}")
                said.add(kind)
                self._begin(name, what)
                self._update()

        with self._lock:
            self._begin(name, "preparing")
        try:
            yield step
        finally:
            with self._lock:
                self._doing.pop(name, None)

    @contextmanager
    def guest(self, name: str) -> Iterator[Callable[[float], None]]:
        """A function that is told how much of the guest *name* is done (0 to 1)."""

        def advance(part: float) -> None:
            with self._lock:
                self._parts[name] = part
                self._update()

        with self._lock:
            self._begin(name, "counting")
        try:
            yield advance
        finally:
            with self._lock:
                self._parts.pop(name, None)
                self._doing.pop(name, None)
        self.finished(name)

    def finished(self, name: str = "", guests: int = 1) -> None:
        """So many guests are finished; *name* is said where there is no bar."""
        with self._lock:
            self._done += guests
            if name and not self._bar:
                self._say(f"{name}: counted, {self._guests()}")
            self._update()

    @property
    def shows_figures(self) -> bool:
        """Whether figures are shown while guests run."""
        return bool(self._bar) and len(self._kernels) > 1

    def figure(self, row: str, kernel: str, value: float, *, known: bool = False) -> None:
        """Show the first figures of a row when all kernels have one and not all are *known*. A
        question mark says that other boots may change them."""
        with self._lock:
            found = self._figures.setdefault(row, {})
            if kernel in found:
                return
            found[kernel] = value
            if self.shows_figures and not known and len(found) == len(self._kernels):
                values = [found[name] for name in self._kernels]
                texts = "".join(f"{value:>14,.2f}" for value in values)
                self._say(f"{row:<30}{texts}{values[-1] - values[0]:>+14,.2f} ?")

    def note(self, text: str) -> None:
        """Say what is being done now."""
        with self._lock:
            self._say(text)

    def doing(self) -> list[str]:
        """What is being done, and for how long, the longest first."""
        now = time.monotonic()
        doing = sorted(list(self._doing.items()), key=lambda one: one[1][1])
        return [f"{name}: {what}, {now - since:.0f} s" for name, (what, since) in doing]

    def _begin(self, name: str, what: str) -> None:
        """*name* is at *what* now, since the first time that this was said."""
        before, since = self._doing.get(name, ("", 0.0))
        same = before.partition(",")[0] == what.partition(",")[0]
        self._doing[name] = what, since if same else time.monotonic()

    def _guests(self) -> str:
        return f"{self._done} of {self._total} guests done"

    def _state(self) -> str:
        """What has been done for the longest time, and how much is finished."""
        found = self.doing()
        more = [f"{len(found) - _NAMED} more at work"] if len(found) > _NAMED else []
        return "; ".join([*found[:_NAMED], *more, self._guests()])

    def _say(self, text: str) -> None:
        self._said = time.monotonic()
        if not self._quiet:
            self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _update(self) -> None:
        if self._bar:
            bar, task = self._bar
            bar.update(
                task,
                completed=self._done + sum(self._parts.values()),
                total=self._total,
                done=self._done,
                guests=self._total,
            )
