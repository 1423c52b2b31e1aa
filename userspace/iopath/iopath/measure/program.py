# SPDX-License-Identifier: GPL-2.0
"""Run a program on kernels, and count what it costs by its system calls."""

import gzip
import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from iopath.base.arch import Arch
from iopath.base.errors import IopathError, UsageError
from iopath.base.programs import guest_program
from iopath.counts import calls, output
from iopath.counts.symbols import Symbols
from iopath.guest.guest import GuestError
from iopath.guest.image import QUIET, Image, Start
from iopath.guest.machine import Machine, Qemu
from iopath.kernels import modules
from iopath.kernels.built import Built
from iopath.kernels.kernel import Kernel
from iopath.measure import assemble, packages
from iopath.measure.jobs import Job
from iopath.measure.measurement import Bench, Measurement
from iopath.measure.plan import modules_of, prepared, unmet
from iopath.measure.pools import results
from iopath.measure.session import Session
from iopath.results.ops import OPS
from iopath.results.program import MODE, SCHEMA, Boot, Ran, Result
from iopath.rungs.builtin import MOUNTED_AT
from iopath.rungs.rung import Rung
from iopath.rungs.runs import Settings

_FOLDER = "/program"
_ROOM = 48 << 20  # bytes of a program that a started guest is given; with more, it is booted
_MOST_PRINTED = 256 << 20  # bytes of a file that it writes
_STDOUT, _STDERR = f"{_FOLDER}/stdout", f"{_FOLDER}/stderr"


@dataclass(frozen=True)
class Program:
    """A command line: *path* is the program in the guest, of *arch*, *words* are its arguments.
    *files* are what it needs, by path in the guest, and *given* are those of the user. It runs on
    *rung*; *limit* is how many instructions may be executed, and *drain* for how many seconds what
    comes after its end is counted."""

    arch: Arch
    path: str
    words: Sequence[str]
    files: Mapping[str, bytes]
    rung: Rung
    mounted: bool
    limit: int
    drain: int = 0
    stdin: bytes | None = None
    given: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def work(self) -> str:
        """The folder that it runs in."""
        return MOUNTED_AT if self.mounted else f"{_FOLDER}/work"


@dataclass(frozen=True)
class _Guest:
    """A guest's kernel, seed and what it left."""

    name: str
    release: str
    arch: Arch
    seed: int
    entry: Path
    files: Mapping[str, bytes]

    @property
    def texts(self) -> dict[str, str]:
        return json.loads((self.entry / "records.json").read_text())


def run(
    session: Session, names: Sequence[str], program: Program, machine: Machine, boots: int
) -> tuple[list[Ran], dict[str, bytes], Qemu]:
    """What *program* costs on the kernels *names*; what it printed, by kernel; and the emulator."""
    kernels = {name: session.find(name) for name in names}
    arch = program.arch
    for name, kernel in kernels.items():
        if kernel.arch != arch:
            raise UsageError(
                f"{name}: a kernel of {kernel.arch.name}: the program is of {arch.name}"
            )
    settings = Settings(
        [program.rung], ops=OPS[:1], machine=machine, boots=boots
    )  # one guest a boot
    wanted = [Measurement(name, settings) for name in names]
    measure = partial(_measure, session, program)
    each = session.each(wanted, kernels, measure, session.reporter.warn)
    found = {one.name: guests for one, guests in each}
    ran, printed, qemu = [], {}, session.emulator(machine.emulator, arch)
    for name in names:
        guests = found[name]
        if isinstance(guests, IopathError):
            raise type(guests)(f"{name}: {guests}")
        _check(name, program, guests[0])
        printed[name] = guests[0].texts[_STDOUT].encode(errors="surrogateescape")
        counted = [_counted(guest) for guest in guests]
        ran.append(Ran(name, guests[0].release, 0, counted))
    return ran, printed, qemu


