# SPDX-License-Identifier: GPL-2.0
"""The rungs that are built in, and the ladder that some of them make.

They are the table at the end of this file. rungfile.py reads further ones from a TOML file, with
the same fields.
"""

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import replace

from iopath.base.devices import INSTANT
from iopath.base.errors import UsageError, did_you_mean
from iopath.rungs.rung import CACHED, CACHED_SIZE, Module, Overrides, Rung


def select(patterns: Sequence[str], added: Sequence[Rung] = ()) -> list[Rung]:
    """The rungs whose names match any of *patterns* (shell wildcards), in their order. Without a
    pattern these are the *added* ones, or the ladder if none were added."""
    if not patterns:
        return list(added or LADDER)
    every = (*RUNGS, *added)
    for pattern in patterns:
        if not matching([pattern], every):
            raise UsageError(unknown(pattern, [rung.name for rung in every]))
    return matching(patterns, every)


def matching(patterns: Sequence[str], rungs: Iterable[Rung]) -> list[Rung]:
    """Those of *rungs* whose names match any of *patterns*."""
    return [
        rung
        for rung in rungs
        if any(fnmatch.fnmatchcase(rung.name, pattern) for pattern in patterns)
    ]


def unknown(name: str, known: Sequence[str]) -> str:
    """A message that no rung has the *name*."""
    families = {f"{rung.partition('.')[0]}.*" for rung in known if "." in rung}
    near = f": did you mean '{name}.*'?" if f"{name}.*" in families else did_you_mean(name, known)
    return f"unknown rung '{name}'{near} (iopath rungs lists all)"


def overrides(*, fill: bool, coherent: bool) -> Overrides:
    """The parameters of modules that --no-fill and --incoherent change."""
    found: dict[str, dict[str, str]] = {}
    if not fill:
        found["blknull"] = {"zero_fill": "0"}
    if not coherent:
        found["biogen"] = {"coherent": "0"}
    return found


# The built-in rungs.

BIOGEN = "/dev/biogen0"  # on a device of its own, which it opens exclusively
_DEVICE = "/dev/blknull0"
_MQ_DEVICE = "/dev/blknull2"
_NULL_BLK_DEVICE = "/dev/nullb0"  # the kernel's own null device, which takes requests, too

# The generator reads into the kernel's own memory, so its device need not fill the buffers. The
# third takes requests; it is accounted and has a queue to poll, as null_blk is. The search for a
# free tag begins at a random one, and stays in that word of the bitmap; in the last word it takes
# some instructions more. With the most tags there are 160 words.
_BLKNULL = Module(
    "blknull",
    (
        ("nr_devices", "3"), ("zero_fill", "1,0,1"), ("mode", "bio,bio,mq"),
        ("iostats", "0,0,1"), ("poll_queues", "0,0,1"), ("hw_queue_depth", "64,64,10240"),
    ),
)  # fmt: skip
_WORD = 64  # tags in a word of the bitmap: when all were used, they are freed together
_BIOGEN = Module("biogen", (("device", "/dev/blknull1"), ("write", "1")))
# As blknull is by itself: one queue, no scheduler, an end where it is submitted.
_NULL_BLK = Module(
    "null_blk",
    (
        ("nr_devices", "1"), ("gb", "1"), ("bs", "512"), ("queue_mode", "2"), ("irqmode", "0"),
        ("submit_queues", "1"), ("poll_queues", "1"), ("hw_queue_depth", "10240"),
        ("no_sched", "1"),
    ),
)  # fmt: skip

_REMOTE = Module("blknull", (("nr_devices", "1"), ("complete_cpu", "next")))
_REMOTE_MQ = Module("blknull", (
    *_REMOTE.parameters, ("mode", "mq"), ("completion", "softirq"), ("hw_queue_depth", "1024"),
))  # fmt: skip

