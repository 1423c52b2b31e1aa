# SPDX-License-Identifier: GPL-2.0
"""ioloop in a guest: the instructions of its loops, and beside them those of fio and t/io_uring for
the same job on the same kernel; and disks that vanish."""

import json
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest

from helpers import fio, kept
from helpers.command import FAST_START, KERNEL
from iopath.base import process
from iopath.base.programs import guest_program
from iopath.counts.plugin_output import Output, read
from iopath.counts.symbols import Symbols
from iopath.guest.guest import GuestError
from iopath.guest.machine import Machine, Qemu
from iopath.guest.payload import KALLSYMS, QUIET, Image, Start
from iopath.kernels.built import Built
from iopath.kernels.modules import uncompressed, with_dependencies
from iopath.measure.session import Session

pytestmark = pytest.mark.guest

DEVICE = "/dev/blknull0"
PATTERNS = ("read", "write", "randread", "randwrite")
ROUNDS = 5

PARAMETERS = {
    "blknull": " nr_devices=2",
    "biogen": " device=/dev/blknull0",
    "null_blk": " nr_devices=0",
}


@dataclass(frozen=True)
class Engine:
    """An engine: what fio calls it, I/Os at a time, and the most instructions in user mode that one
    I/O may take."""

    fio: str
    depth: int
    limit: int


ENGINES = {
    "sync": Engine("psync", 1, 20),
    "libaio": Engine("libaio", 100, 40),
    "io_uring": Engine("io_uring", 32, 45),
}

# Batches in a round of ioloop. The difference of the two lengths is the I/Os alone.
BATCHES = (10, 20)

# The options that make fio's path as short as possible.
LEAN = ("--gtod_reduce=1", "--norandommap=1", "--randrepeat=0")

# The same job for ioloop and t/io_uring.
FIXED = ("--fixedbufs", "--registerfiles")
T_IO_URING = ("-d32", "-s32", "-c32", "-b4096", "-p0", "-B1", "-F1", "-X0", "-R1", "-n1")


@dataclass
class Region:
    """What was executed in a region: instructions in user mode in each round, and the number of
    calls of the driver in all rounds."""

    user: list[int]
    driver: int


class Plan:
    """Commands for a guest, each counted in a region of its own."""

    def __init__(self) -> None:
        self.commands: list[str] = []
        self.regions: dict[tuple, int] = {}

    def _add(self, key: tuple, *words: str) -> None:
        """Carry out *words*, in which REGION stands for the number of a new region."""
        self.regions[key] = number = len(self.regions) + 1
        self.commands.append(f"run {number} {' '.join(words).replace('REGION', str(number))}")

    def add_ioloop(self, name: str, rw: str, *more: str) -> None:
        depth = ENGINES[name].depth
        for batches in BATCHES:
            self._add(
                ("ioloop", name, rw, *more, batches),
                "/bin/ioloop --region=REGION --output-format=json --cpus_allowed=0",
                f"--filename={DEVICE} --direct=1 --ioengine={name} --rw={rw} --iodepth={depth}",
                f"--number_ios={batches * depth} --rounds={ROUNDS}",
                *more,
            )

    def add_fio(self, name: str, rw: str) -> None:
        engine = ENGINES[name]
        self._add(
            ("fio", name, rw),
            "/bin/region REGION /bin/fio --name=job --thread --direct=1 --bs=4k --eta=never",
            f"--filename={DEVICE} --ioengine={engine.fio} --rw={rw} --iodepth={engine.depth}",
            f"--iodepth_batch_submit={engine.depth} --iodepth_batch_complete_min={engine.depth}",
            f"--iodepth_batch_complete_max={engine.depth} --time_based --runtime=100",
            *LEAN,
        )

    def add_t_io_uring(self) -> None:
        self._add(("t/io_uring",), "/bin/region REGION /bin/t_io_uring", *T_IO_URING, DEVICE)


