# SPDX-License-Identifier: GPL-2.0
"""Rungs from a file: what is refused, and the documented example."""

from dataclasses import replace
from pathlib import Path

import pytest

from helpers.command import Command
from iopath.base.errors import UsageError
from iopath.measure import plan
from iopath.results.ops import OPS
from iopath.rungs import builtin, together
from iopath.rungs.rung import Module
from iopath.rungs.runs import Settings, make_runs


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[rung", "is not TOML: "),
        ("", "no rung: each must be a table [[rung]]"),
        ("[rung]\n", "no rung: each must be a table [[rung]]"),
        ('[[rung]]\nname = "x"\n[[step]]\n', "unknown key 'step': rungs are tables [[rung]]"),
        ('part = 1\n[[rung]]\nname = "x"\n', "parts must be tables [part.NAME]"),
        ("[part.dio]\n", "part dio: the name is in use: choose another"),
        ("[part.x]\nrounds = 1\n", "part x: unknown key 'rounds': must be one of about, parts"),
        ('[part.x]\nparts = ["y"]\n', "part x: unknown part 'y': define [part.y] before it"),
        ('[[rung]]\nname = "x"\nparts = ["y"]\n', "rung x: unknown part 'y': define [part.y]"),
        ('[[rung]]\nname = "x.*"\neach = ["y"]\n', "rung x.y: unknown part 'y': define [part.y]"),
        ('[[rung]]\nname = "x.*"\n', "invalid name 'x.*': use a-z"),
        ('[[rung]]\nname = "x"\neach = ["pread", "preadv"]\n', "rung x: the name is in use"),
        (
            '[[rung]]\nname = "x"\nparts = ["dio"]\nmodules.blknull = {}\n',
            "rung x: blknull has parameters twice: give them in one table",
        ),
        (
            '[[rung]]\nname = "x"\nparts = ["blknull"]\ntarget = "/dev/x"\n',
            "rung x: each_cpu needs a target with a number at its end, and module parameters",
        ),
        (
            '[[rung]]\nname = "x"\nparts = ["dio"]\neach_cpu = ["poll_queues"]\n',
            "rung x: each_cpu needs a target with a number at its end, and module parameters",
        ),
        ("[[rung]]\n", "a rung has no name: set name to a string"),
        ('[[rung]]\nname = "A b"\n', "invalid name 'A b': use a-z, 0-9, '.', '-' and '_'"),
        ('[[rung]]\nname = "splice"\n', "rung splice: the name is in use: choose another"),
        ('[[rung]]\nname = "x"\nrounds = 1\n', "rung x: unknown key 'rounds': must be one of "),
        ('[[rung]]\nname = "x"\nios = 0\n', "rung x: ios must be a number, 1 or more"),
        ('[[rung]]\nname = "x"\nios = true\n', "rung x: ios must be a number, 1 or more"),
        ('[[rung]]\nname = "x"\nbs = 1000\n', "rung x: bs must be a multiple of 512"),
        ('[[rung]]\nname = "x"\noptions = "a"\n', "rung x: options must be a list of words"),
        ('[[rung]]\nname = "x"\noptions = ["a b"]\n', "rung x: options must be a list of words"),
        (
            '[[rung]]\nname = "x"\noptions = ["--numjobs=4"]\n',
            "rung x: --numjobs=4: a rung has one job: give --cpus for several",
        ),
        ('[[rung]]\nname = "x"\nops = ["trim"]\n', 'rung x: ops must be a list of "read" and'),
        ('[[rung]]\nname = "x"\nops = ["read"]\n', "rung x: ops needs a target"),
        ('[[rung]]\nname = "x"\nneeds = ["TMPFS"]\n', "rung x: needs must be a list of kernel"),
        ('[[rung]]\nname = "x"\nmodules = ["loop"]\n', "rung x: modules must be a table of"),
    ],
)
def test_bad_files(text: str, complaint: str, tmp_path: Path) -> None:
    path = write(tmp_path / "rungs.toml", text)
    with pytest.raises(UsageError) as error:
        builtin.load(path)
    said = str(error.value)
    assert said.startswith(str(path))
    assert complaint in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("program", "complaint"),
    [("missing", "No such file or directory"), ("rungs.toml", "is not a program: build it with")],
)
def test_bad_programs(program: str, complaint: str, tmp_path: Path) -> None:
    path = write(tmp_path / "rungs.toml", f'[[rung]]\nname = "x"\nprogram = "{program}"\n')
    with pytest.raises(UsageError, match=complaint):
        builtin.load(path)


def test_a_missing_file(listed: Command, tmp_path: Path) -> None:
    said = listed.fails("measure", "debian:6.1", "--rungs", tmp_path / "none", status=2)
    assert said == f"iopath: {tmp_path / 'none'}: No such file or directory"


