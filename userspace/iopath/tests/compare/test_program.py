# SPDX-License-Identifier: GPL-2.0
"""How the cost of a program differs between kernels, and whether that is too much."""

from iopath.compare import program
from iopath.results.layers import Layers
from iopath.results.program import BESIDE, CALL, FAULT, OWN, Boot, Part, Ran


def boot(read: int, fault: int = 70, seed: int = 1) -> Boot:
    parts = [
        Part(CALL, "read", 10, 10 * read, 20, {"vfs_read": 10 * read}),
        Part(OWN, "its own code", 0, 20, 0, {"user": 20}),
        Part(FAULT, "page fault", 1, fault, 0, {"handle_mm_fault": fault}),
        Part(BESIDE, "idle", 1, 1000, 0, {"do_idle": 1000}),
    ]
    return Boot(seed, 0, 0, 0, 0, parts)


def ran(name: str, *boots: Boot) -> Ran:
    return Ran(name, name, 0, list(boots))


def test_changes() -> None:
    found = program.compare(ran("a", boot(100)), ran("b", boot(105)), Layers())
    assert (found.whole, found.more) == ((1090, 1140), 50)
    (change,) = found.changes
    assert (change.name, change.each, change.more) == ("read", (100.0, 105.0), 50)
    assert change.functions == {"vfs_read": 50}


def test_a_limit() -> None:
    before, after = ran("a", boot(100)), ran("b", boot(105))
    assert program.regressions(before, after, 5) == ([], [])
    grown, unknown = program.regressions(before, after, 4.9)
    assert (grown, unknown) == (["b: read +5.0 %"], [])
    assert program.regressions(after, before, 0) == ([], [])


def test_boots_that_differ_cannot_be_judged() -> None:
    before = ran("a", boot(100), boot(102, seed=2))
    after = ran("b", boot(103), boot(101, seed=2))
    grown, unknown = program.regressions(before, after, 0)
    assert not grown
    assert [text.split(",")[0] for text in unknown] == ["b: the whole +2.8 %", "b: read +3.0 %"]


def test_what_varies() -> None:
    one = ran("a", boot(100), boot(102, fault=71, seed=2))
    assert {name: found.width for name, found in program.varying(one).items()} == {
        "read": 20, "page fault": 1,
    }  # fmt: skip