_CACHED = (CACHED, CACHED_SIZE)
_BUFFERED = ("--ioengine=buffered", *_CACHED)
_URING = ("--ioengine=io_uring", "--direct=1", "--iodepth=32")
_FIXED = (*_URING, "--fixedbufs", "--registerfiles")


def on_each(rung: Rung, cpus: int) -> tuple[Rung, tuple[str, ...], tuple[str, ...]]:
    """A rung with the modules to have a target for each of *cpus* CPUs, the steps that make those
    targets, and the targets. There are none for a rung that is not built in or that has a layer on
    its device."""
    known = ((_BLKNULL,), (_BLKNULL, _BIOGEN), (_NULL_BLK,), (_REMOTE,), (_REMOTE_MQ,))
    if rung.modules not in known or rung.begin:
        return rung, (), ()
    module = rung.modules[0]
    parameters = dict(module.parameters)
    if module == _BLKNULL:
        parameters = {name: _each(cpus, *values.split(",")) for name, values in module.parameters}
    count = int(dict(module.parameters)["nr_devices"])
    parameters["nr_devices"] = str(count * cpus)
    if module == _NULL_BLK:
        parameters["submit_queues"] = str(cpus)
    stem = (rung.target or "").rstrip("0123456789")
    begin = cpus * int((rung.target or "")[len(stem) :])
    nodes = tuple(f"{stem}{begin + number}" for number in range(cpus))
    module = Module(module.name, tuple(parameters.items()))
    if rung.modules != (_BLKNULL, _BIOGEN):
        return replace(rung, modules=(module,)), (), nodes
    own = [f"/dev/blknull{cpus + number}" for number in range(cpus)]
    biogen = Module("biogen", (("device", own[0]), ("write", "1")))
    return replace(rung, modules=(module, biogen)), more_biogen(own[1:]), nodes


def _each(cpus: int, *values: str) -> str:
    """A list parameter with each of *values* for so many devices."""
    return ",".join(value for value in values for _ in range(cpus))


def more_biogen(devices: Sequence[str]) -> tuple[str, ...]:
    """The steps that make a node of biogen for each of *devices*."""
    if not devices:
        return ()
    folder = "/sys/kernel/config"
    steps = [f"mount configfs {folder}"]
    for number, device in enumerate(devices):
        node = f"{folder}/biogen/more{number}"
        steps += [f"mkdir {node}", f"write {node}/device {device}"]
        steps += [f"write {node}/write 1", f"write {node}/power 1"]
    return tuple(steps)


# Ways of doing I/O that both the block device and biogen's character device know:
# name, what it is, options, I/Os at a time.
_SHAPES: tuple[tuple[str, str, tuple[str, ...], int], ...] = (
    ("pread", "pread and pwrite", ("--ioengine=sync", "--direct=1"), 1),
    ("preadv", "preadv2 and pwritev2", ("--ioengine=vsync", "--direct=1"), 1),
    ("aio.1", "io_submit, one at a time", ("--ioengine=libaio", "--direct=1", "--iodepth=1"), 1),
    ("aio.100", "io_submit of 100", ("--ioengine=libaio", "--direct=1", "--iodepth=100"), 100),
    ("uring", "io_uring, 32 at a time", _URING, 32),
    ("uring.fixed", "io_uring, fixed buffers and files", _FIXED, 32),
)

_LADDER = (
    Rung("null", "the loop alone", ("--ioengine=null",)),
    Rung("syscall", "an empty system call", ("--ioengine=syscall",)),
    *(
        Rung(
            f"gen.{name}",
            f"bios from a kernel thread, {about}",
            ("--ioengine=biogen", f"--iodepth={batch}"),
            batch,
            BIOGEN,
            modules=(_BLKNULL, _BIOGEN),
            own_threads=False,
        )
        for name, about, batch in (("sync", "one at a time", 1), ("batch", "100 in flight", 100))
    ),
    *(
        Rung(f"{family}.{name}", f"{about}, {how}", options, batch, target, modules=modules)
        for family, how, target, modules in (
            ("raw", "direct to bio", BIOGEN, (_BLKNULL, _BIOGEN)),
            ("dio", "O_DIRECT", _DEVICE, (_BLKNULL,)),
        )
        for name, about, options, batch in _SHAPES
    ),
    Rung(
        "buf.pread",
        "pread and pwrite, cached",
        _BUFFERED,
        target=_DEVICE,
        modules=(_BLKNULL,),
    ),
    Rung(
        "splice",
        "splice to a pipe and on to /dev/null, cached",
        ("--ioengine=splice", *_CACHED),
        target=_DEVICE,
        can=("read",),
        modules=(_BLKNULL,),
    ),
)

