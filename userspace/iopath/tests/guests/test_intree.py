# SPDX-License-Identifier: GPL-2.0
"""Kernels that have the drivers in their tree: make intree."""

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from helpers.command import Command
from helpers.exported import BRANCH, exported, git
from helpers.selftests import TROUBLE
from helpers.two_cpus import START, TwoCpus
from iopath.base import process
from iopath.compare.compare import compare
from iopath.guest.machine import Machine, Qemu
from iopath.guest.payload import Image, Start
from iopath.guest.states import States
from iopath.kernels.built import Built
from iopath.kernels.recipe import LLVM
from iopath.measure.session import Session
from iopath.results import result
from iopath.results.layers import Layers

pytestmark = [pytest.mark.guest, pytest.mark.long]

DRIVERS = ("BLK_DEV_BLKNULL", "BIOGEN")
PROGRAMS = 12  # of both collections without LONG=1
COLLECTIONS = ("blknull", "biogen")
AT = "tools/testing/selftests"


@pytest.fixture(scope="module")
def repositories(
    session: Session, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """A repository with the branch, by series."""

    @cache
    def made(series: str) -> Path:
        linux = tmp_path_factory.mktemp(series) / "linux"
        exported(session, series, linux)
        return linux

    return made


def kernel(linux: Path, how: str, *options: str) -> str:
    """The name of a kernel of the branch with the drivers as modules ("m") or built in ("y"), and
    with what kselftest's collections ask for."""
    asked = {"BINFMT_SCRIPT=y"}
    for name in COLLECTIONS:
        config = git(linux, "show", f"{BRANCH}:{AT}/{name}/config").splitlines()
        asked |= {line.removeprefix("CONFIG_") for line in config if line.startswith("CONFIG_")}
    words = [*(f"{driver}={how}" for driver in DRIVERS), *sorted(asked), *options]
    return f"git:{linux}@{BRANCH}[{','.join(words)}]"


def prepare(session: Session, name: str) -> Built:
    return session.find(name).prepare(session.cache, session.apt, lambda what, part: None)


@pytest.mark.parametrize("series", ["7.2", "7.3"])
def test_built_in(
    session: Session, repositories: Callable[[str], Path], tmp_path: Path, series: str
) -> None:
    """A kernel boots with both drivers built in, and every rung of the ladder has the figures of
    the modules, to the digit."""
    command = Command(session.cache.root, tmp_path)
    out = tmp_path / "out.json"
    names = [kernel(repositories(series), how) for how in ("m", "y")]
    done = command.run("measure", *names, "--json", out, timeout=7200)
    assert done.returncode == 0, done.stderr
    whole = compare(result.load(out), Layers())
    found = {rung.title: rung.differences[names[1]] for rung in whole.rungs}
    assert len(found) > 30
    assert {rung: change.difference for rung, change in found.items() if change.difference} == {}
    assert {rung: change.functions for rung, change in found.items() if change.functions} == {}


DEVICE = "/sys/module/biogen/parameters/device"


@pytest.mark.parametrize(
    ("disk", "later"), [("/dev/blknull0", []), ("/dev/absent", [f"write {DEVICE} /dev/blknull0"])]
)
def test_named_at_boot(
    session: Session,
    states: States,
    repositories: Callable[[str], Path],
    tmp_path: Path,
    disk: str,
    later: list[str],
) -> None:
    """Built in, the command line names the disk. If there is none of that name, the node can be
    made later."""
    built = prepare(session, kernel(repositories("7.2"), "y"))
    machine = Machine(cmdline=f"blknull.nr_devices=1 biogen.device={disk}")
    plan = [
        f"file {DEVICE}",
        *later,
        "run dd /bin/busybox dd if=/dev/biogen0 bs=65536 count=2",
        f"file {DEVICE}",
    ]
    image = Image(Start(built.vmlinuz, ()), plan, tools())
    log = tmp_path / "console.log"
    records, _ = states.run(Qemu.find(machine.arch), machine, image, log)
    listed = b"biogen0 blknull0\n"
    before, read, after = records
    assert (before.data, after.data) == (b"" if later else listed, listed)
    assert len(read.data) == 2 * 65536
    console = log.read_text(errors="replace")
    assert TROUBLE.findall(console) == []
    assert (f"biogen: cannot open device={disk}" in console) == bool(later)


# kselftest.

# How it is run, by what is wrong. It opens its output again, so that has to be a pipe.
RUNS = {
    "none": "mv /lib/modules /none; /kselftest/run_kselftest.sh -f | cat; mv /none /lib/modules",
    "": "/kselftest/run_kselftest.sh -f | cat",
}


@pytest.fixture(scope="module")
def installed(
    repositories: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """What "make install" of the two collections makes, by path in the guest."""
    linux, folder = repositories("7.2"), tmp_path_factory.mktemp("installed")
    git(linux, "checkout", "--quiet", BRANCH)
    words = [f"TARGETS={' '.join(COLLECTIONS)}", "FORCE_TARGETS=1", f"INSTALL_PATH={folder}"]
    for command in (["-C", linux, "headers"], ["-C", linux / AT, *words, "install"]):
        done = subprocess.run(
            [process.need("make", "make"), "-s", *command],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
    return {
        f"kselftest/{path.relative_to(folder)}": path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def modules(built: Built, folder: Path) -> dict[str, bytes]:
    """The kernel's own modules, as modprobe finds them."""
    at = folder / "lib/modules" / built.release
    shutil.copytree(built.own_modules, at / "kernel")
    subprocess.run(
        [process.need("depmod", "kmod"), "-b", folder, built.release], check=True,
        capture_output=True,
    )  # fmt: skip
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in at.rglob("*") if path.is_file()
    }


def tools() -> dict[str, bytes]:
    """A shell, commands, and modprobe, with their libraries. The shell of busybox would
    take its own modprobe, which lacks options."""
    paths = {
        "sbin/modprobe": process.need("modprobe", "kmod"),
        "bin/sh": process.need("dash", "dash"),
    }
    libraries = subprocess.check_output(["ldd", *paths.values()], text=True)
    paths |= {path.lstrip("/"): path for path in re.findall(r"/\S+(?= \()", libraries)}
    paths["bin/busybox"] = process.need("busybox", "busybox-static")
    return {name: Path(path).read_bytes() for name, path in paths.items()} | {
        "etc/passwd": b"root::0:0::/:/bin/sh\nuser::1000:1000::/:/bin/sh\n"
    }


def results(said: bytes) -> dict[str, str]:
    """The verdict of kselftest on each program, by its name, and the reason why it was skipped."""
    reason = ""
    found = {}
    for line in said.decode(errors="replace").splitlines():
        if skipped := re.match(r"# 1\.\.0 # SKIP (.*)", line):
            reason = skipped[1]
        if done := re.match(r"(ok|not ok) \d+ selftests: (\S+: \S+)(.*)", line):
            found[done[2]] = f"{done[1]}{done[3]}: {reason}" if "SKIP" in done[3] else done[1]
            reason = ""
    return found


def boot(
    session: Session,
    machine: Machine,
    start: Sequence[str],
    name: str,
    installed: dict[str, bytes],
    folder: Path,
    commands: Sequence[str],
) -> list[bytes]:
    """Carry out commands in the kernel *name*, with kselftest in /kselftest. Returns what they
    say."""
    built = prepare(session, name)
    files = installed | modules(built, folder / "root") | tools()
    files |= {f"bin/run-{run}": f"#!/bin/sh\n{text}\n".encode() for run, text in RUNS.items()}
    plan = [
        "env PATH /sbin:/bin",
        "link /proc/self/fd/1 /dev/stdout",
        "run busybox /bin/busybox --install -s /bin",
        *commands,
    ]
    image, log = Image(Start(built.vmlinuz, tuple(start)), plan, files), folder / "console.log"
    records, _ = States(session.cache).run(Qemu.find(machine.arch), machine, image, log)
    assert TROUBLE.findall(log.read_text(errors="replace")) == []
    return [record.data for record in records[-len(commands) :]]


@pytest.mark.parametrize("compiler", [(), (LLVM,)], ids=["gcc", "clang"])
def test_kselftest(
    session: Session,
    repositories: Callable[[str], Path],
    installed: dict[str, bytes],
    tmp_path: Path,
    compiler: tuple[str, ...],
) -> None:
    """As root, with modprobe, every program passes. Without modules, every program is skipped and
    says why."""
    name = kernel(repositories("7.2"), "m", *compiler)
    machine = replace(TwoCpus(), memory=1024)
    commands = [f"run kselftest{name} /bin/run-{name}" for name in RUNS]
    without, said = boot(session, machine, [START], name, installed, tmp_path, commands)
    found = results(said)
    assert len(found) == PROGRAMS
    assert {name: text for name, text in found.items() if text != "ok"} == {}, said
    skipped = results(without)
    assert len(skipped) == PROGRAMS
    for name, text in skipped.items():
        assert re.fullmatch(r"ok # SKIP: \w+: there is no such module", text), f"{name}: {text}"


STAT = "file /proc/stat"


def seconds(before: bytes, after: bytes) -> tuple[float, float]:
    """For how long the CPU waited between two readings of /proc/stat, and was busy."""
    ticks = [[int(word) for word in text.split()[1:9]] for text in (before, after)]
    passed = [(end - begin) / 100 for begin, end in zip(*ticks, strict=True)]
    waited = sum(passed[3:5])
    return waited, sum(passed) - waited


def test_kselftest_is_short(
    session: Session,
    repositories: Callable[[str], Path],
    installed: dict[str, bytes],
    tmp_path: Path,
) -> None:
    """Every program passes with one CPU. The default set takes less than 45 s on hardware that
    executes three instructions per nanosecond. The clock of this guest counts one instruction as
    one nanosecond."""
    commands = [STAT, "run kselftest /bin/run-", STAT]
    name = kernel(repositories("7.2"), "m")
    # High-resolution timers need a clock that the kernel relies on.
    machine = Machine(cmdline=f"{Machine.cmdline} tsc=reliable")
    before, said, after = boot(session, machine, [], name, installed, tmp_path, commands)
    found = results(said)
    assert len(found) == PROGRAMS
    assert {name: text for name, text in found.items() if text != "ok"} == {}, said
    waited, busy = seconds(before, after)
    assert waited + busy / 3 < 45
