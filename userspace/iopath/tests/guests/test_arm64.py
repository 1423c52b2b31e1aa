# SPDX-License-Identifier: GPL-2.0
"""A kernel of arm64, measured on a machine of another architecture."""

import gzip
import json
import re
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

from helpers.command import Command, build_into
from helpers.planted import differences
from iopath.base.cache import MANIFEST, SIZE, Cache
from iopath.kernels.sources.debian import DebianKernel, image_entry
from iopath.measure.session import Session
from iopath.results import result
from iopath.rungs import together

pytestmark = pytest.mark.guest

KERNEL = "debian:6.12-arm64"
RUNGS = ("--rung", "null", "--rung", "syscall", "--rung", "gen.sync", "--rung", "dio.pread")


@pytest.fixture(scope="module")
def command(session: Session, tmp_path_factory: pytest.TempPathFactory) -> Command:
    folder = tmp_path_factory.mktemp("measured")
    build_into(session, KERNEL, folder / "cache")
    return Command(folder / "cache", folder)


def run(command: Command, *words: str) -> Path:
    """The result of a command. A result exists only if the loop of a known number of instructions
    counts to that number in each boot."""
    path = command.temporary.parent / f"{words[0]}.json"
    done = command.run(*words, KERNEL, *RUNGS, "--op", "read", "--json", path)
    assert done.returncode == 0, done.stderr
    command.left_nothing()
    return path


@pytest.fixture(scope="module")
def profiled(command: Command) -> Path:
    return run(command, "profile")


@pytest.fixture(scope="module")
def measured(profiled: Path) -> dict[str, Any]:
    return json.loads(profiled.read_text())


def test_the_result_names_its_architecture(measured: dict[str, Any]) -> None:
    (kernel,) = measured["kernels"]
    assert kernel["arch"] == "aarch64"
    assert kernel["release"].endswith("-arm64")
    assert measured["machine"]["cpu"] == "neoverse-n1"


def test_boots_agree(command: Command) -> None:
    records = json.loads(run(command, "measure", "--boots", "2").read_text())["results"]
    spreads = {record["rung"]: record["boot_spread"] for record in records}
    assert len(spreads) == 4
    assert {rung: spread for rung, spread in spreads.items() if spread > 0.05} == {}


def test_functions_add_up(measured: dict[str, Any]) -> None:
    """They add up to the plugin's count, which equals the guest's clock without its own reading."""
    for record in measured["results"]:
        profile = record["profile"]
        total = sum(function["instructions"] for function in profile["functions"])
        assert abs(total - profile["instructions"]) < 0.01
        assert 0 <= record["instructions_per_io"] - profile["instructions"] < 0.2


def test_the_path_is_followed(measured: dict[str, Any]) -> None:
    """From the vector of the system call to the driver and back, with each call and return."""
    profiles = {record["rung"]: record["profile"] for record in measured["results"]}
    names = {function["name"] for function in profiles["dio.pread"]["functions"]}
    assert {"vectors", "el0_svc", "vfs_read", "submit_bio_noacct", "bio_endio"} <= names
    stacks = [stack.split(";") for stack, _ in profiles["dio.pread"]["stacks"]]
    driver = next(stack for stack in stacks if stack[-1] == "blknull_bio_fill_submit [blknull]")
    path = ["vectors", "vfs_read", "blkdev_read_iter", "submit_bio_noacct"]
    at = [next(i for i, name in enumerate(driver) if name == part) for part in path]
    assert at == sorted(at)
    for rung, profile in profiles.items():
        assert profile["unmatched_returns"] == 0, rung


# Every bio passes here once. The function begins with a hint, which is a NOP for this CPU.
FUNCTION = "submit_bio_noacct"
TOUCHED = ("gen.sync", "dio.pread")
PACIASP = 0xD503233F
WARNING = 0xD4210000  # brk #0x800
READ_COUNTER = 0xD53BE05F  # mrs xzr, cntvct_el0


def branch(at: int, to: int) -> int:
    """The instruction that jumps there."""
    return 0x14000000 | (to - at >> 2) & 0x3FFFFFF


def plant(image: bytearray, kallsyms: str) -> int:
    """Make FUNCTION execute more instructions: it jumps to its code for a warning, which has room
    for them, and back. Returns the number of these instructions."""
    lines = [line.split()[:3:2] for line in kallsyms.splitlines() if len(line.split()) == 3]
    places = {name: int(address, 16) for address, name in lines}
    begin = places[FUNCTION] - places["_text"]
    end = min(at for at in places.values() if at > places[FUNCTION]) - places["_text"]
    words = list(struct.unpack_from(f"<{(end - begin) // 4}I", image, begin))
    hook, room = words.index(PACIASP), words.index(WARNING)
    words[room : room + 3] = [PACIASP, READ_COUNTER, branch(4 * (room + 2), 4 * (hook + 1))]
    words[hook] = branch(4 * hook, 4 * room)
    struct.pack_into(f"<{len(words)}I", image, begin, *words)
    return 3


