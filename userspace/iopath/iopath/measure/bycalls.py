# SPDX-License-Identifier: GPL-2.0
"""Count a program by its system calls: a guest for each boot, in which it runs once."""

import gzip
import json
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from iopath.base.cache import digest_of
from iopath.base.errors import IopathError
from iopath.base.programs import guest_program
from iopath.base.typed import JsonObject
from iopath.counts import calls, plugin_output
from iopath.guest.guest import GuestError
from iopath.guest.machine import Machine
from iopath.guest.payload import QUIET, Image, Start
from iopath.kernels import modules
from iopath.kernels.built import Built
from iopath.measure import assemble, description, own_count
from iopath.measure.jobs import Job
from iopath.measure.known import Known
from iopath.measure.measurement import Bench, Measurement, Prepared
from iopath.measure.plan import FACTS, modules_of, prepared
from iopath.measure.pools import results
from iopath.results import layers
from iopath.results.iorequests import Requests
from iopath.results.metrics import OF_DEVICE, TERM, of_device
from iopath.results.result import ExactRecord, KernelName
from iopath.rungs.program import FOLDER, Program
from iopath.rungs.rung import Rung
from iopath.rungs.runs import Settings

_ROOM = 48 << 20  # bytes of a program that a started guest is given; with more, it is booted
_MOST_PRINTED = 256 << 20  # bytes of a file that it writes
# What the device of a program counts, if it does. Both paths are those of the same files.
_COUNTERS = (
    *sorted({name for m in OF_DEVICE for _, name in TERM.findall(m.source.device)}),
    "sizes",
)
_BEFORE, _AFTER = "/sys/devices/virtual/block/blknull0/counters", "/sys/block/blknull0/counters"
_SEEN = "/sys/kernel/debug/blknull/blknull0"
_STDOUT, _STDERR = f"{FOLDER}/stdout", f"{FOLDER}/stderr"


@dataclass(frozen=True)
class _GuestFiles:
    """What a guest left: its cache *entry*, and the *files* that it had."""

    entry: Path
    files: Mapping[str, bytes]

    @property
    def texts(self) -> dict[str, str]:
        return json.loads((self.entry / "records.json").read_text())


def count(wanted: Measurement, program: Program, ready: Prepared, bench: Bench) -> Known:
    """What the *wanted* program costs on a kernel that is *ready*."""
    settings, built = wanted.settings, ready.built
    program = replace(program, rung=ready.possible[0].rung)  # with the programs that it needs
    guests = results(
        [
            bench.pools.job(_run, wanted.name, built, program, bench, machine)
            for machine in settings.machines()
        ]
    )
    texts = guests[0].texts
    _check(program, texts)
    records = calls.records(
        KernelName(name=wanted.name, release=built.release), program.command,
        digest_of(program.inputs), [_counted(guest, built, program) for guest in guests],
        layers.table(settings.layers),
    )  # fmt: skip
    if _counts(program.rung):
        _add_device(records[0], guests)
    described = description.describe(wanted.name, built, texts, settings)
    return Known(described, records, [], texts[_STDOUT])


def _image(built: Built, program: Program) -> Image:
    image = prepared(
        built, [program.rung], Settings([program.rung]), Start(built.vmlinuz, arch=built.arch)
    )
    plan, files = image.plan, image.files
    files["bin/runner"] = guest_program("runner", built.arch).read_bytes()
    files[f"{FOLDER[1:]}/args"] = b"".join(
        word.encode(errors="surrogateescape") + b"\0" for word in (program.path, *program.words)
    )
    if program.stdin is not None:
        files[f"{FOLDER[1:]}/stdin"] = program.stdin
    start = image.start
    if sum(map(len, program.files.values())) > _ROOM:
        start = replace(start, files={**start.files, **program.files})
    else:
        files |= program.files
    files |= program.given
    plan += [
        f"file {path}"
        for name, data in modules_of({**start.files, **files}).items()
        for path in modules.section_files(name, data)
    ]
    plan += ["sync", QUIET]
    counters = _COUNTERS if _counts(program.rung) else ()
    plan += [f"file {_BEFORE}/{name}" for name in counters]
    plan += [f"run program /bin/runner {FOLDER} {program.work} {_MOST_PRINTED} {program.drain}"]
    plan += [f"file {_AFTER}/{name}" for name in counters]
    if counters and "CONFIG_DEBUG_FS=y\n" in built.config.read_text():
        plan.append(f"file {_SEEN}")
    plan += [f"file {path}" for path in (_STDOUT, _STDERR, *FACTS)]
    return Image(start, plan, files, image.devices)


