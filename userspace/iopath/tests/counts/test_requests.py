# SPDX-License-Identifier: GPL-2.0
"""Metrics of requests, by the functions that a kernel enters: on made-up counts."""

import json
from typing import Any

import pytest

from helpers.counted import HEADER
from helpers.pairs import PLAIN, change, compared, two
from iopath.compare.limits import regressions
from iopath.counts.longrun import LongRuns
from iopath.counts.pathcount import BootProfile
from iopath.counts.plugin_output import read
from iopath.counts.symbols import Symbols
from iopath.results.layers import Layers
from iopath.results.metrics import REQUESTS, of_device
from iopath.rungs.builtin import select
from iopath.rungs.runs import DRAIN, Run
from iopath.show import texts

RUN = Run(1, select(["dio.pread"])[0], "read", 4096)
IOS = RUN.long_ios
TEXT = 0xFFFFFFFF81000000
TASK, OTHER = 0, 1  # contexts

Rows = list[tuple[str, int, int]]  # function, context, and how often it was entered


def counted(names: str, long: Rows, drained: Rows = []) -> LongRuns:  # noqa: B006
    """The long runs on a kernel with these functions. Each was entered as the rows say, and went on
    twice as often behind its first block."""
    functions = names.split()
    symbols = "".join(f"{TEXT + 64 * at:x} t {name}\n" for at, name in enumerate(functions))
    lines: list[dict[str, Any]] = [HEADER]
    for at in range(len(functions)):
        for part in (0, 1):
            address = f"{TEXT + 64 * at + 8 * part:#x}"
            lines.append(
                {"type": "block", "block": 2 * at + part, "addr": address, "lens": [4, 4],
                 "kinds": ".."}
            )  # fmt: skip
    regions = {RUN.long_region: long, RUN.long_region | DRAIN: drained}
    for number, rows in regions.items():
        counts = []
        for name, context, times in rows:
            block = 2 * functions.index(name)
            counts += [[block, 2, context, times], [block + 1, 2, context, 2 * times]]
            counts.append([block, 0, context, 7])  # an exception came before its first instruction
        lines.append(
            {"type": "flat", "region": number, "rounds": 1, "switches": 0, "iterations": 0,
             "entries": [], "counts": counts}
        )  # fmt: skip
    known = Symbols(symbols)
    found = BootProfile(
        read(map(json.dumps, [*lines, {"type": "end", "errors": []}])), known, Layers()
    )
    return LongRuns(found, known, Layers())


def metrics(names: str, long: Rows, drained: Rows = []) -> dict[str, float]:  # noqa: B006
    return counted(names, long, drained).metrics(RUN)


def test_functions_are_counted_for_the_io_and_later() -> None:
    """In the task, beside it and in the sleep; but not what the kernel does then by itself."""
    found = metrics(
        "bio_split.isra.0 bio_endio try_to_wake_up",
        [("bio_split.isra.0", TASK, 2 * IOS), ("bio_endio", OTHER, IOS),
         ("try_to_wake_up", OTHER, IOS)],
        drained=[("bio_split.isra.0", OTHER, IOS), ("try_to_wake_up", OTHER, IOS)],
    )  # fmt: skip
    assert found == {"splits": 3, "completions": 1, "wake-ups": 1}


def test_who_does_it() -> None:
    """The task, others, or anybody in the sleep; what does not tell that is left out."""
    found = counted(
        "bio_endio try_to_wake_up",
        [("bio_endio", TASK, IOS // 2), ("bio_endio", OTHER, IOS), ("try_to_wake_up", TASK, IOS)],
        drained=[("bio_endio", OTHER, IOS // 4), ("bio_endio", TASK, IOS // 4)],
    )
    by = {"task": 0.5, "other tasks": 1, "later": 0.5}
    assert found.who(RUN) == {"completions": by}


def test_a_sum_needs_all_of_its_functions() -> None:
    """Plug merges are the bios that do not go on to the scheduler."""
    rows = [("blk_attempt_plug_merge", TASK, IOS), ("blk_mq_sched_bio_merge", TASK, IOS // 4)]
    found = metrics("blk_attempt_plug_merge blk_mq_sched_bio_merge", rows)
    assert found == {"plug merges": 0.75}
    assert metrics("blk_attempt_plug_merge other", rows[:1]) == {}


def test_the_first_name_that_a_kernel_has_is_taken() -> None:
    rows = [("submit_bio_noacct", TASK, IOS)]
    assert metrics("submit_bio_noacct other", rows) == {"bios": 1}
    assert metrics("submit_bio_noacct_nocheck submit_bio_noacct", rows) == {"bios": 0}


@pytest.mark.parametrize("names", ["bio_split bio_split.part.0", "bio_split.part.0", "bio_splits"])
def test_what_is_inlined_is_not_counted(names: str) -> None:
    """A function without a place of its own, or with two, gives no figure, and no 0."""
    assert metrics(names, []) == {}


def test_what_a_device_counts() -> None:
    """In a long run of 100 I/Os: 50 requests of two bios each."""
    names = ("reads", "read_sectors", "writes", "write_sectors", "flushes", "bios", "segments",
             "out_of_order", "fua")  # fmt: skip
    more = {"reads": 50, "read_sectors": 800, "bios": 100, "segments": 75, "out_of_order": 10}
    assert of_device({**dict.fromkeys(names, 0), **more}, 100) == {
        "device requests": 0.5, "sectors": 16, "segments": 1.5, "merged bios": 0.5,
        "out of order": 0.1, "device flushes": 0, "FUA writes": 0,
    }  # fmt: skip
    assert {*of_device(dict.fromkeys(names, 0), 100).values()} == {0}
    assert of_device({}, 100) == {}


def requests(before: dict[str, float], after: dict[str, float]) -> dict[str, Any]:
    """Two results with these metrics in each boot."""
    whole = two(PLAIN)
    for record, counts in zip(whole["results"], (before, after), strict=True):
        boots = len(record["boots"])
        record["counts"] |= {name: [value] * boots for name, value in counts.items()}
    return whole


def test_a_comparison_says_what_became_of_requests() -> None:
    """Also where the path has as many instructions as before; the gate fails."""
    one = {"requests": 1.0, "bios": 8.0, "plug merges": 7.0}
    whole = requests(one, {"requests": 8.0, "bios": 8.0, "plug merges": 0.0})
    said = "takes the same path; requests 1.00 to 8.00 per I/O, plug merges 7.00 to 0.00."
    assert texts.verdict(compared(whole), "new").endswith(said)
    (grown,), _ = regressions(compared(whole), 1, [])
    assert grown.endswith("takes more than old: requests 700.00 % (1 % allowed)")
    assert "splits" not in change(whole)["metrics"]


def test_the_cause_leaves_out_what_it_brings_with_it() -> None:
    one = {"switches": 0.0, "wake-ups": 0.0, "cache flushes": 1.0}
    whole = requests(one, {"switches": 2.0, "wake-ups": 2.0, "cache flushes": 2.0})
    whole["results"][1]["boots"] = [boot + 500 for boot in whole["results"][1]["boots"]]
    said = "switches to another task, cache flushes 1.00 to 2.00 per I/O."
    assert texts.verdict(compared(whole), "new").endswith(said)


def test_what_a_kernel_does_not_count_is_judged_by_no_general_limit() -> None:
    whole = requests({"requests": 1.0}, {})
    assert regressions(compared(whole), 1, []) == ([], [])
    assert {metric.name for metric in REQUESTS} & change(whole)["metrics"].keys() == set()
