# SPDX-License-Identifier: GPL-2.0
"""The program that is given after --: the options that say what it runs with."""

import argparse
from typing import Self

from iopath.base.errors import UsageError
from iopath.cli.options import number
from iopath.measure.commandline import DEVICE, LIMIT, CommandLine
from iopath.rungs.builtin import DEVICES, MOUNTS

# Options that only rungs have, with their defaults.
_OF_RUNGS = {
    "rung": [], "op": None, "bs": None, "no_fill": False, "incoherent": False, "rungs": None,
    "cpus": 1, "scheduler": None, "seconds": None, "on_cpu": None, "limits": None, "time": None,
}  # fmt: skip


class Command(CommandLine):
    """The program, as it is given on iopath's own command line."""

    @staticmethod
    def add(parser: argparse.ArgumentParser) -> None:
        group = parser.add_argument_group("the program after --")
        group.add_argument(
            "--device", choices=list(DEVICES), default=DEVICE,
            help="what the program finds in /dev: blknull0, in mode bio (null), blknull2, in mode"
            " mq, null_blk's nullb0, nvme0n1, or blknull0 of mode mq that counts requests"
            " (counted) (default: null)",
        )  # fmt: skip
        group.add_argument(
            "--mount", choices=list(MOUNTS), default="",
            help="mount a new file system at /mnt, and run the program there",
        )  # fmt: skip
        group.add_argument(
            "--package", action="append", metavar="NAME", default=[],
            help="take the program from this package of Debian; a script's programs from several",
        )  # fmt: skip
        group.add_argument(
            "--file", action="append", default=[], metavar="HOST[:GUEST]",
            help="give the guest a file; arguments that name files are given as well",
        )  # fmt: skip
        group.add_argument(
            "--max-instructions", type=number(1, 1 << 62, "instructions"), default=LIMIT,
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
            "device": self.device != DEVICE, "mount": bool(self.mount),
            "package": bool(self.package), "file": bool(self.given),
            "max-instructions": self.limit != LIMIT, "drain": bool(self.drain),
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