# Through requests of blk-mq. A round takes whole words of tags, if its batch allows that.
_REQUESTS = tuple(
    Rung(
        f"{family}.{name}", f"{about}, {driver}", options, batch, target, modules=modules,
        round_ios=None if batch == 100 else 2 * _WORD,
        alone=batch == 100 or family.startswith("remote"),
    )
    for family, driver, target, modules in (
        ("mq", "blknull in mode mq", _MQ_DEVICE, (_BLKNULL,)),
        ("nullb", "null_blk", _NULL_BLK_DEVICE, (_NULL_BLK,)),
        ("remote", "ends on the next CPU", _DEVICE, (_REMOTE,)),
        ("remote.mq", "ends on the next CPU by softirq", _DEVICE, (_REMOTE_MQ,)),
    )
    for name, about, options, batch in (
        *_SHAPES,
        ("uring.polled", "io_uring, 32 at a time, polled", (*_URING, "--hipri"), 32),
    )
    if not family.startswith("remote") or name in ("pread", "aio.100", "uring")
)  # fmt: skip
_ON_THE_LADDER = ("mq.pread", "mq.uring")  # of these

# Drivers of devices that the emulator has, plugged in. Each has one queue and no scheduler. Some
# kernels have them built in. What a batch costs depends on how many of its I/Os an interrupt ends.
_DRIVERS = tuple(
    Rung(
        f"{family}.{name}", f"{about}, {driver}", options, batch, f"/dev/{disk}", devices=devices,
        modules=tuple(Module(name, optional=True) for name in needs), needs=tuple(needs.values()),
        begin=(
            "write /sys/bus/pci/rescan 1", f"wait /sys/block/{disk}/queue/scheduler",
            f"wait /dev/{disk}", f"write /sys/block/{disk}/queue/scheduler none",
        ),
    )
    for family, driver, disk, needs, devices in (
        ("nvme", "NVMe", "nvme0n1", {"nvme": "CONFIG_BLK_DEV_NVME"},
         ((("driver", "nvme"), ("serial", "iopath"), ("max_ioqpairs", 1), ("drive", "disk")),)),
        ("virtio", "virtio-blk", "vda",
         {"virtio_pci": "CONFIG_VIRTIO_PCI", "virtio_blk": "CONFIG_VIRTIO_BLK"},
         ((("driver", "virtio-blk-pci"), ("num-queues", 1), ("drive", "disk")),)),
        ("scsi", "virtio-scsi", "sda",
         {"virtio_pci": "CONFIG_VIRTIO_PCI", "virtio_scsi": "CONFIG_SCSI_VIRTIO",
          "sd_mod": "CONFIG_BLK_DEV_SD"},
         ((("driver", "virtio-scsi-pci"), ("num_queues", 1), ("id", "scsi")),
          (("driver", "scsi-hd"), ("bus", "scsi.0"), ("drive", "disk")))),
        ("ahci", "AHCI", "sda",
         {"ahci": "CONFIG_SATA_AHCI", "sd_mod": "CONFIG_BLK_DEV_SD"},
         ((("driver", "ide-hd"), ("bus", "ide.0"), ("drive", "disk")),)),
    )
    for name, about, options, batch in _SHAPES
    if name in ("pread", "aio.1", "uring", "uring.fixed")
)  # fmt: skip

