# SPDX-License-Identifier: GPL-2.0
"""Options of commands that measure, in groups: each adds its options to a parser, and is read from
the parsed command line once."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from iopath.base.errors import UsageError
from iopath.cli.options import Options, block_size, number
from iopath.compare import noise
from iopath.guest.machine import Machine
from iopath.results.ops import OPS
from iopath.rungs import builtin
from iopath.rungs.rung import Rung
from iopath.rungs.runs import MOST_CPUS, Settings


@dataclass(frozen=True)
class Scenario:
    """The rungs by name, the operations and block sizes (none: the default), and how the modules
    are loaded."""

    rungs: Sequence[str] = ()
    ops: Sequence[str] = ()
    block_sizes: Sequence[int] = ()
    fill: bool = True
    coherent: bool = True

    @staticmethod
    def add(parser: Options) -> None:
        parser.add_argument(
            "--rung", action="append", default=[], metavar="NAME",
            help="only these rungs, wildcards allowed; iopath rungs lists all",
        )  # fmt: skip
        parser.add_argument("--op", choices=OPS, action="append", help="only this operation")
        parser.add_argument(
            "--bs", type=block_size, action="append", metavar="SIZE",
            help="bytes per I/O, 512 to 1m (default: 4k); several sizes give several rows",
        )  # fmt: skip
        parser.add_argument("--no-fill", action="store_true", help="load blknull with zero_fill=0")
        parser.add_argument("--incoherent", action="store_true", help="load biogen with coherent=0")

    @classmethod
    def read(cls, args: argparse.Namespace) -> Self:
        return cls(args.rung, args.op or (), args.bs or (), not args.no_fill, not args.incoherent)

    def settings(self, added: Sequence[Rung] = ()) -> Settings:
        """What is measured, of iopath's rungs and those *added*."""
        return Settings(
            rungs=builtin.select(self.rungs, added),
            ops=self.ops or OPS,
            block_sizes=self.block_sizes or (4096,),
            fill=self.fill,
            coherent=self.coherent,
        )


@dataclass(frozen=True)
class Guest:
    """The guest's machine, and the file with rungs that only guests have."""

    machine: Machine
    rungs: Path | None

    @staticmethod
    def add(parser: argparse.ArgumentParser) -> None:
        default = Machine()
        group = parser.add_argument_group("the guest")
        group.add_argument(
            "--rungs", type=Path, metavar="FILE",
            help="add the rungs in this TOML file; without --rung, measure only these",
        )  # fmt: skip
        group.add_argument(
            "--cmdline", default=default.cmdline, metavar="TEXT",
            help="kernel command line (default: '%(default)s')",
        )  # fmt: skip
        group.add_argument(
            "--cpu", default=default.cpu, metavar="MODEL",
            help="CPU by QEMU's name (default: iopath-1, which is the same in each QEMU; for arm64"
            " neoverse-n1, for riscv64 rv64)",
        )  # fmt: skip
        group.add_argument(
            "--emulator", default=default.emulator, metavar="SUITE",
            help="QEMU of this Debian suite, such as trixie, instead of the installed one",
        )  # fmt: skip
        group.add_argument(
            "--accel", choices=("tcg", "kvm"), default=default.accel,
            help="tcg: emulation, which counts instructions (default); kvm: time instead",
        )  # fmt: skip
        group.add_argument(
            "--memory", default=default.memory, type=number(256, 1 << 16, "MiB"), metavar="MIB",
            help="memory in MiB (default: %(default)s)",
        )  # fmt: skip
        add_seed(group)
        group.add_argument(
            "--time-limit", default=default.time_limit, type=number(1, 86400, "seconds"),
            metavar="SECONDS",
            help="seconds of real time that a boot may take (default: %(default)s)",
        )  # fmt: skip

    @classmethod
    def read(cls, args: argparse.Namespace) -> Self:
        machine = Machine(
            args.cpu, args.memory, args.cmdline, args.seed, args.time_limit, args.accel,
            emulator=args.emulator,
        )  # fmt: skip
        return cls(machine, args.rungs)

    def added(self) -> Sequence[Rung]:
        """The rungs in the file."""
        if not self.rungs:
            return ()
        name = str(self.rungs)
        if not self.rungs.exists() and builtin.matching([name], builtin.RUNGS):
            raise UsageError(f"--rungs {name}: no such file; to measure a rung, use --rung {name}")
        return builtin.load(self.rungs)

    def need_counts(self) -> None:
        """Refuse to measure time."""
        if not self.machine.exact:
            raise UsageError(
                "--accel kvm: only measure supports it; functions are counted in emulation"
            )


def add_range(parser: Options) -> None:
    """Which commits of a range are taken: Finder.expand()."""
    parser.add_argument(
        "--every", type=number(1, 1 << 20, "commits"), default=1, metavar="N",
        help="take each Nth commit of a range git:PATH@A..B, and the last",
    )  # fmt: skip
    parser.add_argument(
        "--merges", action="store_true",
        help="measure only the merge commits on a range's own branch",
    )  # fmt: skip


def add_boots(parser: Options, default: int | None = None) -> None:
    """Without a *default*, studies/boots decides."""
    what = default or f"{noise.BOOTS}; of programs and with several CPUs {noise.OFTEN}"
    parser.add_argument(
        "--boots", default=default, type=number(1, 100, "boots"), metavar="N",
        help=f"boot each kernel N times, with different seeds (default: {what})",
    )  # fmt: skip


def add_seed(parser: Options) -> None:
    parser.add_argument(
        "--seed", default=Machine().seed, type=number(0, (1 << 31) - 1, "seeds"), metavar="N",
        help="seed of everything random in the guest (default: %(default)s)",
    )  # fmt: skip


def add_cpus(parser: Options) -> None:
    parser.add_argument(
        "--cpus", default=1, type=number(1, MOST_CPUS, "CPUs"), metavar="N",
        help="also run each rung on N CPUs at once, and list the cache lines that they share",
    )  # fmt: skip


def add_model(parser: Options) -> None:
    parser.add_argument(
        "--model", action="store_true",
        help="also show the misses of modelled caches and branch predictors",
    )  # fmt: skip


def add_scheduler(parser: Options) -> None:
    parser.add_argument(
        "--scheduler", metavar="ADDRESS",
        help="prepare kernels and run guests on the workers of this dask scheduler, e.g."
        " tcp://host:8786",
    )  # fmt: skip
