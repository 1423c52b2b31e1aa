# SPDX-License-Identifier: GPL-2.0
"""From flat counts to the mean of a long run and its deferred work: on made-up counts."""

import json
from dataclasses import replace
from typing import Any

import pytest

from helpers.counted import HEADER
from iopath.base.errors import IopathError
from iopath.counts.longrun import LongRun, LongRuns
from iopath.counts.pathcount import BootProfile
from iopath.counts.plugin_output import read
from iopath.counts.symbols import Symbols
from iopath.results.layers import Layers
from iopath.rungs.builtin import select
from iopath.rungs.runs import DRAIN, LONG, Run

RUN = Run(1, select(["dio.pread"])[0], "read", 4096)
IOS = RUN.long_ios
TEXT = 0xFFFFFFFF81000000
NAMES = ("path", "tick", "fault", "callback", "asm_sysvec_apic_timer_interrupt",
         "asm_exc_page_fault", "kjournald2", "do_idle", "rcu_do_batch")  # fmt: skip
BLOCK = {name: number for number, name in enumerate(NAMES)}
TASK, OTHER, TIMER, FAULT = range(4)  # contexts
CALLBACK = f"{TEXT + 64 * BLOCK['rcu_do_batch'] + 4:#x}"  # where it calls
OWN = "(the kernel's own work)"  # the row of what has no functions

Rows = list[tuple[str, int, int]]  # function, context, and how often its block was executed


def region(
    number: int, rows: Rows, ticks: int = 0, faults: int = 0, switches: int = 0
) -> dict[str, Any]:
    addresses = {
        TIMER: ("asm_sysvec_apic_timer_interrupt", ticks),
        FAULT: ("asm_exc_page_fault", faults),
    }
    return {
        "type": "flat", "region": number, "rounds": 1, "switches": switches, "iterations": 0,
        "entries": [
            [context, f"{TEXT + 64 * BLOCK[name]:#x}", times]
            for context, (name, times) in addresses.items()
        ],
        "counts": [[BLOCK[name], 10, context, times] for name, context, times in rows],
        "parts": parts(rows),
    }  # fmt: skip


def parts(rows: Rows) -> list[list[Any]]:
    """The sums of these: other tasks are one thread."""
    sums = {
        context: sum(10 * times for _, where, times in rows if where == context)
        for context in (TIMER, FAULT, OTHER)
    }
    at = {name: f"{TEXT + 64 * number:#x}" for name, number in BLOCK.items()}
    return [
        [-1, "e", at["asm_sysvec_apic_timer_interrupt"], "0x0", sums[TIMER]],
        [-1, "e", at["asm_exc_page_fault"], "0x0", sums[FAULT]],
        [-1, "t", "0xffff888000001000", "0x0", 0],
        [2, "r", at["kjournald2"], "0x0", sums[OTHER]],
    ]


def figures(long: dict[str, Any], drained: Rows, clock: int, run: Run = RUN) -> LongRun:
    """The figures of a long run, which is followed by a sleep."""
    symbols = "".join(f"{TEXT + 64 * number:x} T {name}\n" for name, number in BLOCK.items())
    lines = [
        HEADER,
        *(
            {"type": "block", "block": number, "addr": f"{TEXT + 64 * number:#x}",
             "lens": [4] * 10, "kinds": "." * 10}
            for number in BLOCK.values()
        ),
        long,
        region(RUN.long_region | DRAIN, drained),
        {"type": "end", "errors": []},
    ]  # fmt: skip
    known = Symbols(symbols)
    found = BootProfile(read(map(json.dumps, lines)), known, Layers(), waits=run.rung.waits)
    return LongRuns(found, known, Layers()).figures(run, clock)


def by_name(found: LongRun) -> dict[str, tuple[float, float]]:
    return {row.name: (row.mean, row.deferred) for row in found.functions}


def test_ticks_are_left_out() -> None:
    """Whatever they execute."""
    long = region(RUN.long_region, [("path", TASK, IOS), ("tick", TIMER, 90)], ticks=7)
    found = figures(long, [], 10 * IOS + 900)
    assert (found.mean, found.with_deferred) == (10, 10)
    assert by_name(found) == {"path": (10, 0), "tick": (0, 0.15), OWN: (0, -0.15)}


def test_what_callbacks_do_is_deferred() -> None:
    """Behind a tick of the run, and in the sleep."""
    rows = [("path", TASK, IOS), ("tick", TIMER, 90), ("callback", TIMER, IOS)]
    long = region(RUN.long_region, rows, ticks=9)
    long["parts"][0][-1] = 900
    long["parts"].append([0, "C", at("callback"), CALLBACK, 10 * IOS])
    found = figures(long, [("callback", OTHER, IOS)], 20 * IOS + 900)
    assert (found.mean, found.with_deferred) == (10, 30)
    assert found.parts == {
        "task": 10, "RCU callback callback": 10, "thread kjournald2": 10, "rest": 0
    }  # fmt: skip
    assert by_name(found) == {
        "callback": (0, 20), "path": (10, 0), "tick": (0, 0.15), OWN: (0, -0.15)
    }  # fmt: skip