# Drivers that need no device. A target of NVMe or SCSI on blknull has its host in the same kernel:
# commands stay in memory, or pass a connection of TCP. The disk of NVMe is one of several paths
# (multipath). Kernel threads do a part of the work.
_CONFIGFS = "/sys/kernel/config"
_SUBSYSTEM = f"{_CONFIGFS}/nvmet/subsystems/iopath"
_PORT = f"{_CONFIGFS}/nvmet/ports/1"
_BACKSTORE = f"{_CONFIGFS}/target/core/iblock_0/disk"
_TCM_LOOP = f"{_CONFIGFS}/target/loopback/naa.6001405000000000"


def _nvme_target(connect: str, **port: str) -> tuple[str, ...]:
    """Steps that make a target and connect its host with it."""
    return (
        f"mount configfs {_CONFIGFS}", f"mkdir {_SUBSYSTEM}",
        f"write {_SUBSYSTEM}/attr_allow_any_host 1", f"mkdir {_SUBSYSTEM}/namespaces/1",
        f"write {_SUBSYSTEM}/namespaces/1/device_path {_DEVICE}",
        f"write {_SUBSYSTEM}/namespaces/1/enable 1", f"mkdir {_PORT}",
        *(f"write {_PORT}/addr_{name} {value}" for name, value in port.items()),
        f"link {_SUBSYSTEM} {_PORT}/subsystems/iopath",
        f"write /dev/nvme-fabrics {connect},nqn=iopath,nr_io_queues=1",
        "wait /dev/nvme0n1", "write-if /sys/block/nvme0c0n1/queue/scheduler none",
    )  # fmt: skip


_NO_DEVICE = tuple(
    Rung(
        f"{name}.pread", about, ("--ioengine=sync", "--direct=1"), target=f"/dev/{disk}",
        modules=modules, begin=(*begin, f"write-if /sys/block/{disk}/queue/scheduler none"),
        # The scheduler's timer comes each millisecond where tasks take turns.
        round_ios=ios, alone=True, since=(6, 16) if name == "ublk.zc" else (),
    )
    for name, ios, about, disk, modules, begin in (
        ("brd", None, "a RAM disk", "ram0",
         (Module("brd", (("rd_nr", "1"), ("rd_size", "65536"))),), ()),
        ("zram", None, "compressed memory, which reads as zeroes", "zram0",
         (Module("zram"),), ("write /sys/block/zram0/disksize 64M",)),
        ("scsi_debug", None, "a SCSI disk that ends each command at once", "sda",
         (Module("sd_mod", optional=True),
          Module("scsi_debug", (("delay", "0"), ("fake_rw", "1"), ("dev_size_mb", "64")))),
         ("wait /sys/block/sda/queue/scheduler", "wait /dev/sda")),
        ("tcm_loop", 10, "a SCSI disk whose target is in memory, on blknull", "sda",
         (_BLKNULL, Module("sd_mod", optional=True), Module("target_core_iblock"),
          Module("tcm_loop")),
         (f"mount configfs {_CONFIGFS}", f"mkdir {_BACKSTORE.rpartition('/')[0]}",
          f"mkdir {_BACKSTORE}", f"write {_BACKSTORE}/control udev_path={_DEVICE}",
          f"write {_BACKSTORE}/enable 1", f"mkdir {_TCM_LOOP.rpartition('/')[0]}",
          f"mkdir {_TCM_LOOP}", f"mkdir {_TCM_LOOP}/tpgt_1",
          f"write {_TCM_LOOP}/tpgt_1/nexus naa.6001405000000001",
          f"mkdir {_TCM_LOOP}/tpgt_1/lun/lun_0",
          f"link {_BACKSTORE} {_TCM_LOOP}/tpgt_1/lun/lun_0/disk",
          "wait /sys/block/sda/queue/scheduler", "wait /sys/block/sda/bdi", "wait /dev/sda")),
        ("nvme-loop", 10, "NVMe's host and target in memory, on blknull", "nvme0n1",
         (_BLKNULL, Module("nvme-loop")), _nvme_target("transport=loop", trtype="loop")),
        ("nvme-tcp", 2, "NVMe's host and target, TCP over loopback, on blknull", "nvme0n1",
         (_BLKNULL, Module("nvme-tcp"), Module("nvmet-tcp")),
         ("up lo",
          *_nvme_target(
              "transport=tcp,traddr=127.0.0.1,trsvcid=4420,keep_alive_tmo=0", trtype="tcp",
              adrfam="ipv4", traddr="127.0.0.1", trsvcid="4420",
          ))),
        ("nbd", 2, "a network block device; its server answers with zeroes", "nbd0",
         (Module("nbd", (("nbds_max", "1"), ("max_part", "0"))),), ("nbd /dev/nbd0",)),
        ("ublk", 2, "a block device of ublk; its server answers with zeroes", "ublkb0",
         (Module("ublk_drv"),), ("ublk 0", "wait /dev/ublkb0")),
        ("ublk.zc", 2, "the same without a copy: the server leaves data as it is", "ublkb0",
         (Module("ublk_drv"),), ("ublk 0 zero-copy", "wait /dev/ublkb0")),
    )
)  # fmt: skip

