# SPDX-License-Identifier: GPL-2.0
"""Reading what the plugin wrote."""

import json
from typing import Any

import pytest

from helpers.counted import HEADER
from iopath.base.arch import X86_64
from iopath.base.errors import IopathError
from iopath.counts.plugin_output import (
    FORMAT,
    Access,
    Block,
    ContextEntry,
    Executed,
    Flat,
    FlatRound,
    InContext,
    Part,
    Round,
    Use,
    read,
)
from iopath.results.metrics import TALLIES

START = HEADER | {"lines": 0}
BLOCK = {"type": "block", "block": 7, "addr": "0x401933", "lens": [1, 2], "kinds": ".r"}
REGION = {"type": "region", "region": 5, "rounds": 2, "median_round": 1}
ROUND = {"type": "round", "region": 5, "round": 0, "instructions": 9, "iterations": 1,
         "quiet": False, "entries": 1,
         "faults": 2, "switches": 3, "unmatched": 4,
         "contexts": [[0, 5, 2], [2, 1, 1]]}  # fmt: skip
ROOT = {"type": "node", "region": 5, "node": 1, "parent": None, "addr": "0x10", "median": [],
        "quiet": [], "disturbed": []}  # fmt: skip
CALL = {"type": "node", "region": 5, "node": 2, "parent": 1, "addr": "0x20", "site": "0x12",
        "median": [[7, 2, 100, 1]], "quiet": [[7, 2, 300, 3, 0, 8]],
        "disturbed": [[7, 2, 101]]}  # fmt: skip
FLAT = {"type": "flat", "region": 6, "rounds": 1, "switches": 8, "iterations": 40,
        "entries": [[2, "0x30", 12]], "counts": [[7, 2, 0, 12000]]}  # fmt: skip
PARTS = {
    "each": [[9, 2, 1, [[2, 12]]]],
    "parts": [[-1, "t", "0xff", "0x0", 0], [0, "r", "0x40", "0x44", 9]],
}
OF_CPU = FLAT | {"region": 8, "cpu": 1, "left_out": 3, "lengths": [50, 51]}
ACCESS = {"type": "access", "region": 8, "line": "0x1000", "virt": "0xffff888000001000", "cpu": 1,
          "pc": "0xffffffff81000000", "kind": "L", "context": 2, "store": True, "bytes": "0xf0",
          "times": 24, "rounds": 12}  # fmt: skip
END = {"type": "end", "errors": []}


def padded(*counts: int) -> tuple[int, ...]:
    """The counts of a block, of which those at the end are 0."""
    return (*counts, *[0] * (len(TALLIES) - len(counts)))


def text(*records: dict[str, Any]) -> list[str]:
    return [json.dumps(record) for record in records]


def test_read() -> None:
    lines, pages = {"code_user": 2}, {"code_user": 1}
    counted = {"round": 1, "quiet": True, "lines": lines, "pages": pages, "taken": 7}
    model = {"warm": {"l1i": 3}, "cold": {"l1i": 4}}
    others = {"contexts": [[0, 4, 2], [1, 1, 2]]}
    rounds = (ROUND, ROUND | counted, ROUND | counted | others | {"model": model})
    unknown = {"type": "a later one"}
    found = read(
        text(START, REGION, *rounds, BLOCK, ROOT, CALL, FLAT | PARTS, unknown, OF_CPU, ACCESS, END)
    )
    assert found.arch == X86_64
    assert found.blocks == {7: Block(0x401933, [1, 2], ".r")}
    assert found.regions.keys() == {5}
    assert found.regions[5].median == 1
    counts, places = {"faults": 2, "switches": 3}, {"lines": lines, "pages": pages}
    assert found.regions[5].rounds == [
        Round(9, 1, 6, 0, False, 4, {**counts, "taken": 0}, {}, None),
        Round(9, 1, 6, 0, True, 4, {**counts, "taken": 7}, places, None),
        Round(9, 1, 5, 3, True, 4, {**counts, "taken": 7}, places, model),
    ]
    nodes = {
        number: (one.address, one.parent, one.site, one.median, one.quiet, one.disturbed)
        for number, one in found.regions[5].nodes.items()
    }
    assert nodes == {
        1: (0x10, None, None, [], [], []),
        2: (
            0x20, 1, 0x12, [Executed(7, 2, 100, padded(1))],
            [Executed(7, 2, 300, padded(3, 0, 8))], [Executed(7, 2, 101, padded())],
        ),
    }  # fmt: skip
    entries, flat = {2: ContextEntry(0x30, 12)}, [InContext(7, 2, 0, 12000)]
    parts = [Part(None, "t", 0xFF, 0, 0), Part(0, "r", 0x40, 0x44, 9)]
    assert found.flats == {
        6: [Flat(entries, flat, 1, 8, 40, 0, 0, [], parts, [FlatRound(9, 2, 1, [[2, 12]])])],
        8: [Flat(entries, flat, 1, 8, 40, 1, 3, [50, 51], [], [])],
    }
    # The first byte that it touches is the fourth.
    access = Access(1, 0xFFFFFFFF81000000, True, True, 0xF0, 24, 0xFFFF888000001004, 0x1004)
    assert found.uses == {8: [Use(0x1000, 2, 12, access)]}


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ([], "pathcount's output ends early"),
        (text(START, BLOCK), "pathcount's output ends early"),
        (["{"], "pathcount's output cannot be read: Expecting property name"),
        (text(BLOCK, END), "pathcount's output cannot be read: it begins with block"),
        (text(START, {"type": "block"}), "pathcount's output cannot be read: it lacks 'addr'"),
        (
            text(START | {"format": FORMAT + 1}),
            f"pathcount writes format {FORMAT + 1}, this iopath reads {FORMAT}: ",
        ),
        (text(START, {"type": "end", "errors": ["one", "two"]}), "pathcount: one; two$"),
        (
            text(START | {"counts": HEADER["counts"][:-1]}),
            f"pathcount does not count {HEADER['counts'][-1]}: build both from one source",
        ),
    ],
)
def test_what_is_no_output(lines: list[str], complaint: str) -> None:
    with pytest.raises(IopathError, match=f"^{complaint}"):
        read(lines)


def test_trees_that_nobody_wants_are_left_out() -> None:
    """The plugin writes lines without spaces."""
    lines = [
        json.dumps(one, separators=(",", ":"))
        for one in (START, BLOCK, REGION, ROUND, ROOT, CALL, REGION | {"region": 55}, END)
    ]
    assert list(read(lines, {5}).regions[5].nodes) == list(read(lines).regions[5].nodes) == [1, 2]
    assert read(lines, {55}).regions[5].nodes == {}
