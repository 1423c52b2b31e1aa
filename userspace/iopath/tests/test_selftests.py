# SPDX-License-Identifier: GPL-2.0
"""The modules' selftests, in guests of two CPUs, on release kernels and on one that looks for
faults.

The verdict comes last: the programs' TAP, the modules' unloading, the search for leaks, and what
the kernel said meanwhile. Whatever is not known to be good is a failure.
"""

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from linux_source import LinuxSource

from iopath import guest, process
from iopath.build import Built, build
from iopath.guest import GuestError, Image, Machine, Qemu, Record
from iopath.kernels import Tree
from iopath.measure import Session
from iopath.paths import guest_program, source_root
from iopath.plan import _uncompressed

SELFTESTS = source_root() / "selftests"
DEBUG = "debug"
KERNELS = os.environ.get("KERNEL", f"5.10 6.1 6.12 7.2 7.3 {DEBUG}").replace("debian:", "").split()

PROGRAMS = ("blknull_disk", "biogen_run", "biogen_file", "biogen_io")

# Of the kernel's own, if it has them as modules.
OWN_MODULES = ("configfs", "brd", "null_blk")

# What a kernel without a fault never says. A line that begins with "# " is a program's.
TROUBLE = re.compile(
    r"^(?!# ).*(?:\bBUG:|WARNING:|Oops:|KASAN:|UBSAN:|KFENCE:|INFO: |Kernel panic|Call Trace:"
    r"|ODEBUG: (?!selftest)|kmemleak: [1-9]|unreferenced object|general protection"
    r"|(?:list_(?:add|del)|slab) corruption|[Oo]bjects remaining|refcount_t: |lockdep is turned off"
    r"|blocked for more than|lockup|bad page|Bad page).*$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class TwoCpus(Machine):
    """A guest whose CPUs run side by side, by a clock that goes on by itself."""

    memory: int = 2048
    cmdline: str = "mitigations=off panic_on_warn=1 oops=panic"
    time_limit: int = 2400

    def processors(self) -> list[str]:
        return ["-accel", "tcg,thread=multi", "-smp", "2,sockets=2"]


@dataclass(frozen=True)
class Kernel:
    """A kernel to test on: its name, what was built, and its own modules by name."""

    name: str
    built: Built
    own: dict[str, Path]


@pytest.fixture(scope="module")
def source(session: Session) -> LinuxSource:
    return LinuxSource(session)


@pytest.fixture(scope="module", params=KERNELS)
def kernel(request: pytest.FixtureRequest, session: Session, source: LinuxSource) -> Kernel:
    name = request.param
    if name == DEBUG:
        tree = Tree(source.tree("minimal.config", "debug.config"))
        found, below = tree, [tree.path / "drivers/block"]
    else:
        found, below = session.find(f"debian:{name}"), []
    built = build(found, session.cache, session.apt, lambda what, part: None)
    if name != DEBUG and built.own_modules:
        below = [built.own_modules]
    own = {}
    for module in OWN_MODULES:
        for folder in below:
            for path in folder.rglob(f"{module}.ko*"):
                own[module] = path
    return Kernel(name, built, own)


@pytest.fixture(scope="module")
def programs(source: LinuxSource, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Every program of the selftests, by name."""
    out = tmp_path_factory.mktemp("selftests")
    for makefile in sorted(SELFTESTS.glob("*/Makefile")):
        done = subprocess.run(
            [process.need("make", "make"), "-s", "-C", makefile.parent,
             f"KSELFTEST={source.kselftest()}", f"OUTPUT={out}"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return {path.name: path.read_bytes() for path in out.iterdir()}


@dataclass(frozen=True)
class Tap:
    """What a program said in the Test Anything Protocol."""

    passed: list[str]
    failed: list[str]
    skipped: dict[str, str]  # by name: the reason


def read_tap(text: str) -> Tap:
    """Read TAP; whatever departs from its plan is in *failed*."""
    plans = re.findall(r"^1\.\.(\d+)", text, re.MULTILINE)
    tap = Tap([], [], {})
    numbers = []
    for line in text.splitlines():
        match = re.match(r"(not )?ok (\d+) (?:- )?(\S+)(?: *# *SKIP\b(.*))?", line)
        if not match:
            continue
        failed, number, name, reason = match.groups()
        numbers.append(int(number))
        if failed:
            tap.failed.append(name)
        elif reason is not None:
            tap.skipped[name] = reason.strip()
        else:
            tap.passed.append(name)
    if len(plans) != 1:
        tap.failed.append(f"{len(plans)} plans")
    elif numbers != list(range(1, int(plans[0]) + 1)):
        tap.failed.append(f"{len(numbers)} results of {plans[0]}")
    return tap


def run(
    kernel: Kernel, commands: Sequence[str], programs: dict[str, bytes], log: Path
) -> list[Record]:
    """Boot *kernel* with the modules and the programs at hand, and carry out *commands*."""
    files = {"init": guest_program("init").read_bytes()}
    files |= {f"bin/{name}": data for name, data in programs.items()}
    modules = kernel.own | kernel.built.modules
    files |= {f"modules/{name}.ko": _uncompressed(path) for name, path in modules.items()}
    plan = ["insmod /modules/configfs.ko"] if "configfs" in kernel.own else []
    image = Image(kernel.built.vmlinuz, [*plan, *commands], files)
    records, _ = guest.boot(Qemu.find(), TwoCpus(), image, log)
    return records


ONLINE = "/sys/devices/system/cpu/online"

# Why a test may be skipped, and on which kernels alone.
SKIPS = {
    "registered buffers are always there": None,
    "pages of files cannot be registered": None,
    "no page cache of blocks that fail": None,
    "null_blk does not poll": ("5.10",),
}


def verdict(kernel: Kernel, program: str, records: Sequence[Record], log: str) -> list[str]:
    """Everything that is not as it must be."""
    outputs = {record.name: record.data.decode(errors="replace") for record in records}
    tap = read_tap(outputs.get(program, ""))
    faults = [f"not ok {name}" for name in tap.failed]
    faults += [
        f"skipped {name}: {reason}"
        for name, reason in tap.skipped.items()
        if reason not in SKIPS or kernel.name not in (SKIPS[reason] or [kernel.name])
    ]
    if not tap.passed:
        faults.append("nothing passed")
    if outputs.get(ONLINE) != "0-1\n":
        faults.append(f"CPUs: {outputs.get(ONLINE)}")
    if kernel.name == DEBUG and read_tap(outputs.get("leaks", "")) != Tap(["leaks"], [], {}):
        faults.append(f"leaks: {outputs.get('leaks', 'not searched for')}")
    return faults + [match.group(0) for match in TROUBLE.finditer(log)]


@pytest.mark.guest
@pytest.mark.parametrize("program", PROGRAMS)
def test_program(kernel: Kernel, programs: dict[str, bytes], program: str, tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    commands = [
        f"file {ONLINE}",
        f"run {program} /bin/{program}",
        *(f"insmod /modules/{module}.ko" for module in kernel.built.modules),
        *(f"rmmod {module}" for module in kernel.built.modules),
        *(["run leaks /bin/leaks"] if kernel.name == DEBUG else []),
    ]
    faults = []
    try:
        records = run(kernel, commands, programs, log)
    except GuestError as error:
        records = error.records
        faults.append(str(error))
    console = log.read_text(errors="replace")
    faults += verdict(kernel, program, records, console)
    if faults:
        said = [line for line in console.splitlines() if line.startswith("# ")]
        pytest.fail("\n".join([*faults, *said[-20:]]), pytrace=False)


# Whether anything is found at all.

GOOD = "TAP version 13\n1..2\n# said\nok 1 a.b\nok 2 a.c # SKIP null_blk does not poll\n"
CONSOLE = "[    0.1] Linux version\nODEBUG: selftest passed\n# WARNING: said by a program\n"


def judged(name: str, output: str, console: str = CONSOLE, leaks: str = "") -> list[str]:
    """The verdict on a program with this output."""
    records = [Record(ONLINE, 0, b"0-1\n"), Record("program", 0, output.encode())]
    if leaks:
        records.append(Record("leaks", 0, leaks.encode()))
    return verdict(SimpleNamespace(name=name), "program", records, console)


def test_good() -> None:
    assert judged("5.10", GOOD) == []
    all_passed = GOOD.replace(" # SKIP null_blk does not poll", "")
    assert judged(DEBUG, all_passed, leaks="TAP version 13\n1..1\nok 1 leaks\n") == []


@pytest.mark.parametrize(
    "output",
    [
        "",
        GOOD.replace("1..2\n", ""),
        GOOD.replace("1..2", "1..3"),
        GOOD.replace("1..2", "1..1"),
        GOOD.replace("ok 2", "ok 3"),
        GOOD.replace("ok 1 a.b\n", ""),
        GOOD.replace("ok 1", "not ok 1"),
        GOOD.replace("does not poll", "is not there"),
        GOOD + GOOD,
        "1..0\n",
    ],
)
def test_planted_output(output: str) -> None:
    assert judged("5.10", output)


def test_planted_skip() -> None:
    """What may be skipped on one kernel may not be on another."""
    assert judged("6.1", GOOD)


@pytest.mark.parametrize("leaks", ["", "1..1\nnot ok 1 leaks\n", "1..1\nok 1 leaks # SKIP no\n"])
def test_planted_leak(leaks: str) -> None:
    assert judged(DEBUG, "1..1\nok 1 a\n", leaks=leaks)


@pytest.mark.parametrize(
    "line",
    [
        "WARNING: CPU: 0 PID: 1 at kernel/biogen/bio.c:1 biogen_end_io+0x1/0x2 [biogen]",
        "WARNING: possible circular locking dependency detected",
        "BUG: KASAN: slab-use-after-free in biogen_end_io+0x1/0x2",
        "BUG: sleeping function called from invalid context at mm/page.c:1",
        "UBSAN: shift-out-of-bounds in bio.c:1:2",
        "INFO: task biogen_io:123 blocked for more than 120 seconds.",
        "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
        "ODEBUG: free active (active state 0) object: work_struct",
        "Oops: general protection fault, probably for non-canonical address 0x1: 0000 [#1] SMP",
    ],
)
@pytest.mark.parametrize("time", ["", "[   12.345678] "])
def test_planted_console(line: str, time: str) -> None:
    assert judged("5.10", GOOD, f"{CONSOLE}{time}{line}\nmore\n")