def result(
    ran: list[Ran], program: Program, machine: Machine, qemu: Qemu, device: str, mount: str
) -> Result:
    return Result(
        SCHEMA, MODE, Path(program.path).name, list(program.words), device, mount, qemu.version,
        machine.on(program.arch).model, machine.cmdline, ran,
    )  # fmt: skip


def _measure(
    session: Session, program: Program, wanted: Measurement, kernel: Kernel,
    build: Callable[[], Built], bench: Bench,
) -> list[_Guest]:  # fmt: skip
    """Run the program on a kernel: a guest for each boot."""
    left = wanted.guests
    try:
        built = build()
        if lack := unmet(program.rung, built):
            raise IopathError(lack)
        [rung] = packages.equipped([program.rung], session.cache, session.apt.of(program.arch))
        machines, left = wanted.settings.machines(), 0
        run = partial(_run, wanted.name, built, replace(program, rung=rung), bench)
        return results([bench.pools.job(run, machine) for machine in machines])
    finally:
        bench.reporter.finished(guests=left)


def _image(built: Built, program: Program) -> Image:
    image = prepared(
        built, [program.rung], Settings([program.rung]), Start(built.vmlinuz, arch=built.arch)
    )
    plan, files = image.plan, image.files
    files["bin/runner"] = guest_program("runner", built.arch).read_bytes()
    files[f"{_FOLDER[1:]}/args"] = b"".join(
        word.encode(errors="surrogateescape") + b"\0" for word in (program.path, *program.words)
    )
    if program.stdin is not None:
        files[f"{_FOLDER[1:]}/stdin"] = program.stdin
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
    plan += [f"run program /bin/runner {_FOLDER} {program.work} {_MOST_PRINTED} {program.drain}"]
    plan += [f"file {_STDOUT}", f"file {_STDERR}"]
    return Image(start, plan, files, image.devices)


def _run(name: str, built: Built, program: Program, bench: Bench, machine: Machine) -> _Guest:
    """Run the program in one guest."""
    image = _image(built, program)
    job = Job(
        bench.qemu, machine.on(built.arch).that_takes(image.devices), image,
        guest_program("pathcount.so"),
        f"limit={program.limit}", built.release, bench.cache.root, bench.pools.progress(),
        by_calls=True,
    )  # fmt: skip
    try:
        entry = assemble.entry(job, f"{name}, {Path(program.path).name}", bench)
    except GuestError as error:
        raise _explained(error, program) from None
    return _Guest(
        name, built.release, built.arch, machine.seed, entry, {**image.start.files, **image.files}
    )


def _explained(error: GuestError, program: Program) -> IopathError:
    if "instructions were executed" in str(error):
        return IopathError(
            f"{Path(program.path).name} had not ended after {program.limit:,} instructions"
            " (--max-instructions)"
        )
    return error


def _check(name: str, program: Program, guest: _Guest) -> None:
    """Refuse a program that failed."""
    texts = guest.texts
    how = json.loads(texts["program"])
    what = f"{name}: {Path(program.path).name}"
    said = texts[_STDERR].strip().splitlines()
    last = f": {said[-1]}" if said else ""
    if how["error"]:
        raise IopathError(f"{what} cannot be executed: {os.strerror(how['error'])}")
    if how["signal"] == signal.SIGXFSZ:
        raise IopathError(f"{what} wrote more than {_MOST_PRINTED >> 20} MiB to a file")
    if how["signal"]:
        number = how["signal"]
        named = signal.Signals(number).name if number in [*signal.Signals] else number
        raise IopathError(f"{what} was ended by signal {named}{last}")
    if how["status"]:
        raise IopathError(f"{what} ended with status {how['status']}{last}")


def _counted(guest: _Guest) -> Boot:
    texts = guest.texts
    unpacked = [
        gzip.decompress((guest.entry / part).read_bytes()).decode(errors="replace")
        for part in ("kallsyms.gz", "counts.gz")
    ]
    symbols = Symbols(assemble.symbols_of(unpacked[0], texts, guest.files))
    return calls.boot(output.read(unpacked[1].splitlines()), symbols, guest.seed, guest.arch)
