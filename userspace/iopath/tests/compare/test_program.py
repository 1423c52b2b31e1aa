# SPDX-License-Identifier: GPL-2.0
"""How the cost of a program differs between kernels, and whether that is too much."""

from counted import a_boot as boot
from counted import a_run as ran

from iopath.compare import program
from iopath.results.layers import Layers
from iopath.results.program import CALL, LATER, Part


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


def test_what_is_followed() -> None:
    """The call that changed most, unless something else changed by more than as much."""
    before, after = boot(100), boot(105)
    assert program.followed(program.compare(ran("a", before), ran("b", after), Layers())) == "read"
    after.parts.append(Part(CALL, "open", 1, 40, 0, {"do_open": 40}))
    assert program.followed(program.compare(ran("a", before), ran("b", after), Layers())) == "read"
    after.parts.append(Part(LATER, "kworker", 1, 40, 0, {"worker_thread": 40}))
    found = program.compare(ran("a", before), ran("b", after), Layers())
    assert program.followed(found) == "the whole"
