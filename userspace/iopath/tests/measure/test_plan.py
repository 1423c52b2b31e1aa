# SPDX-License-Identifier: GPL-2.0
"""The plan of a guest."""

import re
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pytest

from iopath.measure.plan import long_runs, plugin_options, rounds
from iopath.rungs.builtin import select
from iopath.rungs.runs import FLAT, LINES, Settings, make_runs


def ways(*rungs: str, checks: bool) -> list[bool]:
    """Whether code is counted flat, each time that this changes in a plan."""
    runs, _ = make_runs(Settings(select([*rungs]), ops=["read"]))
    numbers = [
        int(number)
        for step in rounds(runs, checks=checks)
        for number in re.findall(r"^run .* --region=(\d+)", step)
    ]
    assert len(numbers) > len(runs)  # the calibration and, in some, cache lines
    return [flat for flat, _ in groupby(number >= FLAT for number in numbers)]


def test_code_is_translated_once_for_each_way_of_counting() -> None:
    """What is counted fully comes first."""
    rungs = ("dio.pread", "nvme.pread", "buf.pread")
    assert ways(*rungs, checks=False) == ways(*rungs, checks=True) == [False, True]
    assert ways("nvme.pread", checks=False) == [False]
    assert ways("dio.pread", "buf.pread", checks=True) == [True]


def test_each_file_of_a_target_is_aged() -> None:
    """A ring with two devices has two files. Short rounds have times as far back as others have:
    comparing two times of one second reads more."""
    runs, _ = make_runs(Settings(select(["mq.uring.two"]), ops=("read",)))
    plan = rounds(runs, checks=False)
    aged = [step for step in plan if step.startswith("age ")]
    assert aged == ["age /dev/blknull0", "age /dev/blknull1"] * 3
    for name in ("run", "lines", "flat"):
        at = next(at for at, step in enumerate(plan) if step.startswith(f"run {name}."))
        assert plan[at - 2 : at] == aged[:2]
    (ran,) = [step for step in plan if step.startswith("run run.")]
    assert "--filename=/dev/blknull0:/dev/blknull1 " in ran


def test_short_rounds_of_long_batches_are_in_two_layouts() -> None:
    """At 64 KiB, 100 I/Os took 0.9 ms of 7.2, and a worker was due at a tick in the first round.
    All four rounds had an interrupt, so a comparison lacked the row."""
    settings = Settings(select(["raw.pread", "raw.aio.100"]), ["write"], [4096, 1 << 16])
    runs, _ = make_runs(settings)
    plan = [step.split() for step in rounds(runs, checks=False) if step.startswith("run lines.")]
    found = [
        {word for word in words if word.startswith(("--rounds=", "--layouts=", "--after"))}
        for words in plan
    ]
    one, two = {"--rounds=4"}, {"--rounds=6", "--layouts=2", "--after_tick"}
    assert found == [one, one, one, two]
    options = plugin_options(runs, settings).split(",")
    regions = [LINES | run.region for run in runs]
    assert options[1:] == [
        f"lines={region}:{number}" for region, number in zip(regions, (4, 4, 4, 6), strict=True)
    ]


@dataclass
class Kernel:
    """All that a plan asks a kernel for."""

    config: Path


VMSTAT = "write /proc/sys/vm/stat_interval 3600"
COMPACTION = "write /proc/sys/vm/compaction_proactiveness 0"


@pytest.mark.parametrize(
    ("options", "written"),
    [
        (["PROC_SYSCTL", "SMP", "COMPACTION"], [COMPACTION, VMSTAT]),
        (["PROC_SYSCTL", "SMP"], [VMSTAT]),
        (["SMP", "COMPACTION"], []),
    ],
)
def test_the_kernel_does_not_interrupt_long_runs(
    options: list[str], written: list[str], tmp_path: Path
) -> None:
    """It folds no sums and compacts no memory meanwhile. When it writes dirty pages depends on
    these sums, so runs that leave some come before."""
    config = tmp_path / "config"
    config.write_text("".join(f"CONFIG_{option}=y\n" for option in options))
    runs, _ = make_runs(Settings(select(["dio.pread", "buf.pread", "ext4.pread"]), ops=["write"]))
    plan = long_runs(runs, Kernel(config))  # type: ignore[arg-type]
    assert [step for step in plan if step in (VMSTAT, COMPACTION)] == written
    names = [re.match(r"run long.* --filename=(\S+)", step) for step in plan]
    files = [found[1] for found in names if found]
    assert sorted(files[:2]) == ["/dev/blknull0", "/mnt/file"]
    assert files[2:] == ["/dev/blknull0"]
    if VMSTAT in written:
        at = plan.index(VMSTAT)
        assert [one for one in plan[at:] if one.startswith("run ")] == plan[-1:]
        assert plan[at + 1].startswith("quiet ")
    assert all("--after_tick" in step for step in plan if step.startswith("run "))
