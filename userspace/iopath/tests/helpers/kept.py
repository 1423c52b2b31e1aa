# SPDX-License-Identifier: GPL-2.0
"""Guests of the tests are not run again while nothing that they were given changes.

What a guest said is kept in the cache, under the digest of the emulator, the machine, the kernel,
the modules, the programs and the plan. It is read and judged as if it had just been said. AGAIN=1
runs each guest again. A guest of two CPUs, of which no two runs are the same, is kept only if it
passed. One that counts instructions says the same each time: see Once.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iopath.base.cache import Cache, digest_file
from iopath.guest import states
from iopath.guest.guest import Record
from iopath.guest.machine import Machine, Qemu
from iopath.guest.payload import Image
from iopath.guest.states import States

KIND = "passed"  # of the entries in the cache
_DATA, _REST = "data", "said.json"

found: list[str] = []  # the entries that were used, for the summary


@dataclass(frozen=True)
class Said:
    """The records of a guest, its console, what kept it from its end, and the plugin's output."""

    records: list[Record]
    console: str
    faults: list[str] = field(default_factory=list)
    counts: bytes = b""


def inputs(
    qemu: Qemu, machine: Machine, image: Image, plugin: Path | None = None
) -> dict[str, Any]:
    """Everything that what a guest says depends on, but chance."""
    return {
        **states.inputs(qemu, machine, image.start),
        "payload": hashlib.sha256(image.payload()).hexdigest(),
        "devices": [repr(device) for device in image.devices],
        "plugin": digest_file(plugin) if plugin else "",
    }


def find(cache: Cache, inputs: dict[str, Any]) -> Said | None:
    """What a guest with these inputs said, if that is known and AGAIN is not set."""
    entry = None if os.environ.get("AGAIN") else cache.find(KIND, inputs)
    if not entry:
        return None
    found.append(entry.name)
    rest = json.loads((entry / _REST).read_text())
    data = (entry / _DATA).read_bytes()
    records, at = [], 0
    for name, status, size in rest["records"]:
        records.append(Record(name, status, data[at : at + size]))
        at += size
    return Said(records, rest["console"], rest["faults"], data[at:])


def keep(cache: Cache, inputs: dict[str, Any], said: Said) -> None:
    """Keep what a guest said."""

    def make(folder: Path) -> None:
        data = b"".join(record.data for record in said.records)
        (folder / _DATA).write_bytes(data + said.counts)
        rest = {
            "records": [[record.name, record.status, len(record.data)] for record in said.records],
            "console": said.console,
            "faults": said.faults,
        }
        (folder / _REST).write_text(json.dumps(rest))

    cache.entry(KIND, inputs, make)


@contextmanager
def guest(
    cache: Cache, qemu: Qemu, machine: Machine, image: Image, run: Callable[[], Said],
    plugin: Path | None = None,
) -> Iterator[Said]:  # fmt: skip
    """What a guest says, from *run* if it is not known. It is kept if the block does not fail."""
    known = inputs(qemu, machine, image, plugin)
    said = find(cache, known)
    if said:
        yield said
    else:
        said = run()
        yield said
        keep(cache, known, said)


class Once:
    """The saved states in *cache*, for guests that count instructions: they are run once."""

    def __init__(self, cache: Cache, warn: Callable[[str], None] = lambda text: None) -> None:
        self._cache = cache
        self._states = States(cache, warn)

    def run(
        self,
        qemu: Qemu,
        machine: Machine,
        image: Image,
        log: Path,
        plugin: Path | None = None,
    ) -> tuple[list[Record], bytes]:
        """What States.run() returns."""

        def run() -> Said:
            records, counts = self._states.run(qemu, machine, image, log, plugin=plugin)
            return Said(records, log.read_text(errors="replace"), [], counts)

        with guest(self._cache, qemu, machine, image, run, plugin) as said:
            log.write_text(said.console)
        return said.records, said.counts
