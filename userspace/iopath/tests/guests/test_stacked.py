# SPDX-License-Identifier: GPL-2.0
"""biogen on stacked devices, in guests: biogen and the block device return the same bytes.

Drivers that pass bios on change them, each in its own way, and some change the caller's own bio.
Below them is blknull, which ends a bio while it is being submitted, so that biogen reuses the bio
at once.
"""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.guest_files import modules, package
from helpers.selftests import (
    GIVEN,
    KERNELS,
    SELFTESTS,
    Kernel,
    boot,
    complaints,
    kernel,
    may_skip,
    programs,
    read_tap,
    source,
)
from helpers.two_cpus import START, TwoCpus
from iopath.base.cache import digest_file
from iopath.base.sources import source_root
from iopath.guest.guest import Record
from iopath.guest.payload import Image, Start
from iopath.guest.states import States
from iopath.kernels.modules import uncompressed
from iopath.kernels.sources.debian import DebianKernel, build_modules
from iopath.measure.session import Session

__all__ = ["kernel", "programs", "source"]

pytestmark = pytest.mark.guest

# Each stack of selftests/stacked/stack.sh, with the kernel's modules that it needs.
STACKS = {
    "dm-linear": ["dm-mod"],
    "dm-stripe": ["dm-mod"],
    "md-linear": ["linear"],
    "raid0": ["raid0"],
    "raid0-iostats0": ["raid0"],
    "raid1": ["raid1"],
    "bcache": ["bcache"],
    "bcache-none": ["bcache"],
    "bcache-detached": ["bcache"],
    "redirect": [],
    "redirect-hook": [],
    "redirect-later": [],
}
# Where Debian's kernels have no md linear.
NO_LINEAR = ("6.12", "6.12-arm64", "7.2", "7.3")

# "make check" uses these: each driver at least once.
QUICK_STACKS = ("dm-linear", "raid0", "raid1", "bcache", "redirect", "redirect-hook")

# Of biogen_io: all but the tests of dirty memory and bad blocks, which a stack does not have;
# and the part that "make check" runs.
CHOICE = {
    "whole": " ".join(["-T dirties -T bad_block", *(f"-v {variant}" for variant in GIVEN)]),
    "quick": "-T dirties -T edges -T fault -T coherent -T nowait -T bad_block"
    " -v given_sync -v given_aio",
}
# With a cache, bcache puts a status of its own into the caller's bio. If a later bio of the same
# O_DIRECT request has met a fault, that wipes out the error. biogen returns it.
LEFT_OUT = {"bcache": "-T fault"}

_SERIES = [name for name in KERNELS if name[0].isdigit()]
_QUICK = [(name, "quick") for name in _SERIES if name == "7.3"]
CASES = cases([*_QUICK, *((name, "whole") for name in _SERIES)], quick=_QUICK)


def redirect(session: Session, debian: DebianKernel) -> Path:
    """The module redirect.ko for a kernel."""
    folder = SELFTESTS / "stacked"
    compat = sorted((source_root() / "kernel/compat").glob("*.h"))
    files = [folder / "redirect.c", folder / "Kbuild", *compat]
    inputs = {
        "release": debian.release,
        "headers": debian.headers,
        "files": {path.name: digest_file(path) for path in files},
    }

    def make(entry: Path) -> None:
        (entry / "src/compat").mkdir(parents=True)
        for path in files:
            part = "src/compat" if path in compat else "src"
            shutil.copyfile(path, entry / part / path.name)
        build_modules(entry, debian, session.cache, session.apt, lambda what, part: None)

    return session.cache.entry("redirect", inputs, make) / "redirect.ko"


