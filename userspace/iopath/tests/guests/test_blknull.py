# SPDX-License-Identifier: GPL-2.0
"""blknull in guests: its own instructions, compared with those of null_blk on the same kernel; and
devices that hold data: fio's verification, file systems, and removal under load."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from helpers import fio
from helpers.cases import cases
from helpers.guest_files import modules, package
from helpers.two_cpus import START, TwoCpus
from iopath.base import process
from iopath.guest.machine import Qemu
from iopath.guest.payload import Image, Start
from iopath.guest.states import States
from iopath.kernels.built import Built
from iopath.kernels.modules import uncompressed, with_dependencies
from iopath.kernels.sources.debian import DebianKernel
from iopath.measure import counting, known, plan
from iopath.measure.session import Session
from iopath.results.result import Result
from iopath.rungs.builtin import RUNGS, select
from iopath.rungs.runs import Run, Settings

pytestmark = pytest.mark.guest

KERNELS = os.environ.get("KERNEL", "6.1 6.12 7.2").replace("debian:", "").split()

# Own instructions.

LIMIT = 15  # for a bio
# Into a program's memory, into registered buffers, and from the kernel's own pages.
BIO_RUNGS = ("dio.pread", "dio.aio.100", "dio.uring", "dio.uring.fixed", "gen.batch")
SHAPES = [rung.name.removeprefix("nullb.") for rung in RUNGS if rung.name.startswith("nullb.")]


# By rung and operation on one kernel: instructions per I/O, all of them and the driver's own.
Figures = dict[tuple[str, str], tuple[float, float]]


def figures(found: Result) -> Figures:
    return {
        (record.rung, record.op): (
            record.instructions_per_io,
            sum(
                function.instructions
                for function in record.profile.functions
                if function.layer == "driver"
            ),
        )
        for record in found.results
    }


@pytest.fixture(scope="module")
def bios(request: pytest.FixtureRequest, session: Session) -> Figures:
    """Here the generator's device fills reads, as blknull0 does. What is known of the kernel is
    not used, and the figures are not kept as such."""

    def make_image(built: Built, runs: Sequence[Run], settings: Settings) -> Image:
        image = plan.make_image(built, runs, settings)
        image.plan[:] = [line.replace("zero_fill=1,0,1", "zero_fill=1,1,1") for line in image.plan]
        assert any(" zero_fill=1,1,1" in line for line in image.plan)
        return image

    names = [f"debian:{request.param}"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "make_image", make_image)
        patch.setattr(known, "read", lambda cache, inputs: None)
        patch.setattr(known, "keep", lambda cache, inputs, found: None)
        return figures(session.measure(names, Settings(select(BIO_RUNGS), profile=True)))


@pytest.fixture(scope="module")
def requests(request: pytest.FixtureRequest, session: Session) -> Figures:
    names = [f"debian:{request.param}"]
    return figures(session.measure(names, Settings(select(["mq.*", "nullb.*"]), profile=True)))


ENDS = cases(KERNELS, quick=(KERNELS[0], KERNELS[-1]))


@pytest.mark.parametrize("bios", ENDS, indirect=True)
def test_own_of_a_bio(bios: Figures) -> None:
    """They are few enough, except for reads that must be filled, which takes hundreds."""
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
    """It takes at most half of null_blk's own instructions, and the whole path is not longer."""
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
    return Kernel(debian, debian.prepare(session.cache, session.apt, lambda what, part: None))


# Devices that hold data, /dev/blknull0 and so on, by how they end an I/O: their parameters.
DEVICES = {
    "bio": "mode=bio",
    "mq": "mode=mq",
    "softirq": "mode=mq completion=softirq",
    "timer": "mode=mq completion=timer",
    "delayed": "mode=bio faults=1 delay_every=3 delay_nsec=50000",
}


def device_parameters() -> str:
    """The parameters of the module for DEVICES: a list of values each."""
    each = [dict(word.split("=") for word in words.split()) for words in DEVICES.values()]
    default = {"completion": "inline", "faults": "0", "delay_every": "0", "delay_nsec": "1000000"}
    lists = {
        name: ",".join(device.get(name, default.get(name, "")) for device in each)
        for name in ("mode", *default)
    }
    words = [f"nr_devices={len(each)}", *(f"{name}={values}" for name, values in lists.items())]
    return " ".join([*words, "size_mb=320 memory_backed=1 discard=1 write_cache=1"])


