# SPDX-License-Identifier: GPL-2.0
"""The command line of a program that is counted, and what it runs with."""

import os
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from iopath.base.arch import ARCHES, Arch
from iopath.base.errors import UsageError
from iopath.measure import executable, inputs
from iopath.measure.session import Session
from iopath.results.ops import OPS
from iopath.rungs.builtin import DEVICES, MOUNTS
from iopath.rungs.program import Program
from iopath.rungs.runs import Settings

DEVICE = "null"
LIMIT = 20_000_000_000


@dataclass(frozen=True)
class CommandLine:
    """The *words* of a command line. The program runs on a *device* or in a new file system
    (*mount*), and is of this machine or of a *package*; a script of the shell calls programs of
    several. *given* are files for the guest, HOST or
    HOST:GUEST. *limit* is the largest number of instructions, *drain* the seconds after its end
    that are counted."""

    words: Sequence[str]
    device: str = DEVICE
    mount: str = ""
    package: Sequence[str] = ()
    given: Sequence[str] = ()
    limit: int = LIMIT
    drain: int = 0

    def settings(self, session: Session, arch: Arch) -> Settings:
        """What is measured: the program, for kernels of an architecture."""
        return settings_of(self.program(session, arch))

    def builds(self, session: Session, arch: Arch, before: str, after: str) -> dict[str, Program]:
        """Two builds of a program with the same arguments. In the guest both are where the first
        one is, so that nothing but their code differs."""
        for name in (before, after):
            if executable.script_of([name]):
                raise UsageError(f"{name}: a script: two builds must be ELF programs")
        one, two = (
            replace(self, words=[name, *self.words]).program(session, arch)
            for name in (before, after)
        )
        folders = [f"{PurePosixPath(each.path).parent}/".lstrip("/") for each in (one, two)]
        own = two.path.lstrip("/")
        moved = {
            one.path.lstrip("/") if path == own
            else folders[0] + path.removeprefix(folders[1]) if path.startswith(folders[1])
            else path: data
            for path, data in two.files.items()
        }  # fmt: skip
        return {before: one, after: replace(two, path=one.path, files=moved)}

    def program(self, session: Session, arch: Arch) -> Program:
        """The program, with the files that it needs."""
        if not arch.programs:
            known = " and ".join(one.name for one in ARCHES if one.programs)
            raise UsageError(f"a kernel of {arch.name}: programs are counted on {known}")
        name, *words = self.words
        apt, warn = session.apt.of(arch), session.reporter.warn
        if script := executable.script_of(self.words):
            text, words, file = script
            path, found = executable.of_script(session.cache, apt, self.package, text, warn)
            found |= file
        elif self.package:
            path, found = executable.of_packages(session.cache, apt, self.package, name)
        else:
            path, found = executable.of_machine(name, arch)
        rung = MOUNTS[self.mount] if self.mount else DEVICES[self.device]
        wanted = Program(
            arch, path, words, found, rung, bool(self.mount), self.limit, self.drain, _stdin()
        )
        given: dict[str, bytes] = {}
        for text in self.given:
            host, _, inside = text.partition(":")
            given[_inside(wanted, inside or Path(host).name)] = _read(host, "--file ")
        for word in words:
            plain = PurePosixPath(word)
            if not plain.is_absolute() and ".." not in plain.parts and Path(word).is_file():
                given.setdefault(_inside(wanted, word), _read(word))
        inputs.check(self.words, given, self.device, self.mount, self.limit, warn)
        return replace(wanted, given=given)


def settings_of(program: Program) -> Settings:
    """What is measured of a program."""
    return Settings([program.rung], ops=OPS[:1], program=program)


def _inside(wanted: Program, path: str) -> str:
    """A path in the guest, as its files are named."""
    return str(PurePosixPath(wanted.work, path)).lstrip("/")


def _read(name: str, option: str = "") -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"{option}{name}: {error.strerror}") from None


def _stdin() -> bytes | None:
    """The standard input, if it is a file."""
    try:
        is_file = stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)
    except (OSError, ValueError):
        return None
    return sys.stdin.buffer.read() if is_file else None