def run_on(
    states: States,
    session: Session,
    kernel: Kernel,
    programs: dict[str, bytes],
    stacks: Sequence[str],
    extent: str,
    log: Path,
) -> list[str]:
    """Run biogen_io on each of *stacks*, one after the other in one guest. Returns what went
    wrong."""
    debian = session.find(f"debian:{kernel.name}")
    assert isinstance(debian, DebianKernel)
    wanted = dict.fromkeys(module for name in stacks for module in STACKS[name])
    own = modules(session, debian, list(wanted))
    missing = [name for name in wanted if name not in own]
    assert missing == [], f"{debian.release} has no {' '.join(missing)}"

    files: dict[str, bytes] = {}
    for name, tools in (
        ("dmsetup", ["dmsetup"]),
        ("mdadm", ["mdadm"]),
        ("bcache-tools", ["make-bcache"]),
    ):
        files |= package(session, name, *tools, arch=kernel.arch)[1]
    files |= {f"bin/{name}": programs[name] for name in ("sh", "stack.sh", "biogen_io")}
    own = {
        name: uncompressed(path) for name, path in kernel.own.items() if name == "configfs"
    } | own
    files |= {f"modules/{name}.ko": data for name, data in own.items()}
    # biogen_io needs them where no disks are given, and looks for them first.
    needed = modules(session, debian, ["brd", "null_blk"])
    files |= {f"modules/{name}.ko": data for name, data in needed.items()}
    ours = kernel.modules | {"redirect": redirect(session, debian)}
    files |= {f"modules/{name}.ko": uncompressed(path) for name, path in ours.items()}
    plan = [f"insmod /modules/{name}.ko" for name in own]
    for stack in stacks:
        words = ["/bin/biogen_io", LEFT_OUT.get(stack, ""), CHOICE[extent]]
        plan.append(f"run {stack} /bin/sh /bin/stack.sh {stack} {' '.join(filter(None, words))}")
    machine = TwoCpus(cmdline=f"{TwoCpus.cmdline} panic_on_warn=1", memory=1024).on(kernel.arch)
    image = Image(Start(kernel.vmlinuz, (START,), arch=kernel.arch), plan, files)
    records, console, faults = boot(states, kernel, machine, image, log)
    faults += verdict(kernel, stacks, records, console)
    if faults:
        faults += [line for line in console.splitlines() if line.startswith("# ")][-20:]
        faults += console.splitlines()[-20:]
    return faults


def verdict(
    kernel: Kernel, stacks: Sequence[str], records: Sequence[Record], console: str
) -> list[str]:
    """Everything that is wrong with biogen_io on *stacks*."""
    faults = complaints(kernel, console)
    said = {record.name: record.data.decode(errors="replace") for record in records}
    for stack in stacks:
        tap = read_tap(said.get(stack, ""))
        if not said.get(stack, "").endswith("\n# ended with status 0\n"):
            faults.append(f"{stack}: biogen_io failed")
        faults += [f"{stack}: not ok {name}" for name in tap.failed]
        faults += [
            f"{stack}: skipped {name}: {why}"
            for name, why in tap.skipped.items()
            if not may_skip(kernel, why)
        ]
        faults += [] if tap.passed else [f"{stack}: nothing passed"]
    return faults


@pytest.mark.parametrize(("kernel", "extent"), CASES, indirect=["kernel"], scope="module")
def test_same_bytes(
    states: States,
    session: Session,
    kernel: Kernel,
    programs: dict[str, bytes],
    extent: str,
    tmp_path: Path,
) -> None:
    """On every kind of stack that the kernel has; "make check" uses a part of them."""
    wanted = STACKS if extent == "whole" else QUICK_STACKS
    stacks = [name for name in wanted if name != "md-linear" or kernel.name not in NO_LINEAR]
    faults = run_on(states, session, kernel, programs, stacks, extent, tmp_path / "console.log")
    if faults:
        pytest.fail("\n".join(faults), pytrace=False)


# The fields that show that a driver has changed a bio: its device and its end.
TESTS_OF_A_BIO = (
    "compat_bio_is_on(bio, bg->target.bdev) &&",
    "bio->bi_end_io == biogen_end_io &&",
)


@pytest.mark.parametrize("kernel", cases(_SERIES[:1], quick=()), indirect=True, scope="module")
def test_planted(
    states: States,
    session: Session,
    kernel: Kernel,
    programs: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A biogen that reuses a changed bio does not pass."""
    root = tmp_path / "source"
    shutil.copytree(source_root() / "kernel", root / "kernel")
    shutil.copyfile(source_root() / "Kbuild", root / "Kbuild")
    path = root / "kernel/biogen/submit.h"
    text = path.read_text()
    for test in TESTS_OF_A_BIO:
        assert text.count(test) == 1
        text = text.replace(test, "")
    path.write_text(text)
    found = session.find(f"debian:{kernel.name}")
    with monkeypatch.context() as patch:
        patch.setenv("IOPATH_SOURCE", str(root))
        built = found.prepare(session.cache, session.apt, lambda what, part: None)
    broken = replace(kernel, modules=built.modules)
    stacks = ("bcache", "redirect", "redirect-hook")
    faults = run_on(states, session, broken, programs, stacks, "quick", tmp_path / "console.log")
    for stack in stacks:
        assert f"{stack}: not ok io.given_sync.random" in faults