def carried_out(
    states: States,
    kernel: Kernel,
    commands: list[str],
    files: dict[str, bytes],
    log: Path,
    *,
    programs: dict[str, bytes] | None = None,
    errors: bool = False,
    parameters: str = "",
) -> dict[str, str]:
    """The output of *commands* in a guest with DEVICES and with biogen's module. Fails if a command
    or the kernel does. *programs* are files that exist from the start; *errors*: I/O may fail."""
    files = dict(files)
    load = []
    for path in with_dependencies("blknull", kernel.built):
        name = path.name.split(".")[0]
        files[f"modules/{name}.ko"] = uncompressed(path)
        load.append(f"insmod /modules/{name}.ko")
    load[-1] += f" {parameters or device_parameters()}"
    files["modules/biogen.ko"] = uncompressed(kernel.built.modules["biogen"])
    start = Start(kernel.built.vmlinuz, (START,), programs or {})
    image = Image(start, [*load, *commands, "rmmod blknull"], files)
    cmdline = f"{TwoCpus.cmdline} panic_on_warn=1"
    machine = TwoCpus(memory=2048, cmdline=cmdline, time_limit=1200)
    records, _ = states.run(Qemu.find(), machine, image, log)
    words = ["BUG", "WARNING", "Oops", "Call Trace", *([] if errors else ["I/O error"])]
    console = log.read_text(errors="replace")
    assert re.findall(rf".*\b(?:{'|'.join(words)})\b.*", console) == []
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
    "pvsync2": f"--rw=randrw --ioengine=pvsync2 --bsrange=512-64k {_PART}",
    "trimwrite": f"--rw=trimwrite --ioengine=libaio --iodepth=8 --bs=4k {_PART}",
}
# By an engine that waits and by one that does not.
TWO_JOBS = ("mixed", "pvsync2")


def busybox(script: str) -> dict[str, bytes]:
    """The files that "run NAME /bin/busybox sh /bin/script" needs in a guest."""
    program = Path(process.need("busybox", "busybox-static"))
    return {"bin/busybox": program.read_bytes(), "bin/script": script.encode()}


def verify(path: str, jobs: Iterable[str]) -> list[str]:
    """The commands that run *jobs* on a device."""
    return [f"run {job}.{path} /bin/fio --name={job} --filename={path} {JOBS[job]}" for job in jobs]


def check_verified(outputs: dict[str, str], commands: list[str]) -> None:
    """No error was found, and enough was read."""
    for name in (command.split()[1] for command in commands if command.startswith("run ")):
        # Fields of a version 3 terse line: the error is the 5th, KiB read the 6th.
        fields = outputs[name].strip().splitlines()[-1].split(";")
        assert fields[4] == "0", name
        assert int(fields[5]) > 8 << 10, name


@pytest.mark.parametrize("kernel", cases(KERNELS, quick=KERNELS[:1]), indirect=True, scope="module")
def test_fio_verifies(states: States, session: Session, kernel: Kernel, tmp_path: Path) -> None:
    """On both modes, by every engine, with random and mixed sizes and with discards; on the other
    devices, by two engines."""
    _, programs = fio.program(session)
    commands = []
    for number, name in enumerate(DEVICES):
        commands += verify(f"/dev/blknull{number}", JOBS if name in ("bio", "mq") else TWO_JOBS)
    log = tmp_path / "console.log"
    outputs = carried_out(states, kernel, commands, {}, log, programs=programs)
    check_verified(outputs, commands)


@pytest.mark.parametrize("kernel", cases(KERNELS, quick=()), indirect=True, scope="module")
def test_fio_verifies_biogen(
    states: States, session: Session, kernel: Kernel, tmp_path: Path
) -> None:
    """The same through biogen, on each device."""
    _, programs = fio.program(session)
    commands = []
    for number, name in enumerate(DEVICES):
        # It discards nothing.
        jobs = [job for job in JOBS if job != "trimwrite"] if name == "bio" else TWO_JOBS
        commands.append(f"insmod /modules/biogen.ko device=/dev/blknull{number} write=1")
        commands += [
            command.replace(f"{job}.", f"{job}.{name}.", 1)
            for job, command in zip(jobs, verify("/dev/biogen0", jobs), strict=True)
        ]
        commands.append("rmmod biogen")
    log = tmp_path / "console.log"
    outputs = carried_out(states, kernel, commands, {}, log, programs=programs)
    check_verified(outputs, commands)


# Removal.

# How a device in configfs is made: each mode.
MODES = (
    "mode=bio",
    "mode=bio max_sectors=8 max_segments=4 virt_boundary=1",
    "mode=bio faults=1 delay_every=3",
    "mode=mq",
    "mode=mq completion=softirq submit_queues=2",
    "mode=mq completion=timer completion_nsec=50000",
    "mode=mq poll_queues=2",
)

