# SPDX-License-Identifier: GPL-2.0
"""Guests that count instructions are run once, while nothing that they were given changes.

Such a guest says the same each time. What it said is kept in the cache, under the digest of the
emulator, the machine, the kernel, the modules, the programs and the plan. It is read and judged as
if it had just been said. AGAIN=1 runs each guest again. Guests of two CPUs are never kept: a run
that passes by luck would hide a race.
"""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

from helpers.two_cpus import TwoCpus
from iopath.base.cache import Cache, digest_file
from iopath.guest import states
from iopath.guest.guest import Record
from iopath.guest.machine import Machine, Qemu
from iopath.guest.payload import Image
from iopath.guest.states import States

KIND = "passed"  # of the entries in the cache
_DATA, _REST = "data", "said.json"

found: list[str] = []  # the entries that were used, for the summary


class Once:
    """The saved states in *cache*, for guests that are run once."""

    def __init__(self, cache: Cache, warn: Callable[[str], None] = lambda text: None) -> None:
        self._cache = cache
        self._states = States(cache, warn)

    def run(
        self, qemu: Qemu, machine: Machine, image: Image, log: Path, plugin: Path | None = None
    ) -> tuple[list[Record], bytes]:
        """What States.run() returns."""
        assert not isinstance(machine, TwoCpus)
        inputs = {
            **states.inputs(qemu, machine, image.start),
            "payload": hashlib.sha256(image.payload()).hexdigest(),
            "devices": [repr(device) for device in image.devices],
            "plugin": digest_file(plugin) if plugin else "",
        }
        entry = None if os.environ.get("AGAIN") else self._cache.find(KIND, inputs)
        if entry:
            found.append(entry.name)
            return _read(entry, log)
        records, counts = self._states.run(qemu, machine, image, log, plugin=plugin)

        def make(folder: Path) -> None:
            data = b"".join(record.data for record in records)
            (folder / _DATA).write_bytes(data + counts)
            rest = {
                "records": [[record.name, record.status, len(record.data)] for record in records],
                "console": log.read_text(errors="replace"),
            }
            (folder / _REST).write_text(json.dumps(rest))

        self._cache.entry(KIND, inputs, make)
        return records, counts


def _read(entry: Path, log: Path) -> tuple[list[Record], bytes]:
    rest = json.loads((entry / _REST).read_text())
    data = (entry / _DATA).read_bytes()
    records, at = [], 0
    for name, status, size in rest["records"]:
        records.append(Record(name, status, data[at : at + size]))
        at += size
    log.write_text(rest["console"])
    return records, data[at:]