def test_all_fields(tmp_path: Path) -> None:
    text = """
[[rung]]
name = "x.y"
about = "an example"
options = ["--ioengine=sync", "--direct=1"]
ios = 50
batch = 2
target = "/dev/blknull0"
ops = ["write"]
needs = ["CONFIG_BLOCK"]
setup = ["mkdir /x"]
cleanup = ["rmdir /x"]
cpus = "1"
alone = true

[rung.modules]
blknull = { nr_devices = 1, mode = "mq" }

[[rung.devices]]
driver = "virtio-scsi-pci"
num_queues = 2

[[rung.devices]]
driver = "scsi-hd"
bus = "scsi.0"
drive = "disk"
"""
    (rung,) = builtin.load(write(tmp_path / "rungs.toml", text))
    assert rung.modules[0].words({}) == ["nr_devices=1", "mode=mq"]
    assert rung.ops(OPS) == ["write"]
    assert rung.command("write", 512, 3) == [
        "/bin/ioloop", "--ioengine=sync", "--direct=1", "--number_ios=50",
        "--filename=/dev/blknull0", "--rw=write", "--bs=512", "--pattern=fixed", "--rounds=96",
        "--region=3", "--cpus_allowed=1", "--output-format=json",
    ]  # fmt: skip
    assert rung.alone
    assert rung.waits
    assert [dict(device) for device in rung.devices] == [
        {"driver": "virtio-scsi-pci", "num_queues": 2},
        {"driver": "scsi-hd", "bus": "scsi.0", "drive": "disk"},
    ]
    assert builtin.select([], [rung]) == [rung]
    assert [found.name for found in builtin.select(["x.*", "splice"], [rung])] == ["splice", "x.y"]


FAMILY = """
[part.sixteen]
about = "sixteen at a time"
options = ["--ioengine=io_uring", "--direct=1", "--iodepth=16"]
batch = 16

[[rung]]
name = "my.*.reg"
about = "*, registered memory"
parts = ["raw"]
each = ["pread", "sixteen"]
options = ["--registermem"]
base = "raw.*"
"""


def test_a_family_of_rungs(tmp_path: Path) -> None:
    """A rung has the keys of its parts: lists are joined, the rung's own last. In a family, * is
    the part that a rung has, and its description."""
    first, second = builtin.load(write(tmp_path / "rungs.toml", FAMILY))
    (raw,) = builtin.select(["raw.pread.reg"])
    assert (first.name, second.name) == ("my.pread.reg", "my.sixteen.reg")
    assert second.about == "sixteen at a time, registered memory"
    assert (first.base, second.base) == ("raw.pread", "raw.sixteen")
    assert replace(first, name=raw.name, about=raw.about, base="") == raw
    assert (second.batch, second.target, second.modules) == (16, raw.target, raw.modules)
    assert second.options == ("--ioengine=io_uring", "--direct=1", "--iodepth=16", "--registermem")


OWN = """
[[rung]]
name = "x"
about = "on devices of its own"
options = ["--ioengine=sync", "--direct=1"]
target = "/dev/blknull1"
modules.blknull = { nr_devices = 2, mode = "bio,mq", iostats = 0 }
each_cpu = ["nr_devices"]
"""


def test_each_cpu_has_a_target(tmp_path: Path) -> None:
    """A rung that says how has a target for each CPU, whatever its modules are. Values of a list
    are repeated."""
    (rung,) = builtin.load(write(tmp_path / "rungs.toml", OWN))
    each, steps, targets = together.on_each(rung, 2)
    assert each.modules[0].words({}) == ["nr_devices=4", "mode=bio,bio,mq,mq", "iostats=0"]
    assert (steps, targets) == ((), ("/dev/blknull2", "/dev/blknull3"))
    settings = Settings([rung], ops=["read"], cpus=2)
    runs, _ = make_runs(settings)
    arrangements = [part.arrangement for part in together.runs(runs, settings)]
    assert arrangements == list(together.ARRANGEMENTS)


@pytest.mark.parametrize(
    ("begin", "found"),
    [
        (
            'begin = ["write /sys/block/blknull1/queue/nr_requests 64"]',
            [f"write /sys/block/blknull{number}/queue/nr_requests 64" for number in (2, 3)],
        ),
        ('begin = ["write /sys/block/blknull1/a 1", "layer /dev/blknull0"]', []),
    ],
)
def test_first_steps_are_done_for_each_target(tmp_path: Path, begin: str, found: list[str]) -> None:
    """A rung whose first steps are for more than its target has a layer, and one target."""
    (rung,) = builtin.load(write(tmp_path / "rungs.toml", f"{OWN}{begin}\n"))
    each, _, targets = together.on_each(rung, 2)
    assert list(each.begin) == (found or list(rung.begin))
    assert bool(targets) == bool(found)


