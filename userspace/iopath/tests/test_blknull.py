# SPDX-License-Identifier: GPL-2.0
"""blknull in guests: its own instructions, beside those of null_blk on the same kernel; and what
others make of a device that holds data: fio's verification, and a file system."""

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fio
import pytest
from cases import cases
from two_cpus import START, TwoCpus

from iopath import guest, measure, plan, process
from iopath.build import Built, _deb_of, _unpack, build
from iopath.guest import Image, Qemu
from iopath.kernels import DebianKernel
from iopath.measure import Session
from iopath.paths import guest_program
from iopath.plan import Run, Settings, _uncompressed, _with_dependencies
from iopath.rungs import RUNGS, select

pytestmark = pytest.mark.guest

KERNELS = os.environ.get("KERNEL", "6.1 6.12 7.2").replace("debian:", "").split()

# Own instructions.

LIMIT = 15  # for a bio
# Into a program's memory, into registered buffers, and from the kernel's own pages.
BIO_RUNGS = ("dio.pread", "dio.aio.100", "dio.uring", "dio.uring.fixed", "gen.batch")
SHAPES = [rung.name.removeprefix("mq.") for rung in RUNGS if rung.name.startswith("mq.")]


# Of one kernel, by rung and operation: instructions per I/O, all of them and the driver's own.
Figures = dict[tuple[str, str], tuple[float, float]]


def figures(found: dict[str, Any]) -> Figures:
    return {
        (record["rung"], record["op"]): (
            record["instructions_per_io"],
            sum(
                function["instructions"]
                for function in record["profile"]["functions"]
                if function["layer"] == "driver"
            ),
        )
        for record in found["results"]
    }


@pytest.fixture(scope="module")
def bios(request: pytest.FixtureRequest, session: Session) -> Figures:
    """The generator's device fills what is read from it, here, as the other one does."""

    def make_image(built: Built, runs: Sequence[Run], settings: Settings) -> Image:
        image = plan.make_image(built, runs, settings)
        image.plan[:] = [line.replace("zero_fill=1,0", "zero_fill=1") for line in image.plan]
        assert any(line.endswith(" zero_fill=1") for line in image.plan)
        return image

    names = [f"debian:{request.param}"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "make_image", make_image)
        return figures(session.measure(names, Settings(select(BIO_RUNGS), profile=True)))


@pytest.fixture(scope="module")
def requests(request: pytest.FixtureRequest, session: Session) -> Figures:
    names = [f"debian:{request.param}"]
    return figures(session.measure(names, Settings(select(["mq.*", "nullb.*"]), profile=True)))


ENDS = cases(KERNELS, quick=(KERNELS[0], KERNELS[-1]))


@pytest.mark.parametrize("bios", ENDS, indirect=True)
def test_own_of_a_bio(bios: Figures) -> None:
    """Few enough; reads that have to be filled, which take hundreds for that, are another thing."""
    own = {
        f"{rung} {op}": bios[rung, op][1]
        for rung in BIO_RUNGS
        for op in ("read", "write")
        if (rung, op) != ("gen.batch", "read")
    }
    print(own)
    assert {name: count for name, count in own.items() if not 0 < count <= LIMIT} == {}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("requests", ENDS, indirect=True)
def test_request_beside_null_blk(requests: Figures, shape: str) -> None:
    """At most half of null_blk's own instructions, and no longer path in all."""
    for op in ("read", "write"):
        whole, own = requests[f"mq.{shape}", op]
        other_whole, other_own = requests[f"nullb.{shape}", op]
        print(f"{shape} {op}: {own:.1f} of {whole:.1f},"
              f" null_blk {other_own:.1f} of {other_whole:.1f}")  # fmt: skip
        assert 0 < own <= other_own / 2
        assert whole <= other_whole


# Data.


@dataclass(frozen=True)
class Kernel:
    """A kernel of Debian's, and what was built for it."""

    debian: DebianKernel
    built: Built


@pytest.fixture(scope="module")
def kernel(request: pytest.FixtureRequest, session: Session) -> Kernel:
    debian = session.find(f"debian:{request.param}")
    assert isinstance(debian, DebianKernel)
    return Kernel(debian, build(debian, session.cache, session.apt, lambda what, part: None))


def carry_out(
    kernel: Kernel, commands: list[str], files: dict[str, bytes], log: Path
) -> dict[str, str]:
    """Boot with blknull at hand: what the commands said. Fails if one did, or the kernel."""
    files = {**files, "init": guest_program("init").read_bytes()}
    load = []
    for path in _with_dependencies("blknull", kernel.built):
        name = path.name.split(".")[0]
        files[f"modules/{name}.ko"] = _uncompressed(path)
        load.append(f"insmod /modules/{name}.ko")
    load[-1] += " nr_devices=2 mode=bio,mq size_mb=256 memory_backed=1 discard=1 write_cache=1"
    image = Image(kernel.built.vmlinuz, [START, *load, *commands, "rmmod blknull"], files)
    cmdline = f"{TwoCpus.cmdline} panic_on_warn=1"
    machine = TwoCpus(memory=2048, cmdline=cmdline, time_limit=1200)
    records, _ = guest.boot(Qemu.find(), machine, image, log)
    console = log.read_text(errors="replace")
    assert re.findall(r".*(?:\bBUG\b|WARNING|Oops|I/O error|Call Trace).*", console) == []
    return {record.name: record.data.decode(errors="replace") for record in records}