# Drivers that Debian's kernels lack: they are measured where a kernel of a tree or a repository has
# them.
_RNULL = f"{_CONFIGFS}/rnull/rnullb0"
_RARE = (
    Rung(
        "rnull.pread", "pread and pwrite, the null device that is written in Rust",
        ("--ioengine=sync", "--direct=1"), target="/dev/rnullb0",
        modules=(Module("rnull_mod", optional=True),), needs=("CONFIG_BLK_DEV_RUST_NULL",),
        since=(6, 18), alone=True,
        begin=(f"mount configfs {_CONFIGFS}", f"mkdir {_RNULL}", f"write {_RNULL}/power 1",
               "wait /dev/rnullb0", "write-if /sys/block/rnullb0/queue/scheduler none"),
    ),
    Rung(
        "vdpa.pread", "pread and pwrite, a virtio disk of vDPA's simulator",
        ("--ioengine=sync", "--direct=1"), target="/dev/vda", round_ios=10, alone=True,
        modules=tuple(
            Module(name, optional=True) for name in ("vdpa_sim_blk", "virtio_vdpa", "virtio_blk")
        ),
        needs=("CONFIG_VDPA_SIM_BLOCK", "CONFIG_VIRTIO_VDPA", "CONFIG_VIRTIO_BLK"),
        tools=(("iproute2", "vdpa"),),
        begin=("run vdpa /bin/vdpa dev add name disk mgmtdev vdpasim_blk",
               "wait /sys/block/vda/queue/scheduler", "wait /dev/vda",
               "write /sys/block/vda/queue/scheduler none"),
    ),
)  # fmt: skip

# The same disk of NVMe past its block device, and by biogen's character device on it.
_NVME = next(rung for rung in _DRIVERS if rung.name == "nvme.uring")
_COMMANDS = ("--ioengine=io_uring_cmd", "--iodepth=32")
# With a second queue, which is polled.
_POLLED = ((("driver", "nvme"), ("serial", "iopath"), ("max_ioqpairs", 2), ("drive", INSTANT)),)
_ON_NVME = (
    *(
        replace(
            _NVME, name=f"nvme.{name}", about=f"{about}, NVMe passthrough",
            options=(*_COMMANDS, *more), target="/dev/ng0n1",
        )
        for name, about, more in (
            ("cmd", "commands by io_uring, 32 at a time", ()),
            ("cmd.fixed", "commands, fixed buffers and files",
             ("--fixedbufs", "--registerfiles")),
        )
    ),
    *(
        replace(
            _NVME, name=f"nvme.raw.{name}", about=f"{about}, direct to bio on NVMe",
            options=options, batch=batch, target=BIOGEN, modules=(*_NVME.modules, Module("biogen")),
            begin=(*_NVME.begin, *more_biogen([_NVME.target or ""])),
        )
        for name, about, options, batch in _SHAPES
        if name in ("pread", "uring", "uring.fixed")
    ),
    *(
        replace(
            _NVME, name=f"nvme.{name}", about=f"{about}, polled", options=(*options, "--hipri"),
            target=target, modules=(Module("nvme", (("poll_queues", "1"),)),),
            devices=_POLLED,
        )
        for name, about, options, target in (
            ("uring.polled", "io_uring, 32 at a time, NVMe", _URING, _NVME.target),
            ("cmd.polled", "commands by io_uring, NVMe passthrough",
             (*_COMMANDS, "--direct=1"), "/dev/ng0n1"),
        )
    ),
)  # fmt: skip

