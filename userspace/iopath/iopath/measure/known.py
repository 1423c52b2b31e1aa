# SPDX-License-Identifier: GPL-2.0
"""What was measured on a kernel before: a question that was answered is not assembled again.

It is kept as a pickle, which is read in a tenth of the time that JSON takes. Nothing else reads it,
and the digest of the code is in its key.
"""

import gzip
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from iopath.base import process
from iopath.base.arch import Arch
from iopath.base.cache import Cache, digest_file
from iopath.base.programs import code_digest, guest_program
from iopath.guest.machine import Qemu
from iopath.measure.measurement import Measurement, Prepared
from iopath.results import layers
from iopath.results.result import ExactKernel, ExactRecord
from iopath.rungs.runs import Settings

KIND = "measured"  # of the entries in the cache
_FILE = "measured.pickle.gz"


@dataclass(frozen=True)
class Known:
    """The description of a kernel, the records of what was measured, the warnings that belong to
    them, and what a program printed in the first boot."""

    description: ExactKernel
    records: list[ExactRecord]
    notes: list[str]
    printed: str = ""


def inputs(
    wanted: Measurement, ready: Prepared, qemu: Qemu, programs: Mapping[str, str]
) -> dict[str, object]:
    """Everything that the records of a measurement depend on. *programs* are the digests of the
    programs in the guest, and of the plugin. The cache entry with vmlinuz has the kernel's own
    modules, too. The key of that entry stands for them."""
    settings, built = wanted.settings, ready.built
    program = settings.program
    return {
        "name": wanted.name,
        "kernel": [
            built.release,
            built.version,
            built.origin,
            built.vmlinuz.parent.name,
            built.digests,
        ],
        "qemu": [qemu.version, qemu.digest, *qemu.words, *qemu.sandbox],
        "programs": list(programs.values()),
        "machines": [machine.on(built.arch).inputs() for machine in settings.machines()],
        "runs": [
            [run.rung.digest, run.op, run.block_size, *run.rung.each_cpu] for run in ready.possible
        ],
        "settings": {
            name: vars(settings)[name]
            for name in ("fill", "coherent", "boots", "profile", "inline", "model", "cpus")
        },
        "program": program and [program.inputs, program.limit],
        "layers": layers.digest(settings.layers),
        "debug": debug_inputs(ready.debug),
        "code": code_digest(),
    }


def debug_inputs(debug: Path | None) -> list[str | int]:
    """What source lines depend on: the file with the debug information, and what reads it."""
    if not debug:
        return []
    status = debug.stat()
    tools = [process.need(tool, "binutils") for tool in ("nm", "addr2line")]
    return [
        str(debug), status.st_size, status.st_mtime_ns,
        *(digest_file(Path(tool)) for tool in tools),
    ]  # fmt: skip


def digests(arch: Arch, settings: Settings) -> dict[str, str]:
    """The digests of the programs in the guest, and of the plugin."""
    names = ("init", "ioloop", *(["runner"] if settings.program else []))  # ioloop in any guest
    found = {name: digest_file(guest_program(name, arch)) for name in names}
    return found | {"pathcount": digest_file(guest_program("pathcount.so"))}


def read(cache: Cache, inputs: dict[str, object]) -> Known | None:
    """What is known for *inputs*, if anything."""
    entry = cache.find(KIND, inputs)
    if not entry:
        return None
    return pickle.loads(gzip.decompress((entry / _FILE).read_bytes()))


def keep(cache: Cache, inputs: dict[str, object], known: Known) -> None:
    """Keep what was measured."""

    def make(folder: Path) -> None:
        (folder / _FILE).write_bytes(gzip.compress(pickle.dumps(known), 1, mtime=0))

    cache.entry(KIND, inputs, make)
