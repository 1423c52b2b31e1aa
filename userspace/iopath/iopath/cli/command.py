# SPDX-License-Identifier: GPL-2.0
"""The program that is given after --: the options that say what it runs with."""

import argparse
import os
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Self

from iopath.base.arch import ARCHES, Arch
from iopath.base.errors import UsageError
from iopath.cli.options import number
from iopath.measure import executable
from iopath.measure.session import Session
from iopath.results.ops import OPS
from iopath.rungs.builtin import DEVICES, MOUNTS
from iopath.rungs.program import Program
from iopath.rungs.runs import Settings

_DEVICE = "null"
_LIMIT = 20_000_000_000

# Options that only rungs have, with their defaults.
_OF_RUNGS = {
    "rung": [], "op": None, "bs": None, "no_fill": False, "incoherent": False, "rungs": None,
    "cpus": 1, "scheduler": None, "svg": None, "png": None, "history": None, "seconds": None,
    "on_cpu": None, "limits": None, "time": None,
}  # fmt: skip


@dataclass(frozen=True)
class Command:
    """A command line, and what it runs with."""

    words: Sequence[str]
    device: str
    mount: str
    package: str
    given: Sequence[str]
    limit: int
    drain: int

    @staticmethod
    def add(parser: argparse.ArgumentParser) -> None:
        group = parser.add_argument_group("the program after --")
        group.add_argument(
            "--device", choices=list(DEVICES), default=_DEVICE,
            help="what the program finds in /dev: blknull0, in mode bio (null), blknull2, in mode"
            " mq, null_blk's nullb0, or nvme0n1 (default: null)",
        )  # fmt: skip
        group.add_argument(
            "--mount", choices=list(MOUNTS), default="",
            help="mount a new file system at /mnt, and run the program there",
        )  # fmt: skip
        group.add_argument(
            "--package", metavar="NAME", default="",
            help="take the program from this package of Debian",
        )  # fmt: skip
        group.add_argument(
            "--file", action="append", default=[], metavar="HOST[:GUEST]",
            help="give the guest a file; arguments that name files are given as well",
        )  # fmt: skip
        group.add_argument(
            "--max-instructions", type=number(1, 1 << 62, "instructions"), default=_LIMIT,
            metavar="N",
            help="end a program that has executed N instructions (default: %(default)s)",
        )  # fmt: skip
        group.add_argument(
            "--drain", type=number(0, 600, "seconds"), default=0, metavar="SECONDS",
            help="also count what the kernel does in so many seconds of the guest's time after the"
            " program's end (default: 0)",
        )  # fmt: skip

    @classmethod
    def read(cls, args: argparse.Namespace) -> Self:
        return cls(
            args.program, args.device, args.mount, args.package, args.file, args.max_instructions,
            args.drain,
        )  # fmt: skip

    @property
    def used(self) -> dict[str, bool]:
        """Its options, and whether they are used."""
        return {
            "device": self.device != _DEVICE, "mount": bool(self.mount),
            "package": bool(self.package), "file": bool(self.given),
            "max-instructions": self.limit != _LIMIT, "drain": bool(self.drain),
        }  # fmt: skip

    def check(self, args: argparse.Namespace) -> bool:
        """Whether there is a program. Refuses options of rungs with one, and its options without
        one."""
        if not self.words:
            for name in (name for name, is_used in self.used.items() if is_used):
                raise UsageError(f"--{name}: is for a program: give the program after --")
            return False
        for name, default in _OF_RUNGS.items():
            if getattr(args, name, default) != default:
                option = name.replace("_", "-")
                raise UsageError(f"--{option}: is for rungs: leave it out with a program after --")
        return True

    def builds(self, session: Session, kernel: str, before: str, after: str) -> dict[str, Program]:
        """Two builds of a program with the same arguments. In the guest both are where the first
        one is, so that nothing but their code differs."""
        arch = session.find(kernel).arch
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

    def settings(self, session: Session, kernel: str) -> Settings:
        """What is measured: the program, for kernels of the architecture of *kernel*."""
        return settings_of(self.program(session, session.find(kernel).arch))

    def program(self, session: Session, arch: Arch) -> Program:
        """The program, with the files that it needs."""
        if not arch.programs:
            known = " and ".join(one.name for one in ARCHES if one.programs)
            raise UsageError(f"a kernel of {arch.name}: programs are counted on {known}")
        name, *words = self.words
        if self.package:
            path, found = executable.of_package(
                session.cache, session.apt.of(arch), self.package, name
            )
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
