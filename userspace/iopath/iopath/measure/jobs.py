# SPDX-License-Identifier: GPL-2.0
"""A job: one plan for one guest, run anywhere.

A job is a value that can be pickled. run() is a function of it alone, so any executor can run it: a
thread, another process, another machine that has the same files. Its result depends only on its
inputs().
"""

import contextlib
import gzip
import hashlib
import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from iopath.base import temporary
from iopath.base.arch import Arch
from iopath.base.cache import Cache, digest_file, digest_of
from iopath.base.errors import Stopped
from iopath.base.programs import code_digest
from iopath.counts import calls, sharing
from iopath.guest import channel, states
from iopath.guest.guest import Record
from iopath.guest.machine import Machine, Qemu
from iopath.guest.payload import KALLSYMS, Image
from iopath.rungs.together import Shared


@dataclass(frozen=True)
class Job:
    """A plan, the machine that it is for, and the plugin that counts.

    *release* names the kernel in the log's name. *cache* keeps saved states and logs. *progress* is
    a file for the number of records. Removing it cancels the job. *shared* are the runs of a guest
    with several CPUs. If *by_calls*, a program is counted by system calls.
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
    by_calls: bool = False

    def inputs(self) -> dict[str, object]:
        """Everything that the records depend on. What CPUs share is read from the guest's memory,
        which is not kept, so these records depend on the code that reads it. Which of the others
        are kept is decided in this file, and channel.py reads them."""
        own = [digest_file(Path(name)) for name in (__file__, channel.__file__)]
        read_by = {"read_by": code_digest() if self.shared else digest_of({"files": own})}
        return {
            **states.inputs(self.qemu, self.machine, self.image.start),
            **read_by,
            "image": hashlib.sha256(self.image.payload()).hexdigest(),
            "plugin": digest_file(self.plugin),
            "options": self.options,
            **({"devices": self.image.devices} if self.image.devices else {}),
            **({"calls": calls.patterns(self.machine.arch)} if self.by_calls else {}),
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
        records = sum(
            line.startswith(("run ", "try ", "file ", "quiet ")) for line in self.image.plan
        )
        with contextlib.suppress(OSError, ValueError):
            return min(1.0, int(self.progress.read_text()) / records)
        return 0.0


@dataclass(frozen=True)
class Recorded:
    """What a job gives: the guest's records by name, its /proc/kallsyms, if it read that, and the
    plugin's counts (both compressed by gzip), and warnings."""

    texts: dict[str, str]
    kallsyms: bytes
    counts: bytes
    warnings: tuple[str, ...]


def run(job: Job) -> Recorded:
    """Carry out a job."""
    job.report(0)
    warnings: list[str] = []
    cache = Cache(job.cache, warnings.append)
    shared: dict[str, object] = {}

    def inspect(records: list[Record], counts: bytes, ram: Path) -> None:
        if job.shared:
            kallsyms = next(record.data for record in records if record.name == KALLSYMS)
            lines = counts.decode().splitlines()
            shared.update(
                sharing.found(job.shared, lines, kallsyms.decode(), ram, job.machine.arch)
            )

    with contextlib.ExitStack() as stack:
        stack.callback(cache.release)
        options, started = job.options, _ignore
        if job.by_calls:
            functions = stack.enter_context(temporary.folder()) / "functions"
            options = f"{options},calls={functions}"
            started = partial(_write_functions, functions, job.machine.arch)
        records, counts = states.States(cache, warnings.append).run(
            job.qemu, job.machine, job.image, job.log, job.report, job.plugin, options, inspect,
            started,
        )  # fmt: skip
    if job.shared:
        return Recorded({sharing.RECORD: json.dumps(shared)}, b"", b"", tuple(warnings))
    texts = {record.name: record.data.decode(errors="surrogateescape") for record in records}
    kallsyms = texts.pop(KALLSYMS, "").encode()
    return Recorded(texts, _pack(kallsyms), _pack(counts), tuple(warnings))


def _ignore(records: list[Record]) -> None:
    pass


def _write_functions(path: Path, arch: Arch, records: list[Record]) -> None:
    """Tell the plugin where the functions of system calls are."""
    kallsyms = next(record.data for record in records if record.name == KALLSYMS)
    path.write_text(calls.functions(kallsyms.decode(), arch))


def _pack(data: bytes) -> bytes:
    return gzip.compress(data, 1, mtime=0)
