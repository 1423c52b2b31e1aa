# SPDX-License-Identifier: GPL-2.0
"""What is measured on one kernel: what is known of it, or what its guests give."""

import contextlib
from collections.abc import Callable
from concurrent.futures import Future

from iopath.base.cache import Cache
from iopath.base.errors import IopathError
from iopath.base.progress import Reporter
from iopath.guest.machine import Qemu
from iopath.measure import known
from iopath.measure.measurement import Measured, Measurement, Prepared
from iopath.measure.pools import Pools


class Work:
    """The work on a measurement. *then* is called with what was measured, or with the error. The
    methods are called by the thread that waits for the pools."""

    def __init__(
        self, wanted: Measurement, qemu: Qemu, cache: Cache, reporter: Reporter,
        warn: Callable[[str], None], pools: Pools, then: Callable[[Measured | IopathError], None],
    ) -> None:  # fmt: skip
        self.wanted = wanted
        self._qemu = qemu
        self._cache = cache
        self._reporter = reporter
        self._warn = warn
        self._pools = pools
        self._then = then
        self._notes: list[str] = []

    def prepared(self, future: Future) -> None:
        """The kernel was prepared, or could not be: find what is known of it, or run guests."""
        try:
            ready: Prepared = future.result()
        except IopathError as error:
            self.failed(error)
            return
        self._inputs = known.inputs(
            self.wanted.name, self.wanted.settings, ready.built, ready.possible, ready.debug,
            self._qemu,
        )  # fmt: skip
        if found := known.read(self._cache, self._inputs):
            self._skip(self.wanted.guests)
            for note in found.notes:
                self._warn(note)
            self._then(Measured(ready.built.arch, self._qemu, found.description, found.records))
            return
        # What runs guests takes long to import.
        from iopath.measure.guests import Guests

        running = Guests(
            self.wanted, ready, self._qemu, self._cache, self._reporter, self._warn, self._note,
            self._pools, self._done,
        )  # fmt: skip
        self._skip(self.wanted.guests - running.run())

    def failed(self, error: IopathError) -> None:
        """The kernel cannot be measured."""
        self._skip(self.wanted.guests)
        self._then(error)

    def _skip(self, guests: int) -> None:
        for _ in range(guests):
            self._reporter.finished()

    def _note(self, text: str) -> None:
        """Warn of what is true of the result whenever it is shown."""
        self._notes.append(text)
        self._warn(text)

    def _done(self, measured: Measured | IopathError) -> None:
        """The guests have ended."""
        if isinstance(measured, Measured):
            found = known.Known(measured.description, measured.records, self._notes)
            # A cache that cannot be written is no reason to lose the result.
            with contextlib.suppress(IopathError):
                known.keep(self._cache, self._inputs, found)
        self._then(measured)
