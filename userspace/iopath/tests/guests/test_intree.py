# SPDX-License-Identifier: GPL-2.0
"""Kernels that have the drivers in their tree: make intree."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.command import Command
from helpers.exported import BRANCH, exported, git
from helpers.selftests import TROUBLE
from helpers.two_cpus import START, TwoCpus
from iopath.base import process
from iopath.compare.compare import compare
from iopath.guest.guest import Record
from iopath.guest.machine import Qemu
from iopath.guest.payload import Image, Start
from iopath.guest.states import States
from iopath.kernels.built import Built
from iopath.measure.session import Session
from iopath.results import result
from iopath.results.layers import Layers

pytestmark = [pytest.mark.guest, pytest.mark.long]

DRIVERS = ("BLK_DEV_BLKNULL", "BIOGEN")


def kernel(linux: Path, how: str, *options: str) -> str:
    """The name of a kernel of the branch with the drivers as modules ("m") or built in ("y")."""
    words = [*(f"{driver}={how}" for driver in DRIVERS), *options]
    return f"git:{linux}@{BRANCH}[{','.join(words)}]"


@pytest.mark.parametrize("series", ["7.2", "7.3"])
def test_built_in(session: Session, tmp_path: Path, series: str) -> None:
    """A kernel boots with both drivers built in, and every rung of the ladder has the figures of
    the modules, to the digit."""
    linux = tmp_path / "linux"
    exported(session, series, linux)
    command = Command(session.cache.root, tmp_path)
    out = tmp_path / "out.json"
    names = [kernel(linux, how) for how in ("m", "y")]
    done = command.run("measure", *names, "--json", out, timeout=7200)
    assert done.returncode == 0, done.stderr
    whole = compare(result.load(out), Layers())
    found = {rung.title: rung.differences[names[1]] for rung in whole.rungs}
    assert len(found) > 30
    assert {rung: change.difference for rung, change in found.items() if change.difference} == {}
    assert {rung: change.functions for rung, change in found.items() if change.functions} == {}


# kselftest.

COLLECTIONS = ("blknull", "biogen")
AT = "tools/testing/selftests"

# How it is run, by what is wrong. It opens its output again, so that has to be a pipe.
RUNS = {
    "none": "mv /lib/modules /none; /kselftest/run_kselftest.sh -f | cat; mv /none /lib/modules",
    "": "/kselftest/run_kselftest.sh -f -t biogen:modules.sh -c blknull | cat",
}


def installed(linux: Path, folder: Path) -> dict[str, bytes]:
    """What "make install" of the two collections makes, by path in the guest."""
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


def results(record: Record) -> dict[str, str]:
    """The verdict of kselftest on each program, by its name, and the reason why it was skipped."""
    said = record.data.decode(errors="replace")
    reason = ""
    found = {}
    for line in said.splitlines():
        if skipped := re.match(r"# 1\.\.0 # SKIP (.*)", line):
            reason = skipped[1]
        if done := re.match(r"(ok|not ok) \d+ selftests: (\S+: \S+)(.*)", line):
            found[done[2]] = f"{done[1]}{done[3]}: {reason}" if "SKIP" in done[3] else done[1]
            reason = ""
    return found


@pytest.fixture(scope="module")
def said(session: Session, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    """What run_kselftest.sh says in a guest, with and without modules. The kernel's
    configuration has what the collections ask for."""
    folder = tmp_path_factory.mktemp("kselftest")
    linux = folder / "linux"
    exported(session, "7.2", linux)
    git(linux, "checkout", "--quiet", BRANCH)
    options = {"BINFMT_SCRIPT=y"} | {
        line.removeprefix("CONFIG_")
        for name in COLLECTIONS
        for line in (linux / AT / name / "config").read_text().splitlines()
        if line.startswith("CONFIG_")
    }
    built = session.find(kernel(linux, "m", *sorted(options))).prepare(
        session.cache, session.apt, lambda what, part: None
    )
    files = installed(linux, folder / "installed") | modules(built, folder / "root") | tools()
    files |= {f"bin/run-{name}": f"#!/bin/sh\n{text}\n".encode() for name, text in RUNS.items()}
    plan = [
        "env PATH /sbin:/bin",
        "link /proc/self/fd/1 /dev/stdout",
        "run busybox /bin/busybox --install -s /bin",
        *(f"run kselftest{name} /bin/run-{name}" for name in RUNS),
    ]
    image = Image(Start(built.vmlinuz, (START,)), plan, files)
    machine = replace(TwoCpus(), memory=1024)
    log = folder / "console.log"
    records, _ = States(session.cache).run(Qemu.find(machine.arch), machine, image, log)
    assert TROUBLE.findall(log.read_text(errors="replace")) == []
    return {record.name: record for record in records}


def test_kselftest(said: dict[str, Record]) -> None:
    """As root, with modprobe, the programs that load only the drivers pass. test_selftests.py has
    the others."""
    found = results(said["kselftest"])
    assert len(found) == 9
    assert {name: text for name, text in found.items() if text != "ok"} == {}, said[
        "kselftest"
    ].data


def test_kselftest_without_modules(said: dict[str, Record]) -> None:
    """Every program is skipped and says why."""
    found = results(said["kselftestnone"])
    assert len(found) == 13
    for name, text in found.items():
        assert re.fullmatch(r"ok # SKIP: \w+: there is no such module", text), f"{name}: {text}"