# Memory that is registered with biogen's open file.
_REGISTERED = tuple(
    Rung(
        f"raw.{name}.reg", f"{about}, direct to bio, registered pages",
        (*options, "--registermem"), batch, BIOGEN, modules=(_BLKNULL, _BIOGEN),
    )
    for name, about, options, batch in _SHAPES
    if name in ("pread", "aio.1", "aio.100", "uring")
)  # fmt: skip

# What the published records of I/Os per second on a core ran: t/io_uring -b512 -d128 -c32 -s32 -p1
# -F1 -B1, with no statistics, no merges and no throttling of writeback. A device that ends an I/O
# at once never has more than the 32 in flight that are submitted together.
_PEAK = tuple(
    Rung(
        f"peak.{name}", f"io_uring of published records, {driver}",
        (*_FIXED, *(("--hipri",) if polls else ())), 32, f"/dev/{disk}",
        modules=(Module(module, tuple(parameters)),),
        begin=(
            f"write /sys/block/{disk}/queue/iostats 0", f"write /sys/block/{disk}/queue/nomerges 2",
            f"write-if /sys/block/{disk}/queue/wbt_lat_usec 0",
        ),
        round_ios=2 * _WORD, alone=True,
    )
    for name, driver, disk, polls, module, parameters in (
        ("mq", "blknull in mode mq, polled", "blknull0", True, "blknull",
         (("nr_devices", "1"), ("mode", "mq"), ("poll_queues", "1"), ("hw_queue_depth", "10240"))),
        ("bio", "blknull in mode bio", "blknull0", False, "blknull", (("nr_devices", "1"),)),
        ("null_blk", "null_blk, polled", "nullb0", True, "null_blk", _NULL_BLK.parameters),
    )
)  # fmt: skip

# Layers on a device. Each is measured alone, and compared with the rung that is its base.

_SECTORS = 1 << 21  # of a device of 1 GiB
_KEY = "0123456789abcdef" * 8  # of dm-crypt: 64 bytes


def _on(
    device: str, name: str, about: str, modules: Sequence[str], *begin: str,
    base: str = "dio.pread", ios: int | None = None,
) -> Rung:  # fmt: skip
    """pread and pwrite on a device that *begin* makes of blknull's."""
    own = tuple(Module(module.removesuffix("?"), optional=module[-1] == "?") for module in modules)
    return Rung(
        f"{name}.pread", about, ("--ioengine=sync", "--direct=1"), target=device,
        modules=(_BLKNULL, *own), begin=begin, base=base, round_ios=ios, alone=True,
    )  # fmt: skip


def _md(level: str, *more: str) -> tuple[str, ...]:
    """Steps that make an array of two devices, which has no superblock."""
    md = "/sys/block/md0/md"
    return (
        "write /sys/module/md_mod/parameters/new_array md0",
        f"write {md}/metadata_version none", f"write {md}/level {level}",
        f"write {md}/raid_disks 2", *(f"write {md}/{step}" for step in more),
        *(
            step
            for disk in (0, 1)
            for step in (
                f"write {md}/new_dev @/dev/blknull{disk}",
                f"write {md}/dev-blknull{disk}/slot {disk}",
                f"write {md}/dev-blknull{disk}/size {_SECTORS // 2}",
            )
        ),
        f"write {md}/array_state active",
    )  # fmt: skip