def regions_of(output: Output, symbols: Symbols) -> dict[int, Region]:
    """What was counted, by region."""
    entries = {}  # blocks at which a function of the driver begins
    for number, block in output.blocks.items():
        symbol = symbols.find(block.address)
        if symbol.module == "blknull" and symbols.find(block.address - 1) != symbol:
            entries[number] = symbol.name
    found = {}
    for number, region in output.regions.items():
        calls: Counter[str] = Counter()
        for node in region.nodes.values():
            for part in (*node.quiet, *node.disturbed):
                if part.instructions and part.block in entries:
                    calls[entries[part.block]] += part.times
        users = [part.user for part in region.rounds]
        found[number] = Region(users, max(calls.values(), default=0))
    return found


def _compile(name: str, folder: Path) -> bytes:
    """One of the programs beside this file, for the guest."""
    source = Path(__file__).with_name(f"{name}.c")
    command = [process.need("gcc", "gcc"), "-O2", "-Wall", "-Wextra", "-Werror", "-static"]
    subprocess.run([*command, "-o", folder / name, source], check=True)
    return (folder / name).read_bytes()


@pytest.fixture(scope="module")
def built(session: Session) -> Built:
    return session.find(KERNEL).prepare(session.cache, session.apt, lambda what, part: None)


def boot(
    once: kept.Once,
    built: Built,
    modules: Sequence[Path],
    commands: Sequence[str],
    files: dict[str, bytes],
    log: Path,
    plugin: Path | None = None,
) -> tuple[dict[str, str], bytes]:
    """Carry out *commands* with *modules* in a guest that starts with *files*: what they printed,
    and what was counted."""
    ours = {"bin/ioloop": guest_program("ioloop").read_bytes()}
    plan = []
    for path in modules:
        name = path.name.split(".")[0]
        ours[f"modules/{name}.ko"] = uncompressed(path)
        plan.append(f"insmod /modules/{name}.ko{PARAMETERS.get(name, '')}")
    image = Image(Start(built.vmlinuz, files=files), [*plan, QUIET, *commands], ours)
    machine = Machine(cmdline=FAST_START, time_limit=1800)
    records, counts = once.run(Qemu.find(), machine, image, log, plugin=plugin)
    texts = {record.name: record.data.decode(errors="replace") for record in records}
    return texts, counts


@pytest.fixture(scope="module")
def regions(
    once: kept.Once, session: Session, built: Built, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple, Region]:
    """ioloop, fio and t/io_uring in one guest."""
    folder = tmp_path_factory.mktemp("ioloop")
    version, files = fio.program(session)
    files["bin/t_io_uring"] = fio.t_io_uring(session, version)
    files["bin/region"] = _compile("region", folder)
    plan = Plan()
    for engine in ENGINES:
        for rw in PATTERNS:
            plan.add_ioloop(engine, rw)
        plan.add_fio(engine, "randread")
    plan.add_ioloop("io_uring", "randread", *FIXED)
    plan.add_t_io_uring()
    said, counts = boot(
        once,
        built,
        with_dependencies("blknull", built),
        [*plan.commands, f"file {KALLSYMS}"],
        files,
        folder / "console.log",
        guest_program("pathcount.so"),
    )
    output = read(counts.decode().splitlines())
    counted = regions_of(output, Symbols(said[KALLSYMS]))
    return {key: counted[number] for key, number in plan.regions.items()}


def loop(regions: dict[tuple, Region], *key: str) -> float:
    """Instructions in user mode per I/O in ioloop's loop."""
    short, long = (regions["ioloop", *key, batches] for batches in BATCHES)
    ios = (BATCHES[1] - BATCHES[0]) * ENGINES[key[0]].depth
    return (median(long.user) - median(short.user)) / ios


def whole(regions: dict[tuple, Region], *key: str) -> float:
    """The same for another program, which was counted for a while."""
    region = regions[key]
    assert region.driver > 1000
    return region.user[0] / region.driver


def test_driver_is_called_for_each_io(regions: dict[tuple, Region]) -> None:
    """The driver's calls, by which the other programs' I/Os are counted, are right for ioloop,
    which reports its number."""
    for key, region in regions.items():
        if key[0] == "ioloop":
            assert region.driver == ROUNDS * key[-1] * ENGINES[key[1]].depth, key


@pytest.mark.parametrize("rw", PATTERNS)
@pytest.mark.parametrize("engine", ENGINES)
def test_loop_is_short(regions: dict[tuple, Region], engine: str, rw: str) -> None:
    mine = loop(regions, engine, rw)
    print(f"{engine} {rw}: {mine:.2f}")
    assert 5 < mine <= ENGINES[engine].limit


