# SPDX-License-Identifier: GPL-2.0
"""The modules' selftests, in guests of two CPUs, on release kernels and on one that looks for
faults.

The verdict comes last: the programs' TAP, the modules' unloading, the search for leaks, and the
kernel's messages. Everything that is not known to be good is a failure.
"""

import re
import shutil
import subprocess
import warnings
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.linux_source import LinuxSource
from helpers.selftests import (
    KERNELS,
    ONLINE,
    SELFTESTS,
    Coverage,
    Kernel,
    boot,
    commands_of,
    complaints,
    coverage,
    kernel,
    programs,
    run,
    source,
    verdict,
)
from helpers.two_cpus import TwoCpus
from iopath.base.cache import Cache, digest_file
from iopath.base.sources import source_root
from iopath.guest.guest import GuestError, Record
from iopath.guest.payload import Image, Start
from iopath.guest.states import States
from iopath.kernels.kbuild import make_words
from iopath.measure.session import Session

__all__ = ["coverage", "kernel", "programs", "source"]

# Programs joined by "+" run in one guest: those that "make check" runs on each kernel, and one for
# each feature of blknull.
BASICS = "modules.sh+blknull_disk"
FEATURES = "+".join(
    f"blknull_{feature}"
    for feature in ("configfs", "data", "counters", "faults", "removal", "biogen")
)
PROGRAMS = (
    BASICS, FEATURES, "blknull_remote", "blknull_churn",
    "biogen_run", "biogen_file", "biogen_limits", "biogen_reg", "biogen_io", "biogen_io_rest",
)  # fmt: skip
# These need a kernel that fails on demand, or reports which code was reached.
FAULT_PROGRAMS = ("fault_nth", "races", "fuzz")
MORE = ("biogen_run_few", *FAULT_PROGRAMS)
# "make check" runs only these.
QUICK = {
    *((kernel, BASICS) for kernel in KERNELS),
    ("7.3", "biogen_run"),
    ("debug", "biogen_run_few"),
    ("5.10", FEATURES),
    ("5.10", "biogen_file"),
    ("7.3", "blknull_remote"),
    ("7.3", "biogen_io"),
}
CASES = cases(
    (
        (kernel, program)
        for kernel in KERNELS
        for program in (*PROGRAMS, *(MORE if kernel.startswith("debug") else ()))
    ),
    quick=QUICK,
)


def limit_of(program: str) -> int:
    """Seconds that *program* may take, as its collection's settings say."""
    limits = []
    for command in commands_of(program):
        found = SELFTESTS.glob(f"*/{Path(command.split()[0]).stem}.*")
        (settings,) = (one.with_name("settings") for one in found if one.suffix != ".py")
        (seconds,) = re.findall(r"^timeout=(\d+)$", settings.read_text(), re.M)
        limits.append(int(seconds))
    return max(limits)


@pytest.mark.guest
@pytest.mark.parametrize(("kernel", "program"), CASES, indirect=["kernel"], scope="module", ids=str)
def test_program(
    states: States,
    kernel: Kernel,
    programs: dict[str, bytes],
    program: str,
    coverage: dict[str, Coverage],
    tmp_path: Path,
) -> None:
    counted = coverage.setdefault(kernel.name, Coverage(kernel)) if kernel.instrumented else None
    limit = limit_of(program)
    faults = run(
        states,
        kernel,
        program,
        programs,
        tmp_path / "console.log",
        coverage=counted,
        time_limit=limit,
    )
    if faults:
        pytest.fail("\n".join(faults), pytrace=False)


# Planted faults are found.

PLANTED_PROGRAM = {
    "no_plan": "0 plans",
    "hang": "did not end within",
    "die": "ended with status 139",
    "stop": "1 results of 2",
    "status": "ended with status 1",
    "fail": "not ok second",
    "skip": "skipped second: not today",
}
# What a module does, in one guest and in this order: after a report of its own, of the scheduler or
# of KASAN, lockdep reports nothing more.
PLANTED_MODULE = {
    "warning": "planted_init+",
    "inversion": "possible circular locking dependency",
    "sleep": "BUG: scheduling while atomic",
    "use_after_free": "KASAN: slab-use-after-free",
    "leak": "leaks: ",
}
PLANTED_RACE = {"race": "KCSAN: data-race in planted_counter"}
# Each kernel is to find one at least.
RELEASES = ("5.10", "6.1", "6.12", "7.2", "7.3", "6.12-arm64")
PLANTED = [
    *((kernel, PLANTED_MODULE) for kernel in ("debug", "debug-7.2", "debug-arm64")),
    ("kcsan", PLANTED_RACE),
    *((kernel, {fault: said}) for kernel, (fault, said) in zip(
        cycle(RELEASES), PLANTED_PROGRAM.items(), strict=False
    )),
]  # fmt: skip