def test_planted(command: Command, profiled: Path, session: Session, tmp_path: Path) -> None:
    """Instructions that are planted in the kernel's image are found, by their function."""
    kernel = session.find(KERNEL)
    assert isinstance(kernel, DebianKernel)
    # Only the guest of the first boot has read it.
    counted = [path.read_bytes() for path in command.cache.glob("result/*/kallsyms.gz")]
    kallsyms = gzip.decompress(max(counted, key=len)).decode()
    planted = 0

    def make(folder: Path) -> None:
        nonlocal planted
        plain = kernel.prepare(session.cache, session.apt, lambda what, part: None).vmlinuz.parent
        skip = shutil.ignore_patterns(MANIFEST, SIZE)
        shutil.copytree(plain, folder, symlinks=True, dirs_exist_ok=True, ignore=skip)
        image = bytearray((folder / "vmlinuz").read_bytes())
        planted = plant(image, kallsyms)
        (folder / "vmlinuz").write_bytes(image)

    shutil.copytree(command.cache, tmp_path / "cache", symlinks=True)
    shutil.rmtree(tmp_path / "cache/image")
    Cache(tmp_path / "cache").entry(*image_entry(kernel), make)
    other = Command(tmp_path / "cache", tmp_path)
    after = run(other, "profile").rename(tmp_path / "planted.json")

    out = tmp_path / "out.json"
    done = command.run("compare", profiled, after, "--all", "--json", out)
    assert done.returncode == 0, done.stderr
    line = rf"^{FUNCTION} +block core .* \+{planted}\.00 +timestamps \+1\.00$"
    assert len(re.findall(line, done.stdout, re.MULTILINE)) == len(TOUCHED), done.stdout
    for rung, change in differences(out).items():
        moved = {row["name"]: row["difference"] for row in change["functions"] if row["difference"]}
        touched = rung in TOUCHED
        assert moved == ({FUNCTION: planted} if touched else {}), rung
        assert change["difference"] == pytest.approx(planted if touched else 0, abs=0.01)


def test_threads_share_a_file(iopath: Command, tmp_path: Path) -> None:
    """Processes on two CPUs share nothing but counters of pages; threads share the reference count
    of the file, by name, and the loop itself shares nothing."""
    words = ("--rung=null", "--rung=dio.pread", "--op=read", "--cpus=2", "--boots=1")
    out = tmp_path / "out.json"
    done = iopath.run("measure", "debian:7.2-arm64", *words, "--json", out)
    assert done.returncode == 0, done.stderr
    null, pread = result.load(out).results
    assert null.sharing.lines == []
    by_name = {part.name: part for part in pread.sharing.arrangements}
    assert list(by_name) == list(together.ARRANGEMENTS)
    for part in (by_name["devices"], by_name["files"]):
        one, other = part.instructions_per_io
        assert one == pytest.approx(other, abs=0.05)
        # The kernel folds its counters of pages less often on more CPUs.
        assert 0 < pread.instructions_per_io - one < 5
    lines = {(line.arrangement, line.kind, line.where) for line in pread.sharing.lines}
    count = ("threads", "true", "filp: struct file.f_ref.refcnt.counter")
    assert count in lines
    assert {where for _, _, where in lines - {count}} == {
        "struct pglist_data.vm_stat[NR_FOLL_PIN_ACQUIRED].counter",
        "vm_node_stat[NR_FOLL_PIN_ACQUIRED]",
    }
    (line,) = (line for line in pread.sharing.lines if line.where == count[2])
    for cpu in (0, 1):
        locked = [row.per_io for row in line.locked if row.cpu == cpu]
        assert sum(locked) == pytest.approx(2, abs=0.01)


@pytest.mark.long
def test_features(iopath: Command, tmp_path: Path) -> None:
    """What only another architecture has, or what the kernel is not configured for, is left out."""
    out = tmp_path / "out.json"
    names = ("iostats", "seccomp", "end.timer", "ext4.pread", "pti", "retpoline", "preempt.full")
    words = [word for name in names for word in ("--feature", name)]
    done = iopath.run("features", KERNEL, *words, "--boots=1", "--quiet", "--json", out)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    costs = json.loads(out.read_text())["features"]
    assert {cost["feature"]: cost["missing"] for cost in costs if "missing" in cost} == {
        **dict.fromkeys(("pti", "retpoline"), "the kernel has no CONFIG_X86"),
        "preempt.full": "the kernel has no CONFIG_PREEMPT_DYNAMIC",
    }
    found = {(cost["feature"], cost["op"]): cost for cost in costs if "missing" not in cost}
    assert abs(found["nothing", "read"]["difference"]) <= 0.05
    for name, function in (
        ("iostats", "update_io_ticks"),
        ("seccomp", "__seccomp_filter"),
        ("end.timer", "hrtimer_interrupt"),
        ("ext4.pread", "ext4_file_read_iter"),
    ):
        cost = found[name, "read"]
        assert 100 < cost["difference"] < 10_000, name
        assert function in {part["name"].partition(" ")[0] for part in cost["functions"]}
