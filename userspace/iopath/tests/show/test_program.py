# SPDX-License-Identifier: GPL-2.0
"""The cost of a program is printed completely."""

import io

from rich.console import Console

from iopath.compare import program as changes
from iopath.results.layers import Layers
from iopath.results.program import (
    BESIDE,
    CALL,
    FAULT,
    LATER,
    MODE,
    OWN,
    SCHEMA,
    Boot,
    Part,
    Ran,
    Result,
)
from iopath.show import program


def boot(read: int, seed: int = 1) -> Boot:
    parts = [
        Part(CALL, "read", 1000, 1000 * read, 20_000, {"vfs_read": 1000 * read}),
        *(Part(CALL, f"call{number}", 1, 50 - number, 0, {"f": 50}) for number in range(20)),
        Part(OWN, "its own code", 0, 20_007, 0, {"user": 20_007}),
        Part(FAULT, "page fault", 2, 70, 0, {"handle_mm_fault": 70}),
        Part(LATER, "kworker", 3, 30, 0, {"worker_thread": 30}),
        Part(BESIDE, "idle", 1, 1234, 0, {"do_idle": 1234}),
    ]
    return Boot(seed, 0, 0, 0, 0, parts)


def result(*ran: Ran) -> Result:
    return Result(SCHEMA, MODE, "dd", ["bs=4k", "a b"], "null", "", "7.2", "iopath-1", "", [*ran])


def view_of(*ran: Ran, every: bool = False) -> program.View:
    whole = result(*ran)
    if len(ran) == 1:
        return program.counted(whole, ran[0], every=every, top=None)
    comparison = changes.compare(*ran, Layers())
    return program.changed(whole, comparison, every=every, top=None)


def shown(*ran: Ran, every: bool = False) -> list[str]:
    console = Console(file=io.StringIO(), width=120, highlight=False)
    view_of(*ran, every=every).show(console)
    return console.file.getvalue().splitlines()


def test_one_kernel() -> None:
    lines = shown(Ran("a", "a", 0, [boot(100)]))
    assert lines[0] == "a: dd bs=4k 'a b': 120,917 instructions"
    rows = {line[:20].strip(): line.split() for line in lines}
    assert rows["read"] == ["read", "1,000", "20.00", "100.00", "120,000", "vfs_read", "100"]
    assert rows["9 others (--all)"][3:5] == ["9", "315"]
    assert rows["after its last call"][-1] == "7"
    assert rows["in all"][-1] == "120,917"
    assert lines[-1] == "not in it: idle 1,234"
    assert "call19" not in rows
    assert any(
        line.startswith("call19") for line in shown(Ran("a", "a", 0, [boot(100)]), every=True)
    )


def test_boots() -> None:
    same = shown(Ran("a", "a", 0, [boot(100), boot(100, seed=2)]))
    assert same[-1] == "2 boots: the same count"
    differ = shown(Ran("a", "a", 0, [boot(100), boot(101, seed=2)]))
    assert differ[-1] == "2 boots differ by 1,000: read by 1,000"


def test_two_kernels() -> None:
    lines = shown(Ran("a", "a", 0, [boot(100)]), Ran("b", "b", 0, [boot(105)]))
    assert lines[0] == "a to b: dd bs=4k 'a b': 120,917 to 125,917 instructions, +4.1 %"
    (read,) = (line.split() for line in lines if line.startswith("read"))
    assert read == ["read", "1,000", "100.00", "+5.00", "+5,000", "vfs_read", "+5.00"]
    assert lines[-1].split() == ["in", "all", "+5,000"]


def test_markdown() -> None:
    text = view_of(Ran("a", "a", 0, [boot(100)]), Ran("b", "b", 0, [boot(105)])).markdown
    assert text.splitlines() == [
        "### a to b: dd bs=4k 'a b': 120,917 to 125,917 instructions, +4.1 %",
        "",
        "|  | times | on a | change | in all | most of it, each time |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
        "| read | 1,000 | 100.00 | +5.00 | +5,000 | vfs_read +5.00 |",
        "| in all |  |  |  | +5,000 |  |",
    ]
