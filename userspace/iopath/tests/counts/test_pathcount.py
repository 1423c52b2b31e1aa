# SPDX-License-Identifier: GPL-2.0
"""From raw counts to profiles: on made-up counts."""

import json

import pytest

from helpers.counted import HEADER
from iopath.counts.output import read
from iopath.counts.pathcount import BootProfile
from iopath.counts.symbols import Symbols
from iopath.results.layers import Layers

TEXT = 0xFFFFFFFF81000000
NAMES = ("pread", "__schedule", "do_idle", "default_idle", "asm_common_interrupt", "nvme_irq",
         "schedule_idle", "worker_thread")  # fmt: skip
OTHERS = 50  # instructions of other tasks: five functions, outside of the interrupt
AT = {name: TEXT + 64 * number for number, name in enumerate(NAMES)}

# The call tree of a round in which the task waits: a function, its caller, whether it was called.
TREE = (
    ("pread", None, False),
    ("__schedule", 0, True),
    ("do_idle", None, False),  # the idle task, whose calls began before the round
    ("default_idle", 2, True),
    ("asm_common_interrupt", 3, False),
    ("nvme_irq", 4, True),
    ("schedule_idle", 2, True),
    ("__schedule", 6, True),
    ("worker_thread", None, False),
)


def profile(*, waits: bool) -> BootProfile:
    """Each function executes 10 instructions in the first round. In the second, the idle loop
    executes 7 more."""
    executed = 10 * len(TREE)
    round_ = {"type": "round", "region": 1, "iterations": 0, "quiet": True, "entries": 1,
              "faults": 0, "switches": 2, "unmatched": 0}  # fmt: skip
    lines = [
        HEADER,
        {"type": "region", "region": 1, "rounds": 2, "median_round": 0},
        *(
            round_ | {"round": number, "instructions": executed + more,
                      "contexts": [[0, 0, 20], [1, 0, OTHERS + more], [2, 0, 20]]}
            for number, more in enumerate((0, 7))
        ),
        *(
            {"type": "block", "block": number, "addr": f"{address:#x}", "lens": [4] * 10,
             "kinds": "." * 10}
            for number, address in enumerate(AT.values())
        ),
        *(
            {"type": "node", "region": 1, "node": number, "parent": caller,
             "addr": f"{AT[name]:#x}", **({"site": f"{TEXT:#x}"} if called else {}),
             "median": [[NAMES.index(name), 10, 1, 2, 1]]}
            for number, (name, caller, called) in enumerate(TREE)
        ),
        {"type": "end", "errors": []},
    ]  # fmt: skip
    symbols = "".join(f"{address:x} T {name}\n" for name, address in AT.items())
    output = read(map(json.dumps, lines))
    return BootProfile(output, Symbols(symbols), Layers(), waits=waits)


@pytest.mark.parametrize(
    ("waits", "idle", "left_out"),
    [(False, 0, set()), (True, 20, {"do_idle", "default_idle"})],
    ids=["usual", "waits for a device"],
)
def test_the_idle_loop_is_left_out(waits: bool, idle: int, left_out: set[str]) -> None:
    """The interrupt of the loop and the switch from it are not left out."""
    found = profile(waits=waits)
    region = found.region(1, 1)
    assert found.idle(1) == idle
    assert {row.name for row in region.functions} == set(NAMES) - left_out
    assert region.instructions == region.kernel == 10 * len(TREE) - idle
    assert sum(count for _, count in region.stacks) == region.instructions
    assert region.reads == 2 * (len(TREE) - len(left_out))


def test_rounds_are_compared_without_the_idle_loop() -> None:
    """How long it is differs. The switch from it is in each round."""
    rounds = profile(waits=True).rounds(1)
    assert [part.idle for part in rounds] == [20, 27]
    assert {part.instructions - part.idle for part in rounds} == {10 * len(TREE) - 20}
    assert {part.idle for part in profile(waits=False).rounds(1)} == {0}
