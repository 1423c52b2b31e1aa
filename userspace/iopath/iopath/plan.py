# SPDX-License-Identifier: GPL-2.0
"""What a guest is to do: which runs of ioloop, on which modules."""

import lzma
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from iopath import process
from iopath.build import Built
from iopath.errors import IopathError
from iopath.guest import QUIET, Image, Start
from iopath.machine import Machine
from iopath.programs import guest_program
from iopath.rungs import BIOGEN, MQ, NULL_BLK, OPS, Rung

LINE_ROUNDS = 4  # short rounds, for the distinct cache lines of one I/O

# Regions. A run has one by its number, and others by a bit added to that. From FLAT on the plugin
# counts without call trees and memory accesses.
LINES = 0x4000  # the short rounds
FLAT = 0x8000
LONG = FLAT  # the long run; that of number 0 has no I/O: what the guest does besides
IDLE = FLAT | 0x1000  # the same with a single batch of I/Os
DRAIN = 0x4000  # added to these two: the sleep afterwards
_DRAIN = "--drain=100ms"  # until what was put off is done
_BACKGROUND = 12_000_000  # iterations of an empty loop of four instructions: a dozen ticks
NOISE_PASSES = 12  # samples of each rung that tell the noise, where time is measured
TIMED, TIMED_ROUNDS = 20, 20  # where time is measured: times the I/Os of a round; rounds
_CALIBRATION = 20_000  # iterations of a loop of known length, in each of ten rounds


@dataclass(frozen=True)
class Settings:
    """What is measured, and on what machine."""

    rungs: Sequence[Rung]
    ops: Sequence[str] = OPS
    block_sizes: Sequence[int] = (4096,)
    machine: Machine = field(default_factory=Machine)
    fill: bool = True  # whether blknull fills what it must not leave uninitialised
    coherent: bool = True  # whether biogen minds the page cache of its block device
    boots: int = 1  # how often each kernel is booted
    passes: int = 20  # samples of each rung, where time is measured
    profile: bool = False  # whether to count by function, too
    inline: bool = False  # whether to tell inlined functions and source lines apart
    layers: Path | None = None  # a table of layers instead of ours

    def machines(self) -> list[Machine]:
        """The machine of each boot. Boots differ in the seed alone: with a command line of its own,
        a boot would differ from the others by more than chance."""
        return [
            replace(self.machine, seed=self.machine.seed + number) for number in range(self.boots)
        ]


@dataclass(frozen=True)
class Run:
    """One run of ioloop in the guest."""

    region: int
    rung: Rung
    op: str
    block_size: int

    @property
    def lines_region(self) -> int:
        """The region of the short rounds whose cache lines are counted."""
        return self.region | LINES

    @property
    def long_region(self) -> int:
        """The region of the long run."""
        return self.region | LONG

    @property
    def idle_region(self) -> int:
        """The region of what the long run is compared with."""
        return self.region | IDLE

    @property
    def title(self) -> str:
        return f"{self.rung.name} {self.op}" if self.rung.device else self.rung.name

    @property
    def counted(self) -> bool:
        """Whether ioloop's counters see it: the generator's threads are not its own."""
        return not self.rung.name.startswith("gen.")

    @property
    def ios(self) -> int:
        """I/Os in a round."""
        return self.rung.ios(self.block_size)

    @property
    def long_ios(self) -> int:
        """I/Os in the long run."""
        return self.rung.long_ios(self.block_size)


def make_runs(settings: Settings) -> tuple[list[Run], list[str]]:
    """The runs of a guest, and what of the settings is left out since it cannot be measured."""
    runs: list[Run] = []
    left_out: list[str] = []
    for rung in settings.rungs:
        sizes = settings.block_sizes if rung.device else (0,)
        for size in sizes:
            if not rung.fits(size):
                left_out.append(f"{rung.name} of {size >> 10} KiB")
                continue
            for op in rung.ops(settings.ops):
                runs.append(Run(len(runs) + 1, rung, op, size))
    return runs, left_out


# Files of the guest that say on what it measured.
CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
FACTS = ("/proc/version", "/proc/cmdline", "/proc/cpuinfo", CLOCKSOURCE)
KALLSYMS = "/proc/kallsyms"
EXTRA_RECORDS = len(FACTS) + 4