_REMOVAL = """
set -e
mount -t configfs none /sys/kernel/config
item=/sys/kernel/config/blknull/item
disk=/dev/blknull9

ios() {
	awk '{ print $1 + $5 }' /sys/block/blknull9/stat
}

seconds() {
	cut -d. -f1 /proc/uptime
}

removed() {
	mkdir $item
	for word in index=9 size_mb=64 memory_backed=1 iostats=1 "$@"; do
		echo ${word#*=} >$item/${word%%=*}
	done
	echo 1 >$item/power
	insmod /modules/biogen.ko device=$disk write=1
	/bin/fio --output-format=terse --direct=1 --rw=randrw --bsrange=512-64k --size=64m \
		--time_based=1 --runtime=600 \
		--name=a --filename=/dev/biogen0 --ioengine=io_uring --iodepth=16 \
		--name=b --filename=/dev/biogen0 --ioengine=libaio --iodepth=16 \
		--name=c --filename=/dev/biogen0 --ioengine=pvsync2 \
		--name=d --filename=$disk --ioengine=io_uring --iodepth=16 \
		--name=e --filename=$disk --ioengine=pvsync2 >/fio.log 2>&1 &
	fio=$!
	until [ $(ios) -gt 2000 ]; do
		kill -0 $fio
		sleep 0.1
	done
	echo 0 >$item/power
	start=$(seconds)
	# Every job finds out.
	if wait $fio; then exit 1; fi
	[ $(($(seconds) - start)) -lt 300 ]
	[ ! -e $disk ]
	[ -z "$(dd if=/dev/biogen0 bs=4k count=1 2>/dev/null)" ]
	rmmod biogen
	rmdir $item
	echo "good: $*"
}

"""


@pytest.mark.parametrize("kernel", cases(KERNELS, quick=()), indirect=True, scope="module")
def test_removed_under_load(
    states: States, session: Session, kernel: Kernel, tmp_path: Path
) -> None:
    """A device of each mode is removed while fio uses it, through biogen and directly: all I/O
    ends."""
    script = _REMOVAL + "".join(f"removed {mode}\n" for mode in MODES)
    _, programs = fio.program(session)
    commands = ["run said /bin/busybox sh /bin/script"]
    log = tmp_path / "console.log"
    outputs = carried_out(
        states, kernel, commands, busybox(script), log, programs=programs, errors=True
    )
    assert re.findall(r"^good: (.*)$", outputs["said"], re.MULTILINE) == list(MODES)


# File systems.


@dataclass(frozen=True)
class FileSystem:
    """The kernel's modules for a file system, the package of its programs, how it is made and
    checked."""

    modules: tuple[str, ...]
    package: str
    make: str
    check: str


FILE_SYSTEMS = {
    "ext4": FileSystem(
        ("crc32c_generic", "crc32c-cryptoapi", "ext4"), "e2fsprogs",
        "/bin/mke2fs -q -t ext4 -E discard", "/bin/e2fsck -fn",
    ),
    "xfs": FileSystem(
        ("crc32c_generic", "crc32c-cryptoapi", "xfs"), "xfsprogs",
        "/bin/mkfs.xfs -q", "/bin/xfs_repair -n",
    ),
}  # fmt: skip

_SCRIPT = """
set -e
mkdir -p /mnt /tmp
for device in /dev/blknull0 /dev/blknull1; do
	$make $device
	for round in 1 2; do
		mount -t $fs -o discard $device /mnt
		for i in 1 2 3 4 5 6 7 8; do
			dd if=/dev/urandom of=/tmp/$i bs=64k count=$((i * 4)) 2>/dev/null
			mkdir -p /mnt/$round/$i
			cp /tmp/$i /mnt/$round/$i/file
		done
		umount /mnt
		$check $device
		mount -t $fs -o discard $device /mnt
		for i in 1 2 3 4 5 6 7 8; do
			cmp /tmp/$i /mnt/$round/$i/file
		done
		rm -r /mnt/$round/3 /mnt/$round/5
		umount /mnt
		$check $device
	done
	# Files written side by side in several ways, and holes made in another one; then read again.
	for part in "" --verify_only=1; do
		mount -t $fs -o discard $device /mnt
		/bin/fio --directory=/mnt --size=4m --verify=crc32c --verify_fatal=1 --verify_dump=0 \
			--output-format=terse $part \
			--name=mmap --rw=randwrite --ioengine=mmap --bs=4k \
			--name=buffered --rw=randwrite --ioengine=pvsync2 --bsrange=512-64k --fsync=64 \
			--name=direct --rw=randwrite --ioengine=libaio --iodepth=16 --direct=1 \
			--bsrange=4k-256k \
			--name=uring --rw=randwrite --ioengine=io_uring --iodepth=16 --direct=1 --bs=8k
		[ -n "$part" ] ||
			/bin/fio --directory=/mnt --size=4m --output-format=terse --name=holes \
				--rw=randtrim --ioengine=falloc --bs=16k --fallocate=native
		umount /mnt
		$check $device
	done
	echo $device is good
done
"""


