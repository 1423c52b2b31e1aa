# SPDX-License-Identifier: GPL-2.0
"""What features cost: the table, what is wrong with one, and real costs in guests."""

from dataclasses import replace
from pathlib import Path

import pytest

from helpers.command import KERNEL, Command
from iopath.base.errors import UsageError
from iopath.rungs import feature as features
from iopath.rungs.builtin import select
from iopath.rungs.feature import Feature
from iopath.rungs.rung import Module

BASE, KNOWN = features.load()


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def of(name: str) -> Feature:
    return next(feature for feature in KNOWN if feature.name == name)


def test_table() -> None:
    """Each feature can be verified, or changes what the program does."""
    assert len(KNOWN) >= 45
    assert len({feature.name for feature in KNOWN if feature.layer}) >= 15
    for feature in KNOWN:
        assert feature.about != feature.name
        seen = feature.expect or feature.shows or feature.layer
        assert seen or feature.options or feature.cmdline, feature.name
        rungs = select([*(feature.rungs or BASE.rungs)])
        assert all(feature.applied(rung, BASE).alone for rung in rungs)


def test_applied() -> None:
    (rung,) = select(["mq.pread"])
    feature = Feature(
        "x", options=("--nowait",), swap=(("--direct=1", "--direct=0"),), modules=(Module("bfq"),),
        parameters=(Module("blknull", (("completion", "timer"),)),), setup=("write {disk} a b",),
        expect=("{target} c",), needs=("CONFIG_X",),
    )  # fmt: skip
    applied = feature.applied(rung, replace(BASE, setup=("write /first 1",), ios=3))
    assert applied.options == ("--ioengine=sync", "--direct=0", "--nowait")
    assert [module.name for module in applied.modules] == ["bfq", "blknull"]
    assert "completion=timer" in applied.modules[1].words({})
    assert applied.begin[:-3] == rung.begin
    assert applied.begin[-3:] == ("write /first 1", "write blknull2 a b", "expect /dev/blknull2 c")
    assert (applied.needs, applied.ios(4096), applied.alone) == (("CONFIG_X",), 3, True)


def test_layer() -> None:
    """A layer replaces its base; the base's steps are for the base's disk."""
    layer = of("ext4.pread")
    (rung,) = select([*layer.rungs])
    applied = layer.applied(rung, replace(BASE, setup=("write {disk} 0",)))
    assert (applied.name, applied.target, applied.alone) == ("bare.pread", "/mnt/file", True)
    assert applied.start == select(["ext4.pread"])[0].start
    assert applied.begin[-1] == "write blknull0 0"
    both = features.together([layer, of("apparmor")])
    assert (both.layer, both.rungs) == (layer.layer, ("bare.pread",))
    with pytest.raises(UsageError, match=r"ext4.pread and xfs.pread exclude each other"):
        features.together([layer, of("xfs.pread")])


@pytest.mark.parametrize(
    ("version", "since", "until", "fits"),
    [
        ((6, 1), (), (), True),
        ((6, 1), (6, 2), (), False),
        ((6, 12), (6, 2), (), True),
        ((6, 12), (), (6, 1), False),
        ((7, 2), (), (6, 19), False),
        ((6, 19), (6, 19), (6, 19), True),
    ],
)
def test_series(version: tuple[int, int], since: tuple, until: tuple, fits: bool) -> None:
    assert Feature("x", since=since, until=until).fits(version) == fits


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[feature", "is not TOML"),
        ("[[rung]]\nname = 'x'", "unknown key 'rung': features are tables [[feature]]"),
        ("[[feature]]\nabout = 'x'", "a feature has no name: set name to a string"),
        ("[[feature]]\nname = 'A B'", "invalid name 'A B': use a-z, 0-9, '.', '-' and '_'"),
        ("[[feature]]\nname = 'x'\nstep = []", "feature x: unknown key 'step': must be one of "),
        ("[[feature]]\nname = 'x'\nshows = 'a'", "feature x: shows must be a list of functions"),
        ("[[feature]]\nname = 'x'\nsince = '6'", "feature x: since must be a series of kernels"),
        ("[[feature]]\nname = 'bfq'", "feature bfq: the name is in use: choose another"),
        ("[[feature]]\nname = 'nothing'", "feature nothing: the name is in use: choose another"),
        ("base = 1", "base must be a table with cmdline, rungs, ops and ios"),
        ("[base]\ncmdline = 'a'", "base must be a table with cmdline, rungs, ops and ios"),
    ],
)
def test_bad_tables(text: str, complaint: str, tmp_path: Path, listed: Command) -> None:
    path = write(tmp_path / "mine.toml", text)
    said = listed.fails("features", KERNEL, "--features", path, status=2)
    assert said.startswith(f"iopath: {path}")
    assert complaint in said


def test_bad_choices(listed: Command, tmp_path: Path) -> None:
    said = listed.fails("features", KERNEL, "--feature", "iostat", status=2)
    assert said == "iopath: unknown feature 'iostat': did you mean 'iostats'?"
    said = listed.fails("features", KERNEL, "--feature", "x", status=2)
    assert said == "iopath: unknown feature 'x' (see iopath features --list)"
    said = listed.fails("features", KERNEL, "--with", "apparmor,selinux", status=2)
    assert said == (
        "iopath: apparmor and selinux exclude each other: both set the kernel's option lsm"
    )
    said = listed.fails("features", KERNEL, "--with", "bfq,kyber", status=2)
    assert "bfq and kyber exclude each other: both set /sys/block/{disk}/queue/scheduler" in said
    assert listed.fails("features", status=2) == (
        "iopath: no kernel is given: e.g. iopath features debian:6.12"
    )
    said = listed.fails("features", KERNEL, "--svg", tmp_path / "a.png", status=2)
    assert said.endswith("a.png: the file's name must end in .svg")
    said = listed.fails("features", KERNEL, "--json", tmp_path / "no" / "file", status=2)
    assert "no/file" in said


def test_list(listed: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "mine.toml", "[[feature]]\nname = 'mine'\nabout = 'my own'\n")
    done = listed.run("features", "--list", "--features", path)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert ["mine", "my own"] in [line.split(maxsplit=1) for line in lines]
    assert len(lines) == len(KNOWN) + 4  # the heading, nothing and mine
    assert any(line.split()[0] == "ext4.pread" for line in lines)


def test_together() -> None:
    both = features.together([of("iostats"), of("audit")])
    assert both.name == "iostats+audit"
    assert both.cmdline == "audit=1"
    assert both.shows == (*of("iostats").shows, *of("audit").shows)
    with pytest.raises(UsageError, match="exclude each other"):
        features.together([of("preempt.full"), of("preempt.lazy")])


def test_files_of_features_together(tmp_path: Path) -> None:
    """The rung has the programs and files of all; its own stay."""
    rung = replace(select(["mq.pread"])[0], tools=(("xfsprogs", "mkfs.xfs"),))
    some = [
        Feature(name, tools=(("busybox-static", "busybox"),), files=((name, tmp_path / name),))
        for name in ("one", "two")
    ]
    applied = features.together(some).applied(rung, BASE)
    assert applied.tools == (("xfsprogs", "mkfs.xfs"), ("busybox-static", "busybox"))
    assert applied.files == (("one", tmp_path / "one"), ("two", tmp_path / "two"))


def test_a_name_in_use() -> None:
    for name in ("iostats", features.NOTHING):
        with pytest.raises(UsageError, match=f"--bpf: feature {name}: the name is in use"):
            features.distinct([*KNOWN, Feature(name)], "--bpf")