_VERIFY = (
    "--direct=1 --size=32m --verify=crc32c --verify_fatal=1 --verify_dump=0 --output-format=terse"
    " --terse-version=3"
)
_PART = f"--io_size=16m {_VERIFY}"
JOBS = {
    "mixed": f"--rw=randwrite --ioengine=io_uring --iodepth=16 --bsrange=512-1m {_VERIFY}",
    "libaio": f"--rw=randwrite --ioengine=libaio --iodepth=16 --bsrange=4k-64k {_PART}",
    "psync": f"--rw=randrw --ioengine=psync --bs=4k {_PART}",
    "trimwrite": f"--rw=trimwrite --ioengine=libaio --iodepth=8 --bs=4k {_PART}",
}


@pytest.mark.parametrize("kernel", cases(KERNELS, quick=KERNELS[:1]), indirect=True, scope="module")
def test_fio_verifies(session: Session, kernel: Kernel, tmp_path: Path) -> None:
    """On both modes: random and mixed sizes, by every engine, with discards between."""
    _, files = fio.program(session)
    commands = [
        f"run {job}.{number} /bin/fio --name={job} --filename=/dev/blknull{number} {options}"
        for number in (0, 1)
        for job, options in JOBS.items()
    ]
    outputs = carry_out(kernel, commands, files, tmp_path / "console.log")
    for number in (0, 1):
        for job in JOBS:
            # Fields of a version 3 terse line: the error is the 5th, KiB read the 6th.
            fields = outputs[f"{job}.{number}"].strip().splitlines()[-1].split(";")
            assert fields[4] == "0", (job, number)
            assert int(fields[5]) > 8 << 10, (job, number)


# ext4 and what it needs; what a kernel has built in, or no longer has, is left out.
_EXT4 = (
    "crc16", "crc32c_generic", "crc32c-cryptoapi", "libcrc32c", "mbcache", "jbd2", "ext4",
)  # fmt: skip

_SCRIPT = """
set -e
/bin/busybox mkdir -p /mnt /tmp
for device in /dev/blknull0 /dev/blknull1; do
	/sbin/mke2fs -q -t ext4 -E discard $device
	for round in 1 2; do
		/bin/busybox mount -t ext4 -o discard $device /mnt
		for i in 1 2 3 4 5 6 7 8; do
			/bin/busybox dd if=/dev/urandom of=/tmp/$i bs=64k count=$((i * 4)) 2>/dev/null
			/bin/busybox mkdir -p /mnt/$round/$i
			/bin/busybox cp /tmp/$i /mnt/$round/$i/file
		done
		/bin/busybox umount /mnt
		/sbin/e2fsck -fn $device
		/bin/busybox mount -t ext4 -o discard $device /mnt
		for i in 1 2 3 4 5 6 7 8; do
			/bin/busybox cmp /tmp/$i /mnt/$round/$i/file
		done
		/bin/busybox rm -r /mnt/$round/3 /mnt/$round/5
		/bin/busybox umount /mnt
		/sbin/e2fsck -fn $device
	done
	echo $device is good
done
"""


def with_libraries(name: str, package: str) -> dict[str, bytes]:
    """A program of this machine and its libraries, by their paths in a guest."""
    path = process.need(name, package)
    listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    paths = re.findall(r"(/\S+) \(0x", listed)
    files = {found.lstrip("/"): Path(found).read_bytes() for found in paths}
    return files | {f"sbin/{name}": Path(path).read_bytes()}


def ext4_modules(session: Session, kernel: Kernel) -> dict[str, bytes]:
    """The kernel's modules for ext4, in the order in which they are loaded."""
    debian = kernel.debian

    def make(folder: Path) -> None:
        session.apt.download(debian.image, debian.suite, closure=False, progress=lambda part: None)
        for package in debian.image:
            wanted = ["*/kernel/fs/*", "*/kernel/lib/*", "*/kernel/crypto/*"]
            _unpack(_deb_of(session.apt, package), folder, only=wanted)

    entry = session.cache.entry("ext4", {"packages": debian.image}, make)
    found = {name: next(entry.rglob(f"{name}.ko*"), None) for name in _EXT4}
    return {name: _uncompressed(path) for name, path in found.items() if path}


@pytest.mark.parametrize(
    "kernel", cases(KERNELS, quick=KERNELS[-1:]), indirect=True, scope="module"
)
def test_ext4(session: Session, kernel: Kernel, tmp_path: Path) -> None:
    """Made, mounted, written, checked, read again and checked again, on both modes."""
    modules = ext4_modules(session, kernel)
    files = {f"modules/{name}.ko": data for name, data in modules.items()}
    files |= with_libraries("mke2fs", "e2fsprogs") | with_libraries("e2fsck", "e2fsprogs")
    files |= {
        "bin/busybox": Path(process.need("busybox", "busybox-static")).read_bytes(),
        "bin/script": _SCRIPT.encode(),
    }
    commands = [f"insmod /modules/{name}.ko" for name in modules]
    commands.append("run ext4 /bin/busybox sh /bin/script")
    said = carry_out(kernel, commands, files, tmp_path / "console.log")["ext4"]
    assert re.findall(r"(\S+) is good", said) == ["/dev/blknull0", "/dev/blknull1"]