_EACH = [(kernel, name) for kernel in KERNELS for name in FILE_SYSTEMS]


@pytest.mark.parametrize(
    ("kernel", "name"), cases(_EACH, quick=_EACH[-2:-1]), indirect=["kernel"], scope="module"
)
def test_file_system(
    states: States, session: Session, kernel: Kernel, name: str, tmp_path: Path
) -> None:
    """A file system is made, mounted, written, checked, read again and checked again, on both
    modes."""
    fs = FILE_SYSTEMS[name]
    own = modules(session, kernel.debian, fs.modules)
    files = {f"modules/{module}.ko": data for module, data in own.items()}
    tools = [command.split()[0].removeprefix("/bin/") for command in (fs.make, fs.check)]
    files |= package(session, fs.package, *tools)[1]
    _, programs = fio.program(session)
    script = f"fs={name} make='{fs.make}' check='{fs.check}'\n{_SCRIPT}"
    files |= busybox(script)
    commands = [f"insmod /modules/{module}.ko" for module in own]
    commands.append("run said /bin/busybox sh /bin/script")
    log = tmp_path / "console.log"
    outputs = carried_out(states, kernel, commands, files, log, programs=programs)
    said = outputs["said"]
    assert re.findall(r"(\S+) is good", said) == ["/dev/blknull0", "/dev/blknull1"]
    jobs = [line.split(";") for line in said.splitlines() if line.startswith("3;fio-")]
    read = [(job[2], job[4]) for job in jobs if int(job[5]) >= 4 << 10]
    assert sorted(read) == sorted(
        (job, "0") for job in ("mmap", "buffered", "direct", "uring") for _ in range(4)
    )


# Files on a real-time device: XFS keeps everything else elsewhere, so this device may forget them.
_BOUNCE = """
set -e
/bin/busybox mkdir -p /mnt /tmp
/bin/busybox dd if=/dev/zero of=/tmp/zeroes bs=1M count=8 2>/dev/null
for device in blknull1 blknull2; do
	echo 1 >/sys/block/$device/queue/stable_writes
	/bin/mkfs.xfs -q -f -r rtdev=/dev/$device -d rtinherit=1 /dev/blknull0
	/bin/busybox mount -t xfs -o rtdev=/dev/$device /dev/blknull0 /mnt
	/bin/busybox dd if=/tmp/zeroes of=/mnt/file bs=1M oflag=direct 2>/dev/null
	/bin/busybox dd if=/mnt/file of=/tmp/read bs=1M iflag=direct 2>/dev/null
	/bin/busybox cmp /tmp/read /tmp/zeroes
	/bin/busybox umount /mnt
	echo $device is good
done
"""


@pytest.mark.parametrize(
    "kernel", cases(KERNELS, quick=KERNELS[-1:]), indirect=True, scope="module"
)
def test_bounced_reads(states: States, session: Session, kernel: Kernel, tmp_path: Path) -> None:
    """From 7.0 on, if the device wants stable pages, XFS reads into the kernel's own memory and
    copies that to the program: it must contain only zeroes."""
    own = modules(session, kernel.debian, FILE_SYSTEMS["xfs"].modules)
    files = {f"modules/{name}.ko": data for name, data in own.items()}
    files |= package(session, "xfsprogs", "mkfs.xfs")[1] | busybox(_BOUNCE)
    commands = [f"insmod /modules/{name}.ko" for name in own]
    commands.append("run xfs /bin/busybox sh /bin/script")
    parameters = "nr_devices=3 mode=bio,bio,mq size_mb=512 memory_backed=1,0"
    log = tmp_path / "console.log"
    outputs = carried_out(states, kernel, commands, files, log, parameters=parameters)
    assert re.findall(r"(\S+) is good", outputs["xfs"]) == ["blknull1", "blknull2"]