def _counts(rung: Rung) -> bool:
    """Whether the device of a program counts what it is given."""
    return any(("stats", "1") in module.parameters for module in rung.modules)


def _add_device(whole: ExactRecord, guests: Sequence[_GuestFiles]) -> None:
    """Add what the device counted to the record of the *whole* program."""
    boots = []
    for guest in guests:
        texts = guest.texts
        before, after = (
            {name: [*map(int, texts[f"{folder}/{name}"].split())] for name in _COUNTERS}
            for folder in (_BEFORE, _AFTER)
        )
        more = {n: [b - a for a, b in zip(before[n], after[n], strict=True)] for n in after}
        boots.append(of_device({name: counts[0] for name, counts in more.items()}, 1))
        if guest is guests[0]:
            seen = texts.get(_SEEN, "").splitlines()
            whole.requests = Requests(who={}, sizes=more["sizes"], seen=seen)
    whole.counts = {
        **(whole.counts or {}),
        **{name: [boot[name] for boot in boots] for name in boots[0]},
    }


def _run(name: str, built: Built, program: Program, bench: Bench, machine: Machine) -> _GuestFiles:
    """Run the program in one guest."""
    image = _image(built, program)
    options = f"limit={program.limit}"
    if image.devices:
        options += ",waits=0"
    job = Job(
        bench.qemu, machine.on(built.arch).that_takes(image.devices), image,
        guest_program("pathcount.so"),
        options, built.release, bench.cache.root, bench.pools.progress(), by_calls=True,
    )  # fmt: skip
    try:
        entry = assemble.entry(job, f"{name}, {program.name}", bench)
    except GuestError as error:
        if "instructions were executed" in str(error):
            raise IopathError(
                f"{program.name} had not ended after {program.limit:,} instructions"
                " (--max-instructions)"
            ) from None
        raise
    return _GuestFiles(entry, {**image.start.files, **image.files})


def _check(program: Program, texts: Mapping[str, str]) -> None:
    """Refuse a program that failed."""
    how: JsonObject = json.loads(texts["program"])
    said = texts[_STDERR].strip().splitlines()
    last = f": {said[-1]}" if said else ""
    if how["error"]:
        raise IopathError(f"{program.name} cannot be executed: {os.strerror(how['error'])}")
    if how["signal"] == signal.SIGXFSZ:
        raise IopathError(f"{program.name} wrote more than {_MOST_PRINTED >> 20} MiB to a file")
    if how["signal"]:
        number = how["signal"]
        named = signal.Signals(number).name if number in [*signal.Signals] else number
        raise IopathError(f"{program.name} was ended by signal {named}{last}")
    if how["status"]:
        raise IopathError(f"{program.name} ended with status {how['status']}{last}")


def _counted(guest: _GuestFiles, built: Built, program: Program) -> calls.Boot:
    kallsyms, counts = ((guest.entry / part).read_bytes() for part in ("kallsyms.gz", "counts.gz"))
    symbols = assemble.symbols_of(kallsyms, guest.texts, guest.files)
    ios = own_count.ios(program.path, guest.texts[_STDOUT] + guest.texts[_STDERR])
    counted = plugin_output.read(gzip.decompress(counts).decode().splitlines())
    return calls.boot(counted, symbols, built.arch, ios)