_DM = f"dm layer {_SECTORS}"
# Where a kernel has several, it takes the fastest. Some have them built in.
_AES = ("aes_generic?", "aesni-intel?", "xts")
_DEVICES = (
    _on(
        "/dev/dm-0", "dm-linear", "a linear target of device mapper, as of LVM", ("dm-mod",),
        f"{_DM} linear /dev/blknull0 0",
    ),
    _on(
        "/dev/dm-0", "dm-stripe", "a striped target of two devices", ("dm-mod",),
        f"{_DM} striped 2 128 /dev/blknull0 0 /dev/blknull1 0",
    ),
    _on(
        "/dev/dm-0", "dm-crypt", "encryption, aes-xts-plain64", ("dm-crypt", *_AES),
        f"{_DM} crypt aes-xts-plain64 {_KEY} 0 /dev/blknull0 0", ios=10,
    ),
    _on(
        "/dev/dm-0", "dm-crypt.inline", "the same without its workqueues", ("dm-crypt", *_AES),
        f"{_DM} crypt aes-xts-plain64 {_KEY} 0 /dev/blknull0 0 2 no_read_workqueue"
        " no_write_workqueue", ios=10,
    ),
    _on(
        "/dev/dm-0", "dm-multipath", "requests over two paths to a disk, by turns",
        ("dm-multipath", "dm-round-robin"),
        f"{_DM} multipath 0 0 1 1 round-robin 0 2 1 {_MQ_DEVICE} 1 {_MQ_DEVICE} 1",
        "write-if /sys/block/dm-0/queue/scheduler none", base="mq.pread", ios=2 * _WORD,
    ),
    _on("/dev/md0", "raid0", "md of level 0, two devices", ("raid0",),
        *_md("raid0", "chunk_size 65536")),
    _on("/dev/md0", "raid1", "md of level 1, two devices", ("raid1",),
        *_md("raid1", "resync_start none", f"component_size {_SECTORS // 2}")),
    _on("/dev/loop0", "loop", "a loop device with direct I/O", ("loop",),
        "loop /dev/loop0 /dev/blknull0"),
)  # fmt: skip

# File systems keep their metadata, so they are made on a device that stores what is written. When
# all metadata that I/O takes are in memory, it stores nothing more, so that data cost nothing.
_STORE = "/sys/kernel/config/blknull/store"
_STORED = "/dev/blknull0"
_FILE = "/mnt/file"
_BLKNULL_CONFIGFS = Module("blknull", (("nr_devices", "0"),))
_WITH_STORE = (
    "mount configfs /sys/kernel/config", f"mkdir {_STORE}", f"write {_STORE}/size_mb 512",
    # With bypass at first, it claims NOWAIT.
    f"write {_STORE}/memory_backed 1", f"write {_STORE}/bypass 1", f"write {_STORE}/power 1",
)  # fmt: skip
_BARE = tuple(
    Rung(
        f"bare.{name}", f"{about}, on the device of file systems", options, batch,
        _STORED, modules=(_BLKNULL_CONFIGFS,), begin=_WITH_STORE, alone=True,
    )
    for name, about, options, batch in _SHAPES
    if name in ("pread", "uring")
)  # fmt: skip

# Name, package, program and its options, modules.
_CRC = ("crc32c_generic?", "crc32c-intel?")
_FILE_SYSTEMS = (
    ("ext4", "e2fsprogs", "mkfs.ext4", "-q -J size=4 -N 64", ("ext4",)),
    ("xfs", "xfsprogs", "mkfs.xfs", "-q -K", ("xfs",)),
    ("btrfs", "btrfs-progs", "mkfs.btrfs", "-q -K", ("btrfs",)),
)