def make_image(built: Built, runs: Sequence[Run], settings: Settings) -> Image:
    devices = {run.rung.device for run in runs}
    parameters = {
        # Generated reads go into the kernel's own memory, which nobody else sees.
        "blknull": ["nr_devices=2", "zero_fill=1,0" if settings.fill else "zero_fill=0"],
        "biogen": ["device=/dev/blknull1", "write=1"]
        + ([] if settings.coherent else ["coherent=0"]),
        # As blknull is by itself: one queue, no scheduler, an end where it is submitted.
        "null_blk": [
            "nr_devices=1", "gb=1", "bs=512", "queue_mode=2", "irqmode=0", "submit_queues=1",
            "poll_queues=1", "hw_queue_depth=64", "no_sched=1",
        ],
    }  # fmt: skip
    modules = ["blknull"]
    if MQ in devices:
        fill = int(settings.fill)
        # Accounted and with a queue to poll, as null_blk is.
        parameters["blknull"] = [
            "nr_devices=3", f"zero_fill={fill},0,{fill}", "mode=bio,bio,mq", "iostats=0,0,1",
            "poll_queues=0,0,1",
        ]  # fmt: skip
    if BIOGEN in devices:
        modules.append("biogen")
    if NULL_BLK in devices:
        modules.append("null_blk")
    files = {"bin/ioloop": guest_program("ioloop").read_bytes()}
    plan = []
    paths = [path for module in modules for path in _with_dependencies(module, built)]
    for path in dict.fromkeys(paths):
        name = path.name.split(".")[0]
        files[f"modules/{name}.ko"] = _uncompressed(path)
        plan.append(" ".join([f"insmod /modules/{name}.ko", *parameters.get(name, [])]))
    plan += [f"file {path}" for path in FACTS]
    if settings.machine.exact:
        plan.append(f"file {KALLSYMS}")
    plan.append(QUIET)
    if not settings.machine.exact:
        plan += _timed(runs, NOISE_PASSES + settings.passes)
        return Image(Start(built.vmlinuz), plan, files)
    plan += [
        "run calibrate /bin/ioloop --calibrate --region=0 --output-format=json"
        f" --number_ios={_CALIBRATION} --rounds=10",
    ]
    for run in runs:
        if run.rung.device:
            plan.append(f"age {run.rung.device}")
        command = run.rung.command(run.op, run.block_size, run.region)
        plan.append(" ".join([f"run run.{run.region}", *command]))
    # Also where nobody wants a profile: the figures are of the same guest then.
    plan += _lines(runs)
    plan += _long(runs)
    return Image(Start(built.vmlinuz), plan, files)


def _lines(runs: Sequence[Run]) -> list[str]:
    """The short rounds, whose cache lines are counted. In a boot that is not profiled they are the
    first that the plugin counts."""
    plan = []
    for run in runs:
        words = run.rung.command(
            run.op, run.block_size, run.lines_region, ios=run.rung.batch, rounds=LINE_ROUNDS
        )
        plan.append(" ".join([f"run lines.{run.region}", *words]))
    return plan


def _long(runs: Sequence[Run]) -> list[str]:
    """The long runs, which come last: they are counted in another way, and to change between the
    two takes the emulator a while."""
    plan = [
        f"run background /bin/ioloop --ioengine=null --number_ios={_BACKGROUND} --rounds=1"
        f" --region={LONG} {_DRAIN} --cpus_allowed=0 --output-format=json"
    ]
    for run in runs:
        if run.rung.device:
            plan.append(f"age {run.rung.device}")
        for name, region, ios in (
            ("idle", run.idle_region, run.rung.batch),
            ("long", run.long_region, run.long_ios),
        ):
            words = run.rung.command(run.op, run.block_size, region, ios=ios, rounds=1)
            plan.append(" ".join([f"run {name}.{run.region}", *words, _DRAIN]))
    return plan


def _timed(runs: Sequence[Run], passes: int) -> list[str]:
    """The runs by turns, there and back, each with the processor's counters if it may."""
    plan = []
    for number in range(passes):
        for run in runs if number % 2 == 0 else reversed(runs):
            words = run.rung.command(
                run.op, run.block_size, run.region, ios=TIMED * run.ios, rounds=TIMED_ROUNDS
            )
            counted = ["--pmu"] if run.counted else []
            plan.append(" ".join([f"run run.{run.region}.{number}", *words, *counted]))
    return plan


def _with_dependencies(module: str, built: Built) -> list[Path]:
    """The module files to load, in their order, so that *module*, one of ours or of the kernel's
    own, is there."""
    path = built.modules.get(module)
    if path is None and built.own_modules:
        path = next(built.own_modules.rglob(f"{module}.ko*"), None)
    if path is None:
        raise IopathError(f"{built.release} has no module {module}")
    names = subprocess.run(
        [process.need("modinfo", "kmod"), "-F", "depends", path],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    needed = []
    for name in filter(None, names.split(",")):
        needed += _with_dependencies(name, built)
    return [*needed, path]


def _uncompressed(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".zst":
        zstd = process.need("zstd", "zstd")
        return subprocess.run([zstd, "-dc", path], capture_output=True, check=True).stdout
    return data
