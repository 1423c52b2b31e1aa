# SPDX-License-Identifier: GPL-2.0
"""From raw counts to profiles: on made-up counts."""

import json

import pytest

from iopath.counts.output import FORMAT, read
from iopath.counts.pathcount import BootProfile
from iopath.counts.symbols import Symbols
from iopath.results.layers import Layers

TEXT = 0xFFFFFFFF81000000
NAMES = ("pread", "__schedule", "do_idle", "default_idle", "asm_common_interrupt", "nvme_irq",
         "schedule_idle", "worker_thread")  # fmt: skip
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
    """Each function executes 10 instructions."""
    executed = 10 * len(TREE)
    lines = [
        {"type": "pathcount", "format": FORMAT, "target": "x86_64"},
        {"type": "region", "region": 1, "rounds": 1, "median_round": 0},
        {"type": "round", "region": 1, "round": 0, "instructions": executed, "iterations": 0,
         "quiet": True, "entries": 1, "faults": 0, "switches": 2, "unmatched": 0, "contexts": []},
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
    assert {row["name"] for row in region["functions"]} == set(NAMES) - left_out
    assert region["instructions"] == region["kernel"] == 10 * len(TREE) - idle
    assert sum(count for _, count in region["stacks"]) == region["instructions"]
    assert region["reads"] == 2 * (len(TREE) - len(left_out))
