# SPDX-License-Identifier: GPL-2.0
"""Boot each guest once: keep the states of guests that have started, and resume them.

A state is kept under the digest of everything that made it: QEMU, the machine, the kernel, init and
the commands of the start. Where a state cannot be saved or loaded, the guest boots instead; it is
then in the same state, only later.
"""

from collections.abc import Callable
from pathlib import Path

from iopath.base.cache import Cache
from iopath.guest import guest
from iopath.guest.guest import Inspect, Record, Started, StateError
from iopath.guest.machine import Machine, Qemu
from iopath.guest.payload import Image, Start


def inputs(qemu: Qemu, machine: Machine, start: Start) -> dict[str, object]:
    """Everything that the state of a started guest depends on."""
    return {
        **guest.inputs(qemu, machine),
        **start.digests,
        "files": [guest.STATE, guest.memory_file(machine)],
        "boot_shift": machine.arch.boot_shift,
    }


class States:
    """The saved states in *cache*. *warn* is told when a guest has to boot instead."""

    def __init__(self, cache: Cache, warn: Callable[[str], None] = lambda text: None) -> None:
        self.cache = cache
        self._warn = warn

    def prepare(
        self,
        qemu: Qemu,
        machine: Machine,
        start: Start,
        log: Path,
        progress: Callable[[int], None] = lambda records: None,
    ) -> Path | None:
        """The saved state of a guest that has started, made if it is missing; None if the emulator
        does not save all of it, or, with a warning, if it cannot be saved."""
        if not start.arch.resumes:
            return None

        def make(folder: Path) -> None:
            guest.save(qemu, machine, start, folder, log, progress)

        try:
            entry = self.cache.entry("state", inputs(qemu, machine, start), make)
        except StateError as error:
            self._warn(f"cannot save the guest's state, so each guest boots: {error}")
            return None
        return entry / guest.STATE

    def run(
        self,
        qemu: Qemu,
        machine: Machine,
        image: Image,
        log: Path,
        progress: Callable[[int], None] = lambda records: None,
        plugin: Path | None = None,
        options: str = "",
        inspect: Inspect = lambda records, counts, ram: None,
        started: Started = lambda records: None,
    ) -> tuple[list[Record], bytes]:
        """guest.run() in a guest that is resumed if it can be."""
        state = self.prepare(qemu, machine, image.start, log, progress)
        if state:
            try:
                return guest.run(
                    qemu, machine, image, log, progress, plugin, options, state, inspect, started
                )
            except StateError as error:
                self._warn(f"cannot load the guest's state {state}, so it boots: {error}")
        return guest.run(
            qemu, machine, image, log, progress, plugin, options, None, inspect, started
        )
