# SPDX-License-Identifier: GPL-2.0
"""From raw counts to profiles: on made-up counts."""

import json

import pytest

from helpers.counted import HEADER
from iopath.counts.pathcount import BootProfile
from iopath.counts.plugin_output import read
from iopath.counts.symbols import Symbols
from iopath.results.layers import Layers
from iopath.results.profiles import COSTLY

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


def test_the_noise_of_code_lines_is_what_their_layout_may_move() -> None:
    """A function of 64 bytes lies in one line or in two, depending on where it begins: in 1, 2, 2
    or 2, a variance of 3/16. A function of 16 bytes is always in one line."""
    start = 0xFFFFFFFF81000000
    symbols = Symbols(f"{start:x} T large\n{start + 64:x} T small\n")
    output = [
        HEADER,
        {"type": "block", "block": 1, "addr": f"{start:x}", "lens": [16] * 4, "kinds": "...."},
        {"type": "block", "block": 2, "addr": f"{start + 64:x}", "lens": [8], "kinds": "."},
        {"type": "region", "region": 1, "median_round": 0},
        *({"type": "node", "region": 1, "node": number, "parent": None, "addr": "0",
           "median": [[number, 4, 1, 0, 0]]} for number in (1, 2)),
        {"type": "end", "errors": []},
    ]  # fmt: skip
    found = BootProfile(read(map(json.dumps, output)), symbols, Layers())
    assert found.code_lines_noise(1, 1) == pytest.approx(4 * (3 / 16) ** 0.5, abs=1e-4)
    assert found.code_lines_noise(1, 10) == pytest.approx(0.4 * (3 / 16) ** 0.5, abs=1e-4)


def test_costly_instructions_are_counted_by_function() -> None:
    """Those in the executed part of a block; for a repeated string instruction, the bytes. An iret
    serialises the CPU."""
    start = 0xFFFFFFFF81000000
    symbols = Symbols(f"{start:x} T one\n{start + 4:x} T other\n")
    output = [
        HEADER,
        {"type": "block", "block": 1, "addr": f"{start:x}", "lens": [1] * 8, "kinds": "TF.TiMPR"},
        {"type": "region", "region": 1, "median_round": 0},
        {"type": "round", "region": 1, "round": 0, "instructions": 34, "iterations": 0,
         "quiet": True, "faults": 0, "switches": 0, "unmatched": 0},
        {"type": "node", "region": 1, "node": 1, "parent": None, "addr": f"{start:x}",
         "median": [[1, 8, 3, 5, 5, 24], [1, 5, 2, 0, 0]]},
        {"type": "end", "errors": []},
    ]  # fmt: skip
    profile = BootProfile(read(map(json.dumps, output)), symbols, Layers()).region(1, 2)
    found = {part.name: part.costly for part in profile.functions}
    assert found == {
        "one": {"timestamps": 5.0, "fences": 2.5},
        "other": {"serialising": 2.5, "msrs": 1.5, "ports": 1.5, "string_bytes": 12.0},
    }
    assert profile.costly == {**found["one"], **found["other"]}
    assert list(profile.costly) == list(COSTLY)
