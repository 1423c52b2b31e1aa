# SPDX-License-Identifier: GPL-2.0
"""What a command works with: where it prints, how it reports progress, and the cache.

Each part is loaded when a command asks for it, so that a command that only prints a list starts
quickly.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from iopath.base.cache import Cache
    from iopath.base.progress import Reporter
    from iopath.measure.session import Session


class Work:
    """One run of a command, whose words are *argv*. *quiet* suppresses progress messages. If a file
    is written to the standard output, it is *taken*, and texts go to the standard error."""

    def __init__(self, argv: Sequence[str], *, quiet: bool, taken: bool = False) -> None:
        self.argv = argv
        self._quiet = quiet
        self._taken = taken

    @cached_property
    def out(self) -> "Console":
        """Where texts are printed."""
        from iopath.show import console

        return console.output(sys.stderr if self._taken else sys.stdout)

    @cached_property
    def reporter(self) -> "Reporter":
        from rich.console import Console

        from iopath.base.progress import Reporter

        return Reporter(Console(stderr=True), quiet=self._quiet)

    def say(self, text: str) -> None:
        """Print a line of text as it is."""
        self.out.print(text, markup=False, soft_wrap=True)

    @contextmanager
    def cache(self) -> "Iterator[Cache]":
        """The user's cache, which is kept in bounds by those that add to it."""
        from iopath.base.cache import Cache, cache_root

        cache = Cache(cache_root(), self.reporter.warn)
        try:
            yield cache
        finally:
            cache.release()
            if cache.grew:
                from iopath.base import prune  # slow to load

                prune.keep_in_bounds(cache.root)

    @contextmanager
    def session(self, scheduler: str | None = None) -> "Iterator[Session]":
        """What measures in guests, on this machine or the workers of a *scheduler*."""
        from iopath.measure.session import Session

        with self.cache() as cache:
            session = Session(cache, self.reporter)
            try:
                if scheduler:
                    from iopath.measure.cluster import Cluster

                    session.executor = cluster = Cluster(scheduler)
                    session.places = cluster.places
                    session.together = max(session.together, cluster.workers)
                yield session
            finally:
                if session.executor:
                    session.executor.shutdown(wait=False, cancel_futures=True)