def _file(fs: tuple[str, str, str, str, tuple[str, ...]], shape: str) -> Rung:
    """A file on a file system."""
    name, package, program, options, modules = fs
    direct = f"--direct=1 --filename={_FILE} --size=1m --cpus_allowed=0 --output-format=json"
    # Twice: what the first run lays out is written over with what the program has in its memory.
    fill = f"/bin/ioloop --ioengine=sync {direct} --bs=1m --number_ios=1 --rounds=1 --rw"
    start = (
        *_WITH_STORE, f"write {_STORE}/bypass 0",
        f"run mkfs /bin/{program} {options} {_STORED}",
        "mkdir /mnt", f"mount {name} /mnt {_STORED}", f"run fill {fill}=write", "sync",
        f"run warm {fill}=read",
    )  # fmt: skip
    if shape == "buf":
        about, given, batch, base = "pread and pwrite, cached", _BUFFERED, 1, "buf.pread"
        begin = ()
    else:
        about, given, batch = next((w, o, n) for key, w, o, n in _SHAPES if key == shape)
        begin, base = (f"write {_STORE}/bypass 1",), f"bare.{shape}"
    own = tuple(
        Module(module.removesuffix("?"), optional=module[-1] == "?") for module in (*_CRC, *modules)
    )
    return Rung(
        f"{name}.{shape}", f"a file on {name}: {about}", given, batch, _FILE,
        modules=(_BLKNULL_CONFIGFS, *own), tools=((package, program),), start=start, begin=begin,
        base=base, round_ios=2 if name == "btrfs" and batch == 1 else None, alone=True,
    )  # fmt: skip


_LAYERS = (
    *_DEVICES,
    Rung(
        "partition.pread", "a partition of null_blk", ("--ioengine=sync", "--direct=1"),
        target="/dev/nullb0p1", modules=(_NULL_BLK,),
        begin=("partition /dev/nullb0 1 2048 65536",), base="nullb.pread", alone=True,
    ),
    *(
        _file(fs, shape)
        for fs in _FILE_SYSTEMS
        for shape in ("pread", "uring", "buf")
        # 32 of btrfs take longer than the timer's tick.
        if (fs[0], shape) != ("btrfs", "uring")
    ),
)  # fmt: skip

# What a program runs on: devices by name, and file systems.


def _base(name: str, device: str, *modules: Module) -> Rung:
    return Rung(name, f"a program on {device}", target=device, modules=modules, alone=True)


def _mounted(fs: tuple[str, str, str, str, tuple[str, ...]]) -> Rung:
    rung = _file(fs, "pread")
    start = tuple(step for step in rung.start if not step.startswith(("run fill", "run warm")))
    return replace(rung, name=fs[0], about=f"a program on {fs[0]}", start=start, begin=())


DEVICES = {
    "null": _base("null", _DEVICE, _BLKNULL),
    "mq": _base("mq", _MQ_DEVICE, _BLKNULL),
    "null_blk": _base("null_blk", _NULL_BLK_DEVICE, _NULL_BLK),
    "nvme": replace(_NVME, name="nvme", about=f"a program on {_NVME.target}", alone=True),
}
MOUNTS = {fs[0]: _mounted(fs) for fs in _FILE_SYSTEMS}
MOUNTED_AT = "/mnt"

# Rungs that are not on the ladder are measured only by name.
LADDER = (*_LADDER, *(rung for rung in _REQUESTS if rung.name in _ON_THE_LADDER))
RUNGS = (
    *LADDER,
    *_REGISTERED,
    *_DRIVERS,
    *_ON_NVME,
    *_NO_DEVICE,
    *_RARE,
    *(rung for rung in _REQUESTS if rung.name not in _ON_THE_LADDER),
    *_PEAK,
    *_BARE,
    *_LAYERS,
)
