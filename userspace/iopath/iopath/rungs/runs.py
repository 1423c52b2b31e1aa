# SPDX-License-Identifier: GPL-2.0
"""What is measured, on what machine, and the runs that this takes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from iopath.guest.machine import Machine
from iopath.results.ops import OPS
from iopath.results.result import title
from iopath.rungs.builtin import overrides
from iopath.rungs.program import Program
from iopath.rungs.rung import CHECKED, FULLY, ROUNDS, Overrides, Rung

MOST_CPUS = 8
LINE_ROUNDS = 4  # short rounds, for the distinct cache lines of one I/O
_LONG_BATCH = 1 << 20  # bytes of a batch that takes a good part of a tick's period

# Regions. A run has the region of its number, and others with a bit added to it. From FLAT on, the
# plugin counts without call trees and memory accesses.
LINES = 0x4000  # the short rounds
FLAT = 0x8000
LONG = FLAT  # the long run
FLAT_ROUNDS = FLAT | 0x2000  # the rounds that are counted flat
DRAIN = 0x4000  # added to it: the sleep afterwards
# The length of this sleep, in which deferred work is done: a lazy RCU callback waits for 10 s. The
# guest is idle meanwhile, so the sleep takes next to no time.
DRAIN_MS = 12_000
CALM = 0.25  # the least share of a run's rounds that have no interrupt but their own
ANY = "any"  # a number of interrupts that does not matter
NOISE_PASSES = 12  # samples of each rung that tell the noise, where time is measured
TIMED, TIMED_ROUNDS = 20, 20  # to measure time: 20 rounds, of 20 times as many I/Os


@dataclass(frozen=True)
class Settings:
    """What is measured, and on what machine."""

    rungs: Sequence[Rung]
    ops: Sequence[str] = OPS
    block_sizes: Sequence[int] = (4096,)
    machine: Machine = field(default_factory=Machine)
    fill: bool = True  # whether blknull fills what it must not leave uninitialised
    coherent: bool = True  # whether biogen keeps coherent with its block device's page cache
    boots: int = 1  # how often each kernel is booted
    shared_boots: int = 1  # how often a guest with several CPUs is booted, if more than boots
    passes: int = 20  # samples of each rung, where time is measured
    profile: bool = False  # whether to count by function, too
    inline: bool = False  # whether to tell inlined functions and source lines apart
    layers: Path | None = None  # a table of layers instead of the built-in one
    model: bool = False  # whether to model caches and branch predictors in the short rounds
    cpus: int = 1  # also run each rung on this number of CPUs at once, if it is more than one
    program: Program | None = None  # what is measured instead, on the only rung

    @property
    def overrides(self) -> Overrides:
        """The parameters of modules that are not as the rungs have them."""
        return overrides(fill=self.fill, coherent=self.coherent)

    @property
    def most_boots(self) -> int:
        """How often each kernel is booted with all of its CPUs."""
        return max(self.boots, self.shared_boots) if self.cpus > 1 else self.boots

    def machines(self) -> list[Machine]:
        """The machine of each boot. Boots differ in the seed alone: with a command line of its own,
        a boot would differ from the others by more than chance."""
        numbers = range(self.most_boots)
        return [replace(self.machine, seed=self.machine.seed + number) for number in numbers]


@dataclass(frozen=True)
class SomeRounds:
    """Some of the rounds of a run: the *name* of their record, their region, and their layouts."""

    name: str
    region: int
    first: int
    layouts: int

    @property
    def flat(self) -> bool:
        """Whether they are counted without functions and memory accesses."""
        return self.region >= FLAT


@dataclass(frozen=True)
class Run:
    """One run of ioloop in the guest."""

    region: int = field(compare=False)  # a number of its own in the guest
    rung: Rung
    op: str
    block_size: int

    @property
    def lines_region(self) -> int:
        """The region of the short rounds whose cache lines are counted."""
        return self.region | LINES

    @property
    def line_rounds(self) -> int:
        """The number of these rounds."""
        return LINE_ROUNDS if self.line_layouts == 1 else 3 * self.line_layouts

    @property
    def line_layouts(self) -> int:
        """Their layouts: two if a batch is long. Work that waits when a program starts, or that a
        tick begins, may interrupt all rounds of one."""
        long = self.rung.batch * self.block_size > _LONG_BATCH
        return min(2, self.layouts) if long else 1

    @property
    def long_region(self) -> int:
        """The region of the long run."""
        return self.region | LONG

    @property
    def title(self) -> str:
        return title(self.rung.name, self.op)

    @property
    def command(self) -> list[str]:
        """The command line of its rounds."""
        return self.command_of(SomeRounds("", self.region, 0, self.layouts))

    def command_of(self, part: SomeRounds) -> list[str]:
        """The command line of some of its rounds."""
        return self.rung.command(
            self.op, self.block_size, part.region,
            rounds=ROUNDS * part.layouts // self.layouts, layouts=part.layouts, first=part.first,
        )  # fmt: skip

    def parts(self, *, checks: bool) -> list[SomeRounds]:
        """Its rounds in the first boot, or in one that *checks* it, in the order of the layouts."""
        if self.counted_fully:
            return [SomeRounds(f"run.{self.region}", self.region, 0, self.layouts)]
        name, region = f"flat.{self.region}", self.region | FLAT_ROUNDS
        if checks:
            return [SomeRounds(name, region, 0, CHECKED)]
        return [
            SomeRounds(f"run.{self.region}", self.region, 0, FULLY),
            SomeRounds(name, region, FULLY, self.layouts - FULLY),
        ]

    @property
    def counted_fully(self) -> bool:
        """Whether functions and memory accesses are counted in all rounds of all boots: where
        layouts do not tell how much they vary, and where the idle loop's instructions are left out
        by function."""
        return self.layouts == 1 or self.rung.waits or bool(self.rung.interrupts)

    @property
    def layouts(self) -> int:
        return self.rung.layouts

    @property
    def counted(self) -> bool:
        """Whether the program's counters see the I/O."""
        return self.rung.own_threads

    @property
    def interrupts(self) -> dict[int, int | str]:
        """By region, the interrupts of a round that belong to its I/Os. How many I/Os of a batch
        end by one interrupt is up to the device."""
        if self.rung.waits:
            each = self.rung.batch if self.rung.batch == 1 else ANY
            return {self.region: each, self.lines_region: ANY}  # of few rounds the best is taken
        each = self.rung.interrupts
        return {self.region: each * self.ios, self.lines_region: each * self.rung.batch}

    @property
    def ios(self) -> int:
        """I/Os in a round."""
        return self.rung.ios(self.block_size)

    @property
    def long_ios(self) -> int:
        """I/Os in the long run."""
        return self.rung.long_ios(self.block_size)


def make_runs(settings: Settings) -> tuple[list[Run], list[str]]:
    """The runs of a guest, and what is left out because it cannot be measured."""
    runs: list[Run] = []
    left_out: list[str] = []
    for rung in settings.rungs:
        sizes = settings.block_sizes if rung.target else (0,)
        if rung.block_size:
            sizes = (rung.block_size,)
        for size in sizes:
            if not rung.fits(size):
                left_out.append(f"{rung.name} of {size >> 10} KiB")
                continue
            for op in rung.ops(settings.ops):
                runs.append(Run(len(runs) + 1, rung, op, size))
    return runs, left_out