@pytest.mark.parametrize("engine", ENGINES)
def test_half_of_fio(regions: dict[tuple, Region], engine: str) -> None:
    """fio runs without timing each I/O, without its map of blocks and with a batch in one system
    call."""
    mine, fios = loop(regions, engine, "randread"), whole(regions, "fio", engine, "randread")
    print(f"{engine} randread: ioloop {mine:.2f}, fio {fios:.2f}")
    assert mine <= fios / 2


def test_no_more_than_t_io_uring(regions: dict[tuple, Region]) -> None:
    mine, others = loop(regions, "io_uring", "randread", *FIXED), whole(regions, "t/io_uring")
    print(f"ioloop {mine:.2f}, t/io_uring {others:.2f}")
    assert mine <= others


# Features of some kernels only, and of a module's device only.

FLAGS = ("--fixedbufs", "--registerfiles", "--single_issuer", "--defer_taskrun")


def run_flags(once: kept.Once, session: Session, kernel: str, log: Path) -> dict[str, str]:
    """What the generator's run and one with all flags of io_uring printed."""
    built = session.find(kernel).prepare(session.cache, session.apt, lambda what, part: None)
    modules = [*with_dependencies("blknull", built), *with_dependencies("biogen", built)]
    words = "--number_ios=300 --rounds=3 --cpus_allowed=0 --output-format=json"
    commands = [
        f"run generator /bin/ioloop --filename=/dev/biogen0 --ioengine=biogen {words}",
        f"run flags /bin/ioloop --filename=/dev/blknull1 --ioengine=io_uring --iodepth=32 "
        f"--direct=1 {words} " + " ".join(FLAGS),
    ]
    return boot(once, built, list(dict.fromkeys(modules)), commands, {}, log)[0]


def test_generator_and_flags(once: kept.Once, session: Session, tmp_path: Path) -> None:
    said = run_flags(once, session, KERNEL, tmp_path / "console.log")
    for name in ("generator", "flags"):
        (job,) = json.loads(said[name])["jobs"]
        assert (job["ios"], job["bytes"]) == (900, 900 * 4096)


def test_unknown_flags(once: kept.Once, session: Session, tmp_path: Path) -> None:
    """A flag of io_uring that the kernel does not know is an error."""
    with pytest.raises(GuestError, match="blknull1: io_uring_setup: Invalid argument"):
        run_flags(once, session, "debian:5.10", tmp_path / "console.log")


# Disks that vanish.

FILE_ENGINES = ("sync", "vsync", "libaio", "io_uring", "mmap", "buffered", "splice")


@pytest.fixture(scope="module")
def vanished(
    once: kept.Once, built: Built, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """The message of each engine when its disk vanishes."""
    folder = tmp_path_factory.mktemp("vanished")
    assert built.own_modules
    modules = [next(built.own_modules.rglob(f"{name}.ko*")) for name in ("configfs", "null_blk")]
    commands = []
    for engine in FILE_ENGINES:
        words = f"--filename=/dev/nullb0 --size=4m --ioengine={engine} --output-format=json"
        # Cached and mapped pages do not need the disk.
        again = " --invalidate --number_ios=1024 --rounds=1000000"
        cached = engine in ("mmap", "buffered", "splice")
        words += again if cached else " --direct=1 --time_based --runtime=100s"
        commands.append(f"run {engine} /bin/vanish /bin/ioloop {words}")
    programs = {"bin/vanish": _compile("vanish", folder)}
    return boot(once, built, modules, commands, programs, folder / "console.log")[0]


@pytest.mark.parametrize("engine", FILE_ENGINES)
def test_disk_vanishes(vanished: dict[str, str], engine: str) -> None:
    """The first I/O that fails ends the run, and is named. Successful I/Os before it are
    reported."""
    complaint, _, report = vanished[engine].partition("\n")
    result = json.loads(report)
    (job,) = result["jobs"]
    assert complaint.startswith("ioloop: job 0: /dev/nullb0: ")
    assert (result["ok"], result["stopped_by"]) == (False, "error")
    assert (job["errors"] > 0, job["ios"] > 0) == (True, True)
    assert job["first_error"]["op"] in ("read", "page fault")