def test_what_other_tasks_do_is_told_apart() -> None:
    rows = [("path", TASK, IOS), ("tick", TIMER, 90), ("callback", OTHER, 3 * IOS)]
    long = region(RUN.long_region, rows, ticks=9, switches=2)
    found = figures(long, [], 40 * IOS + 900)
    assert found.with_deferred == 40
    assert found.parts == {"thread kjournald2": 30, "task": 10, "rest": 0}


def test_parts_add_up_to_all() -> None:
    """What the task executes in its sleep is in none, and small parts are in the rest."""
    rows = [
        ("path", TASK, IOS),
        ("tick", TIMER, 90),
        ("callback", OTHER, 3 * IOS),
        ("tick", OTHER, 7),
    ]
    long = region(RUN.long_region, rows, ticks=9, switches=2)
    long["parts"][3][-1] -= 200
    long["parts"].append([3, "C", at("callback"), CALLBACK, 200])
    later = [("tick", TIMER, 40), ("path", TASK, 2 * IOS), ("callback", OTHER, IOS // 7)]
    found = figures(long, later, 40 * IOS + 970)
    assert list(found.parts) == ["thread kjournald2", "task", "rest"]
    assert found.parts["task"] == 10
    assert found.parts["thread kjournald2"] == pytest.approx(30 + 10 / 7, abs=0.04)
    assert 0 < found.parts["rest"] < 0.05
    assert sum(found.parts.values()) == pytest.approx(found.with_deferred, abs=1e-9)


def test_parts_that_do_not_add_up_are_refused() -> None:
    long = region(RUN.long_region, [("path", TASK, IOS), ("callback", OTHER, 3)], switches=2)
    long["parts"][3][-1] -= 1
    with pytest.raises(IopathError, match="parts beside the task add up to 29 instructions"):
        figures(long, [], 10 * IOS + 30)


def test_page_faults_are_of_the_path() -> None:
    rows = [("path", TASK, IOS), ("fault", FAULT, IOS)]
    long = region(RUN.long_region, rows, faults=IOS)
    found = figures(long, [], 20 * IOS)
    assert (found.mean, found.with_deferred) == (20, 20)
    assert by_name(found) == {"path": (10, 0), "fault": (10, 0)}


@pytest.mark.parametrize("off", [-1, 100])
def test_a_count_that_the_clock_contradicts_is_refused(off: int) -> None:
    long = region(RUN.long_region, [("path", TASK, IOS)])
    with pytest.raises(IopathError, match="pathcount is wrong"):
        figures(long, [], 10 * IOS + off)


def test_the_clock_of_a_guest_that_waits_goes_on() -> None:
    long = region(RUN.long_region, [("path", TASK, IOS)], switches=2)
    assert figures(long, [], 10 * IOS + 4_000_000).mean == 10
    with pytest.raises(IopathError, match="pathcount is wrong"):
        figures(long, [], 10 * IOS - 1)


def test_ticks_and_the_idle_loop_do_not_belong_to_a_wait() -> None:
    """Their length differs each time. An interrupt of the device does belong to the wait."""
    waiting = Run(
        1, replace(RUN.rung, devices=((("driver", "nvme"),),), round_ios=RUN.ios), "read", 4096
    )
    ios = waiting.long_ios
    rows = [
        ("path", TASK, ios),
        ("tick", TIMER, 900),
        ("callback", FAULT, 2 * ios),
        ("tick", OTHER, 50 * ios),
    ]
    long = region(waiting.long_region, rows, ticks=90, switches=ios)
    long["parts"] = [
        [-1, "e", at("asm_sysvec_apic_timer_interrupt"), "0x0", 9000],
        [-1, "e", at("tick"), "0x0", 20 * ios],
        [-1, "t", "0xffff888000001000", "0x0", 0],
        [2, "r", at("do_idle"), "0x0", 500 * ios],
    ]
    long["entries"][1] = [FAULT, at("tick"), ios]  # an interrupt
    found = figures(long, [], 10 * ios + 10**9, waiting)
    assert found.mean == 10
    assert found.with_deferred == 30
    assert found.parts == {"interrupt tick": 20, "task": 10, "rest": 0}
    row = next(row for row in found.functions if row.name == OWN)
    assert row.deferred == pytest.approx(-500 - 9000 / ios, abs=1e-4)
    assert sum(row.mean + row.deferred for row in found.functions) == pytest.approx(30)


def at(name: str) -> str:
    return f"{TEXT + 64 * BLOCK[name]:#x}"


def test_a_region_that_is_missing_is_said() -> None:
    with pytest.raises(IopathError, match=f"no marker of region {RUN.long_region} was seen"):
        figures(region(LONG | 7, []), [], 0)