def planted_module(session: Session, kernel: Kernel) -> Kernel:
    """The kernel with the module that has the faults."""
    source = SELFTESTS / "planted"
    inputs = {
        "tree": str(kernel.tree),
        "files": {path.name: digest_file(path) for path in sorted(source.iterdir())},
    }

    def make(folder: Path) -> None:
        shutil.copytree(source, folder, dirs_exist_ok=True)
        words = [*make_words(kernel.arch), f"M={folder}"]
        command = ["make", "-s", "-C", kernel.tree, *words, "modules"]
        subprocess.run(command, check=True, capture_output=True)

    built = session.cache.entry("planted", inputs, make) / "planted.ko"
    return replace(kernel, modules=kernel.modules | {"planted": built})


@pytest.mark.guest
@pytest.mark.parametrize(
    ("kernel", "wanted"),
    [case for case in PLANTED if case[0] in KERNELS],
    ids=lambda value: value if isinstance(value, str) else "+".join(value),
    indirect=["kernel"],
    scope="module",
)
def test_planted(
    states: States,
    session: Session,
    kernel: Kernel,
    programs: dict[str, bytes],
    wanted: dict[str, str],
    tmp_path: Path,
) -> None:
    log = tmp_path / "console.log"
    if wanted.keys() <= PLANTED_PROGRAM.keys():
        (fault,) = wanted
        limit = 30 if fault == "hang" else TwoCpus.time_limit
        program = f"misbehave {fault}"
        faults = run(states, kernel, program, programs, log, time_limit=limit)
    else:
        first = [
            word
            for fault in wanted
            for word in (f"insmod /modules/planted.ko fault={fault}", "rmmod planted")
        ]
        kernel = planted_module(session, kernel)
        faults = run(states, kernel, "misbehave not", programs, log, first=first, goes_on=True)
    text = "\n".join(faults)
    assert [fault for fault, said in wanted.items() if said not in text] == [], faults


LONG = {"biogen_file", "biogen_io", "biogen_run", "blknull_churn"}  # of which quick.sh runs a part


@pytest.mark.parametrize(("words", "left_out"), [(["LONG=1"], set()), ([], LONG)])
def test_in_a_kernel_tree(
    source: LinuxSource, tmp_path: Path, words: list[str], left_out: set[str]
) -> None:
    """The collections are built and installed by a kernel's own make."""
    tree, installed = tmp_path / "linux", tmp_path / "installed"
    shutil.copytree(source.kselftest().parents[2], tree)
    targets = [path.parent.name for path in SELFTESTS.glob("*/config")]
    for name in targets:
        shutil.copytree(SELFTESTS / name, tree / "tools/testing/selftests" / name)
    done = subprocess.run(
        ["make", "-C", tree / "tools/testing/selftests", "install", f"TARGETS={' '.join(targets)}",
         f"UAPI={source_root()}/kernel/include", f"INSTALL_PATH={installed}", "FORCE_TARGETS=1",
         "LDLIBS=-O0 -g0", *words],  # the last options of the compiler: only building is tested
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    listed = {
        line.partition(":")[2] for line in (installed / "kselftest-list.txt").read_text().split()
    }
    programs = {name for program in (*PROGRAMS, *FAULT_PROGRAMS) for name in program.split("+")}
    assert listed == (programs - {"biogen_io_rest"} - left_out) | {"quick.sh"}


# Whether anything is found at all.

GOOD = "TAP version 13\n1..2\n# said\nok 1 a.b\nok 2 a.c # SKIP null_blk does not poll\n"
CONSOLE = "[    0.1] Linux version\nODEBUG: selftest passed\n# WARNING: said by a program\n"


def judged(name: str, output: str, console: str = CONSOLE, leaks: str = "") -> list[str]:
    """The verdict on a program with this output."""
    records = [Record(ONLINE, 0, b"0-1\n"), Record("program", 0, output.encode())]
    if leaks:
        records.append(Record("leaks", 0, leaks.encode()))
    kernel = Kernel(name, Path(), {}, {})
    return verdict(kernel, ["program"], records, console)


def test_good() -> None:
    assert judged("5.10", GOOD) == []
    all_passed = GOOD.replace(" # SKIP null_blk does not poll", "")
    assert judged("debug", all_passed, leaks="TAP version 13\n1..1\nok 1 leaks\n") == []


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


@pytest.mark.parametrize("bad", ["", GOOD.replace("ok 1", "not ok 1"), "1..0\n"])
def test_planted_program_of_several(bad: str) -> None:
    """Each program of a guest is judged."""
    for outputs in ([GOOD, bad], [bad, GOOD]):
        records = [Record(ONLINE, 0, b"0-1\n")]
        records += [Record(str(n), 0, text.encode()) for n, text in enumerate(outputs)]
        assert verdict(Kernel("5.10", Path(), {}, {}), ["0", "1"], records, CONSOLE)


def test_planted_skip() -> None:
    """A test that may be skipped on one kernel may not be skipped on another."""
    assert judged("6.1", GOOD)


@pytest.mark.parametrize("leaks", ["", "1..1\nnot ok 1 leaks\n", "1..1\nok 1 leaks # SKIP no\n"])
def test_planted_leak(leaks: str) -> None:
    assert judged("debug", "1..1\nok 1 a\n", leaks=leaks)


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
        "Unable to handle kernel NULL pointer dereference at virtual address 0000000000000008",
        "Internal error: Oops - Undefined instruction: 0000000002000000 [#1] SMP",
        "Call trace:",
    ],
)
@pytest.mark.parametrize("time", ["", "[   12.345678] "])
def test_planted_console(line: str, time: str) -> None:
    assert judged("5.10", GOOD, f"{CONSOLE}{time}{line}\nmore\n")