@pytest.mark.parametrize(
    ("name", "block_size", "ios", "long_ios"),
    [
        ("buf.pread", 4096, 100, 6000), ("buf.pread", 65536, 8, 1920),
        ("buf.pread", 1 << 20, 1, 120), ("seq.buf", 4096, 32, 1920), ("btrfs.buf", 65536, 2, 120),
    ],
)  # fmt: skip
def test_rounds_that_copy(name: str, block_size: int, ios: int, long_ios: int) -> None:
    """They are shorter than their part of the long run, unless the rung says how long they are."""
    (rung,) = builtin.select([name])
    assert (rung.ios(block_size), rung.long_ios(block_size)) == (ios, long_ios)


def test_rungs_without_a_device_for_each_cpu_are_known() -> None:
    """They lose an arrangement, which is never done silently."""
    chosen = builtin.select(["syscall", "dio.pread", "gen.sync", "dm-linear.pread", "nvme.pread"])
    settings = Settings(chosen, cpus=2)
    runs, _ = make_runs(settings)
    assert together.sharing_only(runs, settings) == ["dm-linear.pread"]
    assert together.sharing_only(runs, replace(settings, cpus=1)) == []


def test_guests() -> None:
    """Rungs share a guest only if they load no module with different parameters and need not be
    alone."""
    names = ["syscall", "raw.pread", "dio.pread", "mq.pread", "nullb.pread", "remote.pread"]
    other = replace(builtin.select(["dio.preadv"])[0], modules=(Module("blknull"),))
    chosen = [*builtin.select(names), other]
    runs, _ = make_runs(Settings(chosen, ops=["read"]))
    found = plan.guests(runs, Settings(chosen))
    assert [[run.rung.name for run in members] for members in found] == [
        ["syscall", "raw.pread", "dio.pread", "mq.pread", "nullb.pread"],
        ["remote.pread"],
        ["dio.preadv"],
    ]


def test_rungs_of_other_devices_have_other_guests() -> None:
    """They have the same plan, whatever else is measured."""
    chosen = builtin.select(
        ["syscall", "nvme.pread", "nvme.uring", "virtio.pread", "nvme.raw.pread", "nvme.raw.uring"]
    )
    runs, _ = make_runs(Settings(chosen, ops=["read"]))
    found = plan.guests(runs, Settings(chosen))
    assert [[run.rung.name for run in members] for members in found] == [
        ["syscall"], ["nvme.pread", "nvme.uring"], ["virtio.pread"],
        ["nvme.raw.pread", "nvme.raw.uring"],
    ]  # fmt: skip
    options = [plan.plugin_options(members, Settings(chosen)) for members in found]
    assert "interrupts" not in options[0]
    assert "interrupts=1:1,interrupts=16385:any,waits=1,waits=16385" in options[1]
    assert "interrupts=2:any,interrupts=16386:any,waits=2,waits=16386" in options[1]


def test_guests_side_by_side() -> None:
    """The ladder takes one guest, and with two sizes several with similar shares."""
    runs, _ = make_runs(Settings(builtin.select([])))
    assert plan.guests(runs, Settings(())) == [runs]
    runs, _ = make_runs(Settings(builtin.select([]), block_sizes=(512, 4096)))
    found = plan.guests(runs, Settings(()))
    assert [run for members in found for run in members] == runs
    sizes = [len(members) for members in found]
    assert len(sizes) > 1
    assert max(sizes) - min(sizes) <= 1


def test_a_rung_with_a_size_of_its_own(tmp_path: Path) -> None:
    """It has that size, whatever others have, and is known by it."""
    text = '[[rung]]\nname = "x"\nparts = ["dio", "pread"]\nops = ["read"]\nbs = 65536\n'
    (rung,) = builtin.load(write(tmp_path / "x.toml", text))
    runs, _ = make_runs(Settings([rung, *builtin.select(["dio.pread"])], block_sizes=(512, 4096)))
    assert [(run.rung.name, run.op, run.block_size) for run in runs] == [
        ("x", "read", 65536), ("dio.pread", "read", 512), ("dio.pread", "write", 512),
        ("dio.pread", "read", 4096), ("dio.pread", "write", 4096),
    ]  # fmt: skip
    assert rung.digest != replace(rung, block_size=None).digest


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "git:none@a", "git:none@b"), ("bisect", "git:none@a", "git:none@b"),
        ("profile", "git:none@a"), ("measure", "git:none@a"),
    ],
)  # fmt: skip
def test_commands_take_it(words: tuple[str, ...], listed: Command, tmp_path: Path) -> None:
    """A rung of the file is known to each command, and another one is not."""
    path = write(tmp_path / "rungs.toml", '[[rung]]\nname = "x.y"\nparts = ["dio", "pread"]\n')
    said = listed.fails(*words, "--rungs", path, "--rung", "x.y", status=2)
    assert "git:none: there is no such folder" in said
    said = listed.fails(*words, "--rungs", path, "--rung", "x.z", status=2)
    assert "unknown rung 'x.z'" in said
