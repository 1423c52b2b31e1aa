# SPDX-License-Identifier: GPL-2.0
"""What commands print in a terminal of 80 columns: no line is wider, and no table is split."""

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from helpers.command import Command
from helpers.counted import a_program
from helpers.examples import BOOTS, a_result
from helpers.pairs import compared, profiled, row, two
from iopath.compare import compare
from iopath.compare.changes import FunctionChange
from iopath.counts.calls import Boot, Started, complete
from iopath.results import result
from iopath.results.layers import Layers
from iopath.results.ops import OPS
from iopath.results.syscalls import CALL, FAULT, LATER, OWN
from iopath.rungs import builtin
from iopath.rungs.feature import Base
from iopath.show import terminal
from iopath.studies import featuretable, series
from iopath.studies.features import Cost

WIDTH = 80
FIVE = ("debian:5.10", "debian:6.1", "debian:6.12", "debian:7.2", "debian:7.3")
PINNING = "internal_get_user_pages_fast"


def lines_of(show: Callable[[Console], None]) -> list[str]:
    console = Console(file=io.StringIO(), width=WIDTH, highlight=False)
    show(console)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def fits(lines: list[str], tables: int) -> None:
    """*tables* is how many tables there are if none is split. Each has a rule below its titles."""
    assert [line for line in lines if len(line) > WIDTH] == []
    assert sum(set(line) == {"─"} for line in lines) == tables, "\n".join(lines)


def a_ladder(*kernels: str) -> dict[str, Any]:
    """Each kernel takes more on one half of the rungs, and fewer on the other half."""
    records = []
    for at, kernel in enumerate(kernels):
        for number, rung in enumerate(builtin.select([])):
            by = at * 10 * (number if number % 2 else -number)
            rows = [
                row(PINNING, 1200.0 + by, "page pinning"),
                row("__blk_mq_sched_dispatch_requests", 500.0, "iov_iter and copying"),
            ]
            for op in rung.ops(OPS):
                size = 4096 if rung.target else 0
                record = profiled(kernel, rows) | {"rung": rung.name, "op": op, "block_size": size}
                record["with_deferred"] += at * 100
                record["with_deferred_boots"] = [record["with_deferred"]] * BOOTS
                records.append(record)
    return a_result(records)


@pytest.mark.parametrize("kernels", [FIVE[1:4:2], FIVE])
def test_compare(kernels: tuple[str, ...]) -> None:
    whole = compared(a_ladder(*kernels))
    fits(lines_of(lambda out: terminal.show_comparison(whole, out)), 1)


def test_the_functions_of_each_difference() -> None:
    """Of compare --all: a table of figures, one of other metrics, and one of functions."""
    before = [row(PINNING, 1200.0, "page pinning", reads=100.0, writes=70.0)]
    after = [row(PINNING, 1300.0, "page pinning", reads=200.0, writes=80.0)]
    whole = compared(two(after, before))
    fits(lines_of(lambda out: terminal.show_all(whole, out)), 3)


def a_boot(more: int) -> Boot:
    calls = {"read": 1001, "exit_group": 1, "newfstatat": 10, "io_uring_enter": 1 << 20}
    return complete({
        **{
            (CALL, name): Started(
                times, (2661 + more) * times, 93 * times, {PINNING: 412 * times + more}
            )
            for name, times in calls.items()
        },
        (OWN, "its own code"): Started(0, 10**9, 0, {"program [user]": 10**9}),
        (FAULT, "page fault"): Started(
            63, 338_107 + more, 0, {"filemap_map_pages": 697 + more}
        ),
        (LATER, "interrupt: apic timer"): Started(
            7, 17_675 + more, 0, {"ktime_get_update_offsets_now": 99 + more}
        ),
    })  # fmt: skip


@pytest.mark.parametrize("kernels", [FIVE[1:2], FIVE[1:4:2]])
def test_run(kernels: tuple[str, ...]) -> None:
    """The function, or of two kernels the layer, is in the line of its number or the next."""
    command = [
        "dd",
        "if=/dev/blknull0",
        "of=/dev/null",
        "bs=4k",
        "count=1000",
        "iflag=direct",
        "--all",
    ]
    whole = a_program({name: [a_boot(1000 * at)] for at, name in enumerate(kernels)}, command)
    if len(kernels) == 1:
        lines = lines_of(lambda out: terminal.show(whole, out))
    else:
        found = compare.compare(whole, Layers())
        lines = lines_of(lambda out: terminal.show_comparison(found, out))
    fits(lines, 1)
    at = next(at for at, line in enumerate(lines) if line.startswith("  io_uring_enter"))
    assert "1,048,576" in lines[at]
    assert (PINNING if len(kernels) == 1 else "page") in lines[at] + lines[at + 1]


def a_cost(kernel: str, feature: str, difference: float) -> Cost:
    functions = [
        FunctionChange(
            name=name, layer=layer, before=0.0, after=by, difference=by, counts={}, note="new"
        )
        for name, layer, by in (
            ("__schedule", "scheduling", 534.0), ("__update_load_avg_se", "scheduling", 7493.65),
            ("dd_has_work", "block core", 260.0), ("__list_add_valid_or_report", "lists", 200.0),
        )
    ]  # fmt: skip
    return Cost(
        kernel=kernel, feature=feature, about="", rung="mq.pread", op="read", base=4157.95,
        difference=difference, percent=difference / 41.58, total=difference - 58.0, locked=35.0,
        indirect=23.0, functions=functions,
    )  # fmt: skip


@pytest.mark.parametrize("kernels", [FIVE[3:4], FIVE[1:4:2], FIVE])
def test_features(kernels: tuple[str, ...]) -> None:
    costs = [
        a_cost(kernel, feature, difference)
        for kernel in kernels
        for feature, difference in (("mq-deadline", 11304.55), ("iommu.passthrough", 0.0))
    ]
    base = Base("nokaslr mitigations=off lsm=capability init_on_alloc=0 audit=0 psi=0", (), (), 20)
    fits(lines_of(lambda out: featuretable.show(base, costs, out)), 1)


def test_series() -> None:
    names = ("ea116621f6ec", "49495068c0b6")
    rungs = a_ladder(*names)
    rungs["results"] = [one for one in rungs["results"] if one["rung"] == "dio.uring.fixed"]
    whole = result.parse(rungs)
    first = series.SeriesCommit(names[0], "block: fold the whole of it into the submission path")
    second = replace(
        first, commit=names[1], before=names[0], comparison=compare.compare(whole, Layers()),
        whole=whole,
    )  # fmt: skip
    lines = lines_of(lambda out: series.show([first, second], out, every=False))
    fits(lines, 1)


@pytest.mark.parametrize("command", ["rungs", "kernels", "cache"])
def test_lists(listed: Command, command: str) -> None:
    """They have a line for each entry."""
    for kind in ("root", "repository", "modules", "state", "qemu"):
        (listed.cache / kind / "entry").mkdir(parents=True)
    listed.env["COLUMNS"] = str(WIDTH)
    lines = listed.run(command).stdout.splitlines()
    fits(lines, 1)
    rule = next(at for at, line in enumerate(lines) if set(line) == {"─"})
    assert not any(line.startswith(" ") for line in lines[rule:])


def test_features_are_listed(listed: Command) -> None:
    listed.env["COLUMNS"] = str(WIDTH)
    assert max(map(len, listed.run("features", "--list").stdout.splitlines())) <= WIDTH