NO_CACHE = """\
__kmem_cache_create_args(biogen_small) failed with error -12
Call {}:
 <TASK>
 dump_stack_lvl+0x64/0x80
 {}
"""


@pytest.mark.parametrize(
    ("word", "end"), [("Trace", "</TASK>"), ("trace", "el0t_64_sync+0x190/0x194")]
)
def test_no_memory_for_a_cache(word: str, end: str) -> None:
    """The kernel's report of that is not a failure; another report after it is."""
    said = CONSOLE + NO_CACHE.format(word, end)
    assert judged("5.10", GOOD, said) == []
    assert judged("5.10", GOOD, f"{said}Call trace:\n")


OOPS = """\
[    4.7] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI
[    4.7] RIP: 0010:hrtimer_start_range_ns+0x1c6/0x430
[    4.7] Code: 50 5e 02 00 10 0f 84 fe 01 00 00 {} <1f> 44 00 00 48 89 c2
[    4.7] Kernel panic - not syncing: Fatal exception in interrupt
"""
STALE = CONSOLE + OOPS.format("0f")
WARNED = "WARNING: CPU: 0 PID: 1 at kernel/biogen/bio.c:1 biogen_end_io+0x1/0x2 [biogen]\n"


@pytest.mark.parametrize(
    ("consoles", "boots", "warned", "good"),
    [
        ([CONSOLE], 1, 0, True),
        ([STALE, CONSOLE], 2, 1, True),
        ([STALE, STALE.replace("Oops: ", ""), CONSOLE], 3, 2, True),
        ([STALE, STALE, STALE, CONSOLE], 3, 3, False),
        # A leak that is reported is a fault of the kernel or of a module.
        ([CONSOLE + OOPS.format("cc"), CONSOLE], 1, 0, False),
        ([STALE.replace("int3", "invalid opcode"), CONSOLE], 1, 0, False),
        # Earlier findings are kept.
        ([CONSOLE + WARNED + OOPS.format("0f"), CONSOLE], 1, 0, False),
    ],
)
def test_stale_code(
    consoles: list[str],
    boots: int,
    warned: int,
    good: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If only QEMU is at fault, the guest is booted again, three times in all."""
    left = list(consoles)
    log = tmp_path / "console.log"

    def carry_out(*args: object) -> tuple[list[Record], bytes]:
        log.write_text(left.pop(0))
        if "panic" in log.read_text():
            raise GuestError("the guest crashed", [])
        return [Record("program", 0, b"")], b""

    states = States(Cache(tmp_path))
    monkeypatch.setattr(states, "run", carry_out)
    kernel = Kernel("6.12", tmp_path, {}, {})
    with warnings.catch_warnings(record=True, action="always") as said:
        records, console, faults = boot(states, kernel, TwoCpus(), Image(Start(tmp_path), []), log)
    assert (len(consoles) - len(left), len(said)) == (boots, warned)
    for warning in said:
        assert re.search("no longer there: .*the guest crashed", str(warning.message))
    assert (faults == [], len(records) == 1, complaints(kernel, console) == []) == (good,) * 3
