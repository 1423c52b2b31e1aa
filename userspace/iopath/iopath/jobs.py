# SPDX-License-Identifier: GPL-2.0
"""A job: one plan for one guest, run anywhere.

A job is a value that can be pickled. run() is a function of it alone, so any executor can run it: a
thread, another process, another machine that has the same files. What a job gives depends only on
its inputs().
"""

import contextlib
import gzip
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iopath import modules, sharing, states
from iopath.cache import Cache, digest_file, digest_of
from iopath.guest import KALLSYMS, Image, Record
from iopath.machine import Machine, Qemu
from iopath.plan import modules_of
from iopath.process import Stopped
from iopath.sharing import Shared


@dataclass(frozen=True)
class Job:
    """A plan, the machine that it is for, and the plugin that counts.

    *release* names the kernel in the log's name. *cache* keeps saved states and logs. *progress* is
    a file that is told how many records there are. The job is cancelled by removing it. *shared*
    are the runs of a guest with several CPUs.
    """

    qemu: Qemu
    machine: Machine
    image: Image
    plugin: Path
    options: str
    release: str
    cache: Path
    progress: Path
    shared: tuple[Shared, ...] = ()

    def inputs(self) -> dict[str, Any]:
        """Everything that the records depend on."""
        read_by = {"read_by": sharing.code()} if self.shared else {}
        return {
            **states.inputs(self.qemu, self.machine, self.image.start),
            **read_by,
            "image": hashlib.sha256(self.image.payload()).hexdigest(),
            "plugin": digest_file(self.plugin),
            "options": self.options,
        }

    @property
    def log(self) -> Path:
        """The file that gets the console."""
        return self.cache / "logs" / f"{self.release}-{digest_of(self.inputs())[:8]}.log"

    def report(self, records: int) -> None:
        """Say how many records there are. Raises Stopped if the job is cancelled."""
        try:
            with self.progress.open("r+") as file:
                file.write(str(records))
        except FileNotFoundError:
            raise Stopped from None

    def done(self) -> float:
        """How much of the job is done (0 to 1)."""
        records = sum(line.startswith(("run ", "file ", "quiet ")) for line in self.image.plan)
        with contextlib.suppress(OSError, ValueError):
            return min(1.0, int(self.progress.read_text()) / records)
        return 0.0


@dataclass(frozen=True)
class Recorded:
    """What a job gives: the guest's records by name, the kernel's functions and the plugin's counts
    (both compressed by gzip), and warnings."""

    texts: dict[str, str]
    symbols: bytes
    counts: bytes
    warnings: tuple[str, ...]


def run(job: Job) -> Recorded:
    """Carry out a job."""
    job.report(0)
    warnings: list[str] = []
    cache = Cache(job.cache, warnings.append)
    shared: dict[str, Any] = {}

    def inspect(records: list[Record], counts: bytes, ram: Path) -> None:
        if job.shared:
            kallsyms = next(record.data for record in records if record.name == KALLSYMS)
            lines = counts.decode().splitlines()
            shared.update(
                sharing.found(job.shared, lines, kallsyms.decode(), ram, job.machine.arch)
            )

    try:
        records, counts = states.States(cache, warnings.append).run(
            job.qemu, job.machine, job.image, job.log, job.report, job.plugin, job.options, inspect
        )
    finally:
        cache.release()
    if job.shared:
        return Recorded({sharing.RECORD: json.dumps(shared)}, b"", b"", tuple(warnings))
    texts = {record.name: record.data.decode(errors="replace") for record in records}
    symbols = take_symbols(texts, job.image)
    return Recorded(texts, _pack(symbols.encode()), _pack(counts), tuple(warnings))


def take_symbols(texts: dict[str, str], image: Image) -> str:
    """The functions of the kernel and the modules, as /proc/kallsyms lists them. What they are made
    from is removed from *texts*, the guest's records by name."""
    symbols = [
        line
        for line in texts.pop(KALLSYMS).splitlines(keepends=True)
        if line.split(" ", 2)[1] in "tTwW"
    ]
    for name, data in modules_of(image.files).items():
        symbols += modules.kallsyms(name, data, texts)
        for path in modules.section_files(name, data):
            del texts[path]
    return "".join(symbols)


def _pack(data: bytes) -> bytes:
    return gzip.compress(data, 1, mtime=0)
